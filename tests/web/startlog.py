"""The crawler's own log of its connections, for benchmarks/polite.py; EXTENSIONS loads it into the crawl."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from pathlib import Path

from scrapy.crawler import Crawler

from spiderling.engine import download_handler
from spiderling.fetch.client import ConnectTarget, RawResponse, Wire
from spiderling.fetch.messages import RawRequest

EXTENSIONS = '{"tests.web.startlog.StartLog": 1}'


class StartLog:
    """Scrapy extension: a line in the file LOG_STARTS for each request, when its connection is about to be opened, or
    used again.

    For a second address the crawler reads its clock while ``may_connect`` runs, so that the time this took belongs
    to the line: the process may have lost the processor in between.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StartLog:
        file = Path(crawler.settings["LOG_STARTS"]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115
        send = download_handler.send

        def sending(request: RawRequest, target: ConnectTarget, kept: Wire | None = None) -> Awaitable[RawResponse]:
            may_connect, host = target.may_connect, dict(request.headers)[b"Host"].decode().partition(":")[0]

            def logged(address: str) -> bool:
                before = time.monotonic()
                may = may_connect(address)
                if may:
                    now = time.monotonic()
                    path = request.target.partition("?")[0]
                    file.write(f"{now:.6f}\t{address}\t{host}\t{path}\t{now - before:.6f}\n")
                return may

            target.may_connect = logged
            if kept is not None:
                logged(target.place.address)
            return send(request, target, kept)

        download_handler.send = sending
        return cls()
