"""Bugs of our own in a simulated session: one call of a public method of the package raises, wherever that is.

What a bug does to one URL is its own, and the crawl may stop; but it must not hang, lose or do twice what was
acknowledged, or keep the next start from going on.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, NamedTuple
from unittest import mock

PACKAGES = ("spiderling.crawl", "spiderling.engine", "spiderling.extensions", "spiderling.frontier")


BUG = "a bug in "  # begins what is noted of one


class Bug(NamedTuple):
    """That a call raises."""

    place: float  # which of the functions, as a share of all
    call: int  # the number of the call that raises; the first is 1


ENTRIES = {"DirectDownloader", "PlainEngine", "PlainScraper", "Scheduler", "end_failed", "end_without_page"}
"""Classes and methods that Scrapy calls and that hardly do more than call others: those may raise."""


class OfOurOwn(Exception):
    """What a bug raises."""


@cache
def functions() -> list[tuple[type, str]]:
    """All public methods that may raise, each with its class."""
    found = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        for info in pkgutil.walk_packages(module.__path__, f"{package}."):
            for owner in vars(importlib.import_module(info.name)).values():
                if inspect.isclass(owner) and owner.__module__ == info.name and owner.__name__ not in ENTRIES:
                    found += [(owner, name) for name, one in vars(owner).items() if _may_raise(name, one)]
    return sorted(found, key=lambda one: (one[0].__module__, one[0].__qualname__, one[1]))


def _may_raise(name: str, one: Any) -> bool:
    is_plain = inspect.isfunction(one) and not inspect.isgeneratorfunction(one)
    return is_plain and not inspect.isasyncgenfunction(one) and not name.startswith("_") and name not in ENTRIES


@contextmanager
def having(bug: Bug | None, met: list[str]) -> Iterator[None]:
    """Within it the package has the *bug*; where it was met is added to *met*."""
    if bug is None:
        yield
        return
    owner, name = functions()[int(bug.place * len(functions()))]
    with mock.patch.object(owner, name, _raising(getattr(owner, name), bug.call, f"{owner.__qualname__}.{name}", met)):
        yield


def _raising(function: Callable[..., Any], number: int, place: str, met: list[str]) -> Callable[..., Any]:
    calls = 0

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            met.append(f"{BUG}{place}, call {number}")
            raise OfOurOwn(place)
        return function(*args, **kwargs)

    if not inspect.iscoroutinefunction(function):
        return wrapped

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        """Scrapy asks whether a handler of downloads is a coroutine function."""
        return await wrapped(*args, **kwargs)

    return awaited
