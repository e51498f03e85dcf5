"""The life of a simulated crawl from one seed: sessions with faults, one without, and what must be true of all.

A history that fails is told by its seed, and made small: sessions, faults, edits and options are taken away as long as
it fails in the same way.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest import mock
from urllib.parse import urlsplit

from aiohttp import web_app

from spiderling.base.errors import BadInput, JobdirError, SpiderlingError, StorageError
from spiderling.base.urls import owner_of
from spiderling.cluster.resharding import reshard
from spiderling.corpus.links import read_links
from spiderling.corpus.segments import CorpusDocument, frames, read_documents
from spiderling.corpus.warc import records
from spiderling.frontier.recrawl.pages import RecrawlPage, Standing
from spiderling.frontier.storage.state_file import usable_version
from spiderling.jobdir import card
from spiderling.jobdir.damage import problems, rebuild
from spiderling.jobdir.directory import KINDS
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.snapshots import Snapshots, snapshot_of, take_over
from spiderling.jobdir.takedown import take_down
from tests.recorded_disk import after_kill, after_power_cut, recorded, write_files
from tests.simulated.archives import Archives
from tests.simulated.clock import Clock, Killed
from tests.simulated.crawl import (
    CALM,
    NO_SEED,
    SETTINGS,
    SHARDS,
    SOFTWARE,
    Acknowledged,
    Act,
    Disk,
    Edit,
    Ending,
    Fault,
    Plan,
    Session,
    Taken,
    is_older,
)
from tests.simulated.limits import limited
from tests.simulated.network import Network
from tests.simulated.opt_outs import declare
from tests.simulated.orders import ORDERS
from tests.simulated.plans import (
    ERRORS,
    FIRST_OF_SHARDS,
    declares,
    has_shards,
    is_wider,
    leaves_out,
    planned,
    reads_archives,
)
from tests.simulated.redis import Redis
from tests.simulated.strange import garbled
from tests.simulated.web import Web, generated

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # where histories are played, in memory
_DEDUP = "SPIDERLING_DEDUP"
SPARE_S = 1e-3  # seconds by which an interval may be short: what a float leaves out


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
    commanded_calls: int = 0  # on the disk, of the last command of an operator

    @property
    def kind(self) -> str:
        return self.wrong[0].partition(":")[0] if self.wrong else ""


def play(seed: int, plans: list[Plan] | None = None, pages: int = 0) -> Told:
    """The history of *seed*, or of other *plans* over its web, which may have so many *pages*."""
    told = Told(seed, planned(seed) if plans is None else plans, pages)
    began = time.process_time()
    gc.disable()  # with what killed sessions leave, a collection in the midst of a history costs more than one after it
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="simulated-") as scratch:
        _History(told, Path(scratch)).play()
    for cached in (one for one in vars(web_app).values() if hasattr(one, "cache_clear")):
        cached.cache_clear()  # the handlers of each live page there was, and with them all of their session
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
    phase: str = ""  # of that session; '': what is done before it
    first: int = 0  # the number from which its seeds are counted


def parts(seed: int) -> list[Part]:
    """All parts, of crawls of a small web."""
    links = Plan({"SPIDERLING_LINKS": "on"})
    stopped = replace(links, edits=(Edit(6.0, "stop"),))  # after a checkpoint
    (ending, *_) = play(seed, [stopped, links], SMALL).endings
    written = next(call for call, kind in enumerate(ending.kinds, 1) if kind.startswith("sync corpus/"))
    killed = replace(links, faults=(Fault(written + 1, 0),))  # it has written text and not committed it
    archived = replace(stopped, options={**links.options, "SPIDERLING_WARC": "on"})
    kept = replace(archived, edits=(), snapshots="kept")
    down = replace(links, taken=Taken("w1.test"))
    later = replace(links, rests_s=100.0)
    return [
        Part("resume", (killed,), links, "start"),
        Part("creation", (), stopped, "start"),
        Part("checkpoints", (), stopped, "run"),
        Part("close", (), stopped, "close"),
        Part("start", (stopped,), links, "start"),
        Part("migration", (stopped,), replace(links, is_older=True), "start"),
        Part("take-down", (archived,), down),
        Part("take-down of shards", (archived,), down, first=FIRST_OF_SHARDS),
        Part("rebuild", (archived,), replace(later, act=Act("rebuild", 0.5))),
        Part("take-over", (kept,), replace(later, snapshots="kept", act=Act("takeover", 0.5))),
        Part("reshard", (archived,), replace(links, act=Act("reshard", 3)), first=FIRST_OF_SHARDS),
    ]


def every(seed: int, part: Part) -> Iterator[tuple[int, list[Plan], int]]:
    """Histories in which each call of the *part* fails once, by each error."""
    seed += part.first
    last = Plan({"SPIDERLING_LINKS": "on"})
    told = play(seed, [*part.before, part.plan, last], SMALL)
    phases = told.endings[len(part.before)].phases if part.phase else [""] * told.commanded_calls
    for call, phase in enumerate(phases, 1):
        if phase != part.phase:
            continue
        for code, is_cut in ((0, False), (0, True), *((code, False) for code in ERRORS)):
            failing = part.plan
            faults = (Fault(call, code),)
            if part.phase:
                failing = replace(failing, faults=faults, power_cut=is_cut)
            if failing.taken and not part.phase:
                failing = replace(failing, taken=failing.taken._replace(faults=faults, power_cut=is_cut))
            if failing.act and not part.phase:
                failing = replace(failing, act=failing.act._replace(faults=faults, power_cut=is_cut))
            yield seed, [*part.before, failing, last], SMALL


class _History:
    def __init__(self, told: Told, scratch: Path) -> None:
        self._told = told
        self._scratch = scratch
        self._snapshots = scratch / "snapshots"
        self._snapshots.mkdir()
        self._now = scratch / "now"  # where the crawl is, under one name whatever kills and power cuts have left
        self._rng = Random(f"run {told.seed}")
        self._clock = Clock()
        changes = any(plan.changes for plan in told.plans)
        self._network = Network(self._web(), self._clock, self._rng, changes)
        self._acknowledged = Acknowledged()
        self._gone: dict[str, tuple[float, int]] = {}
        """Host or URL that was taken down -> when, and how many URLs had been asked for by then."""
        self._redis = Redis(self._clock, self._rng, scratch) if has_shards(told.seed) else None
        self._shards = SHARDS if has_shards(told.seed) else 1
        self._limits: tuple[int, ...] = ()
        archives = Random(f"archives {told.seed}"), scratch / "archives"
        self._archives = Archives(self._network.web, *archives) if reads_archives(told.seed) else None

    def _web(self) -> Web:
        """A web in which each shard has a host that answers: where none ever does, the network counts as away."""
        rng = Random(f"web {self._told.seed}")
        shards = {SHARDS} if has_shards(self._told.seed) else {1}
        shards |= {plan.act.value for plan in self._told.plans if plan.act and plan.act.what == "reshard"}
        orders = (edit.value for plan in self._told.plans for edit in plan.edits if edit.what == "control")
        blocked = {ORDERS[text].blocks for text in orders if text in ORDERS} - {""}
        gone = {plan.taken.host for plan in self._told.plans if plan.taken}
        gone = gone | blocked if has_shards(self._told.seed) else set()
        while True:
            web = generated(rng, self._told.pages)
            if is_wider(self._told.seed):
                web.widen(rng)
            if declares(self._told.seed):
                declare(web, Random(f"opt-outs {self._told.seed}"))
                web.reserved += [(host, "/") for host in blocked]
            answering = web.addresses.keys() - web.manners.keys() - gone
            if all(len({owner_of(host, number) for host in answering}) == number for number in shards):
                return web

    def play(self) -> None:
        self._move_to("0")
        directory = self._now / "job"
        for number, plan in enumerate(self._told.plans, 1):
            self._told.wrong += self._rest(directory, plan, number)
            if self._told.wrong:
                return
            plan = replace(plan, snapshots=plan.snapshots and str(self._snapshots))
            if self._archives is not None:
                self._archives.write(is_whole=number == len(self._told.plans))
                plan.warc = self._archives.sources
            session = Session(
                directory, plan, self._network, self._clock, self._rng, self._acknowledged, self._redis, self._shards
            )
            ending = session.run()
            self._told.endings.append(ending)
            self._told.wrong += self._wrong_of(ending, number)
            if ending.kind == "hung":
                return
            if ending.kind == "killed" or ending.had_bug:  # what a bug has left open ends with the process
                self._image(session.disk, str(number), plan.power_cut)
                if plan.power_cut and plan.options.get("SPIDERLING_DURABILITY") == "normal":
                    self._acknowledged.content.clear()  # it has promised a whole crawl, without its last seconds
            self._told.wrong += [f"{line} (after session {number}, {ending.kind})" for line in self._checked(directory)]
            if ending.kind == "finished":
                self._told.wrong += self._corpus(directory)
            if self._told.wrong:
                return
        if self._told.endings[-1].kind != "finished" and NO_SEED not in "".join(self._told.endings[-1].lines[-1:]):
            self._told.wrong.append(f"unfinished: {self._told.endings[-1].kind}, {self._told.endings[-1].lines[-3:]}")
        self._told.wrong += self._manners()

    def _wrong_of(self, ending: Ending, number: int) -> list[str]:
        """What is wrong with a session; not that it waits its day for the network while no host that answers is asked.

        A bug has stopped at their seeds then, or somebody has blocked them.
        """
        is_away = any("The network seems to be away" in line for line in ending.lines)
        blocks = any(b"block: [" in edit.value for edit in self._told.plans[number - 1].edits if edit.what == "control")
        if ending.kind == "hung" and is_away and (blocks or any(one.had_bug for one in self._told.endings)):
            return []
        return [f"{line} (session {number})" for line in ending.wrong]

    def _rest(self, directory: Path, plan: Plan, number: int) -> Iterator[str]:
        """What happens before a session."""
        self._limits = plan.limits
        self._clock.now += plan.rests_s
        if plan.changes:
            self._network.web.change(Random(plan.changes))
            if self._network.web.declares:
                declare(self._network.web, Random(f"opt-outs {plan.changes}"))
        if directory.is_dir():
            (directory / "control.yaml").write_bytes(CALM)
            if plan.act is not None and not is_older(directory):
                self._network.heard.forget()
                acts = {"rebuild": self._rebuild, "reshard": self._reshard, "takeover": self._take_over}
                yield from acts[plan.act.what](directory, plan.act, number)
            yield from self._take_down(directory, plan.taken, number) if plan.taken else ()
            if directory.is_dir():  # a snapshot may have another order
                (directory / "control.yaml").write_bytes(CALM)

    def _move_to(self, name: str) -> None:
        (self._scratch / name).mkdir()
        self._now.unlink(missing_ok=True)
        self._now.symlink_to(self._scratch / name)

    def _image(self, disk: Disk, name: str, power_cut: bool, place: Path = Path("job")) -> None:
        """Go on with what the killed process, or the power cut, has left; what it has open still is elsewhere."""
        files = after_power_cut(disk, len(disk.steps), self._rng) if power_cut else after_kill(disk)
        self._move_to(name)
        write_files(files, self._now / place)

    def _take_down(self, directory: Path, taken: Taken, number: int, name: str = "") -> Iterator[str]:
        """Give the command, and give it again; what was acknowledged of other hosts stays."""
        places = self._places(directory)
        if is_older(directory):
            return
        if self._redis is not None and not self._have_begun(places):
            return  # a shard that begins later knows of no take-down
        for place in places:
            (place / "state").mkdir(parents=True, exist_ok=True)
            (place / "state/lock").touch()  # which is not recorded, and there before all else
        before = self._documents(directory)
        name = name or self._named(taken)
        hosts, urls = ([], [name]) if "/" in name else ([name], [])

        def work() -> None:
            for place in places if taken.apart else [directory]:
                take_down(place, hosts, urls, self._clock.wall())

        error = self._give(directory, work, taken, f"{number} taken down")
        if isinstance(error, BadInput):
            yield from [f"take-down: {error}"] if self._acknowledged.content else ()
            return
        if error is not None:
            yield f"take-down: {error}"
            return
        self._gone.setdefault(name, (self._clock.now, len(self._network.asked)))
        self._acknowledge(directory)
        found = (path for kind in KINDS for path in directory.glob(f"**/{kind}/*-?????.*") if _has_text(path))
        files = {str(path.relative_to(directory)) for path in found}
        yield from (f"lingers: {name}" for name in sorted(files - self._acknowledged.content.keys()))
        lost = before - self._documents(directory)
        yield from (f"lost: {url} went with {taken}" for url, *_ in sorted(lost) if not self._is_gone(url))
        yield from self._checked(directory)

    def _have_begun(self, places: Iterable[Path]) -> bool:
        return None not in [usable_version(place / "state/frontier.sqlite") for place in places]

    def _acknowledge(self, directory: Path) -> None:
        """From now on that counts as acknowledged which the state says."""
        self._acknowledged.content.clear()
        copy = self._copied(directory)
        for place in self._places(copy):
            with closing(Inspection(place)) as crawl:
                for segment in (segment for kind in KINDS for segment in crawl.segments(kind)):
                    name = str(segment.path.relative_to(copy))
                    self._acknowledged.content[name] = segment.path.read_bytes()[: segment.length]

    def _rebuild(self, directory: Path, act: Act, number: int) -> Iterator[str]:
        """The state is lost or damaged, and made anew; all that was acknowledged stays."""
        rng = Random(act.value)
        for file in sorted(directory.glob("state/frontier.sqlite*")):
            if rng.random() < 0.5:
                file.unlink()
            else:
                file.write_bytes(garbled(rng, file.read_bytes(), 4096))
        settings = {name: value for name, value in SETTINGS.items() if name == _DEDUP}
        settings |= {name: value for plan in self._told.plans for name, value in plan.options.items() if name == _DEDUP}
        error = self._give(
            directory, lambda: [*rebuild(directory, settings, self._clock.wall())], act, f"{number} made anew"
        )
        segments = [directory / name for name in self._acknowledged.content]
        is_empty = all(path.is_file() and not _has_text(path) for path in segments)  # all that it had was taken down
        if isinstance(error, BadInput) and "no segments" in str(error) and is_empty:
            shutil.rmtree(directory)
            self._gone.clear()  # another crawl begins
            self._acknowledged.content.clear()
        elif error is not None and "is whole" not in str(error):  # as the first try has made it
            yield f"rebuild: {error}"
        else:
            for name in self._gone:  # which a state that was made anew does not know (docs/publish.md)
                yield from self._take_down(directory, Taken(""), number, name)

    def _reshard(self, directory: Path, act: Act, number: int) -> Iterator[str]:
        """The crawl is divided over more shards; all that was acknowledged stays."""
        if not self._have_begun(self._places(directory)):
            return
        before = self._documents(directory)
        error = self._give(
            directory, lambda: [*reshard(directory, act.value, self._clock.wall())], act, f"{number} divided"
        )
        said = "" if error is None else str(error)
        if "begun" in said and isinstance(error, BadInput):
            return
        if error is not None and f"has {act.value} shards, and" not in said:  # as the first try has made it
            yield f"reshard: {said}"
            return
        self._shards = act.value
        self._acknowledge(directory)
        yield from (f"lost: {url} when the crawl was divided" for url, *_ in before - self._documents(directory))
        yield from self._checked(directory)

    def _take_over(self, directory: Path, act: Act, number: int) -> Iterator[str]:
        """A crawl, or a shard, goes on from its snapshot, since its machine is lost; the former one never does."""
        places = self._places(directory)
        place = places[int(act.value * len(places))]
        snapshot = snapshot_of(self._snapshots, place, len(places) > 1)
        if self._gone or not self._have_begun([*places, snapshot]):
            return
        former = self._scratch / f"{number} lost" / place.relative_to(self._now)
        former.parent.mkdir(parents=True)
        place.rename(former)
        error = self._give(
            place.parent, lambda: take_over(snapshot, place, self._clock.wall()), act, f"{number} taken over"
        )
        if error is not None and " is taken over only where " not in str(error):  # as the first try has done it
            yield f"takeover: {error}"
            return
        with suppress(JobdirError):
            Snapshots(self._snapshots, former, len(places) > 1, str)
            yield f"takeover: {former} may go on"
        self._acknowledge(directory)
        yield from self._checked(directory)

    def _give(self, root: Path, work: Callable[[], object], act: Taken | Act, name: str) -> BaseException | None:
        """Give a command with the faults of *act*, and again without; returns the error with which it ended at last.

        *root*: where it may write.
        """
        error = None
        for attempt, faults in enumerate((act.faults, ())):
            disk = Disk(root, faults)
            error = self._command(root, work, disk)
            self._told.commanded_calls = disk.calls if attempt == 0 else self._told.commanded_calls
            if isinstance(error, BadInput) and not disk.met:
                break
            if disk.is_dead:
                self._image(disk, name, act.power_cut, root.relative_to(self._now))
        return error

    def _named(self, taken: Taken) -> str:
        """The host or URL that is taken down."""
        if taken.page is None:
            return taken.host
        pages = [url for url in self._network.web.pages if urlsplit(url).hostname == taken.host]
        return pages[taken.page % len(pages)] if pages else taken.host

    def _is_gone(self, url: str) -> bool:
        return url in self._gone or urlsplit(url).hostname in self._gone

    def _command(self, root: Path, work: Callable[[], object], disk: Disk) -> BaseException | None:
        """Do the *work* of a command; returns the error with which it ended, or None, also if it was killed."""
        is_named = mock.patch.object(card, "software", return_value=SOFTWARE)
        with self._clock.shown(), limited(self._limits), recorded(root, disk), is_named:
            try:
                work()
            except (Exception, Killed) as failure:  # one that is no SpiderlingError is told like any other
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
        return [directory / f"shard-{number:02}" for number in range(self._shards)]

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
                    yield from (f"lingers: {url}" for url in self._lingering(crawl) if self._is_gone(url))
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
            if web.is_of_liar(page.url) or self._is_gone(page.url):
                continue
            documents = {int(one.attributes.get("version", "1")): one for one in kept[page.url]}
            if sorted(documents) != [*range(1, page.version + 1)] or len(documents) < len(kept[page.url]):
                yield f"versions: {page.url} has {len(kept[page.url])}, and by the state {page.version}"
            is_over = page.state not in (Standing.LIVE, Standing.MISSED) and not web.may_refuse(page.url)
            if is_over and web.answers[page.url].status == 200:
                yield f"versions: {page.url} is {page.state.name}, and answers"
            later = Counter(text for number, one in documents.items() if number > 1 for text in one.paragraphs)
            if any(plan.options.get(_DEDUP) == "mark" for plan in self._told.plans):
                continue  # what was there before is marked, and stays
            # what stood on the page before the recrawl began is not known
            yield from (f"duplicated: {text[:30]} of {page.url}" for text, number in later.items() if number > 1)

    def _corpus(self, directory: Path) -> Iterator[str]:
        """Whether each text that can be had is in the corpus, once; of a page that changes any one of its texts."""
        documents = [d for path in sorted(directory.glob("**/corpus/*.zst")) for d in read_documents(path)]
        texts = Counter("\n".join(document.paragraphs) for document in documents)
        web = self._network.web
        strange = {"\n".join(one.paragraphs) for one in documents if web.is_of_liar(one.attributes["url"])}
        self._told.documents = len(documents)
        once = self._redis is None and all(plan.options.get(_DEDUP) != "off" for plan in self._told.plans)
        yield from (f"duplicated: {text[:30]}" for text, number in texts.items() if number > 1 and once)
        there = {paragraph for one in documents for paragraph in one.paragraphs}
        plans = self._told.plans[: len(self._told.endings)]
        is_partial = self._archives is not None and not self._archives.is_whole
        is_left_out = is_partial or leaves_out(plans, self._archives is not None)
        found = web.pages if self._archives is not None else web.seeds
        wanted = [] if is_left_out else web.texts(found, self._gone.keys(), there)
        if any(plan.options.get(_DEDUP) == "near" for plan in self._told.plans):  # what a liar has sent counts too
            lies = {text for url, answer in web.answers.items() if web.is_of_liar(url) for text in answer.texts}
            wanted = [texts for texts in wanted if lies.isdisjoint(texts)]
        lost = (texts for texts in wanted if not any(there.issuperset(text.split("\n")) for text in texts))
        yield from (f"lost: {text[:30]} is not in the corpus" for *_, text in lost)
        if web.declares:
            honest = (one for one in documents if not web.is_of_liar(one.attributes["url"]))
            yield from (
                f"impolite: {one.attributes['url']} refused what is kept"
                for one in honest
                if not self._network.heard.free[one.attributes["url"]].issuperset(one.paragraphs)
            )
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
        for name, (when, number) in self._gone.items():
            late = [start for start in self._network.starts if start.host == name and start.time > when]
            yield from (f"impolite: {name} was taken down, and asked at {start.time:.3f}" for start in late)
            if name in self._network.asked[number:]:
                yield f"impolite: {name} was taken down, and asked for"
        forbidden = (url for url in self._network.asked if not web.is_of_liar(url) and web.forbids(url))
        yield from (f"impolite: {url} is forbidden" for url in forbidden)


def _has_text(path: Path) -> bool:
    """Whether there is more in a segment than empty frames, of which a take-down leaves one for a whole segment."""
    try:
        return any(frame.data for frame in frames(path, path.stat().st_size))
    except StorageError:
        return True


_NOTHING = (
    ("away", None),
    ("taken", None),
    ("recrawl", ""),
    ("changes", 0),
    ("act", None),
    ("snapshots", ""),
    ("rests_s", 0.0),
    ("power_cut", False),
    ("is_older", False),
    ("limits", ()),
    ("bug", None),
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
        for place in range(len(plan.limits)):
            yield without(limits=plan.limits[:place] + plan.limits[place + 1 :])
