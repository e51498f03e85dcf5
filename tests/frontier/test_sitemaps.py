"""How many sitemaps are asked for, whose URLs count, and where these wait."""

from __future__ import annotations

from collections import Counter

import pytest
from virtual_crawl import VirtualCrawl, page, robots, to

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.discovery.intake import MAX_FILES, is_sitemap

A = "http://a.cz/"


class SitemapCrawl(VirtualCrawl):
    """Reads sitemaps: *indexes* and *sitemaps* are lists of addresses by URL."""

    def __init__(self, web, indexes=(), sitemaps=(), **options):
        super().__init__(web, sitemaps="on", **options)
        self.indexes, self.sitemaps = dict(indexes), dict(sitemaps)
        self.asked = Counter()

    def answer(self, fetch, answer):
        if not is_sitemap(fetch) or answer.status in (301, 503):
            super().answer(fetch, answer)
            return
        self.asked[fetch.url] += 1
        self.busy.discard(fetch.host.name)
        self.frontier.intervals.answered(fetch.host, self.now)
        self.frontier.sitemaps.put_files(fetch, self.indexes.get(fetch.url, []), self.now)
        self.frontier.sitemaps.put_urls(fetch, [(url, None) for url in self.sitemaps.get(fetch.url, [])], self.now)
        outcome = Outcome(fetch.id, fetch.url, Reason.SITEMAP, status=200, body_bytes=7)
        self.frontier.report(outcome, self.now)


def test_urls_wait_behind_links_with_text_and_are_no_pages():
    web = {
        "http://a.cz/robots.txt": robots("Sitemap: http://a.cz/s.xml\nSitemap: /relative.xml"),
        A: page(*(f"{A}link{n}" for n in range(3)), "http://a.cz/s1"),
        **{f"{A}{name}": page() for name in ("link0", "link1", "link2", "s1", "s2")},
    }
    crawl = SitemapCrawl(
        web, sitemaps={f"{A}s.xml": [f"{A}s1", f"{A}s2", "http://b.cz/", "mailto:x"]}, strategy="spiderling:power=100"
    ).run(A)
    assert crawl.fetched() == [A, f"{A}link0", f"{A}link1", f"{A}link2", f"{A}s1", f"{A}s.xml", f"{A}s2"]
    assert crawl.ends == {Reason.KEPT: 6, Reason.SITEMAP: 1}
    assert crawl.mentions == {Reason.SEEN: 1, Reason.CROSS_SUBMIT: 1, Reason.BAD_URL: 2}
    host = crawl.host("a.cz")
    assert host.account.pages == crawl.frontier.ledger.totals["pages"] == 6
    assert host.account.downloaded_bytes == 6000 + 7 + len(web["http://a.cz/robots.txt"].body)


def test_off_nothing_is_asked_for():
    web = {"http://a.cz/robots.txt": robots("Sitemap: http://a.cz/s.xml"), A: page()}
    assert VirtualCrawl(web).run(A).fetched() == [A]


def test_robots_txt_holds_for_sitemaps_and_their_urls():
    rules = "User-agent: *\nDisallow: /no\nSitemap: http://a.cz/no.xml\nSitemap: http://a.cz/s.xml"
    web = {"http://a.cz/robots.txt": robots(rules), A: page()}
    crawl = SitemapCrawl(web, sitemaps={f"{A}s.xml": [f"{A}no/1"]}).run(A)
    assert crawl.asked == {f"{A}s.xml": 1}
    assert crawl.ends == {Reason.KEPT: 1, Reason.ROBOTS_FORBIDDEN: 2, Reason.SITEMAP: 1}


@pytest.mark.parametrize("fan", [1, 3, 7, 100])
def test_number_and_depth_are_bounded_whatever_indexes_name(fan):
    """Every file is an index of *fan* more, without end."""
    name = [f"{A}{n}.xml" for n in range(fan)]
    web = {"http://a.cz/robots.txt": robots("\n".join(f"Sitemap: {url}" for url in name)), A: page()}

    class Endless(dict):
        def get(self, url, default=None):
            return [f"{url}/{n}" for n in range(fan)]

    crawl = SitemapCrawl(web, host_interval_s=0.1)
    crawl.indexes = Endless()
    crawl.run(A)
    depths = Counter(url.count("/") - 3 for url in crawl.asked)
    assert sum(depths.values()) == len(crawl.asked) <= MAX_FILES
    assert set(depths) == ({0} if fan == 100 else {0, 1} if fan == 7 else {0, 1, 2})
    assert crawl.mentions[Reason.TOO_MANY_LINKS] > 0


def test_redirect_failure_and_restart_are_those_of_any_url():
    web = {
        "http://a.cz/robots.txt": robots("Sitemap: http://a.cz/old.xml"), A: page(), f"{A}x": page(),
        f"{A}old.xml": [page(status=503, kept_bytes=0), to("https://www.a.cz/new.xml")],
    }  # fmt: skip
    crawl = SitemapCrawl(web, sitemaps={"https://www.a.cz/new.xml": [f"{A}x"]}).run(A, until=1010.0)
    crawl.commit()
    crawl.kill_and_resume()
    crawl.run()
    assert crawl.asked == {"https://www.a.cz/new.xml": 1}
    assert crawl.ends == {Reason.KEPT: 2, Reason.REDIRECTED: 1, Reason.SITEMAP: 1}
