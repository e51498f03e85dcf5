"""What a response means: whether its head lets its body be read, what its headers say, the Outcome it ends with."""

from __future__ import annotations

import email.utils
import re
import sqlite3
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    DropItem,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Request, Response

from spiderling.base import media_types
from spiderling.base.errors import StorageError, is_ours
from spiderling.base.link_batch import NONE as NO_LINKS
from spiderling.base.link_batch import LinkBatch
from spiderling.base.opt_outs import Follow, Signal, Statement
from spiderling.base.options import Options
from spiderling.base.outcome import Exchange, Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.corpus.duplicates import digest_key, unsigned_key
from spiderling.corpus.warc import EXCHANGE
from spiderling.engine.requests import fetch_of
from spiderling.fetch.errors import ResponseRefused
from spiderling.fetch.messages import ResponseHead
from spiderling.frontier import MAX_ETAG_BYTES, MAX_FILE_BYTES
from spiderling.items import PageItem
from spiderling.text import Page

_MAX_DETAIL_CHARS = 200
_ETAG = re.compile(rb'(?:W/)?"[!#-~]*"')
_ENDS: tuple[tuple[tuple[type[BaseException], ...], Reason, bool], ...] = (
    ((DownloadTimeoutError,), Reason.TIMEOUT, True),
    ((CannotResolveHostError,), Reason.DNS, True),
    ((IgnoreRequest, DownloadCancelledError, UnsupportedURLSchemeError), Reason.ABANDONED, False),
    ((MemoryError, sqlite3.Error, StorageError), Reason.INTERNAL_ERROR, False),
    ((OSError, DownloadFailedError, DownloadConnectionRefusedError, ResponseDataLossError), Reason.CONNECTION, True),
)
"""Errors without a Reason of their own, the Reason, whether another attempt may succeed; the first that fits counts."""
_INDEXING = {Signal.NOINDEX, Signal.NOARCHIVE, Signal.UNAVAILABLE_AFTER}
_HEADERS = (b"X-Robots-Tag", b"Link", b"tdm-reservation", b"tdm-policy", b"Content-Usage", b"Content-Signal")
_KEYS = Headers(dict.fromkeys(_HEADERS, b"")).keys()
_ASCII = bytes(range(128))


class ResponseHeads:
    """Judges responses by status and headers, before anything of their bodies is read."""

    def __init__(self, options: Options, documents: frozenset[str]) -> None:
        """*documents*: kinds that are wanted (base/media_types.py)."""
        self._options = options
        self._documents = documents

    def judge(self, head: ResponseHead, headers: Headers, request: Request) -> int:
        """Most bytes that the body may have; raises ResponseRefused if *head* rules the response out.

        Unwanted types are refused if ``request.meta`` says ``judge_type``.
        """
        judges_type = head.status == 200 and request.meta.get("judge_type")
        content_type = value_of(headers, b"Content-Type").decode("latin-1")
        disposition = value_of(headers, b"Content-Disposition").decode("latin-1")
        path = unquote(request.url.partition("#")[0].partition("?")[0])
        is_document = bool(self._documents) and (
            media_types.of_headers(content_type, disposition, path) in self._documents
        )
        if judges_type and not is_document and not media_types.is_text(content_type, disposition):
            raise ResponseRefused(Reason.NOT_TEXT, f"{request.url} is {headers.get(b'Content-Type')!r}, not text.")
        limit = media_types.MAX_DOCUMENT_BYTES if is_document else self._options.max_body_bytes
        if (fetch := fetch_of(request)) is not None and fetch.robots is not None:
            limit = max(limit, MAX_FILE_BYTES)  # small pages alone may be wanted, but the rules of a site are read
        limit = min(limit, request.meta.get("download_maxsize") or limit)
        if head.length is not None and head.length > limit and request.method != "HEAD":
            raise ResponseRefused(Reason.TOO_BIG, f"{request.url} announces {head.length} bytes, more than {limit}.")
        return limit

    def judge_body(self, head: ResponseHead, headers: Headers, request: Request, body: bytes) -> None:
        """Raise ResponseRefused if the type that `judge` let pass is XML, and the decoded *body* is no page."""
        content_type = value_of(headers, b"Content-Type")
        if head.status != 200 or not request.meta.get("judge_type") or b"xml" not in content_type.lower():
            return
        if media_types.is_other_xml(content_type.decode("latin-1"), body):
            raise ResponseRefused(Reason.NOT_TEXT, f"{request.url} is XML, and not XHTML.")


def escape(address: bytes) -> str:
    """*address*, a header's, with its bytes beyond ASCII percent-encoded, as browsers do whatever their encoding is.

    (Chromium's HttpResponseHeaders::IsRedirect; web-platform-tests, fetch/api/redirect/redirect-location-escape.)
    """
    return quote(address.strip(), safe=_ASCII)


def value_of(headers: Headers, name: bytes) -> bytes:
    """The last value of the header *name*, empty if there is none.

    *name* is in title case, as Scrapy keeps names; ``headers.get`` puts it so at each call.
    """
    values: list[bytes] = dict.get(headers, name) or [b""]
    return values[-1]


def headers_of(response: Response) -> list[tuple[str, str]]:
    """The headers of *response* that may hold statements."""
    if not _KEYS & response.headers.keys():
        return []
    return [(name.decode(), value.decode("latin-1")) for name in _HEADERS for value in response.headers.getlist(name)]


def end_by(binding: Statement) -> Reason:
    """NOINDEX or OPTED_OUT, for a page whose use *binding* refuses."""
    return Reason.NOINDEX if binding.signal in _INDEXING else Reason.OPTED_OUT


class DropPage(DropItem):
    """A page that a pipeline drops, with its Reason."""

    def __init__(self, reason: Reason, message: str = "") -> None:
        super().__init__(message or reason.help, log_level="DEBUG")
        self.reason = reason


class PutBack(DropItem):
    """A page that cannot be judged now, or is one too many: its URL waits again."""

    def __init__(self, message: str) -> None:
        super().__init__(message, log_level="DEBUG")


class Refused(IgnoreRequest):
    """A response that ends in the downloader middlewares; *facts* are fields of its Outcome."""

    def __init__(self, reason: Reason, response: Response, **facts: Any) -> None:
        super().__init__(f"{reason.value}: {response.url} ({response.status})")
        self.reason = reason
        self.facts = {"status": response.status, "body_bytes": len(response.body), **facts}


class NotMade(IgnoreRequest):
    """A request that was not sent: its URL waits again."""


class FileTaken(IgnoreRequest):
    """The response is a robots.txt or the like, or a sitemap, and the frontier has taken it."""


def of_item(item: PageItem, reason: Reason, detail: str = "") -> Outcome:
    """The outcome of a page that went through the pipelines; *detail* says why it was dropped."""
    response = item.response
    page = item.page
    request = response.request
    fetch = item.fetch
    kept = reason is Reason.KEPT
    is_reserved = reason is Reason.SITE_OPTED_OUT  # then nothing of its text stays
    return Outcome(
        url_id=fetch.id if fetch else None,
        url=request.url if request else response.url,
        reason=reason,
        status=response.status,
        wire_bytes=_wire_bytes(request),
        body_bytes=page.utf8_bytes if page else len(response.body),
        kept_bytes=item.kept_bytes if kept else 0,
        words=page.words if kept and page else 0,
        language=item.language,
        page_language=page.lswc_language if page else "",
        relevant=page.lswc_relevant if page else False,
        badness=page.badness if page else 0.0,
        detail=detail[:_MAX_DETAIL_CHARS] if detail != reason.help else "",
        sketch=page.sketch if page and not is_reserved else 0,
        text_key=text_key(page) if page and not is_reserved else 0,
        document=item.document if kept else None,
        facts=_facts(item) if kept else (),
        digests=item.digests if kept else (),
        feeds=page.feeds if page else (),
        paragraphs=item.paragraphs if kept or (fetch is not None and fetch.revisit is not None) else b"",
        links=links_of(page, item.follow) if page else NO_LINKS,
        links_cut=page.links_cut if page else 0,
        etag=etag(response),
        modified=last_modified(response),
        exchange=exchange_of(request),
    )


def digests_of(page: Page) -> tuple[int, int]:
    """By which another page is found to be its duplicate: as received, and by its clean text."""
    return digest_key(page.raw_digest), digest_key(page.text_digest)


def text_key(page: Page) -> int:
    """64 bits of the digest of the page's clean text; 0 if it has none."""
    return unsigned_key(page.text_digest) if page.clean_bytes else 0


def etag(response: Response) -> bytes:
    """The ETag of *response*; empty if there is none that can be stored and sent again."""
    if b"Etag" not in response.headers:
        return b""
    value = value_of(response.headers, b"Etag")
    return value if len(value) <= MAX_ETAG_BYTES and _ETAG.fullmatch(value) else b""


def last_modified(response: Response) -> int:
    """Its Last-Modified, in seconds since 1970; 0 if there is none that can be sent again byte for byte.

    One later than the answer itself is none: a server might call the page unchanged until then (RFC 9110, 8.8.2.1).
    """
    if b"Last-Modified" not in response.headers:
        return 0
    modified = _date(response, b"Last-Modified")
    sent = _date(response, b"Date")
    return 0 if 0 < sent < modified else modified


def _date(response: Response, name: bytes) -> int:
    """The header *name*, a date, in seconds since 1970; 0 if it is none as RFC 9110, 5.6.7, wants it."""
    text = value_of(response.headers, name).decode("latin-1")
    seconds = date_of(text) or 0
    return int(seconds) if 0 < seconds < 1 << 32 and email.utils.formatdate(seconds, usegmt=True) == text else 0


def date_of(text: str) -> float | None:
    """A date of a header in seconds since 1970, also one in another form than RFC 9110 wants; None if it is none."""
    try:
        date = email.utils.parsedate_tz(text)
        return None if date is None else email.utils.mktime_tz(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _facts(item: PageItem) -> tuple[str, ...]:
    """The keys by which card and report count the page; cut short, since a page may give any text as its licence."""
    page = item.page
    if page is None:
        return ()
    facts = [f"encoding/{page.encoding_detected}", f"declared/{page.encoding_declared or 'nothing'}"]
    facts += [f"file/{page.file_type}", f"licence/{page.licence or 'none stated'}"]
    facts += [f"sure/{page.licence_sure}"] if page.licence_sure else []
    facts += [f"optout/{signal}" for signal in sorted({said.signal.value for said in item.statements})]
    return tuple([fact[:_MAX_DETAIL_CHARS].encode("utf-8", "replace").decode() for fact in facts])


def further(outcome: Outcome) -> Outcome:
    """*outcome* for a second item of the same response: its text counts, the response has counted already."""
    return replace(outcome, url_id=None, status=0, wire_bytes=0, body_bytes=0, exchange=None)


def of_response(response: Response, reason: Reason) -> Outcome:
    """The outcome of a response that a callback handled, or failed to handle, without a page."""
    fetch = fetch_of(response.request)
    return Outcome(
        url_id=fetch.id if fetch else None,
        url=response.request.url if response.request else response.url,
        reason=reason,
        status=response.status,
        wire_bytes=_wire_bytes(response.request),
        body_bytes=len(response.body),
        etag=etag(response),
        modified=last_modified(response),
        exchange=exchange_of(response.request),
    )


def of_failure(request: Request, error: BaseException) -> Outcome:
    """The outcome of a request that gave no response, or one that was refused."""
    fetch = fetch_of(request)
    reason, may_pass = _judge(error)
    wire_bytes = _wire_bytes(request)
    facts: dict[str, Any] = {
        "may_pass": may_pass,
        "body_bytes": wire_bytes,
        "detail": f"{type(error).__name__}: {error}",
    }
    if isinstance(error, Refused):
        facts |= {"detail": ""} | error.facts
    facts["detail"] = facts["detail"][:_MAX_DETAIL_CHARS]
    exchange = exchange_of(request)
    url_id = fetch.id if fetch else None
    return Outcome(url_id, request.url, reason, wire_bytes=wire_bytes, exchange=exchange, **facts)


def redirect(request: Request, outcome: Outcome) -> Request | None:
    """The request for a redirect's target; None if *request* itself can be used, or *outcome* is no redirect.

    After 303, and after a POST answered by 301 or 302, it is a GET without a body (RFC 9110, 15.4).  Another origin
    does not get the credentials.
    """
    if outcome.redirect_to is None:
        return None
    source = canonicalize(request.url)
    target = canonicalize(outcome.redirect_to)
    dropped: set[bytes] = set()
    is_post = request.method == "POST"
    to_get = (outcome.status == 303 and request.method != "HEAD") or (is_post and outcome.status in (301, 302))
    if to_get and request.method != "GET":
        dropped |= {b"Content-Type", b"Content-Length", b"Content-Encoding"}
    if source is None or target is None or source.origin != target.origin:
        dropped |= {b"Authorization", b"Cookie"} & request.headers.keys()
    if not dropped:
        return None
    headers = {name: values for name, values in request.headers.items() if name not in dropped}
    method, body = ("GET", b"") if to_get else (request.method, request.body)
    return request.replace(headers=headers, method=method, body=body)


def links_of(page: Page, follow: Follow) -> LinkBatch:
    """The links of a page that may be followed."""
    if follow is Follow.NONE:
        return NO_LINKS
    return page.batch if follow is Follow.ALL else page.batch.followed()


def reason_of(error: BaseException) -> Reason:
    """The Reason with which *error* ends a request."""
    return _judge(error)[0]


def _judge(error: BaseException) -> tuple[Reason, bool]:
    """The Reason of a failure, and whether another attempt may succeed."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, Reason):
        return reason, bool(getattr(error, "may_pass", False))
    for kinds, reason, may_pass in _ENDS:
        if isinstance(error, kinds):
            return reason, may_pass
    return (Reason.INTERNAL_ERROR, False) if is_ours(error) else (Reason.CONNECTION, True)


def exchange_of(request: Request | None) -> Exchange | None:
    """Take the Exchange out of *request*; a second call gives None, so that it is archived once."""
    return request.meta.pop(EXCHANGE, None) if request is not None else None


def _wire_bytes(request: Request | None) -> int:
    return int(request.meta.get("wire_bytes") or 0) if request is not None else 0
