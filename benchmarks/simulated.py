"""Simulated crawls for benchmarks: the webs, what is kept of a crawl, and a store that spares what is known.

A crawl is known by its web and size, seed, strategy, requests a second, and mechanisms that were switched off, and by
a mark of the code.  For the strategies of this project the mark is a hash of the frontier's and the simulator's code
without its docstrings.  Rivals change seldom: their mark is what they fetch in two small crawls, so that a new version
of the default costs no crawl of theirs.
"""

from __future__ import annotations

import ast
import json
import pickle
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import ROOT, recorded_crawl
from simulator.comparison import CLAIRVOYANT, SHARES, Run, Task, Terms, crawl, make_web
from simulator.graphs import of_crawl
from simulator.pages import PageWeb
from simulator.replay import Replay, world
from spiderling.base.link_batch import FOREIGN, WANTED

GENERATED = ("thai", "pt", "scarce", "w12")
GRAPHS = ("graph:cs", "graph:de", "graph:pl", "graph:vi")
MINIWEBS = ("miniweb:cs", "miniweb:de", "miniweb:pl")
MINIWEB = ROOT / "examples/miniweb"
PORTAL = "http://portal.test/index.html"
"""The page of the miniature web that links to every host of it."""
SAMPLES = 2000
"""Samples of a crawl; what it gave at a share of the words is read between two of them."""
_LONGEST_HOURS = 24.0 * 60
"""Simulated hours at which any crawl ends: hosts that give little are asked once a day."""
_OURS = ("spiderling",)


class Job(NamedTuple):
    """One crawl to be simulated."""

    web: str
    """A recipe's name, ``graph:LANGUAGE`` or ``miniweb:LANGUAGE``; these two may have ``+hreflang`` behind them."""
    pages: int
    """Of a generated web."""
    seed: int
    strategy: str
    rate: float = 20.0
    """Most requests a second."""
    word_share: float = 0.9
    """Share of the web's words at which it ends; above 1: when nothing is left."""
    max_pages: float = float("inf")
    off: str = ""
    """Mechanisms that are switched off (ablation.py), with commas."""


class Point(NamedTuple):
    """Where a crawl is when a share of the web's words is kept."""

    words_per_mb: float
    hours: float


class Result(NamedTuple):
    """What is kept of a crawl."""

    points: dict[str, Point]
    """By share of the words in per cent; those that were not reached are missing."""
    recall: float
    """Share of the web's words at the end."""
    words: int
    mb: float
    hours: float
    pages: int
    cpu_s: float
    counts: dict[str, int]
    """Decisions of mechanisms, if they were counted."""

    def at(self, share: float) -> Point | None:
        return self.points.get(f"{100 * share:.0f}")


Switch = Callable[[str], AbstractContextManager[dict[str, int]]]
"""Switches mechanisms off for the length of a crawl, and counts the decisions of all."""


def no_switch(off: str) -> AbstractContextManager[dict[str, int]]:
    """For crawls of which nothing is switched off."""
    return nullcontext({})


class Crawls:
    """Simulated crawls, each made once for each version of the code; a line of JSON each in ``crawls.jsonl``."""

    def __init__(self, directory: Path, data: Path | None = None, switch: Switch = no_switch) -> None:
        """*data* holds ``graph/``; *directory* keeps the results and the recorded webs."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "crawls.jsonl"
        self._directory = directory
        self._data = data
        self._switch = switch
        marks = directory / "behaviours.json"
        self._behaviours: dict[str, str] = json.loads(marks.read_text()) if marks.exists() else {}
        self._known: dict[str, Result] = {}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                row = json.loads(line)
                points = {share: Point(*point) for share, point in row["points"].items()}
                self._known[row["key"]] = Result(**{name: row[name] for name in Result._fields} | {"points": points})

    def results(self, jobs: Iterable[Job], processes: int = 1) -> dict[Job, Result]:
        """The result of each job; those that are not known are simulated, a web of a seed in one process."""
        wanted = list(dict.fromkeys(jobs))
        missing: dict[tuple[str, int, int], list[Job]] = defaultdict(list)
        for job in wanted:
            if self._key(job) not in self._known:
                missing[job.web, job.pages, job.seed].append(job)
        for name in sorted({web.partition("+")[0] for web, _, _ in missing} & {*MINIWEBS}):
            _record(self._directory, name)
        groups = sorted(missing.values(), key=lambda group: group[0].seed)  # so that a part of them tells of all webs
        for job, result in _simulated(groups, self._directory, self._data, self._switch, processes):
            self._known[self._key(job)] = result
            row = {"key": self._key(job), "job": job._asdict(), **result._asdict()}
            with self._file.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return {job: self._known[self._key(job)] for job in wanted}

    def _key(self, job: Job) -> str:
        is_ours = job.strategy.partition(":")[0] in _OURS
        return " ".join(map(str, (*job, code_mark() if is_ours or job.off else self._behaviour(job.strategy))))

    def _behaviour(self, strategy: str) -> str:
        """The mark of a rival; it is looked for anew when the code has changed."""
        name = f"{strategy} {code_mark()}"
        if name not in self._behaviours:
            self._behaviours[name] = behaviour_mark(strategy)
            (self._directory / "behaviours.json").write_text(json.dumps(self._behaviours))
        return self._behaviours[name]


def _simulated(
    groups: Sequence[list[Job]], directory: Path, data: Path | None, switch: Switch, processes: int
) -> Iterator[tuple[Job, Result]]:
    if processes == 1:
        for group in groups:
            yield from _on_one_web(group, directory, data, switch)
        return
    with ProcessPoolExecutor(processes) as pool:
        for future in as_completed([pool.submit(_list_of, group, directory, data, switch) for group in groups]):
            yield from future.result()


def _list_of(jobs: list[Job], directory: Path, data: Path | None, switch: Switch) -> list[tuple[Job, Result]]:
    return list(_on_one_web(jobs, directory, data, switch))


def _on_one_web(jobs: list[Job], directory: Path, data: Path | None, switch: Switch) -> Iterator[tuple[Job, Result]]:
    web = open_web(jobs[0], directory, data)
    for job in jobs:
        terms = Terms(
            max_pages=job.max_pages,
            hours=_LONGEST_HOURS,
            word_share=job.word_share,
            samples=SAMPLES,
            pages_per_s=job.rate,
            options={"random_seed": job.seed},
        )
        began = time.process_time()
        with switch(job.off) as counts:
            run = crawl(Task(job.web, job.strategy, job.seed), terms, web=web)
        yield job, summed_up(run, time.process_time() - began, dict(counts))


def summed_up(run: Run, cpu_s: float, counts: dict[str, int]) -> Result:
    """What is kept of *run*."""
    last = run.last
    points = {f"{100 * share:.0f}": point for share in SHARES if (point := _point(run, share)) is not None}
    recall = last.words / max(run.truth.words, 1)
    size = last.downloaded_bytes / 1e6
    return Result(points, recall, last.words, size, last.hours, last.pages, round(cpu_s, 2), counts)


def _point(run: Run, share: float) -> Point | None:
    """Between the two samples around *share* of the words, in proportion."""
    wanted = share * run.truth.words
    words = size = seconds = 0.0
    for sample in run.samples:
        if sample.words >= wanted:
            part = (wanted - words) / max(sample.words - words, 1)
            size += part * (sample.downloaded_bytes - size)
            seconds += part * (sample.seconds - seconds)
            return Point(wanted / size * 1e6, seconds / 3600)
        words, size, seconds = sample.words, sample.downloaded_bytes, sample.seconds
    return None


# -- webs


def open_web(job: Job, directory: Path, data: Path | None) -> PageWeb:
    """The web of *job*; *directory* keeps what was recorded, and *data* holds ``graph/``."""
    name, _, said = job.web.partition("+")
    kind, _, language = name.partition(":")
    if kind == "miniweb":
        with _recording(directory, name).open("rb") as file:
            lines = pickle.load(file)
        others = sorted({line.url for line in lines if line.url.count("/") == 3} - {PORTAL})
        web = of_crawl(name, lines, language, [PORTAL, *random.Random(job.seed).sample(others, 2)])
    else:
        web = make_web(f"{data}/{name}" if kind == "graph" else name, job.seed, Terms(pages=job.pages))
    return with_hreflang(web) if said == "hreflang" else web


def with_hreflang(web: PageWeb) -> PageWeb:
    """*web*, in which links to pages of the same host in another language say truly whether that is the wanted one."""
    host = web.pages.host
    language = web.pages.language
    plain = web.cues

    def cues(page: int) -> Any:
        targets, _ = web.links(page)
        columns = np.zeros((len(targets), 2), np.int64) if plain is None else np.array(plain(page))
        switches = (host[targets] == host[page]) & (language[targets] != language[page])
        columns[:, 1] = np.where(switches, np.where(language[targets] == 0, WANTED, FOREIGN), 0)
        return columns

    web.cues = cues
    return web


def webs(data: Path | None) -> tuple[str, ...]:
    """Those that can be had: graphs with *data* alone."""
    return (*GENERATED, *(GRAPHS if data else ()), *MINIWEBS)


def _recording(directory: Path, name: str) -> Path:
    return directory / f"{name.replace(':', '-')}.pickle"


def _record(directory: Path, name: str) -> None:
    """Let a real crawl write the links of the miniature web, unless one has."""
    if not _recording(directory, name).exists():
        found = recorded_crawl(str(MINIWEB), name.partition(":")[2], "bfs")
        with _recording(directory, name).open("wb") as file:
            pickle.dump(found.lines, file)


# -- marks of the code


@cache
def code_mark() -> str:
    """A hash of the code that decides what a crawl fetches; docstrings and comments do not count."""
    digest = sha256()
    for path in sorted([*ROOT.glob("spiderling/frontier/**/*.py"), *ROOT.glob("simulator/*.py")]):
        digest.update(code_of(path.read_text()).encode())
    return digest.hexdigest()[:12]


def code_of(source: str) -> str:
    """The code without its docstrings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body: list[Any] = getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else []  # type: ignore[assignment]
        body[:] = [part for part in body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    return ast.dump(tree)


def behaviour_mark(strategy: str) -> str:
    """A hash of what *strategy* fetches, and when, in a small crawl of two webs."""
    digest = sha256()
    for name in ("thai", "pt"):
        web = make_web(name, 99, Terms(pages=1500))
        if strategy in CLAIRVOYANT:
            run = crawl(Task(name, strategy, 99), Terms(samples=100), web=web)
            digest.update(repr(run.samples).encode())
            continue
        watched = _Watched(web)
        Replay(watched, world(lang=web.languages[0], strategy=strategy), pages_per_s=20).run(web.seed_urls(), 1200)
        digest.update("\n".join(watched.asked).encode())
    return digest.hexdigest()[:12]


class _Watched:
    """A web that remembers what was asked."""

    def __init__(self, web: PageWeb) -> None:
        self._web = web
        self.asked: list[str] = []
        self.address, self.latency_s, self.robots = web.address, web.latency_s, web.robots

    def outcome(self, url_id: int, url: str) -> Any:
        self.asked.append(url)
        return self._web.outcome(url_id, url)
