"""What becomes of a request that gave no page: its URL ends, waits again, or leads on to a redirect's target."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace
from typing import Any

from scrapy import Request
from twisted.python.failure import Failure

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.crawl import Crawl
from spiderling.engine.in_transit import InTransit
from spiderling.engine.log_format import is_heard
from spiderling.engine.meta_keys import ERRBACK
from spiderling.engine.offline import Offline, trouble_of
from spiderling.engine.outcomes import FileTaken, NotMade, of_failure, reason_of, redirected
from spiderling.engine.requests import Payloads, fetch_of
from spiderling.fetch.errors import TransferCut
from spiderling.frontier import Fetch
from spiderling.frontier.reachability import Trouble
from spiderling.frontier.site_files import FileAnswer

logger = logging.getLogger(__name__)


class Failures:
    """Settles requests that failed; one that may be the network's fault waits until its cause is known."""

    def __init__(self, crawl: Crawl, in_transit: InTransit, offline: Offline, payloads: Payloads) -> None:
        self._crawl = crawl
        self._in_transit = in_transit
        self._offline = offline
        self._payloads = payloads

    def errback(self, failure: Failure) -> Any:
        """Settle a failed request; its own errback is called unless its URL waits again or was redirected."""
        request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        fetch = fetch_of(request)
        if fetch is None or fetch.robots is not None or isinstance(error, (FileTaken, NotMade, TransferCut)):
            self.file_over(request, error)
        elif self._in_transit.holds(fetch.id) and error is not None:
            if is_heard(logger):
                logger.debug("%s: %s", request.url, error)
            trouble = trouble_of(error, request.meta.get("wire_bytes") or 0)
            if trouble is not None:
                return self._once_known(failure, fetch, error, trouble)
            return self._ended(failure, fetch, error)
        return None

    def file_over(self, request: Request, error: BaseException | None) -> None:
        """Settle a request without a page: of a site file, taken or failed; not made; or cut."""
        fetch = fetch_of(request)
        if fetch is None or isinstance(error, FileTaken):
            return
        if isinstance(error, (NotMade, TransferCut)):
            self._in_transit.give_back(fetch)
            return
        if error is not None and reason_of(error) is Reason.INTERNAL_ERROR:
            self._crawl.errors.note(error.__cause__ or error, request.url)
        trouble = trouble_of(error, request.meta.get("wire_bytes") or 0)
        if trouble is None:
            self._robots_failed(fetch, True)
        else:
            self._offline.failed(
                fetch.host.name, trouble, fetch.host.last_start, functools.partial(self._robots_failed, fetch)
            )

    def _ended(self, failure: Failure, fetch: Fetch, error: BaseException) -> Any:
        request = failure.request  # type: ignore[attr-defined]
        errback = request.meta.get(ERRBACK)
        end = self._in_transit.settle(self._outcome(request, fetch, error))
        return errback(failure) if errback is not None and end not in (None, Reason.REDIRECTED) else None

    async def _once_known(self, failure: Failure, fetch: Fetch, error: BaseException, trouble: Trouble) -> Any:
        """Wait until the cause of *error* is known; unless it is the host, the URL waits again."""
        if await self._offline.is_theirs(fetch.host.name, trouble, fetch.host.last_start):
            return self._ended(failure, fetch, error)
        self._in_transit.give_back(fetch)
        return None

    def _robots_failed(self, fetch: Fetch, is_theirs: bool) -> None:
        if is_theirs:
            self._in_transit.settle_robots(fetch, FileAnswer())
        else:
            self._in_transit.give_back(fetch)

    def _outcome(self, request: Request, fetch: Fetch, error: BaseException) -> Outcome:
        """The outcome of a request that gave no page; an error of ours is noted, also one in making the outcome."""
        try:
            outcome = of_failure(request, error)
            goes_on = None if fetch.payload is None else redirected(request, outcome)
            if goes_on is not None:
                goes_on = goes_on.replace(errback=request.meta.get(ERRBACK))
                outcome = replace(outcome, redirect_payload=self._payloads.of(goes_on))
        except Exception as ours:
            outcome = Outcome(fetch.id, fetch.url, Reason.INTERNAL_ERROR)
            error = ours
        if outcome.reason is Reason.INTERNAL_ERROR:
            self._crawl.errors.note(error.__cause__ or error, request.url)
        return outcome
