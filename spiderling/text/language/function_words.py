"""Badness: how much rarer the function words of a language are in a text than expected.

Schäfer, Barbaresi, Bildhauer, *The Good, the Bad, and the Hazy: Design Decisions in
Web Corpus Construction* (WAC-8, 2013).  For each word w of the profile, m and s are
the mean and standard deviation of log10 of its relative frequency in training
documents.  For a text in which w has the relative frequency f it costs

    min(LIMIT, max(0, (m - log10 f) / s))

The sum of these costs is the text's badness: high for lists, menus and word salad, low
for running text.  In the paper a missing word costs LIMIT, so every short text is bad;
here it counts as half an occurrence, which costs the same in long texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from spiderling.text.ngrams import words as words_of

LIMIT = 10.0
"""Most that one word may cost (Schäfer et al. 2013)."""
PROFILE_WORDS = 10
"""Words of a profile (Schäfer et al. 2013)."""
_MIN_SD = 0.15
"""Least standard deviation, so that a word that hardly varies does not weigh too much; chosen."""
_FUNCTION_WORD_CHARS = 4
"""Most letters of a frequent word that is likely a function word; chosen."""
_STOPWORD_SHARE = 0.55
"""Share of a text's words that its stop words make up; chosen."""

Expected = tuple[float, float, float]
Profile = Mapping[str, Expected]
"""word -> (mean, standard deviation) of log10 of its relative frequency, and the most it may cost."""


class Listed(NamedTuple):
    """The words of a text, as far as lists of its language know them."""

    number: int
    """Number of all words."""
    stop_words: int
    counts: Sequence[int]
    """How often each word of the profile occurs."""


ListWords = Callable[[str, Collection[str], Profile], Listed]
"""Type of `listed`."""


def listed(text: str, stoplist: Collection[str], profile: Profile) -> Listed:
    """How many words *text* has, how many of them are in *stoplist*, and how often those of *profile* occur."""
    words = words_of(text)
    counts = Counter(words)
    return Listed(len(words), sum(map(stoplist.__contains__, words)), [counts[word] for word in profile])


def badness(found: Listed, profile: Profile) -> float:
    """The badness of a text by what was *found* in it of *profile*: from 0 to the sum of the limits.

    It is 0 for an empty profile, as languages without spaces have.
    """
    if not profile:
        return 0.0
    if not found.number:
        return sum(limit for _, _, limit in profile.values())
    each = zip(found.counts, profile.values(), strict=True)
    return sum(_cost(count, found.number, *expected) for count, expected in each)


def build_profile(documents: Iterable[Sequence[str]]) -> dict[str, tuple[float, float, float]]:
    """The profile from *documents*, lists of lower-case words: PROFILE_WORDS words that occur in the most documents.

    Short words are preferred, because a frequent long word is likely the topic of the documents.
    """
    logs: dict[str, list[float]] = {}
    for document in documents:
        for word, count in Counter(document).items():
            logs.setdefault(word, []).append(math.log10(count / len(document)))
    least = sorted(map(len, logs.values()), reverse=True)[: 3 * PROFILE_WORDS]
    common = [word for word in logs if len(logs[word]) >= min(least)]
    first = sorted(common, key=lambda word: (-len(logs[word]), -sum(10.0**log for log in logs[word]), word))
    first = first[: 3 * PROFILE_WORDS]
    chosen = sorted(first, key=lambda word: len(word) > _FUNCTION_WORD_CHARS)[:PROFILE_WORDS]
    return {word: _spread(logs[word]) for word in chosen}


def merged(first: Profile, first_size: int, second: Profile, second_size: int) -> Profile:
    """The profile of two texts together, whose sizes are in words.

    Its words are those of the larger text; means and deviations are pooled.
    """
    if first_size < second_size:
        first, first_size, second, second_size = second, second_size, first, first_size
    share = second_size / max(1, first_size + second_size)
    return {word: _pooled(values, second.get(word, values), share) for word, values in first.items()}


def _pooled(one: Expected, two: Expected, share: float) -> Expected:
    """The values of a word in two sets of documents together; *share* of the text is in the second."""
    mean = (1 - share) * one[0] + share * two[0]
    variance = (1 - share) * (one[1] ** 2 + (one[0] - mean) ** 2) + share * (two[1] ** 2 + (two[0] - mean) ** 2)
    return round(mean, 3), round(math.sqrt(variance), 3), max(one[2], two[2])


def _cost(count: int, words: int, mean: float, sd: float, limit: float) -> float:
    return min(limit, max(0.0, (mean - math.log10(max(count, 0.5) / words)) / sd))


def _spread(logs: Sequence[float]) -> tuple[float, float, float]:
    mean = sum(logs) / len(logs)
    sd = math.sqrt(sum((log - mean) ** 2 for log in logs) / len(logs))
    return round(mean, 3), round(max(sd, _MIN_SD), 3), LIMIT


def stoplist_of(words: Mapping[str, int], total: int) -> frozenset[str]:
    """The most frequent of *words* (word -> count): _STOPWORD_SHARE of a text of *total* words."""
    before = accumulate(words.values(), initial=0)
    return frozenset(word for word, covered in zip(words, before, strict=False) if covered <= _STOPWORD_SHARE * total)
