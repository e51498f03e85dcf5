"""Discovery by sitemaps: the files that a robots.txt names, and the URLs that they hold (text/sitemap.py reads them).

A sitemap is a URL in its host's queue with a payload of ours, so all that holds for pages holds for it: robots.txt,
opt-outs, politeness, limits, retries, restarts, a full account of its bytes.  It ends as ``sitemap`` and does not count
as a page.  By its rank it waits, as its URLs do, behind the links of pages with text.  URLs of other hosts are refused,
since only the robots.txt of such a host could allow them (cross submits).

For each robots.txt at most MAX_FILES sitemaps are fetched, those in indexes included.  The payload of an index says how
many it may name, so that nothing need be counted over restarts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.discovery.core import Core, Fetch
from spiderling.frontier.hosts.host import Host
from spiderling.frontier.hosts.ranks import SITEMAP_RANK

MAX_FILES = 50
"""Sitemaps that are fetched for one robots.txt; chosen."""
MAX_DEPTH = 2
"""Levels of indexes that are followed: an index may name an index, which names sitemaps (chosen)."""
_PAYLOAD = re.compile(rb"sitemap (\d) (\d+)")
"""The payload: levels of indexes that may follow, and sitemaps that this one may name."""


def is_sitemap(fetch: Fetch) -> bool:
    """Whether *fetch* is for a sitemap that this module put into the queue."""
    return fetch.payload is not None and _PAYLOAD.fullmatch(fetch.payload) is not None


class Sitemaps:
    """Accepts what robots.txt and sitemaps name, when ``SPIDERLING_SITEMAPS`` is on."""

    def __init__(self, core: Core) -> None:
        self._is_on = core.options.sitemaps == "on"
        self._core = core

    def put_named(self, host: Host, addresses: list[str], now: float) -> None:
        """Queue the sitemaps at *addresses*, which a robots.txt of *host* names."""
        if self._is_on and addresses:
            self._put_files(host, addresses, MAX_DEPTH, MAX_FILES, 0, now)

    def put_files(self, fetch: Fetch, addresses: list[str], now: float) -> None:
        """Queue the sitemaps at *addresses*, which the fetched index names."""
        place = _PAYLOAD.fullmatch(fetch.payload or b"")
        if place is not None and addresses:
            self._put_files(fetch.host, addresses, int(place[1]) - 1, int(place[2]), fetch.id, now)

    def put_urls(self, fetch: Fetch, urls: Iterable[str], now: float) -> None:
        """Accept *urls*, which the fetched sitemap names; give few in a call, since each takes its time."""
        for url in urls:
            self._put(fetch.host, url, fetch.id, now)

    def left_out(self, number: int) -> None:
        """Count URLs that are left out as too many."""
        if number:
            self._core.admission.refuse(Reason.TOO_MANY_LINKS, number)

    def _put_files(self, host: Host, addresses: list[str], depth: int, most: int, page: int, now: float) -> None:
        """Queue as many of *addresses* as *depth* and *most* allow; what is left of *most* they share evenly."""
        files = list(dict.fromkeys(addresses))
        chosen = files[:most] if depth >= 0 else []
        self.left_out(len(files) - len(chosen))
        for address in chosen:
            payload = b"sitemap %d %d" % (depth, (most - len(chosen)) // len(chosen))
            self._put(host, address, page, now, payload)

    def _put(self, host: Host, url: str, page: int, now: float, payload: bytes | None = None) -> None:
        target = canonicalize(url)
        if target is None or target.host != host.name:
            self._core.admission.refuse(Reason.BAD_URL if target is None else Reason.CROSS_SUBMIT)
            return
        self._core.put(Mention(target, host.distance, SITEMAP_RANK, page, payload), now)
