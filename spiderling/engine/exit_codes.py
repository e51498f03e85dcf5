"""How a command tells that it failed."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""
NO_NETWORK = 3
"""Exit code of a crawl that stopped since nothing answers; it keeps its URLs."""
FAILED_STAT = "spiderling/failed"
"""Stat of a crawl that could not begin, go on or be saved; its value is the finish reason.  The command exits with 1,
or with NO_NETWORK if it is OFFLINE."""
OFFLINE = "offline"
"""Finish reason of a crawl that has no network."""
