"""The results of the parser, blocks of text and links in the order of the page, and the normal form of their text.

In normal form texts that look the same are equal.  Characters are composed (Unicode NFC, UAX #15), any white space is
one space, and invisible characters are dropped: controls, soft hyphens, byte order marks, zero-width spaces,
directional marks, tags outside of flags.  The zero-width joiner and non-joiner belong to the spelling of Persian,
Indian languages and emoji: they stay behind a character that they can act upon (Unicode, chapter 23.2), and are dropped
elsewhere.  Letters of old symbol fonts and forms of letters that only a screen needs become the letters.  The functions
are idempotent and never raise.

A *piece* is the text between two tags.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from spiderling.text.html.zones import Inherited

_WINDOWS = {code: bytes((code,)).decode("cp1252", "ignore") or None for code in range(0x80, 0xA0)}
"""C1 control -> the character of windows-1252 that pages mean by it, as in &#150;."""
_INVISIBLE = (
    *range(0x09),
    *range(0x0E, 0x1C),
    0x7F,
    0xAD,  # soft hyphen
    0x200B,  # zero-width space
    *(0x200E, 0x200F, 0x061C),  # directional marks
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),  # word joiner, invisible operators, directional isolates
    *range(0xD800, 0xE000),  # lone surrogates
    *(0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB, 0xFFFE, 0xFFFF),
)
_TABLE = {**_WINDOWS, **dict.fromkeys(_INVISIBLE)}
_TO_CHANGE = re.compile(f"[{''.join(map(re.escape, map(chr, _TABLE)))}]")
_JOINERS = re.compile("[\u200c\u200d]")
_IDLE_JOINERS = re.compile(
    "(?<![\u0600-\u1fff\u2190-\u2bff\ua800-\uabff\ufb1d-\ufefc\U00010a00-\U0001ffff])[\u200c\u200d]"
)
_MARKS = "".join(re.escape(chr(code)) for code in range(0x300, 0x10000) if unicodedata.combining(chr(code)))
_MAX_MARKS = 30  # marks on one letter that are kept (UAX #15, section 13); NFC takes quadratic time for more
_MARK = re.compile(f"[{_MARKS}]")
_TOO_MANY_MARKS = re.compile(f"([{_MARKS}]{{{_MAX_MARKS}}})[{_MARKS}]+")
_FORM_TAGS = ("<initial>", "<medial>", "<final>", "<isolated>", "<narrow>", "<compat>", "<font>")


def _is_form(char: str) -> bool:
    """Whether *char* stands for other letters by their look alone: a ligature, a letter by its place, narrow kana."""
    tag, _, meant = unicodedata.decomposition(char).partition(" ")
    return tag in _FORM_TAGS and not meant.startswith("0020")  # a mark above a space stays a mark


_FORMS = re.compile(f"[{''.join(filter(_is_form, map(chr, range(0xFB00, 0xFFF0))))}]+")
_SYMBOLS = {0xF000 + code: chr(code) for code in range(0x21, 0x7F)}
"""Private characters by which Word and old pages write what a symbol font has at an ASCII code."""
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_PRIVATE_IN_WORD = re.compile(r"[^\W\d_][\uf021-\uf07e]|[\uf021-\uf07e][^\W\d_]")
_ICONS = re.compile(r"(?<![^\W\d_])[\ue000-\uf8ff]+(?![^\W\d_])")
_TAGS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+")
"""Tag characters, which nobody sees, but in a flag (UTS #51)."""
_DOTTED = "i\u0307"  # what lower case makes of the Turkish capital with a dot
_DOT = re.compile(f"(?<=i){_DOTTED[1]}(?![{_MARKS}])")  # before another mark it belongs to the letter, in Lithuanian
NEXT_LINE = "\x85"  # Python takes it for white space; pages mean the ellipsis of windows-1252


def normal_form(text: str) -> str:
    """One paragraph in normal form; its line breaks are spaces.

    >>> normal_form("Cafe\\u0301\\n co\\u00adoperates")
    'Café cooperates'
    """
    plain = " ".join(text.split())
    if plain.isprintable() and (text.isascii() or _is_normal(text, plain)):
        return plain
    if len(text) > _MAX_MARKS:
        text = _TOO_MANY_MARKS.sub(r"\1", text)
    while True:
        if _TO_CHANGE.search(text):
            text = text.translate(_TABLE)
        if _PRIVATE.search(text):
            text = _ICONS.sub("", text.translate(_SYMBOLS) if _PRIVATE_IN_WORD.search(text) else text)
        text = _TAGS.sub("", text)
        text = _FORMS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
        text = _DOT.sub("", text) if _DOTTED in text else text
        text = " ".join(unicodedata.normalize("NFC", text).split())
        used = _IDLE_JOINERS.sub("", text) if _JOINERS.search(text) else text
        if used == text:
            return text
        text = used  # without the joiner its neighbours may combine to one character


def normal_forms(plain: list[str]) -> list[str]:
    """`normal_form` of texts whose runs of white space are one space; fast if none needs a change, as on most pages."""
    every = " ".join(plain)
    if every.isprintable() and (every.isascii() or _is_normal(every, every)):
        return plain
    return [one if one.isascii() and one.isprintable() else normal_form(one) for one in plain]


def _is_normal(text: str, plain: str) -> bool:
    """Whether *plain*, which is printable *text* with its white space collapsed, is in normal form."""
    if NEXT_LINE in text or _DOTTED in plain or _FORMS.search(plain):
        return False
    # a run of _MAX_MARKS marks has a mark at a place that is a multiple of _MAX_MARKS
    if len(plain) > _MAX_MARKS and _MARK.search(plain[::_MAX_MARKS]) and _TOO_MANY_MARKS.search(plain):
        return False
    return unicodedata.is_normalized("NFC", plain)


EDGE = "\x1c"  # stands between two pieces.  It counts as white space; a page can give it only as &#28; (see RUBBISH).
APART = (EDGE, " ", EDGE)  # stands between two pieces that are never one word
BREAK = "\x1d"  # stands for a <br>; white space like EDGE
SEAM = "\x1e"
"""Stands where a style sheet may part text, and behind white space before what is cut; white space like EDGE."""
PARTED = (EDGE, SEAM, EDGE)
QUOTES = "'\"«»‘’‚“”„‹›"  # one language ends a quotation with what begins one in another
CLOSING = f"-/,.;:!?)]}}%…{QUOTES}"  # signs that follow a word without a space
STOPS = ",."  # those of them that no spelling parts from the word
OPENING = f"-/([{{{QUOTES}"
CJK = ("\u2e80", "\ua000")  # first character of scripts without spaces between words, and the one behind the last
RUBBISH = bytes(code for code in range(32) if code not in (9, 10, 12, 13)) + b"\x7f"
"""Control characters, without white space, which are deleted from a page before it is parsed."""

_MEETING = re.compile(rf"{EDGE}(?<=\w{{3}}{EDGE}){EDGE}*(?=\w\w)")
"""Where two pieces meet without white space; the EDGE in front makes the search fast.

On 2,717 pages with gold texts the rule of `joined` parts 484 of 1,408 glued pairs of words, and two names that
were whole (DataFeed, Better): three letters in front spare Mc and De."""


_SPACES = re.compile(r"(?<!\s)\s+(?=\S)")


def joined(text: str) -> str:
    """*text* without its EDGEs.

    A space replaces them behind a word in small letters and before one with a capital: such are entries of menus.
    """
    if SEAM in text:
        text = _SPACES.sub(_sewn, text)
    return _MEETING.sub(_apart, text).replace(EDGE, "")


def _sewn(match: re.Match[str]) -> str:
    """A space or nothing in place of white space with a SEAM in it; other white space as it is."""
    run, text, end = match[0], match.string, match.end()
    if SEAM not in run:
        return run
    before, after = text[max(0, match.start() - 1)], text[end]
    if run.strip(EDGE + SEAM):
        is_stop = after in STOPS and not text[end + 1 : end + 2].strip() and before not in STOPS
        return "" if is_stop else " "
    is_cjk = CJK[0] <= before < CJK[1] or CJK[0] <= after < CJK[1]
    return "" if is_cjk or before in OPENING or after in CLOSING else " "


def _apart(match: re.Match[str]) -> str:
    text = match.string
    start, end = match.span()
    return " " if text[start - 1].islower() and text[end].isupper() and text[end + 1].isalpha() else ""


MAX_BLOCKS = 20_000  # blocks of a page that are read; chosen: no page that people write has as many
MAX_BLOCK_CHARS = 100_000  # characters of a block that are read; chosen, as long as a short novel
MAX_LINKS = 5000  # links of a page that are read; chosen
MAX_ANCHOR_CHARS = 200  # characters of an anchor that are kept; chosen


class Block(NamedTuple):
    """A paragraph before it is classified."""

    text: str
    heading: bool
    link_chars: int  # characters of the text that stand inside links
    tag: str = ""  # the tag that began it; empty when it began at the end of another block
    pieces: int = 0  # number of its pieces: stretches of text between two tags
    element: int = 0  # number of the innermost element around it in the page's tree


class RawLink(NamedTuple):
    """A link as the page writes it."""

    href: str
    rel: str
    anchor: str
    block: int  # number of the block it stands in, -1 for none
    language: str = ""  # its hreflang, else its lang; not checked


class Markup(NamedTuple):
    """What is kept of the mark-up in a block, on request (markup.py)."""

    lines: str  # its text with a line feed in place of the space for a <br>
    attributes: tuple[tuple[str, str], ...]  # of its paragraph: names of MARKUP_ATTRIBUTES, and values


MARKUP_ATTRIBUTES = ("list", "row", "item", "ruby")


class Parsed(NamedTuple):
    """What one pass over a page found."""

    blocks: list[Block]
    links: list[RawLink]
    title: str
    meta: dict[str, str]
    rels: dict[str, str]  # rel (canonical or license) -> href of the first <link> or <a> with it
    base: str | None
    html_lang: str | None
    alternates: dict[str, str]  # hreflang -> href of the first <link rel=alternate> with it
    data: str  # text of the JSON-LD scripts, at most MAX_DATA_CHARS
    links_cut: int  # number of links left out, beyond MAX_LINKS
    tree: Inherited  # the elements around the blocks
    markup: Sequence[Markup] = ()  # of each block; empty if it was not asked for


_Row = TypeVar("_Row", bound=tuple[Any, ...])


def named_tuples(kind: type[_Row], rows: Iterable[Sequence[Any]]) -> list[_Row]:
    """Named tuples of *kind* from complete rows, three times as fast as calls of the class."""
    return list(map(partial(tuple.__new__, kind), rows))
