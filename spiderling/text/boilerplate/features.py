"""The features of a block for the first network of the boilerplate model: its text, its place, its neighbours.

None depends on the language: lengths, links, punctuation, capitals, digits, tags,
names of the enclosing elements (html/zones.py).  One table look-up classifies the
characters of all blocks, so a page takes well under a millisecond.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spiderling.text.html.blocks import Block
from spiderling.text.html.zones import KINDS, Inherited, Ints

Array = npt.NDArray[np.float32]

_CLASSES = 8
_OTHER, _UPPER, _DIGIT, _STOP, _COMMA, _SPACE, _WIDE, _SYMBOL = range(_CLASSES)
_STOPS = ".!?…。！？।॥؟۔።܀։"
_COMMAS = ",;:،؛、，；：፣፤"
_SYMBOLS = "©®|•·»«›‹→←↑↓▶►■★☆/\\_=+#*<>[]{}~^@"
_WIDE_WORD = 0.5
"""Words for which a character of an unspaced script counts; chosen: an ideograph is more, a Thai letter a fifth."""
_TAGS = ("", "p", "li", "td", "div")
"""Tags with a feature of their own; any other counts as the last."""
_ENDS = frozenset(_STOPS)
_LADDER = (3, 6, 12, 25, 50, 100)
"""Numbers of words; for each a feature says whether the block has as many; chosen."""
_LINK_LADDER = (0.05, 0.3, 0.7)
"""Shares of characters inside links; for each a feature says whether the block has more; chosen."""
_OFFSETS = (-3, -2, -1, 1, 2, 3)
"""Neighbours whose own features a block has too, as distances in blocks; chosen."""
_WINDOWS = (3, 10, 30)
"""Blocks to either side over which features are averaged; chosen."""

OWN = [
    "log words",
    "log characters",
    "link density",
    "no links",
    "stops a word",
    "commas a word",
    "ends in a stop",
    "heading",
    "digits",
    "capitals",
    "symbols",
    "copyright",
    "pieces a word",
    "text words",
    *(f"tag {tag or 'none'}" for tag in _TAGS),
    *(f"in {kind}" for kind in KINDS),
]
"""Names of a block's own features, in their order."""
_BROAD = [OWN.index(name) for name in ("log words", "link density", "stops a word", "ends in a stop", "text words")]
_LINK_DENSITY = OWN.index("link density")
_ZONES = slice(len(OWN) - len(KINDS), len(OWN))
_ZONE_BITS = (np.arange(1 << len(KINDS)) >> np.arange(len(KINDS))[:, None] & 1).astype(np.float32)
_TAG_COLUMNS = {tag: OWN.index(f"tag {tag or 'none'}") for tag in _TAGS} | {"th": OWN.index("tag td")}
_LAST_TAG = OWN.index(f"tag {_TAGS[-1]}")
_STEPS, _LINK_STEPS = (np.array(steps, np.float32)[:, None] for steps in (_LADDER, _LINK_LADDER))
PAGE = [
    *OWN,
    *(f"{step} or more words" for step in _LADDER),
    *(f"link density over {step}" for step in _LINK_LADDER),
    "place",
    "text before",
    "text after",
    "share of the text",
    "share of the longest",
    "log text of the page",
    "link density of the page",
    *(f"page: {kind}" for kind in KINDS),
]
"""Names of the features of a block and of its page, without its neighbours."""
NAMES = [
    *PAGE,
    *(f"{offset:+d}: {name}" for offset in _OFFSETS for name in OWN),
    *(f"within {width}: {OWN[column]}" for width in _WINDOWS for column in _BROAD),
]
"""Names of the columns of `features`; the fitted weights depend on them."""
_ZONES_OF_PAGE = len(PAGE) - len(KINDS)
_SURROUNDINGS = len(PAGE) + len(_OFFSETS) * len(OWN)


def features(blocks: Sequence[Block], inherited: Inherited) -> Array:
    """The features (block, NAMES), most of them between 0 and 1; requires at least one block.

    *inherited* is the page's tree.
    """
    columns = np.zeros((len(NAMES), len(blocks)), np.float32)
    own = columns[: len(OWN)]
    words = _own(blocks, inherited.zones, own)
    _place(words, own[_LINK_DENSITY], columns[len(OWN) : _ZONES_OF_PAGE])
    columns[_ZONES_OF_PAGE : len(PAGE)] = own[_ZONES].mean(1, keepdims=True)
    shift(own, _OFFSETS, columns[len(PAGE) : _SURROUNDINGS])
    sums, sizes = window_sums(own[_BROAD], _WINDOWS)
    columns[_SURROUNDINGS:] = (sums / sizes[:, None]).reshape(-1, len(blocks))
    rows: Array = columns.T
    return rows


def _own(blocks: Sequence[Block], zones: Ints, columns: Array) -> Array:
    """Fill in the own features of each block; returns the numbers of words."""
    texts, headings, link_counts, tags, piece_counts, elements = zip(*blocks, strict=True)
    chars = np.array([len(text) for text in texts], np.float32)
    link_chars = np.array(link_counts, np.float32)
    marks = _counts(texts, chars)
    words = marks[:, _SPACE] + 1 + _WIDE_WORD * marks[:, _WIDE]
    density = np.minimum(1, link_chars / chars)
    columns[:4] = np.log1p(words) / 5, np.log1p(chars) / 7, density, link_chars == 0
    columns[4:6] = np.minimum(1, 4 * marks[:, (_STOP, _COMMA)].T / words)
    columns[6:8] = [not _ENDS.isdisjoint(text[-2:]) for text in texts], headings
    columns[8:11] = marks[:, (_DIGIT, _UPPER, _SYMBOL)].T / chars
    columns[11] = ["©" in text for text in texts]
    columns[12:14] = np.minimum(2, piece_counts / words), np.minimum(1, words * (1 - density) / 60)
    columns[[_TAG_COLUMNS.get(tag, _LAST_TAG) for tag in tags], np.arange(len(texts))] = 1
    columns[_ZONES] = _ZONE_BITS[:, zones[np.array(elements)]]
    return words


def _counts(texts: Sequence[str], chars: Array) -> Array:
    """Numbers of characters (text, class); *chars* holds the length of each text."""
    joined = "".join(texts)
    if joined.isascii():
        places = _classes()[np.frombuffer(joined.encode(), np.uint8)]
    else:
        codes = np.frombuffer(joined.encode("utf-32-le", "replace"), np.uint32)
        places = np.take(_classes(), codes, mode="clip")
    places = places + np.repeat(np.arange(0, len(texts) * _CLASSES, _CLASSES), chars.astype(np.intp))
    found = np.bincount(places, minlength=_CLASSES * len(texts))
    return found.reshape(-1, _CLASSES).astype(np.float32)


def _place(words: Array, density: Array, columns: Array) -> None:
    """Fill in the ladders, each block's place and share of the page's text, and the page's size and link density."""
    number = len(words)
    text = words * (1 - density)
    total = max(1.0, float(text.sum()))
    until = np.cumsum(text)
    columns[: len(_LADDER)] = words >= _STEPS
    columns = columns[len(_LADDER) :]
    columns[: len(_LINK_LADDER)] = density > _LINK_STEPS
    columns = columns[len(_LINK_LADDER) :]
    columns[:5] = (
        np.arange(number) / number,
        (until - text) / total,
        (total - until) / total,
        text / total,
        text / max(1.0, float(text.max())),
    )
    columns[5] = math.log1p(total) / 10
    columns[6] = float(words @ density) / max(1.0, float(words.sum()))


def shift(columns: Array, offsets: Sequence[int], out: Array) -> None:
    """For each of *offsets*, copy to *out* the columns of the block at that distance from each block.

    Where there is no such block, *out* stays as it is.
    """
    for place, offset in enumerate(offsets):
        moved = out[place * len(columns) : (place + 1) * len(columns)]
        if offset < 0:
            moved[:, -offset:] = columns[:, :offset]
        else:
            moved[:, :-offset] = columns[:, offset:]


def window_sums(rows: Array, widths: Sequence[int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Sums over windows (width, row, column), and the number of columns in each window (width, column).

    The window of a column reaches *width* columns to either side.
    """
    number = rows.shape[1]
    sums = np.zeros((len(rows), number + 1))
    np.cumsum(rows, 1, out=sums[:, 1:])
    places = np.arange(number)
    away = np.array(widths)[:, None]
    low = np.maximum(0, places - away)
    high = np.minimum(number, places + away + 1)
    return (np.take(sums, high, 1) - np.take(sums, low, 1)).swapaxes(0, 1), high - low


@lru_cache(maxsize=1)
def _classes() -> npt.NDArray[np.uint8]:
    """The class of each code point up to U+FFFF; all others count as U+FFFF."""
    kinds = {"Lu": _UPPER, "Lt": _UPPER, "Nd": _DIGIT, "Zs": _SPACE}
    table = np.array([kinds.get(unicodedata.category(chr(code)), _OTHER) for code in range(0x10000)], np.uint8)
    for chars, kind in ((_STOPS, _STOP), (_COMMAS, _COMMA), (_SYMBOLS, _SYMBOL)):
        table[[ord(char) for char in chars]] = kind
    for low, high in ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF)):
        table[low : high + 1] = np.where(table[low : high + 1] == _OTHER, _WIDE, table[low : high + 1])
    return table
