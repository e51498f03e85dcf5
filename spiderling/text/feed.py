"""Reads what a feed lists: RSS 0.9 to 2.0, Atom (RFC 4287), JSON Feed 1.0 and 1.1.

An entry of RSS or Atom may hold its licence by RSL (RSL 1.0, 4.7: ``<rsl:content>`` in ``<item>``).

Entities that a file defines are not expanded, nothing is fetched, and malformed XML is read as far as it can be.  A
feed lists a site's newest pages, so few entries are read of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from lxml import etree

from spiderling.base import rsl
from spiderling.text.declared import iso_date
from spiderling.text.embedded.scripts import decoded
from spiderling.text.html.links import join

MAX_BYTES = 8 * 1024 * 1024
"""Bytes that are read of a feed, in less than a second (chosen; feeds with whole articles have some hundred kB)."""
MAX_ENTRIES = 1000
"""Entries that are read of a feed (chosen: 98 % of 23,681 feeds have at most 50, Vogels 2004)."""
_MAX_URL = 8192
"""Characters of an address."""
_PUBLISHED = {"pubdate", "published", "date", "issued"}
_MODIFIED = {"updated", "modified"}
"""Names of elements that date an entry, in small letters, in RSS, its module Dublin Core, Atom 1.0 and 0.3."""

_RSL = "{" + rsl.NAMESPACE + "}"
MAX_LICENCE_BYTES = 500 * 1024
"""Bytes of the licences in a feed that are read: as many as of a licence file (frontier/site_files.py)."""
_UNREAD = b"<"
"""Stands for a licence beyond that limit: terms that cannot be read."""
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
"""Read at the root and at an entry: to add up those of all elements above takes quadratic time."""


class Entry(NamedTuple):
    """A page that a feed lists."""

    url: str
    """Absolute."""
    published: str
    """As YYYY-MM-DD, with THH:MM[:SS][zone] if a time is given; '' without a date."""
    modified: str
    licence: bytes = b""
    """An RSL file with what the entry says of its use; empty: nothing."""


class Feed(NamedTuple):
    """The entries of a feed in their order, each address once."""

    entries: list[Entry]
    left_out: int = 0
    """Number of entries beyond the limit."""


def read_feed(body: bytes, address: str, most: int = MAX_ENTRIES) -> Feed:
    """The first *most* entries of the feed in *body*, which is at *address*; none if it is no feed."""
    data = body[:MAX_BYTES]
    head = data[:100].removeprefix(b"\xef\xbb\xbf").lstrip()
    found = _of_json(data) if head.startswith(b"{") else _of_xml(data)
    entries: dict[str, Entry] = {}
    left_out = 0
    left_bytes = MAX_LICENCE_BYTES
    for link, base, published, modified, licence in found:
        url = _absolute(link, base, address)
        if url is None or url in entries:
            continue
        if len(entries) == most:
            left_out += 1
        else:
            left_bytes -= len(licence)
            licence = licence if left_bytes >= 0 else licence and _UNREAD
            entries[url] = Entry(url, iso_date(published), iso_date(modified), licence)
    return Feed(list(entries.values()), left_out)


_Found = tuple[str, str, str, str, bytes]
"""Address of an entry, the base that it is relative to, two dates, its licence; each may be empty."""


def _of_json(data: bytes) -> Iterator[_Found]:
    text = data.decode("utf-8-sig", "replace")
    feed, _ = decoded(text, text.find("{"))
    if not isinstance(feed, dict) or "jsonfeed.org" not in str(feed.get("version"))[:100]:
        return
    items = feed.get("items")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            url, published, modified = (_word(item.get(key)) for key in ("url", "date_published", "date_modified"))
            yield url, "", published, modified, b""


def _word(value: Any) -> str:
    return value[:_MAX_URL] if isinstance(value, str) else ""


def _of_xml(data: bytes) -> Iterator[_Found]:
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False)
    try:
        root = etree.fromstring(data.lstrip(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return
    if root is None or _name(root) not in ("rss", "rdf", "feed"):
        return
    base = root.get(_BASE, "")
    for element in root.iter(etree.Element):
        if _name(element) in ("item", "entry"):
            yield _entry(element, element.get(_BASE, base))


def _entry(element: etree._Element, base: str) -> _Found:
    """An <item> of RSS or an <entry> of Atom."""
    link, published, modified, licence = "", "", "", b""
    for child in islice(element.iterchildren(etree.Element), 200):
        name = _name(child)
        if child.tag.startswith(_RSL):
            licence += etree.tostring(child, with_tail=False)
        elif name == "link" and (not link or child.get("rel") == "alternate"):
            link = _link(child) or link
        elif name == "guid" and not link and child.get("isPermaLink") != "false":
            link = _text(child) if _text(child).startswith("http") else ""
        elif name in _PUBLISHED:
            published = published or _text(child)
        elif name in _MODIFIED:
            modified = modified or _text(child)
    licence = licence and b'<rsl xmlns="%s">%s</rsl>' % (rsl.NAMESPACE.encode(), licence)
    return link, base[:_MAX_URL], published, modified, licence


def _link(element: etree._Element) -> str:
    """Atom's links have an attribute, and some of them lead to something else than the entry; RSS has a text."""
    href = element.get("href")
    if href is None:
        return _text(element)
    return href.strip()[:_MAX_URL] if element.get("rel", "alternate") == "alternate" else ""


def _text(element: etree._Element) -> str:
    return (element.text or "").strip()[:_MAX_URL]


def _name(element: etree._Element) -> str:
    """Without its namespace, which many feeds declare wrongly."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2].lower()


def _absolute(link: str, base: str, address: str) -> str | None:
    if not link:
        return None
    url = join(join(address, base) or address if base else address, link)
    return url if url and url.startswith(("http://", "https://")) else None
