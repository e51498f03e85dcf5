"""Whose fault is it that nothing answers: the hosts', or is the network away?

A failure of the network's kind (no name server, no such name, no connection, no answer) is held back, so that it costs
the host and the URL nothing, until something tells whose it was:

  theirs   a request that began after the failure is answered: the network is there, and the host is not
           (after a failure of name servers: a question put later is answered)
  ours     nothing answers any more, hosts that answered before included: the network is away

While the network is away nothing is handed out.  Hosts are probed one at a time, with growing pauses; the first answer
ends it.  When nothing ever answered and none of the names exists, it is neither, and there is nothing to wait for.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

MOST_HOSTS = 20
"""Hosts that fail in a row, if not all at work, from which the network is doubted; chosen: a tenth of a usual list of
seeds, and more than one operator's hosts that go down together."""
DOUBT_S = 10.0
"""Seconds after which it is doubted however few hosts fail; chosen: two intervals of the only host that is left."""
FIRST_PAUSE_S = 1.0
"""Seconds between the first two probes; the pause doubles after each.  Chosen."""
LONGEST_PAUSE_S = 60.0
"""Seconds between two probes at most: the pause before a retry."""
_REMEMBERED = 8
"""Origins that answered lately, and names, that are kept to be probed.  Chosen."""

_META = "reachable"


class Trouble(Enum):
    """How a request failed; the value is what a person reads."""

    NAME_SERVER = "dns"
    NO_SUCH_NAME = "no such name"
    CONNECTION = "connection"
    TIMEOUT = "timeout"


class Network(Enum):
    """What is known of the network."""

    THERE = "there"
    DOUBTED = "doubted"
    """Hosts fail, and one that answered before is to be probed."""
    AWAY = "away"
    UNKNOWN_NAMES = "unknown names"
    """Nothing ever answered, and none of the names exists."""


class _Failure(NamedTuple):
    host: str
    trouble: Trouble
    time: float
    over: Callable[[bool], None]


class Reachability:
    """Failures held back, and what is known of the network; times are the caller's."""

    def __init__(self) -> None:
        self.network = Network.THERE
        self.away_since = 0.0
        self.origins: list[str] = []
        """Origins that answered lately, the last one at the end."""
        self.names: list[str] = []
        """Names for which a name server had an answer lately, the last one at the end."""
        self.has_told = False
        """Whether something was decided on since the last probe began."""
        self.has_answered = False
        """Whether anything ever did in this crawl."""
        self._held: list[_Failure] = []
        self._failing: dict[str, Trouble] = {}
        self._decided: list[tuple[Callable[[bool], None], bool]] = []
        self._back_at = -math.inf
        self._probe_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._probes = 0

    # -- what happens

    def failed(self, host: str, trouble: Trouble, begun: float, now: float, over: Callable[[bool], None]) -> None:
        """What was begun at *begun* failed; ``over(is_theirs)`` is ``decided`` when it is known whose fault it was."""
        if begun < self._back_at:
            self._decided.append((over, False))
            return
        self._held.append(_Failure(host, trouble, now, over))
        self._failing[host] = trouble
        if self.network is Network.DOUBTED and not self._witness():
            self._away(now)  # nobody who answered before can tell whose fault this kind of failure is

    def host_answered(self, origin: str, begun: float, now: float) -> None:
        """A request to *origin* that was begun at *begun* got an answer at *now*, whatever that says."""
        self.has_answered = True
        self.origins = _with_last(self.origins, origin)
        if self._failing:
            self._evidence(begun, now, set(Trouble) - {Trouble.NAME_SERVER})

    def name_answered(self, name: str, begun: float, now: float) -> None:
        """A name server answers the question for *name* that was put at *begun*, whatever that says."""
        self.names = _with_last(self.names, name)
        if self._failing:
            self._evidence(begun, now, {Trouble.NAME_SERVER})

    def _evidence(self, begun: float, now: float, of: set[Trouble]) -> None:
        if self.network is Network.AWAY:
            if of.intersection(self._failing.values()):
                self._back_at = now  # what fails later and was begun before tells nothing
                self.give_up()
            return
        theirs = [failure for failure in self._held if failure.time < begun and failure.trouble in of]
        self._held = [failure for failure in self._held if failure not in theirs]
        self._decided += [(failure.over, True) for failure in theirs]
        self.has_told |= bool(theirs)
        self._failing = {failure.host: failure.trouble for failure in self._held}
        if not self._held:
            self.network = Network.THERE

    def give_up(self) -> None:
        """All that is held back was our fault: the network is there again, or the crawl stops."""
        self._decided += [(failure.over, False) for failure in self._held]
        self._held = []
        self._failing = {}
        self.network = Network.THERE

    def look(self, at_work: int, now: float) -> Network:
        """Judge the network anew, by how many of the *at_work* hosts with URLs fail and for how long."""
        if not self._held or self.network is not Network.THERE:
            return self.network
        waited_s = now - self._held[0].time
        are_all = len(self._failing) >= at_work
        if not (are_all or len(self._failing) >= MOST_HOSTS or waited_s >= DOUBT_S):
            return self.network
        self._probe_at = now
        self._pause_s = FIRST_PAUSE_S
        self._probes = 0
        if self._witness():
            self.network = Network.DOUBTED
        elif self.has_answered or set(self._failing.values()) != {Trouble.NO_SUCH_NAME}:
            self._away(now)
        elif are_all or waited_s >= LONGEST_PAUSE_S:
            self.network = Network.UNKNOWN_NAMES
        return self.network

    def _away(self, now: float) -> None:
        self.network = Network.AWAY
        self.away_since = now
        self._decided += [(failure.over, False) for failure in self._held]
        self._held = []

    # -- probes

    def probe_in(self, now: float) -> float:
        """Seconds until the next probe."""
        return max(0.0, self._probe_at - now)

    def _witness(self) -> str:
        """The origin whose answer would tell whose fault the failures are: the last one that answered; '' for none."""
        if Trouble.NAME_SERVER in self._failing.values():
            return f"http://{self.names[-1]}" if self.names else ""
        return self.origins[-1] if self.origins else ""

    def next_probe(self) -> str:
        """The origin to be probed next: in doubt the one that answered last; then others that did, and hosts that fail.

        There must be one.
        """
        self._probes += 1
        self.has_told = False
        if self.network is Network.DOUBTED:
            return self._witness()
        names = self.names if Trouble.NAME_SERVER in self._failing.values() else []
        hosts = (*reversed(names), *list(self._failing)[:_REMEMBERED])
        origins = list(dict.fromkeys([*reversed(self.origins), *(f"http://{host}" for host in hosts)]))
        return origins[(self._probes - 1) % len(origins)]

    def probed(self, now: float) -> None:
        """The last probe is over; unless it told something, it got no answer."""
        if self.has_told:
            self._probe_at = now
        elif self.network is not Network.THERE:
            self._doubt_confirmed(now)

    def forget(self, origin: str, now: float) -> None:
        """*origin* must not be probed."""
        self.origins = [known for known in self.origins if known != origin]
        self.names = [name for name in self.names if f"http://{name}" != origin]
        if self.network is Network.DOUBTED and self._witness():
            self._probe_at = now
        else:
            self._doubt_confirmed(now)

    def _doubt_confirmed(self, now: float) -> None:
        if self.network is Network.DOUBTED:
            self._away(now)
        self.probe_later(now)

    def probe_later(self, now: float) -> None:
        """The last probe was made, or has to wait for the host's interval; in doubt, its next page tells as well."""
        self._probe_at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    # -- what is known

    @property
    def is_calm(self) -> bool:
        """Whether nothing is held back and nothing is to be told."""
        return not (self._held or self._decided or self.network is not Network.THERE)

    @property
    def is_away(self) -> bool:
        """Whether nothing is to be handed out."""
        return self.network in (Network.AWAY, Network.UNKNOWN_NAMES)

    def state(self) -> dict[str, str]:
        """What survives the process."""
        return {_META: json.dumps([self.origins, self.names])} if self.origins or self.names else {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what ``state`` gave."""
        self.origins, self.names = json.loads(meta.get(_META, "[[], []]"))
        self.has_answered = bool(self.origins)

    def decided(self) -> list[tuple[Callable[[bool], None], bool]]:
        """What is not held back any more, with whether it was the host's fault; each is given out once."""
        decided = self._decided
        self._decided = []
        return decided

    def fails(self, host: str) -> bool:
        """Whether a request to *host* failed and nothing has been decided on it."""
        return host in self._failing

    def summary(self, at_work: int) -> str:
        """For a person: how many of the hosts at work fail, and how; '' when the network is there."""
        if self.network in (Network.THERE, Network.DOUBTED):
            return ""
        trouble = Counter(self._failing.values()).most_common(1)[0][0]
        return f"{len(self._failing):,} of {max(at_work, len(self._failing)):,} hosts fail: {trouble.value}"

    def failing(self, most: int) -> str:
        """The names of at most *most* hosts that fail."""
        names = list(self._failing)
        return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _with_last(known: list[str], last: str) -> list[str]:
    """*known* with *last* at its end, not too long."""
    return known if known and known[-1] == last else [*(other for other in known if other != last), last][-_REMEMBERED:]
