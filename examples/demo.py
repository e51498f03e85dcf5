"""``make demo``: the real spider on the bundled miniature web, served on loopback addresses.

    python -m examples.demo [JOBDIR [ARGUMENTS OF scrapy crawl]]

Everything is as in a live crawl (politeness, robots.txt, yield, checkpoints) but the
intervals, which are short because the servers are ours.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from spiderling.cluster.launcher import with_parent

MINIWEB = Path(__file__).parent / "miniweb"
PORT = 8098
PAGE_PORT = 8580
SETTINGS = {
    "SPIDERLING_ALLOW_NETWORKS": "127.80.0.0/16",
    "SPIDERLING_TLDS": "test",
    "SPIDERLING_HOST_INTERVAL_S": 0.2,
    "SPIDERLING_IP_INTERVAL_S": 0.02,
    "SPIDERLING_DELAY_FACTOR": 0.5,
    "LOGSTATS_INTERVAL": 5,
    "LOG_FORMAT": "%(message)s",
}

_crawls: list[subprocess.Popen[bytes]] = []
"""The crawl, once it runs."""


def main(jobdir: str, arguments: Sequence[str]) -> int:
    """Serve, crawl with further *arguments*, report, and return the crawl's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has SIGHUP
            signal.signal(number, _pause)
    print(f"Crawling the miniature web into {jobdir} (Ctrl-C pauses, the same command goes on) ...")
    print("make takes options of the crawl as ARGS='-a words=100000', another directory as JOBDIR=...", flush=True)
    with serving(Path(jobdir).parent) as hosts:
        settings = {"JOBDIR": jobdir, "SPIDERLING_HOSTS": hosts, "SPIDERLING_PAGE": _page(), **SETTINGS}
        command = [sys.executable, "-m", "scrapy", "crawl", "spiderling", "-a", "lang=cs,en"]
        command += ["-a", f"seeds={MINIWEB / 'seeds.txt'}"]
        command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        command += arguments
        crawl = subprocess.Popen(command, preexec_fn=with_parent(signal.SIGTERM))
        _crawls.append(crawl)
        code = crawl.wait()
    return shell_code(code or subprocess.run([sys.executable, "-m", "scrapy", "report", jobdir]).returncode)


def shell_code(code: int) -> int:
    """The exit code that a shell has for a process with the *code* of subprocess: 128 + N if the signal N killed it."""
    return code if code >= 0 else 128 - code


def _pause(number: int, frame: FrameType | None) -> None:
    """Let the crawl pause, then all end; Ctrl-C of a terminal has reached the crawl itself."""
    if not any(crawl.poll() is None for crawl in _crawls):
        sys.exit(128 + number)
    if number != signal.SIGINT:
        _crawls[0].send_signal(number)


@contextmanager
def serving(place: Path) -> Iterator[str]:
    """The miniature web on loopback, with its log in *place* meanwhile; gives the value of SPIDERLING_HOSTS."""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="miniweb-", dir=place) as directory:
        ready = Path(directory, "ready.json")
        server = _start(PORT, ready) or _start(0, ready)
        if server is None:
            sys.exit("The miniature web could not be served on 127.80.0.0/16; the message above says why.")
        try:
            yield json.loads(ready.read_text())["hosts"]
        finally:
            server.terminate()
            server.wait()


def _page() -> str:
    """Where the crawl serves its live page: at the usual port, or at any if that is taken."""
    with socket.socket() as probe:
        is_taken = probe.connect_ex(("127.0.0.1", PAGE_PORT)) == 0
    return f"127.0.0.1:{0 if is_taken else PAGE_PORT}"


def _start(port: int, ready: Path) -> subprocess.Popen[bytes] | None:
    """The server's process once it listens on *port*; None if it cannot."""
    command = [sys.executable, "-m", "webs.server", "--web", str(MINIWEB)]
    command += ["--port", str(port), "--ready-file", str(ready), "--log", str(ready.with_name("access.tsv"))]
    quiet = subprocess.DEVNULL if port else None
    bound = with_parent(signal.SIGKILL)
    server = subprocess.Popen(command, start_new_session=True, stderr=quiet, preexec_fn=bound)
    while server.poll() is None and not ready.exists():
        time.sleep(0.05)
    return server if server.poll() is None else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "crawls/demo", sys.argv[2:]))
