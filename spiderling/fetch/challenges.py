"""Knows the page that a service at a site's edge shows in place of the one asked for: prove that you are no robot.

Headers count first.  Without one, a page is a challenge if it holds what its maker's challenges hold, not in its text,
and has hardly any text or links: a page *about* challenges, a robots.txt that forbids the address of one, or a page on
which such a service runs in the background is none.
What is looked for is what the makers document (Cloudflare, AWS, Vercel, Anubis), and what crawlers report of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

MAX_PAGE_BYTES = 50_000
"""Bytes of a page that may be a challenge; chosen: those that we know have 1 to 40 kB."""
_HEAD_BYTES = 8192
"""Bytes in which marks are looked for (chosen: scripts and frames of a challenge stand at its beginning)."""
_MAX_TAGS = 120
"""Tags in these bytes that a challenge may have; chosen: that of Anubis has 76, and nine of ten usual pages have more,
or are larger, which spares the search."""
_MAX_LINKS = 10
"""Links in these bytes that a challenge may have: help, terms, the maker (chosen)."""
_MAX_TEXT_BYTES = 4000
"""Bytes of text on the whole page that it may have; chosen: Anubis explains itself in 1,500."""

_HEADERS: Mapping[bytes, tuple[str, tuple[bytes, ...], bool]] = {
    # https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
    b"Cf-Mitigated": ("cloudflare", (b"challenge",), False),
    # https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
    b"X-Amzn-Waf-Action": ("aws-waf", (b"challenge", b"captcha"), False),
    b"X-Vercel-Mitigated": ("vercel", (b"challenge",), False),
    b"X-Dd-B": ("datadome", (), True),
    b"X-Kpsdk-Ct": ("kasada", (), True),
}
"""Header -> maker, the values that mean a challenge (none: any), whether it means one only beside an error status."""
_NAMES = _HEADERS.keys()
_STATUSES = {468: "safeline"}
"""Statuses of their own that makers answer with."""
_MARKS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("cloudflare", (b"_cf_chl_opt",)),
    ("cloudflare", (b"__cf_chl_", b"challenge-form")),
    ("akamai", (b"sec-if-cpt-container",)),
    ("akamai", (b"/_sec/cp_challenge/",)),
    ("akamai", (b"?bm-verify=", b"http-equiv=")),
    ("datadome", (b"captcha-delivery.com/", b"var dd=")),
    ("imperva", (b"_Incapsula_Resource", b"ncident ID")),
    ("imperva", (b"_Incapsula_Resource", b"main-iframe")),
    ("anubis", (b"/.within.website/x/cmd/anubis/",)),
    ("anubis", (b'id="anubis_challenge"',)),
    ("aws-waf", (b"awsWafCookieDomainList", b"challenge.js")),
    ("aws-waf", (b"awsWafCookieDomainList", b"captcha.js")),
    ("human", (b"window._pxAppId", b"px-captcha")),
    ("kasada", (b"KPSDK", b"/ips.js")),
    ("f5", (b"/TSPD/", b"Your support ID is")),
    ("sucuri", (b"sucuri_cloudproxy_js",)),
    ("ddos-guard", (b"<title>DDoS-Guard</title>",)),
    ("fastly", (b"/_fs-ch-", b"<title>Client Challenge</title>")),
    ("vercel", (b"<title>Vercel Security Checkpoint</title>",)),
    ("safeline", (b"/.safeline/static/",)),
    ("go-away", (b"/.well-known/.git.gammaspectra.live/git/go-away/",)),
    ("reblaze", (b"window.rbzns",)),
)
"""Maker and what its challenges hold, all of it.  A maker's script that also runs on usual pages is not enough."""


class _Headers(Protocol):
    """The headers of a response by their names in title case, as Scrapy has them."""

    def keys(self) -> object: ...
    def get(self, name: bytes) -> bytes | None: ...


def challenge_of(status: int, headers: _Headers, body: bytes) -> str:
    """The maker of the challenge that this response is; '' if it is none.  Any bytes may come."""
    for name in _NAMES & headers.keys():  # type: ignore[operator]
        maker, values, is_beside_error = _HEADERS[name]
        value = (headers.get(name) or b"").strip().lower()
        if (not values or value in values) and (status >= 400 or not is_beside_error):
            return maker
    return _STATUSES.get(status) or _by_marks(body)


def _by_marks(body: bytes) -> str:
    if len(body) > MAX_PAGE_BYTES:
        return ""
    head = body[:_HEAD_BYTES]
    if head.count(b"<") > _MAX_TAGS or head.count(b"<a ") > _MAX_LINKS:
        return ""
    for maker, marks in _MARKS:
        if marks[0] in head and all(mark in head for mark in marks):
            text = _text(body)
            if len(text) <= _MAX_TEXT_BYTES and marks[0] not in text:
                return maker
    return ""


def _text(body: bytes) -> bytes:
    """The text outside of tags, scripts and styles, about; in time linear in the page."""
    before, *pieces = body.split(b"<")
    words = before.split()
    is_hidden = False
    for piece in pieces:
        name = piece[:8].lower()
        if name.startswith((b"script", b"style", b"svg")):
            is_hidden = True
        elif name.startswith((b"/script", b"/style", b"/svg")):
            is_hidden = False
        if not is_hidden:
            words += piece.partition(b">")[2].split()
    return b" ".join(words)
