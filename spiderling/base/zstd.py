"""Python's own zstd, of the standard library or its backport: it decompresses streams in bounded memory."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd
