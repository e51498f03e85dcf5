"""Addresses as they stand in pages, made absolute by the WHATWG URL standard (ada_url).

Most links are written as the standard writes them itself, as a whole or but for what the page's own address begins
with.  Those are recognised by one expression and need no parser, which is several times as fast; the tests hold both
ways to the same results.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import ada_url

if TYPE_CHECKING:
    from spiderling.text.html.blocks import RawLink

# a name that is neither an IPv4 address nor punycode
_NAME = r"(?!xn--)[a-z0-9-]+(?:[.](?!xn--)[a-z0-9-]+)*[.](?!xn--)[a-z]+"
# characters that stay as they are; a segment that begins with a dot or its %2e may be one to be removed
_CHARS = r"[\w.~!$&'()*+,;=:@%-]*"
_PATH = rf"(?:(?![.]|%2){_CHARS}/)*(?![.]|%2){_CHARS}(?:\?[\w.~!$&()*+,;:=@%/?-]*)?"
_PLAIN = re.compile(rf"(?:https?://{_NAME}(?=/)|(?=/(?!/))|(?P<relative>(?=\w[\w.-]*(?:[/?]|$)))){_PATH}", re.ASCII)
_SERIALISED = re.compile(r"(https?://[^/?#]+)(/(?:[^?#]*/)?)")


def resolve(links: list[RawLink], page_url: str, base: str | None) -> list[tuple[RawLink, str]]:
    """The links that lead to http(s) URLs, each once, with that URL; fragments are cut off."""
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
    """*href* resolved against *base*; None when it is no URL."""
    try:
        return str(ada_url.join_url(base, href))
    except ValueError:
        return None
