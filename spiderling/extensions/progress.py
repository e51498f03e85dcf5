"""Logs how a crawl begins, goes on and ends, and what limits its speed."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

from scrapy.crawler import Crawler

from spiderling.base.terminal import count_of
from spiderling.crawl.arguments import progress_s
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Extension
from spiderling.frontier import HostState
from spiderling.jobdir.inspection import progress_of
from spiderling.reporting.summary import source, start_line, summary

if TYPE_CHECKING:
    from spiderling.cluster.shard import Shard

logger = logging.getLogger(__name__)

WAITS_S = 10.0  # seconds between two lines until the first document; chosen: who has just begun a crawl looks on
_BUSY = 0.9  # share of a core from which the main process, which uses no second one, counts as the bottleneck; chosen


class Progress(Extension):
    """Start line, what the first document waits for, a progress line every LOGSTATS_INTERVAL seconds, summary.

    The totals also go to Scrapy's stats under ``spiderling/``.
    """

    def opened(self) -> None:
        crawl = self.crawl
        logger.info(start_line(crawl))
        totals = crawl.frontier.ledger.totals
        self._last_pages = totals["pages"]
        self._documents_before: int | None = totals["documents"]
        self._bottleneck = Bottleneck(self._crawler, self.dispatcher.shard)
        self._every_s = progress_s(self._crawler.settings)
        self.repeat(self._report, self._every_s, "the progress line")
        self.repeat(self._tell_waiting, WAITS_S, "the line of what is waited for")

    def _tell_waiting(self) -> None:
        """Tell what the first document waits for; a recrawl may wait for months until something is new."""
        crawl = self.crawl
        if self._documents_before != crawl.frontier.ledger.totals["documents"] or crawl.frontier.recrawl.is_on:
            self._documents_before = None
        elif not crawl.stopping:
            ledger = crawl.frontier.ledger
            pages = count_of(ledger.totals["pages"], "page")
            judged = [f" of {pages}, most often {end.value}" for end, _ in ledger.ends.most_common(1)]
            said = "".join(judged) if ledger.totals["pages"] else ""
            logger.info("No document yet%s; waiting for: %s", said, self._bottleneck.awaited(crawl))

    def _report(self) -> None:
        crawl = self.crawl
        totals = crawl.frontier.ledger.totals
        speed = (totals["pages"] - self._last_pages) / self._every_s
        self._last_pages = totals["pages"]
        bottleneck = self._bottleneck.of(crawl)
        totals[f"bound/{bottleneck.partition(' (')[0]}"] += 1
        logger.info("%s%s; bottleneck: %s", progress_of(totals, speed), source(crawl), bottleneck)
        self._to_stats()

    def closed(self, reason: str) -> None:
        if reason != "bad-input":
            self._to_stats()
            logger.info("%s", summary(self.crawl, reason))

    def _to_stats(self) -> None:
        for key, value in self.crawl.frontier.ledger.counts().items():
            self._crawler.stats.set_value(f"spiderling/{key}", value)


class Bottleneck:
    """Names what limits the speed of a crawl, from what has happened since it was asked last."""

    def __init__(self, crawler: Crawler, shard: Shard | None = None) -> None:
        """*shard*: this process, if the crawl has shards."""
        self._crawler = crawler
        self._shard = shard
        self._last = 0.0, 0.0  # seconds of the thread's work, and of the clock
        self._busy()

    def _busy(self) -> float:
        """Share of a core that the event loop's thread has used since the last call."""
        now = time.thread_time(), time.monotonic()
        share = (now[0] - self._last[0]) / max(now[1] - self._last[1], 1e-9)
        self._last = now
        return share

    def of(self, crawl: Crawl) -> str:
        busy = self._busy()
        states = Counter(crawl.frontier.host_states.hosts_by_state())
        if held := self._why_held(crawl):
            return held
        if busy > _BUSY:
            return "main process (one core, and it is busy)"
        if crawl.archives is not None:
            return "text workers (SPIDERLING_WORKERS)" if crawl.archives.is_ahead else "reading the archives"
        engine = self._crawler.engine
        scraper = engine.scraper.slot
        if scraper is not None and scraper.active_size > scraper.max_active_size / 2:
            return "text workers (SPIDERLING_WORKERS)"
        if engine.downloader.needs_backout():
            return "connections (CONCURRENT_REQUESTS)"
        if states[HostState.RESOLVING] > states[HostState.READY] + states[HostState.IN_PROCESS]:
            return "DNS"
        throttled, places = crawl.frontier.throttled(crawl.now())
        if throttled > places / 2:
            return "thrift (hosts of little yield wait for better ones; less thrift asks them sooner)"
        if states[HostState.READY] + states[HostState.SNOOZED] > 0:
            return "politeness (hosts wait for their turn)"
        return (
            "recrawl (no revisit is due yet)" if crawl.frontier.recrawl.is_on else "hosts (too few have URLs waiting)"
        )

    def _why_held(self, crawl: Crawl) -> str:
        """Why nothing may be asked for at all; '' if something may."""
        if crawl.is_paused or crawl.is_disk_full:
            return f"paused ({'by control.yaml' if crawl.is_paused else 'the disk is nearly full'})"
        if away := crawl.frontier.network_trouble():
            return f"network (hosts fail: {away.rpartition(': ')[2]})"
        return "" if self._shard is None else self._shard.trouble()

    def awaited(self, crawl: Crawl) -> str:
        """What the first document waits for."""
        if held := self._why_held(crawl):
            return held
        slot = self._crawler.engine.scraper.slot
        in_text = len(slot.queue) + len(slot.active) if slot is not None else 0
        intervals = crawl.frontier.intervals
        notes = {
            "the interval": f" ({intervals.host_s:g} s between two requests to a host, more after slow answers)",
            "the turn": f" ({intervals.ip_s:g} s between two requests to an address)",
        }
        awaited = crawl.frontier.schedule.awaited(crawl.now())
        parts = [
            f"{what} of {count_of(number, 'host')}{notes.get(what, '')}" for what, number in awaited.items() if number
        ]
        parts += [f"text workers ({count_of(in_text, 'page')})"] if in_text else []
        parts += ["the archives"] if crawl.archives is not None else []
        return ", ".join(parts) or "the seeds"
