"""Parts of Scrapy that make no coroutine, task or Deferred for an answer that is there at once.

Calls and results are those of Scrapy.  Settings name three parts: ITEM_PROCESSOR, DOWNLOADER and STATS_CLASS.  For the
others `install` changes the class of Scrapy's objects, unless they are of a subclass.  That saves 19 % of the main
process' processor time a page (13 to 28 % in six pairs of ``benchmarks/crawl.py instant --pages 3000``, with and
without it in turn).  tests/test_plain.py compares both: run it after an upgrade of Scrapy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import cached_property, lru_cache
from inspect import CO_VARKEYWORDS, isasyncgenfunction, isawaitable
from types import FunctionType
from typing import Any

from pydispatch import dispatcher, robustapply  # type: ignore[import-untyped]
from scrapy import Request, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import aiter_errback, ensure_awaitable, iter_errback
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.python import global_object_name
from scrapy.utils.spider import iterate_spider_output
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from spiderling.engine.downloader import DirectDownloader

logger = logging.getLogger(__name__)


def install(crawler: Crawler) -> None:
    """Replace the parts of *crawler*, whose engine is made."""
    if type(crawler.signals) is SignalManager:
        crawler.signals.__class__ = PlainSignals
    engine = crawler.engine
    if type(engine) is not ExecutionEngine or type(engine.scraper) is not Scraper:
        return
    is_ours = (
        isinstance(engine.downloader, DirectDownloader) and type(engine.downloader).fetch is DirectDownloader.fetch
    )
    if engine.scraper.concurrent_items == 1 and is_ours:
        engine.__class__ = PlainEngine
        engine.scraper.__class__ = PlainScraper
        if type(engine.scraper.spidermw) is SpiderMiddlewareManager:
            engine.scraper.spidermw.__class__ = PlainSpiderMiddlewares


class PlainStats(MemoryStatsCollector):
    """Takes the deprecated argument ``spider`` without a warning.

    Scrapy's looks at each access for a caller that gives it: eight microseconds, ten times a request.
    """

    __getattribute__ = object.__getattribute__


class PlainSignals(SignalManager):
    """Sends a signal only if a receiver is connected, and makes no task for one that answers at once."""

    def is_heard(self, signal: Any, sender: Any = None) -> bool:
        """Whether anybody is connected to *signal*."""
        for one in (sender or self.sender, dispatcher.Any):
            heard = dispatcher.connections.get(id(one))
            if heard and (signal in heard or dispatcher.Any in heard):
                return True
        return False

    def send_catch_log(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        return super().send_catch_log(signal, **values) if self.is_heard(signal, values.get("sender")) else []

    async def send_catch_log_async(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        sender = values.pop("sender", self.sender)
        expected = values.pop("dont_log", ())
        expected = tuple(expected) if isinstance(expected, list) else expected
        results: list[tuple[Any, Any]] = []
        late: dict[int, Coroutine[Any, Any, tuple[Any, Any]]] = {}
        for receiver in list(dispatcher.liveReceivers(dispatcher.getAllReceivers(sender, signal))):
            try:
                answer = _called(receiver, signal=signal, sender=sender, **values)
            except Exception as error:
                answer = _failed(receiver, error, expected, values)
            if answer is not None and (isawaitable(answer) or isinstance(answer, Deferred)):
                late[len(results)] = _awaited(receiver, answer, expected, values)
            results.append((receiver, answer))
        if late:
            answers = await asyncio.gather(*late.values(), return_exceptions=True)  # a receiver's CancelledError too
            for place, answer in zip(late, answers, strict=True):
                results[place] = (results[place][0], answer) if isinstance(answer, BaseException) else answer
        return results


def _called(receiver: Any, **values: Any) -> Any:
    """What *receiver* returns for those of *values* that it takes."""
    function = getattr(receiver, "__func__", receiver)
    names = _arguments(function) if type(function) is FunctionType else None
    if names is None:
        return robustapply.robustApply(receiver, **values)
    return receiver(**{name: values[name] for name in names if name in values})


@lru_cache(1024)
def _arguments(function: FunctionType) -> tuple[str, ...] | None:
    """The arguments that *function* takes; None if it takes any.  PyDispatcher looks them up at each call."""
    code = function.__code__
    return None if code.co_flags & CO_VARKEYWORDS else code.co_varnames[: code.co_argcount]


async def _awaited(receiver: Any, answer: Any, expected: Any, values: dict[str, Any]) -> tuple[Any, Any]:
    try:
        return receiver, await ensure_awaitable(answer, _warn=global_object_name(receiver))
    except Exception as error:
        return receiver, _failed(receiver, error, expected, values)


def _failed(receiver: Any, error: Exception, expected: Any, values: dict[str, Any]) -> Exception:
    """Log and return *error*, the result of a receiver that raised it."""
    if not isinstance(error, expected):
        logger.error(
            "Error caught on signal handler: %(receiver)s",
            {"receiver": receiver},
            exc_info=True,
            extra={"spider": values.get("spider")},
        )
    return error


_going: set[asyncio.Task[None]] = set()
"""Tasks of requests; the event loop itself holds tasks weakly."""


class PlainEngine(ExecutionEngine):
    """Makes one task for a page, from request to last item, where Scrapy makes five Deferreds and two tasks."""

    scraper: PlainScraper
    downloader: DirectDownloader

    def _start_scheduled_request(self) -> bool:
        assert self._slot is not None
        request = self._slot.scheduler.next_request()
        if request is None:
            self.signals.send_catch_log(signals.scheduler_empty)
            return False
        self._slot.add_request(request)
        self.downloader.active.add(request)  # at once: `needs_backout` is asked before the task has begun
        _going.add(task := asyncio.get_running_loop().create_task(self._go(request, self._slot)))
        task.add_done_callback(_going.discard)
        return True

    async def _go(self, request: Request, slot: Any) -> None:
        try:
            result = await self._fetched(request)
            slot.nextcall.schedule()
            if isinstance(result, Request):
                self.crawl(result)
            else:
                await self.scraper.scrape(result, request)
        except Exception:
            logger.error("Error while processing %s", request, exc_info=True, extra={"spider": self.spider})
        finally:
            slot.remove_request(request)
            slot.nextcall.schedule()

    async def _fetched(self, request: Request) -> Response | Request | Failure:
        try:
            result = await self.downloader.fetched(request)
        except (Exception, asyncio.CancelledError):  # Scrapy makes a Failure of a middleware's CancelledError too
            return Failure()  # type: ignore[no-untyped-call]
        if isinstance(result, Response):
            result.request = result.request or request
            assert self.spider is not None
            line = self.logformatter.crawled(result.request, result, self.spider)
            if line is not None:
                logging.getLogger(ExecutionEngine.__module__).log(
                    *logformatter_adapter(line), extra={"spider": self.spider}
                )
            self.signals.send_catch_log(
                signals.response_received, response=result, request=result.request, spider=self.spider
            )
        return result


class PlainScraper(Scraper):
    """Makes no queue, Deferred or task before a callback, nor between it and the pipelines if CONCURRENT_ITEMS=1."""

    async def scrape(self, result: Response | Failure, request: Request) -> None:
        """Pass *result* to the callback or errback of *request*, and what that yields to the pipelines."""
        slot = self.slot
        assert slot is not None
        slot.add_response_request(result, request)
        slot.next_response_request_deferred()
        try:
            await self._scrape(result, request)
        finally:
            slot.finish_response(result, request)
            self._check_if_closing()

    async def call_spider_async(self, result: Any, request: Request) -> Any:
        """The output of callback or errback; ``parse`` is called at once, without two turns of the event loop."""
        asked = getattr(result, "request", None) or request
        if not isinstance(result, Response) or asked.callback is not None:
            return await super().call_spider_async(result, request)
        assert self.crawler.spider is not None
        result.request = asked
        output = self.crawler.spider._parse(result, **asked.cb_kwargs)
        return output if isinstance(output, Iterator) else await ensure_awaitable(iterate_spider_output(output))

    async def handle_spider_output_async(self, result: Any, request: Request, response: Response | Failure) -> None:
        if isinstance(result, AsyncIterator):
            async for entry in aiter_errback(result, self.handle_spider_error, request, response):
                await self._process_spidermw_output_async(entry, response)
                await asyncio.sleep(0)
        else:
            for number, entry in enumerate(iter_errback(result, self.handle_spider_error, request, response)):
                if number:  # a callback that yields many Requests must not block the event loop
                    await asyncio.sleep(0)
                await self._process_spidermw_output_async(entry, response)


class PlainSpiderMiddlewares(SpiderMiddlewareManager):
    """Leaves a callback's plain iterable as it is, if the ``process_spider_output`` of all middlewares takes it."""

    async def scrape_response_async(self, scrape_func: Any, response: Response, request: Request) -> Any:
        if self._readers is None:
            return await super().scrape_response_async(scrape_func, response, request)
        output = await scrape_func(response, request)
        if isinstance(output, AsyncIterator):
            return await self._process_callback_output(response, output)
        for method in self._readers:
            output = method(response=response, result=output)
        return output

    @cached_property
    def _readers(self) -> list[Any] | None:
        """The methods ``process_spider_output``, nearest to the spider first; None if there are others to call."""
        found = [getattr(middleware, "process_spider_output", None) for middleware in reversed(self.middlewares)]
        readers = [method for method in found if method is not None]
        further = [*self.methods["process_spider_input"], *filter(None, self.methods["process_spider_exception"])]
        if further or self._mw_methods_requiring_spider or any(map(isasyncgenfunction, readers)):
            return None
        return readers


class PlainPipelines(ItemPipelineManager):
    """Runs the pipelines, without a coroutine for one that answers at once."""

    async def process_item_async(self, item: Any) -> Any:
        for method in self.methods["process_item"]:
            arguments = (item, self._spider) if method in self._mw_methods_requiring_spider else (item,)
            given = item
            item = method(*arguments)  # type: ignore[misc]
            if item is not given and (isawaitable(item) or isinstance(item, Deferred)):
                item = await ensure_awaitable(item, _warn=global_object_name(method))
        return item
