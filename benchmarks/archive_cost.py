"""What a thousand WARC files of Common Crawl cost the archive spider: docs/clusters.md.

    python benchmarks/archive_cost.py [--quick] [--data DIR]

``scrapy crawl archive`` reads the pages of wcxb-dev.jsonl.zst in DIR, which are about as
large as Common Crawl's (else those of the bundled miniature web, which are not), with one
text worker: for a language that most of them have, and for one that none or few have.
Processor time is that of all processes, the start included, the least of three runs; MB are
those of the pages as they are parsed.  The hours are those of as many pages as a thousand
files hold.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.archive import pages, write
from benchmarks.common import arguments, crawl, result, table
from spiderling.base.zstd import zstd
from spiderling.jobdir.inspection import Inspection

PAGES_OF_A_FILE = 2.64e9 / 90_000
"""Of Common Crawl's December 2024: 2.64 billion pages (commoncrawl.org) in the 90,000 files of its warc.paths."""
LANGUAGES = {"most": "en", "few": "cs"}
"""How many of the pages are wanted -> the language that is."""


class Cost(NamedTuple):
    """What one page costs."""

    cpu_ms: float
    main_cpu_ms: float
    """That part of it which the main process takes."""
    kept: float
    """Documents."""
    state_bytes: float
    corpus_bytes: float


def real_pages(data: Path) -> Iterator[tuple[str, bytes]]:
    """(URL, HTML) of the pages of WCXB."""
    with zstd.open(data / "wcxb-dev.jsonl.zst", "rt", encoding="utf-8") as lines:
        for line in lines:
            page = json.loads(line)
            yield page["url"], page["html"].encode("latin-1")


def cost_of(path: Path, number: int, lang: str) -> Cost:
    with tempfile.TemporaryDirectory() as directory:
        job = Path(directory, "job")
        words = ["crawl", "archive", "-a", f"lang={lang}", "-a", f"warc={path}"]
        run = crawl(words, {"JOBDIR": job, "SPIDERLING_WORKERS": 1})
        with closing(Inspection(job)) as state:
            documents = state.counts["total/documents"]
        spent = (
            1000 * run.cpu_s,
            1000 * run.main_cpu_s,
            documents,
            _bytes_in(job / "state"),
            _bytes_in(job / "corpus"),
        )
        return Cost(*(amount / number for amount in spent))


def _bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def main() -> None:
    options = arguments(__doc__)
    found = list(real_pages(options.data) if options.data else pages(None))[: 300 if options.quick else None]
    number, mb = len(found), sum(len(body) for _, body in found) / 1e6
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pages.warc.gz")
        write(path, found)
        stored_mb = path.stat().st_size / 1e6
        turns = [
            {wanted: cost_of(path, number, lang) for wanted, lang in LANGUAGES.items()}
            for _ in range(1 if options.quick else 3)
        ]
    best = {wanted: min((turn[wanted] for turn in turns), key=lambda cost: cost.cpu_ms) for wanted in LANGUAGES}
    print(f"{number} pages, {1e3 * mb / number:.1f} kB each, {1e3 * stored_mb / number:.1f} kB in the archive")
    hours = {wanted: 1000 * PAGES_OF_A_FILE * cost.cpu_ms / 3.6e6 for wanted, cost in best.items()}
    rows = [
        (wanted, *cost, 1000 / cost.cpu_ms, 1000 * mb / number / cost.cpu_ms, hours[wanted])
        for wanted, cost in best.items()
    ]
    table(["wanted", *Cost._fields, "pages_per_cpu_s", "mb_per_cpu_s", "hours_of_1000_files"], rows)
    result(**{f"hours_{wanted}_wanted": round(value, 1) for wanted, value in hours.items()})


if __name__ == "__main__":
    main()
