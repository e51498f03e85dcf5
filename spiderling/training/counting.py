"""Makes a language model from lines of plain text, and checks it on held-out lines."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import xxhash

from spiderling.text.boilerplate.rules import is_unspaced
from spiderling.text.language.function_words import build_profile, merged, stoplist_of
from spiderling.text.language.known import NOT_MEASURED, short_chars
from spiderling.text.language.models import LanguageModel, LanguageModels
from spiderling.text.ngrams import ORDER, NgramCounts, count_ngrams, normalise, sum_of

MAX_NGRAMS = 40_000
"""N-grams of a model for each alphabet; chosen."""
MAX_WORDS = 5_000
"""Words of a model's word list; chosen."""
MAX_CHARS = 500_000
"""Characters of text that a model is made from; chosen: more change nothing."""
DRAWN_WORDS = 80_000
"""Words of the text that `train` makes from a frequency list; chosen."""
_LINE_WORDS = 10
"""Words of a line of that text; chosen."""
_DOCUMENT_WORDS = 500
"""Words of a stretch of text that counts as one document of the profile; chosen: a short article."""
_HELD_OUT = 10
"""One of this many lines is held out; chosen."""
_MIN_HELD_OUT_WORDS = 30
"""Held-out short words by which a share is measured; chosen."""
_GOLDEN = 0.6180339887
"""Fraction of the golden ratio, whose multiples are spread evenly between 0 and 1."""


def sentences(texts: Iterable[str]) -> list[str]:
    """The lines of *texts* with letters, each once, in pseudo-random order: that of their hashes."""
    lines = {line.strip() for text in texts for line in text.splitlines()}
    return sorted((line for line in lines if any(map(str.isalpha, line))), key=_shuffled)


def train(
    code: str, lines: Sequence[str], listed: Mapping[str, int] | None = None, number: int = DRAWN_WORDS
) -> LanguageModel:
    """The model of the language *code* from *lines*, sentences or paragraphs (see `sentences`).

    *listed*, a frequency list, counts as a text of *number* words (see `drawn`): some languages have a list that is
    better than their texts.
    """
    written = [line for line, end in zip(lines, accumulate(map(len, lines)), strict=True) if end <= MAX_CHARS]
    lines = [*written, *drawn(listed or {}, number)]
    texts = list(map(normalise, lines))
    spaced = not is_unspaced(" ".join(lines[:1000]))
    ngrams = _ngrams(texts)
    words = Counter(word for text in texts for word in text.split())
    frequent = _first(words if spaced else _unspaced_words(listed or {}, ngrams), MAX_WORDS)
    return LanguageModel(
        code,
        ngrams,
        frequent,
        build_profile(_documents(texts)) if spaced else {},
        stoplist_of(frequent, words.total()) if spaced else frozenset(),
        spaced,
        known=_known(lines),
        unlisted=_unlisted(written, words, listed or {}) if spaced else NOT_MEASURED,
        tokens=words.total(),
    )


def extended(old: LanguageModel, lines: Sequence[str]) -> LanguageModel:
    """The model of the text of *old* and *lines* together."""
    new = train(old.code, lines)
    words = _first(Counter(old.words) + Counter(new.words), MAX_WORDS)
    tokens = old.tokens + new.tokens
    return replace(
        new,
        ngrams=sum_of(old.ngrams, new.ngrams).first(MAX_NGRAMS),
        words=words,
        profile=merged(old.profile, old.tokens, new.profile, new.tokens),
        stoplist=stoplist_of(words, tokens) if new.spaced else frozenset(),
        encodings=old.encodings,
        known=_known(lines, old.ngrams),
        unlisted=_unlisted(lines, Counter(old.words) + Counter(new.words), {}) if new.spaced else NOT_MEASURED,
        tokens=tokens,
        contrast=old.contrast,
    )


def _unspaced_words(listed: Mapping[str, int], ngrams: NgramCounts) -> Counter[str]:
    """Word -> count in a language without spaces: the list, else all 2-grams (most Chinese words have two letters)."""
    if listed:
        return Counter({word: count for word, count in listed.items() if normalise(word) == f" {word} "})
    return Counter({gram: count for gram, count in ngrams.as_dict().items() if len(gram) == 2 and " " not in gram})


def _ngrams(texts: Sequence[str]) -> NgramCounts:
    return count_ngrams(texts, ORDER).first(MAX_NGRAMS)


def _known(lines: Sequence[str], old: NgramCounts | None = None) -> float:
    """`LanguageModel.known`: share of n-grams in held-out *lines* that are usual in the other lines and *old*."""
    rest, test = split(lines)
    if not rest or not test:
        return 1.0
    ngrams = _ngrams(list(map(normalise, rest)))
    ngrams = sum_of(old, ngrams).first(MAX_NGRAMS) if old else ngrams
    trial = LanguageModels((LanguageModel("", ngrams, {}, {}, spaced=not is_unspaced(" ".join(rest[:1000]))),))
    return max(0.01, round(trial.usual_share("", test), 3))


def _unlisted(lines: Sequence[str], words: Counter[str], listed: Mapping[str, int]) -> float:
    """`LanguageModel.unlisted`, by held-out *lines* and by the whole list *listed*, the larger; *words*: of all text.

    A model of fewer than MAX_WORDS words has a list that is too small to tell anything.
    """
    if len(words) < MAX_WORDS:
        return NOT_MEASURED
    held_out = Counter(word for line in split(lines)[1] for word in normalise(line).split())
    max_chars = short_chars(_first(words, MAX_WORDS))
    shares = []
    for counts, lasting in ((held_out, words - held_out), (Counter(listed), words)):
        short = {word: count for word, count in counts.items() if len(word) <= max_chars}
        kept = _first(lasting, MAX_WORDS)
        if sum(short.values()) >= _MIN_HELD_OUT_WORDS:
            shares.append(sum(count for word, count in short.items() if word not in kept) / sum(short.values()))
    return round(max(shares, default=NOT_MEASURED), 3)


def drawn(listed: Mapping[str, int], number: int) -> list[str]:
    """Lines of *number* words together, in which words are as frequent as in the list *listed* (word -> count).

    The same list gives the same lines: word i stands in the cumulated counts at the
    fractional part of i times the golden ratio.
    """
    words = list(listed)
    total = sum(listed.values())
    between = "" if is_unspaced("".join(words[:1000])) else " "
    ends = list(accumulate(listed.values()))
    places = (int((index * _GOLDEN) % 1 * total) for index in range(number if words else 0))
    text = [words[bisect_right(ends, place)] for place in places]
    return [between.join(text[start : start + _LINE_WORDS]) for start in range(0, len(text), _LINE_WORDS)]


class Check(NamedTuple):
    """The result of `held_out_check`, in lines."""

    tried: int
    right: int
    taken_for: dict[str, int]
    """Wrong language -> number of lines."""


def held_out_check(code: str, lines: Sequence[str], rivals: Iterable[LanguageModel]) -> Check:
    """Train on nine of ten *lines*, and tell the others from the languages of *rivals*."""
    rest, test = split(lines)
    models = LanguageModels((train(code, rest), *(rival for rival in rivals if rival.code != code)))
    guesses = models.identify(test)
    named = [name for name in (guesses.nearest([row]) for row in range(len(test))) if name]
    wrong = Counter(name for name in named if name != code)
    return Check(len(named), len(named) - wrong.total(), dict(wrong.most_common()))


def split(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """(lines to train on, held-out lines); the same lines are always held out."""
    test = [line for line in lines if _shuffled(line)[0] % _HELD_OUT == 0]
    return [line for line in lines if _shuffled(line)[0] % _HELD_OUT], test


def alphabet(words: Mapping[str, int]) -> str:
    """Letters of *words* (word -> count), the most frequent first, without those rarer than one in 2,000."""
    letters = Counter[str]()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    return "".join(letter for letter, count in letters.most_common() if count * 2000 > letters.total())


def _shuffled(line: str) -> tuple[int, str]:
    return xxhash.xxh3_64_intdigest(line.encode("utf-8", "replace")), line


def _first(counts: Counter[str], number: int) -> dict[str, int]:
    """The *number* most frequent words, equal ones in the order of code points."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number])


def _documents(texts: Sequence[str]) -> list[list[str]]:
    """The words in stretches of _DOCUMENT_WORDS or more; a shorter last one only if there is no other."""
    documents: list[list[str]] = [[]]
    for text in texts:
        documents[-1] += text.split()
        if len(documents[-1]) >= _DOCUMENT_WORDS:
            documents.append([])
    return documents[:-1] or documents
