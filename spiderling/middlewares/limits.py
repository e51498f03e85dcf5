"""Downloader middleware: lets only pages go on to the spider; redirects and error statuses end here."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import ada_url
from scrapy import Request, Spider
from scrapy.http import Response

from spiderling.base.digits import whole_number
from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.opt_outs import end_by, headers_of
from spiderling.engine.outcomes import Refused
from spiderling.engine.requests import fetch_of, look_of
from spiderling.engine.response_heads import escaped, value_of
from spiderling.frontier.chain_cookies import MAX_COOKIES
from spiderling.text.optout import page_statements

_REDIRECTS = {301, 302, 303, 307, 308}
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
_RETRY_AFTER_OBEYED = {429, 503}
_REFUSALS = {402: Reason.PAYMENT_REQUIRED, 451: Reason.UNAVAILABLE_FOR_LEGAL_REASONS}


class LimitsMiddleware(Component):
    """Raises Refused for a status that is no page's, unless request or spider takes it (handle_httpstatus_list)."""

    def process_response(self, request: Request, response: Response) -> Response:
        if 200 <= response.status < 300 or fetch_of(request) is None:
            return response
        if wants_status(request, self._crawler.spider, response.status):
            return response
        if response.status == 304 and look_of(request) is not None:
            raise self._unchanged(response)
        target = redirect_target(response)
        if target is not None and not request.meta.get("dont_redirect"):
            cookies = tuple(response.headers.getlist(b"Set-Cookie")[:MAX_COOKIES])
            raise Refused(Reason.REDIRECTED, response, redirect_to=target, set_cookies=cookies)
        raise Refused(
            _REFUSALS.get(response.status, Reason.HTTP_ERROR),
            response,
            may_pass=may_pass(response),
            retry_after_s=asked_to_wait_s(response),
            detail=_price(response),
        )

    def _unchanged(self, response: Response) -> Refused:
        """The end of a look at a page that is as it was, though its headers may refuse its use by now."""
        crawl = self.crawl
        said = page_statements(headers_of(response), {}, crawl.options, crawl.clock.now())
        binding = crawl.opt_outs.binding(said)
        if binding is None:
            return Refused(Reason.HTTP_ERROR, response)
        return Refused(end_by(binding), response, detail=str(binding))


def may_pass(response: Response) -> bool:
    """Whether another attempt may bring another answer."""
    return response.status in _MAY_PASS


def redirect_target(response: Response) -> str | None:
    """The absolute URL of a redirect's target; None if *response* is no redirect or its Location no URL."""
    location = value_of(response.headers, b"Location") if response.status in _REDIRECTS else b""
    if not location:
        return None
    try:
        return str(ada_url.join_url(response.url, escaped(location)))
    except ValueError:
        return None


def asked_to_wait_s(response: Response) -> float | None:
    """Seconds for which the server asks to be left alone; None if it does not."""
    return retry_after_s(response, time.time()) if response.status in _RETRY_AFTER_OBEYED else None


def retry_after_s(response: Response, wall_time: float) -> float | None:
    """Seconds in Retry-After, a number or a date (RFC 9110, 10.2.3); None if there is none that can be read."""
    text = (response.headers.get(b"Retry-After") or b"").decode("latin-1").strip()
    if (seconds := whole_number(text)) is not None:
        return float(seconds)
    try:
        date = email.utils.parsedate_tz(text)
        return None if date is None else max(0.0, email.utils.mktime_tz(date) - wall_time)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _price(response: Response) -> str:
    """What the page would cost, as Cloudflare's Pay per crawl says it; '' if nothing does."""
    price = (response.headers.get(b"Crawler-Price") or b"").decode("latin-1")
    return f"crawler-price: {price[:80]}" if price else ""


def wants_status(request: Request, spider: Spider | None, status: int) -> bool:
    """Whether request or spider takes answers of *status*."""
    if request.meta.get("handle_httpstatus_all"):
        return True
    wanted: Any = request.meta.get("handle_httpstatus_list", getattr(spider, "handle_httpstatus_list", ()))
    return status in wanted
