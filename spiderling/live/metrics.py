"""The metrics of a running crawl for Prometheus, read from the crawl's own counters when they are asked for.

Labels are bounded: reasons, states, the corpus's languages, and the first MAX_STATS of Scrapy's stats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from scrapy.crawler import Crawler

from spiderling.base.machine import BOUNDS_S, Histogram
from spiderling.crawl.crawl import Crawl
from spiderling.jobdir.inspection import counts_under
from spiderling.jobdir.status import hosts_at_work, rates
from spiderling.jobdir.status_schema import Running

MAX_STATS = 200  # stats of Scrapy that are told, by name; chosen: components of a project may count by host
_TOTALS = {
    "requests": "Requests that were handed out.",
    "pages": "Judged responses.",
    "documents": "Documents that were kept.",
    "downloaded_bytes": "Bytes of bodies, decoded and in UTF-8.",
    "wire_bytes": "Bytes of bodies as they were received.",
    "kept_bytes": "Bytes of clean new text.",
    "internal_errors": "Errors of Spiderling's own.",
}

_LABELLED = {
    "words": ("fact/words", "language", "Words that were kept."),
    "ends": ("end", "reason", "URLs by how they ended (docs/reasons.md)."),
    "mentions": ("mention", "reason", "Links that were refused, by why."),
}
"""Metric -> prefix of its counts, its label, its help."""


class CrawlCollector(Collector):
    """Names and help are the schema that examples/operations/ relies on."""

    def __init__(self, crawl: Crawl, crawler: Crawler, running: Callable[[], Running], loop_lag: Histogram) -> None:
        """*running* gives the counters by which the status is told too."""
        self._crawl = crawl
        self._crawler = crawler
        self._running = running
        self._loop_lag = loop_lag

    def registry(self) -> CollectorRegistry:
        """A registry of the crawl's own, with memory, processor time and open files of its main process."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        return registry

    def collect(self) -> Iterator[Metric]:
        running = self._running()
        yield from self._counters(running)
        yield from self._gauges(running)
        yield from self._times()
        yield self._stats()

    def _counters(self, running: Running) -> Iterator[Metric]:
        counts = running.counts
        for name, text in _TOTALS.items():
            yield CounterMetricFamily(f"spiderling_{name}", text, value=counts.get(f"total/{name}", 0))
        time_s = counts.get("total/time_s", 0)
        yield CounterMetricFamily("spiderling_running_seconds", "Running time.", value=time_s)
        yield CounterMetricFamily("spiderling_urls_discovered", "URLs that were accepted.", value=counts["discovered"])
        for name, (kind, label, text) in _LABELLED.items():
            yield _label(CounterMetricFamily, name, text, label, counts_under(kind, counts))

    def _gauges(self, running: Running) -> Iterator[Metric]:
        totals = counts_under("total", running.counts)
        scraper = self._crawler.engine.scraper.slot
        in_text = len(scraper.queue) + len(scraper.active) if scraper else 0
        values = {
            "yield_rate": ("Kept bytes / downloaded bytes, of the whole crawl.", rates(totals, {}).yield_rate),
            "hosts_at_work": ("Hosts with URLs to be fetched.", hosts_at_work(running.hosts)),
            "connections": ("Requests in the downloader.", len(self._crawler.engine.downloader.active)),
            "text_pages": ("Pages that wait for text workers or are there.", in_text),
            "paused": ("1 while control.yaml pauses the crawl.", running.is_paused),
            "network_away": ("1 while nothing answers.", bool(running.trouble)),
        }
        for name, (text, value) in values.items():
            yield GaugeMetricFamily(f"spiderling_{name}", text, value=float(value))
        yield _label(GaugeMetricFamily, "hosts", "Hosts by state.", "state", running.hosts)
        urls = {"waiting": running.counts["waiting"] - running.in_transit, "in transit": running.in_transit}
        yield _label(GaugeMetricFamily, "urls", "URLs that have not ended.", "state", urls)
        shares = {what: found[0] for what, found in self._crawl.coverage.items() if found}
        yield _label(GaugeMetricFamily, "coverage", "Of the text on the web, by lists of pages.", "of", shares)
        name = running.bottleneck.partition(" (")[0]
        yield _label(GaugeMetricFamily, "bottleneck", "1 for what limits the speed now.", "name", {name: 1})

    def _times(self) -> Iterator[Metric]:
        times = self._crawl.times
        stages = {
            "download": ("From a request's turn to the end of its body.", times.download),
            "text": ("Of a page in the queue of the text workers and there.", times.text),
            "checkpoint": ("To write a checkpoint.", self._crawl.checkpoint.times),
            "dns": ("To resolve a name.", times.dns),
            "loop_lag": ("By which the event loop is late.", self._loop_lag),
        }
        for name, (text, histogram) in stages.items():
            bounds = [*map(str, BOUNDS_S), "+Inf"]
            buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
            yield HistogramMetricFamily(f"spiderling_{name}_seconds", f"Time: {text}", buckets, histogram.sum_s)

    def _stats(self) -> Metric:
        stats = {
            name: value
            for name, value in sorted(self._crawler.stats.get_stats().items())
            if isinstance(value, (int, float)) and not name.startswith("spiderling/")
        }
        first = dict(list(stats.items())[:MAX_STATS])
        return _label(GaugeMetricFamily, "scrapy_stat", "Scrapy's stats that are numbers.", "name", first)


def _label(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    """A family of metrics with one label."""
    family = kind(f"spiderling_{name}", text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
