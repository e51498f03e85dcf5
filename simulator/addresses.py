"""The URLs of a generated web.  What a batch of links says of each is worked out once and then looked up.

A page's URL is its host's name, one of a few sections, and its number; the first page of a host stands at ``/``.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spiderling.base.urls import section_of, url_hash, words_of_name, words_of_path

Array = NDArray[Any]


class Addresses:
    """URLs by the numbers of pages; nine bytes a page."""

    def __init__(
        self, names: Sequence[str], first: Array, host: Array, section: Array, sections: Sequence[str]
    ) -> None:
        """*first*: the first page of each host; *host* and *section*: those of each page.

        Section 0 holds the first pages of hosts and no others.
        """
        self.names = names
        self.host = host
        self._home = dict(zip((f"http://{name}/" for name in names), first.tolist(), strict=False))
        self._host = host.data
        self._section = section.data
        self._paths = [b"/"] + [f"/{name}%d".encode() for name in sections[1:]]
        # words, section and depth of a URL depend only on its host's top-level domain and on its own section
        kinds: dict[tuple[int, int], int] = {}
        kind = np.fromiter((kinds.setdefault(words_of_name(name), len(kinds)) for name in names), np.uint8, len(names))
        self._form = kind[host] * np.uint8(len(sections)) + section
        forms = [(of_name, path) for of_name in kinds for path in self._paths]
        self._words = [array("H", (*of_name, *words_of_path(path))).tobytes() for of_name, path in forms]
        self._sections = [array("I", [section_of(path)]).tobytes() for _, path in forms]
        self._depths = bytes(path.count(b"/") for _, path in forms).ljust(256)
        self._hashes = np.fromiter(map(url_hash, map(self.url, range(len(host)))), np.uint64, len(host))

    def _path(self, page: int) -> bytes:
        section = self._section[page]
        return self._paths[section] % page if section else b"/"

    def url(self, page: int) -> str:
        return f"http://{self.names[self._host[page]]}{self._path(page).decode()}"

    def find(self, url: str) -> int:
        """The page at *url*, or -1."""
        number = url.rpartition("/")[2]
        return int(number) if number.isdecimal() else self._home.get(url, -1)

    def columns(self, pages: Array) -> tuple[tuple[str, ...], bytes, bytes, bytes, bytes, bytes, bytes]:
        """Columns of a LinkBatch that leads to *pages*: hosts, paths, of_host, hashes, sections, words, depths."""
        numbers = self.host.take(pages).tolist()
        names = self.names
        places: dict[int, int] = {}
        of_host = array("H", [places.setdefault(host, len(places)) for host in numbers])
        forms = self._form.take(pages).tobytes()
        words = self._words
        sections = self._sections
        return (
            tuple([names[host] for host in places]),
            b"\n".join(map(self._path, pages.tolist())),
            of_host.tobytes(),
            self._hashes.take(pages).tobytes(),
            b"".join([sections[form] for form in forms]),
            b"".join([words[form] for form in forms]),
            forms.translate(self._depths),
        )
