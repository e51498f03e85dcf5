"""`scrapy identify`: texts and pages, their languages and what cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import scrapy

from spiderling.base.errors import BadInput
from spiderling.languages import load
from spiderling.languages.identification import identify

ROOT = Path(__file__).parents[1]
ROWS = [line.split("\t") for line in (ROOT / "tests/quality/sentences.tsv").read_text("utf-8").splitlines()]
NAMES = {"cs": "Czech", "sk": "Slovak", "en": "English"}
CZECH, ENGLISH = (" ".join([text for name, text in ROWS if name == code][:6]) for code in ("cs", "en"))


@pytest.fixture(scope="module")
def models():
    return load(NAMES)


def report(body: bytes, models) -> list[str]:
    return list(identify(body, models, NAMES))


def test_a_text_of_two_languages(models):
    lines = report(f"{CZECH}\n\n{ENGLISH}\n{CZECH}\nAno.\n".encode(), models)
    assert lines[0].split() == ["encoding", "utf-8"]
    assert lines[1].startswith("language    cs   Czech, known share 0.")
    assert lines[2].startswith("next")
    assert "paragraphs  cs 2, en 1, unsure 1" in lines
    assert [line[:6].strip() for line in lines[-4:]] == ["cs", "en", "cs", "-"]


def test_a_page_in_a_legacy_encoding(models):
    page = f"<html><ul><li><a href=/>Menu</a></ul><p>{CZECH}<p>{CZECH}".encode("cp1250", "ignore")
    lines = report(page, models)
    assert lines[0].split() == ["encoding", "cp1250"]
    assert "paragraphs  cs 2" in lines


def test_an_unknown_language_is_said_to_be_unknown(models):
    german = "\n".join(text for name, text in ROWS if name == "hu")
    assert any("none of the languages" in line for line in report(german.encode(), models))


@pytest.mark.parametrize("body", [b"", b"12 + 34", b"<html><p>", b"\0\xff\xfe" * 99])
def test_no_text(models, body):
    with pytest.raises(BadInput, match="no text"):
        report(body, models)


def test_the_command():
    done = scrapy("identify", "-", "--among", "cs,sk,pl", stdin=CZECH.encode())
    assert done.code == 0, done.log
    assert "language    cs   Czech" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"), [(["/no/file"], "cannot be read"), (["-", "--among", "qqq"], "no model")]
)
def test_the_command_with_bad_arguments(arguments, message):
    done = scrapy("identify", *arguments)
    assert done.code == 2
    assert message in done.out + done.log
    assert "Traceback" not in done.log


def test_a_long_text_is_judged_in_parts_that_make_one_answer(models):
    lines = report("\n".join([CZECH] * 150 + [ENGLISH] * 300 + ["Ano."]).encode(), models)
    assert "paragraphs  en 300, cs 150, unsure 1" in lines
    assert lines[1].startswith("language    en   English, known share 0.")
    assert [line[:6].strip() for line in lines[-451:]] == ["cs"] * 150 + ["en"] * 300 + ["-"]
