"""The egg, deployed to a real scrapyd on loopback: models and workers come out of it; jobs and their directories."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import DEADLINE_S, ROOT, Crawl, page, serving
from needs import needs
from redis_server import RedisServer

from spiderling.text.steps import choose
from webs.web import FixedWeb

PAGES = 8
CONFIGURATION = """\
[scrapyd]
bind_address = 127.0.0.1
http_port = {port}
max_proc = 2
poll_interval = 0.2
"""

pytestmark = [pytest.mark.slow, needs("scrapyd"), needs("setuptools")]  # each job is a process that imports all anew


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A directory, and what asks the scrapyd in it, to which the egg is deployed."""
    directory = tmp_path_factory.mktemp("service")
    egg = built_egg(directory)
    with scrapyd(directory) as ask:
        added = ask("addversion.json", {"project": "spiderling", "version": "1"}, egg=egg)
        assert added["spiders"] == 2
        yield directory, ask


def test_two_jobs_of_one_directory(service, tmp_path):
    """The first builds its corpus from the egg alone; the second is refused while it runs, and harms nothing."""
    directory, ask = service
    web = FixedWeb({"a.test": {"/": page("home", *(f"/{n}" for n in range(PAGES)))}
                   | {f"/{n}": page(n) for n in range(PAGES)}}, {"a.test": "127.84.2.1"})  # fmt: skip
    with serving(web) as server:
        assert ask("listspiders.json?project=spiderling")["spiders"] == ["archive", "spiderling"]
        crawl = Crawl(tmp_path / "job", server, HOST_INTERVAL_S=3600)
        job = job_of("http://a.test/", crawl.settings)
        ask("schedule.json", {**job, "jobid": "first"})
        until(lambda: server.log_entries)
        ask("schedule.json", {**job, "jobid": "second"})

        until(lambda: finished(ask) == ["second"])
        log = log_of(directory, "second")
        assert re.search(rf"ERROR: The crawl stops: .*{tmp_path / 'job'} is in use by process \d+ on ", log)
        assert "Traceback" not in log
        (tmp_path / "job/control.yaml").write_text("host_interval_s: 0.1\n")  # the first goes on
        until(lambda: sorted(finished(ask)) == ["first", "second"])

    assert ways(directory, "second") == ["Process died: exitstatus=1"], "a failed job is seen as failed"
    assert ways(directory, "first") == ["Process finished:"]
    log = log_of(directory, "first")
    assert "ERROR" not in log
    assert "is finished." in log
    assert f"; text steps: {choose().words}" in log, "the egg holds the sources that the compiled steps stand for"
    assert {document.url for document in crawl.documents()} == {
        "http://a.test/", *(f"http://a.test/{n}" for n in range(PAGES)),
    }  # fmt: skip
    crawl.state().check()


@needs("redis")
@pytest.mark.parametrize("is_one_job", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_shards_of_a_crawl_are_one_job_or_several(service, tmp_path, is_one_job):
    """One that starts all shards on scrapyd's machine, or one for each shard, which find each other over a Redis."""
    directory, ask = service
    hosts = {f"s{number}.test": f"127.84.2.{10 + number}" for number in range(4)}
    web = FixedWeb({host: {"/": page(host, "/1"), "/1": page(f"{host} 1")} for host in hosts}, hosts)
    with RedisServer() as store, serving(web) as server:
        crawl = Crawl(tmp_path / "cs", server, SHARDS=2)
        settings = crawl.settings if is_one_job else {**crawl.settings, "SPIDERLING_CLUSTER": store.url}
        job = job_of(" ".join(f"http://{host}/" for host in hosts), settings)
        jobs = ["all"] if is_one_job else ["shard-a", "shard-b"]
        for jobid in jobs:
            ask("schedule.json", {**job, "jobid": jobid})
        until(lambda: set(jobs) <= set(finished(ask)))
    for jobid in jobs:
        assert ways(directory, jobid) == ["Process finished:"], log_of(directory, jobid)
        assert "is finished." in log_of(directory, jobid)
    found = []
    for shard in range(2):
        crawl.directory = tmp_path / f"cs/shard-0{shard}"
        found += [document.url for document in crawl.documents()]
    assert sorted(found) == sorted(f"http://{host}{path}" for host in hosts for path in ("/", "/1"))


def job_of(seeds: str, settings: dict[str, object]) -> dict[str, object]:
    given = [f"{name}={value}" for name, value in settings.items() if value != ""]
    return {"project": "spiderling", "spider": "spiderling", "lang": "cs", "seeds": seeds, "setting": given}


def finished(ask) -> list[str]:
    return [ended["id"] for ended in ask("listjobs.json?project=spiderling")["finished"]]


def ways(directory: Path, job: str) -> list[str]:
    """How the processes of *job* have ended, as scrapyd tells it in its log."""
    log = (directory / "scrapyd.log").read_text("utf-8")
    return re.findall(rf"(Process (?:finished|died):(?: exitstatus=\d+)?) project='spiderling' .*job='{job}'", log)


def log_of(directory: Path, job: str) -> str:
    return (directory / f"logs/spiderling/spiderling/{job}.log").read_text("utf-8")


def built_egg(directory: Path) -> Path:
    """The egg, as scrapyd-deploy builds it; the source tree is left alone."""
    source = directory / "source"
    for name in ("spiderling", "models"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "scrapy.cfg"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "setup.py", "-q", "bdist_egg", "-d", str(directory / "dist")]
    ended = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (egg,) = (directory / "dist").glob("*.egg")
    names = set(zipfile.ZipFile(egg).namelist())
    wanted = {f"spiderling/models/{path.relative_to(ROOT / 'models')}" for path in (ROOT / "models").glob("*/*.*")}
    assert {name for name in wanted if "__pycache__" not in name} <= names
    assert not any(name.startswith("tests/") for name in names)
    shutil.rmtree(source)
    return egg


@contextmanager
def scrapyd(directory: Path):
    """A scrapyd in *directory*; gives a function that asks its API."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (directory / "scrapyd.conf").write_text(CONFIGURATION.format(port=port))

    def ask(path: str, fields: dict[str, Any] | None = None, egg: Path | None = None) -> dict[str, Any]:
        body, headers = encoded(fields or {}, egg)
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", body if fields else None, headers)
        answer = json.load(urllib.request.urlopen(request, timeout=120))
        assert answer["status"] == "ok", answer
        return answer

    def is_up() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    (egg,) = directory.glob("dist/*.egg")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import spiderling; assert sys.argv[1] in spiderling.__file__"
    importing = subprocess.run([sys.executable, "-c", code, str(egg)], cwd=directory, env=environment, check=False)
    assert importing.returncode == 0, "the package must come from the egg, not from what `make setup` has installed"
    command = [sys.executable, "-m", "scrapyd", "--pidfile="]
    with (directory / "scrapyd.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
    try:
        until(is_up)
        yield ask
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def encoded(fields: dict[str, Any], egg: Path | None) -> tuple[bytes, dict[str, str]]:
    """The body of a POST, with its header: a form, or multipart when there is an egg."""
    if egg is None:
        return urllib.parse.urlencode(fields, doseq=True).encode(), {}
    parts = [f'"{name}"\r\n\r\n{value}'.encode() for name, value in fields.items()]
    parts.append(b'"egg"; filename="spiderling.egg"\r\n\r\n' + egg.read_bytes())
    body = b"".join(b"--edge\r\nContent-Disposition: form-data; name=" + part + b"\r\n" for part in parts)
    return body + b"--edge--\r\n", {"Content-Type": "multipart/form-data; boundary=edge"}


def until(condition) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
