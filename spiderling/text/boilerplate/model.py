"""The learned boilerplate model: the probability that a block is running text.

It is four small networks, each with a hidden layer of rectified units and one logistic
output.  The first uses the features of features.py.  Its probabilities (here: *chances*) are summed over the elements
that enclose a block, over the blocks of the same shape (same tags and classes up to the root) and along the page.
These sums tell the article from teasers, whose single blocks look like it; they are among the features of the second
network (`context`).  This is stacked learning (Wolpert 1992); Readability sums its scores over the tree likewise.
A third network tells from the mean of these features whether the page is a list, such as an index of articles or a
shop's category; a fourth takes the place of the second there, because what is text of a list is a teaser elsewhere.

The networks need neither stop words nor a language; docs/text.md compares both.  The bundled weights stand in
``model.json``; SPIDERLING_BOILERPLATE_MODEL may name another file.  ``models/block_model.py`` fits new weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spiderling.base.errors import BadInput
from spiderling.text.boilerplate import features as features_module
from spiderling.text.boilerplate.features import (
    NOTHING_DECLARED,
    OWN,
    PAGE,
    Array,
    Declared,
    Features,
    features,
    shift,
    stretch_sums,
    window_sums,
)
from spiderling.text.html.blocks import Block
from spiderling.text.html.zones import Inherited, Ints

Numbers = npt.NDArray[np.floating[Any]]
Context = Callable[[Array, Array, Sequence[Block], Inherited], Array]

_LEVELS = 5  # number of enclosing elements with sums of their own, from the innermost outwards; chosen
_OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)  # neighbours whose chances are features, as distances in blocks; chosen
_WINDOWS = (3, 10, 30)  # blocks to either side over which chances are averaged; chosen
_NEXT = (3, 10)  # blocks behind, over which chances are averaged; chosen
_MAX_DEPTH = 60  # depth from which on all elements count as equally deep; chosen
_MIN = 1e-3  # least distance of a chance from 0 and 1 in the logit; chosen
_TINY = 1e-9  # added to divisors that may be 0
_BOXES = tuple(f"box {level}" for level in range(_LEVELS))
_GROUPS = [*_BOXES, "same shape", "same shape and tag", "same shape around", "section"]
"""Sets of blocks over which is summed: those inside each enclosing element, those with elements of the same shape (and
tag, and around them), those from a heading up to the next."""
_MEASURES = (
    "log blocks",
    "share of the text",
    "link density",
    "stops a word",
    "log text a block",
    "holds the title",
    "holds the opening",
)
_CHANCES = ("chance a word", "chance a block", "share of the chances")

NAMES = [
    *PAGE,
    *(f"{group}: {measure}" for group in _GROUPS for measure in _MEASURES + _CHANCES),
    "common with the longest",
    "levels below common",
    "levels of the longest below common",
    "depth",
    "chance",
    "logit",
    *(f"{offset:+d}: chance" for offset in _OFFSETS),
    *(f"within {width}: {name}" for width in _WINDOWS for name in _CHANCES[:2]),
    *(f"next {width}: chance a block" for width in _NEXT),
    "chances before",
    "chances after",
    "own share of the chances",
    "page: chance a word",
    "page: highest chance",
    "page: chance a block",
    "page: log chances",
    "highest before",
    "highest after",
]
"""Names of the columns of `context`; the fitted weights depend on them."""
NETWORKS = {"first": features_module.NAMES, "second": NAMES, "kind": NAMES, "lists": NAMES}
"""Fields of `BlockModel` -> names of the features of this network."""

_COLUMN = {name: place for place, name in enumerate(OWN)}
_TAGS = slice(_COLUMN["tag none"], _COLUMN["tag div"] + 1)
_TITLE = PAGE.index("is the title")
_OPENING = PAGE.index("is the opening")
_GROUPED = len(PAGE)
_NEAR = NAMES.index("common with the longest")
_CHANCE = NAMES.index("chance")
_PARTS = np.cumsum((2, len(_OFFSETS), 2 * len(_WINDOWS), len(_NEXT)))
"""Where the parts of the columns from _CHANCE on begin: of the block, neighbours, both sides, behind, the page."""


def context(rows: Array, chances: Array, blocks: Sequence[Block], tree: Inherited) -> Array:
    """The features (block, NAMES); *rows*: those of `features`, *chances*: the first network's probabilities.

    Summed over groups of blocks are: ones, which count them; words, those outside links, stops; chances, shares of the
    page's words, the products of both; and marks of the title and of the opening (features.py): the posts of a forum
    have its shape, comments below an article have not.
    """
    words = np.expm1(5 * rows[:, _COLUMN["log words"]])
    text = words * (1 - rows[:, _COLUMN["link density"]])
    stops = words * rows[:, _COLUMN["stops a word"]]
    shares = words / max(_TINY, float(words.sum()))
    both = chances * shares
    ones = np.ones_like(words)
    mass = np.array((ones, words, text, stops, chances, shares, both, rows[:, _TITLE], rows[:, _OPENING]))
    inside = np.array([block.element for block in blocks], np.intp)
    columns = np.empty((len(NAMES), len(blocks)), np.float32)
    columns[:_GROUPED] = rows[:, :_GROUPED].T
    _measure(_groups(mass, inside, tree, rows), float(text.sum()), float(both.sum()), columns[_GROUPED:_NEAR])
    _nearness(inside, inside[text.argmax()], tree, columns[_NEAR:_CHANCE])
    _chances(chances, shares, float(words.sum()), columns[_CHANCE:])
    seen: Array = columns.T
    return seen


def _groups(mass: Numbers, inside: Ints, tree: Inherited, rows: Array) -> Numbers:
    """Sums of *mass* (measure, group, block) over the _GROUPS of each block; *inside*: its innermost element."""
    around = np.empty((_LEVELS, len(inside)), np.intp)
    around[0] = inside
    for level in range(1, _LEVELS):
        around[level] = tree.parents[around[level - 1]]
    order = np.argsort(inside, kind="stable")
    known = inside[order]
    # elements are numbered by their start tags, so those of a subtree have consecutive numbers
    first, last = np.searchsorted(known, (around, tree.ends[around]))
    found = np.empty((len(mass), len(_GROUPS), len(order)), np.float32)
    found[:, :_LEVELS] = stretch_sums(mass[:, order], first, last)
    found[:, -1] = _sections(mass, rows[:, _COLUMN["heading"]] > 0)
    outside = tree.shapes[tree.parents[inside]]
    order = np.argsort(outside, kind="stable")
    known = outside[order]
    first = np.searchsorted(known, outside)
    last = np.searchsorted(known, outside, "right")
    found[:, -2] = stretch_sums(mass[:, order], first, last)
    tags = rows[:, _TAGS].argmax(1) + 1
    alike = tree.shapes[inside] * 16 + tags
    order = np.argsort(alike, kind="stable")
    known = alike[order]
    shapes = alike & ~np.intp(15)
    first, last = np.searchsorted(known, ((shapes, alike), (shapes + 16, alike + 1)))
    found[:, _LEVELS : _LEVELS + 2] = stretch_sums(mass[:, order], first, last)
    return found


def _sections(mass: Numbers, headings: npt.NDArray[np.bool_]) -> Numbers:
    """Sums over the blocks from a heading up to the next."""
    begins = headings.copy()
    begins[1:] &= ~headings[:-1]  # headings in a row begin one section
    begins[0] = True
    places = np.flatnonzero(begins)
    return np.repeat(np.add.reduceat(mass, places, axis=1), np.diff(places, append=len(headings)), axis=1)


def _measure(groups: Numbers, of_page: float, chances: float, out: Array) -> None:
    """Fill in _MEASURES and _CHANCES of each group of blocks; the page has *of_page* words of text."""
    measures = out.reshape(len(_GROUPS), len(_MEASURES + _CHANCES), -1).swapaxes(0, 1)
    blocks, words, text, stops, chance, share, both, title, opening = groups
    words = np.maximum(1, words)
    measures[:] = (
        np.log1p(blocks) / 5,
        text / max(1.0, of_page),
        1 - text / words,
        np.minimum(1, stops / words),
        np.log1p(text / blocks) / 5,
        title,
        opening,
        both / (share + _TINY),
        chance / blocks,
        both / (chances + _TINY),
    )


def _nearness(inside: Ints, longest: int, tree: Inherited, out: Array) -> None:
    """Fill in how far the ways from the root to each block and to *longest*, the longest block's element, agree."""
    # an element's descendants follow it
    above = np.flatnonzero(longest < tree.ends[: longest + 1])[:_MAX_DEPTH, None]
    depth = np.minimum(tree.depths[inside], _MAX_DEPTH)
    common = np.count_nonzero((above <= inside) & (inside < tree.ends[above]), axis=0)
    out[:] = common / depth, (depth - common) / 8, (len(above) - common) / 8, depth / 20


def _chances(chance: Numbers, share: Numbers, words: float, out: Array) -> None:
    """Fill in the chances of the block, its neighbours and the page."""
    own, neighbours, around, behind, page = np.split(out, _PARTS)
    both = chance * share
    number = len(chance)
    clipped = np.minimum(np.maximum(chance, _MIN), 1 - _MIN)
    own[0] = chance
    own[1] = np.log(clipped / (1 - clipped)) / 5
    neighbours[:] = 0
    shift(chance[None], _OFFSETS, neighbours)
    windows, sizes = window_sums(np.array((both, share, chance)), _WINDOWS)
    around[::2] = windows[:, 0] / (windows[:, 1] + _TINY)
    around[1::2] = windows[:, 2] / sizes
    sums = np.concatenate(([0.0], np.cumsum(chance, dtype=np.float64)))
    for row, reach in zip(behind, _NEXT, strict=True):
        last = np.minimum(number, np.arange(1, number + 1) + reach)
        row[:] = (sums[last] - sums[1:]) / reach
    total = float(both.sum()) + _TINY
    high = float(both.max()) + _TINY
    until = np.cumsum(both)
    page[:3] = (until - both) / total, 1 - until / total, both / total
    of_page = (total, chance.max(), chance.mean(), math.log1p(total * words) / 10)
    page[3:7] = np.array(of_page)[:, None]
    highest_before, highest_after = page[7:]
    highest_before[0] = highest_after[-1] = 0
    highest_before[1:] = np.maximum.accumulate(both[:-1]) / high
    highest_after[:-1] = np.maximum.accumulate(both[:0:-1])[::-1] / high


_MAX_SCORE = 30.0  # largest absolute score, so that exp does not overflow; chosen
THRESHOLD = 0.5  # probability from which a block is text; chosen: as likely as not
_LIST = 0.2  # probability from which a page is a list; chosen: the types of running pages keep their F1
_MIN_WEIGHT = 1e-20
"""Smaller absolute weights are read as zero.  They are lost in any sum of 32-bit numbers, but products below 1e-38 take
some processors a hundred times as long; chosen with room for features of 1e-18."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkWeights:
    """Weights of one network."""

    hidden: Array  # (feature, unit)
    hidden_bias: Array
    output: Array  # (unit)
    output_bias: float

    def __call__(self, rows: Array) -> Array:
        """The probability for each row of features."""
        units = np.maximum(0, rows @ self.hidden + self.hidden_bias)
        return logistic(units @ self.output + np.float32(self.output_bias))

    @classmethod
    def from_values(cls, values: dict[str, Any], names: Sequence[str]) -> NetworkWeights:
        """Read a network of the file; raises ValueError when its *values* do not fit the features *names*."""
        hidden = np.array([values["hidden"].pop(name) for name in names], np.float32)
        hidden[np.abs(hidden) < _MIN_WEIGHT] = 0
        bias, output = (np.array(values[name], np.float32) for name in ("hidden_bias", "output"))
        network = cls(hidden, bias, output, float(values["output_bias"]))
        shapes = {hidden.shape[1:], bias.shape, output.shape}
        is_finite = all(np.isfinite(part).all() for part in (hidden, bias, output, network.output_bias))
        if values["hidden"] or len(shapes) != 1 or bias.ndim != 1 or not is_finite:
            raise ValueError("features or numbers of units do not match")
        return network


@dataclass(frozen=True, slots=True, eq=False)
class BlockModel:
    """The networks; can be pickled."""

    first: NetworkWeights
    second: NetworkWeights
    kind: NetworkWeights | None = None  # the probability that a page is a list, from means over its blocks
    lists: NetworkWeights | None = None  # the second network of lists
    origin: Mapping[str, Any] = field(default_factory=dict)  # number of pages fitted to, and F1 on others

    def probabilities(
        self,
        blocks: Sequence[Block],
        tree: Inherited,
        declared: Declared = NOTHING_DECLARED,
        features: Features = features,
        context: Context = context,
    ) -> list[float]:
        """The probability that each block of a page is running text; *tree* and *declared* are the page's."""
        if not blocks:
            return []
        rows = features(blocks, tree, declared)
        found: list[float] = self.of_features(rows, blocks, tree, context).tolist()
        return found

    def of_features(self, rows: Array, blocks: Sequence[Block], tree: Inherited, context: Context = context) -> Array:
        """The probability of each of *blocks*, whose features are *rows*."""
        seen = context(rows, self.first(rows), blocks, tree)
        if self.kind is not None and self.lists is not None and self.kind(seen.mean(0, keepdims=True))[0] >= _LIST:
            return self.lists(seen)
        return self.second(seen)

    @classmethod
    def from_json(cls, text: str | bytes) -> BlockModel:
        """Read weights (models/boilerplate_fit.py); raises ValueError when they do not fit these features."""
        try:
            values = json.loads(text)
            of = {name: NetworkWeights.from_values(values[name], NETWORKS[name]) for name in NETWORKS if name in values}
            return cls(**of, origin=values.get("origin", {}))
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None


def logistic(scores: Array) -> Array:
    """The probability for each score."""
    probability: Array = (1 / (1 + np.exp(-np.clip(scores, -_MAX_SCORE, _MAX_SCORE)))).astype(np.float32, copy=False)
    return probability


def load(path: str) -> BlockModel:
    """The model in the file *path*; the bundled one for an empty path.  Raises BadInput."""
    if not path:
        return bundled()
    try:
        return BlockModel.from_json(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"SPIDERLING_BOILERPLATE_MODEL: {path} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise BadInput(
            f"SPIDERLING_BOILERPLATE_MODEL: {path} holds no weights for this version's features; "
            "make some, in a checkout, with: python -m models.block_model PAGES.jsonl --out FILE."
        ) from None


@lru_cache(maxsize=1)
def bundled() -> BlockModel:
    """The model that comes with the package; its card is in docs/text.md."""
    return BlockModel.from_json(files("spiderling.text.boilerplate").joinpath("model.json").read_bytes())
