"""Whether the crawler keeps its manners: the access log of real servers, and the suite of hostile ones.

    python benchmarks/polite.py [--quick]

(a) The real spider crawls the sites of tests/web/politeness_web.py, over http and https: they
redirect to each other, answer 429 and 503, ask for a Crawl-delay, answer late or under www and
without, twelve hosts on each of six addresses.  Every two connections that follow each other
at a host or at an address are held to the interval, by the crawler's own log of them, but for
TOLERANCE_S; and the arrivals in the servers' access logs, which are not the starts, but for
ARRIVAL_S.  (b) All cases of tests/web/hostile.py in one crawl.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/web")]

from conftest import Crawl, serving  # noqa: E402  (the helpers of the tests are no package)
from hostile_crawl import crawl_all, failures  # noqa: E402
from politeness_web import HOST_INTERVAL_S, IP_INTERVAL_S, Sites, read_starts, serve_both, spacing  # noqa: E402
from startlog import EXTENSIONS  # noqa: E402

from benchmarks.common import arguments, result, table  # noqa: E402

TOLERANCE_S, ARRIVAL_S = 0.002, 0.025


def main() -> None:
    options = arguments(__doc__)
    seconds = 15 if options.quick else 120
    with tempfile.TemporaryDirectory() as directory:
        sites, log = Sites(), Path(directory, "starts.tsv")
        with serving(sites, serve_both) as server:
            crawl = Crawl(
                Path(directory, "polite"), server, HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=IP_INTERVAL_S,
                DELAY_FACTOR=1, RETRIES=2, TRAPS="pages=0,copies=0,mirror=0", CLOSESPIDER_TIMEOUT=seconds,
                DEDUP="off", CONSTANTS={"engine.dispatcher.STOP_TIMEOUT_S": 1}, EXTENSIONS=EXTENSIONS, LOG_STARTS=log,
            )  # fmt: skip
            crawl.run(sites.seeds(), timeout=seconds + 120)
            entries = list(server.log_entries)
        starts, lags = read_starts(log, entries)
        rows = [
            [f"{what}, by {by}", *spacing(lines, by, tolerance_s)]
            for what, lines, tolerance_s in (("starts", starts, TOLERANCE_S), ("arrivals", entries, ARRIVAL_S))
            for by in ("host", "address")
        ]
        table(("", "number", "pairs", "too close", "worst by ms"), [
            [*row[:4], round(1000 * row[4], 1)] for row in rows
        ])  # fmt: skip
        print("answers", dict(sorted(Counter(entry.status for entry in entries).items())))
        print(f"from start to arrival: {1000 * statistics.median(lags):.0f} ms, at most {1000 * max(lags):.0f}")
        cases = failures(crawl_all(Path(directory, "hostile")))
    for name, lines in cases.items():
        for line in lines:
            print(f"hostile case {name}: {line}")
    result(
        requests=len(entries), host_violations=rows[0][3], ip_violations=rows[1][3],
        hostile_cases=len(cases), hostile_failed=sum(map(bool, cases.values())),
    )  # fmt: skip


if __name__ == "__main__":
    main()
