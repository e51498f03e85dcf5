"""`process`: a whole page, and that nothing in it can do harm."""

from __future__ import annotations

import pickle

import pytest
import xxhash

from spiderling.base.options import Options
from spiderling.languages import load
from spiderling.text import Page, Paragraph, TextOptions, clean_text, process
from spiderling.text.page import read_page

MODELS = load(("cs", "sk", "en", "de"))
CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. " * 3
SLOVAK = "Keď sa mačka vrátila domov, bola už tma a všetci spali, len pes sedel pri dverách a čakal na ňu. " * 3
ENGLISH = "When the cat came home it was already dark and everybody was asleep, only the dog was waiting. " * 3
DUTCH = "Toen de kat thuiskwam was het al donker en iedereen sliep, alleen de hond zat bij de deur te wachten. " * 3
MENU = "<ul><li><a href=/>Domů</a><li><a href=/o>O nás</a></ul>"
CS = TextOptions(("cs",))


def run(html: str, options: TextOptions = CS, encoding: str = "utf-8", charset: str | None = None) -> Page:
    return process(
        html.encode(encoding), url="http://127.0.0.1/a/", http_charset=charset, models=MODELS, options=options
    )


def kept(page: Page) -> list[str]:
    return [paragraph.text for paragraph in page.paragraphs if paragraph.kept]


def test_a_page_that_was_encoded_twice_is_mended_or_refused():
    html = f"<p>{CZECH}</p>"
    twice = html.encode().decode("cp1250")
    page = run(twice)
    assert kept(page) == [CZECH.strip()]
    assert (page.encoding_detected, page.utf8_bytes) == ("utf-8", len(twice.encode()))
    assert page.raw_digest == xxhash.xxh3_128_digest(twice.encode())
    lost = run(html.encode().decode("cp1252", "replace"))  # which has no character for the second byte of "č"
    assert (lost.encoding_detected, kept(lost)) == (None, [])
    assert lost.utf8_bytes > len(html.encode())


def test_a_page_in_full():
    html = f"""<html lang=cs><head><title>Kočka</title><meta name=author content="A. B.">
      <link rel=canonical href=http://127.0.0.1/c><link rel=license href=http://cc.test/by></head>
      <body>{MENU}<article><h1>O kočce a o psovi</h1><p>{CZECH} <a href="b#x" rel=nofollow>více</a></p></article>"""
    page = run(html, encoding="cp1250", charset="windows-1250")
    text = f"O kočce a o psovi\n{CZECH}více"
    assert (page.encoding_declared, page.encoding_detected) == ("cp1250", "cp1250")
    assert page.utf8_bytes == len(html.encode())
    assert (page.title, page.meta, page.html_lang) == ("Kočka", {"author": "A. B."}, "cs")
    assert (page.canonical, page.licence) == ("http://127.0.0.1/c", "http://cc.test/by")
    assert [(p.cls, p.heading, p.language, p.kept) for p in page.paragraphs] == [
        ("bad", False, None, False),
        ("bad", False, None, False),
        ("good", True, None, True),
        ("good", False, "cs", True),
    ]
    assert [(link.url, link.anchor, link.rel_nofollow, link.block, link.text_block) for link in page.links] == [
        ("http://127.0.0.1/", "Domů", False, 0, False),
        ("http://127.0.0.1/o", "O nás", False, 1, False),
        ("http://127.0.0.1/a/b", "více", True, 3, True),
    ]
    assert (page.language, page.languages) == ("cs", {"cs": 1.0})
    assert page.known_share > 0.8
    assert page.badness < 40
    assert clean_text(page.paragraphs) == text
    assert (page.clean_bytes, page.words) == (len(text.encode()), len(text.split()))
    assert page.raw_digest == xxhash.xxh3_128_digest(html.encode("cp1250"))
    assert page.text_digest == xxhash.xxh3_128_digest(text.encode())


def test_only_accepted_languages_are_kept():
    html = f"<h2>Nadpis o kočce</h2><p>{CZECH}</p><p>{SLOVAK}</p><p>{ENGLISH}</p>"
    assert kept(run(html)) == ["Nadpis o kočce", CZECH.strip()]
    assert kept(run(html, TextOptions(("cs", "sk")))) == ["Nadpis o kočce", CZECH.strip(), SLOVAK.strip()]
    page = run(html, TextOptions(("cs", "en")))
    assert [paragraph.language for paragraph in page.paragraphs] == [None, "cs", "sk", "en"]
    assert sum(page.languages.values()) == pytest.approx(1)
    assert 0.3 < page.languages["cs"] < 0.4


def test_a_page_in_another_language_is_told_from_boilerplate():
    page = run(f"<p>{ENGLISH}</p>")
    assert (page.language, page.languages, kept(page), page.clean_bytes) == ("en", {"en": 1.0}, [], 0)


def test_a_page_in_an_unknown_language():
    page = run(f"<p>{DUTCH}</p>", TextOptions(("de",), preset="permissive"))
    assert page.known_share < 0.6
    assert kept(page) == []
    assert page.languages == {}


def test_a_stray_paragraph_of_an_unknown_script():
    greek = "Η γρήγορη καφέ αλεπού πηδάει πάνω από τον τεμπέλη σκύλο και φεύγει μακριά από το σπίτι της. " * 3
    options = TextOptions(("cs",), "justext", preset="permissive")
    page = run(f"<p>{CZECH}</p><p>{CZECH} {greek}</p><p>{greek}</p>", options)
    assert kept(page)[0] == CZECH.strip()
    assert greek.strip() not in kept(page)


def test_the_page_without_text():
    page = run(MENU)
    assert (page.language, page.languages, page.badness, page.words) == (None, {}, 0, 0)
    assert len(page.links) == 2
    assert page.text_digest == xxhash.xxh3_128_digest(b"")


def test_undecodable():
    page = process(bytes(range(256)) * 40, url="http://127.0.0.1/", http_charset=None, models=MODELS, options=CS)
    assert (page.encoding_detected, page.paragraphs, page.links, page.utf8_bytes) == (None, [], [], 256 * 40)


def test_the_package_as_boilerplate_remover():
    html = f"<html><body>{MENU}<p>{CZECH} <a href=b>více</a></p></body></html>"
    ours, theirs = (run(html, TextOptions(("cs",), mode)) for mode in ("justext", "justext-stock"))
    assert theirs.paragraphs == ours.paragraphs
    assert theirs.links == ours.links


def test_options_of_a_crawl():
    options = TextOptions.from_options(Options(justext_preset="strict", min_known_share=0.4), ["cs", "sk"])
    assert (options.accepted, options.preset, options.min_known_share) == (("cs", "sk"), "strict", 0.4)


def test_a_page_survives_pickling():
    page = run(f"<p>{CZECH} <a href=x>y</a></p>", TextOptions(("cs",), with_shingles=True))
    assert page.shingles.counts.tolist() == [len(CZECH.split()) + 1 - 6]
    shingles = [part.tolist() for part in page.shingles[:2]]
    for copy in (
        pickle.loads(pickle.dumps(page, 5)),
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(page, 5)), 5)),
    ):
        assert [part.tolist() for part in copy.shingles[:2]] == shingles
        assert copy.shingles.repeats is page.shingles.repeats
        assert all(
            getattr(copy, name) == getattr(page, name)
            for name in Page.__slots__
            if name not in ("shingles", "links") and not name.startswith("_")
        )
        assert type(copy.paragraphs[0]) is Paragraph and page.links and copy.links == [] and copy.batch.number == 1
        with pytest.raises(AttributeError):
            _ = copy.nothing


def test_rows_stay_packed_until_they_are_asked_for(monkeypatch):
    unpacked = []
    monkeypatch.setattr("spiderling.text.page.read_page", lambda data: unpacked.append(data) or read_page(data))
    page = run(f"<p>{CZECH} <a href=x>y</a></p>")
    copy = pickle.loads(pickle.dumps(page, 5))
    assert copy.words == page.words and not unpacked
    assert copy.paragraphs == page.paragraphs and len(unpacked) == 1
    assert copy.paragraphs == page.paragraphs and len(unpacked) == 1


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\x01"])
def test_a_paragraph_of_nothing_visible_among_good_ones(invisible):
    """The package jusText takes it for a paragraph, and its neighbours make it good; there was an IndexError."""
    page = run(f"<p>{CZECH}</p><p>{invisible}</p><p>{CZECH}</p>", TextOptions(("cs",), "justext-stock"))
    assert kept(page) == [CZECH.strip()] * 2


def test_the_same_text_has_the_same_digest_everywhere():
    page = run(f"<p>{CZECH}</p>")
    assert page.text_digest == run(f"<div>\n{CZECH}</div><script>1</script>").text_digest
    assert page.raw_digest != run(f"<div>\n{CZECH}</div>").raw_digest
