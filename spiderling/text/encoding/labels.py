"""Finds the Python codec that a label means by the WHATWG Encoding Standard.

``latin1`` means windows-1252, and ``gb2312`` means gb18030: browsers decode with the
wider encoding, so pages are written in it.

Where we differ from the standard: more labels have a meaning (cp437, cp775, cp852, cp857,
kz1048); its encodings `replacement` and `x-user-defined` count as no label; visual Hebrew
is left as it stands; a byte that windows-125x leaves undefined is an error, where browsers
make a control character of it.  Queries of GBK, Big5 and EUC-JP may hold characters that only
the wider encoding has.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib.resources import files

_OTHER_LABELS = {
    **{name: name for name in ("cp437", "cp775", "cp852", "cp857", "kz1048")},
    "cp950": "big5hkscs",
    "johab": "cp949",
    "euc-jis-2004": "euc_jp",  # chardet's name for it
    "shift-jis-2004": "cp932",
    "utf-16": "utf-16-le",
}
"""Labels that have a meaning here and none in the standard."""
_FAMILIES = (
    ("windows-1252", "iso-8859-15"),
    ("windows-1250", "iso-8859-2", "cp852"),
    ("windows-1254",),
    ("windows-1257", "iso-8859-13"),
    ("windows-1251", "koi8-r", "koi8-u", "iso-8859-5", "ibm866"),
    ("windows-1253", "iso-8859-7"),
    ("windows-1255", "iso-8859-8"),
    ("windows-1256", "iso-8859-6"),
    ("tis-620",),
    ("windows-1258",),
    ("kz1048",),
    ("iso-8859-16",),
    ("iso-8859-3",),
    ("iso-8859-14",),
    ("iso-8859-10",),
)
"""Legacy encodings, in each row the most usual first.  A language uses the first row that can encode its alphabet."""
_MAX = 0.9  # share of an alphabet that an encoding must have where none has all of it; chosen
_ASIAN = (
    (re.compile("[\u3040-\u30ff]"), ("shift_jis", "euc-jp", "iso-2022-jp")),
    (re.compile("[\uac00-\ud7a3]"), ("euc-kr",)),
    (re.compile("[\u4e00-\u9fff]"), ("gb18030", "big5")),
)
_REMOVED = {ord(char): None for char in "\t\n\r"}  # white space that the URL standard removes
_NOT_IN_QUERY = re.compile(rb"[^!$-&(-;=?-~]")
"""Bytes that do not stand in a query as they are (URL standard, special-query percent-encode set)."""


def _as_references(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(f"%26%23{ord(char)}%3B" for char in error.object[error.start : error.end]), error.end


codecs.register_error("spiderling-query", _as_references)


def _names(text: str) -> tuple[str, ...]:
    return tuple(codecs.lookup(name).name for name in text.split())


STANDARD = _names(
    "cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp874 cp866 koi8-r koi8-u iso8859-2 iso8859-3 "
    "iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 "
    "mac-roman mac-cyrillic"
)
"""The codecs of the standard with one byte a character."""
SINGLE_BYTE = (*STANDARD, *_names("cp437 cp775 cp852 cp857 kz1048"))
MULTI_BYTE = _names("gb18030 big5hkscs euc_jp cp932 cp949")
_SELDOM = {
    "windows-1252": ("macintosh", "iso-8859-14", "iso-8859-10"),
    "windows-1250": ("iso-8859-16",),
    "windows-1251": ("x-mac-cyrillic",),
    "windows-1257": ("iso-8859-4", "iso-8859-10"),
    "windows-1254": ("iso-8859-3",),
}
"""Encoding -> those that few pages of the same languages are in."""


@lru_cache(maxsize=1)
def _codecs_by_label() -> dict[str, str]:
    """The standard's table of labels with Python's names, and _OTHER_LABELS."""
    lines = files("spiderling.text.encoding").joinpath("labels.txt").read_text("ascii").splitlines()
    rows = [line.split() for line in lines if line[0] not in "#-"]
    return {label: row[0] for row in rows for label in (*row, row[0].replace("_", "-"))} | _OTHER_LABELS


def codec_of(label: str | None) -> str | None:
    """Python's name of the codec that *label* means by the WHATWG standard; None for an unknown label.

    >>> codec_of("latin1"), codec_of(" GB2312 "), codec_of("rot13")
    ('cp1252', 'gb18030', None)
    """
    label = (label or "").strip().lower()
    known = _codecs_by_label()
    if label not in known:
        try:
            label = codecs.lookup(label).name.replace("_", "-")  # another spelling, such as utf_8 and latin-1
        except (LookupError, ValueError):  # ValueError: a NUL in the label
            return None
    return known.get(label)


def query_in(codec: str, address: str) -> str:
    """*address*, as a page in *codec* writes it, with the query percent-encoded in that encoding.

    So a form of the page would send it (URL standard, query state); all other parts are in UTF-8 whatever the page is.

    >>> query_in("cp1250", "/žlutý?q=žlutý#ž"), query_in("cp1250", "?q=я"), query_in("utf-16-le", "?q=ž")
    ('/žlutý?q=%9Elut%FD#ž', '?q=%26%231103%3B', '?q=ž')
    """
    if address.isascii() or codec.startswith("utf"):
        return address
    path, mark, query = address.strip().partition("#")[0].partition("?")
    if query.isascii():
        return address
    encoded = query.translate(_REMOVED).encode(codec, "spiderling-query")
    escaped = _NOT_IN_QUERY.sub(lambda byte: b"%%%02X" % byte[0][0], encoded).decode("ascii")
    return path + mark + escaped + address.strip()[len(path + mark + query) :]


def codecs_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The codecs of the known *labels*, each once.

    >>> codecs_of(["latin1", "windows-1252", "rot13"])
    ('cp1252',)
    """
    return tuple(dict.fromkeys(codec for codec in map(codec_of, labels) if codec))


@lru_cache(maxsize=256)
def seldom_codecs(codecs: Collection[str]) -> frozenset[str]:
    """The codecs that pages of a language are seldom in, if most are in one of *codecs*."""
    rows = ((*row, *_SELDOM.get(row[0], ())) for row in _FAMILIES)
    families = (codecs_of(row) for row in rows)
    return frozenset(codec for family in families for codec in family if not set(codecs).isdisjoint(family))


def encodings_for(alphabet: str) -> tuple[str, ...]:
    """Labels of the legacy encodings for a language with the letters *alphabet*.

    >>> encodings_for("abčřž"), encodings_for("абвґ"), encodings_for("かな漢字")
    (('windows-1250', 'iso-8859-2', 'cp852'), ('windows-1251', 'koi8-u'), ('shift_jis', 'euc-jp', 'iso-2022-jp'))
    """
    for script, labels in _ASIAN:
        if script.search(alphabet):
            return _with_room(labels, alphabet, _MAX)
    # a few letters may be newer than the encodings: one in Persian, two in Romanian
    rows = (_with_room(labels, alphabet, share) for share in (1.0, _MAX) for labels in _FAMILIES)
    return next(filter(None, rows), ())


def _with_room(labels: Iterable[str], alphabet: str, share: float) -> tuple[str, ...]:
    """The *labels* whose encodings have at least *share* of the letters of *alphabet*."""
    least = share * len(alphabet)
    return tuple(label for label in labels if sum(_has(codec_of(label) or "", letter) for letter in alphabet) >= least)


def _has(codec: str, letter: str) -> bool:
    """Whether *codec* has the letter as one character, or as a letter and an accent, as windows-1258 does."""
    parts = unicodedata.normalize("NFD", letter)
    apart = (unicodedata.normalize("NFC", parts[:i] + parts[i + 1 :]) + parts[i] for i in range(1, len(parts)))
    for form in (letter, *apart):
        with contextlib.suppress(UnicodeEncodeError):
            return bool(form.encode(codec))
    return False
