"""An incremental export: a directory to which each export adds one part, with what is new since the last one.

Corpora only grow: a segment of a crawl is appended to and never changed (corpus/segments.py).  So what is new is known
exactly, whatever clocks say: the manifest of each part names the bytes of each segment that it was made of, and the
next part begins behind them.  A part, with its card, is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import xxhash

from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput, StorageError
from spiderling.base.files import PART, sync_directory, write_whole
from spiderling.base.terminal import with_progress
from spiderling.corpus.segments import Source, stored_documents
from spiderling.export.export import Plan, Summary, export
from spiderling.export.formats import ending_of
from spiderling.export.sources import Corpus
from spiderling.jobdir.card import Manifest, read_manifest
from spiderling.jobdir.inspection import SHARD_DIRECTORY

_PART = re.compile(r"part-(\d{5,})")
_TAIL_BYTES = 4096
"""Bytes before the end of what was taken of a segment, by which it is known again (chosen: several documents)."""
_LEFT_OUT = "left out"
_STANDS = "stands in"

_Row: TypeAlias = "tuple[str, str, str, str, str]"
"""What the lists say of a document: part, whether it stands in it, id, URL, entry of the list."""


class Added(NamedTuple):
    """The result of an incremental export."""

    part: str  # name of the new part, "" if there is nothing new
    summary: Summary | None  # of the new part; None if no segment has grown
    last: str  # name and time of the last part before, "" if there was none
    to_remove: int  # documents of earlier parts that the lists name


def add_part(corpus: Corpus, plan: Plan) -> Added:
    """Write what *corpus* has got since the last part into the directory *plan* names; nothing if nothing is new.

    Raises BadInput if the directory holds anything else, was begun with another selection or format, or if a segment
    is not the one that it was; StorageError and DamageError.
    """
    if any(source.length is None for source in corpus.sources):
        raise BadInput("only crawls grow, so an incremental export takes their directories, and no files.")
    with _locked(plan.out) as directory:
        try:
            for rest in directory.glob(f"part-*{PART}"):
                shutil.rmtree(rest)
            added = _Increment(corpus, plan, directory).added()
        except OSError as error:
            raise StorageError(f"{plan.out} could not be written: {error.strerror or error}.") from error
    return added


@contextmanager
def _locked(out: Path) -> Iterator[Path]:
    """The directory *out*, made if it is missing, for one export at a time."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    except FileExistsError:
        raise BadInput(f"{out} is a file; an incremental export makes a directory.") from None
    except OSError as error:
        raise StorageError(f"{out} could not be written: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield out
        if not any(out.iterdir()):
            out.rmdir()
    except BlockingIOError:
        raise BadInput(f"{out} is being written by another export.") from None
    finally:
        os.close(descriptor)


class _Increment:
    """One export into *directory*."""

    def __init__(self, corpus: Corpus, plan: Plan, directory: Path) -> None:
        self._corpus = corpus
        self._plan = plan
        self._directory = directory
        self._log = directory.with_name(f"{directory.name}.dropped.tsv")
        self._lists = xxhash.xxh3_128_hexdigest(repr((sorted(plan.drop.idle), sorted(plan.lists.items()))).encode())
        """A digest of the lists: before a document is looked at, all entries are idle."""
        self._sources = _named(corpus.sources)
        self._parts = _parts_in(directory)
        self._reached: dict[str, list[Any]] = self._last["increment"]["sources"] if self._parts else {}
        """Segment -> first byte and end of what the last part was made of, documents before the end, digest."""
        if not self._parts and (name := next((path.name for path in directory.iterdir()), "")):
            raise BadInput(f"{directory} holds other files than parts ({name}); give another.")
        for key, source in self._sources.items():
            self._refuse_changed(key, source)
        self._refuse_other_options()

    @property
    def _last(self) -> Manifest:
        return self._parts[max(self._parts)]

    def _refuse_changed(self, key: str, source: Source) -> None:
        """Raise BadInput if *source* does not begin with the bytes that earlier parts were made of."""
        _, end, _, digest = self._reached.get(key, (0, 0, 0, _tail(source.path, 0)))
        if end > (source.length or 0) or _tail(source.path, end) != digest:
            raise BadInput(
                f"{key} is not the segment that the parts in {self._directory} were made of; give another directory."
            )

    def added(self) -> Added:
        last = f"{max(self._parts)} ({self._last['made']})" if self._parts else ""
        number = 1 + max((int(name.removeprefix("part-")) for name in self._parts), default=0)
        name = f"part-{number:05d}"
        left_out, stands = self._told_before()
        grown = []
        for key, source in self._sources.items():
            _, end, documents, _ = self._reached.get(key, (0, 0, 0, ""))
            if end < (source.length or 0):
                grown.append(source._replace(start=end, entries=(source.entries or 0) - documents))
        corpus = self._corpus._replace(sources=grown)
        summary = None
        if corpus.sources:
            summary, rows = self._write(name, corpus)
            left_out += rows
        if self._plan.lists:
            rows = [("lists", self._lists, "", "", ""), *stands, *left_out]
            write_whole(self._log, "".join("\t".join(row) + "\n" for row in rows))
        part = self._directory / name
        if summary is not None and summary.files:
            part.with_name(name + PART).rename(part)
            sync_directory(self._directory)
            summary = summary._replace(directory=part)
        return Added(name if part.exists() else "", summary, last, len(stands))

    def _write(self, name: str, corpus: Corpus) -> tuple[Summary, list[_Row]]:
        """Write the part under its temporary name; also what the lists left out of it."""
        temporary = self._directory / (name + PART)
        temporary.mkdir()
        file_name = self._directory.name + ending_of(self._plan.format_name)
        plan = replace(self._plan, out=temporary / file_name)
        notes = {"increment": {"options": self._options(), "sources": dict(self._taken())}}
        documents = with_progress(corpus.stored(), "documents", corpus.documents)
        is_complete = False
        try:
            summary = export(corpus, documents, plan, notes)
            lines = plan.dropped.read_text("utf-8").splitlines() if plan.dropped.exists() else []
            plan.dropped.unlink(missing_ok=True)  # a published directory does not name what was taken down
            is_complete = bool(summary.files)
        finally:
            if not is_complete:
                shutil.rmtree(temporary, ignore_errors=True)
        return summary, [_row(f"{name}\t{_LEFT_OUT}\t{line}") for line in lines if summary.files]

    def _taken(self) -> Iterator[tuple[str, list[Any]]]:
        """What parts up to the new one are made of; segments that are not here now keep their place."""
        yield from ((key, [end, end, *rest]) for key, (_, end, *rest) in self._reached.items())
        for key, source in self._sources.items():
            length = source.length or 0
            begin = self._reached.get(key, (0, 0))[1]
            yield key, [begin, length, source.entries or 0, _tail(source.path, length)]

    # -- the same options again

    def _options(self) -> dict[str, Any]:
        """What must be the same for all parts."""
        chosen = self._plan.selection.described()
        return {
            "format": self._plan.format_name,
            "split": list(self._plan.splits),
            **{name: chosen[name] for name in ("where", "sample", "seed")},
        }

    def _refuse_other_options(self) -> None:
        """Raise BadInput if the parts that are there were made with other options."""
        options = self._options()
        former = self._last["increment"]["options"] if self._parts else options
        for name, value in options.items():
            if former.get(name) != value:
                raise BadInput(
                    f"{self._directory} was begun with the {name} {former.get(name)!r}, not {value!r}; repeat the "
                    "former options, or give another directory."
                )

    # -- lists

    def _told_before(self) -> tuple[list[_Row], list[_Row]]:
        """What lists left out of the parts that are there, and what stands in these that the lists name now."""
        lines = self._log.read_text("utf-8").splitlines() if self._log.exists() else []
        rows = [_row(line) for line in lines]
        left_out = [row for row in rows if row[0] in self._parts and row[1] == _LEFT_OUT]
        if ("lists", self._lists) in [row[:2] for row in rows[:1]]:
            return left_out, [row for row in rows if row[0] in self._parts and row[1] == _STANDS]
        return left_out, self._named_now({(part, identity, url) for part, _, identity, url, _ in left_out})

    def _named_now(self, gone: set[tuple[str, str, str]]) -> list[_Row]:
        """The documents of earlier parts that the lists name, but *gone*; reads again what these parts were made of."""
        found: list[_Row] = []
        if not self._plan.lists:
            return found
        for name, manifest in self._parts.items():
            for key, (begin, end, *_) in manifest["increment"]["sources"].items():
                if key in self._sources and begin < end:
                    source = self._sources[key]._replace(length=end, entries=None, start=begin)
                    rows = _matches(source, self._plan.drop)
                    found += [(name, _STANDS, *row) for row in rows if (name, *row[:2]) not in gone]
        return found


def _matches(source: Source, drop: DropList) -> Iterator[tuple[str, str, str]]:
    """Id, URL and entry of the documents of *source* that *drop* names."""
    for document in stored_documents(source):
        rule = drop.rule_for(document.attributes)
        if rule is not None:
            yield document.attributes.get("id", ""), document.attributes["url"], rule


def _row(line: str) -> _Row:
    part, what, identity, url, rule = line.split("\t", 4)
    return part, what, identity, url, rule


def _named(sources: Sequence[Source]) -> dict[str, Source]:
    """Each segment by the last name of its crawl, that of its shard, and its own."""
    named: dict[str, Source] = {}
    for source in sources:
        parts = source.path.resolve().parts
        key = "/".join(parts[-4 if SHARD_DIRECTORY.fullmatch(parts[-3]) else -3 :])
        if key in named:
            raise BadInput(f"two crawls have a segment {key}; an incremental export needs crawls of different names.")
        named[key] = source
    return named


def _parts_in(directory: Path) -> dict[str, Manifest]:
    """The parts in *directory* and their manifests, by number; raises BadInput if one cannot be read."""
    names = sorted((path.name for path in directory.iterdir() if _PART.fullmatch(path.name)), key=lambda n: int(n[5:]))
    parts = {}
    for name in names:
        manifests = map(read_manifest, (directory / name).glob("*.json"))
        found = next((manifest for manifest in manifests if "increment" in manifest), None)
        if found is None:
            raise BadInput(f"the manifest of {directory / name} cannot be read; put it back, or remove that part.")
        parts[name] = found
    return parts


def _tail(path: Path, end: int) -> str:
    """A digest of the last bytes before *end* in the file *path*."""
    with path.open("rb") as file:
        begin = max(0, end - _TAIL_BYTES)
        file.seek(begin)
        return xxhash.xxh3_128_hexdigest(file.read(end - begin))
