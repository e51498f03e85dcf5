"""The near-duplicate filter on disk: a snapshot from time to time, and the corpus text behind it.

A snapshot is one file for each layer of the filter, and an index that names them and the position in the corpus up to
which they cover it.  It is written while the crawl goes on: bits are only ever added, and the index is put in place
(fsync, rename) when all documents that the layers may hold are durable.  After a kill the text behind that position is
read again.  Text that was never acknowledged is not in the filter, so a page that is fetched again is not its own
duplicate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from spiderling.base.atomic_files import replacing, sync_directory
from spiderling.base.errors import BadInput, StorageError
from spiderling.base.zstd import zstd
from spiderling.corpus.near_duplicates import Layer, ShingleFilter
from spiderling.corpus.reader import read_documents
from spiderling.corpus.segments import SUFFIX
from spiderling.text.shingles import shingles

_INDEX = "index.json"
_CHUNK_WORDS = 1 << 16
"""Words of a layer that are copied at once (512 kB), since bits are set while it is written."""
_LEVEL = 1
"""Level of zstd (chosen: the fastest)."""


class ShingleState:
    """The snapshots in one directory."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self.loaded: list[str] = []
        """Earlier corpora whose text the filter holds."""

    def load_filter(self, corpus: Path, lengths: Mapping[str, int]) -> ShingleFilter:
        """The filter of a corpus whose segments have *lengths*; made from all its text if no snapshot can be read."""
        seen = ShingleFilter(self._max_bytes)
        covered = dict[str, int]()
        with suppress(OSError, EOFError, ValueError, KeyError, zstd.ZstdError):
            seen, covered, self.loaded = self._read()
        if any(covered[name] > lengths.get(name, 0) for name in covered):
            seen = ShingleFilter(self._max_bytes)
            covered = {}
            self.loaded = []
            for path in sorted(self._directory.iterdir(), key=lambda path: path.name != _INDEX):  # the index first
                path.unlink()  # or it would seem to fit once other text is as long
        for name in sorted(lengths):
            add_documents(seen, corpus / name, covered.get(name, 0), lengths[name])
        return seen

    def load_corpora(self, seen: ShingleFilter, paths: Iterable[str]) -> int:
        """Add the text of earlier corpora, unless the filter has it already; returns the number of their documents.

        *paths* are prevertical files or directories of them.  Raises BadInput for one that cannot be read.
        """
        documents = 0
        for path in paths:
            name = str(Path(path).resolve())
            if name not in self.loaded:
                documents += sum(add_documents(seen, file) for file in corpus_files(Path(path)))
                self.loaded.append(name)
        return documents

    def write_layers(self, seen: ShingleFilter) -> list[dict[str, Any]]:
        """Write all layers that are not on disk as they are; returns the entries of the index.  May run in a thread.

        Raises StorageError, as `write_index`.
        """
        entries = []
        with self._writing():
            self._directory.mkdir(exist_ok=True)
            for layer in list(seen.layers):
                shingles = layer.shingles
                documents = layer.documents
                file = f"{layer.number:06d}-{shingles}.zst"
                if not (self._directory / file).exists():
                    _write_layer(self._directory / file, layer)
                entries.append({"file": file, "words": len(layer.words), "shingles": shingles, "documents": documents})
        return entries

    def write_index(self, seen: ShingleFilter, entries: list[dict[str, Any]], covered: Mapping[str, int]) -> None:
        """Make *entries* the snapshot, covering the first bytes of each segment; delete files of older ones."""
        index = {"layers": entries, "covered": dict(covered), "forgotten": seen.forgotten, "loaded": self.loaded}
        named = {_INDEX, *(entry["file"] for entry in entries)}
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
        layers = [_read_layer(self._directory / entry["file"], entry) for entry in index["layers"]]
        seen = ShingleFilter(self._max_bytes, layers, int(index["forgotten"]))
        return seen, dict(index["covered"]), list(index["loaded"])


def add_documents(seen: ShingleFilter, path: Path, start: int = 0, end: int | None = None) -> int:
    """Remember the new paragraphs of the documents in *path* from byte *start* to *end*; returns their number."""
    number = 0
    for document in read_documents(path, start, end):
        paragraphs = zip(document.paragraphs, document.details, strict=True)
        found = shingles([text for text, attributes in paragraphs if "dup" not in attributes])
        seen.remember(found.hashes[seen.counted(found)])
        number += 1
    return number


def corpus_files(path: Path) -> Iterator[Path]:
    """The prevertical files of a corpus: *path* itself, or those under it; raises BadInput if there are none."""
    files = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}")) + sorted(path.rglob("*.prevert"))
    if not files:
        raise BadInput(f"{path} is no corpus: neither a prevertical file nor a directory with *{SUFFIX} in it.")
    yield from files


def _write_layer(path: Path, layer: Layer) -> None:
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with replacing(path) as file, packer.stream_writer(file, closefd=False) as stream:
        for start in range(0, len(layer.words), _CHUNK_WORDS):
            stream.write(layer.words[start : start + _CHUNK_WORDS].tobytes())


def _read_layer(path: Path, entry: Mapping[str, Any]) -> Layer:
    """Raises OSError, EOFError, ValueError or ZstdError when the file is not what the index says."""
    words = np.zeros(int(entry["words"]), np.uint64)
    with zstd.open(path) as stream:
        place = words.data.cast("B")
        while place and (got := stream.readinto(place)):
            place = place[got:]
        if place or stream.read(1):  # the checksum is looked at where the frame ends
            raise ValueError(f"{path} does not have the length that the index says")
    return Layer(words, int(entry["shingles"]), int(entry["documents"]), int(path.name.partition("-")[0]))
