"""What ``pip install`` gets: its metadata, and a wheel that crawls outside of the checkout with the core alone."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distribution
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, document, gone_commands, page, paragraphs, scrapy, serving
from needs import needs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sources import sinners

from spiderling.base.machine import EXTRAS, missing
from spiderling.text.steps import PYTHON, choose
from webs.web import FixedWeb, html, plain

SIMULATOR = ROOT / "simulator"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def test_the_requirements_are_those_of_the_core_and_of_all_extras():
    listed = requirements_of(ROOT / "requirements.txt")
    extras = {name: set(needs) for name, needs in PROJECT["optional-dependencies"].items() if name in EXTRAS}
    assert listed == {*PROJECT["dependencies"], *set().union(*extras.values())}
    assert not set().union(*extras.values()) & set(PROJECT["dependencies"])


def test_every_extra_is_known_to_the_code_and_part_of_all():
    extras = PROJECT["optional-dependencies"]
    assert extras.keys() == {*EXTRAS, "all"}
    assert extras["all"] == [f"{PROJECT['name']}[{','.join(sorted(EXTRAS))}]"]


def test_a_missing_extra_is_installed_by_a_requirement_of_its_own(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for extra in EXTRAS:
        interpreter, *command, requirement = shlex.split(missing(extra).partition("; say: ")[2])
        assert (interpreter, command) == (sys.executable, ["-m", "pip", "install"])
        assert requirement in PROJECT["optional-dependencies"][extra]


UNRELEASED = {PROJECT["name"], "spiderling", "spiderling-native", "spiderling-simulator"}
"""Distributions that are on no index; whoever takes such a name there would run code where it is asked for."""
INSTALLING = re.compile(r"\b(?:pipx?|uv|uv pip|uv tool|easy_install) +(?:install|add)((?: +[^\s`]+)+)")


def asked_of_an_index(text: str) -> set[str]:
    """The names of distributions that commands of *text* would fetch from an index."""
    words = {word.strip("'\"()") for arguments in INSTALLING.findall(text) for word in arguments.split()}
    found = {re.match(r"[A-Za-z0-9][\w.-]*", word) for word in words if "/" not in word}
    return {canonicalize_name(match[0]) for match in found if match}


def test_nothing_tells_to_install_what_is_on_no_index():
    """Nor does anything require it, but the extra `all`, which names the extras beside it."""
    assert asked_of_an_index("say: pip install -q 'scrapy_spiderling[x]>=1' y") == {"scrapy-spiderling", "y"}
    assert not asked_of_an_index("pip install './native' \"/a/spiderling[all]\" -r")
    paths = [path for path in tracked() if path != Path(__file__)]
    assert not sinners(paths, lambda path: asked_of_an_index(path.read_text("utf-8", "replace")) & UNRELEASED)
    required = {need for path in paths if path.match("requirements*.txt") for need in requirements_of(path)}
    required |= {*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())}
    required |= {*simulator_project()["project"]["dependencies"]}
    required -= set(PROJECT["optional-dependencies"]["all"])
    assert not {canonicalize_name(Requirement(need).name) for need in required} & UNRELEASED


def simulator_project() -> dict[str, Any]:
    """What ``simulator/pyproject.toml`` says."""
    return tomllib.loads((SIMULATOR / "pyproject.toml").read_text("utf-8"))


def test_the_simulator_is_a_distribution_of_its_own():
    """All its folders are packed, and it needs nothing that Spiderling does not."""
    project = simulator_project()
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in SIMULATOR.glob("**/__init__.py")}
    assert {*project["tool"]["setuptools"]["packages"]} == folders
    assert {*project["project"]["dependencies"]} <= {*PROJECT["dependencies"]}
    assert "simulate" not in PROJECT["entry-points"]["scrapy.commands"]


def tracked() -> list[Path]:
    """The files of the checkout."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


def requirements_of(path: Path) -> set[str]:
    """The requirements that a file lists."""
    return {line.split("#")[0].strip() for line in path.read_text("utf-8").splitlines()} - {""}


def test_what_decides_on_shards_is_imported_without_the_extra_that_they_need():
    """SPIDERLING_SHARDS=2 ended in a traceback where redis is not installed, before the missing extra was named."""
    blocked = "import sys; sys.modules['redis'] = None; import spiderling.cluster.launcher"
    run(ROOT, sys.executable, "-c", blocked)


@pytest.mark.slow
@needs("setuptools")
def test_the_wheel_crawls_and_exports_where_there_is_no_checkout(tmp_path):
    """A missing extra is named, and works when it is there."""
    wheel = built(tmp_path)
    (tmp_path / "page.html").write_text(document("page"), "utf-8")
    (tmp_path / "text.txt").write_text("\n".join(line for n in range(30) for line in paragraphs(n)), "utf-8")
    home = tmp_path / "home"
    run(tmp_path, sys.executable, "-m", "venv", "--without-pip", home)
    install = [sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--no-index", "--no-deps"]
    run(tmp_path, *install, wheel)
    run(tmp_path, *install, simulator_wheel(tmp_path))
    packages = next(home.glob("lib/python*/site-packages"))
    assert (packages / "spiderling/py.typed").is_file()
    assert {path.suffix for path in packages.glob("spiderling/reporting/page.*")} == {".py", ".css", ".html", ".js"}
    link(packages, PROJECT["dependencies"])

    program = home / "bin/spiderling"
    (tmp_path / "spiderling").mkdir()
    (tmp_path / "spiderling/__init__.py").write_text("raise ImportError('this is another one')")
    web = FixedWeb({"a.test": {"/": page("home", "/next"), "/next": page("next")}}, {"a.test": "127.84.12.2"})
    with serving(web) as server:
        settings = DEFAULTS | {"SPIDERLING_HOSTS": server.hosts_option, "SPIDERLING_WARC": "on"}
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        log = run(tmp_path, program, "crawl", "-a", "lang=cs", "-a", "seeds=http://a.test/", *given)
    assert "is finished." in log
    assert "documents are left out" not in log
    assert "2 documents in cs.jsonl" in run(tmp_path, program, "export", "crawls/cs", "-o", "cs.jsonl")
    refused = run(tmp_path, program, "export", "crawls/cs", "-o", "cs.parquet", code=1)
    assert "python -m pip install 'duckdb>=1.1'" in refused
    for command, answer in {
        "crawl archive -a lang=cs -a warc=crawls/cs/warc": "corpus     crawls/cs-archive/",
        "inspect crawls/cs --check": "The crawl is whole.",
        "page page.html -a lang=cs": "verdict     kept",
        "extract page.html --format json": '"lang": "cs"',
        "identify page.html": "language    cs   Czech",
        "train qcs text.txt --neighbours cs --out my-models": "Model of qcs",
        "languages qcs -s SPIDERLING_MODELS=my-models": "  qcs   qcs",
        "simulate bfs --pages 1000": "| thai | bfs |",
    }.items():
        assert answer in run(tmp_path, program, *command.split())

    link(packages, [need for needs in PROJECT["optional-dependencies"].values() for need in needs if "[" not in need])
    assert "2 documents in cs.parquet" in run(tmp_path, program, "export", "crawls/cs", "-o", "cs.parquet")
    assert "The report is in" in run(tmp_path, program, "report", "crawls/cs")
    assert "2 documents in d.prevert" in run(tmp_path, program, "dedup", "crawls/cs", "-o", "d.prevert")


@pytest.mark.slow
@needs("setuptools")
def test_an_editable_checkout_is_used_from_any_directory_but_another_checkout(tmp_path):
    """With models, entry points and compiled steps."""
    source = copied(tmp_path / "source")
    home = tmp_path / "home"
    run(tmp_path, sys.executable, "-m", "venv", "--without-pip", home)
    native = ["spiderling-native"] if choose().steps is not PYTHON else []
    link(next(home.glob("lib/python*/site-packages")), ["setuptools", *native, *PROJECT["dependencies"]])
    pip = [sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--no-index", "--no-deps"]
    run(source, *pip, "--no-build-isolation", "--editable", source)
    for directory in (tmp_path, source):
        for program in (["bin/spiderling"], ["bin/python", "-m", "scrapy"]):
            assert "  cs    Czech" in run(directory, home / program[0], *program[1:], "languages", "cz")
    told = "from spiderling.text.steps import choose; import spiderling; print(spiderling.__file__, choose().words)"
    assert run(tmp_path, home / "bin/python", "-c", told) == f"{source}/spiderling/__init__.py {choose().words}\n"
    other = copied(tmp_path / "other")
    assert run(other, home / "bin/python", "-c", told).startswith(f"{other}/spiderling/__init__.py ")


def test_make_setup_forgets_which_commands_an_older_version_had(tmp_path):
    """An egg-info in the working directory counts more than what is installed: `scrapy` would fail for such a name."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    stale = tmp_path / "scrapy_spiderling.egg-info/entry_points.txt"
    stale.parent.mkdir()
    stale.write_text("[scrapy.commands]\ngone = spiderling.commands.gone:Command\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/created").touch()
    for extras, installed in {"cluster,parquet": ".[cluster,parquet]", "": "."}.items():
        made = run(tmp_path, "make", f".venv/with-{extras}", f"EXTRAS={extras}", "PIP=@echo")
        assert made.startswith(f"--editable {installed}\n")
    assert not stale.parent.exists()


def test_an_environment_with_commands_that_are_gone_is_refused_before_any_test():
    group = "scrapy.commands"
    here = [EntryPoint(name, value, group) for name, value in PROJECT["entry-points"][group].items()]
    other = EntryPoint("theirs", "elsewhere.theirs:Command", group)
    assert gone_commands([*here, other]) == []
    assert gone_commands([*here, other, EntryPoint("old", "spiderling.commands.old:Command", group)]) == ["old"]


def copied(directory: Path) -> Path:
    """A copy of what the checkout holds."""
    for path in tracked():
        name = path.relative_to(ROOT)
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(path.read_bytes())
    return directory


def built(directory: Path) -> Path:
    """The wheel, made from the sdist; it holds what one made from the checkout holds."""
    source = copied(directory / "source")
    run(source, sys.executable, "-c", BUILD, "build_wheel", directory / "direct")
    run(source, sys.executable, "-c", BUILD, "build_sdist", directory)
    (sdist,) = directory.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(directory, filter="data")
    unpacked = directory / sdist.name.removesuffix(".tar.gz")
    run(unpacked, sys.executable, "-c", BUILD, "build_wheel", directory / "dist")
    (wheel,) = (directory / "dist").glob("*.whl")
    (direct,) = (directory / "direct").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert names == set(zipfile.ZipFile(direct).namelist())
    bundled = {f"spiderling/{path.relative_to(ROOT)}" for path in ROOT.glob("models/**/language.yaml")}
    assert len(bundled) > 100 and bundled <= names
    assert not [name for name in names if not name.startswith(("spiderling/", "scrapy_spiderling-"))]
    return wheel


def simulator_wheel(directory: Path) -> Path:
    """The simulator's wheel, made where ``built`` has put the checkout."""
    run(directory / "source/simulator", sys.executable, "-c", BUILD, "build_wheel", directory / "dist")
    (wheel,) = (directory / "dist").glob("spiderling_simulator-*.whl")
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert names == {"simulator", wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}
    return wheel


def run(cwd: Path, *command: object, code: int = 0) -> str:
    """The output of *command*, which must end with *code*; it sees nothing of the checkout."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C.UTF-8"}
    ended = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, timeout=DEADLINE_S, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == code, ended.stdout
    return ended.stdout


def link(packages: Path, requirements: list[str]) -> None:
    """Put the packages of *requirements*, and those that they need, into *packages*, from this environment."""
    for name in closure(map(Requirement, requirements), set()):
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))))


def closure(requirements: Iterator[Requirement], known: set[str]) -> set[str]:
    """The names of the distributions that *requirements* bring; those *known* are there already."""
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        if name not in known and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            known.add(name)
            closure(map(Requirement, distribution(name).requires or ()), known)
    return known


# -- what the project is required to be: these files, these spiders, and these packages doing real work

PACKAGES = {"scrapy", "justext", "chardet", "protego", "yaml"}
PLACES = (
    *("scrapy.cfg", "requirements.txt", "spiderling/", "spiderling/spiders/", "spiderling/pipelines.py"),
    *("models/", "tests/"),
)

# Notes which packages are called directly by a function of ours, import statements apart.
SPY = """
import json, sys
from scrapy.cmdline import execute
from spiderling.text import TextOptions
from spiderling.workers.pool import Task, WorkerConfig, text_process

root, command, page, out = json.loads(sys.argv[1])
reached = set()

def package(path):
    return path.rpartition("/site-packages/")[2].partition("/")[0] if "/site-packages/" in path else ""

def note(frame, event, argument):
    caller = frame if event == "c_call" else frame.f_back
    if event not in ("call", "c_call") or caller is None or not caller.f_code.co_filename.startswith(root):
        return
    if caller.f_code.co_name != "<module>":
        module = getattr(argument, "__module__", None) or ""
        reached.add(module.partition(".")[0] if event == "c_call" else package(frame.f_code.co_filename))

sys.setprofile(note)
work = text_process(WorkerConfig(TextOptions(("cs",), boilerplate="justext-stock"), ("cs", "sk")))
work(Task(page.encode("cp1250"), "http://a.test/"))
# without a label and in a language without a model: chardet has the last word
work(Task("Быстрая лиса прыгнула через ленивую собаку".encode("cp1251"), "http://a.test/"))
try:
    execute(["scrapy", *command])
finally:
    sys.setprofile(None)
    with open(out, "w") as stream:
        json.dump(sorted(reached), stream)
"""


def test_places():
    for place in PLACES:
        path = ROOT / place
        assert path.is_dir() if place.endswith("/") else path.is_file(), place


def test_scrapy_list():
    ended = scrapy("list")
    assert (ended.code, ended.out.split()) == (0, ["archive", "spiderling"])


@pytest.mark.slow
def test_the_packages_do_real_work(tmp_path):
    web = FixedWeb({"a.test": {"/robots.txt": plain("User-agent: *\nDisallow: /x"), "/": html(document("card"))}})
    with serving(web) as server:
        settings = {**DEFAULTS, "JOBDIR": tmp_path / "job", "SPIDERLING_HOSTS": server.hosts_option}
        settings["SPIDERLING_ALLOW_NETWORKS"] = "127.0.0.0/8"
        command = ["crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://a.test/"]
        command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        argument = json.dumps([str(ROOT / "spiderling"), command, document("card"), str(tmp_path / "reached.json")])
        ended = subprocess.run(
            [sys.executable, "-c", SPY, argument], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S
        )
    reached = set(json.loads((tmp_path / "reached.json").read_text()))
    assert reached >= PACKAGES, ended.stderr[-3000:]
    assert "documents  cs 1" in ended.stderr
