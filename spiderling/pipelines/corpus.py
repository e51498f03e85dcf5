"""Pipeline 500: renders the document as prevertical, the format of Sketch Engine and SpiderLing.

A page that comes when the budget of words or documents is spent is put back.  So is one that has come before files of
its site were asked for (the option ``optout_files``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from scrapy.crawler import Crawler

from spiderling.base.urls import top_level_domain
from spiderling.engine.outcomes import PutBack, WaitsForFiles, digests_of
from spiderling.engine.requests import CAPTURED, fetch_of
from spiderling.export import feeds
from spiderling.fetch.tls import FLAG
from spiderling.frontier.watching.planning import Look
from spiderling.items import PageItem
from spiderling.pipelines.page_pipeline import PagePipeline
from spiderling.text import Page
from spiderling.text.prevertical import written

_TIME = "%Y-%m-%d %H:%M:%S"


class CorpusPipeline(PagePipeline):
    """Sets ``item.attributes``, ``item.document`` and ``item.kept_bytes``; the checkpoint writes the document."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CorpusPipeline:
        feeds.register()
        return cls(crawler)

    def process_page(self, item: PageItem, page: Page) -> None:
        crawl = self.crawl
        if not crawl.budgets.takes_documents(crawl.totals()):
            raise PutBack("the crawl has as many words or documents as it wants")
        if (fetch := fetch_of(item.response.request)) is not None and fetch.before_files:
            crawl.frontier.robots.want_files(fetch.url)
            raise WaitsForFiles(f"{fetch.url} waits for files of its site")
        if not item.digests and crawl.options.dedup != "off":  # by DedupPipeline, unless that is switched off
            item.digests = digests_of(page)
        item.kept_bytes = page.clean_bytes - item.duplicate_bytes
        item.attributes |= self._attributes(item, page)
        head = f"<doc{written(item.attributes)}>\n".encode("utf-8", "replace")
        item.document = b"%s%s</doc>\n" % (head, page.kept_elements())

    def _attributes(self, item: PageItem, page: Page) -> dict[str, object]:
        response = item.response
        fetch = fetch_of(response.request)
        host = fetch.host if fetch else None
        look = fetch.look if fetch else None
        weight = self.crawl.frontier.strategy.weight(page.batch.number)
        captured = response.request.meta.get(CAPTURED) if response.request is not None else None
        time = datetime.fromtimestamp(captured or self.crawl.clock.now(), UTC)
        return {
            "id": f"{fetch.id & (1 << 64) - 1:016x}" if fetch else page.text_digest.hex()[:16],
            "url": response.url,
            "host": host.name if host else "",
            "tld": top_level_domain(host.name) if host else "",
            "title": page.title,
            "lang": item.language or "",
            "langs": " ".join(f"{code}:{share:.2f}" for code, share in page.languages.items()),
            "ip": str(response.ip_address or ""),
            "tls": " ".join(flag[len(FLAG) :] for flag in response.flags if flag.startswith(FLAG)),
            "crawl_date": time.strftime(_TIME),
            "published": page.published,
            "modified": page.modified,
            "first_seen": _first_seen(look) if look else "",
            "version": look.page.version + 1 if look else "",
            "enc_declared": page.encoding_declared or "",
            "enc_detected": page.encoding_detected or "",
            "distance": host.distance if host else "",
            "length": page.clean_bytes,
            "words": page.words,
            "file_type": page.file_type,
            "text_source": page.text_source,
            "licence": page.licence or "",
            "optout": " ".join(map(str, item.statements)),
            "yield": f"{item.kept_bytes / max(1, page.utf8_bytes):.4f}",
            "badness": f"{page.badness:.1f}",
            "known_share": f"{page.known_share:.2f}",
            "seen_share": f"{item.seen_share:.2f}" if item.seen_share else "",
            "walk_weight": f"{weight:.4g}" if weight else "",
            **page.quality.attributes(),
        }


def _first_seen(look: Look) -> str:
    """When the first version of the page that is looked at again was fetched."""
    return datetime.fromtimestamp(look.first_seen, UTC).strftime(_TIME)
