"""Documents as TEI P5: a ``<teiCorpus>`` a file, with a ``<TEI>`` and its header for each document.

All stands in elements of the schema tei_all: address, dates, licence and languages in those that TEI has for them, the
other attributes as notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from urllib.parse import quote

from spiderling import __version__
from spiderling.corpus.reader import StoredDocument, parsed
from spiderling.text.prevertical import escape

HEAD = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<teiCorpus xmlns="http://www.tei-c.org/ns/1.0">
<teiHeader>
<fileDesc>
<titleStmt><title>Web corpus</title></titleStmt>
<publicationStmt><p>Made by Spiderling {__version__}. The texts belong to their authors.</p></publicationStmt>
<sourceDesc><p>Pages of the web; each text names its own.</p></sourceDesc>
</fileDesc>
</teiHeader>
"""
TAIL = "</teiCorpus>\n"

_PLACED = {"id", "url", "host", "title", "lang", "langs", "crawl_date", "published", "modified", "words", "licence"}
"""Attributes that have an element of their own."""
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_DATE = re.compile(r"(?P<year>\d{4})(?P<month>-\d\d)?(?P<day>(?<=-\d\d)-\d\d)?(?P<time>(?<=-\d\d-\d\d)T.+)?")
_TIME = re.compile(r"T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_IPV6 = re.compile(r"^(\w+://)%5B([0-9A-Fa-f:.]+)%5D")
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def tei(document: StoredDocument) -> str:
    """*document* as a ``<TEI>``."""
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(document: StoredDocument) -> Iterator[str]:
    attributes, paragraphs, details = parsed(document)
    url = attributes.get("url", "")
    title = f"<title>{escape(attributes.get('title') or url)}</title>"
    yield "<TEI><teiHeader>"
    yield f"<fileDesc><titleStmt>{title}</titleStmt>"
    words = attributes.get("words", "")
    if words.isascii() and words.isdigit():
        yield f'<extent><measure unit="words" quantity="{words}">{words} words</measure></extent>'
    yield f"<publicationStmt><publisher>{escape(attributes.get('host') or 'unknown')}</publisher>"
    yield f"<idno>{escape(attributes.get('id', ''))}</idno>{_availability(attributes)}</publicationStmt>"
    notes = [(name, value) for name, value in attributes.items() if name not in _PLACED and value]
    if notes:
        written = "".join(f'<note type="{name}">{escape(value)}</note>' for name, value in notes)
        yield f"<notesStmt>{written}</notesStmt>"
    yield f"<sourceDesc><bibl>{title}{_dates(attributes)}{_reference(url)}</bibl></sourceDesc></fileDesc>"
    languages = _languages(attributes)
    if languages:
        yield f"<profileDesc><langUsage>{languages}</langUsage></profileDesc>"
    yield "</teiHeader>"
    yield f"<text{_lang(attributes.get('lang', ''))}><body>"
    for text, detail in zip(paragraphs, details, strict=True):
        element, kind = ("ab", ' type="heading"') if detail.get("heading") == "1" else ("p", "")
        double = ' rend="duplicate"' if detail.get("dup") == "1" else ""
        yield f"<{element}{kind}{double}{_lang(detail.get('lang', ''))}>{escape(text)}</{element}>"
    if not paragraphs:
        yield "<p/>"
    yield "</body></text></TEI>"


def _availability(attributes: Mapping[str, str]) -> str:
    licence = attributes.get("licence", "")
    return f"<availability><licence{_target(licence)}>{escape(licence)}</licence></availability>" if licence else ""


def _reference(url: str) -> str:
    return f"<ref{_target(url)}>{escape(url)}</ref>" if url else ""


def _dates(attributes: Mapping[str, str]) -> str:
    said = [(name, attributes.get(name, "")) for name in ("published", "modified")]
    said.append(("crawled", attributes.get("crawl_date", "").replace(" ", "T")))
    return "".join(f'<date type="{name}"{_when(date)}>{escape(date)}</date>' for name, date in said if date)


def _when(date: str) -> str:
    """*date* as an attribute, if it is a year, month, day or time by the rules of XML Schema."""
    match = _DATE.fullmatch(date)
    if match is None or (match["time"] and not _TIME.fullmatch(match["time"])):
        return ""
    try:
        datetime.fromisoformat(f"{match['year']}{match['month'] or '-01'}{match['day'] or '-01'}")
    except ValueError:
        return ""
    return f' when="{date}"'


def _languages(attributes: Mapping[str, str]) -> str:
    """Codes with their share in percent."""
    pairs = (entry.partition(":") for entry in attributes.get("langs", "").split())
    shares = ((code, re.fullmatch(r"[01](?:\.\d+)?", share)) for code, _, share in pairs if _LANGUAGE.fullmatch(code))
    return "".join(
        f'<language ident="{code}" usage="{100 * float(share[0]):.0f}"/>' if share else f'<language ident="{code}"/>'
        for code, share in shares
    )


def _lang(code: str) -> str:
    return f' xml:lang="{code}"' if _LANGUAGE.fullmatch(code) else ""


def _target(url: str) -> str:
    """*url* as an attribute, if it is one of the web; what may not stand in an anyURI is percent-encoded."""
    if not url.startswith(("http://", "https://")):
        return ""
    address, *fragment = (quote(part, safe="%/:?@!$&'()*+,;=-._~") for part in _NO_ESCAPE.sub("%25", url).split("#", 1))
    pointer = "#".join([_IPV6.sub(r"\1[\2]", address), *fragment])
    return f' target="{escape(pointer)}"'
