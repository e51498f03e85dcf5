"""What a strategy knows of the links that it ranks, besides the page that they stand on: as columns, and one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import FOREIGN, WANTED, WORDS, LinkBatch
from spiderling.base.url_features import section_of, words_of_name, words_of_path
from spiderling.base.urls import PREFIXES, CanonicalUrl, name_of, url_hash
from spiderling.frontier.ranking.estimators import ANCHORS

_SHARES, _ANCHORS = np.arange(256) / 255, np.array(ANCHORS)
_SAID = [bool(flags & WANTED) - bool(flags & FOREIGN) for flags in range(256)]
_SAID_OF = np.array(_SAID)


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

    def __init__(self, batch: LinkBatch, places: Sequence[int], ids: Sequence[int]) -> None:
        """*places* of the links in *batch*, and the ids of its hosts, 0 for new ones."""
        self._batch, self._ids, self.places = batch, ids, places
        self.numbers, self.digests = array("H", batch.of_host), array("Q", batch.hashes)
        """Columns of the whole batch: place of each link's host, and hash of its URL ..."""
        self.lines = batch.paths.split(b"\n")
        """... and its path."""

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
        return cls(batch, [0], [link.host_id])

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[FoundLink]:
        batch, numbers = self._batch, self.numbers
        for at in self.places:
            name = batch.hosts[numbers[at]]
            origin, path = PREFIXES[batch.prefixes[at]] + name, self.lines[at].decode("ascii")
            yield FoundLink(origin, name, path, self._ids[numbers[at]], *batch.cues(at))

    def rows(self) -> Iterator[tuple[int, int, int, float, float, int, Sequence[int]]]:
        """Of each link its ``parts``, block, anchor, what hreflang says, and words."""
        batch, ids, numbers, digests = self._batch, self._ids, self.numbers, self.digests
        sections, words = array("I", batch.sections), array("H", batch.words)
        for at in self.places:
            cues = batch.scores[at] / 255, ANCHORS[batch.anchors[at]], _SAID[batch.flags[at]]
            yield digests[at], ids[numbers[at]], sections[at], *cues, words[WORDS * at : WORDS * (at + 1)]

    def parts(self) -> list[tuple[int, int, int]]:
        """Of each link its URL's hash, its host's id and its path's section."""
        ids, numbers, digests, sections = self._ids, self.numbers, self.digests, array("I", self._batch.sections)
        return [(digests[at], ids[numbers[at]], sections[at]) for at in self.places]

    @property
    def words(self) -> NDArray[np.uint16]:
        return np.frombuffer(self._batch.words, np.uint16).reshape(-1, WORDS)[self.places]

    @property
    def blocks(self) -> NDArray[np.float64]:
        """How likely each stands in running text, 0 to 1."""
        return _SHARES.take(np.frombuffer(self._batch.scores, np.uint8)[self.places])

    @property
    def said(self) -> NDArray[np.int64]:
        """What hreflang says of each: 1 a wanted language, -1 another one, 0 nothing."""
        return _SAID_OF.take(np.frombuffer(self._batch.flags, np.uint8)[self.places])

    @property
    def anchors(self) -> NDArray[np.float64]:
        """Length of each text, -1 to 1."""
        return _ANCHORS.take(np.frombuffer(self._batch.anchors, np.uint8)[self.places])
