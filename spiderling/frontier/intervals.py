"""When a host and an address may be asked again: the intervals between the starts of requests.

A request passes three moments, each with a method here.  At each of them both intervals, that of the host and that of
the address, begin again, and the last one counts in the end:

- ``handed_out``, so that no other request to host or address is handed out meanwhile;
- ``permitted``, at the last gate before the connection;
- ``started``, when the packet that opens the connection, or a request over a kept one, was just sent
  (`ConnectTarget` in fetch/client.py); host and address are due one interval later.

A host's own answers slow the crawl of it down beyond that.  After a slow answer the host rests for ``delay_factor``
times the answer's time, at most MAX_SLOWDOWN_S (Heritrix's DispositionProcessor: 5 times, at most 30 s, at least
3 s; ours differs in that the intervals between starts are the lower bound).  A 429 or 503 doubles the host's interval,
and every other answer takes a tenth off again.

If other shards may ask the address too, a request needs a slot besides: a start that is reserved before it is made.
All shards of a crawl reserve them in one place (cluster/slots.py), so that no two starts at an address are closer than
its interval.  A slot is for one request and lasts for a moment; who comes too late needs another one.  The next request
is handed out while this one waits for its slot, so that it can reserve its own in time; the last gate holds the
interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from spiderling.base.options import Options
from spiderling.frontier.hosts import Host
from spiderling.frontier.workbench import Workbench

RETRY_DELAY_S = 60.0  # pause of a host before the first further attempt; doubles each time; chosen
MAX_PAUSE_S = 3600.0  # longest pause in seconds that Retry-After or a failure can cause; chosen
MAX_SLOWDOWN_S = 30.0
"""Longest pause after a slow answer, and longest interval of a host that is busy, in seconds (Heritrix: 30)."""
BUSY_STATUSES = frozenset({429, 503})
_SLOWER = 2.0  # factor on a host's interval for each answer that says that it is busy; chosen: as TCP backs off
_FASTER = 0.9  # the same for every other answer; chosen
_MAX_SLOWDOWN = 1024.0  # largest product of these factors: ten busy answers in a row; chosen
LONGEST_S = 2.0  # seconds for which a slot is open at most (chosen: Redis may be a slow network away)
AHEAD_S = 5.0
"""Seconds ahead of which no slot is wanted; chosen: none is given away further ahead, and an interval may change."""
SLOT_PAUSE_S = 0.02
"""Seconds until a request that came too late for its slot looks for another.  Chosen: half of the time for which a slot
is open (0.04 s, cluster/slots.py), else each new one could be over when it looks, for ever."""


class Intervals:
    """The intervals of one crawl, which may be changed while it runs, and when each begins to count."""

    slots: Slots | None = None  # the starts that are reserved, if the crawl has other shards

    def __init__(self, options: Options, workbench: Workbench) -> None:
        self.host_s = options.host_interval_s  # seconds between the starts of two requests to one host, at least
        self.ip_s = options.ip_interval_s  # seconds between the starts of two requests to one address
        self._workbench = workbench
        self._delay_factor = options.delay_factor
        self._restored_at = -math.inf
        self._known_at = -math.inf  # when the process started, if it knew hosts then

    def of(self, host: Host) -> float:
        """Seconds between the starts of two requests to *host*."""
        interval_s = max(self.host_s, host.crawl_delay_s)
        return max(interval_s, min(interval_s * host.slowdown, MAX_SLOWDOWN_S))

    # -- when a host is due

    def begin_anew(self, now: float, knows_hosts: bool) -> None:
        """The process starts at *now*: no host, known or new, is due before the intervals are over."""
        self._restored_at = now
        if knows_hosts:
            self._known_at = now

    def due(self, host: Host, now: float) -> float:
        """When *host*, which has no place, is due: at most the longest pause after *now*.

        Its row may say later, if it was written while the clock was ahead; it does not count the interval.
        """
        latest = now + max(MAX_PAUSE_S, self.of(host))
        host.quiet_until = min(host.quiet_until, latest)
        host.due = max(min(host.due, latest), self._interval_ends(host))
        return host.due

    def rested(self, host: Host) -> float:
        """When *host*, which may have no place, is due: at most the longest pause after its last start, or ours."""
        return min(host.due, max(host.last_start, self._restored_at) + MAX_PAUSE_S)

    def hasten(self, host: Host) -> None:
        """The intervals have become shorter: *host* waits no longer than they, or it itself, ask for."""
        host.due = min(host.due, max(host.quiet_until, self._interval_ends(host)))

    def _interval_ends(self, host: Host) -> float:
        begun = max(host.last_start, self._restored_at)
        return max(begun + self.of(host), self._known_at + max(self.host_s, self.ip_s))

    # -- the request

    def handed_out(self, host: Host, address: str, now: float) -> None:
        """A request to *host* at *address* is handed out: neither is due again before its interval is over."""
        self._workbench.postpone(address, now + self.ip_s)
        host.due = max(now + self.of(host), host.quiet_until)

    def earliest_start(self, host: Host, address: str, now: float, goes_on: bool = False) -> float:
        """When the next request to *host* at *address* may start; inf: not before a slot is granted.

        A visit *goes on* at once, unless another host's request to the address has come between.
        """
        entry = self._workbench.address(address)
        if not goes_on:
            due = max(entry.last_permitted + self.ip_s, self._interval_ends(host))
        elif entry.opened_by == host.id and entry.last_permitted <= entry.last_started:
            due = now
        else:
            due = entry.last_permitted + self.ip_s
        return due if self.slots is None else self.slots.opens(host.id, address, due, now)

    def slot_granted(self, wanted: SlotRequest, opens: float, closes: float) -> None:
        """The start that was *wanted* may be made from *opens* to *closes*."""
        if self.slots is not None:
            self.slots.grant(wanted, opens, closes)
            self._workbench.postpone(wanted.address, opens)

    def permitted(self, host: Host, address: str, now: float) -> None:
        """The connection may be opened; until it is, both intervals count from *now*."""
        host.last_start = now
        self.keep(host)
        self._workbench.address(address).last_permitted = now
        if self.slots is None:
            self._workbench.postpone(address, now + self.ip_s)

    def connect_in(self, host: Host, address: str, now: float, goes_on: bool = False) -> float:
        """Seconds until a permitted request may start; above 0 when an earlier connection was opened late."""
        if self.slots is not None and (opens := self.slots.opens(host.id, address, now, now)) > now:
            return min(opens - now, SLOT_PAUSE_S)
        entry = self._workbench.address(address)
        if goes_on and entry.opened_by == host.id:
            return 0.0
        return max(0.0, entry.last_started + self.ip_s - now)

    def started(self, host: Host, address: str, now: float) -> None:
        """The connection is being opened, or used again; both intervals count from *now*."""
        self.permitted(host, address, now)
        entry = self._workbench.address(address)
        entry.last_started = now
        entry.opened_by = host.id

    # -- the answer

    def answered(self, host: Host, now: float) -> None:
        """The answer to the request in transit is complete, or will not come: a slow host rests for longer.

        The rests for the files of one visit add up.
        """
        unspent_s = max(0.0, host.quiet_until - host.last_start)
        rest_s = min(self._delay_factor * (now - host.last_start), MAX_SLOWDOWN_S)
        host.postpone(now + unspent_s + rest_s)

    def note_status(self, host: Host, status: int, quiet_until: float = 0.0) -> None:
        """Take in the status of an answer: a busy host's interval grows from its last start on.

        0 means that no answer came, which tells nothing.
        *quiet_until*: the time before which the host asked not to be asked again.
        """
        if status in BUSY_STATUSES:
            host.slowdown = min(host.slowdown * _SLOWER, _MAX_SLOWDOWN)
        elif status:
            host.slowdown = max(host.slowdown * _FASTER, 1.0)
        self.keep(host)
        host.postpone(quiet_until)

    def keep(self, host: Host) -> None:
        """The interval of *host* may have grown: it is not due before that is over."""
        host.due = max(host.due, host.last_start + self.of(host))

    def released(self, host: Host) -> None:
        """The request in transit is over, or was not made."""
        if self.slots is not None:
            self.slots.drop(host.id)

    def forget_idle(self, now: float) -> None:
        """Forget the addresses without hosts whose interval is over."""
        self._workbench.forget_idle(now if self.slots is None else now - self.ip_s - LONGEST_S)


class SlotRequest(NamedTuple):
    """A start that is to be reserved."""

    host_id: int
    address: str
    after: float  # it may not be earlier


class Slots:
    """The slots of the requests of one shard, at most one for each host; times are the caller's."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """*wake* is called when a slot is wanted."""
        self._wake = wake
        self._wanted: list[SlotRequest] = []
        self._asked: dict[int, str] = {}  # host -> address of its next request, for which a slot is wanted
        self._held: dict[int, tuple[str, float, float]] = {}  # host -> (address, begin, end) of its slot

    def opens(self, host_id: int, address: str, due: float, now: float) -> float:
        """When the next request to the host may start at *address*, *due* at the earliest; inf: not known yet."""
        held_at, opens, closes = self._held.get(host_id, ("", 0.0, 0.0))
        if held_at == address and max(due, now) <= closes:
            return max(due, opens)
        if due > now + AHEAD_S:
            return due
        if self._asked.get(host_id) != address:
            self._asked[host_id] = address
            self._wanted.append(SlotRequest(host_id, address, due))
            self._wake()
        return math.inf

    def take_wanted(self) -> list[SlotRequest]:
        """The slots to be reserved now; each is given out once."""
        wanted = self._wanted
        self._wanted = []
        return wanted

    def grant(self, wanted: SlotRequest, opens: float, closes: float) -> None:
        """The request for which a slot was *wanted* may start from *opens* to *closes*, in the shard's own time."""
        if self._asked.get(wanted.host_id) == wanted.address:
            del self._asked[wanted.host_id]
            self._held[wanted.host_id] = wanted.address, opens, closes

    def drop(self, host_id: int) -> None:
        """The request to the host is over, or was not made."""
        self._asked.pop(host_id, None)
        self._held.pop(host_id, None)

    def forget(self) -> None:
        """Use none of the slots that are held: the clocks may have changed."""
        self._held.clear()
