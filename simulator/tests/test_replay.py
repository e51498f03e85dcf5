"""The simulator: the real frontier on a virtual clock, polite, deterministic, with nothing lost from its counts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from simulator.generated import RECIPES, generate
from simulator.measures import Sample, at_pages, at_words, coverage, word_coverage
from simulator.pages import PageWeb
from simulator.replay import Replay, world
from spiderling.base.link_batch import Link
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch
from spiderling.frontier.hosts import Host
from spiderling.frontier.site_files import SiteFile
from webs.answers import ServedAnswers
from webs.web import FixedWeb, WebResponse, html, plain, redirect


@pytest.fixture(scope="module")
def web() -> PageWeb:
    return generate(replace(RECIPES["thai"], pages=3_000))


class Watched(Replay):
    """Notes when requests start, which host is asked at which address, and whether a visit goes on by it."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.starts: list[tuple[float, str, str, bool]] = []
        started = self.frontier.started

        def noted(fetch: Fetch, now: float) -> None:
            self.starts.append((now, fetch.host.name, fetch.address, fetch.goes_on))
            started(fetch, now)

        self.frontier.started = noted  # type: ignore[method-assign]


@pytest.mark.slow
def test_without_retirement_the_whole_web_is_fetched(web: PageWeb) -> None:
    replay = Replay(web, world(yield_profile="off", traps="pages=0"))
    last = replay.run(web.seed_urls())
    assert last.pages == 3_000
    assert coverage(last, web.truth) == word_coverage(last, web.truth) == 1
    assert last.words == web.truth.words
    assert last.kept_bytes == web.truth.kept_bytes
    assert replay.frontier.ledger.balance.error == 0
    assert replay.frontier.is_finished


@pytest.mark.slow
def test_a_second_crawl_is_the_same(web: PageWeb) -> None:
    first, second = (Replay(web, world()) for _ in range(2))
    first.run(web.seed_urls())
    second.run(web.seed_urls(), pages=500)
    second.run()
    assert first.samples[-1] == second.samples[-1]
    assert len(first.samples) > 5


@pytest.mark.slow
def test_requests_keep_the_intervals(web: PageWeb) -> None:
    replay = Watched(web, world(host_interval_s=5.0, ip_interval_s=0.1))
    replay.run(web.seed_urls(), pages=1_000)
    for column, interval in ((1, 5.0), (2, 0.1)):
        last: dict[str, float] = {}
        for start in replay.starts:
            name = str(start[column])
            assert start[3] or start[0] - last.get(name, -9.0) > interval - 1e-6
            last[name] = start[0]


def test_every_site_is_asked_for_all_its_files_in_one_visit_and_each_counts(web: PageWeb) -> None:
    """Figures that leave tdmrep.json and ai.txt out were those of a crawl that nobody makes."""
    replay = Replay(web, world())
    asked: dict[Host, list[str]] = {}
    goes_on: list[bool] = []
    take = replay.frontier.take

    def noted(now: float) -> Fetch | None:
        fetch = take(now)
        if fetch is not None:
            asked.setdefault(fetch.host, []).append(urlsplit(fetch.url).path if fetch.robots else "page")
            goes_on.append(fetch.goes_on)
        return fetch

    replay.frontier.take = noted  # type: ignore[method-assign]
    last = replay.run(web.seed_urls(), pages=60)
    files = [SiteFile.ROBOTS.value, SiteFile.TDMREP.value, SiteFile.AI_TXT.value]
    assert all(paths[:3] == files[: len(paths)] and set(paths[3:]) <= {"page"} for paths in asked.values())
    read = sum(len(paths) > 3 for paths in asked.values())
    assert read > 2 and sum(goes_on) >= 2 * read, "over one connection"
    assert last.requests == sum(map(len, asked.values())) >= last.pages + 3 * read
    assert last.downloaded_bytes == sum(host.account.downloaded_bytes for host in asked)


@pytest.mark.slow
def test_no_more_requests_than_allowed_are_open_or_started(web: PageWeb) -> None:
    replay = Watched(web, world(host_interval_s=0.0, ip_interval_s=0.0), concurrency=3, pages_per_s=4)
    replay.run(web.seed_urls(), pages=400)
    times = [time for time, *_ in replay.starts]
    assert min(after - before for before, after in itertools.pairwise(times)) > 0.25 - 1e-6
    slow = Watched(web, world(host_interval_s=0.0, ip_interval_s=0.0), concurrency=1)
    slow.run(web.seed_urls(), pages=200)
    times = [time for time, *_ in slow.starts]
    assert min(after - before for before, after in itertools.pairwise(times)) > 0.02


def test_a_name_that_is_wanted_before_the_next_request_may_start_does_not_end_the_crawl() -> None:
    """The answer comes sooner than that, and leads to an unknown host alone: the crawl was over after one page."""

    def judge(url_id: int, url: str, answer: WebResponse) -> Outcome:
        return Outcome(url_id, url, Reason.KEPT, 200, links=(Link("http://b.test/"),))

    web = ServedAnswers(FixedWeb({"a.test": {"/": html("x")}, "b.test": {"/": html("y")}}), judge)
    assert Replay(web, world(), pages_per_s=0.1).run(["http://a.test/"]).pages == 2


@pytest.mark.slow
def test_time_and_pages_bound_a_run(web: PageWeb) -> None:
    ticks: list[int] = []
    replay = Replay(web, world(strategy="bfs"))
    assert 300 <= replay.run(web.seed_urls(), pages=300, tick=ticks.append, every=50).pages < 305
    assert sum(ticks) == replay.samples[-1].pages
    assert len(ticks) >= 6
    assert 600 <= replay.run(until=600).seconds < 700


def test_a_web_that_can_be_served_can_be_simulated() -> None:
    """Redirects, robots.txt and what it forbids, by the frontier's own rules."""
    served = FixedWeb({
        "a.test": {"/robots.txt": plain("User-agent: *\nDisallow: /no/\n"), "/": html("x"), "/old": redirect("/new"),
                   "/new": html("y")},
    })  # fmt: skip
    asked = []

    def judge(url_id: int, url: str, answer: WebResponse) -> Outcome:
        asked.append(url)
        location = answer.headers.get("Location")
        reason = Reason.REDIRECTED if location else Reason.KEPT if answer.status == 200 else Reason.HTTP_ERROR
        target = None if location is None else f"http://a.test{location}"
        links = tuple(Link(f"http://a.test{path}") for path in ("/old", "/no/1", "/gone"))
        return Outcome(url_id, url, reason, answer.status, redirect_to=target, links=links)

    replay = Replay(ServedAnswers(served, judge), world())
    last = replay.run(["http://a.test/"])
    assert asked == [f"http://a.test{path}" for path in ("/", "/old", "/gone", "/new")]
    assert (last.pages, last.documents) == (3, 2)
    assert replay.frontier.ledger.ends[Reason.ROBOTS_FORBIDDEN] == 1


@pytest.mark.slow
def test_measures() -> None:
    early = Sample(1800.0, 100, 250, 40, 20, 5_000, 2_000_000, 35_000, 7, 1)
    late = Sample(3600.0, 300, 600, 90, 50, 20_000, 8_000_000, 140_000, 0, 3)
    assert (early.hours, early.harvest_rate, early.words_per_mb) == (0.5, 0.4, 2500)
    assert early.yield_rate == pytest.approx(0.0175)
    assert early.requests_per_page == 2.5
    assert late.pages_per_s == pytest.approx(1 / 12)
    assert at_words([early, late], 5_001) is late
    assert at_words([early, late], 20_001) is None
    assert (at_pages([early, late], 100), at_pages([early, late], 1e9)) == (early, late)
