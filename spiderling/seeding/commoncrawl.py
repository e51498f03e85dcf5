"""Hosts of a language or a top-level domain that Common Crawl has met: its index server, or files of its indexes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from scrapy.http import Request, Response

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.urls import canonicalize, top_level_domain
from spiderling.seeding.source import Found, lines_of

COLLECTIONS = "https://index.commoncrawl.org/collinfo.json"
"""The list of all crawls, the newest first."""
_STEP = "commoncrawl"
"""Key in the meta of a request: ``collections``, ``count`` or ``page``."""


class Wanted(NamedTuple):
    """Which captures count: successful ones in one of our languages or, if that is not known, below our domains."""

    iso3: Sequence[str]
    """Codes of our languages, by ISO 639-3."""
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
    retries = 5

    def __init__(self, wanted: Wanted, pages: int, collections: str = COLLECTIONS) -> None:
        """*pages* of the index of each domain are asked for; *collections*: the list of crawls, the newest first."""
        if not wanted.tlds:
            raise BadInput("the language's model names no national top-level domain; write them: -a tlds=cz,sk")
        self._wanted = wanted
        self._pages = pages
        self._collections = collections

    def requests(self) -> Iterator[Request]:
        yield Request(self._collections, meta={_STEP: "collections"})

    def read(self, response: Response) -> Iterator[Found]:
        step = response.meta[_STEP]
        if step != "collections" and response.status == 404:
            return  # no captures
        try:
            if step == "collections":
                api = str(json.loads(response.body)[0]["cdx-api"])
                found: list[Found] = [
                    Request(f"{api}?{_query(tld)}&showNumPages=true", meta={_STEP: "count"})
                    for tld in self._wanted.tlds
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
            yield Request(f"{base}&page={number * pages // wanted}", meta={_STEP: "page"})


def _query(tld: str) -> str:
    return urlencode({"url": f"*.{tld}", "output": "json", "fl": "url,status,languages", "filter": "=status:200"})


def indexed_hosts(path: Path, wanted: Wanted) -> Iterator[str]:
    """The home pages of wanted hosts in a file of the index: ``cdx-*.gz`` or ``.parquet`` (columnar, by duckdb).

    Raises BadInput if it cannot be read; what it holds before that was yielded.
    """
    if path.suffix == ".parquet":
        yield from _columnar(path, wanted)
        return
    for number, line in enumerate(lines_of(path), 1):
        try:
            home = wanted.home(json.loads(line[line.index(b"{") :]))
        except (ValueError, AttributeError):
            raise BadInput(
                f"{path}, line {number}: no line of a CDXJ index; take cdx-*.gz or .parquet of the columnar index."
            ) from None
        if home is not None:
            yield home


def _columnar(path: Path, wanted: Wanted) -> Iterator[str]:
    import duckdb  # large, and most runs do without

    query = """
        SELECT any_value(url_protocol) || '://' || url_host_name || '/' FROM read_parquet(?)
        WHERE fetch_status = 200 AND CASE WHEN coalesce(content_languages, '') = '' THEN list_contains(?, url_host_tld)
              ELSE list_contains(?, split_part(content_languages, ',', 1)) END
        GROUP BY url_host_name ORDER BY count(*) DESC, url_host_name"""
    if not path.is_file():
        raise BadInput(f"{path} cannot be read: there is no such file.")
    try:
        rows = duckdb.execute(query, [str(path), list(wanted.tlds), list(wanted.iso3)]).fetchall()
    except duckdb.Error as error:
        raise BadInput(f"{path} cannot be read as a columnar index: {str(error).splitlines()[0]}") from None
    yield from (str(row[0]) for row in rows)
