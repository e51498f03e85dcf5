"""Parts of Scrapy that make no coroutine, task, slot or Deferred for an answer that is there at once.

Calls and results are those of Scrapy.  Settings name three parts: DOWNLOADER, ITEM_PROCESSOR and STATS_CLASS.  For the
others `install` changes the class of Scrapy's objects, unless they are of a subclass.  That saves 19 % of the main
process' processor time a page (13 to 28 % in six pairs of ``benchmarks/crawl.py instant --pages 3000``, with and
without it in turn).

This is the only module that uses private parts of Scrapy.  So it is used with releases alone that all tests have passed
with (TRIED), and not if the user's project names a DOWNLOADER; otherwise Scrapy's own parts run.  tests/test_plain.py
compares both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import cached_property, lru_cache
from inspect import CO_VARKEYWORDS, isasyncgenfunction, isawaitable
from types import FunctionType
from typing import Any, cast

from pydispatch import dispatcher, robustapply  # type: ignore[import-untyped]
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.crawler import Crawler
from scrapy.exceptions import _InvalidOutput
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import aiter_errback, deferred_from_coro, ensure_awaitable, iter_errback
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.python import global_object_name
from scrapy.utils.spider import iterate_spider_output
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from spiderling.base.machine import RESERVED, descriptor_limit, open_descriptors, raise_descriptor_limit

logger = logging.getLogger(__name__)


def install(crawler: Crawler) -> None:
    """Replace the parts of *crawler*, whose engine is made and has our downloader."""
    engine = crawler.engine
    if type(crawler.signals) is SignalManager:
        crawler.signals.__class__ = PlainSignals
    if type(engine) is not ExecutionEngine or type(engine.scraper) is not Scraper:
        return
    if engine.scraper.concurrent_items == 1:
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

    async def download_async(self, request: Request) -> Response:
        """The answer to *request*, which passes through the downloader middlewares alone."""
        assert self._slot is not None
        self._slot.add_request(request)
        try:
            result = await self._fetched(request)
        finally:
            self._slot.remove_request(request)
            self._slot.nextcall.schedule()
        if isinstance(result, Failure):
            result.raiseException()
        return result if isinstance(result, Response) else await self.download_async(result)

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


class DirectDownloader(Downloader):
    """Scrapy's downloader without slots: the frontier has decided what is due, so nothing waits here again.

    A slot costs a queue, a Deferred, a task and a kilobyte for each host, and most hosts are asked once.
    ``DOWNLOAD_DELAY``, ``DOWNLOAD_SLOTS`` and limits by domain or IP have no effect.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.middleware = PlainMiddlewares(*self.middleware.middlewares, crawler=crawler)
        self._bound_concurrency()

    def _bound_concurrency(self) -> None:
        """Have no more requests at once than there are file descriptors for; a quarter is left to the live page."""
        raise_descriptor_limit()
        free = descriptor_limit() - RESERVED - open_descriptors()
        most = max(1, free * 3 // 4)
        if most < self.total_concurrency:
            logger.warning(
                "At most %d requests run at the same time, not CONCURRENT_REQUESTS=%d: this process may have %d files "
                "and sockets open (ulimit -n)", most, self.total_concurrency, descriptor_limit()
            )  # fmt: skip
            self.total_concurrency = most

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Send *request* through the downloader middlewares to the handler."""
        self.active.add(request)  # at once: the engine asks `needs_backout` before the task has begun
        return deferred_from_coro(self.fetched(request))

    async def fetched(self, request: Request) -> Response | Request:
        """`fetch` as a coroutine."""
        self.active.add(request)
        try:
            return await self.middleware.download_async(self._ask, request)
        finally:
            self.active.remove(request)

    async def _ask(self, request: Request) -> Response:
        send = self.signals.send_catch_log
        spider = self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            response = await self._handled(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)

    def _handled(self, request: Request) -> Awaitable[Response]:
        """The answer of the scheme's handler, which Scrapy finds by parsing the URL."""
        scheme = request.url.partition(":")[0]
        handler = self.handlers._handlers.get(scheme)
        if handler is None or scheme in self.handlers._old_style_handlers:
            return self.handlers.download_request_async(request)
        return handler.download_request(request)


class PlainMiddlewares(DownloaderMiddlewareManager):
    """Runs the downloader middlewares, without a coroutine for one that answers at once."""

    def _handle_mw_method(self, method: Callable[..., Any], **values: Any) -> Any:
        is_new = not self._mw_methods_requiring_spider
        return method(**values) if is_new else super()._handle_mw_method(method, **values)

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
    """The answer of a middleware's *method*, awaited if need be; raises _InvalidOutput."""
    if not isinstance(answer, (Response, Request)):
        answer = await ensure_awaitable(answer, _warn=global_object_name(method))
    if isinstance(answer, (Response, Request)) or (is_optional and answer is None):
        return answer
    raise _InvalidOutput(f"Middleware {method.__qualname__} must return a Response or Request, got {answer!r}")
