"""How much a crawl has, by lists of pages: what is estimated, what is refused, and what a crawl does with it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from conftest import Crawl, page, refusal, scrapy, serving
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.jobdir.coverage import Coverage, LookedUp, estimate, in_words, look_up, read_lists, with_point
from spiderling.jobdir.inspection import Inspection

HOSTS = [f"h{number}.test" for number in range(8)]


def listed(has: list[bool], hosts: int = 20, words: list[float] | None = None, name: str = "a.txt") -> LookedUp:
    """A list whose pages are spread over so many *hosts*."""
    host = np.arange(len(has)) % hosts
    giving = np.isin(host, host[np.array(has, bool)])
    return LookedUp(name, np.array(has, bool), np.array(words or [], float), host, giving)


def test_the_share_of_a_list_is_the_estimate_and_more_pages_make_it_narrower() -> None:
    few = estimate([listed([at % 4 == 0 for at in range(100)], hosts=25)])
    many = estimate([listed([at % 4 == 0 for at in range(2000)], hosts=500)])
    assert few.pages is not None and many.pages is not None
    assert few.pages.share == many.pages.share == 0.25
    assert few.pages.low < many.pages.low < 0.25 < many.pages.high < few.pages.high
    assert few.words is None and few.why == "no list says how many words its pages have"


def test_words_count_by_words() -> None:
    words = [90.0 if at % 10 == 0 else 1.0 for at in range(200)]
    found = estimate([listed([at % 10 == 0 for at in range(200)], words=words)])
    assert found.pages is not None and found.words is not None
    assert found.pages.share == pytest.approx(0.1) and found.words.share == pytest.approx(90 / 99)


def test_what_was_not_fetched_counts_by_what_is_kept_of_the_others() -> None:
    half = listed([at % 2 == 0 for at in range(200)])
    one, other = estimate([half]).pages, estimate([half._replace(kept_share=0.5)]).pages
    assert one is not None and other is not None
    assert one.share == pytest.approx(1 / 2) and other.share == pytest.approx(2 / 3)


def test_pages_of_one_host_say_less_than_pages_of_many() -> None:
    has = [at % 10 < 5 for at in range(200)]
    whole_hosts = estimate([listed(has, hosts=10)]).pages
    scattered = estimate([listed(has, hosts=199)]).pages
    assert whole_hosts is not None and scattered is not None
    assert whole_hosts.high - whole_hosts.low > 1.5 * (scattered.high - scattered.low)


@pytest.mark.parametrize(("pages", "hosts"), [(49, 20), (500, 5)])
def test_a_list_that_is_too_short_is_refused_with_its_numbers(pages: int, hosts: int) -> None:
    found = estimate([listed([True] * pages, hosts)])
    assert found[:3] == (None, None, None)
    assert found.why == f"a.txt has {pages} pages of {hosts} hosts: 50 of 6 hosts are needed"


def test_of_two_lists_the_interval_has_both_and_nothing_is_said_if_they_contradict_each_other() -> None:
    third = listed([at % 3 == 0 for at in range(300)], hosts=299)
    quarter = listed([at % 4 == 0 for at in range(300)], hosts=299)
    both, one, other = (estimate(lists).pages for lists in ([third, quarter], [third], [quarter]))
    assert both is not None and one is not None and other is not None
    assert (both.low, both.high) == (other.low, one.high) and other.share < both.share < one.share
    most = listed([at % 10 != 0 for at in range(300)], hosts=299, name="b.txt")
    found = estimate([third, most])
    assert found[:3] == (None, None, None) and "the pages (33% and 90%)" in found.why


@given(
    st.lists(st.booleans(), max_size=200),
    st.integers(1, 40),
    st.lists(st.integers(0, 10**9), min_size=200, max_size=200),
)
def test_whatever_a_list_holds_the_bounds_are_in_order(has: list[bool], hosts: int, words: list[int]) -> None:
    found = estimate([listed(has, hosts, [float(number) for number in words[: len(has)]])])
    for one in found[:3]:
        if one is not None:
            assert isinstance(one, tuple) and 0 <= one[1] <= one[0] + 1e-9 and one[0] <= one[2] + 1e-9 and one[2] <= 1


@pytest.mark.parametrize("line", ["no url", "https://a.test/\tmany", "ftp://a.test/", f"https://a.test/\t{10**9}"])
def test_a_line_that_names_no_page_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pages.txt"
    path.write_text(f"# a comment\nhttps://a.test/\n{line}\n")
    with pytest.raises(BadInput, match=r"line 3 of .*pages\.txt names no page"):
        read_lists(str(path))


def test_commas_alone_name_no_list() -> None:
    with pytest.raises(BadInput, match="',' names no list of pages"):
        read_lists(",")


def test_points_stay_few_and_the_newest_is_the_last() -> None:
    points: list[dict[str, object]] = []
    for now in range(1200):
        points = with_point(points, now, Coverage(None, None, None, ""))
    assert len(points) <= 500 and points[-1]["time"] == 1199
    assert in_words(points[-1]) == ""


def test_a_crawl_says_what_it_has_and_stops_when_that_is_enough(tmp_path: Path) -> None:
    sites = {host: {f"/{n}": page(f"{host} {n}", f"/{n + 1}") for n in range(12)} for host in HOSTS}
    sites[HOSTS[0]]["/0"] = page("hub", "/1", *(f"http://{host}/0" for host in HOSTS))
    known = [f"{'https://www.' if n % 2 else 'http://'}{host}/{n}" for host in HOSTS for n in range(10)]
    unknown = [f"http://elsewhere{n % 9}.test/{n}" for n in range(20)]
    lists = tmp_path / "pages.txt"
    lists.write_text("".join(f"{url}\t100\n" for url in [*known, *unknown, known[0].replace("http:", "https:")]))
    with serving(sites) as server:
        crawl = Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05)
        often = {"extensions.control.COVERAGE_S": 0.2}
        enough = crawl.start(
            f"http://{HOSTS[0]}/0", ("-a", "coverage=.2"), COVERAGE_LISTS=lists, CONSTANTS=often, HOST_INTERVAL_S=0.4
        ).wait()
        assert enough.code == 0 and enough.lines("SPIDERLING_COVERAGE_SHARE=0.2 (-a coverage) is reached"), (
            enough.output
        )
        assert enough.lines("Of the text on the web, the crawl has", "% of the words", "% of the pages")
        stopped = json.loads(crawl.state().meta["coverage"])[-1]
        assert 0.2 <= stopped["words"][1] < stopped["words"][0] < 0.8
        assert crawl.run().lines("is finished.")
    with closing(Inspection(crawl.directory)) as inspection:
        found, missing = look_up(inspection, read_lists(str(lists))[0])
    assert int(found.has.sum()) == 80 and sorted(missing) == sorted(unknown) and found.kept_share == 1
    said = scrapy("inspect", str(crawl.directory), "--coverage", str(lists)).out
    assert said.startswith("The crawl has 80% of the words (") and "80% of the pages (" in said
    left = scrapy("inspect", str(crawl.directory), "--coverage", str(lists), "--missing").out
    assert sorted(left.split()) == sorted(unknown)
    status = json.loads(scrapy("inspect", str(crawl.directory), "--json").out)
    assert status["coverage"][-1]["words"] == stopped["words"]
    assert "Coverage: " in (crawl.directory / "corpus/README.md").read_text()


def test_a_share_without_lists_and_lists_of_shards_are_refused(tmp_path: Path) -> None:
    assert "SPIDERLING_COVERAGE_SHARE needs lists of pages" in refusal(
        tmp_path / "a", "-a", "lang=cs", "-s", "SPIDERLING_COVERAGE_SHARE=.5"
    )
    lists = tmp_path / "pages.txt"
    lists.write_text("https://a.test/\n")
    trail = ("-s", "SPIDERLING_TRAIL=off", "-s", f"SPIDERLING_COVERAGE_LISTS={lists}")
    assert "scrapy inspect JOBDIR --coverage" in refusal(tmp_path / "b", "-a", "lang=cs", *trail)
    assert "cannot be read" in refusal(
        tmp_path / "c", "-a", "lang=cs", "-s", f"SPIDERLING_COVERAGE_LISTS={tmp_path}/none.txt"
    )
