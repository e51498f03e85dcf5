"""Asks a source of seeds in a crawl of its own, with its robots.txt, politeness, retries and resumption."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

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
from spiderling.seeding.sources import Source
from spiderling.spiders.spiderling import SpiderlingSpider
from spiderling.text.listing import MAX_SITEMAP_BYTES

_STATUSES = [400, 401, 403, 404, 410]
"""Error statuses whose answers go to the source; others are retried, or counted as failures."""
_COMMAND_LINE = SETTINGS_PRIORITIES["cmdline"]
_MAX_NAMED = 3  # requests that are named at the start; chosen: what fits on two lines
_NO_FAILURES = (Reason.NO_PAGE, Reason.REDIRECTED, Reason.SEEN)
"""Ends of requests that were answered, or that were not made because another was."""


class SeedSpider(AskedSpider, SpiderlingSpider):
    """Carries out a source's requests and writes the URLs that it finds."""

    name = "seeds"

    def __init__(self, source: Source, output: SeedFile, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.source = source
        self.output = output
        self.failures: dict[Reason, int] = {}  # how requests ended that gave no answer
        self.is_whole = False  # whether nothing is left to be asked
        self._meter = Meter("seeds")

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
                    self._meter.add()
        except SpiderlingError as error:
            assert response.request is not None
            yield self._asked(response.request.replace(dont_filter=True))  # again, when the command is repeated
            crawl_of(self.crawler).fail(error)

    def closed(self, reason: str) -> None:
        self._meter.close()
        super().closed(reason)

    def note_crawl(self, crawl: Crawl, reason: str) -> None:
        """Note what is left, and what gave no answer."""
        self.is_whole = crawl.frontier.is_finished
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
