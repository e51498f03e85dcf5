"""The weights of the estimators, which the crawl learns.

The model is a logistic regression of a page's yield (kept / downloaded bytes) on what the estimators said of its link.
It is fitted while the crawl goes on, one step of AdaGrad (Duchi et al. 2011) a page, and drawn towards the weights
that it began with.  What the estimators said is remembered for a sample of the links that wait.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from spiderling.frontier.ranking.estimators import HIGHEST_WEIGHT

_SAMPLE = 20_000
"""Links for which it is remembered what the estimators said (chosen)."""
_RATE = 0.3
"""Learning rate of AdaGrad (chosen)."""
_PULL = 0.0005
"""Strength of the pull towards the first weights (chosen)."""
_HIGHEST_ODDS = 30.0
"""Log-odds above which the probability does not differ from 1 by more than 1e-13."""


class Weights:
    """One weight for each estimator and the bias."""

    def __init__(self, names: Sequence[str], first: Sequence[float]) -> None:
        """*first*: the weights to begin with, in log-odds, in the order of *names*; the bias last."""
        self._names = [*names, "bias"]
        self._first = list(first)
        self.values = list(first)
        """The weights at this moment, in the same order."""
        self._gradients = [1e-3] * len(self.values)
        self.steps = 0
        self.errors = [0.0, 0.0]
        """Sums of squared errors of the model, and of the crawl's mean, over all steps."""
        self._sample: dict[int, bytes] = {}
        self.every = 1
        """Only links whose URL's hash is divisible by this are in the sample."""

    def remember(self, key: int, said: list[float]) -> None:
        """Remember what was *said* of the link with the hash *key*; the sample is halved whenever it is full."""
        if len(self._sample) >= _SAMPLE:
            self.every *= 2
            self._sample = {key: said for key, said in self._sample.items() if not key % self.every}
        self._sample[key] = array("d", said).tobytes()

    def learn(self, key: int, body_bytes: int, kept_bytes: int, usual: float) -> None:
        """The page with the hash *key* gave *kept_bytes*; *usual*: the yield rate of the whole crawl."""
        said = self._sample.pop(key, None)
        if said is not None and body_bytes:
            self._step([*array("d", said), 1.0], min(1.0, kept_bytes / body_bytes), usual)

    def _step(self, values: list[float], given: float, usual: float) -> None:
        weights = self.values
        odds = math.fsum(map(mul, weights, values))
        error = 1.0 / (1.0 + math.exp(-max(-_HIGHEST_ODDS, min(_HIGHEST_ODDS, odds)))) - given
        self.steps += 1
        self.errors[0] += error * error
        self.errors[1] += (usual - given) ** 2
        for at, value in enumerate(values):
            gradient = error * value + _PULL * (weights[at] - self._first[at])
            self._gradients[at] += gradient * gradient
            moved = weights[at] - _RATE * gradient / math.sqrt(self._gradients[at])
            weights[at] = max(-HIGHEST_WEIGHT, min(HIGHEST_WEIGHT, moved))

    def state(self) -> str:
        """What was learnt, as JSON."""
        return json.dumps(
            {
                "weights": dict(zip(self._names, self.values, strict=True)),
                "gradients": self._gradients,
                "steps": self.steps,
                "errors": self.errors,
                "first": self._first,
            }
        )

    def restore(self, state: str) -> None:
        """Restore what ``state`` returned.

        If the weights began otherwise then, or the state is damaged, they are learnt anew.
        """
        saved = learnt_of(state)
        if saved is not None and list(saved.weights) == self._names and saved.first == self._first:
            self.values = list(saved.weights.values())
            self._gradients = saved.gradients
            self.steps = saved.steps
            self.errors = saved.errors


class Learnt(NamedTuple):
    """What a crawl keeps of its Weights."""

    weights: dict[str, float]
    gradients: list[float]
    steps: int
    errors: list[float]
    first: list[float]
    """Weights to begin with."""


def learnt_of(state: str) -> Learnt | None:
    """What ``Weights.state`` returned; None for anything that it cannot have returned."""
    try:
        saved = json.loads(state)
        weights = {str(name): float(weight) for name, weight in saved["weights"].items()}
        gradients, errors, first = (
            [float(value) for value in saved[name]] for name in ("gradients", "errors", "first")
        )
        learnt = Learnt(weights, gradients, int(saved["steps"]), errors, first)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    fits = len(gradients) == len(weights) and len(errors) == 2 and learnt.steps >= 0
    bounded = all(abs(weight) <= HIGHEST_WEIGHT for weight in weights.values()) and all(g > 0 for g in gradients)
    return learnt if fits and bounded and all(0 <= value < math.inf for value in gradients + errors) else None
