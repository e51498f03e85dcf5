"""Thousands of requests to real servers: from their access logs and the crawler's own, no two starts are too close.

An arrival in a server's log is not the start: between the two lie the handshakes and, on a
busy machine, the wait of either process for a processor.  So the starts are logged where
the crawler makes its sockets; every request in the access logs must have its start there.
"""

from __future__ import annotations

import signal
import statistics
import time

import pytest
from conftest import Crawl, serving
from politeness_web import (
    HOST_INTERVAL_S,
    HOSTS,
    IP_INTERVAL_S,
    MOVING,
    Sites,
    moving_names,
    read_starts,
    serve_both,
    spacing,
)
from startlog import EXTENSIONS

REQUESTS = 2400
TOLERANCE_S = 0.002  # seconds that the crawler may take to read its clock, beyond what the log of starts tells (chosen)


@pytest.mark.slow
def test_no_two_starts_are_closer_than_allowed(tmp_path, record_property):
    sites, starts_file = Sites(), tmp_path / "starts.tsv"
    with serving(sites, serve_both) as server, moving_names() as nameserver:
        sites.moving_port = server.port
        crawl = Crawl(
            tmp_path / "job", server, HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=IP_INTERVAL_S, RETRIES=2,
            TRAPS="pages=0,copies=0,mirror=0", DEDUP="off", NAMESERVERS=nameserver,
            CONSTANTS={"fetch.resolver.MIN_TTL_S": 1, "engine.dispatcher.STOP_TIMEOUT_S": 1},
            PORTS=f"80,443,{server.port}", EXTENSIONS=EXTENSIONS, LOG_STARTS=starts_file,
        )  # fmt: skip
        running = crawl.start(sites.seeds())
        running.until(lambda: len(server.log_entries) > REQUESTS / 2, 60)
        running.stop(signal.SIGKILL)
        killed = time.monotonic()
        running = crawl.start()
        running.until(lambda: len(server.log_entries) > REQUESTS, 60)
        assert running.stop().code == 0
        entries = server.log_entries
    starts, lags = read_starts(starts_file, entries)
    assert len(starts) - len(entries) <= 2 * HOSTS, "only those that were cut have no line in the access log"
    assert len(entries) > REQUESTS
    assert {301, 302, 200, 404, 429, 503} <= {entry.status for entry in entries}
    assert len({start.address for start in starts if start.host == MOVING}) == 2
    found = {by: spacing(starts, by, TOLERANCE_S, killed) for by in ("host", "address")}
    arrivals = {by: spacing(entries, by, 0.025, killed) for by in ("host", "address")}
    median_ms, longest_ms = 1000 * statistics.median(lags), 1000 * max(lags)
    record_property(
        "summary",
        f"politeness: {len(entries)} requests, too close: {found['host'].violations} starts by host, "
        f"{found['address'].violations} by address; arrivals are {median_ms:.0f} ms later (at most {longest_ms:.0f}), "
        f"too close by 25 ms: {arrivals['host'].violations} by host, {arrivals['address'].violations} by address",
    )
    assert found["host"].groups == HOSTS + 1
    assert found["host"].violations == found["address"].violations == 0, found
