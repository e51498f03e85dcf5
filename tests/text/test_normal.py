"""The normal form: what looks the same is written the same."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.html.blocks import normal_form, normal_forms, rejoined
from spiderling.text.html.parser import parse

# characters that the rules are about, so that they meet each other often
ODD = (
    "\u200b\u200c\u200d\u00ad\ufeff\u0301\u0327\u0653\u1dfa\u2000\u212b\u2329\x00\x0b\x1f\x7f\x85\x96\xa0\ud800 "
    "\t\nae-آकি❤"
)
TEXTS = st.text() | st.text(st.sampled_from(ODD)) | st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        ("plain", "plain"),
        (" a \t\n b\x07\x96c\ufffe ", "a b–c"),
        ("cafe\u0301", "café"),
        ("\u212b", "\xc5"),  # the sign of the unit
        ("ﬁn Ⅳ ²", "ﬁn Ⅳ ²"),  # compatibility forms are no canonical ones
        ("a\xa0b\u2003c\u2028d\u3000e", "a b c d e"),
        ("co\u00adope\u200brate\ufeff\u2060", "cooperate"),
        ("\u200b \u00ad", ""),
        ("a \u200b b", "a b"),
        ("\u202bשלום\u202c", "שלום"),
        ("\x00a\x01\x1b[0m", "a[0m"),
        ("a\x0bb\x1cc", "a b c"),
        ("wait\x85", "wait…"),
        ("\ud83d", ""),
        ("می\u200cخواهم", "می\u200cخواهم"),  # Persian: two parts of one word
        ("می\u200c\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),  # Hindi: a half letter
        ("👩\u200d👧", "👩\u200d👧"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("a\u200cb\u200d", "ab"),
        ("e\u200d\u0301", "é"),
        ("\u2329\u200d", "\u3008"),
    ],
)
def test_normal_form(text, normal):
    assert normal_form(text) == normal


@given(TEXTS)
def test_once_is_enough(text):
    normal = normal_form(text)
    assert normal_form(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)
    assert normal.split(" ") == normal.split() or normal == ""


@given(TEXTS)
def test_no_text_is_invented(text):
    """Every character was there, but for spaces and windows-1252 punctuation in the place of control characters."""
    meant = "".join(bytes([ord(c)]).decode("cp1252", "ignore") if "\x80" <= c <= "\x9f" else c for c in text)
    left = Counter(unicodedata.normalize("NFD", normal_form(text)).replace(" ", ""))
    assert left <= Counter(unicodedata.normalize("NFD", meant))


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=30))
def test_no_visible_text_is_lost(text):
    invisible = {"\u2061", "\u2062", "\u2063", "\u2064"}
    if not invisible & set(text):
        assert normal_form(text) == unicodedata.normalize("NFC", text)


@given(TEXTS, TEXTS)
def test_words_stay_apart(one, two):
    """What stood between spaces is a word of its own, or nothing."""
    assert normal_form(f"{one} {two}") == " ".join(filter(None, (normal_form(one), normal_form(two))))


def test_paragraphs_do_not_touch_each_other():
    blocks = parse("<p>e</p><p>&#x301;x</p><p>half-</p><p>way a&#xad;</p><p>b</p>").blocks
    assert [block.text for block in blocks] == ["e", "\u0301x", "half-", "way a", "b"]


def test_a_page_is_written_in_normal_form():
    parsed = parse("<title>Cafe&#x301; &shy;x</title><p>mo&shy;re <a href=/>na&#x308;h&#8203;er</a></p>")
    assert (parsed.title, parsed.blocks[0].text, parsed.links[0].anchor) == ("Café x", "more näher", "näher")


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        ("a divi-\nded word", "a divided word"),
        ("a divi-\n   ded word", "a divided word"),
        ("a di\u00ad\nvi\u2010\nded word", "a divided word"),
        ("Jean-\nPaul", "Jean-Paul"),
        ("Nord\u00ad\nSüd", "NordSüd"),
        ("1990-\n2000", "1990-\n2000"),
        ("pause -\nthen", "pause -\nthen"),
        ("the end-\n\nnext paragraph", "the end-\n\nnext paragraph"),
        ("list\n- item", "list\n- item"),
    ],
)
def test_words_divided_at_the_end_of_a_line(lines, whole):
    assert rejoined(lines) == whole


@given(st.text(st.sampled_from("abA1-\u00ad\n \t")))
def test_rejoining_takes_only_hyphens_and_white_space(lines):
    whole = rejoined(lines)
    assert rejoined(whole) == whole
    assert [c for c in whole if c.isalnum()] == [c for c in lines if c.isalnum()]
    assert whole.count("\n\n") == lines.count("\n\n")


@given(st.lists(TEXTS | st.just("a" + "\u0301" * 40), max_size=5))
def test_all_texts_of_a_page_together(texts):
    plain = [" ".join(text.split()) for text in texts]
    assert normal_forms(plain) == list(map(normal_form, plain))
