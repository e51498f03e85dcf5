"""Decides whether a failure is the fault of the host, or of our own network, which may be away.

A failure that both may cause (no name server, no such name, no connection, no answer) is held: it does not count
against host and URL until the fault is known:

  theirs   a request that began after the failure is answered, so the network works
           (for a failure of name servers: a query that began later; "no such name" is such an answer only once
           something was found, since routers without a network say it too)
  ours     nothing answers, not even hosts that answered before: the network is away

While the network is away nothing is handed out.  Hosts are probed one at a time, with growing pauses; the first answer
ends that.  If no host has ever answered and no name exists (UNKNOWN_NAMES), waiting is useless.

A shard of a crawl may have few hosts, and none that ever answered.  As long as other shards get answers, its failures
are theirs.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from spiderling.frontier.admission import Admission
from spiderling.frontier.hosts import Host, HostState
from spiderling.frontier.intervals import SLOT_PAUSE_S
from spiderling.frontier.schedule import Schedule
from spiderling.frontier.workbench import LONG_S

MAX_HOSTS = 20
"""Failing hosts from which on the network is doubted; if all hosts at work fail, fewer are enough.  Chosen: a tenth of
a usual list of seeds, and more than the hosts of one operator that go down together."""
DOUBT_S = 10.0
"""Seconds after the first failure when it is doubted however few hosts fail; chosen: two intervals of a host."""
FIRST_PAUSE_S = 1.0  # seconds between the first two probes; the pause doubles after each; chosen
LONGEST_PAUSE_S = 60.0  # the most seconds between two probes; chosen
_REMEMBERED = 8  # the most origins, the most names and the most failing hosts that may be probed (chosen)

_META = "reachable"


class Trouble(Enum):
    """How a request failed; the value is what a person reads."""

    NAME_SERVER = "dns"
    NO_SUCH_NAME = "no such name"
    CONNECTION = "connection"
    TIMEOUT = "timeout"


class NetworkState(Enum):
    """What is known of the network."""

    THERE = "there"
    DOUBTED = "doubted"  # hosts fail, and one that answered before is to be probed
    AWAY = "away"
    UNKNOWN_NAMES = "unknown names"  # nothing ever answered, and none of the names exists


class _Failure(NamedTuple):
    host: str
    trouble: Trouble
    time: float
    over: Callable[[bool], None]


class Reachability:
    """Failures held back, and what is known of the network; times are the caller's."""

    def __init__(self) -> None:
        self.network = NetworkState.THERE
        self.away_since = 0.0
        self.origins: list[str] = []  # origins that answered lately, the last one at the end
        self.names: list[str] = []
        """Names for which a name server had an answer lately that proves something, the last one at the end."""
        self.has_told = False
        """Whether a held failure was decided, or a name turned out not to exist, since the last probe began."""
        self.has_answered = False  # whether any host has answered in this crawl
        self._has_found = False
        """Whether a host has answered, or a name has an address, since the start and since the network was away."""
        self._others_at = -math.inf  # when it was last known that other shards of the crawl get answers
        self._held: list[_Failure] = []
        self._failing: dict[str, Trouble] = {}
        self._decided: list[tuple[Callable[[bool], None], bool]] = []
        self._back_at = -math.inf
        self._probe_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._probes = 0

    # -- what happens

    def failed(self, host: str, trouble: Trouble, begun: float, now: float, over: Callable[[bool], None]) -> None:
        """Hold a failure of what began at *begun*; ``decided`` returns *over* when the fault is known."""
        if begun < self._back_at:
            self._decided.append((over, False))
            return
        self._held.append(_Failure(host, trouble, now, over))
        self._failing[host] = trouble
        if self.network is NetworkState.DOUBTED and not self._witness():
            self._away(now)  # nothing that answered before can be probed for this kind of failure

    def host_answered(self, origin: str, begun: float, now: float) -> None:
        """A request to *origin* that was begun at *begun* got an answer at *now*, with any status."""
        self.has_answered = self._has_found = True
        if self.origins[-1:] != [origin]:
            self.origins = _with_last(self.origins, origin)
        if self._failing:
            self._evidence(begun, now, set(Trouble) - {Trouble.NAME_SERVER})

    def name_answered(self, name: str, begun: float, now: float, exists: bool = True) -> None:
        """A name server has answered the query for *name* that began at *begun*, if only that there is no such name."""
        self._has_found |= exists
        if self._has_found:
            if self.names[-1:] != [name]:
                self.names = _with_last(self.names, name)
            if self._failing:
                self._evidence(begun, now, {Trouble.NAME_SERVER})
        elif self.network is NetworkState.AWAY and self._failing.get(name) is Trouble.NAME_SERVER:
            self._failing[name] = Trouble.NO_SUCH_NAME
            self.has_told = True

    def others_answered(self, now: float) -> None:
        """Other shards of the crawl have got answers lately, or have nothing left to ask for."""
        self._others_at = now
        if not self.origins:  # none answered, or all that did are of other shards now
            self._evidence(now, now, set(Trouble) - {Trouble.NAME_SERVER})

    def _evidence(self, begun: float, now: float, of: set[Trouble]) -> None:
        if self.network is NetworkState.AWAY:
            if of.intersection(self._failing.values()):
                self._back_at = now  # a failure of what began before tells nothing
                self.give_up()
            return
        theirs = [failure for failure in self._held if failure.time < begun and failure.trouble in of]
        self._held = [failure for failure in self._held if failure not in theirs]
        self._decided += [(failure.over, True) for failure in theirs]
        self.has_told |= bool(theirs)
        self._failing = {failure.host: failure.trouble for failure in self._held}
        if not (self._held and self._witness()):
            self.network = NetworkState.THERE  # for what is still held `look` judges anew

    def give_up(self) -> None:
        """Decide that all held failures were our fault: the network is there again, or the crawl stops."""
        self._decided += [(failure.over, False) for failure in self._held]
        self._held = []
        self._failing = {}
        self.network = NetworkState.THERE

    def look(self, at_work: int, now: float) -> NetworkState:
        """Judge the network anew, by how many of the *at_work* hosts with URLs fail and for how long."""
        if self.network not in (NetworkState.THERE, NetworkState.AWAY) or not self._failing:
            return self.network
        is_new = not (self.origins or Trouble.NAME_SERVER in self._failing.values())
        if is_new and now - self._others_at < LONGEST_PAUSE_S:
            return self.network  # what other shards get will tell
        waited_s = now - (self._held[0].time if self.network is NetworkState.THERE else self.away_since)
        are_all = len(self._failing) >= at_work
        only_names = not self.has_answered and set(self._failing.values()) == {Trouble.NO_SUCH_NAME}
        if only_names and (are_all or (waited_s >= LONGEST_PAUSE_S and not self._has_found)):
            self.network = NetworkState.UNKNOWN_NAMES
        elif only_names:
            # many old names at a start are no doubt, and where one was found the others fail by themselves
            is_doubted = waited_s >= DOUBT_S and not self._has_found
        else:
            is_doubted = are_all or len(self._failing) >= MAX_HOSTS or waited_s >= DOUBT_S
        if self.network is NetworkState.THERE and is_doubted:
            self._probe_at = now
            self._pause_s = FIRST_PAUSE_S
            self._probes = 0
            if self._witness():
                self.network = NetworkState.DOUBTED
            else:
                self._away(now)
        return self.network

    def _away(self, now: float) -> None:
        self.network = NetworkState.AWAY
        self.away_since = now
        self._has_found = False
        self._decided += [(failure.over, False) for failure in self._held]
        self._held = []

    # -- probes

    def probe_in(self, now: float) -> float:
        return max(0.0, self._probe_at - now)

    def _witness(self) -> str:
        """The origin to probe while in doubt: the last that answered, or whose name was resolved; '' for none."""
        if Trouble.NAME_SERVER in self._failing.values():
            return f"http://{self.names[-1]}" if self.names else ""
        return self.origins[-1] if self.origins else ""

    def next_probe(self) -> str:
        """The origin to probe next: in doubt the ``_witness``; later any that answered, and hosts that fail.

        If none has ever answered, also hosts with an address: they may not have been asked, and all that were be dead.

        There must be one.  After a name that is known not to exist now, the next name that failed otherwise has its
        turn: if none of them exists, waiting is useless.
        """
        self._probes += 1
        has_told, self.has_told = self.has_told, False
        if self.network is NetworkState.DOUBTED:
            return self._witness()
        are_names_due = not self.has_answered or Trouble.NAME_SERVER in self._failing.values()
        names = self.names if are_names_due else []
        failing = sorted(self._failing, key=lambda host: self._failing[host] is Trouble.NO_SUCH_NAME)
        if has_told:
            return f"http://{failing[0]}"
        hosts = (*reversed(names), *failing[:_REMEMBERED])
        origins = list(dict.fromkeys([*reversed(self.origins), *(f"http://{host}" for host in hosts)]))
        return origins[(self._probes - 1) % len(origins)]

    def probed(self, now: float) -> None:
        """The last probe is over; it got no answer unless a failure was decided meanwhile."""
        if self.has_told:
            self._probe_at = now
        elif self.network is not NetworkState.THERE:
            self._doubt_confirmed(now)

    def forget(self, origin: str, now: float) -> None:
        """Drop *origin*, which must not be probed."""
        self.origins = [known for known in self.origins if known != origin]
        self.names = [name for name in self.names if f"http://{name}" != origin]
        if self.network is NetworkState.DOUBTED and self._witness():
            self._probe_at = now
        else:
            self._doubt_confirmed(now)

    def _doubt_confirmed(self, now: float) -> None:
        if self.network is NetworkState.DOUBTED:
            self._away(now)
        self.probe_later(now)

    def probe_later(self, now: float) -> None:
        """Schedule the next probe after a pause, which doubles each time."""
        self._probe_at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    # -- what is known

    @property
    def is_calm(self) -> bool:
        """Whether no failure is held or waits to be told, and the network is there."""
        return not (self._held or self._decided or self.network is not NetworkState.THERE)

    @property
    def is_away(self) -> bool:
        """Whether no request may be handed out."""
        return self.network in (NetworkState.AWAY, NetworkState.UNKNOWN_NAMES)

    def state(self) -> dict[str, str]:
        """What survives the process."""
        return {_META: json.dumps([self.origins, self.names])} if self.origins or self.names else {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what ``state`` gave."""
        self.origins, self.names = json.loads(meta.get(_META, "[[], []]"))
        self.has_answered = bool(self.origins)

    def decided(self) -> list[tuple[Callable[[bool], None], bool]]:
        """(*over*, whether it was the host's fault) of each failure that was decided since the last call."""
        decided = self._decided
        self._decided = []
        return decided

    def fails(self, host: str) -> bool:
        """Whether *host* is among the hosts that fail now."""
        return host in self._failing

    def summary(self, at_work: int) -> str:
        """A message for the user: how many of the hosts at work fail, and how; '' unless the network is away."""
        if self.network in (NetworkState.THERE, NetworkState.DOUBTED):
            return ""
        trouble = Counter(self._failing.values()).most_common(1)[0][0]
        return f"{len(self._failing):,} of {max(at_work, len(self._failing)):,} hosts fail: {trouble.value}"

    def failing(self, most: int) -> str:
        """The names of at most *most* hosts that fail."""
        names = list(self._failing)
        return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _with_last(known: list[str], last: str) -> list[str]:
    """*known* with *last* moved or added to the end; _REMEMBERED entries at most."""
    return [*(other for other in known if other != last), last][-_REMEMBERED:]


class Probes:
    """Requests that ask whether a host answers, while the network seems to be away.

    A probe keeps both intervals, and is the host's one request in transit.
    """

    def __init__(self, admission: Admission, schedule: Schedule) -> None:
        self._admission = admission
        self._schedule = schedule
        self._intervals = schedule.intervals

    def may_ask(self, host: Host) -> bool:
        """Whether *host* may be probed; it may be retired, but not blocked, forbidden or moved, nor refuse us."""
        left_alone = (HostState.BLOCKED, HostState.FORBIDDEN, HostState.REFUSED, HostState.MOVED)
        return host.state not in left_alone and not self._admission.is_blocked(host.name)

    def due_in(self, host: Host, address: str, now: float) -> float | None:
        """Seconds until *host* may be probed at *address*; None if it is in transit or not due within a minute."""
        rested = self._intervals.rested(host)
        if host.in_transit or rested > now + LONG_S:
            return None
        due = max(rested, self._intervals.earliest_start(host, address, now))
        if due == math.inf:
            return SLOT_PAUSE_S
        return None if due > now + LONG_S else max(0.0, due - now)

    def begin(self, host: Host, address: str, now: float) -> None:
        """A probe of *host* begins; until ``end`` it is the host's request in transit."""
        self._schedule.workbench.remove(host)
        host.in_transit += 1
        self._intervals.permitted(host, address, now)

    def started(self, host: Host, address: str, now: float) -> None:
        """The connection for the probe is being opened: both intervals begin at *now*."""
        self._intervals.started(host, address, now)

    def end(self, host: Host, now: float) -> None:
        """The probe is over."""
        self._schedule.release(host, now)
