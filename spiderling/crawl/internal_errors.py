"""Errors of our own code: each ends one URL or stops the crawl; none is ignored.

    note        an error while foreign data was read and nothing had changed: that URL or file ends
    changing    a frame around every change of state: an error inside stops the crawl at its last checkpoint
    watch_task  a task that lasts as long as the crawl: if it fails, the crawl stops in the same way

An error of memory, disk or state (FATAL) stops the crawl wherever it happens: no single URL is to blame.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import NamedTuple

from spiderling import __version__
from spiderling.base.errors import InternalError, SpiderlingError, StorageError, place_of
from spiderling.crawl.checkpoint import Checkpoint
from spiderling.frontier import Frontier

logger = logging.getLogger(__name__)

FATAL = (StorageError, OSError, sqlite3.Error, MemoryError)
MAX = 20
"""Errors that may end single URLs or files within a window; one more stops the crawl, since no single page is to blame
any more.  Chosen."""
WINDOW_ENDS = 1000  # length of the window, in URLs that end; chosen
_KEY = "internal-errors"
"""Key in the store's table ``meta``: URLs and files on which the crawl stopped, as a list of [URL, URL key or null]."""
_FORGIVEN = "forgiven-errors"
"""The same of those that were forgiven, as a list of [URL, URL key or null, version that was to fetch them]."""


class Met(NamedTuple):
    """An error that has ended a URL or a file."""

    ends: int  # URLs that had ended before it
    kind: str
    place: str
    url: str


class InternalErrors:
    """Ends URLs, or stops the crawl, for errors of our own code; belongs to one crawl and its event loop."""

    def __init__(self, fail: Callable[[SpiderlingError], None]) -> None:
        """*fail* ends the crawl with its message and exit code 1."""
        self._fail = fail
        self._frontier: Frontier | None = None
        self._checkpoint: Checkpoint | None = None
        self._shunned: list[list[int | str | None]] = []
        self._forgiven: list[list[int | str | None]] = []
        self._recent: deque[Met] = deque()
        self._of_place: Counter[tuple[str, str]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_broken = False  # whether the crawl stops, and nothing more of it is kept

    def begin_noting(self, frontier: Frontier, checkpoint: Checkpoint, meta: Mapping[str, str]) -> None:
        """Let single URLs end from now on, since the parts of the crawl are open; until then any error stops it.

        URLs that earlier stops have noted in *meta* are shunned.
        """
        self._frontier = frontier
        self._checkpoint = checkpoint
        self._shunned = json.loads(meta.get(_KEY, "[]"))
        self._forgiven = json.loads(meta.get(_FORGIVEN, "[]"))
        frontier.next_fetch.shunned = _names(self._shunned)

    def forgive(self) -> None:
        """Fetch URLs and files on which the crawl stopped like any other from now on, each once by a version.

        The wish for it may stand in control.yaml for good, and the crawl would stop there at each start.
        """
        assert self._frontier is not None and self._checkpoint is not None
        forgiven = [[*one, __version__] for one in self._shunned]
        if new := [one for one in forgiven if one not in self._forgiven]:
            self._shunned = [one[:-1] for one in forgiven if one in self._forgiven]
            self._forgiven += new
            self._frontier.next_fetch.shunned = _names(self._shunned)
            self._checkpoint.set_meta(_KEY, self._shunned)
            self._checkpoint.set_meta(_FORGIVEN, self._forgiven)

    # -- one URL

    def note(self, error: BaseException, url: str) -> None:
        """Log that *error* ends *url*, a URL or a file of a site, before anything has changed; the caller ends it."""
        if isinstance(error, FATAL) or self._frontier is None:
            self.stop(error, url)
            return
        self._frontier.ledger.totals["internal_errors"] += 1
        met = Met(self._frontier.ledger.ends.total(), type(error).__name__, place_of(error), url)
        self._of_place[met.kind, met.place] += 1
        logger.error(
            "Internal error at %s: %s: %s (%s)",
            url,
            met.kind,
            error,
            met.place,
            exc_info=error if self._of_place[met.kind, met.place] == 1 else None,
        )
        self._recent.append(met)
        while self._recent[0].ends < met.ends - WINDOW_ENDS:
            self._recent.popleft()
        if len(self._recent) > MAX:
            self._fail(InternalError(_too_many(self._recent)))

    # -- the whole crawl

    @contextmanager
    def changing(self, url: str = "", key: int | None = None) -> Iterator[None]:
        """A frame (``with``) for changes of state on behalf of *url*; *key* is its URL key, if it has one.

        An error inside stops the crawl and is not raised, as half-changed state may raise more of them.
        """
        try:
            yield
        except Exception as error:
            self.stop(error, url, key)

    def stop(self, error: BaseException, url: str = "", key: int | None = None, task: str = "") -> None:
        """Stop the crawl after an *error* in the middle of a change; the next start goes on from the last checkpoint.

        It ends *url*, if that is to blame, when its turn comes.  *task*: the lasting task that failed, if one did.
        """
        if self.is_broken:
            return  # a frontier that is half changed may raise anything
        self.is_broken = True
        is_fatal = isinstance(error, FATAL)
        blamed = [] if is_fatal or not url else [*self._shunned, [url, key]]
        if not is_fatal:
            logger.error("Internal error%s", f" at {url or task}" if url or task else "", exc_info=error)
        said = error if isinstance(error, StorageError) else InternalError(_describe(error, url or task, is_fatal))
        if self._checkpoint is not None:
            meta = {_KEY: json.dumps(blamed), _FORGIVEN: json.dumps(self._forgiven)} if blamed else {}
            self._checkpoint.abandon(said, meta)
        self._fail(said)

    def watch_task(self, coroutine: Coroutine[None, None, None], what: str) -> asyncio.Task[None]:
        """Run *coroutine* as a task; if it fails, the crawl stops and says *what* it was."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(partial(self._over, what))
        return task

    def _over(self, what: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stop(error, task=what)


def _names(shunned: list[list[int | str | None]]) -> frozenset[int | str | None]:
    return frozenset(chain.from_iterable(shunned)) - {None}


def _describe(error: BaseException, place: str, is_fatal: bool) -> str:
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    if is_fatal:
        return f"{what} ({place_of(error)}); the same command goes on from the last checkpoint."
    return (
        f"an error of Spiderling's own{f' at {place}' if place else ''}, {what} ({place_of(error)}); the traceback is "
        "above. The same command goes on from the last checkpoint and leaves out what is to blame, if that is known."
    )


def _too_many(recent: deque[Met]) -> str:
    (kind, place), number = Counter((met.kind, met.place) for met in recent).most_common(1)[0]
    url = next(met.url for met in reversed(recent) if (met.kind, met.place) == (kind, place))
    return (
        f"{len(recent)} internal errors while at most {WINDOW_ENDS:,} URLs ended, more than {MAX}: most often {kind} "
        f"in {place}, {number} times, such as at {url}; its traceback is above, please report it. All is kept, and the "
        "same command goes on; after an upgrade, 'ask_again' in control.yaml asks for those URLs once more."
    )
