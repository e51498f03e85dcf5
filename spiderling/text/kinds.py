"""The kind of a paragraph that is running text: prose, a heading, a reader's comment, code, a table's cell and so on.

Rules, no fit: by the paragraph's tag, the purposes that the elements around it are named after (html/zones.py) and
its characters.  They look only at good paragraphs: they can leave out, and never bring back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spiderling.base.option_values import CELL, CODE, COMMENT, HEADING, NOTICE, TEASER, TEXT
from spiderling.text.html.blocks import Block
from spiderling.text.html.zones import BITS, Inherited

_CODE_CHARS = b"{}[]<>=;_\\|#$&*+~^`"
_CODE_SHARE = 0.03
"""Least share of these characters, and of parentheses, in what the page's markup calls code; chosen.  Plain text stands
in <pre>, too."""
_SIGNATURE_CHARS = 300
"""Most characters of a signature; chosen."""
_SURE_CODE_SHARE = 0.12
"""The same where the markup says nothing, parentheses not counted; chosen."""
_LEAST_CODE_CHARS = 20
"""Characters below which only the markup tells code; chosen."""
_SIGNATURE = re.compile(r"(?:[\w.<>\[\],?&@*]+ )*[\w.:]+\((?:[^()]*[ ,.\[][^()]*)?\)", re.ASCII)
"""A function's name and arguments, with types before it; no "word(s)" and no "name (of something)"."""
_CELL_CHARS = 50
"""Most characters of a cell without a sentence; chosen."""
_NOTICE_CHARS = 600
"""Most characters of a notice; chosen."""
_PART = 0.3
"""Most of a page's text that its teasers or notices may make up; chosen."""
_LINKED = 0.8
"""Share of characters inside links from which a paragraph leads to other pages; chosen."""
_STOPS = ".!?…。！？।॥؟۔።։:"
_NOTICE = re.compile(
    r"\b(?:enable|activate|turn on|allow|require|aktivier|activ|habilit|włącz|zapn|povol|включ)\w*\b.{0,40}java ?script"
    r"|java ?script\b.{0,40}\b(?:disabled|enabled|turned off|deaktiviert|désactivé|desactivado|wyłączon|vypnut|отключ)"
    r"|\b(?:uses?|using|accept|verwende|nutz|utilis|utiliz|usa|používá|używa|использу)\w*\b.{0,40}\bcookies?\b"
    r"|\b(?:log in|sign in|login|logged in|register\w*)\b.{0,30}\bto (?:reply|post|comment|vote|view)"
    r"|\bpowered by (?:phpbb|vbulletin|discourse|xenforo|smf|mybb|wordpress|invision)",
    re.IGNORECASE,
)
_NOTICE_WORDS = ("avascript", "avaScript", "ookie", " to reply", " to post", " to comment", " to vote", "owered by")
"""One of these stands in each text that _NOTICE matches."""


def kinds(blocks: Sequence[Block], tree: Inherited, good: Sequence[int]) -> list[str]:
    """The kind of each of *blocks* whose indices are *good*, in their order; *tree* is the page's.

    What is named comment or teaser is one only below other text: posts of a forum are named comments, leads teasers.
    """
    zones = [int(tree.zones[blocks[index].element]) for index in good]
    parts = _parts([len(blocks[index].text) for index in good], zones)
    found: list[str] = []
    is_below_text = False
    for index, zone in zip(good, zones, strict=True):
        purposes = zone & parts
        kind = _alone(blocks[index], purposes if is_below_text else purposes & ~BITS["teaser"])
        if kind == TEXT and zone & BITS["comment"] and is_below_text:
            kind = COMMENT
        is_other = zone & BITS["comment"] or purposes & BITS["teaser"]
        is_below_text = is_below_text or (kind == TEXT and not is_other)
        found.append(kind)
    return found


def _parts(lengths: Sequence[int], zones: Sequence[int]) -> int:
    """The purposes, as bits, of small parts of the page: a name around most of the text says nothing about it."""
    most = _PART * sum(lengths)
    held = {
        purpose: sum([length for length, zone in zip(lengths, zones, strict=True) if zone & BITS[purpose]])
        for purpose in ("teaser", "notice")
    }
    return ~sum(BITS[purpose] for purpose, size in held.items() if size > most)


def _alone(block: Block, zone: int) -> str:
    """The kind of *block* in *zone*, without the blocks before it."""
    text = block.text
    if _is_code(text, block.tag == "pre" or zone & BITS["code"] > 0):
        return CODE
    if len(text) <= _NOTICE_CHARS and _is_notice(text, zone):
        return NOTICE
    is_linked = block.link_chars >= _LINKED * len(text)
    if zone & BITS["teaser"] or (is_linked and not block.heading):
        return TEASER
    if block.heading:
        return HEADING
    is_cell = block.tag in ("td", "th") and len(text) <= _CELL_CHARS and text[-1] not in _STOPS
    return CELL if is_cell else TEXT


def _is_code(text: str, is_marked: bool) -> bool:
    """Whether *text* is code; *is_marked*: the page's markup says so."""
    if text[-1] == ")" and _SIGNATURE.fullmatch(text[:_SIGNATURE_CHARS]):
        return True
    if not is_marked and len(text) < _LEAST_CODE_CHARS:
        return False
    body = text.encode("utf-8", "replace")
    number = len(body) - len(body.translate(None, _CODE_CHARS + b"()" if is_marked else _CODE_CHARS))
    return number >= (_CODE_SHARE if is_marked else _SURE_CODE_SHARE) * len(text) and number > 0


def _is_notice(text: str, zone: int) -> bool:
    if zone & BITS["notice"]:
        return True
    return any(word in text for word in _NOTICE_WORDS) and _NOTICE.search(text) is not None
