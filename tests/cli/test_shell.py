"""What a person at a shell meets besides results: completion, exit codes, colours, and ``scrapy doctor``."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from importlib import import_module

import pytest
from conftest import DEADLINE_S, ROOT, scrapy
from needs import needs
from scrapy.settings import Settings
from test_progress_bars import on_terminal

from spiderling.commands import NAMES, completion, doctor
from spiderling.engine.scheduler import INTERRUPTED, NO_NETWORK

OPERATE = (ROOT / "docs/operate.md").read_text("utf-8")
CODES = dict(re.findall(r"^\| (\d+) \| (.+) \|$", OPERATE, re.MULTILINE))
"""The table of exit codes: code -> meaning."""


def test_output_for_which_the_disk_has_no_room_is_told_in_a_sentence():
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "scrapy", "languages", "cs"],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
    said = "scrapy languages: the output could not be written: No space left on device.\n"
    assert (ended.returncode, ended.stderr) == (1, said)


# -- completion

TYPED = [
    ("spiderling doc", "doctor"), ("spiderling extract --for", "--format"),
    ("spiderling extract --format xm", "xmltei"),
    ("spiderling dedup a -o b --unit par", "paragraph"), ("spiderling inspect crawls/cs --ch", "--check"),
    ("spiderling crawl -a lang=cs -s SPIDERLING_MIN_FREE", "SPIDERLING_MIN_FREE_BYTES="),
    ("spiderling train hsb text.txt --ou", "--out"),
]  # fmt: skip
COMPLETIONS = {
    "bash": 'COMP_WORDS=($0); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _spiderling; printf "%s\\n" "${COMPREPLY[@]}"',
    "fish": "complete -C $argv[1]",
}
"""Shell -> what makes it say the completions of a line."""
BASH_AND_FISH = ["bash", pytest.param("fish", marks=needs("fish"))]


def script(shell: str) -> str:
    """What *shell* is given to read."""
    return "".join(f"{line}\n" for line in completion.Command().work([shell], Namespace()))


@pytest.mark.parametrize("shell", BASH_AND_FISH)
@pytest.mark.parametrize(("typed", "meant"), TYPED)
def test_a_word_is_completed(shell, typed, meant):
    command = [shell, "-c", f"{script(shell)}\n{COMPLETIONS[shell]}", typed]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert [line.partition("\t")[0] for line in ended.stdout.splitlines()] == [meant]


@needs("zsh")
def test_a_word_is_completed_in_the_line_editor_of_zsh(tmp_path):
    (tmp_path / "completion").write_text(script("zsh"), "utf-8")
    process, terminal = pty.fork()
    if not process:
        os.chdir(tmp_path)
        os.execvpe("zsh", ["zsh", "-f"], {**os.environ, "TERM": "dumb", "HOME": str(tmp_path)})
    shown = b""
    try:
        os.write(terminal, b"source ./completion; print loaded-$((1 + 1))\n")
        for typed, meant in {"": "loaded-2", "spiderling doc\t": "doctor", " --logf\t": "--logfile"}.items():
            os.write(terminal, typed.encode())
            while meant.encode() not in shown:
                assert select.select([terminal], [], [], DEADLINE_S)[0], (meant, shown)
                shown += os.read(terminal, 4096)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def test_an_unknown_shell_is_refused():
    ended = scrapy("completion", "tcsh")
    assert ended.code == 2 and "bash|zsh|fish" in ended.log


# -- exit codes


def test_the_table_of_exit_codes_is_that_of_the_commands():
    assert CODES.keys() == {"0", "1", "2", str(NO_NETWORK), str(INTERRUPTED)}
    others = {
        name for name in NAMES if getattr(import_module(f"spiderling.commands.{name}").Command, "error_code", 1) == 2
    }
    assert set(re.findall(r"`(\w+)`", CODES["2"])) == others


@pytest.mark.parametrize("name", NAMES)
def test_wrong_usage_is_code_2(name):
    ended = scrapy(name, "--no-such-option")
    assert (ended.code, ended.out) == (2, "") and "no option --no-such-option" in ended.log


# -- colours


@pytest.mark.parametrize("words", [("languages", "serb"), ("extract", "--help")])
def test_a_terminal_gets_no_colours(words, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal(*words)


# -- doctor


def looked_at(**options: object) -> dict[str, tuple[str, str]]:
    """What was looked at -> how it stands, and what to do."""
    given = {"NAMESERVERS": "127.0.0.1", "HOSTS": "corpus.internal=127.0.0.1", "CONTACT": "me@corpus.internal"}
    given = {f"SPIDERLING_{name}": value for name, value in given.items()}
    return {name: (words, advice) for name, words, advice in doctor.findings(Settings(given | options))}


def test_a_machine_that_is_ready(tmp_path):
    said = looked_at(JOBDIR=str(tmp_path / "crawls/cs"))
    assert list(said) == [
        "versions", "compiled steps", "packages", "open files", "disk", "name servers", "clock", "contact"
    ]  # fmt: skip
    assert said["name servers"] == ("corpus.internal is 127.0.0.1", "")
    assert str(tmp_path) in said["disk"][0]
    assert said["contact"] == ("spiderling (+me@corpus.internal)", "")
    assert not any(said[name][1] for name in ("versions", "packages", "open files", "disk"))


@pytest.mark.parametrize(
    ("options", "name", "advice"),
    [
        ({"SPIDERLING_CONTACT": ""}, "contact", "set SPIDERLING_CONTACT"),
        ({"SPIDERLING_CONTACT": "you@example.org"}, "contact", "an example"),
        ({"SPIDERLING_COMPILED": "no"}, "compiled steps", "takes longer"),
        ({"SPIDERLING_MIN_FREE_BYTES": 10**17}, "disk", "make room"),
        ({"JOBDIR": "/proc/sys/x"}, "disk", "-s JOBDIR=DIR"),
        ({"CONCURRENT_REQUESTS": 10**6}, "open files", "ulimit -n"),
        ({"SPIDERLING_HOSTS": ""}, "name servers", "SPIDERLING_NAMESERVERS"),
    ],
)  # fmt: skip
def test_what_is_not_ready_is_said_with_what_to_do(options, name, advice):
    assert advice in looked_at(**options)[name][1]


def test_name_servers_that_do_not_answer_are_not_waited_for():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.86.1.1", 53))
        words, advice = looked_at(SPIDERLING_NAMESERVERS="127.86.1.1", SPIDERLING_HOSTS="")["name servers"]
    assert words == "no answer about corpus.internal in 0.7 s" and advice


def test_a_clock_before_all_files(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1.0)
    assert "set the clock" in looked_at()["clock"][1]


@pytest.mark.parametrize(("advice", "code"), [("", 0), ("make room", 1)])
def test_the_exit_code_of_doctor(monkeypatch, advice, code):
    monkeypatch.setattr(doctor, "findings", lambda settings: iter([("disk", "1 GB", advice), ("clock", "12:00", "")]))
    command = doctor.Command()
    command.settings = Settings()
    lines = list(command.work([], Namespace()))
    assert command.exitcode == code
    assert [line.split()[0] for line in lines] == ["warning" if advice else "ok", "ok"]


def test_doctor_sends_nothing_but_its_question():
    ended = scrapy(
        "doctor", "-s", "SPIDERLING_HOSTS=corpus.internal=127.0.0.1", "-s", "SPIDERLING_CONTACT=me@corpus.internal"
    )
    assert ended.log == "" and ended.out.count("\n") == 8
    assert scrapy("doctor", "crawls/cs").code == 2
