"""Floors of language recognition, with all bundled models loaded, on text that no model was trained on.

Common Voice sentences (CC0) of up to 30 for each language that has them, and NTREX-128
(news; other sources than any training text) where ../shared/data has it.  A floor may
only be lowered together with the reason for it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest
from needs import DATA, needs

from benchmarks.language import (
    ENOUGH_BYTES,
    OTHER_LETTERS,
    UNKNOWN,
    at_default,
    group,
    leaked,
    ours,
    right,
    shares,
    tally,
    texts,
)
from spiderling.languages import available, load, to_recognise

ROWS = [line.split("\t") for line in Path(__file__).with_name("sentences.tsv").read_text("utf-8").splitlines()]
SENTENCES = {code: [text for name, text in ROWS if name == code] for code in dict.fromkeys(name for name, _ in ROWS)}
FIVE = ("cs", "sk", "pl", "de", "en")
LICENCES = {"CC0-1.0", "Unicode-DFS-2016", "CC-BY-4.0", "public domain"}


@pytest.fixture(scope="module")
def models():
    return load(available())


@pytest.fixture(scope="module")
def five():
    return load(FIVE)


def documents(code: str) -> list[str]:
    return [" ".join(SENTENCES[code][start : start + 6]) for start in range(0, len(SENTENCES[code]) - 5, 6)]


@pytest.mark.slow
def test_sentences_among_all_languages(models):
    found = {}
    for code, lines in SENTENCES.items():
        guesses = models.identify(lines)
        named = Counter(models.codes[place] for place in guesses.scores.argmax(1))
        found[code] = right(named, code)
    assert len(found) >= 60
    assert fmean(found.values()) >= 95
    assert {code: share for code, share in found.items() if share < 70} == {}


def test_documents_among_all_languages(models):
    wrong = {}
    for code in SENTENCES:
        texts = documents(code)
        named = [models.identify([text]).nearest() for text in texts]
        wrong[code] = [name for name in named if group(name) != group(code)]
    assert sum(map(len, wrong.values())) <= 3, wrong


@pytest.mark.parametrize(("code", "floor"), [("cs", 28), ("sk", 27), ("pl", 29), ("de", 30), ("en", 30)])
def test_sentences_among_five(five, code, floor):
    guesses = five.identify(SENTENCES[code])
    assert len(SENTENCES[code]) == 30
    assert sum(guesses.nearest([row]) == code for row in range(30)) >= floor
    assert {name for name in guesses.sure() if name} == {code}, "a sure answer is a right answer"


@pytest.mark.parametrize("code", FIVE)
def test_documents_among_five(five, code):
    guesses = five.identify(documents(code))
    assert guesses.sure() == [code] * 5
    assert min(guesses.known_share(code, [row]) for row in range(5)) > 0.75


def test_text_of_an_unknown_language_is_known_to_none(five):
    shares = {}
    for code in set(SENTENCES) - set(FIVE):
        guesses = five.identify([" ".join(SENTENCES[code])])
        shares[code] = guesses.known_share(guesses.nearest())
    assert {code: share for code, share in shares.items() if share >= 0.6} == {}


@pytest.mark.slow
@needs("NTREX-128")
def test_news():
    known, unknown = texts(DATA, 10)
    for code in OTHER_LETTERS:
        del known[code]
    found, infos = tally(ours, known), available()
    enough = [label for label, item in known.items() if infos[item.code].origin["bytes"] >= ENOUGH_BYTES]
    assert len(enough) >= 95
    assert fmean(right(found.documents[label], known[label].code) for label in enough) >= 98
    assert fmean(right(found.sentences[label], known[label].code) for label in enough) >= 95
    assert set(unknown) == set(UNKNOWN)
    values = shares(known | unknown)
    third = sorted({known[label].code for label in enough})[::3]
    assert leaked(values, known, third, to_recognise([infos[code] for code in third]))[1] <= 2
    assert leaked(values, known, sorted({known[label].code for label in enough}), list(infos))[1] <= 8
    assert at_default(values, known) >= 99.5


def test_both_alphabets_of_a_language_are_known_alike(models):
    letters = str.maketrans("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš")
    letters |= str.maketrans({"љ": "lj", "њ": "nj", "џ": "dž"})
    text = " ".join(SENTENCES["sr"]).lower()
    cyrillic, in_latin = (models.identify([each]).known_share("sr") for each in (text, text.translate(letters)))
    assert min(cyrillic, in_latin) > 0.8
    assert abs(cyrillic - in_latin) < 0.05


def test_models_are_whole_and_small():
    sizes, every = [], available()
    for code, info in every.items():
        files = {entry.name: len(entry.read_bytes()) for entry in info.directory.iterdir()}
        assert set(files) - {"contrast.txt"} == {"language.yaml", "words.txt", "ngrams.zst", "seeds.txt"}, code
        sizes.append(sum(files.values()))
        words = info.words()
        assert len(words) >= 250, code
        assert list(words.values()) == sorted(words.values(), reverse=True), code
        urls = [seed.url for seed in info.seeds()]
        assert all(url.startswith("http") for url in urls), code
        assert f"https://{code}.wikipedia.org/" in urls or code in ("nb", "yue")
        assert info.iso3, code
        assert info.native, code
        assert info.scripts, code
        assert info.tlds or code == "eo", "every language but Esperanto has a country"
        assert info.neighbours, code
        assert set(info.neighbours) <= set(every), code
        assert len(info.profile) == (10 if info.spaced else 0), code
        own = "cc-by-sa" in str(info.directory)
        assert {text["licence"] for text in info.origin["texts"]} <= (LICENCES | ({"CC-BY-SA-4.0"} if own else set()))
    assert len(sizes) >= 100
    assert sum(sizes) <= 40_000_000


def test_what_is_written_without_spaces():
    unspaced = {code for code, info in available().items() if not info.spaced}
    assert unspaced == {"ja", "km", "lo", "my", "th", "yue", "zh"}


def test_every_spaced_language_has_stop_words():
    every = available()
    for code in ("cs", "tg", "am", "om", "nb", "hi", "ko", "xh"):
        assert len(every[code].model().stoplist) >= 20, code
