"""Digests of the paragraphs of each page's newest version: what the store is still to learn, then what it has."""

from __future__ import annotations

from spiderling.frontier.storage.protocol import Store


class NewestParagraphs:
    """Page's key -> 8-byte digests, one behind the other."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._new: dict[int, bytes] = {}
        self._draining: dict[int, bytes] = {}
        """Those of a batch that is not committed yet."""

    def __bool__(self) -> bool:
        """Whether the store has something to learn."""
        return bool(self._new)

    def note(self, key: int, digests: bytes) -> None:
        """The newest version of the page with this key has paragraphs with these digests."""
        self._new[key] = digests

    def get(self, key: int) -> bytes | None:
        """The digests of the page with this key; None if none are known."""
        return self._new.get(key) or self._draining.get(key) or self._store.blob("paragraph", key)

    def drain(self) -> dict[int, bytes]:
        """What the store must learn."""
        self._draining = self._new
        self._new = {}
        return self._draining

    def committed(self) -> None:
        """The store has what was drained last."""
        self._draining = {}
