"""What is sent with every request, and what tells two requests for one URL apart."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from scrapy import Request, Spider

    from spiderling.base.options import Options

_ACCEPT = b"text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5,*/*;q=0.1"


def headers(agent: str | None, options: Options, codes: Sequence[str]) -> dict[bytes, bytes]:
    """The headers of every request: the User-Agent *agent*, or our product token with the contact, and the languages
    *codes*."""
    ours = f"{options.robots_agent} (+{options.contact})" if options.contact else options.robots_agent
    return {
        b"Accept": _ACCEPT,
        b"Accept-Language": ", ".join([*codes, "*;q=0.3"]).encode(),
        b"User-Agent": (agent or ours).encode(),
    }


def salt(request: Request) -> bytes:
    """What tells requests for one URL apart, as Scrapy's dupefilter would: method, body, ``dont_filter``."""
    if request.dont_filter:
        return uuid.uuid4().bytes
    return b"" if request.method == "GET" and not request.body else request.method.encode() + request.body


def has_named_callbacks(request: Request, spider: Spider | None) -> bool:
    """Whether they can be written down."""
    return all(_is_method(function, spider) for function in (request.callback, request.errback) if function)


def _is_method(function: Callable[..., Any], spider: Spider | None) -> bool:
    return getattr(function, "__self__", None) is spider and hasattr(spider, getattr(function, "__name__", ""))
