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
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, damage_in, flags, page
from needs import needs
from redis_server import RedisServer

BEFORE = "stopped before the crawl was opened; nothing is lost"
WHILE = "The crawl was stopped while it was being opened: nothing was asked for yet and nothing is lost"
PAUSED = "was paused (shutdown); the same command goes on with it."
OVER = "interrupted."
LOADING = "spiderling.frontier.storage.sqlite:SqliteStore.load"
STARTED = "spiderling.extensions.progress:start_line"
STAGES = [
    ("scrapy.commands.bench", OVER),
    ("spiderling.commands.export", OVER),
    ("spiderling.spiders.archive", BEFORE),
    ("spiderling.engine.fast_scrapy", BEFORE),
    ("spiderling.crawl.crawl", BEFORE),
    ("spiderling.languages.seeds:read_seeds", WHILE),
    ("spiderling.jobdir.directory:Jobdir.judge", WHILE),
    (LOADING, WHILE),
    ("spiderling.corpus.duplicates:ShingleState.load_filter", WHILE),
    ("spiderling.crawl.checkpoint:Checkpoint.__init__", WHILE),
    ("spiderling.engine.offline", BEFORE),
    ("spiderling.workers.pool:WorkerPool.start_in_background", PAUSED),
    ("spiderling.live.server:Server.__init__", PAUSED),
    (STARTED, PAUSED),
]
"""Where the process is when the signal comes, and what it says."""


PATHS = [f"/{number}" for number in range(40)]
WEB = {"a.test": {"/": page("a", *PATHS)} | {path: page(path) for path in PATHS}}
"""More pages than the crawls before their pauses can fetch."""


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
    return ["crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://a.test/", *flags(given)]


class Case(NamedTuple):
    """Signals at a stage of a crawl, and how it ends then."""

    stage: str
    numbers: tuple[int, ...]
    said: str
    code: int = 0
    is_second: bool = False  # whether SIGINT has come before, once the seeds were read
    settings: tuple[tuple[str, object], ...] = ()
    ignored: tuple[int, ...] = ()  # signals that whoever starts the crawl has it ignore


CASES = {
    "while the state is read": Case(LOADING, (signal.SIGINT,), WHILE),
    "while python ends, which has no handlers any more": (
        Case("END", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), PAUSED, is_second=True)
    ),
    "while a crawl that could not begin ends": (
        Case("END", (signal.SIGINT,), "LOGSTATS_INTERVAL", 1, settings=(("LOGSTATS_INTERVAL", 0),))
    ),
    "while workers stop": Case("spiderling.workers.pool:WorkerPool.stop", (signal.SIGINT,), "", is_second=True),
    "amid the end of a crawl": Case("spiderling.workers.pool:WorkerPool.stop", (signal.SIGINT,), "is finished"),
    "amid the summary": Case("spiderling.extensions.progress:summary", (signal.SIGINT,), "", is_second=True),
    "a shell that tells again that the terminal is closed": Case(STARTED, (signal.SIGHUP,) * 3, PAUSED),
    "nohup": Case(STARTED, (signal.SIGHUP,), "is finished", ignored=(signal.SIGHUP,)),
    "a second one amid the opening does not wait": (
        Case(STARTED, (signal.SIGINT, signal.SIGTERM), "stopped at once by a second signal; nothing is lost")
    ),
}
"""What is told by the first two was called a second signal, or killed the process."""


def end_of(server, directory: Path, case: Case) -> None:
    """Run the crawl of *case*, which must end as it says; its directory must be sound then."""
    ignoring = [partial(signal.signal, number, signal.SIG_IGN) for number in case.ignored]
    command = crawl_of(server, directory / "job", **dict(case.settings))
    staged = Staged(directory, case.stage, *command, preexec_fn=ignoring[0] if ignoring else None)
    if case.is_second:
        staged.says(" from http://a.test/")
        staged.send(signal.SIGINT)
    staged.reach()
    for number in case.numbers:
        staged.send(number)
    code, output = staged.ended(is_told=case.is_second and case.stage != "END")
    assert code == case.code and case.said in output, (case, output)
    if (directory / "job/state/frontier.sqlite").exists():
        assert damage_in(directory / "job") == []


EVERYDAY, RARE = list(CASES)[:2], list(CASES)[2:]


@pytest.mark.parametrize("name", [*EVERYDAY, *(pytest.param(name, marks=pytest.mark.slow) for name in RARE)])
def test_a_signal(server, tmp_path, name):
    end_of(server, tmp_path, CASES[name])


@pytest.mark.slow
def test_a_signal_at_each_stage_of_the_opening(server, tmp_path):
    for place, (stage, said) in enumerate(STAGES):
        number = (signal.SIGINT, signal.SIGTERM)[place % 2]
        end_of(server, tmp_path, Case(stage, (number,), said, 128 + number if said == OVER else 0))
    code, output = Staged(tmp_path, "", *crawl_of(server, tmp_path / "job")).ended()
    assert code == 0 and "is finished" in output, output


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
    assert damage_in(tmp_path / "job") == []


@pytest.mark.slow
@needs("redis")
@pytest.mark.parametrize(
    ("stage", "is_there"),
    [("spiderling.cluster.claims:Claim._take", False), ("spiderling.cluster.claims:Claim.begin_keeping", True)],
)
def test_a_signal_while_a_shard_is_claimed_or_redis_awaited(server, tmp_path, stage, is_there):
    with RedisServer() as store:
        if not is_there:
            store.kill()
        settings = (("SPIDERLING_CLUSTER", store.url), ("SPIDERLING_SHARDS", 1))
        end_of(server, tmp_path, Case(stage, (signal.SIGTERM,), WHILE, settings=settings))


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
