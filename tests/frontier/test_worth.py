"""What links and hosts are worth: by estimators, by what pages gave, and by notes of it that a restart reads."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import VirtualCrawl, page

from spiderling.base.link_batch import Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, words_of_name, words_of_path
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import LAST_RANK, YieldAccount
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategies import STRATEGIES, Heidix, LinkingPage, Spiderling
from spiderling.frontier.strategy import FoundLink, NewLinks
from spiderling.frontier.worth import ESTIMATORS, LINES, WEIGHTS, Cues, HostLanguages, UrlWords, Worth, page_quality

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


@given(st.sampled_from(list(Reason)), st.floats(0, 1e6))
def test_page_quality_keeps_its_range(reason: Reason, badness: float) -> None:
    assert -1 <= page_quality(reason, badness) <= page_quality(Reason.KEPT, 0) == 1
    assert page_quality(WRONG, badness) < page_quality(Reason.BOILERPLATE_ONLY, badness)


def strategy_of(frontier: Frontier) -> Spiderling:
    strategy = frontier.strategy
    assert isinstance(strategy, Spiderling)
    return strategy


def found(frontier: Frontier, url: str, block: bool = False, score: float = 0.0) -> FoundLink:
    target = canonicalize(url)
    return FoundLink(target, frontier.hosts.find(target.host), block, score)


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
    young = YieldAccount(1, 30_000, 900)
    assert rank(1, young, 2) < rank(1, young, 8), "what its links promise counts while little is known of it"


def test_a_weight_changes_the_rank_of_a_link(frontier: Frontier) -> None:
    """The link stands in running text, which counts less with a smaller weight, and not at all with 0."""

    def rank(weight: float = ESTIMATORS["block"][1]) -> int:
        class Weighed(Spiderling):
            weights = WEIGHTS | {"block": weight}

        other = Frontier(Options(lang="cs"), strategy=Weighed())
        other.put_seed("http://a.cz/", 0.0)
        ranker = other.strategy.ranker(LinkingPage(other.hosts.by_id(1), Reason.BAD_QUALITY))
        return ranker(found(other, "http://b.cz/x", block=True))

    assert rank(8) < rank() <= rank(0.1) <= rank(0) > rank()


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
            strategy.learn(
                LinkingPage(host, reason),
                target,
                Outcome(1, target.url, reason, 200, body_bytes=30_000, kept_bytes=kept),
            )
    rank_of = strategy.ranker(LinkingPage(host, Reason.BOILERPLATE_ONLY))
    forum, goods = (rank_of(found(frontier, f"http://poor.cz/{section}/99")) for section in ("forum", "goods"))
    assert forum < goods


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
    assert set(strategy.weights) < set(ESTIMATORS)
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


REASONS = (Reason.KEPT, Reason.WRONG_LANGUAGE, Reason.BOILERPLATE_ONLY, Reason.DUPLICATE)
SECTIONS = ("forum", "goods", "cs/news", "en/news", "")


def begun(strategy: str, hosts: int = 9) -> Frontier:
    frontier = Frontier(Options(lang="cs", strategy=strategy), store=SqliteStore())
    for number in range(hosts):
        frontier.put_seed(f"http://h{number}.cz/", 0.0)
    return frontier


def worth_of(frontier: Frontier) -> Worth:
    assert isinstance(frontier.strategy, Heidix)
    return frontier.strategy.worth


def teach(frontier: Frontier, rng: random.Random, pages: int, first: int = 1) -> None:
    for _ in range(pages):
        host, reason = frontier.hosts.by_id(rng.randint(first, 9)), rng.choice(REASONS)
        target = canonicalize(f"http://{host.name}/{rng.choice(SECTIONS)}/{rng.randrange(10**9)}")
        kept = rng.randrange(9000) if reason is Reason.KEPT else 0
        frontier.hosts.count_bytes(host, 1, 30_000, kept)
        page = LinkingPage(host, reason, relevant=reason is Reason.KEPT)
        frontier.strategy.learn(page, target, Outcome(1, target.url, reason, 200, body_bytes=30_000, kept_bytes=kept))


def ranks(frontier: Frontier) -> list[int]:
    links = [
        Link(f"http://h{host}.{tld}/{section}/1", score=0.4)
        for host in range(12)
        for section in SECTIONS
        for tld in ("cz", "com")
    ]
    batch = gathered(links)
    for host_id in range(1, 10):
        frontier.hosts.by_id(host_id)  # what is known of a host out of memory is less
    ids = [frontier.hosts.find(name) for name in batch.hosts]
    new = NewLinks(batch, np.arange(batch.size), ids)
    return worth_of(frontier).ranks(LinkingPage(frontier.hosts.by_id(1), Reason.KEPT), new)


@pytest.mark.parametrize("strategy", ["spiderling", "heidix"])
@pytest.mark.parametrize("batches", [1, LINES - 1, LINES, LINES + 1, 3 * LINES + 7])
def test_ranks_are_the_same_after_a_kill(strategy: str, batches: int) -> None:
    frontier, store, rng = begun(strategy), SqliteStore(), random.Random(batches)
    for _ in range(batches):
        teach(frontier, rng, 7)
        store.commit(frontier.drain(0.0))
    former = ranks(frontier)
    teach(frontier, rng, 30)  # of which nothing was committed
    resumed = Frontier(Options(lang="cs", strategy=strategy), store=store)
    resumed.restore(store.load(), 0.0)
    assert ranks(resumed) == former
    assert len(set(former)) > 2
    teach(resumed, random.Random(1), 7)
    store.commit(resumed.drain(0.0))
    again = Frontier(Options(lang="cs", strategy=strategy), store=store)
    again.restore(store.load(), 0.0)
    assert worth_of(again).columns() == worth_of(resumed).columns()


def decided(frontier: Frontier) -> list[object]:
    """What the strategy says of each host, and of the links of a page of each."""
    strategy, found = frontier.strategy, []
    for host_id in range(1, 10):
        host = frontier.hosts.by_id(host_id)
        found.append(
            [strategy.gives_up(host), *(strategy.host_rank(host_id, host.account, head) for head in range(10))]
        )
    for host_id, reason in itertools.product(range(1, 10), REASONS):
        page = LinkingPage(frontier.hosts.by_id(host_id), reason, 3, badness=5.0)
        target = canonicalize(f"http://h{host_id}.cz/{reason.value}")
        batch = gathered([Link(f"http://h{n}.cz/{section}/1", score=0.4) for n in range(12) for section in SECTIONS])
        strategy.learn(page, target, Outcome(1, target.url, reason, 200, body_bytes=1, links=batch))
        links = NewLinks(batch, np.arange(batch.size), [frontier.hosts.find(name) for name in batch.hosts])
        found.append(strategy.batch_ranker(page)(links))
    return found


@pytest.mark.parametrize("name", [*STRATEGIES, "simulator.rivals.Lswc:s=3,t=5"])
def test_every_strategy_decides_after_a_kill_as_if_there_had_been_none(name: str) -> None:
    """Relevant servers that gave no text (h0 to h2) among them, which the accounts do not tell from others."""
    frontier, store, rng = begun(name), SqliteStore(), random.Random(4)
    for number in range(5):
        teach(frontier, rng, 7, first=4)
        for host_id, reason in itertools.product(range(1, 4), (Reason.DUPLICATE, Reason.WRONG_LANGUAGE)):
            host, target = frontier.hosts.by_id(host_id), canonicalize(f"http://h{host_id - 1}.cz/{number}")
            frontier.hosts.count_bytes(host, 1, 30_000, 0)
            frontier.strategy.learn(LinkingPage(host, reason), target, Outcome(1, target.url, reason, 200))
        store.commit(frontier.drain(0.0))
    resumed = Frontier(Options(lang="cs", strategy=name), store=store)
    resumed.restore(store.load(), 0.0)
    assert decided(resumed) == decided(frontier)


def test_a_batch_holds_its_own_notes_alone_and_the_tables_come_seldom() -> None:
    frontier, rng = begun("spiderling"), random.Random(1)
    sizes = []
    for _ in range(2 * LINES):
        teach(frontier, rng, 64)
        sizes.append({key: len(value) for key, value in frontier.drain(0.0).meta.items() if key.startswith("learnt")})
    assert ["learnt" in size for size in sizes] == [number % LINES == LINES - 1 for number in range(2 * LINES)]
    assert {len(size) for size in sizes} == {1, 2}
    assert max(size for one in sizes for key, size in one.items() if key != "learnt") < 100 * 64
    assert {key for size in sizes for key in size} <= {"learnt", *(f"learnt:{place}" for place in range(LINES))}
    assert not frontier.drain(0.0).meta


def test_one_page_tells_as_much_of_its_host_as_the_published_locality_says() -> None:
    known = HostLanguages()
    known.count_page(1, True)
    assert not known.is_foreign(1) and not known.is_foreign(2)
    known.count_page(2, False)
    assert known.is_foreign(2) and not known.is_foreign(1)
    assert (known.expected(1) or 0) > 0.8 > 0.2 > (known.expected(2) or 1)


def test_its_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spiderling.frontier.worth.MAX_HOSTS", 10)
    known = HostLanguages()
    for host_id in range(1, 51):
        known.count_page(host_id, host_id % 2 == 0)
    assert known.expected(40) is None and known.expected(41) is not None
