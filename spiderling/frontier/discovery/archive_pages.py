"""Pages that come without a request, from an archive: their URLs are judged and accounted for as if they were fetched.

A URL is accounted for when its page ends, and not before: after a kill, a page that was in work counts as never
read.  Hosts get no turn and wait for nothing; they may be closed (blocked, retired) as in a crawl.
"""

from __future__ import annotations

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize, url_key
from spiderling.frontier.discovery.core import Core, Fetch
from spiderling.frontier.hosts.host import CLOSED_STATES, QueuedUrl
from spiderling.frontier.hosts.ranks import SEED_RANK


class ArchivePages:
    """``begin`` when a page has been read, ``enter`` right before it is reported."""

    def __init__(self, core: Core) -> None:
        self._url_states = core.url_states
        self._admission = core.admission
        self._robots = core.robots
        self._in_work: dict[int, QueuedUrl] = {}

    def unwanted(self, target: CanonicalUrl) -> Reason | None:
        """Why no URL like *target* is taken, by its form and host; nothing is changed, so any thread may ask."""
        return self._admission.unwanted(target)

    def refuse(self, reason: Reason) -> None:
        """Count what is no page, or not wanted."""
        self._admission.refuse(reason)

    def robots_txt(self, url: str, status: int, body: bytes, now: float) -> None:
        """The robots.txt that an archive holds: it counts for the pages that come after it, however old it gets."""
        target = canonicalize(url)
        if target is not None:
            self._robots.note_answer(target.origin, status, body, now)

    def begin(self, url: str, distance: int = 0) -> Fetch | Reason:
        """A page at the canonical *url* is in work; or why it is not: the first one at a URL counts.

        *distance*: that of its host if it is a new one.
        A URL whose host is closed, or that robots.txt keeps us out of, ends here.
        """
        target = canonicalize(url)
        if target is None:
            return self._admission.refuse(Reason.BAD_URL)
        host = self._admission.host(target.host, distance)
        key = url_key(host.id, target.url)
        if key in self._in_work or key in self._url_states.seen:
            return self._admission.refuse(Reason.SEEN)
        entry = self._in_work[key] = QueuedUrl(key, target.url, host, SEED_RANK, target)
        host.begin_request()  # keeps its record in memory
        end = CLOSED_STATES.get(host.state)
        if end is None and self._robots.forbids(target.origin, target.url):
            end = Reason.ROBOTS_FORBIDDEN
        if end is None:
            return Fetch(key, entry.url, "", host)
        self.enter(key)
        self._url_states.take_back(key)
        self._url_states.end_in_transit(entry, end)
        host.end_request()
        return end

    def enter(self, key: int) -> None:
        """The URL of the page in work is accounted for: discovered and in transit, to be reported in the same step."""
        url = self._in_work.pop(key)
        url_states = self._url_states
        url_states.seen.add(key)
        url_states.url_log.log_found([key], 0)
        url_states.ledger.discover()
        url_states.ledger.hand_out()
        url_states.in_transit[key] = url.host.fetching = url
        url_states.hosts.changed.add(url.host)
