"""Policies side by side on the same changing webs: shares of the words that were published, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from simulator.recrawl.changing import ChangingWeb
from simulator.recrawl.drawing import make_web
from simulator.recrawl.oracle import Greedy, Squared
from simulator.recrawl.ours import Ours
from simulator.recrawl.revisits import WARM_DAYS, MakePolicy, recrawl
from simulator.recrawl.rivals import FeedsAndHubs, Proportional, Uniform

POLICIES: dict[str, MakePolicy] = {
    "uniform": Uniform,
    "proportional": Proportional,
    "feeds-and-hubs": FeedsAndHubs,
    "spiderling": Ours,
    "oracle-greedy": Greedy,
    "oracle": Squared,
}
BUDGETS = (0.02, 0.05)
"""Requests a day / live URLs, at which policies are compared."""

HEAD = ("web", "policy", "budget", "words", "in a week", "useless", "requests")


class Figures(NamedTuple):
    """What a policy gave on a web, from WARM_DAYS on."""

    words: float
    """Share of the new words that were published, which a daily recrawl of everything gets."""
    in_week: float
    """Share of them that it got within a week."""
    useless: float
    """Share of the requests that gave neither new words nor a new link."""
    requests: float
    """Requests / those of one revisit a day at each live URL."""


class Row(NamedTuple):
    """One line of a comparison."""

    web: str
    policy: str
    budget: float
    figures: Figures


def measure(web: ChangingWeb, make_policy: MakePolicy, budget: float) -> Figures:
    """*budget*: requests a day / live URLs."""
    result = recrawl(web, make_policy, budget)
    words = web.published(WARM_DAYS)
    daily = sum(web.live(day) for day in range(WARM_DAYS, web.days))
    useless = result.useless / max(1, result.requests)
    return Figures(result.words / words, result.words_in_week / words, useless, result.requests / daily)


def mean(figures: Iterable[Figures]) -> Figures:
    return Figures(*map(fmean, zip(*figures, strict=True)))


def compare(names: Sequence[str], seeds: Sequence[int], budgets: Sequence[float]) -> Iterator[Row]:
    """Each policy on the webs *names*: means over the *seeds*, as soon as they are known."""
    for name in names:
        webs = [make_web(name, seed) for seed in seeds]
        for budget in budgets:
            for policy, make_policy in POLICIES.items():
                yield Row(name, policy, budget, mean(measure(web, make_policy, budget) for web in webs))


def cells(row: Row) -> tuple[str, ...]:
    """A line of the table under HEAD."""
    words, in_week, useless, requests = row.figures
    return row.web, row.policy, f"{row.budget:g}", f"{words:.2f}", f"{in_week:.2f}", f"{useless:.2f}", f"{requests:.3f}"
