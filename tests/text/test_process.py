"""`process`: a whole page, and that nothing in it can do harm."""

from __future__ import annotations

import pickle

import pytest
import xxhash
from cleaned_pages import CZECH, ENGLISH, GREEK, cleaned

from spiderling.base.options import Options
from spiderling.text import Page, Paragraph, TextOptions, clean_text
from spiderling.text.page import read_page

CZECH, ENGLISH, GREEK = CZECH * 3, ENGLISH * 3, GREEK * 3
SLOVAK = "Keď sa mačka vrátila domov, bola už tma a všetci spali, len pes sedel pri dverách a čakal na ňu. " * 3
DUTCH = "Toen de kat thuiskwam was het al donker en iedereen sliep, alleen de hond zat bij de deur te wachten. " * 3
MENU = "<ul><li><a href=/>Domů</a><li><a href=/o>O nás</a></ul>"


def run(html: str | bytes, accepted: str = "cs", **more: object) -> Page:
    return cleaned(html, accepted, url="http://127.0.0.1/a/", **more)


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
    assert kept(run(html, "cs sk")) == ["Nadpis o kočce", CZECH.strip(), SLOVAK.strip()]
    page = run(html, "cs en")
    assert [paragraph.language for paragraph in page.paragraphs] == [None, "cs", "sk", "en"]
    assert sum(page.languages.values()) == pytest.approx(1)
    assert 0.3 < page.languages["cs"] < 0.4


def test_a_page_in_another_language_is_told_from_boilerplate():
    page = run(f"<p>{ENGLISH}</p>")
    assert (page.language, page.languages, kept(page), page.clean_bytes) == ("en", {"en": 1.0}, [], 0)


def test_a_page_in_an_unknown_language():
    page = run(f"<p>{DUTCH}</p>", "de", preset="permissive")
    assert page.known_share < 0.6
    assert kept(page) == []
    assert page.languages == {}


def test_a_stray_paragraph_of_an_unknown_script():
    html = f"<p>{CZECH}</p><p>{CZECH} {GREEK}</p><p>{GREEK}</p>"
    found = kept(run(html, boilerplate="justext", preset="permissive"))
    assert found[0] == CZECH.strip() and GREEK.strip() not in found


def test_the_page_without_text():
    page = run(MENU)
    assert (page.language, page.languages, page.badness, page.words) == (None, {}, 0, 0)
    assert len(page.links) == 2
    assert page.text_digest == xxhash.xxh3_128_digest(b"")


def test_undecodable():
    page = run(bytes(range(256)) * 40)
    assert (page.encoding_detected, page.paragraphs, page.links, page.utf8_bytes) == (None, [], [], 256 * 40)


def test_the_package_as_boilerplate_remover():
    html = f"<html><body>{MENU}<p>{CZECH} <a href=b>více</a></p></body></html>"
    ours, theirs = (run(html, boilerplate=mode) for mode in ("justext", "justext-stock"))
    assert (theirs.paragraphs, theirs.links) == (ours.paragraphs, ours.links)


def test_options_of_a_crawl():
    options = TextOptions.from_options(Options(justext_preset="strict", min_known_share=0.4), ["cs", "sk"])
    assert (options.accepted, options.preset, options.min_known_share) == (("cs", "sk"), "strict", 0.4)


def test_a_page_survives_pickling():
    page = run(f"<p>{CZECH} <a href=x>y</a></p>", with_shingles=True)
    assert page.shingles.counts.tolist() == [len(CZECH.split()) + 1 - 6]
    others = {name for name in Page.__slots__ if not name.startswith("_")} - {"shingles", "links"}
    copy = page
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(copy, 5))
        assert [part.tolist() for part in copy.shingles[:2]] == [part.tolist() for part in page.shingles[:2]]
        assert copy.shingles.repeats is page.shingles.repeats
        assert {name for name in others if getattr(copy, name) != getattr(page, name)} == set()
        assert type(copy.paragraphs[0]) is Paragraph and page.links and copy.links == [] and copy.batch.number == 1
        with pytest.raises(AttributeError):
            _ = copy.nothing


def test_rows_stay_packed_until_they_are_asked_for(monkeypatch):
    unpacked = []
    monkeypatch.setattr("spiderling.text.page.read_page", lambda data: unpacked.append(data) or read_page(data))
    page = run(f"<p>{CZECH} <a href=x>y</a></p>")
    copy = pickle.loads(pickle.dumps(page, 5))
    assert copy.words == page.words and not unpacked
    for _ in range(2):
        assert copy.paragraphs == page.paragraphs and len(unpacked) == 1


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\x01"])
def test_a_paragraph_of_nothing_visible_among_good_ones(invisible):
    """The package jusText takes it for a paragraph, and its neighbours make it good; there was an IndexError."""
    page = run(f"<p>{CZECH}</p><p>{invisible}</p><p>{CZECH}</p>", boilerplate="justext-stock")
    assert kept(page) == [CZECH.strip()] * 2


def test_the_same_text_has_the_same_digest_everywhere():
    page = run(f"<p>{CZECH}</p>")
    assert page.text_digest == run(f"<div>\n{CZECH}</div><script>1</script>").text_digest
    assert page.raw_digest != run(f"<div>\n{CZECH}</div>").raw_digest
