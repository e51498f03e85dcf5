"""Requests: which fetch of the frontier one carries out, what is sent with each, and what tells two apart."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from scrapy import Request, Spider

from spiderling.base.options import Options
from spiderling.frontier import Fetch

FETCH = "spiderling_fetch"
"""Meta key: the frontier's Fetch that a request carries out."""
DISTANCE = "spiderling_distance"
"""Meta key of a seed: its distance."""
SOURCE = "spiderling_source"
"""Meta key of a request that a callback made: the URL of the page that it was found on."""
ERRBACK = "spiderling_errback"
"""Meta key: the request's own errback; ours stands in its place."""
PAGES = "spiderling_pages"
"""Meta key: how many PageItems the request's response has given so far."""
_ACCEPT = b"text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5,*/*;q=0.1"


def fetch_of(request: Request | None) -> Fetch | None:
    """The Fetch that *request* carries out; None for a request that did not come from the frontier."""
    fetch = request.meta.get(FETCH) if request is not None else None
    return fetch if isinstance(fetch, Fetch) else None


def headers(agent: str | None, options: Options, codes: Sequence[str]) -> dict[bytes, bytes]:
    """The headers of every request.

    The User-Agent is *agent*, or our product token with the contact; *codes* are those of the accepted languages.
    """
    ours = f"{options.robots_agent} (+{options.contact})" if options.contact else options.robots_agent
    return {
        b"Accept": _ACCEPT,
        b"Accept-Language": ", ".join([*codes, "*;q=0.3"]).encode(),
        b"User-Agent": (agent or ours).encode(),
    }


def salt(request: Request) -> bytes:
    """What tells requests for one URL apart, as in Scrapy's dupefilter: method, body, ``dont_filter``."""
    if request.dont_filter:
        return uuid.uuid4().bytes
    return b"" if request.method == "GET" and not request.body else request.method.encode() + request.body


def has_named_callbacks(request: Request, spider: Spider | None) -> bool:
    """Whether callback and errback are methods of *spider*, so that their names can be written to disk."""
    return all(_is_method(function, spider) for function in (request.callback, request.errback) if function)


def _is_method(function: Callable[..., Any], spider: Spider | None) -> bool:
    return getattr(function, "__self__", None) is spider and hasattr(spider, getattr(function, "__name__", ""))
