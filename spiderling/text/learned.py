"""The learned boilerplate model: how likely a block is running text.

A small network on the block features of features.py: one hidden layer of rectified
units, then logistic regression (which it beats by 1.5 points of F1, docs/text.md).
It needs neither stop words nor a language.  The bundled weights stand in
``boilerplate.json``; they and files named by SPIDERLING_BOILERPLATE_MODEL are the only
things that ``text/`` reads.  ``scrapy train boilerplate`` fits new ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spiderling.errors import BadInput
from spiderling.text.features import NAMES, Array, features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spiderling.text.html import Block

DIGITS = 3
_STEEPEST = 30.0  # exp does not overflow


@dataclass(frozen=True, slots=True, eq=False)
class BlockModel:
    """Weights; a value that can be pickled."""

    hidden: Array
    """(feature, unit)"""
    hidden_bias: Array
    output: Array
    """(unit)"""
    output_bias: float
    origin: Mapping[str, Any] = field(default_factory=dict)
    """On how many pages it was fitted and what it achieved on others."""

    def probabilities(self, blocks: Sequence[Block]) -> list[float]:
        """How likely each block of a page is running text, 0 .. 1."""
        return self.of_features(features(blocks)).tolist() if blocks else []

    def of_features(self, rows: Array) -> Array:
        """The same for rows of `features`."""
        units = np.maximum(0, rows @ self.hidden + self.hidden_bias)
        score = np.clip(units @ self.output + self.output_bias, -_STEEPEST, _STEEPEST)
        probability: Array = 1 / (1 + np.exp(-score))
        return probability

    def to_json(self) -> str:
        """The weights by feature, readable by `from_json`; one line a feature."""
        rows = ",\n".join(f"  {json.dumps(name)}: {_listed(row)}" for name, row in zip(NAMES, self.hidden, strict=True))
        parts = {
            "origin": json.dumps(self.origin),
            "hidden": f"{{\n{rows}\n }}",
            "hidden_bias": _listed(self.hidden_bias),
            "output": _listed(self.output),
            "output_bias": f"{self.output_bias:.{DIGITS}g}",
        }
        return "{\n" + ",\n".join(f" {json.dumps(name)}: {value}" for name, value in parts.items()) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> BlockModel:
        """Raises ValueError when *text* holds no weights for these features."""
        try:
            values = json.loads(text)
            hidden = np.array([values["hidden"].pop(name) for name in NAMES], np.float32)
            bias, output = (np.array(values[name], np.float32) for name in ("hidden_bias", "output"))
            model = cls(hidden, bias, output, float(values["output_bias"]), values.get("origin", {}))
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        shapes = {hidden.shape[1:], bias.shape, output.shape}
        if values["hidden"] or len(shapes) != 1 or bias.ndim != 1 or not model._is_finite():
            raise ValueError("features or numbers of units do not match")
        return model

    def _is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in (self.hidden, self.hidden_bias, self.output, self.output_bias))


def load(path: str) -> BlockModel:
    """The model in the file *path*, the bundled one for an empty path; raises BadInput."""
    if not path:
        return bundled()
    try:
        return BlockModel.from_json(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"SPIDERLING_BOILERPLATE_MODEL: {path} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise BadInput(
            f"SPIDERLING_BOILERPLATE_MODEL: {path} holds no weights for this version's features; "
            "make some with: scrapy train boilerplate PAGES."
        ) from None


@lru_cache(maxsize=1)
def bundled() -> BlockModel:
    """The model that comes with the package; its card is in docs/text.md."""
    return BlockModel.from_json(files("spiderling.text").joinpath("boilerplate.json").read_bytes())


def _listed(numbers: Array) -> str:
    return "[" + ", ".join(f"{number:.{DIGITS}g}" for number in numbers.tolist()) + "]"
