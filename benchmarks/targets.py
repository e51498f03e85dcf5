"""The default strategy beside the yardstick, its rivals, asking everybody, and itself as it was before.

Seeds: a rival is chosen for each web on CHOOSING; all figures are of TEST, by which nothing was chosen.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common import table
from benchmarks.simulated import Crawls, Job, Point, Result
from simulator.comparison import KNOWN_HOSTS, SHARES

DEFAULT = "spiderling"
THRIFT = "spiderling:thrift=6"
"""The default for a line that is paid by the gigabyte."""
ALL = "spiderling:haste=0"
"""Asked everybody at commit 2bcee4e; its hours are those of BEFORE."""
LSWC = tuple(f"lswc:s={s},t={t}" for s in (1, 3) for t in (1, 5))
RIVALS = ("yield", "heidix", *LSWC, "hard", "soft")
CHOOSING = (31, 32, 33, 34, 35)
TEST = (41, 42, 43, 44, 45)
RATES = (20.0, 100.0)
"""Most requests a second: one core's, and more than two cores do."""
TO_THE_END = 1.1
"""A share of the words that no crawl reaches."""
BEFORE = Path(__file__).with_name("strategies_before.json")
"""What DEFAULT and ALL gave at commit 2bcee4e, by web, size, seed, strategy and rate."""
_STAYS = 2 / 3
"""A rival with less than this part of the best one's score on the first seed is not tried on the others."""


class Frame(NamedTuple):
    """What is compared."""

    webs: Sequence[str]
    pages: int
    choosing: Sequence[int]
    test: Sequence[int]


def jobs_of(frame: Frame, strategy: str, rate: float = 20.0, share: float = 0.9) -> list[Job]:
    """One on each web and seed of the test."""
    return [Job(web, frame.pages, seed, strategy, rate, share) for web in frame.webs for seed in frame.test]


def own_jobs(frame: Frame) -> list[Job]:
    """Those of DEFAULT: to the end at the first rate, which tells its recall, to 90 % of the words at the others."""
    return [job for rate in RATES for job in jobs_of(frame, DEFAULT, rate, TO_THE_END if rate == RATES[0] else 0.9)]


def _name(job: Job) -> str:
    return f"{job.web} {job.pages} {job.seed} {job.strategy} {job.rate:g}"


def best_rivals(crawls: Crawls, frame: Frame, processes: int) -> dict[str, str]:
    """For each web the rival with the highest words/MB over SHARES; one that does not get to a share has none there."""
    first, *others = frame.choosing
    found = crawls.results([Job(web, frame.pages, first, name) for web in frame.webs for name in RIVALS], processes)
    left: dict[str, list[str]] = {}
    for web in frame.webs:
        scores = {name: _score([found[Job(web, frame.pages, first, name)]]) for name in RIVALS}
        left[web] = [name for name in RIVALS if scores[name] >= _STAYS * max(scores.values())]
    jobs = [Job(web, frame.pages, seed, name) for web in frame.webs for name in left[web] for seed in others]
    found |= crawls.results(jobs, processes)
    return {
        web: max(left[web], key=lambda name: _score([found[Job(web, frame.pages, s, name)] for s in frame.choosing]))
        for web in frame.webs
    }


def _score(results: Sequence[Result]) -> float:
    points = (result.at(share) for result in results for share in SHARES)
    return sum(point.words_per_mb if point else 0.0 for point in points)


def measure(crawls: Crawls, frame: Frame, processes: int) -> dict[str, dict[str, Any]]:
    """Print the tables, and give the figures of RESULT."""
    before = json.loads(BEFORE.read_text()) if BEFORE.exists() else {}
    rivals = best_rivals(crawls, frame, processes)
    jobs = {
        DEFAULT: own_jobs(frame),
        THRIFT: jobs_of(frame, THRIFT),
        KNOWN_HOSTS: jobs_of(frame, KNOWN_HOSTS),
        "bfs": jobs_of(frame, "bfs", share=TO_THE_END),
        "rival": [Job(web, frame.pages, seed, rivals[web]) for web in frame.webs for seed in frame.test],
    }
    results = crawls.results([job for group in jobs.values() for job in group], processes)
    for web in frame.webs:
        print(f"\n{web}: means of {len(frame.test)} seeds, 20 requests a second\n")
        shown = {group: [job for job in jobs[group] if job.web == web and job.rate == RATES[0]] for group in jobs}
        lines = [_row(group, [results[job] for job in group], group[0].strategy) for group in shown.values()]
        points = [f"{100 * share:.0f} %" for share in SHARES]
        table(("strategy", "words/MB at " + points[0], *points[1:], "hours to 75 %", "90 %", "of the words"), lines)
    return _targets(frame, jobs, results, rivals, before)


def _row(group: object, results: Sequence[Result], name: str) -> tuple[str, ...]:
    rates = (_mean([result.at(share) for result in results], 0) for share in SHARES)
    hours = (_mean([result.at(share) for result in results], 1) for share in SHARES[-2:])
    recall = statistics.fmean(result.recall for result in results)
    return (
        name,
        *("-" if rate is None else f"{rate:,.0f}" for rate in rates),
        *("-" if hour is None else f"{hour:.2f}" for hour in hours),
        f"{recall:.3f}",
    )


def _mean(points: Sequence[Point | None], at: int) -> float | None:
    """None if not every crawl got there."""
    known = [point[at] for point in points if point]
    return statistics.fmean(known) if len(known) == len(points) else None


def _targets(
    frame: Frame, jobs: dict[str, list[Job]], results: dict[Job, Result], rivals: dict[str, str], before: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {
        name: {} for name in ("of_known_hosts", "vs_best_rival", "recall", "hours_vs_all", "words_vs_before")
    }
    rows, versus = [], []
    for web in frame.webs:
        by_seed = {group: {j.seed: results[j] for j in jobs[group] if j.web == web and j.rate == 20} for group in jobs}
        own, known, rival, bfs = (by_seed[name] for name in (DEFAULT, KNOWN_HOSTS, "rival", "bfs"))
        of_known = {name: _ratios(by_seed[name], known, 0.75) for name in (DEFAULT, THRIFT)}
        found["of_known_hosts"][web] = {name: _round(_fmean(ratios)) for name, ratios in of_known.items()}
        per_share = {f"{100 * share:.0f}": _ratios(own, rival, share) for share in SHARES}
        told = {share: [_round(_fmean(ratios)), _round(error_of(ratios))] for share, ratios in per_share.items()}
        found["vs_best_rival"][web] = {"rival": rivals[web], **told}
        recall = statistics.fmean(own[seed].recall / max(bfs[seed].recall, 1e-9) for seed in frame.test)
        found["recall"][web] = _round(recall)
        found["hours_vs_all"][web] = {f"{rate:g}": _hours(web, rate, jobs, results, before) for rate in RATES}
        found["words_vs_before"][web] = _versus_before(web, jobs, results, before)
        versus.append((web, rivals[web], *(f"{_text(mean)} ±{_text(error)}" for mean, error in told.values())))
        rows.append(
            (
                web,
                *map(_text, found["of_known_hosts"][web].values()),
                _text(recall),
                *map(_text, found["hours_vs_all"][web].values()),
                _text(found["words_vs_before"][web]),
            )
        )
    print(f"\n{DEFAULT} / the best rival in words/MB, seed by seed (± standard error)\n")
    table(("web", "rival", *(f"{100 * share:.0f} %" for share in SHARES)), versus)
    print(f"\n{DEFAULT}: of the yardstick, recall, hours beside those of asking everybody, words/MB beside before\n")
    head = ("web", "of known-hosts at 75 %", f"the same of {THRIFT}", "words at the end / bfs'")
    table((*head, "hours to 90 %, 20/s", "100/s", "words/MB at 75 % / before"), rows)
    return found


def _ratios(own: dict[int, Result], others: dict[int, Result], share: float) -> list[float]:
    """Words/MB beside another strategy's where that one got there; 0 where only it did."""
    pairs = ((own[seed].at(share), other.at(share)) for seed, other in others.items())
    return [(mine.words_per_mb if mine else 0.0) / theirs.words_per_mb for mine, theirs in pairs if theirs]


def _hours(
    web: str, rate: float, jobs: dict[str, list[Job]], results: dict[Job, Result], before: dict[str, Any]
) -> float | str | None:
    """Hours to 90 % of the words beside those of ALL, where that gets there; None if it does not or is not known."""
    ratios = []
    for job in jobs[DEFAULT]:
        known = before.get(_name(job._replace(strategy=ALL)), {}).get("points", {}).get("90")
        if job.web == web and job.rate == rate and known:
            own = results[job].at(0.9)
            ratios.append(own.hours / known[1] if own else math.inf)
    mean = _fmean(ratios)
    return "never" if math.isinf(mean) else _round(mean)


def _versus_before(
    web: str, jobs: dict[str, list[Job]], results: dict[Job, Result], before: dict[str, Any]
) -> float | None:
    ratios = []
    for job in jobs[DEFAULT]:
        if job.web == web and job.rate == RATES[0]:
            own = results[job].at(0.75)
            known = before.get(_name(job), {}).get("points", {}).get("75")
            ratios.append((own.words_per_mb if own else 0.0) / known[0] if known else math.nan)
    return _round(_fmean(ratios))


def _fmean(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.fmean(known) if known else math.nan


def error_of(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def _round(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)


def _text(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"
