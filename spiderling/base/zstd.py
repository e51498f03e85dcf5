"""Python's own zstd, which reads streams in bounded memory: of the standard library, or of its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd
