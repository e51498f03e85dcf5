"""Nothing is lost and nothing twice: whole crawls killed again and again, compared with one that never was.

    python -m benchmarks.faults [--quick]

A real spider crawls a web on loopback in processes of its own.  They are killed with
SIGKILL from outside at random moments (the main process, a worker, all at once, while it
starts) and from inside at the points of inside.py: while they start, recover, write
and sync a segment, begin a new one, and before, in and after the transaction.  When a
crawl was killed often enough it runs to its end; then documents and their text, ends,
host counters and files are compared with those of the crawl that nothing disturbed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from conftest import Crawl, page, pages_asked, serving

from benchmarks.common import arguments, result, table
from benchmarks.inside import POINTS
from spiderling.corpus.warc import records
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection, links_of_crawl
from webs.web import FixedWeb, html, plain, redirect

OUTSIDE = ("main", "worker", "all", "start-up")
KINDS = (*OUTSIDE, *POINTS)
HOSTS = [f"h{number}.test" for number in range(5)]
SEEDS = " ".join(f"http://{host}/" for host in HOSTS[:2])
ADDRESSES = {host: f"127.84.1.{number}" for number, host in enumerate(HOSTS, 1)}
SETTINGS = {
    "HOST_INTERVAL_S": 0.12,
    "IP_INTERVAL_S": 0.02,
    "CONSTANTS": {"crawl.crawl.SEGMENT_BYTES": 4000},  # so that a kill meets the change of segments
    "LINKS": "on",
    "WARC": "on",
    "EXTENSIONS": json.dumps({"benchmarks.inside.FaultLayer": 1}),
}
_PATIENCE_S = 30.0
_REQUESTS = 25
"""A session in which the wanted point was not met after so many requests is killed all the same."""


def linked_web(pages: int = 14) -> FixedWeb:
    """Hosts that link to their own pages and to the next host; with redirects, errors, hubs and robots.txt."""
    sites = {}
    for number, host in enumerate(HOSTS):
        following = f"http://{HOSTS[(number + 1) % len(HOSTS)]}/"
        texts = {f"/{n}": page(f"{host}{n}", f"/{n + 1}", f"/{n + 5}", "/gone", "/moved") for n in range(pages)}
        hub = html('<a href="/0">a</a><a href="/7">b</a><a href="/private">c</a>')
        sites[host] = {
            **texts,
            "/": page(f"{host} index", "/hub", "/3", following),
            "/hub": hub,
            "/moved": redirect("/9"),
            "/robots.txt": plain("User-agent: *\nDisallow: /private"),
        }
    return FixedWeb(sites, ADDRESSES)


def children(pid: int) -> list[int]:
    """The processes that *pid* has started: the text workers."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


def kill(pid: int) -> int:
    """SIGKILL; returns 1 if there was such a process."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return 1
    return 0


def session(crawl: Crawl, server, kind: str, rng: random.Random) -> int:  # type: ignore[no-untyped-def]
    """Start *crawl* and kill it as *kind* says; returns the number of kills: 0 if it came to its end before."""
    before = len(server.log_entries)
    fault = {"FAULT": f"{kind}:{rng.randint(1, 1 if kind in ('lock', 'load', 'recover', 'restore') else 4)}"}
    running = crawl.start(SEEDS, **(fault if kind in POINTS else {}))
    if kind == "start-up":
        time.sleep(rng.uniform(0.2, 2.0))
    else:
        enough = before + (_REQUESTS if kind in POINTS else rng.randrange(2, 14))
        deadline = time.monotonic() + _PATIENCE_S
        while running.process.poll() is None and len(server.log_entries) < enough and time.monotonic() < deadline:
            time.sleep(0.005)
    kills = _kill_from_outside(running.process.pid, kind, rng) if running.process.poll() is None else 0
    code = running.process.wait(_PATIENCE_S)
    return kills or int(code == -signal.SIGKILL)


def _kill_from_outside(pid: int, kind: str, rng: random.Random) -> int:
    kills, workers = 0, children(pid)
    if kind == "worker" and workers:
        kills += kill(rng.choice(workers))
        time.sleep(rng.uniform(0, 1.5))
    elif kind == "all":
        rng.shuffle(workers)
        kills += sum(kill(worker) for worker in workers)
    return kills + kill(pid)


def differences(crawl: Crawl, reference: Crawl) -> list[str]:
    """What is not as in the crawl that nothing disturbed; documents apart, see ``documents_of``."""
    found = []
    state, expected = crawl.state(), reference.state()
    for name, ours, theirs in (
        ("host counters", state.counters(), expected.counters()),
        ("ends", state.ends, expected.ends),
        ("discovered", state.counts["discovered"], expected.counts["discovered"]),
        ("links", links_of(crawl), links_of(reference)),
        ("archived pages", archived(crawl), archived(reference)),
        ("documents by the segments", sum(n for _, n in state.segments.values()), len(reference.documents())),
    ):
        if ours != theirs:
            found.append(f"{name}: {ours} instead of {theirs}")
    with closing(Inspection(crawl.directory)) as opened:
        found += problems(opened)
    return found


def links_of(crawl: Crawl) -> list[tuple[object, ...]]:
    """The lines of the link output, but for their times."""
    return sorted(line._replace(time=0.0) for line in links_of_crawl(crawl.directory))


def archived(crawl: Crawl) -> Counter[tuple[str, str]]:
    """(URL, digest of the payload) of each response in the archive; robots.txt may be asked again after a kill."""
    captures = (
        record.headers
        for path in sorted((crawl.directory / "warc").glob("*.warc.gz"))
        for record in records(path, path.stat().st_size)
        if record.is_capture
    )
    found = Counter((headers["warc-target-uri"], headers["warc-payload-digest"]) for headers in captures)
    return Counter({key: number for key, number in found.items() if not key[0].endswith("/robots.txt")})


def documents_of(crawl: Crawl) -> Counter[tuple[str, str]]:
    """(URL, digest of the text) of each document, with its number."""
    return Counter((document.url, document.digest) for document in crawl.documents())


def asked(server, start: int) -> int:  # type: ignore[no-untyped-def]
    """Requests for pages since the *start*-th entry of the log."""
    return len(pages_asked(server.log_entries[start:]))


def interrupted(crawl: Crawl, server, pause_s: float) -> list[str]:  # type: ignore[no-untyped-def]
    """SIGTERM, SIGINT twice, then SIGSTOP for *pause_s*; what went wrong."""
    found = []
    for name, signals in (("SIGTERM", [signal.SIGTERM]), ("SIGINT twice", [signal.SIGINT] * 2)):
        before, running = len(server.log_entries), crawl.start(SEEDS)
        running.until(lambda before=before: len(server.log_entries) > before + 12)  # type: ignore[misc]
        for number in signals:
            running.process.send_signal(number)
            time.sleep(0.1)
        ended = running.wait()
        if len(signals) == 1 and ended.code != 0:  # twice: the user wants no clean end
            found.append(f"{name}: exit code {ended.code}")
    before, running = len(server.log_entries), crawl.start(SEEDS)
    running.until(lambda: len(server.log_entries) > before + 12)
    running.process.send_signal(signal.SIGSTOP)
    time.sleep(pause_s)
    running.process.send_signal(signal.SIGCONT)
    if "is finished." not in running.wait().output:
        found.append("SIGSTOP: the crawl did not finish")
    return found


def main() -> None:
    options = arguments(__doc__)
    wanted, pause_s, most = (8, 2.0, 8) if options.quick else (200, 60.0, 24)
    rng = random.Random(1)
    kinds = rng.sample(KINDS, len(KINDS))
    kills: Counter[str] = Counter()
    again: Counter[str] = Counter()
    lost = duplicated = crawls = 0
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name, serving(linked_web()) as server:
        reference = Crawl(Path(name, "reference"), server, **SETTINGS)
        reference.run(SEEDS)
        expected, needed = documents_of(reference), asked(server, 0)
        turn = 0
        while kills.total() < wanted or crawls == 0:
            crawls += 1
            crawl, before = Crawl(Path(name, f"crawl{crawls}"), server, **SETTINGS), len(server.log_entries)
            count = 0
            while count < most:
                kind = kinds[turn % len(kinds)]
                turn += 1
                killed = session(crawl, server, kind, rng)
                kills[kind] += killed
                count += killed
                if not killed:
                    break
            crawl.run(SEEDS)
            ours = documents_of(crawl)
            lost += sum((expected - ours).values())
            duplicated += sum((ours - expected).values())
            again["requests"] += asked(server, before) - needed
            wrong += [f"crawl {crawls}: {line}" for line in differences(crawl, reference)]
        crawl = Crawl(Path(name, "signals"), server, **SETTINGS)
        wrong += interrupted(crawl, server, pause_s) + differences(crawl, reference)
        lost += sum((expected - documents_of(crawl)).values())
    table(("killed", "kills"), [*((kind, kills[kind]) for kind in KINDS), ("all", kills.total())])
    per_kill = again["requests"] / max(kills.total(), 1)
    print(f"{crawls} crawls of {needed} pages, and one with signals; {per_kill:.2f} pages fetched again for each kill")
    print("\n".join(wrong) or "everything else as in the crawl that nothing disturbed")
    result(kills=kills.total(), lost=lost, duplicated=duplicated, refetched=again["requests"], wrong=len(wrong))
    sys.exit(1 if lost or duplicated or wrong else 0)


if __name__ == "__main__":
    main()
