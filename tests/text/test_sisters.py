"""Sister languages are told apart by their words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spiderling.languages import load
from spiderling.text import LanguageModels
from spiderling.text.ngrams import normalised
from spiderling.text.words import SISTERS, TextWords, keys_of


def test_a_word_has_the_same_key_wherever_it_stands():
    chars, starts, written = normalised(["Ikkje eg,  ikkje", "meg", "ikke"])
    words = TextWords(chars, starts, written).split()
    assert words.texts.tolist() == [0, 0, 0, 1, 2]
    assert words.lengths.tolist() == [5, 2, 5, 3, 4]
    assert [chr(letter) for letter in words.first] == ["I", "e", "i", "m", "i"]
    assert words.keys[0] == words.keys[2]
    assert len(set(words.keys.tolist())) == 4
    assert words.keys.tolist() == keys_of(["ikkje", "eg", "ikkje", "meg", "ikke"]).tolist()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("nn", "Eg veit ikkje kva dei seier om dette."),
        ("nb", "Jeg vet ikke hva de sier om dette."),
        ("da", "Jeg ved ikke, hvad de siger om det."),
        ("af", "Ons het nie geweet wat hulle sou doen nie."),
        ("nl", "Wij wisten niet wat zij zouden doen."),
        ("hr", "Tko je rekao što će se dogoditi sljedeći tjedan u općini?"),
        ("sr", "Ko je rekao šta će se desiti sledeće nedelje u opštini?"),
        ("xh", "Ndifuna ukuthetha nawe ngale nto kodwa andikwazi."),
        ("zu", "Ngifuna ukukhuluma nawe ngalokhu kodwa angikwazi."),
        ("st", "Re tla etsa sena hore batho ba phele hantle."),
        ("tn", "Re tla dira seno gore batho ba tshele sentle."),
        ("bs", "Također je saopćio da će hiljade ljekara prisustvovati sjednici u januaru."),
        ("ms", "Polis memaklumkan bahawa syarikat itu akan membayar cukai kerana kualiti projek."),
        ("id", "Polisi mengatakan bahwa perusahaan itu akan membayar pajak karena kualitas proyek."),
        ("crh", "Er kesniñ yaşamaq, serbestlik ve şahsiy havfsızlıq aqqı bardır."),
        ("tr", "Yaşamak, hürriyet ve kişi emniyeti her ferdin hakkıdır."),
        ("yue", "佢哋話呢個建議唔可以接受，所以冇人肯去。"),
        ("zh", "議員表示，這項建議無法接受，因此沒有人願意去。"),
    ],
)
def test_sisters(code, text):
    family = next(family for family in SISTERS if code in family)
    models = load([*(name for name in family if name != "nr"), "en"])
    assert models.identify([text]).nearest() == code


def test_words_change_only_the_texts_whose_nearest_language_has_sisters():
    models = load(["da", "nb", "en", "fi"])
    alone = models.identify(["The weather was fine all week."])
    beside = models.identify(["The weather was fine all week.", "Jeg vet ikke hva de sier om dette."])
    assert np.allclose(alone.scores[0], beside.scores[0])
    assert beside.nearest([1]) == "nb"


def test_a_text_without_words_and_an_empty_text():
    guesses = load(["da", "nb"]).identify(["", "123", "Jeg vet ikke hva de sier."])
    assert [guesses.nearest([row]) for row in range(3)] == [None, None, "nb"]


def test_words_decide_where_ngrams_do_not():
    nb, nn = load(["nb", "nn"]).models
    texts = ["Jeg vet ikke hva de sier.", "Eg veit ikkje kva dei seier."]
    for models in ((nb, replace(nn, ngrams=nb.ngrams)), (replace(nn, ngrams=nb.ngrams), nb)):
        guesses = LanguageModels(models).identify(texts)
        assert [guesses.nearest([row]) for row in (0, 1)] == ["nb", "nn"]
    without = LanguageModels((replace(nb, words={}), replace(nn, words={})))
    assert without.identify(texts).scores.shape == (2, 2)


def test_a_contrast_list_tells_sisters_apart_where_words_do_not():
    nb, nn = load(["nb", "nn"]).models
    twin = replace(nn, ngrams=nb.ngrams, words=nb.words, tokens=nb.tokens)
    text = ["Brevet kom i går."]
    for words, code in (((["brevet"], []), "nb"), (([], ["brevet"]), "nn")):
        mine, its = map(frozenset, words)
        models = LanguageModels((replace(nb, contrast=mine), replace(twin, contrast=its)))
        assert models.identify(text).nearest() == code


def test_formal_words_in_the_characters_of_cantonese_are_cantonese():
    models = load(["zh", "yue", "en"])
    formal = "議會委員會目前正在起草立法，以推行名稱變更，關於議會成員名稱的任何描述的最終決定，當然由成員自己決定。"
    assert models.identify([formal]).nearest() == "zh"
    assert models.identify([formal.replace("的", "嘅").replace("在", "喺")]).nearest() == "yue"
