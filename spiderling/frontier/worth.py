"""What a link and a host are worth: the estimators of priority.py weighed, by weights that the crawl learns.

The model is a logistic regression of a page's yield (kept / downloaded bytes) on what the
estimators said of its link, fitted while the crawl goes on (AdaGrad, one step a page) and
drawn towards the weights it began with; |weight| is bounded.  A sample of the links that
wait is remembered for that.  Worth beside the mean of the whole crawl makes the rank.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from spiderling.frontier.priority import ESTIMATORS, LAST_RANK, OF_LINK, Cues, page_quality
from spiderling.frontier.urlwords import UrlWords
from spiderling.reasons import Reason
from spiderling.urls import name_of

if TYPE_CHECKING:
    from spiderling.frontier.books import Books
    from spiderling.frontier.foundlink import FoundLink
    from spiderling.frontier.strategies import LinkingPage
    from spiderling.frontier.yields import YieldAccount

_REPEATS = frozenset({Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.SOFT_NOT_FOUND})
_USUAL_RATE, _USUAL_BYTES = 0.03, 1_000_000
"""The yield rate of a crawl that has downloaded nothing yet, and the bytes for which that counts."""
_YOUNG_BYTES = 60_000
"""Of its first bytes, a host has by half what its links promised."""
_SECTION_BYTES = 100_000
_SECTIONS = 50_000
_HOST_PRIOR = 0.3
"""Pages of a host for which the crawl's mean share of wanted ones counts."""
_SCALE = 3.0
"""Log-odds that stand for certainty, 1 or -1."""
_WATCHED = 20_000
_BEST, _STEP = math.log(6.0), math.log(1.7)
"""Rank 1 begins at six times the crawl's yield rate, and each rank is worth that much less."""
_RATE, _PULL, _BOUND = 0.3, 0.0005, 8.0
_OfHost = tuple[bool, float, float, float]
"""Whether it is the linking page's; host, trust and language as in Cues."""


def _logit(share: float) -> float:
    return math.log(share / (1.0 - share))


class Worth:
    """The estimators with their weights, and what they look at."""

    def __init__(self, weights: Mapping[str, float], learns: bool, books: Books, languages: Iterable[str] = ()) -> None:
        """*weights*: those to begin with; estimators without are switched off."""
        self._books, self._learns = books, learns
        self.names = [name for name in ESTIMATORS if weights.get(name)]
        self._of_link = [(at, ESTIMATORS[name][0]) for at, name in enumerate(self.names) if name in OF_LINK]
        self._of_target = [(at, ESTIMATORS[name][0]) for at, name in enumerate(self.names) if name not in OF_LINK]
        self._first = [*(weights[name] for name in self.names), _logit(_USUAL_RATE)]
        self.weights = list(self._first)
        """In the order of ``names``; the bias last."""
        self._gradients = [1e-3] * len(self.weights)
        self.steps = 0
        self.errors = [0.0, 0.0]
        """Sums of squared errors of the model, and of the crawl's mean, over all steps."""
        self._words = UrlWords(languages, ())
        self._sections: dict[int, list[float]] = {}
        self._watched: dict[int, tuple[float, ...]] = {}
        self._languages: dict[int, list[int]] = {}
        """Pages in a wanted language and in others, by host; and of the whole crawl:"""
        self._pages = [1, 1]
        self._every = 1

    # -- the crawl's mean, and ranks beside it

    @property
    def usual(self) -> float:
        """The yield rate of the crawl so far."""
        totals = self._books.ledger.totals
        kept = totals["kept_bytes"] + _USUAL_RATE * _USUAL_BYTES
        return max(1e-4, min(0.5, kept / (totals["downloaded_bytes"] + _USUAL_BYTES)))

    def host_rank(self, host_id: int, account: YieldAccount, head: int) -> int:
        """By what the host gave, and, as long as that is little, by what its next link promises."""
        usual = self.usual
        promised = usual * math.exp(_BEST - _STEP * (head - 1.5) + _SCALE * self._of_language(host_id))
        given = (account.kept_bytes + _YOUNG_BYTES * promised) / (account.downloaded_bytes + _YOUNG_BYTES)
        beside = math.log(max(math.sqrt(given * promised), 1e-6) / usual)
        return max(1, min(LAST_RANK, 1 + math.ceil((_BEST - beside) / _STEP)))

    # -- links

    def ranker(self, page: LinkingPage) -> Callable[[FoundLink], int]:
        """How the links of *page* are ranked; what is the same for all links to one host is worked out once."""
        of_link, weights, usual = self._of_link, self.weights, self.usual
        cues = Cues(quality=page_quality(page.reason, page.is_relevant, page.badness), distance=page.host.distance)
        hosts: dict[int, tuple[_OfHost, list[float]]] = {}
        origins: dict[str, tuple[Callable[[str], float], int, dict[str, tuple[float, float]]]] = {}

        def rank(link: FoundLink) -> int:
            origin, _, path, host_id, text_block, score, anchor = link
            if host_id not in hosts:
                hosts[host_id] = self._about(host_id, page.host.id, usual, cues)
            if origin not in origins:
                origins[origin] = self._words.guesser(name_of(origin)), zlib.crc32(origin.encode()), {}
            (cues.same_host, cues.host, cues.trust, cues.language), values = hosts[host_id]
            guess, crc, sections = origins[origin]
            end = path.find("/", 1)
            section = path[:end] if end > 0 else ""
            if section not in sections:
                sections[section] = self._of_section(_section(host_id, path)) if host_id else (0.0, 0.0)
            cues.section, cues.repeats = sections[section]
            cues.block, cues.anchor, cues.url = score or float(text_block), anchor, guess(path)
            values = values.copy()
            for at, estimator in of_link:
                values[at] = estimator(cues)
            odds = weights[-1]
            for weight, value in zip(weights, values):  # noqa: B905 - the bias is left over, and this runs for each link
                odds += weight * value
            if self._learns and not (key := zlib.crc32(path.encode(), crc)) % self._every:
                self._watch(key, values)
            place = 1.0 + (_BEST - math.log(1.0 / (1.0 + math.exp(-odds)) / usual)) / _STEP
            return max(1, min(LAST_RANK, math.ceil(place)))

        return rank

    def _about(self, host_id: int, source_id: int, usual: float, cues: Cues) -> tuple[_OfHost, list[float]]:
        """What all links to a host have in common, and what the estimators say of it; 0 for those of links."""
        about = host_id == source_id, *self._of_host(host_id, usual), self._of_language(host_id)
        cues.same_host, cues.host, cues.trust, cues.language = about
        values = [0.0] * len(self.names)
        for at, estimator in self._of_target:
            values[at] = estimator(cues)
        return about, values

    def _of_host(self, host_id: int, usual: float) -> tuple[float, float]:
        """Worth of a host beside the crawl, -1 to 1, and how far it is known."""
        live = self._books.hosts.live(host_id) if host_id else None
        if live is None:
            rank = self._books.marks.ranks[host_id] if host_id else 5
            return (5 - max(rank, 1)) / 4, 0.5 if host_id else 0.0
        account = live.account
        given = (account.kept_bytes + _YOUNG_BYTES * usual) / (account.downloaded_bytes + _YOUNG_BYTES)
        return _beside(given, usual), account.downloaded_bytes / (account.downloaded_bytes + _YOUNG_BYTES)

    def _of_language(self, host_id: int) -> float:
        """Most hosts are in one language, so that the first page tells much."""
        seen = self._languages.get(host_id)
        if seen is None:
            return 0.0
        mean = self._pages[0] / (self._pages[0] + self._pages[1])
        return _beside((seen[0] + _HOST_PRIOR * mean) / (seen[0] + seen[1] + _HOST_PRIOR), mean)

    def foreign_pages(self, host_id: int) -> int:
        """Pages in other languages of a host that gave none in a wanted one; 0 for any other host."""
        wanted, others = self._languages.get(host_id, (0, 0))
        return 0 if wanted else others

    def _of_section(self, key: int) -> tuple[float, float]:
        section = self._sections.get(key)
        if section is None:
            return 0.0, 0.0
        kept, downloaded, host_rate, pages, repeats = section
        return _beside((kept + _SECTION_BYTES * host_rate) / (downloaded + _SECTION_BYTES), host_rate), repeats / pages

    # -- learning

    def learn(self, page: LinkingPage, path: str, url: str, body_bytes: int, kept_bytes: int) -> None:
        """What the page at *url* gave."""
        account = page.host.account
        rate = max(account.rate, 1e-3)
        section = self._sections.setdefault(_section(page.host.id, path), [0.0, 0.0, rate, 0.0, 0.0])
        section[0] += kept_bytes
        section[1] += body_bytes
        section[2] = rate
        section[3] += 1
        section[4] += page.reason in _REPEATS
        if len(self._sections) > _SECTIONS:
            del self._sections[next(iter(self._sections))]
        if page.is_relevant or page.reason is Reason.WRONG_LANGUAGE:
            self._pages[not page.is_relevant] += 1
            self._languages.setdefault(page.host.id, [0, 0])[not page.is_relevant] += 1
            if len(self._languages) > _SECTIONS:
                del self._languages[next(iter(self._languages))]
            self._words.learn(page.host.name.partition(":")[0], path, page.is_relevant)
        values = self._watched.pop(zlib.crc32(url.encode()), None)
        if values is not None and body_bytes:
            self._step([*values, 1.0], min(1.0, kept_bytes / body_bytes))

    def _watch(self, key: int, values: list[float]) -> None:
        """Remember what was said of a link, by its URL's checksum, in a sample that is halved whenever it is full."""
        if len(self._watched) >= _WATCHED:
            self._every *= 2
            self._watched = {key: value for key, value in self._watched.items() if not key % self._every}
        self._watched[key] = tuple(values)  # which the garbage collector need not look through, unlike a list

    def _step(self, values: list[float], given: float) -> None:
        weights, usual = self.weights, self.usual
        odds = sum(weight * value for weight, value in zip(weights, values, strict=True))
        error = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds)))) - given
        self.steps += 1
        self.errors[0] += error * error
        self.errors[1] += (usual - given) ** 2
        for at, value in enumerate(values):
            gradient = error * value + _PULL * (weights[at] - self._first[at])
            self._gradients[at] += gradient * gradient
            moved = weights[at] - _RATE * gradient / math.sqrt(self._gradients[at])
            weights[at] = max(-_BOUND, min(_BOUND, moved))

    # -- kept with the crawl

    def state(self) -> str:
        """What was learnt, as JSON."""
        learnt = dict(zip([*self.names, "bias"], self.weights, strict=True))
        return json.dumps({"weights": learnt, "gradients": self._gradients, "steps": self.steps, "errors": self.errors})

    def restore(self, state: str) -> None:
        """Take up what ``state`` gave, unless other estimators were in use then, or it is damaged: learnt anew."""
        saved = learnt_of(state)
        if saved is not None and list(saved.weights) == [*self.names, "bias"]:
            self.weights, self._gradients = list(saved.weights.values()), saved.gradients
            self.steps, self.errors = saved.steps, saved.errors


class Learnt(NamedTuple):
    """What a crawl keeps of a Worth."""

    weights: dict[str, float]
    gradients: list[float]
    steps: int
    errors: list[float]


def learnt_of(state: str) -> Learnt | None:
    """What ``Worth.state`` gave; None for anything that it cannot have given."""
    try:
        saved = json.loads(state)
        weights = {str(name): float(weight) for name, weight in saved["weights"].items()}
        gradients, errors = ([float(value) for value in saved[name]] for name in ("gradients", "errors"))
        learnt = Learnt(weights, gradients, int(saved["steps"]), errors)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    fits = len(gradients) == len(weights) and len(errors) == 2 and learnt.steps >= 0
    bounded = all(abs(weight) <= _BOUND for weight in weights.values()) and all(value > 0 for value in gradients)
    return learnt if fits and bounded and all(0 <= value < math.inf for value in gradients + errors) else None


def _beside(rate: float, usual: float) -> float:
    """log(rate / usual) on a scale of -1 to 1, which stand for a twentieth and for twenty times."""
    return max(-1.0, min(1.0, math.log(max(rate, 1e-6) / usual) / _SCALE))


def _section(host_id: int, path: str) -> int:
    """The key of the first segment of *path* on a host."""
    end = path.find("/", 1)
    return hash((host_id, zlib.crc32(path[:end].encode()) if end > 0 else 0))
