"""Mark-up that is kept on request: in a page's paragraphs, and as the corpus and exports write it."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from cleaned_pages import cleaned
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from xxhash import xxh3_128_digest

import spiderling
from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from spiderling.corpus.segments import documents
from spiderling.export.formats import TEI_HEAD, TEI_TAIL
from spiderling.text import clean_text
from spiderling.text.fingerprints import shingles
from spiderling.text.html.markup import parse_with
from spiderling.text.html.parser import parse
from spiderling.text.page import kept_elements
from spiderling.text.prevertical import are_elements

ALL = ("breaks", "lists", "tables", "notes", "ruby")
VERSE = "The first line of a poem about the sea,<br>the second one that comes behind it.<br/>And a third line of it"
LONG = "It is a sentence of a list that is long enough to be text, and it goes on for a while."


def kept(html: str, *markup: str) -> list[tuple[str, dict[str, str]]]:
    """Of each block with something kept: its lines and attributes."""
    page = parse_with(markup or ALL, html)
    assert len(page.markup) == len(page.blocks)
    return [(block.lines, dict(block.attributes)) for block in page.markup if "\n" in block.lines or block.attributes]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<br>b<p>c", ["a\nb"]),
        ("<p>a<br><br>b<br>c", ["b\nc"]),  # two end the paragraph, as without the option
        ("<p> a <b>b<br></b>\n\n<i>c</i> <br> ", ["a b\nc"]),
        ("<p>a<span class=author>b</span><br>c", ["a b\nc"]),
        ("<p><br>a<br>\u200b<br>b", ["a\nb"]),
        ("<p>a<br>e\u0301<br>c", ["a\n\u00e9\nc"]),
        ("<pre>a\n  b\n\nc</pre>d\ne", ["a\nb\nc"]),
        ("<p><img alt=O>nce upon<br>a time", ["nce upon\na time"]),
    ],
)
def test_breaks(html, expected):
    assert [lines for lines, _ in kept(html, "breaks")] == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<ul><li>a<li>b</ul><p>c", [("list", "1", "1"), ("list", "1", "2")]),
        ("<ul><li><p>a<p>b</ul><ol><li>c</ol>", [("list", "1", "1")] * 2 + [("list", "2", "1")]),
        ("<ul><li>a<ol><li>b</ol>c<li>d</ul>", [("list", "1", "1"), ("list", "2", "1"), ("list", "1", "1"),
                                                ("list", "1", "2")]),
        ("<dl><dt>a<dd>b</dl>", [("list", "1", "1"), ("list", "1", "2")]),
        ("<table><tr><th>a<td>b<tr><td>c</table>", [("row", "1", "1"), ("row", "1", "2"), ("row", "2", "1")]),
        ("<table><tr><td>a<ul><li>b</ul><td>c</table>", [("row", "1", "1"), ("list", "1", "1"), ("row", "1", "2")]),
        ("<li>a", []),
    ],
)  # fmt: skip
def test_items_know_their_list_and_cells_their_row(html, expected):
    found = [(name, attributes[name], attributes["item"]) for _, attributes in kept(html) for name in ("list", "row")
             if name in attributes]  # fmt: skip
    assert found == expected
    assert not [attributes for _, attributes in kept(html, "breaks", "ruby") if attributes]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>x<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>y", "漢=かん 字=じ"),
        ("<p>x<ruby>漢字<rt> kan ji </rt></ruby>y<ruby><b>a</b><rt>b</rt></ruby>", "漢字=kan ji a=b"),
    ],
)
def test_readings_of_ruby(html, expected):
    assert [attributes["ruby"] for _, attributes in kept(html)] == [expected]


@pytest.mark.parametrize(
    "mark",
    [
        "<sup><a href=#n1>[1]</a></sup>", "<a href=#n1><sup>[1]</sup></a>", '<span class="footnote-ref">[1]</span>',
        "<a href=#n1 role=doc-noteref>[1]</a>",
    ],
)  # fmt: skip
def test_marks_of_notes_stay_by_option_alone(mark):
    html = f"<p>Some words{mark} and more"
    assert parse_with(["notes"], html).blocks[0].text == "Some words[1] and more"
    assert parse_with(["breaks"], html).blocks[0].text == "Some words and more"


PIECES = ["<p>", "<br>", "</p>", "<ul>", "<li>", "</ul>", "<table><tr><td>", "</table>", "<pre>", "</pre>", "<ruby>",
          "<rt>", "</rt>", "</ruby>", "<sup>", "</sup>", "<a href=#a>", "</a>", "<s>", "<button>", "<template>", "a",
          "b c", "\n", " ", "\u0301", "&#29;", "&#28;", "<span class=author>", "</span>", "<h2>", "<div>"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_all_else_is_as_without_it(html):
    plain, marked = parse(html), parse_with({"breaks", "lists", "tables", "ruby"}, html)
    assert marked.blocks == plain.blocks
    assert marked.links == plain.links
    assert len(marked.markup) == len(marked.blocks)


def test_broken_lines_are_the_same_shingles():
    lines = VERSE.replace("<br>", "\n").replace("<br/>", "\n")
    assert np.array_equal(shingles([lines]).hashes, shingles([lines.replace("\n", " ")]).hashes)


@pytest.fixture(scope="module")
def poem() -> spiderling.Document:
    html = (
        f"<title>A poem</title><h1>A poem of the sea</h1><p>{VERSE}<p>x &lt;lb/&gt; y, {LONG}"
        f"<ul><li>{LONG}<li><p>{LONG} One.<p>{LONG} Two.</ul>"
        f"<table><tr><td>{LONG} Three.<td>{LONG} Four.<tr><td>{LONG} Five.</table>"
    )
    return spiderling.extract(html, "en", markup=",".join(ALL))


def test_corpus_and_formats_have_it(poem):
    lines = VERSE.replace("<br>", "\n").replace("<br/>", "\n")
    assert poem.paragraphs[1].text == lines
    written = poem.to("prevertical")
    assert "sea,<lb/>the" in written
    assert '<p class="good" kind="text" lang="en" list="1" item="2">' in written
    (read,) = documents(StringIO(written))
    assert read.paragraphs[1:3] == [lines, f"x <lb/> y, {LONG}"]
    assert "\nsea\n<g/>\n,\n<lb/>\nthe\n" in poem.to("vertical")
    assert "sea,\\\nthe" in poem.to("markdown")
    assert f"- {LONG}\n" in poem.to("markdown")
    assert "sea,\nthe" in poem.to("txt")


def test_tei_has_lists_and_tables_and_is_valid(poem):
    schema = etree.RelaxNG(etree.fromstring(zstd.decompress((ROOT / "tests/schemas/tei_all.rng.zst").read_bytes())))
    text = poem.to("xmltei")
    root = etree.fromstring((text if text.startswith("<?xml") else TEI_HEAD + text + TEI_TAIL).encode())
    assert schema.validate(root), schema.error_log
    tei = "{http://www.tei-c.org/ns/1.0}"
    assert [len(item) for item in root.iter(f"{tei}item")] == [1, 2]
    assert [len(row) for row in root.iter(f"{tei}row")] == [2, 1]
    assert len(list(root.iter(f"{tei}lb"))) == 2


def test_a_worker_cannot_end_its_document_by_it(poem):
    good = kept_elements(poem.paragraphs)
    assert are_elements(good)
    assert not are_elements(good.replace(b"<lb/>", b"</p>\n</doc>", 1))
    odd = poem.paragraphs[0]._replace(markup=(("x><y", "1"), ("list", '1"><z')))
    assert b"<y" not in kept_elements([odd])
    assert b"<z" not in kept_elements([odd])


def test_judgement_does_not_depend_on_it():
    html = f"<p>{VERSE}<p>{LONG} {LONG}" * 3
    plain, marked = cleaned(html), cleaned(html, markup=frozenset(("breaks", "lists")))
    assert [p.text.replace("\n", " ") for p in marked.paragraphs] == [p.text for p in plain.paragraphs]
    assert marked.text_digest == xxh3_128_digest(clean_text(marked.paragraphs).encode()), (
        "as a check reads it from the corpus"
    )
    assert (marked.sketch, marked.quality, marked.words) == (plain.sketch, plain.quality, plain.words)


def test_an_unknown_name_is_refused():
    with pytest.raises(BadInput, match="names 'lines'"):
        spiderling.extract("<p>a", "en", markup="lines")
