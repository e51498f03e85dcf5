"""The values that travel between the parts: PageItem and Outcome.

``PageItem`` is what a spider yields: a response, to be filled in by the pipelines.
``Outcome`` is what a finished request leaves behind: one immutable value that goes
to the frontier (``report``) and to the checkpoint (``add``) in one synchronous step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spiderling.base.link_batch import Link as Link
from spiderling.base.outcome import Follow

if TYPE_CHECKING:
    from scrapy.http import Response

    from spiderling.base.opt_outs import Statement
    from spiderling.text import Page


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
    """Those of the document, ``url``, ``title`` and so on; set by pipeline 500, seen by FEEDS."""
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
