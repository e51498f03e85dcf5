"""The frontier and its store alone, on a virtual clock: CPU, memory, disk and pauses as the URLs grow.

    python -m benchmarks.frontier [--quick] [--urls 1e5,1e6,1e7] [--one 100000000 --minutes 60] [--data DIR]

Every page has 60 links, about a quarter of them new; two thirds stay on the host, the others go to hosts drawn by a
power law from a web that grows with the crawl, a tenth of the URLs in number.  Names resolve, robots.txt is missing,
everything answers at once.  A batch is cut every 64 pages; the store writes it in the same thread, so that its CPU is
in the figures; the cut and ``committed`` are what the event loop waits for.  All times are CPU times, of the crawl's
last tenth, of its URLs or of its time if that ends first: the machine may be busy with something else.  Beside it,
Scrapy's own JOBDIR queue (disk, one for each host) and dupefilter with the same links.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path

from benchmarks.common import ROOT, result, table
from spiderling.base.link_batch import Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.sqlite import SqliteStore

LINKS, NEW_SHARE, OWN_SHARE, PAGES_PER_BATCH = 60, 0.25, 0.67, 64
URLS_PER_HOST = 10
_TRIES = 6
_WORDS = (
    "zprava", "clanek", "region", "sport", "nazory", "kultura", "archiv", "temata", "domaci", "svet", "praha", "brno",
    "obec", "skola", "knihy", "film",
)  # fmt: skip


class Web:
    """Links without end; of each host only the number of its known pages is kept."""

    def __init__(self, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self.pages = array("I")

    def links(self, source: int, urls: int) -> list[str]:
        """The links of a page of the host *source*, when the crawl knows *urls* URLs."""
        rng = self._rng
        made: dict[str, None] = {}  # a page gives each link once
        for _ in range(LINKS):
            host = source if rng.random() < OWN_SHARE else self._host(urls)
            if not self.pages[host] or rng.random() < NEW_SHARE:
                made[url_of(host, self.pages[host])] = None
                self.pages[host] += 1
                continue
            number = int(rng.expovariate(1 / 20))  # menus and front pages, again and again
            for _ in range(_TRIES):
                url = url_of(host, min(number, self.pages[host] - 1))
                if url not in made:
                    made[url] = None
                    break
                number = rng.randrange(self.pages[host])
        return list(made)

    def _host(self, urls: int) -> int:
        """Host of rank r with a probability like 1/r, of which there are ever more."""
        limit = max(100, urls // URLS_PER_HOST)
        while len(self.pages) <= limit:
            self.pages.append(0)
        if self._rng.random() < 0.27:  # the first link to a host
            return self._rng.randrange(limit)
        return int(limit ** self._rng.random())


def url_of(host: int, number: int) -> str:
    words = f"{_WORDS[number * 7 % 16]}-{_WORDS[number * 3 % 16]}-{_WORDS[number // 16 % 16]}"
    return f"https://www.host{host}.cz/{_WORDS[number % 16]}/{number * 2654435761 % 1000003}-{words}.html"


class Run:
    """One crawl of *web* in *directory* up to a number of URLs."""

    def __init__(self, directory: Path, active_hosts: int) -> None:
        self.options = Options(active_hosts=active_hosts, optouts="tdm-file=ignore,ai-txt=ignore", trail="off")
        self.store = SqliteStore(directory / "frontier.sqlite")
        self.frontier = Frontier(self.options, store=self.store)
        self.file = directory / "frontier.sqlite"
        self.now = 0.0
        self.takes, self.cuts = array("f"), array("f")
        self.pages, self.web_s, self.canonical_s = 0, 0.0, 0.0

    def to(self, urls: int, web: Web, until: float = math.inf) -> None:
        """Crawl until *urls* are known, or it is *until* (``time.monotonic``)."""
        while self.frontier.ledger.discovered < urls and time.monotonic() < until:
            fetch = self._take()
            if fetch is None:
                self._wait()
            elif fetch.robots is not None:
                self.frontier.robots_answered(fetch, FileAnswer(404), self.now)
            else:
                self._report(fetch, web)

    def _take(self) -> Fetch | None:
        began = time.thread_time()
        fetch = self.frontier.take(self.now)
        self.takes.append(1000 * (time.thread_time() - began))
        for name in self.frontier.names_wanted():
            number = hash(name) % 50_000
            self.frontier.resolved(name, (f"10.{number >> 8 & 255}.{number & 255}.1",), 1e9, self.now)
        return fetch

    def _wait(self) -> None:
        due = self.frontier.next_due()
        assert due is not None, "the crawl has come to its end"
        self.now = max(self.now, due)

    def _report(self, fetch: Fetch, web: Web) -> None:
        began = time.process_time()
        host = int(fetch.host.name[4:-3])
        links = web.links(host, self.frontier.ledger.discovered)
        found = gathered(Link(url, text_block=number % 4 == 0) for number, url in enumerate(links))
        self.web_s += time.process_time() - began
        self.frontier.report(
            Outcome(fetch.id, fetch.url, Reason.KEPT, 200, body_bytes=30_000, kept_bytes=3000, links=found), self.now
        )
        self.pages += 1
        if self.pages % PAGES_PER_BATCH == 0:
            self.commit()

    def commit(self) -> None:
        began = time.thread_time()
        changes = self.frontier.drain(self.now)
        cut = time.thread_time() - began
        self.store.commit(changes)
        began = time.thread_time()
        self.frontier.committed()
        self.cuts.append(1000 * (cut + time.thread_time() - began))


def measure(urls: int, active_hosts: int, minutes: float = math.inf) -> dict[str, float]:
    """The figures of one crawl to *urls* URLs, or of *minutes* at most; CPU of its last tenth."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="frontier-") as name:
        run, web = Run(Path(name), active_hosts), Web()
        web.pages.extend([0] * 200)
        for host in range(100):
            run.frontier.put_seed(url_of(host, 0), 0.0)
            web.pages[host] = 1
        base = rss_bytes()
        run.to(urls * 9 // 10, web, start + 54 * minutes)
        pages, cpu, web_s = run.pages, time.process_time(), run.web_s
        run.to(urls, web, start + 60 * minutes)
        cpu = time.process_time() - cpu - (run.web_s - web_s)
        run.commit()
        us = 1e6 * cpu / (run.pages - pages)
        grown = rss_bytes() - base - web.pages.itemsize * len(web.pages)
        drop_ms = drop_largest(run)
        ledger, hosts = run.frontier.ledger, len(run.frontier.hosts)
        figures = {
            "urls": ledger.discovered, "waiting": ledger.waiting, "hosts": hosts, "pages": run.pages,
            "minutes": (time.monotonic() - start) / 60,
            "us_per_page": us, "rss_mb": grown / 1e6, "drop_ms": drop_ms, "disk_mb": disk_bytes(run.file) / 1e6,
            "take_p99_ms": percentile(run.takes, 0.99), "take_max_ms": max(run.takes),
            "cut_p99_ms": percentile(run.cuts, 0.99), "cut_max_ms": max(run.cuts),
        }  # fmt: skip
        run.store.close()
        del run, web
        gc.collect()
        began = time.process_time()
        store = SqliteStore(Path(name, "frontier.sqlite"))
        frontier = Frontier(Options(active_hosts=active_hosts), store=store)
        frontier.restore(store.load(), 0.0)
        assert frontier.ledger.waiting == figures["waiting"]
        figures["reopen_s"] = time.process_time() - began
        store.close()
    return figures


def drop_largest(run: Run) -> float:
    """Milliseconds to close the host with the longest queue, and to give up its queue when it is failing."""
    queued = run.frontier.hosts.states.queued
    longest = max(range(len(queued)), key=queued.__getitem__)
    host = run.frontier.hosts.by_id(longest)
    began = time.thread_time()
    number = run.frontier.url_states.queues.drop_queue(host)
    took = 1000 * (time.thread_time() - began)
    run.frontier.ledger.end_waiting(Reason.CONNECTION, number)
    run.commit()
    print(f"the longest queue had {number} URLs")
    return took


def measured(urls: int, active_hosts: int) -> dict[str, float]:
    """``measure`` in a process of its own, so that memory is not that of an earlier run."""
    command = [sys.executable, "-m", "benchmarks.frontier", "--one", str(urls), "--active-hosts", str(active_hosts)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    figures: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def scrapy_queues(urls: int) -> dict[str, float]:
    """Scrapy's own: a Request for each link, the dupefilter's fingerprints, a disk queue for each host."""
    from scrapy import Request
    from scrapy.dupefilters import RFPDupeFilter
    from scrapy.squeues import PickleFifoDiskQueue
    from scrapy.utils.test import get_crawler

    crawler, web, rng = get_crawler(), Web(), random.Random(2)
    web.pages.extend([0] * 200)
    with tempfile.TemporaryDirectory(prefix="frontier-") as name:
        seen, queues = RFPDupeFilter.from_crawler(crawler), {}
        seen.file = Path(name, "requests.seen").open("ab")  # noqa: SIM115
        base, cpu, web_s, pages, known = rss_bytes(), time.process_time(), 0.0, 0, 0
        while known < urls:
            began = time.process_time()
            links = web.links(rng.randrange(200), known)
            web_s += time.process_time() - began
            for link in links:
                request = Request(link)
                if seen.request_seen(request):
                    continue
                known += 1
                host = link.split("/")[2]
                if host not in queues and len(queues) < 200:  # each keeps two files open
                    queues[host] = PickleFifoDiskQueue.from_crawler(crawler, str(Path(name, host)))
                queues.get(host, next(iter(queues.values()))).push(request)
            pages += 1
            rng.choice(list(queues.values())).pop()
        cpu = time.process_time() - cpu - web_s
        disk = sum(path.stat().st_size for path in Path(name).rglob("*") if path.is_file())
        return {
            "urls": known, "us_per_page": 1e6 * cpu / pages, "rss_mb": (rss_bytes() - base) / 1e6, "disk_mb": disk / 1e6
        }  # fmt: skip


def rss_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def disk_bytes(file: Path) -> int:
    """The pages of the file that are in use; its log is not counted, it is reused."""
    import sqlite3

    with sqlite3.connect(file) as connection:
        count, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return (count - free) * size


def percentile(values: array[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="not needed")
    parser.add_argument("--urls", default="", help="numbers of URLs, with commas; 1e5,1e6,1e7 by default")
    parser.add_argument("--active-hosts", type=int, default=2000)
    parser.add_argument("--one", type=int, default=0, help="one crawl to so many URLs in this process; prints JSON")
    parser.add_argument("--minutes", type=float, default=math.inf, help="--one ends after so many, with its figures")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.one:
        print(json.dumps(measure(options.one, options.active_hosts, options.minutes)))
        return
    sizes = [int(float(size)) for size in (options.urls or ("3e4,1e5" if options.quick else "1e5,1e6,1e7")).split(",")]
    runs = [measured(size, options.active_hosts) for size in sizes]
    head = ["urls", "waiting", "hosts", "pages", "us_per_page", "rss_mb", "disk_mb", "take_p99_ms", "cut_p99_ms"]
    head += ["cut_max_ms", "drop_ms", "reopen_s"]
    table(head, [[int(run[key]) if key in head[:4] else float(run[key]) for key in head] for run in runs])
    rival = scrapy_queues(30_000 if options.quick else 300_000)
    table(["Scrapy's own: urls", "us_per_page", "rss_mb", "disk_mb"], [[float(value) for value in rival.values()]])
    first, last = runs[0], runs[-1]
    # what grows from one size to the next is what a URL costs; the rest is the base
    grown = [(b["rss_mb"] - a["rss_mb"]) * 1e6 / (b["urls"] - a["urls"]) for a, b in itertools.pairwise(runs)]
    result(
        urls=int(last["urls"]), us_per_page=round(last["us_per_page"], 1),
        us_per_page_at={size: round(run["us_per_page"], 1) for size, run in zip(sizes, runs, strict=True)},
        growth=round(last["us_per_page"] / first["us_per_page"], 2),
        ram_bytes_per_url=round(grown[-1] if grown else last["rss_mb"] * 1e6 / last["urls"], 1),
        disk_bytes_per_url=round(last["disk_mb"] * 1e6 / last["waiting"], 1), reopen_s=round(last["reopen_s"], 2),
        take_p99_ms=round(last["take_p99_ms"], 3), cut_p99_ms=round(last["cut_p99_ms"], 2),
        drop_ms=round(last["drop_ms"], 3), scrapy_us_per_page=round(rival["us_per_page"], 1),
    )  # fmt: skip


if __name__ == "__main__":
    main()
