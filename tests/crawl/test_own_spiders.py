"""Spiders of users: that of the documentation, a CrawlSpider, one with Scrapy's cache."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT, Crawl, document, page, serving
from test_foreign_project import feed, project, to_feed

from webs.web import FixedWeb, html

NO_PAGES = "mailto:a@b.cz", "tel:+420123", "javascript:void(0)", "news:x", "http://[bad/"


def own_crawl(tmp_path, server, spider: str, name: str, settings: str = "", **options) -> Crawl:
    return Crawl(tmp_path / "job", server, project(tmp_path, spider, settings), name, LANG="cs", **options)


def urls(crawl: Crawl) -> list[str]:
    return sorted(doc.url.removeprefix("http://") for doc in crawl.documents())


def test_the_spider_of_the_documentation_survives_links_that_lead_to_no_page(tmp_path):
    """Its own Requests alone are followed; those under other top-level domains are refused."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/scrapy.md").read_text("utf-8"), re.DOTALL)
    (spider,) = [block for block in blocks if "class MySpider" in block]
    assert "https://example.org/" in spider
    links = "".join(f'<a href="{link}">odkaz</a>' for link in (*NO_PAGES, "/2", "http://b.de/"))
    first = document("first", "/unwanted").replace("<ul>", f'<ul class="article">{links}</ul><ul>')
    sites = {"a.cz": {"/": html(first), "/2": page("2"), "/unwanted": page("3")}, "b.de": {"/": page("4")}}
    with serving(FixedWeb(sites, {"a.cz": "127.84.32.1", "b.de": "127.84.32.2"})) as server:
        spider = spider.replace("https://example.org/", "http://a.cz/")
        crawl = own_crawl(tmp_path, server, spider, "mine", TLDS="cz", FOLLOW="none")
        result = crawl.run(lang="")
    assert result.code == 0 and not result.lines("] ERROR: ") and "Traceback" not in result.output
    assert urls(crawl) == ["a.cz/", "a.cz/2"]
    assert crawl.state().mentions["out-of-scope"] == 4  # three links of the page, and b.de as a Request


CRAWL_SPIDER = """
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from spiderling.items import PageItem

class Foreign(CrawlSpider):
    name = "foreign"
    start_urls = ["http://f.test/"]
    rules = [Rule(LinkExtractor(allow="/list")), Rule(LinkExtractor(allow="/text"), callback="text", follow=False)]

    def text(self, response, **values):
        yield PageItem(response)
"""


def test_a_crawl_spider(tmp_path):
    sites = {"/": page("home", "/list", "/text/1", "/other"), "/list": page("list", "/text/2", "/text/1")}
    sites |= {f"/text/{number}": page(number) for number in (1, 2)}
    with serving(FixedWeb({"f.test": sites}, {"f.test": "127.84.32.3"})) as server:
        crawl = own_crawl(tmp_path, server, CRAWL_SPIDER, "foreign", FOLLOW="none")
        result = crawl.run(lang="")
        asked = [entry.path for entry in server.log_entries]
    assert result.code == 0 and not result.lines("] ERROR: ")
    assert urls(crawl) == ["f.test/text/1", "f.test/text/2"]
    assert sorted(asked) == ["/", "/list", "/robots.txt", "/text/1", "/text/2"]
    assert crawl.state().ends == {"no-page": 2, "kept": 2}


CACHED = """
from scrapy import Spider
from spiderling.items import PageItem

class Foreign(Spider):
    name = "foreign"
    start_urls = ["http://f.test/"]

    def parse(self, response):
        yield PageItem(response)
        yield {"flags": response.flags}

class Shouting:
    def process_item(self, item):
        if isinstance(item, PageItem) and item.page is not None:
            item.attributes["title"] = item.page.title.upper()
        return item
"""


@pytest.mark.slow
def test_scrapys_cache_and_a_pipeline_of_the_users_own(tmp_path):
    settings = 'HTTPCACHE_ENABLED = True\nITEM_PIPELINES = {"foreign.spiders.Shouting": 600}\n'
    with serving(FixedWeb({"f.test": {"/": page("home", "/2"), "/2": page("2")}}, {"f.test": "127.84.32.4"})) as server:
        crawl = own_crawl(tmp_path, server, CACHED, "foreign", settings, FEEDS=to_feed(tmp_path / "items.jsonl"))
        assert crawl.run(lang="").code == 0
        asked = len(server.log_entries)
        again = Crawl(tmp_path / "again", server, tmp_path / "project", "foreign", LANG="cs",
                      FEEDS=to_feed(tmp_path / "again.jsonl"))  # fmt: skip
        result = again.run(lang="")
        assert result.code == 0 and not result.lines("] ERROR: ")
        assert [entry.path for entry in server.log_entries[asked:]] == ["/robots.txt"], "pages came from the cache"
    assert again.digests() == crawl.digests() and len(again.digests()) == 2
    assert [item["flags"] for item in feed(tmp_path / "again.jsonl") if "flags" in item] == [["cached"]] * 2
    titles = {item["title"] for item in feed(tmp_path / "items.jsonl") if "title" in item}
    assert titles == {"STRANA HOME", "STRANA 2"}
