"""``scrapy seeds check FILE``: what the seeds give, so that no crawl begins with bad ones.

After Schäfer, Barbaresi & Bildhauer 2014: crawls that begin with seeds of good yield have a good yield (R2 = .78).
Each seed's page is fetched as in a crawl and goes through the whole chain; its links are not followed.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from scrapy import Request, signals
from scrapy.settings import Settings

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.terminal import Meter
from spiderling.base.urls import canonicalize
from spiderling.cli.crawl_command import AskedSpider, run_spider
from spiderling.crawl.crawl import Crawl
from spiderling.engine.outcomes import DropPage
from spiderling.items import PageItem
from spiderling.languages.registry import Seed
from spiderling.languages.seeds import read_seeds
from spiderling.spiders.spiderling import SpiderlingSpider

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


class CheckSpider(AskedSpider, SpiderlingSpider):
    """Fetches each seed and notes in a file what became of its page."""

    name = "check"

    is_whole = False

    def __init__(self, urls: Sequence[str], results: Path, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._urls = urls
        self._results = results
        self._meter = Meter("seeds", len(urls))

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
        self._meter.add()

    def closed(self, reason: str) -> None:
        self._meter.close()
        super().closed(reason)

    def note_crawl(self, crawl: Crawl, reason: str) -> None:
        self.is_whole = crawl.frontier.is_finished


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
