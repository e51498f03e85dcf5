"""What a page declares: its address, versions in other languages, licence, dates, language.

These values are not trusted: they become attributes of the document, or links to be tried.  A declared language is
weak evidence, because templates declare the language of their authors: it adds `WEIGHT` to the score of that language
in each paragraph.  In `lswc_language`, the rule of Somboonviwat et al. (2006) for language-specific web crawling
(LSWC), it counts as much as the text.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence

from spiderling.text.dates import day_in_address, iso_date, shown_day
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.links import join
from spiderling.text.html.metadata import ONLY_DAY
from spiderling.text.page import Page

WEIGHT = 1.9  # natural logarithm of the odds that ``<html lang>`` is right, as on 370 of 423 pages

_ENGLISH = "en"
_OTHER_CODES = {"no": "nb", "iw": "he", "in": "id", "jw": "jv", "fil": "tl", "cmn": "zh", "kmr": "ku"}
"""Code that pages use -> code of the model."""
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
"""Language -> codecs in which only it is written."""
_LANGUAGES = {codec: code for code, codecs in _CHARSETS.items() for codec in codecs.split()}
_PUBLISHED = (
    "article:published_time",
    "datepublished",
    "dcterms.created",
    "pubdate",
    "date",
    "dc.date",
    "dcterms.date",
)
_ARTICLE_TYPES = ("Article", "Posting", "Page", "Report", "Recipe", "CreativeWork")  # endings of schema.org's types
_MODIFIED = ("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified", "last-modified")
"""Names of <meta> that state a date, the most reliable first."""
_NOT_SPACE = re.compile(r"\S")
_JSON_STRING = r'"%s"\s*:\s*"([^"\\]{4,500})"'
_JSON = {name: re.compile(_JSON_STRING % name) for name in ("datePublished", "dateModified", "license")}
_LICENCE = re.compile(
    r"https?://(?:www\.)?(?:creativecommons\.org/(?:licenses|publicdomain)/[a-z]"
    r"|gnu\.org/(?:licenses|copyleft)/(?:gpl|lgpl|fdl)|opendatacommons\.org/licenses/[a-z]"
    r"|opensource\.org/licenses?/[a-z]|rightsstatements\.org/(?:vocab|page)/[a-z])",
    re.IGNORECASE,
)
"""Addresses of free licences; most pages link theirs without rel=license."""
_LICENCE_PLACES = ("creativecommons.", "gnu.", "opendatacommons.", "opensource.", "rightsstatements.")
"""Each address of _LICENCE holds one of these; a search for them is fast."""


def fill_head(page: Page, parsed: Parsed, url: str) -> None:
    """Set the declared values of *page*, which is at *url*, from *parsed*."""
    page.title = parsed.title
    page.meta = parsed.meta
    page.html_lang = parsed.html_lang
    page.canonical = join(url, parsed.rels["canonical"].strip()) if "canonical" in parsed.rels else None
    page.licence = _licence(parsed, url)
    page.published = (
        _date(parsed, _PUBLISHED, "datePublished")
        or iso_date(parsed.meta.get(ONLY_DAY, ""))
        or day_in_address(url)
        or shown_day(parsed.blocks, language_of_tag(page.html_lang))
    )
    page.modified = _date(parsed, _MODIFIED, "dateModified")
    joined = {language: join(url, href.strip()) for language, href in parsed.alternates.items()}
    page.alternates = {code: target for code, target in joined.items() if target and target.startswith("http")}


def _date(parsed: Parsed, names: Sequence[str], key: str) -> str:
    """The first date among the <meta> *names*, else the page's own under *key* in the JSON-LD; '' for none."""
    stated = filter(None, (*(parsed.meta.get(name) for name in names), *_dates_of_page(parsed.data, key)))
    language = language_of_tag(parsed.html_lang)
    return next(filter(None, (iso_date(date, language) for date in stated)), "")


def _dates_of_page(data: str, key: str) -> list[str]:
    """The dates under *key* in JSON-LD; where they differ, those of articles and pages, not of comments."""
    found = _JSON[key].findall(data)
    if len(set(found)) < 2:
        return found[:1]
    with contextlib.suppress(ValueError, RecursionError):
        return [str(one[key]) for one in list(_objects(data)) if key in one and _is_article(one.get("@type"))]
    return found[:1]


def _is_article(types: object) -> bool:
    """Whether one of the *types* of an object, a name or a list of names, is that of an article or page."""
    return any(str(one).endswith(_ARTICLE_TYPES) for one in (types if isinstance(types, list) else [types]))


def _objects(data: str) -> Iterator[dict[str, object]]:
    """The objects of JSON-LD scripts that describe the page itself; raises ValueError if *data* is not JSON."""
    decoder = json.JSONDecoder()
    next_value = _NOT_SPACE.search(data)
    while next_value is not None:
        value, end = decoder.raw_decode(data, next_value.start())
        next_value = _NOT_SPACE.search(data, end)
        waiting = [value]
        for one in waiting:
            if isinstance(one, list):
                waiting += one
            elif isinstance(one, dict):
                waiting += [one[name] for name in ("@graph", "mainEntity", "mainEntityOfPage") if name in one]
                yield one


def _licence(parsed: Parsed, url: str) -> str | None:
    """URL or text that is marked as the licence, else the first link to a known one."""
    said = parsed.rels.get("license")
    if said:
        return join(url, said.strip()) or said
    meta = next(
        (parsed.meta[name] for name in ("dcterms.license", "license", "dc.rights") if name in parsed.meta), None
    )
    data = _JSON["license"].search(parsed.data)
    return meta or (data[1] if data else None) or _linked_licence([link.href for link in parsed.links])


def _linked_licence(hrefs: list[str]) -> str | None:
    every = " ".join(hrefs).lower()
    if not any(place in every for place in _LICENCE_PLACES):
        return None
    return next((href.strip() for href in hrefs if _LICENCE.match(href.strip())), None)


def language_of_tag(tag: str | None) -> str | None:
    """The model's code for the language of a BCP 47 tag, as in ``<html lang>``; None if the tag names none.

    >>> language_of_tag("cs-CZ"), language_of_tag(" EN_us"), language_of_tag("iw"), language_of_tag("x-default")
    ('cs', 'en', 'he', None)
    """
    code = (tag or "").strip().lower().replace("_", "-").partition("-")[0]
    code = _OTHER_CODES.get(code, code)
    return code if code.isascii() and code.isalpha() and 2 <= len(code) <= 3 else None


def language_of_charset(codec: str | None) -> str | None:
    """The only language that is written in *codec* (Python's name); None if there are several.

    >>> language_of_charset("cp874"), language_of_charset("cp1250")
    ('th', None)
    """
    return _LANGUAGES.get(codec or "")


def declared_language(page: Page) -> str | None:
    """The language that *page* declares by its ``lang``, else by its charset."""
    return language_of_tag(page.html_lang) or language_of_charset(page.encoding_declared)


def lswc_language(page: Page, targets: Sequence[str]) -> str:
    """The language of *page* by Somboonviwat et al. 2006, table 1; '' for unknown.

    It is the first of *targets* that the charset declares or that the text may be in, else the declared language, else
    that of the text: of several English, else the nearest.
    """
    declared = language_of_charset(page.encoding_declared)
    agreed = (target for target in targets if target == declared or target in page.candidates)
    guessed = (_ENGLISH, *page.candidates) if _ENGLISH in page.candidates else page.candidates
    return next(iter((*agreed, *filter(None, (declared, *guessed)))), "") if targets else ""
