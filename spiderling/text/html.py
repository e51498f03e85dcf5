"""One pass over a page's HTML: paragraphs as jusText cuts them, links, metadata.

The paragraphs are those of Pomikálek, *Removing Boilerplate and Duplicate Content
from Web Corpora* (2011), as the ``justext`` package makes them, with its defects
put right: a space between two inline tags separates words, control characters do
no harm, time is linear.  No tree is built: libxml2's parser calls a `Builder`.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, NamedTuple

import ada_url
from lxml import etree

from spiderling.text.normal import normal_form
from spiderling.text.page import MAX_ANCHOR_CHARS, MAX_LINKS
from spiderling.text.zones import ZONED, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BLOCKS = 20_000
MAX_BLOCK_CHARS = 100_000
MAX_META_CHARS = 500
MAX_DATA_CHARS = 50_000
MAX_ALTERNATES = 300

_INLINE, _BLOCK, _DEAD, _THROUGH, _BREAK, _LINK, _AREA = range(7)
_BLOCKS = """
body blockquote caption center col colgroup dd div dl dt fieldset legend optgroup option p pre table td tfoot th thead
tr ul li h1 h2 h3 h4 h5 h6
"""
_KINDS = {
    "a": _LINK,
    "br": _BREAK,
    "area": _AREA,
    "frame": _AREA,
    **dict.fromkeys(_BLOCKS.split(), _BLOCK),
    # subtrees that hold no running text
    **dict.fromkeys(("head", "base", "script", "style", "applet", "button", "input", "select", "textarea"), _DEAD),
    # tags that are ignored while their content counts
    **dict.fromkeys(("form", "iframe", "embed", "layer", "object", "param"), _THROUGH),
}
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_HEAD_TAGS = frozenset(("title", "meta", "link", "base", "html", "time", "script"))
_METAS = """
description keywords robots googlebot author generator og:locale og:type og:title og:url content-language refresh
date dc.date dcterms.date dcterms.created dcterms.modified datepublished datemodified pubdate last-modified
article:published_time article:modified_time og:updated_time license dcterms.license dc.rights
tdm-reservation tdm-policy
"""
_META_NAMES = frozenset(_METAS.split())
_RUBBISH = bytes(code for code in range(32) if code not in (9, 10, 12, 13)) + b"\x7f"
_REFRESH_URL = re.compile(r"url\s*=\s*['\"]?([^'\"\s>]+)", re.I)


class Block(NamedTuple):
    """A paragraph before it is classified."""

    text: str
    heading: bool
    link_chars: int
    """Characters of the text that stand inside links."""
    tag: str = ""
    """The tag that opened it; empty when the end of another block did."""
    pieces: int = 0
    """Stretches of text between tags that it is made of."""
    element: int = 0
    """The innermost element around it, a number in the page's tree."""


class RawLink(NamedTuple):
    """A link as written."""

    href: str
    rel: str
    anchor: str
    block: int


class Parsed(NamedTuple):
    """What one pass over a page found."""

    blocks: list[Block]
    links: list[RawLink]
    title: str
    meta: dict[str, str]
    rels: dict[str, str]
    """href of the first <link> or <a> with rel canonical or license."""
    base: str | None
    html_lang: str | None
    alternates: dict[str, str]
    """hreflang -> href of the <link rel=alternate> that give it."""
    data: str
    """Text of the JSON-LD scripts, at most MAX_DATA_CHARS."""
    links_cut: int
    """Links beyond MAX_LINKS."""
    tree: Tree
    """The elements around the blocks."""


def parse(html: str, builder: Builder | None = None) -> Parsed:
    """Paragraphs, links and metadata of a page; never raises, in time linear in its length."""
    builder = builder or Builder()
    parser = etree.HTMLParser(target=builder, encoding="utf-8", huge_tree=True)
    try:
        parser.feed(html.encode("utf-8", "replace").translate(None, builder.rubbish) or b" ")
        parser.close()
    except (etree.LxmlError, _Full):
        pass  # what was found up to there counts
    return builder.result()


def resolve(links: list[RawLink], page_url: str, base: str | None) -> list[tuple[RawLink, str]]:
    """The links that lead to http(s) URLs, each once, with that URL; fragments are cut off."""
    root = join(page_url, base) if base else None
    root = root or page_url
    found: dict[str, RawLink] = {}
    for link in links:
        href = link.href.partition("#")[0].strip()
        url = join(root, href) if href else None
        if url is not None and url.startswith(("http://", "https://")):
            found.setdefault(url, link)
    return [(link, url) for url, link in found.items()]


def join(base: str, href: str) -> str | None:
    """*href* resolved against *base* by the WHATWG URL standard; None when it is no URL."""
    try:
        return str(ada_url.join_url(base, href))
    except ValueError:
        return None


class _Full(Exception):
    pass


class Builder:
    """Receives the parser's events.  A *chunk* is the text between two tags that count."""

    # what the package does otherwise (aspackage.py)
    rubbish = _RUBBISH
    gap = " "  # what white space between two tags becomes
    form = staticmethod(normal_form)

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._hrefs: list[str] = []
        self._rel_values: list[str] = []
        self._anchors: list[str] = []
        self._link_blocks: list[int] = []
        self.title = ""
        self.meta: dict[str, str] = {}
        self.rels: dict[str, str] = {}
        self.base: str | None = None
        self.html_lang: str | None = None
        self._chunk: list[str] = []
        self._parts: list[str] = []
        self._has_text = False
        self._link_chars = 0
        self._first_link = 0  # of the current block; earlier ones know theirs
        self._open_headings = 0
        self._heading = False  # was a heading open when the current block began?
        self._in_link = False
        self._anchor: list[str] | None = None
        self._after_break = False
        self._opener = ""
        self._pieces = 0
        self._tree = Tree()
        self._element = 0
        self._dead = 0
        self._in_title = False
        self._title: list[str] = []
        self._in_data = False
        self._data: list[str] = []
        self._data_chars = 0
        self._alternates: dict[str, str] = {}
        self._links_cut = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _HEAD_TAGS:
            self._head(tag, attributes)
        if self._dead:
            self._dead += 1
            return
        kind = _KINDS.get(tag, _INLINE)
        if kind == _DEAD:
            self._dead = 1
            return
        if tag in ZONED:
            self._tree.enter(tag, attributes)
        if kind == _THROUGH:
            if tag == "iframe":
                self._link(_AREA, attributes)
            return
        if self._chunk:
            self._flush()
        self._open(tag, kind, attributes)

    def _open(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        if kind == _BLOCK:
            if tag in _HEADINGS:
                self._open_headings += 1
            self._new_block(tag)
        elif kind == _BREAK:
            self._break()
        else:
            self._after_break = False
            if kind != _INLINE:
                self._link(kind, attributes)

    def end(self, tag: str) -> None:
        if self._dead:
            self._dead -= 1
            self._in_title = self._in_data = False
            return
        kind = _KINDS.get(tag, _INLINE)
        if self._chunk and kind != _THROUGH:
            self._flush()
        if tag in ZONED:
            self._tree.leave()
        if kind == _BLOCK:
            if tag in _HEADINGS:
                self._open_headings -= 1
            self._new_block()
        elif kind == _LINK:
            self._in_link = False
            self._end_anchor()

    def data(self, text: str) -> None:
        if not self._dead:
            self._chunk.append(text)
        elif self._in_title:
            self._title.append(text)
        elif self._in_data and self._data_chars < MAX_DATA_CHARS:
            self._data.append(text)
            self._data_chars += len(text)

    def close(self) -> None:
        """Part of the parser's protocol; the result is fetched by `result`."""

    def result(self) -> Parsed:
        if self._chunk:
            self._flush()
        self._end_anchor()
        with contextlib.suppress(_Full):
            self._new_block()
        self.title = normal_form("".join(self._title))[:MAX_META_CHARS]
        links = list(map(RawLink, self._hrefs, self._rel_values, self._anchors, self._link_blocks))
        data = "".join(self._data)[:MAX_DATA_CHARS]
        return Parsed(
            self.blocks, links, self.title, self.meta, self.rels, self.base, self.html_lang, self._alternates, data,
            self._links_cut, self._tree,
        )  # fmt: skip

    def _flush(self) -> None:
        """The chunk becomes part of the block.  White space alone separates words but makes no block."""
        text = self._chunk[0] if len(self._chunk) == 1 else "".join(self._chunk)
        self._chunk.clear()
        if text.isspace():
            if self._has_text:
                self._parts.append(self.gap)
            return
        if not self._has_text:
            self._has_text = True
            self._element = self._tree.innermost()
        self._parts.append(text)
        self._pieces += 1
        self._after_break = False
        if self._in_link:
            # as long as jusText sees it: each run of white space is one character
            self._link_chars += len(" ".join(text.split())) + text[0].isspace() + text[-1].isspace()
            if self._anchor is not None:
                self._anchor.append(text)

    def _new_block(self, opener: str = "") -> None:
        if self._has_text:
            self._add_block()
        elif self._first_link < len(self._hrefs):
            self._orphan_links()
        if self._parts:
            self._parts.clear()
        self._heading = self._open_headings > 0
        self._opener = opener

    def _add_block(self) -> None:
        text = self.form("".join(self._parts))[:MAX_BLOCK_CHARS].rstrip()
        if text:
            self.blocks.append(Block(text, self._heading, self._link_chars, self._opener, self._pieces, self._element))
            self._first_link = len(self._hrefs)
        else:
            self._orphan_links()
        self._has_text = False
        self._link_chars = self._pieces = 0
        if len(self.blocks) >= MAX_BLOCKS:
            raise _Full

    def _orphan_links(self) -> None:
        """The block turned out to be empty: its links stand in none."""
        end = len(self._hrefs)
        self._link_blocks[self._first_link :] = [-1] * (end - self._first_link)
        self._first_link = end

    def _break(self) -> None:
        """Two <br> in a row end the block, one is a space."""
        if self._after_break:
            self._new_block()
        else:
            self._after_break = True
            self._parts.append(" ")

    def _link(self, kind: int, attributes: Mapping[str, str]) -> None:
        href = attributes.get("src" if kind == _AREA and "src" in attributes else "href")
        if kind == _LINK:
            self._in_link = True
            self._end_anchor()
        if href is None or len(self._hrefs) >= MAX_LINKS:
            self._links_cut += href is not None
            return
        rel = attributes.get("rel", "").lower()
        if rel:
            self._rel(rel, href)
        self._add_link(href, rel, attributes.get("alt", "")[:MAX_ANCHOR_CHARS], len(self.blocks))
        if kind == _LINK:
            self._anchor = []

    def _add_link(self, href: str, rel: str, anchor: str, block: int) -> None:
        self._hrefs.append(href)
        self._rel_values.append(rel)
        self._anchors.append(anchor)
        self._link_blocks.append(block)

    def _end_anchor(self) -> None:
        if self._anchor:
            self._anchors[-1] = normal_form(" ".join(self._anchor))[:MAX_ANCHOR_CHARS]
        self._anchor = None

    def _head(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "title":
            self._in_title = not self._title
        elif tag == "meta":
            self._meta(attributes)
        elif tag == "link":
            self._rel(attributes.get("rel", "").lower(), attributes.get("href", ""))
            self._alternate(attributes)
        elif tag == "time":
            self._time(attributes)
        elif tag == "script":
            self._in_data = "ld+json" in attributes.get("type", "").lower()
        elif tag == "base":
            self.base = self.base or attributes.get("href")
        else:
            self.html_lang = self.html_lang or (attributes.get("lang") or attributes.get("xml:lang") or "")[:35] or None

    def _rel(self, rel: str, href: str) -> None:
        for name in rel.split():
            if name in ("canonical", "license"):
                self.rels.setdefault(name, href)

    def _alternate(self, attributes: Mapping[str, str]) -> None:
        language, href = attributes.get("hreflang", "").strip().lower()[:35], attributes.get("href")
        is_alternate = "alternate" in attributes.get("rel", "").lower().split()
        if language and href and is_alternate and len(self._alternates) < MAX_ALTERNATES:
            self._alternates.setdefault(language, href)

    def _time(self, attributes: Mapping[str, str]) -> None:
        """<time> that says of what (microdata, and ``pubdate`` of early HTML5) stands for a <meta>."""
        name = attributes.get("itemprop", "").lower() or ("datepublished" if "pubdate" in attributes else "")
        if name in ("datepublished", "datemodified") and attributes.get("datetime"):
            self.meta.setdefault(name, normal_form(attributes["datetime"])[:MAX_META_CHARS])

    def _meta(self, attributes: Mapping[str, str]) -> None:
        name = attributes.get("name") or attributes.get("property") or attributes.get("http-equiv")
        name = name or attributes.get("itemprop") or ""
        name = name.strip().lower()
        content = attributes.get("content")
        if not content or name not in _META_NAMES:
            return
        self.meta.setdefault(name, normal_form(content)[:MAX_META_CHARS])
        target = _REFRESH_URL.search(content[:2000]) if name == "refresh" else None
        if target:
            self._add_link(target[1], "", "", -1)
            self._first_link = len(self._hrefs)
