"""``scrapy export``: a corpus without what has to go, and a log of it."""

from __future__ import annotations

import errno
import io
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import ROOT, scrapy
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spiderling.base.addresses import DropList, read_list
from spiderling.base.errors import BadInput, StorageError
from spiderling.base.files import zstd
from spiderling.corpus.segments import Source, documents, stored_documents
from spiderling.export.export import ExportPlan, export
from spiderling.export.sources import Corpus, corpus_of
from spiderling.export.verification import Verification, cards_of
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.text.page import Paragraph, kept_elements
from spiderling.text.prevertical import escape, render_attributes
from tests.recorded_disk import Recording, recorded

URLS = [
    "http://a.cz/", "https://www.a.cz/x", "http://a.cz/blog/1", "http://a.cz/blog/2?q=1", "http://b.a.cz/", "http://c.cz/",
    "http://c.cz:8080/", "http://čau.cz/ž",
]  # fmt: skip


def rendered(attributes, paragraphs):
    return f"<doc{render_attributes(attributes)}>\n".encode() + kept_elements(paragraphs) + b"</doc>\n"


def doc(url: str, text: str = "Dobrý den.") -> str:
    paragraph = Paragraph(text, "good", "text", False, "cs", True)
    return rendered({"id": f"{URLS.index(url):x}" if url in URLS else "", "url": url}, [paragraph]).decode()


def corpus_file(path: Path, urls=URLS) -> Path:
    """A file of two frames, or plain."""
    texts = [doc(url) for url in urls]
    halves = ["".join(texts[:3]).encode(), "".join(texts[3:]).encode()]
    path.write_bytes(b"".join(map(zstd.compress, halves)) if path.suffix == ".zst" else b"".join(halves))
    return path


def urls_in(path: Path) -> list[str]:
    return [document.attributes["url"] for document in stored_documents(Source(path))]


def test_a_dot_stands_for_a_host_and_all_below_it():
    drop = DropList([".b.cz"])
    found = [drop.rule_for({"url": f"http://{host}/x"}) for host in ("b.cz", "www.b.cz", "a.b.cz", "ab.cz")]
    assert found == [".b.cz", ".b.cz", ".b.cz", None]
    assert not drop.idle


def test_export_of_a_crawl_and_a_file_with_everything_beside_it(tmp_path):
    job = tmp_path / "job"
    (job / "corpus").mkdir(parents=True)
    (job / "state").mkdir()
    segment = corpus_file(job / "corpus/cs-00001.prevert.zst")
    acknowledged = segment.stat().st_size
    segment.write_bytes(segment.read_bytes() + b"not acknowledged")
    store = SqliteStore(job / "state/frontier.sqlite")
    meta = {"purposes": '["research"]', "options": "{}"}
    store.commit(Changes(segments=[SegmentRow(segment.name, acknowledged, len(URLS))], meta=meta))
    store.close()
    plain = corpus_file(tmp_path / "other.prevert", ["http://d.cz/", "http://c.cz/2"])
    (tmp_path / "hosts.txt").write_text("# asked on Monday\nwww.C.cz\n*.a.cz\n\nunknown.cz\n")
    (tmp_path / "urls.txt").write_text("https://a.cz/blog/*\nhttp://a.cz/x\n")
    out = tmp_path / "out.prevert.zst"
    drop = ["--drop-host", str(tmp_path / "hosts.txt"), "--drop-url", str(tmp_path / "urls.txt")]
    ended = scrapy("export", str(job), str(plain), "-o", str(out), *drop)
    assert (ended.code, ended.log) == (0, "")
    assert ended.out.splitlines() == [
        f"3 documents in {out}, 7 dropped.", "Entries without a document: unknown.cz",
    ]  # fmt: skip
    assert urls_in(out) == ["http://a.cz/", "http://čau.cz/ž", "http://d.cz/"]
    log = [line.split("\t") for line in (tmp_path / "out.prevert.zst.dropped.tsv").read_text().splitlines()]
    assert [(url, rule) for _, url, rule in log] == [
        ("https://www.a.cz/x", "http://a.cz/x"), ("http://a.cz/blog/1", "https://a.cz/blog/*"),
        ("http://a.cz/blog/2?q=1", "https://a.cz/blog/*"), ("http://b.a.cz/", "*.a.cz"),
        ("http://c.cz/", "www.C.cz"), ("http://c.cz:8080/", "www.C.cz"), ("http://c.cz/2", "www.C.cz"),
    ]  # fmt: skip
    manifest = json.loads((tmp_path / "out.prevert.zst.json").read_text())
    assert (manifest["purposes"], manifest["documents"], manifest["dropped"]) == (["research"], 3, 7)
    assert list(manifest["lists"].values()) == [3, 2]
    again = scrapy("export", str(out), "-o", str(out))
    assert (again.code, again.log) == (1, f"scrapy export: {out} exists; remove it, or give another name.\n")
    copy = scrapy("export", str(out), "-o", str(tmp_path / "copy.prevert"))
    assert copy.code == 0 and urls_in(tmp_path / "copy.prevert") == urls_in(out)
    assert not (tmp_path / "copy.prevert.dropped.tsv").exists()


def test_an_export_that_fails_leaves_the_log_of_an_earlier_one(tmp_path):
    source = corpus_file(tmp_path / "in.prevert")
    log = tmp_path / "out.prevert.dropped.tsv"
    log.write_text("earlier")
    (tmp_path / "hosts").write_text("a.cz\n")
    (tmp_path / "out.prevert").write_text("")
    (tmp_path / "out.unknown.prevert").write_text("")
    for more in ((), ("--split", "tld"), ("--where", "0")):
        ended = scrapy("export", str(source), "-o", str(log)[:-12], "--drop-host", str(tmp_path / "hosts"), *more)
        assert (ended.code, log.read_text()) == (1, "earlier"), more
        (tmp_path / "out.prevert").unlink(missing_ok=True)


def test_two_exports_at_once_do_not_write_the_same_files(tmp_path):
    corpus = corpus_of([str(corpus_file(tmp_path / "in.prevert"))])
    plan = ExportPlan(tmp_path / "out.jsonl", "jsonl")
    documents = corpus.stored()

    def with_another():
        yield next(documents)
        with pytest.raises(BadInput, match="another export writes "):
            export(corpus, corpus.stored(), plan)
        yield from documents

    assert export(corpus, with_another(), plan).kept == len([*corpus.stored()]) > 1
    (card,) = cards_of(plan.out)
    assert not Verification(card).findings and not [*tmp_path.glob("*.part")]


class FullDisk(Recording):
    """A disk that is full when the card is written."""

    def refusal(self, kind: str, name: str) -> int:
        return errno.ENOSPC if (kind, name) == ("write", "cs/manifest.json.part") else 0


def test_an_export_for_which_the_disk_was_too_small_is_given_again(tmp_path):
    (tmp_path / "out").mkdir()
    plan = ExportPlan(tmp_path / "out/cs", "parquet", is_dataset=True)
    corpus = corpus_of([str(corpus_file(tmp_path / "in.prevert"))])
    with recorded(tmp_path / "out", FullDisk(tmp_path / "out")), pytest.raises(StorageError, match="No space left"):
        export(corpus, corpus.stored(), plan)
    assert not [*(tmp_path / "out").iterdir()]
    assert export(corpus, corpus.stored(), plan).kept


def export_by(name: str, _: str, out: str, option: str = "", file: str = "") -> None:
    entries = read_list(file) if file else []
    drop = DropList(entries, ()) if option == "--drop-host" else DropList((), entries)
    corpus = corpus_of([name])
    export(corpus, corpus.stored(), ExportPlan(Path(out), "prevertical", drop=drop))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", "-o", "out"), "nowhere does not exist; give directories of crawls, or files of a corpus."),
        ((".", "-o", "out"), "holds no crawl"),
        (("page.html", "-o", "out"), "page.html is no corpus file: a <doc> is missing before '<html>"),
        (("broken.prevert", "-o", "out"), "broken.prevert breaks off in the middle of a document."),
        (("broken.prevert.zst", "-o", "out"), "broken.prevert.zst cannot be read"),
        (("good.prevert", "-o", "out", "--drop-host", "none"), "the list none cannot be read: No such file"),
        (("good.prevert", "-o", "out", "--drop-url", "hosts"), "'a.cz' in the list of URLs is no http(s) URL"),
        (("good.prevert", "-o", "missing/out"), "missing/out could not be written: No such file"),
    ],
)
def test_bad_input_says_what_and_writes_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text("<html>\n</html>\n")
    Path("broken.prevert").write_text(doc("http://a.cz/")[:-5])
    Path("broken.prevert.zst").write_bytes(b"\x28\xb5\x2f\xfd rubbish")
    Path("hosts").write_text("a.cz\n")
    corpus_file(Path("good.prevert"))
    with pytest.raises((BadInput, StorageError)) as caught:
        export_by(*arguments)
    assert message in str(caught.value)
    assert not list(Path().glob("out*"))


def test_a_state_that_names_fewer_documents_than_it_counts_is_not_exported_in_silence(tmp_path):
    job = shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job")
    with closing(sqlite3.connect(job / "state/frontier.sqlite")) as state, state:
        state.execute("DELETE FROM file WHERE kind = 'corpus'")
    result = scrapy("export", str(job), "-o", str(tmp_path / "out.jsonl"))
    assert result.code == 1 and "documents, but the segments that it names hold 0" in result.log
    assert "--salvage" in result.log and not (tmp_path / "out.jsonl").exists()


def test_a_list_that_names_nothing_is_refused():
    for hosts, urls in ((["a b"], []), ([], ["mailto:me@a.cz"])):
        with pytest.raises(BadInput):
            DropList(hosts, urls)


TEXT = st.text(st.characters(), max_size=60)
_FORBIDDEN = {chr(code) for code in range(32)} - set("\t\n\r") | {"\ufffe", "\uffff"}


def xml_of(text: str) -> str:
    """What XML 1.0 can hold of *text*, on one line."""
    return "".join(
        " " if char in "\t\n\r" else char
        for char in text
        if char not in _FORBIDDEN and not 0xD800 <= ord(char) <= 0xDFFF
    )


@given(st.dictionaries(st.sampled_from(["url", "title", "ip"]), TEXT.filter(xml_of)), st.lists(TEXT, max_size=4))
def test_any_text_survives_the_way_through_an_xml_parser(attributes, texts):
    paragraphs = [Paragraph(text, "good", "text", False, "cs", True) for text in texts]
    data = rendered(attributes, paragraphs)
    parsed = ElementTree.fromstring(data)
    assert parsed.attrib == {name: xml_of(value) for name, value in attributes.items()}
    lines = [[p.text, *(end.tail or "" for end in p)] for p in parsed]  # between two of them there is a <lb/>
    assert [" ".join(each) for each in lines] == [f"\n{xml_of(text)}\n" for text in texts]
    (read,) = documents(io.StringIO(data.decode(), newline="\n"))
    assert read.attributes == parsed.attrib, "our own reader sees the same"
    assert [line.replace("\n", " ") for line in read.paragraphs] == [xml_of(text) for text in texts]
    assert data.count(b"\n") == 2 + 3 * len(texts), "one line an element or text"


# without a deadline, because it waits for the disk
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))
@given(st.lists(st.tuples(st.sampled_from(URLS), TEXT), max_size=8), st.sampled_from([".prevert", ".prevert.zst"]))
def test_documents_are_copied_as_they_stand(tmp_path, found, suffix):
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    out.unlink(missing_ok=True)
    texts = [doc(url, text) for url, text in found]
    data = "".join(texts).encode()
    source.write_bytes(zstd.compress(data) if suffix.endswith("zst") else data)
    corpus = Corpus([Source(source)], [])
    summary = export(corpus, corpus.stored(), ExportPlan(out, "prevertical", drop=DropList(["a.cz"])))
    staying = [text for (url, _), text in zip(found, texts, strict=True) if "//a.cz" not in url.replace("www.", "")]
    assert out.exists() is bool(staying) is bool(summary.files), "of nothing, nothing is written"
    assert not staying or [document.text for document in stored_documents(Source(out))] == staying
    assert summary.kept == len(staying)
    assert escape("]]>") == "]]&gt;"
