"""Limits that a simulated crawl has made small, so that what happens at them happens in it.

By them a crawl of 60 pages has full segments, batches and flushes of queues, and no hours of waiting.  Of further ones
a history may have any: it forgets, cuts into pieces and leaves for later what a crawl of weeks does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from spiderling.cluster import content, exchange, redis_transport, resharding, shard, slots
from spiderling.corpus import warc
from spiderling.crawl import checkpoint, crawl, ended_urls
from spiderling.engine import download_handler
from spiderling.fetch import client
from spiderling.frontier import (
    intervals,
    known_files,
    next_fetch,
    reachability,
    redirects,
    robots,
    schedule,
    traps,
    workbench,
    worth,
)
from spiderling.frontier.recrawl import recrawl
from spiderling.frontier.storage import host_table, protocol, queues, seen
from spiderling.jobdir import snapshots, takedown

LIMITS: tuple[tuple[Any, str, float], ...] = (
    (checkpoint, "MAX_OUTCOMES", 6),
    (crawl, "SEGMENT_BYTES", 2000),
    (queues, "FLUSH_URLS", 20),
    (seen, "PARTS", 16),
    (intervals, "RETRY_DELAY_S", 5.0),
    (intervals, "MAX_PAUSE_S", 40.0),
)
"""Those of every session."""
LIMITS_OF_CHANGES: tuple[tuple[Any, str, float], ...] = ((recrawl, "SWEEPS_A_DAY", 1000),)
"""The same of a recrawl of pages that change: it looks every 60 seconds what is worth a revisit."""
DRAWN: tuple[tuple[Any, str, float], ...] = (
    (checkpoint, "MAX_OUTCOMES", 1),
    (client, "MAX_FAILED", 1),
    (content, "MAX_SECTION_LINKS", 2),
    (content, "KNOWN_HOSTS", 1),
    (content, "REMEMBERED", 3),
    (crawl, "SEGMENT_BYTES", 300),
    (crawl, "BATCH_URLS", 1),
    (download_handler, "MAX_KEPT", 1),
    (ended_urls, "BATCHES", 2),
    (exchange, "FULL_BYTES", 200),
    (exchange, "FULL_LINKS", 2),
    (exchange, "MAX_ASKED", 1),
    (exchange, "PART_BYTES", 100),
    (exchange, "WINDOW_MESSAGES", 1),
    (host_table, "MAX_RECENT_NAMES", 1),
    (known_files, "MAX_AGE_S", 300.0),
    (known_files, "MAX_PARSED", 1),
    (known_files, "MAX_RECORDS", 1),
    (next_fetch, "MAX_ENDS_PER_STEP", 1),
    (protocol, "CHUNK_URLS", 2),
    (queues, "FLUSH_URLS", 2),
    (queues, "FREED_AT_ONCE", 1),
    (reachability, "MAX_HOSTS", 3),
    (recrawl, "MAX_PLANNED", 1),
    (redirects, "MAX_CHAINS", 1),
    (redis_transport, "INBOX_BYTES", 1000),
    (resharding, "MAX_KEYS", 3),
    (robots, "MAX_JUDGED", 1),
    (robots, "MAX_WAITING", 1),
    (schedule, "DEAD_FOR_S", 3.0),
    (schedule, "TURNS", 1),
    (schedule, "MAX_NAMES", 1),
    (shard, "HURRIED", 1),
    (shard, "READ_A_S", 1),
    (slots, "MAX_KEPT", 1),
    (snapshots, "PIECE_BYTES", 4096),
    (snapshots, "OUTBOX_BYTES", 300),
    (takedown, "KEYS_A_ROW", 2),
    (takedown, "PIECE_BYTES", 100),
    (traps, "MAX_CLOSED", 1),
    (traps, "MAX_DOMAINS", 1),
    (traps, "MAX_MIRRORS", 1),
    (warc, "REMEMBERED", 1),
    (workbench, "BURST", 1),
    (workbench, "PRUNE_ABOVE", 1),
    (worth, "LINES", 2),
    (worth, "MAX_HOSTS", 1),
    (worth, "SECTIONS", 1),
)
"""Those of which a history may have some."""


@contextmanager
def limited(drawn: Iterable[int], changes: bool = False) -> Iterator[None]:
    """Within it these limits are small: those of every session, and of the DRAWN ones those of these numbers."""
    limits = [*LIMITS, *LIMITS_OF_CHANGES * changes, *(DRAWN[number] for number in drawn)]
    with ExitStack() as stack:
        for module, name, limit in limits:
            stack.enter_context(mock.patch.object(module, name, limit))
        yield
