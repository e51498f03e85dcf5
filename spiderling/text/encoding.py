"""From the bytes of a page to text: the content decides, labels are only evidence.

Order: byte order mark; strict UTF-8; nearly valid UTF-8; the HTTP label and then
the page's own, if the body decodes without error; chardet among the encodings of
the accepted languages.  The first that fits wins.  Labels mean what the WHATWG
Encoding Standard says (``latin1`` is windows-1252, ``gb2312`` is gb18030).
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

import chardet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SAME = """
utf-8 utf-16-le utf-16-be cp866 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10
iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman mac-cyrillic cp874 cp1250 cp1251 cp1252 cp1253
cp1254 cp1255 cp1256 cp1257 cp1258 gb18030 big5hkscs euc_jp iso2022_jp cp932 cp949 cp852 cp437 cp775 cp857 kz1048
"""
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cp950": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "johab": "cp949",
    "utf-16": "utf-16-le",
}
_LABELS = {  # labels of the standard that Python's codecs do not know
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "dos-874": "cp874",
    "x-gbk": "gb18030",
    "x-x-big5": "big5hkscs",
    "x-euc-jp": "euc_jp",
    "windows-949": "cp949",
    "iso-8859-8-i": "iso8859-8",
    "logical": "iso8859-8",
    "visual": "iso8859-8",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-roman": "mac-roman",
    "koi": "koi8-r",
    "unicode-1-1-utf-8": "utf-8",
    "x-unicode20utf8": "utf-8",
    "unicode": "utf-16-le",
    "ucs-2": "utf-16-le",
    "iso-10646-ucs-2": "utf-16-le",
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
}
_KNOWN = {codecs.lookup(name).name for name in _SAME.split()}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD_BYTES = 4096
_DETECT_BYTES = 50_000
_MAX_BAD_SHARE = 0.005
_NO_MATCH = 0.1  # chardet's confidence in an encoding that nothing speaks for
_META = re.compile(rb"""<(?:meta|\?xml)[^>]{0,500}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.I)


_NOT_LEADING = bytes(range(0xC2))  # bytes that do not begin a multi-byte sequence of UTF-8


class Decoded(NamedTuple):
    """Result of `decode`."""

    text: str | None
    """None when no encoding fits."""
    declared: str | None
    detected: str | None


def codec_of(label: str | None) -> str | None:
    """Python's name of the codec that the WHATWG standard gives to *label*; None for an unknown one.

    >>> codec_of("latin1"), codec_of(" GB2312 "), codec_of("rot13")
    ('cp1252', 'gb18030', None)
    """
    label = (label or "").strip().lower()
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
    except (LookupError, ValueError):  # ValueError: a NUL in the label
        return None
    name = _WIDER.get(name, name)
    return name if name in _KNOWN else None


def recode_size(text: str) -> int:
    """Bytes of *text* in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def decode(body: bytes, http_charset: str | None, encodings: Iterable[str] = ()) -> Decoded:
    """Decode *body*; *encodings* are the legacy ones in use for the accepted languages.  Never raises."""
    labels = [label for label in (http_charset, _meta_label(body)) if label]
    codecs_named = [name for name in map(codec_of, labels) if name]
    declared = codecs_named[0] if codecs_named else (labels[0].lower()[:40] if labels else None)
    text, detected = _decode(body, codecs_named, encodings)
    return Decoded(text, declared, detected)


def _decode(body: bytes, labels: Sequence[str], encodings: Iterable[str]) -> tuple[str | None, str | None]:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    wide = _utf16_without_mark(body)
    if wide:
        return body.decode(wide, "replace"), wide
    escaped = "iso2022_jp" in labels and b"\x1b" in body
    text = None if escaped else _utf8(body, "utf-8" in labels)
    if text is not None:
        return text, "utf-8"
    for name in labels:
        text = _strict(body, name)
        if text is not None:
            return text, name
    return _detected(body, labels, encodings)


def _meta_label(body: bytes) -> str | None:
    match = _META.search(body, 0, _HEAD_BYTES)
    if not match:
        return None
    label = match[1].decode("ascii", "replace")
    # a page whose label could be read as ASCII is not in UTF-16 (HTML standard, "prescan")
    return "utf-8" if (codec_of(label) or "").startswith("utf-16") else label


def _utf16_without_mark(body: bytes) -> str | None:
    """UTF-16 shows as every second byte being NUL around the mark-up."""
    head = body[:1000]
    if head.count(0) * 4 < len(head) or len(head) < 20:
        return None
    low, high = head[::2].count(0), head[1::2].count(0)
    if max(low, high) < 10 * min(low, high):
        return None
    return "utf-16-le" if high > low else "utf-16-be"


def _utf8(body: bytes, labelled: bool) -> str | None:
    """The text if *body* is UTF-8, or was before a few bytes were damaged."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = len(body.translate(None, _NOT_LEADING)) - bad
    return text if good >= (3 if labelled else 10) * bad and bad <= max(1, _MAX_BAD_SHARE * len(text)) else None


def _strict(body: bytes, name: str) -> str | None:
    if name.startswith("utf"):  # UTF-8 was tried; eight-bit text is nearly always "valid" UTF-16
        return None
    try:
        return body.decode(name)
    except (UnicodeDecodeError, ValueError):
        return None


def _detected(body: bytes, labels: Sequence[str], encodings: Iterable[str]) -> tuple[str | None, str | None]:
    """chardet's choice, or else a label that fits but for a few bytes."""
    wanted = {name for name in map(codec_of, encodings) if name} | set(labels) | {"cp1252"}
    names = sorted(name.replace("_", "-").replace("iso2022", "iso-2022") for name in wanted)  # as chardet spells them
    found = chardet.detect(_telling(body), include_encodings=names, compat_names=False)
    guess = found["encoding"] if found["confidence"] > _NO_MATCH else None
    for name in (codec_of(guess), *labels):
        if name is None:
            continue
        text = body.decode(name, "replace")
        if _looks_like_text(text):
            return text, name
    return None, None


def _telling(body: bytes) -> bytes:
    """The runs between tags that hold high bytes: ASCII mark-up only dilutes the evidence."""
    return b" ".join(run for run in re.split(rb"[<>]", body) if not run.isascii())[:_DETECT_BYTES]


def _looks_like_text(text: str) -> bool:
    sample = text[:_DETECT_BYTES]
    odd = sum(1 for char in sample if char == "\ufffd" or (char < " " and char not in "\t\n\r\f\x1b"))
    return odd <= _MAX_BAD_SHARE * len(sample)
