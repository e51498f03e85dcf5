"""robots.txt -> sitemaps -> URLs (https://www.sitemaps.org/protocol.html)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import ada_url
from scrapy.http import Request, Response

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.base.urls import CanonicalUrl, canonicalize, registrable_domain
from spiderling.frontier.site_files import RobotsTxt
from spiderling.seeding.source import Found
from spiderling.text.sitemap import MAX_BYTES, read_sitemap

_DEPTH = "sitemap"
"""Key in the meta of a request for a sitemap: how many indexes lead to it."""
_MAX_DEPTH = 3
"""Levels of indexes that are followed (chosen); the protocol allows one."""


class SitemapSource:
    """The URLs that sites list of themselves; those on other domains are left out, as the protocol says."""

    name = "sitemap"
    retries = 1

    def __init__(self, sites: Iterable[str]) -> None:
        """*sites*: names or URLs; raises BadInput for one that is neither."""
        self._sites: list[CanonicalUrl] = []
        for site in sites:
            target = canonicalize(site if "://" in site else f"https://{site}/")
            if target is None:
                raise BadInput(f"{site} is no site; give its name or URL, such as example.org.")
            self._sites.append(target)
        if not self._sites:
            raise BadInput("name the sites: scrapy seeds sitemap example.org -a lang=cs -o seeds.txt")

    def requests(self) -> Iterator[Request]:
        for site in self._sites:
            if site.path.endswith((".xml", ".xml.gz")):
                yield Request(site.url, meta={_DEPTH: 0})
            else:
                yield Request(f"{site.origin}/robots.txt")

    def read(self, response: Response) -> Iterator[Found]:
        depth = response.meta.get(_DEPTH)
        if depth is None:
            yield from self._read_robots(response)
        elif response.status == 200:
            yield from self._read_sitemap(response, depth)

    def _read_robots(self, response: Response) -> Iterator[Found]:
        listed = RobotsTxt(response.body, Options()).sitemaps() if response.status == 200 else []
        for address in listed or ["/sitemap.xml"]:
            target = _joined(response.url, address)
            if target is not None:
                yield Request(target.url, meta={_DEPTH: 0})

    def _read_sitemap(self, response: Response, depth: int) -> Iterator[Found]:
        own = canonicalize(response.url)
        sitemap = read_sitemap(response.body, most=MAX_BYTES)  # all that it lists
        for address in sitemap.urls:
            target = _joined(response.url, address)
            if target is None or own is None or registrable_domain(target.host) != registrable_domain(own.host):
                continue
            if not sitemap.is_index:
                yield target.url
            elif depth < _MAX_DEPTH:
                yield Request(target.url, meta={_DEPTH: depth + 1})


def _joined(base: str, address: str) -> CanonicalUrl | None:
    try:
        return canonicalize(str(ada_url.join_url(base, address.strip())))
    except ValueError:
        return None
