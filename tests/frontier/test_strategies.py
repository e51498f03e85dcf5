"""Strategies rank links and hosts; which rank is served is drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_crawl import Answer, VirtualCrawl, page

from simulator.rivals import Lswc
from spiderling.base.errors import BadInput
from spiderling.base.link_batch import FOREIGN, WANTED, Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import LAST_RANK, Host, HostStates
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategies import STRATEGIES, LinkingPage, parse
from spiderling.frontier.strategy import DROPPED, Draw, FoundLink, NewLinks, Ranker, Strategy
from spiderling.frontier.url_states import UrlStates
from spiderling.frontier.workbench import Backlog, Workbench

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
        ("simulator.rivals.Soft", ["s", "bad", "good", "good2", "good3", "bad1", "good1", "deep", "rich"]),
        ("simulator.rivals.Hard", ["s", "bad", "good", "good2", "good3"]),
        ("simulator.rivals.Lswc", ["s", "bad", "good", "good2", "good3"]),
        ("simulator.rivals.Lswc:t=3,s=9", ["s", "bad", "good", "good2", "good3", "bad1", "good1", "deep", "rich"]),
    ],
)
def test_order(strategy: str, order: list[str]) -> None:
    crawl = VirtualCrawl(TREE, strategy=strategy).run("http://a.cz/s")
    assert names(crawl) == order
    refused = crawl.mentions.get(Reason.UNPROMISING, 0)
    assert refused == {"simulator.rivals.Hard": 2, "simulator.rivals.Lswc": 2}.get(strategy, 0), (
        "and nothing else is missing"
    )


def test_dropped_link_is_accepted_from_a_better_page() -> None:
    web = on_one_host(s=page("bad", "good"), bad=("both",), good=page("both"), both=page())
    assert names(VirtualCrawl(web, strategy="simulator.rivals.Hard").run("http://a.cz/s")) == [
        "s",
        "bad",
        "good",
        "both",
    ]


def test_server_without_relevant_pages_is_left_after_s_of_them() -> None:
    links = [f"http://b.cz/{number}" for number in range(6)] + [f"http://c.cz/{number}" for number in range(6)]
    web: dict[str, Any] = {"http://a.cz/s": page(*links), **dict.fromkeys(links, poor())}
    web["http://c.cz/1"] = page()
    for s, of_b, of_c in ((1, 1, 1), (2, 2, 6)):
        crawl = VirtualCrawl(web, strategy=f"simulator.rivals.Lswc:s={s}").run("http://a.cz/s")
        assert (len(crawl.fetched("b.cz")), len(crawl.fetched("c.cz"))) == (of_b, of_c), s
    assert crawl.ends == {Reason.KEPT: 2, WRONG: 7, Reason.HOST_RETIRED: 4}


def rank(name: str, linking: LinkingPage, block: bool = False) -> int:
    return ranking(name)(linking, block)


@cache
def ranking(name: str) -> Callable[[LinkingPage, bool], int]:
    """The function that ranks the link of a page, in a block of text or not."""
    options = Options(strategy=name)
    strategy, target = parse(name), canonicalize("http://b.cz/")
    url_states = UrlStates(options, SqliteStore(), strategy)
    url_states.hosts.create("a.cz", 0)
    strategy.begin(url_states, options)
    assert target is not None
    return lambda linking, block: strategy.ranker(linking)(FoundLink(target, 0, block))


def test_lswc_prefers_what_an_english_page_between_leads_to(a_host: Any) -> None:
    def rank_of(linking: LinkingPage) -> int:
        return rank("simulator.rivals.Lswc:t=5", linking)

    at = {language: rank_of(LinkingPage(a_host, WRONG, 2, language=language)) for language in ("en", "de")}
    assert at["en"] < at["de"] < rank_of(LinkingPage(a_host, WRONG, at["de"], language="en"))
    assert rank_of(LinkingPage(a_host, WRONG, 2, relevant=True)) == 2, "by the paper's rule it is relevant"


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


@cache
def one_host() -> Host:
    return host_of(Frontier(Options()))


@pytest.fixture
def a_host() -> Host:
    return one_host()


def test_only_strategies_with_yield_retire() -> None:
    web = {f"http://a.cz/{number}": page(body_bytes=200_000, kept_bytes=0) for number in range(20)}
    for strategy in STRATEGIES:
        crawl = VirtualCrawl(web, strategy=strategy).run(*web)
        assert (Reason.HOST_RETIRED in crawl.ends) is parse(strategy).retires, strategy


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
        assert f"| `{name}{':' if parameters else ''}{parameters}` |" in text


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
    st.floats(0, 1e9),
)  # fmt: skip
def test_ranks_are_ranks(name: str, reason: Reason, of_page: int, block: bool, badness: float) -> None:
    found = rank(name, LinkingPage(one_host(), reason, of_page, badness=badness), block)
    assert found == DROPPED or 1 <= found <= LAST_RANK


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("yeild", "did you mean yield"), ("", "known are"), ("bfs:t=1", "takes none"), ("heidix:x=1", "takes power"),
        ("spiderling:haste=1", "no parameter 'haste'"),
        ("simulator.rivals.Lswc:s", "whole number"), ("simulator.rivals.Lswc:t=0", "from 1 to 7"),
        ("simulator.rivals.Lswc:t=8", "from 1 to 7"), ("simulator.rivals.Lswc:s=1.5", "whole number"),
        ("heidix:power=-1", "0 or more"), ("heidix:power=nan", "0 or more"),
        ("nowhere.Mine", "cannot be imported"), ("simulator.rivals.Mine", "cannot be imported"), ("a..b", "imported"),
        ("simulator.rivals", "no dataclass"), ("simulator.rivals.Ranker", "no dataclass"),
        ("simulator.rivals.Hard:t=1", "none"),
    ],
)  # fmt: skip
def test_unknown_strategy_is_told(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse(text)


def test_strategy_with_parameters() -> None:
    assert parse("spiderling:thrift=0").thrift == 0
    assert parse("heidix:power=1") == parse("heidix")
    assert parse(" simulator.rivals.Lswc: s=3, t=5") == Lswc(s=3, t=5)


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
        ranks = [rank_of(FoundLink(target, 0, False)) for _ in range(new)]
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


RANKS_WAITED_IN = st.lists(st.integers(0, 9), min_size=1, unique=True).map(sorted)


@pytest.mark.parametrize(("power", "shares"), [(1.0, (6 / 11, 3 / 11, 2 / 11)), (0.0, (1 / 3,) * 3), (math.inf, (1,))])
def test_probability_is_inversely_proportional_to_the_rank(power: float, shares: tuple[float, ...]) -> None:
    draw = Draw(power, seed=7)
    counts = Counter(draw([0, 1, 2]) for _ in range(20_000))
    assert [counts[rank] / 20_000 for rank in range(len(shares))] == pytest.approx(shares, abs=0.015)


def test_same_seed_same_draws() -> None:
    first, second, other = ([draw([0, 3, 9]) for _ in range(50)] for draw in (Draw(1, 1), Draw(1, 1), Draw(1, 2)))
    assert first == second != other


@given(st.sampled_from([0.0, 1.0, 3.0, math.inf]), st.lists(RANKS_WAITED_IN, max_size=300))
def test_only_what_is_waited_in_is_drawn(power: float, calls: list[list[int]]) -> None:
    draw = Draw(power, 1)
    assert all(draw(ranks) in ranks for ranks in calls)


def hosts(*ranks: int) -> tuple[list[Host], HostStates]:
    states = HostStates()
    for rank in ranks:
        states.add_host(0, False)
        states.ranks[-1] = rank
    return [Host(number + 1, f"h{number}.cz", states) for number in range(len(ranks))], states


def test_workbench_gives_the_best_of_those_that_are_due() -> None:
    (poor, rich, later), states = hosts(9, 2, 0)
    bench = Workbench(min, lambda host: states.ranks[host.id])
    for host, due in ((poor, 1.0), (rich, 2.0), (later, 50.0)):
        host.due, host.place = due, host.name
        bench.add_host(host, host.name)
    assert bench.pop(10.0) == (rich, rich.name)
    assert bench.next_due() == 1.0
    assert bench.pop(10.0) == (poor, poor.name)
    assert bench.pop(10.0) is None
    assert bench.pop(50.0) == (later, later.name)


def test_backlog_gives_the_best_and_those_that_became_better_once() -> None:
    ranks = {1: 9, 2: 5, 3: 5}
    backlog = Backlog(rank_of=ranks.__getitem__)
    for host_id in ranks:
        backlog.push(host_id, 0.0, 0.0)
    ranks[1] = 1
    backlog.push(1, 0.0, 0.0)
    assert backlog.best_rank() == 1
    assert [backlog.pop(0.0) for _ in range(4)] == [1, 2, 3, None]
    assert backlog.best_rank() == 10


def test_better_hosts_come_first_and_all_others_after_them() -> None:
    """Room for one request at a time, and few places."""
    good, bad = [f"http://g{n}.cz/" for n in range(6)], [f"http://b{n}.cz/" for n in range(6)]
    links = [f"{base}{n}" for base in (*bad, *good) for n in range(20)]
    web = {link: page() for link in links}
    web["http://s.cz/bad"] = page(*links[:120], reason=Reason.WRONG_LANGUAGE, kept_bytes=0)
    web["http://s.cz/good"] = page(*(Link(link, True) for link in links[120:]))
    crawl = VirtualCrawl(web, strategy="simulator.rivals.Soft", active_hosts=3).run(
        "http://s.cz/bad", "http://s.cz/good"
    )
    fetched = [url for url in crawl.fetched() if "/s.cz" not in url]
    assert len(fetched) == 240
    assert sum("/g" in url for url in fetched[:120]) > 80


HOSTS = ("rich.cz", "poor.cz", "cs.b.com", "other.de", "[::1]:8080")
URLS = st.builds(
    lambda scheme, host, path: f"{scheme}{host}/{path}".replace("www.[", "["),
    st.sampled_from(["http://", "https://www."]),
    st.sampled_from([*HOSTS, "new.cz", "en.new.com"]),
    st.sampled_from(["", "forum", "forum/7", "forum/cs/Dve-slova?a=b/c", "goods/8.html", "en/a/list/of/goods", "1/2"]),
)  # fmt: skip
PAGES = st.lists(
    st.tuples(URLS, st.sampled_from(list(Reason)), st.booleans(), st.integers(0, 40_000), st.integers(1, 99_999)),
    max_size=12,
)
LINKS = st.lists(
    st.builds(
        Link,
        URLS,
        st.booleans(),
        st.sampled_from([0.0, 0.2, 1.0]),
        st.integers(0, 300),
        st.booleans(),
        st.sampled_from([0, WANTED, FOREIGN]),
    ),
    min_size=1,
    max_size=9,
)


def link_to(frontier: Frontier, link: Link) -> FoundLink:
    target = canonicalize(link.url)
    score = int(255 * link.score) / 255
    return FoundLink(target, frontier.hosts.find(target.host), link.text_block, score or link.text_block)


@settings(max_examples=examples(40))
@given(PAGES, LINKS, st.sampled_from(["spiderling", "heidix"]), st.sampled_from(list(Reason)), st.integers(0, 20))
def test_a_link_has_the_same_rank_alone_and_among_many(pages, links, name, reason, distance):
    """Which rank that is, the recorded orders hold (test_same_order.py)."""
    frontier = Frontier(Options(lang="cs", strategy=name))
    for host in HOSTS:
        frontier.put_seed(f"http://{host}/", 0.0, distance)
    strategy = frontier.strategy
    for url, end, relevant, kept, body in pages:
        if (found := link_to(frontier, Link(url))).host_id:
            page = LinkingPage(frontier.hosts.by_id(found.host_id), end, relevant=relevant)
            frontier.hosts.count_bytes(page.host, 1, body, min(kept, body))
            strategy.learn(page, found.target, Outcome(1, url, end, 200, body_bytes=body, kept_bytes=min(kept, body)))
    page = LinkingPage(frontier.hosts.by_id(1), reason, badness=7.0)
    singly = strategy.ranker(page)
    batch = gathered(links * 25)
    ranks = strategy.batch_ranker(page)(
        NewLinks(batch, range(batch.size), [frontier.hosts.find(host) for host in batch.hosts])
    )
    for link, rank in zip(links * 25, ranks, strict=True):
        assert link.said or rank == singly(link_to(frontier, link))


class Shown(Strategy):
    """Ranks link by link, and remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[FoundLink] = []

    def ranker(self, page: LinkingPage) -> Ranker:
        return lambda link: self.shown.append(link) or 3  # type: ignore[func-returns-value]


@settings(max_examples=20)
@given(LINKS, st.data())
def test_a_strategy_of_ones_own_sees_each_new_link(links: list[Link], data: Any) -> None:
    strategy = Shown()
    frontier = Frontier(Options(lang="cs"), strategy=strategy)
    frontier.put_seed("http://rich.cz/", 0.0)
    known = data.draw(st.sets(st.sampled_from(sorted({link.url for link in links}))))
    page = LinkingPage(frontier.hosts.by_id(1), Reason.KEPT)
    for url in known:
        frontier.put_seed(url, 0.0)
    expected = [link_to(frontier, link) for link in links if link.url not in {*known, "http://rich.cz/"}]
    frontier.put_links(page, links, 0.0)
    assert strategy.shown == expected
