"""Requests of a user's spider as bytes that the frontier keeps across restarts, and back."""

from __future__ import annotations

import logging
import pickle
import uuid

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from spiderling.corpus.warc import EXCHANGE
from spiderling.engine import requests
from spiderling.engine.requests import DISTANCE, ERRBACK, FETCH, PAGES, SOURCE
from spiderling.frontier import Fetch

logger = logging.getLogger(__name__)

_OWN_META = frozenset(
    {
        *("address", "fallback_address", "verbatim_url", "judge_type", "wire_bytes", "download_slot"),
        *("download_latency", "is_start_request", FETCH, ERRBACK, PAGES, EXCHANGE),
    }
)
"""Meta keys that belong to one attempt; they are not written to disk."""


class Payloads:
    """Packs and restores the requests of one crawler, whose spider has the callbacks."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._unpicklable: dict[bytes, Request] = {}
        """Token of 16 bytes -> a request whose callbacks are no methods of the spider; lost with the process."""

    def of(self, request: Request) -> bytes:
        """*request* in a form that survives the process."""
        spider = self._crawler.spider
        data = request.to_dict(spider=spider) if requests.has_named_callbacks(request, spider) else None
        if data is not None:
            data["meta"] = {key: value for key, value in data["meta"].items() if key not in _OWN_META}
            try:
                return pickle.dumps(data, protocol=5)
            except (pickle.PicklingError, TypeError, AttributeError, ValueError):
                pass
        logger.warning(
            "%r cannot be written to disk (its callbacks must be methods of the spider, its meta picklable): "
            "it is kept in memory and fetched without them if the crawl is interrupted.",
            request,
        )
        token = uuid.uuid4().bytes
        self._unpicklable[token] = request
        return token

    def restored(self, fetch: Fetch) -> Request:
        """The request whose payload *fetch* has."""
        assert fetch.payload is not None
        request = self._unpicklable.get(fetch.payload)
        if request is None and len(fetch.payload) != 16:
            data = pickle.loads(fetch.payload)  # noqa: S301 - written by `of` into our own state
            request = request_from_dict(data, spider=self._crawler.spider)
        if request is None:
            return Request(fetch.url, dont_filter=True)
        meta = {key: value for key, value in request.meta.items() if key not in _OWN_META}
        return request.replace(url=fetch.url, dont_filter=True, meta=meta)


def is_plain(request: Request) -> bool:
    """Whether *request* says nothing but its URL."""
    others_meta = request.meta.keys() - _OWN_META - {SOURCE, DISTANCE, "depth"}
    callbacks = request.callback or request.errback or request.cb_kwargs
    sent = request.body or request.headers or request.cookies or request.method != "GET"
    return not (callbacks or sent or others_meta)
