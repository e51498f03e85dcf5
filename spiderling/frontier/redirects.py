"""Follows the redirects of pages, with the cookies that they set.

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

from spiderling.base.files import whole_number
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize, serialize, url_key
from spiderling.frontier.admission import Mention
from spiderling.frontier.core import Core, Part
from spiderling.frontier.hosts import CLOSED_STATES, QueuedUrl

MAX_REDIRECTS = 5
"""Redirects in a row that are followed, from a page or a robots.txt (RFC 9309, 2.3.1.2, wants five at least)."""
MAX_CHAINS = 10_000
"""Chains whose cookies are kept; those of the oldest are forgotten.  Chosen: as many URLs may be between two hops."""
MAX_COOKIES = 20  # cookies of one chain, and Set-Cookie headers of one answer that are read; chosen
MAX_COOKIE_BYTES = 4096  # most bytes of a cookie's name and value (RFC 6265bis, 5.6)


class Cookie(NamedTuple):
    """A cookie, by name and path."""

    value: bytes
    is_secure: bool  # whether it goes only over https


class Chain(NamedTuple):
    """Redirects that led from one URL of a host name to the next."""

    cookies: dict[tuple[bytes, str], Cookie]  # (name, path) -> cookie
    passed: tuple[str, ...]  # canonical URLs, as often as they were asked for

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
            parsed = _parse_cookie(line, source, now)
            if parsed is None:
                continue
            place, cookie = parsed
            if cookie is None:
                cookies.pop(place, None)
            elif len(cookies) < MAX_COOKIES or place in cookies:
                cookies[place] = cookie
        return Chain(cookies, (*self.passed, source.url))


_NO_CHAIN = Chain({}, ())


class Redirects(Part):
    """Follows redirects of pages, and keeps the chains in work by the key of the URL that is asked for next."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._chains: dict[int, Chain] = {}

    def cookies_for(self, url: QueuedUrl) -> bytes:
        """What the request for *url* sends as Cookie; b"" for nothing."""
        return self._chains.get(url.key, _NO_CHAIN).header(url.target)

    def forget(self, key: int) -> None:
        self._chains.pop(key, None)

    def _note(self, key: int, chain: Chain) -> None:
        """*chain* goes on with the URL of this key."""
        self._chains[key] = chain
        if len(self._chains) > MAX_CHAINS:
            del self._chains[next(iter(self._chains))]

    def follow(self, url: QueuedUrl, outcome: Outcome, location: str, now: float) -> Reason | None:
        """Follow a redirect to *location*; returns the Reason of *url*, None if it is fetched again.

        The target is a new URL at the same distance, with the outcome's payload or else that of *url*.  Cookies go
        along within the host name.
        """
        target = canonicalize(location)
        if target is None:
            self._admission.refuse(Reason.BAD_URL)
            return Reason.REDIRECTED
        chain = self._chains.get(url.key, _NO_CHAIN).beyond(url.target, outcome.set_cookies, now)
        leads_back = target.name == url.target.name and chain.leads_back(target)
        payload = outcome.redirect_payload
        if target.url == url.target.url and payload is None:
            reason = self._once_more(url, serialize(location), leads_back)
            if reason is None:
                self._note(url.key, chain)
            return reason
        if url.redirects >= MAX_REDIRECTS:
            return Reason.REDIRECT_LOOP
        # Each request has its own callback, so two of them may be redirected to one target.
        salt = salt_of_redirect(url.key) if leads_back or url.payload is not None else b""
        mention = Mention(target, url.host.distance, url.rank, url.key, payload or url.payload, salt, url.redirects + 1)
        if self._core.put(mention, now) is None and target.name == url.target.name:
            self._note(url_key(url.host.id, target.url, salt), chain)
        return Reason.REDIRECTED

    def _once_more(self, url: QueuedUrl, spelled: str | None, has_cookie: bool) -> Reason | None:
        """Let *url*, which redirects to itself, wait again: in the server's spelling, or since it now has a cookie.

        Returns the Reason of its end if neither is the case or its host is closed.
        """
        is_news = spelled not in (None, url.url) and url.url == url.target.url
        if not is_news and not has_cookie:
            return Reason.REDIRECT_LOOP
        if url.host.is_closed:
            return CLOSED_STATES[url.host.state]
        url.url = spelled or url.url
        self._url_states.wait_again(url, first=True)
        return None


def salt_of_redirect(key: int) -> bytes:
    """Tells the target of a redirect of this URL apart from the page at its address."""
    return b"redirect of %d" % key


def _parse_cookie(line: bytes, source: CanonicalUrl, now: float) -> tuple[tuple[bytes, str], Cookie | None] | None:
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
