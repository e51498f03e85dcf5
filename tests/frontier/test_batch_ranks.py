"""The links of a page, ranked side by side, get the ranks that docs/strategies.md describes for each link alone."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import Any

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.base.link_batch import FOREIGN, WANTED, Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier import Frontier
from spiderling.frontier.ranking.languages import HostLanguages
from spiderling.frontier.ranking.strategies import Heidix, LinkingPage
from spiderling.frontier.ranking.strategy import FoundLink, NewLinks, Ranker, Strategy
from spiderling.frontier.ranking.worth import page_quality

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


def clipped(value: float) -> float:
    return max(-1.0, min(1.0, value))


def beside(rate: float, usual: float) -> float:
    return clipped(math.log(max(rate, 1e-6) / usual) / 3)


def words_of(link: FoundLink) -> list[str]:
    name = link.target.name
    label = name.partition(".")[0]
    of_path = [f"/{word}" for word in re.findall("[a-z]{2,}", link.path[:80].lower())[:4]]
    return [name[name.rfind(".") :], *([f"/{label}"] if len(label) == 2 else []), *of_path]


class Plain:
    """What was learnt, kept in the plainest way, and the formulas for one link."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.words = defaultdict(Counter, {True: Counter({"/cs": 8}), False: Counter()})
        self.words[False].update({f"/{code}": 8 for code in ("en", "de", "fr", "es", "ru", "ja", "zh", "pt", "it")})
        self.read: Counter[bool] = Counter({True: 1, False: 1})
        self.languages = HostLanguages()
        self.fruitful = [3e3, 1e5]
        self.bytes = [27_000.0] * 20
        """Sizes of pages, and of twenty of the usual one."""
        self.sections: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * 4)

    def learn(self, page: LinkingPage, link: FoundLink, kept: int, body: int) -> None:
        section = self.sections[link.host, section_of(link)]
        section[:2] = [section[0] + kept, section[1] + body]
        self.bytes.append(body)
        section[3] = 4 * sum(self.bytes) / len(self.bytes)
        section[2] = max(page.host.account.rate, 1e-3)
        if section[2] > 1e-3:
            self.fruitful = [self.fruitful[0] + kept, self.fruitful[1] + body]
        if page.is_relevant or page.reason is Reason.WRONG_LANGUAGE:  # no page here is known to be in another one
            self.read[page.is_relevant] += 1
            self.languages.count_page(page.host.id, page.is_relevant)
            names = words_of(link._replace(origin=f"http://{link.host}"))
            self.words[page.is_relevant].update(names)

    def values(self, page: LinkingPage, link: FoundLink, usual: float) -> dict[str, float]:
        host = self.frontier.hosts.get(link.host)
        worth = trust = language = section = 0.0
        if host is not None:
            account, young = host.account, 4 * sum(self.bytes) / len(self.bytes)
            worth = beside((account.kept_bytes + young * usual) / (account.downloaded_bytes + young), usual)
            trust = account.downloaded_bytes / (account.downloaded_bytes + young)
            if (expected := self.languages.expected(host.id)) is not None:
                language = beside(expected, self.read[True] / self.read.total())
        if told := self.sections.get((link.host, section_of(link))):
            section = beside((told[0] + told[3] * told[2]) / (told[1] + told[3]), told[2])
        quality = page_quality(page.reason, page.is_relevant, page.badness)
        block, inside = 1 if (link.score or link.text_block) >= 0.5 else -1, link.host == page.host.name
        return {
            "host": worth * trust, "language": language, "section": section,
            "page-inside": quality if inside else 0.0, "page-outside": 0.0 if inside else quality * (1 - trust),
            "block": block,
            "url": self.guess(link, 1 - trust), "hreflang": 0.0,
        }  # fmt: skip

    def guess(self, link: FoundLink, doubt: float) -> float:
        odds, bias = 0.0, math.log(self.read[False] / self.read[True])
        label = link.target.name.partition(".")[0]
        for at, word in enumerate(words_of(link)):
            one, other = self.words[True][word], self.words[False][word]
            if one + other >= 2:
                of_name = at < 1 + (len(label) == 2)
                said = math.log((one + 0.5) / (other + 0.5)) + bias * (1 - 1 / (one + other))
                odds += said * (doubt if of_name else 1)
        return clipped(odds / 3)


def section_of(link: FoundLink) -> str:
    end = link.path.find("/", 1)
    return link.path[:end] if end > 0 else ""


def link_to(frontier: Frontier, link: Link) -> FoundLink:
    target = canonicalize(link.url)
    assert target is not None
    score = int(255 * link.score) / 255
    return FoundLink.to(target, frontier.hosts.find(target.host), link.text_block, score or link.text_block)


@settings(max_examples=examples(40))
@given(PAGES, LINKS, st.sampled_from(["spiderling", "heidix"]), st.sampled_from(list(Reason)), st.integers(0, 20))
def test_a_batch_is_ranked_by_the_formulas(
    pages: list[tuple[str, Reason, bool, int, int]], links: list[Link], name: str, reason: Reason, distance: int
) -> None:
    frontier = Frontier(Options(lang="cs", strategy=name))
    for host in HOSTS:
        frontier.put_seed(f"http://{host}/", 0.0, distance)
    strategy, plain = frontier.strategy, Plain(frontier)
    assert isinstance(strategy, Heidix)
    for url, end, relevant, kept, body in pages:
        if (found := link_to(frontier, Link(url))).host_id:
            page = LinkingPage(frontier.hosts.by_id(found.host_id), end, relevant=relevant)
            frontier.hosts.count_bytes(page.host, 1, body, min(kept, body))
            strategy.learn(page, found.target, Outcome(1, url, end, 200, body_bytes=body, kept_bytes=min(kept, body)))
            plain.learn(page, found, min(kept, body), body)
    page = LinkingPage(frontier.hosts.by_id(1), reason, badness=7.0)
    usual, expected = strategy.worth.usual, []
    fruitful = max(1e-4, min(0.5, plain.fruitful[0] / plain.fruitful[1]))
    for link in links:
        said = {WANTED: 1, FOREIGN: -1}.get(link.said, 0)
        values = plain.values(page, link_to(frontier, link), usual) | {"hreflang": said}
        weighed = [weight * values[name] for name, weight in strategy.weights(Options()).items()]
        odds = sum(weighed) + math.log(0.03 / 0.97)
        expected.append(1 + (math.log(6) - math.log(1 / (1 + math.exp(-odds)) / fruitful)) / math.log(1.7))
    for times in (1, 25):  # a few links are ranked one by one, many side by side
        batch = gathered(links * times)
        ids = [frontier.hosts.find(host) for host in batch.hosts]
        ranks = strategy.batch_ranker(page)(NewLinks(batch, range(batch.size), ids))
        for rank, place in zip(ranks, expected * times, strict=True):
            assert rank in {max(1, min(9, math.ceil(place + off))) for off in (-1e-9, 1e-9)}
    singly = strategy.ranker(page)
    for link, rank in zip(links, ranks, strict=False):
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
