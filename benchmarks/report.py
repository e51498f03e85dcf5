"""How long ``scrapy report`` takes on a crawl of many hosts, how large the page is, and what it costs in memory.

    python benchmarks/report.py [--quick] [--hosts N] [--keep DIR]

The state is made: host sizes and yields spread as in Suchomel & Pomikálek 2012, Table 1 (log-normal), states by the
default threshold, a history of thirty days, 475 seeds and a trail of ten URLs a host.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import result, table
from spiderling.base.urls import url_key
from spiderling.frontier.host_closing import threshold
from spiderling.frontier.storage.protocol import TICK_S, Changes, HistoryRow, HostRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import End, UrlLogBatch

SEEDS, TLDS, DAY_S = 475, ("cz",) * 6 + ("com", "sk", "org", "eu"), 86400
BEGUN = 1_790_000_000.0


def make_state(directory: Path, hosts: int, seed: int = 1) -> None:
    """A crawl's directory with so many hosts; the corpus is empty, since a report does not read it."""
    rng = random.Random(seed)
    (directory / "state").mkdir(parents=True)
    (directory / "corpus").mkdir()
    rows = [_host(rng, number) for number in range(1, hosts + 1)]
    sums = {name: sum(getattr(row, name) for row in rows) for name in ("pages", "documents", "words")}
    sums |= {name: sum(getattr(row, name) for row in rows) for name in ("downloaded_bytes", "kept_bytes")}
    counts = {f"total/{name}": number for name, number in sums.items()} | {
        "total/time_s": 30 * DAY_S, "total/bound/politeness": 40_000, "total/bound/hosts": 3_000,
        "end/kept": sums["documents"], "end/wrong-language": sums["pages"] - sums["documents"],
        "language/cs": sums["documents"], "fact/words/cs": sums["words"], "fact/encoding/utf-8": sums["documents"],
        "discovered": 3 * sums["pages"], "waiting": 2 * sums["pages"],
    }  # fmt: skip
    with closing(SqliteStore(directory / "state/frontier.sqlite")) as store:
        store.commit(Changes(hosts=rows, counts=counts, meta={"created": str(BEGUN), "options": '{"lang": "cs"}'}))
        for step in range(4000):
            store.commit(Changes(history=_history(step / 4000, sums, hosts)))
        for start in range(0, hosts, 64):
            store.commit(Changes(url_log=_trail(rows[start : start + 64])))


def _host(rng: random.Random, number: int) -> HostRow:
    pages = max(1, int(rng.lognormvariate(2.5, 2)))
    down = pages * rng.randint(5_000, 80_000)
    rate = min(0.6, rng.lognormvariate(-4.5, 2)) if rng.random() < 0.6 else 0.0
    documents = min(pages, round(pages * rate * 4))
    is_retired = pages >= 8 and down > 512_000 and rate < threshold(pages, 0.005)
    left = rng.randint(0, 400)
    return HostRow(
        number, f"host{number}.{rng.choice(TLDS)}", "retired" if is_retired else rng.choice(("ready", "exhausted")),
        0 if number <= SEEDS else rng.randint(1, 9), pages, documents, int(down * rate / 7), down, int(down * rate),
        0 if is_retired else left, left if is_retired else 0, 0.0, 0.0, 1.0, 0, 0, "", "", b"", None,
    )  # fmt: skip


def _history(part: float, sums: dict[str, int], hosts: int) -> HistoryRow:
    time_s, grown = int(30 * DAY_S * part), part**0.7
    totals = (int(sums[name] * grown) for name in ("pages", "documents", "words", "downloaded_bytes"))
    now, kept = BEGUN + time_s, int(sums["kept_bytes"] * part**0.6)
    return HistoryRow(int(now // TICK_S), now, time_s, *totals, kept, 0, 0, int(hosts * grown), 500, 100)


def _trail(rows: list[HostRow]) -> UrlLogBatch:
    urls = [(row, f"http://{row.name}/{page}") for row in rows for page in range(10)]
    ends = [End(url_key(row.id, url), url, "bad-quality" if url.endswith("3") else "kept", 0, 0) for row, url in urls]
    is_seed = [row.id <= SEEDS and url.endswith("/0") for row, url in urls]
    pages = [(0 if seed else 1, 1) for seed in is_seed]
    return UrlLogBatch(BEGUN, ends, [end.key for end in ends], pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 hosts")
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="where to leave the state and the page")
    parser.add_argument("--data", help="not needed")
    options = parser.parse_args()
    hosts = 10_000 if options.quick else options.hosts
    with nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory() as name:
        directory = Path(name, "crawl")
        make_state(directory, hosts)
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "scrapy", "report", str(directory)], check=True)
        elapsed, usage = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        measured = {
            "hosts": hosts, "seconds": round(elapsed, 1), "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
            "page_mb": round((directory / "report.html").stat().st_size / 1e6, 1),
            "peak_mb": round(usage.ru_maxrss / 1024),
        }  # fmt: skip
    table(list(measured), [list(measured.values())])
    result(**measured)


if __name__ == "__main__":
    main()
