"""Which links of a page may be followed."""

from __future__ import annotations

from enum import Enum


class Follow(Enum):
    """Which links of a page may be followed."""

    ALL = "all"
    UNMARKED = "those without rel=nofollow"
    NONE = "none"
