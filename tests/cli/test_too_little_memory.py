"""A machine without memory left is a message, not a traceback."""

from __future__ import annotations

from argparse import Namespace

import pytest

from spiderling.commands import dedup, export


@pytest.mark.parametrize("module", [dedup, export])
def test_too_little_memory_is_said(module, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise MemoryError

    name = module.__name__.rpartition(".")[2]
    monkeypatch.setattr(module.Command, "work", fail)
    command = module.Command()
    command.run(["crawls/cs"], Namespace(out="cs.jsonl"))
    assert command.exitcode == 1
    assert capsys.readouterr().err == f"scrapy {name}: there is too little memory.\n"
