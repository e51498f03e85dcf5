"""A signal at each stage of a command's beginning and end: a true sentence, no traceback; the same command goes on."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, page, serving
from needs import needs
from redis_server import RedisServer

from spiderling.jobdir.check import problems
from spiderling.jobdir.inspection import Inspection
from webs.web import FixedWeb

BEFORE = "stopped before the crawl was opened; nothing is lost"
WHILE = "The crawl was stopped while it was being opened: nothing was asked for yet and nothing is lost"
PAUSED = "was paused (shutdown); the same command goes on with it."
OVER = "interrupted."
STAGES = [
    ("scrapy.commands.bench", OVER),
    ("spiderling.commands.export", OVER),
    ("spiderling.spiders.archive", BEFORE),
    ("spiderling.engine.fast_scrapy", BEFORE),
    ("spiderling.crawl.crawl", BEFORE),
    ("spiderling.languages.seeds:read_seeds", WHILE),
    ("spiderling.jobdir.directory:Jobdir.judge", WHILE),
    ("spiderling.frontier.storage.sqlite:SqliteStore.load", WHILE),
    ("spiderling.corpus.duplicates:ShingleState.load_filter", WHILE),
    ("spiderling.crawl.checkpoint:Checkpoint.__init__", WHILE),
    ("spiderling.engine.offline", BEFORE),
    ("spiderling.workers.pool:WorkerPool.start_in_background", PAUSED),
    ("spiderling.live.server:Server.__init__", PAUSED),
    ("spiderling.extensions.progress:start_line", PAUSED),
]
"""Where the process is when the signal comes, and what it says."""


@pytest.fixture(scope="module")
def server():
    """More pages than the crawls before their pauses can fetch."""
    paths = [f"/{number}" for number in range(40)]
    pages = {"/": page("a", *paths)} | {path: page(path) for path in paths}
    with serving(FixedWeb({"a.test": pages}, {"a.test": "127.84.29.1"})) as running:
        yield running


class Staged:
    """A command that stops at a stage."""

    def __init__(self, directory: Path, stage: str, *arguments: str, **more: object) -> None:
        """*more*: of subprocess.Popen."""
        self._files = {name: directory / name.lower() for name in ("REACHED", "GO")}
        for file in self._files.values():
            file.unlink(missing_ok=True)
        self._output = directory / "output"
        path = os.pathsep.join([str(ROOT / "tests/staged"), str(ROOT)])
        environment = {**os.environ, **{name: str(file) for name, file in self._files.items()}}
        environment |= {"STAGE": stage, "PYTHONPATH": path}
        environment.pop("PYTHONUNBUFFERED", None)  # with it Python keeps nothing that a closed terminal has not taken
        with self._output.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scrapy", *arguments], cwd=ROOT, env=environment, start_new_session=True,
                **{"stdout": stream, "stderr": stream, **more},
            )  # fmt: skip

    def reach(self) -> None:
        self.until(self._files["REACHED"].exists)

    def says(self, text: str) -> None:
        """Return when it has said *text*."""
        self.until(lambda: text in self._output.read_text())

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert self._process.poll() is None, f"it has ended before:\n{self._output.read_text()}"
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def send(self, number: int) -> None:
        self._process.send_signal(number)  # the system tells it before it runs again

    def ended(self, is_told: bool = False) -> tuple[int, str]:
        """Its exit code and what it said, once it may go on; *is_told*: it may tell that a second signal has come."""
        self._files["GO"].touch()
        try:
            code = self._process.wait(DEADLINE_S)
        finally:
            self._process.kill()
        output = self._output.read_text()
        assert "Traceback" not in output
        assert is_told or "second signal" not in output.replace("by a second signal; nothing", "")
        return code, output


def crawl_of(server, jobdir: Path, **more: object) -> list[str]:
    given = {**DEFAULTS, "JOBDIR": jobdir, "SPIDERLING_HOSTS": server.hosts_option, "SPIDERLING_DEDUP": "near"}
    given |= {"SPIDERLING_PAGE": "127.0.0.1:0", **more}
    settings = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    return ["crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://a.test/", *settings]


def stopped_at(server, directory: Path, stage: str, number: int) -> tuple[int, str]:
    """Exit code and output of a crawl that gets a signal at *stage*; its directory must be sound then."""
    staged = Staged(directory, stage, *crawl_of(server, directory / "job"))
    staged.reach()
    staged.send(number)
    ended = staged.ended()
    if (directory / "job/state/frontier.sqlite").exists():
        assert_sound(directory / "job")
    return ended


def test_a_signal_while_the_state_is_read_is_no_second_one(server, tmp_path):
    """It ended with "Stopped at once by a second signal", though it was the first."""
    code, output = stopped_at(server, tmp_path, "spiderling.frontier.storage.sqlite:SqliteStore.load", signal.SIGINT)
    assert code == 0 and WHILE in output


@pytest.mark.slow
def test_a_signal_at_each_stage_of_the_opening(server, tmp_path):
    for place, (stage, said) in enumerate(STAGES):
        number = (signal.SIGINT, signal.SIGTERM)[place % 2]
        code, output = stopped_at(server, tmp_path, stage, number)
        assert said in output, stage
        assert code == (128 + number if said == OVER else 0)
    code, output = Staged(tmp_path, "", *crawl_of(server, tmp_path / "job")).ended()
    assert code == 0 and "is finished" in output, output


def assert_sound(jobdir: Path) -> None:
    with closing(Inspection(jobdir)) as opened:
        assert list(problems(opened)) == []


def test_a_later_signal_while_python_ends_changes_nothing(server, tmp_path):
    """Python has no handlers any more while it frees its memory: the signal killed it."""
    staged = Staged(tmp_path, "END", *crawl_of(server, tmp_path / "job"))
    staged.says(" from http://a.test/")
    staged.send(signal.SIGINT)
    staged.reach()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        staged.send(number)
    code, output = staged.ended()
    assert code == 0 and PAUSED in output
    assert_sound(tmp_path / "job")


@pytest.mark.slow
def test_a_signal_while_a_crawl_that_could_not_begin_ends_keeps_its_exit_code(server, tmp_path):
    staged = Staged(tmp_path, "END", *crawl_of(server, tmp_path / "job", LOGSTATS_INTERVAL=0))
    staged.reach()
    staged.send(signal.SIGINT)
    assert staged.ended()[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage",
    ["spiderling.workers.pool:WorkerPool.stop", "spiderling.extensions.progress:summary"],
)
def test_a_second_signal_at_each_stage_of_the_end(server, tmp_path, stage):
    staged = Staged(tmp_path, stage, *crawl_of(server, tmp_path / "job"))
    staged.says(" from http://a.test/")
    staged.send(signal.SIGINT)
    staged.reach()
    staged.send(signal.SIGINT)
    code, _ = staged.ended(is_told=True)
    assert code == 0
    assert_sound(tmp_path / "job")


def test_a_closed_terminal_pauses_the_crawl(server, tmp_path):
    """It killed the crawl: the pages of the last second were fetched again."""
    ours, theirs = pty.openpty()
    own_terminal = partial(fcntl.ioctl, theirs, termios.TIOCSCTTY, 0)
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    staged = Staged(tmp_path, "", *crawl_of(server, tmp_path / "job"), preexec_fn=own_terminal, **streams)
    os.close(theirs)
    log = tmp_path / "job/crawl.log"
    staged.until(lambda: log.exists() and "The live page: " in log.read_text())
    os.close(ours)
    code, _ = staged.ended()
    assert code == 0 and PAUSED in log.read_text()
    assert_sound(tmp_path / "job")


@pytest.mark.slow
def test_a_shell_that_tells_once_more_that_the_terminal_is_closed_sends_no_second_signal(server, tmp_path):
    staged = Staged(tmp_path, "spiderling.extensions.progress:start_line", *crawl_of(server, tmp_path / "job"))
    staged.reach()
    for _ in range(3):
        staged.send(signal.SIGHUP)
    code, output = staged.ended()
    assert code == 0 and PAUSED in output


@pytest.mark.slow
def test_with_nohup_a_crawl_goes_on_when_the_terminal_is_closed(server, tmp_path):
    nohup = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    stage = "spiderling.extensions.progress:start_line"
    staged = Staged(tmp_path, stage, *crawl_of(server, tmp_path / "job"), preexec_fn=nohup)
    staged.reach()
    staged.send(signal.SIGHUP)
    code, output = staged.ended()
    assert code == 0 and "is finished" in output


@pytest.mark.slow
def test_a_second_signal_amid_the_opening_does_not_wait(server, tmp_path):
    staged = Staged(tmp_path, "spiderling.extensions.progress:start_line", *crawl_of(server, tmp_path / "job"))
    staged.reach()
    staged.send(signal.SIGINT)
    staged.send(signal.SIGTERM)
    code, output = staged.ended()
    assert code == 0 and "stopped at once by a second signal; nothing is lost" in output


@pytest.mark.slow
@needs("redis")
@pytest.mark.parametrize(
    ("stage", "is_there"),
    [("spiderling.cluster.claims:Claims._claim", False), ("spiderling.cluster.claims:Claims.begin_keeping", True)],
)
def test_a_signal_while_a_shard_is_claimed_or_redis_awaited(server, tmp_path, stage, is_there):
    store = RedisServer()
    try:
        if not is_there:
            store.kill()
        command = crawl_of(server, tmp_path / "job", SPIDERLING_CLUSTER=store.url, SPIDERLING_SHARDS=1)
        staged = Staged(tmp_path, stage, *command)
        staged.reach()
        staged.send(signal.SIGTERM)
        code, output = staged.ended()
        assert code == 0 and WHILE in output
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "arguments"),
    [
        ("spiderling.commands.train", ("inspect", "x")),
        ("spiderling.commands.export:Command.work", ("export", "x", "-o", "y.jsonl")),
        ("spiderling.commands.languages:Command.work", ("languages",)),
    ],
)
def test_ctrl_c_ends_other_commands_with_one_line(tmp_path, stage, arguments):
    staged = Staged(tmp_path, stage, *arguments)
    staged.reach()
    staged.send(signal.SIGINT)
    code, output = staged.ended()
    (line,) = output.splitlines()
    assert code == 130 and line.startswith("scrapy") and "interrupted" in line
