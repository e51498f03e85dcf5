"""Looks that are planned, host by host: what is next at each, until it leaves or is dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from spiderling.base.urls import HASH_BITS, MAX_HOST_ID
from spiderling.frontier.hosts.host import Host
from spiderling.frontier.watching.columns import OVER, PLANNED, Columns
from spiderling.frontier.watching.looks import Look


class Planned:
    """Keys of pages in the order in which they are to be looked at; each has the flag PLANNED in *columns*."""

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


def host_of(key: int) -> int:
    """The id of the host of a URL key."""
    return key >> HASH_BITS & MAX_HOST_ID
