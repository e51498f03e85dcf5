"""Snapshots of the near-duplicate filter, so that a restart need not read the whole corpus.

A snapshot is one file for each layer of the filter, and an index that names the layers and the position in the corpus
up to which they hold its text.  It is written while the crawl goes on: bits are only ever added, and the index is put
in place (fsync, rename) when all documents that the layers may hold are durable.  A start reads the text behind that
position.  So the filter holds only acknowledged text, and a page that is fetched again is not its own duplicate.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from spiderling.base.atomic_files import replacing, sync_directory
from spiderling.base.errors import BadInput, StorageError
from spiderling.base.options import Options
from spiderling.base.zstd import zstd
from spiderling.corpus.near_duplicates import LINE_WORDS, Document, Hashes, Layer, NearDuplicates, ShingleFilter
from spiderling.corpus.reader import read_documents
from spiderling.corpus.segments import SUFFIX
from spiderling.text.shingles import FORM, shingles

logger = logging.getLogger(__name__)

_INDEX = "index.json"
_CHUNK_WORDS = 1 << 16
"""Words of a layer that are copied and then written (512 kB; chosen), because bits are set meanwhile."""
_LEVEL = 1
"""Level of zstd (chosen: the fastest)."""


class NearDuplicateFilter:
    """The filter of a crawl, if that looks for near-duplicates, and its snapshots."""

    def __init__(self, options: Options, directory: Path, corpus: Path, lengths: Mapping[str, int]) -> None:
        """Read the last snapshot in *directory*, and what the corpora hold that it does not cover.

        *lengths*: bytes of each segment of the *corpus*.  Raises BadInput or StorageError.
        """
        self._files = ShingleState(directory, options.filter_bytes())
        self._is_being_written = asyncio.Lock()
        """Two snapshots at a time would write the same files."""
        self._is_last_written = False
        self.near: NearDuplicates | None = None
        """None when the crawl does not look for near-duplicates."""
        if not options.knows_shingles():
            return
        seen = self._files.load_filter(corpus, lengths)
        corpora = [path.strip() for path in options.seen.split(",") if path.strip()]
        documents = self._files.load_corpora(seen, corpora)
        if documents:
            logger.info("%d documents of earlier corpora are known: what they hold is not new", documents)
        self.near = NearDuplicates(seen)

    async def write(
        self, flush: Callable[[], Awaitable[None]], lengths: Mapping[str, int], is_last: bool = False
    ) -> None:
        """Write a snapshot; raises StorageError.  After the last one none is written.

        *flush* makes all documents durable that came before; *lengths* then holds the bytes of each segment.  The
        thread that writes ends even if the caller is cancelled, so the snapshot counts as being written until then.
        """
        if self.near is not None:
            await asyncio.shield(self._write(self.near.filter, flush, lengths, is_last))

    async def _write(
        self, seen: ShingleFilter, flush: Callable[[], Awaitable[None]], lengths: Mapping[str, int], is_last: bool
    ) -> None:
        async with self._is_being_written:
            if self._is_last_written:
                return
            self._is_last_written = is_last
            await flush()  # what is not covered is read again at a start, and counted again
            covered = dict(lengths)
            written = await asyncio.to_thread(self._files.write_layers, seen)
            await flush()  # the layers may hold documents that came while they were written
            self._files.write_index(seen, written, covered)


class ShingleState:
    """The snapshots in one directory."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self.loaded: list[str] = []
        """Paths of the earlier corpora whose text the filter holds."""

    def load_filter(self, corpus: Path, lengths: Mapping[str, int]) -> ShingleFilter:
        """The filter of the *corpus* (segment -> length: *lengths*), from all its text if no snapshot can be read."""
        seen = ShingleFilter(self._max_bytes)
        covered = dict[str, int]()
        with suppress(OSError, EOFError, ValueError, KeyError, zstd.ZstdError):
            seen, covered, self.loaded = self._read()
        if any(covered[name] > lengths.get(name, 0) for name in covered):
            seen = ShingleFilter(self._max_bytes)
            covered = {}
            self.loaded = []
            for path in sorted(self._directory.iterdir(), key=lambda path: path.name != _INDEX):  # the index first
                path.unlink()  # a snapshot that stayed would seem to fit once the text is as long
        for name in sorted(lengths):
            add_documents(seen, corpus / name, covered.get(name, 0), lengths[name])
        return seen

    def load_corpora(self, seen: ShingleFilter, paths: Iterable[str]) -> int:
        """Add earlier corpora that the filter does not hold yet; returns the number of documents added.

        *paths* are prevertical files or directories of them.  Raises BadInput for one that cannot be read.
        """
        documents = 0
        for path in paths:
            name = str(Path(path).resolve())
            if name not in self.loaded:
                documents += sum(add_documents(seen, file) for file in corpus_files(Path(path)))
                self.loaded.append(name)
        return documents

    def write_layers(self, seen: ShingleFilter) -> dict[str, Any]:
        """Write the layers that changed since they were written; returns what the index says of them.

        May run in a thread.  Raises StorageError, as does `write_index`.
        """
        entries = []
        shingles = seen.shingles  # before the layers, which may hold more
        with self._writing():
            self._directory.mkdir(exist_ok=True)
            for layer in list(seen.layers):
                file = f"{layer.number:06d}-{layer.shingles}.zst"
                entry: dict[str, Any] = {"file": file, "keys": layer.shingles}
                entry |= {"documents": layer.documents, "begin": layer.begin, "at_once": layer.at_once}
                entry |= {"words": len(layer.words), "open": seen.open_words(layer)}
                if not (self._directory / file).exists():
                    _write_layer(self._directory / file, layer.words[: entry["open"]])
                entries.append(entry)
        return {"form": FORM, "shingles": shingles, "layers": entries}

    def write_index(self, seen: ShingleFilter, written: dict[str, Any], covered: Mapping[str, int]) -> None:
        """Make what was *written* the snapshot of *covered* (segment -> bytes); delete the files of older ones."""
        index = {**written, "covered": dict(covered), "forgotten": seen.forgotten, "loaded": self.loaded}
        named = {_INDEX, *(entry["file"] for entry in written["layers"])}
        with self._writing():
            with replacing(self._directory / _INDEX) as file:
                file.write(json.dumps(index).encode())
            sync_directory(self._directory)
            for path in self._directory.iterdir():
                if path.name not in named:
                    path.unlink()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"the snapshot in {self._directory}"
            raise StorageError(f"{what} could not be written: {error.strerror or error}.") from error

    def _read(self) -> tuple[ShingleFilter, dict[str, int], list[str]]:
        index = json.loads((self._directory / _INDEX).read_bytes())
        if index.get("form") != FORM:
            logger.info(
                "The near-duplicate filter was written by another version; it is made anew from the corpus, in some "
                "seconds for a million words."
            )
            raise ValueError
        layers = [_read_layer(self._directory / entry["file"], entry) for entry in index["layers"]]
        seen = ShingleFilter(self._max_bytes, layers, int(index["forgotten"]), int(index["shingles"]))
        return seen, dict(index["covered"]), list(index["loaded"])


def add_documents(seen: ShingleFilter, path: Path, start: int = 0, end: int | None = None) -> int:
    """Add the new paragraphs of *path*, bytes *start* to *end*, to the filter; returns the number of documents."""
    number = 0
    for document in read_documents(path, start, end):
        paragraphs = zip(document.paragraphs, document.details, strict=True)
        found = shingles([text for text, attributes in paragraphs if "dup" not in attributes])
        seen.remember(Document.of(found.hashes).part(seen.counted(found)))
        number += 1
    return number


def corpus_files(path: Path) -> Iterator[Path]:
    """The prevertical files of a corpus: the file *path*, or those under it; raises BadInput if there are none."""
    files = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}")) + sorted(path.rglob("*.prevert"))
    if not files:
        raise BadInput(f"{path} is no corpus: neither a prevertical file nor a directory with *{SUFFIX} in it.")
    yield from files


def _write_layer(path: Path, words: Hashes) -> None:
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with replacing(path) as file, packer.stream_writer(file, closefd=False) as stream:
        for start in range(0, len(words), _CHUNK_WORDS):
            stream.write(words[start : start + _CHUNK_WORDS].tobytes())


def _read_layer(path: Path, entry: Mapping[str, Any]) -> Layer:
    """Raises OSError, EOFError, ValueError or ZstdError when the file is not what the index says."""
    number, begin, at_once = int(entry["words"]), int(entry["begin"]), bool(entry["at_once"])
    if number % LINE_WORDS or not (begin or at_once):
        raise ValueError(f"{path} is said to be a layer that there cannot be")
    words = np.zeros(number, np.uint64)
    with zstd.open(path) as stream:
        place = words[: int(entry["open"])].data.cast("B")  # the rest stays untouched, and takes no memory
        while place and (got := stream.readinto(place)):
            place = place[got:]
        if place or stream.read(1):  # zstd checks the checksum at the end of the frame
            raise ValueError(f"{path} does not have the length that the index says")
    ordinal = int(path.name.partition("-")[0])
    return Layer(words, begin, at_once, int(entry["keys"]), int(entry["documents"]), ordinal)
