"""From marked pages to the weights of the learned boilerplate model, and a check by host.

Fitted by stochastic gradient descent (Adam: Kingma, Ba 2015) on logistic loss; the same
pages give the same weights.  A block counts by the root of its words, a page by the root
of its blocks', so that neither a menu of hundred items nor one huge page prevails.
The second network learns from guesses about pages whose hosts the first did not see
(Wolpert 1992): on pages that it was fitted to the first is surer than it will ever be.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spiderling.text.boilerplate.context import context
from spiderling.text.boilerplate.features import Array, features
from spiderling.text.boilerplate.model import BlockModel, Network
from spiderling.text.boilerplate.rules import GOOD, classify, length_scale, rules_for
from spiderling.text.html.parser import parse
from spiderling.training.marking import MarkedPage, f1, labels, score, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from spiderling.text.html.blocks import Block
    from spiderling.text.html.zones import Inherited, Tree

UNITS = 32
FOLDS = 5
_INNER_FOLDS = 3
_EPOCHS = 4, 12  # of the first network and of the second, which is harder to lead astray
_NETWORKS = 1, 2  # whose mean is taken
_BATCH = 1024
_RATE = 3e-3
_DECAY = 2e-3
_MIN_SPREAD = 0.05  # added to standard deviations: a feature that hardly varies must not count much
_MIN_WORDS = 20
_FIRST_MOMENT, _SECOND_MOMENT, _TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A marked page as the fit sees it."""

    page: MarkedPage
    blocks: list[Block]
    tree: Tree
    inherited: Inherited
    rows: Array
    truth: Array | None
    """1 for text, 0 for boilerplate; None when only stretches are known."""
    weights: Array

    @property
    def fold(self) -> int:
        """Which part of the check its host belongs to."""
        return _part(self.page.host, FOLDS)

    @property
    def inner_fold(self) -> int:
        """The same when the second network is fitted, independent of `fold`."""
        return _part(f"inner {self.page.host}", _INNER_FOLDS)


def _part(name: str, parts: int) -> int:
    return zlib.crc32(name.encode("utf-8", "replace")) % parts


def samples(pages: Iterable[MarkedPage]) -> list[Sample]:
    """Pages with blocks and some text; the rest cannot teach anything."""
    made = []
    for page in pages:
        parsed = parse(page.html)
        blocks = parsed.blocks
        known = len(words_of(page.text)) >= _MIN_WORDS if page.text is not None else bool(page.wanted)
        if blocks and known:
            made.append(_sample(page, blocks, parsed.tree))
    return made


def fit(chosen: Sequence[Sample]) -> BlockModel:
    """The model of those of *chosen* whose text is known as a whole; requires two hosts with such pages."""
    known = [sample for sample in chosen if sample.truth is not None]
    rows = [sample.rows for sample in known]
    first = _network(known, rows, _EPOCHS[0], _NETWORKS[0])
    guesses = _inner_guesses(known)
    seen = [
        context(one.rows, guesses[place] if place in guesses else first(one.rows), one.blocks, one.tree, one.inherited)
        for place, one in enumerate(known)
    ]
    return BlockModel(first, _network(known, seen, _EPOCHS[1], _NETWORKS[1]))


def _inner_guesses(known: Sequence[Sample]) -> dict[int, Array]:
    """By place, a first network's that saw no page of the host."""
    found: dict[int, Array] = {}
    for fold in range(_INNER_FOLDS):
        rest = [sample for sample in known if sample.inner_fold != fold]
        if rest:
            network = _network(rest, [sample.rows for sample in rest], _EPOCHS[0], _NETWORKS[0])
            found |= {place: network(one.rows) for place, one in enumerate(known) if one.inner_fold == fold}
    return found


def held_out(every: Sequence[Sample]) -> dict[int, Array]:
    """Probabilities of the blocks of each sample (by its place) by a model that saw no page of its host."""
    found: dict[int, Array] = {}
    for fold in range(FOLDS):
        rest = [sample for sample in every if sample.fold != fold]
        if not any(sample.truth is not None for sample in rest):
            continue
        model = fit(rest)
        found |= {
            place: model.of_features(one.rows, one.blocks, one.tree, one.inherited)
            for place, one in enumerate(every)
            if one.fold == fold
        }
    return found


def table(every: Sequence[Sample], choose: Callable[[int, Sample], Sequence[bool]]) -> dict[str, float]:
    """F1 by group of what *choose* takes of each sample, for the samples that it is asked about."""
    scores: dict[str, list[tuple[float, float, float]]] = {}
    stretches = {sample.page.group: sample.page.text is None for sample in every}
    for place, sample in enumerate(every):
        taken = zip(sample.blocks, choose(place, sample), strict=True)
        scores.setdefault(sample.page.group, []).append(score([b.text for b, yes in taken if yes], sample.page))
    return {group: f1(found, stretches[group]) for group, found in sorted(scores.items())}


def by_rules(sample: Sample, preset: str, stoplist: Collection[str]) -> list[bool]:
    """jusText's choice; without stop words for an empty *stoplist*."""
    longest = sorted((block.text for block in sample.blocks), key=len)[-12:]
    rules = rules_for(preset, length_scale("".join(longest)), bool(stoplist))
    return [cls == GOOD for cls in classify(sample.blocks, stoplist, rules)]


def mean(values: Mapping[str, float]) -> float:
    """Over groups, each as important as another."""
    return sum(values.values()) / max(1, len(values))


def _sample(page: MarkedPage, blocks: list[Block], tree: Tree) -> Sample:
    words = [words_of(block.text) for block in blocks]
    weights = np.sqrt(np.array([max(1, len(one)) for one in words], np.float32))
    weights /= np.sqrt(weights.sum())
    truth = None
    if page.text is not None:
        truth = np.array(labels([block.text for block in blocks], page), np.float32)
        known = set(words_of(page.text))
        # of a single word that the text holds, a heading perhaps, nobody knows whether it belongs to it
        weights[[len(one) == 1 and one[0] in known for one in words]] = 0
    inherited = tree.inherited()
    return Sample(page, blocks, tree, inherited, features(blocks, inherited), truth, weights)


def _network(chosen: Sequence[Sample], each: Sequence[Array], epochs: int, number: int) -> Network:
    """Fitted to the truth about *chosen*, seen as the rows *each*; *number* networks side by side are one."""
    rows = np.vstack(each)
    truth = np.concatenate([sample.truth for sample in chosen if sample.truth is not None])
    weights = np.concatenate([sample.weights for sample in chosen])
    mean, spread = rows.mean(0), rows.std(0) + _MIN_SPREAD
    rows = np.ascontiguousarray((rows - mean) / spread)  # the pages' are filled by column, batches are of rows
    every = [_descend(rows, truth, weights / weights.mean(), epochs, seed) for seed in range(number)]
    hidden = np.hstack([parts[0] for parts in every]) / spread[:, None]
    bias = np.concatenate([parts[1] for parts in every]) - mean @ hidden
    output = np.concatenate([parts[2] for parts in every]) / np.float32(number)
    return Network(hidden, bias, output, float(sum(parts[3][0] for parts in every)) / number)


def _descend(rows: Array, truth: Array, weights: Array, epochs: int, seed: int) -> list[Array]:
    """Hidden weights and biases, output weights and bias."""
    random = np.random.default_rng(seed)
    width = rows.shape[1]
    parts: list[Array] = [
        random.normal(0, width**-0.5, (width, UNITS)).astype(np.float32),
        np.zeros(UNITS, np.float32),
        random.normal(0, UNITS**-0.5, UNITS).astype(np.float32),
        np.zeros(1, np.float32),
    ]
    first, second = ([np.zeros_like(part) for part in parts] for _ in range(2))
    batch = min(_BATCH, len(rows))
    steps = epochs * (len(rows) // batch)
    order = np.zeros(0, np.intp)
    for step in range(1, steps + 1):
        if len(order) < batch:
            order = random.permutation(len(rows))
        now, order = order[:batch], order[batch:]
        gradients = _gradients(parts, rows[now], truth[now], weights[now])
        rate = _RATE * (1 - step / steps)
        for part, gradient, one, two in zip(parts, gradients, first, second, strict=True):
            one += (1 - _FIRST_MOMENT) * (gradient - one)
            two += (1 - _SECOND_MOMENT) * (gradient * gradient - two)
            size = np.sqrt(two / (1 - _SECOND_MOMENT**step)) + _TINY
            part -= rate * one / (1 - _FIRST_MOMENT**step) / size
    return parts


def _gradients(parts: Sequence[Array], rows: Array, truth: Array, weights: Array) -> list[Array]:
    """Of the weighted mean logistic loss."""
    hidden, hidden_bias, output, output_bias = parts
    units = np.maximum(0, rows @ hidden + hidden_bias)
    probability = Network(hidden, hidden_bias, output, float(output_bias[0]))(rows)
    wrong = ((probability - truth) * weights / len(rows)).astype(np.float32)
    back = np.outer(wrong, output) * (units > 0)
    return [
        rows.T @ back + _DECAY * hidden,
        back.sum(0),
        units.T @ wrong + _DECAY * output,
        wrong.sum(keepdims=True),
    ]
