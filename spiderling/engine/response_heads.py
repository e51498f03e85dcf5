"""What the head of a response decides: whether its body is not wanted, and how large it may be."""

from __future__ import annotations

from urllib.parse import quote, unquote

from scrapy import Request
from scrapy.http import Headers

from spiderling.base import media_types
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.fetch.errors import ResponseRefused
from spiderling.fetch.http1 import ResponseHead
from spiderling.text.declared import language_of_tag

_ASCII = bytes(range(128))
_DESCRIBING = (b"Content-Type", b"Content-Disposition")


class ResponseHeads:
    """Judges responses by status and headers, before anything of their bodies is read."""

    def __init__(self, options: Options, accepted: frozenset[str], documents: frozenset[str]) -> None:
        """*accepted*: codes of the languages that are wanted; *documents*: kinds of them (base/media_types.py)."""
        self._options = options
        self._accepted = accepted
        self._documents = documents

    def judge(self, head: ResponseHead, headers: Headers, request: Request) -> int:
        """Most bytes that the body may have; raises ResponseRefused if *head* rules the response out.

        Unwanted types and languages are refused if ``request.meta`` says ``judge_type``.
        """
        judges_type = head.status == 200 and request.meta.get("judge_type")
        content_type = disposition = ""
        if judges_type or self._documents:
            content_type, disposition = (value_of(headers, name).decode("latin-1") for name in _DESCRIBING)
        path = unquote(request.url.partition("#")[0].partition("?")[0])
        is_document = bool(self._documents) and (
            media_types.of_headers(content_type, disposition, path) in self._documents
        )
        if judges_type:
            if not is_document and not media_types.is_text(content_type, disposition):
                raise ResponseRefused(Reason.NOT_TEXT, f"{request.url} is {headers.get(b'Content-Type')!r}, not text.")
            if not self._may_be_ours(headers):
                raise ResponseRefused(Reason.WRONG_LANGUAGE, f"{request.url} is in {headers[b'Content-Language']!r}.")
        limit = self._options.max_document_bytes if is_document else self._options.max_body_bytes
        limit = min(limit, request.meta.get("download_maxsize") or limit)
        if head.length is not None and head.length > limit and request.method != "HEAD":
            raise ResponseRefused(Reason.TOO_BIG, f"{request.url} announces {head.length} bytes, more than {limit}.")
        return limit

    def judge_body(self, head: ResponseHead, headers: Headers, request: Request, body: bytes) -> None:
        """Raise ResponseRefused if the type that `judge` let pass is XML, and the decoded *body* is no page."""
        judges_type = head.status == 200 and request.meta.get("judge_type")
        if judges_type and media_types.is_other_xml(value_of(headers, b"Content-Type").decode("latin-1"), body):
            raise ResponseRefused(Reason.NOT_TEXT, f"{request.url} is XML, and not XHTML.")

    def _may_be_ours(self, headers: Headers) -> bool:
        """Whether Content-Language names a wanted language, or none, or is ignored."""
        if self._options.content_language == "ignore":
            return True
        tags = b",".join(headers.getlist(b"Content-Language")).decode("latin-1").split(",")
        declared = {code for code in map(language_of_tag, tags) if code}
        return not declared or not declared.isdisjoint(self._accepted)


def escaped(address: bytes) -> str:
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
