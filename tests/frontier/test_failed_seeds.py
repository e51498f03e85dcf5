"""A seed whose host was out of reach is tried again when it is named again; what was answered is not."""

from __future__ import annotations

import pytest
from virtual_crawl import Answer, Resolution, VirtualCrawl, page

from spiderling.base.reasons import Reason
from spiderling.frontier.scheduling.names import DEAD_FOR_S

BROKEN = Answer(status=0, body_bytes=0, kept_bytes=0)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("web", "dns", "end"),
    [
        ({"http://a.cz/": [BROKEN, page()]}, {}, Reason.CONNECTION),
        ({"http://a.cz/": page()}, {"a.cz": [Resolution(permanent=True), Resolution(("10.0.0.9",))]}, Reason.DNS),
        ({"http://a.cz/robots.txt": [BROKEN, page()], "http://a.cz/": page()}, {}, Reason.ROBOTS_UNREACHABLE),
    ],
)  # fmt: skip
def test_a_seed_that_failed_is_tried_again_when_it_is_named_again(
    web: dict, dns: dict, end: Reason, restart: bool
) -> None:
    crawl = VirtualCrawl(web, dns, retries=0).run("http://a.cz/", "http://b.cz/")
    assert crawl.ends == {end: 1, Reason.HTTP_ERROR: 1}
    crawl.commit()
    if restart:
        crawl.kill_and_resume()
    crawl.now += DEAD_FOR_S
    crawl.run("http://a.cz/", "http://b.cz/")
    assert crawl.ends == {Reason.KEPT: 1, Reason.HTTP_ERROR: 1}, "b.cz had answered"
    assert crawl.mentions == {Reason.SEEN: 1}
    crawl.commit()
    assert crawl.run("http://a.cz/").mentions == {Reason.SEEN: 2}, "now it is kept"


def test_a_seed_at_a_forbidden_address_is_tried_again_when_an_option_allows_it() -> None:
    allowed: set[str] = set()
    crawl = VirtualCrawl({"http://192.168.0.9/": page()}, allows=allowed.__contains__).run("http://192.168.0.9/")
    assert crawl.ends == {Reason.ADDRESS_FORBIDDEN: 1}
    crawl.commit()
    allowed |= {"10.0.0.1"}  # the virtual web's own address for the first name
    crawl.kill_and_resume()
    assert crawl.run("http://192.168.0.9/").ends == {Reason.KEPT: 1}


def test_a_link_to_a_seed_that_failed_does_not_bring_it_back() -> None:
    web = {"http://a.cz/": [BROKEN, page()], "http://b.cz/": page("http://a.cz/")}
    crawl = VirtualCrawl(web, retries=0).run("http://a.cz/").run("http://b.cz/")
    assert crawl.ends == {Reason.CONNECTION: 1, Reason.KEPT: 1}
