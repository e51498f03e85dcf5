"""Follows the redirects of pages, with the cookies that they set.

Session sniffers, ASP.NET and consent walls answer a request without a cookie by one and a redirect to the same page,
or over another to it.  Here the cookies that the redirects of a chain set go with its next requests, to the very host
name that set them.  The chain ends with a page, an error or a redirect to another name, and then they are forgotten.
They lie in memory alone: after a restart a chain goes on without them.

Of a cookie's attributes only Secure counts, and an end in the past, by which servers delete one: a chain lasts for some
requests, and none of its cookies goes to another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

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
_SECURE = re.compile(rb"(?:^|;)\s*secure\s*(?:;|$)", re.IGNORECASE)
_PAST = re.compile(rb"(?:^|;)\s*(?:max-age\s*=\s*(?:-|0+\s*(?:;|$))|expires\s*=[^;]*\b19\d\d\b)", re.IGNORECASE)
"""The usual ways to say that a cookie has ended."""


class Chain(NamedTuple):
    """Redirects that led from one URL of a host name to the next."""

    cookies: dict[bytes, tuple[bytes, bool]]  # name -> value, and whether it goes only over https
    passed: tuple[str, ...]  # canonical URLs, as often as they were asked for

    def header(self, target: CanonicalUrl) -> bytes:
        """What a request for *target* sends as Cookie, b"" for nothing."""
        is_https = target.origin.startswith("https:")
        fitting = (row for row in self.cookies.items() if is_https or not row[1][1])
        return b"; ".join([name + b"=" + value for name, (value, _) in fitting])

    def leads_back(self, target: CanonicalUrl) -> bool:
        """Whether *target* was passed once, and may answer otherwise now that it gets a cookie."""
        return self.passed.count(target.url) == 1 and self.header(target) != b""

    def beyond(self, source: CanonicalUrl, set_cookies: Iterable[bytes]) -> Chain:
        """The chain behind the answer of *source*, with these Set-Cookie headers."""
        cookies = dict(self.cookies)
        for line in set_cookies:
            pair, _, attributes = line.partition(b";")
            name, equals, value = map(bytes.strip, pair.partition(b"="))
            is_text = min(name + value, default=0) >= 32 and len(name + value) <= MAX_COOKIE_BYTES
            if not (equals and name and is_text):
                continue
            if _PAST.search(attributes):
                cookies.pop(name, None)
            elif len(cookies) < MAX_COOKIES or name in cookies:
                cookies[name] = value, _SECURE.search(attributes) is not None
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
        chain = self._chains.get(url.key, _NO_CHAIN).beyond(url.target, outcome.set_cookies)
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

    def follow_back(self, url: QueuedUrl, outcome: Outcome) -> bool:
        """Whether *url*, which redirects to itself, is to be asked for once more, since it now has a cookie."""
        target = canonicalize(outcome.redirect_to or "")
        chain = self._chains.get(url.key, _NO_CHAIN).beyond(url.target, outcome.set_cookies)
        if target is None or target.url != url.target.url or not chain.leads_back(target):
            return False
        self._note(url.key, chain)
        return True

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
