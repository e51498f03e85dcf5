"""A signal at each stage of a command's beginning: one true sentence, no traceback, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, page, serving
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
    ("spiderling.corpus.shingle_snapshot:ShingleState.load_filter", WHILE),
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

    def __init__(self, directory: Path, stage: str, *arguments: str) -> None:
        self._files = {name: directory / name.lower() for name in ("REACHED", "GO")}
        for file in self._files.values():
            file.unlink(missing_ok=True)
        self._output = directory / "output"
        path = os.pathsep.join([str(ROOT / "tests/staged"), str(ROOT)])
        environment = {**os.environ, **{name: str(file) for name, file in self._files.items()}}
        environment |= {"STAGE": stage, "PYTHONPATH": path}
        with self._output.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scrapy", *arguments], cwd=ROOT, env=environment, stdout=stream, stderr=stream,
                start_new_session=True,
            )  # fmt: skip

    def reach(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not self._files["REACHED"].exists():
            assert self._process.poll() is None, f"the stage was not reached:\n{self._output.read_text()}"
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def send(self, number: int) -> None:
        self._process.send_signal(number)  # the system tells it before it runs again

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it said, once it may go on."""
        self._files["GO"].touch()
        try:
            code = self._process.wait(DEADLINE_S)
        finally:
            self._process.kill()
        output = self._output.read_text()
        assert "Traceback" not in output and "second signal" not in output.replace("by a second signal; nothing", "")
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
        with closing(Inspection(directory / "job")) as opened:
            assert list(problems(opened)) == []
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


@pytest.mark.slow
def test_a_second_signal_amid_the_opening_does_not_wait(server, tmp_path):
    staged = Staged(tmp_path, "spiderling.extensions.progress:start_line", *crawl_of(server, tmp_path / "job"))
    staged.reach()
    staged.send(signal.SIGINT)
    staged.send(signal.SIGTERM)
    code, output = staged.ended()
    assert code == 0 and "stopped at once by a second signal; nothing is lost" in output


@pytest.mark.slow
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
        ("spiderling.commands.view", ("inspect", "x")),
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
