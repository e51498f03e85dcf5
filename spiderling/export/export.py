"""Writes a finished corpus again: in another format, a part of it, or without listed documents.

It takes one document at a time, so memory does not grow with the corpus.  Files have temporary names until all are
complete.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import xxhash

from spiderling import __version__
from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput
from spiderling.base.files import PART, checksum, part_of, saving, sync_directory, sync_file, write_whole
from spiderling.base.machine import require
from spiderling.corpus.receipts import CONSENT, RECEIPTS, SUMS, MerkleTree
from spiderling.corpus.segments import StoredDocument
from spiderling.export.croissant import CROISSANT, croissant_of
from spiderling.export.formats import PACKED, Annotate, Registry, TextWriter, corpora_xml, split_name, writer
from spiderling.export.personal_data import PersonalData
from spiderling.export.sources import Corpus, Expressions, Selection
from spiderling.jobdir.card import (
    MANIFEST,
    README,
    Manifest,
    Tally,
    beside,
    last_names,
    read_manifest,
    software,
    write_pair,
    write_sums,
)
from spiderling.jobdir.consent import ConsentLedger, ReceiptMaker

REGISTRY = ".vert.registry"
_CARD = (RECEIPTS, CONSENT, README, MANIFEST, CROISSANT, SUMS)  # files of a dataset beside its data
_MAX_PART_BYTES = 100  # bytes of a part's name in a file's name; chosen: file systems allow 255 bytes for all


@dataclass(frozen=True)
class ExportPlan:
    """Which documents an export writes, and into which files."""

    out: Path
    """The file; with splits, its name is the pattern of the files' names.  The directory of a dataset."""
    format_name: str
    splits: tuple[str, ...] = ()  # expressions whose values name the parts, the outermost first
    shard_bytes: int = 0  # bytes from which on another file follows; 0: no limit
    selection: Selection = field(default_factory=Selection)
    drop: DropList = field(default_factory=DropList)  # hosts and URLs whose documents are left out
    lists: Mapping[str, int] = field(default_factory=dict)  # file with entries of `drop` -> number of its entries
    is_dataset: bool = False  # whether `out` is a directory in the form that ``datasets.load_dataset`` reads
    annotate: Annotate | None = None  # of CoNLL-U
    personal: PersonalData | None = None  # marks or masks personal data

    def __post_init__(self) -> None:
        """Raises BadInput for a plan that cannot be carried out."""
        if self.format_name == "parquet":
            require("parquet")
            if self.out.name.endswith(PACKED):
                raise BadInput(f"{self.out.name}: Parquet is packed by itself; leave the last ending out.")
        if self.is_dataset and self.format_name != "parquet":
            raise BadInput(f"{self.out}/ is a directory, which gets Parquet; leave --format out, or name a file.")
        if self.annotate and self.format_name != "conllu":
            raise BadInput(f"{self.out}: annotations stand in CoNLL-U alone; give a name with .conllu, or --format.")
        self.split_by.values({})

    @cached_property
    def split_by(self) -> Expressions:
        return Expressions(self.splits, "split, such as lang, tld, distance or substr(crawl_date, 1, 7) for the month")

    def part_of(self, attributes: Mapping[str, str]) -> str:
        """The part of a document, as text for a file's name; "" without splits."""
        return ".".join(_safe("" if value is None else str(value)) for value in self.split_by.values(attributes))

    def data_file(self, part: str, number: int) -> Path:
        if self.is_dataset:
            return self.out / "data" / f"{part or 'all'}-{number:05d}.parquet"
        shard = f"-{number:05d}" if self.shard_bytes else ""
        return self.beside(part, f"{shard}{split_name(self.out.name)[1]}")

    def beside(self, part: str, ending: str) -> Path:
        """The path of a file of a *part* with that *ending*."""
        return self.out.with_name(self._stem(part) + ending)

    def _stem(self, part: str) -> str:
        stem, _ = split_name(self.out.name)
        return f"{stem}.{part}" if part else stem

    def corpus_name(self, part: str) -> str:
        """The name of a part as a corpus of a server."""
        return re.sub(r"\W+", "_", self._stem(part)).lower()

    @property
    def directory(self) -> Path:
        """The directory that the names in the manifest are relative to."""
        return self.out if self.is_dataset else self.out.parent

    def named(self, name: str) -> Path:
        """The file *name* of a card, in the directory of a dataset; else beside `out`."""
        return self.out / name if self.is_dataset else beside(self.out, name)

    @property
    def dropped(self) -> Path:
        """The log of documents that lists left out; never in a directory that will be published."""
        out = self.out.absolute()
        return out.parent / f"{out.name}.dropped.tsv"


def _safe(name: str) -> str:
    name = re.sub(r"[^\w.-]", "_", name) or "unknown"
    if len(name.encode()) > _MAX_PART_BYTES:
        return f"{name[:20]}-{xxhash.xxh3_64_hexdigest(name.encode())}"
    return name


MAX_WAITING_CHARS = 64_000_000  # characters that wait to be written to all open files together; chosen


class WrittenFile(NamedTuple):
    """A complete file."""

    name: str
    documents: int
    bytes: int
    sha256: str


class Parts:
    """Distributes documents to files, in memory that does not grow with their number or size."""

    def __init__(self, plan: ExportPlan, ledgers: Mapping[Path, ConsentLedger]) -> None:
        """Raises BadInput if the output exists, OSError if it cannot be written."""
        self._plan = plan
        self._ledgers = ledgers
        self._open: dict[str, TextWriter] = {}  # part -> the file that it goes into
        self._complete: defaultdict[str, list[TextWriter]] = defaultdict(list)
        self._registries: defaultdict[str, Registry] = defaultdict(Registry)
        if plan.is_dataset:
            self._make_directory()
        else:
            self._refuse_another()
        if not plan.splits:
            self._begin("")  # a name that cannot be written is told before the corpus is read
        place = plan.out / "data" / plan.out.name if plan.is_dataset else plan.out
        self._others = {name: part_of(beside(place, name)) for name in (CONSENT, RECEIPTS)}
        self._consent = self._others[CONSENT].open("wb")
        self._maker = ReceiptMaker(self._consent)

    def _make_directory(self) -> None:
        """Raise BadInput if the directory holds anything but what a killed export may have left."""
        out = self._plan.out
        data = out / "data"
        rests = [*data.iterdir()] if data.is_dir() else []
        card = [*map(self._plan.named, _CARD if rests else ())]
        others = {*out.iterdir()} - {data, *card, *map(part_of, card)} if out.is_dir() else {out}
        is_free = not others and all(rest.suffix == PART for rest in rests)
        if out.exists() and not is_free:
            raise BadInput(f"{out} exists; give the name of a new or an empty directory.")
        data.mkdir(parents=True, exist_ok=True)
        for rest in rests:
            rest.unlink()

    def _refuse_another(self) -> None:
        """Raise BadInput if the card of this export would replace that of other files, as of other splits."""
        card = self._plan.named(MANIFEST)
        try:
            files = [self._plan.directory / file["name"] for file in read_manifest(card)["files"]]
        except (KeyError, TypeError):  # there is none, or it is none of ours
            files = [card]
        own = self._plan.data_file("", 1)  # which is judged when it is begun
        if path := next((path for path in files if path != own and path.exists()), None):
            raise BadInput(f"{path} exists, and {card} would be replaced; remove it, or give another name.")

    def add(self, document: StoredDocument) -> bool:
        """Write *document*; False if nothing of it stands in the format.  Raises BadInput and OSError."""
        name = self._plan.part_of(document.attributes)
        file = self._open.get(name) or self._begin(name)
        is_written = file.add(document)
        if file.waiting == 0 and 0 < self._plan.shard_bytes <= file.size:
            self._close(name)
        if len(self._open) > 1 and sum(one.waiting for one in self._open.values()) > MAX_WAITING_CHARS:
            for one in self._open.values():
                if one.waiting >= MAX_WAITING_CHARS / len(self._open):  # at least the mean
                    one.flush()
        return is_written

    def _begin(self, name: str) -> TextWriter:
        plan = self._plan
        path = plan.data_file(name, len(self._complete[name]) + 1)
        self._open[name] = writer(path, plan.format_name, self._registries[name], plan.annotate, self._receipt)
        return self._open[name]

    def _receipt(self, text: bytes, document: StoredDocument) -> bytes:
        attributes = document.attributes
        ledger = self._ledgers.get(document.place)
        return self._maker.receipt(text, attributes.get("url", ""), attributes.get("crawl_date", ""), ledger).packed()

    def _close(self, name: str) -> None:
        self._open[name].close()
        self._complete[name].append(self._open.pop(name))

    @property
    def names(self) -> list[str]:
        return sorted(self._complete)

    def complete(self) -> list[WrittenFile]:
        """Make all files durable; the documents keep their temporary names.  Raises OSError and StorageError."""
        for name in list(self._open):
            self._close(name)
        found = []
        tree = MerkleTree()
        with self._others[RECEIPTS].open("wb") as receipts:
            for file in sorted(chain.from_iterable(self._complete.values()), key=attrgetter("path")):
                sync_file(file.temporary)
                name = file.path.relative_to(self._plan.directory).as_posix()
                size = file.temporary.stat().st_size
                found.append(WrittenFile(name, file.documents, size, checksum(file.temporary)))
                for receipt in file.take_receipts():
                    receipts.write(receipt.packed())
                    tree.add(receipt.leaf)
        self._maker.consent.flush()
        self._consent.close()
        for name, temporary in self._others.items():
            sync_file(temporary)
            temporary.replace(self._plan.named(name))
        self.root = tree.root()
        return found

    def commit(self) -> None:
        """Give the documents their names, when all else is there; raises OSError."""
        plan = self._plan
        if plan.format_name == "vertical":
            for name in self.names:
                names = [file.path.name for file in self._complete[name]]
                text = self._registries[name].text(plan.corpus_name(name), names)
                write_whole(plan.beside(name, REGISTRY), text)
            write_whole(plan.beside("", ".vert.corpora.xml"), corpora_xml(map(plan.corpus_name, self.names)))
        for file in chain.from_iterable(self._complete.values()):
            file.temporary.replace(file.path)
        sync_directory(plan.data_file("", 1).parent)

    def abort(self) -> None:
        """Remove the files with temporary names, and the directory of a dataset that has no others."""
        for file in chain(self._open.values(), *self._complete.values()):
            file.temporary.unlink(missing_ok=True)
        self._consent.close()
        for temporary in self._others.values():
            temporary.unlink(missing_ok=True)
        if self._plan.is_dataset:
            with suppress(OSError):
                (self._plan.out / "data").rmdir()
                for name in _CARD:
                    self._plan.named(name).unlink(missing_ok=True)
                self._plan.out.rmdir()


class Summary(NamedTuple):
    """The result of an export; numbers are of documents."""

    kept: int
    dropped: int
    idle: list[str]  # entries of the lists that no document matched
    files: list[WrittenFile]
    directory: Path  # where they are


def export(
    corpus: Corpus,
    documents: Iterable[StoredDocument],
    plan: ExportPlan,
    notes: Mapping[str, object] = MappingProxyType({}),
) -> Summary:
    """Write the *documents* of *corpus* that *plan* takes; if there is none, nothing is written.

    Also writes the card (a manifest and a README) and, if lists left documents out, a log of these.  *notes*,
    read when all documents are written, go into the manifest.  Raises BadInput if a file exists, or if something was
    taken down meanwhile, StorageError if one cannot be written, DamageError if a segment cannot be read.
    """
    parts: Parts | None = None
    files: list[WrittenFile] = []
    try:
        with saving(plan.out), _log_of(plan) as log:
            parts = Parts(plan, corpus.ledgers)
            tally = Tally()
            dropped = _copy(documents, parts, plan, log, tally)
            corpus.refuse_changes()
            if tally.documents:
                found = parts.complete()
                manifest = _manifest(corpus, plan, dropped, tally, found, parts.names)
                manifest |= {"receipts": {"root": parts.root}, **notes}
                log.flush()
                if dropped:
                    part_of(plan.dropped).replace(plan.dropped)
                write_pair(manifest, plan.named(README), plan.named(MANIFEST))
                others = [*map(plan.named, (RECEIPTS, CONSENT, README, MANIFEST))]
                if plan.is_dataset:
                    others.append(plan.named(CROISSANT))
                    write_whole(others[-1], json.dumps(croissant_of(manifest), indent=1, ensure_ascii=False) + "\n")
                write_sums(plan.named(SUMS), manifest, others)
                parts.commit()
                files = found
    finally:
        for ledger in corpus.ledgers.values():
            ledger.close()
        if parts is not None and not files:
            with suppress(OSError):  # the first error is told, not one while clearing away
                parts.abort()
    return Summary(tally.documents, dropped, sorted(plan.drop.idle), files, plan.directory)


@contextmanager
def _log_of(plan: ExportPlan) -> Iterator[IO[str]]:
    """The log of what lists leave out, which has a temporary name; raises BadInput if another export writes there."""
    part = part_of(plan.dropped)
    with part.open("a", encoding="utf-8") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another export writes {plan.out} now; wait for its end, or give another name.") from None
        except OSError:  # of a file system without locks, where an export may be written too
            pass
        try:
            log.truncate(0)
            yield log
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _copy(documents: Iterable[StoredDocument], parts: Parts, plan: ExportPlan, log: IO[str], tally: Tally) -> int:
    """Add the documents that *plan* takes to *parts* and *tally*; returns how many its lists drop."""
    dropped = 0
    for document in documents:
        attributes = document.attributes
        rule = plan.drop.rule_for(attributes)
        if rule is not None:
            log.write("\t".join((attributes.get("id", ""), attributes["url"], rule)) + "\n")
            dropped += 1
        elif plan.selection.takes(attributes):
            written = plan.personal.treated(document) if plan.personal else document
            if parts.add(written):
                tally.count_document(written.attributes)
            else:
                plan.selection.left_out["having no sentence"] += 1
    return dropped


def _manifest(
    corpus: Corpus, plan: ExportPlan, dropped: int, tally: Tally, files: Iterable[WrittenFile], parts: Iterable[str]
) -> Manifest:
    found: Manifest = {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "version": __version__,
        "software": software(),
        "format": plan.format_name,
        "purposes": corpus.purposes,
        "sources": [source.path.name for source in corpus.sources],
        "documents": tally.documents,
        "dropped": dropped,
        "lists": {last_names(name): number for name, number in plan.lists.items()},
        "selection": plan.selection.described(),
        "crawls": corpus.crawls,
        "contents": tally.contents(),
        "files": [file._asdict() for file in files],
    }
    if plan.personal:
        found["personal_data"] = plan.personal.counts()
    if plan.format_name == "vertical":
        found["registries"] = [plan.beside(part, REGISTRY).name for part in parts]
    if plan.is_dataset:  # its subsets, as hubs and ``datasets`` read them: all of it, and each part
        paths = {"default": "data/*.parquet"} | {part: f"data/{part}-?????.parquet" for part in parts if part}
        found["configs"] = [
            {"config_name": name, "data_files": [{"split": "train", "path": path}]} for name, path in paths.items()
        ]
    return found
