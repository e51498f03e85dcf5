"""Shingles: what they are of, and that they tell texts apart."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from spiderling.text.fingerprints import (
    MAX_PARAGRAPHS,
    MIN_CHARS,
    WINDOW,
    digests_of,
    known_again,
    pack,
    shingles,
    sketch,
)

WORDS = ["jedna", "dva", "tři", "čtyři", "pět", "šest", "sedm", "osm", "devět", "deset"]
CHINESE = "我们昨天晚上在学校旁边的那个小书店里买了三本关于历史的书"
THAI = "เมื่อวานนี้เราไปซื้อหนังสือประวัติศาสตร์สามเล่มที่ร้านหนังสือเล็กๆข้างโรงเรียน"


def hashes(*paragraphs: str) -> list[int]:
    return shingles(paragraphs).hashes.tolist()


PIECES = st.sampled_from([*WORDS[:8], CHINESE[:14], THAI[:30], "　", "🐈", "\x1f"])


@given(st.lists(st.lists(PIECES, max_size=12).map(" ".join)))
@example([" ".join(WORDS[:7]), " ".join(reversed(WORDS[:7])), "a b", "b a", "a b c"])
def test_equal_exactly_where_the_runs_are(paragraphs):
    runs = [run for paragraph in paragraphs for run in runs_of(paragraph)]
    found = shingles(paragraphs)
    hashes = found.hashes.tolist()
    assert len(dict.fromkeys(zip(hashes, runs, strict=True))) == len(set(hashes)) == len(set(runs))
    assert found.counts.tolist() == [len(runs_of(paragraph)) for paragraph in paragraphs]


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


@pytest.mark.parametrize(("text", "chars"), [(CHINESE, 11), (THAI, 28)])
def test_text_without_spaces_has_runs_of_characters(text, chars):
    assert len(hashes(text)) == len(text) - chars + 1
    assert set(hashes(text[3:])) <= set(hashes("前" + text)), "wherever the text begins"
    assert hashes(text) == hashes(f"{text[:5]} {text[5:]}"), "white space means nothing"


def test_the_same_in_every_process():
    code = f"from spiderling.text.fingerprints import shingles; print(shingles([{' '.join(WORDS)!r}]).hashes.tolist())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str(hashes(" ".join(WORDS)))


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


def test_what_else_counts_and_what_does_not() -> None:
    assert sketch([TEXT, "odkaz", "odkaz", "dále", "odkaz"], "") == sketch([TEXT, "odkaz", "dále"], ""), "how often"
    assert len({sketch([TEXT], ""), sketch([TEXT, "odkaz"], ""), sketch([f"{TEXT} Sleva!"], "")}) == 3
    by_chance = [sketch([TEXT, f"Hledáno: /{word}/"], f"http://a.cz/{word}/") for word in ("znovu", "nebo")]
    assert by_chance[0] == by_chance[1] != 0, "words that stand in an address by chance count"
    assert sketch([], "http://a.cz/") == sketch(["1 2 3", "ahoj"], "http://a.cz/") == 0, "next to no text"
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


TEXTS = st.lists(st.text(max_size=6), max_size=30)


def known(texts: list[str], before: list[str]) -> list[bool]:
    return [bool(one) for one in known_again(digests_of(texts), pack(digests_of(before)), len(texts))]


@given(texts=TEXTS, before=TEXTS)
def test_a_paragraph_is_known_if_the_last_version_has_it(texts, before):
    assert known(texts, before) == [text in before for text in texts]
    assert all(known(texts, texts))


def test_a_million_paragraphs_are_bounded_and_each_is_stored_once():
    texts = [str(n) for n in range(1_000_000)]
    digests = digests_of(texts)
    assert len(digests) == len(pack(digests)) == 8 * MAX_PARAGRAPHS
    found = known_again(digests, pack(digests_of(texts[1:])), len(texts))
    assert not found[0] and found[1 : MAX_PARAGRAPHS - 1].all() and found[MAX_PARAGRAPHS:].all()
    assert len(pack(digests_of(["a", "b", "a"]))) == 16
    assert pack(b"") == b"" and known([], ["a"]) == []
