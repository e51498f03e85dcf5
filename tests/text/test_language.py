"""Languages, badness and training, as functions."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.build import DRAWN_WORDS, drawn, model_of
from spiderling.languages import load
from spiderling.text.language import LanguageModels
from spiderling.text.ngrams import are_capital, code_points_of, codepoints, count_ngrams, normalise, normalised, words
from spiderling.text.quality import LIMIT, badness, build_profile, listed, stoplist_of
from spiderling.training import alphabet, held_out_check, sentences, train

CZECH = """Když se kočka vrátila domů, bylo už tma a všichni spali.
Jen pes seděl u dveří a čekal na ni, protože měl hlad.
V kuchyni našla misku mléka a kousek chleba, který tam zůstal od večeře.
Ráno přišla babička a ptala se, kdo to všechno snědl.
Nikdo se k tomu nepřiznal, a tak se všichni jen smáli.
Potom šli na zahradu, kde kvetly růže a zpívali ptáci."""
ENGLISH = """When the cat came home it was already dark and everybody was asleep.
Only the dog was sitting by the door and waiting for her because he was hungry.
In the kitchen she found a bowl of milk and a piece of bread left from dinner.
In the morning grandmother came and asked who had eaten it all.
Nobody would admit to it and so they all just laughed.
Then they went to the garden where the roses were blooming and the birds were singing."""
RUSSIAN = "Когда кошка вернулась домой, было уже темно, и все спали, только собака сидела у двери и ждала её."


MODELS = LanguageModels((train("cs", sentences([CZECH])), train("en", sentences([ENGLISH]))))


def test_normalise():
    assert normalise("Ahoj, SVĚTE! 12x_y") == " ahoj světe x y "
    assert normalise("...") == "  "
    assert normalise("हिन्दी में।") == " हिन्दी में ", "vowel signs are no word boundaries"


def test_each_text_and_all_together():
    guesses = MODELS.identify([CZECH, "", "12 + 34", ENGLISH, "Ne."])
    assert guesses.sure() == ["cs", None, None, "en", None]
    assert [guesses.nearest([row]) for row in range(4)] == ["cs", None, None, "en"]
    assert guesses.nearest([0, 1]) == "cs"
    assert guesses.known_share("cs", [0]) > 0.7 > 0.3 > guesses.known_share("cs", [3])


def test_the_answer_for_a_text_does_not_depend_on_its_company():
    alone, among = MODELS.identify([CZECH]), MODELS.identify([ENGLISH, CZECH, RUSSIAN])
    assert among.scores[1] == pytest.approx(alone.scores[0], rel=1e-4)
    assert among.evidence("cs").usual[1] == pytest.approx(alone.evidence("cs").usual[0])
    assert among.sizes[1] == alone.sizes[0]
    assert max(among.known_share(code, [2]) for code in MODELS.codes) < 0.2, "another script is known to none"


MIXED = {
    "ru": "Посетить сайт Double Commander: при наличии Интернета позволяет посетить веб-страницу проекта.",
    "ko": "이 옵션은 apt-get dist-upgrade 명령이 패키지 관리자를 통해 어떻게 새 패키지를 설치하는지 알려 줍니다. "
    "그러나 설정 파일은 바뀌지 않습니다.",
    "zh": "另外，也可以用 ndiswrapper 实现在 Linux 系统上使用 Windows 的驱动（如果您有的话）。"
    "参见 Debian 维基的页面以了解更多信息。",
    "en": "The Russian word кошка means cat, and собака means dog, as every child in the country knows.",
}


@pytest.mark.parametrize("code", MIXED)
def test_names_and_commands_in_latin_letters_hide_no_other_script(code):
    guesses = load(("ru", "sr", "ko", "zh", "en", "yue")).identify([MIXED[code]])
    assert guesses.sure() == [code]
    assert guesses.known_share(code) > 0.6


def test_no_texts_no_models_and_one_language_alone():
    nothing, unknown = MODELS.identify([]), LanguageModels(()).identify(["text"])
    assert (nothing.nearest(), nothing.sure(), unknown.nearest(), unknown.sure()) == (None, [], None, [None])
    assert LanguageModels(MODELS.models[:1]).identify([CZECH]).sure() == ["cs"]


@given(st.lists(st.text(), max_size=4))
def test_identify_never_raises(texts):
    guesses = MODELS.identify(texts)
    assert len(guesses.sure()) == len(texts)
    assert all(0 <= guesses.known_share("cs", [row]) <= 1 for row in range(len(texts)))


def test_training_does_not_depend_on_order_or_repetition():
    lines = CZECH.splitlines()
    assert sentences([CZECH]) == sentences(["\n".join(reversed(lines)), CZECH, "\n \n12\n"])
    assert train("cs", sentences([CZECH])) == train("cs", sentences(["\n".join([CZECH] * 3)]))


def test_model_of_a_script_without_spaces():
    model = train("th", sentences(["ภาษาไทยเป็นภาษาที่เขียนติดกันโดยไม่มีช่องว่าง\nวันนี้อากาศดีมาก"]))
    assert (model.spaced, model.profile, model.stoplist) == (False, {}, frozenset())


def test_extra_words_lend_their_ngrams():
    plain, more = train("cs", sentences([CZECH])), model_of("cs", sentences([CZECH]), {"žloutek": 1000, "x": 1})
    assert "žlou" not in plain.ngrams.as_dict()
    assert more.ngrams.as_dict()["žlou"] == more.words["žloutek"] == pytest.approx(DRAWN_WORDS, rel=0.01)
    assert more.words["kočka"] == plain.words["kočka"]


def test_words_are_drawn_as_often_as_listed():
    drawn_words = Counter(" ".join(drawn({"a": 5, "b": 3, "c": 2, "z": 0}, 1000)).split())
    assert drawn_words == {"a": 500, "b": 300, "c": 200}
    assert drawn({"a": 5, "b": 5}, 100) == drawn({"a": 5, "b": 5}, 100)
    assert set(drawn({"a": 5, "b": 5}, 100)) != {"a a a a a a a a a a", "b b b b b b b b b b"}
    assert drawn({}, 100) == []
    assert " " not in drawn({"ภาษา": 5, "ไทย": 5}, 10)[0]


def test_ngrams_are_counted():
    texts = [" ab abc ", " x "]
    counts = count_ngrams(texts, 4)
    places = [(text, start, size) for text in texts for size in range(1, 5) for start in range(len(text) - size + 1)]
    grams = [text[start : start + size] for text, start, size in places]
    assert counts.as_dict() == Counter(grams)
    assert counts.first(2).as_dict() == {" ": 5, "a": 2}
    assert len(count_ngrams([], 4)) == 0


@given(st.lists(st.text(max_size=30).map(normalise), max_size=4))
def test_ngrams_of_any_text(texts):
    counts = count_ngrams(texts, 4).as_dict()
    assert all("  " not in gram for gram in counts)
    assert sum(count for gram, count in counts.items() if len(gram) == 1) == sum(map(len, texts))


def test_held_out_check():
    lines = [f"{line} {number}" for line in CZECH.splitlines() for number in range(20)]
    tried, wrong = held_out_check("cs", lines, [train("en", sentences([ENGLISH]))])
    assert tried > 0 and not wrong


def test_stoplist_and_alphabet():
    assert stoplist_of({"a": 50, "b": 30, "c": 15, "d": 5}, 100) == {"a", "b"}
    assert alphabet({"ab": 1000, "b": 1000, "ž": 1}) == "ba"


def test_badness_by_hand():
    profile = {"the": (-1.0, 0.5, LIMIT), "of": (-2.0, 0.5, LIMIT)}

    def cost(words):
        return badness(listed(" ".join(words), (), profile), profile)

    assert cost(["the"] * 10 + ["of"] + ["x"] * 89) == 0
    assert cost(["the"] + ["x"] * 99) == pytest.approx((-1 + 2) / 0.5 + (-2 - -2.301) / 0.5, abs=1e-3)
    assert cost(["x"] * 10**6) == pytest.approx(LIMIT + (-2 + 6.301) / 0.5, abs=1e-2)
    assert cost([]) == 2 * LIMIT
    assert badness(listed("x", (), {}), {}) == 0


def test_profile_measures_spread_over_documents():
    documents = [["a"] * 10 + ["b"] * count + ["x"] * (90 - count) for count in (1, 10)]
    profile = build_profile(documents)
    assert profile["a"] == (-1.0, 0.15, LIMIT)
    assert profile["b"] == (-1.5, 0.5, LIMIT)


def test_menus_are_worse_than_text():
    profile = build_profile([normalise(ENGLISH).split()] * 2)
    menu = "Home Products Prices Contact Imprint Newsletter Login Register Basket Checkout " * 8
    text, words = (badness(listed(each, (), profile), profile) for each in (ENGLISH, menu))
    assert text < 1 < 20 < words


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
    found = [capital[texts == text].tolist() for text in range(3)]
    assert found == [[False, True, False], [True, True, False], [False, True]]


@given(ANY)
def test_words_are_those_of_the_normalised_text(text):
    assert words(text) == normalise(text).split()


def test_code_points_of_a_class():
    digits = code_points_of(re.compile(r"\d+"))
    assert np.flatnonzero(digits)[:11].tolist() == [*range(ord("0"), ord("9") + 1), 0x660]
    assert digits[0x1D7CE]
    assert not digits[0xD800:0xE000].any()
