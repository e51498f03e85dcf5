"""``spiderling COMMAND`` from any directory, without a project around it; and what an extra that is missing says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, Ended, page, scrapy, serving

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.languages import GROUPS, available
from webs.web import FixedWeb

COMMANDS = sorted(
    path.stem for path in ROOT.glob("spiderling/commands/*.py") if path.stem not in ("__init__", "settings")
)
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


@pytest.mark.parametrize("inside", [False, True])
def test_a_command_that_there_is_not_is_named(tmp_path, inside):
    ended = spiderling(ROOT if inside else tmp_path, "exprot", "crawls/cs")
    assert (ended.code, ended.out) == (2, "")
    assert ended.log == "spiderling: there is no command exprot; did you mean export? All are listed by: spiderling\n"


@pytest.mark.slow
def test_scrapys_program_names_the_near_command_too(tmp_path, monkeypatch):
    """Scrapy says "Unknown command", and no more, before it asks any command."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    ended = scrapy("crwal", "-a", "lang=cs", cwd=ROOT, fresh=True)
    assert (ended.code, ended.out) == (2, "")
    assert ended.log == "scrapy: there is no command crwal; did you mean crawl? All are listed by: scrapy\n"
    own = project(tmp_path, "from spiderling.settings import *\nCOMMANDS_MODULE = 'mine'")
    (own / "mine").mkdir()
    (own / "mine/__init__.py").write_text("")
    (own / "mine/crwal.py").write_text("from spiderling.commands import crawl\nclass Command(crawl.Command): pass\n")
    assert "Start a crawl" in scrapy("crwal", "--help", cwd=own, fresh=True).out, "a command of the user's own"
    assert "Unknown command: crawll" in scrapy("crawll", cwd=own, fresh=True).out


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
        ("dedup", ["dedup", "tests/jobdirs/killed", "-o", "OUT.prevert"]),
    ],
)
def test_an_extra_that_is_missing_is_named_before_the_work_begins(extra, arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTANTS", json.dumps({"spiderling.base.machine.EXTRAS": {extra: ("absent", "absent>=1,<2")}}))
    ended = scrapy(*(part.replace("OUT", f"{tmp_path}/out") for part in arguments))
    assert ended.code != 0 and not ended.out
    assert f"the package absent is not installed; say: {sys.executable} -m pip install 'absent>=1,<2'." in ended.log
    assert "Traceback" not in ended.log
    assert list(tmp_path.iterdir()) == []


# -- lists


def test_every_language_and_group_is_listed():
    lines = scrapy("languages").out.splitlines()
    assert {line.split()[0] for line in lines[1:] if line.startswith("  ")} == {*available(), *GROUPS}


def test_every_option_is_listed():
    found = {line.split()[0] for line in scrapy("options").out.splitlines() if not line.startswith(" ")}
    assert found == {f"SPIDERLING_{name.upper()}" for name in Options.__dataclass_fields__}


def test_every_reason_is_listed():
    found = [line.split()[0] for line in scrapy("reasons").out.splitlines() if line.startswith("  ")]
    assert sorted(found) == sorted(reason.value for reason in Reason)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("languages", "Serb"), ["sr", "hsb", "hbs"]),
        (("languages", "cz"), ["cs"]),
        (("options", "crawl-delay"), []),
        (("options", "delay_factor"), ["SPIDERLING_DELAY_FACTOR"]),
        (("reasons", "flood"), ["bad-http"]),
    ],
)
def test_a_word_narrows_a_list(arguments, found):
    ended = scrapy(*arguments)
    names = {"sr", "hsb", "hbs", "cs", "bad-http", "SPIDERLING_DELAY_FACTOR"}
    assert [word for line in ended.out.splitlines() for word in line.split()[:1] if word in names] == found
    assert ended.code == (0 if found else 1)
    if not found:
        assert ended.refusal == "no option has 'crawl-delay' in it; all are listed by: scrapy options"
