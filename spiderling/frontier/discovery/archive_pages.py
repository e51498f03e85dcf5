"""Pages from archives, which need no request: their URLs are judged and accounted for as if they were fetched.

A URL is accounted for only when its page ends, so a page that was in work at a kill counts as never read.  Hosts are
not scheduled; they may be closed (blocked, retired) as in a crawl.
"""

from __future__ import annotations

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize, canonicalize_again, url_key
from spiderling.frontier.discovery.core import Core, Fetch, Part
from spiderling.frontier.hosts.host import CLOSED_STATES, QueuedUrl
from spiderling.frontier.hosts.ranks import SEED_RANK
from spiderling.frontier.site_files import FileAnswer


class ArchivePages(Part):
    """Call ``begin`` when a page has been read, and ``enter`` right before it is reported."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._in_work: dict[int, QueuedUrl] = {}

    def unwanted(self, target: CanonicalUrl) -> Reason | None:
        """Why *target* is refused by its form or host, or None; it changes nothing, so any thread may call it."""
        return self._admission.unwanted(target)

    def refuse(self, reason: Reason) -> None:
        """Count a record that is no page or not wanted."""
        self._admission.refuse(reason)

    def robots_txt(self, url: str, status: int, body: bytes, now: float) -> None:
        """Note a robots.txt of the archive: it counts for the pages after it, however old it gets."""
        target = canonicalize(url)
        if target is not None:
            self._robots.note_answer(target.origin, FileAnswer(status, body), now)

    def begin(self, url: str, distance: int = 0) -> Fetch | Reason:
        """Begin work on a page at *url*; returns its Fetch, or why it is left out: the first page at a URL counts.

        *distance*: that of its host if it is a new one.  A URL of a closed host, or forbidden by robots.txt, ends here.
        """
        target = canonicalize_again(url)
        if target is None:
            return self._admission.refuse(Reason.BAD_URL)
        host = self._admission.host(target.host, distance)
        key = url_key(host.id, target.url)
        if key in self._in_work or key in self._url_states.seen:
            return self._admission.refuse(Reason.SEEN)
        entry = self._in_work[key] = QueuedUrl(key, target.url, host, SEED_RANK, target)
        host.in_transit += 1  # keeps its record in memory
        end = CLOSED_STATES.get(host.state)
        if end is None and self._robots.forbids(target.origin, target.url):
            end = Reason.ROBOTS_FORBIDDEN
        if end is None:
            return Fetch(key, entry.url, "", host)
        self.enter(key)
        self._url_states.take_back(key)
        self._url_states.end_in_transit(entry, end)
        host.in_transit -= 1
        return end

    def enter(self, key: int) -> None:
        """Count the URL of a page in work as discovered and in transit; it must be reported in the same step."""
        url = self._in_work.pop(key)
        url_states = self._url_states
        url_states.seen.add(key)
        url_states.url_log.log_found([key], 0)
        url_states.ledger.discover()
        url_states.ledger.hand_out()
        url_states.in_transit[key] = url.host.fetching = url
        url_states.hosts.changed.add(url.host)
