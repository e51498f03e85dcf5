"""What the elements around a block are called: evidence for the learned boilerplate model.

Page authors name the parts of a page after their purpose, in English whatever the
language of the text: ``<nav>``, ``class="sidebar"``, ``id="comments"``.  A zone is a set
of such kinds as bits; a block has the bits of all elements that enclose it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = {
    "navigation": r"nav|menu|crumb|tab|toolbar|pag(?:er|ina)",
    "footer": r"foot|copyright|legal|disclaim|imprint",
    "header": r"header|banner|masthead|logo|topbar",
    "side": r"side|aside|widget|right|left|rail",
    "comment": r"comment|disqus|repl(?:y|ies)|respond|discuss|feedback",
    "related": r"relat|recommend|popular|trend|most|more|teaser|promo|also|tags|archive|latest|headlines",
    "aid": r"share|social|\bads?\b|advert|sponsor|subscri|newsletter|login|cookie|consent|modal|popup|search|hidden",
    "detail": r"meta|author|byline|date|time|caption|info",
    "main": r"main|content|center",
    "text": r"article|story|post|entry|text|body|blog",
    "talk": r"thread|message|topic|quote|forum",
}
"""Kind -> pattern of names; the order is that of the bits and belongs to the fitted weights."""

_MAX_NAME_CHARS = 200
_TAGS = {
    "nav": "navigation",
    "footer": "footer",
    "header": "header",
    "aside": "side",
    "main": "main",
    "article": "text",
    "figcaption": "detail",
    "dialog": "aid",
}
_BITS = {kind: 1 << place for place, kind in enumerate(KINDS)}
_NAMES = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))
ZONED = frozenset(
    (
        *_TAGS,
        *[
            "div",
            "section",
            "form",
            "ul",
            "ol",
            "li",
            "dl",
            "dd",
            "p",
            "table",
            "tbody",
            "tr",
            "td",
            "blockquote",
            "center",
            "fieldset",
        ],
    )
)
"""Tags that may hold blocks; names on inline tags tell little and would cost a look-up each.

Names on html and body describe the whole page.
"""


def zone_of(tag: str, attributes: Mapping[str, str]) -> int:
    """The kinds, as bits, that an element's tag, class and id name."""
    if not attributes:
        return _BITS[_TAGS[tag]] if tag in _TAGS else 0
    return _named(tag, attributes.get("class"), attributes.get("id"))


@lru_cache(maxsize=16384)
def _named(tag: str, *names: str | None) -> int:
    zone = _BITS[_TAGS[tag]] if tag in _TAGS else 0
    for name in filter(None, names):
        for match in _NAMES.finditer(name[:_MAX_NAME_CHARS].lower()):
            zone |= _BITS[match.lastgroup or ""]
    return zone
