"""What a strategy knows of a link, besides the page that it stands on."""

from __future__ import annotations

from typing import NamedTuple

from spiderling.urls import CanonicalUrl, name_of


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
