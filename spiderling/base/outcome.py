"""The values that a finished request leaves behind, for the frontier and for the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spiderling.base.link_batch import NONE, LinkBatch
from spiderling.base.link_batch import Link as Link
from spiderling.base.reasons import Reason

Headers = Sequence[tuple[bytes, bytes]]


class Exchange(NamedTuple):
    """A request that was made and the response that came, as far as it came."""

    url: str
    began: float  # when the exchange was recorded, after the body was read; seconds since 1970
    took_s: float  # seconds to the headers, the wait for the turn included
    address: str
    request: tuple[str, str, Headers, bytes]  # method, target, headers, body
    status_line: str
    headers: Headers  # headers of the response, as received
    body: bytes  # as received, before content decoding; without its transfer coding
    truncated: str = ""  # why the body is not whole, as WARC-Truncated says it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one finished request leaves behind."""

    url_id: int | None  # the frontier's id of the URL, or None for a further item of the same response
    url: str  # the URL that was asked for
    reason: Reason
    status: int = 0  # HTTP status; 0 when no response came
    may_pass: bool = False  # whether another attempt may succeed (timeouts, 429, 503 ...)
    retry_after_s: float | None = None
    redirect_to: str | None = None  # absolute target of a redirect, as the server gave it
    set_cookies: tuple[bytes, ...] = field(default=(), repr=False)  # the headers Set-Cookie of a redirect
    redirect_payload: bytes | None = field(default=None, repr=False)
    """The serialised request for the target; None: the redirected request is used again."""
    wire_bytes: int = 0
    body_bytes: int = 0  # bytes of the body after content decoding: of a page in UTF-8, else as received
    kept_bytes: int = 0  # UTF-8 bytes of new clean text
    words: int = 0
    language: str | None = None
    page_language: str = ""
    """The page's language, declared or recognised (Somboonviwat et al. 2006, text/declared.py); '' if unknown.

    It is set however the page ended."""
    relevant: bool = False  # whether `page_language` is an accepted one
    badness: float = 0.0  # badness of the page (text/quality.py)
    detail: str = ""  # the cause in words: what was measured, or the error
    sketch: int = 0  # sketch of the page (text/fingerprints.py); 0 when there is none
    text_key: int = 0  # 64 bits of the digest of the clean text; 0 when there is none
    document: bytes | None = None
    facts: tuple[str, ...] = ()  # keys under which the ledger counts a kept document, such as ``encoding/utf-8``
    digests: tuple[int, ...] = ()
    links: LinkBatch | tuple[Link, ...] = field(default=NONE, repr=False)
    links_cut: int = 0  # number of the page's links beyond MAX_LINKS (text/html/blocks.py)
    etag: bytes = b""  # the ETag of the answer, if it is short enough to be stored (frontier/recrawl/pages.py)
    modified: int = 0  # its Last-Modified, seconds since 1970; 0: none
    feeds: tuple[str, ...] = ()  # addresses of the feeds that the page names
    paragraphs: bytes = field(default=b"", repr=False)
    """8-byte digests of the page's paragraphs; empty: they are not noted."""
    exchange: Exchange | None = field(default=None, repr=False)
    """The exchange with the server, if the crawl archives exchanges."""

    @property
    def is_judged(self) -> bool:
        """Whether it counts in the yield's n: a completed response with a final status."""
        is_final = self.status >= 200 and self.status != 304 and not self.may_pass
        return is_final and self.reason not in (Reason.REDIRECTED, Reason.SITEMAP)
