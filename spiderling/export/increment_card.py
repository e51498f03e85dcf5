"""The card of an incremental export: a manifest and a README over all its parts, made from those of the parts.

Each part has a card of its own beside its files, with where it comes from; this one lists the parts, so that whoever
took some of them knows which are new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spiderling.base.printing import markdown_table
from spiderling.jobdir.card import MANIFEST, README, Manifest, files_in, headed, software, take_down, write_pair

_LOADED = {"parquet": "*.parquet", "jsonl": "*.jsonl.zst"}
"""Formats that readers of datasets take as they are -> the files of a part."""


def write_card(directory: Path, parts: Mapping[str, Manifest]) -> None:
    """Write the manifest and the README of *directory*, whose *parts* have these manifests; raises StorageError."""
    manifest = _manifest(parts)
    last = parts[max(parts)]
    write_pair(manifest, directory / README, directory / MANIFEST, _readme(manifest, last["crawls"]))


def _manifest(parts: Mapping[str, Manifest]) -> Manifest:
    languages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    licences: Counter[str] = Counter()
    for manifest in parts.values():
        licences.update(manifest["contents"]["licences"])
        for code, numbers in manifest["contents"]["languages"].items():
            languages[code].update(numbers)
    found: Manifest = {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "software": software(),
        "contents": {"languages": languages, "licences": licences},
        "parts": [_part(name, manifest) for name, manifest in parts.items()],
    }
    pattern = _LOADED.get(next(iter(parts.values()))["format"])
    data_files = [{"split": "train", "path": f"part-*/{pattern}"}]
    return found | ({"configs": [{"config_name": "default", "data_files": data_files}]} if pattern else {})


def _part(name: str, manifest: Manifest) -> dict[str, Any]:
    contents = manifest["contents"]
    return {
        "name": name,
        "made": manifest["made"],
        "unit": manifest["unit"],
        "documents": manifest["documents"],
        "words": contents["words"],
        "text_bytes": contents["text_bytes"],
        "crawl_dates": contents["crawl_dates"],
        "files": [file | {"name": f"{name}/{file['name']}"} for file in files_in(manifest)],
    }


def _readme(manifest: Manifest, crawls: list[Manifest]) -> str:
    parts = manifest["parts"]
    documents = sum(part["documents"] for part in parts)
    words = sum(part["words"] for part in parts)
    rows = [
        (
            part["name"],
            part["made"],
            f"{part['documents']:,}",
            f"{part['words']:,}",
            " to ".join(date[:10] for date in part["crawl_dates"]),
            f"{sum(file['bytes'] for file in part['files']):,}",
        )
        for part in parts
    ]
    lines = [
        *headed(manifest),
        f"{documents:,} documents, {words:,} words in {len(parts):,} parts. A part is never changed: each export adds "
        f"one, with what was new. The card of each, beside its files, says how it was made; {MANIFEST} has the "
        "checksums of all files.",
        "",
        *markdown_table(("part", "made (UTC)", "documents", "words", "fetched", "bytes"), rows),
        "",
        *take_down(crawls),
    ]
    return "\n".join(lines) + "\n"
