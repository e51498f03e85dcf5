"""Sources of seeds: services on the web that are asked, or files that they give out."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlencode

import ada_url
from scrapy.http import Request, Response

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.options import Options
from spiderling.base.terminal import Meter
from spiderling.base.urls import CanonicalUrl, canonicalize, registrable_domain, top_level_domain

Found: TypeAlias = "str | Request"  # a URL that may be a seed, or a request that leads to more


class Source(Protocol):
    """A service on the web that knows URLs; it has no state but its arguments, so an interrupted run can go on."""

    name: str  # what it is, for the head of the file
    retries: int
    """Further attempts after a failure that may pass: many at the one service that is asked, few at each of many
    sites."""

    def requests(self) -> Iterable[Request]:
        """The requests that are made first; they are the same each time."""

    def read(self, response: Response) -> Iterable[Found]:
        """The URLs and further requests in an answer, whose status may also be 400 to 410.

        Raises SpiderlingError if the service refuses; the same request is made again when the command is repeated.
        """


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


_DEPTH = "sitemap"  # key in the meta of a request for a sitemap: how many indexes lead to it
_MAX_DEPTH = 3  # levels of indexes that are followed (chosen); the protocol allows one


class SitemapSource:
    """The URLs that sites list of themselves; those on other domains are left out.

    robots.txt names the sitemaps (https://www.sitemaps.org/protocol.html).
    """

    name = "sitemap"
    retries = 1

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
                yield Request(site.url, meta={_DEPTH: 0})
            else:
                yield Request(f"{site.origin}/robots.txt")

    def read(self, response: Response) -> Iterator[Found]:
        depth = response.meta.get(_DEPTH)
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
                yield Request(target.url, meta={_DEPTH: 0})

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
                yield Request(target.url, meta={_DEPTH: depth + 1})


def _joined(base: str, address: str) -> CanonicalUrl | None:
    try:
        return canonicalize(str(ada_url.join_url(base, address.strip())))
    except ValueError:
        return None


_PAGE = 500  # links in one answer: the most that the API gives to anonymous clients
_COLUMN = re.compile(r"^  `(\w+)`")
_ROW = re.compile(r"\(((?:'(?:[^'\\]|\\.)*'|[^'()])*)\)")
_VALUE = re.compile(r"'((?:[^'\\]|\\.)*)'|([^,]+)")
_ESCAPE = re.compile(r"\\(.)")


class WikipediaSource:
    """``list=exturlusage`` of a MediaWiki API, article name space, page by page."""

    retries = 5

    def __init__(self, api: str) -> None:
        """*api*: its address, such as https://cs.wikipedia.org/w/api.php; raises BadInput if that is none."""
        target = canonicalize(api)
        if target is None or "?" in api:
            raise BadInput(f"--api is {api!r}; give the address of an API, such as https://cs.wikipedia.org/w/api.php")
        self._api = target.url
        self.name = f"wikipedia {target.host}"

    def requests(self) -> Iterator[Request]:
        yield self._page({})

    def _page(self, further: dict[str, str]) -> Request:
        query = {
            "action": "query",
            "list": "exturlusage",
            "euprop": "url",
            "eunamespace": "0",
            "eulimit": str(_PAGE),
            "format": "json",
            "formatversion": "2",
            "maxlag": "5",
            **further,
        }
        return Request(f"{self._api}?{urlencode(query)}")

    def read(self, response: Response) -> Iterator[Found]:
        try:
            answer = json.loads(response.body)
            error = answer.get("error")
            links = [] if error else [str(entry["url"]) for entry in answer["query"]["exturlusage"]]
            further = {str(key): str(value) for key, value in (answer.get("continue") or {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SpiderlingError(
                f"{self._api} answered {response.status} with something that is no answer of a MediaWiki API; use a "
                "dump: FILE-externallinks.sql.gz of dumps.wikimedia.org"
            ) from None
        if error:
            said = f"{error.get('code')}: {error.get('info')}" if isinstance(error, dict) else str(error)
            raise SpiderlingError(f"{self._api} refuses ({said[:200]}); repeat the command later, and it goes on.")
        yield from (f"https:{link}" if link.startswith("//") else link for link in links)
        if further:
            yield self._page(further)


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


FIRST_RANK = 100  # the words of the first ranks stand in every page, so they choose none (chosen)
LAST_RANK = 5000  # rarer words are often names or typing errors (chosen)
_MIN_WORDS = 50  # chosen: with fewer words the same queries come again and again
_MIN_CHARS = 3  # letters of a word in a query at the least; chosen
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class SearxNG:
    """The JSON API of a SearXNG instance (https://docs.searxng.org/dev/search_api.html), asked by POST.

    The stock robots.txt of an instance forbids GET queries, and its ``search.formats`` must hold json.
    """

    def __init__(self, endpoint: str, language: str) -> None:
        target = canonicalize(endpoint)
        if target is None:
            raise BadInput(
                f"--endpoint is {endpoint!r}; give the address of a SearXNG instance, such as http://localhost:8080/search"
            )
        self._endpoint = target.url if target.path != "/" else f"{target.url}search"
        self._language = language

    def request(self, words: Sequence[str]) -> Request:
        """The query for pages with all *words*."""
        form = urlencode({"q": " ".join(words), "format": "json", "language": self._language})
        return Request(
            self._endpoint, method="POST", body=form, headers={"Content-Type": "application/x-www-form-urlencoded"}
        )

    def urls(self, response: Response) -> list[str]:
        """The URLs of an answer; raises SpiderlingError if it is a refusal."""
        if response.status == 403:
            raise SpiderlingError(
                f"{self._endpoint} refuses JSON (403): put json into search.formats of its settings.yml, or allow this "
                "machine in its limiter."
            )
        try:
            return [str(result["url"]) for result in json.loads(response.body)["results"]]
        except (ValueError, KeyError, TypeError):
            raise SpiderlingError(
                f"{self._endpoint} answered {response.status} with something that is no JSON of SearXNG; is it the "
                "address of its search?"
            ) from None


class SearchSource:
    """Queries of random words, the same for the same seed; what they find are the seeds.

    After Corpus Factory (Kilgarriff, Reddy, Pomikálek & Avinesh 2010).
    """

    retries = 5

    def __init__(self, engine: SearxNG, words: Sequence[str], queries: int, size: int, seed: int) -> None:
        """*size* words a query, 3 to 5 in the paper."""
        self.name = f"search, {queries} queries of {size} words, seed {seed}"
        self._engine = engine
        self._words = words
        self._queries = queries
        self._size = size
        self._seed = seed

    def tuples(self) -> list[tuple[str, ...]]:
        """The queries."""
        drawn = random.Random(self._seed)  # noqa: S311 - to be drawn again, not to be secret
        return [tuple(drawn.sample(self._words, self._size)) for _ in range(self._queries)]

    def requests(self) -> Iterator[Request]:
        return (self._engine.request(words) for words in self.tuples())

    def read(self, response: Response) -> Iterator[Found]:
        yield from self._engine.urls(response)


def middle_words(counts: Mapping[str, int]) -> list[str]:
    """The words of ranks 100 to 5000 with three letters or more; raises BadInput when there are too few."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    first = min(FIRST_RANK, len(ranked) // 4)
    words = [word for word in ranked[first:LAST_RANK] if len(word) >= _MIN_CHARS]
    if len(words) < _MIN_WORDS:
        raise BadInput(
            f"only {len(words)} words of middle frequency are known; give more text of the language with --text FILE."
        )
    return words


def words_of(path: Path) -> Counter[str]:
    """Word counts of a text in UTF-8; raises BadInput when it cannot be read."""
    try:
        return Counter(_WORD.findall(path.read_text(encoding="utf-8-sig").lower()))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); give a file of plain text with --text.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file in UTF-8; convert it first, e.g. with: iconv -t utf-8.") from None


COLLECTIONS = "https://index.commoncrawl.org/collinfo.json"  # the list of all crawls, the newest first
_STEP = "commoncrawl"  # key in the meta of a request: ``collections``, ``count`` or ``page``


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
