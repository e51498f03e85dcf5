"""Text that a page holds in JSON for its scripts: the longest prose in it, unless it is marked as not free.

A page that a browser fills by script often carries its text in JSON: as ``articleBody`` of JSON-LD for search engines,
or as the state with which its framework begins (Next.js, Nuxt, Redux, Apollo).  No script is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spiderling.text.embedded.prose import Prose, Shown, longest_prose
from spiderling.text.embedded.reserved import is_reserved
from spiderling.text.embedded.scripts import scripts_with_text, values_in
from spiderling.text.html.blocks import Block

SHORT_CHARS = 1000
"""Characters of good text below which a page's JSON is looked at; chosen: a teaser has fewer, an article more."""
LEAST_CHARS = 250
"""Characters of prose that are text; chosen, the least of a document (text/quality.py)."""
_MIN_FACTOR = 2.0
"""How many times as long as the good text outside of scripts it must be; chosen: else it is the same text."""
_BEGIN = b'<div class="article-body">'
_END = b"</div>"


class EmbeddedText(NamedTuple):
    """The text in a page's JSON."""

    html: bytes
    """UTF-8, one <div>."""
    source: str
    """Where it was: a value of `scripts.SOURCES`."""


def embedded_text(html: bytes, blocks: Sequence[Block], good_chars: int) -> EmbeddedText | None:
    """The text in the JSON of a page, *html* in UTF-8, that is far longer than the good text of its *blocks*.

    None if there is none, or the page says that it is not free.  Never raises, in time linear in the page's length.
    """
    scripts = scripts_with_text(html)
    if not scripts:
        return None
    shown = Shown([block.text for block in blocks])
    found = ((longest_prose(value, source, shown), source) for source, value in values_in(scripts))
    best, source = max(found, key=lambda pair: pair[0].chars, default=(Prose("", 0), ""))
    if best.chars < max(LEAST_CHARS, _MIN_FACTOR * good_chars) or is_reserved(html, blocks):
        return None
    return EmbeddedText(_BEGIN + best.html.encode("utf-8", "replace") + _END, source)
