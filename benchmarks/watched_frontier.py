"""A frontier and its store on disk whose pages have ended and are watched: what a page takes, and what a look costs.

All pages are known before the first look, are of the same number on each host, and have neither ETag nor digests of
paragraphs.  Names resolve, robots.txt is missing, everything answers at once, on a virtual clock.
"""

from __future__ import annotations

import gc
import random
import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.watching.pages import EndedPage, Validators, to_be_watched, with_outcomes
from spiderling.frontier.watching.watch import SWEEPS_A_DAY

PAGES_PER_HOST = 50
BUDGET = 0.05
"""Looks a day / watched pages."""
DAYS = 1
DAY_S = 86_400.0
PAGES_PER_BATCH = 64
NEW_SHARE, UNCHANGED_SHARE = 0.4, 0.2
"""Of the looks, those that find new text, and those that are answered by 304 (chosen, after watch.py)."""
_AGES_S = 3 * 365 * DAY_S
_TABLES = ("watched", "rate")
"""What a watch adds to the state."""
_NOTED = ("validator",)
"""What every crawl notes of its pages, so that a later watch can ask for them again."""
_SECTIONS = ("zpravy", "clanky", "sport", "kultura", "archiv", "obec", "skola", "knihy")


class Costs(NamedTuple):
    """What watching costs a frontier."""

    pages: int
    hosts: int
    bytes_memory: float
    """Of the process, a watched page; its share of what is known of its host among it."""
    bytes_disk: float
    """Of the state's file, for what a watch adds: a watched page, its host's share among it."""
    bytes_disk_noted: float
    """The same, for what any crawl notes of a page so that it can be watched later."""
    us_take: float
    """Processor time of a page's first request: admitted, handed out, reported, committed; none of its links."""
    us_look: float
    """Of a look: judged and planned, handed out, reported, committed; medians, in turns with as many first requests."""
    us_sweep: float
    """The part of it that judges and plans."""


class _Crawl:
    """One frontier, crawled."""

    def __init__(self, directory: Path, hosts: int) -> None:
        self.file = directory / "frontier.sqlite"
        self.options = Options(
            watch="on", watch_requests=str(BUDGET), watch_least_word_days=0, robots_max_age_s=1e9, active_hosts=hosts,
            optouts="tdm-file=ignore,ai-txt=ignore",
        )  # fmt: skip
        self._rng = random.Random(hosts)
        self._store = SqliteStore(self.file)
        self.frontier = Frontier(self.options, store=self._store)
        self.now = DAY_S
        self._told: dict[int, tuple[Outcome, None]] = {}
        self._hosts = hosts
        self._put = 0

    def put(self, pages: int) -> None:
        """Admit so many new URLs, host by host in turns."""
        for number in range(self._put, self._put + pages):
            self.frontier.put_seed(self._url(number % self._hosts, number // self._hosts), self.now)
        self._put += pages

    def _url(self, host: int, page: int) -> str:
        section = _SECTIONS[page % len(_SECTIONS)]
        return f"https://www.host{host}.cz/{section}/{self._rng.randrange(10**6)}-{section}-{page}.html"

    def fetches(self, number: int) -> Iterator[Fetch]:
        """At most *number* requests for pages, each with its answer; the others on the way are answered too."""
        while number:
            fetch = self.frontier.take(self.now)
            for name in self.frontier.names_wanted():
                self.frontier.resolved(name, (f"10.{hash(name) >> 8 & 255}.{hash(name) & 255}.1",), 1e9, self.now)
            if fetch is None:
                due = self.frontier.next_due()
                if due is None:
                    return
                self.now = max(self.now, due)
            elif fetch.robots is not None:
                self.frontier.robots_answered(fetch, FileAnswer(404), self.now)
            else:
                outcome = self._answer(fetch)
                self._told[fetch.id] = (outcome, None)
                self.frontier.report(outcome, self.now)
                number -= 1
                yield fetch

    def _answer(self, fetch: Fetch) -> Outcome:
        text_key, modified = self._rng.getrandbits(64), int(self._rng.random() * _AGES_S) + 1_600_000_000
        drawn = self._rng.random() if fetch.look is not None else 0.0
        if drawn < NEW_SHARE:
            return Outcome(
                fetch.id, fetch.url, Reason.KEPT, 200, body_bytes=30_000, kept_bytes=2500, words=400,
                text_key=text_key, modified=modified,
            )  # fmt: skip
        status = 304 if drawn < NEW_SHARE + UNCHANGED_SHARE else 200
        return Outcome(
            fetch.id, fetch.url, Reason.DUPLICATE, status, body_bytes=30_000, text_key=text_key, modified=modified
        )

    def commit(self) -> list[EndedPage]:
        """A checkpoint; returns what has ended."""
        changes = with_outcomes(self.frontier.drain(self.now), self._told)
        self._store.commit(changes)
        self.frontier.committed()
        return [EndedPage(end, changes.url_log.time) for end in changes.url_log.ends]

    def end_all(self, pages: int) -> None:
        """Fetch so many pages, and watch them."""
        self.put(pages)
        watch = self.frontier.watch
        watch.begin(self.now)
        ended: list[EndedPage] = []
        noted: dict[int, Validators] = {}
        while sum(1 for _ in self.fetches(PAGES_PER_BATCH)):
            ended += self.commit()
            noted |= {key: Validators(out.text_key, out.modified) for key, (out, _) in self._told.items()}
            self._told.clear()
        watch.take_up(to_be_watched(ended, noted, {}, watch.days).pages, {}, {})
        self.commit()
        self.now = DAY_S + DAY_S / 2

    def plan(self) -> None:
        """One sweep."""
        while self.frontier.watch.step(self.now):
            pass

    def work(self, number: int) -> tuple[int, float]:
        """Requests that were made of *number*, and their processor seconds, answers and commits among them."""
        begun = time.process_time()
        made = 0
        while made < number:
            done = sum(1 for _ in self.fetches(min(PAGES_PER_BATCH, number - made)))
            self.commit()
            self._told.clear()
            if not done:
                break
            made += done
        return made, time.process_time() - begun

    def close(self) -> None:
        self._store.close()


def costs(pages: int, pages_per_host: int = PAGES_PER_HOST) -> Costs:
    """Of so many watched pages."""
    hosts = pages // pages_per_host
    with tempfile.TemporaryDirectory(prefix="watched-") as name:
        again, first = (_Crawl(_made(Path(name, part)), hosts) for part in ("again", "first"))
        again.end_all(pages)
        takes, looks, sweeps = _in_turns(again, first, hosts)
        again.close()
        first.close()
        return Costs(
            pages,
            hosts,
            _memory(again) / pages,
            _disk(again.file, _TABLES) / pages,
            _disk(again.file, _NOTED) / pages,
            takes,
            looks,
            sweeps,
        )


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _in_turns(again: _Crawl, first: _Crawl, hosts: int) -> tuple[float, float, float]:
    """Microseconds of a first request, of a look, and of judging for a look."""
    first.put(hosts)
    first.work(hosts)  # names and robots.txt are known, as for looks
    begin = again.now
    takes, looks, sweeps = [], [], []
    for turn in range(1, DAYS * SWEEPS_A_DAY):
        again.now = max(again.now, begin + turn * DAY_S / SWEEPS_A_DAY)
        begun = time.process_time()
        again.plan()
        judged = time.process_time() - begun
        number, seconds = again.work(10**6)
        if not number:
            continue
        looks.append(1e6 * (judged + seconds) / number)
        sweeps.append(1e6 * judged / number)
        begun = time.process_time()
        first.put(number)
        admitted = time.process_time() - begun
        made, seconds = first.work(number)
        takes.append(1e6 * (admitted + seconds) / made)
    return median(takes), median(looks), median(sweeps)


def _memory(crawl: _Crawl) -> float:
    """Bytes by which a restarted frontier is larger for being watched."""
    sizes = []
    for watch in ("off", "on"):
        gc.collect()
        store = SqliteStore(crawl.file)
        tracemalloc.start()
        frontier = Frontier(Options(watch=watch, active_hosts=crawl.options.active_hosts), store=store)
        frontier.restore(store.load(), crawl.now)
        frontier.watch.columns.merge()
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        store.close()
    return sizes[1] - sizes[0]


def _disk(file: Path, tables: tuple[str, ...]) -> int:
    with closing(sqlite3.connect(file)) as connection:
        sizes = dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    return sum(sizes[name] for name in tables)
