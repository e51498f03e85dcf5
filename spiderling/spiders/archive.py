"""The spider that reads WARC files instead of the web: docs/archive.md."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from scrapy.http import Request, Response
from scrapy.responsetypes import responsetypes
from scrapy.settings import BaseSettings

from spiderling.archives.sources import archives_of
from spiderling.engine.component import crawl_of
from spiderling.engine.scheduler import FAILED_STAT
from spiderling.items import CAPTURED, FETCH, PageItem
from spiderling.spiders.spiderling import CorpusSpider

if TYPE_CHECKING:
    from spiderling.archives.records import ArchiveRecord  # needs FastWARC, and a crawl of the web does not
    from spiderling.frontier import Fetch

_POLL_S = 0.05
"""Seconds between two checks whether the scraper is idle.  Chosen."""


class ArchiveSpider(CorpusSpider):
    """``scrapy crawl archive -a lang=cs -a warc=FILES-or-globs-or-URLs``: the same pipelines, and no requests."""

    name = "archive"
    warc: str = ""  # WARC files, globs, directories and URLs, with commas; a name in .txt or .paths is a list of these
    urls: str = ""  # a file of the only URLs that are taken, one a line; with * at the end, all URLs that begin so
    archives: tuple[str, ...] = ()  # the archives that ``warc`` names: absolute paths and URLs

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Retire no host, unless the user names a profile: that would save no bytes here."""
        super().update_settings(settings)
        settings.set("SPIDERLING_YIELD_PROFILE", "off", priority="addon")

    def prepare(self) -> None:
        """Find the archives, before anything is written; raises BadInput."""
        self.archives = tuple(archives_of(self.warc))

    async def start(self) -> AsyncIterator[Any]:
        """A PageItem for each page."""
        crawl = crawl_of(self.crawler)
        engine = self.crawler.engine
        assert crawl.archives is not None
        self._closing = asyncio.ensure_future(self._let_close())
        try:
            async for fetch, record in crawl.archives.pages(engine.needs_backout):
                yield PageItem(response_of(fetch, record))
        except Exception as error:
            crawl.errors.stop(error)
        if crawl.archives.errors:
            self.crawler.stats.set_value(FAILED_STAT, "archive-unread")
        # Scrapy sees that the spider is idle when ``start`` ends; of pages that end later it would learn in 5 s
        while engine.scraper.slot is not None and not engine.scraper.slot.is_idle():
            await asyncio.sleep(_POLL_S)

    async def _let_close(self) -> None:
        """Close the spider when ``start`` has ended.  Scrapy does so after a response only, and here are none."""
        scraper = self.crawler.engine.scraper
        while scraper.slot is not None:
            closing = scraper.slot.closing
            if closing and scraper.slot.is_idle():
                if not closing.called:
                    closing.callback(self)
                return
            await asyncio.sleep(_POLL_S)


def response_of(fetch: Fetch, record: ArchiveRecord) -> Response:
    """The response that *record* holds, as if it had just been fetched."""
    meta = {FETCH: fetch, "wire_bytes": record.length, CAPTURED: record.captured, "verbatim_url": True}
    request = Request(fetch.url, meta=meta, dont_filter=True)
    kind = responsetypes.from_args(headers=record.headers, url=fetch.url, body=record.body)
    response = kind(fetch.url, status=record.status, body=record.body, request=request, ip_address=record.address)
    response.headers = record.headers  # given to the class, they would be copied one by one
    return response
