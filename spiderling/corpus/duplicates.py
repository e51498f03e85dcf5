"""What is known of all kept text, by which duplicates are found: digests for exact ones, shingles for near ones.

**Near-duplicates** are paragraphs, by onion's rule over all text kept before (Pomikálek 2011, section 5.3; Suchomel &
Pomikálek 2012, section 3.2).  A paragraph is a duplicate if more than half of its shingles were seen in documents kept
before, or in paragraphs before it in its own document that are no duplicates.  A document is remembered in the step in
which it goes to the checkpoint, so the filter never holds a document that could be lost; from judgement to that step it
is pending.

The seen shingles stand in a Bloom filter in memory.  A shingle takes three bits in each of two 64-bit words of one
line of the processor's cache (a blocked Bloom filter, Putze et al. 2007), so a look-up reads one place of each layer.
A full layer is followed by one that is as large as all before it together, so memory doubles in steps.

A paragraph that is shorter than a shingle has no second one to outvote a chance, so it stands under two hashes.

``max_bytes`` bounds all layers together.  Beyond half of it only every fourth shingle of a longer paragraph counts; at
the bound the oldest layer is forgotten.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import BadInput
from spiderling.base.files import replacing, saving, sync_directory, zstd
from spiderling.base.options import Options
from spiderling.base.terminal import entries_of
from spiderling.corpus.segments import SUFFIX, read_documents
from spiderling.frontier.storage.seen import KeyTable
from spiderling.text.fingerprints import FORM, ODD, Shingles, shingles


class DigestSet:
    """Digests of pages and texts, for exact duplicates.

    The digests of a page in work can be taken back; those of a page that was kept stay.
    """

    def __init__(self, digests: Iterable[int]) -> None:
        self._kept = KeyTable()
        self._kept.load(np.fromiter(digests, np.int64))
        self._pending: set[int] = set()

    def isdisjoint(self, digests: Collection[int]) -> bool:
        return self._pending.isdisjoint(digests) and len(self._kept.missing(digests)) == len(digests)

    def update(self, digests: Iterable[int]) -> None:
        """A page with these digests is in work."""
        self._pending.update(digests)

    def difference_update(self, digests: Iterable[int]) -> None:
        """The page in work was not kept: forget its digests."""
        self._pending.difference_update(digests)

    def keep(self, digests: Iterable[int]) -> None:
        """The page in work was kept."""
        for digest in digests:
            self._pending.discard(digest)
            self._kept.add(digest)


def digest_key(digest: bytes) -> int:
    """The first 64 bits of an xxh3_128 digest, as a signed integer.

    At 10^7 kept pages, one crawl in 10^5 would take two different pages for duplicates.
    """
    return int.from_bytes(digest[:8], "big", signed=True)


def unsigned_key(digest: bytes) -> int:
    """The first 64 bits of an xxh3_128 digest, as an unsigned integer: the key of a text."""
    return int.from_bytes(digest[:8], "big")


MAX_SEEN_SHARE = 0.5  # share of a paragraph's shingles above which it is a duplicate (Pomikálek 2011: onion's default)
FIRST_BYTES = 1 << 23  # size of the first layer where there is room; chosen
BYTES_PER_SHINGLE = 1.7
"""Bytes per shingle of a full layer, which takes one new shingle in 330 for seen (chosen by benchmarks/dedup.py)."""
TOLD = 3
"""Shingles of a paragraph that other shards are told; two of them have to be known then.  Chosen: that is so for 9 in a
hundred paragraphs of which a third stands in one of another shard, for 33 of which half does, for 96 of nine tenths."""
_LARGEST_SHARE = 4  # ``max_bytes`` / the largest layer, so that not much is forgotten at once; chosen
_MIN_SAMPLED = 8  # paragraphs with fewer shingles are not sampled, because the sample could miss them all; chosen
_SAMPLE_MASK = np.uint64(6)  # a shingle is in the sample if these two bits of its hash are zero: one in four; chosen
_MIX = np.uint64(0xD1342543DE82EF95)
_OTHER = np.uint64(0xAEF17502108EF2D9)
"""Odd constants of multiplicative hashing: for the bits in a layer, and for the second hash of a shingle."""
LINE_WORDS = 8  # words of a line of the cache
_HALF = np.uint64(32)

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Owners = NDArray[np.int64]
NO_HASHES: Hashes = np.zeros(0, np.uint64)


class Keys(NamedTuple):
    """What a layer of any size has to know of some hashes."""

    place: Hashes  # place in a layer of 2**32 words
    apart: Hashes  # the two words of a line differ in these bits of their places
    first: Hashes
    second: Hashes  # up to three bits in each of two words

    @classmethod
    def of(cls, hashes: Hashes) -> Keys:
        mixed = hashes * _MIX
        bits = _three_bits()
        first = mixed >> np.uint64(48)
        second = (mixed >> _HALF) & np.uint64(0xFFFF)
        apart = (mixed >> np.uint64(29)) & np.uint64(LINE_WORDS - 1)
        return cls(hashes >> _HALF, apart, bits.take(first.view(np.int64)), bits.take(second.view(np.int64)))

    def those(self, which: Flags) -> Keys:
        return Keys(self.place[which], self.apart[which], self.first[which], self.second[which])


@lru_cache(maxsize=1)
def _three_bits() -> Hashes:
    """Words with up to three bits set, by a number of 16 bits."""
    mixed = (np.arange(1, (1 << 16) + 1, dtype=np.uint64) * _OTHER) >> _HALF
    mixed *= _MIX
    bits = [np.uint64(1) << ((mixed >> np.uint64(shift)) & np.uint64(63)) for shift in (58, 52, 46)]
    return np.asarray(bits[0] | bits[1] | bits[2], np.uint64)


@dataclass(slots=True)
class Layer:
    """One layer of the filter."""

    words: Hashes
    shingles: int = 0  # number of shingles that it was given
    documents: int = 0
    number: int = 0  # place among all layers of the filter, forgotten ones included

    @property
    def is_full(self) -> bool:
        """Whether the next layer is begun."""
        return self.shingles * BYTES_PER_SHINGLE >= self.words.nbytes

    def seen(self, keys: Keys) -> Flags:
        """For each of *keys*, whether it is remembered here."""
        first, second = self._words_of(keys)
        found: Flags = self.words.take(first) & keys.first == keys.first
        found &= self.words.take(second) & keys.second == keys.second
        return found

    def remember(self, keys: Keys) -> None:
        first, second = self._words_of(keys)
        np.bitwise_or.at(self.words, first, keys.first)
        np.bitwise_or.at(self.words, second, keys.second)
        self.shingles += len(keys.place)

    def _words_of(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = (keys.place * np.uint64(len(self.words))) >> _HALF
        return first.view(np.int64), (first ^ keys.apart).view(np.int64)


@dataclass(slots=True)
class ShingleFilter:
    """The seen shingles.

    It may take a new shingle for seen, but never a remembered one for new.
    """

    max_bytes: int
    layers: list[Layer] = field(default_factory=list)
    forgotten: int = 0  # number of documents whose shingles were forgotten

    @property
    def documents(self) -> int:
        return sum(layer.documents for layer in self.layers)

    @property
    def bytes(self) -> int:
        """Bytes of all layers; the system gives memory to those that were written."""
        return sum(layer.words.nbytes for layer in self.layers)

    @property
    def is_sampling(self) -> bool:
        """Whether only every fourth shingle counts."""
        return 2 * self.bytes > self.max_bytes

    def counted(self, found: Shingles) -> Flags:
        """For each of a document's shingles, whether it counts; of longer paragraphs perhaps only a sample."""
        if not self.is_sampling:
            return np.ones(len(found.hashes), np.bool_)
        is_short = np.repeat(found.counts < _MIN_SAMPLED, found.counts)
        counted: Flags = is_short | (found.hashes & _SAMPLE_MASK == 0)
        return counted

    def seen(self, keys: Keys) -> Flags:
        """For each of *keys*, whether it is remembered."""
        found = np.zeros(len(keys.place), np.bool_)
        for layer in self.layers:
            found |= layer.seen(keys)
        return found

    def remember(self, keys: Keys, documents: int = 1) -> None:
        """Remember *keys*, those of the new shingles of one document that count."""
        newest = self._open_layer()
        newest.documents += documents
        newest.remember(keys)

    def _open_layer(self) -> Layer:
        largest = self.max_bytes // _LARGEST_SHARE
        if not self.layers:
            self.layers.append(Layer(_zeros(min(FIRST_BYTES, largest))))
        newest = self.layers[-1]
        if newest.is_full:
            words = _zeros(min(self.bytes, largest))
            while self.layers and self.bytes + words.nbytes > self.max_bytes:
                self.forgotten += self.layers.pop(0).documents
            self.layers.append(Layer(words, number=newest.number + 1))
        return self.layers[-1]


def _zeros(size: int) -> Hashes:
    """Words of *size* bytes, in whole lines of the cache; they take memory when they are first written."""
    return np.zeros(max(1, size // (8 * LINE_WORDS)) * LINE_WORDS, np.uint64)


class ShingledDocument(NamedTuple):
    """The shingles of a document as the filter knows them."""

    keys: Keys  # of each shingle, then once more of those of short paragraphs
    is_short: Flags  # for each shingle, whether it is a whole paragraph of fewer words than others

    @classmethod
    def of(cls, hashes: Hashes) -> ShingledDocument:
        is_short = hashes & ODD == ODD
        short = hashes[is_short]
        return cls(Keys.of(np.concatenate((hashes, (short ^ (short >> _HALF)) * _OTHER))), is_short)

    def seen(self, filter_: ShingleFilter) -> Flags:
        """For each shingle, whether *filter_* remembers it."""
        every = filter_.seen(self.keys)
        found = every[: len(self.is_short)]
        found[self.is_short] &= every[len(self.is_short) :]
        return found

    def part(self, which: Flags) -> Keys:
        """The keys of the shingles that *which* marks."""
        return self.keys.those(np.concatenate((which, which[self.is_short])))


class NearDuplicates:
    """Judges documents one after another; the order of the calls is the order of the corpus.

    Shards tell each other the least TOLD shingles of each new paragraph (a sketch as Broder's of 1997).  A paragraph is
    a duplicate too if more than half of its own least ones were told or seen.
    """

    def __init__(self, seen: ShingleFilter, has_others: bool = False) -> None:
        """*has_others*: there are other shards."""
        self.filter = seen
        self._has_others = has_others
        self._pending: dict[Hashable, tuple[Hashes, Keys, Hashes]] = {}

    def judge(self, key: Hashable, found: Shingles) -> Flags:
        """For each paragraph, whether it is a duplicate; the others' shingles wait under *key* until `settle`."""
        counted = self.filter.counted(found)
        document = ShingledDocument.of(found.hashes)
        seen = document.seen(self.filter)
        for hashes, *_ in self._pending.values():
            seen |= np.isin(found.hashes, hashes)
        owner = np.repeat(np.arange(len(found.counts)), found.counts)
        told, of = least_shingles(found, owner) if self._has_others else (found.hashes[:0], owner[:0])
        if len(told):
            known = np.bincount(of[ShingledDocument.of(told).seen(self.filter)], minlength=len(found.counts))
            seen |= (known > MAX_SEEN_SHARE * np.bincount(of, minlength=len(found.counts)))[owner]
        number = np.bincount(owner[counted], minlength=len(found.counts))
        least = np.asarray(MAX_SEEN_SHARE * number, np.float64)
        duplicate: Flags = np.bincount(owner[counted & seen], minlength=len(found.counts)) > least
        if found.repeats:
            duplicate = _within(found, owner, seen, counted, least)
        new = counted & ~duplicate[owner]
        self._pending[key] = found.hashes[new], document.part(new), told[~duplicate[of]]
        return duplicate

    def settle(self, key: Hashable, kept: bool) -> Hashes:
        """End the wait of the document under *key*; remember its shingles if it is *kept* (went to the checkpoint).

        Returns the least shingles of its new paragraphs, for other shards if there are any.
        """
        waiting = self._pending.pop(key, None)
        if not kept or waiting is None:
            return NO_HASHES
        self.filter.remember(waiting[1])
        return waiting[2]

    def learn(self, hashes: Hashes) -> None:
        """Another shard has kept paragraphs with these least shingles."""
        if len(hashes):
            self.filter.remember(ShingledDocument.of(hashes).keys, documents=0)


def least_shingles(found: Shingles, owner: Owners) -> tuple[Hashes, Owners]:
    """The TOLD least shingles of each paragraph, or all if it has fewer, and whose each is.

    They are changed, so that in the filter none is that of a shingle of our own: by those half of a paragraph decides.
    """
    order = np.lexsort((found.hashes, owner))
    ranks = np.arange(len(owner)) - (found.counts.cumsum() - found.counts)[owner]
    least = order[ranks < TOLD]
    return found.hashes[least] * _OTHER, owner[least]


def _within(found: Shingles, owner: Owners, seen: Flags, counted: Flags, least: NDArray[np.float64]) -> Flags:
    """For each paragraph, whether it is a duplicate of text seen before, or of paragraphs before it in the document.

    A paragraph that is a duplicate itself does not count for those behind it.
    """
    order = np.argsort(found.hashes)
    is_same = np.diff(found.hashes[order]) == 0
    repeated = np.union1d(order[1:][is_same], order[:-1][is_same])  # places of hashes that stand here twice
    known = np.bincount(owner[counted & seen], minlength=len(least))
    kept: set[int] = set()  # repeated hashes of the paragraphs that are no duplicates
    rows = zip(
        owner[repeated].tolist(), found.hashes[repeated].tolist(), (counted & ~seen)[repeated].tolist(), strict=True
    )
    for paragraph, group in groupby(rows, itemgetter(0)):
        shingles_of = list(group)
        known[paragraph] += sum([is_new and value in kept for _, value, is_new in shingles_of])
        if known[paragraph] <= least[paragraph]:
            kept.update([value for _, value, _ in shingles_of])
    return known > least


logger = logging.getLogger(__name__)

_INDEX = "index.json"
_CHUNK_WORDS = 1 << 16
"""Words of a layer that are copied and then written (512 kB; chosen), because bits are set meanwhile."""
_LEVEL = 1  # level of zstd; chosen: the fastest


class ShingleState:
    """The snapshots of the filter in one directory, so that a restart need not read the whole corpus.

    A snapshot is one file for each layer, and an index that names the layers and the position in the corpus up to which
    they hold its text.  It is written while the crawl goes on: bits are only ever added, and the index is put in place
    (fsync, rename) when all documents that the layers may hold are durable.  A start reads the text behind that
    position.  So the filter holds only acknowledged text, and a page that is fetched again is not its own duplicate.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._is_being_written = asyncio.Lock()  # two snapshots at a time would write the same files
        self._is_last_written = False
        self.loaded: list[str] = []  # paths of the earlier corpora whose text the filter holds

    def load(self, options: Options, corpus: Path, lengths: Mapping[str, int]) -> NearDuplicates | None:
        """What knows near-duplicates of the *corpus* and of earlier corpora; None if the crawl looks for none.

        It has the last snapshot, and what it does not cover.  *lengths*: bytes of each segment of the *corpus*.
        Raises BadInput or StorageError.
        """
        if not options.knows_shingles():
            return None
        seen = self.load_filter(corpus, lengths)
        documents = self.load_corpora(seen, entries_of(options.seen))
        if documents:
            logger.info("%d documents of earlier corpora are known: what they hold is not new", documents)
        return NearDuplicates(seen, options.shards > 1)

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

    async def write(
        self, seen: ShingleFilter, flush: Callable[[], Awaitable[None]], lengths: Mapping[str, int], is_last: bool
    ) -> None:
        """Write a snapshot; raises StorageError.  After the last one none is written.

        *flush* makes all documents durable that came before; *lengths* then holds the bytes of each segment.  The
        thread that writes ends even if the caller is cancelled, so the snapshot counts as being written until then.
        """

        async def work() -> None:
            async with self._is_being_written:
                if self._is_last_written:
                    return
                self._is_last_written = is_last
                await flush()  # what is not covered is read again at a start, and counted again
                covered = dict(lengths)
                written = await asyncio.to_thread(self.write_layers, seen)
                await flush()  # the layers may hold documents that came while they were written
                self.write_index(seen, written, covered)

        await asyncio.shield(work())

    def write_layers(self, seen: ShingleFilter) -> dict[str, Any]:
        """Write the layers that changed since they were written; returns what the index says of them.

        May run in a thread.  Raises StorageError, as does `write_index`.
        """
        entries = []
        with self._saving():
            self._directory.mkdir(exist_ok=True)
            for layer in list(seen.layers):
                file = f"{layer.number:06d}-{layer.shingles}.zst"
                entry = {"file": file, "keys": layer.shingles, "documents": layer.documents, "words": len(layer.words)}
                if not (self._directory / file).exists():
                    _write_layer(self._directory / file, layer.words)
                entries.append(entry)
        return {"form": FORM, "layers": entries}

    def write_index(self, seen: ShingleFilter, written: dict[str, Any], covered: Mapping[str, int]) -> None:
        """Make what was *written* the snapshot of *covered* (segment -> bytes); delete the files of older ones."""
        index = {**written, "covered": dict(covered), "forgotten": seen.forgotten, "loaded": self.loaded}
        named = {_INDEX, *(entry["file"] for entry in written["layers"])}
        with self._saving():
            with replacing(self._directory / _INDEX) as file:
                file.write(json.dumps(index).encode())
            sync_directory(self._directory)
            for path in self._directory.iterdir():
                if path.name not in named:
                    path.unlink()

    def _saving(self) -> AbstractContextManager[None]:
        return saving(f"the snapshot in {self._directory}")

    def _read(self) -> tuple[ShingleFilter, dict[str, int], list[str]]:
        index = json.loads((self._directory / _INDEX).read_bytes())
        if index.get("form") != FORM:
            logger.info(
                "The near-duplicate filter was written by another version; it is made anew from the corpus, in some "
                "seconds for a million words."
            )
            raise ValueError
        layers = [_read_layer(self._directory / entry["file"], entry) for entry in index["layers"]]
        seen = ShingleFilter(self._max_bytes, layers, int(index["forgotten"]))
        return seen, dict(index["covered"]), list(index["loaded"])


def add_documents(seen: ShingleFilter, path: Path, start: int = 0, end: int | None = None) -> int:
    """Add the new paragraphs of *path*, bytes *start* to *end*, to the filter; returns the number of documents."""
    number = 0
    for document in read_documents(path, start, end):
        paragraphs = zip(document.paragraphs, document.details, strict=True)
        found = shingles([text for text, attributes in paragraphs if "dup" not in attributes])
        seen.remember(ShingledDocument.of(found.hashes).part(seen.counted(found)))
        number += 1
    return number


def corpus_files(path: Path) -> Iterator[Path]:
    """The prevertical files of a corpus: the file *path*, or those under it; raises BadInput if there are none."""
    files = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}")) + sorted(path.rglob("*.prevert"))
    if not files:
        raise BadInput(f"{path} is no corpus: neither a prevertical file nor a directory with *{SUFFIX} in it.")
    yield from files


def _write_layer(path: Path, words: Hashes) -> None:
    parameter = zstd.CompressionParameter
    packing: dict[int, int] = {parameter.compression_level: _LEVEL, parameter.checksum_flag: 1}
    with replacing(path) as file, zstd.ZstdFile(file, "w", options=packing) as stream:
        for start in range(0, len(words), _CHUNK_WORDS):
            stream.write(words[start : start + _CHUNK_WORDS].tobytes())


def _read_layer(path: Path, entry: Mapping[str, Any]) -> Layer:
    """Raises OSError, EOFError, ValueError or ZstdError when the file is not what the index says."""
    number = int(entry["words"])
    if number % LINE_WORDS:
        raise ValueError(f"{path} is said to be a layer that there cannot be")
    words = np.zeros(number, np.uint64)
    with zstd.open(path) as stream:
        place = words.data.cast("B")
        while place and (got := stream.readinto(place)):
            place = place[got:]
        if place or stream.read(1):  # zstd checks the checksum at the end of the frame
            raise ValueError(f"{path} does not have the length that the index says")
    ordinal = int(path.name.partition("-")[0])
    return Layer(words, int(entry["keys"]), int(entry["documents"]), ordinal)
