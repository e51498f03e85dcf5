"""Strategies side by side: a table, all curves as CSV, and a page with curves by pages and by simulated hours."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.comparison import SHARES, Run, Summary, Terms, summaries
from simulator.generated import RECIPES
from simulator.measures import Sample, Truth, coverage, word_coverage
from spiderling.base.files import write_whole
from spiderling.base.terminal import markdown_table
from spiderling.jobdir.as_text import Table
from spiderling.reporting.page import html_table, part

_MEASURES = "web", "strategy", "pages", "hours", "pages/s", "harvest", "coverage", "of words", "yield rate"
_HEAD = (*_MEASURES, "words/MB at 25 %", *(f"{100 * share:.0f} %" for share in SHARES[1:]), "retired")
_CSV_HEAD = (
    "web", "strategy", "seed", "hours", "pages", "relevant", "documents", "words", "downloaded_bytes", "kept_bytes",
    "waiting", "retired", "harvest_rate", "coverage", "word_coverage", "yield_rate", "words_per_mb", "pages_per_s",
)  # fmt: skip
_MAX_POINTS = 60
"""Points of a curve at the most (chosen)."""


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


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Strategies compared</title>
<style>{style}</style></head><body><h1>Strategies compared</h1><p class="note">{terms}</p>{sections}</body></html>
"""
_STYLE = """
th, td { padding-inline: .25rem; font-size: .78rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.chart svg { height: auto; }
.chart polyline { fill: none; stroke-width: 1.8; }
.chart ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; padding: 0; margin: .2rem 0; }
.chart li svg { display: inline-block; width: 2rem; height: .8rem; vertical-align: middle; margin-right: .3rem; }
"""
_COLOURS = ("#0072b2", "#b8500a", "#00785a", "#a8407a", "#8a7400", "#5b3fb5", "#c62828", "#5b6670")
"""Told apart by the three kinds of colour blindness too, after Okabe & Ito; dashes say the same again."""
_DASHES = ("", "6 3", "2 3", "9 3 2 3")
_SIZE = 640, 240
"""Units of a chart, which the window scales."""
_LEFT, _BOTTOM = 60, 20
"""Room for the labels of its axes."""


def comparison_page(runs: Sequence[Run], terms: str) -> str:
    """The HTML; curves are those of each strategy's first seed, tables give means over the seeds."""
    sections = []
    for web in dict.fromkeys(run.task.web for run in runs):
        own = [run for run in runs if run.task.web == web]
        shown = list({run.task.strategy: run for run in reversed(own)}.values())[::-1]
        charts = [_chart(measure, shown, "pages") for measure in MEASURES]
        charts += [_chart(measure, shown, "hours") for measure in MEASURES if measure.title in _BY_HOURS]
        table = html_table(_table(summaries(own)))
        sections.append(f'<h2>{html.escape(web)}</h2>{table}<div class="charts">{"".join(charts)}</div>')
    return _PAGE.format(style=part("page.css") + _STYLE, terms=html.escape(terms), sections="".join(sections))


def _table(means: Sequence[Summary]) -> Table:
    note = "An empty cell: not every crawl kept so many of the web's words."
    return Table("Means over the seeds", [_measures(mean) for mean in means], note)


def _measures(mean: Summary) -> dict[str, str | float]:
    return {
        "strategy": mean.strategy,
        "seeds": mean.seeds,
        "pages": round(mean.pages),
        "hours": round(mean.hours, 2),
        "pages/s": round(mean.pages_per_s, 2),
        "harvest_rate": round(mean.harvest_rate, 4),
        "coverage": round(mean.coverage, 4),
        "share_of_words": round(mean.word_coverage, 4),
        "yield_rate": round(mean.yield_rate, 4),
        **{
            f"words/MB_at_{share:.0%}": "" if value is None else round(value)
            for share, value in zip(SHARES, mean.words_per_mb, strict=True)
        },
        "hosts_retired": round(mean.retired),
    }


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    return samples[:: max(1, len(samples) // _MAX_POINTS)]


def _chart(measure: Measure, runs: Sequence[Run], axis: str) -> str:
    """A curve for each of *runs*; the table says the same of their ends."""
    curves = [[(getattr(at, axis), measure.value(at, run.truth)) for at in _thinned(run.samples)] for run in runs]
    right = max((x for curve in curves for x, _ in curve), default=1) or 1
    top = max((y for curve in curves for _, y in curve), default=1) or 1
    width, height = _SIZE
    lines, names = [], []
    for number, (run, curve) in enumerate(zip(runs, curves, strict=True)):
        kind = f'stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-dasharray="{_DASHES[number % len(_DASHES)]}"'
        places = " ".join(
            f"{_LEFT + (width - _LEFT) * x / right:.1f},{(height - _BOTTOM) * (1 - y / top):.1f}" for x, y in curve
        )
        lines.append(f'<polyline {kind} points="{places}"/>')
        key = f'<svg viewBox="0 0 32 12" aria-hidden="true"><polyline {kind} points="0,6 32,6"/></svg>'
        names.append(f"<li>{key}{html.escape(run.task.strategy)}</li>")
    title = f"{measure.title[:1].upper()}{measure.title[1:]} by {axis if axis == 'pages' else 'simulated hours'}"
    base = height - _BOTTOM
    return (
        f'<figure class="chart"><figcaption><strong>{title}</strong> <span>{measure.note}</span></figcaption>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        f'<line class="grid" x1="{_LEFT}" x2="{width}" y1="{base}" y2="{base}"/>'
        f'<text x="{_LEFT - 5}" y="12" text-anchor="end">{_short(top)}</text>'
        f'<text x="{_LEFT - 5}" y="{base}" text-anchor="end">0</text>'
        f'<text x="{width}" y="{height - 4}" text-anchor="end">{_short(right)}</text>{"".join(lines)}</svg>'
        f"<ul>{''.join(names)}</ul></figure>"
    )
