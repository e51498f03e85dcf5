"""`scrapy train` and `scrapy identify`: a model from plain text, and the languages of a text; what cannot be either."""

from __future__ import annotations

import errno
import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, scrapy

from models.block_model import make_block_model
from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from spiderling.commands.identify import report as reported
from spiderling.languages import find_languages, load
from spiderling.languages.registry import NGRAMS
from spiderling.text.boilerplate.model import load as load_weights
from spiderling.text.html.parser import parse
from spiderling.training import ModelRequest, make_model, save
from tests.recorded_disk import Recording, recorded

ROWS = [line.split("\t") for line in (ROOT / "tests/quality/sentences.tsv").read_text("utf-8").splitlines()]


class Full(Recording):
    """A disk that has no room for the largest file of a model."""

    def refusal(self, kind: str, name: str) -> int:
        return errno.ENOSPC if kind == "write" and NGRAMS in name else 0


def sentences_of(code: str) -> list[str]:
    return [text for name, text in ROWS if name == code]


def text_of(code: str) -> str:
    """The test sentences of a language, and enough further lines made of their words."""
    lines = sentences_of(code)
    words = " ".join(lines).split()
    return "\n".join(lines + [" ".join(words[start : start + 9]) for start in range(len(words) - 9)])


@pytest.fixture
def models(tmp_path) -> Path:
    """The directory of models that are made; it is not there yet."""
    return tmp_path / "models"


@pytest.fixture
def make(tmp_path, models):
    """Makes a model of a text and returns the report; None: there is no file."""

    def make(code: str, text: str | bytes | None, **more) -> str:
        path = tmp_path / "text.txt"
        if text is not None:
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return make_model(ModelRequest(code, (path,), models, **more))

    return make


def test_a_model_that_works(make, models):
    report = make("sl", text_of("sl"), neighbours=["cs", "sk"], name="Slovenian")
    for part in ("Frequent words: ", "Alphabet: ", "WARNING: less than 50 kB", "held-out lines recognised"):
        assert part in report
    (info,) = find_languages("Slovenian", str(models))
    assert (info.code, info.neighbours) == ("sl", ("cs", "sk"))
    assert load(["sl", "cs", "sk"], str(models)).identify([" ".join(sentences_of("sl"))]).sure() == ["sl"]


@pytest.mark.slow
def test_a_language_without_a_model_gets_the_encodings_of_its_alphabet(make, models):
    assert "windows-1250, iso-8859-2, cp852" in make("qsl", text_of("sl"), neighbours=["cs"])
    assert "koi8-r" in make("qsm", text_of("sl"), encodings=["koi8-r"], neighbours=["cs"])
    assert find_languages("qsm", str(models))[0].encodings == ("koi8-r",)


def test_a_bundled_language_keeps_its_description(make, models):
    make("cs", text_of("cs"), neighbours=["sk"])
    (info,) = find_languages("Czech", str(models))
    assert (info.iso3, info.tlds, "windows-1250" in info.encodings) == ("ces", ("cz",), True)


def test_a_text_of_few_words_is_told_before_it_counts_as_recognised(make):
    """Lines of one word are recognised to 100 %, and make no model (Suchomel 2017 wants 250 frequent words)."""
    words = [f"{a}{b}o" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    for number in (1, 249, 250):
        lines = [" ".join(words[at % number] for at in range(first, first + 9 + first % 50)) for first in range(250)]
        report = make("qsl", "\n".join(lines), neighbours=["cs"], force=True)
        warned = report.partition("held-out lines recognised")[0]
        assert (f"WARNING: the text has {number} different words; a model needs the 250" in warned) is (number < 250)


def test_foreign_lines_are_found_and_a_twin_is_named(make):
    english = [f"{text} {number}" for number, text in enumerate(sentences_of("en") * 3)]
    report = make("sl", "\n".join(text_of("sl").splitlines()[:300] + english), neighbours=["cs"])
    assert re.search(r"WARNING: \d+% of the lines look like English \(en\), such as: '", report)
    report = make("qcs", text_of("cs"), neighbours=["cs"])
    assert "WARNING: the text is hard to tell from Czech" in report and "held-out lines recognised" in report


@pytest.mark.slow
def test_the_wrong_code_and_one_that_is_taken_are_refused_unless_it_is_forced(make):
    with pytest.raises(BadInput, match=r"of the lines are Czech \(cs\) rather than German"):
        make("de", text_of("cs"))
    assert "Model of de" in make("de", text_of("cs"), neighbours=["cs"], force=True)
    make("qsl", text_of("sl"), neighbours=["cs"])
    with pytest.raises(BadInput, match=r"there is a model in .*/qsl already; say --force"):
        make("qsl", text_of("sl"), neighbours=["cs"])
    make("qsl", text_of("sl"), neighbours=["cs"], force=True)


def test_a_full_disk_leaves_the_former_model(models):
    info = find_languages("sl")[0]
    assert info.directory is not None
    shutil.copytree(info.directory, models / "sl")
    before = {path.name: path.read_bytes() for path in (models / "sl").iterdir()}
    with recorded(models, Full(models)), pytest.raises(BadInput, match=r"cannot be written to .*No space left"):
        save(models / "sl", {"name": "other"}, info.model())
    assert {path.name: path.read_bytes() for path in (models / "sl").iterdir()} == before


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
def test_bad_input(make, models, code, content, more, message):
    with pytest.raises(BadInput, match=message):
        make(code, content, **more)
    assert not models.exists()


def test_an_unwritable_place(make, models):
    models.write_text("")
    with pytest.raises(BadInput, match="--out"):
        make("qsl", text_of("sl"), neighbours=["cs"])


def test_the_command_and_where_the_model_goes(tmp_path, models):
    models.mkdir()
    (tmp_path / "sl.txt").write_text(text_of("sl"), "utf-8")
    given = ["train", "sl", str(tmp_path / "sl.txt"), "--neighbours", "cs", "--encodings", "windows-1250"]
    done = scrapy(*given, "-s", f"SPIDERLING_MODELS={models}")
    assert done.code == 0 and "Model of sl" in done.out, done.log
    assert (models / "sl/ngrams.zst").exists()
    before = sorted((ROOT / "models").iterdir())
    done = scrapy(*given)
    assert (done.code, done.out) == (2, "") and "say where the model goes, as in --out my-models" in done.log
    assert sorted((ROOT / "models").iterdir()) == before, "nothing is written beside the bundled models"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train sl /no/file --out m", "cannot be read"), ("train sl", "at least one text file"),
        ("identify /no/file", "cannot be read"), ("identify - --among qqq", "no model"),
    ],
)  # fmt: skip
def test_a_command_with_bad_arguments(arguments, message):
    done = scrapy(*arguments.split())
    assert done.code == 2 and message in done.out + done.log
    assert "Traceback" not in done.log


# -- the model of boilerplate


MARKED = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. "


def marked_pages(path: Path, hosts: int, *, listing: str = "") -> Path:
    """As many pages; of every third the items of a *listing* are the text, if there is one."""
    html = "<ul><li><a href=/>Domů</a><li><a href=/z>Zprávy</a></ul><p>{}<p>{}"
    lines = []
    for number in range(hosts):
        page = html.format(MARKED * 3, f"{number} {MARKED}").encode().decode("latin-1")
        lines.append(json.dumps({"html": page, "gold": MARKED * 4, "host": f"h{number}.test", "set": "mine"}))
        if listing and not number % 3:
            gold = re.sub("<[^>]*>", " ", listing)
            of_list = {"html": listing, "gold": gold, "host": f"l{number}.test", "set": "lists", "type": "listing"}
            lines.append(json.dumps(of_list))
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


def test_lists_have_a_network_of_their_own(tmp_path):
    """Other pages are judged by the same weights with lists and without."""
    items = "".join(f"<li class=item><a href=/{number}>Tool {number} of steel for sale</a>" for number in range(20))
    listing = f"<ul>{items}</ul>"
    made = [tmp_path / "plain.json", tmp_path / "lists.json"]
    make_block_model([marked_pages(tmp_path / "plain.jsonl", 12)], made[0])
    make_block_model([marked_pages(tmp_path / "lists.jsonl", 12, listing=listing)], made[1])
    plain, lists = (load_weights(str(path)) for path in made)
    assert plain.kind is None and lists.origin["pages"] == 16
    text = parse("<ul><li><a href=/>Domů</a><li><a href=/z>Zprávy</a></ul>" + f"<p>{MARKED * 3}<p>9 {MARKED}")
    assert lists.probabilities(text.blocks, text.tree) == plain.probabilities(text.blocks, text.tree)
    page = parse(listing)
    assert min(lists.probabilities(page.blocks, page.tree)) > 0.5 > max(plain.probabilities(page.blocks, page.tree))


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


# -- identification

NAMES = {"cs": "Czech", "sk": "Slovak", "en": "English"}
CZECH, ENGLISH = (" ".join(sentences_of(code)[:6]) for code in ("cs", "en"))


def report(body: str | bytes) -> list[str]:
    return list(reported(body if isinstance(body, bytes) else body.encode(), load(NAMES), NAMES))


def test_a_text_of_two_languages():
    lines = report(f"{CZECH}\n\n{ENGLISH}\n{CZECH}\nAno.\n")
    assert lines[0].split() == ["encoding", "utf-8"]
    assert lines[1].startswith("language    cs   Czech, known share 0.")
    assert lines[2].startswith("next")
    assert "paragraphs  cs 2, en 1, unsure 1" in lines
    assert [line[:6].strip() for line in lines[-4:]] == ["cs", "en", "cs", "-"]


def test_a_page_in_a_legacy_encoding():
    page = f"<html><ul><li><a href=/>Menu</a></ul><p>{CZECH}<p>{CZECH}".encode("cp1250", "ignore")
    lines = report(page)
    assert lines[0].split() == ["encoding", "cp1250"]
    assert "paragraphs  cs 2" in lines


def test_an_unknown_language_is_said_to_be_unknown():
    assert any("none of the languages" in line for line in report("\n".join(sentences_of("hu"))))


@pytest.mark.parametrize("body", [b"", b"12 + 34", b"<html><p>", b"\0\xff\xfe" * 99])
def test_no_text(body):
    with pytest.raises(BadInput, match="no text"):
        report(body)


def test_the_command():
    done = scrapy("identify", "-", "--among", "cs,sk,pl", stdin=CZECH.encode())
    assert done.code == 0, done.log
    assert "language    cs   Czech" in done.out


def test_a_long_text_is_judged_in_parts_that_make_one_answer():
    lines = report("\n".join([CZECH] * 150 + [ENGLISH] * 300 + ["Ano."]))
    assert "paragraphs  en 300, cs 150, unsure 1" in lines
    assert lines[1].startswith("language    en   English, known share 0.")
    assert [line[:6].strip() for line in lines[-451:]] == ["cs"] * 150 + ["en"] * 300 + ["-"]
