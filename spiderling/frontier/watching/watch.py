"""The watch of a crawl: which of the URLs that have ended are looked at again, and what becomes of a look.

A *sweep* judges all watched pages in blocks (policy.py); its best ones are planned, as many as the budget of the day
allows by then.  A host's planned looks come after its waiting URLs, so new pages are first.  What is planned is lost
with the process and planned again, since nothing of it is known before its answer.

Times are days since the watch began.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from spiderling.base.errors import DamageError
from spiderling.base.option_values import parse_watch
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import LAST_RANK, Host
from spiderling.frontier.scheduling.schedule import Schedule
from spiderling.frontier.storage.protocol import Store
from spiderling.frontier.url_states import UrlStates
from spiderling.frontier.watching.ended_pages import after_look, is_answer, unmade
from spiderling.frontier.watching.pages import (
    ANNOUNCED,
    Columns,
    Groups,
    NewestParagraphs,
    Standing,
    WatchedPage,
    group_id,
    host_and_part,
    host_of,
)
from spiderling.frontier.watching.planning import MOST_PLANNED, Budget, Look, Planned, Sweep, look_at
from spiderling.frontier.watching.policy import Found, Page, Policy

META = "watch"
"""Key in the table ``meta``."""
SWEEPS_A_DAY = 96
"""Sweeps a day, at most (chosen: every quarter of an hour)."""
_PAGES_A_LOOK = 80
"""Pages that are judged for each look that is planned, but for the last sweep of a day (chosen: with the default budget
four sweeps a day, as in the simulator)."""


class Watch:
    """Looks at the URLs of one crawl; off, nothing is looked at."""

    def __init__(self, options: Options, url_states: UrlStates, schedule: Schedule, store: Store) -> None:
        self._length_days = parse_watch(options.watch)
        self._day_s = options.watch_day_s
        self._url_states = url_states
        self._schedule = schedule
        self._store = store
        self._in_transit: dict[int, Look] = {}
        self._began: float | None = None
        self._budget = Budget(options, url_states)
        self._next_sweep = -math.inf
        self._sweep: Sweep | None = None
        """The sweep that goes on."""
        self._learnt: set[int] = set()
        """Hosts whose rates have changed since the last batch."""
        self._is_changed = False
        self._is_stopped = False
        self.paragraphs = NewestParagraphs(store)
        self.marks: dict[str, int] = {}
        """How far the URL log was read (crawl/ended_urls.py)."""
        self.policy = Policy(options.watch_least_word_days)
        self.columns = Columns()
        self.groups = Groups(store)
        """What is known of each watched page."""
        self._planned = Planned(url_states.host_states.looks, self.columns, self._look_at)
        url_states.queues.next_look = self._planned.next_at

    # -- it begins and ends

    @property
    def is_on(self) -> bool:
        return self._length_days > 0

    def days(self, now: float) -> float:
        """Days since the watch began."""
        return 0.0 if self._began is None else (now - self._began) / self._day_s

    def time(self, days: float) -> float:
        """Seconds since 1970 at so many *days* since the watch began."""
        return (self._began or 0.0) + days * self._day_s

    def goes_on(self, now: float) -> bool:
        """Whether there may be something to be looked at; while looks are in transit it goes on."""
        return self.is_on and (self.days(now) < self._length_days or bool(self._in_transit))

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what was committed."""
        said = json.loads(meta.get(META, "{}"))
        self._began = said.get("began")
        self.marks = dict(said.get("marks", {}))
        self._budget.restore(said.get("day"))
        if not self.is_on:
            return
        for group, pages in self.groups.stored():
            self.columns.add(pages, host_and_part(group)[1])
        for host, row in self._store.blobs("rate"):
            self.policy.restore(host, row)

    def begin(self, now: float) -> None:
        """The watch is on: if it was never, it begins *now*."""
        if self._began is None:
            self._began = now
            self._budget.begin_day(0)
            self._is_changed = True
        else:
            self._go_on(now)

    def _go_on(self, now: float) -> None:
        """Count on from the latest time that is known, if the clock was ahead when that was noted."""
        self.columns.merge()
        latest = max(self._budget.day, float(self.columns.rows["last"].max(initial=0.0)))
        if self.days(now) < latest:
            self._began = now - latest * self._day_s
            self._is_changed = True

    def stop(self) -> None:
        """Plan nothing more: the crawl is being closed, and the store with it."""
        self._is_stopped = True
        self._planned.clear()

    # -- pages come in

    def take_up(self, pages: Iterable[WatchedPage], first_words: Mapping[int, int], marks: dict[str, int]) -> None:
        """Watch *pages* that have ended; *first_words*: those of what a page newly found gave, by key."""
        if self._is_stopped:
            return
        by_host: defaultdict[int, list[WatchedPage]] = defaultdict(list)
        self.columns.merge()
        for page in pages:
            if self.columns.find(page.key) is None:
                by_host[host_of(page.key)].append(page)
            if page.key in first_words:
                self.policy.learn_first(host_of(page.key), first_words[page.key], 0.0, page.found_at)
                self._learnt |= {0, host_of(page.key)}
        for host, new in by_host.items():
            self.groups.add(host, list({page.key: page for page in new}.values()), self.columns)
        self.columns.merge()
        self.marks = marks
        self._is_changed = True

    # -- what is worth a look

    def step(self, now: float) -> bool:
        """Judge a block of pages, or plan the best when all are judged; returns whether a sweep goes on."""
        if self._is_stopped or not self.is_on or self._began is None or self.days(now) >= self._length_days:
            return False
        days = self.days(now)
        if int(days) > self._budget.day:
            self._budget.begin_day(int(days))
            self._is_changed = True
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
        best = self._sweep.best(min(self.room(days), MOST_PLANNED))
        self._sweep = None
        for host in self._planned.add(best):
            self._schedule.wake(host, now, LAST_RANK)
        return False

    def _is_worth_a_sweep(self, days: float) -> bool:
        room = self.room(days)
        is_last = days % 1 >= 1 - 1 / SWEEPS_A_DAY
        return room >= 1 and (is_last or room * _PAGES_A_LOOK >= self.columns.live or room >= MOST_PLANNED)

    def room(self, days: float) -> int:
        """Looks that may be planned now, by what has passed of the day."""
        planned = len(self._in_transit) + len(self._planned)
        return self._budget.allowed(days, self.columns.live) - planned

    def _is_out_of_reach(self, host_id: int, now: float) -> bool:
        """Whether a host is closed, or is left alone beyond the next sweep since it does not answer."""
        if self._url_states.host_states.is_closed(host_id):
            return True
        host = self._url_states.hosts.live(host_id)
        if host is None:
            return False
        return host.due > now + max(self._day_s / SWEEPS_A_DAY, self._schedule.intervals.of(host))

    # -- looks go out

    def _look_at(self, host: Host, key: int) -> Look:
        at = self.columns.find(key)
        if at is None:
            raise DamageError(f"a look is planned at a page of {host.name} that is not watched.")
        page = self.groups.get(group_id(host.id, int(self.columns.rows["part"][at]))).page(key)
        look = look_at(page, host)
        if look is None:
            raise DamageError(f"the state is damaged: {page.url!r} is watched and no URL.")
        look.paragraphs = self.paragraphs.get(key)
        look.first_seen = self.time(page.found_at)
        return look

    def hand_out(self, look: Look) -> None:
        """*look* leaves for its host."""
        self._planned.take_next(look.host.id)
        self._in_transit[look.key] = look

    def give_back(self, key: int) -> Look | None:
        """The look at this page was not made: it is planned again."""
        look = self.take_back(key)
        if look is not None and not self._is_stopped:
            self._planned.put_back(look)
        return look

    def take_back(self, key: int | None) -> Look | None:
        """The look in transit at the page with this key; the caller must end it."""
        return self._in_transit.pop(key, None) if key is not None else None

    # -- answers come back

    def end_head(self, look: Look, reason: Reason, now: float) -> None:
        """A planned look is over unmade, for *reason*."""
        self._planned.take_next(look.host.id)
        self._url_states.totals["looks_unmade"] += 1
        self._write(look, unmade(look.page, reason, self.days(now)))

    def over(self, look: Look, outcome: Outcome, now: float) -> None:
        """The look was answered by *outcome*: learn from it, and note what is known of the page now."""
        days = self.days(now)
        totals = self._url_states.totals
        totals["looks"] += 1
        if is_answer(look.page, outcome):
            totals["looks_304"] += outcome.status == 304
            totals["looks_new"] += bool(outcome.words or look.found)
            totals["look_words"] += outcome.words
            totals["look_links"] += look.found
            self._learn(look, Found(outcome.words, look.found, look.announced, look.newest_date), days)
        self._write(look, after_look(look.page, outcome, look.found, days))

    def _learn(self, look: Look, found: Found, days: float) -> None:
        at = self.columns.find(look.key)
        if at is None:
            return
        host = look.host.id
        _, found_at, last, _, kind, flags = self.columns.rows[at].item()
        self.policy.learn(Page(host, kind, found_at, last, bool(flags & ANNOUNCED)), found, days)
        self._learnt |= {0, host}

    def _write(self, look: Look, page: WatchedPage) -> None:
        totals = self._url_states.totals
        totals["versions"] += page.version > max(1, look.page.version)
        totals["looks_gone"] += page.state is Standing.GONE
        totals["looks_opted_out"] += page.state is Standing.OPTED_OUT
        at = self.columns.find(page.key)
        if at is not None:
            self.columns.update(at, page)
            self.groups.replace(group_id(look.host.id, int(self.columns.rows["part"][at])), page)

    # -- dates of sitemaps and feeds

    def announce(self, look: Look, key: int, date: float) -> None:
        """The sitemap or feed that *look* is at says that the page with this key changed at *date*."""
        days = self.days(date)
        look.newest_date = max(look.newest_date, days)
        at = self.columns.find(key)
        if at is not None and days > self.columns.rows["last"][at]:
            look.announced += not self.columns.rows["flags"][at] & ANNOUNCED
            self.columns.flag(at, ANNOUNCED, True)

    # -- the store

    @property
    def has_changes(self) -> bool:
        return self._is_changed or bool(self.groups) or bool(self.paragraphs)

    def drain(self) -> tuple[dict[str, dict[int, bytes]], dict[str, str]]:
        """Blobs and meta that the store must learn."""
        if not self.has_changes:
            return {}, {}
        self._is_changed = False
        blobs = {
            "watched": self.groups.drain(),
            "rate": {host: self.policy.packed(host) for host in self._learnt},
            "paragraph": self.paragraphs.drain(),
        }
        self._learnt = set()
        if self._began is None:
            return blobs, {}
        said = {"began": self._began, "day": self._budget.state(), "marks": self.marks, "watched": self.columns.live}
        return blobs, {META: json.dumps(said)}

    def committed(self) -> None:
        """The store has what was drained last."""
        self.groups.committed()
        self.paragraphs.committed()
