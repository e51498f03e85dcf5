"""What the links between the pages of a crawl say of a language (Somboonviwat et al. 2006, section 2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.corpus.links import LinkLine
from spiderling.reporting import tables
from spiderling.reporting.link_graph import LinkGraph, link_graph


def line(url: str, language: str, *links: str, to: str | None = None, status: int = 200) -> LinkLine:
    said = [0] * len(links)
    return LinkLine(
        url, 1.0, "kept", status, None, 1, 1, 1, to, [*links], said, said, language == "cs", page_language=language
    )


def graph(*lines: LinkLine, most_links: int = 99) -> LinkGraph:
    found = link_graph(lines, most_links)
    assert found is not None
    return found


A, B, WWW, E1, E2, D = (
    "http://a.cz/", "http://b.cz/", "http://x.a.cz/", "http://e.com/1", "http://e.com/2", "http://d.de/",
)  # fmt: skip
LINES = (
    line(A, "en"),  # it was asked again later
    line(A, "cs", A, A + "2", WWW, B, E1, "http://never.read/"),
    line(A + "2", "cs", A),
    line(WWW, "cs"),
    line(B, "", to="http://b.cz/home", status=301),
    line("http://b.cz/home", "cs", E1, E1 + "#x"),
    line(E1, "en", E2, A),
    line(E2, "en", D),
    line(D, "cs", "http://dead.cz/"),
    line("http://dead.cz/", "", status=0),
    line("http://dumb.cz/", ""),
)


def test_locality_tells_links_by_server_and_domain_and_follows_redirects():
    table = tables.locality(graph(*LINES))
    assert table.columns[1:] == ("links", "% to wanted", "same domain", "other domain", "same server", "other server")
    wanted, other = table.rows
    # from a.cz: /2, x.a.cz, b.cz and e.com; from /2: a.cz; from b.cz: e.com
    assert wanted[1:] == pytest.approx((6, 100 * 4 / 6, 100, 100 / 3, 100, 50))
    # from e.com/1: e.com/2 and a.cz; from e.com/2: d.de
    assert other[1:] == pytest.approx((3, 100 * 2 / 3, 0, 100, 0, 100))


def test_languages_are_told_by_top_level_domain():
    table = tables.languages_by_tld(graph(*LINES))
    assert table.columns == ("language", ".cz", ".com", ".de", "other", "pages", "% of pages")
    assert table.rows == [
        ("cs", 4, 0, 1, 0, 5, 62.5),
        ("en", 0, 2, 0, 0, 2, 25.0),
        ("unknown", 1, 0, 0, 0, 1, 12.5),
    ]


def test_distances_lead_through_pages_in_other_languages():
    table = tables.distances(graph(*LINES))
    assert dict(table.rows) == {"1": 4, "2": 0, "3": 1, "4": 0, "5": 0, "6 and more": 0, "no way": 0}
    assert dict(tables.distances(graph(line(A, "cs"))).rows)["no way"] == 1


def test_links_beyond_what_memory_allows_are_left_out_and_counted():
    found = graph(*LINES, most_links=6)
    assert (len(found.sources), found.left_out) == (4, 5)
    assert "The links of 5 later pages are left out." in tables.locality(found).note
    assert link_graph([line(A, "", status=0)]) is None


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 9), max_size=4)), min_size=1, max_size=9))
def test_distances_are_those_of_a_walk_page_by_page(web: list[tuple[bool, list[int]]]):
    lines = [
        line(f"http://a.cz/{at}", "cs" * own, *(f"http://a.cz/{to}" for to in links))
        for at, (own, links) in enumerate(web)
    ]
    expected = np.zeros(len(web), np.int64)
    for start, (own, _) in enumerate(web):
        ways, seen, length = {start} if own else set(), set(), 0
        while ways:
            length += 1
            ways = {to for at in ways for to in web[at][1] if to < len(web) and to != at} - seen
            seen |= ways
            for to in ways:
                expected[to] = min(expected[to] or length, length)
            ways = {to for to in ways if not web[to][0]}
    assert graph(*lines).distances().tolist() == expected.tolist()
