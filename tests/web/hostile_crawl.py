"""The crawl of all hostile cases at once, beside good hosts, for the test and for benchmarks/polite.py.

crawled = crawl_all(directory)
failures(crawled)           # case -> what ended otherwise than it should; all cases are keys
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from contextlib import closing, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import hostile_answers
import hostile_pages
from conftest import Crawl, Result, page, serving
from hostile import CASES, NETWORK, Case, HostileWeb, hosting
from hostile_names import NamesWeb, naming

from spiderling.base.reasons import Reason
from spiderling.frontier.storage.url_log import unpack_ends
from webs.web import FixedWeb

CONSTANTS = {
    "frontier.intervals.MAX_PAUSE_S": 1,
    "fetch.resolver.MIN_TTL_S": 1,
    "fetch.resolver.TIMEOUT_S": 1,
    "engine.download_handler.FIRST_BYTE_TIMEOUT_S": 5,
    "engine.download_handler.SLOW_WINDOW_S": 3,
    "frontier.intake.MAX_PATH_DEPTH": 20,
}
"""Limits that are soon reached."""
REGISTERED = (hostile_answers, hostile_pages)  # modules that put their cases into CASES
GOOD_PAGES = 12
GOOD = {
    f"good{number}.test": {
        "/": page(f"good {number}", *(f"/{n}" for n in range(1, GOOD_PAGES))),
        **{f"/{n}": page(f"good {number} {n}") for n in range(1, GOOD_PAGES)},
    }
    for number in range(5)
}


class Crawled(NamedTuple):
    crawl: Crawl
    result: Result
    web: HostileWeb
    names: NamesWeb
    ends: dict[str, str]
    """URL -> Reason, of every URL that had an end of its own; host -> Reason, if its whole queue was given up."""
    main_mb: float
    worker_mb: float
    seconds: float


class Memory(threading.Thread):
    """Largest resident set of a process, and of any process under it, in MB; looked at while it runs (Linux)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.main_mb = self.worker_mb = 0.0
        self._pid = pid

    def run(self) -> None:
        with suppress(OSError):
            while mb := peak_mb(self._pid):
                self.main_mb = max(self.main_mb, mb)
                self.worker_mb = max([self.worker_mb, *map(peak_mb, under(self._pid))])
                time.sleep(0.2)


def peak_mb(pid: int) -> float:
    """VmHWM; 0 when the process has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        found = None
    return int(found[1]) / 1000 if found else 0.0


def under(pid: int) -> list[int]:
    """Children of a process, and theirs."""
    children = [
        int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
    ]
    return children + [deeper for child in children for deeper in under(child)]


def ends_of(directory: Path) -> dict[str, str]:
    with closing(sqlite3.connect(f"file:{directory}/state/frontier.sqlite?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT keys, ends FROM ended ORDER BY batch").fetchall()
        purged = connection.execute("SELECT name, reason FROM purged JOIN host ON host.id = purged.host").fetchall()
    return {end.url: end.reason for row in rows for end in unpack_ends(*row)} | dict(purged)


def crawl_all(directory: Path) -> Crawled:
    """Crawl every case and the good hosts into *directory*; raises AssertionError if it does not end well."""
    seeds = directory.with_name("seeds.txt")
    addresses = {host: f"127.84.98.{number + 10}" for number, host in enumerate(GOOD)}
    with serving(FixedWeb(GOOD, addresses)) as server, hosting(CASES) as web, naming() as names:
        seeds.write_text("\n".join([*web.urls_of_seeds(), *names.urls_of_seeds(), *(f"http://{g}/" for g in GOOD)]))
        crawl = Crawl(
            directory, server, HOSTS=f"{server.hosts_option},{web.hosts_option}", NAMESERVERS=names.nameservers,
            ALLOW_NETWORKS=f"{NETWORK},::1/128", PORTS=f"80,443,8080,{names.port}",
            TIMEOUT_S=12, CONSTANTS=CONSTANTS, LOG_LEVEL="INFO",
        )  # fmt: skip
        begin = time.monotonic()
        running = crawl.start(str(seeds))
        memory = Memory(running.process.pid)
        memory.start()
        result = running.wait()
        seconds = time.monotonic() - begin
        memory.join(5)
        assert result.code == 0, result.output[-6000:]
        return Crawled(crawl, result, web, names, ends_of(directory), memory.main_mb, memory.worker_mb, seconds)


def failures(crawled: Crawled) -> dict[str, list[str]]:
    """Each case, with a line for each of its URLs that did not end as it should, and for requests beyond its bound."""
    cases = {name: {case.url(path): reason for path, reason in case.ends.items()} for name, case in CASES.items()}
    for name, case in crawled.names.cases.items():
        cases[f"name {name}"] = {crawled.names.url(name, where): reason for where, reason in case.ends.items()}
    found = {
        name: [line for url, reason in ends.items() for line in _wrong_end(crawled, url, reason)]
        for name, ends in cases.items()
    }
    for case in CASES.values():
        found[case.name] += _not_left(crawled, case)
    return found


def summary(crawled: Crawled) -> str:
    """One line: cases, failures, time and memory."""
    found = failures(crawled)
    return (
        f"{len(found)} hostile cases, {sum(map(bool, found.values()))} failed, beside {len(GOOD)} good hosts: "
        f"{crawled.seconds:.0f} s, main process {crawled.main_mb:.0f} MB, largest worker {crawled.worker_mb:.0f} MB"
    )


def _wrong_end(crawled: Crawled, url: str, expected: Reason | tuple[Reason, ...]) -> list[str]:
    allowed = {reason.value for reason in (expected if isinstance(expected, tuple) else (expected,))}
    found = crawled.ends.get(url) or crawled.ends.get(urlsplit(url).netloc, "no end")
    return [] if found in allowed else [f"{url[:100]}: {found}, not {' or '.join(sorted(allowed))}"]


def _not_left(crawled: Crawled, case: Case) -> list[str]:
    """Whether a trap was fallen into, or not noticed."""
    lines, number = [], sum(name == case.name for name, _ in crawled.web.requests)
    if case.max_requests is not None and number > case.max_requests:
        lines.append(f"{number} requests, more than {case.max_requests}")
    hosts = [(urlsplit(url).netloc or url, reason) for url, reason in crawled.ends.items()]
    of_case = {reason for host, reason in hosts if any(fnmatch(host, pattern) for pattern in case.hosts)}
    if case.found is not None and case.found.value not in of_case:
        lines.append(f"ends are {', '.join(sorted(of_case))}; none is {case.found.value}")
    return lines
