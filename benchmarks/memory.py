"""What the main process' memory is made of in a long crawl, and what grows.

    python -m benchmarks.memory [CASE ...] [--quick] [--pages N]

    new     pages without end under 40,000 hosts: most links lead to pages that nobody knows
    known   2,000 hosts of 60 pages that are all known after the start, with SPIDERLING_DEDUP=exact

The crawl is a real one over loopback, but its text workers answer at once (inside.py): what they would do is no
memory of the main process.  ``unexplained``: what the process grew by, less what its parts did (inside.py), what
SQLite did, and what the allocators hold free.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import METER, crawl, result, served, table
from benchmarks.crawl import FAST, INSTANT
from benchmarks.webs import LinkedWeb

PAGES = 200_000
_HOSTS, _SEEDS = 40_000, 2000
_KNOWN_HOSTS, _KNOWN_PAGES = 2000, 60
_EVERY = 10_000
_MB = 1e6

Line = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="new, known")
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--pages", type=int, help=f"{PAGES:,} unless told")
    parser.add_argument("--keep", type=Path, help="a file for all that was weighed, of one case")
    options = parser.parse_args()
    cases = {"new": new, "known": known}
    if unknown := set(options.cases) - set(cases):
        parser.error(f"no such case: {', '.join(unknown)}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    values: dict[str, object] = {}
    for case in options.cases or cases:
        values |= cases[case](options.pages or (2500 if options.quick else PAGES), options.keep)
    result(**values)


def new(pages: int, keep: Path | None) -> dict[str, object]:
    """URLs come in faster than they are fetched."""
    hosts = min(_HOSTS, max(1000, pages // 5))
    web = LinkedWeb(hosts)
    seeds = [web.url(host, 0) for host in range(min(_SEEDS, hosts))]
    lines = weighed(f"linked:{hosts}", seeds, pages, {}, keep)
    first = _after(lines, 0.25)
    show(lines)
    grown = unexplained(lines[-1]) - unexplained(first)
    per_page = grown / (lines[-1]["pages"] - first["pages"])
    print(f"from page {first['pages']:,} to {lines[-1]['pages']:,}: {per_page:.0f} bytes a page that no part explains")
    parts = {name: round(size / _MB, 2) for name, size in parts_of(lines[-1]).items()}
    return {"pages": lines[-1]["pages"], "bytes_per_page_unexplained": round(per_page, 1), "parts": parts}


def known(pages: int, keep: Path | None) -> dict[str, object]:
    """Each URL is a seed."""
    number = min(pages, _KNOWN_HOSTS * _KNOWN_PAGES)
    hosts = max(1, number // _KNOWN_PAGES)
    web = LinkedWeb(hosts, _KNOWN_PAGES)
    seeds = [web.url(host, page) for page in range(_KNOWN_PAGES) for host in range(hosts)]
    lines = weighed(f"linked:{hosts}:{_KNOWN_PAGES}", seeds, number, {"SPIDERLING_DEDUP": "exact"}, keep)
    show(lines)
    early = _after(lines, 0.25)
    ratio = lines[-1]["rss"] / early["rss"]
    print(f"without new URLs, from page {early['pages']:,} to {lines[-1]['pages']:,}: {ratio:.3f} of the memory")
    return {"known_pages": lines[-1]["pages"], "known_ratio": round(ratio, 3)}


def weighed(
    web: str, seeds: Sequence[str], pages: int, settings: Mapping[str, object], keep: Path | None
) -> list[Line]:
    """One crawl, weighed every 10,000 pages, a short one eight times."""
    with served(web, "--identity") as hosts, tempfile.TemporaryDirectory() as directory:
        file, weights = Path(directory, "seeds.txt"), keep or Path(directory, "weights.jsonl")
        weights.unlink(missing_ok=True)
        file.write_text("\n".join(seeds))
        every = {
            **FAST, **INSTANT, **settings, "SPIDERLING_HOSTS": hosts, "JOBDIR": f"{directory}/job",
            "SPIDERLING_WORKERS": 1, "CLOSESPIDER_TIMEOUT": 4 * 3600,
            "CLOSESPIDER_PAGECOUNT": pages + 100,  # of which some may not have been read yet
            "EXTENSIONS": json.dumps({**METER, "benchmarks.inside.Weighing": 1001}),
            "WEIGHTS": weights, "WEIGH_EVERY": min(_EVERY, pages // 8),
        }  # fmt: skip
        crawl(["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={file}"], every)
        return [json.loads(line) for line in weights.read_text().splitlines()]


def parts_of(line: Line) -> dict[str, int]:
    """Bytes by part, those of the allocators and of SQLite among them."""
    allocators = line["allocators"]
    free = {"free in pymalloc": allocators["python_free"], "free in malloc": allocators["malloc_free"]}
    return {**line["parts"], "SQLite": allocators["sqlite"], **free}


def unexplained(line: Line) -> int:
    """Bytes of the process that are of no part: the start's, and what else there may be."""
    return int(line["rss"] - sum(parts_of(line).values()))


def _after(lines: Sequence[Line], share: float) -> Line:
    """What was weighed first when that share of the pages was fetched."""
    return next(line for line in lines if line["pages"] >= share * lines[-1]["pages"])


def show(lines: Sequence[Line]) -> None:
    shown = [_after(lines, share) for share in (0.05, 0.25, 0.5, 1.0)]
    rows: list[Sequence[object]] = []
    for name in parts_of(lines[-1]):
        number = lines[-1]["units"].get(name, 0)
        size = parts_of(lines[-1])[name]
        sizes = [parts_of(line)[name] / _MB for line in shown]
        rows.append((name, *sizes, f"{number:,}" if number else "", f"{size / number:.0f}" if number else ""))
    rows.append(("of no part", *(unexplained(line) / _MB for line in shown), "", ""))
    rows.append(("resident", *(line["rss"] / _MB for line in shown), "", ""))
    table(("part, MB", *(f"{line['pages']:,}" for line in shown), "units", "bytes a unit"), rows)


if __name__ == "__main__":
    main()
