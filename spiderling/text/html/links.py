"""Collects the links of a page, with their blocks and anchor texts, while it is parsed; then makes them absolute.

The WHATWG URL standard (ada_url) says what a link means.  Most links are absolute or relative to the page's folder,
and written as the standard would write them.  One expression recognises these, and string operations resolve them
several times as fast as ada_url; the tests compare both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import ada_url

from spiderling.text.html.blocks import EDGE, MAX_ANCHOR_CHARS, MAX_LINKS, RawLink, named_tuples, normal_forms
from spiderling.text.html.metadata import Metadata

OUTSIDE = -1  # the block of a link that stands in none
_ANCHOR = RawLink._fields.index("anchor")
_BLOCK = RawLink._fields.index("block")
_NAME = r"(?!xn--)[a-z0-9-]+(?:[.](?!xn--)[a-z0-9-]+)*[.](?!xn--)[a-z]+"
"""A host name that is neither an IPv4 address nor punycode."""
_CHARS = r"[\w.~!$&'()*+,;=:@%-]*"  # characters that the standard does not change
_PATH = rf"(?:(?![.]|%2){_CHARS}/)*(?![.]|%2){_CHARS}(?:\?[\w.~!$&()*+,;:=@%/?-]*)?"
"""Path and query; no segment begins with a dot or %2e, because the standard may remove such segments."""
_PLAIN = re.compile(rf"(?:https?://{_NAME}(?=/)|(?=/(?!/))|(?P<relative>(?=\w[\w.-]*(?:[/?]|$)))){_PATH}", re.ASCII)
_SERIALISED = re.compile(r"(https?://[^/?#]+)(/(?:[^?#]*/)?)")


class LinkCollector:
    """Collects links; it only reads *tokens*, the current block's texts in `Builder`."""

    def __init__(self, tokens: list[str], metadata: Metadata) -> None:
        self._tokens = tokens
        self._metadata = metadata
        self.rows: list[list[Any]] = []
        """The values of a RawLink for each link."""
        self.first_of_block = 0
        """Place in `rows` of the first link of the current block."""
        self.chars = 0
        """Characters of the current block inside links."""
        self.is_open = False
        """Whether an <a> is open."""
        self.leads_to_place = False
        """Whether the <a> that is open leads to a place of a page."""
        self.start = 0
        """Index of the first token of the current block inside the open link."""
        self.number_cut = 0
        """Number of links left out, beyond MAX_LINKS."""
        self._anchor: list[str] | None = None
        """Pieces of the anchor text so far; None when the open <a> has no row."""
        self._anchor_row: list[Any] = []
        """The row of the open <a>; an <area> or <iframe> inside it adds rows of its own."""
        self._anchored: list[list[Any]] = []
        """Rows whose anchor text `links` has to bring into normal form."""

    def open_link(self, attributes: Mapping[str, str], block: int) -> None:
        """An <a> begins; it ends the open one."""
        self.end_link()
        self.end_anchor()
        self.is_open = True
        self.leads_to_place = "#" in attributes.get("href", "")
        self.start = len(self._tokens)
        if self.add_link(attributes, attributes.get("href"), block):
            self._anchor = []
            self._anchor_row = self.rows[-1]

    def add_link(self, attributes: Mapping[str, str], href: str | None, block: int) -> bool:
        """Add a link to *href*, with the element's alt as anchor; returns whether it was added."""
        if href is None:
            return False
        if len(self.rows) >= MAX_LINKS:
            self.number_cut += 1
            return False
        rel = attributes.get("rel", "").lower()
        if rel:
            self._metadata.read_rel(rel, href)
        language = attributes.get("hreflang") or attributes.get("lang") or ""
        self.rows.append([href, rel, attributes.get("alt", "")[:MAX_ANCHOR_CHARS], block, language])
        return True

    def add_refresh(self, target: str) -> None:
        """Add the *target* of a <meta http-equiv=refresh>; that link stands in no block."""
        self.rows.append([target, "", "", OUTSIDE, ""])

    def end_link(self) -> None:
        """The open <a> ends, if there is one."""
        if self.is_open:
            self.read_text()
            self.is_open = False
            self.leads_to_place = False

    def read_text(self) -> None:
        """Count the open link's text in the current block, and keep it for the anchor."""
        tokens = self._tokens
        start = self.start
        text = tokens[start] if len(tokens) == start + 1 else "".join(tokens[start:])
        for piece in text.split(EDGE) if EDGE in text else (text,):
            plain = " ".join(piece.split())
            if plain:
                # the length by jusText: each run of white space is one character
                self.chars += len(plain) + piece[0].isspace() + piece[-1].isspace()
                if self._anchor is not None:
                    self._anchor.append(plain)

    def end_anchor(self) -> None:
        """The anchor text is complete."""
        if self._anchor:
            self._anchor_row[_ANCHOR] = " ".join(self._anchor)
            self._anchored.append(self._anchor_row)
        self._anchor = None

    def end_block(self) -> None:
        """The current block is complete and has text; another one begins."""
        self.first_of_block = len(self.rows)
        self.chars = 0

    def leave_block(self) -> None:
        """The current block has no text: its links stand in no block."""
        for row in self.rows[self.first_of_block :]:
            row[_BLOCK] = OUTSIDE
        self.first_of_block = len(self.rows)

    def renumber(self, blocks: Mapping[int, int]) -> None:
        """Change block numbers, old -> new; one not in *blocks* becomes -1."""
        for row in self.rows:
            row[_BLOCK] = blocks.get(row[_BLOCK], OUTSIDE)

    def links(self) -> list[RawLink]:
        """All links, with their anchors in normal form."""
        forms = normal_forms([row[_ANCHOR] for row in self._anchored])
        for row, anchor in zip(self._anchored, forms, strict=True):
            row[_ANCHOR] = anchor[:MAX_ANCHOR_CHARS]
        return named_tuples(RawLink, self.rows)


Resolve = Callable[[list[RawLink], str, "str | None"], list[tuple[RawLink, str]]]


def resolve(links: list[RawLink], page_url: str, base: str | None) -> list[tuple[RawLink, str]]:
    """(link, absolute URL without fragment) of the first link to each http(s) URL."""
    root, origin, folder = starts_of(page_url, base)
    found: dict[str, RawLink] = {}
    tried = {""}
    for link in links:
        href = link.href.partition("#")[0].strip()
        if href in tried:
            continue
        tried.add(href)
        plain = _PLAIN.fullmatch(href) if origin else None
        url: str | None
        if plain is None:
            url = join(root, href)
            if url is None or not url.startswith(("http://", "https://")):
                continue
        elif plain.lastindex:  # the group `relative`
            url = folder + href
        else:
            url = origin + href if href[0] == "/" else href
        found.setdefault(url, link)
    return [(link, url) for url, link in found.items()]


def starts_of(page_url: str, base: str | None) -> tuple[str, str, str]:
    """What a page's links are resolved against, its origin, and its folder; both '' if that is no http(s) URL."""
    root = (join(page_url, base) if base else None) or page_url
    own = _SERIALISED.match(join(root, "") or "")
    return (root, own[1], own[0]) if own is not None else (root, "", "")


def join(base: str, href: str) -> str | None:
    """*href* resolved against *base*; None when the result is not a URL."""
    try:
        return str(ada_url.join_url(base, href))
    except ValueError:
        return None
