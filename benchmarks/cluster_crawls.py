"""What whole crawls cost as one process, as one shard, and as two shards whose links lead to each other by half.

The crawls of one round take turns, so that the machine's load is the same for all; CPU is that of all processes, the
workers and Redis among them, but not that of the servers.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from redis_server import RedisServer

from benchmarks.cluster_costs import cpu_of
from benchmarks.common import METER, ROOT, served
from benchmarks.linkedweb import LinkedWeb

OUTSIDE = 57
"""Links of a page to other hosts, half of which are of the other of two shards, beside three to its own."""
_SETTINGS = {
    "ALLOW_NETWORKS": "127.0.0.0/8", "STRATEGY": "bfs", "HOST_INTERVAL_S": 0.05, "IP_INTERVAL_S": 0,
    "DELAY_FACTOR": 0, "RAMP_UP_PER_S": 1000, "DEDUP": "off", "TRAPS": "off", "YIELD_PROFILE": "off",
    "OPTOUTS": "tdm-file=ignore,ai-txt=ignore", "CONTACT": "test@corpus.internal", "WORKERS": 1,
}  # fmt: skip


class Crawled(NamedTuple):
    """One crawl of all its processes."""

    ms_per_page: float
    pages: int
    redis_s: float
    rss_mb: list[float]
    """Of each main process at most."""


def crawled(hosts: int, pages: int, shards: int) -> Crawled:
    """Crawl a linked web whole; *shards* 0: without."""
    web = f"linked:{hosts}:{pages}:{OUTSIDE}"
    with tempfile.TemporaryDirectory() as directory, served(web, "--identity") as names:
        seeds = Path(directory, "seeds.txt")
        seeds.write_text("\n".join(LinkedWeb(hosts, pages).url(number, 0) for number in range(hosts)))
        server = RedisServer() if shards else None
        try:
            given = {**_SETTINGS, "HOSTS": names}
            if server is not None:
                given |= {"CLUSTER": server.url, "SHARDS": shards}
            meters = [Path(directory, f"meter{number}.json") for number in range(shards or 1)]
            running = [subprocess.Popen(_command(seeds, Path(directory, "cs"), given, meter), cwd=ROOT,
                                        env={**os.environ, "PYTHONPATH": _path()}) for meter in meters]  # fmt: skip
            if any([one.wait() for one in running]):
                sys.exit("a crawl failed")
            redis_s = cpu_of(server) if server is not None else 0.0
        finally:
            if server is not None:
                server.close()
        told = [json.loads(meter.read_text()) for meter in meters]
    number = sum(one["pages"] for one in told)
    cpu_s = redis_s + sum(one["main_cpu_s"] + one["worker_cpu_s"] for one in told)
    return Crawled(1000 * cpu_s / number, number, redis_s, [one["main_rss_mb"] for one in told])


def _path() -> str:
    return os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])


def _command(seeds: Path, directory: Path, given: dict[str, object], meter: Path) -> list[str]:
    settings = {f"SPIDERLING_{name}": value for name, value in given.items()}
    settings |= {"JOBDIR": directory, "EXTENSIONS": json.dumps(METER), "METER_FILE": meter, "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "scrapy", "crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"]
    return [*command, *(part for name, value in settings.items() for part in ("-s", f"{name}={value}"))]


class Ratios(NamedTuple):
    """Medians over the rounds."""

    one_cpu: float
    two_cpu: float
    rounds: list[tuple[float, float, float]]
    """CPU milliseconds a page: without shards, one shard, two shards."""
    rss_of_four_mb: list[float]


def ratios(rounds: int, hosts: int, pages: int) -> Ratios:
    """CPU a page beside that of a crawl without shards."""
    found = []
    for _ in range(rounds):
        plain, one, two = (crawled(hosts, pages, shards) for shards in (0, 1, 2))
        print(f"round: {plain}, {one}, {two}", flush=True)
        found.append((plain.ms_per_page, one.ms_per_page, two.ms_per_page))
    four = crawled(hosts, pages, 4)
    one_cpu = statistics.median(one / plain for plain, one, _ in found)
    two_cpu = statistics.median(two / plain for plain, _, two in found)
    return Ratios(one_cpu, two_cpu, found, four.rss_mb)
