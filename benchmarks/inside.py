"""What benchmarks put inside of a crawl's process.

InstantClean: text workers that answer at once, for memory.py and the cases `instant` and `long` of crawl.py: what is
left is the main process.  A page's links are its own; its text, with all that was found in it, is that of one of the
first pages, under digests and shingles of its own, so that nothing is a duplicate.  Weighing: what the parts of the
main process take of its memory, for memory.py.  FaultLayer: kills on order, for faults.py.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import mmap
import os
import re
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, wraps
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import IO, Any
from unittest import mock
from urllib.parse import urljoin

import numpy as np
import xxhash
from scrapy import Spider, signals
from scrapy.crawler import Crawler

from spiderling import pipelines
from spiderling.base.link_batch import Link, gathered
from spiderling.corpus.segments import SegmentWriter
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import crawl_of
from spiderling.frontier import Frontier
from spiderling.frontier.storage.sqlite import SqliteStore, StateWriter
from spiderling.jobdir import directory
from spiderling.text import Page
from spiderling.text.fingerprints import Shingles
from spiderling.workers.process import Task, WorkerConfig, text_process

_TEMPLATES = 20
_HREF = re.compile(rb'href="([^"]+)"')


class InstantClean(pipelines.CleanPipeline):
    """Pipeline 100 with such workers."""

    async def open_spider(self) -> None:
        made = WorkerConfig.from_options
        with mock.patch.object(
            pipelines.WorkerConfig, "from_options", lambda *given: replace(made(*given), process=f"{__name__}:answers")
        ):
            await super().open_spider()


def answers(config: WorkerConfig) -> Callable[[Task], Page]:
    """The work of such a worker."""
    work, templates = text_process(config), list[Page]()

    def answer(task: Task) -> Page:
        if len(templates) < _TEMPLATES:
            templates.append(work(task))
            return templates[-1]
        digest = xxhash.xxh3_128(task.body + task.url.encode())
        number = digest.intdigest()
        template = templates[number % _TEMPLATES]
        drawn = np.random.default_rng(number).integers(1 << 63, size=len(template.shingles.hashes), dtype=np.uint64)
        return replace(
            template,
            batch=gathered(Link(urljoin(task.url, href.decode())) for href in _HREF.findall(task.body)),
            links=[],
            raw_digest=digest.digest(),
            text_digest=digest.digest()[::-1],
            sketch=number & (1 << 63) - 1,
            shingles=Shingles(drawn, template.shingles.counts, repeats=False),
        )

    return answer


_LOOK_S = 0.1
_NOT_OWNED = (ModuleType, type, FunctionType, BuiltinFunctionType, MethodType, CodeType)
"""What leads out of a part."""
_MALLOC = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
_Cache = type(lru_cache(id))


class Weighing:
    """From spider_opened on."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._every = crawler.settings.getint("WEIGH_EVERY")
        self._file = Path(crawler.settings["WEIGHTS"])
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Weighing:
        return cls(crawler)

    def _opened(self, spider: Spider) -> None:
        self._looking = asyncio.ensure_future(self._look())

    def _closed(self, spider: Spider) -> None:
        self._looking.cancel()

    async def _look(self) -> None:
        crawl = crawl_of(self._crawler)
        wanted = self._every
        while True:
            await asyncio.sleep(_LOOK_S)
            pages = crawl.frontier.ledger.totals["pages"]
            # the thread of a batch may hold a lock of SQLite, which nobody would release in a fork
            if pages >= wanted and crawl.checkpoint._writing is None:
                self._weigh(crawl, pages)
                wanted += self._every

    def _weigh(self, crawl: Crawl, pages: int) -> None:
        resident, loop = _resident(), asyncio.get_running_loop()
        child = os.fork()
        if not child:
            try:
                line = {"pages": pages, **resident, **weights(self._crawler, crawl, loop)}
                with self._file.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(child, 0)


def parts_of(crawler: Crawler, crawl: Crawl, loop: asyncio.AbstractEventLoop) -> dict[str, list[Any]]:
    """Name -> the objects that each part is reached from."""
    frontier, engine = crawl.frontier, crawler.engine
    url_states, schedule, rules, traps = (
        frontier.url_states,
        frontier.schedule,
        frontier.robots,
        frontier._admission.traps,
    )
    hosts, queues = url_states.hosts, url_states.queues
    records = rules.files.records
    worth = getattr(frontier.strategy, "worth", None)
    parts: dict[str, list[Any]] = {
        "seen set": [url_states.seen],
        "digests of kept pages": [crawl.known_digests],
        "near-duplicates": [crawl.near],
        "hosts: states": [url_states.host_states],
        "hosts: hashes of names": [hosts._names],
        "hosts: names met lately": [hosts._recent_ids],
        "hosts in memory": [
            hosts._live,
            hosts._idle,
            hosts._new_names,
            hosts.changed,
            hosts.nearer,
            url_states.in_transit,
        ],
        "queues: tails": [queues._tails],
        "queues: tails being written": [queues._flushing, queues._flushed],
        "queues: heads and chunks read": [queues._heads],
        "queues: not yet written": [queues._changes],
        "backlog": [schedule._backlog],
        "workbench": [schedule.workbench, schedule._places],
        "throttled": [schedule.throttle],
        "names and addresses": [schedule.names],
        "robots.txt: records": [
            records._new,
            records._draining,
            records.known,
            rules.files.ledger,
        ],
        "robots.txt: parsed": [rules.files._parsed],
        "robots.txt: tasks": [frontier._robots_requests],
        "traps": [traps],
        "strategy: sections": [worth._sections] if worth else [],
        "strategy: words": [worth._words] if worth else [],
        "strategy: languages of hosts": [worth._languages] if worth else [],
        "trail": [url_states.url_log],
        "checkpoint": [crawl.checkpoint],
        "counts": [url_states.ledger, crawler.stats],
        "Scrapy: engine, requests in work": [engine],
        "event loop and tasks": [loop, *asyncio.all_tasks(loop)],
        "caches of functions": [each for each in gc.get_objects() if isinstance(each, _Cache)],
    }
    return parts


def weights(crawler: Crawler, crawl: Crawl, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """In the fork: bytes by part, units of some parts, what the allocators say; all at this moment."""
    allocators = _allocators()
    units = _units(crawl)
    gc.unfreeze()
    before = len(gc.get_objects())
    gc.collect()
    garbage = before - len(gc.get_objects())
    parts = parts_of(crawler, crawl, loop)
    claimed: set[int] = {id(parts), id(crawl), id(crawler), *map(id, parts.values())}
    claimed.update(id(each) for objects in parts.values() for each in objects)
    found = {name: _walked(objects, claimed) for name, objects in parts.items()}
    return {
        "parts": found,
        "units": units,
        "rest": _walked_rest(claimed),
        "garbage_objects": garbage,
        "allocators": allocators,
        "trimmed": _trimmed(),
        "objects": _objects(),
    }


def _walked(objects: Iterable[Any], claimed: set[int]) -> int:
    """Bytes of *objects* and of all that they hold and nobody has claimed."""
    total, ahead = 0, list(objects)
    while ahead:
        each = ahead.pop()
        total += _size(each)
        for held in gc.get_referents(each):
            if id(held) not in claimed and not isinstance(held, _NOT_OWNED):
                claimed.add(id(held))
                ahead.append(held)
    return total


def _walked_rest(claimed: set[int]) -> int:
    """Bytes that no part holds."""
    total = 0
    for each in gc.get_objects():
        if id(each) not in claimed:
            claimed.add(id(each))
            total += _size(each)
            for held in gc.get_referents(each):
                if id(held) not in claimed and not gc.is_tracked(held):
                    claimed.add(id(held))
                    total += _size(held)
    return total


def _objects() -> dict[str, int]:
    """Objects by type that outlive a collection, caches of functions emptied."""
    for each in gc.get_objects():
        if isinstance(each, _Cache):
            each.cache_clear()
    gc.collect()
    return Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())


def _size(each: Any) -> int:
    if isinstance(each, mmap.mmap):
        return len(each)
    try:
        return sys.getsizeof(each, 0)
    except Exception:
        return 0


def _units(crawl: Crawl) -> dict[str, int]:
    frontier = crawl.frontier
    url_states, schedule, rules = frontier.url_states, frontier.schedule, frontier.robots
    return {
        "seen set": len(url_states.seen),
        "digests of kept pages": len(crawl.known_digests._kept),
        "near-duplicates": crawl.near.filter.documents if crawl.near else 0,
        "hosts: states": len(url_states.host_states),
        "hosts: hashes of names": len(url_states.host_states),
        "hosts: names met lately": len(url_states.hosts._recent_ids),
        "hosts in memory": len(url_states.hosts._live),
        "queues: tails": url_states.queues._in_tails,
        "queues: heads and chunks read": len(url_states.queues._heads),
        "backlog": len(schedule._backlog),
        "throttled": sum(map(len, schedule.throttle._waiting)),
        "names and addresses": len(schedule.names._names),
        "robots.txt: records": len(rules.files.records.known),
        "robots.txt: parsed": len(rules.files._parsed),
        "waiting": url_states.ledger.waiting,
    }


def _resident() -> dict[str, int]:
    """Bytes of the process: all, and those that are not pages of files."""
    text = Path("/proc/self/smaps_rollup").read_text()
    kb = {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return {"rss": 1024 * kb["Rss"], "pss": 1024 * kb["Pss"], "anonymous": 1024 * kb["Anonymous"], **_mapped()}


def _mapped() -> dict[str, int]:
    """Resident bytes by kind of mapping."""
    kinds = Counter[str]()
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            name = words[5] if len(words) > 5 else "anonymous"
            kind = name if name.startswith("[") or name == "anonymous" else "files"
        elif words[0] == "Rss:":
            kinds["map " + kind] += 1024 * int(words[1])
    return dict(kinds)


def _allocators() -> dict[str, int]:
    return {**_malloc(), **_pymalloc(), "sqlite": _sqlite()}


def _malloc() -> dict[str, int]:
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in _MALLOC]

    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Info
    info = ask()
    names = {"malloc_arena": info.arena, "malloc_used": info.uordblks + info.hblkhd, "malloc_mapped": info.hblkhd}
    return {**names, "malloc_free": info.fordblks, "malloc_top": info.keepcost}


def _pymalloc() -> dict[str, int]:
    with tempfile.TemporaryFile("w+") as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(saved, 2)
        file.seek(0)
        text = file.read()
    arenas = re.search(r"(\d+) arenas \* (\d+) bytes/arena", text)
    used = re.search(r"# bytes in allocated blocks\s+=\s+([\d,]+)", text)
    assert arenas and used
    all_bytes, in_use = int(arenas[1]) * int(arenas[2]), int(used[1].replace(",", ""))
    return {"python_used": in_use, "python_free": all_bytes - in_use}


def _sqlite() -> int:
    try:
        used = ctypes.CDLL("libsqlite3.so.0").sqlite3_memory_used
    except (OSError, AttributeError):
        return 0
    used.restype = ctypes.c_int64
    return int(used())


def _trimmed() -> int:
    """Bytes that malloc would give back to the system."""
    before = _resident()["anonymous"]
    ctypes.CDLL(None).malloc_trim(0)
    return before - _resident()["anonymous"]


BEFORE: dict[str, tuple[Any, str]] = {
    "load": (SqliteStore, "load"),
    "recover": (directory, "recorded_segments"),
    "restore": (Frontier, "restore"),
    "commit": (SqliteStore, "commit"),
}
AFTER: dict[str, tuple[Any, str]] = {
    "lock": (directory, "acquire"),
    "truncate": (os, "truncate"),
    "transaction": (StateWriter, "_write"),
    "committed": (SqliteStore, "commit"),
}
POINTS = (*BEFORE, *AFTER, "rotate", "write")
"""``rotate``: a new segment was begun; ``write``: half of a frame is written."""
_WAL_PAGES = 20
"""SQLite moves its log into the file so often that a kill meets it."""


class FaultLayer:
    """Wraps the functions at which the crawl touches the disk."""

    def __init__(self, crawler: Crawler) -> None:
        self._point, _, number = (crawler.settings.get("FAULT") or ":0").partition(":")
        self._number = int(number)
        self._passed = 0
        for places, before in ((BEFORE, True), (AFTER, False)):
            for name, (owner, function) in places.items():
                self._wrap(owner, function, name, before)
        self._wrap_writer()
        self._wrap_store()

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))

    def passes(self, point: str) -> None:
        """The process is at *point*: it is killed here if it is its time."""
        self._passed += point == self._point
        if point == self._point and self._passed >= self._number:
            os.kill(os.getpid(), signal.SIGKILL)

    def _wrap(self, owner: Any, name: str, point: str, before: bool) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if before:
                self.passes(point)
            result = function(*args, **kwargs)
            if not before:
                self.passes(point)
            return result

        setattr(owner, name, wrapped)

    def _wrap_writer(self) -> None:
        function, layer = SegmentWriter._open, self

        def wrapped(writer: SegmentWriter) -> Any:
            row = function(writer)
            if row.length_bytes == 0:
                layer.passes("rotate")
            assert writer._file is not None
            if not isinstance(writer._file, _File):
                writer._file = _File(writer._file, layer)  # type: ignore[assignment]
            return row

        SegmentWriter._open = wrapped  # type: ignore[method-assign]

    def _wrap_store(self) -> None:
        function = SqliteStore._prepare

        def wrapped(store: SqliteStore) -> None:
            function(store)
            store._writer.connection.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")

        SqliteStore._prepare = wrapped  # type: ignore[method-assign]


class _File:
    """A file that is at the point ``write`` with half of its bytes on their way."""

    def __init__(self, file: IO[bytes], layer: FaultLayer) -> None:
        self._file, self._layer = file, layer

    def write(self, data: bytes) -> int:
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._layer.passes("write")
        return half + self._file.write(data[half:])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
