"""The values that travel between the parts: PageItem and Outcome.

``PageItem`` is what a spider yields: a response, to be filled in by the pipelines.
``Outcome`` is what a finished request leaves behind: one immutable value that goes
to the frontier (``report``) and to the checkpoint (``add``) in one synchronous step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from spiderling.linkbatch import NONE, LinkBatch
from spiderling.linkbatch import Link as Link
from spiderling.reasons import Reason

if TYPE_CHECKING:
    from scrapy.http import Response

    from spiderling.optouts import Statement
    from spiderling.text import Page
    from spiderling.warc import Exchange


class Follow(Enum):
    """Which links of a page may be followed."""

    ALL = "all"
    UNMARKED = "those without rel=nofollow"
    NONE = "none"


@dataclass(slots=True, eq=False, repr=False)
class PageItem:
    """A response on its way through the pipelines, with what they found in it."""

    response: Response
    page: Page | None = None
    """What the text worker found; set by pipeline 100, as are the next two."""
    statements: list[Statement] = field(default_factory=list)
    """What the page and its site say of the use of its text, where it is looked at."""
    follow: Follow = Follow.UNMARKED
    language: str | None = None
    """The accepted language of the document; set by pipeline 200."""
    attributes: dict[str, object] = field(default_factory=dict)
    """Those of the document, ``url``, ``title`` and so on; set by pipeline 500, seen by FEEDS (feeds.py)."""
    document: bytes | None = None
    """The rendered document, UTF-8; set by pipeline 500."""
    kept_bytes: int = 0
    """UTF-8 bytes of new clean text in the document."""
    digests: tuple[int, ...] = ()
    """Digests that are new with this page; set by pipeline 400."""
    duplicate_bytes: int = 0
    """UTF-8 bytes of the clean text that were kept before, in a corpus that marks them; set by pipeline 400."""

    seen_share: float = 0.0
    """Share of the clean text that was kept before, template text of its host mostly; set by pipeline 400."""

    def __repr__(self) -> str:
        return f"<PageItem {self.response.url}>"  # logs show items that fail; the page would fill them


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one finished request leaves behind."""

    url_id: int | None
    """The frontier's id of the URL, or None for a further item of the same response."""
    url: str
    """The URL that was asked for."""
    reason: Reason
    status: int = 0
    """HTTP status; 0 when no response came."""
    may_pass: bool = False
    """Whether another attempt may succeed (timeouts, 429, 503 ...)."""
    retry_after_s: float | None = None
    redirect_to: str | None = None
    """Absolute target of a redirect, as the server gave it."""
    redirect_payload: bytes | None = field(default=None, repr=False)
    """The serialised request to make of the target; None: the one that was redirected."""
    wire_bytes: int = 0
    body_bytes: int = 0
    """Body after content decoding, re-coded to UTF-8 (undecodable: as received)."""
    kept_bytes: int = 0
    """UTF-8 bytes of new clean text."""
    words: int = 0
    language: str | None = None
    page_language: str = ""
    """That of the page by the rule of T06 (text/declared.py), whatever became of the page; '' for unknown."""
    relevant: bool = False
    """Whether that is an accepted one."""
    badness: float = 0.0
    """That of the page (text/badness.py)."""
    detail: str = ""
    """The verdict in words: what was measured and found wanting."""
    sketch: int = 0
    """That of the page (text/sketch.py); 0 when there is none."""
    text_key: int = 0
    """64 bits of the digest of the clean text; 0 when there is none."""
    document: bytes | None = None
    facts: tuple[str, ...] = ()
    """What the ledger counts kept documents by: ``encoding/utf-8``."""
    digests: tuple[int, ...] = ()
    links: LinkBatch | tuple[Link, ...] = field(default=NONE, repr=False)
    links_cut: int = 0
    """Links of the page beyond SPIDERLING_MAX_LINKS."""
    exchange: Exchange | None = field(default=None, repr=False)
    """What went over the wire, if that is archived."""

    @property
    def is_judged(self) -> bool:
        """Whether it counts in the yield's n: a completed response with a final status."""
        no_page = self.reason in (Reason.REDIRECTED, Reason.SITEMAP)
        return self.status >= 200 and not no_page and self.status != 304 and not self.may_pass
