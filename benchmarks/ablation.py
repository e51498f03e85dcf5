"""What each mechanism of the default strategy gains: switched off in turn, and all of them together.

    python benchmarks/ablation.py [--quick] [--data DIR] [--pages N] [--seeds N] [--webs ...] [--off idle,make-room,...]
        [--jobs N] [--results DIR]

Webs are those of strategies.py, and two on which mechanisms for many hosts are at work: `many-hosts` (three pages a
host, the first fifth of 3 * --pages) and `one-address` (names of one service, the first half of --pages).  Words/MB is
the geometric mean of what is reached of 25, 50, 75 and 90 % of the words, else that at the end; each crawl without the
mechanism is divided by the crawl of the same web and seed with it.  A mechanism gains on a web if the mean is more than
two standard errors below 1, and it can be judged only where it decided anything: its decisions are counted.

The switches are patches of this script, so that the crawl has no options for them.  A mechanism that the code does not
have any more is left out.
"""

from __future__ import annotations
import __future__

import argparse
import inspect
import math
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import simulated
from benchmarks.common import result, table
from benchmarks.simulated import Crawls, Job, Result
from benchmarks.targets import DEFAULT, TEST, error_of
from simulator.comparison import SHARES

COUNTED = "counted"
"""In place of a mechanism: nothing is switched off."""
ALL = "all"
_LEAST_DECISIONS = 10
"""Decisions in a crawl below which a mechanism is not judged there (chosen)."""
Counts = Counter[str]
Patches = Iterator[Any]
"""Context managers that patch the code."""


def part(name: str) -> Any:
    """A module of the frontier, which may be gone; ImportError then."""
    return import_module(f"spiderling.frontier.{name}")


# -- one function a mechanism; each gives patches that count its decisions, and that switch it off


def throttle(counts: Counts, is_off: bool) -> Patches:
    """Classes of hosts below the bar are asked the more seldom."""
    throttle_class = part("throttle").Throttle
    plain = throttle_class.keeps

    def keeps(self: Any, *given: Any) -> bool:
        is_kept = not is_off and plain(self, *given)
        counts["throttle"] += is_kept
        return is_kept

    yield patch.object(throttle_class, "keeps", keeps)


def idle(counts: Counts, is_off: bool) -> Patches:
    """The bar is lower while the crawl gets less text a second than it did."""
    throttle_class = part("throttle").Throttle
    plain = throttle_class._bar
    highest = [0.0]

    def bar(self: Any) -> float:
        found: float = plain(self)
        counts["idle"] += found < highest[0] / 2
        highest[0] = max(highest[0], found)
        return found

    yield patch.object(throttle_class, "_bar", bar)
    if is_off:
        yield patch.object(part("throttle"), "LOWEST", 1.0)


def kinds(counts: Counts, is_off: bool) -> Patches:
    """Hosts that were read are told apart by what they gave and by their languages."""
    throttle_class = part("throttle").Throttle
    counts["kinds"] = _LEAST_DECISIONS
    if is_off:
        yield _rewritten(throttle_class, "_kind_of", "if host.documents:", "if True:")


def foreign_again(counts: Counts, is_off: bool) -> Patches:
    """Hosts with two pages in other languages and none in a wanted one go behind those with one."""
    throttle_class = part("throttle").Throttle
    if is_off:
        yield _rewritten(throttle_class, "_kind_of", "self._foreign_pages(host), 2)", "self._foreign_pages(host), 1)")
    else:
        is_again = part("throttle")._FOREIGN_AGAIN.__eq__
        yield _counting(throttle_class, "_kind_of", counts, "foreign-again", is_again)


def _estimator(name: str) -> Callable[[Counts, bool], Patches]:
    def switched(counts: Counts, is_off: bool) -> Patches:
        estimators = part("worth").ESTIMATORS
        judge, weight = estimators[name]
        last = [0.0]

        def watched(cues: Any) -> Any:
            """Counts the links of which it says something else than of the link before."""
            said = judge(cues)
            values = np.atleast_1d(said)
            counts[name] += int((np.diff(values, prepend=last[0]) != 0).sum())
            last[0] = float(values[-1]) if len(values) else last[0]
            return said

        yield patch.dict(estimators, {name: (watched, 0.0 if is_off else weight)})

    return switched


def make_room(counts: Counts, is_off: bool) -> Patches:
    """A host that the throttle lets wait for long gives up its place for a better one of the backlog."""
    owner = part("throttle").Throttle
    yield _counting(owner, "pop_worse", counts, "make-room", lambda host: host is not None)
    if is_off:
        yield patch.object(part("schedule").Schedule, "_make_room", lambda self, now: None)


def host_languages(counts: Counts, is_off: bool) -> Patches:
    """How far hosts keep to one language is learnt, and tells what to expect of each."""
    if is_off:
        yield patch.object(part("worth").Worth, "_of_language", lambda self, host_id: 0.0)
    else:
        yield _counting(part("worth").Worth, "_of_language", counts, "host-languages", bool)


MECHANISMS: dict[str, Callable[[Counts, bool], Patches]] = {
    "throttle": throttle,
    "idle": idle,
    "kinds": kinds,
    "foreign-again": foreign_again,
    **{name: _estimator(name) for name in ("section", "page-outside", "block", "url", "hreflang")},
    "make-room": make_room,
    "host-languages": host_languages,
}
OURS = tuple(MECHANISMS)[4:]
"""Those that are all switched off together: not the throttle, by which the strategy stands."""


@contextmanager
def switched(off: str) -> Iterator[dict[str, int]]:
    """The code without the mechanisms named in *off*, for one crawl; gives their decisions."""
    if not off:
        yield {}
        return
    names = OURS if off == ALL else off.split(",")
    counts: Counts = Counter()
    with ExitStack() as stack:
        for name, mechanism in MECHANISMS.items():
            try:
                for each in mechanism(counts, name in names):
                    stack.enter_context(each)
            except (ImportError, AttributeError, LookupError):
                counts[name] = -1  # the code does not have it any more
        yield counts


def _counting(owner: type, name: str, counts: Counts, key: str, decides: Callable[[Any], object]) -> Any:
    plain = getattr(owner, name)

    def counted(*given: Any) -> Any:
        found = plain(*given)
        counts[key] += bool(decides(found))
        return found

    return patch.object(owner, name, counted)


def _rewritten(owner: type, name: str, old: str, new: str, **names: Any) -> Any:
    """A patch that puts *new* in place of *old* in the code of a method; *names* are known to it."""
    plain = getattr(owner, name)
    source = getattr(plain, "source", "") or inspect.getsource(plain)
    if old not in source:
        raise LookupError(old)
    source = source.replace(old, new)
    scope = dict(plain.__globals__) | names
    code = compile(f"class _:\n{source}", "ablation", "exec", __future__.annotations.compiler_flag)
    exec(code, scope)  # noqa: S102 - our own code with one expression exchanged
    found = getattr(scope["_"], name)
    found.source = source  # for another mechanism of the same method
    return patch.object(owner, name, found)


# -- tables


def jobs_of(webs: Sequence[str], pages: int, seeds: Sequence[int], off: str) -> list[Job]:
    """One on each web and seed."""
    sizes = {"many-hosts": (3 * pages, 3 * pages / 5), "one-address": (pages, pages / 2)}
    shown = ((web, *sizes.get(web, (pages, math.inf))) for web in webs)
    return [Job(web, size, seed, DEFAULT, max_pages=most, off=off) for web, size, most in shown for seed in seeds]


def ratio(without: Result, whole: Result) -> float:
    """Words/MB without a mechanism beside those with it."""
    pairs = [(without.at(share), whole.at(share)) for share in SHARES]
    both = [math.log(a.words_per_mb / b.words_per_mb) for a, b in pairs if a and b]
    if both:
        return math.exp(statistics.fmean(both))
    return without.words / without.mb / (whole.words / whole.mb) if whole.words else 1.0


def hours(without: Result, whole: Result) -> float:
    """Hours to the largest share that both reach beside those with the mechanism; 1 if there is none."""
    pairs = [(without.at(share), whole.at(share)) for share in SHARES]
    return next((a.hours / b.hours for a, b in reversed(pairs) if a and b and b.hours), 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="directory with graph/, for other webs")
    parser.add_argument("--pages", type=float, default=1e5, help="pages of each generated web (default 1e5)")
    parser.add_argument("--seeds", type=int, default=5, help="webs of each kind, 5 at most (default 5)")
    parser.add_argument("--webs", default="", help="which of them, with commas (default all)")
    parser.add_argument("--off", default=",".join([*MECHANISMS, ALL]), help="mechanisms, with commas (default all)")
    parser.add_argument("--jobs", type=int, default=2, help="crawls at once (default 2)")
    default = Path(tempfile.gettempdir(), "spiderling-strategies")
    parser.add_argument("--results", type=Path, default=default, help="where results are kept (default %(default)s)")
    options = parser.parse_args()
    pages = 2_000 if options.quick else int(options.pages)
    every = (*simulated.webs(options.data), "many-hosts", "one-address")
    webs = options.webs.split(",") if options.webs else ("thai", "one-address") if options.quick else every
    seeds = TEST[: 1 if options.quick else options.seeds]
    crawls = Crawls(options.results, options.data, switched)
    jobs = {off: jobs_of(webs, pages, seeds, off) for off in (COUNTED, *options.off.split(","))}
    results = crawls.results([job for group in jobs.values() for job in group], options.jobs)
    whole = jobs.pop(COUNTED)
    rows, gains = [], {}
    for off, group in jobs.items():
        pairs = [(results[job], results[full]) for job, full in zip(group, whole, strict=True)]
        cells = [off]
        gaining = []
        for at, web in enumerate(webs):
            of_web = pairs[at * len(seeds) : (at + 1) * len(seeds)]
            ratios = [ratio(*pair) for pair in of_web]
            mean, error = statistics.fmean(ratios), error_of(ratios)
            slower = statistics.fmean(hours(*pair) for pair in of_web)
            decided = statistics.fmean(full.counts.get(off, 0) for _, full in of_web)
            told = "" if off == ALL else " gone" if decided < 0 else f" {decided:,.0f}x"
            if mean < 1 - 2 * error and (off == ALL or decided >= _LEAST_DECISIONS):
                gaining.append(web)
            cells.append(f"{mean:.2f} ±{error:.2f} {slower:.2f}h{told}")
        gains[off] = gaining
        rows.append((*cells, ", ".join(gaining) or "-"))
    print("\nWords/MB without / with ± standard error, hours without / with, decisions in a crawl with it\n")
    table(("off", *webs, "gains on"), rows)
    result(gains_on=gains)


if __name__ == "__main__":
    main()
