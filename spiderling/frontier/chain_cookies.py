"""Cookies within one chain of redirects: a site that only looks whether they come back gets its own back there.

Session sniffers, ASP.NET and consent walls answer a request without a cookie by one and a redirect to the same page,
or over another to it.  Here the cookies that the redirects of a chain set go with its next requests, to the very host
name that set them.  The chain ends with a page, an error or a redirect to another name, and then they are forgotten.
They lie in memory alone: after a restart a chain goes on without them.

What is kept and sent follows RFC 6265bis, 5.6 to 5.8, but for Domain: no cookie goes to another name.
"""

from __future__ import annotations

import email.utils
from collections.abc import Iterable
from typing import NamedTuple

from spiderling.base.digits import whole_number
from spiderling.base.urls import CanonicalUrl

MAX_CHAINS = 10_000
"""Chains whose cookies are kept; those of the oldest are forgotten.  Chosen: as many URLs may be between two hops."""
MAX_COOKIES = 20
"""Cookies of one chain, and Set-Cookie headers of one answer that are read; chosen."""
MAX_COOKIE_BYTES = 4096
"""Most bytes of a cookie's name and value (RFC 6265bis, 5.6)."""


class Cookie(NamedTuple):
    """A cookie, by name and path."""

    value: bytes
    is_secure: bool
    """Whether it goes only over https."""


class Chain(NamedTuple):
    """Redirects that led from one URL of a host name to the next."""

    cookies: dict[tuple[bytes, str], Cookie]
    """(name, path) -> cookie."""
    passed: tuple[str, ...]
    """Canonical URLs, as often as they were asked for."""

    def header(self, target: CanonicalUrl) -> bytes:
        """What a request for *target* sends as Cookie, b"" for nothing; longer paths first."""
        path = target.path.partition("?")[0]
        is_https = target.origin.startswith("https:")
        fitting = [
            (name, own_path, cookie.value)
            for (name, own_path), cookie in self.cookies.items()
            if (is_https or not cookie.is_secure) and _covers(own_path, path)
        ]
        fitting.sort(key=lambda row: -len(row[1]))
        return b"; ".join(name + b"=" + value for name, _, value in fitting)

    def leads_back(self, target: CanonicalUrl) -> bool:
        """Whether *target* was passed once, and may answer otherwise now that it gets a cookie."""
        return self.passed.count(target.url) == 1 and self.header(target) != b""

    def beyond(self, source: CanonicalUrl, set_cookies: Iterable[bytes], now: float) -> Chain:
        """The chain behind the answer of *source*, with these Set-Cookie headers, at *now*."""
        cookies = dict(self.cookies)
        for line in set_cookies:
            parsed = _parsed(line, source, now)
            if parsed is None:
                continue
            place, cookie = parsed
            if cookie is None:
                cookies.pop(place, None)
            elif len(cookies) < MAX_COOKIES or place in cookies:
                cookies[place] = cookie
        return Chain(cookies, (*self.passed, source.url))


_NO_CHAIN = Chain({}, ())


class ChainCookies:
    """The chains in work, by the key of the URL that is asked for next."""

    def __init__(self) -> None:
        self._chains: dict[int, Chain] = {}

    def of(self, key: int) -> Chain:
        """The chain that led to the URL with this key."""
        return self._chains.get(key, _NO_CHAIN)

    def note(self, key: int, chain: Chain) -> None:
        """*chain* goes on with the URL of this key."""
        self._chains[key] = chain
        if len(self._chains) > MAX_CHAINS:
            del self._chains[next(iter(self._chains))]

    def forget(self, key: int) -> None:
        """The URL has ended."""
        self._chains.pop(key, None)


def _parsed(line: bytes, source: CanonicalUrl, now: float) -> tuple[tuple[bytes, str], Cookie | None] | None:
    """(name and path, cookie) of a Set-Cookie header; without a cookie if it is to be deleted; None if it is none."""
    pair, *attributes = line.split(b";")
    name, equals, value = (part.strip() for part in pair.partition(b"="))
    is_text = min(name + value, default=32) >= 32
    if not equals or not name or not is_text or len(name + value) > MAX_COOKIE_BYTES:
        return None
    said = {}
    for attribute in attributes:
        key, _, text = attribute.decode("latin-1").partition("=")
        said[key.strip().lower()] = text.strip()
    is_secure = "secure" in said
    domain = said.get("domain", "").lower().removeprefix(".")
    is_of_source = not domain or f".{source.name}".endswith(f".{domain}")
    if not is_of_source or (is_secure and not source.origin.startswith("https:")):
        return None
    path = said.get("path", "")
    if not path.startswith("/"):
        path = source.path.partition("?")[0].rpartition("/")[0] or "/"
    return (name, path), None if _is_over(said, now) else Cookie(value, is_secure)


def _is_over(said: dict[str, str], now: float) -> bool:
    """Whether attributes say that a cookie ends before *now*: so servers delete one."""
    if "max-age" in said:
        return said["max-age"].startswith("-") or whole_number(said["max-age"]) == 0
    try:
        date = email.utils.parsedate_tz(said.get("expires", ""))
        return date is not None and email.utils.mktime_tz(date) <= now
    except (ValueError, TypeError, IndexError, OverflowError):
        return False


def _covers(own_path: str, path: str) -> bool:
    """Whether a cookie of *own_path* goes to *path* (RFC 6265bis, 5.1.4)."""
    return path == own_path or path.startswith(own_path if own_path.endswith("/") else own_path + "/")
