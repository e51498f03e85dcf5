"""Links that were met a short time ago: most links of a page stand on the page before as well.

Only a memory that saves work: what it knows is in the seen set, what it has forgotten is
looked up there.  (Three quarters of a page's links are menus and the like.)
"""

from __future__ import annotations

_LINKS = 60_000
"""Links of each of the two generations; both take about 25 MB."""


class RecentLinks:
    """Links as they stood on pages, each with the id of the host that it belongs to."""

    def __init__(self) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def host_of(self, link: str) -> int:
        """The id of the host of a link that is in the seen set; 0 if it has to be looked up."""
        host_id = self._young.get(link)
        if host_id is None:
            host_id = self._old.get(link, 0)
            if host_id:
                self.note(link, host_id)
        return host_id

    def note(self, link: str, host_id: int) -> None:
        """*link* is in the seen set now."""
        if len(self._young) >= _LINKS:
            self._old, self._young = self._young, {}
        self._young[link] = host_id
