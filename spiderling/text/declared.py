"""What a page says about its own language, and the rule of Somboonviwat et al. (2006) that uses it.

A declared language is weak evidence, because templates declare the language of their
authors.  For each paragraph it adds `WEIGHT` in favour of the language.  In the paper's
rule for language-specific web crawling (LSWC), `lswc_language`, it counts as much as the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from spiderling.text.page import Page

WEIGHT = 1.9
"""Natural logarithm of the odds that ``<html lang>`` is right, as on 370 of 423 pages (benchmarks/declared.py)."""

_ENGLISH = "en"
_OTHER_CODES = {"no": "nb", "iw": "he", "in": "id", "jw": "jv", "fil": "tl", "cmn": "zh", "kmr": "ku"}
"""Codes that pages use -> codes of our models."""
_CHARSETS = {
    "el": "cp1253 iso8859-7",
    "he": "cp1255 iso8859-8",
    "ja": "cp932 euc_jp iso2022_jp",
    "kk": "kz1048",
    "ko": "cp949",
    "th": "cp874",
    "tr": "cp1254 cp857",
    "uk": "koi8-u",
    "vi": "cp1258",
    "zh": "gb18030 big5hkscs",
}
"""Language -> the codecs that it alone is written in."""
_LANGUAGES = {codec: code for code, codecs in _CHARSETS.items() for codec in codecs.split()}


def language_of_tag(tag: str | None) -> str | None:
    """The language of a BCP 47 tag as it stands in ``<html lang>``, by the code that our models have.

    >>> language_of_tag("cs-CZ"), language_of_tag(" EN_us"), language_of_tag("iw"), language_of_tag("x-default")
    ('cs', 'en', 'he', None)
    """
    code = (tag or "").strip().lower().replace("_", "-").partition("-")[0]
    code = _OTHER_CODES.get(code, code)
    return code if code.isascii() and code.isalpha() and 2 <= len(code) <= 3 else None


def language_of_charset(codec: str | None) -> str | None:
    """The language that alone is written in *codec* (Python's name); None when there are several.

    >>> language_of_charset("cp874"), language_of_charset("cp1250")
    ('th', None)
    """
    return _LANGUAGES.get(codec or "")


def declared_language(page: Page) -> str | None:
    """The language that *page* declares by its ``lang``, else by its charset."""
    return language_of_tag(page.html_lang) or language_of_charset(page.encoding_declared)


def table_1(declared: str | None, guessed: str | None, target: str) -> str | None:
    """The language of a page by table 1 of the paper; None is 'unknown'.

    It is the *target* if that is declared or guessed, else the declared language, else the guessed one.
    """
    return target if target in (declared, guessed) else declared or guessed


def guess_among(candidates: Sequence[str], target: str) -> str | None:
    """The one of several guessed languages that the paper takes: the target, else English, else the first."""
    return next((wanted for wanted in (target, _ENGLISH, *candidates) if wanted in candidates), None)


def lswc_language(page: Page, target: str) -> str | None:
    """The language of *page* by the paper's rule, from its declared charset and the languages its text may be in."""
    return table_1(language_of_charset(page.encoding_declared), guess_among(page.candidates, target), target)


def lswc_among(page: Page, targets: Sequence[str]) -> str:
    """The same for several target languages: the first that the rule finds, else what it finds for the first one.

    '' for unknown.
    """
    found = [lswc_language(page, target) or "" for target in targets]
    agreed = (target for target, language in zip(targets, found, strict=True) if target == language)
    return next((*agreed, *found), "") if False else next(iter((*agreed, *found)), "")
