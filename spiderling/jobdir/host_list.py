"""The hosts of a crawl as a list that is searched, sorted and turned over by the page."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from spiderling.base.errors import BadInput
from spiderling.base.printing import hint
from spiderling.jobdir.shards import AnyCrawl

PAGE = 100
"""Hosts on a page of the list (chosen)."""
_MOST_CHARS = 253
"""Characters of the longest host name (RFC 1035), and so of what is searched for."""
_RATE = "kept_bytes * 1.0 / max(downloaded_bytes, 1)"
ORDERS = {
    **{name: name for name in ("distance", "pages", "documents", "words", "downloaded_bytes", "kept_bytes", "waiting")},
    "parked": "parked",
    "yield_rate": _RATE,
    "name": "name",
    "state": "state",
}
"""What the list can be sorted by -> its expression in SQL."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """What is known of one host."""

    name: str
    state: str
    distance: int
    """Host hops from the seeds."""
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    yield_rate: float
    waiting: int
    """URLs to be fetched."""
    parked: int
    """URLs of a closed host."""


@dataclass(frozen=True, slots=True)
class HostList:
    """One page of the list."""

    found: int
    """Hosts whose name holds what was searched for."""
    page: int
    """From 0 on."""
    pages: int
    hosts: list[HostRow]


def hosts_of(
    crawl: AnyCrawl, search: str = "", order: str = "words", rising: bool = False, page: int = 0, most: int = PAGE
) -> HostList:
    """Page *page* of the hosts whose name holds *search*, by *order*; raises BadInput for an unknown order.

    The hosts of shards are merged in this order.
    """
    if order not in ORDERS:
        raise BadInput(f"hosts cannot be sorted by {order!r}: {hint(order, ORDERS)}")
    named = search.strip().lower()[:_MOST_CHARS]
    for sign in "\\%_":
        named = named.replace(sign, f"\\{sign}")
    where = r"WHERE name LIKE ? ESCAPE '\'" if named else "WHERE ? <> ''"
    pattern = f"%{named}%"
    found = sum(row["hosts"] for row in crawl.rows(f"SELECT count(*) AS hosts FROM host {where}", pattern))
    last = max(0, (found - 1) // most)
    shown = min(max(page, 0), last)
    query = (
        f"SELECT {ORDERS[order]}, name, state, distance, pages, documents, words, downloaded_bytes, kept_bytes, "
        f"round({_RATE}, 4), waiting, parked FROM host {where} ORDER BY 1 {'ASC' if rising else 'DESC'}, id LIMIT ?"
    )
    sorted_parts = [part.newest().execute(query, (pattern, (shown + 1) * most)) for part in crawl.parts]
    rows = heapq.merge(*sorted_parts, key=itemgetter(0), reverse=not rising)
    chosen = islice(rows, shown * most, (shown + 1) * most)
    return HostList(found, shown, last + 1, [HostRow(*row[1:]) for row in chosen])
