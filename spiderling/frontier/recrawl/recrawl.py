"""The recrawl of a crawl: which of the URLs that have ended are revisited, and what becomes of a revisit.

A revisit is another request for a URL that has ended.  It is no end, and the ledger of URLs knows nothing of it.

A *sweep* judges all recrawled pages in blocks (policy.py); its best ones are planned, as many as the budget of the day
allows by then.  A host's planned revisits come after its waiting URLs, so new pages are first.  What is planned is lost
with the process and planned again, since nothing of it is known before its answer.

Times are days since the recrawl began.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError, StorageError
from spiderling.base.option_values import parse_recrawl, parse_recrawl_requests
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize_again
from spiderling.frontier.hosts import LAST_RANK, Host, QueuedUrl
from spiderling.frontier.recrawl import policy
from spiderling.frontier.recrawl.pages import (
    ANNOUNCED,
    GONE_DAYS,
    MISSED,
    OVER,
    PLANNED,
    Columns,
    RecrawlPage,
    Standing,
    after_revisit,
    host_of,
    hosts_of,
    is_answer,
    unmade,
)
from spiderling.frontier.recrawl.policy import FEED, SITEMAP, Pages, RecrawlPolicy, RevisitCandidate, RevisitResult
from spiderling.frontier.schedule import Schedule
from spiderling.frontier.storage.protocol import Rows
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.url_states import UrlStates

PAYLOADS = {FEED: b"feed", SITEMAP: b"sitemap 1 50"}  # kind -> the mark by which intake.py knows its file


@dataclass(slots=True, eq=False)
class Revisit(QueuedUrl):
    """A revisit that is planned or in transit; the page as it was known before."""

    page: RecrawlPage = field(kw_only=True)
    paragraphs: bytes | None = None  # 8-byte digests of the paragraphs of its newest version; None: unknown
    first_seen: float = 0.0  # when its first version ended, in seconds since 1970
    found: int = 0  # links that nobody had found before, as far as the revisit has come
    announced: int = 0  # recrawled pages that it says have changed
    newest_date: float = float("-inf")  # the newest date that it gives to a page, in days since the recrawl began


MAX_PLANNED = 5_000  # revisits that one sweep plans (chosen: 480,000 a day)
_FIRST = float(np.finfo(np.float64).max)
_BEST = np.dtype([("key", "u8"), ("index", "f8")])


class Sweep:
    """Judges all recrawled pages, block by block, as they stand when it begins."""

    def __init__(self, policy: RecrawlPolicy, columns: Columns, is_out_of_reach: Callable[[int], bool]) -> None:
        """*is_out_of_reach*: whether the host of this id is; its pages are not revisited."""
        columns.merge()
        self._policy = policy
        self._is_out_of_reach = is_out_of_reach
        self._blocks = (columns.rows[first:end] for first, end in columns.blocks())
        self._best: NDArray[np.void] = np.empty(0, _BEST)  # pages that are worth a revisit

    def judge_block(self, days: float) -> bool:
        """Judge the next block; returns whether there was one."""
        rows = next(self._blocks, None)
        if rows is not None:
            self._judge(rows, days)
        return rows is not None

    def best(self, number: int) -> list[int]:
        """The keys of the pages that are most worth it, best first."""
        keys: list[int] = self._choose(max(0, number))["key"].view(np.int64).tolist()
        return keys

    def _judge(self, rows: NDArray[np.void], days: float) -> None:
        hosts = hosts_of(rows)
        different, row = np.unique(hosts, return_inverse=True)
        is_out_of_reach = np.array([self._is_out_of_reach(int(host)) for host in different])
        is_candidate = ((rows["flags"] & (PLANNED | OVER)) == 0) & ~is_out_of_reach[row]
        if not is_candidate.any():
            return
        rows = rows[is_candidate]
        times = rows["found_at"].astype(np.float64), rows["last"].astype(np.float64)
        is_announced = (rows["flags"] & ANNOUNCED) > 0
        pages = Pages(row[is_candidate], rows["kind"].astype(np.int64), *times, is_announced)
        index = self._policy.worth(self._policy.tables(different.tolist()), pages, days)
        is_missed = (rows["flags"] & MISSED) > 0
        index[is_missed] = np.where(days - rows["last"][is_missed] >= GONE_DAYS, _FIRST, 0.0)
        is_worth = index > 0
        self._best = np.concatenate([self._best, np.rec.fromarrays([rows["key"][is_worth], index[is_worth]], _BEST)])
        if len(self._best) > 4 * MAX_PLANNED:
            self._best = self._choose(MAX_PLANNED)

    def _choose(self, number: int) -> NDArray[np.void]:
        return self._best[np.argsort(-self._best["index"], kind="stable")[:number]]


class Planned:
    """Keys of pages, host by host, in the order of their revisits; each has the flag PLANNED in *columns*."""

    def __init__(
        self, by_host: dict[int, deque[int]], columns: Columns, make_revisit: Callable[[Host, int], Revisit]
    ) -> None:
        """*by_host*: host id -> keys, which others read (HostStates.revisits); *make_revisit*: of a host and a key."""
        self._by_host = by_host
        self._columns = columns
        self._make_revisit = make_revisit
        self._at_hand: dict[int, Revisit] = {}  # host id -> the revisit that is its next, as it was made

    def __len__(self) -> int:
        return sum(map(len, self._by_host.values()))

    def add(self, keys: Iterable[int]) -> set[int]:
        """Plan revisits of the pages with these *keys*, unless they are; returns the ids of their hosts."""
        hosts = set()
        for key in keys:
            at = self._columns.find(key)
            if at is not None and not self._columns.rows["flags"][at] & (PLANNED | OVER):
                self._columns.flag(at, PLANNED, True)
                self._by_host.setdefault(host_of(key), deque()).append(key)
                hosts.add(host_of(key))
        return hosts

    def next_at(self, host: Host) -> Revisit:
        """The next revisit of *host*, which has one."""
        key = self._by_host[host.id][0]
        revisit = self._at_hand.get(host.id)
        if revisit is None or revisit.key != key or revisit.host is not host:
            revisit = self._at_hand[host.id] = self._make_revisit(host, key)
        return revisit

    def take_next(self, host_id: int) -> None:
        """The next revisit of a host is no longer planned."""
        keys = self._by_host[host_id]
        keys.popleft()
        if not keys:
            del self._by_host[host_id]
        self._at_hand.pop(host_id, None)

    def put_back(self, revisit: Revisit) -> None:
        """*revisit* was taken and not made: it is the next again."""
        self._by_host.setdefault(revisit.host.id, deque()).appendleft(revisit.key)

    def drop_where(self, is_left_out: Callable[[int], bool]) -> None:
        """Drop the revisits of the hosts with ids that are left out; their pages may be planned again."""
        for host_id in [host_id for host_id in self._by_host if is_left_out(host_id)]:
            for key in self._by_host.pop(host_id):
                at = self._columns.find(key)
                if at is not None:
                    self._columns.flag(at, PLANNED, False)
            self._at_hand.pop(host_id, None)

    def clear(self) -> None:
        self._by_host.clear()
        self._at_hand.clear()


META = "recrawl"  # key in the table ``meta``
SWEEPS_A_DAY = 96  # sweeps a day, at most (chosen: every quarter of an hour)
_PAGES_A_REVISIT = 80
"""Pages that are judged for each revisit that is planned, but for the last sweep of a day (chosen: with the default
budget four sweeps a day, as in the simulator)."""


class Recrawl:
    """Revisits of the URLs of one crawl; off, nothing is revisited."""

    def __init__(self, options: Options, url_states: UrlStates, schedule: Schedule, store: SqliteStore) -> None:
        self._length_days = parse_recrawl(options.recrawl)
        self._url_states = url_states
        self._schedule = schedule
        self._store = store
        self._in_transit: dict[int, Revisit] = {}
        self._began: float | None = None
        self._requests = parse_recrawl_requests(options.recrawl_requests)
        self._day = 0  # number of the day that goes on; the recrawl begins with 0
        self._revisits_before = 0  # those of the days before
        self._next_sweep = -math.inf
        self._sweep: Sweep | None = None  # the sweep that goes on
        self._learnt: set[int] = set()  # hosts whose rates have changed since the last batch
        self._is_changed = False
        self._is_stopped = False
        self.paragraphs = Rows[int, bytes](partial(store.blob, "paragraph"))
        """Page's key -> 8-byte digests of the paragraphs of its newest version, one behind the other."""
        self.marks: dict[str, int] = {}  # how far the URL log was read (crawl/ended_urls.py)
        self.policy = RecrawlPolicy(policy.MIN_WORD_DAYS)
        self.columns = Columns()
        self.pages = Rows[int, bytes](partial(store.blob, "recrawled"))  # what is known of each recrawled page, by key
        self._planned = Planned(url_states.host_states.revisits, self.columns, self._revisit_at)
        url_states.queues.next_revisit = self._planned.next_at

    # -- it begins and ends

    @property
    def is_on(self) -> bool:
        return self._length_days > 0

    @property
    def sweep_s(self) -> float:
        """Seconds between two sweeps, at least."""
        return policy.DAY_S / SWEEPS_A_DAY

    def days(self, now: float) -> float:
        return 0.0 if self._began is None else (now - self._began) / policy.DAY_S

    def time(self, days: float) -> float:
        """Seconds since 1970 at so many *days* since the recrawl began."""
        return (self._began or 0.0) + days * policy.DAY_S

    def goes_on(self, now: float) -> bool:
        """Whether there may be something to be revisited; while revisits are in transit it goes on."""
        return self.is_on and (self.days(now) < self._length_days or bool(self._in_transit))

    def restore(self, meta: Mapping[str, str]) -> None:
        said = json.loads(meta.get(META, "{}"))
        self._began = said.get("began")
        self.marks = dict(said.get("marks", {}))
        self._day, self._revisits_before = said.get("day", (0, 0))
        if not self.is_on:
            return
        self.columns.add(RecrawlPage.unpack(key, row) for key, row in self._store.blobs("recrawled"))
        for host, row in self._store.blobs("rate"):
            self.policy.restore(host, row)

    def begin(self, now: float) -> None:
        """The recrawl is on: if it was never, it begins *now*."""
        if self._began is None:
            self._began = now
            self._begin_day(0)
        else:
            self._go_on(now)

    def _go_on(self, now: float) -> None:
        """Count on from the latest time that is known, if the clock was ahead when that was noted."""
        self.columns.merge()
        latest = max(self._day, float(self.columns.rows["last"].max(initial=0.0)))
        if self.days(now) < latest:
            self._began = now - latest * policy.DAY_S
            self._is_changed = True

    def stop(self) -> None:
        """Plan nothing more: the crawl is being closed, and the store with it."""
        self._is_stopped = True
        self._planned.clear()

    # -- pages come in

    def take_up(self, pages: Iterable[RecrawlPage], first_words: Mapping[int, int], marks: dict[str, int]) -> None:
        """Recrawl *pages* that have ended; *first_words*: those of what a page newly found gave, by key."""
        if self._is_stopped:
            return
        new: dict[int, RecrawlPage] = {}
        self.columns.merge()
        for page in pages:
            at = self.columns.find(page.key)
            if at is None:
                new[page.key] = page
            elif page.version:  # it was not kept before, and ``ask_again`` let it wait again
                self.columns.update(at, page, self.columns.rows["flags"][at] & PLANNED)
                self.pages.put(page.key, page.pack())
            if page.key in first_words:
                self.policy.rates.learn(host_of(page.key), policy.NEW, 1, first_words[page.key], 0.0, page.found_at)
                self._learnt |= {0, host_of(page.key)}
        for page in new.values():
            self.pages.put(page.key, page.pack())
        self.columns.add(new.values())
        self.columns.merge()
        self.marks = marks
        self._is_changed = True

    # -- what is worth a revisit

    def step(self, now: float) -> bool:
        """Judge a block of pages, or plan the best when all are judged; returns whether a sweep goes on."""
        if self._is_stopped or not self.is_on or self._began is None or self.days(now) >= self._length_days:
            return False
        days = self.days(now)
        if int(days) > self._day:
            self._begin_day(int(days))
        if self._sweep is None:
            if days < self._next_sweep:
                return False
            self._planned.drop_where(lambda host: self._is_out_of_reach(host, now))
            if not self._is_worth_a_sweep(days):
                return False
            self._next_sweep = days + 1 / SWEEPS_A_DAY
            self._sweep = Sweep(self.policy, self.columns, lambda host: self._is_out_of_reach(host, now))
        if self._sweep.judge_block(days):
            return True
        best = self._sweep.best(min(self.room(days), MAX_PLANNED))
        self._sweep = None
        for host in self._planned.add(best):
            self._schedule.wake(host, now, LAST_RANK)
        return False

    def _is_worth_a_sweep(self, days: float) -> bool:
        room = self.room(days)
        is_last = days % 1 >= 1 - 1 / SWEEPS_A_DAY
        return room >= 1 and (is_last or room * _PAGES_A_REVISIT >= self.columns.live or room >= MAX_PLANNED)

    def room(self, days: float) -> int:
        """Revisits that may be planned now, by what has passed of the day; what a day leaves is lost."""
        a_day = self._requests if self._requests >= 1 else self._requests * self.columns.live
        before, all_of_day = (int(a_day * day + 0.5) for day in (self._day, self._day + 1))  # a day may have none
        due = int((all_of_day - before) * (days - self._day) + 0.5)
        made = self._url_states.totals["revisits"] - self._revisits_before
        return due - made - len(self._in_transit) - len(self._planned)

    def _begin_day(self, day: int) -> None:
        """What was revisited until now belongs to the days before *day*."""
        self._day = day
        self._revisits_before = self._url_states.totals["revisits"]
        self._is_changed = True

    def _is_out_of_reach(self, host_id: int, now: float) -> bool:
        """Whether a host is closed, or is left alone beyond the next sweep since it does not answer."""
        if self._url_states.host_states.is_closed(host_id):
            return True
        host = self._url_states.hosts.live(host_id)
        if host is None:
            return False
        return host.due > now + max(self.sweep_s, self._schedule.intervals.of(host))

    # -- revisits go out

    def _revisit_at(self, host: Host, key: int) -> Revisit:
        row = self.pages.get(key)
        if row is None:
            raise StorageError(f"the state is damaged: the recrawled page {key} of {host.name} is missing.")
        page = RecrawlPage.unpack(key, row)
        target = canonicalize_again(page.url)
        if target is None:
            raise DamageError(f"the state is damaged: {page.url!r} is recrawled and no URL.")
        revisit = Revisit(key, page.url, host, LAST_RANK, target, payload=PAYLOADS.get(page.kind), page=page)
        revisit.paragraphs = self.paragraphs.get(key)
        revisit.first_seen = self.time(page.found_at)
        return revisit

    def hand_out(self, revisit: Revisit) -> None:
        """*revisit* leaves for its host."""
        self._planned.take_next(revisit.host.id)
        self._in_transit[revisit.key] = revisit

    def give_back(self, key: int) -> Revisit | None:
        """The revisit of this page was not made: it is planned again."""
        revisit = self.take_back(key)
        if revisit is not None:
            self.plan_again(revisit)
        return revisit

    def plan_again(self, revisit: Revisit) -> None:
        """*revisit*, which is not in transit any more, comes next at its host."""
        if not self._is_stopped:
            self._planned.put_back(revisit)

    def take_back(self, key: int | None) -> Revisit | None:
        """The revisit in transit at the page with this key; the caller must end it."""
        return self._in_transit.pop(key, None) if key is not None else None

    # -- answers come back

    def end_head(self, revisit: Revisit, reason: Reason, now: float) -> None:
        """A planned revisit is over unmade, for *reason*."""
        self._planned.take_next(revisit.host.id)
        self._url_states.totals["revisits_unmade"] += 1
        self._write(revisit, unmade(revisit.page, reason, self.days(now)))

    def over(self, revisit: Revisit, outcome: Outcome, now: float) -> None:
        """The revisit was answered by *outcome*: learn from it, and note what is known of the page now."""
        days = self.days(now)
        totals = self._url_states.totals
        totals["revisits"] += 1
        if is_answer(revisit.page, outcome):
            totals["revisits_304"] += outcome.status == 304
            totals["revisits_new"] += bool(outcome.words or revisit.found)
            totals["revisit_words"] += outcome.words
            totals["revisit_links"] += revisit.found
            if (at := self.columns.find(revisit.key)) is not None:
                host = revisit.host.id
                _, found_at, last, kind, flags = self.columns.rows[at].item()
                before = RevisitCandidate(host, kind, found_at, last, bool(flags & ANNOUNCED))
                found = RevisitResult(outcome.words, revisit.found, revisit.announced, revisit.newest_date)
                self.policy.learn(before, found, days)
                self._learnt |= {0, host}
        self._write(revisit, after_revisit(revisit.page, outcome, revisit.found, days))

    def _write(self, revisit: Revisit, page: RecrawlPage) -> None:
        totals = self._url_states.totals
        totals["versions"] += page.version > max(1, revisit.page.version)
        totals["revisits_gone"] += page.state is Standing.GONE
        totals["revisits_opted_out"] += page.state is Standing.OPTED_OUT
        at = self.columns.find(page.key)
        if at is not None:
            page.is_announced = False
            self.columns.update(at, page)
            self.pages.put(page.key, page.pack())

    # -- dates of sitemaps and feeds

    def announce(self, revisit: Revisit, key: int, date: float) -> None:
        """The sitemap or feed that *revisit* is of says that the page with this key changed at *date*."""
        days = self.days(date)
        revisit.newest_date = max(revisit.newest_date, days)
        at = self.columns.find(key)
        if at is None or days <= self.columns.rows["last"][at] or self.columns.rows["flags"][at] & ANNOUNCED:
            return
        revisit.announced += 1
        self.columns.flag(at, ANNOUNCED, True)
        if (row := self.pages.get(key)) is not None:
            self.pages.put(key, replace(RecrawlPage.unpack(key, row), is_announced=True).pack())

    # -- the store

    @property
    def has_changes(self) -> bool:
        return self._is_changed or bool(self.pages) or bool(self.paragraphs)

    def drain(self) -> tuple[dict[str, dict[int, bytes]], dict[str, str]]:
        """Blobs and meta that the store must learn."""
        if not self.has_changes:
            return {}, {}
        self._is_changed = False
        blobs = {
            "recrawled": self.pages.drain(),
            "rate": {host: self.policy.pack(host) for host in self._learnt},
            "paragraph": self.paragraphs.drain(),
        }
        self._learnt = set()
        if self._began is None:
            return blobs, {}
        said = {
            "began": self._began,
            "day": (self._day, self._revisits_before),
            "marks": self.marks,
            "recrawled": self.columns.live,
        }
        return blobs, {META: json.dumps(said)}

    def committed(self) -> None:
        self.pages.committed()
        self.paragraphs.committed()
