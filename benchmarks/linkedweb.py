"""A web that costs its server little: pages of 2 kB whose text is made once, and whose links are reckoned.

    linked:HOSTS[:PAGES[:OUTSIDE]]

With PAGES each host has so many pages and all links stay among them; without, or with 0, there is no last page.
OUTSIDE: links of a page to other hosts, 3 unless told.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import xxhash

from benchmarks.common import ROOT
from webs.prose import Prose
from webs.synthetic import read_words
from webs.web import HTML, WebResponse, not_found, plain

INSIDE = 3
"""Links of a page to its own host."""
_ADDRESSES = 16
_TEXTS = 64
_TEXT_BYTES = 1500
_FAR = 1 << 30


class LinkedWeb:
    """Host n is named ``hN-AA.test``, AA the number of its address."""

    def __init__(self, hosts: int, pages: int = 0, outside: int = 3) -> None:
        self._number, self._pages, self._outside = hosts, pages, outside
        rng = random.Random(1)
        prose = Prose("cs", read_words(ROOT / "models", ("cs",))["cs"], 1)
        self._texts = [
            "".join(f"<p>{' '.join(prose.sentences(rng, 4))}</p>" for _ in range(_TEXT_BYTES // 400))
            for _ in range(_TEXTS)
        ]

    def hosts(self) -> Mapping[str, str]:
        return self.globs()

    def globs(self) -> Mapping[str, str]:
        return {f"*-{number:02}.test": f"127.82.0.{number + 1}" for number in range(_ADDRESSES)}

    def url(self, host: int, page: int) -> str:
        """Pages count from 0."""
        return f"http://h{host}-{host % _ADDRESSES:02}.test/{f'clanek/{page}' if page else ''}"

    def respond(self, host: str, path: str) -> WebResponse:
        number = host[1:].partition("-")[0]
        if path == "/robots.txt":
            return plain(f"User-agent: *\nDisallow: /tajne/{number}\nSitemap: http://{host}/none.xml\n")
        page = path.removeprefix("/clanek/") if path != "/" else "0"
        if not (number.isdecimal() and page.isdecimal()):
            return not_found()
        drawn = xxhash.xxh3_64_intdigest(f"{number} {page}".encode())
        links = [f"/clanek/{self._page(drawn, int(page), step)}" for step in range(1, INSIDE + 1)]
        for step in range(self._outside):
            other = xxhash.xxh3_64_intdigest(f"{drawn} {step}".encode())
            links.append(self.url(other % self._number, (other >> 32) % self._pages if self._pages else 0))
        anchors = " ".join(f'<a href="{link}">odkaz {at}</a>' for at, link in enumerate(links))
        head = f"<html><head><title>{host} {page}</title></head><body><h1>{host} {page}</h1>"
        return WebResponse(200, HTML, f"{head}{self._texts[drawn % _TEXTS]}{anchors}</body></html>".encode())

    def _page(self, drawn: int, page: int, step: int) -> int:
        """A page of the same host: the next one, or with no last one any."""
        if self._pages:
            return (page + step) % self._pages or 1
        return 1 + (drawn >> 8 * step) % _FAR
