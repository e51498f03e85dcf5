"""The memory of recent links saves work and changes nothing else."""

from __future__ import annotations

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.frontier.mentions import RecentLinks
from spiderling.reasons import Reason


def test_what_is_asked_for_stays_and_the_rest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spiderling.frontier.mentions._LINKS", 10)
    recent = RecentLinks()
    recent.note("menu", 7)
    for number in range(100):
        recent.note(f"{number}", 1)
        assert recent.host_of("menu") == 7
    assert recent.host_of("3") == 0
    assert recent.host_of("99") == 1
    assert len(recent._young) + len(recent._old) <= 20


def test_link_from_nearer_lowers_the_distance_though_it_was_met_before() -> None:
    web = {
        "http://a.cz/": page("http://b.cz/"), "http://b.cz/": page("http://c.cz/", "http://c.cz/"),
        "http://s.cz/": page("http://c.cz/"), "http://c.cz/": page(),
    }  # fmt: skip
    crawl = VirtualCrawl(web).run("http://a.cz/")
    assert (crawl.host("c.cz").distance, crawl.mentions) == (2, {Reason.SEEN: 1})
    crawl.run("http://s.cz/")
    assert (crawl.host("c.cz").distance, crawl.mentions) == (1, {Reason.SEEN: 2})


def test_links_that_are_refused_are_refused_each_time() -> None:
    crawl = VirtualCrawl({"http://a.cz/": page("http://a.cz/x.zip", "http://a.cz/x.zip", "mailto:x", "mailto:x")})
    crawl.run("http://a.cz/")
    assert crawl.mentions == {Reason.OUT_OF_SCOPE: 2, Reason.BAD_URL: 2}
