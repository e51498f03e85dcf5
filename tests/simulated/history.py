"""The life of a simulated crawl from one seed: sessions with faults, one without, and what must be true of all.

A history that fails is told by its seed, and made small: sessions, faults, edits and options are taken away as long as
it fails in the same way.
"""

from __future__ import annotations

import errno
import gc
import math
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest import mock
from urllib.parse import urlsplit

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.urls import owner_of
from spiderling.corpus.links import read_links
from spiderling.corpus.segments import CorpusDocument, read_documents
from spiderling.corpus.warc import records
from spiderling.frontier.recrawl.pages import RecrawlPage, Standing
from spiderling.frontier.storage.state_file import usable_version
from spiderling.jobdir import card
from spiderling.jobdir.damage import problems
from spiderling.jobdir.directory import KINDS
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.takedown import take_down
from tests.recorded_disk import after_kill, after_power_cut, recorded, write_files
from tests.simulated.clock import Clock, Killed
from tests.simulated.crawl import (
    CALM,
    SETTINGS,
    SHARDS,
    SHORT,
    SOFTWARE,
    Acknowledged,
    Disk,
    Edit,
    Ending,
    Fault,
    Plan,
    Session,
    Taken,
    is_older,
)
from tests.simulated.network import Away, Network
from tests.simulated.redis import TROUBLES, Redis
from tests.simulated.web import Web, generated

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # where histories are played, in memory
CODES = (0, 0, 0, 0, errno.ENOSPC, errno.EIO, errno.EMFILE, SHORT)
"""What a fault is: a kill in half of the cases."""
ERRORS = sorted({*CODES} - {0})
CONTROLS = (
    b"pause: true\n",
    b"pause: [\n",
    b"\xff\xfe",
    b"host_interval_s: 2\n",
    b"nonsense: 1\n",
    b"ip_interval_s: 0.5\n",
    b"block: " + b"[" * 5000,
    b"seeds: &all ['http://h0.test/0', 'http://nowhere/', 'x', *all]\n",
    b"seeds: ['http://h0.test/0', 'http://nowhere/', 'http://10.0.0.1/']\nblock_networks: ['10.0.0.0/8']\n",
    b"ask_again: [dns, connection, timeout, http-error]\n",
    b"reopen: [w1.test, h2.test]\nmax_pages: 12\n",
    b"pause: true\npause: false\nmax_pages: 1e400\n",
)
FIRST_OF_SHARDS = 1_000_000  # seeds from this one on are of crawls with shards
SPARE_S = 1e-3  # seconds by which an interval may be short: what a float leaves out
YEARS_20_S = 6.3e8
DAY_S = 86400.0
CHANGES = (
    {"SPIDERLING_HOST_INTERVAL_S": 2.0},
    {"SPIDERLING_LINKS": "on"},
    {"SPIDERLING_WARC": "on"},
    {"SPIDERLING_TRAIL": "ends"},
    {"SPIDERLING_DURABILITY": "normal"},
    {"SPIDERLING_ACTIVE_HOSTS": 2},
    {"SPIDERLING_MAX_DOCUMENTS": 10},
    {"SPIDERLING_OPTOUTS": ""},
)


@dataclass(slots=True)
class Told:
    """What came of a history."""

    seed: int
    plans: list[Plan]
    pages: int = 0
    endings: list[Ending] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # what must not be, each line with its kind before the colon
    cpu_s: float = 0.0
    documents: int = 0
    taken_calls: int = 0  # on the disk, of the last take-down

    @property
    def kind(self) -> str:
        return self.wrong[0].partition(":")[0] if self.wrong else ""


def planned(seed: int) -> list[Plan]:
    """Two or three sessions with faults, and one without."""
    rng = Random(f"plan {seed}")
    plans = [_faulty(rng) for _ in range(rng.randint(1, 3))]
    if has_shards(seed):
        plans = [_shared(rng, plan) for plan in plans]
    plans.append(Plan(rests_s=rng.choice((0.0, 5.0, 5000.0))))
    if rng.random() < 0.3 and not has_shards(seed):
        taken = _taken(rng)
        plans[-1 - (rng.random() < 0.3)].taken = taken
    if rng.random() < 0.1 and not has_shards(seed):
        revisits = _faulty(rng)
        stop = Edit(rng.uniform(100, 3000), "stop")  # revisits begin after 20 minutes
        rests_s = rng.choice((DAY_S, 20 * DAY_S))
        plans.insert(-1, replace(revisits, edits=(*revisits.edits, stop), recrawl="on", rests_s=rests_s))
    room = Random(f"room {seed}")
    if room.random() < 0.1:
        plan = room.choice(plans)
        plan.options = {**plan.options, "CONCURRENT_REQUESTS": 2}
    changes = Random(f"changes {seed}")  # one of its own: what came later leaves older seeds as they were
    if changes.random() < 0.25:
        plans = _changing(changes, plans, has_shards(seed))
    strangers = Random(f"strangers {seed}")
    if has_shards(seed):
        plans = [*(_meddled(strangers, plan) for plan in plans[:-1]), plans[-1]]
    return [_visited(strangers, plan) for plan in plans]


def _changing(rng: Random, plans: list[Plan], is_shared: bool) -> list[Plan]:
    """*plans* with recrawls of a web that has changed; of shards also with a take-down."""
    for _ in range(rng.choice((0, 1, 1, 2)) if is_shared else rng.choice((1, 1, 2))):
        plan = _faulty(rng)
        late = rng.choice((0, 200, 400, 10**9))  # calls after which its faults come; in a session are some 600
        faults = tuple(fault._replace(call=fault.call + late) for fault in plan.faults)
        edits = [edit for edit in plan.edits if edit.what not in ("stop", "kill") or rng.random() < 0.2]
        edits.append(Edit(rng.uniform(150, 400), rng.choice(("stop", "stop", "kill"))))  # revisits begin after 200 s
        rests_s = rng.choice((3 * DAY_S, 20 * DAY_S))
        plan = replace(plan, faults=faults, edits=tuple(edits), recrawl="on", rests_s=rests_s)
        plan.changes = rng.randrange(1, 10**6)
        plans.insert(-1, _shared(rng, plan) if is_shared else plan)
    if is_shared and rng.random() < 0.7:
        plans[rng.randrange(1, len(plans))].taken = _taken(rng, apart=rng.random() < 0.5)
    return plans


def _meddled(rng: Random, plan: Plan) -> Plan:
    """*plan*, in half of the cases with somebody who alters for a while what shards have in their Redis."""
    if rng.random() < 0.5:
        return plan
    begin_s, pause_s = rng.uniform(0, 10), rng.choice((0.07, 0.3, 2.0))
    edits = (Edit(begin_s + number * pause_s, "redis", "damaged") for number in range(rng.choice((1, 20, 100))))
    faults = plan.faults if rng.random() < 0.3 else ()  # else hardly a session lasts as long
    return replace(plan, edits=(*plan.edits, *edits), faults=faults)


def _visited(rng: Random, plan: Plan) -> Plan:
    """*plan*, in one case of six with a live page that is visited."""
    if rng.random() > 1 / 6:
        return plan
    visits = [
        Edit(rng.random() * rng.choice((4, 15, 60)), "visit", rng.random()) for _ in range(rng.choice((3, 9, 30)))
    ]
    return replace(plan, options={**plan.options, "SPIDERLING_PAGE": "127.0.0.1:0"}, edits=(*plan.edits, *visits))


def _taken(rng: Random, apart: bool = False) -> Taken:
    faults = (Fault(rng.choice((rng.randint(1, 60), rng.randint(1, 250))), rng.choice(CODES), rng.random() < 0.3),)
    return Taken(rng.choice(("h0.test", "w1.test", "h2.test")), faults, rng.random() < 0.5, apart)


def has_shards(seed: int) -> bool:
    """Whether the crawl of *seed* has two shards."""
    return seed >= FIRST_OF_SHARDS


def _shared(rng: Random, plan: Plan) -> Plan:
    """*plan* for shards: what happens to their Redis comes to it; its clock is no concern of theirs."""
    edits = [edit for edit in plan.edits if edit.what != "clock"]
    if rng.random() < 0.6:
        begin_s = rng.uniform(0, 15)
        edits.append(Edit(begin_s, "redis", rng.choice(TROUBLES)))
        edits.append(Edit(begin_s + rng.choice((0.5, 4.0, 30.0)), "redis", "back"))
    return replace(plan, edits=tuple(edits), is_older=False)


def _faulty(rng: Random) -> Plan:
    options: dict[str, object] = {}
    for _ in range(rng.choice((0, 0, 1, 2))):
        options |= rng.choice(CHANGES)
    faults: tuple[Fault, ...] = ()
    edits: list[Edit] = []
    kind = rng.random()
    after_s = rng.choice((0.0, 0.5, 3.0, 3.0, 12.0, 20.0)) + rng.random()
    if kind < 0.7:
        call = rng.choice((rng.randint(1, 25), rng.randint(20, 150), rng.randint(60, 700), rng.randint(60, 300)))
        code = rng.choice(CODES)
        faults = (Fault(call, code, code != 0 and rng.random() < 0.4),)
    elif kind < 0.9:
        edits.append(Edit(after_s, "stop"))
    else:
        edits.append(Edit(after_s, "kill"))
    if rng.random() < 0.3:
        edits.append(Edit(rng.uniform(0, 15), "control", rng.choice(CONTROLS)))
    if rng.random() < 0.2:
        edits.append(Edit(rng.uniform(0, 15), "clock", rng.choice((-YEARS_20_S, -60.0, 60.0, YEARS_20_S))))
    away = (
        Away(rng.uniform(0, 15), rng.choice((30.0, 100.0, 300.0)), rng.random() < 0.5) if rng.random() < 0.15 else None
    )
    if away and rng.random() < 0.7:
        faults, edits = (), []  # else hardly a session lasts as long
    is_cut = rng.random() < 0.5
    is_older = rng.random() < 0.1
    return Plan(options, faults, tuple(edits), is_cut, is_older, away, rng.choice((0.0, 1.0, 100.0, 1e5)))


def play(seed: int, plans: list[Plan] | None = None, pages: int = 0) -> Told:
    """The history of *seed*, or of other *plans* over its web, which may have so many *pages*."""
    told = Told(seed, planned(seed) if plans is None else plans, pages)
    began = time.process_time()
    gc.disable()  # with what killed sessions leave, a collection in the midst of a history costs more than one after it
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="simulated-") as scratch:
        _History(told, Path(scratch)).play()
    gc.collect()
    _freeze()
    told.cpu_s = time.process_time() - began
    return told


@cache
def _freeze() -> None:
    """What is there after the first history, modules most of all, no later collection need look at."""
    gc.freeze()


SMALL = 7  # pages of the web in which every call fails once; chosen: a session of it has all kinds of calls


class Part(NamedTuple):
    """A part of the life of a crawl, each of whose calls fails once."""

    name: str
    before: tuple[Plan, ...]  # the sessions before the one that has it
    plan: Plan
    phase: str  # of that session


def parts(seed: int) -> list[Part]:
    """All parts, of crawls of a small web."""
    links = Plan({"SPIDERLING_LINKS": "on"})
    stopped = replace(links, edits=(Edit(6.0, "stop"),))  # after a checkpoint
    (ending, *_) = play(seed, [stopped, links], SMALL).endings
    written = next(call for call, kind in enumerate(ending.kinds, 1) if kind.startswith("sync corpus/"))
    down = replace(links, taken=Taken("w1.test"))
    killed = replace(links, faults=(Fault(written + 1, 0),))  # it has written text and not committed it
    return [
        Part("resume", (killed,), links, "start"),
        Part("creation", (), stopped, "start"),
        Part("checkpoints", (), stopped, "run"),
        Part("close", (), stopped, "close"),
        Part("start", (stopped,), links, "start"),
        Part("migration", (stopped,), replace(links, is_older=True), "start"),
        Part("take-down", (replace(stopped, options={**links.options, "SPIDERLING_WARC": "on"}),), down, "take-down"),
    ]


def every(seed: int, part: Part) -> Iterator[tuple[int, list[Plan], int]]:
    """Histories in which each call of the *part* fails once, by each error."""
    last = Plan({"SPIDERLING_LINKS": "on"})
    told = play(seed, [*part.before, part.plan, last], SMALL)
    phases = told.endings[len(part.before)].phases
    if part.plan.taken:
        phases = [part.phase] * told.taken_calls
    for call, phase in enumerate(phases, 1):
        if phase != part.phase:
            continue
        for code, is_cut in ((0, False), (0, True), *((code, False) for code in ERRORS)):
            failing = replace(part.plan, faults=(Fault(call, code),), power_cut=is_cut)
            if part.plan.taken:
                failing = replace(part.plan, taken=part.plan.taken._replace(faults=failing.faults, power_cut=is_cut))
            yield seed, [*part.before, failing, last], SMALL


class _History:
    def __init__(self, told: Told, scratch: Path) -> None:
        self._told = told
        self._scratch = scratch
        self._now = scratch / "now"  # where the crawl is, under one name whatever kills and power cuts have left
        self._rng = Random(f"run {told.seed}")
        self._clock = Clock()
        changes = any(plan.changes for plan in told.plans)
        self._network = Network(self._web(), self._clock, self._rng, changes)
        self._acknowledged = Acknowledged()
        self._gone: dict[str, float] = {}  # host that was taken down -> when
        self._redis = Redis(self._clock, self._rng, scratch) if has_shards(told.seed) else None

    def _web(self) -> Web:
        """A web in which each shard has a host that answers: where none ever does, the network counts as away."""
        rng = Random(f"web {self._told.seed}")
        shards = SHARDS if has_shards(self._told.seed) else 1
        gone = {plan.taken.host for plan in self._told.plans if plan.taken and shards > 1}
        while True:
            web = generated(rng, self._told.pages)
            answering = web.addresses.keys() - web.manners.keys() - gone
            if len({owner_of(host, shards) for host in answering}) == shards:
                return web

    def play(self) -> None:
        self._move_to("0")
        directory = self._now / "job"
        for number, plan in enumerate(self._told.plans, 1):
            self._told.wrong += self._rest(directory, plan, number)
            if self._told.wrong:
                return
            session = Session(directory, plan, self._network, self._clock, self._rng, self._acknowledged, self._redis)
            ending = session.run()
            self._told.endings.append(ending)
            self._told.wrong += [f"{line} (session {number})" for line in ending.wrong]
            if ending.kind == "hung":
                return
            if ending.kind == "killed":
                self._image(session.disk, str(number), plan.power_cut)
                if plan.power_cut and plan.options.get("SPIDERLING_DURABILITY") == "normal":
                    self._acknowledged.content.clear()  # it has promised a whole crawl, without its last seconds
            self._told.wrong += [f"{line} (after session {number}, {ending.kind})" for line in self._checked(directory)]
            if ending.kind == "finished":
                self._told.wrong += self._corpus(directory)
            if self._told.wrong:
                return
        if self._told.endings[-1].kind != "finished":
            self._told.wrong.append(f"unfinished: {self._told.endings[-1].kind}, {self._told.endings[-1].lines[-3:]}")
        self._told.wrong += self._manners()

    def _rest(self, directory: Path, plan: Plan, number: int) -> Iterator[str]:
        """What happens before a session."""
        self._clock.now += plan.rests_s
        if plan.changes:
            self._network.web.change(Random(plan.changes))
        if directory.is_dir():
            (directory / "control.yaml").write_bytes(CALM)
            yield from self._take_down(directory, plan.taken, number) if plan.taken else ()

    def _move_to(self, name: str) -> None:
        (self._scratch / name).mkdir()
        self._now.unlink(missing_ok=True)
        self._now.symlink_to(self._scratch / name)

    def _image(self, disk: Disk, name: str, power_cut: bool) -> None:
        """Go on with what the killed process, or the power cut, has left; what it has open still is elsewhere."""
        files = after_power_cut(disk, len(disk.steps), self._rng) if power_cut else after_kill(disk)
        self._move_to(name)
        write_files(files, self._now / "job")

    def _take_down(self, directory: Path, taken: Taken, number: int) -> Iterator[str]:
        """Give the command, and give it again; what was acknowledged of other hosts stays."""
        places = self._places(directory)
        if is_older(directory):
            return
        if self._redis is not None and None in [usable_version(place / "state/frontier.sqlite") for place in places]:
            return  # a shard that begins later knows of no take-down
        for place in places:
            (place / "state").mkdir(parents=True, exist_ok=True)
            (place / "state/lock").touch()  # which is not recorded, and there before all else
        before = self._documents(directory)
        for attempt, faults in enumerate((taken.faults, ())):
            disk = Disk(directory, faults)
            error = self._command(directory, taken, disk)
            if isinstance(error, BadInput):
                yield from [f"take-down: {error}"] if self._acknowledged.content else ()
                return
            self._told.taken_calls = disk.calls if attempt == 0 else self._told.taken_calls
            if disk.is_dead:
                self._image(disk, f"{number} taken down", taken.power_cut)
        if error is not None:
            yield f"take-down: {error}"
            return
        self._gone[taken.host] = self._clock.now
        self._acknowledged.content.clear()
        copy = self._copied(directory)
        for place in self._places(copy):
            with closing(Inspection(place)) as crawl:
                for segment in (segment for kind in KINDS for segment in crawl.segments(kind)):
                    name = str(segment.path.relative_to(copy))
                    self._acknowledged.content[name] = segment.path.read_bytes()[: segment.length]
        found = (path for kind in KINDS for path in directory.glob(f"**/{kind}/*-?????.*") if path.stat().st_size)
        files = {str(path.relative_to(directory)) for path in found}
        yield from (f"lingers: {name}" for name in sorted(files - self._acknowledged.content.keys()))
        lost = before - self._documents(directory)
        hosts = {url: urlsplit(url).hostname for url, *_ in sorted(lost)}
        yield from (f"lost: {url} went with {taken.host}" for url, host in hosts.items() if host not in self._gone)
        yield from self._checked(directory)

    def _command(self, directory: Path, taken: Taken, disk: Disk) -> BaseException | None:
        """Take down; returns the error with which the command ended, or None, also if it was killed."""
        is_named = mock.patch.object(card, "software", return_value=SOFTWARE)
        with self._clock.shown(), recorded(directory, disk), is_named:
            try:
                for place in self._places(directory) if taken.apart else [directory]:
                    take_down(place, [taken.host], [], self._clock.wall())
            except (SpiderlingError, Killed) as failure:
                return None if disk.is_dead else failure
        return None

    def _documents(self, directory: Path) -> set[tuple[str, ...]]:
        """URL and paragraphs of each document that is acknowledged."""
        content = [(name, len(data)) for name, data in self._acknowledged.content.items() if "corpus/" in name]
        found = (one for name, length in content for one in read_documents(directory / name, 0, length))
        return {(one.attributes["url"], *one.paragraphs) for one in found}

    def _places(self, directory: Path) -> list[Path]:
        """The directory of the crawl, or those of its shards."""
        if self._redis is None:
            return [directory]
        return [directory / f"shard-{number:02}" for number in range(SHARDS)]

    def _lingering(self, crawl: Inspection) -> Iterator[str]:
        """What a directory still has of hosts that were taken down."""
        for path, length, _ in crawl.segments("corpus") if self._gone else ():
            yield from (one.attributes["url"] for one in read_documents(path, 0, length))
        for path, length, _ in crawl.segments("links") if self._gone else ():
            yield from (line.url for line in read_links(path, length))
        for path, length, _ in crawl.segments("warc") if self._gone else ():
            yield from (record.headers.get("warc-target-uri", "") for record in records(path, length))

    def _copied(self, directory: Path) -> Path:
        """A copy of a crawl to read, since SQLite leaves a log, if an empty one, beside what it reads."""
        copy = self._scratch / "checked"
        shutil.rmtree(copy, ignore_errors=True)
        if directory.is_dir():
            shutil.copytree(directory, copy, copy_function=shutil.copyfile)
        return copy

    def _checked(self, directory: Path) -> Iterator[str]:
        """What is wrong with the directory of a crawl that does not run."""
        for name, content in self._acknowledged.content.items():
            path = directory / name
            if not path.is_file() or path.read_bytes()[: len(content)] != content:
                yield f"lost: {len(content)} acknowledged bytes of {name}"
        copy = self._copied(directory)
        try:
            if is_older(copy):
                return  # a session that was to bring it to this version has failed
            for place in self._places(copy):
                if self._redis is not None and not place.exists():
                    continue  # it has not begun yet
                with closing(Inspection(place)) as crawl:
                    if found := [*problems(crawl)]:
                        yield from (f"damaged: {line}" for line in found)
                        return
                    there = (url for url in self._lingering(crawl) if urlsplit(url).hostname in self._gone)
                    yield from (f"lingers: {url}" for url in there)
                    yield from self._versions(crawl)
        except BadInput:
            if self._acknowledged.content:
                yield "lost: the state is gone"
        except SpiderlingError as error:
            yield f"damaged: {error}"

    def _versions(self, crawl: Inspection) -> Iterator[str]:
        """What does not fit of the pages that are revisited: the corpus to the state, or that to the web."""
        kept: defaultdict[str, list[CorpusDocument]] = defaultdict(list)
        for path, length, _ in crawl.segments("corpus"):
            for one in read_documents(path, 0, length):
                kept[one.attributes["url"]].append(one)
        web = self._network.web
        for key, content in crawl.cursor("SELECT id, content FROM recrawled"):
            page = RecrawlPage.unpack(key, content)
            if web.is_of_liar(page.url) or urlsplit(page.url).hostname in self._gone:
                continue
            documents = {int(one.attributes.get("version", "1")): one for one in kept[page.url]}
            if sorted(documents) != [*range(1, page.version + 1)] or len(documents) < len(kept[page.url]):
                yield f"versions: {page.url} has {len(kept[page.url])}, and by the state {page.version}"
            if page.state not in (Standing.LIVE, Standing.MISSED) and web.answers[page.url].status == 200:
                yield f"versions: {page.url} is {page.state.name}, and answers"
            later = Counter(text for number, one in documents.items() if number > 1 for text in one.paragraphs)
            # what stood on the page before the recrawl began is not known
            yield from (f"duplicated: {text[:30]} of {page.url}" for text, number in later.items() if number > 1)

    def _corpus(self, directory: Path) -> Iterator[str]:
        """Whether each text that can be had is in the corpus, once; of a page that changes any one of its texts."""
        documents = [d for path in sorted(directory.glob("**/corpus/*.zst")) for d in read_documents(path)]
        texts = Counter("\n".join(document.paragraphs) for document in documents)
        web = self._network.web
        strange = {"\n".join(one.paragraphs) for one in documents if web.is_of_liar(one.attributes["url"])}
        self._told.documents = len(documents)
        yield from (f"duplicated: {text[:30]}" for text, number in texts.items() if number > 1 and self._redis is None)
        there = {paragraph for one in documents for paragraph in one.paragraphs}
        wanted = web.texts(self._gone.keys())
        lost = (texts for texts in wanted if not any(there.issuperset(text.split("\n")) for text in texts))
        yield from (f"lost: {text[:30]} is not in the corpus" for *_, text in lost)
        known = {line for answer in web.answers.values() for text in answer.texts for line in text.split("\n")}
        foreign = (text for text in texts if text not in strange and not known.issuperset(text.split("\n")))
        yield from (f"foreign: {text[:30]}" for text in foreign)

    def _manners(self) -> Iterator[str]:
        """Whether hosts and addresses were left in peace between two requests, and what robots.txt forbids."""
        yield from (f"impolite: {line}" for line in self._network.impolite)
        web = self._network.web
        for place, least_s in ((1, SETTINGS["SPIDERLING_HOST_INTERVAL_S"]), (2, SETTINGS["SPIDERLING_IP_INTERVAL_S"])):
            last: dict[str, float] = {}
            for start in self._network.starts:
                name = str(start[place])
                if start.time - last.get(name, -1e9) < least_s - SPARE_S:
                    yield f"impolite: {name} again after {start.time - last[name]:.3f} s, at {start.time:.3f}"
                last[name] = start.time
        late = [start for start in self._network.starts if start.time > self._gone.get(start.host, math.inf)]
        yield from (f"impolite: {start.host} was taken down, and asked at {start.time:.3f}" for start in late)
        forbidden = (url for url in self._network.asked if not web.is_of_liar(url) and web.forbids(url))
        yield from (f"impolite: {url} is forbidden" for url in forbidden)


_NOTHING = (
    ("away", None),
    ("taken", None),
    ("recrawl", ""),
    ("changes", 0),
    ("rests_s", 0.0),
    ("power_cut", False),
    ("is_older", False),
)
"""What a plan without something has in its place."""


def shrunk(told: Told) -> Told:
    """The smallest history that is wrong in the same way, found by taking away one thing after the other."""
    smallest = told
    changed = True
    while changed:
        changed = False
        for plans in _smaller(smallest.plans):
            tried = play(told.seed, plans, told.pages)
            if tried.kind == told.kind:
                smallest, changed = tried, True
                break
    return smallest


def _smaller(plans: list[Plan]) -> Iterator[list[Plan]]:
    for number, plan in enumerate(plans):

        def without(**change: object) -> list[Plan]:
            return [*plans[:number], replace(plan, **change), *plans[number + 1 :]]  # noqa: B023

        if number < len(plans) - 1:
            yield [*plans[:number], *plans[number + 1 :]]
        for place in range(len(plan.faults)):
            yield without(faults=plan.faults[:place] + plan.faults[place + 1 :])
        for place in range(len(plan.edits)):
            yield without(edits=plan.edits[:place] + plan.edits[place + 1 :])
        for name in plan.options:
            yield without(options={key: value for key, value in plan.options.items() if key != name})
        for name, nothing in _NOTHING:
            if getattr(plan, name) != nothing:
                yield without(**{name: nothing})
