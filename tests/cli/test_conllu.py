"""CoNLL-U, as a public parser of it reads it: with our tokens and sentences, and with those of a user's annotator."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from conftest import scrapy
from hypothesis import given
from hypothesis import strategies as st
from needs import needs

from spiderling.base.errors import BadInput
from spiderling.corpus.segments import StoredDocument
from spiderling.export import formats
from spiderling.export.export import ExportPlan, export
from spiderling.export.sources import corpus_of
from spiderling.export.verification import Verification, cards_of
from spiderling.text.prevertical import render, render_attributes

pytestmark = needs("conllu")

ATTRIBUTES = {
    "id": "00000000000000a1",
    "url": "https://www.a.cz/?a=1 = 2",
    "lang": "cs",
    "title": "a\u2028b",
    "x": "",
}
PARAGRAPHS = [
    ("Vlk řekl: „Ne!“ Pak odešel.", render_attributes({"lang": "cs"})),
    ("", ""),
    ("It's over.", render_attributes({"lang": "en"})),
    ("Bez jazyka", ""),
]
TEXT = render(ATTRIBUTES, PARAGRAPHS)


def parsed(text: str) -> list:
    import conllu

    return conllu.parse(text)


def read(document: str, annotate: formats.Annotate | None = None) -> list:
    return parsed(formats.conllu(StoredDocument({}, document), annotate))


def test_a_public_parser_reads_tokens_spaces_and_where_they_stand():
    found = read(TEXT)
    assert [sentence.metadata["text"] for sentence in found] == [
        "Vlk řekl: „Ne!“", "Pak odešel.", "It's over.", "Bez jazyka",
    ]  # fmt: skip
    name = ATTRIBUTES["id"]
    assert [sentence.metadata["sent_id"] for sentence in found] == [
        f"{name}-p1s1", f"{name}-p1s2", f"{name}-p3s1", f"{name}-p4s1",
    ]  # fmt: skip
    assert [sentence.metadata.get("newpar id", "") for sentence in found] == [
        f"{name}-p1", "", f"{name}-p3", f"{name}-p4",
    ]  # fmt: skip
    assert formats.conllu(StoredDocument({}, TEXT)).count("# newpar") == 3, "none of the empty paragraph"
    assert [sentence[-1]["misc"] for sentence in found] == [None] * 4
    first, *others = found
    assert {key: value for key, value in first.metadata.items() if key.startswith(("newdoc", "meta"))} == {
        "newdoc id": name, "meta::url": ATTRIBUTES["url"], "meta::lang": "cs", "meta::title": "a b",
    }  # fmt: skip
    assert not any("newdoc id" in sentence.metadata for sentence in others)
    assert [(token["id"], token["form"], token["misc"]) for token in first][:3] == [
        (1, "Vlk", None), (2, "řekl", {"SpaceAfter": "No"}), (3, ":", None),
    ]  # fmt: skip


def test_a_document_without_text_leaves_nothing_that_is_no_sentence():
    assert formats.conllu(StoredDocument({}, render(ATTRIBUTES, [("", "")]))) == ""


def test_a_document_without_a_sentence_is_left_out_of_the_file_and_of_its_card(tmp_path):
    """As one of which an annotator says nothing; its empty receipt was that of a document that was taken down."""
    (tmp_path / "in.prevert").write_text(render(ATTRIBUTES, [("Vlk.", "")]) + render(ATTRIBUTES, [("!", "")]), "utf-8")
    corpus = corpus_of([str(tmp_path / "in.prevert")])
    plan = ExportPlan(tmp_path / "c.conllu", "conllu", annotate=lambda text, _: "" if text == "!" else ROWS)
    assert export(corpus, corpus.stored(), plan).kept == 1
    found = Verification(*cards_of(plan.out))
    assert (found.findings, found.documents, found.taken_down) == ([], 1, 0)
    assert plan.selection.left_out == {"having no sentence": 1}


@pytest.mark.parametrize(
    "sentences",
    [
        ["Byl to J. Novák, 5. května.", "Am 5. Mai kam er."],
        ["In 2020.", "The end (yes.)", 'And "so."', "He said."],
        ["He paid $3.14, e.g. to www.a.cz, on 1. 2. 2024."],
        ["Next?!", "Really... yes."],
        ["He came (late).", "(Very late!)", 'Was it "so"?', "Yes."],
        ["Wait…", "„Was?“", "»Ja!«", "‘No.’", "Ende"],
        ["यह घर है।", "वह गया॥"],
        ["هل هذا بيت؟", "نعم."],
        ["Սա տուն է։", "Այո։"],
    ],
)
def test_sentences_end_where_their_readers_end_them(sentences):
    found = read(render({}, [(" ".join(sentences), "")]))
    assert [sentence.metadata["text"] for sentence in found] == sentences


def test_sentences_without_spaces_between_them():
    found = read(render({}, [("我们今天去。走吗？！“好。”他说", "")]))
    assert [sentence.metadata["text"] for sentence in found] == ["我们今天去。", "走吗？！", "“好。”", "他说"]
    assert [sentence[-1]["misc"] for sentence in found] == [*3 * [{"SpaceAfter": "No"}], None]


@given(st.text(max_size=80))
def test_any_text_stands_in_its_tokens(text):
    found = read(render({}, [(text, "")]))
    forms = "".join(token["form"] for sentence in found for token in sentence)
    assert forms == "".join(formats.parse_document(StoredDocument({}, render({}, [(text, "")]))).paragraphs[0].split())
    for sentence in found:
        spaced = "".join(token["form"] + ("" if token["misc"] else " ") for token in sentence)
        assert spaced.strip() == sentence.metadata["text"]


@pytest.mark.parametrize("unit", [".", ".)", '."', "”", "。", "!“", "a.", "A. "])
def test_signs_without_end_take_no_time_without_end(unit):
    """A search from each sign to the end of the run would go over 10^10 characters."""
    said = formats.conllu(StoredDocument({}, render({}, [(200_000 // len(unit) * unit, "")])))
    forms = [line.split("\t")[1] for line in said.split("\n") if "\t" in line]
    assert "".join(forms) == 200_000 // len(unit) * unit.strip()


# -- annotators

ROWS = "1\tA\ta\tNOUN\t_\tCase=Nom|Number=Sing\t0\troot\t_\t_"
SAID = f"""\
# newdoc
# newpar
# sent_id = 1
# text = Abc
1-2\tAb\t_\t_\t_\t_\t_\t_\t_\t_
1\tA\ta\tADP\t_\t_\t2\tcase\t_\t_
2\tb\tb\tNOUN\t_\t_\t0\troot\t_\t_
2.1\tc\tc\tVERB\t_\t_\t_\t_\t0:root\t_


# sent_id = 2
{ROWS}

"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_an_annotator_says_stands_there_under_our_names(end):
    asked = []

    def annotate(text: str, language: str) -> str:
        asked.append((text, language))
        return SAID.replace("\n", end) if text else ""

    found = read(TEXT, annotate)
    assert asked == [(PARAGRAPHS[0][0], "cs"), ("", "cs"), ("It's over.", "en"), ("Bez jazyka", "cs")]
    assert [sentence.metadata["sent_id"][-4:] for sentence in found] == [
        f"p{paragraph}s{number}" for paragraph in (1, 3, 4) for number in (1, 2)
    ]
    assert [token["id"] for token in found[0]] == [(1, "-", 2), 1, 2, (2, ".", 1)]
    assert found[0].metadata["text"] == "Abc" and found[1][0]["feats"] == {"Case": "Nom", "Number": "Sing"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ROWS.replace("\t", " "), "is no row of ten columns"),
        (ROWS + "\t_", "is no row of ten columns"),
        ("one\t" + ROWS[2:], "is no row of ten columns"),
        (ROWS.replace("\t_\t_", "\t\t_"), "is no row of ten columns"),
        (None, "the annotator failed at 'Vlk řekl: „Ne!“ Pak odešel.': AttributeError"),
        (["x"], "the annotator failed at"),
    ],
)
def test_what_is_no_conllu_is_told_with_its_paragraph(said, told):
    with pytest.raises(BadInput, match="Vlk řekl") as caught:
        read(TEXT, lambda *_: said)
    assert told in str(caught.value)


MODULE = """
def tag(text, lang):
    return f"1\\t{text.split()[0]}\\t_\\t{lang.upper()}" + 6 * "\\t_"

def fails(text, lang):
    raise RuntimeError("no model of cs")
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "mine_of_test.py").write_text(MODULE)
    path = tmp_path / "c.prevert"
    path.write_text(render(ATTRIBUTES, [PARAGRAPHS[0], PARAGRAPHS[2]]), "utf-8")
    return path


def test_the_command_writes_it_with_a_function_of_the_directory(corpus, tmp_path):
    out = tmp_path / "c.conllu.gz"
    ended = scrapy("export", str(corpus), "-o", str(out), "--annotator", "mine_of_test:tag", cwd=tmp_path)
    assert ended.code == 0, ended.log
    found = parsed(gzip.decompress(out.read_bytes()).decode())
    assert [(token["form"], token["upos"]) for sentence in found for token in sentence] == [
        ("Vlk", "CS"),
        ("It's", "EN"),
    ]


@pytest.mark.parametrize(
    ("out", "name", "told"),
    [
        ("c.conllu", "mine_of_test:fails", "RuntimeError: no model of cs"),
        ("c.conllu", "mine_of_test:none", "--annotator mine_of_test:none: "),
        ("c.conllu", "no_such_module:tag", "No module named 'no_such_module'; give a function as my.module:function."),
        ("c.conllu", "a b", "give a function as my.module:function."),
        ("c.vert", "mine_of_test:tag", "annotations stand in CoNLL-U alone"),
    ],
)
def test_a_wrong_annotator_is_told_and_nothing_is_written(corpus, tmp_path, out, name, told):
    ended = scrapy("export", str(corpus), "-o", str(tmp_path / out), "--annotator", name, cwd=tmp_path)
    assert ended.code == 1 and told in ended.log and "Traceback" not in ended.log
    assert not (tmp_path / out).exists()
