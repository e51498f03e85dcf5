"""Which blocks are good: `choose` by the learned model, the default; `classify` by jusText's rules.

`classify` (Pomikálek 2011, chapter 3) first looks at each block alone (length, density of
links and of stop words), then at its neighbours.  Its time is linear in the number of blocks.  Unlike the
justext package it applies the rule for headings before it looks at neighbours, as published.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import accumulate

from spiderling.text.html.blocks import Block, normal_form

GOOD = "good"
NEARGOOD = "neargood"
SHORT = "short"
BAD = "bad"
_SCALES = {
    "\u0e00-\u0e7f": 1.0,  # Thai
    "\u0e80-\u0eff": 1.1,  # Lao
    "\u1000-\u109f": 1.25,  # Burmese
    "\u1780-\u17ff": 1.15,  # Khmer
    "\u3400-\u9fff\uf900-\ufaff": 0.35,  # Chinese
}
"""Letters of an unspaced script -> its characters for one character of English; measured on translated news."""
_KANA = "\u3040-\u30ff"
_JAPANESE_SCALE = 0.45
"""The same for Japanese, which mixes Chinese characters with kana; measured likewise."""
_KANA_SHARE = 0.1  # share of kana among the letters of unspaced scripts above which a text is Japanese; chosen
_UNSPACED = re.compile(f"[{''.join(_SCALES)}{_KANA}]")
_SCRIPTS = {re.compile(f"[{letters}]"): scale for letters, scale in _SCALES.items()}
_KANA_LETTERS = re.compile(f"[{_KANA}]")


@dataclass(frozen=True, slots=True)
class JustextRules:
    """Thresholds; lengths in characters, densities as shares.  The defaults are those of the justext package."""

    length_low: int = 70
    length_high: int = 200
    stopwords_low: float = 0.30
    stopwords_high: float = 0.32
    max_link_density: float = 0.2
    max_heading_distance: int = 200


PRESETS = {
    "strict": JustextRules(),
    "balanced": JustextRules(55, 140, 0.20, 0.25, 0.35),
    "permissive": JustextRules(40, 90, 0.10, 0.15, 0.5),
}
_SENTENCE_CHARS = 35  # characters of a short sentence, in English; chosen


@lru_cache(maxsize=64)
def rules_for(preset: str, scale: float | None, stopwords: bool = True) -> JustextRules:
    """The rules that *preset* names, adapted to one page.

    For an unspaced script *scale* (`length_scale`) multiplies the lengths.  With a scale, or without *stopwords* (the
    language has no list), the rules about stop words are off.
    """
    rules = PRESETS[preset]
    if scale is not None:
        rules = replace(
            rules,
            length_low=round(rules.length_low * scale),
            length_high=round(rules.length_high * scale),
            max_heading_distance=round(rules.max_heading_distance * scale),
        )
    return rules if scale is None and stopwords else replace(rules, stopwords_low=0.0, stopwords_high=0.0)


def is_unspaced(text: str) -> bool:
    """Whether most letters belong to a script without spaces between words."""
    found = 2 * len(_UNSPACED.findall(text))
    return found > 0 and found > sum(map(str.isalpha, text))


def length_scale(text: str) -> float | None:
    """Characters of the script of *text* for one character of English; None for a script with spaces.

    >>> length_scale("今天天气很好"), length_scale("人間は自由である"), length_scale("Kočka")
    (0.35, 0.45, None)
    """
    if not is_unspaced(text):
        return None
    counts = {len(script.findall(text)): scale for script, scale in _SCRIPTS.items()}
    kana = len(_KANA_LETTERS.findall(text))
    is_japanese = kana > _KANA_SHARE * len(_UNSPACED.findall(text))
    return _JAPANESE_SCALE if is_japanese else counts[max(counts)]


def classify(
    blocks: Sequence[Block], stoplist: Collection[str], rules: JustextRules, first_headings: bool = True
) -> list[str]:
    """The final class of each block: GOOD or BAD.

    Without *first_headings* the rule for headings is not applied before the neighbours, as in the justext package.
    """
    first = [_alone(block, stoplist, rules) for block in blocks]
    classes = list(first)
    headings = [index for index, block in enumerate(blocks) if block.heading]
    near = _heads_text(blocks, classes, rules.max_heading_distance)
    for index in headings if first_headings else ():
        if classes[index] == SHORT and near[index]:
            classes[index] = NEARGOOD
    classes = _decide_short(classes)
    _decide_neargood(classes)
    near = _heads_text(blocks, classes, rules.max_heading_distance)
    for index in headings:
        if classes[index] == BAD and first[index] != BAD and near[index]:
            classes[index] = GOOD
    return classes


def choose(blocks: Sequence[Block], probabilities: Sequence[float], threshold: float) -> list[str]:
    """The class of each block, GOOD or BAD, by its probability (model.py).

    All are BAD if no block from *threshold* on is as long as a sentence: the page is snippets and links.
    """
    good = [probability >= threshold for probability in probabilities]
    chosen = (block for block, yes in zip(blocks, good, strict=True) if yes)
    if not any(map(_holds_sentence, chosen)):
        return [BAD] * len(good)
    return [GOOD if yes else BAD for yes in good]


def stock(html: str, stoplist: Collection[str], rules: JustextRules) -> list[tuple[Block, str]] | None:
    """Blocks and classes by the ``justext`` package itself; None where the package raises."""
    import justext  # it is slow to import, and only this mode needs it

    try:
        paragraphs = justext.justext(html, frozenset(stoplist), **asdict(rules))
    except Exception:
        return None
    found = [(Block(normal_form(p.text), p.heading, p.chars_count_in_links), p.class_type) for p in paragraphs]
    return [(block, cls) for block, cls in found if block.text]  # of some the normal form leaves nothing


def _holds_sentence(block: Block) -> bool:
    """Whether the block is as long as a short sentence, its links not counted."""
    length = len(block.text) - block.link_chars
    return length >= 2 * _SENTENCE_CHARS or length >= _SENTENCE_CHARS * (length_scale(block.text) or 1)


def _alone(block: Block, stoplist: Collection[str], rules: JustextRules) -> str:
    """The class of *block* without its neighbours."""
    text = block.text
    length = len(text)
    if block.link_chars / length > rules.max_link_density or "©" in text or "&copy" in text:
        return BAD
    if length < rules.length_low:
        return BAD if block.link_chars else SHORT
    if rules.stopwords_low > 0:
        words = text.lower().split()
        density = sum(1 for word in words if word in stoplist) / len(words)
        if density < rules.stopwords_low:
            return BAD
        if density < rules.stopwords_high:
            return NEARGOOD
    return GOOD if length > rules.length_high else NEARGOOD


def _heads_text(blocks: Sequence[Block], classes: Sequence[str], distance: int) -> list[bool]:
    """For each block, whether a good block begins within *distance* characters behind its end."""
    near = [False] * len(blocks)
    gap = distance + 1
    for index in range(len(blocks) - 1, -1, -1):
        near[index] = gap <= distance
        gap = 0 if classes[index] == GOOD else gap + len(blocks[index].text)
    return near


def _nearest(classes: Iterable[str], stops: Collection[str]) -> list[str]:
    """For each place, the nearest class before it that is one of *stops*; BAD if there is none."""
    return list(accumulate(classes, lambda last, cls: cls if cls in stops else last, initial=BAD))[:-1]


def _both_sides(classes: Sequence[str], stops: Collection[str]) -> tuple[list[str], list[str]]:
    return _nearest(classes, stops), _nearest(reversed(classes), stops)[::-1]


def _decide_short(classes: Sequence[str]) -> list[str]:
    """Decide short blocks: as the nearest good or bad blocks on both sides if these agree; else BAD, but GOOD if a
    near-good block stands between it and the bad one."""
    before, after = _both_sides(classes, (GOOD, BAD))
    near_before, near_after = _both_sides(classes, (GOOD, BAD, NEARGOOD))

    def decided(index: int) -> str:
        if before[index] == after[index]:
            return before[index]
        near = near_before if before[index] == BAD else near_after
        return GOOD if near[index] == NEARGOOD else BAD

    return [decided(index) if cls == SHORT else cls for index, cls in enumerate(classes)]


def _decide_neargood(classes: list[str]) -> None:
    """Decide near-good blocks: BAD between two bad blocks, else GOOD.  Each decision counts for the next block."""
    after = _both_sides(classes, (GOOD, BAD))[1]
    before = BAD
    for index, cls in enumerate(classes):
        if cls == NEARGOOD:
            classes[index] = BAD if (before, after[index]) == (BAD, BAD) else GOOD
        before = classes[index]
