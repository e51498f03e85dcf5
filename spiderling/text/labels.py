"""Which codec a label of an encoding means: the WHATWG Encoding Standard, in Python's names.

``latin1`` is windows-1252, ``gb2312`` is gb18030: browsers read the wider encoding,
and so pages are written in it.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def codecs_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The codecs of those *labels* that are known, each once.

    >>> codecs_of(["latin1", "windows-1252", "rot13"])
    ('cp1252',)
    """
    return tuple(dict.fromkeys(codec for codec in map(codec_of, labels) if codec))
