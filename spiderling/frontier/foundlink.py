"""What a strategy knows of the links that it ranks, besides the page that they stand on: as columns, and one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.linkbatch import FOREIGN, WANTED, WORDS, LinkBatch
from spiderling.urls import PREFIXES, CanonicalUrl, name_of, url_hash
from spiderling.wordhashes import section_of, words_of_name, words_of_path

_SHARES = np.arange(256) / 255
_SAID = np.array([bool(flags & WANTED) - bool(flags & FOREIGN) for flags in range(256)])


class FoundLink(NamedTuple):
    """A link that nobody knew before; the first three are parts of its CanonicalUrl."""

    origin: str
    host: str
    path: str
    host_id: int
    """Of the target's host; 0 when it is a new one."""
    text_block: bool
    """Whether it stands in a block of running text ..."""
    score: float = 0.0
    """... and how likely that is, 0 to 1."""
    anchor: int = 0
    """Characters of its text, 255 at most."""

    @classmethod
    def to(cls, target: CanonicalUrl, host_id: int, text_block: bool, score: float = 0.0, anchor: int = 0) -> FoundLink:
        """The link to *target*."""
        return cls(target.origin, target.host, target.path, host_id, text_block, score, anchor)

    @property
    def target(self) -> CanonicalUrl:
        """Where it leads; put together when it is asked for."""
        return CanonicalUrl(self.origin + self.path, name_of(self.origin), self.host, self.origin, self.path)


class NewLinks:
    """Those links of a batch that may come in; iterating gives each as a FoundLink, for those who want them so."""

    def __init__(self, batch: LinkBatch, places: NDArray[np.intp], ids: Sequence[int]) -> None:
        """*places* of the links in *batch*, and the ids of its hosts, 0 for new ones."""
        self._batch, self._places = batch, places
        self._numbers = np.frombuffer(batch.of_host, np.uint16)[places]
        self.ids: NDArray[np.uint64] = np.array(ids, np.uint64)[self._numbers]
        """Of the targets' hosts."""

    @classmethod
    def of(cls, link: FoundLink) -> NewLinks:
        """*link* alone."""
        path, score, flags = (
            link.path.encode("utf-8", "surrogatepass"),
            round(255 * link.score) or 255 * link.text_block,
            [link.text_block],
        )
        words = [*words_of_name(name_of(link.origin)), *words_of_path(path)]
        wide = array("Q", [url_hash(link.origin + link.path)]), array("I", [section_of(path)]), array("H", words)
        columns = (column.tobytes() for column in wide)
        form = bytes(flags), bytes([score]), bytes([link.anchor])
        batch = LinkBatch._make(((link.host,), path, bytes(2), *columns, bytes(1), bytes(1), bytes(1), *form, (), 0))
        return cls(batch, np.zeros(1, np.intp), [link.host_id])

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[FoundLink]:
        batch, lines = self._batch, self._batch.paths.split(b"\n")
        for at, number, host_id in zip(self._places.tolist(), self._numbers.tolist(), self.ids.tolist(), strict=True):
            name = batch.hosts[number]
            origin, path = PREFIXES[batch.prefixes[at]] + name, lines[at].decode("ascii")
            yield FoundLink(origin, name, path, host_id, *batch.cues(at))

    @property
    def hashes(self) -> NDArray[np.uint64]:
        return np.frombuffer(self._batch.hashes, np.uint64)[self._places]

    @property
    def sections(self) -> NDArray[np.uint32]:
        return np.frombuffer(self._batch.sections, np.uint32)[self._places]

    @property
    def words(self) -> NDArray[np.uint16]:
        return np.frombuffer(self._batch.words, np.uint16).reshape(-1, WORDS)[self._places]

    @property
    def blocks(self) -> NDArray[np.float64]:
        """How likely each stands in running text, 0 to 1."""
        return _SHARES.take(np.frombuffer(self._batch.scores, np.uint8)[self._places])

    @property
    def said(self) -> NDArray[np.int64]:
        """What hreflang says of each: 1 a wanted language, -1 another one, 0 nothing."""
        return _SAID.take(np.frombuffer(self._batch.flags, np.uint8)[self._places])

    @property
    def anchors(self) -> NDArray[np.uint8]:
        return np.frombuffer(self._batch.anchors, np.uint8)[self._places]
