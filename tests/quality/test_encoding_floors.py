"""Floors of encoding detection, on a thousand characters in each of 62 pairs of a language and an encoding.

Sentences of Common Voice (CC0), left out of training where a language has enough of
them, and of the UDHR (public domain).  A bundled language is decoded by its model,
any other by chardet.  A floor may only be lowered together with the reason for it.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from spiderling.languages import available, load
from spiderling.text.encoding.detect import decode
from spiderling.text.encoding.labels import codec_of

BUNDLED = ("cs", "sk", "pl", "de", "en")
ROWS = [line.split("\t") for line in Path(__file__).with_name("encodings.tsv").read_text("utf-8").splitlines()]
PAIRS = [(code, label, text) for code, labels, text in ROWS for label in labels.split()]
ENCODINGS = {code: labels.split() for code, labels, _ in ROWS}
COMMAS, CEDILLAS = "șțȘȚ", "şţŞŢ"  # Romanian has the first, and the second where an encoding lacks them


@pytest.fixture(scope="module")
def models():
    return load(BUNDLED)


@pytest.fixture(scope="module")
def many():
    return load([code for code, _, _ in ROWS if code in available()])


def encoded(code: str, label: str, text: str) -> bytes:
    """*text* as a page of the time would have it."""
    if code == "ro":
        both = (CEDILLAS, COMMAS) if label == "iso-8859-16" else (COMMAS, CEDILLAS)
        text = text.translate(str.maketrans(*both))
    if label == "windows-1258":
        text = "".join(map(in_vietnamese, unicodedata.normalize("NFC", text)))
    return text.encode(codec_of(label), "strict")


def in_vietnamese(letter: str) -> str:
    """The vowel as one character, its tone as another: windows-1258 has no room for all their pairs."""
    base, *marks = unicodedata.normalize("NFD", letter)
    tones = [mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323"]
    others = [mark for mark in marks if mark not in tones]
    return letter if letter == "đ" else unicodedata.normalize("NFC", base + "".join(others)) + "".join(tones)


def decoded(code: str, label: str, text: str, declared: str | None, spelling) -> bool:
    """Whether the text, in the encoding *label* and declared to be in another, is decoded exactly."""
    body = encoded(code, label, text)
    return decode(body, declared, ENCODINGS[code], spelling).text == body.decode(codec_of(label))


def test_the_data_are_wide_enough():
    assert len(PAIRS) >= 60
    assert min(len(text) for _, _, text in PAIRS) >= 900


def test_exact_decodes_without_a_label(models):
    wrong = [
        (code, label)
        for code, label, text in PAIRS
        if not decoded(code, label, text, None, models.spelling if code in BUNDLED else None)
    ]
    assert len(wrong) <= 0.03 * len(PAIRS), wrong
    assert not [pair for pair in wrong if pair[0] in BUNDLED]


@pytest.mark.parametrize("chars", [100, 200])
def test_bundled_languages_in_a_few_words(models, chars):
    tried = [
        decoded(code, label, text[start : start + chars], None, models.spelling)
        for code, label, text in PAIRS
        if code in BUNDLED
        for start in range(0, 900, chars)
    ]
    assert sum(tried) >= 0.97 * len(tried) > 30


@pytest.mark.slow
def test_with_the_models_of_every_language_present(many):
    """More languages, more ways to misread: each of the languages is decoded with the models of them all."""
    assert len(many.codes) >= 35
    wrong = [(code, label) for code, label, text in PAIRS if not decoded(code, label, text, None, many.spelling)]
    assert len(wrong) <= 0.02 * len(PAIRS), wrong


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["utf-8", "iso-8859-1", "windows-1250", "windows-1251", "gb2312"])
def test_wrong_labels_in_every_language(many, wrong):
    """Thai, Chinese and Korean among them, whose characters cost more than letters do."""
    tried = [(code, label) for code, label, text in PAIRS if decoded(code, label, text, wrong, many.spelling)]
    assert len(tried) >= 0.98 * len(PAIRS), set((code, label) for code, label, _ in PAIRS) - set(tried)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("ru", "x-mac-cyrillic"), ("uk", "x-mac-cyrillic"), ("fr", "macintosh"), ("de", "macintosh"),
        ("lv", "iso-8859-4"), ("lt", "iso-8859-4"), ("pl", "iso-8859-16"),
    ],
)  # fmt: skip
def test_seldom_encodings_with_a_label_and_without(many, code, label):
    text = next(text for other, _, text in PAIRS if other == code)
    text = text.encode(codec_of(label), "ignore").decode(codec_of(label))
    assert decoded(code, label, text, label, many.spelling)
    assert decoded(code, label, text, None, many.spelling)


def test_no_right_label_is_overruled(models):
    """Languages without a model are safe from those that have one."""
    accepted, wrong = available()["cs"].encodings, []
    for code, label, text in PAIRS:
        for start in (0, 300, 600):
            body = encoded(code, label, text[start : start + 300])
            found = decode(body, label, accepted, models.spelling).text
            wrong += [(code, label)] if found != body.decode(codec_of(label)) else []
    assert wrong == []


def test_wrong_labels_are_overruled(models):
    assert all(
        decoded(code, label, text, wrong, models.spelling)
        for code, label, text in PAIRS
        if code in ("cs", "sk", "pl")
        for wrong in ("iso-8859-1", "windows-1251", "iso-8859-2", "windows-1250", "utf-8")
    )


def test_valid_utf8_is_never_harmed(models):
    for code, labels, text in ROWS:
        for label in (None, *labels.split()):
            assert decode(text.encode(), label, ENCODINGS[code], models.spelling).text == text
