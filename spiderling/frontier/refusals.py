"""Which hosts refuse us, and when their robots.txt is asked for again.

A host *refuses* when its robots.txt answers 401, 402, 403, 451 or with a challenge, or when IN_A_ROW answers in a row
do, on different paths.  Then nothing of it is fetched.  After a pause its robots.txt alone is tried; if that does not
refuse, its URLs wait again.  Each further refusal makes the pause longer, until a page is given.

RFC 9309, 2.3.1.3, lets a crawler take a robots.txt of status 401 or 403 for none, and fetch everything.  But who shuts
a crawler out of the file in which he could allow something has not allowed anything.
"""

from __future__ import annotations

from collections import OrderedDict

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, origins_of
from spiderling.frontier.hosts import Host
from spiderling.frontier.known_files import RobotsRecord, RobotsStatus
from spiderling.frontier.robots import REFUSING, Robots
from spiderling.frontier.storage.protocol import ConsentRow

IN_A_ROW = 5
"""Refusing answers in a row on different paths after which a host refuses (chosen: one part of a site may need a
password)."""
PAUSES_S = (86_400.0, 604_800.0, 2_592_000.0)
"""Seconds until robots.txt is tried again: a day, a week, then every 30 days (chosen)."""
_MAX_COUNTED = 20_000
"""Hosts whose refusing answers are counted at once, some 500 bytes each; those that refused longest ago are left out.
Chosen."""


class Refusals:
    """Counts refusing answers in memory; what a refusal leads to is kept as a record under the host's name."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots
        self._paths: OrderedDict[int, set[str]] = OrderedDict()
        """Host id -> paths of its refusing answers in a row."""
        self._retried: set[int] = set()
        """Hosts that were reopened and have given no page since."""

    def page_answered(self, host: Host, target: CanonicalUrl, outcome: Outcome, now: float) -> bool:
        """Count the answer to a page's request; returns whether *host* refuses from now on."""
        if host.last_start < 0:
            return False  # nothing was asked: the page is an archive's
        if outcome.status not in REFUSING and outcome.reason is not Reason.CHALLENGED:
            if outcome.is_judged and (self._paths or self._retried):
                self._paths.pop(host.id, None)
                self._forgive(host)
            return False
        paths = self._paths.setdefault(host.id, set())
        self._paths.move_to_end(host.id)
        paths.add(target.path.partition("?")[0])
        if len(paths) < IN_A_ROW:
            if len(self._paths) > _MAX_COUNTED:
                self._paths.popitem(last=False)
            return False
        answer = f"{outcome.status} {outcome.detail}".strip()
        said = ConsentRow(target.origin, "/", answer, "", now, now, f"refuses {IN_A_ROW} pages in a row")
        self._robots.files.ledger.append(said)
        return True

    def begin(self, host: Host, now: float) -> float:
        """*host* refuses: note when its robots.txt is to be tried again; returns the seconds until then."""
        former = self._robots.files.records.find(host.name)
        times = 1 + (former.failures if former else 0)
        pause = PAUSES_S[min(times, len(PAUSES_S)) - 1]
        self._robots.files.records.put(host.name, RobotsRecord(RobotsStatus.REFUSED, now, now + pause, times))
        self._paths.pop(host.id, None)
        return pause

    def until(self, name: str) -> float:
        """When the robots.txt of the host *name*, which refuses, is to be tried again."""
        record = self._robots.files.records.find(name)
        return record.expires if record else 0.0

    def retry(self, host: Host, now: float) -> None:
        """*host* is reopened: its robots.txt comes first, whatever is known of it."""
        self._retried.add(host.id)
        for origin in origins_of(host.name):
            self._robots.expire(origin, now)

    def _forgive(self, host: Host) -> None:
        """*host* has given a page again: its next refusal begins with the shortest pause."""
        if host.id in self._retried:
            self._retried.discard(host.id)
            self._robots.files.records.put(host.name, RobotsRecord(RobotsStatus.NO_RULES, 0.0, 0.0))
