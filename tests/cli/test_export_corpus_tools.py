"""What an export writes is what corpus tools expect: a registry file, TEI, a dataset."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet
import pytest
import yaml
from conftest import DEADLINE_S, ROOT, scrapy
from lxml import etree

from spiderling.base.addresses import DropList
from spiderling.base.files import zstd
from spiderling.corpus.segments import StoredDocument
from spiderling.export.export import Plan
from spiderling.export.export import export as write_export
from spiderling.export.formats import TEI_HEAD, TEI_TAIL, format_of, tei
from spiderling.export.sources import Selection, corpus_of
from spiderling.text.prevertical import rendered, written

TEI = "{http://www.tei-c.org/ns/1.0}"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
FIRST = {
    "id": "00000000000000a1", "url": "https://www.a.cz/?a=1&b=<2> |ž%zz", "host": "a.cz", "tld": "cz",
    "title": 'The "title" & more', "lang": "cs", "langs": "cs:0.76 en:0.24 x_y:z", "crawl_date": "2026-11-22 05:06:07",
    "published": "2019-02", "modified": "2019-02-31", "words": "9", "licence": "https://a.cz/licence?x={1}",
    "badness": "8.5",
}  # fmt: skip
PARAGRAPHS = [
    ("Nadpis <1> & 2", written({"class": "good", "heading": "1", "lang": "cs"})),
    ("Vlk řekl: „Ne!“ Pak odešel. Byl to J. Novák, 5. května.", written({"class": "good", "lang": "cs"})),
    ("Dvakrát totéž.", written({"class": "good", "dup": "1"})),
]
SECOND = {"id": "b2", "url": "http://b.sk/", "host": "b.sk", "tld": "sk", "lang": "sk", "walk_weight": "0.5"}
EMPTY = {"id": "c3", "url": "", "lang": "not_a_code", "words": "many", "crawl_date": "soon", "mine": ""}
DOCUMENTS = [
    rendered(FIRST, PARAGRAPHS),
    rendered(SECOND, [("Prvá veta. Druhá veta!", written({"class": "good"}))]),
    rendered(EMPTY, []),
]


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "in" / "corpus.prevert"
    path.parent.mkdir()
    path.write_text("".join(DOCUMENTS), "utf-8")
    return path


def export(corpus: Path, out: Path | str, *options: str) -> list[str]:
    """The lines that a successful export prints."""
    ended = scrapy("export", str(corpus), "-o", str(out), *options)
    assert ended.code == 0, ended.log
    return ended.out.splitlines()


def content(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstd.decompress(data)
    return data.decode()


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


def test_the_registry_declares_what_is_written_and_nothing_else(corpus, tmp_path):
    export(corpus, tmp_path / "web corpus.vert.zst", "--split", "tld")
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
    assert 'LANGUAGE "Czech"' in (tmp_path / names[0]).read_text("utf-8")
    assert "LANGUAGE" not in (tmp_path / names[2]).read_text("utf-8"), "of a language that nobody knows"
    assert "g" in declared_in((tmp_path / names[0]).read_text("utf-8"))
    assert "g" not in declared_in((tmp_path / names[2]).read_text("utf-8"))


def test_the_registry_of_shards_names_them_all(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("spiderling.export.formats.FRAME_CHARS", 1)
    found = corpus_of([str(corpus)])
    write_export(found, found.stored(), Plan(tmp_path / "c.vert", "vertical", shard_bytes=1))
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
def test_tei_is_valid_and_says_what_the_corpus_says(corpus, tmp_path, tei_all):
    odd = [rendered(dict.fromkeys(FIRST, value), [(value, written({"lang": value, "class": "good"}))]) for value in ODD]
    with corpus.open("a", encoding="utf-8") as file:
        file.write("".join(odd))
    export(corpus, tmp_path / "c.tei.xml", "--split", "tld")
    assert len(list(tmp_path.glob("c.*.tei.xml"))) > 5, "one file a part, each whole"
    for path in tmp_path.glob("c.*.tei.xml"):
        assert tei_all.validate(etree.parse(path)), tei_all.error_log
    (text,) = etree.parse(tmp_path / "c.cz.tei.xml").getroot().iterchildren(f"{TEI}TEI")
    body = list(text.find(f"{TEI}text/{TEI}body"))
    assert [element.text for element in body] == [paragraph for paragraph, _ in PARAGRAPHS]
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
    document = tei(StoredDocument(FIRST, DOCUMENTS[0]))
    whole = f"{TEI_HEAD}{document}{TEI_TAIL}".encode()
    assert tei_all.validate(etree.fromstring(whole))
    for was, wrong in ((b"extent>", b"p>"), (b' ident="cs"', b' ident="c s"'), (b"<publisher>a.cz</publisher>", b"")):
        spoiled = etree.fromstring(whole.replace(was, wrong))
        assert was in whole and not tei_all.validate(spoiled)


# -- a directory as a dataset


def test_a_directory_becomes_a_dataset(corpus, tmp_path):
    export(corpus, f"{tmp_path}/cs/", "--split", "lang")
    files = {path.relative_to(tmp_path / "cs").as_posix() for path in (tmp_path / "cs").rglob("*") if path.is_file()}
    parts = ["cs", "not_a_code", "sk"]
    assert files == {"README.md", "manifest.json", *(f"data/{part}-00001.parquet" for part in parts)}
    head = yaml.safe_load((tmp_path / "cs/README.md").read_text("utf-8").split("---\n")[1])
    assert head["language"] == ["cs", "sk", "not_a_code"] and head["license"] == "other"
    assert {config["config_name"]: config["data_files"][0]["path"] for config in head["configs"]} == {
        "default": "data/*.parquet", **{part: f"data/{part}-?????.parquet" for part in parts},
    }  # fmt: skip
    told = json.loads((tmp_path / "cs/manifest.json").read_text("utf-8"))
    assert sorted(file["name"] for file in told["files"]) == sorted(files - {"README.md", "manifest.json"})
    tables = [pyarrow.parquet.read_table(path) for path in sorted((tmp_path / "cs/data").iterdir())]
    assert [table["id"].to_pylist() for table in tables] == [["00000000000000a1"], ["c3"], ["b2"]]


def test_a_directory_that_is_not_empty_is_left_alone(corpus, tmp_path):
    """A project's README.md is not replaced by that of a corpus, and no export by another."""
    (tmp_path / "README.md").write_text("mine")
    export(corpus, f"{tmp_path}/cs/")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for out in (tmp_path, tmp_path / "cs"):
        refused = scrapy("export", str(corpus), "-o", str(out))
        assert refused.code == 1 and f"{out} exists; give the name of a new or an empty directory." in refused.log
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_directory_that_a_killed_export_left_is_written_to(corpus, tmp_path):
    (tmp_path / "cs/data").mkdir(parents=True)
    for name in ("all-00001.parquet.part", "all-00002.parquet.part"):
        (tmp_path / "cs/data" / name).write_bytes(b"rest")
    export(corpus, f"{tmp_path}/cs/")
    assert [path.name for path in (tmp_path / "cs/data").iterdir()] == ["all-00001.parquet"]


def test_the_log_of_what_was_dropped_is_not_published(corpus, tmp_path):
    (tmp_path / "hosts.txt").write_text("a.cz\n")
    (line,) = export(corpus, f"{tmp_path}/cs/", "--drop-host", str(tmp_path / "hosts.txt"))
    assert line == f"2 documents in {tmp_path}/cs/data/all-00001.parquet, 1 dropped."
    assert FIRST["url"] in (tmp_path / "cs.dropped.tsv").read_text("utf-8")
    page = (tmp_path / "cs/README.md").read_text("utf-8")
    assert "- Left out: 1 by lists of hosts and URLs\n" in page and "a.cz" not in page


def test_the_card_says_what_was_taken(corpus, tmp_path):
    export(corpus, tmp_path / "c.txt", "--where", "lang LIKE '%s%'", "--where", "words >= 9")
    page = (tmp_path / "c.txt.README.md").read_text("utf-8")
    assert "- Conditions: `lang LIKE '%s%'`, `words >= 9`\n" in page
    assert "- Left out: 1 by `words >= 9`, 1 by `lang LIKE '%s%'`\n" in page


@pytest.mark.slow
def test_the_example_reads_what_was_written(corpus, tmp_path):
    """By the libraries that the tests have; with datasets and datatrove it is tried by hand."""
    names = ["cs/", "c.jsonl.gz", "c.tei.xml"]
    for name in names:
        export(corpus, f"{tmp_path}/{name}")
    command = [sys.executable, str(ROOT / "examples/read_corpus.py"), *(str(tmp_path / name) for name in names)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    words = sum(len(text.split()) for text, _ in PARAGRAPHS) + 4
    found = {" ".join(line.split()[1:3]) for line in ended.stdout.splitlines() if f"3 documents, {words} words" in line}
    assert found >= {"pandas reads", "polars reads", "lxml reads"}, ended.stdout


# -- what is left behind


@pytest.mark.parametrize("out", ["c.jsonl", "c.parquet", "c.vert", "c.tei.xml", "dir"])
@pytest.mark.parametrize("how", [{"selection": Selection(["lang = 'en'"])}, {"drop": DropList(["a.cz", "b.sk"])}])
def test_where_nothing_matches_nothing_is_written(corpus, tmp_path, out, how):
    corpus.write_text("".join(DOCUMENTS[:2]), "utf-8")
    found = corpus_of([str(corpus)])
    format_name = "parquet" if out == "dir" else format_of(out)
    summary = write_export(found, found.stored(), Plan(tmp_path / out, format_name, is_dataset=out == "dir", **how))
    assert (summary.kept, summary.files) == (0, [])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
