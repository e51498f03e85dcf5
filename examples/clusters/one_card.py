"""One card for exports that tasks of a cluster made side by side, as if one command had made them (docs/clusters.md).

    python examples/clusters/one_card.py cs/data/*.parquet.json -o cs

writes ``README.md`` and ``manifest.json`` into ``cs``, which then is a dataset for ``datasets.load_dataset``.  Numbers
are added up; a host that is in several of the exports counts in each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from spiderling.base.errors import SpiderlingError
from spiderling.jobdir.card import MANIFEST, README, Manifest, write_pair

OF_A_PART = (
    "begun", "urls_waiting", "archives_unread", "hosts_asked", "pages", "downloaded_bytes", "kept_bytes", "archives",
)  # fmt: skip
"""What differs between parts of one crawl: shards, or tasks with archives of their own."""
OF_A_DEDUP = ("documents", "units", "shingles", "duplicates")  # numbers that ``scrapy dedup`` notes
OF_PII = ("documents", "found")  # numbers that ``scrapy export --pii`` notes
OF_ALL = ("documents", "dropped", "sources", "purposes")
DATASET = [{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}]


def joined(told: Sequence[Manifest]) -> Manifest:
    """The manifest of several exports together."""
    crawls: dict[str, list[Manifest]] = {}
    for crawl in chain.from_iterable(one["crawls"] for one in told):
        common = {name: value for name, value in crawl.items() if name not in OF_A_PART}
        crawls.setdefault(json.dumps(common), []).append({name: crawl[name] for name in OF_A_PART})
    contents = total([one["contents"] for one in told])
    contents["crawl_dates"] = contents["crawl_dates"][:1] + contents["crawl_dates"][-1:]
    found = {
        **told[0],
        **total([{name: one[name] for name in OF_ALL} for one in told]),
        "made": max(one["made"] for one in told),
        "selection": told[0]["selection"] | {"left_out": total([one["selection"]["left_out"] for one in told])},
        "crawls": [json.loads(common) | total(parts) for common, parts in crawls.items()],
        "contents": contents,
        "files": [*chain.from_iterable(one["files"] for one in told)],
    }
    found.pop("receipts", None)  # each export has its own: `scrapy verify cs/data/1.parquet`
    if "personal_data" in found:
        found["personal_data"] |= total([{name: one["personal_data"][name] for name in OF_PII} for one in told])
    if "dedup" in found:
        found["dedup"] |= total([{name: one["dedup"][name] for name in OF_A_DEDUP} for one in told])
    return found


def total(values: Sequence[Any]) -> Any:
    """Several values as one: numbers and those of counts are added, of texts it is the least, lists hold all."""
    first = values[0]
    if isinstance(first, int):
        return sum(values)
    if isinstance(first, list):
        return sorted({*chain.from_iterable(values)})
    if isinstance(first, dict):
        names = dict.fromkeys(chain.from_iterable(values))
        found = {name: total([value[name] for value in values if name in value]) for name in names}
        is_counts = all(isinstance(value, int) for value in found.values())
        return dict(Counter(found).most_common()) if is_counts else found
    return min(values)


def read(path: Path, out: Path) -> Manifest:
    """The manifest in the file *path*, with its files named from *out* on; exits if they are not as it says."""
    manifest: Manifest = json.loads(path.read_text("utf-8"))
    for file in manifest["files"]:
        data = path.parent / file["name"]
        if data.stat().st_size != file["bytes"]:
            sys.exit(f"{data} has another size than {path} says; export it again.")
        file["name"] = os.path.relpath(data, out)
    return manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifests", nargs="+", type=Path, metavar="OUT.json", help="what each export wrote beside OUT")
    parser.add_argument("-o", dest="out", type=Path, required=True, metavar="DIR", help="where to write the card")
    args = parser.parse_args()
    if (args.out / README).exists() and not (args.out / MANIFEST).exists():
        sys.exit(f"{args.out / README} is no card; give another directory.")
    try:
        told = [read(path, args.out) for path in args.manifests]
        configs = {"configs": DATASET} if (args.out / "data").is_dir() else {}
        write_pair(joined(told) | configs, args.out / README, args.out / MANIFEST)
    except (KeyError, OSError, ValueError, SpiderlingError) as error:
        sys.exit(f"no card is written: {error!r}")
    print(f"{args.out / README} and {MANIFEST} tell of {len(told)} exports.")


if __name__ == "__main__":
    main()
