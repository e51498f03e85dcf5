"""A text is told from texts in relatives of its language, by script and with or without tone marks."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from models.build import model_of
from spiderling.languages import load
from spiderling.text import LanguageModels
from spiderling.text.language import Guesses
from spiderling.text.ngrams import normalised
from spiderling.text.words import NOT_MEASURED, SISTERS, TextWords, is_alone_in_script, keys_of
from spiderling.training import MAX_WORDS, sentences, train

MIN = 0.6
# From the Universal Declaration of Human Rights (public domain).
SCOTS = """Awbody, as a member o society, hes the richt tae social security and is entitelt tae realisation, throu
national darg and international compluterance and confeerin til the organisation and fends o ilka State,
o the economic, social and cultural richts that maun be haen for his dignity and the free development o
his personality. Awbody hes the richt tae hae wark, free choice o employ, fair and guid tids o wark, and
security gin wark gaes wantin. Awbody, wi nae ony discrimination, hes the richt tae equal pey for equal
wark."""
ENGLISH = """All human beings are born free and equal in dignity and rights. They are endowed with reason and
conscience and should act towards one another in a spirit of brotherhood. Everyone has the right to life, liberty and
security of person. No one shall be subjected to arbitrary arrest, detention or exile."""
YORUBA = """Gbogbo ènìyàn ni a bí ní òmìnira; iyì àti ẹ̀tọ́ kọ̀ọ̀kan sì dọ́gba. Wọ́n ní ẹ̀bùn ti làákàyè àti ti ẹ̀rí‐ọkàn,
ó sì yẹ kí wọn ó máa hùwà sí ara wọn gẹ́gẹ́ bí ọmọ ìyá. Ẹnì kọ̀ọ̀kan ló ní ẹ̀tọ́ láti wà láàyè, ẹ̀tọ́ sí òmìnira àti
ẹ̀tọ́ sí ààbò ara rẹ̀."""
KNOWN = {
    "en": ENGLISH,
    "yo": YORUBA,
    "te": "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు. వారు వివేచన-అంతఃకరణ "
    "సంపన్నులగుటచే పరస్పరము భ్రాతృభావముతో వర్తింపవలయును. జీవితరక్షణకు, స్వేచ్ఛకు, దేహరక్షకు, ప్రతి యొకరికిని హక్కు గలదు.",
    "kn": "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ. ಹಾಗೂ ಘನತೆ ಮತ್ತು ಹಕ್ಕುಗಳಲ್ಲಿ ಸಮಾನರಾಗಿದ್ದಾರೆ. ವಿವೇಕ ಮತ್ತು "
    "ಅಂತಃಕರಣಗಳನ್ನು ಪಡೆದವರಾದ್ದರಿಂದ ಅವರು ಪರಸ್ಪರ ಸಹೋದರ ಭಾವದಿಂದ ವರ್ತಿಸಬೇಕು.",
    # news, written for this test: less colloquial than the model's texts
    "yue": "中央銀行維持基準利率不變嘅決定符合分析員預期，惟通脹壓力持續，企業融資成本仲未見回落。",
    "os": "Адӕймӕгтӕ се 'ппӕт дӕр райгуырынц сӕрибарӕй ӕмӕ ӕмхуызонӕй сӕ барты. Уыдон ӕххӕст сты зонд ӕмӕ намысӕй, "
    "ӕмӕ кӕрӕдзийӕн хъуамӕ уой ӕфсымӕрты хуызӕн.",
}
TONES = dict.fromkeys(map(ord, "\u0300\u0301\u0302\u0304\u030c"))


def without_tones(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(TONES))


def likeness_of(guesses: Guesses) -> float:
    """How English the short words of the texts are."""
    found = guesses.evidence("en")
    return found.listed.likeness(found.unlisted.sum(), found.short.sum())


@pytest.fixture(scope="module")
def models() -> LanguageModels:
    return load([*KNOWN, "zh", "de", "fr", "nl", "ig", "ha", "ru"])


@pytest.mark.parametrize("code", KNOWN)
def test_texts_of_all_scripts_are_known(models, code):
    guesses = models.identify([KNOWN[code]])
    assert guesses.nearest() == code
    assert guesses.known_share(code) >= MIN


def test_a_relative_shares_the_ngrams_but_not_the_short_words(models):
    scots = models.identify([SCOTS])
    assert scots.nearest() == "en"
    assert scots.known_share("en") < MIN
    unmeasured = LanguageModels(tuple(replace(model, unlisted=NOT_MEASURED) for model in models.models))
    assert unmeasured.identify([SCOTS]).known_share("en") >= MIN, "by n-grams alone it is English"


def test_with_and_without_tone_marks(models):
    shares = [models.identify([text]).known_share("yo") for text in (YORUBA, without_tones(YORUBA))]
    assert min(shares) >= MIN
    assert models.identify(["12, 13", KNOWN["te"]]).known_share("yo") < 0.2


def test_a_letter_of_ossetian_has_two_codes(models):
    latin = KNOWN["os"].replace("ӕ", "æ").replace("Ӕ", "Æ")
    assert models.identify([latin]).known_share("os") == models.identify([KNOWN["os"]]).known_share("os")


def test_latin_letters_in_a_cyrillic_word_are_read_as_cyrillic():
    cyrillic = "Само што је отишао, почела је киша и сви су се вратили у кућу на вечеру код баке."
    serbian = load(["sr", "en"])
    shares = [
        serbian.identify([text]).known_share("sr")
        for text in (cyrillic, cyrillic.translate(str.maketrans("аеој", "aeoj")), f"{cyrillic} Windows")
    ]
    assert shares == pytest.approx([shares[0]] * 3, abs=0.1)
    assert shares[0] >= MIN


def test_a_few_words_alone_do_not_decide(models):
    """Three unknown names are no text of a relative; a page of them is."""
    name = "The Brown gow tae hes aw the wi"
    few, many = (models.identify([" ".join([name] * number)]) for number in (1, 8))
    likeness = [likeness_of(guesses) for guesses in (few, many)]
    assert likeness[0] > likeness[1] + 0.1


def test_rows_apart_and_together(models):
    texts = [ENGLISH, "", YORUBA, SCOTS, "..."]
    whole = models.identify(texts)
    codes = ["en", "en", "yo", "en", "yo"]
    alone = [models.identify([text]).known_share(code) for text, code in zip(texts, codes, strict=True)]
    assert whole.known_shares(codes, range(5)) == pytest.approx(alone)
    assert whole.known_share("en", [3]) < whole.known_share("en", [0, 3]) < whole.known_share("en", [0])
    assert whole.known_shares([], []) == []


def test_who_is_alone_in_a_script():
    alone = {code for code in KNOWN if is_alone_in_script(load([code])[code].ngrams)}
    assert alone == {"te", "kn", "yue"}
    assert all(is_alone_in_script(load([code])[code].ngrams) for code in ("el", "he", "ko", "ja", "th", "zh"))
    assert not any(is_alone_in_script(load([code])[code].ngrams) for code in ("ar", "hi", "bn", "am"))


def test_unlisted_words_are_measured_on_held_out_lines_or_the_rest_of_a_list():
    words = [f"{a}{b}{c}" for a in "bcdfgklmnprstvz" for b in "aeiouyáéíóúýäöü" for c in "bcdfghklmnprstvzščřžťďň"]
    assert len(words) > MAX_WORDS
    lines = sentences([" ".join(words[start : start + 6]) for start in range(0, len(words), 6)])
    assert train("xx", lines).unlisted == pytest.approx(1, abs=0.05), "no word of a held-out line stands in another"
    assert train("xx", sentences([*lines, *(f"tak {line} ten" for line in lines)])).unlisted < 0.5
    assert train("xx", lines[:20]).unlisted == NOT_MEASURED, "a small list tells nothing"
    listed = {word: 2 if place < MAX_WORDS else 1 for place, word in enumerate(words)}
    rest = (len(words) - MAX_WORDS) / sum(listed.values())
    assert model_of("xx", [], listed, 40_000).unlisted == pytest.approx(rest, abs=0.05)


def test_names_and_titles_do_not_count_against_a_text(models):
    names = "Tarn Wyke Grell Bosk Dunmor Ashby Quill Drax Morn Selk Vane Orrin Fenn Holt Brack Lorn Pell Tove Zand"
    shares = [likeness_of(models.identify([f"{ENGLISH} The winners were {each}."])) for each in (names, names.lower())]
    assert shares[0] == 1 > shares[1]


def test_a_word_has_the_same_key_wherever_it_stands():
    chars, starts, written = normalised(["Ikkje eg,  ikkje", "meg", "ikke"])
    words = TextWords(chars, starts, written).split()
    assert words.texts.tolist() == [0, 0, 0, 1, 2]
    assert words.lengths.tolist() == [5, 2, 5, 3, 4]
    assert [chr(letter) for letter in words.first] == ["I", "e", "i", "m", "i"]
    assert words.keys[0] == words.keys[2]
    assert len(set(words.keys.tolist())) == 4
    assert words.keys.tolist() == keys_of(["ikkje", "eg", "ikkje", "meg", "ikke"]).tolist()


SENTENCES = {
    "nn": "Eg veit ikkje kva dei seier om dette.", "nb": "Jeg vet ikke hva de sier om dette.",
    "da": "Jeg ved ikke, hvad de siger om det.", "af": "Ons het nie geweet wat hulle sou doen nie.",
    "nl": "Wij wisten niet wat zij zouden doen.", "hr": "Tko je rekao što će se dogoditi sljedeći tjedan u općini?",
    "sr": "Ko je rekao šta će se desiti sledeće nedelje u opštini?",
    "xh": "Ndifuna ukuthetha nawe ngale nto kodwa andikwazi.",
    "zu": "Ngifuna ukukhuluma nawe ngalokhu kodwa angikwazi.",
    "st": "Re tla etsa sena hore batho ba phele hantle.", "tn": "Re tla dira seno gore batho ba tshele sentle.",
    "bs": "Također je saopćio da će hiljade ljekara prisustvovati sjednici u januaru.",
    "ms": "Polis memaklumkan bahawa syarikat itu akan membayar cukai kerana kualiti projek.",
    "id": "Polisi mengatakan bahwa perusahaan itu akan membayar pajak karena kualitas proyek.",
    "crh": "Er kesniñ yaşamaq, serbestlik ve şahsiy havfsızlıq aqqı bardır.",
    "tr": "Yaşamak, hürriyet ve kişi emniyeti her ferdin hakkıdır.",
    "yue": "佢哋話呢個建議唔可以接受，所以冇人肯去。", "zh": "議員表示，這項建議無法接受，因此沒有人願意去。",
}  # fmt: skip


@pytest.mark.parametrize("code", SENTENCES)
def test_sisters(code):
    family = next(family for family in SISTERS if code in family)
    models = load([*(name for name in family if name != "nr"), "en"])
    assert models.identify([SENTENCES[code]]).nearest() == code


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
