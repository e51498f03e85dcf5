"""Crawls of their own that find and check seeds, with robots.txt, politeness, retries and resumption.

A good crawl begins with good seeds: those whose yield is good predict it (R2 = .78; Schäfer, Barbaresi & Bildhauer
2014).  So `check` fetches each seed's page and puts it through the whole chain; its links are not followed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from scrapy import signals
from scrapy.http import Request, Response
from scrapy.settings import SETTINGS_PRIORITIES, Settings

from spiderling.base.errors import BadInput, NetworkAway, SpiderlingError
from spiderling.base.reasons import Reason
from spiderling.base.terminal import Meter
from spiderling.base.urls import canonicalize, registrable_domain
from spiderling.cli.crawl_command import AskedSpider, run_spider
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import crawl_of
from spiderling.engine.download_handler import FIRST_BYTE_TIMEOUT_S
from spiderling.engine.outcomes import DropPage
from spiderling.items import PageItem
from spiderling.languages.registry import Seed
from spiderling.languages.seeds import read_seeds
from spiderling.seeding.sources import STEP, Source
from spiderling.spiders.spiderling import SpiderlingSpider
from spiderling.text.listing import MAX_SITEMAP_BYTES

_STATUSES = [400, 401, 403, 404, 410]
"""Error statuses whose answers go to the source; others are retried, or counted as failures."""
_COMMAND_LINE = SETTINGS_PRIORITIES["cmdline"]
_MAX_NAMED = 3  # requests that are named at the start; chosen: what fits on two lines
_NO_FAILURES = (Reason.NO_PAGE, Reason.REDIRECTED, Reason.SEEN)
"""Ends of requests that were answered, or that were not made because another was."""


class _CountingSpider(AskedSpider, SpiderlingSpider):
    """Shows how many seeds came."""

    meter: Meter
    is_whole = False  # whether nothing is left to be asked

    def closed(self, reason: str) -> None:
        self.meter.close()
        super().closed(reason)

    def note_crawl(self, crawl: Crawl, reason: str) -> None:
        self.is_whole = crawl.frontier.is_finished


class SeedSpider(_CountingSpider):
    """Carries out a source's requests and writes the URLs that it finds."""

    name = "seeds"

    def __init__(self, source: Source, output: SeedFile, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.source = source
        self.output = output
        self.failures: dict[Reason, int] = {}  # how requests ended that gave no answer
        self.meter = Meter("seeds")

    async def start(self) -> AsyncIterator[Any]:
        asked = list(self.source.requests())
        names = ", ".join(request.url for request in asked[:_MAX_NAMED]) + (" ..." if asked[_MAX_NAMED:] else "")
        print(
            f"Asking {names}; an answer may take {FIRST_BYTE_TIMEOUT_S:g} s.",
            file=sys.stderr,
        )
        for request in asked:
            yield self._asked(request)

    def _asked(self, request: Request) -> Request:
        meta = {**request.meta, "handle_httpstatus_list": _STATUSES}
        return request.replace(callback=self.read, meta=meta)

    def read(self, response: Response) -> Iterator[Any]:
        """Callback: URLs to the file, further requests to the frontier."""
        try:
            for found in self.source.read(response):
                if isinstance(found, Request):
                    yield self._asked(found)
                elif self.output.add(found):
                    self.meter.add()
        except SpiderlingError as error:
            assert response.request is not None
            # again, when the command is repeated; what components have put into its meta cannot be stored
            yield self._asked(Request(response.request.url, meta={STEP: response.meta.get(STEP)}, dont_filter=True))
            crawl_of(self.crawler).fail(error)

    def note_crawl(self, crawl: Crawl, reason: str) -> None:
        """Note what is left, and what gave no answer."""
        super().note_crawl(crawl, reason)
        counts = crawl.frontier.ledger.ends + crawl.frontier.ledger.refused_links
        self.failures = {end: number for end, number in counts.items() if end not in _NO_FAILURES}


def collect(source: Source, output: SeedFile, settings: Settings, arguments: dict[str, str]) -> str:
    """Ask *source* until nothing is left; returns a sentence for the user.

    The state of the crawl is in ``<output>.state`` until then.  Raises SpiderlingError when the source
    cannot be asked, refuses, or nothing of it answers.
    """
    state = Path(f"{output.path}.state")
    ours = {
        "JOBDIR": str(state),
        "ITEM_PIPELINES": {"spiderling.pipelines.CleanPipeline": None},
        "SPIDERLING_MAX_BODY_BYTES": MAX_SITEMAP_BYTES,
        "SPIDERLING_RETRIES": source.retries,
    }
    for name, value in ours.items():
        if (settings.getpriority(name) or 0) < _COMMAND_LINE:
            settings.set(name, value, priority="cmdline")
    output.comment(f"from {source.name}")
    try:
        spider = run_spider(SeedSpider, settings, source=source, output=output, **arguments)
    except NetworkAway as error:
        kept = f"Stopped with {output.added} new seeds in {output.path}; the same command goes on."
        raise NetworkAway(f"{error} {kept}") from None
    lost = ", ".join(f"{number}: {end.help} ({end.value})" for end, number in spider.failures.items())
    told = f" Requests without an answer: {lost}." if lost else ""
    if not spider.is_whole:
        return f"Stopped with {output.added} new seeds in {output.path}; the same command goes on."
    shutil.rmtree(state, ignore_errors=True)
    if not output.added and (lost or not output.hosts):
        raise SpiderlingError(f"{source.name} gave no seeds.{told}")
    return f"{output.added} new seeds in {output.path}, which holds {output.hosts} hosts.{told}"


_PLATFORMS = """
    amazon.com archive.org archive.ph archive.today bing.com bit.ly doi.org duckduckgo.com ebay.com facebook.com
    fandom.com flickr.com github.com goo.gl google.com imdb.com instagram.com issuu.com jstor.org linkedin.com
    mediawiki.org microsoft.com netflix.com orcid.org pinterest.com quora.com reddit.com scribd.com spotify.com
    t.co t.me telegram.me tiktok.com tripadvisor.com twitch.tv twitter.com viaf.org vimeo.com vk.com webcitation.org
    wikidata.org wikimedia.org wikipedia.org worldcat.org x.com yahoo.com yandex.ru youtu.be youtube.com
"""
PLATFORMS = frozenset(_PLATFORMS.split())
"""Registrable domains that everybody links to (aggregators, archives, shops, networks): no seeds for one language."""


class SeedFile:
    """Appends URLs that may be seeds, one a line, each when it is found, so a stop loses none."""

    def __init__(self, path: Path, per_host: int, homes: bool = False) -> None:
        """Raises BadInput when the file cannot be read or written.

        *per_host*: most URLs of one host, those in the file counted; *homes*: each host's home page in place of what
        was found on it.
        """
        self.path = path
        self.added = 0
        self._is_new = not path.exists()
        self._per_host = per_host
        self._homes = homes
        self._heading = ""
        self._known: set[str] = set()
        self._hosts: Counter[str] = Counter()
        try:
            with path.open("a+", encoding="utf-8") as file:
                file.seek(0)
                for line in file:
                    target = canonicalize(line.strip())
                    if target is not None:
                        self._known.add(target.url)
                        self._hosts[target.host] += 1
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{path} cannot be written ({error.strerror}); name another file with -o.") from None
        except UnicodeDecodeError:
            raise BadInput(f"{path} is not a text file in UTF-8; name another file with -o.") from None

    def close(self) -> None:
        """Close the file; a new one without a line goes, so that an error leaves none behind."""
        self._file.close()
        if self._is_new and not self.path.stat().st_size:
            self.path.unlink()

    @property
    def hosts(self) -> int:
        """Hosts in the file."""
        return len(self._hosts)

    def comment(self, text: str) -> None:
        """Begin a section; its heading is written with its first URL."""
        self._heading = f"# {text}\n"

    def add(self, url: str) -> bool:
        """Write *url*, unless it is no http(s) URL, known, a platform's, or its host has enough; True if written."""
        target = canonicalize(url)
        if target is not None and self._homes:
            target = canonicalize(f"{target.origin}/")
        if (
            target is None
            or target.url in self._known
            or self._hosts[target.host] >= self._per_host
            or registrable_domain(target.host) in PLATFORMS
        ):
            return False
        self._known.add(target.url)
        self._hosts[target.host] += 1
        self.added += 1
        self._file.write(f"{self._heading}{target.url}\n")
        self._file.flush()
        self._heading = ""
        return True


_MAX_HOSTS = 40  # rows of the table of hosts
_NO_SOURCE = "no heading"
_SEED = "seed"
Result: TypeAlias = "dict[str, Any]"
"""What came of a seed: its URL, why its page was kept or not, bytes downloaded and kept."""


class Yield(NamedTuple):
    """What some seeds gave."""

    seeds: int
    fetched: int
    kept: int
    rate: float  # bytes of text kept / bytes downloaded, both in UTF-8


def yield_of(results: Sequence[Result | None]) -> Yield:
    """The sums over the *results* of some seeds; None: a seed gave no page."""
    found = [result for result in results if result is not None]
    rate = sum(result["kept"] for result in found) / max(1, sum(result["bytes"] for result in found))
    return Yield(len(results), len(found), sum(result["why"] == "kept" for result in found), rate)


class CheckSpider(_CountingSpider):
    """Fetches each seed and notes in a file what became of its page."""

    name = "check"

    def __init__(self, urls: Sequence[str], results: Path, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._urls = urls
        self._results = results
        self.meter = Meter("seeds", len(urls))

    async def start(self) -> AsyncIterator[Any]:
        self.crawler.signals.connect(self.note, signals.item_scraped)
        self.crawler.signals.connect(self.note, signals.item_dropped)
        for url in self._urls:
            yield Request(url, meta={_SEED: url})

    def note(self, item: Any, exception: BaseException | None = None) -> None:
        """Write what became of a page; *exception* has dropped it."""
        if not isinstance(item, PageItem):
            return
        dropped = exception.reason.value if isinstance(exception, DropPage) else "dropped"
        why = dropped if exception else "kept"
        size = item.page.utf8_bytes if item.page is not None else len(item.response.body)
        kept = item.kept_bytes if why == "kept" else 0
        result = {"seed": item.response.meta.get(_SEED), "why": why, "bytes": size, "kept": kept}
        with self._results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        self.meter.add()


def check(name: str, out: Path, settings: Settings, arguments: dict[str, str]) -> str:
    """Check the seeds in the file *name*, and write the good ones to *out*; returns the tables.

    State and results stand beside *out* until all seeds were fetched.  Raises SpiderlingError.
    """
    seeds = read_seeds(name)
    state = Path(f"{out}.state")
    results = Path(f"{out}.results")
    try:
        results.open("a").close()
    except OSError as error:
        raise BadInput(f"{out} cannot be written ({error.strerror}); name another file with -o.") from None
    settings.setdict({"JOBDIR": str(state), "SPIDERLING_FOLLOW": "none"}, priority="cmdline")
    try:
        spider = run_spider(CheckSpider, settings, urls=[seed.url for seed in seeds], results=results, **arguments)
    except SpiderlingError:
        if not results.stat().st_size:
            results.unlink()
        raise
    found = _read_results(results)
    if not spider.is_whole:
        return f"Stopped after {len(found)} of {len(seeds)} seeds; the same command goes on."
    text = "\n".join(render(seeds, found, out))
    shutil.rmtree(state, ignore_errors=True)
    results.unlink()
    return text


def _read_results(path: Path) -> dict[str, Result]:
    """Seed -> result; the better one of a seed that was fetched twice, before and after a kill."""
    found: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            result = json.loads(line)
        except ValueError:
            continue  # the last line of a killed process
        if result["seed"] not in found or result["why"] == "kept":
            found[result["seed"]] = result
    return found


def render(seeds: list[Seed], found: dict[str, Result], out: Path) -> Iterator[str]:
    """The tables by source and by host; writes the good seeds to *out*, those of the best hosts first."""
    sources = _yields(seeds, found, lambda seed: seed.heading or _NO_SOURCE)
    hosts = _yields(seeds, found, lambda seed: _host(seed.url))
    ends = Counter(found[seed.url]["why"] if seed.url in found else "no page" for seed in seeds)
    good = [seed for seed in seeds if found.get(seed.url, {}).get("why") == "kept"]
    good.sort(key=lambda seed: (-hosts[_host(seed.url)].rate, _host(seed.url)))
    _write(good, out)
    yield from _table("source", sources, len(sources))
    yield ""
    yield from _table("host", hosts, _MAX_HOSTS)
    yield ""
    yield "ends: " + ", ".join(f"{why} {number}" for why, number in ends.most_common())
    yield f"{len(good)} of {len(seeds)} seeds are good: {out}"


def _yields(seeds: list[Seed], found: dict[str, Result], group: Callable[[Seed], str]) -> dict[str, Yield]:
    results: defaultdict[str, list[Result | None]] = defaultdict(list)
    for seed in seeds:
        results[group(seed)].append(found.get(seed.url))
    return {name: yield_of(own) for name, own in results.items()}


def _write(seeds: list[Seed], out: Path) -> None:
    """Write the *seeds*, each under the heading that it had, so that what was trusted stays so."""
    lines = []
    heading = ""
    for seed in seeds:
        if seed.heading != heading:
            heading = seed.heading
            lines.append(f"# {heading}\n")
        lines.append(f"{seed.url}\n")
    out.write_text("".join(lines), encoding="utf-8")


def _host(url: str) -> str:
    target = canonicalize(url)
    return target.host if target else url


def _table(name: str, rows: dict[str, Yield], most: int) -> Iterator[str]:
    yield f"{name:<40}{'seeds':>7}{'pages':>7}{'kept':>7}{'ratio':>8}{'rate':>8}"
    ordered = sorted(rows.items(), key=lambda row: (-row[1].rate, row[0]))
    for key, row in ordered[:most]:
        ratio = row.kept / max(1, row.fetched)
        yield f"{key[:39]:<40}{row.seeds:>7}{row.fetched:>7}{row.kept:>7}{ratio:>8.3f}{row.rate:>8.4f}"
    if len(rows) > most:
        yield f"... and {len(rows) - most} more"
