"""``spiderling COMMAND`` from any directory, without a project around it; Scrapy's own commands; forked ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, Ended, page, scrapy, serving

from spiderling.languages import GROUPS, available
from webs.web import FixedWeb, html

COMMANDS = sorted(path.stem for path in ROOT.glob("spiderling/commands/*.py") if path.stem != "__init__")
PROGRAM = "from spiderling.__main__ import main; main()"


def spiderling(cwd: Path, *arguments: str) -> Ended:
    """Run ``python -m spiderling`` in *cwd*."""
    return scrapy(*arguments, cwd=cwd, module="spiderling")


def fresh(cwd: Path, *arguments: str, program: str = PROGRAM) -> Ended:
    """Run ``spiderling`` in *cwd* in a process that has imported nothing."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, timeout=DEADLINE_S, check=False)
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def project(directory: Path, settings: str) -> Path:
    """A Scrapy project with *settings*."""
    (directory / "scrapy.cfg").write_text("[settings]\ndefault = own\n")
    (directory / "own.py").write_text(f"{settings}\n")
    return directory


def test_without_a_command_all_are_listed(tmp_path):
    ended = fresh(tmp_path)
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines() if line.startswith("  ")][2:] == COMMANDS


def test_a_command_that_there_is_not_is_named(tmp_path):
    ended = spiderling(tmp_path, "exprot", "crawls/cs")
    assert ended.code == 2 and "Unknown command: exprot" in ended.out


@pytest.mark.slow
def test_a_crawl_needs_no_project_and_no_name_of_a_spider(tmp_path):
    web = FixedWeb({"a.test": {"/": page("home", "/next"), "/next": page("next")}}, {"a.test": "127.84.12.1"})
    with serving(web) as server:
        settings = {**DEFAULTS, "SPIDERLING_HOSTS": server.hosts_option}
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        ended = spiderling(tmp_path, "crawl", "-a", "lang=cs", "-a", "seeds=http://a.test/", *given)
    assert ended.code == 0 and "is finished." in ended.log, ended.log
    assert len(list(tmp_path.glob("crawls/cs/corpus/*.prevert.zst"))) == 1
    ended = spiderling(tmp_path, "export", "crawls/cs", "-o", "cs.txt")
    assert ended.out == "2 documents in cs.txt, 0 dropped.\n"
    assert spiderling(tmp_path, "export", "crawls/cs", "-o", "cs.txt").log.startswith("spiderling export: ")


@pytest.mark.parametrize(
    ("settings", "name"),
    [("from spiderling.settings import *\nBOT_NAME = 'own'", "own"), ("BOT_NAME = 'own'", "spiderling")],
    ids=["with the add-on", "of something else"],
)
def test_a_project_with_the_add_on_gives_its_settings(tmp_path, settings, name):
    assert spiderling(project(tmp_path, settings), "settings", "--get", "BOT_NAME").out == f"{name}\n"


def test_an_argument_without_its_flag_is_named(tmp_path):
    ended = scrapy("crawl", "lang=cs", cwd=ROOT)
    assert (ended.code, ended.out) == (2, "")
    assert "write -a before an argument: -a lang=cs" in ended.log


@pytest.mark.slow
def test_the_help_names_the_program_that_runs(tmp_path):
    ended = spiderling(tmp_path, "export", "--help")
    assert "\n  spiderling export JOBDIR" in ended.out
    assert "Example: spiderling export " in " ".join(ended.out.split())


@pytest.mark.parametrize("program", ["spiderling.__main__ import main", "scrapy.cmdline import execute as main"])
def test_another_system_is_refused_with_the_container(program):
    ended = fresh(ROOT, "crawl", "-a", "lang=cs", program=f"from {program}; import sys; "
                       "sys.platform = 'darwin'; sys.argv[0] = 'scrapy'; main()")  # fmt: skip
    assert ended.code != 0 and "Traceback" not in ended.log
    assert "Spiderling runs on Linux, and this is darwin; use the container in examples/operations/" in ended.log


# -- extras


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("parquet", ["export", "tests/jobdirs/killed", "-o", "OUT.parquet"]),
        ("parquet", ["crawl", "-a", "lang=cs", "-s", 'FEEDS={"OUT.parquet": {"format": "parquet"}}']),
    ],
)
def test_an_extra_that_is_missing_is_named_before_the_work_begins(extra, arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTANTS", json.dumps({"spiderling.base.machine.EXTRAS": {extra: ("absent", "absent>=1,<2")}}))
    ended = scrapy(*(part.replace("OUT", f"{tmp_path}/out") for part in arguments))
    assert ended.code != 0 and not ended.out
    assert f"the package absent is not installed; say: {sys.executable} -m pip install 'absent>=1,<2'." in ended.log
    assert "Traceback" not in ended.log
    assert list(tmp_path.iterdir()) == []


# -- languages


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), {"code", *available(), *GROUPS}),  # the head of the table, too
        (("Serb",), {"code", "sr", "hsb", "hbs"}),
        (("cz",), {"code", "cs"}),
        (("Klingon",), set()),
    ],
)
def test_languages_are_listed_and_a_word_narrows_the_list(words, found):
    ended = scrapy("languages", *words)
    assert set(re.findall(r"^  (?! )(\S+)", ended.out, re.MULTILINE)) == found
    assert ended.code == (0 if found else 1)
    assert found or ended.refusal == "no language has 'klingon' in it; all are listed by: scrapy languages"


# -- each command in a process of its own, as a user starts it; the other tests fork theirs, which must be the same


@pytest.mark.parametrize("command", ["crawl", pytest.param("export", marks=pytest.mark.slow)])
def test_a_forked_command_is_what_a_fresh_one_is(command):
    ended = scrapy(command, "--help")
    assert ended.code == 0 and ended.out
    assert ended == scrapy(command, "--help", fresh=True)


def test_arguments_and_surroundings_reach_a_forked_process(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN_BY", "the command")
    (tmp_path / "told.py").write_text(
        "import os, sys\n"
        "print(os.environ['SEEN_BY'], os.getcwd(), sys.stdin.read(), sys.path[0])\n"
        "print('ž', file=sys.stderr)\n"
        "sys.exit(7)\n"
    )
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = told\n")
    for fresh in (False, True):
        ended = scrapy("list", cwd=tmp_path, stdin="čau".encode(), fresh=fresh)
        assert ended == (7, f"the command {tmp_path} čau {tmp_path}\n", "ž\n")


@pytest.mark.parametrize("fresh", [False, True])
def test_the_signal_that_ended_it_is_told(tmp_path, fresh):
    (tmp_path / "ends.py").write_text(f"import os\nos.kill(os.getpid(), {signal.SIGKILL:d})\n")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ends\n")
    assert scrapy("list", cwd=tmp_path, fresh=fresh).code == -signal.SIGKILL


def test_damage_is_told_by_the_exit_code_though_nobody_reads_the_output(tmp_path):
    """The pipe is closed at its other end, as ``head`` does once it has seen enough."""
    job = shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job")
    segment = min(job.glob("corpus/*.zst"))
    segment.write_bytes(segment.read_bytes()[:50])
    nobody, output = os.pipe()
    os.close(nobody)
    command = [sys.executable, "-u", "-m", "scrapy", "inspect", str(job), "--check"]
    with open(output, "wb") as stream:
        assert subprocess.run(command, cwd=ROOT, stdout=stream, check=False).returncode == 1


# -- scrapy's own commands beside ours: they begin no crawl, open no JOBDIR, and answer as in a project without it


BODY = "<html><title>Ano</title><p>Text.</p></html>"
PROJECT = """
BOT_NAME = "foreign"
SPIDER_MODULES = ["foreign"]
ADDONS = {"spiderling.addon.SpiderlingAddon": 300}
COMMANDS_MODULE = "spiderling.commands"
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
JOBDIR = "crawls/mine"
SPIDERLING_LANG = "cs"
"""
SPIDER = """
from scrapy import Spider

class Mine(Spider):
    name = "mine"

    def parse(self, response):
        '''The contract of this callback.

        @url {url}
        @returns items 1 1
        @scrapes title
        '''
        yield {{"title": response.css("title::text").get()}}
"""


@pytest.fixture(scope="module")
def url():
    address = "127.84.21.1"
    with serving(FixedWeb({address: {"/": html(BODY)}}, {address: address})) as server:
        yield f"http://{address}:{server.port}/"


@pytest.fixture
def foreign(tmp_path, url):
    """A project with the add-on, in which a crawl has a directory."""
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/__init__.py").write_text(SPIDER.format(url=url))
    (tmp_path / "told.py").write_text(PROJECT)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = told\n")
    return tmp_path


STOCK = {
    "shell": (["shell", "--nolog", "-c", "response.status", "URL"], "200\n"),
    "fetch": (["fetch", "--nolog", "URL"], f"{BODY}\n"),
    "view": (["view", "--nolog", "URL"], ""),
    "parse": (
        ["parse", "--nolog", "--noitems", "--nolinks", "--spider=mine", "URL"],
        "\n>>> STATUS DEPTH LEVEL 1 <<<\n",
    ),
    "check": (["check"], ""),
    "list": (["list"], "mine\n"),
    "settings": (["settings", "--get", "BOT_NAME"], "foreign\n"),
}


@pytest.mark.parametrize("command", STOCK)
def test_a_command_of_scrapy_in_a_project_with_the_add_on(foreign, url, command, monkeypatch):
    monkeypatch.setenv("BROWSER", "true")
    arguments, printed = STOCK[command]
    ended = scrapy(*[url if argument == "URL" else argument for argument in arguments], cwd=foreign)
    assert (ended.code, ended.out) == (0, printed), ended
    assert "Traceback" not in ended.log and "Spiderling" not in ended.log
    if command == "check":
        assert "Ran 2 contracts" in ended.log and "FAILED" not in ended.log
    assert not (foreign / "crawls").exists(), "it opened the crawl's directory"


@pytest.mark.parametrize("command", ["shell", "fetch", "view", "parse", "check"])
def test_the_same_without_our_commands_module(foreign, url, command, monkeypatch):
    told = foreign / "told.py"
    told.write_text(told.read_text().replace('COMMANDS_MODULE = "spiderling.commands"', ""))
    test_a_command_of_scrapy_in_a_project_with_the_add_on(foreign, url, command, monkeypatch)


def test_a_spider_of_ours_is_parsed_in_the_checkout_without_a_crawl(url, tmp_path):
    settings = ("-s", f"JOBDIR={tmp_path / 'job'}", "-s", "SPIDERLING_LANG=cs")
    ended = scrapy("parse", "--nolog", "--spider=spiderling", *settings, url, cwd=ROOT)
    assert ended.code == 0 and f"'response': <200 {url}>" in ended.out
    assert not (tmp_path / "job").exists()


def test_runspider_is_a_crawl_with_our_exit_codes(foreign):
    feed = ("-o", "x.jsonl", "-s", "SPIDERLING_ALLOW_NETWORKS=", "-s", "SPIDERLING_CONTACT=")
    ended = scrapy("runspider", "foreign/__init__.py", *feed, cwd=foreign)
    assert ended.code == 1 and ended.errors[0].startswith("The crawl stops: no contact is given")
    assert "Unrecognized output format" in scrapy("runspider", "foreign/__init__.py", "-o", "x.parqet", cwd=foreign).log


@pytest.mark.slow
def test_bench(foreign):
    """Scrapy's own server for it listens on all addresses."""
    ended = scrapy("bench", "-s", "CLOSESPIDER_TIMEOUT=1", cwd=foreign)
    assert ended.code == 0 and "Spider closed (closespider_timeout)" in ended.log
    assert not (foreign / "crawls").exists()
