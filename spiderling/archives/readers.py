"""Threads, each of which reads one archive after another and hands over records in batches."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from spiderling.archives.records import Record
from spiderling.archives.sources import ArchiveUnread, NoWarc, Raw

_BATCH_RECORDS = 32
"""Records after which a batch is handed over (chosen)."""
_BATCH_BYTES = 1 << 20
"""Bytes of bodies after which a batch is handed over (chosen)."""
_AGAIN = "The same command tries it again."
_BATCHES_PER_THREAD = 2
"""Batches that each thread may be ahead of the event loop (chosen)."""


class Batch(NamedTuple):
    """The next records of an archive."""

    source: str
    records: list[Record]
    bytes_read: int
    """Bytes of the archive that were read since its last batch."""
    size: int | None = None
    """Bytes of the whole archive, 0 if unknown; None unless it is read to its end."""
    error: str = ""
    """Why the archive cannot be read on; then it has no further batch."""


class Readers:
    """Reads a few batches ahead of the event loop, which takes them.

    The threads are daemons: one that hangs in a read does not keep the process from ending.
    """

    def __init__(self, open_raw: Callable[[str], Raw], records: Callable[[str, Raw], Iterator[Record]]) -> None:
        self._open_raw = open_raw
        self._records = records
        self._loop = asyncio.get_running_loop()
        self._batches: asyncio.Queue[Batch | None] = asyncio.Queue()
        self._room = threading.Semaphore(0)
        self._is_stopped = False
        self._running = 0

    def start(self, sources: Sequence[str], threads: int) -> None:
        """Read *sources* in order, *threads* at once."""
        waiting = queue.SimpleQueue[str | None]()
        for source in (*sources, *[None] * threads):
            waiting.put(source)
        for _ in range(min(threads, len(sources))):
            self._running += 1
            self._room.release(_BATCHES_PER_THREAD)
            threading.Thread(target=self._run, args=(waiting,), name="archive", daemon=True).start()

    def stop(self) -> None:
        self._is_stopped = True
        self._room.release(self._running + 1)

    async def batches(self) -> AsyncIterator[Batch]:
        """The batches of all archives, as they are read."""
        while self._running:
            batch = await self._batches.get()
            if batch is None:
                self._running -= 1
            else:
                yield batch
                self._room.release()

    def _run(self, waiting: queue.SimpleQueue[str | None]) -> None:
        """Hand over the batches of the *waiting* archives, then None."""
        batches = (batch for source in iter(waiting.get, None) for batch in self._batches_of(source))
        for batch in chain(batches, [None]):
            if batch is not None:
                self._room.acquire()
            if self._is_stopped:
                return
            try:
                self._loop.call_soon_threadsafe(self._batches.put_nowait, batch)
            except RuntimeError:  # the loop is closed
                return

    def _batches_of(self, source: str) -> Iterator[Batch]:
        records: list[Record] = []
        raw = None
        told = 0
        try:
            raw = self._open_raw(source)
            for record in self._records(source, raw):
                records.append(record)
                if len(records) >= _BATCH_RECORDS or sum(len(one.body) for one in records) >= _BATCH_BYTES:
                    yield Batch(source, records, raw.bytes_read - told)
                    records = []
                    told = raw.bytes_read
            yield Batch(source, records, raw.bytes_read - told, size=raw.size or 0)
        except NoWarc as error:
            yield Batch(source, records, 0, error=f"{source} {error}")
        except ArchiveUnread as error:
            yield Batch(source, records, 0, error=f"{error} {_AGAIN}")
        except Exception as error:  # whatever an archive holds must not end the reading of the others
            yield Batch(source, records, 0, error=f"{source} cannot be read on: {error!r}. {_AGAIN}")
        finally:
            if raw is not None:
                raw.close()
