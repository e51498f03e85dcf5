"""A synthetic web of any size, computed from a seed; nothing is stored.

Languages are distributed as Somboonviwat, Kitsuregawa and Tamura measured it in 14
million pages around Thai (LSWC 2006, tables 2 and 3): 12 % of the pages are in the target
language; of a target page's links, 84 % of those on its own server and 38 % of those to
other servers lead to target pages, of other pages' links 3 %; two thirds of the target's
pages are outside the national domain.  Host sizes are log-normal.

A host's name ends in the number of its address (``noviny-00c1-07.cz``), so a few globs
give the addresses of ten thousand hosts.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

from spiderling.base.errors import BadInput
from webs.prose import Prose
from webs.web import HTML, WebResponse, not_found, plain, redirect, unavailable

Words = Mapping[str, Sequence[tuple[str, int]]]

LANGUAGES = ("cs", "sk", "pl", "en", "de")
"""Languages of the web, the target first."""
TARGET_SHARE = 0.122
"""Share of the pages in the target language."""
SAME_SERVER = 0.841
"""Share of a target page's links to its own server that lead to target pages."""
OTHER_SERVER = 0.385
"""Share of a target page's links to other servers that lead to target pages."""
FROM_OTHERS = 0.03
"""Share of the links of other pages that lead to target pages."""
SAME_LANGUAGE = 0.6
"""Share of the links between hosts, target pages left out, that stay in their page's language (chosen)."""
HOME_SHARE = 0.9
"""Share of a host's pages that are in its main language (chosen)."""
NATIONAL_SHARE = 0.345
"""Share of the hosts in the national domain of their language."""
NATIONAL = {"cs": "cz", "en": "uk", "sl": "si", "uk": "ua", "da": "dk", "sv": "se", "el": "gr", "et": "ee", "ja": "jp"}
GENERIC = ("com", "net", "org", "info", "eu")
LARGEST_HOST = 20_000
"""Most pages of a host (chosen)."""
SIGMA_PAGES = 1.8
"""Standard deviation of the natural logarithm of a host's number of pages (chosen)."""
SLOW_S = 1.0
"""Seconds before each page of a slow host (chosen)."""
MAX_ADDRESSES = 16
"""Addresses that the hosts share (chosen)."""
MAX_HOSTS = 0xFFFFFF
"""Most hosts (chosen: a host's name holds its number, in six hexadecimal digits at most)."""


class Kind(Enum):
    """The kind of a host.

    Values (chosen): the word in its name; the share of such hosts; in its pages the share of text, the number of links
    relative to the mean, and the sentences of a paragraph.
    """

    ARTICLES = ("noviny", 0.2, 0.35, 0.7, 5)
    SHOP = ("obchod", 0.35, 0.03, 1.2, 1)
    LINKS = ("katalog", 0.1, 0.0, 3.0, 1)
    FORUM = ("forum", 0.15, 0.15, 1.0, 3)
    MIXED = ("web", 0.2, 0.2, 1.0, 5)

    def __init__(self, label: str, share: float, text: float, links: float, sentences: int) -> None:
        self.label = label
        self.share = share
        self.text = text
        self.links = links
        self.sentences = sentences


class Robots(Enum):
    """A host's robots.txt; the value is the share of such hosts (chosen)."""

    MISSING = 0.5
    OPEN = 0.3
    SECTION = 0.12
    DELAY = 0.05
    ERROR = 0.03


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The properties of a host."""

    index: int
    name: str
    address: str
    language: str
    second_language: str
    kind: Kind
    pages: int
    page_bytes: float
    """Median bytes of its pages."""
    robots: Robots
    www: bool
    """Whether the bare name redirects to www."""
    slow: bool
    mirror_of: int | None

    @property
    def border(self) -> int:
        """Pages with numbers below it are in the main language, the others in the second."""
        return math.ceil(self.pages * HOME_SHARE)

    def language_of(self, page: int) -> str:
        return self.language if page < self.border else self.second_language


class SyntheticWeb:
    """A web in which seed, host and path determine each answer: the same arguments give the same bytes."""

    def __init__(
        self,
        hosts: int,
        seed: int,
        words: Words,
        languages: Sequence[str] = LANGUAGES,
        mean_page_bytes: int = 30_000,
        median_pages: float = 20.0,
    ) -> None:
        """The first of *languages* is the target.

        Raises BadInput for a language without words, and for too few or too many hosts.
        """
        missing = [language for language in languages if not words.get(language)]
        if missing or not languages:
            names = ", ".join(missing) or "any language"
            raise BadInput(f"the synthetic web has no words for {names}; give a list of words for each language.")
        if not 1 <= hosts <= MAX_HOSTS:
            raise BadInput(f"a synthetic web has 1 to {MAX_HOSTS} hosts, not {hosts}.")
        self._count = hosts
        self._seed = seed
        self._languages = tuple(languages)
        self._addresses = [f"127.81.0.{number}" for number in range(1, min(MAX_ADDRESSES, hosts) + 1)]
        self._mean_page_bytes = mean_page_bytes
        self._median_pages = median_pages
        self._prose = {language: Prose(language, words[language], seed) for language in languages}
        self._shares = _shares(languages)
        self._by_language: dict[str, list[int]] = {language: [] for language in languages}
        for index in range(hosts):
            self._by_language[self._main_language(index)].append(index)
        self.plan = lru_cache(maxsize=20_000)(self._plan)

    def hosts(self) -> Mapping[str, str]:
        plans = (self._plan(index) for index in range(self._count))
        return {name: plan.address for plan in plans for name in _names(plan)}

    def globs(self) -> Mapping[str, str]:
        return {f"*-{number:02}.*": address for number, address in enumerate(self._addresses)}

    def seeds(self, count: int, language: str | None = None) -> list[str]:
        """Start pages of *count* hosts whose main language is *language* (default: the target)."""
        chosen = self._by_language.get(language or self._languages[0], [])[:count]
        return [self.url(self.plan(index), 0) for index in chosen]

    def url(self, plan: HostPlan, page: int) -> str:
        """The URL under which page number *page* is linked."""
        return f"http://{'www.' if plan.www else ''}{plan.name}{_path(page)}"

    def find(self, host: str) -> HostPlan | None:
        """The plan of a host name, or None when there is no such host."""
        parts = host.rpartition(".")[0].split("-")
        try:
            plan = self.plan(int(parts[-2], 16))
        except (IndexError, ValueError):
            return None
        return plan if host in _names(plan) else None

    def language_of(self, host: str, path: str) -> str | None:
        """The true language of a page's text; None when there is no such page."""
        plan = self.find(host)
        page = _page_number(path)
        if plan is None or page is None or page >= plan.pages:
            return None
        return self._origin(plan).language_of(page)

    def respond(self, host: str, path: str) -> WebResponse:
        plan = self.find(host)
        if plan is None:
            return not_found()
        if path == "/robots.txt":
            return _robots(plan)
        if plan.www and host == plan.name:
            return redirect(f"http://www.{host}{path}")
        if path.startswith("/old/"):
            return redirect(path.removeprefix("/old"))
        page = _page_number(path)
        if page is None or page >= plan.pages:
            return not_found()
        return WebResponse(200, HTML, self._render(self._origin(plan), page).encode(), SLOW_S if plan.slow else 0.0)

    # plans

    def _random(self, *key: int) -> random.Random:
        digest = hashlib.blake2b(repr((self._seed, *key)).encode(), digest_size=8).digest()
        return random.Random(int.from_bytes(digest, "big"))

    def _main_language(self, index: int) -> str:
        return self._random(index).choices(self._languages, self._shares)[0]

    def _second_language(self, rng: random.Random, language: str) -> str:
        target, *others = self._languages
        if language != target and rng.random() < FROM_OTHERS / (1 - HOME_SHARE):
            return target
        return rng.choice([other for other in others if other != language] or [language])

    def _plan(self, index: int) -> HostPlan:
        if not 0 <= index < self._count:
            raise ValueError(index)
        language = self._main_language(index)
        rng = self._random(index, 1)
        kind = rng.choices(list(Kind), [kind.share for kind in Kind])[0]
        number = index % len(self._addresses)
        tld = NATIONAL.get(language, language) if rng.random() < NATIONAL_SHARE else rng.choice(GENERIC)
        original = rng.randrange(index) if index and rng.random() < 0.02 else None
        if original is not None and self._plan(original).mirror_of is not None:
            original = None
        size = int(rng.lognormvariate(math.log(self._median_pages), SIGMA_PAGES))
        return HostPlan(
            index=index,
            name=f"{kind.label}-{index:04x}-{number:02}.{tld}",
            address=self._addresses[number],
            language=language,
            second_language=self._second_language(rng, language),
            kind=kind,
            pages=max(1, min(size, LARGEST_HOST)) if original is None else self._plan(original).pages,
            page_bytes=self._mean_page_bytes * rng.lognormvariate(-0.08, 0.4) * 0.88,
            robots=rng.choices(list(Robots), [robots.value for robots in Robots])[0],
            www=rng.random() < 0.05,
            slow=rng.random() < 0.02,
            mirror_of=original,
        )

    def _origin(self, plan: HostPlan) -> HostPlan:
        return plan if plan.mirror_of is None else self.plan(plan.mirror_of)

    # pages

    def _render(self, plan: HostPlan, page: int) -> str:
        rng = self._random(plan.index, 2, page)
        language = plan.language_of(page)
        prose = self._prose[language]
        size = int(plan.page_bytes * rng.lognormvariate(0, 0.5))
        share = plan.kind.text if plan.kind is not Kind.MIXED else rng.choice((0.0, 0.05, 0.4))
        if page == 0:
            share = min(share, 0.05)  # a front page leads on
        return prose.page(
            rng,
            title=f"{plan.name} {page}",
            text_bytes=int(size * share),
            sentences=plan.kind.sentences,
            links=self._links(rng, plan, page, language),
            all_bytes=size,
        )

    def _links(self, rng: random.Random, plan: HostPlan, page: int, language: str) -> list[str]:
        count = max(3, int(rng.lognormvariate(math.log(15 * plan.kind.links), 0.5)))
        inside = [_path(self._inner(rng, plan, language)) for _ in range(count)]
        # these lead from the front page to every page of the host, as paging does on real sites
        steps = [number for number in (page + 1, 2 * page + 1, 2 * page + 2) if number < plan.pages]
        outside = [self._outer(rng, language) for _ in range(max(1, int(count * rng.random() * 0.4)))]
        odd = rng.random()
        stale = [_path(plan.pages + int(odd * 1000))] if odd < 0.2 else ["/old" + _path(page)] if odd < 0.3 else []
        return ["/", *map(_path, steps), *inside, *outside, *stale]

    def _inner(self, rng: random.Random, plan: HostPlan, language: str) -> int:
        border = plan.border
        if language != self._languages[0]:
            return int(rng.random() * plan.pages)
        if border == plan.pages or (rng.random() < SAME_SERVER) == (language == plan.language):
            return int(rng.random() * border)
        return border + int(rng.random() * (plan.pages - border))

    def _outer(self, rng: random.Random, language: str) -> str:
        target = self._languages[0]
        chance = OTHER_SERVER if language == target else FROM_OTHERS
        if rng.random() < chance:
            wanted = target
        elif language != target and rng.random() < SAME_LANGUAGE:
            wanted = language
        else:
            wanted = rng.choices(self._languages[1:] or self._languages, self._shares[1:] or self._shares)[0]
        hosts = self._by_language[wanted] or self._by_language[self._main_language(0)]
        # the square makes the first hosts of a language its hubs
        plan = self.plan(hosts[int(len(hosts) * rng.random() ** 2)])
        page = 0 if rng.random() < 0.5 else int(rng.random() * plan.border)
        return self.url(plan, page)


def _shares(languages: Sequence[str]) -> list[float]:
    """Share of each language: TARGET_SHARE for the target, half of the rest for English, the others alike."""
    if len(languages) == 1:
        return [1.0]
    others = languages[1:]
    weights = [len(others) - 1 if language == "en" and len(others) > 1 else 1 for language in others]
    return [TARGET_SHARE, *((1 - TARGET_SHARE) * weight / sum(weights) for weight in weights)]


def _names(plan: HostPlan) -> tuple[str, ...]:
    return (plan.name, f"www.{plan.name}") if plan.www else (plan.name,)


def _path(page: int) -> str:
    return f"/{('clanky', 'archiv')[page % 7 == 6]}/{page}.html" if page else "/"


def _page_number(path: str) -> int | None:
    """The inverse of ``_path``; None for a path that no link has."""
    if path == "/":
        return 0
    digits = path.rpartition("/")[2].removesuffix(".html")
    number = int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 10 else 0
    return number if number and path == _path(number) else None


def _robots(plan: HostPlan) -> WebResponse:
    if plan.robots is Robots.MISSING:
        return not_found()
    if plan.robots is Robots.ERROR:
        return unavailable(60, status=500)
    rules = {Robots.SECTION: "Disallow: /archiv/", Robots.DELAY: f"Crawl-delay: {1 + plan.index % 10}"}
    return plain(f"User-agent: *\n{rules.get(plan.robots, 'Disallow:')}\n")


def read_words(models: Path, languages: Sequence[str] = LANGUAGES) -> dict[str, list[tuple[str, int]]]:
    """Language -> (word, count) of ``LANG/words.txt`` below *models*.  Raises BadInput."""
    return {language: _word_list(models / language / "words.txt") for language in languages}


def _word_list(path: Path) -> list[tuple[str, int]]:
    try:
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]
        return [(word, int(count)) for word, count in lines]
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path} as lines of word<TAB>count: {error}; name a directory of models.") from None
