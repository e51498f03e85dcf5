"""Checkpoints: outcomes and the frontier's changes become durable together, or not at all.

``add_outcome`` is called right after ``frontier.report`` in one synchronous step.  About once a second all that has
gathered is cut off as one immutable batch: the entries of segments, and the changes that the frontier gives at that
moment.  One thread writes the batches in order: bytes of segments, fsync, then one transaction with the changes and
the lengths of the segments.  So after any kill the state and all segments agree, and what was not committed is fetched
again as if for the first time.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

from spiderling.base.errors import SpiderlingError, StorageError
from spiderling.base.machine import Histogram
from spiderling.base.outcome import Outcome
from spiderling.corpus.segments import SegmentWriter
from spiderling.frontier import Frontier
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore

MAX_OUTCOMES = 256
"""Outcomes after which a checkpoint is made at the latest.  Chosen: with 64, a crawl of 300 pages a second spends 5 %
more of its main process on five checkpoints a second."""


class Checkpoint:
    """Gathers outcomes and writes batches; belongs to the event loop, writes in a thread of its own."""

    def __init__(
        self,
        frontier: Frontier,
        store: SqliteStore,
        writers: Sequence[SegmentWriter],
        now: Callable[[], float],
        fail: Callable[[StorageError], None],
        still_here: Callable[[], None] = lambda: None,
    ) -> None:
        """*writers*: that of the corpus first; *fail* is called once, when a batch could not be written.

        *still_here* is called before each batch and raises StorageError when the files are not where they were.
        """
        self._frontier = frontier
        self._store = store
        self._corpus = writers[0]
        self._writers = writers
        self._now = now
        self._fail_crawl = fail
        self._still_here = still_here
        self._entries: dict[str, list[Any]] = {writer.kind.name: [] for writer in writers}
        self._digests: list[int] = []
        self._outcomes = 0
        self._meta: dict[str, str | Callable[[], object]] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: asyncio.Future[list[SegmentRow]] | None = None
        self.lengths = self._corpus.lengths()  # durable bytes of each segment of the corpus
        self.times = Histogram()  # how long batches took to be written
        self.error: SpiderlingError | None = None  # why writing stopped; nothing is written any more
        self._is_closed = False

    def add_outcome(self, outcome: Outcome) -> None:
        """Take the document and the digests of *outcome*; they are durable after the next ``flush``."""
        if outcome.document is not None:
            self._entries[self._corpus.kind.name].append(outcome.document)
        self._digests.extend(outcome.digests)
        self._outcomes += 1
        if self._outcomes >= MAX_OUTCOMES:
            self.begin()

    def add_digests(self, digests: Iterable[int]) -> None:
        """Add *digests* of what another shard has kept to the next batch."""
        self._digests.extend(digests)

    def add_entry(self, kind: str, entry: Any) -> None:
        """Add *entry* to the segments of *kind* in the next batch; one step with `add_outcome` keeps both together."""
        self._entries[kind].append(entry)

    def set_meta(self, key: str, value: object) -> None:
        """Set ``meta[key]`` to *value* as JSON with the next batch; a callable is called when that batch is made."""
        self._meta[key] = value if callable(value) else json.dumps(value)

    def begin_if_needed(self) -> None:
        """Begin a batch if there is anything to write."""
        if self._outcomes or self._meta or any(self._entries.values()) or self._frontier.has_changes:
            self.begin()

    def begin(self) -> None:
        """Start to write what has gathered, unless a batch is still being written or writing has failed.

        Nor when all is written and the crawl is being closed: the next start finds a change of control.yaml again.
        """
        if self.error is None and self._writing is None and not self._is_closed:
            try:
                batch = self._cut_batch()
            except Exception as error:  # no checkpoint can be made any more, whatever the reason
                self._fail(error)
                return
            self._writing = asyncio.get_running_loop().run_in_executor(self._writer, self._write, *batch)
            self._writing.add_done_callback(self._note_written)

    def abandon(self, error: SpiderlingError, meta: dict[str, str]) -> None:
        """Write nothing of what has gathered, now or later; only *meta* becomes durable.

        A batch that is being written is finished.
        """
        if self.error is None:
            self.error = error
            if meta:
                self._writer.submit(self._write_alone, meta)

    def _write_alone(self, meta: dict[str, str]) -> None:
        with suppress(StorageError):  # the crawl has stopped already; without *meta* it stops again at the same place
            self._store.commit(Changes(meta=meta))

    async def flush(self) -> None:
        """Return when everything that was added is durable; raises SpiderlingError if that fails."""
        await self._write_out()
        self.begin()
        await self._write_out()

    async def _write_out(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        """Write the rest and release the files; raises SpiderlingError, with the files released all the same."""
        try:
            await self.flush()
            self.refuse_lost()
        except StorageError as error:
            self.error = error
            raise
        finally:
            self._is_closed = True
            self._writer.shutdown()
            for writer in self._writers:
                writer.close()
            self._store.close()

    def refuse_lost(self) -> None:
        """Raise StorageError if something that was acknowledged is not there any more."""
        self._still_here()
        for writer in self._writers:
            writer.refuse_lost()

    def _cut_batch(self) -> tuple[dict[str, list[Any]], Changes]:
        """The entries of segments and the changes that have gathered; from now on others gather."""
        now = self._now()
        changes = self._frontier.drain(now)
        noted = {key: json.dumps(value()) if callable(value) else value for key, value in self._meta.items()}
        history = self._frontier.history(now)
        changes = replace(changes, digests=self._digests, meta=changes.meta | noted, history=history)
        batch = (self._entries, changes)
        self._entries = {kind: [] for kind in self._entries}
        self._digests = []
        self._meta = {}
        self._outcomes = 0
        return batch

    def _write(self, entries: dict[str, list[Any]], changes: Changes) -> list[SegmentRow]:
        """In the writer's thread; returns what became of the segments."""
        self._still_here()
        began = time.monotonic()
        try:
            rows = [row for writer in self._writers if (row := writer.append(entries[writer.kind.name]))]
            url_log = changes.url_log
            if rows and rows[0].kind == self._corpus.kind.name:
                url_log = replace(url_log, segment=rows[0].name, offset=self._corpus.frame_offset)
            self._store.commit(replace(changes, segments=rows, url_log=url_log))
            for writer in self._writers:
                writer.acknowledge()
        except StorageError:
            self._still_here()  # a directory that has gone is the better message
            raise
        self.times.add(time.monotonic() - began)
        return rows

    def _note_written(self, writing: asyncio.Future[list[SegmentRow]]) -> None:
        """Tell the frontier of the batch before another is cut off: it would take the wrong one for written."""
        self._writing = None
        error = writing.exception()
        if error is not None:
            self._fail(error)
        elif self.error is None:
            corpus = (row for row in writing.result() if row.kind == self._corpus.kind.name)
            self.lengths.update((row.name, row.length_bytes) for row in corpus)
            try:
                self._frontier.committed()
            except Exception as failure:  # what is written still counts as new, so no further batch may be cut off
                self._fail(failure)

    def _fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error if isinstance(error, StorageError) else StorageError(f"a checkpoint failed: {error!r}.")
            self._fail_crawl(self.error)
