"""What the benchmark scripts share: a served web, a measured crawl, a table, the RESULT line."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from spiderling.base.terminal import markdown_table
from spiderling.cluster.launcher import with_parent
from spiderling.corpus.links import LinkLine
from spiderling.jobdir.inspection import links_of_crawl
from spiderling.text.steps import choose

ROOT = Path(__file__).resolve().parent.parent
_OPTIMISING = ("--enable-optimizations", "--with-lto")
"""Options of Python's own build."""
METER = {"benchmarks.meter.Meter": 1000}  # after Progress, which sets the stats


@dataclass(frozen=True, slots=True)
class Measured:
    """One crawl; CPU of all its processes, the server's not among them."""

    pages: int
    mb: float
    kept_mb: float
    wall_s: float
    cpu_s: float
    main_cpu_s: float
    main_rss_mb: float
    words: int = 0
    worker_rss_mb: float = 0.0
    lags_ms: tuple[float, ...] = ()
    own_ms: tuple[float, ...] = ()
    """How late the event loop was, 20 times a second, and how much of that is its own work at most."""
    marks: tuple[tuple[int, float, float, float, int], ...] = ()
    """Pages, seconds, CPU seconds, resident MB of the main process and requests in work, once a second."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Requests that ended without an answer, by reason."""
    requests: int = 0
    connections: int = 0
    """What the server has counted, site files included."""

    @property
    def lag_p99_ms(self) -> float:
        return _p99(self.lags_ms)

    @property
    def own_lag_p99_ms(self) -> float:
        return _p99(self.own_ms)

    @property
    def cpu_ms_per_page(self) -> float:
        return 1000 * self.cpu_s / max(self.pages, 1)

    @property
    def main_cpu_ms_per_page(self) -> float:
        return 1000 * self.main_cpu_s / max(self.pages, 1)


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(0.99 * len(values))] if values else 0.0


def arguments(description: str | None, parts: Iterable[str] = ()) -> argparse.Namespace:
    """*parts*: names of what may be measured alone."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="directory with more data; the bundled data otherwise")
    if parts:
        parser.add_argument("--only", choices=[*parts], help="measure this alone")
    return parser.parse_args()


def connections_of(log: Path) -> Path:
    """The file beside the access log that has one byte for each connection."""
    return log.with_suffix(".connections")


@contextmanager
def served(web: str, *changes: str, log: Path | None = None) -> Iterator[str]:
    """*web* as webs.py names it, in a process of its own; gives the value of SPIDERLING_HOSTS.

    *changes*: options of webs.py; *log*: where the access log goes, and `connections_of` it beside it.
    """
    with tempfile.TemporaryDirectory() as directory:
        ready = Path(directory, "ready.json")
        log = log or ready.with_name("access.tsv")
        command = [
            sys.executable,
            "-m",
            "benchmarks.webs",
            web,
            *changes,
            "--ready-file",
            str(ready),
            "--log",
            str(log),
        ]
        bound = with_parent(signal.SIGKILL)
        server = subprocess.Popen(command, cwd=ROOT, start_new_session=True, preexec_fn=bound)
        try:
            while server.poll() is None and not ready.exists():
                time.sleep(0.05)
            yield json.loads(ready.read_text())["hosts"]
        finally:
            server.terminate()
            server.wait()


def crawl(
    spider: Sequence[str], settings: Mapping[str, object], environment: Mapping[str, str] | None = None
) -> Measured:
    """Run ``scrapy`` with *spider*'s words and *settings* and measure it."""
    with tempfile.TemporaryDirectory() as directory:
        meter = Path(directory, "meter.json")
        every = {"EXTENSIONS": json.dumps(METER), "METER_FILE": meter, "LOG_LEVEL": "WARNING", **settings}
        command = [sys.executable, "-m", "scrapy", *spider]
        command += [part for name, value in every.items() for part in ("-s", f"{name}={value}")]
        if subprocess.call(command, cwd=ROOT, env={**os.environ, **(environment or {})}):
            sys.exit(f"the crawl failed: {' '.join(command[:8])} ...")
        result = json.loads(meter.read_text())
    return Measured(
        pages=result["pages"],
        mb=result["bytes"] / 1e6,
        kept_mb=result["kept_bytes"] / 1e6,
        wall_s=result["wall_s"],
        cpu_s=result["main_cpu_s"] + result["worker_cpu_s"],
        main_cpu_s=result["main_cpu_s"],
        main_rss_mb=result["main_rss_mb"],
        words=result["words"],
        worker_rss_mb=result["worker_rss_mb"],
        lags_ms=tuple(result["lags_ms"]),
        own_ms=tuple(result["own_ms"]),
        marks=tuple(map(tuple, result["marks"])),
        errors=result["errors"],
    )


class Recorded(NamedTuple):
    """What a crawl with SPIDERLING_LINKS=on wrote, by the time at which each URL ended."""

    lines: list[LinkLine]
    seeds: list[str]


def recorded_crawl(
    web: str, lang: str, strategy: str, seeds: Sequence[str] = (), settings: Mapping[str, object] | None = None
) -> Recorded:
    """A real crawl of *web* as the server's CLI names it; without *seeds* from its ``seeds.txt``."""
    with served(web) as hosts, tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "seeds.txt")
        file.write_text("\n".join(seeds) or Path(web, "seeds.txt").read_text())
        every = {
            "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8", "SPIDERLING_LINKS": "on", "SPIDERLING_STRATEGY": strategy,
            "SPIDERLING_HOST_INTERVAL_S": 0.05, "SPIDERLING_IP_INTERVAL_S": 0, "SPIDERLING_DELAY_FACTOR": 0,
            "SPIDERLING_PREFER_TLDS": "",
            "SPIDERLING_HOSTS": hosts, "JOBDIR": f"{directory}/job", **(settings or {}),
        }  # fmt: skip
        crawl(["crawl", "spiderling", "-a", f"lang={lang}", "-a", f"seeds={file}"], every)
        lines = sorted(links_of_crawl(Path(directory, "job")), key=lambda line: line.time)
        return Recorded(lines, [line.split()[0] for line in file.read_text().splitlines() if line.startswith("http")])


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table, as it stands in README.md."""
    cells = ((f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)
    print("\n".join(markdown_table(head, cells)))


def python_build() -> str:
    """The Python that runs.  How it was built alone makes up to a fifth of a main process' time.

    Distributions optimise theirs without naming the option; those that pyenv builds are not optimised by default.
    """
    options = [option for option in _OPTIMISING if option in (sysconfig.get_config_var("CONFIG_ARGS") or "")]
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{version} of {os.path.realpath(sys.executable)}, configured with {' '.join(options) or 'no optimisation'}"


def result(**values: object) -> None:
    """The last lines of every benchmark."""
    print(f"Python: {python_build()}; text steps: {choose().words}")
    print("RESULT " + json.dumps(values))
