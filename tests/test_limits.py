"""docs/limits.md is true: its options, constants, defaults and Reasons are those of the code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.reasons import Reason

ROOT = Path(__file__).resolve().parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/limits.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| limit")
]


def test_there_are_rows_of_four_cells() -> None:
    assert len(ROWS) > 35
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_tells_the_default_of_its_option(row: list[str]) -> None:
    for name in re.findall(PREFIX + r"[A-Z_]+", row[1]):
        assert str(getattr(Options(), name.removeprefix(PREFIX).lower()) or "empty") == row[2]


@pytest.mark.parametrize("row", [row for row in ROWS if " in [" in row[1]], ids=lambda row: row[0][:40])
def test_a_row_tells_the_value_of_its_constant(row: list[str]) -> None:
    found = re.search(r"`([A-Z_]+)` in \[[\w/]+\.py\]\(\.\./([\w/]+)\.py\)", row[1])
    assert found is not None
    assert str(getattr(importlib.import_module(found[2].replace("/", ".")), found[1])) == row[2]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_names_reasons(row: list[str]) -> None:
    named = re.findall(r"(?<![\w-])[a-z]+(?:-[a-z]+)+|dns|tls|timeout|trap|connection|undecodable", row[3])
    for key in named:
        assert Reason.of(key)


def test_every_reason_that_a_server_can_cause_has_a_row() -> None:
    ends = "\n".join(row[3] for row in ROWS)
    caused = (
        Reason.BAD_URL, Reason.PORT_FORBIDDEN, Reason.TRAP, Reason.TOO_MANY_LINKS, Reason.ADDRESS_FORBIDDEN, Reason.DNS,
        Reason.REDIRECT_LOOP, Reason.NOT_TEXT, Reason.TOO_BIG, Reason.TIMEOUT, Reason.TOO_SLOW, Reason.BAD_HTTP,
        Reason.TLS, Reason.CONNECTION, Reason.UNDECODABLE, Reason.WORKER_CRASH,
    )  # fmt: skip
    assert [reason.value for reason in caused if reason.value not in ends] == []
