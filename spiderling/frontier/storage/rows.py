"""Records of the frontier as rows of the store, and back."""

from __future__ import annotations

from spiderling.frontier.hosts.host import Host, HostStates
from spiderling.frontier.hosts.yields import YieldAccount
from spiderling.frontier.storage.protocol import HostRow
from spiderling.frontier.storage.queue_lines import line_of
from spiderling.frontier.storage.queues import Queues


def host_row(host: Host, queues: Queues) -> HostRow:
    account, in_transit, is_closed = host.account, host.fetching, host.is_closed
    number = host.queued + (in_transit is not None)
    return HostRow(  # by place: the names would take as long as all the rest
        host.id, host.name, host.state.value, host.distance,
        account.pages, host.documents, host.words, account.downloaded_bytes, account.kept_bytes,
        0 if is_closed else number, number if is_closed else 0,
        host.due, host.crawl_delay_s, host.slowdown, host.failures, 1 if host.pinned else -host.second_chances,
        host.address, queues.positions(host.id), b"\n".join(queues.first_lines(host.id)),
        line_of(in_transit) if in_transit is not None else None,
    )  # fmt: skip


def new_row(host_id: int, name: str, states: HostStates) -> HostRow:
    """The row of a host of which no more is known than its name and its states."""
    state, distance, waiting = states.state(host_id).value, states.distance(host_id), states.queued[host_id]
    return HostRow(
        host_id, name, state, distance, 0, 0, 0, 0, 0, waiting, 0, 0.0, 0.0, 1.0, 0, 0, "", "", b"", None
    )  # fmt: skip


def host_of(row: HostRow, states: HostStates) -> Host:
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
