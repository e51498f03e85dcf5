"""What a strategy knows of the links that it ranks: as columns (NewLinks), and one by one (FoundLink)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import FOREIGN, WANTED, WORDS, LinkBatch
from spiderling.base.url_features import section_of, words_of_name, words_of_path
from spiderling.base.urls import PREFIXES, CanonicalUrl, name_of, url_hash

_BLOCKS = np.where(np.arange(256) / 255 >= 0.5, 1.0, -1.0)
"""Score of a link's block -> ``Cues.block``."""
_SAID = np.array([bool(flags & WANTED) - bool(flags & FOREIGN) for flags in range(256)])
"""Flags of a link -> ``Cues.said``."""


class FoundLink(NamedTuple):
    """A link to a URL that was not known; the first three fields are parts of its CanonicalUrl."""

    origin: str
    host: str
    path: str
    host_id: int
    """Id of the target's host; 0 if the host is new."""
    text_block: bool
    """Whether it is in a block of running text."""
    score: float = 0.0
    """The probability that it is, 0 to 1."""

    @classmethod
    def to(cls, target: CanonicalUrl, host_id: int, text_block: bool, score: float = 0.0) -> FoundLink:
        """The link to *target*."""
        return cls(target.origin, target.host, target.path, host_id, text_block, score)

    @property
    def target(self) -> CanonicalUrl:
        """Where it leads."""
        return CanonicalUrl(self.origin + self.path, name_of(self.origin), self.host, self.origin, self.path)


class NewLinks:
    """The links of a batch that may be admitted; iterating yields each as a FoundLink."""

    def __init__(self, batch: LinkBatch, places: Sequence[int], ids: Sequence[int]) -> None:
        """*places*: indices of the links in *batch*; *ids*: of the batch's hosts, 0 for new ones."""
        self._batch = batch
        self._ids = ids
        self.places = places
        self.numbers = array("H", batch.of_host)
        """The index of each link's host, for all links of the batch."""
        self.digests = array("Q", batch.hashes)
        """The hash of each link's URL, for all links of the batch."""
        self.lines = batch.paths.split(b"\n")
        """The path of each link, for all links of the batch."""

    @classmethod
    def of(cls, link: FoundLink) -> NewLinks:
        """*link* alone."""
        path = link.path.encode("utf-8", "surrogatepass")
        score = round(255 * link.score) or 255 * link.text_block
        flags = [link.text_block]
        words = [*words_of_name(name_of(link.origin)), *words_of_path(path)]
        wide = array("Q", [url_hash(link.origin + link.path)]), array("I", [section_of(path)]), array("H", words)
        columns = (column.tobytes() for column in wide)
        form = bytes(flags), bytes([score]), bytes(1)
        url = (link.host,), path, bytes(2), *columns, bytes(1), bytes(1), bytes(1)
        batch = LinkBatch._make((*url, *form, (), 0, b""))
        return cls(batch, [0], [link.host_id])

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[FoundLink]:
        batch = self._batch
        numbers = self.numbers
        for at in self.places:
            name = batch.hosts[numbers[at]]
            origin = PREFIXES[batch.prefixes[at]] + name
            path = self.lines[at].decode("ascii")
            yield FoundLink(origin, name, path, self._ids[numbers[at]], *batch.block(at))

    def parts(self) -> list[tuple[int, int]]:
        """For each link the id of its host and the section of its path."""
        ids = self._ids
        numbers = self.numbers
        sections = array("I", self._batch.sections)
        return [(ids[numbers[at]], sections[at]) for at in self.places]

    def columns(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint16]]:
        """``block`` and ``said`` of Cues, and the words of the URL, as columns with an entry for each link."""
        batch = self._batch
        places = np.array(self.places)
        blocks = _BLOCKS.take(np.frombuffer(batch.scores, np.uint8).take(places))
        said = _SAID.take(np.frombuffer(batch.flags, np.uint8).take(places))
        return blocks, said, np.frombuffer(batch.words, np.uint16).reshape(-1, WORDS).take(places, 0)
