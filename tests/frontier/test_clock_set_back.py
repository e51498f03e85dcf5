"""A machine's clock may be wrong in one run and right in the next: no stored time holds a crawl up for longer than any
pause of its own can last."""

from __future__ import annotations

import itertools

import pytest
from example_counts import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_politeness_properties import URLS, crawls
from virtual_crawl import DAY_S, Answer, VirtualCrawl, page, robots

from spiderling.base.reasons import Reason
from spiderling.frontier.intervals import MAX_PAUSE_S
from spiderling.frontier.robots import STALE_S

YEARS_20_S = 20 * 365.25 * DAY_S
BUSY = Answer(status=503, kept_bytes=0, retry_after_s=1e9)


def resume_at(crawl: VirtualCrawl, now: float) -> None:
    """A new run of *crawl*, in which the clock says *now*."""
    crawl.restart(now - crawl.now)


@pytest.mark.parametrize("places", [1, 5000])
@pytest.mark.parametrize("ahead_s", [DAY_S, YEARS_20_S])
def test_hosts_that_a_clock_ahead_put_off_are_asked_after_the_longest_pause(ahead_s: float, places: int) -> None:
    """With one place the hosts wait in the backlog, which is another way to the workbench."""
    web = {f"http://{name}.cz/": [BUSY, page()] for name in "abc"}
    crawl = VirtualCrawl(web, now=1000.0 + ahead_s, active_hosts=places)
    crawl.run(*web, until=crawl.now + 60.0)
    assert crawl.frontier.ledger.waiting == 3
    resume_at(crawl, 2000.0)
    crawl.run()
    assert crawl.ends == {Reason.KEPT: 3}
    assert crawl.now <= 2000.0 + MAX_PAUSE_S + 60.0


def test_new_work_for_a_host_at_rest_does_not_bring_the_wrong_time_back() -> None:
    """A link leads to it while its row, from the time of the wrong clock, is in memory and it holds no place."""
    crawl = VirtualCrawl({"http://a.cz/": page(), "http://b.cz/": page()}, now=YEARS_20_S, active_hosts=1)
    crawl.run("http://a.cz/", "http://b.cz/")
    resume_at(crawl, 2000.0)
    assert crawl.host("a.cz").due >= YEARS_20_S, "as it was stored"
    crawl.run("http://b.cz/2", "http://b.cz/3", "http://a.cz/2", "http://a.cz/3")
    assert crawl.frontier.is_finished and crawl.now < 2000.0 + DAY_S


def test_robots_txt_of_a_clock_ahead_is_fetched_again() -> None:
    """Its age is not known; twenty years could pass before it was asked for otherwise."""
    rules = [robots(""), robots("User-agent: *\nDisallow: /2")]
    web = {"http://a.cz/robots.txt": rules, "http://a.cz/": page(), "http://a.cz/2": page()}
    crawl = VirtualCrawl(web, now=YEARS_20_S).run("http://a.cz/")
    resume_at(crawl, 2000.0)
    assert crawl.run("http://a.cz/2").ends == {Reason.KEPT: 1, Reason.ROBOTS_FORBIDDEN: 1}
    assert len(crawl.robots_fetched()) == 2


def test_a_copy_of_robots_txt_from_a_clock_ahead_grows_old_all_the_same() -> None:
    """While no newer one can be had it counts for STALE_S, not until the wrong time has come."""
    web = {"http://a.cz/robots.txt": [robots(""), Answer(status=503)], "http://a.cz/": page(), "http://a.cz/2": page()}
    crawl = VirtualCrawl(web, now=YEARS_20_S).run("http://a.cz/")
    resume_at(crawl, 2000.0)
    assert crawl.run("http://a.cz/2").ends == {Reason.KEPT: 2}, "the copy counts while it is young"
    crawl.now += STALE_S + DAY_S
    assert crawl.run("http://a.cz/3").ends == {Reason.KEPT: 2, Reason.ROBOTS_UNREACHABLE: 1}


def test_a_pause_that_the_clock_did_not_change_is_kept() -> None:
    crawl = VirtualCrawl({"http://a.cz/": [BUSY, page()]}).run("http://a.cz/", until=1060.0)
    resume_at(crawl, 1100.0)
    assert crawl.run().starts[-1].time == pytest.approx(1000.0 + MAX_PAUSE_S, abs=10.0)


@settings(
    max_examples=examples(25), suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)  # fmt: skip
@given(
    crawls(),
    st.lists(st.sampled_from(URLS), min_size=1, max_size=12),
    st.lists(st.sampled_from([-YEARS_20_S, YEARS_20_S, -DAY_S, DAY_S, -3600.0, 5.0]), min_size=1, max_size=4),
)
def test_whatever_the_clock_does_between_runs_the_crawl_ends(crawl, seeds, steps):
    """Each URL is asked at most three times, with the longest pause between two requests: days, and no years."""
    crawl.now += 5 * YEARS_20_S
    crawl.run(*seeds, until=crawl.now + 30.0)
    for step_s in steps:
        resume_at(crawl, crawl.now + step_s)
        crawl.run(until=crawl.now + 30.0)
        due = crawl.frontier.next_due()
        assert due is None or due <= crawl.now + MAX_PAUSE_S
    asked = len(crawl.starts)
    crawl.run(until=crawl.now + 60 * DAY_S)
    assert crawl.frontier.is_finished
    times = [start.time for start in crawl.starts[asked:]]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps, default=0.0) <= MAX_PAUSE_S + 60.0


def test_a_host_whose_clock_was_ahead_can_be_probed_after_the_longest_pause() -> None:
    """It has no place, so its row still says when it is due; a doubt of the network waited for it for ever."""
    crawl = VirtualCrawl({"http://a.cz/": page()}).run("http://a.cz/")
    address = crawl.starts[-1].address
    crawl.restart(-500_000_000.0)
    crawl.now += MAX_PAUSE_S
    assert crawl.frontier.probes.due_in(crawl.frontier.host("a.cz"), address, crawl.now) == 0.0
