"""A third one: trafilatura's own spider, host by host, and its extraction of every page that the spider has found.

    python benchmarks/peers/trafilatura_spider.py ADDRESS:PORT PAGES HOMEPAGE ...

It waits for nothing (SLEEP_TIME 0) and asks one host at a time.  All names are served at ADDRESS:PORT.  Prints JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import trafilatura
import trafilatura.downloads
import trafilatura.settings
import urllib3.util.connection
from trafilatura.spider import focused_crawler

_PAGES_OF_A_HOST = 10


def main(endpoint: str, pages: int, homepages: list[str]) -> None:
    address, _, port = endpoint.rpartition(":")
    connect: Any = urllib3.util.connection.create_connection
    urllib3.util.connection.create_connection = lambda _, *given, **named: connect(
        (address, int(port)), *given, **named
    )
    config = trafilatura.settings.use_config()
    config.set("DEFAULT", "SLEEP_TIME", "0")
    config.set("DEFAULT", "DOWNLOAD_TIMEOUT", "10")
    config.set("DEFAULT", "SSRF_PROTECTION", "off")  # the web is on loopback
    wall, cpu, done, size, kept = time.perf_counter(), time.process_time(), 0, 0, 0
    for homepage in homepages:
        if done >= pages:
            break
        todo, known = focused_crawler(homepage, max_seen_urls=_PAGES_OF_A_HOST, config=config)
        for url in dict.fromkeys([homepage, *known, *todo][: 4 * _PAGES_OF_A_HOST]):
            answer = trafilatura.downloads.fetch_response(url, config=config)
            if answer is None or answer.status != 200:
                continue
            done, size = done + 1, size + len(answer.data)
            kept += len((trafilatura.extract(answer.data, url=url, config=config) or "").encode())
    print(
        json.dumps(
            {
                "pages": done, "mb": size / 1e6, "kept_mb": kept / 1e6, "wall_s": time.perf_counter() - wall,
                "cpu_s": time.process_time() - cpu,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
