"""What a link promises by each estimator, and how that becomes a rank."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import VirtualCrawl, page

from spiderling.base.errors import BadInput
from spiderling.base.link_batch import FOREIGN, WANTED, Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.url_features import words_of_name, words_of_path
from spiderling.base.urls import canonicalize
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import LAST_RANK, YieldAccount
from spiderling.frontier.ranking.languages import UrlWords
from spiderling.frontier.ranking.strategies import Heidix, LinkingPage, Spiderling, parse
from spiderling.frontier.ranking.strategy import FoundLink, NewLinks
from spiderling.frontier.ranking.worth import ESTIMATORS, Cues, page_quality, parse_weights

SIGNED, SHARE = st.floats(-1, 1), st.floats(0, 1)
CUES = st.builds(
    Cues, st.booleans(), SIGNED, SHARE, SIGNED, SHARE, SIGNED, SIGNED, SIGNED, st.sampled_from([-1, 0, 1]),
)  # fmt: skip
WRONG = Reason.WRONG_LANGUAGE


TABLE = re.findall(
    r"^\| `([\w-]+)` \| (-1) to ([01]) \| ([\d.]+) \|",
    Path(__file__).parents[2].joinpath("docs/strategies.md").read_text("utf-8"), re.MULTILINE,
)  # fmt: skip
RANGES = {name: (int(low), int(high)) for name, low, high, _ in TABLE}


def test_the_documented_estimators_are_these() -> None:
    assert [(name, float(weight)) for name, *_, weight in TABLE] == [(n, w) for n, (_, w) in ESTIMATORS.items()]


@pytest.mark.parametrize("name", ESTIMATORS)
@given(CUES)
def test_estimators_keep_their_range_and_say_nothing_of_what_they_do_not_know(name: str, cues: Cues) -> None:
    low, high = RANGES[name]
    assert low <= ESTIMATORS[name][0](cues) <= high
    if not name.startswith("block"):
        assert ESTIMATORS[name][0](Cues(block=cues.block)) == 0


@given(st.sampled_from(list(Reason)), st.booleans(), st.floats(0, 1e6))
def test_page_quality_keeps_its_range(reason: Reason, relevant: bool, badness: float) -> None:
    assert -1 <= page_quality(reason, relevant, badness) <= page_quality(Reason.KEPT, True, 0) == 1
    assert page_quality(WRONG, False, badness) < page_quality(Reason.BOILERPLATE_ONLY, False, badness)


def strategy_of(frontier: Frontier) -> Spiderling:
    strategy = frontier.strategy
    assert isinstance(strategy, Spiderling)
    return strategy


def found(frontier: Frontier, url: str, block: bool = False, score: float = 0.0) -> FoundLink:
    target = canonicalize(url)
    assert target is not None
    return FoundLink.to(target, frontier.hosts.find(target.host), block, score)


@pytest.fixture
def frontier() -> Frontier:
    """One that knows a rich and a poor host, ten pages each."""
    frontier = Frontier(Options(lang="cs"))
    for number, name in enumerate(("rich.cz", "poor.cz", "z.cz")):
        frontier.put_seed(f"http://{name}/", 0.0)
        host = frontier.hosts.by_id(number + 1)
        if name != "z.cz":
            frontier.hosts.count_bytes(host, 10, 500_000, 200_000 if name == "rich.cz" else 100)
    return frontier


def test_ranks_stay_in_their_range_and_in_order(frontier: Frontier) -> None:
    source = frontier.hosts.by_id(3)

    def rank(url: str, verdict: Reason = Reason.KEPT, block: bool = False) -> int:
        return strategy_of(frontier).ranker(LinkingPage(source, verdict))(found(frontier, url, block))

    urls = ("http://rich.cz/1", "http://poor.cz/1", "http://new.cz/", "http://z.cz/1")
    ranks = {(url, v, b): rank(url, v, b) for url in urls for v in Reason for b in (False, True)}
    assert set(ranks.values()) <= set(range(1, LAST_RANK + 1))
    rich, poor, new, own = urls
    assert ranks[rich, WRONG, False] < ranks[new, WRONG, False], "the host's record counts more than who links to it"
    assert ranks[new, Reason.KEPT, False] < ranks[new, Reason.BOILERPLATE_ONLY, False] < ranks[new, WRONG, False]
    assert ranks[rich, Reason.KEPT, True] < ranks[poor, Reason.KEPT, True]
    assert all(ranks[own, v, True] < ranks[own, v, False] for v in Reason)


def test_host_rank_follows_its_record_and_a_young_host_has_the_promise_of_its_links(frontier: Frontier) -> None:
    rank = strategy_of(frontier).host_rank
    rich, poor = (frontier.hosts.by_id(number).account for number in (1, 2))
    assert [rank(9, YieldAccount(), head) for head in range(1, 10)] == list(range(1, 10))
    assert rank(1, rich, 5) < rank(9, YieldAccount(), 5) < rank(2, poor, 5)
    assert rank(1, rich, 2) < rank(1, rich, 8), "what it has left to give counts too"


def test_weights_are_options() -> None:
    def weights(strategy: str, estimators: str) -> dict[str, float]:
        given = parse(strategy)
        assert isinstance(given, Heidix)
        return {name: weight for name, weight in given.weights(Options(estimators=estimators)).items() if weight}

    given_weights = weights("spiderling", "host=5, section=0,hreflang=2.5,")
    assert given_weights["host"] == 5 and given_weights["hreflang"] == 2.5
    assert [*given_weights] == [name for name in ESTIMATORS if name != "section"]
    assert weights("heidix", "section=1").keys() - weights("heidix", "").keys() == {"section"}


def test_a_weight_changes_the_rank_of_a_link(frontier: Frontier) -> None:
    """The link stands in running text, which counts less with a smaller weight, and not at all with 0."""

    def rank(**options: str) -> int:
        other = Frontier(Options(lang="cs", **options))  # type: ignore[arg-type]
        other.put_seed("http://a.cz/", 0.0)
        ranker = other.strategy.ranker(LinkingPage(other.hosts.by_id(1), Reason.BAD_QUALITY))
        return ranker(found(other, "http://b.cz/x", block=True))

    assert rank(estimators="block=8") < rank() <= rank(estimators="block=0.1")
    assert rank(estimators="block=0.1") <= rank(estimators="block=0") > rank()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hots=3", "did you mean host"),
        ("x=3", "known are host, language"),
        ("host", "weight of 0"),
        ("host=nan", "'host=nan'"),
        ("host=-1", "0 (off) to 8"),
        ("host=9", "0 (off) to 8"),
        ("=", "has ''"),
    ],
)
def test_weights_that_are_none_are_refused(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=re.escape(says)):
        parse_weights(text)


def test_what_hreflang_says_counts_beside_the_rest(frontier: Frontier) -> None:
    links = [Link(f"http://new{said}.com/", said=said) for said in (WANTED, 0, FOREIGN)]
    new = NewLinks(gathered(links), np.arange(3), [0, 0, 0])
    ranks = strategy_of(frontier).worth.ranks(LinkingPage(frontier.hosts.by_id(3), Reason.KEPT), new)
    assert ranks[0] < ranks[1] < ranks[2]


def test_codes_in_the_path_and_top_level_domains_are_known_before_any_page_was_read() -> None:
    frontier = Frontier(Options(lang="cs", prefer_tlds="cz,sk"))
    frontier.put_seed("http://a.org/", 0.0)
    rank_of = strategy_of(frontier).ranker(LinkingPage(frontier.hosts.by_id(1), Reason.BOILERPLATE_ONLY))
    urls = ("http://n.cz/", "http://n.sk/", "http://n.com/cs/", "http://n.com/", "http://n.com/de/")
    cz, sk, cs, none, de = (rank_of(found(frontier, url)) for url in urls)
    assert cz == sk < none and cs < none < de


def test_one_page_tells_much_of_a_hosts_language(frontier: Frontier) -> None:
    strategy = strategy_of(frontier)
    for number, reason in ((1, Reason.BOILERPLATE_ONLY), (2, WRONG), (3, WRONG)):
        target, host = canonicalize("http://a.cz/"), frontier.hosts.by_id(number)
        assert target is not None
        page_of = LinkingPage(host, reason, relevant=reason is not WRONG)
        strategy.learn(page_of, target, Outcome(1, target.url, reason, 200, body_bytes=30_000))
    ranks = [strategy.host_rank(number, YieldAccount(), 5) for number in (1, 2, 99)]
    assert ranks[0] < ranks[2] < ranks[1], "before any text was kept"


def test_a_rich_section_of_a_poor_host_is_found(frontier: Frontier) -> None:
    """The forum inside a shop (Suchomel & Pomikálek 2012, section 5)."""
    host, strategy = frontier.hosts.by_id(2), strategy_of(frontier)
    for number in range(10):
        for section, kept in (("forum", 9000), ("goods", 0)):
            target = canonicalize(f"http://poor.cz/{section}/{number}")
            reason = Reason.KEPT if kept else Reason.BOILERPLATE_ONLY
            assert target is not None
            strategy.learn(
                LinkingPage(host, reason),
                target,
                Outcome(1, target.url, reason, 200, body_bytes=30_000, kept_bytes=kept),
            )
    rank_of = strategy.ranker(LinkingPage(host, Reason.BOILERPLATE_ONLY))
    forum, goods = (rank_of(found(frontier, f"http://poor.cz/{section}/99")) for section in ("forum", "goods"))
    assert forum < goods


def test_links_of_one_page_are_ranked_each_for_itself(frontier: Frontier) -> None:
    host, strategy = frontier.hosts.by_id(2), strategy_of(frontier)
    for number, section in enumerate(("forum", "goods", "cs/news") * 9):
        reason = Reason.KEPT if section == "forum" else WRONG
        strategy.worth.learn(LinkingPage(host, reason), f"/{section}/{number}", 30_000, 9000)
    links = [
        found(frontier, f"{origin}/{path}", block, score)
        for origin in (
            "http://poor.cz",
            "https://www.poor.cz",
            "http://rich.cz",
            "http://cs.new.cz",
            "http://[::1]:8080",
        )
        for path in ("", "forum/7", "goods/8", "cs/news/forum")
        for block, score in ((False, 0.0), (True, 0.0), (False, 0.9))
    ]
    page_of = LinkingPage(host, Reason.KEPT)
    together = strategy.ranker(page_of)
    ranks = [together(link) for link in (*links, *reversed(links))]
    assert ranks[: len(links)] == ranks[: len(links) - 1 : -1] == [strategy.ranker(page_of)(link) for link in links]
    assert len(set(ranks)) > 3
    assert all(FoundLink.to(link.target, *link[3:]) == link for link in links)


# -- words of URLs


def words_of(host: str, path: str) -> list[int]:
    return [*words_of_name(host), *words_of_path(path.encode("utf-8", "surrogatepass"))]


def guess(words: UrlWords, host: str, path: str, doubt: float = 1.0) -> float:
    (found,) = words.guesses(np.array([words_of(host, path)], np.uint16), np.array([doubt])).tolist()
    return float(found)


def test_words_known_beforehand() -> None:
    words = UrlWords(["cs"], ["cz"])
    assert guess(words, "a.cz", "/") > 0 > guess(words, "a.com", "/en/page")
    assert guess(words, "a.com", "/cs/page") > 0
    assert guess(words, "a.com", "/123") == 0
    assert guess(words, "cs.a.com", "/") > 0
    known = [guess(words, "a.cz", path, 0.0) for path in ("/", "/cs/1", "/en/1")]
    assert known[1] > known[0] == 0 > known[2], "the path of a host that is known"


def test_words_are_learnt() -> None:
    words = UrlWords(["th"], [])
    for number in range(50):
        words.count_page(words_of(f"a{number}.th", "/forum/1"), True)
        words.count_page(words_of(f"a{number}.jp", "/shop/1"), False)
        words.count_page(words_of(f"a{number}.com", "/news/1"), number % 2 == 0)
    guesses = [guess(words, host, "/1") for host in ("b.th", "b.com", "b.jp")]
    assert guesses[0] > 0.8 > guesses[1] > -0.2 > guesses[2]
    assert guess(words, "b.com", "/forum/9") > guess(words, "b.com", "/shop/9")


@given(st.text(), st.text(), st.booleans())
def test_any_url_has_a_guess(host: str, path: str, wanted: bool) -> None:
    words = UrlWords(["cs"], ["cz"])
    words.count_page(words_of(host, path), wanted)
    assert -1 <= guess(words, host, path) <= 1


def test_heidix_uses_the_papers_estimators_only_and_retires_nobody() -> None:
    frontier = Frontier(Options(lang="cs", strategy="heidix"))
    strategy = frontier.strategy
    assert isinstance(strategy, Heidix)
    assert set(strategy.weights(Options())) < set(ESTIMATORS)
    assert (strategy.retires, strategy.power) == (False, 1.0)


def test_a_seeded_crawl_on_a_virtual_clock_repeats_itself() -> None:
    web = {
        f"http://h{n % 7}.cz/{n}": page(*(f"http://h{(n + m) % 7}.cz/{n * 3 + m}" for m in range(3)))
        for n in range(200)
    }
    first, again, other = (
        VirtualCrawl(web, random_seed=seed, strategy="spiderling:power=0.5").run("http://h0.cz/0").fetched()
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert sorted(first) == sorted(other)
