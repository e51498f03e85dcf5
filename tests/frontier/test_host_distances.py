"""A host's distance is the length of the shortest way to it over all pages read so far, whatever their order."""

from __future__ import annotations

import heapq
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_crawl import VirtualCrawl, fold, page, to

from spiderling.base.reasons import Reason

FAR_FIRST = {
    "http://seed.cz/": page("http://b.cz/", *(f"http://seed.cz/{n}" for n in range(1, 17))),
    "http://b.cz/": page("http://c.cz/1"),
    "http://c.cz/1": page("http://d.cz/1"),
    "http://d.cz/1": page("http://e.cz/"),
    "http://seed.cz/16": page("http://c.cz/2"),
}
"""The long way to c is found first: c/1 is read at distance 2, d/1 at 3; the last page of the seed links to c."""


def distances(crawl: VirtualCrawl) -> dict[str, int]:
    return {host.name: host.distance for host in crawl.frontier.hosts}


def shortest(crawl: VirtualCrawl, seeds: tuple[str, ...]) -> dict[str, int]:
    """The same by Dijkstra over the answers: a link to another host is one hop, a redirect none."""
    ways: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for done in crawl.answers:
        if done.answer.location is not None:
            ways[done.host].add((0, fold(done.answer.location)))
        elif done.answer.status == 200:
            ways[done.host] |= {(1, fold(str(link))) for link in done.answer.links}
    found: dict[str, int] = {}
    queue = [(0, fold(seed)) for seed in seeds]
    while queue:
        distance, host = heapq.heappop(queue)
        if host not in found:
            found[host] = distance
            for hops, other in ways[host]:
                heapq.heappush(queue, (distance + hops, other))
    return found


def test_a_host_that_comes_near_enough_is_admitted_again():
    """Mentions of it were refused as too far, and these do not come back; those from now on are accepted."""
    web = FAR_FIRST | {
        "http://x.cz/": page("http://e.cz/a"),
        "http://d.cz/1": page("http://e.cz/"),
        "http://c.cz/2": page("http://d.cz/2"),
        "http://d.cz/2": page("http://e.cz/b"),
    }
    crawl = VirtualCrawl(web, max_distance=3).run("http://seed.cz/")
    assert crawl.mentions[Reason.TOO_FAR] == 1
    assert crawl.fetched("e.cz") == ["http://e.cz/b"]
    assert distances(crawl)["e.cz"] == 3


def test_a_seed_that_is_given_later_brings_all_that_its_host_leads_to_nearer():
    crawl = VirtualCrawl(FAR_FIRST | {"http://b.cz/": to("http://c.cz/1")}).run("http://seed.cz/", until=1030)
    assert distances(crawl) == {"seed.cz": 0, "b.cz": 1, "c.cz": 1, "d.cz": 2, "e.cz": 3}
    crawl.run("http://b.cz/new", until=1031)
    assert distances(crawl) == {"seed.cz": 0, "b.cz": 0, "c.cz": 0, "d.cz": 1, "e.cz": 2}


URLS = [f"http://{host}.cz/{path}" for host in "abcdef" for path in range(4)]
ANSWERS = st.one_of(
    st.lists(st.sampled_from(URLS), max_size=3).map(lambda links: page(*links)), st.sampled_from(URLS).map(to)
)


@settings(max_examples=20, deadline=None)
@given(
    st.fixed_dictionaries({url: ANSWERS for url in URLS}),
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=5),
)
def test_distances_are_those_of_the_shortest_ways_after_any_kills(web, stops):
    seeds = ("http://a.cz/0", "http://b.cz/0")
    crawl = VirtualCrawl(web, yield_profile="off", traps="off").run(*seeds, until=1000)
    crawl.commit()
    for seconds, is_committed in stops:
        crawl.run(until=crawl.now + seconds)
        if is_committed:
            crawl.commit()
        crawl.kill_and_resume()
    crawl.run()
    assert distances(crawl) == shortest(crawl, seeds)
