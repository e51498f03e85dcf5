"""Pages whose text is known: labels their blocks, and measures a choice of blocks.

A block is labelled as text if half of its word trigrams occur in the page's text.  The
measure is F1 of the bags of words (a CJK or Thai character is a word), as in comparisons
of text extractors.  Some pages are marked only with stretches that belong to their text
and others that do not: there it is F1 of the stretches found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_GRAM = 3
"""Words of the runs that are compared; chosen."""
_LABEL_SHARE = 0.5
"""Share of a block's runs that a text must hold; chosen."""


def words_of(text: str) -> list[str]:
    """Lower-case words; each character of a script without spaces is one."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A page and its text."""

    html: str
    text: str | None
    """All of its text, or None when only stretches are known."""
    wanted: tuple[str, ...] = ()
    """Stretches that belong to the text."""
    unwanted: tuple[str, ...] = ()
    """Stretches of boilerplate."""
    host: str = ""
    """A check never uses pages of one host both to fit and to measure."""
    group: str = ""
    """Name of the pages that its score is averaged with: a source or a language."""


def labels(texts: Sequence[str], page: MarkedPage) -> list[bool]:
    """Which of the blocks' *texts* belong to the page's text; requires that it is known as a whole."""
    assert page.text is not None
    gold = words_of(page.text)
    known = {size: set(_grams(gold, size)) for size in (2, _GRAM)}
    return [_is_known(words_of(text), known) for text in texts]


def score(chosen: Iterable[str], page: MarkedPage) -> tuple[float, float, float]:
    """Counts for `f1` by the texts of the *chosen* blocks: (chosen and right, chosen, right)."""
    if page.text is None:
        text = "\n".join(chosen)
        right = sum(stretch in text for stretch in page.wanted)
        return right, right + sum(stretch in text for stretch in page.unwanted), len(page.wanted)
    found: Counter[str] = Counter()
    for text in chosen:
        found.update(words_of(text))
    gold = Counter(words_of(page.text))
    return (found & gold).total(), found.total(), gold.total()


def f1(scores: Sequence[tuple[float, float, float]], stretches: bool = False) -> float:
    """Mean F1 of pages; for *stretches*, which are few on a page, F1 of all pages together."""
    if stretches:
        scores = [(sum(column[0] for column in scores), sum(column[1] for column in scores), sum(c[2] for c in scores))]
    return sum(2 * both / max(1, found + right) for both, found, right in scores) / max(1, len(scores))


def _grams(words: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(size)), strict=False)


def _is_known(words: Sequence[str], known: dict[int, set[tuple[str, ...]]]) -> bool:
    """Whether the text holds enough runs of *words*; a single word proves nothing, two must be a run."""
    if len(words) < 2:
        return False
    size = min(_GRAM, len(words))
    grams = list(_grams(words, size))
    return sum(gram in known[size] for gram in grams) >= _LABEL_SHARE * len(grams)
