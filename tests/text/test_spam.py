"""Signs of link farms and of text by machines, on pages that are made to show them, and on ones that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import SENTENCES, paragraphs

from spiderling.base.options import Options
from spiderling.engine.outcomes import DropPage
from spiderling.languages import load
from spiderling.pipelines import check_quality
from spiderling.text import Page, TextOptions, process
from spiderling.text.quality import packed_share, top_word_share

MODELS = load(("cs", "en"))
TEXT = " ".join(SENTENCES)
CS = TextOptions(("cs",))
URL = "http://h.test/cs/"
ORIGINAL = '<link rel="alternate" hreflang="x-default" href="http://h.test/">'


def run(*texts: str, head: str = "", html: str = "<html>", url: str = URL, options=CS) -> Page:
    body = f"<!doctype html>{html}<head>{head}</head><body>{''.join(f'<p>{text}</p>' for text in texts)}</body></html>"
    return process(body.encode(), url=url, http_charset=None, models=MODELS, options=options)


def verdict(page: Page, **options) -> str:
    try:
        check_quality(page, Options(lang="cs", **options))
    except DropPage as drop:
        return str(drop)
    return "kept"


def test_pages_that_people_write_are_kept():
    for seed in range(30):
        assert verdict(run(*paragraphs(seed))) == "kept"


def test_repetition_is_known_by_how_well_it_packs():
    spun = [
        f"Naše firma, která je ve městě {n}, vám nabízí levné opravy, a proto se na nás obraťte." for n in range(99)
    ]
    assert packed_share("\n".join(spun)) < 0.1 < 0.4 < packed_share(TEXT)
    assert verdict(run(*spun)).startswith("packed: 0.")
    assert verdict(run(*spun), quality="packed_share=0..") == "kept"
    assert packed_share("") == 1.0
    assert packed_share("a") > 1.0, "nothing is too short"


def test_a_word_that_is_named_over_and_over():
    stuffed = [f"{sentence} " + "půjčka půjčka " * 6 for sentence in SENTENCES]
    assert top_word_share(" ".join(stuffed), frozenset()) > 0.3
    assert verdict(run(*stuffed)).startswith("of one word: 0.")
    assert verdict(run(*stuffed), quality="top_word_share=..1") == "kept"
    assert top_word_share("a a a že že že", {"že"}) == 0.0, "letters and stop words do not count"


def test_running_text_full_of_links_to_other_hosts():
    linked = [
        " ".join(
            f'{word} <a href="http://o{n}x{at}.test/">x</a>' if at % 6 == 0 else word for at, word in enumerate(words)
        )
        for n, words in enumerate(sentence.split() for sentence in SENTENCES)
    ]
    page = run(*linked)
    assert page.quality.outlinks > 20
    assert verdict(page).startswith("links to other hosts in a kB: ")
    assert verdict(page, quality="outlinks=..100") == "kept"
    own = [text.replace("http://o", "http://www.h.test/o") for text in linked]
    assert run(*own).quality.outlinks == 0.0, "links within the host are navigation"


@pytest.mark.parametrize("boilerplate", ["learned", "justext-stock"])
def test_they_are_the_same_where_nobody_wants_the_links(boilerplate):
    """Archives: a link in the text counts once, by its first place on the page."""
    menu = "<a href='http://menu.test/'>M</a>"
    linked = [f"{TEXT} <a href='http://o.test/{n}'>x</a>{menu} <a href='http://o.test/{n % 2}'>y</a>" for n in range(3)]
    for texts in ([TEXT], [menu, TEXT], [menu, *linked], [f"{TEXT} <a href=/own>x</a>"]):
        options = TextOptions(("cs",), boilerplate)
        with_links = run(*texts, options=options)
        without = run(*texts, options=replace(options, gathers_links=False))
        assert without.quality == with_links.quality
        assert (without.links, without.batch.number) == ([], 0)
    assert run(menu, *linked).quality.outlinks > 0


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
    found = run(TEXT, **page)
    assert found.quality.translated == who
    assert verdict(found) == ("translated by machine: google" if who == "google" else "kept")


def test_the_signs_are_attributes():
    found = run(TEXT, head=ORIGINAL + "gtranslate").quality.attributes()
    assert {"packed_share", "top_word_share", "outlinks", "translated"} <= set(found)
