"""What an export writes: which documents, into which files, under which names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import xxhash

from spiderling.base.atomic_files import PART
from spiderling.base.errors import BadInput
from spiderling.base.extras import require
from spiderling.base.lists import DropList
from spiderling.export.formats import month_of, number, split_name
from spiderling.export.selection import Selection
from spiderling.export.sentences import KEPT
from spiderling.jobdir.card import files_in, read_manifest

_MAX_PART_BYTES = 100
"""Bytes of a part's name in a file's name (chosen: file systems allow 255 bytes for all)."""


def _quality(attributes: Mapping[str, str]) -> str:
    """The part by badness; the limits: Schäfer et al. 2014 select up to 10, their program texrex keeps up to 35."""
    badness = number(attributes.get("badness", ""))
    if badness is None:
        return ""
    return "badness-to-10" if badness <= 10 else "badness-to-35" if badness <= 35 else "badness-above-35"


def _week(attributes: Mapping[str, str]) -> str:
    """The week by ISO 8601, which begins on a Monday: 2026-W23."""
    try:
        year, week, _ = date.fromisoformat(attributes.get("crawl_date", "")[:10]).isocalendar()
    except ValueError:
        return ""
    return f"{year}-W{week:02d}"


SPLITS: dict[str, Callable[[Mapping[str, str]], str]] = {
    "lang": lambda attributes: attributes.get("lang", ""),
    "tld": lambda attributes: attributes.get("tld", ""),
    "host": lambda attributes: attributes.get("host", ""),
    "distance": lambda attributes: f"distance-{attributes['distance']}" if "distance" in attributes else "",
    "month": month_of,
    "week": _week,
    "day": lambda attributes: attributes.get("crawl_date", "")[:10] if month_of(attributes) else "",
    "quality": _quality,
}
"""Name of a split -> function from attributes to the part, "" for unknown; months, weeks and days are the fetch's."""


@dataclass(frozen=True)
class Plan:
    """Which documents an export writes, and into which files."""

    out: Path
    """The file; with splits, its name is the pattern of the files' names.  The directory of a dataset."""
    format_name: str
    splits: tuple[str, ...] = ()
    """Keys of SPLITS, the first one outermost."""
    shard_bytes: int = 0
    """Bytes from which on another file follows; 0: no limit."""
    selection: Selection = field(default_factory=Selection)
    drop: DropList = field(default_factory=DropList)
    """Hosts and URLs whose documents are left out."""
    lists: Mapping[str, int] = field(default_factory=dict)
    """File with entries of `drop` -> number of its entries."""
    is_dataset: bool = False
    """Whether `out` is a directory in the form that ``datasets.load_dataset`` reads."""
    shuffle: str = ""
    """"sentences": they are written instead of documents, in random order by the seed of the selection."""
    is_forced: bool = False
    """Whether what an earlier export wrote under these names is replaced."""

    def __post_init__(self) -> None:
        """Raises BadInput for a plan that cannot be carried out."""
        if self.format_name == "parquet":
            require("parquet")
        if self.is_dataset and self.format_name != "parquet":
            raise BadInput(f"{self.out}/ is a directory, which gets Parquet; leave --format out, or name a file.")
        if self.shuffle and set(self.splits) - set(KEPT):
            raise BadInput(f"shuffled sentences can be split by {' or '.join(KEPT)} only: they keep nothing else.")
        if self.shuffle and self.format_name == "tei":
            raise BadInput("TEI is for whole texts; write shuffled sentences in another format, as .txt or .parquet.")

    @property
    def unit(self) -> str:
        """What an entry of a file is."""
        return self.shuffle or "documents"

    def part_of(self, attributes: Mapping[str, str]) -> str:
        """The part of a document, as text for a file's name; "" without splits."""
        return ".".join(_safe(SPLITS[split](attributes)) for split in self.splits)

    def data_file(self, part: str, number: int) -> Path:
        """The path of file *number* of a part."""
        if self.is_dataset:
            return self.out / "data" / f"{part or 'all'}-{number:05d}.parquet"
        stem, ending = split_name(self.out.name)
        shard = f"-{number:05d}" if self.shard_bytes else ""
        return self.out.with_name(f"{stem}.{part}{shard}{ending}" if part else f"{stem}{shard}{ending}")

    def registry(self, part: str) -> Path:
        """The path of the registry file of a part's vertical files."""
        stem, _ = split_name(self.out.name)
        return self.out.with_name(f"{stem}.{part}.vert.registry" if part else f"{stem}.vert.registry")

    def corpus_name(self, part: str) -> str:
        """The name of a part as a corpus of a server."""
        stem, _ = split_name(self.out.name)
        return re.sub(r"\W+", "_", f"{stem}_{part}" if part else stem).lower()

    def former_files(self) -> set[Path]:
        """The files that an earlier export wrote under these names, if they are to be replaced."""
        if not self.is_forced:
            return set()
        directory = self.data_file("", 1).parent
        manifest = read_manifest(self.manifest)
        names = [file["name"] for file in files_in(manifest)]
        registries = manifest.get("registries")
        names += [name for name in (registries if isinstance(registries, list) else ()) if isinstance(name, str)]
        paths = (self.directory / name for name in names)
        return {path for path in paths if path.parent == directory and path.is_file()}

    @property
    def directory(self) -> Path:
        """The directory that the names in the manifest are relative to."""
        return self.out if self.is_dataset else self.out.parent

    @property
    def manifest(self) -> Path:
        return self._beside("manifest.json", ".json")

    @property
    def readme(self) -> Path:
        return self._beside("README.md", ".README.md")

    @property
    def dropped(self) -> Path:
        """The log of documents that lists left out; never in a directory that will be published."""
        return self.out.with_name(f"{self.out.name}.dropped.tsv")

    @property
    def workspace(self) -> Path:
        """A directory for what is needed on disk meanwhile."""
        return self.out.with_name(f"{self.out.name}.sentences{PART}")

    def _beside(self, name: str, ending: str) -> Path:
        return self.out / name if self.is_dataset else self.out.with_name(self.out.name + ending)


def _safe(name: str) -> str:
    name = re.sub(r"[^\w.-]", "_", name) or "unknown"
    if len(name.encode()) > _MAX_PART_BYTES:
        return f"{name[:20]}-{xxhash.xxh3_64_hexdigest(name.encode())}"
    return name
