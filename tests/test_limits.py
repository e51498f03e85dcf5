"""docs/limits.md is true: its options, constants, defaults and Reasons are those of the code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

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


def test_rows_tell_the_defaults_of_their_options() -> None:
    told = {name: row[2] for row in ROWS for name in re.findall(PREFIX + r"[A-Z_]+", row[1])}
    defaults = {name: str(getattr(Options(), name.removeprefix(PREFIX).lower()) or "empty") for name in told}
    assert told == defaults


def test_rows_tell_the_values_of_their_constants() -> None:
    named = [(re.search(r"`([A-Z_]+)` in \[[\w/]+\.py\]\(\.\./([\w/]+)\.py\)", row[1]), row[2]) for row in ROWS]
    told = {(found[2].replace("/", "."), found[1]): value for found, value in named if found}
    assert len(told) == sum(" in [" in row[1] for row in ROWS)
    assert told == {key: str(getattr(importlib.import_module(key[0]), key[1])) for key in told}


def test_rows_name_reasons() -> None:
    pattern = r"(?<![\w-])[a-z]+(?:-[a-z]+)+|dns|tls|timeout|trap|connection|undecodable"
    named = {key for row in ROWS for key in re.findall(pattern, row[3])}
    assert named - {reason.value for reason in Reason} == set()


def test_every_reason_that_a_server_can_cause_has_a_row() -> None:
    ends = "\n".join(row[3] for row in ROWS)
    caused = (
        Reason.BAD_URL, Reason.PORT_FORBIDDEN, Reason.TRAP, Reason.TOO_MANY_LINKS, Reason.ADDRESS_FORBIDDEN, Reason.DNS,
        Reason.REDIRECT_LOOP, Reason.NOT_TEXT, Reason.TOO_BIG, Reason.TIMEOUT, Reason.TOO_SLOW, Reason.BAD_HTTP,
        Reason.TLS, Reason.CONNECTION, Reason.UNDECODABLE, Reason.WORKER_CRASH,
    )  # fmt: skip
    assert [reason.value for reason in caused if reason.value not in ends] == []
