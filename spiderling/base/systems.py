"""Which operating systems Spiderling runs on."""

from __future__ import annotations

import sys


def refusal() -> str:
    """Why no command runs on this system; empty on Linux.

    Limits of memory and time for pages, locks and what survives a power cut are tried on Linux only.
    """
    if sys.platform == "linux":
        return ""
    return (
        f"Spiderling runs on Linux, and this is {sys.platform}; use the container in examples/operations/ (Dockerfile)."
    )
