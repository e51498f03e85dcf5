"""Crawls of shards: whether faults lose anything or do it twice, and what shards cost.

    python benchmarks/cluster.py [--quick] [--only faults|costs|crawls] [--faults 150] [--seed 1] [--log FILE]

Faults: campaigns of cluster_faults.py, each drawn from its own seed, until there were so many faults.  --log keeps each
campaign's outcome as a line of JSON; a campaign whose seed stands there is not run again.  Costs: those of a link
between shards and of a reserved start (cluster_costs.py).  Crawls: CPU a page as one process, one shard, two shards
(cluster_crawls.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the helpers of the tests are no package

from benchmarks.cluster_costs import link_costs, slot_costs  # noqa: E402
from benchmarks.cluster_crawls import HOSTS, crawled, ratios  # noqa: E402
from benchmarks.cluster_faults import Outcome, campaign  # noqa: E402
from benchmarks.common import result, table  # noqa: E402

_SUMS = ("requests", "lost", "twice", "imbalance", "ip_violations", "host_violations", "starts", "fetched_again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within some minutes")
    parser.add_argument("--only", choices=("faults", "costs", "crawls"))
    parser.add_argument("--faults", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1, help="of the first campaign")
    parser.add_argument("--hosts", type=int, default=48)
    parser.add_argument("--pages", type=int, default=20, help="of each host")
    parser.add_argument("--log", type=Path, help="outcomes of campaigns, which are not run again")
    options = parser.parse_args()
    values: dict[str, object] = {}
    if options.only in (None, "faults"):
        values |= faults(options)
    if options.only in (None, "costs"):
        values |= costs(options.quick)
    if options.only in (None, "crawls"):
        values |= crawls(options.quick)
    result(**values)


def costs(is_quick: bool) -> dict[str, object]:
    """Of a link and of a start."""
    links = link_costs(4 if is_quick else 10)
    table(("of a link", "figure"), list(links.items()))
    slots = slot_costs()
    table(("starts in a call", "us of the caller", "us of Redis"), [(number, *both) for number, both in slots.items()])
    kept = ("split_us_per_page", "us_per_link", "redis_us_per_link", "bytes_per_link")
    return {**{name: round(links[name], 2) for name in kept}, "slots_us": round(slots[15][0], 2)}


def crawls(is_quick: bool) -> dict[str, object]:
    """CPU a page of whole crawls, on a web whose links are soon known and on one where most are new."""
    rounds, pages = (1, 2_000) if is_quick else (5, 4_000)
    found: dict[str, object] = {}
    for name, per_host in (("", pages // HOSTS), ("_new_links", 100 * pages // HOSTS)):
        seen = ratios(rounds, pages, per_host)
        rows = [(*of_round, "") for of_round in seen.rounds]
        table(("ms a page without shards", "one shard", "two shards", "medians"), [
            *rows, (*seen.start_s, "start and end, CPU s"), (*seen.pages_per_s, "pages/s"),
        ])  # fmt: skip
        found |= {f"one_cpu{name}": round(seen.one_cpu, 3), f"two_cpu{name}": round(seen.two_cpu, 3)}
    rss = [round(one) for one in crawled(pages, 4, pages // HOSTS).rss_mb]
    return {**found, "rss_mb_of_four": rss}


def faults(options: argparse.Namespace) -> dict[str, object]:
    """Campaigns until there were enough faults."""
    wanted = 12 if options.quick else options.faults
    known = _known(options.log)
    outcomes: list[Outcome] = []
    seed = options.seed
    while sum(sum(one.faults.values()) for one in outcomes) < wanted:
        outcome = known.get(seed)
        if outcome is None:
            directory = Path(tempfile.mkdtemp(prefix=f"campaign{seed}-"))
            outcome = campaign(directory, seed, options.hosts, options.pages, 12 if options.quick else 40)
            _keep(options.log, outcome)
            print(f"campaign {seed}: {asdict(outcome)}", flush=True)
        outcomes.append(outcome)
        seed += 1
    kinds = sum((Counter(one.faults) for one in outcomes), Counter[str]())
    table(("fault", "times"), [*sorted(kinds.items()), ("all", kinds.total())])
    sums = {name: sum(getattr(one, name) for one in outcomes) for name in _SUMS}
    wrong = [f"campaign {one.seed}: {line}" for one in outcomes for line in one.wrong]
    print("\n".join(wrong) or "nothing else was wrong")
    return {"faults": kinds.total(), "campaigns": len(outcomes), **sums, "wrong": len(wrong)}


def _known(log: Path | None) -> dict[int, Outcome]:
    if log is None or not log.exists():
        return {}
    found = [Outcome(**json.loads(line)) for line in log.read_text().splitlines()]
    return {one.seed: one for one in found}


def _keep(log: Path | None, outcome: Outcome) -> None:
    if log is not None:
        with log.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main()
