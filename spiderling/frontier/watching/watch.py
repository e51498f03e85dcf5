"""The watch of a crawl: which of the URLs that have ended are looked at again, and what becomes of a look.

A *sweep* judges all watched pages in blocks (policy.py); its best ones are planned, as many as the budget of the day
allows by then.  A host's planned looks come after its waiting URLs, so new pages are first.  What is planned is lost
with the process and planned again, since nothing of it is known before its answer.

Times are days since the watch began.
"""

from __future__ import annotations

import json
import math
import zlib
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError
from spiderling.base.option_values import parse_watch
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID
from spiderling.frontier.hosts.host import Host
from spiderling.frontier.hosts.ranks import LAST_RANK
from spiderling.frontier.lifecycle.url_states import UrlStates
from spiderling.frontier.scheduling.schedule import Schedule
from spiderling.frontier.storage.protocol import Store
from spiderling.frontier.watching.columns import ANNOUNCED, MISSED, OVER, PLANNED, Columns, hosts_of
from spiderling.frontier.watching.group_store import Groups
from spiderling.frontier.watching.groups import (
    GROUP_PAGES,
    Standing,
    WatchedPage,
    group_id,
    host_and_part,
)
from spiderling.frontier.watching.lastmod import Announcements
from spiderling.frontier.watching.looks import Look, look_at
from spiderling.frontier.watching.policy import HUB, PAGE, Found, Pages, Policy, Tables
from spiderling.frontier.watching.validators import Validators

META = "watch"
"""Key in the table ``meta``."""
SWEEPS_A_DAY = 96
"""Sweeps a day, at most (chosen: every quarter of an hour)."""
GONE_DAYS = 7.0
"""Days between two answers of 404 after which a page counts as gone (chosen: servers are mended within a week)."""
MOST_PLANNED = 5_000
"""Looks that one sweep plans (chosen: 480,000 a day)."""
_HUB_FOUND, _HUB_FROM, _HUB_MOST = 2, 2, 6
"""What a look that found a link adds to a page's score, the score from which it is a hub, and the most.  Chosen: a look
that found none takes 1 off, so a page is no hub by one link of a teaser for long."""
HUB_CANDIDATE = 3
"""Score of a page that is not in the corpus: it is given up when it has fallen to 0."""
OPT_OUTS = frozenset(
    {
        *(Reason.NOINDEX, Reason.OPTED_OUT, Reason.SITE_OPTED_OUT, Reason.ROBOTS_FORBIDDEN),
        Reason.UNAVAILABLE_FOR_LEGAL_REASONS,
    }
)
"""Ways for a look to be over that say: this page may not be used any more."""
_FIRST = float(np.finfo(np.float64).max)


@dataclass(slots=True)
class _Day:
    """What the budget of a day goes by."""

    number: int = 0
    looks: int = 0
    """Looks before this day."""
    words: int = 0
    """Words kept before this day."""


class Watch:
    """Looks at the URLs of one crawl; off, nothing is looked at."""

    def __init__(self, options: Options, url_states: UrlStates, schedule: Schedule, store: Store) -> None:
        self._length_days = parse_watch(options.watch)
        self._day_s = options.watch_day_s
        self._requests = options.watch_requests
        self._words = options.watch_words
        self._url_states = url_states
        self._schedule = schedule
        self._store = store
        self._planned = url_states.host_states.looks
        self._at_hand: dict[int, Look] = {}
        """Host -> the look that is its next, as it was made."""
        self._in_transit: dict[int, Look] = {}
        self._began: float | None = None
        self._day = _Day()
        self._next_sweep = -math.inf
        self._blocks: Iterator[NDArray[np.void]] | None = None
        """What is left of the sweep that goes on."""
        self._best: list[NDArray[np.float64]] = []
        """Of the sweep: (keys as they are in memory, indexes) of pages that are worth a look."""
        self._learnt: set[int] = set()
        """Hosts whose rates have changed since the last batch."""
        self._is_changed = False
        self._paragraphs: dict[int, bytes] = {}
        self._draining: dict[int, bytes] = {}
        """Paragraphs of a batch that is not committed yet."""
        self.marks: dict[str, int] = {}
        """How far the URL log was read (crawl/watched_log.py)."""
        self.policy = Policy(options.watch_least_word_days)
        self.columns = Columns()
        self._groups = Groups(store)
        url_states.queues.next_look = self._next_look

    # -- it begins and ends

    @property
    def is_on(self) -> bool:
        return self._length_days > 0

    def days(self, now: float) -> float:
        """Days since the watch began."""
        return 0.0 if self._began is None else (now - self._began) / self._day_s

    def goes_on(self, now: float) -> bool:
        """Whether there may be something to be looked at; while looks are in transit it goes on."""
        return self.is_on and (self.days(now) < self._length_days or bool(self._in_transit))

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what was committed."""
        said = json.loads(meta.get(META, "{}"))
        self._began = said.get("began")
        self.marks = dict(said.get("marks", {}))
        self._day = _Day(*said.get("day", (0, 0, 0)))
        if not self.is_on:
            return
        for group, pages in self._groups.stored():
            self.columns.add(pages, host_and_part(group)[1])
        for host, row in self._store.blobs("rate"):
            self._restore_rates(host, row)

    def note_paragraphs(self, key: int, digests: bytes) -> None:
        """The newest version of the page with this key has paragraphs with these 8-byte digests."""
        self._paragraphs[key] = digests

    def begin(self, now: float) -> None:
        """The watch is on: if it was never, it begins *now*."""
        if self._began is None:
            totals = self._url_states.totals
            self._began = now
            self._day = _Day(0, totals["looks"], totals["words"])
            self._is_changed = True

    # -- pages come in

    def take_up(self, pages: Iterable[WatchedPage], first_words: Mapping[int, int], marks: dict[str, int]) -> None:
        """Watch *pages* that have ended; *first_words*: those of what a page newly found gave, by key."""
        by_host: defaultdict[int, list[WatchedPage]] = defaultdict(list)
        self.columns.merge()
        for page in pages:
            if self.columns.find(page.key) is None:
                by_host[_host(page.key)].append(page)
            if page.key in first_words:
                self.policy.learn_first(_host(page.key), first_words[page.key], 0.0, page.found_at)
                self._learnt |= {0, _host(page.key)}
        for host, new in by_host.items():
            self._add(host, list({page.key: page for page in new}.values()))
        self.columns.merge()
        self.marks = marks
        self._is_changed = True

    def _add(self, host: int, pages: list[WatchedPage]) -> None:
        parts = self._rows_of(host)["part"]
        part = int(parts.max()) if len(parts) else 0
        group = self._groups.get(group_id(host, part)) if len(parts) else []
        while pages:
            room = GROUP_PAGES - len(group)
            if room > 0:
                self._groups.note(group_id(host, part), [*group, *pages[:room]])
                self.columns.add(pages[:room], part)
                pages = pages[room:]
            part += 1
            group = []

    def _rows_of(self, host: int) -> NDArray[np.void]:
        keys = self.columns.rows["key"]
        bounds = np.searchsorted(keys, np.array([host, host + 1], np.uint64) << np.uint64(HASH_BITS))
        return self.columns.rows[bounds[0] : bounds[1]]

    # -- what is worth a look

    def step(self, now: float) -> bool:
        """Judge a block of pages, or plan the best when all are judged; returns whether a sweep goes on."""
        if not self.is_on or self._began is None or self.days(now) >= self._length_days:
            return False
        days = self.days(now)
        self._turn_day(days)
        if self._blocks is None:
            if days < self._next_sweep or self.room(days) < 1:
                return False
            self._next_sweep = days + 1 / SWEEPS_A_DAY
            self.columns.merge()
            self._blocks = (self.columns.rows[first:end] for first, end in self.columns.blocks())
        block = next(self._blocks, None)
        if block is not None:
            self._judge(block, days)
            return True
        self._blocks = None
        self._plan(min(self.room(days), MOST_PLANNED), now)
        return False

    def room(self, days: float) -> int:
        """Looks that may be planned now, by what has passed of the day."""
        totals = self._url_states.totals
        if self._words and totals["words"] - self._day.words >= self._words:
            return 0
        a_day = self._requests if self._requests >= 1 else self._requests * self.columns.live
        planned = len(self._in_transit) + sum(map(len, self._planned.values()))
        due = int(a_day * days + 0.5) - int(a_day * self._day.number + 0.5)  # so a day may have less than one
        return due - (totals["looks"] - self._day.looks) - planned

    def _turn_day(self, days: float) -> None:
        if int(days) > self._day.number:
            self._day = _Day(int(days), self._url_states.totals["looks"], self._url_states.totals["words"])
            self._is_changed = True

    def _judge(self, rows: NDArray[np.void], days: float) -> None:
        """Note the pages among *rows* that are worth a look, and how much."""
        states = self._url_states.host_states
        hosts = hosts_of(rows)
        different, row = np.unique(hosts, return_inverse=True)
        is_closed = np.array([states.is_closed(int(host)) for host in different])
        is_candidate = ((rows["flags"] & (PLANNED | OVER)) == 0) & ~is_closed[row]
        if not is_candidate.any():
            return
        rows = rows[is_candidate]
        index = self.policy.worth(self.policy.tables(different.tolist()), _pages(rows, row[is_candidate]), days)
        is_missed = (rows["flags"] & MISSED) > 0
        index[is_missed] = np.where(days - rows["last"][is_missed] >= GONE_DAYS, _FIRST, 0.0)
        is_worth = index > 0
        if is_worth.any():
            self._best.append(np.array([rows["key"][is_worth].view(np.int64).view(np.float64), index[is_worth]]))
        if sum(part.shape[1] for part in self._best) > 4 * MOST_PLANNED:
            self._best = [self._chosen(MOST_PLANNED)]

    def _chosen(self, number: int) -> NDArray[np.float64]:
        """The best of the sweep, best first."""
        best = np.concatenate(self._best, axis=1) if self._best else np.empty((2, 0))
        return best[:, np.argsort(-best[1], kind="stable")[:number]]

    def _plan(self, number: int, now: float) -> None:
        keys = np.ascontiguousarray(self._chosen(max(0, number))[0]).view(np.int64).tolist()
        self._best = []
        for host in [host for host in self._planned if self._url_states.host_states.is_closed(host)]:
            for key in self._planned.pop(host):
                self._flag(key, PLANNED, False)
            self._at_hand.pop(host, None)
        for key in keys:
            at = self.columns.find(key)
            if at is not None and not self.columns.rows["flags"][at] & (PLANNED | OVER):
                self.columns.flag(at, PLANNED, True)
                self._planned.setdefault(_host(key), deque()).append(key)
        for host in {_host(key) for key in keys}:
            self._schedule.wake(host, now, LAST_RANK)

    # -- looks go out

    def _next_look(self, host: Host) -> Look:
        """The next planned look at *host*, which has one."""
        key = self._planned[host.id][0]
        look = self._at_hand.get(host.id)
        if look is None or look.key != key or look.host is not host:
            at = self.columns.find(key)
            if at is None:
                raise DamageError(f"a look is planned at a page of {host.name} that is not watched.")
            page = self._groups.page(group_id(host.id, int(self.columns.rows["part"][at])), key)
            fresh = self._paragraphs.get(key) or self._draining.get(key)
            made = look_at(page, host, fresh or self._store.blob("paragraph", key))
            if made is None:
                raise DamageError(f"the state is damaged: {page.url!r} is watched and no URL.")
            look = self._at_hand[host.id] = made
        return look

    def hand_out(self, look: Look) -> None:
        """*look* leaves for its host."""
        self._drop_head(look.host.id)
        self._in_transit[look.key] = look

    def give_back(self, key: int) -> Look | None:
        """The look at this page was not made: it is planned again."""
        look = self.take_back(key)
        if look is not None:
            self._planned.setdefault(look.host.id, deque()).appendleft(key)
        return look

    def take_back(self, key: int | None) -> Look | None:
        """The look in transit at the page with this key; the caller must end it."""
        return self._in_transit.pop(key, None) if key is not None else None

    def _drop_head(self, host: int) -> None:
        planned = self._planned[host]
        planned.popleft()
        if not planned:
            del self._planned[host]
        self._at_hand.pop(host, None)

    # -- answers come back

    def end_head(self, look: Look, reason: Reason, now: float) -> None:
        """A planned look is over unmade, for *reason*."""
        self._drop_head(look.host.id)
        page = replace(look.known, last=self.days(now))
        if reason in OPT_OUTS:
            self._set_standing(page, Standing.OPTED_OUT, page.last)
        self._url_states.totals["looks_unmade"] += 1
        self._write(look, page)

    def over(self, look: Look, outcome: Outcome, now: float) -> None:
        """The look was answered by *outcome*: learn from it, and note what is known of the page now."""
        days = self.days(now)
        page = replace(look.known, last=days)
        totals = self._url_states.totals
        totals["looks"] += 1
        if outcome.status in (404, 410):
            self._miss(page, outcome.status == 410, days)
        elif outcome.reason in OPT_OUTS:
            self._set_standing(page, Standing.OPTED_OUT, days)
        elif outcome.status == 304 or 200 <= outcome.status < 300:
            self._answered(look, page, outcome, days)
        else:
            totals["looks_failed"] += 1
        self._write(look, page)

    def _answered(self, look: Look, page: WatchedPage, outcome: Outcome, days: float) -> None:
        is_new = bool(outcome.words or look.found)
        totals = self._url_states.totals
        totals["looks_304"] += outcome.status == 304
        totals["looks_new"] += is_new
        totals["look_words"] += outcome.words
        self._learn(look, Found(outcome.words, look.found, look.announced, look.newest_date), days)
        page.state = Standing.LIVE
        page.since = 0.0
        if outcome.status != 304:
            page.validators = Validators(outcome.text_key, outcome.modified, outcome.etag)
        if outcome.reason is Reason.KEPT:
            page.version = min(255, page.version + 1)
            totals["versions"] += page.version > 1
        if page.kind in (PAGE, HUB):
            score = min(_HUB_MOST, page.hub_score + _HUB_FOUND) if look.found else max(0, page.hub_score - 1)
            page.hub_score = score
            page.kind = HUB if score >= _HUB_FROM or not page.version else PAGE
            if not (score or page.version):
                self._set_standing(page, Standing.FRUITLESS, days)

    def _learn(self, look: Look, found: Found, days: float) -> None:
        at = self.columns.find(look.key)
        if at is None:
            return
        host = look.host.id
        tables: Tables = self.policy.tables([host])
        self.policy.learn(tables, _pages(self.columns.rows[at : at + 1], np.zeros(1, np.int64)), found, days)
        self._learnt |= {0, host}

    def _miss(self, page: WatchedPage, is_gone: bool, days: float) -> None:
        """The page was not found."""
        if page.state is not Standing.MISSED:
            self._set_standing(page, Standing.MISSED, days)
        if is_gone or days - page.since >= GONE_DAYS:
            self._set_standing(page, Standing.GONE, page.since)

    def _set_standing(self, page: WatchedPage, state: Standing, since: float) -> None:
        page.state = state
        page.since = since
        if state in (Standing.GONE, Standing.OPTED_OUT):
            self._url_states.totals["looks_gone" if state is Standing.GONE else "looks_opted_out"] += 1

    def _write(self, look: Look, page: WatchedPage) -> None:
        at = self.columns.find(page.key)
        if at is not None:
            self.columns.update(at, page)
            self._groups.replace(group_id(look.host.id, int(self.columns.rows["part"][at])), page)

    # -- dates of sitemaps and feeds

    def announce(self, look: Look, key: int, date: float) -> None:
        """The sitemap or feed that *look* is at says that the page with this key changed at *date*."""
        days = self.days(date)
        look.newest_date = max(look.newest_date, days)
        at = self.columns.find(key)
        if at is not None and days > self.columns.rows["last"][at]:
            look.announced += not self.columns.rows["flags"][at] & ANNOUNCED
            self.columns.flag(at, ANNOUNCED, True)

    def in_transit(self, key: int) -> Look | None:
        """The look in transit at the page with this key."""
        return self._in_transit.get(key)

    def _flag(self, key: int, flag: int, is_set: bool) -> None:
        at = self.columns.find(key)
        if at is not None:
            self.columns.flag(at, flag, is_set)

    # -- the store

    @property
    def has_changes(self) -> bool:
        return self._is_changed or bool(self._groups) or bool(self._paragraphs)

    def drain(self) -> tuple[dict[str, dict[int, bytes]], dict[str, str]]:
        """Blobs and meta that the store must learn."""
        if not self.has_changes:
            return {}, {}
        self._is_changed = False
        blobs = {
            "watched": self._groups.drain(),
            "rate": {host: self._packed_rates(host) for host in self._learnt},
            "paragraph": self._paragraphs,
        }
        self._learnt = set()
        self._draining = self._paragraphs
        self._paragraphs = {}
        if self._began is None:
            return blobs, {}
        said = {"began": self._began, "day": astuple(self._day), "marks": self.marks}
        return blobs, {META: json.dumps(said)}

    def committed(self) -> None:
        """The store has what was drained last."""
        self._groups.committed()
        self._draining = {}

    def _packed_rates(self, host: int) -> bytes:
        dates = array("d", astuple(self.policy.dates.get(host, Announcements())))
        return zlib.compress(dates.tobytes() + self.policy.rates.sums(host))

    def _restore_rates(self, host: int, row: bytes) -> None:
        size = 8 * len(astuple(Announcements()))
        try:
            data = zlib.decompress(row)
            if host:
                self.policy.dates[host] = Announcements(*array("d", data[:size]))
            self.policy.rates.restore(host, data[size:])
        except (zlib.error, ValueError, TypeError) as error:
            raise DamageError(f"the rates of host {host} are damaged: {error}.") from None


def _host(key: int) -> int:
    """The id of the host of a URL key."""
    return key >> HASH_BITS & MAX_HOST_ID


def _pages(rows: NDArray[np.void], row: NDArray[np.int64]) -> Pages:
    return Pages(
        row,
        rows["kind"].astype(np.int64),
        rows["found_at"].astype(np.float64),
        rows["last"].astype(np.float64),
        (rows["flags"] & ANNOUNCED) > 0,
    )
