"""Fits the learned boilerplate model to marked pages, and checks it on hosts that were held out.

The fit is stochastic gradient descent (Adam: Kingma & Ba 2015) on logistic loss, with dropout
(Srivastava et al. 2014); the same pages give the same weights.  A block weighs by the square root
of its words, a page by a fifth power of the sum of these, and less if its set or its host has many
pages.  So neither a menu of a hundred items nor a huge page, a large set or a large host prevails.
The second network learns from the first one's probabilities for hosts that this has not seen
(Wolpert 1992), because it is too sure about pages to which it was fitted.

Lists are no part of that: what is text there is a teaser elsewhere, and forums lost .015 by them.  They have a second
network of their own, fitted to all pages; another network says which pages take it.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from models.marked_pages import MarkedPage, f1, labels, score, words_of
from spiderling.base.terminal import with_progress
from spiderling.text.boilerplate import model as model_module
from spiderling.text.boilerplate.features import Array, declared_by, features
from spiderling.text.boilerplate.model import BlockModel, NetworkWeights, context, logistic
from spiderling.text.boilerplate.rules import GOOD, classify, length_scale, rules_for
from spiderling.text.html.blocks import Block, Parsed
from spiderling.text.html.parser import parse
from spiderling.text.html.zones import Inherited

Places = npt.NDArray[np.intp]

_DIGITS = 3
"""Significant digits of a weight in a file; chosen."""
UNITS = 48
"""Hidden units of a network; chosen, as are all constants below but for the last three."""
FOLDS = 5
"""Parts that the check divides the hosts into."""
_INNER_FOLDS = 3
"""Parts that `fit` divides the hosts into, for the second network."""
_EPOCHS = (4, 12)
"""Passes over the pages for the first network and for the second, which overfits less."""
_NETWORKS = (1, 2)
"""Fitted networks whose mean is the first network, and the second."""
_DROPPED = (0.15, 0.1)
"""Shares of features and of hidden units that a step leaves out."""
_PAGE_POWER = 0.8
"""The blocks of a page weigh together as the sum of their weights, to the power of one less this."""
_SET_POWER = 0.8
"""A page weighs as the number of pages in its set, to the power of minus this."""
_HOST_POWER = 0.25
"""The same for its host."""
_REPEATED = 0.3
"""Factor of the weight of a block whose text another block of the page holds as well: which one is text is not sure."""
_MAX_BLOCKS = 250
"""Blocks of a page that are fitted to, drawn from all; they weigh as much as all."""
_BATCH = 1024
"""Blocks of one step."""
_RATE = 3e-3
"""Learning rate of the first step; it falls to 0."""
_DECAY = 2e-3
"""Weight decay."""
_KIND_EPOCHS = 200
"""Passes over the pages for the network that tells lists; a page is one row."""
_LIST_BLOCK = 0.35
"""Probability from which a block of a list is text: half of the F1 that is reached there (.7), which gives the highest
F1 (Lipton et al. 2014)."""
_MIN_SPREAD = 0.05
"""Added to a feature's standard deviation, so that one that hardly varies does not weigh much."""
MIN_WORDS = 20
"""Words of text that a page must hold to be used."""
_FIRST_MOMENT = 0.9
"""Decay of the mean of gradients; this and the two below are from Kingma & Ba 2015."""
_SECOND_MOMENT = 0.999
_TINY = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A marked page as the fit uses it."""

    page: MarkedPage
    blocks: list[Block]
    tree: Inherited
    rows: Array
    truth: Array | None
    """1 for a block of text, 0 for boilerplate; None when only stretches of the text are known."""
    weights: Array

    @property
    def fold(self) -> int:
        """The part of the check that its host belongs to."""
        return _part(self.page.host, FOLDS)

    @property
    def inner_fold(self) -> int:
        """The part of `fit` that its host belongs to; independent of `fold`."""
        return _part(f"inner {self.page.host}", _INNER_FOLDS)


def _part(name: str, parts: int) -> int:
    return zlib.crc32(name.encode("utf-8", "replace")) % parts


def samples(pages: Iterable[MarkedPage]) -> list[Sample]:
    """Samples of the pages with blocks and enough text."""
    parsed = ((page, parse(page.html)) for page in pages)
    return [_sample(page, found) for page, found in parsed if found.blocks and _has_text(page)]


def fit(chosen: Sequence[Sample]) -> BlockModel:
    """The model fitted to the *chosen* samples with a whole text; requires such samples of two hosts."""
    whole = [sample for sample in chosen if sample.truth is not None]
    known = [sample for sample in whole if not sample.page.is_list]
    rows = [sample.rows for sample in known]
    first = _network(known, rows, _EPOCHS[0], _NETWORKS[0])
    guesses = _inner_guesses(known)
    seen = [
        context(one.rows, guesses[place] if place in guesses else first(one.rows), one.blocks, one.tree)
        for place, one in enumerate(known)
    ]
    second = _network(known, seen, _EPOCHS[1], _NETWORKS[1])
    lists = [sample for sample in whole if sample.page.is_list]
    if not lists:
        return BlockModel(first, second)
    seen += [context(one.rows, first(one.rows), one.blocks, one.tree) for one in lists]
    return BlockModel(first, second, *_for_lists(known + lists, seen))


def _for_lists(chosen: Sequence[Sample], seen: Sequence[Array]) -> tuple[NetworkWeights, NetworkWeights]:
    """The network that tells lists by the means of what is *seen* of a page, a page as one block; their second one."""
    pages = [
        replace(
            one, blocks=one.blocks[:1], truth=np.array([one.page.is_list], np.float32), weights=np.ones(1, np.float32)
        )
        for one in chosen
    ]
    kind = _network(pages, [one.mean(0, keepdims=True) for one in seen], _KIND_EPOCHS, 1)
    lists = _network(chosen, seen, _EPOCHS[1], 1)
    return kind, replace(lists, output_bias=lists.output_bias + math.log((1 - _LIST_BLOCK) / _LIST_BLOCK))


def _inner_guesses(known: Sequence[Sample]) -> dict[int, Array]:
    """Place of a sample -> probabilities by a first network that has seen no page of its host."""
    found: dict[int, Array] = {}
    for fold in range(_INNER_FOLDS):
        rest = [sample for sample in known if sample.inner_fold != fold]
        if rest:
            network = _network(rest, [sample.rows for sample in rest], _EPOCHS[0], _NETWORKS[0])
            found |= {place: network(one.rows) for place, one in enumerate(known) if one.inner_fold == fold}
    return found


def held_out(every: Sequence[Sample]) -> dict[int, Array]:
    """Place of a sample -> probabilities of its blocks by a model that has seen no page of its host."""
    found: dict[int, Array] = {}
    for fold in range(FOLDS):
        rest = [sample for sample in every if sample.fold != fold]
        if any(sample.truth is not None for sample in rest):
            guess = fit(rest).of_features
            held = {place: one for place, one in enumerate(every) if one.fold == fold}
            found |= {place: guess(one.rows, one.blocks, one.tree) for place, one in held.items()}
    return found


def table(every: Sequence[Sample], choose: Callable[[int, Sample], Sequence[bool]]) -> dict[str, float]:
    """Group -> F1 of the blocks for which *choose*(place, sample) gives True."""
    scores: dict[str, list[tuple[float, float, float]]] = {}
    stretches = {sample.page.group: sample.page.text is None for sample in every}
    for place, sample in enumerate(every):
        taken = zip(sample.blocks, choose(place, sample), strict=True)
        scores.setdefault(sample.page.group, []).append(score([b.text for b, yes in taken if yes], sample.page))
    return {group: f1(found, stretches[group]) for group, found in sorted(scores.items())}


def by_rules(sample: Sample, preset: str, stoplist: Collection[str]) -> list[bool]:
    """Whether each block is good by jusText's rules; without stop words for an empty *stoplist*."""
    longest = sorted((block.text for block in sample.blocks), key=len)[-12:]
    rules = rules_for(preset, length_scale("".join(longest)), bool(stoplist))
    return [cls == GOOD for cls in classify(sample.blocks, stoplist, rules)]


def mean(values: Mapping[str, float]) -> float:
    """The mean over groups, all of equal weight."""
    return sum(values.values()) / max(1, len(values))


def _has_text(page: MarkedPage) -> bool:
    return bool(page.wanted) if page.text is None else len(words_of(page.text)) >= MIN_WORDS


def _sample(page: MarkedPage, parsed: Parsed) -> Sample:
    blocks = parsed.blocks
    words = [words_of(block.text) for block in blocks]
    weights = np.sqrt(np.array([max(1, len(one)) for one in words], np.float32))
    weights /= weights.sum() ** _PAGE_POWER
    truth = None
    if page.text is not None:
        found = labels([block.text for block in blocks], page)
        truth = np.array([one is True for one in found], np.float32)
        weights[[one is None for one in found]] *= _REPEATED
        known = set(words_of(page.text))
        # one word that the text holds may be its heading or boilerplate, so such a block has no weight
        weights[[len(one) == 1 and one[0] in known for one in words]] = 0
    tree = parsed.tree
    return Sample(page, blocks, tree, features(blocks, tree, declared_by(parsed)), truth, weights)


def _network(chosen: Sequence[Sample], each: Sequence[Array], epochs: int, number: int) -> NetworkWeights:
    """The mean of *number* networks fitted to the truth about the samples *chosen*, whose features are *each*."""
    drawn = [_drawn(sample) for sample in chosen]
    rows = np.vstack([one[places] for one, places in zip(each, drawn, strict=True)])
    truth = np.concatenate(
        [one.truth[places] for one, places in zip(chosen, drawn, strict=True) if one.truth is not None]
    )
    weights = np.concatenate(_balanced(chosen, drawn))
    mean = rows.mean(0)
    spread = rows.std(0) + _MIN_SPREAD
    rows = np.ascontiguousarray((rows - mean) / spread)  # in memory by row, because batches are of rows
    every = [_descend(rows, truth, weights / weights.mean(), epochs, seed) for seed in range(number)]
    hidden = np.hstack([parts[0] for parts in every]) / spread[:, None]
    bias = np.concatenate([parts[1] for parts in every]) - mean @ hidden
    output = (np.concatenate([parts[2] for parts in every]) / number).astype(np.float32)
    return NetworkWeights(hidden, bias, output, float(sum(parts[3][0] for parts in every)) / number)


def _drawn(sample: Sample) -> Places:
    """The places of the blocks of *sample* that are fitted to: at most _MAX_BLOCKS of them, always the same."""
    number = len(sample.blocks)
    if number <= _MAX_BLOCKS:
        return np.arange(number)
    return np.sort(np.random.default_rng(number).choice(number, _MAX_BLOCKS, replace=False))


def _balanced(chosen: Sequence[Sample], drawn: Sequence[Places]) -> list[Array]:
    """The weights of the *drawn* blocks of the samples *chosen*, by the sizes of their sets and hosts."""
    sets = Counter(sample.page.group for sample in chosen)
    hosts = Counter(sample.page.host for sample in chosen)
    return [
        one.weights[places]
        * np.float32(
            len(one.blocks) / len(places) * sets[one.page.group] ** -_SET_POWER * hosts[one.page.host] ** -_HOST_POWER
        )
        for one, places in zip(chosen, drawn, strict=True)
    ]


def _descend(rows: Array, truth: Array, weights: Array, epochs: int, seed: int) -> list[Array]:
    """Fit one network: hidden weights, hidden biases, output weights, output bias."""
    random = np.random.default_rng(seed)
    width = rows.shape[1]
    parts: list[Array] = [
        random.normal(0, width**-0.5, (width, UNITS)).astype(np.float32),
        np.zeros(UNITS, np.float32),
        random.normal(0, UNITS**-0.5, UNITS).astype(np.float32),
        np.zeros(1, np.float32),
    ]
    first = [np.zeros_like(part) for part in parts]
    second = [np.zeros_like(part) for part in parts]
    batch = min(_BATCH, len(rows))
    steps = epochs * (len(rows) // batch)
    order = np.zeros(0, np.intp)
    for step in with_progress(range(1, steps + 1), "steps of a network's fit", steps):
        if len(order) < batch:
            order = random.permutation(len(rows))
        now = order[:batch]
        order = order[batch:]
        masks = [_mask(random, (batch, size), share) for size, share in zip((width, UNITS), _DROPPED, strict=True)]
        gradients = _gradients(parts, rows[now] * masks[0], masks[1], truth[now], weights[now])
        rate = _RATE * (1 - step / steps)
        for part, gradient, one, two in zip(parts, gradients, first, second, strict=True):
            one += (1 - _FIRST_MOMENT) * (gradient - one)
            two += (1 - _SECOND_MOMENT) * (gradient * gradient - two)
            size = np.sqrt(two / (1 - _SECOND_MOMENT**step)) + _TINY
            part -= rate * one / (1 - _FIRST_MOMENT**step) / size
    return parts


def _mask(random: np.random.Generator, shape: tuple[int, int], share: float) -> Array:
    """Zeros for the *share* of values that are left out; the others make up for these."""
    kept = random.random(shape, np.float32) >= share
    mask: Array = kept.astype(np.float32) / np.float32(1 - share)
    return mask


def _gradients(parts: Sequence[Array], rows: Array, mask: Array, truth: Array, weights: Array) -> list[Array]:
    """Gradients of the weighted mean logistic loss, by part; *mask* leaves hidden units out."""
    hidden, hidden_bias, output, output_bias = parts
    units = np.maximum(0, rows @ hidden + hidden_bias) * mask
    probability = logistic(units @ output + output_bias)
    wrong = ((probability - truth) * weights / len(rows)).astype(np.float32)
    back = np.outer(wrong, output) * (units > 0) * mask
    return [
        rows.T @ back + _DECAY * hidden,
        back.sum(0),
        units.T @ wrong + _DECAY * output,
        wrong.sum(keepdims=True),
    ]


def written(model: BlockModel) -> str:
    """The weights as JSON, one line for each feature, readable by `BlockModel.from_json`."""
    networks = {name: getattr(model, name) for name in model_module.NETWORKS}
    parts = {"origin": json.dumps(model.origin)} | {
        name: _written(network, model_module.NETWORKS[name]) for name, network in networks.items() if network
    }
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {value}" for name, value in parts.items()) + "\n}\n"


def _written(network: NetworkWeights, names: Sequence[str]) -> str:
    rows = ",\n".join(f"   {json.dumps(name)}: {_listed(row)}" for name, row in zip(names, network.hidden, strict=True))
    return (
        f'{{\n  "hidden": {{\n{rows}\n  }},\n  "hidden_bias": {_listed(network.hidden_bias)},\n'
        f'  "output": {_listed(network.output)},\n  "output_bias": {network.output_bias:.{_DIGITS}g}\n }}'
    )


def _listed(numbers: Array) -> str:
    return "[" + ", ".join(f"{number:.{_DIGITS}g}" for number in numbers.tolist()) + "]"
