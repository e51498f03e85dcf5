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
from typing import NamedTuple

from spiderling.text.dates import day_in_address, iso_date, shown_day
from spiderling.text.html.blocks import Parsed, RawLink
from spiderling.text.html.links import join
from spiderling.text.html.metadata import ONLY_DAY
from spiderling.text.html.zones import BITS
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
    r"https?://(?:www\.)?(?:creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)"
    r"|gnu\.org/(?:licenses|copyleft)/(gpl|lgpl|fdl)|opendatacommons\.org/licenses/([a-z-]+)"
    r"|opensource\.org/licenses?/([a-z])|rightsstatements\.org/(?:vocab|page)/([a-z]+))",
    re.IGNORECASE,
)
"""Addresses of free licences; most pages link theirs without rel=license."""
_LICENCE_PLACES = ("creativecommons.", "gnu.", "opendatacommons.", "opensource.", "rightsstatements.")
"""Each address of _LICENCE holds one of these; a search for them is fast."""
_OF_TEXTS = re.compile(
    r"https?://(?:www\.)?(?:creativecommons\.org/(?:licenses|publicdomain/zero)/|gnu\.org/(?:licenses|copyleft)/fdl)",
    re.IGNORECASE,
)
"""Those that are given to texts; others are of programs, data and old pictures."""
_SURE_BASES = ("rel", "meta", "schema", "article", "footer", "side")
_CAPTION_CHARS = 100  # characters before a link to a licence that say of what it is; chosen
_CAPTION = re.compile(
    r"photo|image|foto|picture|bild(?:er)?\b|video|credit|courtesy|flickr|wikimedia|icon|logo\b|software|theme|plugin"
    r"|lightbox|excerpt|\.jpe?g|\.png|\bfonts?\b|illustration|graphic|\bmap\b|фото|obráz|zdjęci|imagen|写真|图片|圖片",
    re.IGNORECASE,
)
_OF_PAGE = re.compile(
    r"(?:\bthis|\bdies\w*|\bce(?:t|tte)?|\best[ea]|\bquest[oa]|\bt(?:ento|ato|oto)|\bt[aey]n?|\bэт\w+) "
    r"(?:page|site|web ?site|work|text[eo]?|article|document[eo]?|content|post|blog|book|story|seite|werk|inhalt"
    r"|artikel|dokument|œuvre|obra|opera|sitio|página|pagina|articolo|artículo|web|stránk\w+|dílo|článek|strona|utwór"
    r"|artykuł|tekst|страниц\w+|текст|стать\w+|произведени\w+)\b",
    re.IGNORECASE,
)
"""Words before a link to a licence in running text that say that the page is under it."""
_NEAR_CHARS = 400  # characters before and behind a link in which these words and the next are looked for; chosen
_EITHER = re.compile(
    r"\b(?:either\b.{0,400}\bor|entweder\b.{0,400}\boder|soit\b.{0,400}\bsoit|sia\b.{0,400}\bche)\b", re.I | re.S
)
"""Words around links to licences of which the reader may choose one."""
_RESERVED = re.compile(
    r"all rights? reserved|alle rechte vorbehalten|tous droits réservés|derechos reservados|direitos reservados"
    r"|права защищены|права захищені|práva (?:jsou )?vyhrazena|práva vyhradené|prawa zastrzeżone|diritti riservati"
    r"|rechten voorbehouden|rättigheter förbehåll|oikeudet pidätetään|版权所有|版權所有|無断転載",
    re.IGNORECASE,
)
"""Words that take back what a licence gives, whatever they are meant for."""


def fill_head(page: Page, parsed: Parsed, url: str) -> None:
    """Set the declared values of *page*, which is at *url*, from *parsed*."""
    page.title = parsed.title
    page.meta = parsed.meta
    page.html_lang = parsed.html_lang
    page.canonical = join(url, parsed.rels["canonical"].strip()) if "canonical" in parsed.rels else None
    page.licence, page.licence_basis = _licence(parsed, url)
    page.licence_sure = sure_licence(page.licence, page.licence_basis)
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
        return _of_articles(data, key)
    return found[:1]


def _of_articles(data: str, key: str) -> list[str]:
    """What articles and pages have under *key*; raises ValueError and RecursionError if *data* is not JSON."""
    return [str(one[key]) for one in list(_objects(data)) if key in one and _is_article(one.get("@type"))]


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


class _Evidence(NamedTuple):
    licence: str  # address, or text
    basis: str  # where it stands


def _licence(parsed: Parsed, url: str) -> tuple[str | None, str]:
    """URL or text that is marked as the licence, else the first link to a known one; and its basis (docs/corpus.md).

    What stands with a picture or program counts only if there is nothing else.
    """
    found = [*_licences_of_page(parsed, url), *_linked_licences(parsed, url)]
    if not found:
        return None, ""
    of_text = [one for one in found if one.basis not in ("caption", "button")] or found
    kinds = {match[match.lastindex or 0].lower() for one in of_text if (match := _LICENCE.match(one.licence))}
    is_mixed = len(kinds) > 1 or any(_RESERVED.search(block.text) for block in parsed.blocks)
    return of_text[0].licence, "mixed" if is_mixed else of_text[0].basis


def sure_licence(licence: str | None, basis: str) -> str:
    """*licence* if its *basis* says that it holds for the text, else ''."""
    return licence if licence and basis in _SURE_BASES and _OF_TEXTS.match(licence) else ""


def _licences_of_page(parsed: Parsed, url: str) -> Iterator[_Evidence]:
    """What the head and the JSON-LD say."""
    said = parsed.rels.get("license")
    if said and not any(_is_marked(link) for link in parsed.links):
        yield _Evidence(join(url, said.strip()) or said, "rel")
    for link in parsed.links if said else ():
        if _is_marked(link):
            place = _place(parsed, link)
            yield _Evidence(join(url, link.href.strip()) or link.href, "rel" if place in _SURE_BASES else place)
    for name in ("dcterms.license", "license", "dc.rights"):
        if name in parsed.meta:
            yield _Evidence(parsed.meta[name], "meta")
    if data := _JSON["license"].search(parsed.data):
        of_articles: list[str] = []
        with contextlib.suppress(ValueError, RecursionError):
            of_articles = _of_articles(parsed.data, "license")
        yield _Evidence(of_articles[0], "schema") if of_articles else _Evidence(data[1], "caption")


def _linked_licences(parsed: Parsed, url: str) -> Iterator[_Evidence]:
    every = " ".join([link.href for link in parsed.links]).lower()
    if any(place in every for place in _LICENCE_PLACES):
        for link in parsed.links:
            href = link.href.strip()
            if not _LICENCE.match(href) or _is_marked(link):
                continue
            text = parsed.blocks[link.block].text if link.block >= 0 else ""
            at = max(0, text.find(link.anchor))
            is_choice = _EITHER.search(text, max(0, at - _NEAR_CHARS), at + _NEAR_CHARS)
            if not is_choice or _OF_TEXTS.match(href):
                yield _Evidence(href, _place(parsed, link))


def _is_marked(link: RawLink) -> bool:
    return "license" in link.rel.lower().split()


def _place(parsed: Parsed, link: RawLink) -> str:
    """Where *link* to a licence stands: footer, side, article that says so of itself, or other running text.

    Or it is the caption of something else, or a button without text.
    """
    if link.block < 0:
        return "button"
    block = parsed.blocks[link.block]
    before = block.text.partition(link.anchor)[0] if link.anchor else block.text
    if _CAPTION.search(before[-_CAPTION_CHARS:]):
        return "caption"
    zone = parsed.tree.zones[block.element]
    is_of_page = _is_marked(link) or _OF_PAGE.search(before[-_NEAR_CHARS:])
    return next((kind for kind in ("footer", "side") if zone & BITS[kind]), "article" if is_of_page else "text")


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
