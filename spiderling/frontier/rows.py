"""Records of the frontier as rows of the store, and back."""

from __future__ import annotations

from spiderling.frontier.hosts import Host, HostState, QueuedUrl
from spiderling.frontier.robots import RobotsRecord, RobotsStatus
from spiderling.frontier.store import HostRow, RobotsRow, UrlRow
from spiderling.frontier.yields import YieldAccount


def host_row(host: Host) -> HostRow:
    account = host.account
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
        waiting=host.waiting + host.in_transit - (host.asking is not None),
        due=host.due,
        crawl_delay_s=host.crawl_delay_s,
        failures=host.failures,
        exempt=host.exempt,
        address=host.address,
    )


def host_of(row: HostRow) -> Host:
    return Host(
        id=row.id,
        name=row.name,
        distance=row.distance,
        state=HostState(row.state),
        account=YieldAccount(row.pages, row.downloaded_bytes, row.kept_bytes),
        documents=row.documents,
        words=row.words,
        due=row.due,
        crawl_delay_s=row.crawl_delay_s,
        failures=row.failures,
        address=row.address,
        exempt=bool(row.exempt),
    )


def url_row(url: QueuedUrl, parked: bool) -> UrlRow:
    return UrlRow(url.key, url.host.id, url.url, url.rank, url.tries, url.redirects, parked, url.payload)


def queued_url_of(row: UrlRow, host: Host) -> QueuedUrl:
    return QueuedUrl(row.key, row.url, host, row.rank, row.tries, row.redirects, row.payload, stored=True)


def robots_row(origin: str, record: RobotsRecord) -> RobotsRow:
    return RobotsRow(origin, record.status.value, record.fetched, record.expires, record.failures, record.body)


def robots_of(row: RobotsRow) -> RobotsRecord:
    return RobotsRecord(RobotsStatus(row.status), row.fetched, row.expires, row.failures, row.body)
