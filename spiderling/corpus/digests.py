"""The digests of kept pages and of their texts, by which exact duplicates are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spiderling.frontier.storage.seen import SeenSet


class DigestSet:
    """Digests of pages and texts, for exact duplicates.

    The digests of a page in work can be taken back; those of a page that was kept stay.
    """

    def __init__(self, digests: Iterable[int] = ()) -> None:
        self._kept = SeenSet(digests)
        self._kept.drain()
        self._pending: set[int] = set()

    def isdisjoint(self, digests: Collection[int]) -> bool:
        return self._pending.isdisjoint(digests) and not any(map(self._kept.__contains__, digests))

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
        self._kept.drain()


def digest_key(digest: bytes) -> int:
    """The first 64 bits of an xxh3_128 digest, as a signed integer.

    At 10^7 kept pages, one crawl in 10^5 would take two different pages for duplicates.
    """
    return int.from_bytes(digest[:8], "big", signed=True)
