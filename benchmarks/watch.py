"""What looking again gives on six webs that change, for a few requests a day (simulator/watching/).

    python benchmarks/watch.py [--quick]

Words are shares of those that were published, which a daily recrawl of everything gets; budgets are requests a day /
live URLs.  Nothing was chosen by the seeds 101 to 105; --quick takes one of them and two webs.

RESULT by web, and their mean: share_02, share_05 (words at budgets of .02 and .05), within7_02, within7_05 (those that
were fetched within a week), of_oracle_02 (words / those of the better oracle, seed by seed), useless_02 (requests that
gave neither words nor links), us_per_look (processor time of the policy at .05, which weighs all URLs four times a
day), rivals (their share_02, share_05), and what a stop leaves out of a budget of .10: words, and requests / those of a
daily recrawl.  Under "frontier", of a real frontier with its store on disk (watched_frontier.py): bytes_memory,
bytes_disk and bytes_disk_noted a watched page, us_look beside us_take (processor time of a look and of a first
request), and the part of a look that judges and plans, us_sweep.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import arguments, result, table
from benchmarks.watched_frontier import costs
from simulator.pages import Array
from simulator.watching.changing import ChangingWeb
from simulator.watching.comparison import Figures, mean, measure
from simulator.watching.drawing import make_web
from simulator.watching.looking import Look
from simulator.watching.oracle import Greedy, Squared
from simulator.watching.ours import Ours
from simulator.watching.rivals import FeedsAndHubs, Proportional, Uniform
from simulator.watching.webs import PLANS

SEEDS = (101, 102, 103, 104, 105)
STOP_BUDGET = 0.1
STOPS = {"stop_95": 300.0, "stop_80": 5000.0}
"""Least words times days of a look; chosen on the seed 0."""
RIVALS = {"uniform": Uniform, "proportional": Proportional, "feeds_hubs": FeedsAndHubs}


class Timed(Ours):
    """Measures the processor time of its decisions."""

    seconds = 0.0
    looks = 0

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        return self._timed(lambda: super(Timed, self).worth(urls, waits, now))

    def learn(self, look: Look) -> None:
        Timed.looks += 1
        self._timed(lambda: super(Timed, self).learn(look))

    def _timed(self, work: Callable[[], Any]) -> Any:
        begun = time.process_time()
        done = work()
        Timed.seconds += time.process_time() - begun
        return done


def figures_of(name: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """The keys of one web."""
    webs = [make_web(name, seed) for seed in seeds]
    few = [measure(web, Ours, 0.02) for web in webs]
    Timed.seconds, Timed.looks = 0.0, 0
    more = [measure(web, Timed, 0.05) for web in webs]
    oracles = [max(measure(web, oracle, 0.02).words for oracle in (Greedy, Squared)) for web in webs]
    low, high = mean(few), mean(more)
    rivals = {key: {budget: _words(webs, policy, budget) for budget in (0.02, 0.05)} for key, policy in RIVALS.items()}
    stops = {key: _stopped(webs, least) for key, least in STOPS.items()}
    return {
        "share_02": round(low.words, 3),
        "share_05": round(high.words, 3),
        "within7_02": round(low.in_week, 3),
        "within7_05": round(high.in_week, 3),
        "of_oracle_02": round(fmean(one.words for one in few) / fmean(oracles), 3),
        "useless_02": round(low.useless, 3),
        "us_per_look": round(1e6 * Timed.seconds / Timed.looks, 1),
        **{f"{key}_{int(100 * budget):02}": value for key, by in rivals.items() for budget, value in by.items()},
        **{f"{key}_words": round(found.words, 3) for key, found in stops.items()},
        **{f"{key}_requests": round(found.requests, 4) for key, found in stops.items()},
    }


def _words(webs: list[ChangingWeb], policy: Callable[[ChangingWeb], Any], budget: float) -> float:
    return round(mean(measure(web, policy, budget) for web in webs).words, 3)


def _stopped(webs: list[ChangingWeb], least_word_days: float) -> Figures:
    return mean(measure(web, lambda web: Ours(web, least_word_days), STOP_BUDGET) for web in webs)


def main() -> None:
    options = arguments(__doc__)
    names, seeds = (("docs", "gov"), SEEDS[:1]) if options.quick else (tuple(PLANS), SEEDS)
    frontier = {key: round(value, 1) for key, value in costs(5_000 if options.quick else 20_000)._asdict().items()}
    table(["a real frontier", ""], [[key, str(value)] for key, value in frontier.items()])
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        found[name] = figures_of(name, seeds)
        print(name, found[name], flush=True)
    found["mean"] = {key: round(fmean(of[key] for of in found.values()), 4) for key in found[names[0]]}
    table(["", *found], [[key, *(str(of[key]) for of in found.values())] for key in found["mean"]])
    result(seeds=list(seeds), frontier=frontier, **found)


if __name__ == "__main__":
    main()
