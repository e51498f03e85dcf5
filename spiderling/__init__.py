"""Spiderling: a crawler that builds a text corpus in a language you name.

docs/life-of-a-url.md says where to read on, in the order of a URL's life.  A package imports only from those on floors
below its own (docs/architecture.svg, tests/test_imports.py).

Without a crawl: `extract`, `identify`, `read` and `dedup` of library.py, which stand here too (docs/library.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spiderling.library import Document, Identified, Paragraph, dedup, extract, identify, read

__version__ = "1.0.0"
__all__ = ["Document", "Identified", "Paragraph", "dedup", "extract", "identify", "read"]


def __getattr__(name: str) -> Any:
    """The library's parts, loaded when they are first used: the commands need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("spiderling.library"), name)
