"""Records of the frontier as rows of the store, and back."""

from __future__ import annotations

from spiderling.frontier.entries import line_of
from spiderling.frontier.hosts import Host, Marks
from spiderling.frontier.queues import Queues
from spiderling.frontier.robots import RobotsRecord, RobotsStatus
from spiderling.frontier.state import HostRow, RobotsRow
from spiderling.frontier.yields import YieldAccount


def host_row(host: Host, queues: Queues) -> HostRow:
    account, in_transit = host.account, host.fetching
    number = host.queued + (in_transit is not None)
    return HostRow(
        id=host.id,
        name=host.name,
        state=host.state.value,
        distance=host.distance,
        pages=account.pages,
        documents=host.documents,
        words=host.words,
        downloaded_bytes=account.downloaded_bytes,
        kept_bytes=account.kept_bytes,
        waiting=0 if host.is_closed else number,
        parked=number if host.is_closed else 0,
        due=host.due,
        crawl_delay_s=host.crawl_delay_s,
        slowdown=host.slowdown,
        failures=host.failures,
        exempt=1 if host.exempt else -host.leniency,
        address=host.address,
        positions=queues.positions(host.id),
        first=b"\n".join(queues.first(host.id)),
        transit=line_of(in_transit) if in_transit is not None else None,
    )


def host_of(row: HostRow, marks: Marks) -> Host:
    return Host(
        id=row.id,
        name=row.name,
        marks=marks,
        account=YieldAccount(row.pages, row.downloaded_bytes, row.kept_bytes),
        documents=row.documents,
        words=row.words,
        due=row.due,
        crawl_delay_s=row.crawl_delay_s,
        slowdown=row.slowdown,
        failures=row.failures,
        address=row.address,
        exempt=row.exempt > 0,
        leniency=max(0, -row.exempt),
    )


def robots_row(origin: str, record: RobotsRecord) -> RobotsRow:
    return RobotsRow(origin, record.status.value, record.fetched, record.expires, record.failures, record.body)


def robots_of(row: RobotsRow) -> RobotsRecord:
    return RobotsRecord(RobotsStatus(row.status), row.fetched, row.expires, row.failures, row.body)
