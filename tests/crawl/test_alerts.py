"""Alerts of whole crawls, handed to a real command."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys

import pytest
from brokenparts import EXTENSIONS
from conftest import DEADLINE_S, DEFAULTS, Crawl, flags, page, scrapy, serving
from test_offline import WEB as NAMED_WEB
from test_offline import crawl_of, name_server
from test_offline import seeds as named_seeds

WEB = {f"h{n}.test": {f"/{m}": page(f"{n}-{m}", f"/{m + 1}") for m in range(40)} for n in range(2)}
QUICK = {"extensions.alerts.LOOK_S": 0.2, "extensions.alerts.PAUSE_S": 0.2, "extensions.control.POLL_S": 0.5}
FULL = {"MIN_FREE_BYTES": 10**18}
"""No disk has so much room."""
BROKEN = "http://h1.test/39"
FAULT = f"outcome {BROKEN} KeyError"
ECHO = "print(*sys.argv[2:]); open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


class Told:
    """A command that writes what it is told into a file."""

    def __init__(self, directory, *words: str, first: str = "") -> None:
        """*first*: code that runs before; at each attempt the file *at* has grown by a byte."""
        self._path = directory / "told"
        counts = f"import os, sys, time; at = {str(directory / 'tries')!r}; open(at, 'a').write('.'); "
        self.command = shlex.join([sys.executable, "-c", counts + first + ECHO, str(self._path), *words])

    @property
    def alerts(self) -> list[dict]:
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    @property
    def kinds(self) -> list[str]:
        return [alert["kind"] for alert in self.alerts]


def crawled(tmp_path, server, **settings) -> Crawl:
    return Crawl(tmp_path / "job", server, CONSTANTS=QUICK, **settings)


def test_a_finished_crawl_is_told_to_a_command_that_no_shell_reads(server, tmp_path):
    told = Told(tmp_path, "$HOME", "; exit 1", "*")
    crawl = crawled(tmp_path, server, ALERT_COMMAND=told.command)
    result = crawl.run("http://h0.test/30")
    (alert,) = told.alerts
    assert result.code == 0 and alert["kind"] == "finished" and alert["text"] == "job: The crawl is finished."
    assert alert["crawl"] == str(crawl.directory.resolve()) and alert["machine"] and alert["time"].endswith("+00:00")
    assert scrapy("inspect", str(crawl.directory), "--check").code == 0


def test_a_budget_is_told_and_what_a_command_does_not_take_is_tried_again_in_order(server, tmp_path):
    told = Told(tmp_path, first="os.path.getsize(at) > 2 or sys.exit(3); ")
    crawl = crawled(tmp_path, server, ALERT_COMMAND=told.command, EXTENSIONS=EXTENSIONS)
    result = crawl.run(f"{BROKEN} http://h0.test/0", FAULT=FAULT, MAX_PAGES=5)
    assert told.kinds == ["internal-errors", "budget"]
    assert told.alerts[0]["text"].startswith("job: 1 internal error ended") and "report it" in told.alerts[0]["text"]
    assert len(result.lines("takes no alert, and is tried again: it ended with exit code 3")) == 1


def test_a_full_disk_is_told_once_and_a_command_that_runs_too_long_is_killed(server, tmp_path):
    told = Told(tmp_path, first="os.path.getsize(at) > 1 or time.sleep(600); ")
    limits = QUICK | {"extensions.alerts.LIMIT_S": 2}
    running = crawled(tmp_path, server, ALERT_COMMAND=told.command, **FULL).start("http://h0.test/0", CONSTANTS=limits)
    running.until(lambda: told.kinds == ["disk"])
    result = running.stop(signal.SIGINT)
    assert told.kinds == ["disk", "stopped"] and "Make room" in told.alerts[0]["text"]
    assert "the same command goes on" in told.alerts[1]["text"]
    assert result.lines("takes no alert, and is tried again: it ran for more than 2 s")


@pytest.mark.slow
def test_the_crawl_goes_on_while_a_command_hangs_and_ends_with_it(server, tmp_path):
    pid = tmp_path / "pid"
    hanging = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    crawl = crawled(tmp_path, server, ALERT_COMMAND=shlex.join([sys.executable, "-c", hanging]), EXTENSIONS=EXTENSIONS)
    limits = {"extensions.alerts.LAST_S": 1, "extensions.alerts.LIMIT_S": 10 * DEADLINE_S}
    running = crawl.start(f"{BROKEN} http://h0.test/0", FAULT=FAULT, CONSTANTS=QUICK | limits, HOST_INTERVAL_S=0.1)
    running.until(lambda: pid.exists() and pid.read_text())
    asked = len(server.log_entries)
    running.until(lambda: len(server.log_entries) > asked + 10)
    result = running.wait()
    assert result.code == 0 and result.lines("is finished") and result.lines("2 alerts could not be sent")
    assert "takes no alert" not in result.output, "the first attempt was still on"
    assert not os.path.exists(f"/proc/{pid.read_text()}")


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
    assert told.kinds == ["failed"] and "was moved" in told.alerts[0]["text"]
    assert "-s JOBDIR=" in told.alerts[0]["text"]


def test_a_network_that_goes_away_is_told(tmp_path):
    told = Told(tmp_path)
    with name_server() as names, serving(NAMED_WEB) as server:
        crawl = crawl_of(tmp_path / "job", server, names, ALERT_COMMAND=told.command)
        crawl.settings["CONSTANTS"] |= QUICK
        running = crawl.start(named_seeds(server))
        running.until(lambda: len(server.log_entries) > 6)
        names.says = "server failure"
        running.until(lambda: told.kinds == ["network-gone"])
        names.says = ""
        running.wait()
    assert told.kinds == ["network-gone", "finished"]
    assert "dns" in told.alerts[0]["text"]


def test_a_command_that_somebody_waits_for_sends_none(server, tmp_path):
    told = Told(tmp_path)
    settings = {**DEFAULTS, "SPIDERLING_HOSTS": server.hosts_option, "SPIDERLING_ALERT_COMMAND": told.command}
    ended = scrapy("page", "http://h0.test/0", "-a", "lang=cs", *flags(settings))
    assert (ended.code, told.alerts) == (0, []), ended.log
