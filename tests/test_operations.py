"""The files for containers and services agree with the project and with each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from needs import needs

from spiderling.base.options import Options
from spiderling.cli.command import NO_NETWORK

HERE = ROOT / "examples/operations"
DOCKERFILE = (HERE / "Dockerfile").read_text("utf-8")
UNIT = (HERE / "spiderling@.service").read_text("utf-8")
SHARD_UNIT = (HERE / "spiderling-shard@.service").read_text("utf-8")


def test_the_image_is_given_what_it_is_built_from():
    """What the wheels of the package and of its compiled twin are made of, and nothing else."""
    lines = (HERE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    wanted = {line[1:] for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in wanted)
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    named = set(re.findall(r'^(?:readme = "|license-files = \[")([\w.]+)', pyproject, re.MULTILINE))
    assert {"pyproject.toml", "setup.py", "spiderling", "models", "native", "constraints.txt", *named} == wanted


def test_the_image_runs_the_console_script_as_a_user_that_owns_the_volume():
    assert DOCKERFILE.splitlines()[-4:] == [
        "USER 1000", "WORKDIR /data", "VOLUME /data/crawls", 'ENTRYPOINT ["spiderling"]',
    ]  # fmt: skip
    assert "useradd --uid 1000" in DOCKERFILE
    assert len(set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))) == 1, "the virtual environment is copied"


def test_the_composition_crawls_into_the_volume_of_the_image():
    composition = yaml.safe_load((HERE / "compose.yaml").read_text("utf-8"))
    crawl = composition["services"]["crawl"]
    assert (HERE / crawl["build"]["context"] / crawl["build"]["dockerfile"]).is_file()
    assert crawl["command"][:3] == ["crawl", "-a", "lang=cs"]
    assert [volume.partition(":") for volume in crawl["volumes"]] == [("crawls", ":", "/data/crawls")]
    assert composition["volumes"].keys() == {"crawls"}


def test_each_pod_is_a_shard_with_the_volume_of_the_image_and_a_key_of_its_own():
    found = {each["kind"]: each for each in yaml.safe_load_all((HERE / "kubernetes.yaml").read_text("utf-8"))}
    spec = found["StatefulSet"]["spec"]
    (pod,) = spec["template"]["spec"]["containers"]
    given = dict(part.split("=", 1) for part in pod["args"] if part.startswith("SPIDERLING_"))
    assert Options.from_settings(given).shards == spec["replicas"]
    assert {volume["mountPath"] for volume in pod["volumeMounts"]} == {"/data/crawls", "/tmp"}
    (key,) = spec["template"]["spec"]["initContainers"]
    assert key["command"][:3] == ["install", "-m", "600"] and key["command"][-1] == given["SPIDERLING_CLUSTER_KEY_FILE"]
    (check,) = pod["livenessProbe"]["exec"]["command"][2:]
    assert "spiderling inspect crawls/cs --json" in check
    program = check.partition("python3 -c '")[2].removesuffix("'")
    for process, code in (("process 7 on crawl-0", 0), ("", 1)):
        status = json.dumps({"process": process})
        assert subprocess.run([sys.executable, "-c", program], input=status, text=True, check=False).returncode == code


@pytest.mark.parametrize("path", sorted(HERE.iterdir()), ids=lambda path: path.name)
def test_the_options_exist(path: Path):
    known = {f"SPIDERLING_{spec.name.upper()}" for spec in fields(Options)}
    assert set(re.findall(r"SPIDERLING_[A-Z_]+", path.read_text("utf-8"))) <= known


def test_the_service_is_started_again_when_the_network_was_away():
    (codes,) = re.findall(r"^RestartPreventExitStatus=(.*)$", UNIT, re.MULTILINE)
    assert str(NO_NETWORK) not in codes.split() and "1" in codes.split()


def test_the_service_of_a_shard_differs_from_that_of_a_crawl_in_its_arguments_alone():
    def settings(unit: str) -> set[str]:
        lines = unit.splitlines()
        return {line for line in lines if not line.startswith(("#", "Description=", "EnvironmentFile=", "ExecStart="))}

    assert settings(SHARD_UNIT) == settings(UNIT)
    (configuration,) = re.findall(r"^EnvironmentFile=/etc/spiderling/(.*)$", SHARD_UNIT, re.MULTILINE)
    assert (HERE / configuration).is_file()


def test_the_values_for_shards_are_those_that_the_machine_is_divided_into(monkeypatch):
    """Those that its first lines speak of."""
    text = (HERE / "shards.conf").read_text("utf-8")
    (line,) = re.findall(r"^ARGUMENTS=(.*)$", text, re.MULTILINE)
    given = dict(part.split("=", 1) for part in line.split() if part.startswith("SPIDERLING_"))
    assert Options.from_settings(given).shards == 16
    shards, cores, gigabytes = map(int, re.findall(r"(\d+) shards on (\d+) cores and (\d+) GB", text)[0])
    monkeypatch.setattr("spiderling.base.options.usable_cores", lambda: cores)
    monkeypatch.setattr("spiderling.base.options.memory_bytes", lambda: gigabytes * 10**9)
    divided = Options.from_settings({"SPIDERLING_SHARDS": shards, "SPIDERLING_CLUSTER": "unix:///run/redis"})
    assert divided.text_workers() == int(given["SPIDERLING_WORKERS"])
    assert divided.filter_bytes() == int(given["SPIDERLING_DEDUP_BYTES"])


@pytest.mark.parametrize("name", ["spiderling@.service", "spiderling-shard@.service"])
@needs("systemd-analyze")
def test_systemd_understands_the_unit(tmp_path, name):
    program = tmp_path / "spiderling"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / name.replace("@", "@cs")
    unit.write_text(
        (HERE / name)
        .read_text("utf-8")
        .replace("/opt/spiderling/bin/spiderling", str(program))
        .replace("User=spiderling\n", "")
    )
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=240, check=False
    )
    assert unit.name not in ended.stderr and ended.returncode == 0, ended.stderr
