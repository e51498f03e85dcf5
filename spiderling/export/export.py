"""Writes a finished corpus anew: in another format, a part of it, without listed documents, or as sentences.

It takes one document at a time, so memory does not grow with the corpus.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from spiderling import __version__
from spiderling.base.errors import BadInput, StorageError
from spiderling.corpus.reader import StoredDocument
from spiderling.export.files import Parts, Written
from spiderling.export.plan import Plan
from spiderling.export.sentences import Shuffle
from spiderling.export.sources import Corpus
from spiderling.jobdir.card import Manifest, Tally, checksum, last_names, software, write_pair


class Summary(NamedTuple):
    """The result of an export; numbers are of documents."""

    kept: int
    dropped: int
    idle: list[str]
    """Entries of the lists that no document matched."""
    files: list[Written]
    directory: Path
    """Where they are."""
    unit: str
    """What their entries are: "documents" or "sentences"."""


def export(
    corpus: Corpus, documents: Iterable[StoredDocument], plan: Plan, notes: Mapping[str, object] = MappingProxyType({})
) -> Summary:
    """Write the *documents* of *corpus* that *plan* takes; if there is none, nothing is written.

    Also writes the card (a manifest and a README) and, if the plan names lists, a log of what they left out.  *notes*,
    read when all documents are written, go into the manifest.  Raises BadInput if a file exists, StorageError if one
    cannot be written, DamageError if a segment cannot be read.
    """
    crawled = {source.path.resolve() for source in corpus.sources if source.length is not None}
    if plan.out.resolve() in crawled:
        raise BadInput(f"{plan.out} is a segment of a crawl; give another name.")
    parts: Parts | None = None
    files: list[Written] = []
    try:
        parts = Parts(plan)
        tally = Tally()
        log_path = plan.dropped if plan.lists else Path(os.devnull)
        shuffled = Shuffle(parts.add, plan.workspace, plan.selection.seed)
        with log_path.open("w", encoding="utf-8") as log, shuffled if plan.shuffle else nullcontext(parts) as sink:
            dropped = _copy(documents, sink, plan, log, tally)
        if tally.documents:
            files = parts.commit()
            manifest = _manifest(corpus, plan, dropped, tally, files, parts.names)
            write_pair({**manifest, **notes}, plan.readme, plan.manifest)
    except OSError as error:
        raise StorageError(f"{plan.out} could not be written: {error.strerror or error}.") from error
    finally:
        if parts is not None and not files:
            with suppress(OSError):  # the first error is told, not one while clearing away
                plan.dropped.unlink(missing_ok=True)
                parts.abort()
    return Summary(tally.documents, dropped, sorted(plan.drop.idle), files, plan.directory, plan.unit)


def _copy(documents: Iterable[StoredDocument], sink: Parts | Shuffle, plan: Plan, log: IO[str], tally: Tally) -> int:
    """Add the documents that *plan* takes to *sink* and *tally*; returns how many its lists drop."""
    dropped = 0
    for document in documents:
        attributes = document.attributes
        rule = plan.drop.rule_for(attributes)
        if rule is not None:
            log.write("\t".join((attributes.get("id", ""), attributes["url"], rule)) + "\n")
            dropped += 1
        elif plan.selection.takes(attributes):
            sink.add(document)
            tally.count_document(attributes)
    return dropped


def _manifest(
    corpus: Corpus, plan: Plan, dropped: int, tally: Tally, files: Iterable[Written], parts: Iterable[str]
) -> Manifest:
    found: Manifest = {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "version": __version__,
        "software": software(),
        "format": plan.format_name,
        "unit": plan.unit,
        "purposes": corpus.purposes,
        "sources": [source.path.name for source in corpus.sources],
        "documents": tally.documents,
        "dropped": dropped,
        "lists": {last_names(name): number for name, number in plan.lists.items()},
        "selection": plan.selection.described(),
        "crawls": corpus.crawls,
        "contents": tally.contents(),
        "files": [
            {"name": name, plan.unit: entries, "bytes": size, "sha256": checksum(plan.directory / name)}
            for name, entries, size in files
        ],
    }
    if plan.format_name == "vertical":
        found["registries"] = [plan.registry(part).name for part in parts]
    return found | ({"configs": _configs(parts)} if plan.is_dataset else {})


def _configs(parts: Iterable[str]) -> list[Manifest]:
    """The subsets of a dataset, as hubs and ``datasets`` read them: all of it, and each part."""
    paths = {"default": "data/*.parquet"} | {part: f"data/{part}-?????.parquet" for part in parts if part}
    return [{"config_name": name, "data_files": [{"split": "train", "path": path}]} for name, path in paths.items()]
