"""What hosts send that know the formats and break their rules: heads, pages, robots.txt, sitemaps, garbled bytes.

All is drawn from a Random, so that a seed, or hypothesis (``st.randoms()``), chooses it.
"""

from __future__ import annotations

import gzip
from random import Random

SPLICED = [
    b"\r\n", b"\n", b"\r", b"\0", b":", b": ", b"\r\n\r\n", b" ", b"HTTP/1.1 ", b"HTTP/0.9", b"Content-Length: ",
    b"-1", b"0", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Content-Encoding: zstd, br\r\n",
    b"f" * 8, b"9" * 30, b"\xff\xfe", b"\x1f\x8b\x08", b"Set-Cookie: ", b"Location: ", b"X" * 70_000,
    b"a: b\r\n" * 300, b";" * 50,
]  # fmt: skip
NUMBERS = ("0", "-1", "1", "30", "1e9", "nan", "inf", "9" * 40, "", "x", "0x10", "٣", "1, 2")
DATES = ("Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "yesterday", "Mon, 32 Foo 2024")
URLS = (
    "/", "/0", "//", "//h0.test/0", "http://h0.test/0?a=1&a=2", "http://h0.test:99999/", "http://[::1]/", "http:///x",
    "http://10.0.0.1/", "http://127.0.0.1:22/", "javascript:alert(1)", "data:text/html,x", "mailto:a@h0.test", "\x00",
    "http://h0.test/" + "a/" * 900, "http://xn--a.test/", "http://háčky.test/ž", "?" + "q=1&" * 50, "../../../..", "#",
    "http://h0.test/%zz%00%ff", "http://user:word@h0.test/", "https://h0.test/", "http://h0.test./", "http://nowhere/",
)  # fmt: skip
STATEMENTS = ("noindex", "nofollow", "noai", "none", "all", "unavailable_after: 9999", "tdm-reservation: 1", "ÿ" * 99)
HEADERS = {
    "Location": URLS,
    "Retry-After": (*NUMBERS, *DATES),
    "Refresh": ("0; url=/", "1;URL='http://h0.test/0'", "nan;", *NUMBERS),
    "Content-Encoding": ("gzip", "br", "zstd", "deflate, gzip", "identity", "x", "gzip, gzip, gzip, gzip"),
    "Content-Type": (
        "text/html",
        "text/html; charset=\xff",
        "application/pdf",
        "text/plain",
        "image/png",
        "",
        "a/b;;=;",
    ),
    "X-Robots-Tag": STATEMENTS,
    "TDM-Reservation": NUMBERS,
    "TDM-Policy": URLS,
    "Set-Cookie": ("a=b", "a=" + "b" * 9000, "=;;;", "a=b; Domain=.test; Path=/; Max-Age=nan", "\x7f=1"),
    "Last-Modified": DATES,
    "ETag": ('"a"', 'W/"' + "e" * 5000 + '"', "\xff"),
    "Cache-Control": ("max-age=nan", "no-store", "max-age=" + "9" * 30),
    "Link": ('<http://h0.test/l>; rel="license"', "<;>;;", '</x>; rel="canonical"'),
    "Keep-Alive": ("timeout=nan", "timeout=-1, max=0"),
}
STATUSES = (100, 199, 200, 200, 200, 203, 204, 206, 299, 300, 301, 302, 303, 304, 307, 308, 401, 402, 403, 404, 406,
            410, 415, 418, 425, 429, 451, 499, 500, 503, 509, 520, 599, 600, 999)  # fmt: skip
RULES = ("User-agent: *", "User-agent: spiderling", "Allow: /", "Disallow: /private", "Disallow: *$*$*$*$x", "Allow:",
         "Crawl-delay: ", "Sitemap: ", "Content-Usage: train-ai=n", "Content-Signal: ai-train=no", "License: ",
         "Host: x", "\ufeffUser-agent: *", "Disallow", "#", "Disallow: /" + "%2a" * 200,
         "Request-rate: 1/0", "\x00")  # fmt: skip
TAGS = ("p", "div", "table", "svg", "template", "select", "iframe", "noscript", "script", "style", "plaintext")


def head(rng: Random) -> tuple[int, list[tuple[str, str]]]:
    """A status and headers."""
    names = rng.sample(list(HEADERS), rng.randint(0, 5))
    return rng.choice(STATUSES), [(name, rng.choice(HEADERS[name])) for name in names]


def robots(rng: Random) -> bytes:
    """A robots.txt; of most, some rule is one."""
    lines = [rng.choice(RULES) for _ in range(rng.choice((0, 1, 5, 30)))]
    return "\r\n".join(line + rng.choice((*NUMBERS, *URLS)) if line[-1:] == " " else line for line in lines).encode()


def sitemap(rng: Random) -> bytes:
    """A sitemap, an index of sitemaps or a feed."""
    outer, inner = rng.choice((("urlset", "url"), ("sitemapindex", "sitemap"), ("rss", "item"), ("feed", "entry")))
    entries = "".join(
        f"<{inner}><loc>{rng.choice(URLS)}</loc><lastmod>{rng.choice(DATES)}</lastmod>"
        f"<priority>{rng.choice(NUMBERS)}</priority></{inner}>"
        for _ in range(rng.choice((0, 1, 20)))
    )
    data = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "&b;">]><{outer}>{entries}</{outer}>'.encode()
    return gzip.compress(data) if rng.random() < 0.3 else data


def page(rng: Random) -> bytes:
    """A page of HTML."""
    said = "".join(
        f'<meta name="{rng.choice(("robots", "tdm-reservation", "description", "date", "generator"))}" '
        f'content="{rng.choice((*STATEMENTS, *NUMBERS, *DATES))}">'
        for _ in range(rng.randint(0, 3))
    )
    heads = (f'<base href="{rng.choice(URLS)}">', f'<link rel=canonical href="{rng.choice(URLS)}">', "<meta charset=x>")
    said += "".join(rng.sample(heads, rng.randint(0, 3)))
    parts = []
    for _ in range(rng.choice((0, 1, 5, 40))):
        tag = rng.choice(TAGS)
        words = "Tohle je věta o vodě a lese, kterou nikdo nečte. " * rng.choice((0, 1, 8))
        parts.append(f'<{tag}>{words}<a href="{rng.choice(URLS)}" rel=nofollow>{rng.choice(NUMBERS)}</a>')
        parts.append(f"</{rng.choice((tag, tag, rng.choice(TAGS)))}>")
    return f"<html><head>{said}<title>{rng.choice(NUMBERS)}</title></head><body>{''.join(parts)}".encode()


def body(rng: Random, path: str) -> bytes:
    """What is sent for *path*: of that kind in most cases."""
    kinds = [robots] * 4 if path.startswith("/robots.txt") else [page] * 4
    data = rng.choice([*kinds, robots, sitemap, page])(rng)
    return garbled(rng, data, len(data)) if rng.random() < 0.3 else data


def garbled(rng: Random, data: bytes, head_bytes: int) -> bytes:
    """*data* with some bytes changed, put in, left out or repeated, most of them among its first *head_bytes*."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(1 + min(head_bytes, len(changed)) if rng.random() < 0.6 else len(changed) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            changed[at:at] = rng.choice(SPLICED)
        elif kind == 2:
            del changed[at : at + rng.choice((1, 2, 10, 200))]
        elif kind == 3:
            changed[at:at] = rng.randbytes(rng.choice((1, 5, 300)))
        else:
            changed[at:at] = changed[at : at + rng.choice((5, 100))] * rng.choice((2, 30))
    return bytes(changed)
