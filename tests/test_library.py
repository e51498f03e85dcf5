"""Spiderling without a crawl: `extract`, `identify`, `read`, `dedup`, and `scrapy extract`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import made_documents as made
import pytest
from conftest import ROOT, document, paragraphs, scrapy
from needs import needs

import spiderling
from spiderling.base.errors import BadInput, DamageError
from spiderling.text.prevertical import render

DUCKDB = needs("duckdb")
SENTENCE = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. "
SLOVAK = "Keď sa mačka vrátila domov, bola už tma a všetci spali, len pes sedel pri dverách a čakal na ňu. "
HTML = f"""<html lang="cs"><head><meta charset="windows-1250"><title>O kočce</title>
<meta name="author" content="J. Nová"><meta property="article:published_time" content="2024-03-02"></head>
<body><nav><a href="/menu">Nabídka</a></nav>
<h1>Návrat kočky</h1><p>{SENTENCE * 3}<a href="b.html">Dále</a></p><p>{SLOVAK * 3}</p>
<pre><code>if (a == b) {{ return c[0]; }} else {{ d = e &amp; f; }}</code></pre></body></html>"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(HTML.encode("windows-1250"))
    return path


def test_what_a_page_gives(file):
    found = spiderling.extract(file, lang="cs", url="https://a.example/x/")
    assert (found.title, found.author, found.date, found.language) == ("O kočce", "J. Nová", "2024-03-02", "cs")
    assert "jen pes seděl" in found.text
    assert "Nabídka" not in found.text
    assert "mačka" not in found.text, "another language"
    assert found.links == ("https://a.example/menu", "https://a.example/x/b.html")
    assert found.encoding == "cp1250"
    assert int(found.attributes["words"]) == len(found.text.split())
    assert found.quality["stopword_share"] == float(found.attributes["stopword_share"]) > 0
    assert {"badness", "known_share"} <= found.quality.keys()
    assert "translated" not in found.quality, "that is no number"


def test_the_page_may_be_a_path_bytes_or_text(file):
    as_path = spiderling.extract(str(file), lang="cs")
    as_bytes = spiderling.extract(file.read_bytes(), lang="cs")
    as_text = spiderling.extract(HTML, lang="cs")  # its meta names another encoding than that of the bytes made of it
    assert as_path == as_bytes == spiderling.extract(file, lang="cs")
    assert as_text.text == as_path.text
    assert as_path.links == (), "relative links lead nowhere without an address"


def test_all_languages_are_kept_unless_some_are_named(file):
    text = spiderling.extract(file).text
    assert "kočka" in text
    assert "mačka" in text
    assert spiderling.extract(file, lang="Czech,sk").text == text


def test_documents_are_told_by_their_content():
    found = spiderling.extract(made.docx([SENTENCE * 4]), lang="cs")
    assert found.attributes["file_type"] == "docx"
    assert found.text.count("kočka") == 4


def test_a_page_without_text_is_a_document_without_text():
    found = spiderling.extract("<p>Ne.</p>", lang="cs")
    assert (found.text, found.language) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("/no/file", "cs"), "cannot be read"), (("a\0b", "cs"), "cannot be read"),
        (("<p>x</p>", "klingon"), "no model for the language 'klingon'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(arguments, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        spiderling.extract(*arguments)


def test_an_unknown_kind_or_format_is_said(file):
    with pytest.raises(BadInput, match="poem"):
        spiderling.extract(file, kinds="poem")
    with pytest.raises(BadInput, match="did you mean markdown"):
        spiderling.extract(file, lang="cs").to("markdwn")


def test_forms_of_a_document(file):
    found = spiderling.extract(file, lang="cs", url="https://a.example/x/")
    code = spiderling.Paragraph("if (a == b) { return; }", "good", "code", False, None, True)
    markdown = spiderling.Document(found.attributes, (*found.paragraphs, code)).to("markdown")
    assert markdown.startswith("# O kočce\n\n## Návrat kočky\n\nKdyž")
    assert markdown.endswith("\n\n```\nif (a == b) { return; }\n```\n\n")
    record = json.loads(found.to("json"))
    assert (record["title"], record["lang"], json.loads(record["other"])) == ("O kočce", "cs", {"author": "J. Nová"})
    assert found.to("txt").split("\n")[: len(found.text.split("\n"))] == found.text.split("\n")
    assert '<p xml:lang="cs">Když' in found.to("xmltei")
    assert found.to("vertical").splitlines().count("kočka") == 3


def test_what_was_extracted_is_read_again(file, tmp_path):
    first = spiderling.extract(file, url="https://a.example/x/")
    corpus = tmp_path / "c.prevert"
    corpus.write_text(first.to("prevertical"), "utf-8")
    (second,) = spiderling.read(corpus)
    assert (second.text, second.attributes) == (first.text, first.attributes)
    kept = [paragraph for paragraph in first.paragraphs if paragraph.kept]
    assert list(second.paragraphs) == kept


def test_a_corpus_is_read_as_it_is_asked_for(tmp_path):
    corpus = tmp_path / "c.prevert"
    whole = render({"id": "1", "title": "Dům & les"}, [("První <odstavec>.", ' heading="1"'), ("Druhý.", "")])
    corpus.write_text(whole + '<doc id="2">\n<p>\n', "utf-8")
    found = spiderling.read(str(corpus))
    first = next(found)
    assert (first.title, first.text) == ("Dům & les", "První <odstavec>.\nDruhý.")
    assert [paragraph.heading for paragraph in first.paragraphs] == [True, False]
    with pytest.raises(DamageError, match="breaks off"):
        next(found)


WHOLE = render(
    {
        "id": "1", "url": "http://a.example/", "title": 'Dům & "les"', "lang": "cs", "langs": "cs:0.76 en:0.24",
        "words": "4", "crawl_date": "2026-06-01 10:20:30", "published": "2024-03", "badness": "1.5", "mine": "x",
    },
    [("První <odstavec>.", ' class="good" kind="text" heading="1" lang="cs"'), ("if a:", ' class="good" kind="code"')],
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["c.prevert.gz", "c.jsonl", "c.jsonl.zst", *(pytest.param(name, marks=DUCKDB) for name in ("c.parquet", "c/"))],
)
def test_an_export_is_read_again(tmp_path, name):
    (tmp_path / "one.prevert").write_text(WHOLE, "utf-8")
    done = scrapy("export", str(tmp_path / "one.prevert"), "-o", f"{tmp_path}/{name}")
    assert done.code == 0, done.log
    (first,), (second,) = spiderling.read(tmp_path / "one.prevert"), spiderling.read(tmp_path / name)
    assert (second.attributes, second.paragraphs) == (first.attributes, first.paragraphs)


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        ('{"text": "Jedna.\\n\\nDvě.", "source": 5}', ["Jedna.\nDvě."]),
        ('{"text": "A", "words": null, "langs": []}\n{"text": ""}', ["A", ""]),
        ('{"text": "</p></doc><doc>", "title": "a\\"b"}', ["</p></doc><doc>"]),
        ('{"body": "A"}', "record 1"), ('{"text": "A"}\n[1]', "record 2"), ('{"text": "A"', "record 1"),
        ('{"text": 5}', "record 1"), ('{"text": "A", "other": "["}', "record 1"), ("[" * 99_999, "record 1"),
    ],
)  # fmt: skip
def test_records_of_others(tmp_path, lines, texts):
    path = tmp_path / "c.jsonl"
    path.write_text(f"{lines}\n", "utf-8")
    if isinstance(texts, list):
        assert [document.text for document in spiderling.read(path)] == texts
    else:
        with pytest.raises(BadInput, match=texts):
            list(spiderling.read(path))


@DUCKDB
def test_what_is_no_parquet_is_said(tmp_path):
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamageError, match="cannot be read"):
        list(spiderling.read(tmp_path / "c.parquet"))


def test_a_language_among_some_and_among_all():
    assert spiderling.identify(SENTENCE).language == "cs"
    found = spiderling.identify(SENTENCE, among="sk,pl")
    assert found.language == "sk"
    assert found.known_share < spiderling.identify(SENTENCE, among="cs").known_share
    assert spiderling.identify("123", among="cs").candidates == ()
    assert spiderling.identify("").language is None


def test_the_second_occurrence_goes(tmp_path):
    texts = [paragraphs(n)[0] for n in range(3)]
    for name, chosen in {"a.prevert": texts[:2], "b.prevert": texts[1:]}.items():
        (tmp_path / name).write_text(render({"id": name}, [(text, "") for text in chosen]), "utf-8")
    out = tmp_path / "c.prevert"
    totals, kept = spiderling.dedup([tmp_path / "a.prevert", tmp_path / "b.prevert"], out)
    assert (totals.units, totals.duplicates, kept) == (4, 1, 2)
    assert [document.text for document in spiderling.read(out)] == ["\n".join(texts[:2]), texts[2]]
    with pytest.raises(BadInput, match="exists"):
        spiderling.dedup([out], out)


def test_nothing_of_scrapy_is_loaded_and_nothing_at_all_before_it_is_used(file):
    program = """
import sys
import spiderling
assert not {"numpy", "lxml", "spiderling.library"} & sys.modules.keys()
spiderling.extract(sys.argv[1], lang="cs").to("json")
spiderling.identify("kočka", among="cs,sk")
list(spiderling.read(sys.argv[2]))
assert not {"scrapy", "twisted", "itemadapter"} & sys.modules.keys()
"""
    (file.parent / "c.prevert").write_text(render({"id": "1"}, [("Ano.", "")]), "utf-8")
    words = [sys.executable, "-c", program, str(file), str(file.parent / "c.prevert")]
    subprocess.run(words, cwd=ROOT, check=True, timeout=120)
    with pytest.raises(AttributeError, match="no attribute 'crawl_the_web'"):
        spiderling.crawl_the_web  # noqa: B018 - the look-up is what is tried


def test_the_examples_of_the_page_run(file, tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/library.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    corpus = render({"id": "1", "url": "http://a.test/"}, [(SENTENCE, "")])
    Path("crawls").mkdir()
    for name in ("crawls/cs", "old.prevert"):
        Path(name).write_text(corpus, "utf-8")
    names: dict = {}
    for block in blocks[:-1]:  # the last is tried above
        exec(block, names)
    said = capsys.readouterr().out
    assert "O kočce cs Návrat kočky" in said
    assert "cs 1.0" in said
    assert "http://a.test/ 1" in said


# -- the command


def test_many_files_and_one_that_is_not_there(file, tmp_path):
    other = tmp_path / "sub" / "page.html"
    other.parent.mkdir()
    other.write_text(document("s"), "utf-8")
    done = scrapy("extract", str(file), "/no/file.html", str(other), "--lang", "cs", "--parallel", "2")
    assert done.code == 1
    assert "/no/file.html cannot be read" in done.log
    assert 0 < done.out.index("jen pes seděl") < done.out.index(paragraphs("s")[0][:20])


def test_a_file_for_each_and_none_over_another(file, tmp_path):
    other = tmp_path / "sub" / "page.html"
    other.parent.mkdir()
    other.write_text(document("s"), "utf-8")
    out = tmp_path / "out"
    done = scrapy("extract", str(file), str(other), "-o", str(out), "--format", "markdown")
    assert (done.code, done.out) == (0, "")
    texts = {path.name: path.read_text("utf-8") for path in out.rglob("*.md")}
    found = sorted(out.rglob("page.html.md"))
    assert len(found) == 2, texts
    assert "kočka" in found[0].read_text("utf-8") + found[1].read_text("utf-8")


def test_of_two_files_that_would_have_one_place_none_is_written(file, tmp_path):
    below = file.parent / "sub"
    below.mkdir()
    (below / file.name).write_text(document("s"), "utf-8")
    done = scrapy("extract", f"../{file.name}", file.name, "-o", "out", cwd=below)
    assert done.code == 2 and "the texts would have one name in out" in done.log
    assert not (below / "out").exists()


def test_standard_input_and_comments(tmp_path):
    comment = f'<div class="comments"><div class="comment"><p>{SLOVAK * 3}</p></div></div>'
    body = HTML.replace("</body>", f"{comment}</body>").encode("windows-1250")
    with_them = scrapy("extract", "-", stdin=body).out
    without = scrapy("extract", "-", "--no-comments", stdin=body).out
    assert with_them.count("mačka") > without.count("mačka") > 0


def test_a_place_that_cannot_be_written_to_is_said(file):
    done = scrapy("extract", str(file), "--lang", "cs", "-o", "/proc/nowhere")
    assert done.code == 1 and "could not be written" in done.log


def test_wrong_usage_is_said(file):
    assert "name files" in scrapy("extract").log
    assert "--output-dir" in scrapy("extract", str(file), str(file), "--format", "xmltei").log
    done = scrapy("extract", str(file), "--lang", "klingon")
    assert done.code == 1
    assert "no model" in done.log
