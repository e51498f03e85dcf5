"""Texts as arrays are the same texts."""

from __future__ import annotations

import itertools
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.ngrams import are_capital, code_points_of, codepoints, normalise, normalised, words

ANY = st.text(st.sampled_from("aÁ ßİΣς,.0_-\u0301\u200d\U0001f600क्षअ漢\ud800\n\t") | st.characters(), max_size=12)


def without_few_latin(text: str) -> str:
    """*text* without Latin letters if it has more others, an ideograph counted three times."""
    letters = [ord(letter) for letter in normalise(text) if letter != " "]
    latin = sum(letter < 0x370 for letter in letters)
    if latin >= sum(3 if letter >= 0x2E80 else 1 for letter in letters if letter >= 0x370):
        return text
    return "".join(" " if ord(letter) < 0x370 else letter for letter in text.lower())


@given(st.lists(ANY, min_size=1, max_size=6))
def test_texts_in_a_row_are_normalised_each_by_itself(texts):
    chars, starts, _ = normalised(texts)
    parts = [chars[start:end].tolist() for start, end in itertools.pairwise(starts)]
    assert parts == [codepoints(normalise(without_few_latin(text))).tolist() for text in texts]
    assert starts[-1] == len(chars)


def test_capital_letters_of_texts_beside_each_other():
    """A dotted I or a capital sigma in one text leaves the capitals of the others alone."""
    chars, starts, written = normalised(["İzmir Ada ev", "The Æble ate", "ӕмӕ Ӕмӕ", "Νίκος ΟΔΟΣ"])
    firsts = np.flatnonzero(chars[:-1] == ord(" ")) + 1
    firsts = firsts[chars[firsts] != ord(" ")]
    capital = are_capital(written[firsts])
    texts = np.searchsorted(starts, firsts, "right") - 1
    assert [capital[texts == text].tolist() for text in range(3)] == [
        [False, True, False],
        [True, True, False],
        [False, True],
    ]


@given(ANY)
def test_words_are_those_of_the_normalised_text(text):
    assert words(text) == normalise(text).split()


def test_code_points_of_a_class():
    digits = code_points_of(re.compile(r"\d+"))
    assert np.flatnonzero(digits)[:11].tolist() == [*range(ord("0"), ord("9") + 1), 0x660]
    assert digits[0x1D7CE]
    assert not digits[0xD800:0xE000].any()
