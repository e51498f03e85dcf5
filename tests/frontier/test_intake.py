"""Links of pages come in as batches, and sitemaps name URLs."""

from __future__ import annotations

from collections import Counter

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_crawl import VirtualCrawl, page, robots, to

from spiderling.base.link_batch import Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Frontier
from spiderling.frontier.intake import MAX_FILES, is_sitemap
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import LinkingPage

URLS = st.builds(
    "http://{}{}/{}".format, st.sampled_from(["", "www."]),
    st.sampled_from(["a.cz", "b.cz", "c.cz", "b.cz:443", "d.cz:22", "e.de"]),
    st.sampled_from(["", "1", "2", "x.zip", "dir/dir/dir/dir/"]),
)  # fmt: skip
LINKS = st.builds(lambda url, block: Link(url, block), URLS, st.booleans())


@settings(max_examples=examples(50))
@given(st.lists(st.lists(LINKS, max_size=12), max_size=5), st.integers(2, 9))
def test_a_batch_does_what_its_links_do_one_by_one(pages: list[list[Link]], max_queue: int) -> None:
    both = [VirtualCrawl({}, max_host_queue=max_queue, tlds="cz", max_distance=1) for _ in range(2)]
    for crawl in both:
        crawl.frontier.put_seed("http://a.cz/", crawl.now)
        source = LinkingPage(crawl.host("a.cz"), Reason.KEPT)
        for page_links in pages:
            batches = [page_links] if crawl is both[0] else [[link] for link in page_links]
            for links in batches:
                crawl.frontier.put_links(source, links, crawl.now)
    batch, single = ((crawl.mentions, crawl.ends, crawl.frontier.ledger.counts()) for crawl in both)
    assert batch == single
    tables = [{host.name: (host.queued, host.distance) for host in crawl.frontier.hosts} for crawl in both]
    assert tables[0] == tables[1]
    for crawl in both:
        crawl.run()
    if Reason.HOST_FULL not in batch[1]:  # a port that is folded away comes last in a batch
        assert sorted(both[0].fetched()) == sorted(both[1].fetched())


def test_a_name_that_is_none_makes_no_host() -> None:
    crawl = VirtualCrawl({})
    crawl.frontier.put_seed("http://a.cz/", crawl.now)
    links = gathered([Link("http://b.cz/"), Link("http://a.cz/1")])
    for name in ("B.cz", "www.b.cz", "b.cz/x", "user@b.cz", "b.cz:80", ""):
        source = LinkingPage(crawl.host("a.cz"), Reason.KEPT)
        crawl.frontier.put_links(source, links._replace(hosts=(name, "a.cz")), crawl.now)
    assert [host.name for host in crawl.frontier.hosts] == ["a.cz"]
    assert crawl.mentions == {Reason.BAD_URL: 6, Reason.SEEN: 5}


def test_a_host_that_nobody_asked_for_has_a_row_and_no_place_in_memory() -> None:
    store = SqliteStore()
    frontier = Frontier(Options(active_hosts=1), store=store)
    frontier.put_seed("http://a.cz/", 0.0)
    near = frontier.hosts.get("a.cz")
    assert near is not None
    frontier.put_links(LinkingPage(near, Reason.KEPT), [Link("http://b.cz/1"), Link("http://b.cz/2")], 1.0)
    assert [frontier.hosts.live(host_id) is None for host_id in (1, 2)] == [False, True]
    store.commit(frontier.drain(1.0))
    between = frontier.hosts.by_id(2)  # drained and not committed
    assert (between.name, between.queued, between.distance, store.host(2).waiting) == ("b.cz", 2, 1, 2)
    frontier.committed()
    assert frontier.hosts.live(2) is None and frontier.hosts.by_id(2).queued == 2
    again = Frontier(Options(), store=store)
    again.restore(store.load(), 2.0)
    assert [(host.name, host.queued) for host in again.hosts] == [("a.cz", 1), ("b.cz", 2)]


def test_what_is_in_transit_is_still_counted_when_its_host_is_marked_alone() -> None:
    """A batch has the row; in the next one the host is nearer, or its queue has grown, and nothing else is new."""
    for links in ((), ("http://far.cz/",), ("http://far.cz/2",)):
        crawl = VirtualCrawl({"http://far.cz/": page(transit_s=50.0), "http://a.cz/": page(transit_s=90.0)})
        crawl.frontier.put_seed("http://far.cz/", crawl.now, distance=7)
        crawl.run("http://a.cz/", until=1020.0)
        assert crawl.frontier.ledger.in_transit == 2
        crawl.commit()
        crawl.frontier.put_links(LinkingPage(crawl.host("a.cz"), Reason.KEPT), map(Link, links), crawl.now)
        crawl.restart()
        crawl.check()
        assert crawl.run().frontier.is_finished


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


def test_robots_txt_holds_for_sitemaps_and_their_urls_and_off_nothing_is_asked_for():
    rules = "User-agent: *\nDisallow: /no\nSitemap: http://a.cz/no.xml\nSitemap: http://a.cz/s.xml"
    web = {"http://a.cz/robots.txt": robots(rules), A: page()}
    crawl = SitemapCrawl(web, sitemaps={f"{A}s.xml": [f"{A}no/1"]}).run(A)
    assert crawl.asked == {f"{A}s.xml": 1}
    assert crawl.ends == {Reason.KEPT: 1, Reason.ROBOTS_FORBIDDEN: 2, Reason.SITEMAP: 1}
    assert VirtualCrawl(web).run(A).fetched() == [A]


@pytest.mark.parametrize(("fan", "depths"), [(1, {0, 1, 2}), (3, {0, 1, 2}), (7, {0, 1}), (100, {0})])
def test_number_and_depth_are_bounded_whatever_indexes_name(fan, depths):
    """Every file is an index of *fan* more, without end."""
    rules = "\n".join(f"Sitemap: {A}{n}.xml" for n in range(fan))
    crawl = SitemapCrawl({"http://a.cz/robots.txt": robots(rules), A: page()}, host_interval_s=0.1)

    class Endless(dict):
        def get(self, url, default=None):
            return [f"{url}/{n}" for n in range(fan)]

    crawl.indexes = Endless()
    crawl.run(A)
    assert set(crawl.asked.values()) == {1} and len(crawl.asked) <= MAX_FILES
    assert {url.count("/") - 3 for url in crawl.asked} == depths
    assert crawl.mentions[Reason.TOO_MANY_LINKS] > 0


def test_redirect_failure_and_restart_are_those_of_any_url():
    web = {
        "http://a.cz/robots.txt": robots("Sitemap: http://a.cz/old.xml"), A: page(), f"{A}x": page(),
        f"{A}old.xml": [page(status=503, kept_bytes=0), to("https://www.a.cz/new.xml")],
    }  # fmt: skip
    crawl = SitemapCrawl(web, sitemaps={"https://www.a.cz/new.xml": [f"{A}x"]}).run(A, until=1010.0)
    crawl.restart()
    crawl.run()
    assert crawl.asked == {"https://www.a.cz/new.xml": 1}
    assert crawl.ends == {Reason.KEPT: 2, Reason.REDIRECTED: 1, Reason.SITEMAP: 1}
