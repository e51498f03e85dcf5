"""What each strategy fetches, in which order, and what it leaves out; on a web where one page in three is relevant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import Answer, VirtualCrawl, page

from spiderling.base.errors import BadInput
from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import LAST_RANK, Host
from spiderling.frontier.ranking.strategies import STRATEGIES, LinkingPage, parse
from spiderling.frontier.ranking.strategy import DROPPED, FoundLink, Ranker, Strategy
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.url_states import UrlStates

WRONG = Reason.WRONG_LANGUAGE


def poor(*links: str | Link) -> Answer:
    return page(*links, kept_bytes=0, reason=WRONG)


def names(crawl: VirtualCrawl) -> list[str]:
    """Pages asked for in order, by the last part of their URLs."""
    return [url.rpartition("/")[2] for url in crawl.fetched()]


def on_one_host(**pages: Answer | tuple[str, ...]) -> dict[str, Answer]:
    """Pages of http://a.cz by name; a tuple of names is a page in another language with these links."""
    answers = {name: poor(*what) if isinstance(what, tuple) else what for name, what in pages.items()}
    for name, answer in answers.items():
        links = tuple(f"http://a.cz/{link}" for link in answer.links)
        answers[name] = Answer(kept_bytes=answer.kept_bytes, reason=answer.reason, links=links)
    return {f"http://a.cz/{name}": answer for name, answer in answers.items()}


TREE = on_one_host(
    s=page("bad", "good"), bad=("bad1", "good1"), good=page("good2", "good3"),
    bad1=("deep",), good1=page(), good2=page(), good3=page(), deep=page("rich"), rich=page(),
)  # fmt: skip
BFS = ["s", "bad", "good", "bad1", "good1", "good2", "good3", "deep", "rich"]


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("bfs", BFS),
        ("yield", BFS),
        ("soft", ["s", "bad", "good", "good2", "good3", "bad1", "good1", "deep", "rich"]),
        ("distance", ["s", "bad", "good", "good2", "good3", "bad1", "good1", "deep", "rich"]),
        ("distance:t=2", ["s", "bad", "good", "good2", "good3", "bad1", "good1"]),
        ("dfs", ["s", "bad", "bad1", "deep", "rich", "good1", "good", "good2", "good3"]),
        ("hard", ["s", "bad", "good", "good2", "good3"]),
        ("lswc", ["s", "bad", "good", "good2", "good3"]),
        ("lswc:t=3,s=9", ["s", "bad", "good", "good2", "good3", "bad1", "good1", "deep", "rich"]),
    ],
)
def test_order(strategy: str, order: list[str]) -> None:
    crawl = VirtualCrawl(TREE, strategy=strategy).run("http://a.cz/s")
    assert names(crawl) == order
    refused = crawl.mentions.get(Reason.UNPROMISING, 0)
    assert refused == {"hard": 2, "lswc": 2, "distance:t=2": 1}.get(strategy, 0), "and nothing else is missing"


def test_dropped_link_is_accepted_from_a_better_page() -> None:
    web = on_one_host(s=page("bad", "good"), bad=("both",), good=page("both"), both=page())
    assert names(VirtualCrawl(web, strategy="hard").run("http://a.cz/s")) == ["s", "bad", "good", "both"]


def test_server_without_relevant_pages_is_left_after_s_of_them() -> None:
    links = [f"http://b.cz/{number}" for number in range(6)] + [f"http://c.cz/{number}" for number in range(6)]
    web: dict[str, Any] = {"http://a.cz/s": page(*links), **dict.fromkeys(links, poor())}
    web["http://c.cz/1"] = page()
    for s, of_b, of_c in ((1, 1, 1), (2, 2, 6)):
        crawl = VirtualCrawl(web, strategy=f"lswc:s={s}").run("http://a.cz/s")
        assert (len(crawl.fetched("b.cz")), len(crawl.fetched("c.cz"))) == (of_b, of_c), s
    assert crawl.ends == {Reason.KEPT: 2, WRONG: 7, Reason.HOST_RETIRED: 4}


def rank(name: str, linking: LinkingPage, block: bool = False) -> int:
    return ranking(name)(linking, block)


def ranking(name: str) -> Callable[[LinkingPage, bool], int]:
    """The function that ranks the link of a page, in a block of text or not."""
    options = Options(strategy=name)
    strategy, target = parse(name), canonicalize("http://b.cz/")
    url_states = UrlStates(options, SqliteStore(), strategy)
    url_states.hosts.create("a.cz", 0)
    strategy.begin(url_states, options)
    assert target is not None
    return lambda linking, block: strategy.ranker(linking)(FoundLink.to(target, 0, block))


def test_lswc_prefers_what_an_english_page_between_leads_to(a_host: Any) -> None:
    at = {language: rank("lswc:t=5", LinkingPage(a_host, WRONG, 2, language=language)) for language in ("en", "de")}
    assert at["en"] < at["de"] < rank("lswc:t=5", LinkingPage(a_host, WRONG, at["de"], language="en"))
    assert rank("lswc:t=5", LinkingPage(a_host, WRONG, 2, relevant=True)) == 2, "by the paper's rule it is relevant"


@pytest.mark.parametrize("name", sorted(STRATEGIES.keys() - {"random-walk"}))
def test_pages_that_are_told_alike_have_links_of_one_rank(name: str, a_host: Any) -> None:
    rank_of = ranking(name)
    for number, reason in enumerate([Reason.KEPT, WRONG, Reason.BOILERPLATE_ONLY, Reason.DUPLICATE, Reason.DNS] * 7):
        page = LinkingPage(a_host, reason, number % 5, number % 2 == 0, ("cs", "en")[number % 3 == 0], 4.0 * number)
        read = parse(name).what_is_read(page)
        assert [rank_of(read, block) for block in (True, False)] == [rank_of(page, block) for block in (True, False)]
        if name in ("spiderling", "heidix"):
            assert (read.rank, read.language) == (0, ""), "few kinds of pages are left"


def host_of(frontier: Frontier) -> Host:
    """Its first host."""
    frontier.put_seed("http://a.cz/", 0.0)
    return frontier.hosts.by_id(1)


@pytest.fixture
def a_host() -> Host:
    return host_of(Frontier(Options()))


def test_cyclic_goes_on_with_the_good_links_only() -> None:
    good = [Link(f"http://a.cz/g{number}", True) for number in range(3)]
    bad = [f"http://a.cz/b{number}" for number in range(20)]
    web: dict[str, Any] = {"http://a.cz/s": page(*bad, *good), **dict.fromkeys(bad, poor())}
    web |= {link.url: page(Link(f"{link.url}x", True)) for link in good}
    crawl = VirtualCrawl(web, strategy="cyclic:burn_in=9,phase=5,phases=2").run("http://a.cz/s")
    fetched = set(names(crawl))
    assert {link.url.rpartition("/")[2] + x for link in good for x in ("", "x")} <= fetched
    assert 2 < sum(name.startswith("b") for name in fetched) < 9, "while the burn-in lasts all take turns"
    assert crawl.ends[Reason.PASSED_OVER] == 20 + 7 - len(fetched)


def test_only_strategies_with_yield_retire() -> None:
    web = {f"http://a.cz/{number}": page(body_bytes=200_000, kept_bytes=0) for number in range(20)}
    for strategy in STRATEGIES:
        crawl = VirtualCrawl(web, strategy=strategy).run(*web)
        assert (Reason.HOST_RETIRED in crawl.ends) is (parse(strategy).retires or strategy == "lswc"), strategy


def test_example_of_the_docs_works() -> None:
    text = (Path(__file__).parents[2] / "docs/strategies.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    frontier = Frontier(Options(), strategy=names["ShortPathsFirst"]())
    frontier.put_seed("http://z.cz/", 0.0)
    host = frontier.hosts.by_id(1)
    links = [Link(f"http://a.cz/{path}") for path in ("a/b/c", "", "a/b")]
    frontier.put_links(LinkingPage(host, Reason.KEPT), links, 0.0)
    found = frontier.hosts.get("a.cz")
    assert found is not None
    queues = frontier.url_states.queues
    assert [queues.pop(found).target.path for _ in links] == ["/", "/a/b", "/a/b/c"]


def test_every_strategy_is_documented_with_its_parameters() -> None:
    text = (Path(__file__).parents[2] / "docs/strategies.md").read_text(encoding="utf-8")
    for name, cls in STRATEGIES.items():
        parameters = ",".join(f"{spec.name}={spec.default:g}" for spec in fields(cls) if spec.init)  # type: ignore[arg-type]
        shown = parameters if name != "cyclic" else "burn_in=1000000,phase=10000000,phases=4,badness=10"
        assert f"| `{name}{':' if shown else ''}{shown}` |" in text


@dataclass(frozen=True)
class Truth(Strategy):
    """One that knows more than a crawl can."""

    wanted: frozenset[str] = frozenset()

    def ranker(self, page: LinkingPage) -> Ranker:
        return lambda link: 1 if link.target.url in self.wanted else DROPPED


def test_strategy_of_the_callers_own() -> None:
    frontier = Frontier(Options(), strategy=Truth(frozenset({"http://a.cz/good"})))
    frontier.put_seed("http://a.cz/", 0.0)
    host = frontier.hosts.get("a.cz")
    assert host is not None
    frontier.put_links(LinkingPage(host, Reason.KEPT), [Link("http://a.cz/good"), Link("http://a.cz/bad")], 0.0)
    assert (frontier.ledger.discovered, frontier.ledger.refused_links[Reason.UNPROMISING]) == (2, 1)


@given(
    st.sampled_from(sorted(STRATEGIES)), st.sampled_from(list(Reason)), st.integers(0, LAST_RANK), st.booleans(),
    st.floats(0, 1e9), st.integers(0, 10**9),
)  # fmt: skip
def test_ranks_are_ranks(name: str, reason: Reason, of_page: int, block: bool, badness: float, pages: int) -> None:
    found = rank(name, LinkingPage(host_of(Frontier(Options())), reason, of_page, badness=badness, pages=pages), block)
    assert found == DROPPED or 1 <= found <= LAST_RANK


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lsvc", "did you mean lswc"), ("", "known are"), ("bfs:t=1", "takes none"), ("lswc:x=1", "takes s, t"),
        ("spiderling:haste=1", "no parameter 'haste'"),
        ("lswc:s", "whole number"), ("lswc:t=0", "from 1 to 7"), ("lswc:t=8", "from 1 to 7"),
        ("lswc:s=1.5", "whole number"), ("cyclic:badness=-1", "0 or more"), ("cyclic:badness=nan", "0 or more"),
    ],
)  # fmt: skip
def test_unknown_strategy_is_told(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse(text)


def test_strategy_with_parameters() -> None:
    assert parse("spiderling:thrift=0").thrift == 0
    assert parse("distance:t=9") == parse("distance")
    assert parse(" lswc: s=3, t=5") == STRATEGIES["lswc"](s=3, t=5)  # type: ignore[call-arg]


def walked(jump: float, links: int, new: int, pages: int = 4000) -> list[int]:
    """How often each of the *new* ones among so many links of a page was drawn to go on with."""
    strategy, target = parse(f"random-walk:jump={jump}"), canonicalize("http://b.cz/")
    read = [canonicalize(f"http://a.cz/{number}") for number in range(pages)]
    frontier = Frontier(Options())
    strategy.begin(frontier.url_states, Options(random_seed=7))
    host, drawn = host_of(frontier), [0] * new
    assert target is not None
    outcome = Outcome(1, "http://a.cz/", Reason.KEPT, 200, links=tuple(Link(f"http://b.cz/{n}") for n in range(links)))
    for at in filter(None, read):
        strategy.learn(LinkingPage(host, Reason.KEPT), at, outcome)
        rank_of = strategy.ranker(LinkingPage(host, Reason.KEPT))
        ranks = [rank_of(FoundLink.to(target, 0, False)) for _ in range(new)]
        assert sorted(ranks)[1:] == [9] * (new - 1), "one link of a page at most"
        for place, rank in enumerate(ranks):
            drawn[place] += rank == 1
    return drawn


@pytest.mark.parametrize(("jump", "links", "new"), [(0.0, 5, 5), (0.5, 5, 5), (0.0, 10, 5), (1.0, 5, 5)])
def test_random_walk_goes_on_with_each_link_as_likely(jump: float, links: int, new: int) -> None:
    expected = 4000 * (1 - jump) / links
    assert all(abs(times - expected) <= 5 * math.sqrt(expected) for times in walked(jump, links, new))


def test_random_walk_comes_back_to_what_it_passed_by() -> None:
    web = {f"http://a.cz/{n}": page(f"http://a.cz/{2 * n}", f"http://a.cz/{2 * n + 1}") for n in range(1, 32)}
    web |= {f"http://a.cz/{n}": page() for n in range(32, 64)}
    crawl = VirtualCrawl(web, strategy="random-walk:jump=0").run("http://a.cz/1")
    path = [int(name) for name in names(crawl)]
    assert len(path) == 63
    assert all(path[at] // 2 == path[at - 1] for at in range(1, 6)), "down to a leaf without a turn"
    assert parse("random-walk").weight(8) == 0.125 and parse("bfs").weight(8) == 0
