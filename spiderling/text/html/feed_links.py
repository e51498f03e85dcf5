"""Finds the feeds that a page names: ``<link rel=alternate>`` with the media type of RSS, Atom or JSON Feed.

It is a scan of the page's beginning apart from the parser, for the crawls that want feeds; most pages without any are
told by three searches for the media types.
"""

from __future__ import annotations

import html
import re
from itertools import islice

from spiderling.text.encoding.labels import query_in
from spiderling.text.html.links import join

MAX_FEEDS = 8
"""Feeds of a page that are named (chosen: most name one or two, for articles and for comments)."""
_HEAD_BYTES = 1 << 18
"""Bytes in which these elements stand (chosen: heads with long styles and scripts have some 100 kB)."""
_MAX_LINKS = 1000
"""Elements that are looked at (chosen)."""
_TYPES = (b"application/rss+xml", b"application/atom+xml", b"application/feed+json")
_LINK = re.compile(rb"<link\b([^<>]{0,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def feeds_of(body: bytes, base: str, codec: str = "utf-8") -> tuple[str, ...]:
    """The absolute addresses of the feeds in *body*, HTML whose addresses are relative to *base*.

    It is in UTF-8, and was in *codec*.
    """
    head = body[:_HEAD_BYTES]
    lower = head.lower()
    if not any(kind in lower for kind in _TYPES):
        return ()
    found: dict[str, None] = {}
    for link in islice(_LINK.finditer(head), _MAX_LINKS):
        attributes = _attributes(link[1].decode("utf-8", "replace"))
        kind = attributes.get("type", "").partition(";")[0].strip().lower().encode()
        if kind in _TYPES and "alternate" in attributes.get("rel", "").lower().split():
            href = query_in(codec, attributes.get("href", "").strip())
            address = join(base, href) if href else None
            if address and address.startswith(("http://", "https://")):
                found[address] = None
    return tuple(found)[:MAX_FEEDS]


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a tag, names in lower case; of two with one name the first counts, as in HTML."""
    pairs = ((name.lower(), html.unescape(a or b or c)) for name, a, b, c in _ATTRIBUTE.findall(text))
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found
