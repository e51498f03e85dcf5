"""Logs how a crawl begins, goes on and ends, with a summary, and what limits its speed."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from scrapy.crawler import Crawler

from spiderling.base.errors import StorageError
from spiderling.base.option_values import parse_recrawl, parse_recrawl_requests
from spiderling.base.terminal import count_of
from spiderling.crawl.arguments import progress_s
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Extension
from spiderling.frontier import HostState, threshold
from spiderling.jobdir.as_text import named_counts, summary_rows
from spiderling.jobdir.inspection import commands_for, counts_under, progress_of

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
        """Name what limits the speed of the crawl."""
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
            "the interval": f" ({intervals.host_s:g} s between two requests to a host)",
            "the turn": f" ({intervals.ip_s:g} s between two requests to an address)",
        }
        awaited = crawl.frontier.awaited(crawl.now())
        parts = [
            f"{what} of {count_of(number, 'host')}{notes.get(what, '')}" for what, number in awaited.items() if number
        ]
        parts += [f"text workers ({count_of(in_text, 'page')})"] if in_text else []
        parts += ["the archives"] if crawl.archives is not None else []
        return ", ".join(parts) or "the seeds"


def source(crawl: Crawl) -> str:
    """The yield rate, and where the next pages come from, in two figures."""
    ledger = crawl.frontier.ledger
    if crawl.archives is not None:
        return f"; archives: {crawl.archives.standing().partition(', ')[0]}"
    waiting = f"{count_of(ledger.waiting, 'URL')} waiting"
    if crawl.frontier.recrawl.is_on and not ledger.waiting:
        waiting = f"{ledger.totals['revisits']:,} revisits of known pages"
    return f", yield rate {ledger.yield_rate:.4f}; {waiting}"


def start_line(crawl: Crawl) -> str:
    """What is crawled, where, and by which threshold hosts are retired."""
    factor = crawl.frontier.host_closing.rule.factor
    rule = "no host is retired for its yield"
    if factor is not None:
        name = crawl.options.yield_profile
        rule = f"yield profile {name}: t(100)={threshold(100, factor):.4f}, t(1000)={threshold(1000, factor):.4f}"
    verb = "Resuming" if crawl.is_resumed else "Starting"
    accepted = {info.code for info in crawl.accepted}
    languages = ", ".join(f"{info.name} ({info.code})" for info in crawl.accepted)
    others = ", ".join(code for code in crawl.recognised if code not in accepted) or "nothing"
    return (
        f"{verb} the crawl in {crawl.jobdir.path.resolve()}: {languages}, told apart from {others}; "
        f"{'' if crawl.archives is not None else f'strategy {crawl.options.strategy}; '}{rule}; "
        f"{_recrawled(crawl)}text steps: {crawl.text_steps}"
    )


def _recrawled(crawl: Crawl) -> str:
    """For how long, and with which budget, known pages are revisited; '' if they are not."""
    days = parse_recrawl(crawl.options.recrawl)
    requests = parse_recrawl_requests(crawl.options.recrawl_requests)
    if not days:
        return ""
    how_long = "without end" if math.isinf(days) else f"for {days:,.0f} days in all"
    many = f"{requests:.1%} of the known pages" if requests < 1 else f"{requests:,.0f} of them"
    return f"recrawled {how_long}, with revisits of up to {many} a day; "


def summary(crawl: Crawl, reason: str) -> str:
    """The crawl so far, as a table a person can read."""
    states = {state.value: number for state, number in crawl.frontier.host_states.hosts_by_state().items()}
    counts = crawl.frontier.ledger.counts()
    balance = crawl.frontier.ledger.balance
    errors = counts.get("total/internal_errors", 0)
    is_lost = _is_lost(crawl)
    has_corpus = crawl.checkpoint.lengths and not is_lost
    rows = summary_rows(counts, states) | {
        "errors": ""
        if not errors
        else f"{errors:,} of Spiderling's own ended URLs or site files; "
        f"{crawl.jobdir.log} has each, please report them",
        "remembers": _remembered(crawl),
        "recrawl": _revisits(crawl),
        "archives": crawl.archives.standing() if crawl.archives is not None else "",
        "refused": named_counts(counts_under("mention", counts)),
        "balance": f"{balance.discovered:,} discovered = {balance.ended:,} ends + {balance.waiting:,} waiting + "
        f"{balance.in_transit:,} in transit{' (WRONG)' if balance.error else ''}",
        "corpus": str(crawl.jobdir.corpus / "*.prevert.zst") if has_corpus else "",
        "state": "" if is_lost else str(crawl.jobdir.database),
        "all shards": _all_shards(crawl),
    }
    table = "\n".join(f"  {name:<11}{value}" for name, value in rows.items() if value)
    return f"The crawl in {crawl.jobdir.path.resolve()} {standing(crawl, reason)}{_hint(crawl)}\n{table}"


def _revisits(crawl: Crawl) -> str:
    """What the recrawl did; '' for a crawl that had none."""
    totals = crawl.frontier.ledger.totals
    if not (totals["revisits"] or crawl.frontier.recrawl.is_on):
        return ""
    if not totals["revisits"]:
        return "no revisit yet"
    return (
        f"{totals['revisits']:,} revisits, {totals['revisits_304']:,} unchanged (304), {totals['revisits_new']:,} with "
        f"something new ({totals['revisit_words']:,} words, {totals['revisit_links']:,} links), "
        f"{totals['revisits_gone']:,} pages gone, {totals['revisits_opted_out']:,} opted out"
    )


def _all_shards(crawl: Crawl) -> str:
    """What the shards did together, of which this summary tells one, as far as this one knows, and how to see it."""
    if not crawl.options.cluster:
        return ""
    totals = crawl.totals()
    return (
        f"{totals['pages']:,} pages, {totals['documents']:,} documents, {totals['words']:,} words; "
        f"{commands_for(crawl.jobdir.path.parent)}"
    )


def _remembered(crawl: Crawl) -> str:
    """What the near-duplicate filter knows."""
    if crawl.near is None or not crawl.near.filter.documents:
        return ""
    seen = crawl.near.filter
    texts = count_of(seen.documents, "document")
    text = f"the text of {texts} in {seen.bytes / 1e6:,.0f} MB, to know near-duplicates by"
    forgotten = f"; {seen.forgotten:,} are forgotten: SPIDERLING_DEDUP_BYTES" if seen.forgotten else ""
    return f"{text}{' (every fourth shingle)' if seen.is_sampling else ''}{forgotten}"


def _hint(crawl: Crawl) -> str:
    """Why a crawl that fetched no page may have failed."""
    ends = crawl.frontier.ledger.ends
    if crawl.frontier.ledger.totals["pages"]:
        return ""
    if crawl.archives is not None:
        return "" if crawl.archives.unread else " There is no page in the archives that is wanted."
    causes = "; ".join(end.help for end, number in ends.most_common(2) if number)
    return f" No page could be fetched: {causes}." if causes else ""


def _is_lost(crawl: Crawl) -> bool:
    """Whether something that the crawl has written is not there any more."""
    try:
        crawl.checkpoint.refuse_lost()
    except StorageError:
        return True
    return False


def standing(crawl: Crawl, reason: str) -> str:
    """How the crawl ended, and how it goes on; it follows the crawl's name in a sentence."""
    if crawl.checkpoint.error is not None:
        if _is_lost(crawl):
            return "has stopped; the error above says why."
        return (
            "has stopped; the same command goes on from its last checkpoint. Some of what is counted here came after "
            "that."
        )
    if not crawl.is_finished or (crawl.archives is not None and crawl.archives.unread):
        way = "a larger budget lets it go on" if reason.startswith("budget") else "the same command goes on with it"
        return f"was paused ({reason}); {way}."
    if crawl.archives is not None:
        return "is finished: all archives are read."
    if crawl.frontier.recrawl.is_on:
        return f"is finished: its recrawl of {crawl.options.recrawl} is over; a longer one or -a recrawl=on goes on."
    if crawl.frontier.ledger.totals["requests"] == crawl.requests_before:
        return (
            "is finished: no URL waits. To start afresh, remove that directory or give another with -s JOBDIR=...; "
            "to go on, add seeds with -a seeds=..., or fetch what is new with -a recrawl=on."
        )
    return "is finished."
