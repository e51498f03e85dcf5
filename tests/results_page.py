"""benchmarks/results.md, made from benchmarks/results.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.jsonl"
FIELDS = ("script", "case", "figure", "ours", "peer", "theirs", "machine", "load", "commit", "date")
"""Of each line; a value that was not noted is empty."""
MAX_ROWS = 60
HEAD = """\
# Results

What the [benchmarks](README.md) measured. Repeat a row with `python -m benchmarks.SCRIPT`. The load is the number of
processes that wanted one of the machine's cores, which the crawl often shared with the crawled servers: so compare
the two figures of a row, not figures of two rows. A peer that is a commit is an earlier state of this code.

This page is made from results.jsonl, which also names the machine, by `python -m tests.test_docs`.

| script | case | figure | ours | peer | theirs | load | date |
|---|---|---|---|---|---|---|---|
"""


def results() -> list[dict[str, object]]:
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()]


def results_page() -> str:
    """The whole page."""
    shown = [name for name in FIELDS if name not in ("machine", "commit")]
    return HEAD + "".join(f"| {' | '.join(_cell(row[name]) for name in shown)} |\n" for row in results())


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
