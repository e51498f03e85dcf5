"""Writes a finished corpus anew: in another format, a part of it, or without listed documents.

It takes one document at a time, so memory does not grow with the corpus.  The files have temporary names until all
are complete.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from spiderling import __version__
from spiderling.base.atomic_files import part_of, sync_directory, sync_file
from spiderling.base.errors import BadInput, StorageError
from spiderling.corpus.reader import StoredDocument
from spiderling.export.formats import split_name, writer
from spiderling.export.selection import Plan
from spiderling.export.sources import Corpus
from spiderling.jobdir.card import Tally, checksum, last_names, software, write_pair
from spiderling.jobdir.card_page import Manifest

MAX_WAITING_CHARS = 64_000_000
"""Characters that wait to be written to all open files together (chosen)."""
MAX_OPEN = 256
"""Parquet files at once; each stays open until it is complete (chosen)."""


class Written(NamedTuple):
    """A complete file."""

    name: str
    documents: int
    bytes: int


class Summary(NamedTuple):
    """The result of an export; numbers are of documents."""

    kept: int
    dropped: int
    idle: list[str]
    """Entries of the lists that no document matched."""
    files: list[Written]


def export(
    corpus: Corpus, documents: Iterable[StoredDocument], plan: Plan, notes: Mapping[str, object] = MappingProxyType({})
) -> Summary:
    """Write the *documents* of *corpus* that *plan* takes.

    Also writes ``OUT.json`` and ``OUT.README.md`` (the card) and, if the plan names lists, ``OUT.dropped.tsv`` (id, URL
    and the entry that matched).  *notes*, read when all documents are written, go into ``OUT.json``.  Raises BadInput
    if a file exists, StorageError if one cannot be written, DamageError if a segment cannot be read.
    """
    out = plan.out
    log_path = plan.beside(".dropped.tsv") if plan.lists else Path(os.devnull)
    parts: Parts | None = None
    files: list[Written] = []
    try:
        parts = Parts(plan)
        tally = Tally()
        with log_path.open("w", encoding="utf-8") as log:
            dropped = _copy(documents, parts, plan, log, tally)
        files = parts.commit()
        summary = Summary(sum(file.documents for file in files), dropped, sorted(plan.drop.idle), files)
        checked = [file._asdict() | {"sha256": checksum(out.parent / file.name)} for file in files]
        manifest = _manifest(corpus, summary, plan) | {"contents": tally.contents(), "files": checked, **notes}
        write_pair(manifest, plan.beside(".README.md"), plan.beside(".json"))
    except OSError as error:
        raise StorageError(f"{out} could not be written: {error.strerror or error}.") from error
    finally:
        if parts is not None and not files:
            with suppress(OSError):  # the first error is told, not one while clearing away
                parts.abort()
                plan.beside(".dropped.tsv").unlink(missing_ok=True)
    return summary


def _copy(documents: Iterable[StoredDocument], parts: Parts, plan: Plan, log: IO[str], tally: Tally) -> int:
    """Add the documents that *plan* takes to *parts* and *tally*; returns how many its lists drop."""
    dropped = 0
    for document in documents:
        attributes = document.attributes
        rule = plan.drop.rule_for(attributes)
        if rule is not None:
            log.write("\t".join((attributes.get("id", ""), attributes["url"], rule)) + "\n")
            dropped += 1
        elif plan.selection.takes(attributes):
            parts.add(document)
            tally.count_document(attributes)
    return dropped


def _manifest(corpus: Corpus, summary: Summary, plan: Plan) -> Manifest:
    return {
        "made": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        "version": __version__,
        "software": software(),
        "format": plan.format_name,
        "purposes": corpus.purposes,
        "sources": [source.path.name for source in corpus.sources],
        "documents": summary.kept,
        "dropped": summary.dropped,
        "lists": {last_names(name): number for name, number in plan.lists.items()},
        "selection": plan.selection.described(),
        "crawls": corpus.crawls,
    }


# -- the files


class _Shard:
    """A file that is being written."""

    def __init__(self, path: Path, format_name: str) -> None:
        """Raises BadInput if *path* exists."""
        if path.exists():
            raise BadInput(f"{path} exists; remove it, or give another name.")
        self.path = path
        self.part = part_of(path)
        self.documents = 0
        try:
            self.writer = writer(self.part, path.name, format_name)
        except OSError:
            with suppress(OSError):
                self.part.unlink(missing_ok=True)
            raise


class Parts:
    """Distributes documents to files, in memory that does not grow with their number or size."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._open: dict[str, _Shard] = {}
        self._complete: list[_Shard] = []
        self._numbers: Counter[str] = Counter()
        """Part -> number of its files."""
        if not plan.splits:
            self._begin("")  # a corpus without documents makes a file, too

    def add(self, document: StoredDocument) -> None:
        """Raises BadInput and OSError."""
        name = self._plan.part_of(document.attributes)
        shard = self._open.get(name) or self._begin(name)
        shard.writer.add(document)
        shard.documents += 1
        if shard.writer.waiting == 0 and 0 < self._plan.shard_bytes <= shard.part.stat().st_size:
            self._close(name)
        if len(self._open) > 1 and sum(one.writer.waiting for one in self._open.values()) > MAX_WAITING_CHARS:
            for one in self._open.values():
                if one.writer.waiting >= MAX_WAITING_CHARS / len(self._open):  # at least the mean
                    one.writer.flush()

    def _begin(self, name: str) -> _Shard:
        """Open the next file of the part *name*."""
        plan = self._plan
        if plan.format_name == "parquet" and len(self._open) >= MAX_OPEN:
            raise BadInput(
                f"the split makes more than {MAX_OPEN} files, too many for Parquet; take another format, or "
                "select a part of the corpus with --where."
            )
        stem, ending = split_name(plan.out.name)
        if plan.shard_bytes:
            self._numbers[name] += 1
            ending = f"-{self._numbers[name]:05d}{ending}"
        path = plan.out.with_name(f"{stem}.{name}{ending}" if name else stem + ending)
        self._open[name] = _Shard(path, plan.format_name)
        return self._open[name]

    def _close(self, name: str) -> None:
        shard = self._open[name]
        shard.writer.close()
        self._complete.append(shard)
        del self._open[name]

    def commit(self) -> list[Written]:
        """Complete all files and give them their names; raises OSError."""
        for name in list(self._open):
            self._close(name)
        for shard in self._complete:
            sync_file(shard.part)
        for shard in self._complete:
            shard.part.replace(shard.path)
        sync_directory(self._plan.out.parent)
        return sorted(Written(s.path.name, s.documents, s.path.stat().st_size) for s in self._complete)

    def abort(self) -> None:
        """Remove the files with temporary names."""
        for shard in [*self._open.values(), *self._complete]:
            shard.part.unlink(missing_ok=True)
