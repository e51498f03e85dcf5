"""Spelling: which encoding makes words of bytes."""

from __future__ import annotations

import math
import unicodedata

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


def best(spelling: Spelling, body: bytes) -> str:
    fits = spelling.fits(body)
    return max(fits, key=lambda name: fits[name].score)


@pytest.mark.parametrize(
    ("codec", "text"), [("cp1250", CZECH), ("iso8859-2", CZECH), ("cp1251", RUSSIAN), ("koi8-r", RUSSIAN)]
)
def test_the_encoding_that_makes_words_fits_best(codec, text):
    assert best(BOTH, text.encode(codec)) == codec
    assert best(BOTH, text.upper().encode(codec)) == codec


def test_a_known_language_explains_its_words_better_than_an_unknown_one():
    own, other = CS.fits(CZECH.encode("cp1250"))["cp1250"], CS.fits(RUSSIAN.encode("cp1251"), ["cp1250"])["cp1250"]
    assert own.score > own.unknown + own.size
    assert other.score < other.unknown - other.size


def test_the_score_by_hand():
    spelling = Spelling([(NgramCounts.of({" ": 2, "ž": 2, " ž": 2, "ž ": 2, " ž ": 2}), ("cp1250",))])
    pair = 0.8 * 1 + 0.2 * 0.5  # a space is sure to follow; half of the letters are spaces
    triple = 0.8 * 1 + 0.2 * pair
    assert spelling.fits("ž".encode("cp1250"), ["cp1250"])["cp1250"].score == pytest.approx(math.log(triple), abs=1e-3)


def test_of_two_that_read_the_same_the_one_in_use_is_better():
    same = CS.fits(b"caf\xe9", (), ("cp1250",))
    assert same["cp1250"].score > same["cp1252"].score + 10


def test_of_two_in_use_the_one_of_an_accepted_language_is_better():
    fits = CS.fits(b"caf\xe9", (), ("iso8859-2",))
    assert fits["iso8859-2"].score > fits["cp1250"].score + 3


def test_an_encoding_that_no_language_names_needs_clear_evidence():
    assert best(BOTH, "лиса убежала в яму".encode("mac-cyrillic")) == "cp1251"
    assert best(BOTH, RUSSIAN.title().encode("mac-cyrillic")) == "mac-cyrillic"


def test_a_relative_of_the_encodings_in_use_needs_less_evidence_than_a_stranger():
    fits = CS.fits(b"caf\xe9 h\xe9l\xe9 s\xe9m\xe9")
    assert fits["iso8859-16"].score > fits["cp1252"].score + 4


def test_a_label_in_which_the_language_is_seldom_costs_nothing():
    body = RUSSIAN.encode("mac-cyrillic")
    assert BOTH.fits(body, ["mac-cyrillic"])["mac-cyrillic"].score > BOTH.fits(body)["mac-cyrillic"].score + 10


@pytest.mark.parametrize(
    ("codec", "odd"), [("iso8859-2", b"\x93"), ("cp852", b"\xdb"), ("cp1250", b"\x81"), ("cp1250", b"\x86")]
)
def test_what_no_text_holds_is_dear(codec, odd):
    """A C1 control, box drawing, an undefined byte, a dagger; beside a quotation mark."""
    fits = [CS.fits(b"abc" + sign, [name])[name] for name, sign in ((codec, odd), ("cp1250", b"\x93"))]
    assert fits[1].score - fits[0].score > 5


@pytest.mark.parametrize(("small", "odd"), [("слово яма", "словО ямА"), ("kůň šel", "kŮň ŠeL")])
def test_a_capital_inside_a_word_is_dear(small, odd):
    codec = BOTH.codecs[2 if "я" in small else 0]
    fits = [BOTH.fits(text.encode(codec), [codec])[codec] for text in (small, odd)]
    assert fits[0].score > fits[1].score + 6


def test_a_fraction_is_usual_behind_a_digit_and_dear_inside_a_word():
    dear, usual = (CS.fits(body, ["cp1252"])["cp1252"].score for body in (b"s\xbdur", b"2\xbd"))
    assert usual > dear + 5


def test_letters_of_hashes_that_meet_make_no_words():
    """A letter that the language lacks is unseen, even if its hash is that of a usual n-gram."""
    letters = "".join(chr(code) for code in range(0x410, 0x450))
    fits = CS.fits(letters.encode("cp1251"), ["cp1251"])
    assert fits["cp1251"].score < 60 * math.log(1e-6)


def test_accents_apart_are_read_with_their_letters():
    """windows-1258 has tones as characters of their own."""
    vietnamese = "tiếng việt có sáu thanh điệu và những chữ cái "
    apart = unicodedata.normalize("NFD", vietnamese).replace("e\u0302", "ê").replace("u\u031b", "ư")
    spelling = Spelling([(count_ngrams([vietnamese], 3), ("cp1258",))])
    body = apart.replace("a\u0302", "â").replace("\u0323\u0302", "\u0302\u0323").encode("cp1258", "ignore")
    assert best(spelling, body) == "cp1258"
    fit = spelling.fits(body)["cp1258"]
    assert fit.score > fit.unknown + fit.size


@pytest.mark.parametrize("label", ["iso8859-16", "iso8859-2"])
def test_the_comma_or_cedilla_of_romanian_tells_no_encoding(label):
    romanian = "și țara își știe puținele înțelesuri "
    spelling = Spelling([(count_ngrams([romanian], 3), ("cp1250", "iso8859-2", "iso8859-16"))])
    fits = spelling.fits(romanian.encode("iso8859-16"), [label], spelling.codecs)
    assert fits["iso8859-16"].score == pytest.approx(fits["iso8859-2"].score)


def test_english_words_on_a_page_in_another_language_harm_nothing():
    """A no-break space before each makes them words of the sample."""
    english = "layer paint colour window "
    three = Spelling([(count_ngrams([RUSSIAN], 3), ("cp1251",)), (count_ngrams([english], 3), ("cp1252",))])
    body = "лиса через собаку ".encode("cp1251") + b"\xa0Layer \xa0Paint \xa0Colour \xa0Window"
    assert best(three, body) == "cp1251"
    fit = three.fits(body)["cp1251"]
    assert fit.score > fit.unknown


def test_characters_of_several_bytes_are_tried_where_bytes_stand_side_by_side():
    chinese = "今日在国外的清真寺唤拜塔的功能"
    spelling = Spelling(
        [(count_ngrams([chinese], 3), ("gb18030",)), (count_ngrams([CZECH], 3), ("cp1250",))],
    )
    body = b"\xa0Layer " * 9 + chinese.encode("gb18030")
    assert best(spelling, body) == "gb18030"
    assert "gb18030" not in spelling.fits(CZECH.encode("cp1250"))
    assert "gb18030" in spelling.fits(CZECH.encode("cp1250"), ["gb18030"])


def test_only_words_that_could_differ_are_looked_at():
    assert telling_words(b"<p>plain <b>\xe9t\xe9</b> and\n\x8a. ASCII") == b"\xe9t\xe9 \x8a"
    assert telling_words(b'<a href="x.htm" title="\xe9t\xe9">a=b;c="\xe8"') == b"\xe9t\xe9 \xe8"
    assert telling_words(b"plain") == b""
    assert telling_words(b"\xe9 \xe8 \xe9 ") == b"\xe9 \xe8"
    assert len(telling_words(b" ".join(b"\xe9%d" % number for number in range(SAMPLE_BYTES)))) == SAMPLE_BYTES
    assert telling_words(b"plain " * 20_000 + b"\xe9t\xe9") == b"\xe9t\xe9"
    assert CS.fits(b"plain") == {}


def test_a_long_page_costs_no_more_than_its_sample():
    words = b" ".join(b"\xe9%d" % number for number in range(2 * SAMPLE_BYTES))
    assert CS.fits(words) == CS.fits(words * 9)


def test_a_model_without_ngrams_of_some_size():
    for counts in ({"žluť": 3}, {"ž": 1}, {"žl": 2}):
        assert np.isfinite(Spelling([(NgramCounts.of(counts), ())]).fits(b"\xbe", ["cp1250"])["cp1250"].score)


@given(
    st.binary(max_size=300), st.lists(st.sampled_from(codecs_of(["big5", "gb2312", "latin2", "koi8-r"])), max_size=3)
)
def test_any_bytes_have_a_score(body, codecs):
    fits = BOTH.fits(body, codecs)
    assert all(fit.score <= 0 and fit.size for fit in fits.values())
    assert fits.keys() >= ({*codecs} if not body.isascii() else set())
