"""What the learned boilerplate model sees of a block: its look, its place, its neighbours.

Nothing depends on the language: lengths, links, punctuation, capitals, digits, tags,
names of the enclosing elements (zones.py).  The characters of all blocks are
classified by one table look-up, so that a page costs well under a millisecond.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spiderling.text.zones import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spiderling.text.html import Block
    from spiderling.text.zones import Inherited

Array = npt.NDArray[np.float32]

_CLASSES = 8
_OTHER, _UPPER, _DIGIT, _STOP, _COMMA, _SPACE, _WIDE, _SYMBOL = range(_CLASSES)
_STOPS = ".!?…。！？।॥؟۔።܀։"
_COMMAS = ",;:،؛、，；：፣፤"
_SYMBOLS = "©®|•·»«›‹→←↑↓▶►■★☆/\\_=+#*<>[]{}~^@"
# one ideograph is more than half a word, a Thai letter a fifth of one: in between
_WIDE_WORD = 0.5
_TAGS = ("", "p", "li", "td", "div")  # all others count as the last
_TAG_PLACES = {tag: place for place, tag in enumerate(_TAGS)} | {"th": 3}
_TAG_ROWS = np.eye(len(_TAGS), dtype=np.float32)
_ENDS = frozenset(_STOPS)
_LADDER = (3, 6, 12, 25, 50, 100)
_LINK_LADDER = (0.05, 0.3, 0.7)
_OFFSETS = (-3, -2, -1, 1, 2, 3)
_WINDOWS = (3, 10, 30)

OWN = [
    "log words", "log characters", "link density", "no links", "stops a word", "commas a word", "ends in a stop",
    "heading", "digits", "capitals", "symbols", "copyright", "pieces a word", "text words",
    *(f"tag {tag or 'none'}" for tag in _TAGS),
    *(f"in {kind}" for kind in KINDS),
]  # fmt: skip
"""Names of a block's own features, in their order; neighbours repeat them."""
_BROAD = [OWN.index(name) for name in ("log words", "link density", "stops a word", "ends in a stop", "text words")]
_LINK_DENSITY = OWN.index("link density")
_ZONES = slice(len(OWN) - len(KINDS), len(OWN))
PAGE = [
    *OWN,
    *(f"{step} or more words" for step in _LADDER),
    *(f"link density over {step}" for step in _LINK_LADDER),
    "place", "text before", "text after", "share of the text", "share of the longest", "log text of the page",
    "link density of the page",
    *(f"page: {kind}" for kind in KINDS),
]  # fmt: skip
"""Names of the features of a block by itself and in its page."""
NAMES = [
    *PAGE,
    *(f"{offset:+d}: {name}" for offset in _OFFSETS for name in OWN),
    *(f"within {width}: {OWN[column]}" for width in _WINDOWS for column in _BROAD),
]  # fmt: skip
"""Names of the columns of `features`; they belong to the fitted weights."""


def features(blocks: Sequence[Block], inherited: Inherited) -> Array:
    """One row a block, one column for each of NAMES, most of them between 0 and 1.  Requires a block.

    *inherited* is that of the page's tree.
    """
    own, words = _own(blocks, inherited.zones)
    density = own[:, _LINK_DENSITY]
    rows = np.empty((len(own), len(NAMES)), np.float32)
    place = 0
    parts = (
        own,
        words[:, None] >= np.array(_LADDER, np.float32),
        density[:, None] > np.array(_LINK_LADDER, np.float32),
        _place(words, density),
        np.broadcast_to(own[:, _ZONES].mean(0), (len(own), len(KINDS))),
    )
    for part in chain(parts, shifted(own, _OFFSETS), _surroundings(own[:, _BROAD])):
        rows[:, place : place + part.shape[1]] = part
        place += part.shape[1]
    return rows


def _own(blocks: Sequence[Block], zones: Sequence[int]) -> tuple[Array, Array]:
    """The features of each block by itself, and its words."""
    texts, headings, link_counts, tags, piece_counts, elements = zip(*blocks, strict=True)
    chars = np.fromiter(map(len, texts), np.float32, len(texts))
    link_chars, heading, pieces = (np.array(part, np.float32) for part in (link_counts, headings, piece_counts))
    zone = np.array(zones, np.int64)[list(elements)]
    counts = _counts(texts, chars)
    words = counts[:, _SPACE] + 1 + _WIDE_WORD * counts[:, _WIDE]
    density = np.minimum(1, link_chars / chars)
    columns = (
        np.log1p(words) / 5,
        np.log1p(chars) / 7,
        density,
        link_chars == 0,
        np.minimum(1, 4 * counts[:, _STOP] / words),
        np.minimum(1, 4 * counts[:, _COMMA] / words),
        [text[-1] in _ENDS or text[-2:-1] in _ENDS for text in texts],
        heading,
        counts[:, _DIGIT] / chars,
        counts[:, _UPPER] / chars,
        counts[:, _SYMBOL] / chars,
        ["©" in text for text in texts],
        np.minimum(2, pieces / words),
        np.minimum(1, words * (1 - density) / 60),
    )
    own = np.empty((len(texts), len(OWN)), np.float32)
    for place, column in enumerate(columns):
        own[:, place] = column
    own[:, len(columns) : len(columns) + len(_TAGS)] = _TAG_ROWS[[_TAG_PLACES.get(tag, -1) for tag in tags]]
    own[:, _ZONES] = (zone[:, None] >> np.arange(len(KINDS))) & 1
    return own, words


def _counts(texts: Sequence[str], chars: Array) -> Array:
    """Characters of each class in each text."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "replace"), np.uint32)
    classes = _classes()[np.minimum(codes, 0xFFFF)]
    places = np.repeat(np.arange(len(texts)) * _CLASSES, chars.astype(np.intp))
    found = np.bincount(places + classes, minlength=_CLASSES * len(texts))
    return found.reshape(-1, _CLASSES).astype(np.float32)


def _place(words: Array, density: Array) -> Array:
    """Where in the page a block stands and how much of its text it is."""
    number = len(words)
    text = words * (1 - density)
    total = max(1.0, float(text.sum()))
    before = np.cumsum(text) - text
    columns = np.empty((number, 7), np.float32)
    columns[:, 0] = np.arange(number) / number
    columns[:, 1] = before / total
    columns[:, 2] = (total - before - text) / total
    columns[:, 3] = text / total
    columns[:, 4] = text / max(1.0, float(text.max()))
    columns[:, 5] = np.log1p(total) / 10
    columns[:, 6] = (words * density).sum() / max(1.0, float(words.sum()))
    return columns


def shifted(rows: Array, offsets: Sequence[int]) -> Iterator[Array]:
    """For each of *offsets*, the rows of the blocks so many places after each; zero beyond the page's ends."""
    most = max(map(abs, offsets))
    padded = np.zeros((len(rows) + 2 * most, rows.shape[1]), np.float32)
    padded[most : most + len(rows)] = rows
    for offset in offsets:
        yield padded[most + offset : most + offset + len(rows)]


def window_sums(rows: Array, widths: Sequence[int]) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]]:
    """For each of *widths*, sums of each row over the blocks at most so many places away, and how many these are."""
    number = rows.shape[1]
    sums = np.zeros((len(rows), number + 1))
    np.cumsum(rows, 1, out=sums[:, 1:])
    places = np.arange(number)
    for width in widths:
        low, high = np.maximum(0, places - width), np.minimum(number, places + width + 1)
        yield sums[:, high] - sums[:, low], high - low


def _surroundings(columns: Array) -> Iterator[Array]:
    """Means over windows around each block."""
    for sums, number in window_sums(np.ascontiguousarray(columns.T), _WINDOWS):
        yield (sums / number).T


@lru_cache(maxsize=1)
def _classes() -> npt.NDArray[np.uint8]:
    """Class of each code point of the basic plane; the rest counts as the last one."""
    kinds = {"Lu": _UPPER, "Lt": _UPPER, "Nd": _DIGIT, "Zs": _SPACE}
    table = np.array([kinds.get(unicodedata.category(chr(code)), _OTHER) for code in range(0x10000)], np.uint8)
    for chars, kind in ((_STOPS, _STOP), (_COMMAS, _COMMA), (_SYMBOLS, _SYMBOL)):
        table[[ord(char) for char in chars]] = kind
    for low, high in ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF)):
        table[low : high + 1] = np.where(table[low : high + 1] == _OTHER, _WIDE, table[low : high + 1])
    return table
