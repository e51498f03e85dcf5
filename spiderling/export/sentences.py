"""Divides the documents of an export into sentences and shuffles them.

Whoever may not copy whole texts may often publish single sentences, shuffled over the whole corpus: so do Schäfer 2015
(COW) and Goldhahn et al. 2012 (Leipzig Corpora).  They keep the address of each sentence; here it goes, so that the
texts cannot be put together again.  The memory does not grow with the corpus: sentences go to buckets on disk by a
hash of their number, and each bucket is sorted by it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import xxhash

from spiderling.base.progress import with_progress
from spiderling.corpus.reader import StoredDocument, parsed
from spiderling.text.prevertical import rendered
from spiderling.text.sentences import sentences

KEPT = ("lang", "tld")
"""Attributes of a document that its sentences keep: they lead to no page."""
_BUCKETS = 256
"""Files on disk; one of them at a time is in memory (chosen: 400 MB of 100 GB)."""


class Shuffle:
    """Takes documents; when the block ends, gives their sentences in an order that *seed* determines."""

    def __init__(self, take: Callable[[StoredDocument], None], directory: Path, seed: str) -> None:
        """*take* gets each sentence as a document; *directory* is for the buckets, and is removed at the end."""
        self._take = take
        self._directory = directory
        self._seed = seed
        self._number = 0
        self._files = ExitStack()

    def __enter__(self) -> Shuffle:
        shutil.rmtree(self._directory, ignore_errors=True)  # of a killed run
        self._directory.mkdir()
        self._paths = [self._directory / f"{number:03d}" for number in range(_BUCKETS)]
        self._buckets = [self._files.enter_context(path.open("w", encoding="utf-8")) for path in self._paths]
        return self

    def add(self, document: StoredDocument) -> None:
        """Raises OSError."""
        kept = "\t".join(document.attributes.get(name, "") for name in KEPT)
        for paragraph in parsed(document).paragraphs:
            for sentence in sentences(paragraph):
                key = xxhash.xxh3_64_intdigest(f"{self._seed}\n{self._number}".encode("utf-8", "replace"))
                self._buckets[key * _BUCKETS >> 64].write(f"{key:016x}\t{kept}\t{sentence}\n")
                self._number += 1

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._files.close()
            if error is None:
                for document in with_progress(self._shuffled(), "sentences", self._number):
                    self._take(document)
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _shuffled(self) -> Iterator[StoredDocument]:
        number = 0
        for path in self._paths:
            for line in sorted(path.read_text("utf-8").split("\n")[:-1]):
                number += 1
                _, *kept, sentence = line.split("\t")
                sizes = {"length": len(sentence.encode()), "words": len(sentence.split())}
                attributes = {"id": number, **dict(zip(KEPT, kept, strict=True)), **sizes}
                texts = {name: str(value) for name, value in attributes.items()}
                yield StoredDocument(texts, rendered(texts, [(sentence, "")]))
            path.unlink()
