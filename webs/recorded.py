"""A recorded web: real pages in an archive, and a table of how each host behaves.

A directory holds ``pages.tar.zst`` (members ``host/path``) and ``sites.csv``, one
host a line.  Its column ``behaviour`` holds words separated by spaces:

    robots=open            a robots.txt that allows all (without the word: 404)
    robots=disallow:/x/    a section is forbidden
    robots=delay:0.5       Crawl-delay in seconds
    robots=error:2         503 for the first 2 requests, then open
    slow=1.5               waits this many seconds before each answer
    busy=5                 the 5th page request is answered 429, Retry-After: 1
    mirror=HOST            serves HOST's pages as its own
    www                    the bare name redirects to www.
    site=calendar          a site computed on request; see ``special.SITES``
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from webs.special import SITES
from webs.web import WebResponse, checked_addresses, not_found, plain, redirect, unavailable

PAGES = "pages.tar.zst"
TABLE = "sites.csv"
COLUMNS = ("host", "address", "language", "start", "source", "licence", "behaviour")
_OPEN = plain("User-agent: *\nDisallow:\n")
_WORDS = frozenset({"robots", "slow", "busy", "mirror", "www", "site"})
_PAGE = {"Content-Type": "text/html"}  # no charset, as from old servers: only the page's own label tells it


@dataclass(frozen=True, slots=True)
class Site:
    """One line of ``sites.csv``."""

    host: str
    address: str
    language: str
    """ISO 639-1 code, or ``mul``."""
    start: str
    """Path of the page to start from."""
    source: str
    licence: str
    behaviour: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The host names under which it answers."""
        return (self.host, f"www.{self.host}") if "www" in self.behaviour else (self.host,)


class RecordedWeb:
    """The web of a directory, in memory.  Only ``robots=error`` and ``busy`` depend on earlier requests."""

    def __init__(self, directory: Path) -> None:
        """Raises BadInput when a file is missing or the table names an unknown behaviour."""
        self.sites = read_sites(directory / TABLE)
        self._pages = read_pages(directory / PAGES)
        self._asked: Counter[tuple[str, str]] = Counter()
        self._hosts = {name: site.address for site in self.sites.values() for name in site.names}

    def hosts(self) -> Mapping[str, str]:
        return self._hosts

    globs = hosts

    def paths(self, host: str) -> list[str]:
        """The stored paths of *host*."""
        return [f"/{name}" for name in self._pages.get(host, {})]

    def respond(self, host: str, path: str) -> WebResponse:
        site = self.sites.get(host.removeprefix("www."))
        if host not in self._hosts or site is None:
            return not_found()
        answer = self._robots(site) if path == "/robots.txt" else self._page(site, host, path)
        slow = site.behaviour.get("slow")
        return replace(answer, delay_s=float(slow)) if slow else answer

    def _robots(self, site: Site) -> WebResponse:
        kind, _, value = site.behaviour.get("robots", "").partition(":")
        if not kind:
            return not_found()
        if kind == "error" and self._count(site, "robots") <= int(value):
            return unavailable(1)
        rule = {"disallow": f"Disallow: {value}\n", "delay": f"Crawl-delay: {value}\nDisallow:\n"}.get(kind)
        return plain(f"User-agent: *\n{rule}") if rule else _OPEN

    def _page(self, site: Site, host: str, path: str) -> WebResponse:
        behaviour = site.behaviour
        if "www" in behaviour and host == site.host:
            return redirect(f"http://www.{host}{path}")
        if self._count(site, "page") == int(behaviour.get("busy", 0)):
            return unavailable(1, status=429)
        if "site" in behaviour:
            return SITES[behaviour["site"]](path)
        if path == "/" and site.start != "/":
            return redirect(site.start, status=302)
        pages = self._pages.get(behaviour.get("mirror", site.host), {})
        body = pages.get(unquote(path.partition("?")[0]).lstrip("/"))
        return not_found() if body is None else WebResponse(200, _PAGE, body)

    def _count(self, site: Site, what: str) -> int:
        self._asked[site.host, what] += 1
        return self._asked[site.host, what]


def read_sites(path: Path) -> dict[str, Site]:
    """Host -> Site of a ``sites.csv``.  Raises BadInput."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows: list[dict[str, Any]] = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"cannot read {path} of the recorded web: {error}; name a directory that has one.") from None
    if not rows or tuple(rows[0]) != COLUMNS or any(None in row.values() for row in rows):
        raise BadInput(f"{path} must have the columns {', '.join(COLUMNS)} and at least one host.")
    sites = {row["host"]: Site(**row | {"behaviour": _behaviour(path, row)}) for row in rows}
    checked_addresses({site.host: site.address for site in sites.values()})
    return sites


def _behaviour(path: Path, row: Mapping[str, str]) -> dict[str, str]:
    """Word -> value of a behaviour; each is checked here, so that no answer fails later."""
    words = dict(word.partition("=")[::2] for word in row["behaviour"].split())
    kind, _, value = words.get("robots", "open").partition(":")
    try:
        number = value if kind in ("delay", "error") else "0"
        sound = (
            words.keys() <= _WORDS
            and kind in ("open", "disallow", "delay", "error")
            and min(float(words.get("slow", 0)), int(words.get("busy", 0)), float(number)) >= 0
            and (kind != "error" or int(number) >= 0)
            and words.get("site", "calendar") in SITES
        )
    except ValueError:
        sound = False
    if not sound:
        raise BadInput(f"{path}: host {row['host']} has the behaviour {row['behaviour']!r}, which is not understood.")
    return words


def read_pages(path: Path) -> dict[str, dict[str, bytes]]:
    """Host -> path without its leading slash -> body.  Raises BadInput."""
    pages: dict[str, dict[str, bytes]] = {}
    try:
        packed = zstd.decompress(path.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive:
                content = archive.extractfile(member)
                host, _, name = member.name.partition("/")
                if content is not None:
                    pages.setdefault(host, {})[name] = content.read()
    except (OSError, zstd.ZstdError, tarfile.TarError) as error:
        raise BadInput(f"cannot read {path} of the recorded web: {error}; build it again or name another.") from None
    return pages
