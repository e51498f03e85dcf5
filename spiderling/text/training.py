"""From plain text to a language model: counts, a badness profile, a held-out check."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from spiderling.text.badness import build_profile
from spiderling.text.boilerplate import is_unspaced
from spiderling.text.language import ORDER, LanguageModel, LanguageModels
from spiderling.text.ngrams import normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MAX_NGRAMS = 40_000
MAX_WORDS = 5_000
_DOCUMENT_WORDS = 500
_STOPWORD_SHARE = 0.55
_HELD_OUT = 20


def sentences(texts: Iterable[str]) -> list[str]:
    """The lines of *texts* that hold letters, each once, in an order that depends on nothing but the lines."""
    lines = {line.strip() for text in texts for line in text.splitlines()}
    return sorted((line for line in lines if any(map(str.isalpha, line))), key=_shuffled)


def train(code: str, lines: Sequence[str], extra_words: Mapping[str, int] | None = None) -> LanguageModel:
    """The model of a language from sentences or paragraphs, one a line (see `sentences`).

    *extra_words* (a frequency list) adds its words' n-grams, each word as often as the
    logarithm of its count, for languages of which there is more list than text.
    """
    rest, test = split(lines)
    trial = LanguageModels((_counted(code, rest, extra_words or {}),))
    known = trial.identify(test).known_share(code) if rest and test else 1.0
    return replace(_counted(code, lines, extra_words or {}), known=max(0.01, round(known, 3)))


def _counted(code: str, lines: Sequence[str], extra_words: Mapping[str, int]) -> LanguageModel:
    spaced = not is_unspaced(" ".join(lines[:1000]))
    ngrams: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for line in lines:
        text = normalise(line)
        words.update(text.split())
        _count(text, 1, ngrams)
    for word, count in extra_words.items():
        _count(normalise(word), count.bit_length() // 2, ngrams)
    return LanguageModel(
        code,
        _first(ngrams, MAX_NGRAMS),
        _first(words, MAX_WORDS),
        build_profile(_documents(lines)) if spaced else {},
        stoplist_of(_first(words, MAX_WORDS), words.total()) if spaced else frozenset(),
        spaced,
    )


def stoplist_of(words: Mapping[str, int], total: int) -> frozenset[str]:
    """The most frequent words, up to a bit more than half of a text of *total* words."""
    covered, chosen = 0, set()
    for word, count in words.items():
        if covered > _STOPWORD_SHARE * total:
            break
        covered += count
        chosen.add(word)
    return frozenset(chosen)


class Check(NamedTuple):
    """What a model does with sentences that it was not trained on."""

    tried: int
    right: int
    taken_for: dict[str, int]
    """Other languages that were named, and how often."""


def held_out_check(code: str, lines: Sequence[str], rivals: Iterable[LanguageModel]) -> Check:
    """Train on 19 of 20 lines, name the language of the rest among *rivals*."""
    rest, test = split(lines)
    models = LanguageModels((train(code, rest), *(rival for rival in rivals if rival.code != code)))
    guesses = models.identify(test)
    named = [name for name in (guesses.nearest([row]) for row in range(len(test))) if name]
    wrong = Counter(name for name in named if name != code)
    return Check(len(named), len(named) - wrong.total(), dict(wrong.most_common()))


def split(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines to train on and lines held out, the same ones each time."""
    test = [line for line in lines if _shuffled(line)[0] % _HELD_OUT == 0]
    return [line for line in lines if _shuffled(line)[0] % _HELD_OUT], test


def alphabet(words: Mapping[str, int]) -> str:
    """Letters of the words, the most frequent first, without those that make up the last thousandth."""
    letters: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    return "".join(letter for letter, count in letters.most_common() if count * 2000 > letters.total())


def _shuffled(line: str) -> tuple[int, str]:
    return xxhash.xxh3_64_intdigest(line.encode("utf-8", "replace")), line


def _count(text: str, times: int, ngrams: Counter[str]) -> None:
    for size in range(1, ORDER + 1):
        for start in range(len(text) - size + 1):
            ngrams[text[start : start + size]] += times


def _first(counts: Counter[str], number: int) -> dict[str, int]:
    """The most frequent, ties in the order of code points."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number])


def _documents(lines: Sequence[str]) -> Iterator[list[str]]:
    """Stretches of some hundred words, as long as a short article; at least one."""
    document: list[str] = []
    complete = 0
    for line in lines:
        document += normalise(line).split()
        if len(document) >= _DOCUMENT_WORDS:
            yield document
            document = []
            complete += 1
    if document and not complete:
        yield document
