"""The threshold t(n), its grace limits, and what a retirement does (Suchomel & Pomikálek 2012)."""

from __future__ import annotations

import pytest
from virtual_crawl import Answer, VirtualCrawl, page, robots, to

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.host_closing import RetirementRule, threshold
from spiderling.frontier.hosts import HostState, YieldAccount

POOR = {"body_bytes": 100_000, "kept_bytes": 0}


@pytest.mark.parametrize(
    ("pages", "factor", "expected"),
    [
        (0, 0.01, -0.01), (1, 0.01, -0.01), (10, 0.01, 0.0), (100, 0.01, 0.01), (1000, 0.01, 0.02),
        (10_000, 0.01, 0.03), (31623, 0.01, 0.035), (1000, 0.005, 0.01), (1000, 0.002, 0.004),
    ],
)  # fmt: skip
def test_threshold_of_the_paper(pages: int, factor: float, expected: float) -> None:
    assert threshold(pages, factor) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("pages", "down", "kept", "retired"),
    [
        (7, 10_000_000, 0, False),
        (5000, 400_000, 0, False),
        (5000, 511_999, 0, False),
        (5000, 512_000, 0, True),
        (8, 512_000, 0, False),  # t(n) is not above 0 before n = 11
        (10, 10_000_000, 0, False),
        (11, 10_000_000, 0, True),
        (100, 1_000_000, 10_000, False),  # exactly t(100) = .01
        (100, 1_000_000, 9_999, True),
        (1000, 1_000_000, 19_999, True),
        (10_000, 10_000_000, 300_001, False),
    ],
)
def test_rule_at_its_limits(pages: int, down: int, kept: int, retired: bool) -> None:
    rule = RetirementRule(factor=0.01, min_pages=8, min_bytes=512_000)
    assert rule.retires(YieldAccount(pages, down, kept)) is retired
    assert not RetirementRule(None, 8, 512_000).retires(YieldAccount(pages, down, kept)), "off means never"


def test_grace_limit_of_pages_alone_and_the_rate_before_anything_was_downloaded() -> None:
    rule = RetirementRule(factor=0.01, min_pages=50, min_bytes=0)
    assert [rule.retires(YieldAccount(pages, 10**9, 0)) for pages in (49, 50)] == [False, True]
    assert (YieldAccount().rate, YieldAccount(1, 200, 50).rate) == (0.0, 0.25)


@pytest.mark.parametrize(
    ("profile", "factor"), [("off", None), ("permissive", 0.002), ("normal", 0.005), ("paper", 0.01)]
)
def test_profile_reaches_the_frontier(profile: str, factor: float | None) -> None:
    """The least of a judgement is the paper's."""
    rule = VirtualCrawl({}, yield_profile=profile).frontier.host_closing.rule
    assert rule == RetirementRule(factor, 8, 512_000)


def poor_site(name: str, pages: int = 40) -> dict[str, Answer]:
    return {f"http://{name}/{number}": page(**POOR) for number in range(pages)}


def test_poor_host_is_retired_and_never_asked_again() -> None:
    rich = {f"http://rich.cz/{n}": page(body_bytes=100_000, kept_bytes=2000) for n in range(40)}
    web = poor_site("a.cz") | rich | {"http://b.cz/": page("http://a.cz/late", "http://a.cz/0")}
    crawl = VirtualCrawl(web, strategy="yield").run(*poor_site("a.cz"), *rich)
    assert crawl.ends == {Reason.BOILERPLATE_ONLY: 11, Reason.HOST_RETIRED: 29, Reason.KEPT: 40}
    assert crawl.host("a.cz").state is HostState.RETIRED
    asked = len(crawl.starts)
    crawl.run("http://a.cz/seed", "http://b.cz/")
    assert [start.host for start in crawl.starts[asked:]] == ["b.cz", "b.cz"]
    assert crawl.ends == {Reason.BOILERPLATE_ONLY: 11, Reason.HOST_RETIRED: 31, Reason.KEPT: 41}
    assert crawl.mentions == {Reason.SEEN: 1}


def test_queue_of_a_retired_host_is_parked() -> None:
    crawl = VirtualCrawl(poor_site("a.cz"), strategy="yield")
    for url in poor_site("a.cz"):
        crawl.frontier.put_seed(url, crawl.now)
    before = crawl.frontier.drain(crawl.now)
    changes = crawl.run().frontier.drain(crawl.now)
    assert [(row.waiting, row.parked) for row in before.hosts] == [(40, 0)]
    assert [(row.waiting, row.parked) for row in changes.hosts] == [(0, 29)]
    assert sum(changes.popped.values()) == 11


@pytest.mark.parametrize(
    "became",
    [{"status": 404}, *({"reason": reason} for reason in (
        Reason.WRONG_LANGUAGE, Reason.DUPLICATE, Reason.UNDECODABLE, Reason.NOT_TEXT, Reason.TOO_BIG
    ))],
)  # fmt: skip
def test_every_byte_counts_whatever_became_of_the_page(became: dict) -> None:
    """Known defect of the original: pages without accepted text counted as 0 bytes."""
    urls = [f"http://a.cz/{number}" for number in range(40)]
    crawl = VirtualCrawl(dict.fromkeys(urls, Answer(**became, **POOR)), strategy="yield").run(*urls)
    assert crawl.host("a.cz").account == YieldAccount(11, 1_100_000, 0)
    assert crawl.ends[Reason.HOST_RETIRED] == 29


def test_account_adds_up_over_all_kinds_of_answers() -> None:
    web = {
        "http://a.cz/robots.txt": robots("#" * 50),
        "http://a.cz/1": page(body_bytes=1000, kept_bytes=300),
        "http://a.cz/2": [Answer(status=503, body_bytes=20, kept_bytes=0), page(body_bytes=400, kept_bytes=100)],
        "http://a.cz/3": to("http://a.cz/4", body_bytes=7),
        "http://a.cz/4": Answer(status=410, body_bytes=9, kept_bytes=0),
        "http://a.cz/5": Answer(status=0, body_bytes=3, kept_bytes=0),
        "http://a.cz/6": Answer(status=304, body_bytes=0, kept_bytes=0),
    }
    crawl = VirtualCrawl(web, retries=1).run(*(f"http://a.cz/{n}" for n in (1, 2, 3, 5, 6)))
    down = 50 + 1000 + 20 + 400 + 7 + 9 + 3 + 3
    assert crawl.host("a.cz").account == YieldAccount(pages=3, downloaded_bytes=down, kept_bytes=400)
    totals = crawl.frontier.ledger.totals
    assert (totals["pages"], totals["documents"], totals["robots"]) == (3, 2, 1)
    assert (totals["downloaded_bytes"], totals["kept_bytes"]) == (down, 400)
    assert crawl.frontier.ledger.yield_rate == pytest.approx(400 / down)
    assert crawl.host("a.cz").documents == 2


def test_further_item_of_a_page_adds_to_its_host() -> None:
    crawl = VirtualCrawl({"http://a.cz/": page(body_bytes=900, kept_bytes=10)}).run("http://a.cz/")
    frontier = crawl.frontier
    report = frontier.report(Outcome(None, "http://www.a.cz/", Reason.KEPT, kept_bytes=5, words=2, language="cs"), 0.0)
    assert (report.end, report.retired) == (None, None)
    assert crawl.host("a.cz").account == YieldAccount(1, 900, 15)
    assert frontier.ledger.languages["cs"] == 1
    assert not frontier.report(Outcome(None, "about:blank", Reason.KEPT), 0.0).end is not None
    crawl.check()
