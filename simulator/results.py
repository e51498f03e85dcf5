"""What ``scrapy simulate`` gives: a table of strategies, all curves as CSV, a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from simulator.comparison import SHARES, Run, Summary, Terms
from simulator.generated import RECIPES
from simulator.measures import coverage, word_coverage
from spiderling.base.atomic_files import write_whole
from spiderling.base.printing import markdown_table

_MEASURES = "web", "strategy", "pages", "hours", "pages/s", "harvest", "coverage", "of words", "yield rate"
_HEAD = (*_MEASURES, "words/MB at 25 %", *(f"{100 * share:.0f} %" for share in SHARES[1:]), "retired")
_CSV_HEAD = (
    "web", "strategy", "seed", "hours", "pages", "relevant", "documents", "words", "downloaded_bytes", "kept_bytes",
    "waiting", "retired", "harvest_rate", "coverage", "word_coverage", "yield_rate", "words_per_mb", "pages_per_s",
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
    from simulator.results_page import comparison_page  # heavy

    rate = f"at most {terms.pages_per_s:g} requests a second" if terms.pages_per_s else "no limit but politeness"
    generated = any(run.task.web in RECIPES for run in runs)
    webs = f"Generated webs of {terms.pages:,} pages" if generated else "Recorded webs"
    given = "".join(f", {name} = {value}" for name, value in terms.options.items())
    write_whole(path, comparison_page(runs, f"{webs}; {rate}{given}."))
