"""The archives of a running crawl: what is read, in work and done.

Scrapy does not slow ``start()`` down when items come faster than the pipelines take them.  So ``pages`` waits until
pages in work are settled.  How far an archive is done goes into the same checkpoint as the results of its pages
(``settle``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from spiderling.archives.records import ArchiveRecord, RecordReader
from spiderling.archives.sources import (
    META_KEY,
    UNREAD_KEY,
    ArchiveProgress,
    ArchiveUnread,
    FileRaw,
    Position,
    Raw,
    UrlRaw,
    is_url,
)
from spiderling.base.addresses import DropList, read_list
from spiderling.base.link_batch import NONE
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.base.urls import CanonicalUrl
from spiderling.frontier import Fetch
from spiderling.frontier.intake import ArchivePages

logger = logging.getLogger(__name__)

_PAGES_PER_WORKER = 6  # pages in work for each text worker (chosen, so that no worker waits)
_MAX_BYTES = 64_000_000  # most bytes of all pages in work together; chosen
_MAX_TOLD = 3  # damages of one archive that are logged one by one; chosen


class _Work(NamedTuple):
    """The record of a page in work."""

    place: ArchiveProgress
    position: Position
    bytes: int


class CrawlSide(NamedTuple):
    """What the archives need of their crawl."""

    pages: ArchivePages
    documents: frozenset[str]  # kinds of documents that can be converted
    allows: Callable[[str], bool]  # whether an IP address may be connected to
    meta: Mapping[str, str]  # key -> value that earlier checkpoints stored
    note: Callable[[str, object], None]  # stores a key and a value with the next checkpoint
    finish: Callable[[Outcome], object]  # reports the outcome of a page that goes through no pipeline
    has_room: Callable[[int], bool]  # whether the budgets leave room for another page beside a number of those in work
    now: Callable[[], float]


class Archives:
    """All archives of a crawl; only for the thread of the event loop."""

    def __init__(self, sources: Sequence[str], options: Options, crawl: CrawlSide) -> None:
        """Raises BadInput if the list of URLs to take cannot be read."""
        saved = {
            key.removeprefix(META_KEY): json.loads(value)
            for key, value in crawl.meta.items()
            if key.startswith(META_KEY)
        }
        self._places = {source: ArchiveProgress(saved.get(source, {}), source) for source in sources}
        self._options = options
        self._crawl = crawl
        self._only = DropList(urls=read_list(options.archive_urls)) if options.archive_urls else None
        """The URLs to take; None: all that the crawl wants."""
        self._reader = RecordReader(options, crawl.documents, self._refusal)
        self._max_pages = options.text_workers(from_archives=True) * _PAGES_PER_WORKER
        self._in_work: dict[int, _Work] = {}
        self._freed = asyncio.Event()
        self.errors: dict[str, str] = {}  # archive -> why it could not be read to its end
        self._note_unread()

    # -- progress

    @property
    def unread(self) -> list[str]:
        """Archives not yet read to their end, or grown since."""
        return [source for source, place in self._places.items() if not _is_done(place)]

    @property
    def is_ahead(self) -> bool:
        """Whether the reading waits for pages to be settled."""
        return not self._freed.is_set()

    @property
    def records(self) -> int:
        return sum(place.records for place in self._places.values())

    def standing(self) -> str:
        """One line for the user: how far the archives are read, and how much of them is damaged."""
        total = len(self._places)
        damaged = sum(place.damaged for place in self._places.values())
        parts = [f"{total - len(self.unread):,} of {total:,} read, {self.records:,} records"]
        parts += [f"{damaged:,} damaged parts"] if damaged else []
        parts += [f"{len(self.errors):,} not read to the end"] if self.errors else []
        return "; ".join(parts)

    # -- pages

    async def pages(self, is_stopping: Callable[[], bool]) -> AsyncIterator[tuple[Fetch, ArchiveRecord]]:
        """Each page for the pipelines, as fast as they take them; it is in work until ``settle``."""
        readers = Readers(self._batches_of, _BATCHES_PER_THREAD * (self._options.archive_files + 1))
        unread = self.unread
        for source in unread:
            self._places[source].read_on()
        readers.start([source for source in unread if not is_url(source)], self._options.archive_files)
        readers.start([source for source in unread if is_url(source)], 1)
        try:
            async for batch in readers.batches():
                place = self._places[batch.source]
                for record in batch.records:
                    if is_stopping():
                        return
                    fetch = self._judge(place, record)
                    if fetch is None:
                        continue
                    # this page is in `_in_work` already, so it alone never waits
                    while len(self._in_work) > 1 and self._is_full():
                        self._freed.clear()
                        await self._freed.wait()  # for one that is settled
                    if is_stopping():
                        return
                    yield fetch, record
                self._note_end(place, batch)
        finally:
            readers.stop()

    def holds(self, url_id: int | None) -> bool:
        """Whether the page of this id is in work."""
        return url_id in self._in_work

    def settle(self, outcome: Outcome) -> Outcome:
        """Note that the record of a page is done; returns *outcome* without links, for the frontier.

        Call it in one step with the frontier's report and the checkpoint's ``add``.
        """
        if outcome.url_id in self._in_work:
            work = self._in_work.pop(outcome.url_id)
            self._crawl.pages.enter(outcome.url_id)
            self._freed.set()
            self._end(work.place, work.position)
        has_links = outcome.links is not NONE or outcome.links_cut
        return replace(outcome, links=NONE, links_cut=0) if has_links else outcome

    def _refusal(self, target: CanonicalUrl) -> Reason | None:
        """Why *target* is not wanted, else None; called by the threads that read."""
        if self._only is not None and not self._only.rule_for({"url": target.url}):
            return Reason.OUT_OF_SCOPE
        return self._crawl.pages.unwanted(target)

    def _batches_of(self, source: str) -> Iterator[Batch]:
        """The batches of an archive, the last one with its size or an error; called by the threads that read."""
        records: list[ArchiveRecord] = []
        raw: Raw | None = None
        try:
            raw = UrlRaw(source, self._options, self._crawl.allows) if is_url(source) else FileRaw(source)
            for record in self._reader.records(raw, self._places[source].last):
                records.append(record)
                if len(records) >= _BATCH_RECORDS or sum(len(one.body) for one in records) >= _BATCH_BYTES:
                    yield Batch(source, records)
                    records = []
            yield Batch(source, records, size=raw.size or 0)
        except ArchiveUnread as error:
            yield Batch(source, records, error=f"{error} {_AGAIN}")
        except Exception as error:  # whatever an archive holds must not end the reading of the others
            yield Batch(source, records, error=f"{source} cannot be read on: {error!r}. {_AGAIN}")
        finally:
            if raw is not None:
                raw.close()

    def _judge(self, place: ArchiveProgress, record: ArchiveRecord) -> Fetch | None:
        """The page of *record* for the pipelines; None for any other, which is accounted for here."""
        if not place.begin_record(record.position):
            return None
        fetch = self._begin(place, record)
        if not isinstance(fetch, Fetch):
            self._end(place, record.position)
            return None
        self._in_work[fetch.id] = _Work(place, record.position, len(record.body))
        if record.reason is None:
            return fetch
        size = record.length
        self._crawl.finish(Outcome(fetch.id, fetch.url, record.reason, record.status, wire_bytes=size, body_bytes=size))
        return None

    def _begin(self, place: ArchiveProgress, record: ArchiveRecord) -> Fetch | Reason | None:
        """The fetch that stands for *record*; a Reason or None if it is no page."""
        if record.reason is Reason.DAMAGED:
            place.note_damage(record.position)
            if place.damaged <= _MAX_TOLD:
                begin = max(record.position.member, 0)
                logger.warning("%s is damaged in the part that begins at byte %d", place.source, begin)
        if record.reason in MENTIONS:
            self._crawl.pages.refuse(record.reason)
        elif record.is_robots and record.reason is None:
            self._crawl.pages.robots_txt(record.url, record.status, record.body, self._crawl.now())
        else:
            return self._crawl.pages.begin(record.url)
        return None

    def _end(self, place: ArchiveProgress, position: Position) -> None:
        place.end_record(position)
        self._crawl.note(META_KEY + place.source, place.saved)
        if _is_done(place):
            self._note_unread()

    def _note_end(self, place: ArchiveProgress, batch: Batch) -> None:
        """Note the end or the error of an archive, if *batch* brings it."""
        error = batch.error
        if batch.size is not None and place.is_idle and 0 < place.records == place.damaged:
            error = (
                f"Nothing could be read of {place.source}: it is no WARC file, packed with a dictionary of zstd, or "
                "damaged throughout. Of ARC files, warcio recompress OLD.arc.gz NEW.warc.gz makes WARC files."
            )
        if error:
            self.errors[place.source] = error
            logger.error("%s", error)
        elif batch.size is not None:
            place.size = batch.size
            self._crawl.note(META_KEY + place.source, place.saved)
            self._note_unread()

    def _note_unread(self) -> None:
        self._crawl.note(UNREAD_KEY, lambda: len(self.unread))

    def _is_full(self) -> bool:
        """Whether enough pages or bytes are in work."""
        pages = len(self._in_work)
        if pages > self._max_pages or not self._crawl.has_room(pages - 1):
            return True
        return sum(work.bytes for work in self._in_work.values()) > _MAX_BYTES


def _is_done(place: ArchiveProgress) -> bool:
    """Whether the archive is read to its end and has not grown since."""
    if place.size is None or not place.is_idle:
        return False
    return is_url(place.source) or (os.path.exists(place.source) and os.path.getsize(place.source) == place.size)


_BATCH_RECORDS = 32  # records after which a batch is handed over; chosen
_BATCH_BYTES = 1 << 20  # bytes of bodies after which a batch is handed over; chosen
_AGAIN = "The same command tries it again."
_BATCHES_PER_THREAD = 2  # batches that each thread may be ahead of the event loop; chosen


class Batch(NamedTuple):
    """The next records of an archive."""

    source: str
    records: list[ArchiveRecord]
    size: int | None = None  # bytes of the whole archive, 0 if unknown; None unless it is read to its end
    error: str = ""  # why the archive cannot be read on; then it has no further batch


class Readers:
    """Threads that read archives a few batches ahead of the event loop, which takes them.

    The threads are daemons: one that hangs in a read does not keep the process from ending.
    """

    def __init__(self, batches_of: Callable[[str], Iterator[Batch]], ahead: int) -> None:
        """*ahead*: batches that may wait to be taken."""
        self._batches_of = batches_of
        self._loop = asyncio.get_running_loop()
        self._batches: asyncio.Queue[Batch | None] = asyncio.Queue(ahead)
        self._is_stopped = False
        self._running = 0

    def start(self, sources: Sequence[str], threads: int) -> None:
        """Read *sources* in order, *threads* at once."""
        waiting = iter(sources)
        for _ in range(min(threads, len(sources))):
            self._running += 1
            threading.Thread(target=self._run, args=(waiting,), name="archive", daemon=True).start()

    def stop(self) -> None:
        self._is_stopped = True
        while not self._batches.empty():  # or a thread would wait for room in it
            self._batches.get_nowait()

    async def batches(self) -> AsyncIterator[Batch]:
        """The batches of all archives, as they are read."""
        while self._running:
            batch = await self._batches.get()
            if batch is None:
                self._running -= 1
            else:
                yield batch

    def _run(self, waiting: Iterator[str]) -> None:
        """Hand over the batches of the *waiting* archives, then None."""
        for batch in chain((batch for source in waiting for batch in self._batches_of(source)), [None]):
            if self._is_stopped:
                return
            with suppress(RuntimeError, CancelledError):  # the loop is closed
                asyncio.run_coroutine_threadsafe(self._batches.put(batch), self._loop).result()
