"""Spelling: which encoding makes words of bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.encoding.labels import codecs_of
from spiderling.text.encoding.spelling import SAMPLE_BYTES, Spelling, telling_words
from spiderling.text.ngrams import NgramCounts, count_ngrams

CZECH = "příliš žluťoučký kůň úpěl ďábelské ódy, když se šel napít k řece. "
RUSSIAN = "быстрая лиса прыгнула через ленивую собаку и убежала в лес. "


CS = Spelling([(count_ngrams([CZECH], 3), ("cp1250", "iso8859-2"))])
BOTH = Spelling(
    [(count_ngrams([CZECH], 3), ("cp1250", "iso8859-2")), (count_ngrams([RUSSIAN], 3), ("cp1251", "koi8-r"))]
)


def best(spelling: Spelling, body: bytes, codecs: tuple[str, ...]) -> str:
    fits = spelling.fits(body, codecs)
    return max(fits, key=lambda name: fits[name].score)


@pytest.mark.parametrize(
    ("codec", "text"), [("cp1250", CZECH), ("iso8859-2", CZECH), ("cp1251", RUSSIAN), ("koi8-r", RUSSIAN)]
)
def test_the_encoding_that_makes_words_fits_best(codec, text):
    assert best(BOTH, text.encode(codec), ("cp1252", *BOTH.codecs)) == codec
    assert best(BOTH, text.upper().encode(codec), ("cp1252", *BOTH.codecs)) == codec


def test_a_language_costs_less_than_what_it_is_not():
    own, other = CS.fits(CZECH.encode("cp1250"), ["cp1250"]), CS.fits(RUSSIAN.encode("cp1251"), ["cp1250"])
    assert own["cp1250"].cost < 2 < 10 < other["cp1250"].cost


def test_the_score_by_hand():
    spelling = Spelling([(NgramCounts.of({" ": 2, "ž": 2, " ž": 2, "ž ": 2, " ž ": 2}), ("cp1250",))])
    pair = 0.8 * 1 + 0.2 * 0.5  # a space is sure to follow; half of the letters are spaces
    triple = 0.8 * 1 + 0.2 * pair
    assert spelling.fits("ž".encode("cp1250"), ["cp1250"])["cp1250"].score == pytest.approx(math.log(triple), rel=1e-4)


def test_of_two_that_read_the_same_the_one_in_use_is_better():
    fits = CS.fits("dům „šel“ či méně".encode("cp1250"), ["cp1250", "cp1254"])
    same = CS.fits(b"caf\xe9", ["cp1250", "cp1252"])
    assert same["cp1250"].score > same["cp1252"].score + 10
    assert fits["cp1250"].score > fits["cp1254"].score


@pytest.mark.parametrize("odd", ["\x93", "█", "\ufffd", "†"])
def test_what_no_text_holds_is_dear(odd):
    cost = {char: CS.fits(f"žluť{char}".encode(), ["utf-8"])["utf-8"].score for char in (odd, "“")}
    assert cost["“"] - cost[odd] > 5


def test_marks_belong_to_their_letters():
    fits = CS.fits("žluti\u0323".encode(), ["utf-8"])
    assert fits["utf-8"].score > CS.fits("žluti†".encode(), ["utf-8"])["utf-8"].score


def test_only_words_that_could_differ_are_looked_at():
    assert telling_words(b"<p>plain <b>\xe9t\xe9</b> and\n\x8a. ASCII") == b"\xe9t\xe9 \x8a."
    assert telling_words(b"plain") == b""
    assert len(telling_words(b"\xe9 " * 10 * SAMPLE_BYTES)) == SAMPLE_BYTES
    assert CS.fits(b"plain", ["cp1250"]) == {}


def test_a_long_page_costs_no_more_than_its_sample():
    once = CS.fits(CZECH.encode("cp1250") * 200, ["cp1250"])
    assert once == CS.fits(CZECH.encode("cp1250") * 400, ["cp1250"])


def test_a_model_without_ngrams_of_some_size():
    assert np.isfinite(Spelling([(NgramCounts.of({"žluť": 3}), ())]).fits(b"\xbe", ["cp1250"])["cp1250"].score)


@given(
    st.binary(max_size=300), st.lists(st.sampled_from(codecs_of(["big5", "gb2312", "latin2", "koi8-r"])), max_size=3)
)
def test_any_bytes_have_a_score(body, codecs):
    assert all(fit.score <= 0 for fit in BOTH.fits(body, codecs).values())
