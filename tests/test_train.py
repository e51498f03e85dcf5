"""`scrapy train`: a model from plain text; bad files end in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from spiderling.commands.train import make_block_model, make_model
from spiderling.errors import BadInput
from spiderling.languages import load, resolve
from spiderling.text.learned import load as load_weights

ROOT = Path(__file__).parent.parent
ROWS = [line.split("\t") for line in (ROOT / "tests/quality/sentences.tsv").read_text("utf-8").splitlines()]


def text_of(code: str) -> str:
    """The test sentences of a language, and enough further lines made of their words."""
    lines = [text for name, text in ROWS if name == code]
    words = " ".join(lines).split()
    return "\n".join(lines + [" ".join(words[start : start + 9]) for start in range(len(words) - 9)])


@pytest.fixture
def slovene(tmp_path):
    path = tmp_path / "sl.txt"
    path.write_text(text_of("sl"), "utf-8")
    return path


def test_a_model_that_works(slovene, tmp_path):
    report = make_model("sl", [slovene], tmp_path / "models", ["cs", "sk"], "Slovenian")
    assert "Frequent words:" in report
    assert "WARNING: less than 50 kB" in report
    assert "held-out lines recognised" in report
    (info,) = resolve("Slovenian", str(tmp_path / "models"))
    assert (info.code, info.neighbours) == ("sl", ("cs", "sk"))
    assert info.encodings == ("windows-1250", "iso-8859-2", "cp852")  # by its alphabet
    sentences = [text for name, text in ROWS if name == "sl"]
    assert load(["sl", "cs", "sk"], str(tmp_path / "models")).identify([" ".join(sentences)]).sure() == ["sl"]


def test_a_bundled_language_keeps_its_description(tmp_path):
    path = tmp_path / "cs.txt"
    path.write_text(text_of("cs"), "utf-8")
    make_model("cs", [path], tmp_path / "m")
    (info,) = resolve("Czech", str(tmp_path / "m"))
    assert (info.iso3, info.tlds, "windows-1250" in info.encodings) == ("ces", ("cz",), True)


@pytest.mark.parametrize(
    ("code", "content", "neighbours", "message"),
    [
        ("sl", b"too little", [], "10 bytes in 1 different lines are too little"),
        ("sl", b"", [], "too little"),
        ("sl", b"the same line\n" * 9999, [], "in 1 different lines"),
        ("sl", "žluťoučký".encode("cp1250") * 999, [], "not UTF-8"),
        ("sl", None, [], "cannot be read"),
        ("Slovenian", b"", [], "not an ISO 639 code"),
        ("../x", b"", [], "not an ISO 639 code"),
        ("sl", b"", ["xx"], "no model of 'xx'"),
    ],
)
def test_bad_input(tmp_path, code, content, neighbours, message):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        make_model(code, [path], tmp_path / "out", neighbours)
    assert not (tmp_path / "out").exists()


def test_an_unwritable_place(slovene, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--out"):
        make_model("sl", [slovene], tmp_path / "file")


def scrapy(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = (
        "import sys; from scrapy.cmdline import execute; from scrapy.settings import Settings; "
        "execute(sys.argv, Settings({'COMMANDS_MODULE': 'spiderling.commands'}))"
    )
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=120)


def test_the_command(slovene, tmp_path):
    done = scrapy("train", "sl", str(slovene), "--out", str(tmp_path / "m"), "--neighbours", "cs")
    assert done.returncode == 0, done.stderr
    assert "Model of sl" in done.stdout
    assert (tmp_path / "m/sl/ngrams.zst").exists()


def test_the_command_with_a_bad_file(tmp_path):
    done = scrapy("train", "sl", str(tmp_path / "nothing.txt"))
    assert done.returncode == 2
    assert "cannot be read" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert scrapy("train", "sl").returncode == 2


CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. "


def marked_pages(path: Path, hosts: int) -> Path:
    html = "<ul><li><a href=/>Domů</a><li><a href=/z>Zprávy</a></ul><p>{}<p>{}"
    lines = []
    for number in range(hosts):
        page = html.format(CZECH * 3, f"{number} {CZECH}").encode().decode("latin-1")
        lines.append(json.dumps({"html": page, "gold": CZECH * 4, "host": f"h{number}.test", "set": "mine"}))
    data = "\n".join(lines).encode()
    path.write_bytes(zstandard.compress(data) if path.suffix == ".zst" else data)
    return path


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.zst"])
def test_a_boilerplate_model(tmp_path, name):
    report = make_block_model([marked_pages(tmp_path / name, 12)], tmp_path / "out.json")
    assert "12 pages of 12 hosts" in report
    assert "WARNING" in report
    assert "  mine " in report
    assert load_weights(str(tmp_path / "out.json")).origin["pages"] == 12


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "line 1: no marked page"),
        (b'{"html": "\\u0161", "gold": "x"}', "line 1: no marked page"),
        (b'{"html": "<p>x", "gold": null}', "line 1: no marked page"),
        (b"\xff", "no file of marked pages"),
        (b"", "too little for a model"),
        (None, "cannot be read"),
    ],
)
def test_bad_marked_pages(tmp_path, content, message):
    path = tmp_path / "pages.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        make_block_model([path], tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
