"""Shingles: what they are of, and that they tell texts apart."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.fingerprints import WINDOW, shingles

WORDS = ["jedna", "dva", "tři", "čtyři", "pět", "šest", "sedm", "osm", "devět", "deset"]
CHINESE = "我们昨天晚上在学校旁边的那个小书店里买了三本关于历史的书"
THAI = "เมื่อวานนี้เราไปซื้อหนังสือประวัติศาสตร์สามเล่มที่ร้านหนังสือเล็กๆข้างโรงเรียน"


def hashes(*paragraphs: str) -> list[int]:
    return shingles(paragraphs).hashes.tolist()


def by_hand(paragraphs: list[str]) -> list[tuple[str, ...]]:
    runs = []
    for words in map(str.split, paragraphs):
        runs += [tuple(words[start : start + WINDOW]) for start in range(max(1, len(words) - WINDOW + 1)) if words]
    return runs


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), max_size=8))
def test_one_for_each_run_of_seven_words_and_none_across_paragraphs(paragraphs):
    found, expected = shingles(paragraphs), by_hand(paragraphs)
    assert len(found.hashes) == len(expected) == found.counts.sum()
    assert len(found.counts) == len(paragraphs)
    for one, other in zip(found.hashes, expected, strict=True):  # equal exactly where the words are
        assert [hash_ == one for hash_ in found.hashes] == [words == other for words in expected]


@given(
    st.lists(
        st.lists(st.sampled_from([*WORDS[:8], CHINESE[:14], THAI[:30], "　", "🐈", "\x1f"]), max_size=12).map(" ".join)
    )
)
def test_equal_exactly_where_the_runs_are(paragraphs):
    runs = [run for paragraph in paragraphs for run in runs_of(paragraph)]
    hashes = shingles(paragraphs).hashes.tolist()
    assert len(dict.fromkeys(zip(hashes, runs, strict=True))) == len(set(hashes)) == len(set(runs))


def runs_of(paragraph: str) -> list[tuple[str, ...]]:
    """Seven words, or where most characters are of a script without spaces, seven overlapping strings of them."""
    words: list[str] = paragraph.split()
    text = "".join(words)
    for script, size in ((CHINESE, 5), (THAI, 22)):
        if 2 * sum(character in script for character in text) > len(text):
            words = [text[start : start + size] for start in range(max(1, len(text) - size + 1))]
            break
    return [tuple(words[start : start + WINDOW]) for start in range(max(1, len(words) - WINDOW + 1)) if words]


def test_a_paragraph_shorter_than_a_shingle_is_known_by_its_hash():
    short, whole = hashes(" ".join(WORDS[:6])), hashes(" ".join(WORDS[:8]))
    assert [hash_ & 1 for hash_ in short + whole] == [1, 0, 0]
    assert [hash_ & 1 for hash_ in hashes(CHINESE[:9], CHINESE[:11], "", "a")] == [1, 0, 1]


@pytest.mark.parametrize("chars", [1 << 17, 3 << 17])
def test_a_word_has_one_hash_wherever_it_stands_also_in_the_longest_texts(chars):
    words = " ".join(WORDS)
    found = shingles([words, "x" * chars, words]).hashes
    assert (found[:4] == found[-4:]).all()


@given(st.lists(st.text(), max_size=5))
def test_no_text_raises(paragraphs):
    found = shingles(paragraphs)
    assert found.counts.sum() == len(found.hashes)
    assert all(bool(count) == bool(text.split()) for count, text in zip(found.counts, paragraphs, strict=True))


def test_the_order_of_words_counts():
    assert hashes(" ".join(WORDS[:7])) != hashes(" ".join(reversed(WORDS[:7])))
    assert hashes("a b") != hashes("b a") != hashes("a b c")


@pytest.mark.parametrize(("text", "chars"), [(CHINESE, 11), (THAI, 28)])
def test_text_without_spaces_has_runs_of_characters(text, chars):
    assert len(hashes(text)) == len(text) - chars + 1
    assert set(hashes(text[3:])) <= set(hashes("前" + text)), "wherever the text begins"
    assert hashes(text) == hashes(f"{text[:5]} {text[5:]}"), "white space means nothing"


def test_the_same_in_every_process():
    code = f"from spiderling.text.fingerprints import shingles; print(shingles([{' '.join(WORDS)!r}]).hashes.tolist())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str(hashes(" ".join(WORDS)))
