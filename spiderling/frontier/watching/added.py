"""Pages that are newly watched, put into the groups of their host."""

from __future__ import annotations

from spiderling.base.urls import HASH_BITS
from spiderling.frontier.watching.columns import Columns
from spiderling.frontier.watching.group_store import Groups
from spiderling.frontier.watching.groups import GROUP_PAGES, WatchedPage, group_id


def add(host: int, pages: list[WatchedPage], groups: Groups, columns: Columns) -> None:
    """Watch *pages* of one host, none of which is known: its last group is filled up first."""
    first, behind = (columns.place(number << HASH_BITS) for number in (host, host + 1))
    parts = columns.rows["part"][first:behind]
    part = int(parts.max()) if len(parts) else 0
    group = groups.get(group_id(host, part)).pages() if len(parts) else []
    while pages:
        room = GROUP_PAGES - len(group)
        if room > 0:
            groups.note(group_id(host, part), [*group, *pages[:room]])
            columns.add(pages[:room], part)
            pages = pages[room:]
        part += 1
        group = []
