"""What an export writes can be read by others: XML parsers, pandas, polars, pyarrow, corpus tools."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pandas
import polars
import pyarrow.parquet
import pytest
import yaml
from conftest import DEADLINE_S, ROOT, scrapy
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput, StorageError
from spiderling.base.files import zstd
from spiderling.base.machine import EXTRAS
from spiderling.corpus.segments import Source, StoredDocument, stored_documents
from spiderling.export import export as exporting
from spiderling.export.export import ExportPlan, export
from spiderling.export.formats import COLUMNS, FORMATS, TEI_HEAD, TEI_TAIL, TextWriter, format_of, split_name, tei
from spiderling.export.sources import Selection, corpus_of
from spiderling.export.verification import Verification, cards_of
from spiderling.text import prevertical
from spiderling.text.prevertical import render, render_attributes, tokens

GOOD = render_attributes({"class": "good", "lang": "cs"})
ATTRIBUTES = {
    "id": "00000000000000a1", "url": "https://www.a.cz/?a=1&b=<2>", "host": "a.cz", "tld": "cz",
    "title": 'The "title" & more',
    "lang": "cs", "langs": "cs:0.76 en:0.24", "crawl_date": "2026-11-22 05:06:07", "published": "2019-02",
    "distance": "0", "length": "120", "words": "17", "file_type": "html", "yield": "0.1250", "badness": "8.5",
    "mine": "of another pipeline",
}  # fmt: skip
PARAGRAPHS = [
    ("Nadpis <1> & 2", render_attributes({"class": "good", "heading": "1", "lang": "cs"})),
    ("Vlk řekl: „Don't!“ — a odešel…", GOOD),
    ("日本語。 ‘पानी’ \U0001f600", render_attributes({"class": "good", "dup": "1"})),
]
OTHERS = [
    {"id": f"{n:016x}", "url": f"http://h{n}.sk/", "host": f"h{n}.sk", "tld": "sk", "lang": ("sk", "cs")[n % 2],
     "distance": str(n), "words": "1000", "badness": str(4 * n), "crawl_date": f"2026-{n + 1:02d}-01 00:00:00",
     **({"mine": "x"} if n == 3 else {})}
    for n in range(10)
]  # fmt: skip
DOCUMENTS = [render(ATTRIBUTES, PARAGRAPHS)] + [render(other, [(f"Veta {other['id']}.", GOOD)]) for other in OTHERS]
TEXTS = [[text for text, _ in PARAGRAPHS]] + [[f"Veta {other['id']}."] for other in OTHERS]


def written(directory: Path, documents: list[str]) -> Path:
    path = directory / "in" / "corpus.prevert"
    path.parent.mkdir()
    path.write_text("".join(documents), "utf-8")
    return path


@pytest.fixture
def corpus(tmp_path) -> Path:
    return written(tmp_path, DOCUMENTS)


def exported(corpus: Path, out: Path, selection: Selection | None = None, **layout) -> list[str]:
    """The names of the files."""
    found = corpus_of([str(corpus)])
    plan = ExportPlan(out, format_of(out.name), selection=selection or Selection(), **layout)
    summary = export(found, found.stored(), plan)
    return [file.name for file in summary.files]


def content(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".zst":
        return zstd.decompress(data).decode()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


CARD = (".json", ".md", ".bin", ".sha256", ".jsonl.gz")  # endings of the files beside an export


def urls(directory: Path) -> dict[str, list[str]]:
    return {
        path.name: [doc.attributes["id"][-1] for doc in stored_documents(Source(path))]
        for path in sorted(directory.glob("*.prevert*"))
        if not path.name.endswith(CARD)
    }


# -- by format


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.jsonl.zst", "c.parquet"])
def test_pandas_and_polars_read_the_same_records(corpus, tmp_path, name):
    out = tmp_path / name
    exported(corpus, out)
    if name.endswith("parquet"):
        tables = [polars.read_parquet(out).to_dicts(), pandas.read_parquet(out).to_dict("records")]
        assert types(pyarrow.parquet.read_schema(out)) == documented_types()
    else:
        tables = [polars.read_ndjson(content(out).encode(), infer_schema_length=1).to_dicts()]
        tables += [pandas.read_json(out, lines=True, dtype=False).to_dict("records")]
        assert list(json.loads(content(out).splitlines()[0])) == list(COLUMNS), "polars mixes more than 32 of them"
    for rows in tables:
        assert [row["text"].split("\n") for row in rows] == TEXTS
        assert [[p["text"] for p in row["paragraphs"]] for row in rows] == TEXTS
        first, last = rows[0], rows[-1]
        assert set(first) == set(COLUMNS)
        assert {name: first[name] for name in ("title", "distance", "words", "yield", "badness", "published")} == {
            "title": 'The "title" & more', "distance": 0, "words": 17, "yield": 0.125, "badness": 8.5,
            "published": "2019-02",
        }  # fmt: skip
        assert list(first["langs"]) == [{"lang": "cs", "share": 0.76}, {"lang": "en", "share": 0.24}]
        assert [(p["class"], p["heading"], p["lang"], p["dup"]) for p in first["paragraphs"]] == [
            ("good", True, "cs", False), ("good", False, "cs", False), ("good", False, "", True),
        ]  # fmt: skip
        assert json.loads(first["other"]) == {"mine": "of another pipeline"}
        assert (last["title"], last["other"], list(last["langs"])) == ("", "", [])
        assert polars.Series([last["yield"]]).to_list() == [None] or pandas.isna(last["yield"])
        when = datetime(2026, 11, 22, 5, 6, 7, tzinfo=UTC)
        assert pandas.Timestamp(first["crawl_date"]) == when


def types(schema: pyarrow.Schema) -> dict[str, str]:
    """Without the name of what lists hold, which differs between versions of pyarrow."""
    kinds = {field.name: str(field.type).replace("double", "float64") for field in schema}
    return {name: re.sub("<(item|element): ", "<", kind) for name, kind in kinds.items()}


def documented_types() -> dict[str, str | None]:
    page = (ROOT / "docs/formats.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*`) \| (.*?) \|", page, re.MULTILINE)
    documented = {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}
    return {name: documented.get(name) for name in COLUMNS}


def test_parquet_takes_any_document_at_any_place(tmp_path):
    """A name that looks like a pattern or a column, a text longer than DuckDB's lines of JSON, dates of no calendar."""
    odd = [("long", "slovo " * 3_000_000, "2026-11-22 05:06:07"), ("old", "a", "0001-01-01 00:00:00"), ("", "", "x")]
    docs = [render({"title": title, "crawl_date": date}, [(text, GOOD)]) for title, text, date in odd]
    (tmp_path / "odd.prevert").write_text("".join(docs), "utf-8")
    place = tmp_path / "a[1] *?'/lang=xx/day=2026-11-22"
    place.mkdir(parents=True)
    exported(tmp_path / "odd.prevert", place / "c[1]*.parquet")
    rows = pyarrow.parquet.read_table(place / "c[1]*.parquet").to_pylist()
    assert [(row["title"], row["text"]) for row in rows] == [(title, text) for title, text, _ in odd]
    assert [row["crawl_date"] and row["crawl_date"].year for row in rows] == [2026, 1, None]
    assert [path.name for path in place.iterdir() if not path.name.endswith(CARD)] == ["c[1]*.parquet"]
    assert Verification(*cards_of(place / "c[1]*.parquet")).findings == []


def test_every_attribute_that_a_crawl_writes_is_a_column():
    """What is none of ours, as attributes of a user's pipelines, stands in ``other``."""
    page = (ROOT / "docs/corpus.md").read_text("utf-8").split("## `<p>`")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 30 and named <= set(COLUMNS)


@pytest.mark.parametrize("date", ["soon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_malformed_values_count_as_not_said(tmp_path, date):
    bad = {"id": "1", "url": "http://a.cz/", "distance": "far", "words": "9" * 30, "badness": "nan",
           "crawl_date": date, "langs": "cs en:x"}  # fmt: skip
    (tmp_path / "bad.prevert").write_text(render(bad, []))
    exported(tmp_path / "bad.prevert", tmp_path / "out.parquet")
    (row,) = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row[name] for name in ("distance", "words", "badness", "crawl_date", "text", "paragraphs")] == [
        None, None, None, None, "", [],
    ]  # fmt: skip
    assert row["langs"] == [{"lang": "cs", "share": None}, {"lang": "en", "share": None}]


def test_an_independent_xml_parser_reads_prevertical_and_vertical(corpus, tmp_path):
    for name in ("c.prevert.gz", "c.vert.zst"):
        exported(corpus, tmp_path / name)
        root = ElementTree.fromstring(f"<corpus>{content(tmp_path / name)}</corpus>")
        month = {"month": "2026-11"} if ".vert" in name else {}
        assert root[0].attrib == ATTRIBUTES | month
        assert [p.get("class") for p in root[0]] == ["good"] * 3
        found = ["".join(p.itertext()).split() for p in root[0]]
        assert ["".join(words) for words in found] == ["".join(text.split()) for text, _ in PARAGRAPHS]


def test_plain_text_is_a_paragraph_a_line_and_an_empty_line_a_document(corpus, tmp_path):
    exported(corpus, tmp_path / "c.txt")
    assert [part.split("\n") for part in content(tmp_path / "c.txt").removesuffix("\n\n").split("\n\n")] == TEXTS


def test_vertical_is_as_sketch_engine_compiles_it(corpus, tmp_path):
    exported(corpus, tmp_path / "c.vert")
    lines = content(tmp_path / "c.vert").splitlines()
    end = lines.index("</doc>")
    assert lines[1:end] == [
        '<p class="good" heading="1" lang="cs">', "Nadpis", "&lt;", "<g/>", "1", "<g/>", "&gt;", "&amp;", "2", "</p>",
        '<p class="good" lang="cs">', "Vlk", "řekl", "<g/>", ":", "„", "<g/>", "Don't", "<g/>", "!", "<g/>", "“", "—",
        "a", "odešel", "<g/>", "…", "</p>",
        '<p class="good" dup="1">', "日本語", "<g/>", "。", "‘", "<g/>", "पानी", "<g/>", "’",
        "\U0001f600", "</p>",
    ]  # fmt: skip


@given(st.text(max_size=80))
def test_tokens_lose_nothing_and_know_the_spaces(text):
    found = list(tokens(text))
    assert not any(re.search(r"\s", token.text) or not token.text for token in found)
    joined = "".join(token.text if token.glued else f" {token.text}" for token in found)
    assert joined.split() == text.split()


@pytest.mark.parametrize(
    ("details", "element"),
    [
        ({"kind": "text"}, "<p>"), ({}, "<p>"), ({"kind": "text", "heading": "1"}, '<ab type="heading">'),
        ({"kind": "code"}, '<ab type="code">'), ({"kind": "cell"}, '<ab type="cell">'),
        ({"kind": "comment"}, '<ab type="comment">'),
    ],
)  # fmt: skip
def test_tei_says_what_is_no_running_text(details, element):
    document = render(ATTRIBUTES, [("a", render_attributes({"class": "good", **details}))])
    assert f"{element}a</" in tei(StoredDocument(ATTRIBUTES, document))


DIVIDED = {
    "我们今天去北京大学。": "我们 今天 去 北京 大学 。",
    "𠮷野家で昼ご飯を食べました": "𠮷 野家 で 昼 ご飯 を 食 べ ま した",
    "ฉันรักภาษาไทย 100%": "ฉัน รัก ภาษา ไทย 100 %",
    "ພາສາລາວ": "ພາສາ ລາວ",
    "ខ្ញុំស្រឡាញ់ប្រទេសកម្ពុជា។": "ខ្ញុំ ស្រឡាញ់ ប្រទេស កម្ពុជា ។",
    "ကျွန်တော်စာအုပ်ဖတ်သည်။": "ကျွန်တော် စာအုပ် ဖတ်သည် ။",
    "བོད་སྐད།": "བོད་ སྐད །",
    "Praha 東京 x": "Praha 東京 x",
    "佢哋嘅屋企喺香港": "佢 哋 嘅 屋 企 喺 香港",
}


@pytest.mark.parametrize(("text", "words"), DIVIDED.items())
def test_words_without_spaces_are_divided_by_dictionaries(text, words):
    found = list(tokens(text))
    assert " ".join(token.text for token in found) == words
    assert "".join(token.text if token.glued else f" {token.text}" for token in found).strip() == text


def test_without_the_package_a_warning_says_how_words_are_divided(monkeypatch, caplog):
    monkeypatch.setitem(EXTRAS, "vertical", ("no_such_package", "icu4py>=1.2"))
    prevertical.divider.cache_clear()
    try:
        found = [[token.text for token in tokens(text)] for text in ("kočka", "日本語か\u3099", "ภาษาไทย", "東京")]
        assert found == [["kočka"], ["日", "本", "語", "か\u3099"], ["ภาษาไทย"], ["東", "京"]]
        assert [record.getMessage().count("pip install 'icu4py>=1.2'") for record in caplog.records] == [1]
    finally:
        prevertical.divider.cache_clear()


# -- parts of a corpus


def test_split_and_shards(corpus, tmp_path):
    exported(corpus, tmp_path / "c.prevert", splits=("tld", "lang"))
    assert {name: len(found) for name, found in urls(tmp_path).items()} == {
        "c.cz.cs.prevert": 1, "c.sk.cs.prevert": 5, "c.sk.sk.prevert": 5,
    }  # fmt: skip
    files = json.loads((tmp_path / "c.prevert.json").read_text())["files"]
    assert [(file["name"], file["documents"]) for file in files] == [(n, len(f)) for n, f in urls(tmp_path).items()]
    for name in ("shards.prevert", "shards.parquet"):
        shards = exported(corpus, tmp_path / name, shard_bytes=1)
        assert shards == ([name.replace(".", "-00001.")] if name.endswith("parquet") else shards)


def test_no_export_takes_the_card_of_another(corpus, tmp_path):
    """Other splits make other files, which had the same card."""
    exported(corpus, tmp_path / "c.jsonl", splits=("lang",))
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for more in ({"splits": ("tld",)}, {"shard_bytes": 9}, {}):
        with pytest.raises(BadInput, match=r"c\.cs\.jsonl exists, and .*c\.jsonl\.json would be replaced; remove it"):
            exported(corpus, tmp_path / "c.jsonl", **more)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert not Verification(*cards_of(tmp_path / "c.jsonl")).findings
    for path in tmp_path.glob("c.*.jsonl"):
        path.unlink()
    (tmp_path / "d.jsonl.json").write_text("[]")
    with pytest.raises(BadInput, match=r"d\.jsonl\.json exists, and"):
        exported(corpus, tmp_path / "d.jsonl")
    exported(corpus, tmp_path / "c.jsonl")


def test_a_shard_that_is_full_is_followed_by_another(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("spiderling.export.formats.FRAME_CHARS", 500)
    for name in ("s.prevert", "s.parquet"):
        assert len(exported(corpus, tmp_path / name, shard_bytes=900)) > 2
    found = urls(tmp_path)
    assert list(found) == [f"s-{n + 1:05d}.prevert" for n in range(len(found))]
    assert [one for ids in found.values() for one in ids] == ["1", *"0123456789"], "in the order of the corpus"
    tables = [pyarrow.parquet.read_table(path) for path in sorted(tmp_path.glob("s-*.parquet"))]
    assert sum(len(table) for table in tables) == 11


@pytest.mark.parametrize(
    ("split", "names"),
    [
        ("substr(crawl_date, 1, 7)", ["2026-01", "2026-11"]),
        ("strftime('%Y-W%W', crawl_date)", ["2026-W00", "2026-W46"]),
        ("distance", ["0", "9"]),
        ("CASE WHEN badness <= 10 THEN 'good' WHEN badness > 35 THEN 'bad' END", ["good", "bad", "unknown"]),
        ("host", ["a.cz", "h0.sk"]),
    ],
)
def test_every_split_makes_its_files(corpus, tmp_path, split, names):
    exported(corpus, tmp_path / "c.jsonl.gz", splits=(split,))
    found = {path.name for path in tmp_path.glob("c.*.jsonl.gz")}
    assert {f"c.{name}.jsonl.gz" for name in names} <= found


def test_names_of_parts_stay_in_the_directory(tmp_path):
    hostile = ["../../up", "/etc/x", "a\x00b", "ř" * 300, ""]
    docs = [render({"id": "1", "host": host}, []) for host in hostile]
    (tmp_path / "h.prevert").write_text("".join(docs), "utf-8")
    out = tmp_path / "out"
    out.mkdir()
    exported(tmp_path / "h.prevert", out / "c.prevert", splits=("host",))
    names = sorted(path.name for path in out.iterdir())
    assert len(names) == len(hostile) + 5 and "c.unknown.prevert" in names and "c..._.._up.prevert" in names


@pytest.mark.slow
def test_memory_is_bounded_by_what_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "MAX_WAITING_CHARS", 2000)
    docs = [render({"id": f"{n}", "host": f"h{n % 10}"}, [("slovo " * 20, GOOD)]) for n in range(400)]
    (tmp_path / "many.prevert").write_text("".join(docs))
    flushed: list[int] = []
    flush = TextWriter.flush

    def noting(self):
        flushed.append(self.waiting)
        flush(self)

    monkeypatch.setattr(TextWriter, "flush", noting)
    for name in ("m.jsonl", "m.parquet"):
        exported(tmp_path / "many.prevert", tmp_path / name, splits=("host",))
        assert len(flushed) > 40 and max(flushed) < 2500, "early and in small pieces"
        flushed.clear()
    assert sum(len(pyarrow.parquet.read_table(path)) for path in tmp_path.glob("m.*.parquet")) == 400


# -- selection


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        (["distance <= 2"], "012"), (["distance > 7 -- far"], "89"), (["distance IN (2, 7)"], "27"),
        (["lang != 'sk'"], "13579"), (["host LIKE 'h1.%' OR host GLOB 'h2*'"], "12"), (["crawl_date>='2026-09'"], "89"),
        (["crawl_date >= '2026-03' AND crawl_date < date('2026-06-01')"], "234"), (["badness<10", "lang='sk'"], "02"),
        (["published = ''"], "0123456789"), (["\"yield\" > 0 OR licence != ''"], ""), (["yield IS NULL"], "0123456789"),
        (["langs LIKE '%sk:%'"], ""), (["other ->> 'mine' = 'x'"], "3"), (["other ->> 'mine' IS NULL"], "012456789"),
    ],
)  # fmt: skip
def test_conditions(conditions, ids):
    """A missing number is NULL, a missing text empty, as in JSONL and Parquet."""
    selection = Selection(conditions)
    assert {other["id"][-1] for other in OTHERS if selection.takes(other)} == set(ids)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("", "syntax error"),
        ("lang=cs", "there is no column cs, and text stands in quotes; "),
        ("lnag='cs'", "there is no column lnag, and text stands in quotes; did you mean lang?"),
        ("lang='cs'; DROP TABLE x", 'near ";": syntax error'),
        ("distance < ", "syntax error"),
        ("(SELECT * FROM read_csv('/etc/passwd'))", "no such table: read_csv"),
        ("load_extension('x')", "not authorized"),
    ],
)
def test_what_is_no_condition_is_refused(condition, says):
    with pytest.raises(BadInput, match=f"is no condition, such as distance <= 3.*: .*{re.escape(says)}"):
        Selection([condition])


def test_a_condition_that_a_document_breaks_is_told():
    selection = Selection(["json_extract('[' || title || ']', '$[0]') = 1"])
    assert selection.takes({"title": "1"})
    with pytest.raises(BadInput, match="malformed JSON"):
        selection.takes({"title": "{"})


def test_a_condition_that_no_document_meets_is_told(corpus, tmp_path):
    export_of = ("export", str(corpus), "-o", str(tmp_path / "d.prevert"), "--where")
    ended = scrapy(*export_of, "lang = 'cz'")
    assert (ended.code, ended.log) == (1, "scrapy export: No document meets lang = 'cz'.\n")
    assert ended.out == "No document is left, so nothing is written; 0 dropped, 11 left out by lang = 'cz'.\n"
    assert list(tmp_path.iterdir()) == [corpus.parent]
    ended = scrapy(*export_of, "distance <= 3")
    assert (ended.code, ended.log) == (0, "")
    assert ended.out == f"5 documents in {tmp_path / 'd.prevert'}, 0 dropped, 6 left out by distance <= 3.\n"


# -- what goes wrong


@pytest.mark.parametrize("name", ["c.jsonl.zst", "c.parquet", "c.prevert"])
def test_a_full_disk_leaves_nothing_behind(corpus, tmp_path, name):
    (tmp_path / f"{name}.part").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="No space left on device"):
        exported(corpus, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_bad_arguments(corpus, tmp_path):
    for arguments, message in (
        (["-o", str(tmp_path / "c.parquet.gz")], "Parquet is packed by itself"),
        (["-o", str(tmp_path / "c"), "--shard-bytes", "much"], "'much' is no size"),
        (["-o", str(tmp_path / "c"), "--split", "month"], "'month' is no split, such as lang, tld"),
        (["-o", str(corpus)], "exists; remove it, or give another name."),
        (["-o", f"{tmp_path}/cs/", "--format", "jsonl"], "leave --format out, or name a file"),
        (["-o", str(tmp_path / "c"), "--shard-bytes", "9" * 400], "is no size"),
        (
            ["-o", str(tmp_path / "c"), "--pii", "mark", "--where", "pii = ''"],
            "--where sees what is there before --pii",
        ),
        (["-o", str(tmp_path / "c.jsonl.gz"), "--format", "text"], "the ending of c.jsonl.gz says jsonl, not text;"),
        (["-o", str(tmp_path / ("c" * 252)), "--split", "lang"], "could not be written: File name too long"),
        (["-o", str(tmp_path / ("c" * 300))], "could not be written: File name too long"),
    ):
        ended = scrapy("export", str(corpus), *arguments)
        assert ended.code == 1 and message in ended.log and "Traceback" not in ended.log
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("name", "stem", "found"),
    [
        ("cs.jsonl.zst", "cs", "jsonl"), ("a.b.parquet", "a.b", "parquet"), ("cs", "cs", "prevertical"),
        ("cs.zst", "cs", "prevertical"), ("cs.vert", "cs", "vertical"), ("v1.2.txt.gz", "v1.2", "text"),
        ("cs.prevert.zst", "cs", "prevertical"), (".jsonl", ".jsonl", "prevertical"),
    ],
)  # fmt: skip
def test_the_name_says_the_format(name, stem, found):
    assert split_name(name)[0] == stem and format_of(name) == found
    assert found in FORMATS


UNKNOWN = {"cs.parqet.zst": "did you mean .parquet", "cs.docx": "no format; known are .prevert", "v1.2": ".2 of v1.2"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_ending_of_nothing_known_is_not_taken_for_prevertical(name):
    with pytest.raises(BadInput, match=re.escape(UNKNOWN[name])):
        format_of(name)


# -- what corpus tools expect: a registry file, TEI, a dataset

TEI = "{http://www.tei-c.org/ns/1.0}"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
FIRST = {
    "id": "00000000000000a1", "url": "https://www.a.cz/?a=1&b=<2> |ž%zz", "host": "a.cz", "tld": "cz",
    **{name: ATTRIBUTES[name] for name in ("title", "lang", "crawl_date", "published")},
    "langs": "cs:0.76 en:0.24 x_y:z", "modified": "2019-02-31", "words": "9", "licence": "https://a.cz/licence?x={1}",
    "badness": "8.5",
}  # fmt: skip
TEI_PARAGRAPHS = [
    PARAGRAPHS[0],
    ("Vlk řekl: „Ne!“ Pak odešel. Byl to J. Novák, 5. května.", GOOD),
    ("Dvakrát totéž.", render_attributes({"class": "good", "dup": "1"})),
]
SECOND = {"id": "b2", "url": "http://b.sk/", "host": "b.sk", "tld": "sk", "lang": "sk", "walk_weight": "0.5"}
EMPTY = {"id": "c3", "url": "", "lang": "not_a_code", "words": "many", "crawl_date": "soon", "mine": ""}
TEI_DOCUMENTS = [
    render(FIRST, TEI_PARAGRAPHS),
    render(SECOND, [("Prvá veta. Druhá veta!", render_attributes({"class": "good"}))]),
    render(EMPTY, []),
]


@pytest.fixture
def three(tmp_path) -> Path:
    """A corpus with all that TEI and registry files have a place for, a plain document and an empty one."""
    return written(tmp_path, TEI_DOCUMENTS)


def command(corpus: Path, out: Path | str, *options: str) -> list[str]:
    """The lines that a successful export prints."""
    ended = scrapy("export", str(corpus), "-o", str(out), *options)
    assert ended.code == 0, ended.log
    return ended.out.splitlines()


# -- vertical files and their registry


def declared_in(registry: str) -> dict[str, set[str]]:
    """Structure -> attributes; under "" the attributes of tokens."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    inside = ""
    for line in registry.splitlines():
        key, _, value = line.strip().partition(" ")
        if key == "STRUCTURE":
            inside = value.split('"')[1]
            found[inside] = set()
        elif key == "ATTRIBUTE":
            found[inside if line.startswith("\t") else ""].add(value.split('"')[1])
    return dict(found)


def written_in(vertical: str) -> dict[str, set[str]]:
    """The same, of an XML parser's making."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for element in list(etree.fromstring(f"<corpus>{vertical}</corpus>").iter())[1:]:
        found[element.tag] |= set(element.attrib)
    return dict(found)


def test_the_registry_declares_what_is_written_and_nothing_else(three, tmp_path):
    command(three, tmp_path / "web corpus.vert.zst", "--split", "tld")
    names = sorted(path.name for path in tmp_path.glob("*.registry"))
    assert names == [f"web corpus.{tld}.vert.registry" for tld in ("cz", "sk", "unknown")]
    for tld in ("cz", "sk", "unknown"):
        registry = (tmp_path / f"web corpus.{tld}.vert.registry").read_text("utf-8")
        declared = declared_in(registry)
        assert declared.pop("") == {"word", "lc"}
        assert declared == written_in(content(tmp_path / f"web corpus.{tld}.vert.zst"))
        name = f"web_corpus_{tld}"
        assert f'NAME "{name}"\nPATH "/corpora/{name}/indexed/"\n' in registry
        assert f'VERTICAL "| zstd -dcq /corpora/{name}/vertical/web corpus.{tld}.vert.zst"\n' in registry
        assert 'ENCODING "UTF-8"\n' in registry and 'DOCSTRUCTURE "doc"\n' in registry
        assert registry.count("{") == registry.count("}")
        assert str(tmp_path) not in registry
    listed = etree.parse(tmp_path / "web corpus.vert.corpora.xml").getroot()
    assert [(one.getparent().tag, one.get("ident")) for one in listed.iter("corpus")] == [
        ("corplist", f"web_corpus_{tld}") for tld in ("cz", "sk", "unknown")
    ]
    assert 'LANGUAGE "Czech"' in (tmp_path / names[0]).read_text("utf-8")
    assert "LANGUAGE" not in (tmp_path / names[2]).read_text("utf-8"), "of a language that nobody knows"
    assert "g" in declared_in((tmp_path / names[0]).read_text("utf-8"))
    assert "g" not in declared_in((tmp_path / names[2]).read_text("utf-8"))


def test_the_registry_of_shards_names_them_all(three, tmp_path, monkeypatch):
    monkeypatch.setattr("spiderling.export.formats.FRAME_CHARS", 1)
    exported(three, tmp_path / "c.vert", shard_bytes=1)
    (registry,) = tmp_path.glob("*.registry")
    verticals = [f"/corpora/c/vertical/c-{number:05d}.vert" for number in (1, 2, 3)]
    assert f'VERTICAL "| cat {" ".join(verticals)}"' in registry.read_text("utf-8")


# -- TEI


@pytest.fixture(scope="module")
def tei_all() -> etree.RelaxNG:
    packed = (ROOT / "tests/schemas/tei_all.rng.zst").read_bytes()
    return etree.RelaxNG(etree.fromstring(zstd.decompress(packed)))


ODD = ("-", "http://[::1]/", "http://a b/%\\^`{}[]#a#b", "2026-13-01", "1:2 cs:9 cs:x", "\u0661", "ž\U0001f600")


@pytest.mark.slow
def test_tei_is_valid_and_says_what_the_corpus_says(three, tmp_path, tei_all):
    odd = [
        render(dict.fromkeys(FIRST, value), [(value, render_attributes({"lang": value, "class": "good"}))])
        for value in ODD
    ]
    with three.open("a", encoding="utf-8") as file:
        file.write("".join(odd))
    command(three, tmp_path / "c.tei.xml", "--split", "tld")
    assert len(list(tmp_path.glob("c.*.tei.xml"))) > 5, "one file a part, each whole"
    for path in tmp_path.glob("c.*.tei.xml"):
        assert tei_all.validate(etree.parse(path)), tei_all.error_log
    (text,) = etree.parse(tmp_path / "c.cz.tei.xml").getroot().iterchildren(f"{TEI}TEI")
    body = list(text.find(f"{TEI}text/{TEI}body"))
    assert [element.text for element in body] == [paragraph for paragraph, _ in TEI_PARAGRAPHS]
    assert [element.tag.removeprefix(TEI) for element in body] == ["ab", "p", "p"]
    assert [element.get(XML_LANG) for element in body] == ["cs", "cs", None]
    assert body[2].get("rend") == "duplicate"
    assert text.find(f".//{TEI}ref").text == FIRST["url"]
    assert text.find(f".//{TEI}ref").get("target") == "https://www.a.cz/?a=1&b=%3C2%3E%20%7C%C5%BE%25zz"
    assert {date.get("type"): date.get("when") for date in text.iter(f"{TEI}date")} == {
        "published": "2019-02", "modified": None, "crawled": "2026-11-22T05:06:07",
    }  # fmt: skip
    assert [(e.get("ident"), e.get("usage")) for e in text.iter(f"{TEI}language")] == [("cs", "76"), ("en", "24")]
    assert {note.get("type"): note.text for note in text.iter(f"{TEI}note")} == {"tld": "cz", "badness": "8.5"}


@pytest.mark.slow
def test_the_schema_tells_wrong_tei(tei_all):
    document = tei(StoredDocument(FIRST, TEI_DOCUMENTS[0]))
    whole = f"{TEI_HEAD}{document}{TEI_TAIL}".encode()
    assert tei_all.validate(etree.fromstring(whole))
    for was, wrong in ((b"extent>", b"p>"), (b' ident="cs"', b' ident="c s"'), (b"<publisher>a.cz</publisher>", b"")):
        spoiled = etree.fromstring(whole.replace(was, wrong))
        assert was in whole and not tei_all.validate(spoiled)


# -- a directory as a dataset


def test_a_directory_becomes_a_dataset(three, tmp_path):
    command(three, f"{tmp_path}/cs/", "--split", "lang")
    files = {path.relative_to(tmp_path / "cs").as_posix() for path in (tmp_path / "cs").rglob("*") if path.is_file()}
    parts = ["cs", "not_a_code", "sk"]
    card = {"README.md", "manifest.json", "croissant.json", "consent.jsonl.gz", "receipts.bin", "SHA256SUMS"}
    assert files == card | {f"data/{part}-00001.parquet" for part in parts}
    head = yaml.safe_load((tmp_path / "cs/README.md").read_text("utf-8").split("---\n")[1])
    assert head["language"] == ["cs", "sk", "not_a_code"] and head["license"] == "other"
    assert {config["config_name"]: config["data_files"][0]["path"] for config in head["configs"]} == {
        "default": "data/*.parquet", **{part: f"data/{part}-?????.parquet" for part in parts},
    }  # fmt: skip
    told = json.loads((tmp_path / "cs/manifest.json").read_text("utf-8"))
    assert sorted(file["name"] for file in told["files"]) == sorted(files - card)
    tables = [pyarrow.parquet.read_table(path) for path in sorted((tmp_path / "cs/data").iterdir())]
    assert [table["id"].to_pylist() for table in tables] == [["00000000000000a1"], ["c3"], ["b2"]]


@pytest.mark.slow
def test_croissant_reads_a_dataset_without_an_error(three, tmp_path):
    import mlcroissant  # takes seconds

    command(three, f"{tmp_path}/cs/", "--split", "lang")
    dataset = mlcroissant.Dataset(str(tmp_path / "cs/croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    rows = [*dataset.records("document")]
    assert {row["document/id"].decode() for row in rows} == {"00000000000000a1", "c3", "b2"}


def test_a_directory_that_is_not_empty_is_left_alone_but_for_the_rest_of_a_killed_export(three, tmp_path):
    """A project's README.md is not replaced by that of a corpus, and no export by another."""
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "cs/data").mkdir(parents=True)
    for name in ("all-00001.parquet.part", "all-00002.parquet.part"):
        (tmp_path / "cs/data" / name).write_bytes(b"rest")
    for name in ("README.md", "manifest.json.part"):
        (tmp_path / "cs" / name).write_bytes(b"rest")
    (tmp_path / "hosts.txt").write_text("a.cz\n")
    (line,) = command(three, f"{tmp_path}/cs/", "--drop-host", str(tmp_path / "hosts.txt"))
    assert [path.name for path in (tmp_path / "cs/data").iterdir()] == ["all-00001.parquet"]
    # the log of what was dropped is not published
    assert line == f"2 documents in {tmp_path}/cs/data/all-00001.parquet, 1 dropped."
    assert FIRST["url"] in (tmp_path / "cs.dropped.tsv").read_text("utf-8")
    page = (tmp_path / "cs/README.md").read_text("utf-8")
    assert "- Left out: 1 by lists of hosts and URLs\n" in page and "a.cz" not in page
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for out in (tmp_path, tmp_path / "cs"):
        refused = scrapy("export", str(three), "-o", str(out))
        assert refused.code == 1 and f"{out} exists; give the name of a new or an empty directory." in refused.log
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_card_says_what_was_taken(three, tmp_path):
    command(three, tmp_path / "c.txt", "--where", "lang LIKE '%s%'", "--where", "words >= 9")
    page = (tmp_path / "c.txt.README.md").read_text("utf-8")
    assert "- Conditions: `lang LIKE '%s%'`, `words >= 9`\n" in page
    assert "- Left out: 1 by `words >= 9`, 1 by `lang LIKE '%s%'`\n" in page


@pytest.mark.slow
def test_the_example_reads_what_was_written(three, tmp_path):
    """By the libraries that the tests have; with datasets and datatrove it is tried by hand."""
    names = ["cs/", "c.jsonl.gz", "c.tei.xml"]
    for name in names:
        command(three, f"{tmp_path}/{name}")
    reading = [sys.executable, str(ROOT / "examples/read_corpus.py"), *(str(tmp_path / name) for name in names)]
    ended = subprocess.run(reading, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    words = sum(len(text.split()) for text, _ in TEI_PARAGRAPHS) + 4
    found = {" ".join(line.split()[1:3]) for line in ended.stdout.splitlines() if f"3 documents, {words} words" in line}
    assert found >= {"pandas reads", "polars reads", "lxml reads"}, ended.stdout


# -- what is left behind


@pytest.mark.parametrize("out", ["c.jsonl", "c.parquet", "c.vert", "c.tei.xml", "dir"])
@pytest.mark.parametrize("how", [{"selection": Selection(["lang = 'en'"])}, {"drop": DropList(["a.cz", "b.sk"])}])
def test_where_nothing_matches_nothing_is_written(three, tmp_path, out, how):
    three.write_text("".join(TEI_DOCUMENTS[:2]), "utf-8")
    found = corpus_of([str(three)])
    format_name = "parquet" if out == "dir" else format_of(out)
    summary = export(found, found.stored(), ExportPlan(tmp_path / out, format_name, is_dataset=out == "dir", **how))
    assert (summary.kept, summary.files) == (0, [])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
