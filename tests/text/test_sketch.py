"""What makes two pages the same: all words but numbers, short ones and those of the address."""

from __future__ import annotations

import re

import xxhash
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.fingerprints import MIN_CHARS, sketch

TEXT = "Stránka, kterou hledáte, na tomto serveru není. Zkuste to znovu, nebo se vraťte na úvodní stránku webu."


def test_numbers_and_words_of_the_address_do_not_count() -> None:
    first = sketch([TEXT, "Hledáno: /zlate-hodinky/ dne 21. 11. 2026"], "http://a.cz/zlate-hodinky/")
    assert first == sketch([TEXT, "Hledáno: /modre-boty/ dne 1. 1. 1999"], "http://a.cz/modre-boty/")
    assert first == sketch([TEXT, "Hledáno: /žluté-boty/"], "http://a.cz/%C5%BElut%C3%A9-boty/")
    assert first


def test_the_address_may_be_printed_as_it_was_sent() -> None:
    first = sketch([TEXT, "Stránka /%C5%BElut%C3%A9-boty nebyla nalezena"], "http://a.cz/%C5%BElut%C3%A9-boty")
    assert first == sketch([TEXT, "Stránka /dokon%C4%8D%C3%AD-mod%C5%99e nebyla nalezena"],
                           "http://a.cz/dokon%C4%8D%C3%AD-mod%C5%99e")  # fmt: skip


def test_how_often_a_line_comes_does_not_count() -> None:
    assert sketch([TEXT, "odkaz", "odkaz", "dále", "odkaz"], "") == sketch([TEXT, "odkaz", "dále"], "")
    assert sketch([TEXT, "odkaz"], "") != sketch([TEXT], "")


def test_words_that_stand_in_an_address_by_chance_count() -> None:
    first = sketch([TEXT, "Hledáno: /znovu/"], "http://a.cz/znovu/")
    assert first == sketch([TEXT, "Hledáno: /nebo/"], "http://a.cz/nebo/") != 0


def test_any_other_word_does() -> None:
    assert sketch([TEXT], "http://a.cz/") != sketch([TEXT + " Sleva!"], "http://a.cz/")


def test_next_to_no_text_is_like_nothing() -> None:
    assert sketch([], "http://a.cz/") == sketch(["1 2 3", "ahoj"], "http://a.cz/") == 0
    assert sketch(["abcd " * (MIN_CHARS // 4)], "") != 0


@given(st.lists(st.text()), st.text())
def test_never_raises_and_fits_64_bits(texts: list[str], url: str) -> None:
    assert 0 <= sketch(texts, url) < 1 << 64


@given(st.lists(st.text("aſßéΣσςŠ字한\u0301\ud800_1 .-𝒜", max_size=60)), st.sampled_from(["", "http://a.cz/aaaa/šššš"]))
def test_it_is_made_of_the_words_of_four_letters_and_more(texts: list[str], url: str) -> None:
    own = {"aaaa", "šššš"} if url else set()
    words = []
    for line in (re.findall(r"[^\W\d_]{4,}", text.lower()) for text in dict.fromkeys(texts)):
        words += line if len(line) > 12 else [word for word in line if word not in own]
    joined = "".join(words)
    assert sketch(texts, url) == (xxhash.xxh3_64_intdigest(joined.encode()) if len(joined) >= MIN_CHARS else 0)
