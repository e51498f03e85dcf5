"""What a page says of itself: address, versions in other languages, licence, dates.

It is not trusted: it becomes an attribute of the document, or a link to be tried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.utils import parsedate_to_datetime

from spiderling.text.html.blocks import Parsed
from spiderling.text.html.links import join
from spiderling.text.page import Page

_PUBLISHED = (
    "article:published_time",
    "datepublished",
    "dcterms.created",
    "pubdate",
    "date",
    "dc.date",
    "dcterms.date",
)
_MODIFIED = ("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified", "last-modified")
"""Names of <meta> that state a date, the most reliable first."""
_ISO_DATE = re.compile(
    r"(?P<year>(?:19|20)\d\d)-?(?P<month>0[1-9]|1[0-2])-?(?P<day>0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)
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
"""What one of them holds in any case; a look for these is fast."""


def fill_head(page: Page, parsed: Parsed, url: str) -> None:
    """Set what *parsed* found in the head of the page at *url*."""
    page.title = parsed.title
    page.meta = parsed.meta
    page.html_lang = parsed.html_lang
    page.canonical = join(url, parsed.rels["canonical"].strip()) if "canonical" in parsed.rels else None
    page.licence = _licence(parsed, url)
    page.published = _date(parsed, _PUBLISHED, "datePublished")
    page.modified = _date(parsed, _MODIFIED, "dateModified")
    joined = {language: join(url, href.strip()) for language, href in parsed.alternates.items()}
    page.alternates = {code: target for code, target in joined.items() if target and target.startswith("http")}


def iso_date(text: str) -> str:
    """*text*, a date by ISO 8601 or RFC 5322, as YYYY-MM-DD, with THH:MM[:SS][zone] if it gives a time; else ''."""
    match = _ISO_DATE.match(text.strip())
    if match:
        time = f"T{match['time']}{match['zone'] or ''}" if match["time"] else ""
        return f"{match['year']}-{match['month']}-{match['day']}{time}"
    try:
        return parsedate_to_datetime(text[:60]).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _date(parsed: Parsed, names: Sequence[str], key: str) -> str:
    """The first of the named meta values that is a date, else that of the JSON-LD."""
    data = _JSON[key].search(parsed.data)
    stated = (*(parsed.meta.get(name, "") for name in names), data[1] if data else "")
    return next(filter(None, map(iso_date, stated)), "")


def _licence(parsed: Parsed, url: str) -> str | None:
    """What is marked as the licence, else the first link to a known one."""
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
