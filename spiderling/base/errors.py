"""The errors that a user reads, as one small tree, and where an error comes from."""

from __future__ import annotations

import os
import traceback
from functools import cache
from importlib.util import find_spec
from pathlib import Path


class SpiderlingError(Exception):
    """Base class: ``str(error)`` says what, where and what to do; it is shown without a traceback."""

    finish_reason = "bad-input"  # Scrapy's finish reason of a crawl that the error has stopped


class BadInput(SpiderlingError):
    """An argument, an option or a file given by the user cannot be used."""


class JobdirError(SpiderlingError):
    """The crawl directory is locked, foreign, unwritable or of another crawl."""


class StorageError(SpiderlingError):
    """The store or a corpus segment could not be written or read; what was acknowledged is safe."""

    finish_reason = "storage-failed"


class DamageError(StorageError):
    """A part of the state, the corpus or other output is not as it was written."""


class InternalError(SpiderlingError):
    """An error of Spiderling's own from which the crawl cannot go on; what was acknowledged is safe."""

    finish_reason = "internal-error"


class NoFreeShard(SpiderlingError):
    """All shards of the crawl are at work, or live elsewhere; that is no failure."""

    finish_reason = "no-free-shard"


class Stopped(SpiderlingError):
    """A signal came while the crawl was being opened; that is no failure."""

    finish_reason = "shutdown"

    def __str__(self) -> str:
        return (
            "The crawl was stopped while it was being opened: nothing was asked for yet and nothing is lost; the same "
            "command goes on with it"
        )


class NetworkAway(SpiderlingError):
    """For too long nothing has answered, or no name was found: the crawl stops with exit code 3 and keeps its URLs."""

    finish_reason = "offline"


_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"


@cache
def _carriers() -> tuple[str, ...]:
    """What the paths of files begin with that only hand a request or an item on to a component."""
    specs = map(find_spec, ("scrapy", "twisted", "asyncio"))
    libraries = [f"{Path(spec.origin).parent}{os.sep}" for spec in specs if spec and spec.origin]
    return (*libraries, f"{_PACKAGE}engine/fast_scrapy.py")


def is_ours(error: BaseException) -> bool:
    """Whether *error* came from a component of Spiderling or a library that it called; False for the user's project."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if not path.startswith(_carriers()):
            return path.startswith(_PACKAGE)
    return False


def is_made_here(error: BaseException) -> bool:
    """Whether code of Spiderling itself raised *error*, not a library that it called."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and frames[-1][0].f_code.co_filename.startswith(_PACKAGE)


def place_of(error: BaseException) -> str:
    """File, line and function of the innermost frame of *error* in Spiderling, or of the innermost if none is."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or frames
    if not ours:
        return "an unknown place"
    path = Path(ours[-1].filename)
    name = path.relative_to(Path(_PACKAGE).parent) if path.is_relative_to(_PACKAGE) else path.name
    return f"{name}:{ours[-1].lineno} in {ours[-1].name}"
