"""What the second learned model sees of a block: its look, where in the page's tree it stands, and what the first
model makes of its surroundings.

The first model (features.py) judges blocks by themselves and their neighbours.  Its
guesses, summed over the elements that enclose a block, over the blocks of the same
shape (same tags and classes up to the root) and along the page, tell the article from
the teasers around it, which look alike one by one.  Stacked learning after Wolpert
(1992); the summing over the tree is what Readability does with its hand-made scores.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spiderling.text.features import OWN, PAGE, Array, shifted, window_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from spiderling.text.html import Block
    from spiderling.text.zones import Inherited, Tree

    Ints = npt.NDArray[np.intp]
    Numbers = npt.NDArray[np.floating[Any]]

_LEVELS = 5
_OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)
_WINDOWS = (3, 10, 30)
_MAX_DEPTH = 60
_LEAST = 1e-3
_TINY = 1e-9
_GROUPS = [*(f"box {level}" for level in range(_LEVELS)), "same shape", "same shape and tag"]
_MEASURES = ("log blocks", "share of the text", "link density", "stops a word", "log text a block")
_CHANCES = ("chance a word", "chance a block", "share of the chances")

NAMES = [
    *PAGE,
    *(f"{group}: {measure}" for group in _GROUPS for measure in _MEASURES + _CHANCES),
    "common with the longest", "levels below common", "levels of the longest below common", "depth",
    "chance", "logit",
    *(f"{offset:+d}: chance" for offset in _OFFSETS),
    *(f"within {width}: {name}" for width in _WINDOWS for name in _CHANCES[:2]),
    "chances before", "chances after", "own share of the chances", "page: chance a word", "page: highest chance",
    "page: chance a block", "page: log chances", "highest before", "highest after",
]  # fmt: skip
"""Names of the columns of `context`; they belong to the fitted weights."""

_COLUMN = {name: place for place, name in enumerate(OWN)}


class _Mass(NamedTuple):
    """What is summed over groups of blocks, by block."""

    words: Numbers
    text: Numbers
    """Words outside links."""
    stops: Numbers
    chance: Numbers
    """Of the block."""
    share: Numbers
    """Of the page's words."""

    def table(self) -> Numbers:
        """One row a measure, the blocks themselves first."""
        ones = np.ones_like(self.words)
        return np.stack((ones, self.words, self.text, self.stops, self.chance, self.share, self.chance * self.share))


class _Arrays(NamedTuple):
    inside: Ints
    """The innermost element of each block."""
    parents: Ints
    ends: Ints
    depths: Ints
    shapes: Ints

    @classmethod
    def of(cls, blocks: Sequence[Block], tree: Tree, inherited: Inherited) -> _Arrays:
        inside = [block.element for block in blocks]
        parts = (inside, tree.parents, inherited.ends, inherited.depths, inherited.shapes)
        return cls(*(np.array(part, np.intp) for part in parts))


def context(rows: Array, chances: Array, blocks: Sequence[Block], tree: Tree, inherited: Inherited) -> Array:
    """One row a block, one column for each of NAMES.

    *rows* are those of `features`, *chances* the first model's, *inherited* is the tree's.
    """
    words = np.expm1(5 * rows[:, _COLUMN["log words"]])
    text = words * (1 - rows[:, _COLUMN["link density"]])
    stops = words * rows[:, _COLUMN["stops a word"]]
    mass = _Mass(words, text, stops, chances, words / max(_TINY, float(words.sum())))
    arrays = _Arrays.of(blocks, tree, inherited)
    columns = np.empty((len(NAMES), len(blocks)), np.float32)
    columns[: len(PAGE)] = rows[:, : len(PAGE)].T
    place = len(PAGE)
    parts = (
        _groups(mass.table(), arrays, rows),
        _nearness(tree.path(blocks[int(text.argmax())].element), arrays),
        _chances(mass),
    )
    for part in chain(*parts):
        columns[place : place + len(part)] = part
        place += len(part)
    seen: Array = columns.T
    return seen


def _groups(mass: Numbers, tree: _Arrays, rows: Array) -> Iterator[Numbers]:
    """Measures of the elements around each block, the innermost first, and of the blocks that look like it."""
    total = mass.sum(1)
    order = np.argsort(tree.inside, kind="stable")
    known, sums = tree.inside[order], np.zeros((len(mass), len(order) + 1))
    np.cumsum(mass[:, order], 1, out=sums[:, 1:])
    around = tree.inside
    for _ in range(_LEVELS):
        # a subtree is a stretch of elements in the order of their opening
        first, last = np.searchsorted(known, around), np.searchsorted(known, tree.ends[around])
        yield _measures(sums[:, last] - sums[:, first], total)
        around = tree.parents[around]
    shapes = tree.shapes[tree.inside]
    tags = rows[:, _COLUMN["tag none"] : _COLUMN["tag div"] + 1] @ np.arange(1, 6, dtype=np.float32)
    for keys in (shapes, shapes * 8 + tags.astype(np.intp)):
        _, group = np.unique(keys, return_inverse=True)
        found: Numbers = np.stack([np.bincount(group, part) for part in mass])
        yield _measures(found[:, group], total)


def _measures(group: Numbers, total: Numbers) -> Numbers:
    """By row of _MEASURES and _CHANCES."""
    blocks, words, text, stops, chance, share, both = group.astype(np.float32)
    measures = np.empty((len(_MEASURES + _CHANCES), len(blocks)), np.float32)
    measures[0] = np.log(1 + blocks) / 5
    measures[1] = text / max(1.0, float(total[2]))
    words = np.maximum(1, words)
    measures[2] = 1 - text / words
    measures[3] = np.minimum(1, stops / words)
    measures[4] = np.log(1 + text / blocks) / 5
    measures[5] = both / (share + _TINY)
    measures[6] = chance / blocks
    measures[7] = both / (float(total[6]) + _TINY)
    return measures


def _nearness(longest: Sequence[int], tree: _Arrays) -> Iterator[Numbers]:
    """How much of the way from the root a block has in common with *longest*, the longest one's."""
    above = np.array(longest[:_MAX_DEPTH], np.intp)
    depth = np.minimum(tree.depths[tree.inside], _MAX_DEPTH).astype(np.float32)
    inside = tree.inside[:, None]
    common = ((above <= inside) & (inside < tree.ends[above])).sum(1, dtype=np.float32)
    yield (common / depth)[None]
    yield (depth - common)[None] / 8
    yield (len(above) - common)[None] / 8
    yield depth[None] / 20


def _chances(mass: _Mass) -> Iterator[Numbers]:
    """The guesses for the block, its neighbours and the page."""
    chance, share = mass.chance, mass.share
    both = chance * share
    clipped = np.clip(chance, _LEAST, 1 - _LEAST)
    yield chance[None]
    yield (np.log(clipped / (1 - clipped)) / 5)[None]
    yield from (moved.T for moved in shifted(chance[:, None], _OFFSETS))
    for sums, number in window_sums(np.stack([both, share, chance]), _WINDOWS):
        yield (sums[0] / (sums[1] + _TINY))[None]
        yield (sums[2] / number)[None]
    total, high = both.sum() + _TINY, both.max() + _TINY
    before = np.cumsum(both) - both
    yield (before / total)[None]
    yield (1 - (before + both) / total)[None]
    yield (both / total)[None]
    for value in (total, chance.max(), chance.mean(), np.log1p(total * mass.words.sum()) / 10):
        yield np.full((1, len(chance)), value)
    yield _highest_before(both)[None] / high
    yield _highest_before(both[::-1])[::-1][None] / high


def _highest_before(values: Numbers) -> Numbers:
    highest: Numbers = np.maximum.accumulate(np.concatenate([[0.0], values[:-1]]))
    return highest
