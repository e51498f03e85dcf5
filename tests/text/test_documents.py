"""Documents to paragraphs: what counts as text in each format, and that nothing in a file can do harm."""

from __future__ import annotations

import zipfile
from pathlib import Path

import made_documents as made
import pytest
from cleaned_pages import CZECH, ENGLISH, known
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs

from spiderling.base.errors import BadInput
from spiderling.base.media_types import FILE_TYPES, of_content, of_headers, of_path, parse
from spiderling.text import Page, TextOptions, clean_text, process_document
from spiderling.text import documents as module
from spiderling.text.documents import ConvertedDocument, DocumentError
from spiderling.text.html.blocks import Block
from spiderling.workers.converter import CONVERTERS

CZECH = CZECH.strip()
MODELS = known("cs en")


def convert(kind: str, body: bytes) -> list[tuple[str, bool]]:
    assert of_content(body) == kind
    return [(block.text, block.heading) for block in CONVERTERS[kind](body).blocks]


def judged(document: ConvertedDocument | None, kind: str = "docx", body: bytes = b"body", **options) -> Page:
    return process_document(document, kind, body, models=MODELS, options=TextOptions(("cs",), **options))


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_paragraphs_headings_and_properties(kind):
    body = getattr(made, kind)(["#Nadpis", CZECH, "", "a < b & c"])
    assert convert(kind, body) == [("Nadpis", True), (CZECH, False), ("a < b & c", False)]
    document = CONVERTERS[kind](body)
    assert (document.title, document.lang) == ("Kočka & pes", "cs-CZ")
    assert document.meta == {"author": "A. B.", "dcterms.created": "2020-02-03T04:05:06Z"}


def test_what_is_text_in_docx():
    run = "<w:p><w:r><w:t>jedna</w:t><w:tab/><w:t xml:space='preserve'>dvě </w:t><w:br/><w:t>tři</w:t></w:r></w:p>"
    deleted = "<w:p><w:del><w:r><w:t>pryč</w:t></w:r></w:del><w:ins><w:r><w:t>nové</w:t></w:r></w:ins></w:p>"
    code = "<w:p><w:r><w:instrText>PAGE</w:instrText><w:t>strana</w:t></w:r></w:p>"
    inner = "<w:p><w:r><w:t>uvnitř</w:t></w:r></w:p>"
    box = f"<w:p><w:r><w:t>vně</w:t><w:pict><w:txbxContent>{inner}</w:txbxContent></w:pict></w:r></w:p>"
    outline = "<w:p><w:pPr><w:outlineLvl w:val='1'/></w:pPr><w:r><w:t>oddíl</w:t></w:r></w:p>"
    found = convert("docx", made.docx([], run + deleted + code + box + outline))
    assert [text for text, _ in found] == ["jedna dvě tři", "nové", "strana", "vně", "uvnitř", "oddíl"]
    assert [heading for _, heading in found] == [False] * 5 + [True]


def test_what_is_text_in_odt():
    extra = """<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d<text:span>e</text:span></text:p>
      <text:tracked-changes><text:p>pryč</text:p></text:tracked-changes>
      <text:p>věta<text:note><text:note-citation>1</text:note-citation><text:p>poznámka</text:p>
      </text:note> dál</text:p>"""
    assert [text for text, _ in convert("odt", made.odt([], extra))] == ["a b c de", "věta dál", "poznámka"]


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr>{text}</w:r>"


def t(text: str) -> str:
    return f"<w:t xml:space='preserve'>{text}</w:t>"


HIDING = """<w:style w:styleId='Skryto'><w:rPr><w:vanish/></w:rPr></w:style><w:style w:styleId='Silne'/>"""
NOTES = f"""<w:footnote w:type='separator'><w:p><w:r><w:separator/></w:r></w:p></w:footnote>
<w:footnote><w:p><w:r><w:footnoteRef/></w:r>{run(t("Pozn"), "<w:b/>")}{run(t("ámka."))}</w:p></w:footnote>"""
BEFORE, AFTER = t("Rakousko"), t("Uhersko")


@pytest.mark.parametrize(
    ("paragraph", "texts"),
    [
        (run(f"{BEFORE}<w:noBreakHyphen/>{AFTER}"), ["Rakousko-Uhersko"]),
        (run(f"{BEFORE}<w:softHyphen/>{AFTER}"), ["RakouskoUhersko"]),
        (run(f"{BEFORE}<w:ptab/>{AFTER}"), ["Rakousko Uhersko"]),
        (run(BEFORE) + run(f"<w:noBreakHyphen/>{AFTER}", "<w:vanish/>"), ["Rakousko"]),
        (run(BEFORE, "<w:vanish w:val='0'/>") + run(AFTER, "<w:vanish w:val='true'/>"), ["Rakousko"]),
        (run(BEFORE, "<w:rStyle w:val='Silne'/>") + run(AFTER, "<w:rStyle w:val='Skryto'/>"), ["Rakousko"]),
        (run(BEFORE, "<w:webHidden/>") + run(AFTER, "<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>"),
         ["RakouskoUhersko"]),
        ("<w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>" + run(BEFORE), ["Rakousko"]),
        (f"<w:moveFrom>{run(BEFORE)}</w:moveFrom><w:moveTo>{run(AFTER)}</w:moveTo>", ["Uhersko"]),
        (f"<w:del>{run('<w:delText>Malé</w:delText>')}</w:del><w:ins>{run(BEFORE)}</w:ins>", ["Rakousko"]),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run(BEFORE)}</w:sdtContent></w:sdt><w:hyperlink>{run(AFTER)}</w:hyperlink>",
         ["RakouskoUhersko"]),
        (f"<w:smartTag><w:smartTag>{run(BEFORE)}</w:smartTag></w:smartTag><w:fldSimple>{run(AFTER)}</w:fldSimple>",
         ["RakouskoUhersko"]),
        (f"<w:r><w:ruby><w:rt>{run(t('čti'))}</w:rt><w:rubyBase>{run(BEFORE)}</w:rubyBase></w:ruby></w:r>",
         ["Rakousko"]),
        ("<w:pPr><w:framePr w:dropCap='drop'/></w:pPr>" + run(t("R")) + f"</w:p><w:p>{run(t('akousko'))}",
         ["Rakousko"]),
        ("<w:pPr><w:framePr w:w='9'/></w:pPr>" + run(t("R")) + f"</w:p><w:p>{run(t('akousko'))}", ["R", "akousko"]),
    ],
)  # fmt: skip
def test_what_word_hides_moves_and_writes_in_its_own_way(paragraph, texts):
    body = made.docx([], f"<w:p>{paragraph}</w:p><w:p>{run(t('Dál.'))}</w:p>", styles=HIDING, footnotes=NOTES)
    assert [text for text, _ in convert("docx", body)] == [*texts, "Dál.", "Poznámka."]


@pytest.mark.parametrize(
    ("paragraph", "texts"),
    [
        ("<text:p>a<text:span text:style-name='T2'>b</text:span><text:span text:style-name='T1'>c</text:span></text:p>",
         ["ab"]),
        ("<text:p text:style-name='T1'>a</text:p><text:p>b</text:p>", ["b"]),
        ("<text:section text:display='none'><text:p>a</text:p></text:section><text:p>b</text:p>", ["b"]),
        ("<text:p>a<text:hidden-text>b</text:hidden-text>‑c</text:p>", ["a‑c"]),
        ("<text:p><text:ruby><text:ruby-base>a</text:ruby-base><text:ruby-text>b</text:ruby-text></text:ruby></text:p>",
         ["a"]),
        ("<text:p>a<svg:desc>b</svg:desc><svg:title>c</svg:title>d</text:p>", ["ad"]),
    ],
)  # fmt: skip
def test_what_opendocument_hides(paragraph, texts):
    styles = """<style:style style:name="T1"><style:text-properties text:display="none"/></style:style>
      <style:style style:name="T2"><style:text-properties/></style:style>"""
    assert [text for text, _ in convert("odt", made.odt([], paragraph, styles))] == texts


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p>a<span epub:type="pagebreak" id="p12">12</span> b', "a b"),
        ('<p>a <span role="doc-pagebreak" id="p12"/>b</p>', "a b"),
        ('<p>a<a epub:type="noteref" href="#n"><sup>1</sup></a> b', "a b"),
        ("<p>a<a href='#n' role='doc-noteref'>*</a> b", "a b"),
        ("<html><head><title/></head><body><p>a­b</p></body></html>", "ab"),
    ],
)
def test_numbers_of_pages_and_marks_of_notes_in_a_book(html, text):
    assert [text for text, _ in convert("epub", made.epub([html]))] == [text]


def test_epub_chapters_come_in_the_order_of_the_spine():
    body = made.epub([f"<h1>Druhá</h1><p>{CZECH}</p>", "<p>První <a href=x>odkaz</a></p>"])
    document = CONVERTERS["epub"](body)
    assert document.title == "Kniha"
    blocks = [(block.text, block.heading, block.link_chars) for block in document.blocks]
    assert blocks == [("První odkaz", False, 5), ("Druhá", True, 0), (CZECH, False, 0)]


def pdf(*pages) -> list[tuple[str, bool]]:
    return convert("pdf", made.pdf(pages))


LINES = [
    "When the cat came home it was dark and every-", "body was asleep, only the old dog was still there", "waiting.",
]  # fmt: skip


@needs("pypdfium2")
def test_lines_of_a_pdf_become_paragraphs():
    first, second = made.set_lines(LINES, y=700), made.set_lines(LINES, y=640)
    text = "When the cat came home it was dark and everybody was asleep, only the old dog was still there waiting."
    assert pdf([(72, 740, 20, "A Cat"), *first, *second]) == [("A Cat", True), (text, False), (text, False)]


@needs("pypdfium2")
def test_an_indentation_begins_a_paragraph_of_a_pdf():
    full = "the end of this sentence reaches the margin of the page now."
    lines = made.set_lines(["When the cat came home and everybody was already sleeping,", full, "And then", "it left."])
    lines[2] = (90, *lines[2][1:])
    assert [text for text, _ in pdf(lines)] == [f"{lines[0][3]} {full}", "And then it left."]


@needs("pypdfium2")
def test_a_sentence_goes_on_over_the_end_of_a_page_and_running_lines_are_no_text():
    texts = [
        "the story goes on and",
        "on until its last page, where it",
        "ends after some more words",
        "and then is over.",
    ]
    pages = [
        [(72, 760, 9, "Journal of Cats"), (72, 700, 11, text), (300, 30, 9, f"{n}")] for n, text in enumerate(texts)
    ]
    assert pdf(*pages) == [(" ".join(texts), False)]


@needs("pypdfium2")
def test_properties_of_a_pdf():
    document = CONVERTERS["pdf"](made.pdf([made.set_lines(LINES)], title="A Cat"))
    assert (document.title, document.meta) == ("A Cat", {"author": "A. B.", "dcterms.created": "2020-02-03"})


# -- the same steps as a page


def test_a_document_goes_through_the_same_steps():
    document = CONVERTERS["docx"](made.docx(["#Nadpis", CZECH * 2, ENGLISH * 2, CZECH * 3]))
    page = judged(document)
    assert clean_text(page.paragraphs) == f"Nadpis\n{CZECH * 2}\n{CZECH * 3}"
    assert [paragraph.language for paragraph in page.paragraphs] == [None, "cs", "en", "cs"]
    assert (page.file_type, page.language, page.title, page.html_lang) == ("docx", "cs", "Kočka & pes", "cs-CZ")
    assert (page.encoding_detected, page.utf8_bytes, page.links) == ("", 4, [])
    assert page.clean_bytes == len(clean_text(page.paragraphs).encode())


def test_the_chapters_of_a_book_are_judged_as_one_text():
    """Their blocks named elements of their own chapters' trees, and a book was an IndexError outside of a worker."""
    book = CONVERTERS["epub"](made.epub([f"<div><p>{CZECH * 2}</div>", f"<div><div><p>{CZECH * 3}</div></div>"]))
    assert clean_text(judged(book, "epub").paragraphs) == f"{CZECH * 3}\n{CZECH * 2}"


def test_short_paragraphs_of_a_document_are_text():
    sentence = "Kočka se vrátila domů, ale pes tam už na ni nečekal."
    document = ConvertedDocument([Block(sentence, False, 0), Block(CZECH, False, 0), Block(sentence, False, 0)])
    for preset in ("strict", "balanced"):
        page = judged(document, boilerplate="justext-stock", preset=preset)
        assert clean_text(page.paragraphs).count("\n") == 2


def test_a_document_that_could_not_be_converted_is_undecodable():
    page = judged(None, "pdf", b"%PDF-")
    assert (page.file_type, page.encoding_detected, page.paragraphs, page.utf8_bytes) == ("pdf", None, [], 5)


# -- kinds

ODS = "application/vnd.oasis.opendocument.spreadsheet"
SPREADSHEET = made.zipped({"mimetype": ODS, "content.xml": "", "META-INF/manifest.xml": ""})


def test_the_option():
    assert parse(" PDF,docx,") == {"pdf", "docx"}
    assert parse("") == frozenset()
    with pytest.raises(BadInput, match=r"^SPIDERLING_DOCUMENTS names 'xls'; known are pdf, docx, odt, "):
        parse("pdf,xls")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a/b.PDF", "pdf"), ("/b.docx", "docx"), ("/b.pdf/", None), ("/pdf", None), ("/a.pdf/b", None),
        ("/b.html", None),
    ],
)  # fmt: skip
def test_kind_by_path(path, kind):
    assert of_path(path) == kind


@pytest.mark.parametrize(
    ("content_type", "disposition", "path", "kind"),
    [
        ("application/PDF; q=1", "", "/x", "pdf"),
        ("text/html", "attachment; filename=a.pdf", "/a.pdf", None),
        ("application/octet-stream", "", "/a.odt", "odt"),
        ("application/octet-stream", 'attachment; filename="b.docx"', "/get.php", "docx"),
        ("", "", "/a.pdf", "pdf"),
        ("application/octet-stream", "", "/a.exe", None),
        ("image/png", "", "/a.pdf", None),
    ],
)
def test_kind_by_headers(content_type, disposition, path, kind):
    assert of_headers(content_type, disposition, path) == kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"junk\n%PDF-1.4", "pdf"), (b"{\\rtf1 a}", None), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, None),
        (b"%!PS-Adobe-3.0", None), (made.zipped({"word/document.xml": ""}), "docx"), (SPREADSHEET, None),
        (made.zipped({"a.txt": "b"}), None), (b"<html>PK\x03\x04 %PDF", None), (b"", None),
    ],
)  # fmt: skip
def test_kind_by_content(body, kind):
    assert of_content(body) == kind


# -- hostile files

GOOD = {"docx": made.docx(["#a", CZECH] * 20), "odt": made.odt([CZECH] * 20), "epub": made.epub([f"<p>{CZECH}"] * 3)}
GOOD["pdf"] = made.pdf([made.set_lines(LINES)] * 2)


def harmless(kind: str, body: bytes) -> list[Block]:
    try:
        return CONVERTERS[kind](body).blocks
    except DocumentError:
        return []


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[needs("pypdfium2")] if kind == "pdf" else []) for kind in GOOD]
)
def test_truncated_and_damaged_files(kind):
    body = GOOD[kind]
    for cut in range(0, len(body), max(1, len(body) // 60)):
        harmless(kind, body[:cut])
        harmless(kind, body[:cut] + b"\xff\x00" + body[cut + 2 :])
    assert harmless(kind, body)


@settings(max_examples=examples(60))
@given(st.sampled_from(["docx", "odt", "epub"]), st.data())
def test_no_archive_raises_but_document_error(kind, data):
    text = st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
    names = ["word/document.xml", "content.xml", "meta.xml", "docProps/core.xml", "META-INF/container.xml", "OPS/p.opf"]
    members = data.draw(st.dictionaries(st.sampled_from(names), text))
    harmless(kind, made.zipped(members))
    harmless(kind, data.draw(st.binary(max_size=300)))


def test_a_zip_bomb_is_not_inflated_whatever_size_it_tells(monkeypatch):
    monkeypatch.setattr(module, "MAX_INFLATED_BYTES", 1_000_000)
    body = bytearray(made.docx(["a " * 5_000_000]))
    assert len(body) < 50_000
    with pytest.raises(DocumentError, match="too large"):
        CONVERTERS["docx"](bytes(body))
    place = body.rindex(b"word/document.xml")  # in the central directory
    body[place - 22 : place - 18] = (1000).to_bytes(4, "little")  # its uncompressed size
    assert sum(len(block.text) for block in harmless("docx", bytes(body))) <= 1000


def test_entities_are_not_expanded():
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "lol"}">' for i in range(12))
    bomb = f"<!DOCTYPE x [{lol}]><w:document xmlns:w='{made.W}'><w:p><w:r><w:t>&l11;</w:t></w:r></w:p></w:document>"
    outside = bomb.replace(lol, f"<!ENTITY l11 SYSTEM 'file://{Path(__file__)}'>")
    for main in (bomb, outside):
        assert not harmless("docx", made.zipped({"word/document.xml": main}))


def test_deep_and_endless_markup_and_an_odd_compression():
    harmless("docx", made.zipped({"word/document.xml": f"<w:p xmlns:w='{made.W}'>" + "<w:p>" * 200_000}))
    assert len(harmless("docx", made.docx(["x"] * 30_000))) == 20_000
    assert len(harmless("docx", made.docx(["x" * 300_000]))[0].text) == 100_000
    assert harmless("docx", made.zipped({"word/document.xml": "<p/>"}, zipfile.ZIP_LZMA)) == []


def test_every_kind_has_a_converter():
    assert FILE_TYPES.keys() == CONVERTERS.keys()
