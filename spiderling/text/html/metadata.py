"""What a page's head says of it, tag by tag: <meta>, <link>, <base>, <html>, <time>.  head.py makes sense of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spiderling.text.html.normal import normal_form

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_META_CHARS = 500
MAX_METAS = 60
MAX_ALTERNATES = 300

_METAS = """
description keywords robots googlebot author generator og:locale og:type og:title og:url content-language refresh
date dc.date dcterms.date dcterms.created dcterms.modified datepublished datemodified pubdate last-modified
article:published_time article:modified_time og:updated_time license dcterms.license dc.rights
tdm-reservation tdm-policy
"""
_META_NAMES = frozenset(_METAS.split())
_FOR_ROBOTS = re.compile(
    r"\b(?:noindex|nofollow|none|noarchive|nocache|noai|noimageai|unavailable_after)\b", re.IGNORECASE
)
_REFRESH_URL = re.compile(r"url\s*=\s*['\"]?([^'\"\s>]+)", re.I)


class Metadata:
    """Collects what the tags say; what is said first counts."""

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        self.rels: dict[str, str] = {}
        self.base: str | None = None
        self.html_lang: str | None = None
        self.alternates: dict[str, str] = {}

    def take(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Look at one of the tags; returns where a <meta> leads at once."""
        if tag == "meta":
            return self._meta(attributes)
        if tag == "link":
            self.rel(attributes.get("rel", "").lower(), attributes.get("href", ""))
            self._alternate(attributes)
        elif tag == "time":
            self._time(attributes)
        elif tag == "base":
            self.base = self.base or attributes.get("href")
        else:
            self.html_lang = self.html_lang or (attributes.get("lang") or attributes.get("xml:lang") or "")[:35] or None
        return None

    def rel(self, rel: str, href: str) -> None:
        """A link says what it leads to; *rel* is in lower case."""
        for name in rel.split():
            if name in ("canonical", "license"):
                self.rels.setdefault(name, href)

    def _alternate(self, attributes: Mapping[str, str]) -> None:
        language, href = attributes.get("hreflang", "").strip().lower()[:35], attributes.get("href")
        is_alternate = "alternate" in attributes.get("rel", "").lower().split()
        if language and href and is_alternate and len(self.alternates) < MAX_ALTERNATES:
            self.alternates.setdefault(language, href)

    def _time(self, attributes: Mapping[str, str]) -> None:
        """<time> that says of what (microdata, and ``pubdate`` of early HTML5) stands for a <meta>."""
        name = attributes.get("itemprop", "").lower() or ("datepublished" if "pubdate" in attributes else "")
        if name in ("datepublished", "datemodified") and attributes.get("datetime"):
            self.meta.setdefault(name, normal_form(attributes["datetime"])[:MAX_META_CHARS])

    def _meta(self, attributes: Mapping[str, str]) -> str | None:
        name = attributes.get("name") or attributes.get("property") or attributes.get("http-equiv")
        name = name or attributes.get("itemprop") or ""
        name = name.strip().lower()
        content = attributes.get("content")
        if content and _FOR_ROBOTS.search(content):
            self._for_robots(name, content)
        if not content or name not in _META_NAMES:
            return None
        self.meta.setdefault(name, normal_form(content)[:MAX_META_CHARS])
        target = _REFRESH_URL.search(content[:2000]) if name == "refresh" else None
        return target[1] if target else None

    def _for_robots(self, name: str, content: str) -> None:
        """Directives count together, however many tags they stand in; the name says for whom (text/optout.py)."""
        key = name if name == "robots" else f"robots:{name[:40]}"
        if (name == "robots" or name not in _META_NAMES) and len(self.meta) < MAX_METAS:
            said = f"{self.meta[key]}, {content}" if key in self.meta else content
            self.meta[key] = said[:MAX_META_CHARS]
