"""The normal form of text: texts that look the same become equal.

Characters are composed (Unicode NFC, UAX #15), any white space is one space, and
invisible characters are dropped: controls, soft hyphens, byte order marks, zero-width
spaces, directional marks.  The zero-width joiner and non-joiner belong to the spelling
of Persian, Indian languages and emoji: they stay behind a character that they can act
upon (Unicode, chapter 23.2), and are dropped elsewhere.

All functions are idempotent, never raise and add no letters.
"""

from __future__ import annotations

import re
import unicodedata

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
_MAX_MARKS = 30
"""Marks on one letter that are kept (UAX #15, section 13); NFC takes quadratic time for more."""
_MARK = re.compile(f"[{_MARKS}]")
_TOO_MANY_MARKS = re.compile(f"([{_MARKS}]{{{_MAX_MARKS}}})[{_MARKS}]+")
NEXT_LINE = "\x85"
"""Python takes it for white space; pages mean the ellipsis of windows-1252."""
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n[ \t]*(?=([^\W\d_]))")


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
        text = " ".join(unicodedata.normalize("NFC", text).split())
        used = _IDLE_JOINERS.sub("", text) if _JOINERS.search(text) else text
        if used == text:
            return text
        text = used  # without the joiner its neighbours may combine to one character


def normal_forms(plain: list[str]) -> list[str]:
    """`normal_form` of each text; fast if none needs a change, as on most pages.

    Requires that every run of white space in them is one space.
    """
    every = " ".join(plain)
    if every.isprintable() and (every.isascii() or _is_normal(every, every)):
        return plain
    return [one if one.isascii() and one.isprintable() else normal_form(one) for one in plain]


def _is_normal(text: str, plain: str) -> bool:
    """Whether *plain*, which is *text* with its white space collapsed, is in normal form.

    Requires that *plain* is printable: without controls, joiners and lone surrogates.
    """
    if NEXT_LINE in text:
        return False
    # a run of _MAX_MARKS marks has a mark at a place that is a multiple of _MAX_MARKS
    if len(plain) > _MAX_MARKS and _MARK.search(plain[::_MAX_MARKS]) and _TOO_MANY_MARKS.search(plain):
        return False
    return unicodedata.is_normalized("NFC", plain)


def rejoined(lines: str) -> str:
    """Join words that hyphens divide at the ends of *lines*, the lines of one paragraph, as in PDF files.

    A hyphen goes if the next line begins with a lower-case letter, a soft hyphen always.  A hyphen before a capital
    belongs to the word and stays.

    >>> rejoined("a divi-\\nded word by Jean-\\nPaul")
    'a divided word by Jean-Paul'
    """
    return _BROKEN_WORD.sub(_whole, lines)


def _whole(match: re.Match[str]) -> str:
    return "" if match[1].islower() or match[0][0] == "\u00ad" else match[0][0]
