"""`scrapy train`: a model from plain text; bad files end in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import scrapy

from models.block_model import make_block_model
from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from spiderling.languages import find_languages, load
from spiderling.text.boilerplate.model import load as load_weights
from spiderling.training import ModelRequest, make_model

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


def make(code: str, *paths: Path, out: Path, **more) -> str:
    return make_model(ModelRequest(code, paths, out, **more))


def test_a_model_that_works(slovene, tmp_path):
    report = make("sl", slovene, out=tmp_path / "m", neighbours=["cs", "sk"], name="Slovenian")
    assert "Frequent words: " in report
    assert "Alphabet: " in report
    assert "WARNING: less than 50 kB" in report
    assert "held-out lines recognised" in report
    (info,) = find_languages("Slovenian", str(tmp_path / "m"))
    assert (info.code, info.neighbours) == ("sl", ("cs", "sk"))
    sentences = [text for name, text in ROWS if name == "sl"]
    assert load(["sl", "cs", "sk"], str(tmp_path / "m")).identify([" ".join(sentences)]).sure() == ["sl"]


@pytest.mark.slow
def test_a_language_without_a_model_gets_the_encodings_of_its_alphabet(slovene, tmp_path):
    assert "windows-1250, iso-8859-2, cp852" in make("qsl", slovene, out=tmp_path / "m", neighbours=["cs"])
    assert "koi8-r" in make("qsm", slovene, out=tmp_path / "m", encodings=["koi8-r"], neighbours=["cs"])
    assert find_languages("qsm", str(tmp_path / "m"))[0].encodings == ("koi8-r",)


def test_a_bundled_language_keeps_its_description(tmp_path):
    path = tmp_path / "cs.txt"
    path.write_text(text_of("cs"), "utf-8")
    make("cs", path, out=tmp_path / "m", neighbours=["sk"])
    (info,) = find_languages("Czech", str(tmp_path / "m"))
    assert (info.iso3, info.tlds, "windows-1250" in info.encodings) == ("ces", ("cz",), True)


def test_a_text_of_few_words_is_told_before_it_counts_as_recognised(tmp_path):
    """Lines of one word are recognised to 100 %, and make no model (Suchomel 2017 wants 250 frequent words)."""
    path = tmp_path / "few.txt"
    words = [f"{a}{b}o" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    for number in (1, 249, 250):
        lines = [" ".join(words[at % number] for at in range(first, first + 9 + first % 50)) for first in range(250)]
        path.write_text("\n".join(lines), "utf-8")
        report = make("qsl", path, out=tmp_path / str(number), neighbours=["cs"])
        warned = report.partition("held-out lines recognised")[0]
        assert (f"WARNING: the text has {number} different words; a model needs the 250" in warned) is (number < 250)


def test_foreign_lines_are_found(slovene, tmp_path):
    english = [text for name, text in ROWS if name == "en"] * 3
    lines = text_of("sl").splitlines()[:300] + [f"{text} {number}" for number, text in enumerate(english)]
    slovene.write_text("\n".join(lines), "utf-8")
    report = make("sl", slovene, out=tmp_path / "m", neighbours=["cs"])
    assert re.search(r"WARNING: \d+% of the lines look like English \(en\), such as: '", report)


def test_a_twin_is_named(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(text_of("cs"), "utf-8")
    report = make("qcs", path, out=tmp_path / "m", neighbours=["cs"])
    assert "WARNING: the text is hard to tell from Czech" in report
    assert "held-out lines recognised" in report


@pytest.mark.slow
def test_the_wrong_code_is_refused(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(text_of("cs"), "utf-8")
    with pytest.raises(BadInput, match=r"of the lines are Czech \(cs\) rather than German"):
        make("de", path, out=tmp_path / "m")
    assert "Model of de" in make("de", path, out=tmp_path / "m", neighbours=["cs"], force=True)


@pytest.mark.parametrize(
    ("code", "content", "more", "message"),
    [
        ("sl", b"too little", {}, "10 bytes in 1 different lines are too little"),
        ("sl", b"", {}, "too little"),
        ("sl", b"the same line\n" * 9999, {}, "in 1 different lines"),
        ("cs", ("Když přišla, všichni už spali.\n" * 99).encode("cp1250"), {}, "not UTF-8.*iconv -f cp1250 -t utf-8"),
        ("sl", "žluťoučký kůň\n".encode("utf-16") * 99, {}, "not UTF-8.*iconv -f utf-16-le"),
        ("sl", b"<p>Page one</p>\n<p>Page two</p>\n" * 99, {}, "is HTML rather than plain text"),
        ("sl", b"a\0b" * 9999, {}, "not plain text"),
        ("sl", "k\ufffd\ufffd a p\ufffds\n".encode() * 999, {}, "converted with losses"),
        ("sl", None, {}, "cannot be read"),
        ("Slovenian", b"", {}, "not an ISO 639 code"),
        ("../x", b"", {}, "not an ISO 639 code"),
        ("slv", b"", {}, "slv is Slovenian, which goes by sl here"),
        ("hbs", b"", {}, "hbs is a group of languages"),
        ("sl", b"", {"neighbours": ["xx"]}, "no model of 'xx'"),
        ("sl", b"", {"encodings": ["rot13"]}, "--encodings: 'rot13' is not an encoding"),
    ],
)
def test_bad_input(tmp_path, code, content, more, message):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        make(code, path, out=tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_code_that_is_taken(slovene, tmp_path):
    make("qsl", slovene, out=tmp_path / "m", neighbours=["cs"])
    with pytest.raises(BadInput, match=r"there is a model in .*/qsl already; say --force"):
        make("qsl", slovene, out=tmp_path / "m", neighbours=["cs"])
    make("qsl", slovene, out=tmp_path / "m", neighbours=["cs"], force=True)


def test_an_unwritable_place(slovene, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--out"):
        make("qsl", slovene, out=tmp_path / "file", neighbours=["cs"])


def test_the_command(slovene, tmp_path):
    (tmp_path / "m").mkdir()
    models = f"SPIDERLING_MODELS={tmp_path / 'm'}"
    done = scrapy("train", "sl", str(slovene), "--neighbours", "cs", "--encodings", "windows-1250", "-s", models)
    assert done.code == 0, done.log
    assert "Model of sl" in done.out
    assert (tmp_path / "m/sl/ngrams.zst").exists()


def test_the_command_with_a_bad_file(tmp_path):
    done = scrapy("train", "sl", str(tmp_path / "nothing.txt"), "--out", str(tmp_path / "m"))
    assert done.code == 2
    assert "cannot be read" in done.out + done.log
    assert "Traceback" not in done.log
    assert scrapy("train", "sl").code == 2


def test_without_a_place_nothing_is_written_beside_the_bundled_models(slovene, tmp_path):
    before = sorted((ROOT / "models").iterdir())
    done = scrapy("train", "qqq", str(slovene), "--neighbours", "cs")
    assert (done.code, done.out) == (2, "")
    assert "say where the model goes, as in --out my-models" in done.log
    assert sorted((ROOT / "models").iterdir()) == before


CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. "


def marked_pages(path: Path, hosts: int) -> Path:
    html = "<ul><li><a href=/>Domů</a><li><a href=/z>Zprávy</a></ul><p>{}<p>{}"
    lines = []
    for number in range(hosts):
        page = html.format(CZECH * 3, f"{number} {CZECH}").encode().decode("latin-1")
        lines.append(json.dumps({"html": page, "gold": CZECH * 4, "host": f"h{number}.test", "set": "mine"}))
    data = "\n".join(lines).encode()
    path.write_bytes(zstd.compress(data) if path.suffix == ".zst" else data)
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
