"""How soon a fault is told: the seconds from a fault of a running crawl to the command of SPIDERLING_ALERT_COMMAND.

    python benchmarks/page.py [--quick]

RESULT: alert_s, the slowest of the faults.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, result, served, table

MINIWEB = ROOT / "examples" / "miniweb"
_RUNS_S = 5.0
"""Seconds that a crawl runs before its fault."""
_PATIENCE_S = 120.0
_TELL = "import json, sys, time; print(json.load(sys.stdin)['kind'], time.time(), file=open(sys.argv[1], 'a'))"
_SETTINGS = {
    "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8", "SPIDERLING_IP_INTERVAL_S": 0.05, "SPIDERLING_HOST_INTERVAL_S": 0.2,
    "SPIDERLING_DELAY_FACTOR": 0, "SPIDERLING_RETRIES": 0, "SPIDERLING_PREFER_TLDS": "", "LOG_LEVEL": "ERROR",
}  # fmt: skip


def alert_delays() -> dict[str, float]:
    """Kind of alert -> seconds from its fault to the command: the servers go, the crawl's directory goes, Ctrl-C."""
    with tempfile.TemporaryDirectory() as name:
        return {kind: _alert_delay(kind, Path(name, kind)) for kind in ("network-gone", "storage-failed", "stopped")}


def _alert_delay(kind: str, job: Path) -> float:
    told = Path(f"{job}.told")
    with ExitStack() as server, ExitStack() as crawl:
        process = crawl.enter_context(_crawling(job, server.enter_context(served(str(MINIWEB)))))
        _until(lambda: any(job.glob("corpus/*.zst")))
        time.sleep(_RUNS_S)
        at = time.time()
        if kind == "network-gone":
            server.close()
        elif kind == "storage-failed":
            job.rename(f"{job}-moved")
        else:
            process.send_signal(signal.SIGINT)
        _until(lambda: told.exists() and told.read_text().startswith(f"{kind} ") and told.read_text().endswith("\n"))
        return float(told.read_text().split()[1]) - at


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit(f"nothing came within {_PATIENCE_S:g} s")
        time.sleep(0.05)


@contextmanager
def _crawling(job: Path, hosts: str) -> Iterator[subprocess.Popen[bytes]]:
    command = shlex.join([sys.executable, "-c", _TELL, f"{job}.told"])
    given = {**_SETTINGS, "JOBDIR": job, "SPIDERLING_HOSTS": hosts, "SPIDERLING_ALERT_COMMAND": command}
    words = ["crawl", "spiderling", "-a", "lang=cs,en", "-a", f"seeds={MINIWEB / 'seeds.txt'}"]
    words += [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    process = subprocess.Popen([sys.executable, "-m", "scrapy", *words], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def main() -> None:
    arguments(__doc__)
    delays = alert_delays()
    table(["fault", "seconds to the command"], [*delays.items()])
    result(alert_s=round(max(delays.values()), 2))


if __name__ == "__main__":
    main()
