"""A URL in a queue as one line of bytes.

A plain URL is its path behind one byte for its scheme, ``www.`` and rank: the host's
name is known.  Whatever else (attempts, redirects, the payload of a subclass's request,
a server's own spelling, unusual ports) is JSON behind a ``~``.  A line holds no newline.
"""

from __future__ import annotations

import base64
import json

from spiderling.frontier.hosts import Host, QueuedUrl
from spiderling.frontier.priority import RANKS
from spiderling.urls import CanonicalUrl, canonicalize, url_key

_PREFIXES = ("http://", "https://", "http://www.", "https://www.")
_FIRST = 0x40  # plain lines begin with '@' to 'g', in rank order for each prefix
_HEADS = {
    (prefix, rank): bytes([_FIRST + number * RANKS + rank])
    for number, prefix in enumerate(_PREFIXES)
    for rank in range(RANKS)
}
_SPECIAL = b"~"


def plain_line(target: CanonicalUrl, rank: int) -> bytes | None:
    """The line of a URL that was never tried; None if it is not of the plain form."""
    head = _HEADS.get((target.origin[: -len(target.host)], rank))
    return head + target.path.encode("ascii") if head and target.path.isascii() and "\n" not in target.path else None


def line_of(url: QueuedUrl) -> bytes:
    if not (url.tries or url.redirects or url.payload is not None) and url.url == url.target.url:
        line = plain_line(url.target, url.rank)
        if line is not None:
            return line
    payload = None if url.payload is None else base64.b64encode(url.payload).decode("ascii")
    return _SPECIAL + json.dumps([url.key, url.url, url.rank, url.tries, url.redirects, payload]).encode("ascii")


def url_of(line: bytes, host: Host) -> QueuedUrl:
    """The URL of *host* that *line* holds; raises ValueError for what is no such line."""
    if line.startswith(_SPECIAL):
        key, url, rank, tries, redirects, payload = json.loads(line[1:])
        target = canonicalize(url)
        if target is None:
            raise ValueError(f"{url!r} is no URL")
        data = None if payload is None else base64.b64decode(payload)
        return QueuedUrl(key, url, host, rank, target, tries, redirects, data)
    number, rank = divmod(line[0] - _FIRST, RANKS)
    origin, path = _PREFIXES[number] + host.name, line[1:].decode("ascii")
    target = CanonicalUrl(origin + path, origin.partition("://")[2].partition(":")[0], host.name, origin, path)
    if host.name.startswith("["):
        target = target._replace(name=host.name.rpartition("]")[0] + "]")
    return QueuedUrl(url_key(host.id, target.url), target.url, host, rank, target)
