"""What tags mean for the text of a page, and what the names of elements say about their purpose.

Authors name the parts of a page after their purpose, in English even when the text is
in another language: ``<nav>``, ``class="sidebar"``, ``id="comments"``.  A zone is a set
of such purposes, as bits; a block has the bits of all elements that enclose it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.intp]

KINDS = {
    "notice": r"cookie|consent|gdpr|notice|noscript|alert|warning",
    "teaser": r"relat|recommend|popular|trend|teaser|promo|also|read-?(?:more|next)|headlines|latest|outbrain|taboola",
    "navigation": r"nav|menu|crumb|tab(?!le)|toolbar|pag(?:er|ina)|toc\b",
    "footer": r"foot|copyright|legal|disclaim|imprint|contentinfo",
    "header": r"header|banner|masthead|logo|topbar",
    "side": r"side|aside|widget|complementary|right|left|rail",
    "comment": r"comment|disqus|repl(?:y|ies)|respond|discuss|feedback",
    "more": r"most|more|tags|archive|categor",
    "hidden": r"hidden|collaps|screen-?reader|sr-only|modal|popup|tooltip|dropdown",
    "aid": r"share|social|\bads?\b|advert|sponsor|subscri|newsletter|login|search|\bform|button|\bbtn",
    "detail": r"meta|author|byline|date|time|caption|info|user|avatar|profile|signature|badge",
    "code": r"code|highlight|syntax|snippet|listing|console",
    "shop": r"product|price|cart|shop|rating|review|offer",
    "card": r"card|grid|carousel|slide|tile|gallery|swiper|thumb|list|item",
    "prose": r"prose|markdown|rich-?text|wysiwyg|paragraph|descri|summary|lead|intro|faq|accordion|answer|question",
    "main": r"main|content|center",
    "text": r"article|story|post|entry|text|body|blog",
    "talk": r"thread|message|topic|quote|forum",
}
"""Purpose -> pattern of names, in the order of the bits, on which the fitted weights depend."""

_MAX_NAME_CHARS = 200  # characters of a class or id that are looked at; chosen
_TAGS = {
    "nav": "navigation",
    "footer": "footer",
    "header": "header",
    "aside": "side",
    "main": "main",
    "article": "text",
    "figcaption": "detail",
    "dialog": "hidden",
    "noscript": "notice",
    "pre": "code",
}
BITS = {kind: 1 << place for place, kind in enumerate(KINDS)}  # purpose -> its bit in a zone
_NAMES = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))
_FURTHER = ("id", "role", "itemprop")  # attributes that name an element's purpose, besides class
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LEFT_OUT = re.compile(
    r"(?<![\w-])(?:sr-(?:only|text)|(?:\w+-)?(?:visually-?hidden|hidden-?visually)|a11y-hidden|assistive-text|off-?screen"
    r"|screen-?readers?(?:-(?:text|only))?|element-invisible|(?:mw-)?editsection|edit-page|mw-cite-backlink"
    r"|footnote-?(?:ref|reference|anchor|back|backref)|mso(?:foot|end)notereference|modern-footnotes-footnote|noteref"
    r"|fnanchor|fnref|reversefootnote|strike-?through|line-through|katex-html|mathjax_preview|mjx_assistive_mathml)(?![\w-])",
    re.IGNORECASE,
)
"""Classes of elements that are no part of the text: words for screen readers (Bootstrap, WordPress, Drupal), links for
editors and marks of notes (MediaWiki, Pandoc, Markdown, Word), deleted text, the second form of a formula (KaTeX,
MathJax)."""
_PARTING = re.compile("|".join(KINDS[kind] for kind in ("detail", "talk", "comment")))
"""Names of inline elements, such as that of an author, that a style sheet may part from the text around."""
PARTING_TAGS = frozenset(("cite", "time"))
LEFT_OUT_ROLES = ("doc-noteref", "doc-backlink")  # marks of notes (DPUB-ARIA 1.1)
_NAMELESS = frozenset(("hidden", "style", "aria-hidden", "lang", "dir"))
"""Attributes by which no script and no style sheet is meant to find an element."""
_BOXES = "div section form ul ol li dl dd p table tbody tr td blockquote center fieldset"
ZONED = frozenset((*_TAGS, *_BOXES.split()))
"""Tags that may hold blocks and stand in the tree.

Names of inline tags tell little and would cost a look-up each; names of html and body describe the whole page.
"""
MAX_ELEMENTS = 100_000  # elements of a page that stand in the tree; chosen
MAX_DEPTH = 250  # depth of the tree; chosen
_FACTOR = 1_000_003  # multiplier of the hash that makes a shape; chosen, a prime
_SHAPE_MASK = (1 << 48) - 1  # bits of a shape
_DIGITS = re.compile(r"\d+")


class Inherited(NamedTuple):
    """The tree of a whole page, as arrays by the elements' numbers."""

    parents: Ints
    ends: Ints  # for each element the number after its last descendant
    depths: Ints
    shapes: Ints
    """Hash of the tags and classes from the root to the element, without digits: equal for elements that look alike."""
    zones: Ints  # zone of each element, with the bits of all elements around it


class Tree:
    """The elements that may hold blocks, numbered in the order of their start tags; 0 is the page.

    An element beyond MAX_ELEMENTS or MAX_DEPTH counts as its parent.
    """

    __slots__ = ("_names", "opened", "parents")

    def __init__(self) -> None:
        self.parents = [0]
        self._names = [(0, 0)]
        self.opened = [0]
        """Numbers of the open elements, the innermost last."""

    def enter(self, tag: str, attributes: Mapping[str, str]) -> int:
        """An element of ZONED begins; returns its number."""
        opened = self.opened
        parents = self.parents
        number = len(parents)
        if number >= MAX_ELEMENTS or len(opened) > MAX_DEPTH:
            return self.stay()
        parents.append(opened[-1])
        self._names.append(_name_zone(tag, attributes) if attributes else WITHOUT_NAME[tag])
        opened.append(number)
        return number

    def stay(self) -> int:
        """An element begins that counts as the one around it; returns that one's number."""
        self.opened.append(self.opened[-1])
        return self.opened[-1]

    def leave(self) -> int:
        """The innermost element ends; returns the number of the one around it."""
        if len(self.opened) > 1:
            self.opened.pop()
        return self.opened[-1]

    def inherited(self) -> Inherited:
        """The tree with what its elements inherit; requires that the page is read to its end."""
        ends = list(range(1, len(self.parents) + 1))
        depths = [1]
        shapes = [0]
        zones = [0]
        for parent, (zone, shape) in zip(self.parents[1:], self._names[1:], strict=True):
            depths.append(depths[parent] + 1)
            shapes.append((shapes[parent] * _FACTOR + shape) & _SHAPE_MASK)
            zones.append(zones[parent] | zone)
        for number in range(len(ends) - 1, 0, -1):
            parent = self.parents[number]
            if ends[number] > ends[parent]:
                ends[parent] = ends[number]
        return Inherited(*(np.array(column, np.intp) for column in (self.parents, ends, depths, shapes, zones)))


def _name_zone(tag: str, attributes: Mapping[str, str]) -> tuple[int, int]:
    """Zone and shape of an element, without those around it."""
    zone, shape = class_zone(tag, attributes.get("class"))
    if len(attributes) > ("class" in attributes):
        for attribute in _FURTHER:
            if attribute in attributes:
                zone |= name_zone(attributes[attribute])
        if "hidden" in attributes or hides(attributes.get("style")):
            zone |= BITS["hidden"]
    return zone, shape


def hides(style: str | None) -> bool:
    """Whether an element's own *style* hides it."""
    return style is not None and _UNSEEN.search(style) is not None


def is_left_out(attributes: Mapping[str, str]) -> bool:
    """Whether an element's text is no part of the page's, by its class or role, or since nothing can ever show it.

    A hidden element with an id, a class or another name may be the panel of a tab, which a script shows: it counts.
    """
    classes = attributes.get("class")
    if classes and class_leaves_out(classes):
        return True
    if attributes.get("role") in LEFT_OUT_ROLES:
        return True
    return ("hidden" in attributes or hides(attributes.get("style"))) and attributes.keys() <= _NAMELESS


def is_parted(tag: str, attributes: Mapping[str, str]) -> bool:
    """Whether an inline element may stand apart by style: by its tag, also one of a page's own, or its purpose."""
    if tag in PARTING_TAGS or "-" in tag:
        return True
    names = (attributes[name] for name in ("class", "itemprop") if name in attributes)
    return any(map(name_parts, names))


@lru_cache(maxsize=16384)
def class_leaves_out(classes: str) -> bool:
    """Whether an element of these *classes* is left out."""
    return _LEFT_OUT.search(classes) is not None


@lru_cache(maxsize=16384)
def name_parts(name: str) -> bool:
    """Whether an inline element of this class or itemprop may stand apart by style."""
    return _PARTING.search(name[:_MAX_NAME_CHARS].lower()) is not None


@lru_cache(maxsize=16384)
def class_zone(tag: str, classes: str | None) -> tuple[int, int]:
    """The zone and the shape that a tag and the value of its class tell."""
    zone = BITS[_TAGS[tag]] if tag in _TAGS else 0
    if classes:
        zone |= name_zone(classes)
    shape = f"{tag} {_DIGITS.sub('', (classes or '')[:_MAX_NAME_CHARS])}"
    return zone, zlib.crc32(shape.encode("utf-8", "replace"))


@lru_cache(maxsize=16384)
def name_zone(name: str) -> int:
    """The zone that a class or id names."""
    zone = 0
    for match in _NAMES.finditer(name[:_MAX_NAME_CHARS].lower()):
        zone |= BITS[match.lastgroup or ""]
    return zone


WITHOUT_NAME = {tag: _name_zone(tag, {}) for tag in ZONED}  # tag -> zone and shape of an element without names


INLINE = 0  # its text belongs to the text around it
BOX = 1  # it ends a block and may hold blocks, so it stands in the page's tree
BLOCK = 2  # it ends a block
HEADING = 3
LINK = 4
INSIDE = 5  # it ends no block, but a browser shows its text apart from the text around it
LINE_BREAK = 6
AREA = 7  # a link without text
THROUGH = 8  # the tag is ignored; its content counts
RAISED = 9  # its text belongs to the text around it, or it is the mark of a note
DEAD = 10  # it is ignored with all its content: no running text
FIELD = 11  # it is ignored likewise, and is seen between the texts around it
HEAD = 12  # added to one of the kinds above for tags that say something about the page
_BLOCKS = """
body blockquote caption center col colgroup dd div dl dt fieldset legend optgroup option p pre table td tfoot th thead
tr ul li
"""
_APART = """
address audio canvas details dir figure hgroup hr img listing menu search summary video xmp
"""
_DOUBLED = "del s strike rt rp rtc annotation annotation-xml"
"""What stands beside a text and would be read twice or wrongly: edits, readings of ruby, sources of formulas."""
WRAPPERS = frozenset(("html", "div", "main", "section", "article", "table", "center", "ul", "ol", "dd"))
"""Tags of elements that may hold a whole page, or what belongs to a heading."""
PHRASES = frozenset(("s", "strike", "rt", "rp", "rtc", "svg"))
"""Tags that hold no blocks: one that was never closed ends where a block begins."""
TAG_KINDS = {
    **dict.fromkeys((*ZONED, *_APART.split()), INSIDE),
    "a": LINK,
    "br": LINE_BREAK,
    "area": AREA,
    "frame": AREA,
    **{tag: BOX if tag in ZONED else BLOCK for tag in _BLOCKS.split()},
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), HEADING),
    "cite": INLINE,
    "sup": RAISED,
    **dict.fromkeys(("head", "applet", "style", "desc", "template", *_DOUBLED.split()), DEAD),
    **dict.fromkeys(("button", "input", "select", "textarea", "svg"), FIELD),
    **dict.fromkeys(("form", "iframe", "embed", "layer", "object", "param", "wbr"), THROUGH),
    **dict.fromkeys(("meta", "link", "html", "time"), HEAD + INLINE),
    **dict.fromkeys(("base", "script", "title"), HEAD + DEAD),
}
