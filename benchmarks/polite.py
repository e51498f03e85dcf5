"""Whether the crawler keeps its manners: the access log of real servers, and the suite of hostile ones.

    python benchmarks/polite.py [--quick]

(a) The real spider crawls sites that redirect to each other, answer 429 and 503, ask for a
Crawl-delay, answer late or under www and without, twelve names on each of six addresses.
Every pair of requests that follow each other at a host or at an address is held to the
interval, but for TOLERANCE_S: the crawler counts from the opening of a connection, the log
from the arrival of the request there.  (b) All cases of tests/web/hostile.py in one crawl.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/web")]

from conftest import Crawl, page, serving  # noqa: E402  (the helpers of the tests are no package)
from hostile_crawl import crawl_all, failures  # noqa: E402

from benchmarks.common import arguments, result, table  # noqa: E402
from spiderling.simulation.web import WebResponse, not_found, plain, redirect, unavailable  # noqa: E402

HOSTS, ADDRESSES, PAGES = 72, 6, 400
HOST_INTERVAL_S, IP_INTERVAL_S, CRAWL_DELAY_S = 0.5, 0.03, 1.2
TOLERANCE_S = 0.025


class Sites:
    """Sites h0 to h71, each with PAGES pages; the number of a host and of a page decide how it answers."""

    def hosts(self) -> dict[str, str]:
        names = [(f"{www}h{number}.test", number) for number in range(HOSTS) for www in ("", "www.")]
        return {name: f"127.84.40.{1 + number % ADDRESSES}" for name, number in names}

    globs = hosts

    def respond(self, host: str, path: str) -> WebResponse:
        number = int(host.removeprefix("www.")[1:].partition(".")[0])
        if path == "/robots.txt":
            return plain(f"User-agent: *\nCrawl-delay: {CRAWL_DELAY_S}\n") if is_slowed(number) else not_found()
        if number % 7 == 1 and not host.startswith("www."):
            return redirect(f"http://www.{host}{path}")
        n = int(path.strip("/") or 0)
        if n % 9 == 4:
            return redirect(f"http://h{(number + n) % HOSTS}.test/{n + 1}", status=302)
        if n % 23 == 7:
            return unavailable(1, status=429 if number % 2 else 503)
        links = [f"/{(3 * n + step) % PAGES}" for step in range(1, 6)]
        answer = page(f"{number} {n}", *links, f"http://h{(number * 5 + n) % HOSTS}.test/{n}")
        return WebResponse(200, answer.headers, answer.body, delay_s=0.3 if number % 11 == 3 else 0.0)


def is_slowed(number: int) -> bool:
    return number % 5 == 2


class Spacing(NamedTuple):
    """What the log says of hosts, or of addresses."""

    groups: int
    pairs: int
    violations: int
    worst_s: float
    """By how much the closest pair was closer than its interval; negative: it was farther apart."""


def spacing(entries: Iterable[Any], by: str) -> Spacing:
    """Each two requests in a row of one host or address, against the interval that holds there."""
    groups = defaultdict(list)
    for entry in entries:
        groups[entry.address if by == "address" else entry.host.removeprefix("www.")].append(entry)
    short = [
        _interval_s(key, by, first) - (second.time_s - first.time_s)
        for key, group in groups.items()
        for first, second in itertools.pairwise(sorted(group, key=lambda entry: entry.time_s))
    ]
    return Spacing(len(groups), len(short), sum(value > TOLERANCE_S for value in short), max(short))


def _interval_s(key: str, by: str, first: Any) -> float:
    if by == "address":
        return IP_INTERVAL_S
    # from the answer on that says so
    return CRAWL_DELAY_S if is_slowed(int(key[1:].partition(".")[0])) else HOST_INTERVAL_S


def main() -> None:
    options = arguments(__doc__)
    seconds = 15 if options.quick else 120
    with tempfile.TemporaryDirectory() as directory:
        with serving(Sites()) as server:
            crawl = Crawl(
                Path(directory, "polite"), server, HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=IP_INTERVAL_S,
                DELAY_FACTOR=1, RETRIES=2, TRAP_PAGES=0, TRAP_COPIES=0, TRAP_MIRROR=0, CLOSESPIDER_TIMEOUT=seconds,
                DEDUP="off", STOP_TIMEOUT_S=1,
            )  # fmt: skip
            crawl.run(",".join(f"http://h{number}.test/" for number in range(HOSTS)), timeout=seconds + 120)
            entries = list(server.log_entries)
        hosts, addresses = spacing(entries, "host"), spacing(entries, "address")
        table(("", "number", "pairs of requests", "too close", "worst by ms"), [
            [name, found.groups, found.pairs, found.violations, round(1000 * found.worst_s, 1)]
            for name, found in (("hosts", hosts), ("addresses", addresses))
        ])  # fmt: skip
        statuses = defaultdict(int)
        for entry in entries:
            statuses[entry.status] += 1
        print("answers", dict(sorted(statuses.items())))
        cases = failures(crawl_all(Path(directory, "hostile")))
    for name, lines in cases.items():
        for line in lines:
            print(f"hostile case {name}: {line}")
    result(
        requests=len(entries), host_violations=hosts.violations, ip_violations=addresses.violations,
        hostile_cases=len(cases), hostile_failed=sum(map(bool, cases.values())),
    )  # fmt: skip


if __name__ == "__main__":
    main()
