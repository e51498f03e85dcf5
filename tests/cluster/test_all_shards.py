"""All shards of a crawl, started by one command with a Redis of their own: real processes, and what outlives them."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ROOT, Crawl, Running, page, refusal, serving
from needs import needs
from redis_server import RedisServer
from scrapy.settings import Settings
from test_crawl_of_shards import SOON as QUICK
from test_crawl_of_shards import kept

from spiderling.base.errors import BadInput
from spiderling.crawl.arguments import options_of
from spiderling.spiders.spiderling import SpiderlingSpider
from webs.web import FixedWeb

pytestmark = needs("redis")

HOSTS = [f"host{number}.test" for number in range(6)]
SITES = {
    host: {
        "/": page(host, "/1", "/2", f"http://{HOSTS[index - 1]}/1"),
        "/1": page(f"{host} 1"),
        "/2": page(f"{host} 2"),
    }
    for index, host in enumerate(HOSTS)
}
WEB = FixedWeb(SITES, {host: f"127.84.33.{number}" for number, host in enumerate(HOSTS, 1)})
SEEDS = " ".join(f"http://{host}/" for host in HOSTS)
URLS = sorted(f"http://{host}{path}" for host in HOSTS for path in SITES[host])
SOON = {**QUICK, "cluster.heartbeat.WAIT_MISSING_S": 60.0}
"""Nothing but time is spared by these; a shard that is started again is waited for."""


class AllShards(Crawl):
    """A crawl whose one command starts them; its workers are as many as it thinks right."""

    def start(self, seeds: str = SEEDS, *arguments: str, **settings) -> Running:
        given = {**self.settings, **{f"SPIDERLING_{name}": value for name, value in settings.items()}}
        given.pop("SPIDERLING_WORKERS", None)
        command = [sys.executable, str(Path(__file__).with_name("quick_scrapy.py")), "crawl", "spiderling", *arguments]
        command += ["-a", "lang=cs", "-a", f"seeds={seeds}"]
        command += [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
        self._runs += 1
        output = self.directory.with_name(f"{self.directory.name}-{self._runs}.out")
        environment = {**os.environ, "CONSTANTS": json.dumps(SOON)}
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        return Running(process, output)


def processes_of(directory: Path) -> dict[int, str]:
    """Processes whose command line has a path in *directory* -> that line."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = place.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if f"{directory}/" in line:
                found[int(place.parent.name)] = line
    return found


def child(running: Running, word: str) -> int:
    """A process that *running* has started, with *word* in its command line."""
    return next(
        pid
        for pid, line in processes_of(running.output_file.parent).items()
        if word in line
        and int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == running.process.pid
    )


def begun(directory: Path) -> int:
    """How often a shard of the crawl has begun."""
    logs = [log.read_text("utf-8") for log in directory.glob("shard-*/crawl.log")]
    return sum(log.count("Starting the crawl in") + log.count("Resuming the crawl in") for log in logs)


@pytest.mark.slow
def test_one_command_crawls_to_the_end_and_tells_one_summary(tmp_path):
    """Ctrl-C pauses all; then auto goes on with the shards that there are, though the cores may call for one."""
    with serving(WEB) as server:
        crawl = AllShards(tmp_path / "cs", server, SHARDS=2, LOGSTATS_INTERVAL=1)
        control = tmp_path / "cs/control.yaml"
        control.parent.mkdir()
        control.write_text("pause: true")  # else it may be finished before all that follows has begun
        running = crawl.start()
        socket = tmp_path / "cs/redis/socket"
        running.until(socket.exists)
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700 == stat.S_IMODE(socket.parent.stat().st_mode)
        second = crawl.start().wait()
        assert second.code == 1 and second.lines("ERROR", f"is in use by process {running.process.pid} on ")
        running.until(lambda: " waiting; 2 shards at work" in running.output())
        running.process.send_signal(signal.SIGINT)
        running.until(lambda: "The crawl of all shards in" in running.output())
        while running.process.poll() is None:  # whoever is impatient when all is told changes nothing
            running.process.terminate()
        paused = running.wait()
        assert paused.code == 0 and paused.lines("The crawl of all shards in", "was paused; the same command goes on")
        assert "Traceback" not in paused.output
        assert paused.lines("Starting the crawl in", "2 shards on")
        assert not processes_of(tmp_path) and not socket.exists()
        control.write_text("pause: false")
        ended = crawl.start(SHARDS="auto").wait()
        assert ended.code == 0, ended
        assert ended.lines("Resuming the crawl in", "2 shards on")
        assert len(ended.lines("The crawl of all shards in", "is finished.")) == 1
        assert ended.lines(f"To remove text that more than one shard found, run scrapy dedup {tmp_path / 'cs'} -o")
        assert ended.lines("  balance ") and not ended.lines("This is shard") and "Traceback" not in ended.output
        assert kept(crawl.directory) == URLS
        assert "is finished." in (tmp_path / "cs/shard-01/crawl.log").read_text("utf-8")
    other = refusal(tmp_path / "cs", "-a", "lang=cs", "-s", "SPIDERLING_SHARDS=3")
    assert "has SPIDERLING_SHARDS=2, not 3; scrapy reshard changes that." in other


@pytest.mark.slow
def test_what_is_killed_leaves_no_process_and_goes_on(tmp_path):
    """A shard and Redis are started again by what has started them, and that by its user."""
    with serving(WEB) as server:
        crawl = AllShards(tmp_path / "cs", server, SHARDS=2, HOST_INTERVAL_S=4)
        running = crawl.start()
        running.until(lambda: begun(tmp_path / "cs") == 2)
        os.kill(child(running, "redis-server"), signal.SIGKILL)
        os.kill(child(running, " crawl "), signal.SIGKILL)
        running.until(lambda: "was killed by SIGKILL; it is started again" in running.output())
        running.until(lambda: "WARNING: Redis has ended (killed by SIGKILL); it is started again" in running.output())
        running.until(lambda: begun(tmp_path / "cs") == 3)
        running.stop(signal.SIGKILL)
        Running.until(_Ever(), lambda: not processes_of(tmp_path))
        ended = crawl.start(HOST_INTERVAL_S=0.2).wait()
        assert ended.code == 0, ended
        assert ended.lines("is finished.") and kept(crawl.directory) == URLS


@pytest.mark.slow
def test_tasks_of_slurm_pause_when_their_time_is_over_and_go_on(tmp_path, monkeypatch):
    """Each takes a free shard; Slurm is played by what it sets and by a program that notes who is to be requeued."""
    programs = tmp_path / "bin"
    programs.mkdir()
    requeued = tmp_path / "requeued"
    quick = Path(__file__).with_name("quick_scrapy.py")
    for name, text in (("scrapy", f'exec {sys.executable} {quick} "$@"'), ("scontrol", f'echo "$@" >> {requeued}')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with RedisServer() as store, serving(WEB) as server:
        crawl = AllShards(tmp_path / "cs", server, SHARDS=2, CLUSTER=store.url)
        tasks = [slurm_task(crawl, number, 4) for number in range(2)]
        for task in tasks:  # a signal amid the opening of a crawl ends it at once
            task.until(lambda: {entry.host for entry in server.log_entries} == set(HOSTS))
        for task in tasks:
            task.process.send_signal(signal.SIGUSR1)
        ended = [task.wait() for task in tasks]
        assert all(one.code == 0 and one.lines("was paused (shutdown)") for one in ended), ended
        assert sorted(requeued.read_text().splitlines()) == ["requeue 7_0", "requeue 7_1"]
        ended = [task.wait() for task in [slurm_task(crawl, number, 0.2) for number in range(2)]]
        assert all(one.code == 0 and one.lines("is finished.") for one in ended), ended
        assert kept(crawl.directory) == URLS


def slurm_task(crawl: AllShards, number: int, interval_s: float) -> Running:
    given = {**crawl.settings, "SPIDERLING_HOST_INTERVAL_S": interval_s}
    arguments = ["-a", "lang=cs", "-a", f"seeds={SEEDS}"]
    arguments += [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    slurm = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": str(number), "SLURM_CPUS_PER_TASK": "1"}
    output = crawl.directory.with_name(f"task-{number}-{interval_s}.out")
    with output.open("wb") as stream:
        process = subprocess.Popen(
            ["bash", str(ROOT / "examples/clusters/shards.sbatch"), *arguments], cwd=ROOT, stdin=subprocess.DEVNULL,
            env={**os.environ, **slurm, "CONSTANTS": json.dumps(SOON)}, stdout=stream, stderr=stream,
        )  # fmt: skip
    return Running(process, output)


class _Ever:
    """What is waited for by `Running.until` when no process is to go on meanwhile."""

    class process:  # noqa: N801
        poll = staticmethod(lambda: None)

    output = staticmethod(str)


@pytest.mark.slow
def test_shards_that_cannot_begin_say_why_once(tmp_path):
    """The exit code is the worst of theirs, and nothing is left."""
    with serving(WEB) as server:
        ended = AllShards(tmp_path / "cs", server, SHARDS=2).start(str(tmp_path / "none.txt")).wait()
    assert ended.code == 1 and len(ended.lines("ERROR", "none.txt")) == 1
    assert not (tmp_path / "cs").exists()


@pytest.mark.parametrize(("shards", "said"), [("auto", "only scrapy crawl starts shards"), (4, "no Redis is given by")])
def test_what_is_no_scrapy_crawl_starts_none(shards, said):
    """Such as a program of the user's own with Scrapy's CrawlerProcess."""
    with pytest.raises(BadInput, match=said):
        options_of(Settings({"SPIDERLING_SHARDS": shards}), SpiderlingSpider(lang="cs"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SHARDS": "auto", "CLUSTER": "redis://127.0.0.1/0"}, "give no SPIDERLING_CLUSTER, or give a number"),
        ({"SHARDS": "many"}, "SPIDERLING_SHARDS is 'many'; it must be a whole number, such as 20, 500k or 2.5M."),
        ({"SHARDS": "2", "CLUSTER": "redis://127.0.0.1:1/0"}, "SPIDERLING_CLUSTER_KEY_FILE is missing"),
        ({"SHARDS": "2", "CLUSTER": "localhost:6379"}, "no address of a Redis"),
        ({"SHARDS": "2", "CLUSTER": "nonsense", "CLUSTER_KEY_FILE": "{key}"}, "no address of a Redis"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(tmp_path, settings, said):
    key = tmp_path / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    given = {name: value.format(key=key) for name, value in settings.items()}
    arguments = [part for name, value in given.items() for part in ("-s", f"SPIDERLING_{name}={value}")]
    assert said in refusal(tmp_path / "cs", "-a", "lang=cs", *arguments)
    assert not (tmp_path / "cs").exists()
