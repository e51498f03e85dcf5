"""Random webs on a virtual clock: whatever servers, names and kills do, no two starts are closer than allowed.

What is allowed is computed here, from what the servers had said before, and not taken from the frontier.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict

from example_counts import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from virtual_crawl import Answer, Resolution, Start, VirtualCrawl, robots

from spiderling.frontier.intervals import MAX_PAUSE_S, MAX_SLOWDOWN_S

ROUNDING_S = 1e-6
NAMES = ["a.cz", "www.a.cz", "b.cz", "c.cz", "c.cz:81", "www.d.cz"]
ORIGINS = [f"{scheme}://{name}" for scheme in ("http", "https") for name in NAMES]
URLS = [f"{origin}/{number}" for origin in ORIGINS for number in range(4)]
ADDRESSES = ["10.0.0.1", "10.0.0.2"]
TRANSITS = st.sampled_from([0.0, 0.01, 0.3, 2.0, 25.0])
LINKS = st.lists(st.sampled_from(URLS), max_size=6).map(tuple)
PAGES = st.one_of(
    st.builds(Answer, links=LINKS, transit_s=TRANSITS),
    st.builds(Answer, status=st.sampled_from([301, 302, 307]), location=st.sampled_from(URLS), transit_s=TRANSITS),
    st.builds(
        Answer, status=st.sampled_from([0, 404, 429, 500, 503]), transit_s=TRANSITS,
        retry_after_s=st.sampled_from([None, 0.0, 3.0, 50.0, 1e9, float("nan")]),
    ),
)  # fmt: skip
RULES = st.one_of(
    st.sampled_from(["", "Crawl-delay: 1", "Crawl-delay: 7.5", "Crawl-delay: 20", "Request-rate: 1/9s"]).map(
        lambda line: robots(f"User-agent: *\n{line}\n")
    ),
    st.builds(
        Answer,
        status=st.sampled_from([0, 404, 429, 503]),
        transit_s=TRANSITS,
        retry_after_s=st.sampled_from([None, 0.0, 3.0, 50.0, 1e9]),
    ),
    st.builds(Answer, status=st.just(301), location=st.sampled_from(URLS), transit_s=TRANSITS),
)
RESOLUTIONS = st.lists(
    st.builds(Resolution, st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=2).map(tuple),
              st.sampled_from([1.0, 10.0, 900.0])),
    min_size=1, max_size=3,
)  # fmt: skip


@st.composite
def crawls(draw: st.DrawFn) -> VirtualCrawl:
    web = draw(st.dictionaries(st.sampled_from(URLS), st.lists(PAGES, min_size=1, max_size=3), max_size=len(URLS)))
    web |= draw(
        st.dictionaries(st.sampled_from([f"{origin}/robots.txt" for origin in ORIGINS]), RULES.map(lambda r: [r]))
    )
    names = sorted({name.partition(":")[0] for name in NAMES})
    lateness = draw(st.lists(st.sampled_from([0.0, 0.0, 0.5, 4.0]), min_size=1, max_size=5))
    late = itertools.cycle(lateness)
    return VirtualCrawl(
        web,
        {name: draw(RESOLUTIONS) for name in names},
        start_delay_s=(lambda fetch: next(late)) if any(lateness) else None,
        connect_delay_s=(lambda fetch: next(late)) if draw(st.booleans()) else None,
        host_interval_s=draw(st.sampled_from([0.5, 5.0])),
        ip_interval_s=draw(st.sampled_from([0.0, 0.1, 3.0, 12.0])),
        delay_factor=draw(st.sampled_from([0.0, 5.0])),
        **draw(st.sampled_from([{}, {"keeps_open": True, "optouts": ""}])),
    )


@settings(
    max_examples=examples(60), suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink a whole web takes longer than to read it
)  # fmt: skip
@given(crawls(), st.lists(st.sampled_from(URLS), min_size=1, max_size=12), st.lists(st.booleans(), max_size=3))
def test_no_two_starts_are_closer_than_allowed(crawl: VirtualCrawl, seeds: list[str], kills: list[bool]) -> None:
    resumed = [0.0]
    crawl.run(*seeds, until=crawl.now + 30.0)
    for is_killed in kills:
        crawl.commit()
        crawl.run(until=crawl.now + 3.0)
        if is_killed:
            crawl.kill_and_resume()
            resumed.append(crawl.now)
        crawl.run(until=crawl.now + 60.0)
    crawl.run(until=crawl.now + 3600.0)
    for key in ("host", "address"):
        for pair in pairs(crawl, key):
            assert pair[1].time - pair[0].time >= allowed_s(crawl, key, *pair, resumed) - ROUNDING_S, pair


def pairs(crawl: VirtualCrawl, key: str) -> list[tuple[Start, Start]]:
    """Two starts in a row of one address or host (*key*), but for those of one visit, which counts as one request."""
    groups = defaultdict(list)
    for start in crawl.starts:
        groups[getattr(start, key)].append(start)
    all_pairs = [pair for group in groups.values() for pair in itertools.pairwise(group)]
    return [(first, second) for first, second in all_pairs if not (second.goes_on and first.host == second.host)]


def allowed_s(crawl: VirtualCrawl, key: str, first: Start, second: Start, resumed: list[float]) -> float:
    """The time that must lie between two starts in a row of one address or host."""
    options = crawl.options
    if key == "address":
        return options.ip_interval_s
    since = max(time for time in resumed if time <= second.time)  # what was said may be lost in a kill
    said = [done for done in crawl.answers if done.host == first.host and since <= done.time <= second.time]
    least = [options.host_interval_s]
    for done in said:
        if asked := re.search(rb"Crawl-delay: ([\d.]+)|1/(\d+)s", done.answer.body):
            least.append(float(asked[1] or asked[2]))
    own = (done for done in crawl.answers if done.url == first.url and first.time <= done.time < second.time)
    answer = next(own, None)
    if answer is not None and answer.time >= since:
        took_s, status = answer.time - first.time, answer.answer.status
        least.append(took_s + min(options.delay_factor * took_s, MAX_SLOWDOWN_S))
        if status in (429, 503):
            least.append(min(2 * options.host_interval_s, MAX_SLOWDOWN_S))
            if (wanted_s := answer.answer.retry_after_s) and wanted_s == wanted_s:
                least.append(took_s + min(wanted_s, MAX_PAUSE_S))
    return max(least)
