"""Addresses as they stand in pages, made absolute by the WHATWG URL standard (ada_url).

Most links are written in the form that the standard gives them, absolute or relative to the page's folder.  One
expression recognises those, and string operations resolve them, several times as fast as the parser; the tests hold
both ways to the same results.
"""

from __future__ import annotations

import re

import ada_url

from spiderling.text.html.blocks import RawLink

_NAME = r"(?!xn--)[a-z0-9-]+(?:[.](?!xn--)[a-z0-9-]+)*[.](?!xn--)[a-z]+"
"""A name that is neither an IPv4 address nor punycode."""
_CHARS = r"[\w.~!$&'()*+,;=:@%-]*"
"""Characters that the standard leaves as they are."""
_PATH = rf"(?:(?![.]|%2){_CHARS}/)*(?![.]|%2){_CHARS}(?:\?[\w.~!$&()*+,;:=@%/?-]*)?"
"""Path and query; no segment begins with a dot or %2e, because the standard may remove such a one."""
_PLAIN = re.compile(rf"(?:https?://{_NAME}(?=/)|(?=/(?!/))|(?P<relative>(?=\w[\w.-]*(?:[/?]|$)))){_PATH}", re.ASCII)
_SERIALISED = re.compile(r"(https?://[^/?#]+)(/(?:[^?#]*/)?)")


def resolve(links: list[RawLink], page_url: str, base: str | None) -> list[tuple[RawLink, str]]:
    """The links to http(s) URLs, each URL once, with the URL without its fragment."""
    root = (join(page_url, base) if base else None) or page_url
    own = _SERIALISED.match(join(root, "") or "")
    origin, folder = (own[1], own[0]) if own is not None else ("", "")
    found: dict[str, RawLink] = {}
    tried = {""}
    for link in links:
        href = link.href.partition("#")[0].strip()
        if href in tried:
            continue
        tried.add(href)
        plain = _PLAIN.fullmatch(href) if own is not None else None
        url: str | None
        if plain is None:
            url = join(root, href)
            if url is None or not url.startswith(("http://", "https://")):
                continue
        elif plain.lastindex:  # the group `relative`
            url = folder + href
        else:
            url = origin + href if href[0] == "/" else href
        found.setdefault(url, link)
    return [(link, url) for url, link in found.items()]


def join(base: str, href: str) -> str | None:
    """*href* resolved against *base*; None when the result is not a URL."""
    try:
        return str(ada_url.join_url(base, href))
    except ValueError:
        return None
