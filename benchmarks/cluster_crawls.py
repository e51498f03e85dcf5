"""What whole crawls cost as one process, as one shard, and as two shards whose links lead to each other by half.

The crawls of one round take turns, so that the machine's load is the same for all.  CPU is that of all processes, the
workers and Redis among them, but not that of the servers.  It is read while the crawl runs: a page's cost is that
between two marks, when a fifth and when four fifths of the pages are there.  What start and end of a process take
beside it is paid once, and stated apart.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from redis_server import RedisServer

from benchmarks.common import METER, ROOT, served
from benchmarks.linkedweb import LinkedWeb
from spiderling.cluster.launcher import with_parent

OUTSIDE = 57
"""Links of a page to other hosts, half of which are of the other of two shards, beside three to its own."""
HOSTS = 250
MARKS = 0.2, 0.8
"""Parts of all pages between which a page's cost is taken (chosen: away from start and end)."""
_LOOK_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_SETTINGS = {
    "ALLOW_NETWORKS": "127.0.0.0/8", "STRATEGY": "bfs", "HOST_INTERVAL_S": 0.05, "IP_INTERVAL_S": 0,
    "DELAY_FACTOR": 0, "RAMP_UP_PER_S": 1000, "DEDUP": "off", "TRAPS": "off", "YIELD_PROFILE": "off",
    "OPTOUTS": "tdm-file=ignore,ai-txt=ignore", "CONTACT": "test@corpus.internal", "WORKERS": 1,
}  # fmt: skip


class Crawled(NamedTuple):
    """One crawl of all its processes."""

    pages: int
    ms_per_page: float
    """CPU between the marks."""
    start_s: float
    """CPU of start and end: what all pages at that cost leave of the whole."""
    by_kind: dict[str, float]
    """Milliseconds a page between the marks, of main processes, of text workers, of Redis."""
    pages_per_s: float
    """Between the marks."""
    rss_mb: list[float]
    """Of each main process at most."""


class _Looks:
    """Processor seconds of some processes and their children, by kind, read now and then."""

    def __init__(self, mains: Sequence[int], redis: int | None) -> None:
        self.times: list[float] = []
        self.seconds: list[Counter[str]] = []
        self._mains = mains
        self._redis = redis
        self._kinds: dict[int, str] = {}
        self._last: dict[int, float] = {}
        """Of each process, also of one that has ended."""

    def look(self) -> None:
        """Read them once."""
        for main in self._mains:
            self._note(main, "main")
            for child in _children(main):
                self._note(child, "workers")
        if self._redis is not None:
            self._note(self._redis, "redis")
        self.times.append(time.perf_counter())
        sums: Counter[str] = Counter()
        for process, seconds in self._last.items():
            sums[self._kinds[process]] += seconds
        self.seconds.append(sums)

    def _note(self, process: int, kind: str) -> None:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return
        self._kinds[process] = kind
        self._last[process] = (int(fields[11]) + int(fields[12])) / _TICKS

    def at(self, now: float) -> Counter[str]:
        """The seconds until *now*, between two looks by the straight line."""
        after = min(max(1, bisect_left(self.times, now)), len(self.times) - 1)
        part = (now - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        before = self.seconds[after - 1]
        return Counter({kind: before[kind] + part * (n - before[kind]) for kind, n in self.seconds[after].items()})


def _children(process: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def crawled(pages: int, shards: int, per_host: int) -> Crawled:
    """Crawl *pages* of a linked web with *per_host* pages on each of HOSTS hosts; *shards* 0: without.

    If these are all its pages, most links are known soon; if there are many more, most are new.
    """
    web = f"linked:{HOSTS}:{per_host}:{OUTSIDE}"
    with tempfile.TemporaryDirectory() as directory, served(web, "--identity") as names:
        seeds = Path(directory, "seeds.txt")
        seeds.write_text("\n".join(LinkedWeb(HOSTS, per_host).url(number, 0) for number in range(HOSTS)))
        server = RedisServer() if shards else None
        try:
            given = {**_SETTINGS, "HOSTS": names, "MAX_PAGES": pages}
            if server is not None:
                given |= {"CLUSTER": server.url, "SHARDS": shards}
            meters = [Path(directory, f"meter{number}.json") for number in range(shards or 1)]
            running = [subprocess.Popen(_command(seeds, Path(directory, "cs"), given, meter), cwd=ROOT,
                                        env={**os.environ, "PYTHONPATH": _path()},
                                        preexec_fn=with_parent(signal.SIGTERM)) for meter in meters]  # fmt: skip
            looks = _Looks([one.pid for one in running], server.process.pid if server is not None else None)
            while any(one.poll() is None for one in running):
                looks.look()
                time.sleep(_LOOK_S)
            if any(one.returncode for one in running):
                sys.exit("a crawl failed")
        finally:
            if server is not None:
                server.close()
        return _weighed(looks, [json.loads(meter.read_text()) for meter in meters])


def _weighed(looks: _Looks, told: list[dict[str, object]]) -> Crawled:
    number = sum(one["pages"] for one in told)
    began, ended = (_reached(told, part * number) for part in MARKS)
    spent = looks.at(ended)
    spent.subtract(looks.at(began))
    between = number * (MARKS[1] - MARKS[0])
    ms_per_page = 1000 * spent.total() / between
    start_s = looks.seconds[-1].total() - ms_per_page * number / 1000
    by_kind = {kind: round(1000 * seconds / between, 3) for kind, seconds in spent.items()}
    rss_mb = [one["main_rss_mb"] for one in told]
    return Crawled(number, ms_per_page, start_s, by_kind, between / (ended - began), rss_mb)


def _reached(told: list[dict[str, object]], pages: float) -> float:
    """When all together had so many *pages*, by ``time.perf_counter()``."""
    marks = sorted(
        (one["opened_s"] + seconds, number - former)
        for one in told
        for (former, *_), (number, seconds, *_) in pairwise([(0, 0.0), *one["marks"], (one["pages"], one["wall_s"])])
    )
    so_far = 0
    for (before, _), (now, more) in pairwise([(marks[0][0], 0), *marks]):
        if so_far + more >= pages:
            return before + (now - before) * (pages - so_far) / more
        so_far += more
    return marks[-1][0]


def _path() -> str:
    return os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])


def _command(seeds: Path, directory: Path, given: dict[str, object], meter: Path) -> list[str]:
    settings = {f"SPIDERLING_{name}": value for name, value in given.items()}
    settings |= {"JOBDIR": directory, "EXTENSIONS": json.dumps(METER), "METER_FILE": meter, "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "scrapy", "crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"]
    return [*command, *(part for name, value in settings.items() for part in ("-s", f"{name}={value}"))]


class Ratios(NamedTuple):
    """Medians over the rounds."""

    one_cpu: float
    two_cpu: float
    rounds: list[tuple[float, float, float]]
    """CPU milliseconds a page: without shards, one shard, two shards."""
    start_s: tuple[float, float, float]
    """CPU seconds of start and end, of the same."""
    pages_per_s: tuple[float, float, float]


def ratios(rounds: int, pages: int, per_host: int) -> Ratios:
    """CPU a page beside that of a crawl without shards."""
    found = []
    for _ in range(rounds):
        found.append([crawled(pages, shards, per_host) for shards in (0, 1, 2)])
        print(f"load {os.getloadavg()[0]:.1f}:", *found[-1], sep="\n  ", flush=True)
    ms = [tuple(one.ms_per_page for one in row) for row in found]
    return Ratios(
        statistics.median(one / plain for plain, one, _ in ms),
        statistics.median(two / plain for plain, _, two in ms),
        ms,
        tuple(statistics.median(one.start_s for one in column) for column in zip(*found, strict=True)),
        tuple(statistics.median(one.pages_per_s for one in column) for column in zip(*found, strict=True)),
    )
