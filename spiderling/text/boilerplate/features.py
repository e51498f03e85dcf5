"""The features of a block for the first network of the boilerplate model: its text, its place, its neighbours.

None depends on the language: lengths, links, punctuation, capitals, digits, tags,
names of the enclosing elements (html/zones.py).  One table look-up classifies the
characters of all blocks, so a page takes well under a millisecond.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.html.blocks import Block, Parsed
from spiderling.text.html.zones import KINDS, Inherited, Ints

Array = npt.NDArray[np.float32]

_CLASSES = 9
_OTHER, _UPPER, _DIGIT, _STOP, _COMMA, _SPACE, _WIDE, _SYMBOL, _CODE = range(_CLASSES)
_STOPS = ".!?…。！？।॥؟۔።܀։"
_COMMAS = ",;:،؛、，；：፣፤"
_SYMBOLS = "©®|•·»«›‹→←↑↓▶►■★☆"
_CODES = "/\\_=+#*<>[]{}~^@$&`"  # characters of code and of addresses
_WIDE_WORD = 0.5  # words for a character of an unspaced script; chosen: an ideograph is more, a Thai letter a fifth
_TAGS = ("", "p", "li", "td", "h1", "h2", "h3", "pre", "dd", "div")
"""Tags with a feature of their own; any other counts as the last."""
_ENDS = frozenset(_STOPS)
_DOTS = ("...", "…", "»", "›", ">", "→")  # ends of a text that goes on elsewhere
DIVIDERS = re.compile(r" [-|–—·:»«/] ")  # stand between the title of a page and the name of its site
_DECLARED_CHARS = 60  # characters of a title or description that are looked for; chosen
_TYPES = re.compile(r'"@type"\s*:\s*\[?\s*"(\w+)')
SAID = {
    "article": ("article", "blogposting"),
    "talk": ("forum", "qapage", "question", "discussion", "comment"),
    "goods": ("product", "offer"),
    "list": ("itemlist", "collection"),
    "site": ("website", "webpage"),
}
"""Kind of page -> parts of types by which a page says that it is one; chosen."""
_MAX_LINKS = 0.3  # link density from which a block does not open a text; chosen
_MIN_DECLARED = 8  # characters of a text below which it is not looked for; chosen
_LADDER = (3, 6, 12, 25, 50, 100)  # numbers of words; for each a feature says whether the block has as many; chosen
_LINK_LADDER = (0.05, 0.3, 0.7)  # shares of characters inside links, each a feature: has the block more?  Chosen
_OFFSETS = (-3, -2, -1, 1, 2, 3)  # neighbours whose own features a block has too, as distances in blocks; chosen
_WINDOWS = (3, 10, 30)  # blocks to either side over which features are averaged; chosen

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
    "code",
    "ends in a colon",
    "ends in dots",
    "begins small",
    "repeated",
    *(f"tag {tag or 'none'}" for tag in _TAGS),
    *(f"in {kind}" for kind in KINDS),
]
"""Names of a block's own features, in their order."""
_COLUMN = {name: place for place, name in enumerate(OWN)}
_BROAD = [_COLUMN[name] for name in ("log words", "link density", "stops a word", "ends in a stop", "text words")]
_LINK_DENSITY = _COLUMN["link density"]
_ENDINGS = [_COLUMN[name] for name in ("ends in a stop", "ends in a colon", "ends in dots")]
_BITS = np.arange(len(_ENDINGS))[:, None]
_H1 = _COLUMN["tag h1"]
_NEAR = _COLUMN["tag none"]  # own features that a block's neighbours show: without tags and zones, mostly shared
_MARKED = slice(_COLUMN["code"], len(OWN))  # own features whose means over the page are features too
_ZONES = slice(len(OWN) - len(KINDS), len(OWN))
_PLACES = np.arange(len(KINDS))[:, None]
_ALIKE = {"th": "td", "dt": "dd", "h4": "h3", "h5": "h3", "h6": "h3"}
TAG_COLUMNS = {tag: _COLUMN[f"tag {_ALIKE.get(tag, tag) or 'none'}"] for tag in (*_TAGS, *_ALIKE)}
LAST_TAG = _COLUMN[f"tag {_TAGS[-1]}"]
_LADDERS = np.cumsum((len(_LADDER), len(_LINK_LADDER)))
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
    "in the title",
    "in the description",
    "is the title",
    "behind the title",
    "log blocks behind the title",
    "h1 before",
    *(f"page says {kind}" for kind in SAID),
    "is the opening",
    *(f"in {kind}, unlike the opening" for kind in KINDS),
    *(f"page: {name}" for name in OWN[_MARKED]),
]
"""Names of the features of a block and of its page, without its neighbours."""
NAMES = [
    *PAGE,
    *(f"{offset:+d}: {name}" for offset in _OFFSETS for name in OWN[:_NEAR]),
    *(f"within {width}: {OWN[column]}" for width in _WINDOWS for column in _BROAD),
]
"""Names of the columns of `features`; the fitted weights depend on them."""
_MEANS = len(PAGE) - len(OWN[_MARKED])
_DECLARED, _BEHIND, _OPENING = map(PAGE.index, ("in the title", "behind the title", "is the opening"))
_LONG = PAGE.index("25 or more words")
_SURROUNDINGS = len(PAGE) + len(_OFFSETS) * _NEAR


class Declared(NamedTuple):
    """What a page says of itself."""

    title: str = ""
    description: str = ""
    types: str = ""  # its og:type and the types in its JSON-LD


NOTHING_DECLARED = Declared()
Features = Callable[[Sequence[Block], Inherited, Declared], Array]


def declared_by(page: Parsed) -> Declared:
    """What *page* says of itself."""
    types = " ".join((page.meta.get("og:type", ""), *_TYPES.findall(page.data)))
    return Declared(page.title, page.meta.get("description", ""), types.lower())


def features(blocks: Sequence[Block], inherited: Inherited, declared: Declared = NOTHING_DECLARED) -> Array:
    """The features (block, NAMES), most between 0 and 1, of one block or more; *inherited* is the page's tree."""
    columns = np.zeros((len(NAMES), len(blocks)), np.float32)
    own = columns[: len(OWN)]
    words = _own(blocks, inherited.zones, own)
    _place(words, own[_LINK_DENSITY], columns[len(OWN) : _DECLARED])
    _fill_declared(blocks, declared, own[_H1], columns[_DECLARED:_OPENING])
    opening = opening_of(columns)
    columns[_OPENING, opening] = 1
    columns[_OPENING + 1 : _MEANS] = own[_ZONES] * (1 - own[_ZONES, opening][:, None])
    columns[_MEANS : len(PAGE)] = own[_MARKED].mean(1, keepdims=True)
    shift(own[:_NEAR], _OFFSETS, columns[len(PAGE) : _SURROUNDINGS])
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
    known = Counter(texts)
    found = {
        "log words": np.log1p(words) / 5,
        "log characters": np.log1p(chars) / 7,
        "link density": density,
        "no links": link_chars == 0,
        "stops a word": np.minimum(1, 4 * marks[:, _STOP] / words),
        "commas a word": np.minimum(1, 4 * marks[:, _COMMA] / words),
        "heading": headings,
        "digits": marks[:, _DIGIT] / chars,
        "capitals": marks[:, _UPPER] / chars,
        "symbols": marks[:, _SYMBOL] / chars,
        "copyright": ["©" in text for text in texts],
        "pieces a word": np.minimum(2, piece_counts / words),
        "text words": np.minimum(1, words * (1 - density) / 60),
        "code": marks[:, _CODE] / chars,
        "begins small": [text[0].islower() for text in texts],
        "repeated": [known[text] > 1 for text in texts],
    }
    for name, values in found.items():
        columns[_COLUMN[name]] = values
    columns[_ENDINGS] = [_ending(text[-3:]) for text in texts] >> _BITS & 1
    columns[[TAG_COLUMNS.get(tag, LAST_TAG) for tag in tags], np.arange(len(texts))] = 1
    columns[_ZONES] = zones[np.array(elements)] >> _PLACES & 1
    return words


def _fill_declared(blocks: Sequence[Block], declared: Declared, firsts: Array, columns: Array) -> None:
    """Fill in what the page says of itself, and the place of its title; *firsts* marks the h1."""
    in_title, in_description, is_title, behind, distance, firsts_before = columns[:6]
    title, description, types = declared
    name = max(DIVIDERS.split(title), key=len)[:_DECLARED_CHARS]
    begin = description[:_DECLARED_CHARS]
    texts = [block.text if len(block.text) >= _MIN_DECLARED else "" for block in blocks]
    if len(name) >= _MIN_DECLARED:
        in_title[:] = [text != "" and (name in text or text in title) for text in texts]
    if len(begin) >= _MIN_DECLARED:
        in_description[:] = [text != "" and (begin in text or text[:_DECLARED_CHARS] in description) for text in texts]
    headings = np.array([block.heading for block in blocks])
    for marks in (in_title * headings, firsts, in_title):
        if marks.any():
            place = int(marks.argmax())
            is_title[place] = 1
            behind[place:] = 1
            distance[place:] = np.log1p(np.arange(len(blocks) - place)) / 5
            break
    firsts_before[:] = np.minimum(1, (np.cumsum(firsts) - firsts) / 4)
    columns[6:] = np.array([any(name in types for name in names) for names in SAID.values()])[:, None]


def opening_of(columns: Array) -> int:
    """The place of the first long block, behind the title if there is one: where the text of most pages begins."""
    long = columns[_LONG] * (columns[_LINK_DENSITY] < _MAX_LINKS)
    behind = long * columns[_BEHIND]
    return int((behind if behind.any() else long).argmax())


@lru_cache(maxsize=4096)
def _ending(end: str) -> int:
    """What the last characters of a text are, as bits in the order of _ENDINGS."""
    return (not _ENDS.isdisjoint(end[-2:])) | (end[-1] == ":") << 1 | end.endswith(_DOTS) << 2


def _counts(texts: Sequence[str], chars: Array) -> Array:
    """Numbers of characters (text, class); *chars* holds the length of each text."""
    joined = "".join(texts)
    if joined.isascii():
        places = classes()[np.frombuffer(joined.encode(), np.uint8)]
    else:
        codes = np.frombuffer(joined.encode("utf-32-le", "replace"), np.uint32)
        places = np.take(classes(), codes, mode="clip")
    places = places + np.repeat(np.arange(0, len(texts) * _CLASSES, _CLASSES), chars.astype(np.intp))
    found = np.bincount(places, minlength=_CLASSES * len(texts))
    return found.reshape(-1, _CLASSES).astype(np.float32)


def _place(words: Array, density: Array, columns: Array) -> None:
    """Fill in the ladders, each block's place and share of the page's text, and the page's size and link density."""
    ladder, link_ladder, others = np.split(columns, _LADDERS)
    place, before, after, share, of_longest, page_text, page_links = others
    number = len(words)
    text = words * (1 - density)
    total = max(1.0, float(text.sum()))
    until = np.cumsum(text)
    ladder[:] = words >= _STEPS
    link_ladder[:] = density > _LINK_STEPS
    place[:] = np.arange(number) / number
    before[:] = (until - text) / total
    after[:] = (total - until) / total
    share[:] = text / total
    of_longest[:] = text / max(1.0, float(text.max()))
    page_text[:] = math.log1p(total) / 10
    page_links[:] = float(words @ density) / max(1.0, float(words.sum()))


def shift(columns: Array, offsets: Sequence[int], out: Array) -> None:
    """For each of *offsets*, copy to *out* the columns of the block at that distance, if there is one."""
    for place, offset in enumerate(offsets):
        moved = out[place * len(columns) : (place + 1) * len(columns)]
        if offset < 0:
            moved[:, -offset:] = columns[:, :offset]
        else:
            moved[:, :-offset] = columns[:, offset:]


def window_sums(rows: Array, widths: Sequence[int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Sums over *widths* columns to either side (width, row, column), and their number (width, column)."""
    number = rows.shape[1]
    places = np.arange(number)
    away = np.array(widths)[:, None]
    low = np.maximum(0, places - away)
    high = np.minimum(number, places + away + 1)
    return stretch_sums(rows, low, high).swapaxes(0, 1), high - low


def stretch_sums(rows: npt.NDArray[np.floating[Any]], first: Ints, last: Ints) -> npt.NDArray[np.float64]:
    """Sums over the columns from *first* up to, not including, *last*: (row, their shape)."""
    sums = np.zeros((len(rows), rows.shape[1] + 1))
    np.cumsum(rows, 1, out=sums[:, 1:])
    found: npt.NDArray[np.float64] = np.take(sums, last, 1) - np.take(sums, first, 1)
    return found


@lru_cache(maxsize=1)
def classes() -> npt.NDArray[np.uint8]:
    """The class of each code point up to U+FFFF; all others count as U+FFFF."""
    categories = np.array(list(map(unicodedata.category, map(chr, range(0x10000)))))
    table = np.full(len(categories), _OTHER, np.uint8)
    for category, kind in {"Lu": _UPPER, "Lt": _UPPER, "Nd": _DIGIT, "Zs": _SPACE}.items():
        table[categories == category] = kind
    for chars, kind in ((_STOPS, _STOP), (_COMMAS, _COMMA), (_SYMBOLS, _SYMBOL), (_CODES, _CODE)):
        table[[ord(char) for char in chars]] = kind
    for low, high in ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF)):
        table[low : high + 1] = np.where(table[low : high + 1] == _OTHER, _WIDE, table[low : high + 1])
    return table
