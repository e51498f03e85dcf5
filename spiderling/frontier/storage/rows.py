"""Host records as rows of the store, and back."""

from __future__ import annotations

from spiderling.frontier.hosts.host import Host, HostStates
from spiderling.frontier.hosts.yields import YieldAccount
from spiderling.frontier.storage.protocol import HostRow
from spiderling.frontier.storage.queue_lines import line_of
from spiderling.frontier.storage.queues import Queues


def host_row(host: Host, queues: Queues) -> HostRow:
    """The row of a host in memory."""
    in_transit = host.fetching
    is_closed = host.is_closed
    urls = host.queued + (in_transit is not None)
    # By position, in the order of HostRow: names would double the time, and each batch makes many rows.
    return HostRow(
        host.id,
        host.name,
        host.state.value,
        host.distance,
        host.account.pages,
        host.documents,
        host.words,
        host.account.downloaded_bytes,
        host.account.kept_bytes,
        0 if is_closed else urls,
        urls if is_closed else 0,
        host.due,
        host.crawl_delay_s,
        host.slowdown,
        host.failures,
        1 if host.pinned else -host.second_chances,
        host.address,
        queues.positions(host.id),
        b"\n".join(queues.first_lines(host.id)),
        line_of(in_transit) if in_transit is not None else None,
    )


def new_row(host_id: int, name: str, states: HostStates) -> HostRow:
    """The row of a host of which only the name and the columns are known."""
    return HostRow(
        id=host_id,
        name=name,
        state=states.state(host_id).value,
        distance=states.distance(host_id),
        pages=0,
        documents=0,
        words=0,
        downloaded_bytes=0,
        kept_bytes=0,
        waiting=states.queued[host_id],
        parked=0,
        due=0.0,
        crawl_delay_s=0.0,
        slowdown=1.0,
        failures=0,
        exempt=0,
        address="",
        positions="",
        first=b"",
        transit=None,
    )


def host_of(row: HostRow, states: HostStates) -> Host:
    """The host of a row; its state, distance and length of the queue are in *states* already."""
    return Host(
        id=row.id,
        name=row.name,
        states=states,
        account=YieldAccount(row.pages, row.downloaded_bytes, row.kept_bytes),
        documents=row.documents,
        words=row.words,
        due=row.due,
        crawl_delay_s=row.crawl_delay_s,
        slowdown=row.slowdown,
        failures=row.failures,
        address=row.address,
        pinned=row.exempt > 0,
        second_chances=max(0, -row.exempt),
    )
