"""Groups of watched pages that have changed since the last batch, and the others as the store has them."""

from __future__ import annotations

from collections.abc import Iterator

from spiderling.base.errors import StorageError
from spiderling.frontier.storage.protocol import Store
from spiderling.frontier.watching.groups import WatchedPage, packed, unpacked

TABLE = "watched"


class Groups:
    """Reads groups, remembers those that have changed, and gives them to the next batch."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: dict[int, list[WatchedPage]] = {}
        self._draining: dict[int, list[WatchedPage]] = {}
        """Those of a batch that is not committed yet."""

    def __bool__(self) -> bool:
        return bool(self._changed)

    def stored(self) -> Iterator[tuple[int, list[WatchedPage]]]:
        """All groups as the store has them."""
        for group, row in self._store.blobs(TABLE):
            yield group, unpacked(row)

    def get(self, group: int) -> list[WatchedPage]:
        """The pages of a group, which must exist; they are changed only by whoever calls ``note``."""
        pages = self._changed.get(group) or self._draining.get(group)
        if pages is None:
            row = self._store.blob(TABLE, group)
            if row is None:
                raise StorageError(f"the state is damaged: the watched pages {group} are missing.")
            pages = unpacked(row)
        return pages

    def page(self, group: int, key: int) -> WatchedPage:
        """A page of a group."""
        for page in self.get(group):
            if page.key == key:
                return page
        raise StorageError(f"the state is damaged: page {key} is not among the watched pages {group}.")

    def replace(self, group: int, page: WatchedPage) -> None:
        """*page* has changed."""
        self.note(group, [page if other.key == page.key else other for other in self.get(group)])

    def note(self, group: int, pages: list[WatchedPage]) -> None:
        """The group has these pages now."""
        self._changed[group] = pages

    def drain(self) -> dict[int, bytes]:
        """The rows of the groups that have changed since the last call."""
        self._draining = self._changed
        self._changed = {}
        return {group: packed(pages) for group, pages in self._draining.items()}

    def committed(self) -> None:
        """The store has what was drained last."""
        self._draining = {}
