"""Watches the crawl for what somebody should be told (SPIDERLING_ALERT_URL, SPIDERLING_ALERT_COMMAND); off without."""

from __future__ import annotations

import asyncio
import logging
import shutil

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from spiderling.base.errors import SpiderlingError, StorageError
from spiderling.base.option_values import PREFIX
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Extension, error_of
from spiderling.live.summary import standing

logger = logging.getLogger(__name__)

LOOK_S = 10.0
"""Seconds between two looks.  Chosen: an alert comes well within a minute."""
_REFUSALS = (429, 503)


class AlertWatch(Extension):
    """Takes a sample of the crawl every ten seconds, and tells how it ends."""

    def __init__(self, crawler: Crawler) -> None:
        if not any(crawler.settings.get(f"{PREFIX}ALERT_{channel}") for channel in ("URL", "COMMAND")):
            raise NotConfigured
        super().__init__(crawler)
        self._answers = 0
        self._refusals = 0

    def opened(self) -> None:
        # a crawl without alerts loads none of it
        from spiderling.live.alerts import AlertRules, Alerts

        crawl = self.crawl
        self._rules = AlertRules(crawl.options, crawl.frontier.ledger.totals["internal_errors"])
        self._alerts = Alerts(crawl.options, crawl.jobdir.path)
        self._crawler.signals.connect(self._answered, signals.response_downloaded)
        self.repeat(self._look, LOOK_S, "the alerts")

    def _answered(self, response: Response) -> None:
        self._answers += 1
        self._refusals += response.status in _REFUSALS

    async def _look(self) -> None:
        try:
            await self._take_sample()
        except Exception:  # whatever fails here, the crawl goes on
            logger.exception("What alerts are about could not be looked at")

    async def _take_sample(self) -> None:
        from spiderling.live.alerts import Sample

        free_bytes = (await asyncio.to_thread(shutil.disk_usage, self.crawl.jobdir.path)).free
        totals = self.crawl.frontier.ledger.totals
        sample = Sample(
            self.crawl.now(),
            totals["downloaded_bytes"],
            totals["kept_bytes"],
            totals["internal_errors"],
            self._answers,
            self._refusals,
            self.crawl.frontier.network_trouble(),
            free_bytes,
        )
        self._rules.look(sample, self._tell)

    def _tell(self, kind: str, text: str) -> bool:
        return self._alerts.take(kind, text, self.crawl.now())

    async def closed(self, reason: str) -> None:
        await self._look()
        self._tell(*end_of(self.crawl, reason, error_of(self._crawler)))
        await self._alerts.close()


def end_of(crawl: Crawl, reason: str, error: SpiderlingError | None) -> tuple[str, str]:
    """Kind and text of the alert that *crawl* has ended for *reason*, or by an *error*."""
    if error is not None:
        kind = "storage-failed" if isinstance(error, StorageError) else "failed"
        return kind, f"The crawl has stopped: {error}"
    said = standing(crawl, reason)
    is_budget = reason.startswith("budget") or reason == "marginal-yield"
    kind = "finished" if said.startswith("is finished") else "budget" if is_budget else "stopped"
    return kind, f"The crawl {said}"
