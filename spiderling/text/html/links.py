"""The links of a page: collected while it is parsed, with their blocks and anchor texts, then made absolute.

Addresses become absolute by the WHATWG URL standard (ada_url).  Most links are written in the form that the standard
gives them, absolute or relative to the page's folder.  One expression recognises those, and string operations resolve
them, several times as fast as the parser; the tests hold both ways to the same results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import ada_url

from spiderling.text.html.blocks import MAX_ANCHOR_CHARS, MAX_LINKS, RawLink, named_tuples
from spiderling.text.html.metadata import Metadata
from spiderling.text.html.normal import normal_forms
from spiderling.text.html.tags import EDGE

_OUTSIDE = -1
"""The block of a link that stands in none."""
_ANCHOR = RawLink._fields.index("anchor")
_BLOCK = RawLink._fields.index("block")
_NAME = r"(?!xn--)[a-z0-9-]+(?:[.](?!xn--)[a-z0-9-]+)*[.](?!xn--)[a-z]+"
"""A name that is neither an IPv4 address nor punycode."""
_CHARS = r"[\w.~!$&'()*+,;=:@%-]*"
"""Characters that the standard leaves as they are."""
_PATH = rf"(?:(?![.]|%2){_CHARS}/)*(?![.]|%2){_CHARS}(?:\?[\w.~!$&()*+,;:=@%/?-]*)?"
"""Path and query; no segment begins with a dot or %2e, because the standard may remove such a one."""
_PLAIN = re.compile(rf"(?:https?://{_NAME}(?=/)|(?=/(?!/))|(?P<relative>(?=\w[\w.-]*(?:[/?]|$)))){_PATH}", re.ASCII)
_SERIALISED = re.compile(r"(https?://[^/?#]+)(/(?:[^?#]*/)?)")


class LinkCollector:
    """Collects links; *tokens* is the builder's list of the current block's texts, which this class only reads."""

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
        self.start = 0
        """Where in the tokens the open link begins, or goes on after the end of a block."""
        self.number_cut = 0
        """Links beyond MAX_LINKS."""
        self._anchor: list[str] | None = None
        """Pieces of the anchor of the last link, while it is open."""
        self._anchored: list[list[Any]] = []
        """The rows whose anchor is not yet in normal form."""

    def open_link(self, attributes: Mapping[str, str], block: int) -> None:
        """An <a> begins, which ends one that is open."""
        self.end_link()
        self.end_anchor()
        self.is_open = True
        self.start = len(self._tokens)
        if self.add_link(attributes, attributes.get("href"), block):
            self._anchor = []

    def add_link(self, attributes: Mapping[str, str], href: str | None, block: int) -> bool:
        """A link to *href* without an anchor of its own; whether it was added."""
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
        """A <meta> leads to *target* at once; that link stands in no block."""
        self.rows.append([target, "", "", _OUTSIDE, ""])
        self.first_of_block = len(self.rows)

    def end_link(self) -> None:
        """The open link ends, if there is one."""
        if self.is_open:
            self.read_text()
            self.is_open = False

    def read_text(self) -> None:
        """Count what the open link has of the current block, and keep it for the anchor."""
        tokens = self._tokens
        start = self.start
        text = tokens[start] if len(tokens) == start + 1 else "".join(tokens[start:])
        for piece in text.split(EDGE) if EDGE in text else (text,):
            plain = " ".join(piece.split())
            if plain:
                # as long as jusText sees it: each run of white space is one character
                self.chars += len(plain) + piece[0].isspace() + piece[-1].isspace()
                if self._anchor is not None:
                    self._anchor.append(plain)

    def end_anchor(self) -> None:
        """The anchor of the last link is complete."""
        if self._anchor:
            row = self.rows[-1]
            row[_ANCHOR] = " ".join(self._anchor)
            self._anchored.append(row)
        self._anchor = None

    def end_block(self) -> None:
        """The current block is kept, and another one begins."""
        self.first_of_block = len(self.rows)
        self.chars = 0

    def leave_block(self) -> None:
        """The current block turned out to be empty: its links stand in none."""
        for row in self.rows[self.first_of_block :]:
            row[_BLOCK] = _OUTSIDE
        self.first_of_block = len(self.rows)

    def renumber(self, blocks: Mapping[int, int]) -> None:
        """Blocks get other numbers; those that *blocks* leaves out are no blocks."""
        for row in self.rows:
            row[_BLOCK] = blocks.get(row[_BLOCK], _OUTSIDE)

    def links(self) -> list[RawLink]:
        """All links, with their anchors in normal form."""
        forms = normal_forms([row[_ANCHOR] for row in self._anchored])
        for row, anchor in zip(self._anchored, forms, strict=True):
            row[_ANCHOR] = anchor[:MAX_ANCHOR_CHARS]
        return named_tuples(RawLink, self.rows)


def resolve(links: list[RawLink], page_url: str, base: str | None) -> list[tuple[RawLink, str]]:
    """The links to http(s) URLs, each URL once, with the URL without its fragment."""
    root = (join(page_url, base) if base else None) or page_url
    own = _SERIALISED.match(join(root, "") or "")
    origin, folder = (own[1], own[0]) if own is not None else ("", "")
    found: dict[str, RawLink] = {}
    tried = {""}
    for link in links:
        href = link.href.partition("#")[0].strip()
        if href in tried:
            continue
        tried.add(href)
        plain = _PLAIN.fullmatch(href) if own is not None else None
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


def join(base: str, href: str) -> str | None:
    """*href* resolved against *base*; None when the result is not a URL."""
    try:
        return str(ada_url.join_url(base, href))
    except ValueError:
        return None
