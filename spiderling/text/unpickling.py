"""Reads the pickles of a text worker without trusting it.

A worker parses hostile bytes with libraries in C.  A page that takes the worker over can send
pickles that call anything.  So the unpicklers here know only the types that make up a Page.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

_TYPES = frozenset(
    (
        ("spiderling.text.page", "Page"),
        ("spiderling.base.link_batch", "received"),
        ("spiderling.text.quality", "Quality"),
    )
)
"""(module, name) of the types and functions that a Page is unpickled with."""
_found: dict[tuple[str, str], Any] = {}
"""Types already looked up; to unpickle a Page takes only ten times as long as a look-up."""


class _PageReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        key = module, name
        if key not in _found:
            if key not in _TYPES:
                raise pickle.UnpicklingError(f"{module}.{name} is no part of a page")
            _found[key] = super().find_class(module, name)
        return _found[key]


class _PlainReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def read_page(data: bytes | memoryview) -> Any:
    """Unpickle a Page or a plain value; raises what pickle raises for anything else."""
    return _PageReader(io.BytesIO(data)).load()


def read_plain(data: bytes) -> Any:
    """Unpickle lists, tuples, strings and numbers; raises what pickle raises for anything else."""
    return _PlainReader(io.BytesIO(data)).load()
