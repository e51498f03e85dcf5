"""Whole crawls in virtual time with faults by a seed: kills, power cuts, bad disks, clocks, people, networks, liars.

    python -m benchmarks.simulated_faults [--seeds N] [--from SEED] [--only SEED ...] [--jobs N] [--planted] [--every]

Scrapy's engine and all of the product run in this process, against a generated web and on a recorded disk
(tests/simulated/); with seeds from 1,000,000 on, two shards over a Redis in memory, and from 2,000,000 on a crawl of
archives, of which some are still copied.  Of each million, seeds from 600,000 on draw from all there is, those before
from what there was when some of them found a fault: from 500,000 on all but bugs of our own (tests/simulated/bugs.py),
from 400,000 on nor opt-outs and orders of a person, from 300,000 on nor limits that are small.  A seed that fails
is told, made small and told again; ``--only SEED`` repeats it alone.
``--every`` fails each call on the disk of a small crawl, one after the other, with each error.  ``--planted`` brings
mended faults back, one by one, and asks whether the seeds find them.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.common import result, table
from tests.simulated.history import Told, every, parts, play, shrunk
from tests.simulated.plans import ERRORS
from tests.simulated.planted import PLANTED, planted

_SEEDED = {"PYTHONHASHSEED": "0"}  # so that a seed gives the same history in each process
_SEEDS_OF_PLANTED = 60  # seeds within which a planted fault is to be found; chosen
_LEAST_CALLS = 20  # on the disk in a part of the life of a crawl; chosen: a start without anything to do has 25
_KINDS = ("hung", "lost", "duplicated", "impolite")


def main() -> None:
    options = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "benchmarks.simulated_faults", *sys.argv[1:]]
        sys.exit(subprocess.run(command, env={**os.environ, **_SEEDED}, check=False).returncode)
    logging.getLogger().addHandler(logging.NullHandler())
    if options.planted:
        _look_for_planted(options.jobs)
        return
    seeds = options.only or range(options.first, options.first + options.seeds)
    if options.every:
        histories, rows = _every(options.first, options.part)
        table(("part", "calls", "histories"), rows)
    else:
        histories = [(seed, None) for seed in seeds]
    wrong: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    cpu_s: list[float] = []
    documents = 0
    failed: list[Told] = []
    for told in _played(histories, options.jobs):
        cpu_s.append(told.cpu_s)
        documents += told.documents
        endings.update(ending.kind for ending in told.endings)
        if told.wrong:
            wrong[told.kind] += 1
            failed.append(told)
            print(f"seed {told.seed}: {told.wrong[0]}", flush=True)
            if options.until_wrong:
                break
    if not options.until_wrong:
        for told in failed:  # with the pool gone, since a history has the clock of all threads of this process
            _tell_least(shrunk(told))
    table(("sessions that", "number"), [*endings.items()])
    result(
        seeds=len(cpu_s),
        **{kind: wrong[kind] for kind in _KINDS},
        otherwise_wrong=wrong.total() - sum(wrong[kind] for kind in _KINDS),
        documents=documents,
        median_cpu_s=round(statistics.median(cpu_s), 3),
    )
    sys.exit(1 if wrong else 0)


def _every(seed: int, names: Collection[str]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """All histories in which one call of the parts of these *names* fails, or of all; each part with its numbers."""
    histories: list[tuple[Any, ...]] = []
    rows: list[tuple[Any, ...]] = []
    for part in parts(seed):
        if names and part.name not in names:
            continue
        found = list(every(seed, part))
        calls = len(found) // (2 + len(ERRORS))
        if calls < _LEAST_CALLS:
            raise RuntimeError(f"the part {part.name} has {calls} calls only: its plan no longer leads through it")
        rows.append((part.name, calls, len(found)))
        histories += found
    return histories, rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--seeds", type=int, default=100, metavar="N", help="histories (default 100)")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="SEED", help="the first seed (default 0)")
    parser.add_argument("--only", type=int, nargs="+", metavar="SEED", help="these seeds alone")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--planted", action="store_true", help="whether mended faults would be found")
    parser.add_argument("--every", action="store_true", help="fail every call of a small crawl")
    parser.add_argument("--part", nargs="+", default=(), metavar="NAME", help="with --every: these parts alone")
    parser.add_argument("--until-wrong", action="store_true", help="end at the first failure, without making it small")
    options = parser.parse_args()
    options.seeds = 25 if options.quick else options.seeds
    return options


def _played(histories: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[Told]:
    if jobs == 1:
        yield from (play(*history) for history in histories)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(_play, histories, chunksize=4)


def _play(history: tuple[Any, ...]) -> Told:
    logging.getLogger().addHandler(logging.NullHandler())
    return play(*history)


def _tell_least(told: Told) -> None:
    print(f"the least of seed {told.seed} that does it: {told.wrong[0]}")
    for plan, ending in zip(told.plans, told.endings, strict=False):
        print(f"  {ending.kind}: {plan} {'; '.join(ending.met[:2])}", flush=True)


def _look_for_planted(jobs: int) -> None:
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found: dict[str, str] = {}
        for name, line in zip(PLANTED, pool.map(_first_of, PLANTED), strict=True):
            found[name] = line
            print(f"{name}: {line or 'not found'}", flush=True)
    table(("planted", "found by"), [*found.items()])
    result(planted=len(PLANTED), found_of_planted=sum(bool(line) for line in found.values()))
    sys.exit(0 if all(found.values()) else 1)


def _first_of(name: str) -> str:
    """What the first history that meets the planted fault says; '' if none does."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = planted(name, Path(scratch))
        return _until_wrong(tree, f"--seeds={_SEEDS_OF_PLANTED}") or _until_wrong(tree, "--every")


def _until_wrong(tree: Path, histories: str) -> str:
    command = [sys.executable, "-m", "benchmarks.simulated_faults", "--until-wrong", histories]
    environment = {**os.environ, **_SEEDED}
    ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if "RESULT " not in ended.stdout:
        raise RuntimeError(ended.stderr)
    return next((line[:120] for line in ended.stdout.splitlines() if line.startswith("seed ")), "")


if __name__ == "__main__":
    main()
