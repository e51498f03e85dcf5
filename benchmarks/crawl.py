"""How fast the whole crawl is: the real spider, everything on, intervals so short that the CPU is the bound.

    python -m benchmarks.crawl [CASE ...] [--quick]

    mini       the bundled miniature web; beside it plain Scrapy, naive and with trafilatura, and trafilatura's spider
    many       synthetic pages of 30 kB under 20,000 hosts, each over a fresh connection; beside it the naive crawler
    gzip       the same, compressed
    tls        the same with ten pages a host, over TLS and without in turn: the ratio of the main process' CPU
    slow       5,000 connections to servers that answer after 15 to 25 s
    idle       1,000 hosts wait for their turn: the share of a core that this takes
    instant    many, with workers that answer at once: the limit of one main process
    long       the same with small pages: the last page beside the 10,000th
    start      from the start of the process to the first request, with twelve languages
    first      many with the default intervals: from a host's first request to that of its first page

Without a case: all; --quick: mini, many and start with few pages.  CPU is that of all the crawl's processes from the
spider's opening to its end (the workers' start falls into that); the server's is not counted, but it shares the cores.
Requests and connections are counted by the server.  Lag: how late the event loop was, 20 times a second, and how much
of that is its own work at most.  ``ratio_naive`` is naive CPU a page / ours, on many.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import ROOT, Measured, connections_of, crawl, result, served, table
from spiderling.cluster.launcher import with_parent
from spiderling.frontier.site_files import SiteFile
from webs.synthetic import SyntheticWeb, read_words

FAST = {
    "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8",
    "SPIDERLING_HOST_INTERVAL_S": 0.02,
    "SPIDERLING_IP_INTERVAL_S": 0,
    "SPIDERLING_DELAY_FACTOR": 0,
    "CLOSESPIDER_TIMEOUT": 600,
    "METER_CONSTANTS": json.dumps(
        {"spiderling.engine.dispatcher.RAMP_UP_PER_S": 1000, "spiderling.frontier.intervals.RETRY_DELAY_S": 0.2}
    ),
}
HEAD = (
    "web", "crawler", "pages", "MB", "pages/s", "MB/s", "CPU ms/page", "main ms/page", "lag p99 ms", "own",
    "main RSS MB", "worker RSS MB", "requests/page", "connections/page",
)  # fmt: skip
INSTANT = {
    "ITEM_PIPELINES": json.dumps({"benchmarks.inside.InstantClean": 100, "spiderling.pipelines.CleanPipeline": None})
}
SLOW_CONNECTIONS, WAITING_HOSTS = 5000, 1000
TWELVE = "cs,sk,pl,en,de,fr,es,it,pt,nl,ru,uk"
_CASES = ("mini", "many", "tls", "gzip", "slow", "idle", "instant", "long", "start", "first")
_FILES = {file.value for file in SiteFile}
_CHANGES = {"many": ("--identity",), "gzip": (), "instant": ("--identity",)}
_QUICK = ("mini", "many", "start")
_MINIWEB, _PORTAL = str(ROOT / "examples/miniweb"), ["http://portal.test/"]

Row = tuple[object, ...]


class Ready(NamedTuple):
    """A served web, and how it is crawled."""

    hosts: str
    command: list[str]
    settings: dict[str, object]
    log: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(_CASES))
    parser.add_argument("--quick", action="store_true", help="few pages, and without a case three of them")
    parser.add_argument("--pages", type=int, help="of the crawls of ours")
    options = parser.parse_args()
    wanted = options.cases or (_QUICK if options.quick else _CASES)
    if unknown := set(wanted) - set(_CASES):
        parser.error(f"no such case: {', '.join(unknown)}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"load average at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    pages, naive_pages = (500, 150) if options.quick else (6000, 1500)
    rows, values = _crawls(wanted, options.pages or pages, naive_pages, 2000 if options.quick else 20_000)
    if rows:
        table(HEAD, rows)
    further = {"tls": _tls, "slow": _slow, "idle": _idle, "long": _long, "start": _start, "first": _first}
    for case, report in further.items():
        if case in wanted:
            values |= report(options)
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")
    result(**values)


def _crawls(wanted: Sequence[str], pages: int, naive_pages: int, hosts: int) -> tuple[list[Row], dict[str, float]]:
    rows: list[Row] = []
    values: dict[str, float] = {}
    if "mini" in wanted:
        runs = _measure((_MINIWEB,), _PORTAL, pages, naive_pages, ("naive", "naive_trafilatura"))
        rows += [_row("miniweb", who, run) for who, run in runs]
        if spider := _trafilatura_spider(naive_pages):
            rows.append(spider)
    for case, changes in _CHANGES.items():
        if case not in wanted:
            continue
        web = f"synthetic:{hosts}:1"
        rivals = ("naive",) if case == "many" else ()
        seeds = _web(hosts).seeds(hosts // 10)
        runs = _measure((web, *changes), seeds, pages, naive_pages, rivals, INSTANT if case == "instant" else {})
        rows += [_row(f"synthetic 30 kB, {case}", who, run) for who, run in runs]
        if case == "many":
            values |= _keys(runs[0][1], runs[1][1])
    return rows, values


def _keys(ours: Measured, naive: Measured) -> dict[str, float]:
    return {
        "pages_per_s": round(ours.pages / ours.wall_s, 1),
        "mb_per_s": round(ours.mb / ours.wall_s, 2),
        "cpu_ms_per_page": round(ours.cpu_ms_per_page, 2),
        "main_cpu_ms_per_page": round(ours.main_cpu_ms_per_page, 2),
        "lag_p99_ms": round(ours.lag_p99_ms, 1),
        "requests_per_page": round(ours.requests / ours.pages, 2),
        "connections_per_page": round(ours.connections / ours.pages, 2),
        "ratio_naive": round(naive.cpu_ms_per_page / ours.cpu_ms_per_page, 2),
    }


def _web(hosts: int) -> SyntheticWeb:
    return SyntheticWeb(hosts, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))


def _measure(
    web: Sequence[str], seeds: list[str], pages: int, naive_pages: int, rivals: Sequence[str] = (),
    further: Mapping[str, object] | None = None,
) -> list[tuple[str, Measured]]:  # fmt: skip
    """Ours over *pages*, then each rival over *naive_pages*, on the same server."""
    with _ready(web, seeds) as (hosts, command, settings, log):
        ours = _counted(log, command, {**FAST, **settings, "CLOSESPIDER_PAGECOUNT": pages, **(further or {})})
        runs = [("spiderling", ours)]
        for rival in rivals:
            spider = ["runspider", f"benchmarks/peers/{rival}.py", "-a", f"seeds={','.join(seeds[:200])}"]
            settings = {"CLOSESPIDER_PAGECOUNT": naive_pages, "CLOSESPIDER_TIMEOUT": 600, "ADDONS": "{}"}
            runs.append((rival, _counted(log, spider, settings, {"http_proxy": f"http://{_endpoint(hosts)}"})))
    return runs


def _counted(
    log: Path, spider: Sequence[str], settings: Mapping[str, object], environment: Mapping[str, str] | None = None
) -> Measured:
    """A crawl, with the requests and connections that the server of *log* has counted meanwhile."""
    requests, connections = _traffic(log)
    run = crawl(spider, settings, environment)
    requests_then, connections_then = _traffic(log)
    return replace(run, requests=requests_then - requests, connections=connections_then - connections)


def _traffic(log: Path) -> tuple[int, int]:
    """Requests answered and connections made up to now."""
    return log.read_bytes().count(b"\n"), connections_of(log).stat().st_size


@contextmanager
def _ready(web: Sequence[str], seeds: list[str]) -> Iterator[Ready]:
    """*web* is served."""
    with tempfile.TemporaryDirectory() as directory, served(*web, log=Path(directory, "access.tsv")) as hosts:
        seed_file = Path(directory, "seeds.txt")
        seed_file.write_text("\n".join(seeds))
        command = ["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seed_file}"]
        settings: dict[str, object] = {"SPIDERLING_HOSTS": hosts, "JOBDIR": f"{directory}/job"}
        yield Ready(hosts, command, settings, Path(directory, "access.tsv"))


def _endpoint(hosts: str) -> str:
    return re.search(r"=([0-9.]+:\d+)", hosts)[1]  # type: ignore[index]


def _row(web: str, who: str, run: Measured) -> Row:
    return (
        web, who, run.pages, run.mb, run.pages / run.wall_s, run.mb / run.wall_s, run.cpu_ms_per_page,
        run.main_cpu_ms_per_page, run.lag_p99_ms, run.own_lag_p99_ms, run.main_rss_mb, run.worker_rss_mb,
        run.requests / run.pages, run.connections / run.pages,
    )  # fmt: skip


def _trafilatura_spider(pages: int) -> Row | None:
    with served(_MINIWEB) as hosts:
        homepages = [f"http://{name}/" for name in re.findall(r"([a-z0-9.-]+)=", hosts)]
        command = [sys.executable, "benchmarks/peers/trafilatura_spider.py", _endpoint(hosts), str(pages), *homepages]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    run = json.loads(done.stdout)
    if not run["pages"]:
        return None
    per_page = 1000 * run["cpu_s"] / run["pages"]
    speed = run["pages"] / run["wall_s"], run["mb"] / run["wall_s"]
    return "miniweb", "trafilatura's spider", run["pages"], run["mb"], *speed, per_page, per_page, *[""] * 6


def _tls(options: argparse.Namespace) -> dict[str, float]:
    """Pairs of crawls of one web; the median of their ratios."""
    pages = options.pages or (500 if options.quick else 1500)
    seeds = _web(pages // 10).seeds(pages // 10)
    rows: list[Row] = []
    ratios = []
    for _ in range(3):
        (_, plain), *_ = _measure((f"synthetic:{pages // 10}:1", "--identity"), seeds, pages, 0)
        safe_seeds = [url.replace("http:", "https:") for url in seeds]
        (_, safe), *_ = _measure((f"synthetic:{pages // 10}:1", "--identity", "--tls"), safe_seeds, pages, 0)
        rows += [_row("ten pages a host", "http", plain), _row("ten pages a host", "https", safe)]
        ratios.append(safe.main_cpu_ms_per_page / plain.main_cpu_ms_per_page)
    table(HEAD, rows)
    return {"tls_ratio": round(sorted(ratios)[1], 3)}


def _slow(options: argparse.Namespace) -> dict[str, float]:
    """Every host is asked for its robots.txt and its first page."""
    number, hosts = (500, 5000) if options.quick else (SLOW_CONNECTIONS, 50_000)
    with _ready((f"synthetic:{hosts}:1:4000", "--late=15:25"), _web(hosts).seeds(number)) as (_, command, settings, _):
        many = {
            "CONCURRENT_REQUESTS": number, "SPIDERLING_ACTIVE_HOSTS": 2 * number, "CLOSESPIDER_TIMEOUT": 270,
        }  # fmt: skip
        run = crawl(command, {**FAST, **settings, **many})
    most = max(mark[4] for mark in run.marks)
    table(
        ("open at once", "pages", "failed", "main ms/page", *HEAD[8:11]),
        [(most, run.pages, sum(run.errors.values()), *_row("", "", run)[7:11])],
    )
    return {"slow_failed": sum(run.errors.values()), "slow_rss_mb": round(run.main_rss_mb, 1)}


def _idle(options: argparse.Namespace) -> dict[str, float]:
    """Hosts that were asked for their robots.txt, and must not be asked again while it lasts."""
    with _ready((f"synthetic:{10 * WAITING_HOSTS}:1",), _web(10 * WAITING_HOSTS).seeds(WAITING_HOSTS)) as ready:
        _, command, settings, _ = ready
        run = crawl(command, {**FAST, **settings, "SPIDERLING_HOST_INTERVAL_S": 3600, "CLOSESPIDER_TIMEOUT": 60})
    (_, began, cpu, *_), (_, ended, later, *_) = run.marks[len(run.marks) // 2], run.marks[-1]
    share = 100 * (later - cpu) / (ended - began)
    print(f"{WAITING_HOSTS} hosts wait: {share:.2f} % of a core over {ended - began:.0f} s, the meter included")
    return {"idle_percent": round(share, 2)}


def _long(options: argparse.Namespace) -> dict[str, float]:
    """CPU of a page and memory around the 10,000th page and at the end."""
    pages = options.pages or (2000 if options.quick else 100_000)
    hosts, early = pages // 5, pages // 10
    with _ready((f"synthetic:{hosts}:1:4000", "--identity"), _web(hosts).seeds(hosts // 10)) as ready:
        _, command, settings, _ = ready
        limits = {"CLOSESPIDER_PAGECOUNT": pages, "CLOSESPIDER_TIMEOUT": 3600}
        run = crawl(command, {**FAST, **settings, **INSTANT, **limits})
    spans = [_span(run, early // 2, 3 * early // 2), _span(run, pages - early, pages)]
    table(("pages", "main ms/page", "RSS MB"), [(early, *spans[0]), (pages, *spans[1])])
    return {"last_to_early": round(spans[1][0] / spans[0][0], 3)}


def _span(run: Measured, first: int, last: int) -> tuple[float, float]:
    """Main ms a page from page *first* to *last*, and resident MB at the end of it."""
    within = [mark for mark in run.marks if first <= mark[0] <= last]
    return 1000 * (within[-1][2] - within[0][2]) / (within[-1][0] - within[0][0]), within[-1][3]


def _start(options: argparse.Namespace) -> dict[str, float]:
    """The first run compiles the modules and is not counted."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        log, seeds = Path(directory, "access.tsv"), Path(directory, "seeds.txt")
        seeds.write_text("\n".join(_PORTAL))
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{directory}/compiled"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with served(_MINIWEB, log=log) as hosts:
            settings = {**FAST, "SPIDERLING_HOSTS": hosts, "LOG_LEVEL": "WARNING"}
            command = [sys.executable, "-m", "scrapy", "crawl", "spiderling", "-a", f"lang={TWELVE}"]
            command += ["-a", f"seeds={seeds}"]
            command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
            for number in range(4):
                rows.append(_until_first_request([*command, "-s", f"JOBDIR={directory}/{number}"], environment, log))
    wall_s, cpu_s = min(rows[1:])
    print(f"start to first request, best of 3: {wall_s:.2f} s, {cpu_s:.2f} s CPU of the main process")
    return {"start_s": round(wall_s, 2), "start_cpu_s": round(cpu_s, 2)}


def _until_first_request(command: list[str], environment: Mapping[str, str], log: Path) -> tuple[float, float]:
    """Wall and CPU seconds."""
    before = log.read_text().count("\n")
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, preexec_fn=with_parent(signal.SIGTERM))
    while len(lines := log.read_text().splitlines()) == before and process.poll() is None:
        time.sleep(0.02)
    ticks = sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    process.terminate()
    process.wait()
    return min(float(line.split("\t")[0]) for line in lines[before:]) - began, ticks / os.sysconf("SC_CLK_TCK")


def _first(options: argparse.Namespace) -> dict[str, float]:
    """Polite crawls are slow, so a few hundred pages must do."""
    pages = options.pages or (200 if options.quick else 600)
    with _ready(("synthetic:20000:1", "--identity"), _web(20_000).seeds(pages // 2)) as (_, command, settings, log):
        polite = {name: value for name, value in FAST.items() if not name.endswith(("INTERVAL_S", "DELAY_FACTOR"))}
        crawl(command, {**polite, **settings, "CLOSESPIDER_PAGECOUNT": pages})
        waits = sorted(_waits(log))
    median, tenth = waits[len(waits) // 2], waits[9 * len(waits) // 10]
    print(f"{len(waits)} hosts: first page {median:.1f} s after the first request (median; one in ten {tenth:.1f} s)")
    return {"first_page_s": round(median, 1), "first_page_p90_s": round(tenth, 1)}


def _waits(log: Path) -> Iterator[float]:
    """Seconds from a host's first request to that of its first page, by host."""
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    began: dict[str, float] = {}
    waited: set[str] = set()
    for time_s, _, host, _, path, *_ in sorted(lines, key=lambda line: float(line[0])):
        began.setdefault(host, float(time_s))
        if path not in _FILES and host not in waited:
            waited.add(host)
            yield float(time_s) - began[host]


if __name__ == "__main__":
    main()
