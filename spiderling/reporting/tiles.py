"""The tiles at the head of a report: what a crawl has come to, at a glance."""

from __future__ import annotations

from typing import NamedTuple

from spiderling.base.terminal import counted
from spiderling.frontier.hosts import HostState
from spiderling.reporting.material import Material
from spiderling.reporting.tables import duration, size


class Tile(NamedTuple):
    """A figure with its name, and what belongs to it."""

    name: str
    value: str
    note: str = ""


def tiles(material: Material) -> list[Tile]:
    """Those that the live page has too, of the whole crawl."""
    total = material.total
    seconds = max(1, total("time_s"))
    down = total("downloaded_bytes")
    hosts = len(material.hosts.names)
    retired = material.hosts.in_state(HostState.RETIRED)
    left = "" if material.left_s is None else f"some {duration(material.left_s)} left by budget"
    bounds = material.counted("total/bound")
    found = [
        Tile("words", f"{total('words'):,}", f"in {counted(total('documents'), 'document')}"),
        Tile("words an hour", f"{total('words') * 3600 / seconds:,.0f}", "while it ran"),
        Tile("pages", f"{total('pages'):,}", f"{total('pages') / seconds:,.2g} a second"),
        Tile("downloaded", size(down), f"{down / seconds / 1e6:,.2g} MB a second"),
        Tile("kept", size(total("kept_bytes")), f"yield rate {material.yield_rate:.4f}"),
        Tile("hosts", f"{hosts:,}", f"{retired:,} retired"),
        Tile("URLs that wait", f"{material.waiting:,}", f"of {material.counts.get('discovered', 0):,}"),
        Tile("running time", duration(seconds), left),
    ]
    if bounds:
        name, number = bounds.most_common(1)[0]
        lines = bounds.total()
        found.append(
            Tile(
                "bound by" if material.waiting else "was bound by",
                name,
                f"in {number:,} of {counted(lines, 'progress line')}",
            )
        )
    return found
