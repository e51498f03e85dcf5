"""Which C compiler builds the twin."""

from __future__ import annotations

import os
import shutil

COMPILERS = ("cc", "gcc", "clang")
ZIG = "ziglang>=0.13"
"""A C compiler as a wheel."""


def compiler() -> str:
    """The command of the compiler that CC names or the system has; '' for none."""
    return os.environ.get("CC") or next(filter(shutil.which, COMPILERS), "")
