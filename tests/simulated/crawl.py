"""One session of a simulated crawl: Scrapy's own engine and every component of the product but worker and wire."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from spiderling import languages, pipelines
from spiderling.archives import archives
from spiderling.crawl import checkpoint
from spiderling.engine.component import crawl_of
from spiderling.engine.scheduler import FAILED_STAT
from spiderling.extensions import lifecycle
from spiderling.fetch.client import ConnectTarget
from spiderling.fetch.resolver import Resolver
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.state_file import log_of, version_of
from spiderling.frontier.storage.tables import MIGRATIONS, SCHEMA_VERSION
from spiderling.jobdir import card, snapshots
from spiderling.spiders.archive import ArchiveSpider
from spiderling.spiders.spiderling import SpiderlingSpider
from tests.recorded_disk import Recording, recorded
from tests.simulated.archives import Readers
from tests.simulated.bugs import BUG, Bug, OfOurOwn, having
from tests.simulated.clock import Clock, Hung, Killed, VirtualExecutor, VirtualLoop
from tests.simulated.limits import limited
from tests.simulated.network import Away, Network
from tests.simulated.redis import Redis
from tests.simulated.visitors import Page
from tests.simulated.web import Workers

LONGEST_S = 6 * 3600.0  # seconds of virtual time after which a session that goes on has hung; chosen
CONTROL_S = 15.0  # seconds for which a person's change of control.yaml stands
CALM = b"{}\n"
FIND = cache(languages.find_languages)
RECOGNISED = languages.to_recognise(FIND("cs", ""), "", "")
SOFTWARE = card.software()
"""What the directories of models and of packages have is looked up once: it takes a quarter of a session."""
SETTINGS: dict[str, Any] = {
    "TWISTED_REACTOR_ENABLED": False,
    "ADDONS": {"spiderling.addon.SpiderlingAddon": 300},
    "DOWNLOADER_MIDDLEWARES": {"tests.simulated.crawl.Late": 960},
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), "spiderling.engine.download_handler.DownloadHandler"),
    "ITEM_PIPELINES": {"spiderling.pipelines.QualityPipeline": None},
    "SPIDERLING_ALLOW_NETWORKS": "127.84.0.0/16",
    "SPIDERLING_COMPILED": "no",
    "SPIDERLING_DEDUP": "exact",
    "SPIDERLING_OPTOUTS": "tdm-file=ignore,ai-txt=ignore",
    "SPIDERLING_YIELD_PROFILE": "off",
    "SPIDERLING_HOST_INTERVAL_S": 1.0,
    "SPIDERLING_IP_INTERVAL_S": 0.2,
    "SPIDERLING_RECRAWL_REQUESTS": 20_000,  # a day: one in four seconds
    "SPIDERLING_RETRIES": 3,
    "SPIDERLING_SITEMAPS": "on",
    "SPIDERLING_TIMEOUT_S": 6.0,
}


class Late:
    """A middleware of somebody's between the last gate and the connection: some requests start late."""

    async def process_request(self, request: Any) -> None:
        if VirtualLoop.current.rng.random() < 0.3:
            await asyncio.sleep(0.3)  # longer than the interval of an address


SHARDS = 2  # of a crawl that has shards; it may get more
SHORT = -1  # in place of an errno: a write takes half of its bytes


class Fault(NamedTuple):
    """What goes wrong at the *call*-th call on the disk of a session."""

    call: int
    code: int  # an errno; 0: the process is killed before the call; SHORT
    lasts: bool = False  # whether all later calls fail too; a full disk still lets files be read, deleted and cut


class Disk(Recording):
    """The recorded JOBDIR, whose calls are counted and fail by plan."""

    unwatched = frozenset(
        f"{place}{name}"
        for place in ("", "shard-00/", "shard-01/", "shard-02/", "shard-03/")
        for name in ("crawl.log", "state/lock")
    )

    def __init__(self, directory: Path, faults: tuple[Fault, ...]) -> None:
        super().__init__(directory)
        self._faults = faults
        self.calls = 0
        self.is_dead = False
        self._is_spared = False
        self._halves = False
        self.phase: Callable[[], str] = str  # what the session does now
        self.phases: list[str] = []  # what it did at each call
        self.met: list[str] = []  # the faults that came, in words
        self.kinds: list[str] = []

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Within it, somebody else than the crawl reads and writes."""
        self._is_spared = True
        try:
            yield
        finally:
            self._is_spared = False

    def refusal(self, kind: str, name: str) -> int:
        if self.is_dead:
            return errno.EIO
        if self._is_spared:
            return 0
        self.calls += 1
        self.kinds.append(f"{kind} {name}")
        self.phases.append(self.phase())
        self._halves = False
        for fault in self._faults:
            if not (fault.call == self.calls or (fault.lasts and fault.call < self.calls)):
                continue
            if fault.code == errno.ENOSPC and kind not in ("write", "sync"):
                continue
            if fault.lasts and fault.code and name.endswith("control.yaml"):
                continue  # a crawl that is paused would wait for ever
            if fault.code == errno.EMFILE and (kind != "open" or (fault.lasts and "state/" in name)):
                continue  # a crawl that closes its segments has some again
            if fault.code == SHORT:
                self._halves = kind == "write"
                self.met += [f"half a write at call {self.calls}, {name}"] * self._halves
                continue
            what = os.strerror(fault.code) if fault.code else "kill"
            self.met.append(f"{what} at call {self.calls}, {kind} {name}")
            self.is_dead = not fault.code
            return fault.code or errno.EIO
        return 0

    def halves(self) -> bool:
        return self._halves

    def ask(self, kind: str, path: Any) -> None:
        was_dead = self.is_dead and self.name_of(path) is not None
        try:
            super().ask(kind, path)
        except OSError:
            if was_dead or self.is_dead:
                raise Killed from None
            raise

    def add(self, kind: str, path: Any, **more: Any) -> None:
        if not self.is_dead:
            super().add(kind, path, **more)

    def see_written(self, path: Any) -> None:
        if not self.is_dead:
            super().see_written(path)


class Edit(NamedTuple):
    """What a person does while a session runs."""

    after_s: float
    what: str  # control, stop, kill, clock, redis or visit
    value: Any = None


class Taken(NamedTuple):
    """A take-down: a host or a page of it goes, and the command, which a fault may end, is given twice."""

    host: str
    faults: tuple[Fault, ...] = ()
    power_cut: bool = False
    apart: bool = False  # whether each shard gets a command of its own
    page: int | None = None  # which of the pages of the host, counted round; None: all of it


class Act(NamedTuple):
    """What an operator does with a crawl that does not run; the command, which a fault may end, is given twice."""

    what: str  # rebuild, reshard or takeover
    value: Any = None  # from which it is drawn what is lost; or the number of shards
    faults: tuple[Fault, ...] = ()
    power_cut: bool = False


@dataclass(slots=True)
class Plan:
    """One session."""

    options: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    edits: tuple[Edit, ...] = ()
    power_cut: bool = False  # whether a kill is one of the whole machine
    is_older: bool = False  # whether the state that it finds is of the version before
    away: Away | None = None
    rests_s: float = 0.0  # how long nothing runs before it
    taken: Taken | None = None  # what is taken down before it
    recrawl: str = ""  # whether it is recrawled: on, or ""
    changes: int = 0  # by which seed the web changes before it; 0: it does not
    act: Act | None = None  # what is done before it
    snapshots: str = ""  # where it keeps them
    warc: str = ""  # the archives that it reads, in place of the web
    bug: Bug | None = None  # what raises in it
    limits: tuple[int, ...] = ()  # the numbers of further limits that are small (limits.py), in commands before it too


@dataclass(slots=True)
class Ending:
    """How a session ended, and what it said."""

    kind: str  # finished, stopped, failed or killed
    lines: list[str] = field(default_factory=list)  # warnings and errors
    wrong: list[str] = field(default_factory=list)  # what no session may do
    steps: int = 0
    calls: int = 0
    kinds: list[str] = field(default_factory=list)  # what each call was
    phases: list[str] = field(default_factory=list)  # what the session did at each call: start, run or close
    met: list[str] = field(default_factory=list)
    had_bug: bool = False


class _Ears(logging.Handler):
    """What the session says, and tracebacks in it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.errors: list[str] = []
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        self.lines.append(f"{record.levelname}: {line}")
        if record.levelno >= logging.ERROR:
            self.errors.append(line)
        if record.exc_info:
            self.tracebacks.append(f"{line}: {logging.Formatter().formatException(record.exc_info)}"[-1500:])


@dataclass(slots=True)
class Acknowledged:
    """What commits that have returned promise: bytes of segments."""

    content: dict[str, bytes] = field(default_factory=dict)  # path below JOBDIR -> its acknowledged bytes


_STATE = "state/frontier.sqlite"
_MIGRATION = "CREATE TABLE brief(x); INSERT INTO brief SELECT name FROM host; DROP TABLE brief;"


def is_older(directory: Path) -> bool:
    """Whether the state in it is of the version before."""
    database = directory / _STATE
    return database.is_file() and version_of(database) == SCHEMA_VERSION - 1


def _make_older(directory: Path) -> None:
    """Let the state say that it is of the version before, from which _MIGRATION leads to this one."""
    database = directory / _STATE
    if database.is_file() and version_of(database) is not None:
        was_killed = log_of(database).exists()
        with closing(sqlite3.connect(database)) as state:
            state.execute(f"PRAGMA user_version={SCHEMA_VERSION - 1}")
        if was_killed:  # which its log says, and SQLite takes that away
            log_of(database).touch()


class _Thread:
    """In place of the thread that writes a snapshot: all of it is written at once, a moment later."""

    def __init__(self, target: Callable[[], None], **_: Any) -> None:
        self._target = target
        self._is_over = False

    def start(self) -> None:
        loop = VirtualLoop.current
        loop.call_later(loop.rng.choice((0.0, 0.5, 9.0)), self._run)

    def _run(self) -> None:
        self._target()
        self._is_over = True

    def is_alive(self) -> bool:
        return not self._is_over


class _BreakOff(threading.Event):
    """In place of the event that breaks a snapshot off; who waits for it waits until nobody reads the state."""

    def __init__(self) -> None:
        super().__init__()
        self._has_waited = False

    def wait(self, timeout: float | None = None) -> bool:
        if self._has_waited:
            raise Hung("the state cannot be read for a snapshot")
        self._has_waited = True
        return bool(gc.collect())  # a reader that nobody knows any more; no collection comes by itself (history.py)


@contextmanager
def _snapshots_standing_in() -> Iterator[None]:
    """Within it snapshots are written in virtual time, and soon after each other."""
    threads = SimpleNamespace(Thread=_Thread, Event=_BreakOff)
    with (
        mock.patch.object(snapshots, "threading", threads),
        mock.patch.object(snapshots, "bytes_written", return_value=0),
        mock.patch.object(lifecycle, "PAUSE_S", 4.0),
    ):
        yield


NO_SEED = "No seed may be crawled"  # what a crawl says that ends with seeds of dead or forbidden addresses alone
_AS_ASKED_FOR = (" allows. All URLs are kept", "SPIDERLING_TRAIL is off: set it", ": no seed may be crawled", NO_SEED)
"""Of what a crawl says that fails by an option of its own, in an order that it does not allow."""


class Session:
    """Runs a crawl in *directory* until it ends, is stopped or killed."""

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        network: Network,
        clock: Clock,
        rng: Random,
        told: Acknowledged,
        redis: Redis | None = None,
        shards: int = 1,
    ) -> None:
        """*redis*: that over which so many *shards* of the crawl run; None: it has none."""
        self.directory = directory
        self._plan = plan
        self._network = network
        self._clock = clock
        self._rng = rng
        self._told = told
        self.disk = Disk(directory, plan.faults)
        self.disk.phase = self._phase if redis is None else str
        self._is_open = False
        self._redis = redis
        self._shards = shards
        self._page = Page(directory, lambda: bool(self.disk.met))
        self._crawlers: list[Crawler] = []
        self._places: dict[SqliteStore, Path] = {}  # store -> its directory
        self._is_killed = False
        self._stopping: list[Any] = []
        self._impolite = len(network.impolite)  # lines of earlier sessions

    def run(self) -> Ending:
        """The session, from the command to the end of the process."""
        ears = _Ears()
        root = logging.getLogger()
        level = root.level
        network = self._network
        Workers.web, Workers.rng = network.web, self._rng
        begin_s, end_s, names_answer = self._plan.away or Away()
        network.away = Away(self._clock.now + begin_s, self._clock.now + end_s, names_answer)
        ending = Ending("killed")
        if self._plan.is_older:
            _make_older(self.directory)
            self.disk = Disk(self.directory, self._plan.faults)
            self.disk.phase = self._phase if self._redis is None else str
        with ExitStack() as stack:
            stack.enter_context(mock.patch.dict(MIGRATIONS, {SCHEMA_VERSION - 1: _MIGRATION}))
            stack.enter_context(self._clock.shown())
            if self._redis is not None:
                stack.enter_context(self._redis.standing_in())
            stack.enter_context(self._page.standing_in())
            stack.enter_context(_snapshots_standing_in())
            stack.enter_context(mock.patch.object(checkpoint, "ThreadPoolExecutor", VirtualExecutor))
            stack.enter_context(having(self._plan.bug, self.disk.met))
            stack.enter_context(limited(self._plan.limits, bool(self._plan.changes)))
            stack.enter_context(mock.patch.object(card, "software", return_value=SOFTWARE))
            stack.enter_context(mock.patch.object(SqliteStore, "commit", self._committing(SqliteStore.commit)))
            beginning = self._beginning(SqliteStore.begin_writing)
            stack.enter_context(mock.patch.object(SqliteStore, "begin_writing", beginning))
            stack.enter_context(mock.patch.object(Resolver, "resolve", lambda _, name: network.resolve(name)))
            stack.enter_context(mock.patch.object(ConnectTarget, "connect", lambda target: network.connect(target)))
            stack.enter_context(mock.patch.object(pipelines, "WorkerPool", Workers))
            stack.enter_context(mock.patch.object(archives, "Readers", Readers))
            stack.enter_context(mock.patch.object(languages, "find_languages", FIND))
            stack.enter_context(mock.patch.object(languages, "to_recognise", return_value=RECOGNISED))
            stack.enter_context(mock.patch.object(gc, "freeze"))  # what a session leaves is to be collected
            stack.enter_context(mock.patch.object(root, "handlers", [ears]))  # a killed crawl takes none of its own off
            stack.callback(root.setLevel, level)
            loop = VirtualLoop(self._clock, self._rng, LONGEST_S, lambda: self._is_killed or self.disk.is_dead)
            loop.set_exception_handler(
                lambda _, context: ears.tracebacks.append(f"{context.get('message')}: {context.get('exception')!r}")
            )
            asyncio.set_event_loop(loop)
            stack.enter_context(recorded(self.directory, self.disk))
            try:
                loop.run_until_complete(self._crawl())
            except Killed:
                pass
            except Hung as error:
                ending.kind = "hung"
                ending.wrong.append(f"hung: {error}")
            except Exception as error:
                if not self.disk.is_dead:
                    ending.kind = "failed"
                    ending.wrong += [] if isinstance(error, OfOurOwn) else [f"traceback: {error!r}"]
            else:
                if not self.disk.is_dead and not self._is_killed:
                    ending.kind = self._kind()
            ending = self._ended(ending, ears)
            self._leave(loop)
        return ending

    def _leave(self, loop: VirtualLoop) -> None:
        """End the process: what was to be done is not done any more."""
        loop.set_exception_handler(lambda _, context: None)
        self.disk.is_dead = True
        loop.end()
        self._network.forget_open()

    def _ended(self, ending: Ending, ears: _Ears) -> Ending:
        ending.lines = [*ears.lines]
        ending.steps = len(self.disk.steps)
        ending.calls = self.disk.calls
        ending.kinds = self.disk.kinds
        ending.phases = self.disk.phases
        ending.met = self.disk.met
        ending.had_bug = any(line.startswith(BUG) for line in ending.met)
        if ending.kind not in ("finished", "stopped"):  # what it was told last need not be in its state
            self._network.heard.forget()
        self._network.orders.give(b"", self._clock.now)
        if ending.had_bug:  # it may be one of what asks for the files of sites, or reads them
            self._network.heard.excuse()
            del self._network.impolite[self._impolite :]
        if ending.had_bug or ending.kind == "killed":
            return ending
        ending.wrong += [f"traceback: {line}" for line in ears.tracebacks]
        ending.wrong += self._page.wrong
        ending.wrong += ["live page: connections go on" for one in self._page.open[:1] if not one.is_closing()]
        ending.wrong += [f"live page: {line}" for line in ears.lines if "live page could not answer" in line]
        stops = [line for line in ears.errors if line.startswith("The crawl stops: ")]
        others = [line for line in ears.errors if line not in stops and "is left aside until it is mended" not in line]
        if any("Refused " in line and "error of Spiderling's own" in line for line in ears.lines):  # other seeds
            stops += [line for line in others if NO_SEED in line]
            others = [line for line in others if NO_SEED not in line]
        ending.wrong += [f"error: {line}" for line in others]
        if (ending.kind == "failed") != (0 < len(stops) <= len(self._crawlers)):
            ending.wrong.append(f"{ending.kind}, and says {stops}")
        is_asked_for = any(reason in line for line in stops for reason in _AS_ASKED_FOR)
        if ending.kind == "failed" and not ending.met and self._redis is None and not is_asked_for:
            ending.wrong.append(f"failed: no call did, and it says {stops}")
        return ending

    def _kind(self) -> str:
        stats = [crawler.stats.get_stats() for crawler in self._crawlers]
        if any(FAILED_STAT in each for each in stats):
            return "failed"
        return "finished" if all(each.get("finish_reason") == "finished" for each in stats) else "stopped"

    def _beginning(self, begin_writing: Any) -> Any:
        def beginning(store: SqliteStore, path: Path) -> None:
            self._places[store] = path.parents[1]
            begin_writing(store, path)

        return beginning

    def _committing(self, commit: Any) -> Any:
        """Note what a commit has acknowledged."""

        def committing(store: SqliteStore, changes: Changes) -> None:
            commit(store, changes)
            if not self.disk.is_dead:
                with self.disk.spared():
                    for row in changes.segments:
                        path = self._places[store] / row.kind / row.name
                        name = str(path.relative_to(self.directory))
                        self._told.content[name] = path.read_bytes()[: row.length_bytes]

        return committing

    async def _crawl(self) -> None:
        for edit in self._plan.edits:
            asyncio.get_running_loop().call_later(edit.after_s, self._do, edit)
        await asyncio.gather(*(self._crawl_one() for _ in range(self._shards)))

    async def _crawl_one(self) -> None:
        settings = Settings()
        settings.setdict({**SETTINGS, **self._plan.options, "JOBDIR": str(self.directory)}, priority="project")
        settings.set("SPIDERLING_SNAPSHOTS", self._plan.snapshots, priority="project")
        if self._network.web.declares:
            settings.setdict({"SPIDERLING_OPTOUTS": "", "SPIDERLING_PURPOSE": "ai-train"}, priority="project")
        if self._redis is not None:
            settings.setdict({**self._redis.options, "SPIDERLING_SHARDS": self._shards}, priority="project")
        settings.copy = lambda: settings  # type: ignore[method-assign]  # which takes 20 ms
        crawler = Crawler(ArchiveSpider if self._plan.warc else SpiderlingSpider, settings)
        self._crawlers.append(crawler)
        crawler.signals.connect(self._opened, signals.spider_opened)
        of_web = {"seeds": " ".join(self._network.web.seeds), "recrawl": self._plan.recrawl}
        await crawler.crawl_async(lang="cs", **({"warc": self._plan.warc} if self._plan.warc else of_web))
        if crawler.stats.get_value("finish_reason") != "finished":  # else the other shard would wait for it
            self._stop()

    def _opened(self) -> None:
        self._is_open = True

    def _phase(self) -> str:
        if not self._is_open:
            return "start"
        return "close" if crawl_of(self._crawlers[0]).stopping else "run"

    def _do(self, edit: Edit) -> None:
        if edit.what == "control":
            if self.directory.is_dir():
                with self.disk.spared():
                    (self.directory / "control.yaml").write_bytes(edit.value)
                if not self._stopping:  # no order is read any more
                    self._network.orders.give(edit.value, self._clock.now)
                if edit.value != CALM:  # what holds a crawl up is taken back
                    asyncio.get_running_loop().call_later(CONTROL_S, self._do, edit._replace(value=CALM))
        elif edit.what == "visit":
            with self.disk.spared():
                self._page.visit(edit.value)
            self._network.orders.give(b"", self._clock.now)  # by the page, as like as not
            asyncio.get_running_loop().call_later(CONTROL_S, self._do, edit._replace(what="control", value=CALM))
        elif edit.what == "clock":
            self._clock.wall_ahead_s += edit.value
        elif edit.what == "kill":
            self._is_killed = True
        elif edit.what == "redis":
            if self._redis is not None:
                self._redis.suffer(edit.value)
        else:
            self._stop()

    def _stop(self) -> None:
        self._network.orders.give(b"", self._clock.now)
        for crawler in self._crawlers:
            self._stop_one(crawler)

    def _stop_one(self, crawler: Crawler) -> None:
        if not crawler.crawling:
            return
        if crawler.engine.running:
            self._stopping.append(asyncio.ensure_future(crawler.stop_async()))
        else:  # a signal waits for the engine (engine/scheduler.py, Opening)
            asyncio.get_running_loop().call_later(0.01, self._stop_one, crawler)
