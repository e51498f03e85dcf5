"""Strategies side by side: a table, all curves as CSV, and a page with curves by pages and by simulated hours."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.comparison import SHARES, Run, Summary, Terms, summaries
from simulator.generated import RECIPES
from simulator.measures import Sample, Truth, coverage, word_coverage
from spiderling.base.files import write_whole
from spiderling.base.terminal import markdown_table
from spiderling.reporting.charts import Chart, Spec
from spiderling.reporting.page import page
from spiderling.reporting.tables import Cell, Table

_MEASURES = "web", "strategy", "pages", "hours", "pages/s", "harvest", "coverage", "of words", "yield rate"
_HEAD = (*_MEASURES, "words/MB at 25 %", *(f"{100 * share:.0f} %" for share in SHARES[1:]), "retired")
_CSV_HEAD = (
    "web", "strategy", "seed", "hours", "pages", "relevant", "documents", "words", "downloaded_bytes", "kept_bytes",
    "waiting", "retired", "harvest_rate", "coverage", "word_coverage", "yield_rate", "words_per_mb", "pages_per_s",
)  # fmt: skip
_MOST_POINTS = 60
"""Points of a curve at the most (chosen)."""
_SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left", "stroke",
)  # fmt: skip


def row(summary: Summary) -> tuple[str, ...]:
    """What the table says of one strategy on one web."""
    rates = [
        "-" if mean is None else f"{mean:,.0f}" + (f" ±{spread:,.0f}" if summary.seeds > 1 else "")
        for mean, spread in zip(summary.words_per_mb, summary.spreads, strict=True)
    ]
    return (
        summary.web,
        summary.strategy,
        f"{summary.pages:,.0f}",
        f"{summary.hours:.1f}",
        f"{summary.pages_per_s:.1f}",
        f"{summary.harvest_rate:.3f}",
        f"{summary.coverage:.3f}",
        f"{summary.word_coverage:.3f}",
        f"{summary.yield_rate:.4f}",
        *rates,
        f"{summary.retired:,.0f}",
    )


def strategy_table(means: Iterable[Summary]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    return markdown_table(_HEAD, map(row, means))


def write_csv(path: Path, runs: Sequence[Run], terms: Terms) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(_CSV_HEAD)
    for run in runs:
        for at in run.samples:
            measures = at.harvest_rate, coverage(at, run.truth), word_coverage(at, run.truth)
            rates = at.yield_rate, at.words_per_mb, at.pages_per_s
            writer.writerow((*run.task, at.hours, *at[1:], *(f"{value:.6g}" for value in (*measures, *rates))))
    write_whole(path, file.getvalue())


def write_page(path: Path, runs: Sequence[Run], terms: Terms) -> None:
    rate = f"at most {terms.pages_per_s:g} requests a second" if terms.pages_per_s else "no limit but politeness"
    generated = any(run.task.web in RECIPES for run in runs)
    webs = f"Generated webs of {terms.pages:,} pages" if generated else "Recorded webs"
    given = "".join(f", {name} = {value}" for name, value in terms.options.items())
    write_whole(path, comparison_page(runs, f"{webs}; {rate}{given}."))


class Measure(NamedTuple):
    """What a curve shows of each sample."""

    title: str
    value: Callable[[Sample, Truth], float]
    note: str


MEASURES = (
    Measure("words/MB", lambda at, truth: at.words_per_mb, "Words kept for each MB downloaded so far."),
    Measure("yield rate", lambda at, truth: at.yield_rate, "Bytes kept / downloaded so far."),
    Measure("share of words", word_coverage, "Words kept / words of the web."),
    Measure("harvest rate", lambda at, truth: at.harvest_rate, "Pages in the wanted language / pages so far."),
    Measure("coverage", coverage, "Pages in the wanted language / those of the web."),
    Measure("pages/s", lambda at, truth: at.pages_per_s, "Of simulated time, under politeness."),
    Measure("hosts retired", lambda at, truth: at.retired, ""),
)
_BY_HOURS = ("words/MB", "share of words", "pages/s", "hosts retired")


def comparison_page(runs: Sequence[Run], terms: str) -> str:
    """The HTML; curves are those of each strategy's first seed, tables give means over the seeds."""
    sections: list[tuple[str, Sequence[Table | Chart | list[str]]]] = []
    for web in dict.fromkeys(run.task.web for run in runs):
        own = [run for run in runs if run.task.web == web]
        shown = list({run.task.strategy: run for run in reversed(own)}.values())[::-1]
        by_pages = [_chart(measure, shown, "pages") for measure in MEASURES]
        by_hours = [_chart(measure, shown, "hours") for measure in MEASURES if measure.title in _BY_HOURS]
        sections.append((web, [_table(summaries(own)), *by_pages, *by_hours]))
    return page("Strategies compared", terms, sections)


def _table(means: Sequence[Summary]) -> Table:
    measures = (
        "strategy", "seeds", "pages", "hours", "pages/s", "harvest rate", "coverage", "share of words", "yield rate",
    )  # fmt: skip
    rates = [f"words/MB at {share:.0%}" for share in SHARES]
    rows: list[tuple[Cell, ...]] = [
        (
            mean.strategy,
            mean.seeds,
            round(mean.pages),
            mean.hours,
            mean.pages_per_s,
            mean.harvest_rate,
            mean.coverage,
            mean.word_coverage,
            mean.yield_rate,
            *mean.words_per_mb,
            round(mean.retired),
        )
        for mean in means
    ]
    note = "An empty cell: not every crawl kept so many of the web's words."
    return Table("Means over the seeds", (*measures, *rates, "hosts retired"), rows, note)


def _chart(measure: Measure, runs: Sequence[Run], axis: str) -> Chart:
    values = [
        {"at": getattr(at, axis), "value": round(measure.value(at, run.truth), 6), "strategy": run.task.strategy}
        for run in runs
        for at in run.samples[:: max(1, len(run.samples) // _MOST_POINTS)]
    ]
    names = [run.task.strategy for run in runs]
    legend = {"title": None, "orient": "top"}
    strategy = {"field": "strategy", "type": "nominal", "scale": {"domain": names}, "legend": legend}
    shapes = {"domain": names, "range": [_SHAPES[number % len(_SHAPES)] for number in range(len(names))]}
    spec: Spec = {
        "data": {"values": values},
        "height": 260,
        "mark": {"type": "line", "point": {"size": 30}, "strokeWidth": 2},
        "encoding": {
            "x": {"field": "at", "type": "quantitative", "title": axis if axis == "pages" else "simulated hours"},
            "y": {"field": "value", "type": "quantitative", "title": measure.title},
            "color": strategy,
            "shape": {**strategy, "scale": shapes},
            "tooltip": [
                {"field": "strategy"},
                {"field": "at", "title": axis},
                {"field": "value", "title": measure.title},
            ],
        },
    }
    return Chart(f"{measure.title[:1].upper()}{measure.title[1:]} by {axis}", spec, measure.note)
