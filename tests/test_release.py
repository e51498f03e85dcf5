"""What a release says of itself agrees, and the files for forges and for citation are what their schemas want."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from spiderling import __version__
from tests.sources import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NATIVE = tomllib.loads((ROOT / "native/pyproject.toml").read_text("utf-8"))
SIMULATOR = tomllib.loads((ROOT / "simulator/pyproject.toml").read_text("utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PYTHONS = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]


def test_all_parts_of_a_release_have_one_version():
    native = re.search(r'^__version__ = "(.+)"$', (ROOT / "native/src/spiderling_native/__init__.py").read_text(), re.M)
    told = [CITATION["version"], CODEMETA["version"], NATIVE["project"]["version"], SIMULATOR["project"]["version"]]
    assert {*told, native and native[1]} == {__version__}
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_what_describes_the_project_says_what_its_metadata_say():
    assert (CODEMETA["identifier"], CODEMETA["description"]) == (PROJECT["name"], PROJECT["description"])
    assert CODEMETA["license"].rpartition("/")[2] == CITATION["license"] == PROJECT["license"].partition(" ")[0]
    assert {*CITATION["keywords"], *PROJECT["keywords"]} <= {*CODEMETA["keywords"]}


def test_tests_and_compiled_wheels_are_for_each_python_that_is_supported():
    assert PYTHONS[0] == PROJECT["requires-python"].removeprefix(">=")
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == PYTHONS
    assert NATIVE["tool"]["cibuildwheel"]["build"].split() == [f"cp{one.replace('.', '')}-*" for one in PYTHONS]
    assert f"{PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "docs/support.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))),
        ("github-issue-config", [ROOT / ".github/ISSUE_TEMPLATE/config.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_files_are_what_their_schemas_want(schema, files):
    """By the schemas that check-jsonschema brings along."""
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_workflows_and_hooks_run_what_there_is():
    """Targets of make, files of requirements and tests."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = "".join(path.read_text("utf-8") for path in [*WORKFLOWS, ROOT / ".pre-commit-config.yaml"])
    assert {name for line in re.findall(r"run: make ([a-z -]+)", text) for name in line.split()} <= targets
    files = re.findall(r"(?:tests|native|\.ci|examples)(?:/[\w.-]+)+", text)
    assert len(files) > 3 and [name for name in files if not (ROOT / name).exists()] == []


def test_no_workflow_holds_a_secret_or_may_write_more_than_it_needs():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        assert "secrets." not in path.read_text("utf-8")
        assert all(job.get("timeout-minutes") for job in workflow["jobs"].values())
