"""``python -m simulator``: a table, curves in a file, and one sentence where something is wrong."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import DEADLINE_S, ROOT, Ended, scrapy


def simulate(*arguments: str) -> Ended:
    return scrapy(*arguments, "--jobs", "1", module="simulator")


def test_a_strategy_is_tried() -> None:
    ended = simulate("bfs", "--pages", "300")
    assert (ended.code, ended.log) == (0, "")
    head, _, row = ended.out.splitlines()
    assert head.startswith("| web | strategy | pages |") and row.startswith("| thai | bfs | ")


@pytest.mark.slow
def test_the_help_names_the_program_that_runs() -> None:
    """In a checkout that is not ``scrapy simulate``, which only an installed simulator gives."""
    ended = scrapy("--help", module="simulator", fresh=True)
    assert "\n  python -m simulator [STRATEGY ...] " in ended.out and "scrapy simulate" not in ended.out
    assert "Example: python -m simulator bfs " in " ".join(ended.out.split())


@pytest.mark.slow
def test_strategies_side_by_side(tmp_path: Path) -> None:
    curves = tmp_path / "curves.csv"
    ended = scrapy(
        "bfs", "perfect", "--pages", "1000", "--seeds", "2", "--jobs", "2", "--csv", str(curves),
        "-s", "SPIDERLING_HOST_INTERVAL_S=1", module="simulator",
    )  # fmt: skip
    assert ended.code == 0, ended.log
    lines = [line.split(" | ") for line in ended.out.splitlines()]
    assert [line[1] for line in lines[2:]] == ["bfs", "perfect"]
    assert "±" in lines[2][10]
    with curves.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["strategy"], row["seed"]) for row in rows} == {(s, n) for s in ("bfs", "perfect") for n in "12"}
    last = [row for row in rows if (row["strategy"], row["seed"]) == ("bfs", "2")][-1]
    assert float(last["word_coverage"]) == pytest.approx(1, abs=0.05)
    assert float(last["hours"]) < 1


WRONG = [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in (
        (["bfs", "--web", "nowhere"], "there is no web 'nowhere'"),
        (["bfs", "--pages", "5"], "100 to 20,000,000 pages"),
        (["bfs", "--pages", "nan"], "--pages is above 0; not nan"),
        (["bfs", "--pages", "inf"], "--pages is finite"),
        (["bfs", "--rate", "nan"], "--rate is 0 or more; not 100,000, nan"),
        (["bfs", "--max-pages", "-1"], "--max-pages is above 0; not -1"),
        (["bfs", "--seeds", "0"], "--seeds and --jobs are 1 or more"),
        (["bfs", "-s", "SPIDERLING_RETRIS=1"], "did you mean SPIDERLING_RETRIES?"),
        (["bfs", "--pages", "200", "--csv", "/nowhere/x.csv"], "there is no directory /nowhere"),
    )
]


@pytest.mark.parametrize(
    ("arguments", "says"), [(["best"], "python -m simulator: SPIDERLING_STRATEGY is 'best'"), *WRONG]
)
def test_what_is_wrong_is_said_in_one_sentence(arguments: list[str], says: str) -> None:
    ended = simulate(*arguments)
    assert ended.code == 1
    assert says in ended.log
    assert "Traceback" not in ended.log


@pytest.mark.slow
def test_what_is_done_survives_an_interrupt(tmp_path: Path) -> None:
    curves = tmp_path / "curves.csv"
    command = [sys.executable, "-m", "simulator", "bfs", "--pages", "2000", "--seeds", "900", "--jobs", "2"]
    command += ["--csv", str(curves)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not curves.exists() and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, log = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    done = re.search(r"interrupted; (\d+) of 900 crawls are done", log)
    assert done and "Traceback" not in log
    assert out.splitlines()[2].startswith("| thai | bfs |")
    with curves.open(newline="") as file:
        assert len({row["seed"] for row in csv.DictReader(file)}) in (int(done[1]), int(done[1]) - 1)
