"""What failed is tried again: URLs some times, seeds when they are named again."""

from __future__ import annotations

import pytest
from virtual_crawl import Answer, Resolution, VirtualCrawl, page

from spiderling.base.reasons import Reason
from spiderling.base.urls import url_key
from spiderling.frontier.hosts import SEED_RANK
from spiderling.frontier.schedule import DEAD_FOR_S
from spiderling.frontier.storage.url_log import UrlEnd

BROKEN = Answer(status=0, body_bytes=0, kept_bytes=0)
BUSY = Answer(status=503, kept_bytes=0)


def test_permanent_dns_failure_ends_all_at_once_and_is_cached_for_a_while() -> None:
    web, dns = {"http://gone.cz/d": page()}, {"gone.cz": [Resolution(permanent=True), Resolution(("10.0.0.9",))]}
    crawl = VirtualCrawl(web, dns).run("http://gone.cz/", "http://gone.cz/b", "https://www.gone.cz/")
    assert crawl.ends == {Reason.DNS: 2, Reason.HTTP_ERROR: 1}, "the other name is there, its page is not"
    assert crawl.now - 1000 < 10.0
    changes = crawl.frontier.drain(crawl.now)
    assert len(changes.added) == sum(changes.popped.values()), "what has ended for good leaves no line"
    crawl.run("http://gone.cz/c")
    assert crawl.questions["gone.cz"] == 1
    crawl.now += DEAD_FOR_S
    assert crawl.run("http://gone.cz/d").ends == {Reason.DNS: 3, Reason.HTTP_ERROR: 1, Reason.KEPT: 1}


def test_temporary_dns_failure_is_asked_again_with_growing_pauses() -> None:
    crawl = VirtualCrawl({}, {"slow.cz": Resolution()}).run("http://slow.cz/", "http://slow.cz/b")
    assert crawl.ends == {Reason.DNS: 2}
    assert crawl.questions["slow.cz"] == 3
    assert crawl.now - 1000 == pytest.approx(60 + 120, abs=1)
    dns = {"slow.cz": [Resolution(), Resolution(("10.0.0.1",), ttl_s=900.0)]}
    assert VirtualCrawl({"http://slow.cz/": page()}, dns).run("http://slow.cz/").ends == {Reason.KEPT: 1}


def test_dead_second_name_of_a_host_leaves_the_first_alone() -> None:
    web = {"http://a.cz/": page("http://www.a.cz/x"), "http://a.cz/y": page()}
    crawl = VirtualCrawl(web, {"www.a.cz": Resolution(permanent=True)}).run("http://a.cz/", "http://a.cz/y")
    assert crawl.ends == {Reason.KEPT: 2, Reason.DNS: 1}


@pytest.mark.parametrize(("failure", "reason"), [(BROKEN, Reason.CONNECTION), (BUSY, Reason.HTTP_ERROR)])
def test_url_that_fails_for_ever(failure: Answer, reason: Reason) -> None:
    crawl = VirtualCrawl({"http://a.cz/": failure}).run("http://a.cz/")
    assert [round(pause) for pause in crawl.pauses()] == [60, 120], "60 s, doubled, then it ends"
    assert crawl.ends == {reason: 1}


def test_url_that_recovers_resets_the_back_off() -> None:
    web = {f"http://a.cz/{n}": [BUSY, page()] for n in range(4)}
    crawl = VirtualCrawl(web).run(*web)
    assert crawl.ends == {Reason.KEPT: 4}
    host = crawl.host("a.cz")
    assert host.failures == 0
    assert host.account.pages == 4, "a 503 that may pass is no judged response"
    assert host.account.downloaded_bytes == 8 * 1000, "but its body was downloaded"


def test_retry_waits_behind_the_other_urls_of_its_rank() -> None:
    web = {"http://a.cz/0": [BROKEN, page()], "http://a.cz/1": page()}
    assert VirtualCrawl(web).run(*web).fetched() == ["http://a.cz/0", "http://a.cz/1", "http://a.cz/0"]


@pytest.mark.parametrize("retries", [0, 2, 5])
def test_host_that_fails_for_ever_is_given_up(retries: int) -> None:
    """Else a dead host with a full queue would keep a crawl alive for years."""
    seeds = [f"http://a.cz/{number}" for number in range(3000)]
    crawl = VirtualCrawl(dict.fromkeys(seeds, BROKEN), retries=retries).run(*seeds)
    assert crawl.frontier.is_finished
    assert crawl.ends == {Reason.CONNECTION: 3000}
    assert len(crawl.fetched()) <= 4 * (retries + 1) + 1
    assert crawl.now - 1000 < 86400


def test_error_status_ends_at_once_and_counts_as_page() -> None:
    crawl = VirtualCrawl({"http://a.cz/": Answer(status=404, body_bytes=50, kept_bytes=0)}).run("http://a.cz/")
    assert crawl.ends == {Reason.HTTP_ERROR: 1}
    assert [(h.account.pages, h.account.downloaded_bytes) for h in crawl.frontier.hosts] == [(1, 50)]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("web", "dns", "end"),
    [
        ({"http://a.cz/": [BROKEN, page()]}, {}, Reason.CONNECTION),
        ({"http://a.cz/": page()}, {"a.cz": [Resolution(permanent=True), Resolution(("10.0.0.9",))]}, Reason.DNS),
        ({"http://a.cz/robots.txt": [BROKEN, page()], "http://a.cz/": page()}, {}, Reason.ROBOTS_UNREACHABLE),
    ],
)  # fmt: skip
def test_a_seed_that_failed_is_tried_again_when_it_is_named_again(web, dns, end, restart):
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


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("is_named_first", [False, True])
def test_a_seed_is_asked_again_once_whether_it_is_named_again_or_its_end_is(is_named_first, restart) -> None:
    seed = "http://a.cz/"
    crawl = VirtualCrawl({seed: [BROKEN, BROKEN, page()]}, retries=0).run(seed)
    failed = UrlEnd(url_key(crawl.host("a.cz").id, seed), seed, Reason.CONNECTION.value, SEED_RANK, 0)
    twice = [failed, failed] if is_named_first else [failed]  # the URL log has one for each time

    def let_wait(is_named: bool) -> None:
        if restart:
            crawl.commit()
            crawl.kill_and_resume()
        if is_named:
            crawl.run(seed)
        else:
            assert crawl.frontier.ask_again(twice, crawl.now) == (1, 1)
            crawl.run()

    let_wait(is_named_first)
    assert crawl.ends == {Reason.CONNECTION: 1}
    let_wait(not is_named_first)
    assert crawl.ends == {Reason.KEPT: 1}
    assert crawl.frontier.ask_again([failed], crawl.now) == (0, 0)
    let_wait(True)
    assert crawl.ends == {Reason.KEPT: 1}
    assert crawl.fetched() == [seed] * 3


def test_a_seed_that_ended_at_once_since_the_queue_was_full_can_be_asked_again() -> None:
    seed, other = "http://a.cz/", "http://a.cz/other"
    crawl = VirtualCrawl({seed: [BROKEN, page()], other: page()}, retries=0, max_host_queue=1).run(seed)
    failed = UrlEnd(url_key(crawl.host("a.cz").id, seed), seed, Reason.CONNECTION.value, SEED_RANK, 0)
    crawl.frontier.put_seed(other, crawl.now)
    assert crawl.frontier.ask_again([failed], crawl.now) == (1, 0)
    assert crawl.run().ends == {Reason.HOST_FULL: 1, Reason.KEPT: 1}
    assert crawl.frontier.ask_again([failed._replace(reason=Reason.HOST_FULL.value)], crawl.now) == (1, 1)
    assert crawl.run().ends == {Reason.KEPT: 2}


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
