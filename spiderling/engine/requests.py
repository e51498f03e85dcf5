"""Requests: the Fetch that a request carries out, its headers, and how it outlives the process."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.utils import formatdate
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from spiderling.base.options import Options
from spiderling.corpus.warc import EXCHANGE
from spiderling.frontier import PICKLED, Fetch, Validators
from spiderling.items import CAPTURED, DISTANCE, ERRBACK, FETCH, PAGES, SOURCE

logger = logging.getLogger(__name__)

_OWN_META = frozenset(
    {
        *("address", "verbatim_url", "judge_type", "wire_bytes", "download_slot"),
        *("download_latency", "is_start_request", FETCH, ERRBACK, PAGES, EXCHANGE, CAPTURED),
    }
)
"""Meta keys that belong to one attempt; they are not written to disk."""
PROBED = "probed"
"""Meta key of a probe of the network: its host."""
_ACCEPT = b"text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5,*/*;q=0.1"


def fetch_of(request: Request | None) -> Fetch | None:
    """The Fetch that *request* carries out; None for a request that did not come from the frontier."""
    fetch = request.meta.get(FETCH) if request is not None else None
    return fetch if isinstance(fetch, Fetch) else None


def headers(agent: str | None, options: Options, codes: Sequence[str]) -> dict[bytes, bytes]:
    """The headers of every request.

    The User-Agent is *agent*, or our product token with the contact; *codes* are those of the accepted languages.
    """
    return {
        b"Accept": _ACCEPT,
        b"Accept-Language": ", ".join([*codes, "*;q=0.3"]).encode(),
        b"User-Agent": (agent or options.user_agent()).encode(),
    }


def conditions(validators: Validators) -> dict[bytes, bytes]:
    """The headers by which a server answers 304 if a page is as it was (RFC 9110, 13.1)."""
    sent = {b"If-None-Match": validators.etag} if validators.etag else {}
    if validators.modified:
        sent[b"If-Modified-Since"] = formatdate(validators.modified, usegmt=True).encode()
    return sent


def salt(request: Request) -> bytes:
    """What tells requests for one URL apart, as in Scrapy's dupefilter: method, body, ``dont_filter``."""
    if request.dont_filter:
        return uuid.uuid4().bytes
    return b"" if request.method == "GET" and not request.body else request.method.encode() + request.body


def is_plain(request: Request) -> bool:
    """Whether *request* says nothing but its URL."""
    others_meta = request.meta.keys() - _OWN_META - {SOURCE, DISTANCE, "depth"}
    callbacks = request.callback or request.errback or request.cb_kwargs
    sent = request.body or request.headers or request.cookies or request.method != "GET"
    return not (callbacks or sent or others_meta)


class Payloads:
    """Packs and restores the requests of one crawler, whose spider has the callbacks."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._unpicklable: dict[bytes, Request] = {}
        """Token of 16 bytes -> a request that cannot be pickled; lost with the process."""

    def of(self, request: Request) -> bytes:
        """*request* as JSON if it holds plain values alone, else pickled, which no other shard reads.

        If it cannot be pickled: a token that does not survive the process, with a warning.
        """
        spider = self._crawler.spider
        if _has_named_callbacks(request, spider):
            data = request.to_dict(spider=spider)
            data["meta"] = {key: value for key, value in data["meta"].items() if key not in _OWN_META}
            with suppress(TypeError, RecursionError):
                return json.dumps(_as_json(data)).encode()
            with suppress(pickle.PicklingError, TypeError, AttributeError, ValueError):
                return pickle.dumps(data, protocol=5)
        logger.warning(
            "%r cannot be written to disk (its callbacks must be methods of the spider, its meta picklable): "
            "it is kept in memory and fetched without them if the crawl is interrupted.",
            request,
        )
        token = uuid.uuid4().bytes
        self._unpicklable[token] = request
        return token

    def restore(self, fetch: Fetch) -> Request:
        """The request whose payload *fetch* has."""
        assert fetch.payload is not None
        request = self._unpicklable.get(fetch.payload)
        if request is None and len(fetch.payload) != 16:
            is_pickle = fetch.payload.startswith(PICKLED)  # then `of` has written it into our own state
            data = pickle.loads(fetch.payload) if is_pickle else _from_json(json.loads(fetch.payload))  # noqa: S301
            request = request_from_dict(data, spider=self._crawler.spider)
        if request is None:
            return Request(fetch.url, dont_filter=True)
        meta = {key: value for key, value in request.meta.items() if key not in _OWN_META}
        return request.replace(url=fetch.url, dont_filter=True, meta=meta)


def _as_json(value: Any) -> Any:
    """*value* as JSON can say it; raises TypeError for all but the types here, so for requests of another class too."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind in (list, tuple):
        parts = [_as_json(part) for part in value]
        return parts if kind is list else {"tuple": parts}
    if kind is not dict or "_class" in value:
        raise TypeError(f"no plain value: {kind}")
    return {"dict": [[_as_json(key), _as_json(part)] for key, part in value.items()]}


def _from_json(value: Any) -> Any:
    """What `_as_json` has made *value* of; raises ValueError or TypeError if it has not."""
    if isinstance(value, list):
        return [_from_json(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "dict" and any(key == "_class" for key, _ in inside):
        raise ValueError("a request of another class")
    return _FROM_JSON[kind](inside)


_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "tuple": lambda parts: tuple(map(_from_json, parts)),
    "dict": lambda pairs: {_from_json(key): _from_json(part) for key, part in pairs},
}
"""How JSON says a type that it has not -> what makes that again."""


def _has_named_callbacks(request: Request, spider: Spider | None) -> bool:
    """Whether callback and errback are methods of *spider*, so that their names can be written to disk."""
    return all(
        getattr(function, "__self__", None) is spider and hasattr(spider, getattr(function, "__name__", ""))
        for function in (request.callback, request.errback)
        if function
    )
