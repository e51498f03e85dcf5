"""The licences by RSL that robots.txt files and pages name: which must be fetched next, and what they say of a URL.

A licence file is known by its address, once for all who name it.  One that cannot be had has unknown terms.
"""

from __future__ import annotations

import math
from functools import lru_cache

from spiderling.base.opt_outs import TRAINING, Signal, Statement
from spiderling.base.rsl import UNKNOWN
from spiderling.base.urls import canonicalize, canonicalize_again
from spiderling.frontier.known_files import KnownFiles
from spiderling.frontier.site_files import RobotsTxt, SiteFile

MAX_ADDRESS_CHARS = 2000
"""Characters of the address of a licence; a longer one counts as none (chosen)."""
GRACE_S = 3600.0
"""Seconds for which a stale licence counts for the page that names it; it may grow stale while the page is fetched
(chosen)."""

MAX_WAITING = 10_000
"""Pages that wait for their licences, of which that is remembered (chosen)."""


class Licences:
    """Licences by their addresses; of an origin those that its robots.txt names, and those that its pages wait for."""

    def __init__(self, files: KnownFiles) -> None:
        self._files = files
        self._named: dict[str, set[str]] = {}
        """Origin -> addresses that its pages name, to be fetched before further pages."""
        self._waiting: set[str] = set()
        """Pages that are to be fetched again behind their licences."""

    def of(self, origin: str) -> list[str]:
        """The addresses that the robots.txt of *origin* names; '' for one that is no address."""
        rules = self._files.rules(origin, SiteFile.ROBOTS)
        named: list[str] = rules.licences if isinstance(rules, RobotsTxt) else []
        return [licence_at(origin, address) for address in named]

    def missing(self, origin: str, now: float) -> str | None:
        """The address of the licence to be fetched next for *origin*; None if all are known."""
        for address in self.of(origin):
            if address and not self.knows(address, now):
                return address
        for address in self._named.get(origin, ()):
            if not self.knows(address, now, GRACE_S):
                return address
        self._named.pop(origin, None)
        return None

    def expire_at(self, origin: str) -> float:
        """When the first licence that the robots.txt of *origin* names has to be fetched again."""
        records = [self._files.find(address, SiteFile.LICENCE) for address in self.of(origin)]
        return min((record.expires for record in records if record is not None), default=math.inf)

    def knows(self, address: str, now: float, grace_s: float = 0.0) -> bool:
        """Whether the licence at *address*, or that it cannot be had, is known, and stale for *grace_s* at most."""
        record = self._files.find(address, SiteFile.LICENCE)
        return record is not None and (
            self._files.is_current(record, now) or record.expires <= now < record.expires + grace_s
        )

    def of_page(self, page: str, addresses: list[str], now: float) -> list[Statement] | None:
        """What the licences that the URL *page* names, at *addresses*, say of it; None if one has to be fetched first.

        After None the page is to be fetched again, behind its licences.  A page gets None only once: if it then names a
        licence that is again not known, that one has unknown terms.  So a page that names another one at each visit is
        fetched twice, not for ever.
        """
        target = canonicalize_again(page)
        origin, path = (target.origin, target.path) if target is not None else ("", "/")
        licences = [licence_at(origin, address) for address in addresses]
        unknown = {address for address in licences if address and not self.knows(address, now, GRACE_S)}
        if unknown and page not in self._waiting:
            if len(self._waiting) >= MAX_WAITING:
                self._waiting.clear()
            self._waiting.add(page)
            self._named.setdefault(origin, set()).update(unknown)
            self._files.outdate(origin)
            return None
        self._waiting.discard(page)
        return [said for address in licences for said in self.statements(address, page, path)]

    def statements(self, address: str, url: str, path: str) -> list[Statement]:
        """What the licence at *address* says of *url*; unknown terms if it could not be had, or *address* is ''."""
        rules = self._files.rules(address, SiteFile.LICENCE) if address else None
        if rules is None:
            return [Statement(Signal.RSL, f"{UNKNOWN}={address[:300]}" if address else UNKNOWN, TRAINING)]
        return rules.statements(url, path)


@lru_cache(maxsize=4096)
def licence_at(origin: str, address: str) -> str:
    """The canonical form of the *address* of a licence as *origin* names it; '' if it is none."""
    target = canonicalize(address if "://" in address else f"{origin}/{address.lstrip('/')}")
    return target.url if target is not None and 0 < len(address) <= MAX_ADDRESS_CHARS else ""
