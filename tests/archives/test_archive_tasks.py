"""Archives shared out over tasks, each of which may be killed or paused: together they are one run over all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import DEADLINE_S, NETWORK, ROOT, Crawl, scrapy

from benchmarks.archive import pages, write

EXAMPLES = ROOT / "examples/clusters"
HOSTS = (
    "gimp.cs.test", "aptitude.cs.test", "handbook.cs-cz.test", "lo.cs.test", "instalace.test", "sqlite.en.test",
)  # fmt: skip
"""Each gives an archive."""
PAGES = 40
"""Pages of each archive."""
SETTINGS = {
    "ALLOW_NETWORKS": NETWORK,
    "DEDUP": "exact",  # no page of one host is one of another; they share paragraphs, and two parts both keep these
}
CRAWL = (
    "-a",
    "lang=cs,en",
    *(part for name, value in SETTINGS.items() for part in ("-s", f"SPIDERLING_{name}={value}")),
)

OF_TIME = ("total/time", "total/bound")
"""Counts that differ from run to run."""


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> list[Path]:
    """WARC files of the bundled pages."""
    directory = tmp_path_factory.mktemp("warc")
    found = defaultdict(list)
    for url, body in pages(None):
        found[url.split("/")[2]].append((url, body))
    for host in HOSTS:
        write(directory / f"{host}.warc.gz", found[host][:PAGES])
    return sorted(directory.iterdir())


class Finished(Crawl):
    """The directory of a crawl that has finished."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, SimpleNamespace(hosts_option=""))


@pytest.fixture(scope="module")
def one_run(archives, tmp_path_factory) -> Finished:
    """All archives in one crawl."""
    directory = tmp_path_factory.mktemp("one") / "job"
    warc = ",".join(map(str, archives))
    ended = scrapy("crawl", "archive", *CRAWL, "-a", f"warc={warc}", "-s", f"JOBDIR={directory}")
    assert "is finished: all archives are read." in ended.log, ended
    return Finished(directory)


def share_out(sources: list[str], directory: Path) -> None:
    """Three parts, as docs/clusters.md makes them."""
    directory.mkdir()
    (directory.parent / "all.paths").write_text("".join(f"{source}\n" for source in sources))
    command = "split --number=r/3 --numeric-suffixes --suffix-length=3 --additional-suffix=.paths all.paths"
    subprocess.run([*command.split(), f"{directory}/"], cwd=directory.parent, check=True)


def totals(crawls: list[Finished]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for crawl in crawls:
        crawl.state().check()
        counts.update(crawl.state().counts)
    return Counter({key: number for key, number in counts.items() if number and not key.startswith(OF_TIME)})


def assert_same_as(one_run: Finished, directory: Path) -> None:
    """The parts in *directory* are together *one_run*."""
    crawls = [Finished(path.with_suffix("")) for path in sorted(directory.glob("*.paths"))]
    assert len(crawls) == 3 and all(crawl.documents() for crawl in crawls)
    digests = [(url, digest) for crawl in crawls for url, digest in crawl.digests().items()]
    assert sorted(digests) == sorted(one_run.digests().items())
    assert totals(crawls) == totals([one_run])
    joined = directory / "joined.jsonl"
    exported = scrapy("export", *(str(crawl.directory) for crawl in crawls), "-o", str(joined))
    assert exported.code == 0, exported
    assert {json.loads(line)["url"] for line in joined.open()} == one_run.digests().keys()


@contextmanager
def busy_server(path: Path) -> Iterator[SimpleNamespace]:
    """Serves *path*, but says that it is busy for an hour until ``relent`` is called."""
    relented, asked = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            body = path.read_bytes() if relented.is_set() else b""
            self.send_response(200 if relented.is_set() else 503)
            self.send_header("Retry-After", "3600")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.84.7.3", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.84.7.3:{server.server_port}/{path.name}"
        yield SimpleNamespace(url=url, asked=asked, relent=relented.set)
    finally:
        server.shutdown()
        server.server_close()


# -- Slurm


class Node:
    """Runs the script of an array's tasks as Slurm does, with a scontrol that only notes what it is told."""

    def __init__(self, directory: Path, parts: Path) -> None:
        self._parts = parts
        self.disk = directory / "disk"
        self._told = directory / "scontrol.txt"
        programs = directory / "bin"
        for path in (self.disk, programs):
            path.mkdir()
        self._write(programs / "scrapy", f'exec "{sys.executable}" -m scrapy "$@"')
        self._write(programs / "scontrol", f'echo "$@" >> "{self._told}"')
        self._path = f"{programs}:{os.environ['PATH']}"

    def _write(self, path: Path, line: str) -> None:
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def start(self, task: int, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_JOB_ID": "77", "SLURM_CPUS_PER_TASK": "1"}
        return subprocess.Popen(
            ["bash", str(EXAMPLES / "archive.sbatch"), str(self._parts), *CRAWL, *arguments],
            cwd=ROOT, env={**os.environ, **slurm, **environment, "PATH": self._path, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, task: int, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(task, *arguments, **environment)
        output, _ = process.communicate(timeout=DEADLINE_S)
        return process.returncode, output

    @property
    def requeued(self) -> list[str]:
        return self._told.read_text().splitlines() if self._told.exists() else []


def cancel(pid: int) -> None:
    """As scancel: all processes of a task get the signal."""
    os.killpg(pid, signal.SIGTERM)


def tell_the_time(pid: int) -> None:
    """As --signal=B: does: the script alone."""
    os.kill(pid, signal.SIGUSR1)


@pytest.mark.slow
def test_tasks_of_an_array_are_killed_and_paused_and_give_what_one_run_gives(archives, one_run, tmp_path):
    with busy_server(archives[5]) as server:
        parts = tmp_path / "parts"
        share_out([*map(str, archives[:5]), server.url], parts)
        node = Node(tmp_path, parts)

        code, output = node.run(0)
        assert code == 0 and "is finished" in output, output

        layer = json.dumps({"benchmarks.inside.FaultLayer": 1, "tests.archives.frequent.FrequentCheckpoints": 2})
        code, output = node.run(1, "-s", f"EXTENSIONS={layer}", "-s", "FAULT=transaction:2")
        assert code == 128 + 9 and "is finished" not in output, output
        code, output = node.run(1)
        assert code == 0 and "Resuming" in output and "is finished" in output, output

        for sends, requeued in ((cancel, []), (tell_the_time, ["requeue 77_2"])):
            server.asked.clear()
            task = node.start(2, LOCAL_DISK=str(node.disk))
            assert server.asked.wait(DEADLINE_S)
            sends(task.pid)
            output, _ = task.communicate(timeout=DEADLINE_S)
            assert task.returncode == 0 and "was paused (shutdown)" in output, output
            assert node.requeued == requeued
        server.relent()
        code, output = node.run(2, LOCAL_DISK=str(node.disk))
        assert code == 0 and "Resuming" in output and "is finished" in output, output

    assert node.requeued == ["requeue 77_2"] and list(node.disk.iterdir()) == []
    assert sorted(path.name for path in parts.iterdir()) == ["000", "000.paths", "001", "001.paths", "002", "002.paths"]
    assert_same_as(one_run, parts)
