"""Collects what a page says about itself; declared.py interprets it.

It stands in <title>, <meta>, <link>, <base>, <html> and <time>, and in scripts that hold JSON-LD or licences by RSL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spiderling.base import opt_outs
from spiderling.text.html.blocks import normal_form

MAX_META_CHARS = 500  # characters of a value that are kept; chosen
MAX_LANGUAGE_CHARS = 35  # characters of a language tag that are kept (RFC 5646, 4.4.1: what a buffer is to hold)
MAX_DATA_CHARS = 50_000  # characters of the JSON-LD, and of the licences by RSL, that are kept; chosen
_MAX_METAS = 60  # names in `Metadata.meta` up to which robots directives are added; chosen
_MAX_AGENT_CHARS = 40  # characters of a robot's name that are kept; chosen
_MAX_REFRESH_CHARS = 2000  # characters of a refresh that are searched for its address; chosen
MAX_ALTERNATES = 300  # versions in other languages that are kept; chosen: Wikipedia has about 300 languages

RSL_LINKS = "rsl"  # key of `Metadata.meta`: addresses of licences by RSL, as written
RSL_INLINE = "rsl:inline"  # key of `Metadata.meta`: licences by RSL that stand in the page, with RSL_END behind each
RSL_END = "\x1e"
_MAX_RSL_CHARS = 8000  # characters of these addresses; chosen: more than MAX_LICENCES of them (frontier/site_files.py)

FEEDS = "feeds"  # key of `Metadata.meta`: addresses of feeds, as written
MAX_FEEDS = 8  # feeds of a page that are named; chosen: most name one or two, for articles and for comments
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")

ONLY_DAY = "time"  # key of `Metadata.meta`: the day that all <time> elements name which do not say what they date
_DAY_CHARS = 10  # characters of a day by ISO 8601

_METAS = """
description keywords robots googlebot author generator og:locale og:type og:title og:url content-language refresh
date dc.date dcterms.date dcterms.created dcterms.modified datepublished datemodified pubdate last-modified
article:published_time article:modified_time og:updated_time license dcterms.license dc.rights
tdm-reservation tdm-policy
"""
META_NAMES = frozenset(_METAS.split())  # names of a <meta> that are kept
_FOR_ROBOTS = re.compile(
    r"\b(?:noindex|nofollow|none|noarchive|nocache|noai|noimageai|unavailable_after)\b", re.IGNORECASE
)
_REFRESH_URL = re.compile(r"url\s*=\s*['\"]?([^'\"\s>]+)", re.I)


class Metadata:
    """Collects values from tags; the first tag that gives a value counts."""

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        self.rels: dict[str, str] = {}
        self.base: str | None = None
        self.html_lang: str | None = None
        self.alternates: dict[str, str] = {}
        self.title = ""
        self.data = ""
        """Text of the JSON-LD scripts; this and `title` are known at the page's `end`."""
        self._title: list[str] = []
        self._data: list[str] = []
        self._rsl: list[str] = []
        self._days: set[str] = set()  # of <time> elements that do not say what they date

    def texts_of(self, tag: str, attributes: Mapping[str, str], behind_text: bool) -> list[str] | None:
        """The list that takes the text of a <title> or <script>, None if that text says nothing.

        *behind_text*: other text of the page is shown before it.  Such a <title> may be that of a picture.
        """
        if tag == "title":
            return None if behind_text or self._title else self._title
        kind = attributes.get("type", "").lower()
        if "ld+json" in kind:
            return self._data
        if "rsl+xml" not in kind:
            return None
        if self._rsl:
            self._rsl.append(RSL_END)
        return self._rsl

    def end(self) -> None:
        """The page ends: what was collected is cut and set."""
        self.title = normal_form("".join(self._title))[:MAX_META_CHARS]
        self.data = "".join(self._data)[:MAX_DATA_CHARS]
        if len(self._days) == 1:
            self.meta[ONLY_DAY] = self._days.pop()
        if self._rsl:
            self.meta[RSL_INLINE] = "".join(self._rsl)[:MAX_DATA_CHARS]

    def read_tag(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Read one tag; returns the address that a <meta http-equiv=refresh> leads to, else None."""
        if tag == "meta":
            return self._read_meta(attributes)
        if tag == "link":
            if attributes.get("type", "").strip().lower() == opt_outs.RSL_MEDIA_TYPE:
                self._read_rsl(attributes)
            else:
                self.read_rel(attributes.get("rel", "").lower(), attributes.get("href", ""))
            self._read_alternate(attributes)
        elif tag == "time":
            self._read_time(attributes)
        elif tag == "base":
            self.base = self.base or attributes.get("href")
        else:
            language = attributes.get("lang") or attributes.get("xml:lang") or ""
            self.html_lang = self.html_lang or language[:MAX_LANGUAGE_CHARS] or None
        return None

    def read_rel(self, rel: str, href: str) -> None:
        """Keep *href* if *rel*, in lower case, names it as canonical address or licence."""
        for name in rel.split():
            if name in ("canonical", "license"):
                self.rels.setdefault(name, href)

    def _read_rsl(self, attributes: Mapping[str, str]) -> None:
        """Keep the addresses of licences by RSL, separated by spaces, for text/optout.py."""
        if "license" in attributes.get("rel", "").lower().split():
            address = "".join(attributes.get("href", "").split())
            self.meta[RSL_LINKS] = f"{self.meta.get(RSL_LINKS, '')} {address}".strip()[:_MAX_RSL_CHARS]

    def _read_alternate(self, attributes: Mapping[str, str]) -> None:
        language = attributes.get("hreflang", "").strip().lower()[:MAX_LANGUAGE_CHARS]
        href = attributes.get("href")
        is_alternate = "alternate" in attributes.get("rel", "").lower().split()
        if language and href and is_alternate and len(self.alternates) < MAX_ALTERNATES:
            self.alternates.setdefault(language, href)
        if href and is_alternate and attributes.get("type", "").partition(";")[0].strip().lower() in _FEED_TYPES:
            feeds = dict.fromkeys([*self.meta.get(FEEDS, "").split(), "".join(href.split())])
            self.meta[FEEDS] = " ".join(list(feeds)[:MAX_FEEDS])

    def _read_time(self, attributes: Mapping[str, str]) -> None:
        """Read a <time> like a <meta> if microdata, or ``pubdate`` of early HTML5, says which date it gives."""
        name = attributes.get("itemprop", "").lower() or ("datepublished" if "pubdate" in attributes else "")
        stated = attributes.get("datetime")
        if stated and name in ("datepublished", "datemodified"):
            self.meta.setdefault(name, normal_form(stated)[:MAX_META_CHARS])
        elif stated and len(self._days) < 2:
            self._days.add(stated.strip()[:_DAY_CHARS])

    def _read_meta(self, attributes: Mapping[str, str]) -> str | None:
        names = (attributes.get(key) for key in ("name", "property", "http-equiv", "itemprop"))
        name = next(filter(None, names), "").strip().lower()
        content = attributes.get("content")
        if content and _FOR_ROBOTS.search(content):
            self._add_directives(name, content)
        if not content or name not in META_NAMES:
            return None
        self.meta.setdefault(name, normal_form(content)[:MAX_META_CHARS])
        target = _REFRESH_URL.search(content[:_MAX_REFRESH_CHARS]) if name == "refresh" else None
        return target[1] if target else None

    def _add_directives(self, name: str, content: str) -> None:
        """Keep directives for robots for text/optout.py; those of tags with the same name are joined."""
        is_for_all = name in ("robots", "x-robots-tag")  # the latter as http-equiv: what the header would say
        key = "robots" if is_for_all else f"robots:{name[:_MAX_AGENT_CHARS]}"
        if (is_for_all or name not in META_NAMES) and len(self.meta) < _MAX_METAS:
            said = f"{self.meta[key]}, {content}" if key in self.meta else content
            self.meta[key] = said[:MAX_META_CHARS]
