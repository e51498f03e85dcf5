"""May this URL ever be fetched?  Scheme and name are settled in urls.py; here: TLD, file type, traps."""

from __future__ import annotations

import re
from collections import Counter

from spiderling import filetypes
from spiderling.options import Options
from spiderling.optionvalues import parse_ports, parse_tlds
from spiderling.reasons import Reason
from spiderling.urls import CanonicalUrl, top_level_domain

MAX_REPEATED_SEGMENTS = 3
_NO_TEXT = re.compile(
    r"\.(?:7z|aac|apk|avi|avif|bin|bmp|bz2|css|csv|dat|deb|dmg|eot|exe|flac|flv|gif|gz|ico|ics|img|iso|jar|jpe?g|js"
    r"|json|m3u8?|m4[av]|mid|mkv|mov|mp[34]|mpe?g|msi|ogg|ogv|otf|png|ppt[sx]?|psd|rar|rpm|rss|svg|swf|tar|tgz|tiff?"
    r"|torrent|ttf|wasm|wav|webm|webp|wma|wmv|woff2?|xlsx?|xml|xz|zip|zst)$",
    re.IGNORECASE,
)


class Scope:
    """The rules of one crawl; ``refusal`` gives the Reason why a URL stays out, or None."""

    def __init__(self, options: Options) -> None:
        self._tlds = parse_tlds(options.tlds)
        self._preferred = parse_tlds(options.prefer_tlds, "PREFER_TLDS") if options.prefer_tlds else frozenset()
        self._documents = filetypes.parse(options.documents)
        self._max_chars = options.max_url_chars
        self._max_depth = options.max_path_depth
        self._ports = parse_ports(options.ports)

    def allows_port(self, url: CanonicalUrl) -> bool:
        """Whether connections to the URL's port may be made: a link must not make us talk to a mail server."""
        return self._ports is None or url.port in self._ports

    def prefers(self, host: str) -> bool:
        """Whether the host is under one of the preferred top-level domains."""
        return self._preferred is not None and top_level_domain(host) in self._preferred

    def refusal(self, url: CanonicalUrl) -> Reason | None:
        """OUT_OF_SCOPE, TRAP or None."""
        if self._tlds is not None and top_level_domain(url.host) not in self._tlds:
            return Reason.OUT_OF_SCOPE
        path = url.path.partition("?")[0]
        if _NO_TEXT.search(path) or filetypes.of_path(path) not in (None, *self._documents):
            return Reason.OUT_OF_SCOPE
        if len(url.url) > self._max_chars or path.count("/") > self._max_depth or _is_repetitive(path):
            return Reason.TRAP
        return None


def _is_repetitive(path: str) -> bool:
    """Whether one segment of letters stands in the path more than three times: links relative to themselves."""
    if path.count("/") <= MAX_REPEATED_SEGMENTS:
        return False
    segments = Counter(segment for segment in path.split("/") if len(segment) > 2 and not segment.isdigit())
    return bool(segments) and max(segments.values()) > MAX_REPEATED_SEGMENTS
