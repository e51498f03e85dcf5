"""Finds the Python codec that a label means by the WHATWG Encoding Standard.

``latin1`` means windows-1252, and ``gb2312`` means gb18030: browsers decode with the
wider encoding, so pages are written in it.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import unicodedata
from collections.abc import Iterable

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
    "euc_jis_2004": "euc_jp",  # chardet's name for it
    "shift_jis_2004": "cp932",
    "utf-16": "utf-16-le",
}
"""Codec -> the wider codec with which browsers decode it."""
_LABELS = {
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
"""Label of the standard that Python does not know -> codec."""
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
_MOST = 0.9
"""Share of an alphabet that an encoding must have where none has all of it; chosen."""
_ASIAN = (
    (re.compile("[\u3040-\u30ff]"), ("shift_jis", "euc-jp", "iso-2022-jp")),
    (re.compile("[\uac00-\ud7a3]"), ("euc-kr",)),
    (re.compile("[\u4e00-\u9fff]"), ("gb18030", "big5")),
)
_KNOWN = {codecs.lookup(name).name for name in _SAME.split()}


def codec_of(label: str | None) -> str | None:
    """Python's name of the codec that *label* means by the WHATWG standard; None for an unknown label.

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


def codecs_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The codecs of the known *labels*, each once.

    >>> codecs_of(["latin1", "windows-1252", "rot13"])
    ('cp1252',)
    """
    return tuple(dict.fromkeys(codec for codec in map(codec_of, labels) if codec))


def encodings_for(alphabet: str) -> tuple[str, ...]:
    """Labels of the legacy encodings for a language with the letters *alphabet*.

    >>> encodings_for("abčřž"), encodings_for("абвґ"), encodings_for("かな漢字")
    (('windows-1250', 'iso-8859-2', 'cp852'), ('windows-1251', 'koi8-u'), ('shift_jis', 'euc-jp', 'iso-2022-jp'))
    """
    for script, labels in _ASIAN:
        if script.search(alphabet):
            return _with_room(labels, alphabet, _MOST)
    # a few letters may be newer than the encodings: one in Persian, two in Romanian
    rows = (_with_room(labels, alphabet, share) for share in (1.0, _MOST) for labels in _FAMILIES)
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
