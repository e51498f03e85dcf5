"""The learned boilerplate model: the probability that a block is running text.

It is two small networks, each with a hidden layer of rectified units and one logistic
output.  The first uses the features of features.py; the second those of context.py, among
them the first one's probabilities (docs/text.md compares both).  They need neither stop
words nor a language.  The bundled weights stand in ``model.json``; SPIDERLING_BOILERPLATE_MODEL
may name another file.  ``models/block_model.py`` fits new weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from spiderling.base.errors import BadInput
from spiderling.text.boilerplate import context as context_module
from spiderling.text.boilerplate import features as features_module
from spiderling.text.boilerplate.context import Context, context
from spiderling.text.boilerplate.features import NOTHING_DECLARED, Array, Declared, Features, features
from spiderling.text.html.blocks import Block
from spiderling.text.html.zones import Inherited

_DIGITS = 3
"""Significant digits of a weight in a file; chosen."""
_MAX_SCORE = 30.0
"""Largest absolute score, so that exp does not overflow; chosen."""
_LEAST_WEIGHT = 1e-20
"""Smaller absolute weights are read as zero.  They are lost in any sum of 32-bit numbers, but products below 1e-38 take
some processors a hundred times as long; chosen with room for features of 1e-18."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Weights of one network."""

    hidden: Array
    """(feature, unit)"""
    hidden_bias: Array
    output: Array
    """(unit)"""
    output_bias: float

    def __call__(self, rows: Array) -> Array:
        """The probability for each row of features."""
        units = np.maximum(0, rows @ self.hidden + self.hidden_bias)
        return logistic(units @ self.output + np.float32(self.output_bias))

    def to_json(self, names: Sequence[str]) -> str:
        """The weights as JSON, one line for each feature."""
        rows = ",\n".join(
            f"   {json.dumps(name)}: {_listed(row)}" for name, row in zip(names, self.hidden, strict=True)
        )
        return (
            f'{{\n  "hidden": {{\n{rows}\n  }},\n  "hidden_bias": {_listed(self.hidden_bias)},\n'
            f'  "output": {_listed(self.output)},\n  "output_bias": {self.output_bias:.{_DIGITS}g}\n }}'
        )

    @classmethod
    def from_values(cls, values: dict[str, Any], names: Sequence[str]) -> Network:
        """Read the values of `to_json`; raises ValueError when they do not fit the features *names*."""
        hidden = np.array([values["hidden"].pop(name) for name in names], np.float32)
        hidden[np.abs(hidden) < _LEAST_WEIGHT] = 0
        bias, output = (np.array(values[name], np.float32) for name in ("hidden_bias", "output"))
        network = cls(hidden, bias, output, float(values["output_bias"]))
        shapes = {hidden.shape[1:], bias.shape, output.shape}
        is_finite = all(np.isfinite(part).all() for part in (hidden, bias, output, network.output_bias))
        if values["hidden"] or len(shapes) != 1 or bias.ndim != 1 or not is_finite:
            raise ValueError("features or numbers of units do not match")
        return network


@dataclass(frozen=True, slots=True, eq=False)
class BlockModel:
    """Both networks; can be pickled."""

    first: Network
    second: Network
    origin: Mapping[str, Any] = field(default_factory=dict)
    """The number of pages it was fitted to, and its F1 on other pages."""

    def probabilities(
        self,
        blocks: Sequence[Block],
        tree: Inherited,
        declared: Declared = NOTHING_DECLARED,
        features: Features = features,
        context: Context = context,
    ) -> list[float]:
        """The probability that each block of a page is running text; *tree* and *declared* are the page's.

        *features* and *context* may be the compiled ones (text/steps.py).
        """
        if not blocks:
            return []
        rows = features(blocks, tree, declared)
        found: list[float] = self.of_features(rows, blocks, tree, context).tolist()
        return found

    def of_features(self, rows: Array, blocks: Sequence[Block], tree: Inherited, context: Context = context) -> Array:
        """The probability of each of *blocks*, whose features are *rows*."""
        return self.second(context(rows, self.first(rows), blocks, tree))

    def to_json(self) -> str:
        """The weights, readable by `from_json`."""
        parts = {
            "origin": json.dumps(self.origin),
            "first": self.first.to_json(features_module.NAMES),
            "second": self.second.to_json(context_module.NAMES),
        }
        return "{\n" + ",\n".join(f" {json.dumps(name)}: {value}" for name, value in parts.items()) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> BlockModel:
        """Read what `to_json` wrote; raises ValueError when *text* holds no weights for these features."""
        try:
            values = json.loads(text)
            first = Network.from_values(values["first"], features_module.NAMES)
            second = Network.from_values(values["second"], context_module.NAMES)
            return cls(first, second, values.get("origin", {}))
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


def _listed(numbers: Array) -> str:
    return "[" + ", ".join(f"{number:.{_DIGITS}g}" for number in numbers.tolist()) + "]"
