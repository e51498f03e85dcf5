"""Strategies compared: recorded webs, the strategy that knows the web, and the same figures whatever the cores."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.clairvoyants import KnownHosts, Perfect, breadth_first, stages
from simulator.comparison import (
    KNOWN_HOSTS,
    PERFECT,
    SHARES,
    Task,
    Terms,
    compare,
    crawl,
    make_web,
    summaries,
)
from simulator.generated import RECIPES, generate
from simulator.graphs import of_crawl
from simulator.measures import at_words
from simulator.pages import BYTES_PER_WORD
from simulator.replay import Replay, world
from spiderling.base.errors import BadInput
from spiderling.base.link_batch import WANTED, batch_of
from spiderling.base.reasons import Reason
from spiderling.corpus.links import LinkLine

TERMS = Terms(pages=4_000)


@pytest.fixture(scope="module", params=["thai", "pt", "scarce"])
def runs(request: pytest.FixtureRequest) -> dict[str, float]:
    """Words per MB at half of the words, by strategy; the mean of three webs, since luck decides on one so small."""
    strategies = ("bfs", "yield", "heidix", PERFECT)
    tasks = [Task(request.param, strategy, seed) for strategy in strategies for seed in (1, 2, 3)]
    return {
        summary.strategy: summary.words_per_mb[1] or 0.0
        for summary in summaries(crawl(task, replace(TERMS, word_share=0.5)) for task in tasks)
    }  # fmt: skip


@pytest.mark.slow
def test_who_knows_every_page_is_far_ahead(runs: dict[str, float]) -> None:
    assert all(runs[PERFECT] > 1.5 * rate for strategy, rate in runs.items() if strategy != PERFECT)


@pytest.mark.slow
def test_the_perfect_strategy_finds_all_words_and_hardly_a_page_besides() -> None:
    web = generate(replace(RECIPES["thai"], pages=4_000))
    replay = Replay(web, world(traps="pages=0"), strategy=Perfect.of(web))
    last = replay.run(web.seed_urls())
    assert last.words == web.truth.words
    assert last.pages < 3 * last.documents


@pytest.mark.slow
def test_the_yardstick_reads_whole_hosts_the_richest_first() -> None:
    """At each share of the words it has about the words/MB of taking the richest hosts without any wait."""
    web = generate(replace(RECIPES["thai"], pages=4_000))
    hosts = web.pages.host
    words = np.bincount(hosts, web.pages.kept_bytes // BYTES_PER_WORD)
    sizes = np.bincount(hosts, web.pages.body_bytes)
    richest = np.argsort(-words / sizes)
    run = crawl(Task("thai", KNOWN_HOSTS, 1), TERMS, web=web)
    for share in SHARES:
        end = np.searchsorted(np.cumsum(words[richest]), share * words.sum()) + 1
        sample = at_words(run.samples, share * words.sum())
        assert sample is not None
        assert sample.words_per_mb == pytest.approx(
            words[richest][:end].sum() / sizes[richest][:end].sum() * 1e6, rel=0.2
        )
    assert run.last.words == web.truth.words


@pytest.mark.slow
def test_the_yardstick_keeps_the_intervals() -> None:
    web = generate(replace(RECIPES["thai"], pages=4_000))
    options = world(host_interval_s=5.0, delay_factor=0.0)
    (urls,) = stages(web, ())
    last = Replay(web, options, strategy=KnownHosts()).run(urls)
    longest = max(Counter(url.split("/")[2] for url in urls).values())
    assert last.seconds >= 5 * (longest - 1)
    assert last.pages == len(urls)


@pytest.mark.slow
def test_runs_are_the_same_on_one_core_and_on_two() -> None:
    tasks = [Task("thai", strategy, seed) for strategy in ("bfs", "simulator.rivals.Lswc:s=3,t=5") for seed in (1, 2)]
    ticks: list[int] = []
    terms = replace(TERMS, max_pages=500)
    alone = {run.task: run for run in compare(tasks, terms, 1, lambda pages: None)}
    together = {run.task: run for run in compare(tasks, terms, 2, ticks.append)}
    assert alone == together
    assert [summary.seeds for summary in summaries(alone[task] for task in tasks)] == [2, 2]
    assert sum(ticks) <= sum(run.last.pages for run in alone.values())


@pytest.mark.slow
def test_a_rate_that_a_crawl_never_reached_is_not_made_up() -> None:
    (summary,) = summaries([crawl(Task("thai", "bfs", 1), replace(TERMS, max_pages=100))])
    assert summary.words_per_mb == (None,) * len(SHARES)


@pytest.mark.slow
def test_breadth_first() -> None:
    """0 -> 1, 2; 1 -> 3; 2 -> 3; 4 -> 0"""
    starts, targets = np.array([0, 2, 3, 4, 4, 5]), np.array([1, 2, 3, 3, 0])
    tree = breadth_first(starts, targets, np.array([0]))
    assert [level.tolist() for level in tree.levels] == [[0], [1, 2], [3]]
    assert tree.parent.tolist() == [-1, 0, 0, 1, -1]


def line(url: str, reason: Reason, links: list[str], target: str | None = None) -> LinkLine:
    kept = 900 if reason is Reason.KEPT else 0
    relevant = reason is not Reason.WRONG_LANGUAGE
    scores, anchors = [200] * len(links), [9] * len(links)
    return LinkLine(
        url, 0.0, reason.value, 200, "cs" if kept else None, 5_000, kept, 120, target, links, scores, anchors, relevant
    )  # fmt: skip


def test_the_links_of_a_crawl_are_a_web() -> None:
    lines = [
        line("http://a.test/", Reason.BOILERPLATE_ONLY, ["http://a.test/old", "http://b.test/", "http://gone.test/"]),
        line("http://a.test/old", Reason.REDIRECTED, [], "http://a.test/new"),
        line("http://b.test/", Reason.WRONG_LANGUAGE, ["http://a.test/"]),
        line("http://a.test/new", Reason.KEPT, []),
    ]
    web = of_crawl("mine", lines, "cs")
    assert web.seed_urls() == ["http://a.test/"]
    assert (web.truth.pages, web.truth.relevant, web.truth.kept_bytes) == (3, 2, 900)
    links = batch_of(web.outcome(1, "http://a.test/").links)
    assert {*links.rows()} == {("http://a.test/new", 200, 9), ("http://b.test/", 200, 9)}
    assert of_crawl("mine", lines, "cs", ["http://b.test/"]).seed_urls() == ["http://b.test/"]


@pytest.mark.slow
def test_a_recorded_page_tells_the_simulated_crawl_what_it_told_the_real_one() -> None:
    page = line("http://a.test/", Reason.BOILERPLATE_ONLY, ["http://a.test/1"])
    page = page._replace(relevant=False, page_language="pl", sketch=7, said=[WANTED])
    unread = line("http://a.test/1", Reason.BOILERPLATE_ONLY, [])._replace(relevant=False)  # of an older record
    web = of_crawl("mine", [page, unread], "cs")
    first, other = (web.outcome(1, url) for url in ("http://a.test/", "http://a.test/1"))
    assert (first.page_language, first.relevant, first.sketch) == ("pl", False, 7)
    assert batch_of(first.links).flags[0] & WANTED
    assert (other.page_language, other.relevant) == ("", False)
    assert other.sketch not in (0, 7)


@pytest.mark.slow
def test_of_pages_with_one_text_the_first_that_is_met_is_kept() -> None:
    """The recorded crawl met b.test first; one that begins at a.test keeps the text there."""
    twins = [
        line("http://b.test/", Reason.KEPT, ["http://a.test/"])._replace(text_key=5),
        line("http://a.test/", Reason.DUPLICATE, ["http://b.test/"])._replace(text_key=5),
    ]
    for start, url in (("a", "http://a.test/"), ("b", "http://b.test/")):
        web = of_crawl("mine", twins, "cs", [url])
        assert (web.truth.pages, web.truth.kept_bytes) == (2, 900)
        replay = Replay(web, world(lang="cs"))
        last = replay.run([url])
        assert (last.pages, last.documents, last.kept_bytes) == (2, 1, 900)
        kept = [host.name for host in map(replay.frontier.hosts.get, ("a.test", "b.test")) if host and host.documents]
        assert kept == [f"{start}.test"]


def test_a_web_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no web .*: name thai, .*, one-address, .*, or the directory"):
        make_web(str(tmp_path), 1, TERMS)
    with pytest.raises(BadInput, match="SPIDERLING_STRATEGY"):
        list(compare([Task("thai", "nonsense", 1)], TERMS, 1, lambda pages: None))
