"""Sources of seeds: services on the web that are asked, or files that they give out.

A service is a class that has no state but its arguments, so an interrupted run can go on.  ``requests()`` are made
first; ``read(response)`` gives the URLs and further requests in an answer, whose status may also be 400 to 410.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode

import ada_url
from scrapy.http import Request, Response

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.options import Options
from spiderling.base.terminal import Meter
from spiderling.base.urls import CanonicalUrl, canonicalize, registrable_domain, top_level_domain

Found: TypeAlias = "str | Request"  # a URL that may be a seed, or a request that leads to more
STEP = "seeds"
"""Key in the meta of a request.  For a sitemap: how many indexes lead to it.  For Common Crawl: ``collections``,
``count`` or ``page``."""


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file that a service gives out, packed by gzip or not, with a progress bar.

    Raises BadInput where it cannot be read any further.
    """
    try:
        with path.open("rb") as raw, closing(Meter("bytes", path.stat().st_size, in_bytes=True)) as meter:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            for line in gzip.GzipFile(fileobj=raw) if is_packed else raw:
                meter.add(raw.tell() - meter.done)
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not whole"
        raise BadInput(f"{path} cannot be read to its end ({reason}); download it again.") from None


_MAX_DEPTH = 3  # levels of indexes that are followed (chosen); the protocol allows one


class SitemapSource:
    """The URLs that sites list of themselves; those on other domains are left out.

    robots.txt names the sitemaps (https://www.sitemaps.org/protocol.html).
    """

    name = "sitemap"  # for the head of the file
    retries = 1  # further attempts after a failure that may pass: few at each of many sites

    def __init__(self, sites: Iterable[str]) -> None:
        """*sites*: names or URLs; raises BadInput for one that is neither."""
        self._sites: list[CanonicalUrl] = []
        for site in sites:
            target = canonicalize(site if "://" in site else f"https://{site}/")
            if target is None:
                raise BadInput(f"{site} is no site; give its name or URL, such as example.org.")
            self._sites.append(target)
        if not self._sites:
            raise BadInput("name the sites: scrapy seeds sitemap example.org -a lang=cs -o seeds.txt")

    def requests(self) -> Iterator[Request]:
        for site in self._sites:
            if site.path.endswith((".xml", ".xml.gz")):
                yield Request(site.url, meta={STEP: 0})
            else:
                yield Request(f"{site.origin}/robots.txt")

    def read(self, response: Response) -> Iterator[Found]:
        depth = response.meta.get(STEP)
        if depth is None:
            yield from self._read_robots(response)
        elif response.status == 200:
            yield from self._read_sitemap(response, depth)

    def _read_robots(self, response: Response) -> Iterator[Found]:
        from spiderling.frontier.site_files import RobotsTxt  # it takes long, and all commands load this

        listed = RobotsTxt(response.body, Options()).sitemaps() if response.status == 200 else []
        for address in listed or ["/sitemap.xml"]:
            target = _joined(response.url, address)
            if target is not None:
                yield Request(target.url, meta={STEP: 0})

    def _read_sitemap(self, response: Response, depth: int) -> Iterator[Found]:
        from spiderling.text.listing import MAX_SITEMAP_BYTES, read_sitemap

        own = canonicalize(response.url)
        sitemap = read_sitemap(response.body, most=MAX_SITEMAP_BYTES)  # all that it lists
        for address in sitemap.urls:
            target = _joined(response.url, address)
            if target is None or own is None or registrable_domain(target.host) != registrable_domain(own.host):
                continue
            if not sitemap.is_index:
                yield target.url
            elif depth < _MAX_DEPTH:
                yield Request(target.url, meta={STEP: depth + 1})


def _joined(base: str, address: str) -> CanonicalUrl | None:
    try:
        return canonicalize(str(ada_url.join_url(base, address.strip())))
    except ValueError:
        return None


_COLUMN = re.compile(r"^  `(\w+)`")
_ROW = re.compile(r"\(((?:'(?:[^'\\]|\\.)*'|[^'()])*)\)")
_VALUE = re.compile(r"'((?:[^'\\]|\\.)*)'|([^,]+)")
_ESCAPE = re.compile(r"\\(.)")


def dumped_links(path: Path) -> Iterator[str]:
    """The URLs in ``<wiki>-<date>-externallinks.sql.gz``, packed or not, in either form that the table has had.

    Raises BadInput if it cannot be read, is no such dump, or breaks off; the URLs before that were yielded.
    """
    columns: list[str] = []
    last = ""
    for packed in lines_of(path):
        line = packed.decode("utf-8", "replace").rstrip("\n")
        last = line or last
        column = _COLUMN.match(line)
        if column is not None:
            columns.append(column[1])
        elif line.startswith("INSERT INTO `externallinks`"):
            yield from _inserted(line, columns)
    if "el_from" not in columns:
        raise BadInput(f"{path} is no dump of external links; take <wiki>-<date>-externallinks.sql.gz.")
    if not last.startswith("-- Dump completed"):
        raise BadInput(f"{path} breaks off before its end; download it again.")


def _inserted(line: str, columns: list[str]) -> Iterator[str]:
    """The URLs in the rows of one INSERT."""
    for row in _ROW.finditer(line):
        values = [_ESCAPE.sub(r"\1", text) if text else other for text, other in _VALUE.findall(row[1])]
        if len(values) != len(columns):
            continue
        fields = dict(zip(columns, values, strict=True))
        if "el_to" in fields:
            url = fields["el_to"]
            yield f"https:{url}" if url.startswith("//") else url
        elif "el_to_domain_index" in fields:
            path = fields.get("el_to_path", "")
            yield _from_index(fields["el_to_domain_index"]) + ("/" if path in ("", "NULL") else path)


def _from_index(index: str) -> str:
    """The origin of ``https://cz.example.www.:8080``: since 2023 the table has the labels of names in reverse."""
    scheme, _, rest = index.partition("://")
    name, _, port = rest.partition(".:")
    labels = name.strip(".").split(".")
    host = ".".join(labels[1:] if labels[0] == "V4" else reversed(labels))
    return f"{scheme}://{host}" + (f":{port}" if port else "")


COLLECTIONS = "https://index.commoncrawl.org/collinfo.json"  # the list of all crawls, the newest first


class Wanted(NamedTuple):
    """Which captures count: successful ones in one of our languages or, if that is not known, below our domains."""

    iso3: Sequence[str]  # codes of our languages, by ISO 639-3
    tlds: Sequence[str]

    def home(self, capture: dict[str, Any]) -> str | None:
        """The home page of a capture's host, if it is wanted."""
        target = canonicalize(str(capture.get("url", "")))
        if target is None or str(capture.get("status", "200")) != "200":
            return None
        first = str(capture.get("languages") or "").partition(",")[0]
        is_ours = first in self.iso3 if first else top_level_domain(target.host) in self.tlds
        return f"{target.origin}/" if is_ours else None


class CommonCrawlSource:
    """The index server (pywb's CDX API): of each top-level domain, some pages of the index, evenly spread."""

    name = "commoncrawl"
    retries = 5  # many at the one service that is asked

    def __init__(self, wanted: Wanted, pages: int, collections: str = COLLECTIONS) -> None:
        """*pages* of the index of each domain are asked for; *collections*: the list of crawls, the newest first."""
        if not wanted.tlds:
            raise BadInput("the language's model names no national top-level domain; write them: -a tlds=cz,sk")
        self._wanted = wanted
        self._pages = pages
        self._collections = collections

    def requests(self) -> Iterator[Request]:
        yield Request(self._collections, meta={STEP: "collections"})

    def read(self, response: Response) -> Iterator[Found]:
        step = response.meta[STEP]
        if step != "collections" and response.status == 404:
            return  # no captures
        try:
            if step == "collections":
                api = str(json.loads(response.body)[0]["cdx-api"])
                found: list[Found] = [
                    Request(f"{api}?{_query(tld)}&showNumPages=true", meta={STEP: "count"}) for tld in self._wanted.tlds
                ]
            elif step == "count":
                found = list(self._spread(response.url, int(json.loads(response.body)["pages"])))
            else:
                homes = (self._wanted.home(json.loads(line)) for line in response.body.splitlines() if line.strip())
                found = list(dict.fromkeys(home for home in homes if home is not None))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise SpiderlingError(
                f"{response.url} answered {response.status} with something that is no answer of an index of Common "
                "Crawl; repeat the command later, and it goes on, or give files of the index."
            ) from None
        yield from found

    def _spread(self, url: str, pages: int) -> Iterator[Found]:
        base = url.replace("&showNumPages=true", "")
        wanted = min(pages, self._pages)
        for number in range(wanted):
            yield Request(f"{base}&page={number * pages // wanted}", meta={STEP: "page"})


def _query(tld: str) -> str:
    return urlencode({"url": f"*.{tld}", "output": "json", "fl": "url,status,languages", "filter": "=status:200"})


Source: TypeAlias = SitemapSource | CommonCrawlSource


def indexed_hosts(path: Path, wanted: Wanted) -> Iterator[str]:
    """The home pages of wanted hosts in a file of the index, ``cdx-*.gz``.

    Raises BadInput if it cannot be read; what it holds before that was yielded.
    """
    for number, line in enumerate(lines_of(path), 1):
        try:
            home = wanted.home(json.loads(line[line.index(b"{") :]))
        except (ValueError, AttributeError):
            raise BadInput(f"{path}, line {number}: no line of a CDXJ index; take cdx-*.gz.") from None
        if home is not None:
            yield home
