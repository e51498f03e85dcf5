"""Writes a finished corpus anew: in another format, in part, or without documents that have to go.

Documents pass one by one, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple, TypeAlias

from spiderling import __version__
from spiderling.base.errors import BadInput, JobdirError, SpiderlingError, StorageError
from spiderling.base.url_lists import DropList
from spiderling.corpus.reader import Source, StoredDocument, stored_documents
from spiderling.export.formats import split_name
from spiderling.export.parts import Parts, Written
from spiderling.export.salvage import Salvage
from spiderling.export.selection import Layout, Selection
from spiderling.frontier.storage.soundness import noted
from spiderling.jobdir.card import Manifest, Tally, checksum, provenance, software, write_pair
from spiderling.jobdir.inspection import Inspection, Segment

Watch: TypeAlias = Callable[[Iterator[StoredDocument]], Iterator[StoredDocument]]


class Summary(NamedTuple):
    """The result of an export, in documents."""

    kept: int
    dropped: int
    idle: list[str]
    """Entries of the lists that no document matched."""
    files: list[Written]


class Corpus(NamedTuple):
    """Where documents come from."""

    sources: list[Source]
    purposes: list[str]
    """What the documents were collected for, as far as is known (base/opt_outs.py)."""
    documents: int = 0
    """How many there are; 0 if some source does not say."""
    crawls: Sequence[Manifest] = ()
    """How the crawls among the sources were made (jobdir/card.py)."""
    troubles: Sequence[str] = ()
    """Why the states of some crawls cannot be read."""


def corpus_of(names: Iterable[str], salvage: Salvage | None = None) -> Corpus:
    """The corpus in crawl directories and files; raises BadInput when one is neither.

    A crawl may be running: its corpus is what was acknowledged, or, with *salvage*, whatever text there is.
    """
    sources: list[Source] = []
    purposes: set[str] = set()
    counted: list[int] = []
    crawls: list[Manifest] = []
    troubles: list[str] = []
    for path in map(Path, names):
        if path.is_dir():
            segments: list[Segment] = []
            try:
                with closing(Inspection(path)) as crawl:
                    segments = crawl.segments("corpus")
                    if salvage is None:
                        _refuse_missing_segments(crawl, segments)
                    purposes |= set(noted(crawl.meta, "purposes", list[str]()))
                    crawls.append(provenance(crawl))
            except SpiderlingError as error:
                if salvage is None:
                    raise
                troubles.append(str(error))
            if salvage is not None:
                found = salvage.sources(path, segments)
                if troubles and not found:
                    raise BadInput(f"{path} holds no segments of a corpus either: {troubles[-1]}")
                sources += found
            else:
                sources += [Source(segment.path, segment.length) for segment in segments]
                counted += [segment.entries for segment in segments]
        elif path.is_file():
            sources.append(Source(path))
            purposes |= _purposes_beside(path)
        else:
            raise BadInput(f"{path} does not exist; give directories of crawls, or files of a corpus.")
    return Corpus(sources, sorted(purposes), sum(counted) if len(counted) == len(sources) else 0, crawls, troubles)


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
    corpus: Corpus,
    out: Path,
    format_name: str,
    drop: DropList | None = None,
    lists: Mapping[str, int] = MappingProxyType({}),
    watch: Watch = iter,
    selection: Selection | None = None,
    layout: Layout = Layout(),  # noqa: B008 - immutable
    notes: Mapping[str, object] = MappingProxyType({}),
    read: Callable[[Source], Iterator[StoredDocument]] = stored_documents,
) -> Summary:
    """Write what *selection* takes of *corpus* to *out*, without what *drop* names, in files as *layout* says.

    The files appear when all are complete.  Beside them stand ``OUT.json`` and ``OUT.README.md`` (the card, with
    *lists*: name -> number of entries) and, if something may have been dropped, ``OUT.dropped.tsv`` (id, URL and the
    entry that matched).  *watch* sees every document pass, and may change it; *notes* go into ``OUT.json`` as
    they are in the end; *read* gives the documents of a source.  Raises BadInput if a file exists, StorageError if
    one cannot be written, DamageError if a segment cannot be read.
    """
    drop = drop or DropList()
    selection = selection or Selection()
    log_name = out.with_name(out.name + ".dropped.tsv")
    parts: Parts | None = None
    files: list[Written] = []
    try:
        parts = Parts(out, format_name, layout)
        with _log(log_name if lists else None) as log:
            tally = Tally()
            dropped = _copy(watch(chain.from_iterable(map(read, corpus.sources))), parts, drop, selection, log, tally)
        files = parts.commit()
        summary = Summary(sum(file.documents for file in files), dropped, sorted(drop.idle), files)
        manifest = _manifest(corpus, summary, format_name, lists, selection)
        manifest |= {"contents": tally.contents(), "files": _checked(out.parent, files), **notes}
        write_pair(manifest, out.with_name(out.name + ".README.md"), out.with_name(out.name + ".json"))
    except OSError as error:
        raise StorageError(f"{out} could not be written: {error.strerror or error}.") from error
    finally:
        if parts is not None and not files:
            with suppress(OSError):  # what went wrong is told, not that it cannot be cleared away
                parts.abort()
                log_name.unlink(missing_ok=True)
    return summary


def _copy(
    documents: Iterable[StoredDocument],
    parts: Parts,
    drop: DropList,
    selection: Selection,
    log: IO[str] | None,
    tally: Tally,
) -> int:
    """Copy what *selection* takes to *parts* and *tally*; returns the number of documents that *drop* names."""
    dropped = 0
    for document in documents:
        rule = drop.rule_for(document.attributes)
        if rule is None:
            if selection.takes(document.attributes):
                parts.add(document)
                tally.count_document(document.attributes)
        elif log is not None:
            log.write("\t".join((document.attributes.get("id", ""), document.attributes["url"], rule)) + "\n")
            dropped += 1
    return dropped


def _log(path: Path | None) -> AbstractContextManager[IO[str] | None]:
    return nullcontext() if path is None else path.open("w", encoding="utf-8")


def _manifest(
    corpus: Corpus, summary: Summary, format_name: str, lists: Mapping[str, int], selection: Selection
) -> Manifest:
    return {
        "made": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        "version": __version__,
        "software": software(),
        "format": format_name,
        "purposes": corpus.purposes,
        "sources": [str(source.path) for source in corpus.sources],
        "documents": summary.kept,
        "dropped": summary.dropped,
        "lists": dict(lists),
        "selection": selection.described(),
        "crawls": corpus.crawls,
    }


def _checked(directory: Path, files: Iterable[Written]) -> list[Manifest]:
    return [file._asdict() | {"sha256": checksum(directory / file.name)} for file in files]
