"""Writes a finished corpus anew: in another format, in part, or without documents that have to go.

Documents pass one by one, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from spiderling import __version__
from spiderling.base.errors import BadInput, JobdirError, SpiderlingError, StorageError
from spiderling.corpus.reader import Source, StoredDocument, stored_documents
from spiderling.export.formats import split_name
from spiderling.export.parts import Parts, Written
from spiderling.export.salvage import salvaged_sources
from spiderling.export.selection import Plan
from spiderling.frontier.storage.soundness import noted
from spiderling.jobdir.card import Manifest, Tally, checksum, provenance, software, write_pair
from spiderling.jobdir.inspection import Inspection, Segment


class Corpus(NamedTuple):
    """Where documents come from."""

    sources: list[Source]
    purposes: list[str]
    """What the documents were collected for, as far as is known (base/opt_outs.py)."""
    crawls: Sequence[Manifest] = ()
    """How the crawls among the sources were made (jobdir/card.py)."""
    troubles: Sequence[str] = ()
    """Why the states of some crawls cannot be read."""

    @property
    def documents(self) -> int:
        """How many there are; 0 if some source does not say."""
        entries = [source.entries for source in self.sources]
        return 0 if None in entries else sum(filter(None, entries))

    def stored(self, read: Callable[[Source], Iterator[StoredDocument]] = stored_documents) -> Iterator[StoredDocument]:
        """The documents in order, as *read* finds them in each source; raises BadInput and DamageError."""
        return chain.from_iterable(map(read, self.sources))


class Summary(NamedTuple):
    """The result of an export, in documents."""

    kept: int
    dropped: int
    idle: list[str]
    """Entries of the lists that no document matched."""
    files: list[Written]


def corpus_of(names: Iterable[str], is_salvage: bool = False) -> Corpus:
    """The corpus in crawl directories and files; raises BadInput when one is neither.

    A crawl may be running: its corpus is what was acknowledged, or, with *is_salvage*, whatever text there is.
    """
    sources: list[Source] = []
    purposes: set[str] = set()
    crawls: list[Manifest] = []
    troubles: list[str] = []
    for path in map(Path, names):
        if path.is_file():
            sources.append(Source(path))
            purposes |= _purposes_beside(path)
            continue
        if not path.is_dir():
            raise BadInput(f"{path} does not exist; give directories of crawls, or files of a corpus.")
        segments: list[Segment] = []
        try:
            with closing(Inspection(path)) as crawl:
                segments = crawl.segments("corpus")
                if not is_salvage:
                    _refuse_missing_segments(crawl, segments)
                purposes |= set(noted(crawl.meta, "purposes", list[str]()))
                crawls.append(provenance(crawl))
        except SpiderlingError as error:
            if not is_salvage:
                raise
            troubles.append(str(error))
        found = salvaged_sources(path, segments) if is_salvage else [Source(*segment) for segment in segments]
        if troubles and not found:
            raise BadInput(f"{path} holds no segments of a corpus either: {troubles[-1]}")
        sources += found
    return Corpus(sources, sorted(purposes), crawls, troubles)


def _refuse_missing_segments(crawl: Inspection, segments: Sequence[Segment]) -> None:
    """Raise JobdirError if the state counts other documents than its segments hold: some would be missing."""
    named = sum(segment.entries for segment in segments)
    counted = crawl.counts.get("total/documents", named)
    if named != counted:
        raise JobdirError(
            f"{crawl.database} is damaged: it counts {counted:,} documents, but the segments that it names hold "
            f"{named:,}. With --salvage all are written that the files hold."
        )


def _purposes_beside(path: Path) -> set[str]:
    """The purposes in the manifest of the export that made the file *path*."""
    for beside in path.parent.glob("*.json"):
        if not path.name.startswith(split_name(beside.stem)[0]):
            continue
        with suppress(OSError, ValueError, AttributeError, TypeError, KeyError):
            manifest = json.loads(beside.read_text("utf-8"))
            if path.name in [file["name"] for file in manifest["files"]]:
                return {purpose for purpose in manifest.get("purposes", []) if isinstance(purpose, str)}
    return set()


# -- the export


def export(
    corpus: Corpus, documents: Iterable[StoredDocument], plan: Plan, notes: Mapping[str, object] = MappingProxyType({})
) -> Summary:
    """Write those of *documents*, which come from *corpus*, that *plan* takes.

    The files appear when all are complete.  Beside them stand ``OUT.json`` and ``OUT.README.md`` (the card) and, if
    the plan names lists, ``OUT.dropped.tsv`` (id, URL and the entry that matched).  *notes* go into ``OUT.json`` as
    they are in the end.  Raises BadInput if a file exists, StorageError if one cannot be written, DamageError if a
    segment cannot be read.
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
            with suppress(OSError):  # what went wrong is told, not that it cannot be cleared away
                parts.abort()
                plan.beside(".dropped.tsv").unlink(missing_ok=True)
    return summary


def _copy(documents: Iterable[StoredDocument], parts: Parts, plan: Plan, log: IO[str], tally: Tally) -> int:
    """Copy what *plan* takes to *parts* and *tally*; returns the number of documents that its lists drop."""
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
        "sources": [str(source.path) for source in corpus.sources],
        "documents": summary.kept,
        "dropped": summary.dropped,
        "lists": dict(plan.lists),
        "selection": plan.selection.described(),
        "crawls": corpus.crawls,
    }
