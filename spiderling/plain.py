"""Parts of Scrapy without what they do for the general case, at the same calls and with the same results.

Each makes a coroutine or a task of what is there already, and for a page that is one item that costs more than the
answer.  ITEM_PROCESSOR and DOWNLOADER are settings; for signals and the scraper there is none, so `install` changes
the class of Scrapy's objects, where nobody else has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from pydispatch import dispatcher, robustapply  # type: ignore[import-untyped]
from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.scraper import Scraper
from scrapy.exceptions import _InvalidOutput
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import aiter_errback, ensure_awaitable, iter_errback
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

logger = logging.getLogger(__name__)


def install(crawler: Crawler) -> None:
    """Make *crawler*, whose engine is there, send signals and read callbacks' output in the plain way."""
    if type(crawler.signals) is SignalManager:
        crawler.signals.__class__ = PlainSignals
    scraper = crawler.engine.scraper
    if type(scraper) is Scraper and scraper.concurrent_items == 1:
        scraper.__class__ = PlainScraper


class PlainSignals(SignalManager):
    """Does not send what nobody hears, and makes no task for a receiver that answers at once."""

    def is_heard(self, signal: Any) -> bool:
        """Whether anybody is connected to *signal*."""
        senders = (dispatcher.connections.get(id(sender)) for sender in (self.sender, dispatcher.Any))
        return any(heard and (signal in heard or dispatcher.Any in heard) for heard in senders)

    def send_catch_log(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        return super().send_catch_log(signal, **values) if self.is_heard(signal) else []

    async def send_catch_log_async(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        expected = values.pop("dont_log", ())
        results: list[tuple[Any, Any]] = []
        late: dict[int, Coroutine[Any, Any, tuple[Any, Any]]] = {}
        for receiver in list(dispatcher.liveReceivers(dispatcher.getAllReceivers(self.sender, signal))):
            try:
                answer = robustapply.robustApply(receiver, signal=signal, sender=self.sender, **values)
            except Exception as error:
                answer = _failed(receiver, error, expected, values)
            if isawaitable(answer) or isinstance(answer, Deferred):
                late[len(results)] = _awaited(receiver, answer, expected, values)
            results.append((receiver, answer))
        if late:
            for place, result in zip(late, await asyncio.gather(*late.values()), strict=True):
                results[place] = result
        return results


async def _awaited(receiver: Any, answer: Any, expected: Any, values: dict[str, Any]) -> tuple[Any, Any]:
    try:
        return receiver, await ensure_awaitable(answer, _warn=global_object_name(receiver))
    except Exception as error:
        return receiver, _failed(receiver, error, expected, values)


def _failed(receiver: Any, error: Exception, expected: Any, values: dict[str, Any]) -> Exception:
    """What a receiver raised goes to the log and is its result."""
    if not isinstance(error, expected):
        about = {"receiver": receiver}
        extra = {"spider": values.get("spider")}
        logger.error("Error caught on signal handler: %(receiver)s", about, exc_info=True, extra=extra)
    return error


class PlainScraper(Scraper):
    """With CONCURRENT_ITEMS=1, no queue and no tasks between a callback and the item pipelines."""

    async def handle_spider_output_async(self, result: Any, request: Request, response: Response | Failure) -> None:
        entries: AsyncIterator[Any]
        if isinstance(result, AsyncIterator):
            entries = aiter_errback(result, self.handle_spider_error, request, response)
        else:
            entries = as_async_generator(iter_errback(result, self.handle_spider_error, request, response))
        async for entry in entries:
            await self._process_spidermw_output_async(entry, response)


class PlainPipelines(ItemPipelineManager):
    """No coroutine for a pipeline that answers at once."""

    async def process_item_async(self, item: Any) -> Any:
        for method in self.methods["process_item"]:
            arguments = (item, self._spider) if method in self._mw_methods_requiring_spider else (item,)
            item = method(*arguments)  # type: ignore[misc]
            if isawaitable(item) or isinstance(item, Deferred):
                item = await ensure_awaitable(item, _warn=global_object_name(method))
        return item


class PlainMiddlewares(DownloaderMiddlewareManager):
    """No coroutine for a downloader middleware that answers at once."""

    async def _process_request(self, request: Request, download_func: Any) -> Response | Request:
        for method in self.methods["process_request"]:
            answer = self._handle_mw_method(method, request=request)  # type: ignore[arg-type]
            if answer is not None and (answer := await _judged(method, answer, is_optional=True)) is not None:
                return cast("Response | Request", answer)
        return cast("Response", await download_func(request))

    async def _process_response(self, response: Response | Request, request: Request) -> Response | Request:
        for method in self.methods["process_response"]:
            if isinstance(response, Request):
                break
            answer = self._handle_mw_method(method, request=request, response=response)  # type: ignore[arg-type]
            response = answer if answer is response else await _judged(method, answer)
        return response


async def _judged(method: Any, answer: Any, is_optional: bool = False) -> Any:
    """The answer of a middleware's *method*, awaited if need be."""
    if not isinstance(answer, (Response, Request)):
        answer = await ensure_awaitable(answer, _warn=global_object_name(method))
    if isinstance(answer, (Response, Request)) or (is_optional and answer is None):
        return answer
    raise _InvalidOutput(f"Middleware {method.__qualname__} must return a Response or Request, got {answer!r}")
