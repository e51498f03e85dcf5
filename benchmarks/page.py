"""What the live page of a running crawl costs, and how soon a fault is told.

    python benchmarks/page.py [--quick]

RESULT: cpu_share, the cores that the page's own callbacks and its thread use (page_meter.py) while a browser shows it
and /metrics is read every five seconds; alert_s, the seconds from a fault of a running crawl to the command of
SPIDERLING_ALERT_COMMAND, of the slowest fault.  Text workers answer at once, so that the main process is busiest.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from spiderling.cluster.launcher import with_parent

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, result, served, table
from benchmarks.crawl import FAST, INSTANT
from tests.browser import browsing
from webs.synthetic import SyntheticWeb, read_words

MINIWEB = ROOT / "examples" / "miniweb"
_HOSTS = 2000
_SCRAPE_S = 5.0
_RUNS_S = 5.0
"""Seconds that a crawl runs before its fault."""
_PATIENCE_S = 120.0
_TELL = "import json, sys, time; print(json.load(sys.stdin)['kind'], time.time(), file=open(sys.argv[1], 'a'))"
_SETTINGS = {
    "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8", "SPIDERLING_IP_INTERVAL_S": 0.05, "SPIDERLING_HOST_INTERVAL_S": 0.2,
    "SPIDERLING_DELAY_FACTOR": 0, "SPIDERLING_RETRIES": 0, "SPIDERLING_PREFER_TLDS": "", "LOG_LEVEL": "ERROR",
}  # fmt: skip


def page_cost(lasts_s: float) -> dict[str, float]:
    """What the page costs a crawl of a generated web that runs for *lasts_s* seconds."""
    with tempfile.TemporaryDirectory() as name, served(f"synthetic:{_HOSTS}:1") as hosts:
        meter, seeds, log = (Path(name, part) for part in ("meter.json", "seeds.txt", "log"))
        web = SyntheticWeb(_HOSTS, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
        seeds.write_text("\n".join(web.seeds(_HOSTS // 4)))
        given = {
            **FAST, **INSTANT, "SPIDERLING_HOSTS": hosts, "JOBDIR": f"{name}/job", "SPIDERLING_PAGE": "127.0.0.1:0",
            "CLOSESPIDER_TIMEOUT": lasts_s, "ASYNCIO_EVENT_LOOP": "asyncio.SelectorEventLoop",
            "METER_FILE": meter,
            "EXTENSIONS": '{"benchmarks.page_meter.PageMeter": 1000}',
        }  # fmt: skip
        words = ["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"]
        words += [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
        with log.open("wb") as stream:
            bound = with_parent(signal.SIGTERM)
            process = subprocess.Popen(
                [sys.executable, "-m", "scrapy", *words], cwd=ROOT, stderr=stream, preexec_fn=bound
            )
        _until(lambda: "The live page: " in log.read_text())
        looked = asyncio.run(_look(re.findall(r"The live page: (\S+) ", log.read_text())[0], process, Path(name)))
        told = json.loads(meter.read_text())
    return {
        "cpu_share": (told["loop_s"] + told["thread_s"]) / told["wall_s"],
        "of it in the thread": told["thread_s"] / told["wall_s"],
        "pages a second": told["pages"] / told["wall_s"],
        "seconds": told["wall_s"],
        "cores of the main process": told["main_cpu_s"] / told["wall_s"],
        "scrapes": looked,
    }


async def _look(url: str, process: subprocess.Popen[bytes], place: Path) -> int:
    """Show the page in a browser and read its metrics until the crawl ends; how often they were read."""
    scrapes = 0
    async with browsing(place / "profile") as browser:
        await browser.open(url)
        while process.poll() is None:
            with suppress(OSError):
                scrapes += await asyncio.to_thread(lambda: len(urlopen(f"{url}metrics").read()) > 1000)  # noqa: S310 - ours
            await asyncio.sleep(_SCRAPE_S)
    return scrapes


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
    bound = with_parent(signal.SIGTERM)
    command = [sys.executable, "-m", "scrapy", *words]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, preexec_fn=bound)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def main() -> None:
    quick = arguments(__doc__).quick
    cost = page_cost(20.0 if quick else 120.0)
    table(["the live page", ""], [*cost.items()])
    delays = alert_delays()
    table(["fault", "seconds to the command"], [*delays.items()])
    result(cpu_share=round(cost["cpu_share"], 4), alert_s=round(max(delays.values()), 2))


if __name__ == "__main__":
    main()
