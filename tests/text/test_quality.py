"""Signals of a document's quality and the verdicts on them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from cleaned_pages import CZECH, cleaned, known
from conftest import SENTENCES, paragraphs
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.options import Options
from spiderling.engine.outcomes import DropPage
from spiderling.pipelines import check_quality
from spiderling.text import LanguageModels, Page, TextOptions, process
from spiderling.text.html.blocks import normal_form
from spiderling.text.quality import NO_QUALITY, count_words, marks, packed_share, quality, top_word_share, words_in


def test_signals():
    paragraphs = ["The cat came home. It was 9 o'clock.", "Price: 100 $ | 200 $", "Price: 100 $ | 200 $"]
    found = quality(paragraphs, 0.5, 200)
    chars = 36 + 20 + 20
    assert found.stopword_share == 0.5
    assert found.sentence_words == pytest.approx(20 / 4)
    assert found.repeated_share == pytest.approx(20 / chars)
    assert found.digit_share == pytest.approx(13 / chars)
    assert found.symbol_share == pytest.approx(6 / chars)
    assert found.good_share == pytest.approx(chars / 200)


def test_nothing_to_judge():
    assert quality([], 0.5, 100) == NO_QUALITY


def test_languages_without_a_list_are_not_judged_by_it():
    models = LanguageModels(tuple(replace(model, stoplist=frozenset()) for model in known("cs en").models))
    body = f"<p>{CZECH * 5}</p>".encode()
    page = process(body, url="http://a.cz/", http_charset=None, models=models, options=TextOptions(("cs",)))
    assert page.quality.good_share > 0
    assert page.quality.stopword_share == 1.0


def test_attributes_of_a_page():
    found = cleaned(f"<div><a href=/>Domů</a></div><p>{CZECH * 4}</p>").quality
    assert 0.2 < found.stopword_share < 0.8
    assert found.sentence_words == 20
    assert 0.9 < found.good_share < 1
    assert set(found.attributes()) == set(found._fields)
    assert found.attributes()["sentence_words"] == "20.0"


@pytest.mark.parametrize(
    "limit",
    [
        "page_bytes=5000..", "text_chars=5000..", "badness=..0", "stopword_share=.9..", "sentence_words=30..",
        "sentence_words=..5", "repeated_share=..0.1", "digit_share=..0.001", "symbol_share=..0.001",
        "good_share=.999..", "packed_share=1..", "top_word_share=..0.001", "text_chars=0..100",
        "off,digit_share=..0.001",
    ],
)  # fmt: skip
def test_each_limit_refuses(limit):
    page = cleaned(f"<div><a href=/>Domů</a></div><p>{CZECH * 4}<p>{CZECH * 4}<p>Cena 100 $ a 200 $, {CZECH}")
    check_quality(page, Options())
    check_quality(page, Options(quality="off"))
    with pytest.raises(DropPage):
        check_quality(page, Options(quality=limit))


@given(
    st.lists(
        st.text(st.sampled_from("a. !?…؟。।'\"»)…..1٣*|€"), min_size=1, max_size=20).map(normal_form).filter(bool),
        min_size=1,
        max_size=5,
    )
)
def test_marks_are_counted_as_expressions_do(texts):
    """The counts by table are those of the expressions that say what is meant."""
    end = re.compile(r"[.!?…](?=\s|[\"'»”’)\]]|$)|[。！？।॥؟።]")
    chars = sum(map(len, texts))
    found = quality(texts, 1.0, chars, marks)
    sentences = sum(max(1, len(end.findall(text))) for text in texts)
    assert found.sentence_words == pytest.approx(len(" ".join(texts).split()) / sentences)
    assert found.digit_share == len(re.findall(r"\d", "\n".join(texts))) / chars
    symbols = re.compile(r"[#*|<>{}\[\]=~^_\\/@+•·»«→←©®™$€%&]|\.\.\.|…")
    assert found.symbol_share == len(symbols.findall("\n".join(texts))) / chars
    assert all(type(value) in (int, float) for value in found[:6])


@given(
    st.lists(st.text(st.sampled_from("ab \u00a0\u2028\x1c\x85\u200b\n\t"), max_size=30).map(normal_form), max_size=5)
)
def test_words_are_counted_as_they_are_parted(texts):
    """All paragraphs are in normal form."""
    text = "\n".join(filter(None, texts))
    assert words_in(text) == len(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("Když se kočka vrátila domů, bylo už tma.", 8),
        ("Η γρήγορη καφέ αλεπού\nпрыгает через собаку", 7),
        ("नमस्ते दुनिया यह एक वाक्य है", 6),
        ("我们今天去北京大学参观图书馆。", 9),
        ("日本語の文 with five English words inside", 6),
        ("2019年10月にGoogleが発表した", 8),
        ("佢哋嘅屋企喺香港", 6),
        ("ประเทศไทยมีประชากรมากกว่าหกสิบล้านคน", 9),
        ("ພາສາລາວແມ່ນພາສາທາງການ", 6),
        ("ភាសាខ្មែរគឺជាភាសាផ្លូវការ", 5),
        ("မြန်မာဘာသာစကားသည်ရုံးသုံးဘာသာစကားဖြစ်သည်", 7),
        ("བོད་ཀྱི་སྐད་ཡིག", 3),
    ],
)
def test_scripts_without_spaces_have_words(text, words):
    """A Japanese page had one word, so budgets and yields in words meant nothing."""
    found = count_words(text, len(text.encode()))
    assert found == words


ARTICLE = """
    昨日の夕方、駅前の小さな本屋で火事がありました。火はすぐに消えて、けがをした人はいませんでした。\
    店の主人は「長い間ここで働いてきたので、本当に残念です」と話しています。\
    近所の人たちは、来週から店の片づけを手伝うことにしました。新しい店は春に開く予定です。
"""


def test_an_article_is_as_long_as_in_english():
    """It has 137 characters, and would have far more than 250 in English."""
    article = "".join(ARTICLE.split())
    page = cleaned(f"<title>火事</title><p>{article}</p>", "ja", codes="ja en")
    assert len(article) < 140 < 250 < page.clean_chars
    assert verdict(page, lang="ja") == "kept"
    assert verdict(cleaned(f"<p>{article[:60]}</p>", "ja", codes="ja en"), lang="ja").startswith("only ")
    assert 10 < page.quality.sentence_words < 20, "there are five sentences"


@pytest.mark.parametrize("mark", "。｡！？।॥؟۔։༎།።။៕។")
def test_marks_that_end_sentences_need_no_space_behind(mark):
    assert marks([f"ab{mark}cd{mark}ef"])[0] == 2
    assert quality([f"ab{mark}cd{mark}"] * 2, 1.0, 99).sentence_words == 0.5


def test_what_is_not_kept_is_not_judged_further():
    """Nobody asks for it, and it costs."""
    page = f"<p>{'The cat came home when it was dark and nobody but the dog was awake. ' * 4}"
    czech, english = (cleaned(page, code, codes="cs en") for code in ("cs", "en"))
    assert (english.language, czech.language) == ("en", "en")
    assert english.quality != NO_QUALITY
    assert (czech.clean_bytes, czech.quality) == (0, NO_QUALITY)


TEXT = " ".join(SENTENCES)
ORIGINAL = '<link rel="alternate" hreflang="x-default" href="http://h.test/">'


def spam_signs(*texts: str, head: str = "", html: str = "<html>", url: str = "http://h.test/cs/", **options) -> Page:
    body = f"<!doctype html>{html}<head>{head}</head><body>{''.join(f'<p>{text}</p>' for text in texts)}</body></html>"
    return cleaned(body, codes="cs en", url=url, **options)


def verdict(page: Page, lang: str = "cs", **options) -> str:
    try:
        check_quality(page, Options(lang=lang, **options))
    except DropPage as drop:
        return str(drop)
    return "kept"


def test_pages_that_people_write_are_kept():
    for seed in range(30):
        assert verdict(spam_signs(*paragraphs(seed))) == "kept"


def test_repetition_is_known_by_how_well_it_packs():
    spun = [
        f"Naše firma, která je ve městě {n}, vám nabízí levné opravy, a proto se na nás obraťte." for n in range(99)
    ]
    assert packed_share("\n".join(spun)) < 0.1 < 0.4 < packed_share(TEXT)
    assert verdict(spam_signs(*spun)).startswith("packed: 0.")
    assert verdict(spam_signs(*spun), quality="packed_share=0..") == "kept"
    assert packed_share("") == 1.0
    assert packed_share("a") > 1.0, "nothing is too short"


def test_a_word_that_is_named_over_and_over():
    stuffed = [f"{sentence} " + "půjčka půjčka " * 6 for sentence in SENTENCES]
    assert top_word_share(" ".join(stuffed), frozenset()) > 0.3
    assert verdict(spam_signs(*stuffed)).startswith("of one word: 0.")
    assert verdict(spam_signs(*stuffed), quality="top_word_share=..1") == "kept"
    assert top_word_share("a a a že že že", {"že"}) == 0.0, "letters and stop words do not count"


def test_running_text_full_of_links_to_other_hosts():
    words = enumerate(TEXT.split())
    linked = " ".join(f'{word} <a href="http://o{at}.test/">x</a>' if at % 6 == 0 else word for at, word in words)
    page = spam_signs(linked)
    assert page.quality.outlinks > 20
    assert verdict(page).startswith("links to other hosts in a kB: ")
    assert verdict(page, quality="outlinks=..100") == "kept"
    own = spam_signs(linked.replace("http://o", "http://www.h.test/o"))
    assert own.quality.outlinks == 0.0, "links within the host are navigation"


@pytest.mark.parametrize("boilerplate", ["learned", "justext-stock"])
def test_they_are_the_same_where_nobody_wants_the_links(boilerplate):
    """Archives: a link in the text counts once, by its first place on the page."""
    menu = "<a href='http://menu.test/'>M</a>"
    linked = [f"{TEXT} <a href='http://o.test/{n}'>x</a>{menu} <a href='http://o.test/{n % 2}'>y</a>" for n in range(3)]
    for texts in ([TEXT], [menu, TEXT], [menu, *linked], [f"{TEXT} <a href=/own>x</a>"]):
        with_links = spam_signs(*texts, boilerplate=boilerplate)
        without = spam_signs(*texts, boilerplate=boilerplate, gathers_links=False)
        assert without.quality == with_links.quality
        assert (without.links, without.batch.number) == ([], 0)
    assert spam_signs(menu, *linked).quality.outlinks > 0


@pytest.mark.parametrize(
    ("page", "who"),
    [
        ({"html": '<html lang="cs" class="js translated-ltr">'}, "google"),
        ({"head": '<meta http-equiv="X-Translated-By" content="Google">'}, "google"),
        ({"url": "http://www-h-test.translate.goog/cs/"}, "google"),
        ({"head": ORIGINAL + '<script src="/gtranslate.js"></script>'}, "gtranslate"),
        ({"head": ORIGINAL + '<script src="https://cdn.weglot.com/w.js"></script>'}, "weglot"),
        ({"head": ORIGINAL + '<script src="/weglot.js"></script>', "url": "http://h.test/"}, ""),
        ({"head": '<script src="/weglot.js"></script>'}, ""),
        ({"head": ORIGINAL}, ""),
        ({}, ""),
    ],
)
def test_marks_of_machine_translation(page, who):
    found = spam_signs(TEXT, **page)
    assert found.quality.translated == who
    assert verdict(found) == ("translated by machine: google" if who == "google" else "kept")


def test_the_signs_are_attributes():
    found = spam_signs(TEXT, head=ORIGINAL + "gtranslate").quality.attributes()
    assert {"packed_share", "top_word_share", "outlinks", "translated"} <= set(found)
