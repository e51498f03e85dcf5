"""Groups of watched pages: those that were read or changed since the last batch, and others as the store has them."""

from __future__ import annotations

from collections.abc import Iterator

from spiderling.base.errors import StorageError
from spiderling.frontier.storage.protocol import Store
from spiderling.frontier.watching.groups import Group, WatchedPage

TABLE = "watched"


class Groups:
    """Reads groups, remembers those that have changed, and gives them to the next batch."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[int, Group] = {}
        """Those that were read or changed since the last batch."""
        self._changed: set[int] = set()
        self._draining: dict[int, bytes] = {}
        """Rows of a batch that is not committed yet."""

    def __bool__(self) -> bool:
        return bool(self._changed)

    def stored(self) -> Iterator[tuple[int, list[WatchedPage]]]:
        """All groups as the store has them."""
        for group, row in self._store.blobs(TABLE):
            yield group, Group.unpacked(row).pages()

    def get(self, group: int) -> Group:
        """The pages of a group, which must exist."""
        if group not in self._open:
            row = self._draining.get(group) or self._store.blob(TABLE, group)
            if row is None:
                raise StorageError(f"the state is damaged: the watched pages {group} are missing.")
            self._open[group] = Group.unpacked(row)
        return self._open[group]

    def replace(self, group: int, page: WatchedPage) -> None:
        """*page* of the group has changed."""
        self.get(group).put(page)
        self._changed.add(group)

    def note(self, group: int, pages: list[WatchedPage]) -> None:
        """The group has these pages now."""
        self._open[group] = Group.of(pages)
        self._changed.add(group)

    def drain(self) -> dict[int, bytes]:
        """The rows of the groups that have changed since the last call."""
        self._draining = {group: self._open[group].packed() for group in self._changed}
        self._open.clear()
        self._changed.clear()
        return self._draining

    def committed(self) -> None:
        """The store has what was drained last."""
        self._draining = {}
