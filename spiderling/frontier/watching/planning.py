"""Which looks are made next: the budget of a day, the sweep that finds the best, and those that are planned.

A look is another request for a URL that has ended.  It is no end, and the ledger of URLs knows nothing of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spiderling.base.option_values import parse_watch_requests
from spiderling.base.options import Options
from spiderling.base.urls import canonicalize_again
from spiderling.frontier.hosts import LAST_RANK, Host, QueuedUrl
from spiderling.frontier.url_states import UrlStates
from spiderling.frontier.watching.ended_pages import GONE_DAYS
from spiderling.frontier.watching.pages import ANNOUNCED, MISSED, OVER, PLANNED, Columns, WatchedPage, host_of, hosts_of
from spiderling.frontier.watching.policy import FEED, SITEMAP, Pages, Policy

PAYLOADS = {FEED: b"feed", SITEMAP: b"sitemap 1 50"}
"""Kind -> the mark by which discovery/intake.py knows its file."""


@dataclass(slots=True, eq=False)
class Look(QueuedUrl):
    """A look that is planned or in transit; the page as it was known before."""

    page: WatchedPage = field(kw_only=True)
    paragraphs: bytes | None = None
    """8-byte digests of the paragraphs of its newest version; None: unknown."""
    first_seen: float = 0.0
    """When its first version ended, in seconds since 1970."""
    found: int = 0
    """Links that nobody had found before, as far as the look has come."""
    announced: int = 0
    """Watched pages that it says have changed."""
    newest_date: float = float("-inf")
    """The newest date that it gives to a page, in days since the watch began."""


def look_at(page: WatchedPage, host: Host) -> Look | None:
    """The look at *page* of *host*, of which nothing else is known; None if its address is none any more."""
    target = canonicalize_again(page.url)
    if target is None:
        return None
    payload = PAYLOADS.get(page.kind)
    return Look(page.key, page.url, host, LAST_RANK, target, payload=payload, page=page)


class Budget:
    """How many looks the day that goes on allows, in requests and in words; what a day leaves is lost."""

    def __init__(self, options: Options, url_states: UrlStates) -> None:
        """*url_states* count looks and words."""
        self._requests = parse_watch_requests(options.watch_requests)
        self._words = options.watch_words
        self._url_states = url_states
        self.day = 0
        """Number of the day; the watch begins with 0."""
        self._looks_before = 0
        self._words_before = 0

    def begin_day(self, day: int) -> None:
        """What was looked at and kept until now belongs to the days before *day*."""
        self.day = day
        self._looks_before = self._url_states.totals["looks"]
        self._words_before = self._url_states.totals["words"]

    def allowed(self, days: float, watched: int) -> int:
        """Looks that may still be made by *days* since the watch began.

        *watched*: number of pages, for a budget that is a share of them.
        """
        if self._words and self._url_states.totals["words"] - self._words_before >= self._words:
            return 0
        a_day = self._requests if self._requests >= 1 else self._requests * watched
        due = int(a_day * days + 0.5) - int(a_day * self.day + 0.5)  # so a day may have less than one
        return due - (self._url_states.totals["looks"] - self._looks_before)

    def state(self) -> tuple[int, int, int]:
        """What `restore` takes."""
        return self.day, self._looks_before, self._words_before

    def restore(self, state: Sequence[int] | None) -> None:
        """Take up what was committed, if there is anything."""
        self.day, self._looks_before, self._words_before = state or (0, 0, 0)


MOST_PLANNED = 5_000
"""Looks that one sweep plans (chosen: 480,000 a day)."""
_FIRST = float(np.finfo(np.float64).max)


class Sweep:
    """Judges all watched pages, block by block, as they stand when it begins."""

    def __init__(self, policy: Policy, columns: Columns, is_out_of_reach: Callable[[int], bool]) -> None:
        """*is_out_of_reach*: whether the host of this id is; its pages are not looked at."""
        columns.merge()
        self._policy = policy
        self._is_out_of_reach = is_out_of_reach
        self._blocks = (columns.rows[first:end] for first, end in columns.blocks())
        self._best: list[NDArray[np.float64]] = []
        """(keys, as the floats with their bits; indexes) of pages that are worth a look."""

    def judge_block(self, days: float) -> bool:
        """Judge the next block; returns whether there was one."""
        rows = next(self._blocks, None)
        if rows is not None:
            self._judge(rows, days)
        return rows is not None

    def best(self, number: int) -> list[int]:
        """The keys of the pages that are most worth it, best first."""
        keys: list[int] = np.ascontiguousarray(self._chosen(max(0, number))[0]).view(np.int64).tolist()
        return keys

    def _judge(self, rows: NDArray[np.void], days: float) -> None:
        hosts = hosts_of(rows)
        different, row = np.unique(hosts, return_inverse=True)
        is_out_of_reach = np.array([self._is_out_of_reach(int(host)) for host in different])
        is_candidate = ((rows["flags"] & (PLANNED | OVER)) == 0) & ~is_out_of_reach[row]
        if not is_candidate.any():
            return
        rows = rows[is_candidate]
        index = self._policy.worth(self._policy.tables(different.tolist()), pages_of(rows, row[is_candidate]), days)
        is_missed = (rows["flags"] & MISSED) > 0
        index[is_missed] = np.where(days - rows["last"][is_missed] >= GONE_DAYS, _FIRST, 0.0)
        is_worth = index > 0
        self._best.append(np.array([rows["key"][is_worth].view(np.int64).view(np.float64), index[is_worth]]))
        if sum(part.shape[1] for part in self._best) > 4 * MOST_PLANNED:
            self._best = [self._chosen(MOST_PLANNED)]

    def _chosen(self, number: int) -> NDArray[np.float64]:
        best = np.concatenate(self._best, axis=1) if self._best else np.empty((2, 0))
        return best[:, np.argsort(-best[1], kind="stable")[:number]]


def pages_of(rows: NDArray[np.void], row: NDArray[np.int64]) -> Pages:
    """The columns of *rows*, whose hosts have these rows in Tables."""
    return Pages(
        row,
        rows["kind"].astype(np.int64),
        rows["found_at"].astype(np.float64),
        rows["last"].astype(np.float64),
        (rows["flags"] & ANNOUNCED) > 0,
    )


class Planned:
    """Keys of pages, host by host, in the order of their looks; each has the flag PLANNED in *columns*."""

    def __init__(
        self, by_host: dict[int, deque[int]], columns: Columns, make_look: Callable[[Host, int], Look]
    ) -> None:
        """*by_host*: host id -> keys, which others read (HostStates.looks); *make_look*: of a host and a key."""
        self._by_host = by_host
        self._columns = columns
        self._make_look = make_look
        self._at_hand: dict[int, Look] = {}
        """Host id -> the look that is its next, as it was made."""

    def __len__(self) -> int:
        return sum(map(len, self._by_host.values()))

    def add(self, keys: Iterable[int]) -> set[int]:
        """Plan looks at the pages with these *keys*, unless they are; returns the ids of their hosts."""
        hosts = set()
        for key in keys:
            at = self._columns.find(key)
            if at is not None and not self._columns.rows["flags"][at] & (PLANNED | OVER):
                self._columns.flag(at, PLANNED, True)
                self._by_host.setdefault(host_of(key), deque()).append(key)
                hosts.add(host_of(key))
        return hosts

    def next_at(self, host: Host) -> Look:
        """The next look at *host*, which has one."""
        key = self._by_host[host.id][0]
        look = self._at_hand.get(host.id)
        if look is None or look.key != key or look.host is not host:
            look = self._at_hand[host.id] = self._make_look(host, key)
        return look

    def take_next(self, host_id: int) -> None:
        """The next look at a host is no longer planned."""
        keys = self._by_host[host_id]
        keys.popleft()
        if not keys:
            del self._by_host[host_id]
        self._at_hand.pop(host_id, None)

    def put_back(self, look: Look) -> None:
        """*look* was taken and not made: it is the next again."""
        self._by_host.setdefault(look.host.id, deque()).appendleft(look.key)

    def drop_where(self, is_left_out: Callable[[int], bool]) -> None:
        """Drop the looks at the hosts with ids that are left out; their pages may be planned again."""
        for host_id in [host_id for host_id in self._by_host if is_left_out(host_id)]:
            for key in self._by_host.pop(host_id):
                at = self._columns.find(key)
                if at is not None:
                    self._columns.flag(at, PLANNED, False)
            self._at_hand.pop(host_id, None)

    def clear(self) -> None:
        """Nothing is planned any more."""
        self._by_host.clear()
        self._at_hand.clear()
