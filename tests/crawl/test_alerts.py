"""Alerts of whole crawls, to a real server on loopback and a real command."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from brokenparts import EXTENSIONS
from conftest import DEADLINE_S, DEFAULTS, Crawl, page, scrapy, serving
from test_offline import WEB, crawl_of, name_server
from test_offline import seeds as named_seeds

from webs.web import FixedWeb

PAGES = 40
QUICK = {"extensions.alerts.LOOK_S": 0.2, "live.alerts.FIRST_PAUSE_S": 0.2}
FULL = {"ALERT_FREE_BYTES": 10**18}
"""No disk has so much room."""
ECHO = "import sys; print(*sys.argv[2:]); open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


@pytest.fixture(scope="module")
def server():
    sites = {f"h{n}.test": {f"/{m}": page(f"{n}-{m}", f"/{m + 1}") for m in range(PAGES)} for n in range(2)}
    with serving(FixedWeb(sites, {host: f"127.84.21.{n}" for n, host in enumerate(sites, 1)})) as running:
        yield running


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted to it, and answers with the status of its server."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815

    def log_message(self, *arguments):
        return


@contextmanager
def hook():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as listening:
        listening.got, listening.status = [], 200
        listening.url = f"http://127.0.0.1:{listening.server_port}/secret-token"
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield listening
        listening.shutdown()


class Told:
    """A command that writes what it is told into a file."""

    def __init__(self, directory, *words: str) -> None:
        self._path = directory / "told"
        self.command = shlex.join([sys.executable, "-c", ECHO, str(self._path), *words])

    @property
    def alerts(self) -> list[dict]:
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    @property
    def kinds(self) -> list[str]:
        return [alert["kind"] for alert in self.alerts]


def crawled(tmp_path, server, **settings) -> Crawl:
    return Crawl(tmp_path / "job", server, CONSTANTS=QUICK, **settings)


def test_a_finished_crawl_tells_both_channels_and_keeps_them_secret(server, tmp_path):
    told = Told(tmp_path, "$HOME", "; exit 1", "*")
    with hook() as web:
        crawl = crawled(tmp_path, server, ALERT_URL=web.url, ALERT_COMMAND=told.command)
        result = crawl.run("http://h0.test/30")
        (path, alert) = web.got.pop()
    assert result.code == 0 and path == "/secret-token" and told.alerts == [alert]
    assert alert["kind"] == "finished" and alert["text"] == "job: The crawl is finished."
    assert alert["crawl"] == str(crawl.directory.resolve()) and alert["machine"] and alert["time"].endswith("+00:00")
    written = b"".join(path.read_bytes() for path in crawl.directory.rglob("*") if path.is_file())
    assert b"secret-token" not in written + result.output.encode(), "the address may be all that is asked for"
    assert scrapy("inspect", str(crawl.directory), "--check").code == 0


def test_what_was_not_taken_survives_a_kill_and_goes_out_in_order(server, tmp_path):
    with hook() as web:
        web.status = 302
        crawl = crawled(tmp_path, server, ALERT_URL=web.url, **FULL)
        running = crawl.start("http://h0.test/0", HOST_INTERVAL_S=0.5)
        running.until(lambda: len(web.got) > 2)
        running.stop(signal.SIGKILL)
        assert "takes no alert, and is tried again: it answered with status 302" in running.output()
        assert {(path, alert["kind"]) for path, alert in web.got} == {("/secret-token", "disk")}, "no redirect"
        web.status, before = 204, web.got[-1]
        web.got.clear()
        assert crawl.run(MAX_PAGES=5).code == 0
        assert web.got[0] == before and [alert["kind"] for _, alert in web.got] == ["disk", "budget"]


@pytest.mark.slow
def test_the_crawl_goes_on_while_a_command_hangs_and_ends_with_it(server, tmp_path):
    pid = tmp_path / "pid"
    hanging = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    crawl = crawled(tmp_path, server, ALERT_COMMAND=shlex.join([sys.executable, "-c", hanging]), **FULL)
    limits = {"live.alerts.LAST_S": 1, "live.alerts.LIMIT_S": 10 * DEADLINE_S}
    running = crawl.start("http://h0.test/0", CONSTANTS=QUICK | limits, HOST_INTERVAL_S=0.1)
    running.until(lambda: pid.exists() and pid.read_text())
    asked = len(server.log_entries)
    running.until(lambda: len(server.log_entries) > asked + 10)
    result = running.wait()
    assert result.code == 0 and result.lines("is finished") and result.lines("2 alerts could not be sent")
    assert "takes no alert" not in result.output, "the first attempt was still on"
    assert not os.path.exists(f"/proc/{pid.read_text()}")


def test_an_internal_error_is_told_with_what_to_do(server, tmp_path):
    told = Told(tmp_path)
    crawl = crawled(tmp_path, server, ALERT_COMMAND=told.command, EXTENSIONS=EXTENSIONS)
    assert crawl.run("http://h1.test/30", FAULT="outcome /33 KeyError").code == 0
    assert told.kinds == ["internal-errors", "finished"]
    assert told.alerts[0]["text"].startswith("job: 1 internal error ended") and "report it" in told.alerts[0]["text"]


def test_an_error_that_stops_the_crawl_is_told(server, tmp_path):
    told = Told(tmp_path)
    crawl = crawled(tmp_path, server, ALERT_COMMAND=told.command, EXTENSIONS=EXTENSIONS)
    assert crawl.run("http://h1.test/30", FAULT="report /33 KeyError").code == 1
    assert told.kinds == ["failed"] and "goes on from the last checkpoint" in told.alerts[0]["text"]


def test_storage_that_fails_is_told_although_nothing_can_be_written(server, tmp_path):
    told = Told(tmp_path)
    crawl = crawled(tmp_path, server, ALERT_COMMAND=told.command)
    running = crawl.start("http://h0.test/0", HOST_INTERVAL_S=0.3)
    running.until(lambda: crawl.directory.exists() and list(crawl.directory.glob("corpus/*.zst")))
    crawl.directory.rename(tmp_path / "moved")
    assert running.wait().code == 1
    assert told.kinds == ["storage-failed"] and "was moved" in told.alerts[0]["text"]
    assert "-s JOBDIR=" in told.alerts[0]["text"]


def test_a_stop_by_ctrl_c_is_told(server, tmp_path):
    told = Told(tmp_path)
    crawl = crawled(tmp_path, server, ALERT_COMMAND=told.command)
    asked = len(server.log_entries)
    running = crawl.start("http://h0.test/0", HOST_INTERVAL_S=0.3)
    running.until(lambda: len(server.log_entries) > asked + 2)
    assert running.stop(signal.SIGINT).code == 0
    assert told.kinds == ["stopped"] and "the same command goes on" in told.alerts[0]["text"]


def test_a_network_that_goes_away_and_comes_back_is_told(tmp_path):
    told = Told(tmp_path)
    with name_server() as names, serving(WEB) as server:
        crawl = crawl_of(tmp_path / "job", server, names, ALERT_COMMAND=told.command)
        crawl.settings["CONSTANTS"] |= QUICK
        running = crawl.start(named_seeds(server))
        running.until(lambda: len(server.log_entries) > 6)
        names.says = "server failure"
        running.until(lambda: told.kinds == ["network-gone"])
        names.says = ""
        running.wait()
    assert told.kinds == ["network-gone", "network-back", "finished"]
    assert "dns" in told.alerts[0]["text"]


def test_a_command_that_somebody_waits_for_sends_none(server, tmp_path):
    told = Told(tmp_path)
    settings = {**DEFAULTS, "SPIDERLING_HOSTS": server.hosts_option, "SPIDERLING_ALERT_COMMAND": told.command}
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    ended = scrapy("page", "http://h0.test/0", "-a", "lang=cs", *given)
    assert (ended.code, told.alerts) == (0, []), ended.log


@pytest.mark.slow
def test_a_crawl_without_alerts_loads_nothing_of_them():
    script = (
        "import sys, spiderling.extensions.alerts; "
        "print([name for name in sys.modules if 'live.alert' in name or name == 'aiohttp'])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240)
    assert run.stdout.strip() == "[]"
