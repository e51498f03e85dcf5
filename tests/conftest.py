"""Whole crawls for tests: a Web served on loopback, the real spider in a process of its own, and what it left.

    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server)
        result = crawl.run("http://a.test/", HOST_INTERVAL_S=0.2)
        crawl.documents(); crawl.state(); server.log_entries

The server runs in a thread of the test, so its access log is there to be read while the crawl goes on.

``scrapy("export", str(job), "-o", str(out))`` is a command that is waited for.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from dnslib import RCODE, DNSRecord
from example_counts import PROFILE, examples
from forked import DEADLINE_S, ROOT, Ended, Forked, forks, scrapy, start_scrapy  # noqa: F401 - for tests
from hypothesis import HealthCheck, settings
from needs import is_wanted, why_not
from text_steps import pytest_generate_tests, steps  # noqa: F401 - for pytest

from spiderling.base.files import zstd
from spiderling.frontier.storage.url_log import unpack_ends
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.state_reader import urls_of
from webs.server import serve
from webs.web import FixedWeb, html

# The same examples each time, whatever the machine's pace, but for the profile that looks for new ones.
settings.register_profile(
    PROFILE, deadline=None, derandomize=PROFILE != "explore", max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile(PROFILE)

gc.disable()  # while tests are collected, which leaves nothing to collect

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so do its children
CONTACT = "SPIDERLING_CONTACT=test@corpus.internal"
NETWORK = "127.84.0.0/16"
DEFAULTS = {
    "SPIDERLING_ALLOW_NETWORKS": NETWORK,
    "SPIDERLING_HOST_INTERVAL_S": 0.05,
    "SPIDERLING_IP_INTERVAL_S": 0.005,
    "SPIDERLING_DELAY_FACTOR": 0,
    "SPIDERLING_RETRIES": 1,
    "SPIDERLING_WORKERS": 1,
    "SPIDERLING_YIELD_PROFILE": "off",
    "SPIDERLING_DEDUP": "exact",  # made pages share their few sentences
    "SPIDERLING_OPTOUTS": "tdm-file=ignore,ai-txt=ignore",  # two requests a site less
}
CONSTANTS = {"extensions.lifecycle.CHECKPOINT_S": 0.2, "frontier.intervals.RETRY_DELAY_S": 0.2}
"""What a crawl waits for less long, but in a fresh process."""
SENTENCES = tuple((ROOT / "tests/sentences.txt").read_text("utf-8").splitlines())  # Czech ones


def gone_commands(installed: Iterable[EntryPoint]) -> list[str]:
    """Names of commands that *installed* has of us and pyproject.toml no longer; each fails all of Scrapy's program."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ours = [command for command in installed if command.value.startswith("spiderling.")]
    return sorted({command.name for command in ours} - project["entry-points"]["scrapy.commands"].keys())


def pytest_sessionstart() -> None:
    if gone := gone_commands(entry_points(group="scrapy.commands")):
        pytest.exit(f"the environment has commands that are gone ({', '.join(gone)}); say: make setup", returncode=4)


def pytest_collection_finish() -> None:
    gc.freeze()  # nobody looks again at each of the tests
    gc.enable()


def paragraphs(seed: object, count: int = 2, sentences: int = 4) -> list[str]:
    """Czech text, the same for the same *seed*; no two seeds give the same."""
    rng = random.Random(f"text {seed}")
    texts = [" ".join(rng.sample(SENTENCES, sentences)) for _ in range(count)]
    return [f"Toto je zpráva, která má číslo {seed} a kterou jsme pro vás napsali. {texts[0]}", *texts[1:]]


def document(seed: object, *links: str, count: int = 2) -> str:
    """A Czech page with a list of links."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs(seed, count))
    menu = "".join(f'<li><a href="{link}">odkaz</a></li>' for link in links)
    return f"<!doctype html><html><head><title>Strana {seed}</title></head><body><ul>{menu}</ul>{text}</body></html>"


def page(seed: object, *links: str):
    """The answer that holds ``document``."""
    return html(document(seed, *links))


@contextmanager
def serving(web, serve=serve):
    """*web*, or the FixedWeb of a table, on loopback; gives the Server (port, hosts_option, log_entries)."""
    web = FixedWeb(web) if isinstance(web, dict) else web
    loop = asyncio.new_event_loop()
    started, ended = threading.Event(), asyncio.Event()
    running = []

    async def run():
        async with serve(web) as server:
            running.append(server)
            started.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert started.wait(DEADLINE_S), "the web could not be served"
    try:
        yield running[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(DEADLINE_S)
        loop.close()


@pytest.fixture(scope="module")
def server(request):
    """The web of the test's module, which is ``WEB`` or what ``web`` makes, on loopback."""
    with serving(request.module.web() if hasattr(request.module, "web") else request.module.WEB) as running:
        yield running


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Crawl:
    """The crawl of tests/cli/finished.py."""
    return import_module("finished").finish(tmp_path_factory.mktemp("finished") / "job")


def flags(settings: dict) -> list[str]:
    """*settings* as arguments of a command."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def unknown(query: bytes) -> bytes:
    """The answer of a name server that the name in *query* does not exist."""
    reply = DNSRecord.parse(query).reply()
    reply.header.rcode = RCODE.NXDOMAIN
    return reply.pack()


@contextmanager
def nameserver(answer=unknown):
    """A name server on loopback that gives *answer* to each query, or nothing; gives its address:port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.84.0.53", 0))

        def serve_names():
            while True:
                query, client = sock.recvfrom(4096)
                if not query:
                    return
                if said := answer(query):
                    sock.sendto(said, client)

        thread = threading.Thread(target=serve_names, daemon=True)
        thread.start()
        try:
            yield "{}:{}".format(*sock.getsockname())
        finally:
            sock.sendto(b"", sock.getsockname())
            thread.join(5)


# -- processes


def refusal(jobdir: Path, *arguments: str, contact: bool = True, **process) -> str:
    """Run a crawl that must not begin; returns the one sentence that says why."""
    contacts = ["-s", CONTACT] if contact else []
    ended = scrapy("crawl", "spiderling", "-s", f"JOBDIR={jobdir}", *contacts, *arguments, **process)
    assert "Traceback" not in ended.log, ended.log
    assert len(ended.errors) == 1, ended.log
    assert ended.code != 0
    return ended.errors[0].removeprefix("The crawl stops: ")


class Result(NamedTuple):
    """How a crawl's process ended."""

    code: int
    output: str  # standard output and error

    def lines(self, *parts: str) -> list[str]:
        """The lines of the output that hold all *parts*."""
        return [line for line in self.output.splitlines() if all(part in line for part in parts)]


class Document(NamedTuple):
    """One ``<doc>`` of the corpus."""

    attributes: dict[str, str]
    paragraphs: list[str]

    @property
    def url(self) -> str:
        return self.attributes["url"]

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.paragraphs).encode()).hexdigest()


class State(NamedTuple):
    """What the SQLite file holds."""

    counts: dict[str, int]
    hosts: dict[str, dict]
    urls: list[tuple[str, int]]  # (URL, parked) of those that have not ended
    segments: dict[str, tuple[int, int]]  # name -> (length in bytes, documents)
    meta: dict[str, str]
    events: list[str]

    @property
    def ends(self) -> dict[str, int]:
        return {key[4:]: number for key, number in self.counts.items() if key.startswith("end/") and number}

    @property
    def mentions(self) -> dict[str, int]:
        return {key[8:]: number for key, number in self.counts.items() if key.startswith("mention/") and number}

    def counters(self) -> dict[str, tuple]:
        """What a crawl must count alike however often it was interrupted."""
        columns = ("state", "distance", "pages", "documents", "words", "downloaded_bytes", "kept_bytes", "waiting")
        return {name: tuple(host[column] for column in columns) for name, host in self.hosts.items()}

    def check(self) -> None:
        """The books balance: discovered = ends + waiting, and waiting is what has a row."""
        waiting = sum(not parked for _, parked in self.urls)
        assert self.counts["waiting"] == waiting
        assert self.counts["discovered"] == sum(self.ends.values()) + waiting
        assert sum(host["waiting"] for host in self.hosts.values()) == waiting
        assert self.counts.get("total/documents", 0) == self.ends.get("kept", 0)


def damage_in(directory: Path) -> list[str]:
    """What ``scrapy inspect --check`` finds."""
    with closing(Inspection(directory)) as opened:
        return list(problems(opened))


class Running:
    """The process of a crawl; its output goes to a file."""

    def __init__(self, process: Forked | subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self.output_file = output

    def output(self) -> str:
        return self.output_file.read_text("utf-8", "replace")

    def wait(self, timeout: float = DEADLINE_S) -> Result:
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            output = [line for line in self.output().splitlines() if "extensions.progress" not in line]  # these repeat
            raise AssertionError("\n".join([f"the crawl did not end within {timeout} s:", *output[-40:]])) from None
        return Result(code, self.output())

    def stop(self, number: int = signal.SIGINT) -> Result:
        self.process.send_signal(number)
        return self.wait()

    def until(self, condition, timeout: float = DEADLINE_S) -> None:
        """Return when *condition* holds; fails when the crawl ends before."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.process.poll() is None, f"the crawl has ended:\n{self.output()[-3000:]}"
            assert time.monotonic() < deadline, f"waited in vain:\n{self.output()[-3000:]}"
            time.sleep(0.01)


class Crawl:
    """One crawl directory and the settings of its processes."""

    def __init__(self, directory: Path, server, project: Path = ROOT, spider: str = "spiderling", **settings) -> None:
        self.directory = directory
        self._project = project
        self._spider = spider
        self._runs = 0
        self.settings = {**DEFAULTS, "JOBDIR": directory, "SPIDERLING_HOSTS": server.hosts_option}
        self.settings.update(_prefixed(settings))

    def start(
        self, seeds: str = "", arguments: tuple = (), preexec_fn=None, fresh: bool = False, lang: str = "cs", **settings
    ) -> Running:
        """The crawl's process; *settings* without SPIDERLING_ unless they contain one of Scrapy's names.

        ``CONSTANTS`` is a dict: values of constants in that process, by their names with the module.
        """
        given = {**self.settings, **_prefixed(settings)}
        constants = given.pop("CONSTANTS", {})
        if not (fresh or preexec_fn):
            constants = {**CONSTANTS, **constants}
        assert not (constants and (fresh or preexec_fn)), "only a forked process takes them"
        command = ["crawl", self._spider, *arguments]
        command += ["-a", f"lang={lang}"] if lang else []
        command += ["-a", f"seeds={seeds}"] if seeds else []
        if os.environ.get("STOCK_SCRAPY"):
            given.setdefault("DOWNLOADER", "scrapy.core.downloader.Downloader")
        command += flags(given)
        self._runs += 1
        output = self.directory.with_name(f"{self.directory.name}-{self._runs}.out")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(self._project)])}
        environment.pop("SCRAPY_SETTINGS_MODULE", None)
        environment["CONSTANTS"] = json.dumps({f"spiderling.{name}": value for name, value in constants.items()})
        with output.open("wb") as stream, open(os.devnull, "rb") as nothing:
            streams = (nothing, stream, stream)
            process = start_scrapy(command, self._project, environment, streams, preexec_fn, fresh)
        return Running(process, output)

    def run(self, seeds: str = "", timeout: float = DEADLINE_S, **settings) -> Result:
        return self.start(seeds, **settings).wait(timeout)

    def documents(self) -> list[Document]:
        """All documents of the corpus, which must be XML."""
        documents = []
        for path in sorted(self.directory.glob("corpus/*.prevert.zst")):
            with path.open("rb") as stream:
                data = zstd.ZstdFile(stream).read()
            for doc in ElementTree.fromstring(b"<corpus>" + data + b"</corpus>"):
                assert doc.tag == "doc" and all(p.tag == "p" for p in doc)
                documents.append(Document(doc.attrib, [(p.text or "").strip() for p in doc]))
        return documents

    def digests(self) -> dict[str, str]:
        """URL -> digest of the text of each document; no URL stands in the corpus twice."""
        documents = self.documents()
        assert max(Counter(doc.url for doc in documents).values(), default=1) == 1
        return {doc.url: doc.digest for doc in documents}

    def ended(self) -> dict[str, tuple[str, str]]:
        """URL -> (Reason, detail) of each URL that ended; those of hosts that refuse are parked."""
        with closing(Inspection(self.directory)) as inspection:
            rows = inspection.rows("SELECT keys, ends FROM ended")
            logged = [end for row in rows for end in unpack_ends(row["keys"], row["ends"])]
        state = self.state()
        refusing = {name for name, host in state.hosts.items() if host["state"] == "refused"}
        parked = [url for url, is_parked in state.urls if is_parked and urlsplit(url).hostname in refusing]
        return {end.url: (end.reason, end.detail) for end in logged} | dict.fromkeys(parked, ("host-refused", ""))

    def state(self) -> State:
        with closing(sqlite3.connect(f"file:{self.directory}/state/frontier.sqlite?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row

            def rows(query):
                return connection.execute(query).fetchall()

            def queue(host):
                return urls_of(connection, host)

            return State(
                counts=dict(map(tuple, rows("SELECT key, value FROM count"))),
                hosts={row["name"]: dict(row) for row in rows("SELECT * FROM host")},
                urls=sorted((url.url, url.parked) for row in rows("SELECT id FROM host") for url in queue(row["id"])),
                segments={name: (length, number) for name, length, number in rows("SELECT * FROM segment")},
                meta=dict(map(tuple, rows("SELECT key, value FROM meta"))),
                events=[row[0] for row in rows("SELECT what FROM event ORDER BY rowid")],
            )


def crawled(directory: Path, web, seeds: str = "http://a.test/", **settings) -> tuple[Crawl, Result, list]:
    """A crawl of *web* that ends well: its directory and settings, how it ended, and the access log."""
    with serving(web) as server:
        crawl = Crawl(directory, server)
        result = crawl.run(seeds, **settings)
    assert result.code == 0 and "Traceback" not in result.output, result.output[-3000:]
    return crawl, result, server.log_entries


_SCRAPY = (
    "LOG_", "JOBDIR", "FEEDS", "CLOSESPIDER_", "DOWNLOAD_", "STATS_", "USER_AGENT", "ITEM_PIPELINES", "EXTENSIONS",
    "FAULT", "CONSTANTS", "LOGSTATS_",
)  # fmt: skip


def _prefixed(settings: dict) -> dict:
    return {name if name.startswith(_SCRAPY) else f"SPIDERLING_{name}": value for name, value in settings.items()}


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item):
    """A test skips for want of what tests/needs.py names, or fails."""
    for mark in item.iter_markers("needs"):
        if why := why_not(mark.kwargs["name"]):
            (pytest.fail if is_wanted(mark.kwargs["name"]) else pytest.skip)(why)


def pytest_terminal_summary(terminalreporter):
    """Lines that tests left by ``record_property("summary", line)``, also when they ran in other processes."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, line in report.user_properties:
            if name == "summary" and report.when == "call":
                terminalreporter.write_line(line)


def pages_asked(entries) -> list:
    """The entries of an access log that are not for robots.txt."""
    return [entry for entry in entries if entry.path != "/robots.txt"]
