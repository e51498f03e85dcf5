"""``scrapy export --incremental``: parts of what is new, each document once, whatever ends an export."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.dataset
import pytest
from conftest import scrapy
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput
from spiderling.corpus.segments import SegmentWriter, Source, stored_documents
from spiderling.export import increments
from spiderling.export.export import Plan
from spiderling.export.formats import FORMATS
from spiderling.export.increments import Added, add_part
from spiderling.export.sources import Selection, corpus_of
from spiderling.frontier.storage.sqlite import Changes, SqliteStore
from spiderling.text.prevertical import rendered, written

GOOD = written({"class": "good"})


class Growing:
    """A crawl whose corpus grows."""

    def __init__(self, directory: Path, segment_bytes: int = 1 << 20) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.number = 0
        for name in ("corpus", "state"):
            (directory / name).mkdir(parents=True)
        self.grow(0)

    def grow(self, documents: int) -> None:
        store = SqliteStore(self.directory / "state/frontier.sqlite")
        writer = SegmentWriter(self.directory / "corpus", "cs", self.segment_bytes, store.load().segments)
        texts = [self.document(self.number + n) for n in range(documents)]
        self.number += documents
        row = writer.append([text.encode() for text in texts])
        writer.close()
        store.commit(Changes(segments=[row] if row else [], meta={"options": "{}"}))
        store.close()

    def document(self, number: int) -> str:
        host = f"h{number % 3}.{self.directory.name}.test"
        attributes = {
            "id": f"{self.directory.name}-{number}", "url": f"http://{host}/{number}", "host": host, "lang": "cs",
            "crawl_date": f"2026-{1 + number // 4 % 12:02d}-03 00:00:00", "words": "2", "length": "12",
        }  # fmt: skip
        return rendered(attributes, [(f"Dobrý den {number}.", GOOD)])

    @property
    def ids(self) -> list[str]:
        return [f"{self.directory.name}-{number}" for number in range(self.number)]


def added(out: Path, *crawls: Growing, format_name: str = "prevertical", drop: Sequence[str] = (), **how) -> Added:
    corpus = corpus_of([str(crawl.directory) for crawl in crawls])
    lists = {"hosts.txt": len(drop)} if drop else {}
    return add_part(corpus, Plan(out, format_name, drop=DropList(drop), lists=lists, **how))


def in_parts(out: Path) -> dict[str, list[str]]:
    return {
        part.name: [
            document.attributes["id"]
            for path in sorted(part.glob("*.prevert.zst"))
            for document in stored_documents(Source(path))
        ]
        for part in sorted(out.glob("part-*"))
    }


def files_of(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def without_times(files: dict[str, bytes]) -> dict[str, bytes]:
    """*files* of two exports, which were made at different times, so that they can be compared."""
    return {name: re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", b"", data) for name, data in files.items()}


STEPS = st.lists(
    st.one_of(st.tuples(st.integers(0, 1), st.integers(0, 5)), st.just("export"), st.just("export a")), max_size=12
)


@settings(max_examples=12, deadline=None)
@given(steps=STEPS, segment_bytes=st.sampled_from([1, 600, 1 << 20]))
def test_the_parts_are_the_whole_and_nothing_stands_in_two(tmp_path_factory, steps, segment_bytes):
    place = tmp_path_factory.mktemp("grows")
    crawls = [Growing(place / name, segment_bytes) for name in ("a", "b")]
    out = place / "out"
    exported = 0
    for step in [*steps, "export", "export"]:
        if isinstance(step, tuple):
            crawls[step[0]].grow(step[1])
            continue
        here = crawls if step == "export" else crawls[:1]
        before = files_of(out)
        result = added(out, *here)
        ids = [one for part in in_parts(out).values() for one in part]
        new = len(ids) - exported
        assert bool(result.part) is bool(new)
        assert new or files_of(out) == before, "nothing new, nothing written"
        assert all(files_of(out)[name] == data for name, data in before.items() if name.startswith("part-"))
        assert len(set(ids)) == len(ids)
        assert {one for crawl in here for one in crawl.ids} <= set(ids)
        exported = len(ids)
    for crawl in crawls:
        assert [one for one in ids if one in set(crawl.ids)] == crawl.ids, "in the order of the crawl"


def test_the_command_adds_a_part_and_says_so(tmp_path):
    crawl = Growing(tmp_path / "cs")
    crawl.grow(4)
    command = ("export", str(crawl.directory), "-o", f"{tmp_path}/news/", "--incremental", "--where", "lang = 'cs'")
    first = scrapy(*command)
    assert (first.code, first.log) == (0, "")
    assert first.out == f"4 documents in {tmp_path}/news/part-00001/news.parquet, 0 dropped.\n"
    crawl.grow(3)
    second = scrapy(*command)
    assert second.code == 0 and second.out.startswith(f"3 documents in {tmp_path}/news/part-00002/news.parquet")
    third = scrapy(*command)
    assert (third.code, third.log) == (0, "")
    assert re.fullmatch(r"Nothing is new since part-00002 \(2\S+ \S+\), so nothing is written\.\n", third.out)
    (card,) = (json.loads(path.read_text()) for path in (tmp_path / "news/part-00002").glob("*.json"))
    assert (card["documents"], card["contents"]["words"]) == (3, 6)
    assert card["contents"]["crawl_dates"] == ["2026-02-03 00:00:00"] * 2 and len(card["files"][0]["sha256"]) == 64
    table = pyarrow.dataset.dataset(sorted(map(str, (tmp_path / "news").glob("part-*/*.parquet")))).to_table()
    assert table["id"].to_pylist() == crawl.ids
    assert not any(str(tmp_path) in path.read_text() for path in (tmp_path / "news").glob("part-*/*.[jm][sd]*"))


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_and_each_split_and_shards(tmp_path, format_name):
    crawl = Growing(tmp_path / "cs")
    for number in (1, 2):
        crawl.grow(6)
        result = added(
            tmp_path / "out", crawl, format_name=format_name, splits=("substr(crawl_date, 1, 7)",), shard_bytes=1 << 20
        )
        assert result.part == f"part-0000{number}"
        assert result.summary is not None and len(result.summary.files) == 2
    cards = [json.loads(path.read_text()) for path in sorted((tmp_path / "out").glob("part-*/*.json"))]
    assert [[file["documents"] for file in card["files"]] for card in cards] == [[4, 2], [2, 4]]
    found = sorted(path.name for path in (tmp_path / "out/part-00002").iterdir() if ".json" not in path.suffixes[-1:])
    assert found[0].startswith("out.2026-02-00001.") and "out.README.md" not in found
    registries = [name for name in found if name.endswith(".registry")]
    assert len(registries) == (2 if format_name == "vertical" else 0)


# -- what ends an export


def killed_in(target: str) -> Callable[..., None]:
    def killed(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return killed


@pytest.mark.parametrize(
    "place",
    [
        "spiderling.export.formats.TextWriter.close",
        "spiderling.export.export.sync_file",
        "spiderling.export.export.write_pair",
        "pathlib.Path.rename",
        "spiderling.export.increments.sync_directory",
    ],
)
def test_a_killed_export_leaves_nothing_half(tmp_path, monkeypatch, place):
    crawl = Growing(tmp_path / "cs")
    crawl.grow(3)
    added(tmp_path / "out", crawl, drop=["h0.cs.test"])
    crawl.grow(3)
    shutil.copytree(tmp_path / "out", tmp_path / "twin/out")
    shutil.copy(tmp_path / "out.dropped.tsv", tmp_path / "twin")
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(place, killed_in(place))
        added(tmp_path / "out", crawl, drop=["h0.cs.test"])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    whole = [path for path in (tmp_path / "out").glob("part-*") if path.suffix != ".part"]
    assert all(json.loads(next(path.glob("*.json")).read_text())["increment"] for path in whole)
    added(tmp_path / "out", crawl, drop=["h0.cs.test"])
    added(tmp_path / "twin/out", crawl, drop=["h0.cs.test"])
    assert without_times(files_of(tmp_path / "out")) == without_times(files_of(tmp_path / "twin/out"))
    logs = [(place / "out.dropped.tsv").read_text() for place in (tmp_path, tmp_path / "twin")]
    assert logs[0] == logs[1] and logs[0].count("left out") == 2


def test_an_error_leaves_the_parts_that_were_there(tmp_path, monkeypatch):
    crawl = Growing(tmp_path / "cs")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("spiderling.export.export.sync_file", full)
        crawl.grow(2)
        with pytest.raises(Exception, match="No space left"):
            added(tmp_path / "out", crawl)
    assert not list((tmp_path / "out").iterdir())
    assert added(tmp_path / "out", crawl).part == "part-00001"


# -- what has to go


def rows(out: Path) -> list[list[str]]:
    lines = out.with_name(f"{out.name}.dropped.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines[1:]]


def test_earlier_parts_that_hold_what_has_to_go_are_named(tmp_path, monkeypatch):
    out = tmp_path / "out"
    crawl = Growing(tmp_path / "cs")
    for _ in range(2):
        crawl.grow(3)
        added(out, crawl)
    before = files_of(out)
    crawl.grow(3)
    result = added(out, crawl, drop=["h0.cs.test"])
    assert (result.part, result.to_remove) == ("part-00003", 2)
    assert in_parts(out)["part-00003"] == ["cs-7", "cs-8"]
    assert rows(out) == [
        ["part-00001", "stands in", "cs-0", "http://h0.cs.test/0", "h0.cs.test"],
        ["part-00002", "stands in", "cs-3", "http://h0.cs.test/3", "h0.cs.test"],
        ["part-00003", "left out", "cs-6", "http://h0.cs.test/6", "h0.cs.test"],
    ]
    assert all(files_of(out)[name] == data for name, data in before.items() if name.startswith("part-"))
    assert not any(b"h0.cs.test/6" in data or name.endswith(".tsv") for name, data in files_of(out).items())

    read: list[Source] = []
    monkeypatch.setattr(increments, "stored_documents", lambda source: read.append(source) or [])
    again = added(out, crawl, drop=["h0.cs.test"])
    assert (again.part, again.to_remove, read, len(rows(out))) == ("", 2, [], 3), "the same lists read nothing again"
    monkeypatch.undo()
    wider = added(out, crawl, drop=["h0.cs.test", "h1.cs.test"])
    assert (wider.part, wider.to_remove) == ("", 5)
    assert [row[:3] for row in rows(out) if row[0] == "part-00003"] == [
        ["part-00003", "stands in", "cs-7"], ["part-00003", "left out", "cs-6"],
    ]  # fmt: skip


# -- what is refused


def refused(out: Path, *crawls: Growing, **how) -> str:
    before = files_of(out) if out.is_dir() else {}
    with pytest.raises(BadInput) as caught:
        added(out, *crawls, **how)
    assert not out.is_dir() or files_of(out) == before
    return str(caught.value)


def test_what_would_not_fit_the_parts_is_refused(tmp_path):
    out = tmp_path / "out"
    crawl = Growing(tmp_path / "cs")
    crawl.grow(3)
    added(out, crawl)
    crawl.grow(3)
    assert "begun with the format 'prevertical', not 'jsonl'" in refused(out, crawl, format_name="jsonl")
    assert "begun with the where [], not [\"lang = 'cs'\"]" in refused(out, crawl, selection=Selection(["lang = 'cs'"]))
    assert "begun with the split []" in refused(out, crawl, splits=("lang",))
    twin = Growing(tmp_path / "other" / "cs")
    twin.number = 100
    twin.grow(9)
    assert "two crawls have a segment cs/corpus/cs-00001.prevert.zst" in refused(out, crawl, twin)
    assert "cs/corpus/cs-00001.prevert.zst is not the segment" in refused(out, twin)
    (tmp_path / "mine.txt").write_text("x")
    assert "holds other files than parts (" in refused(tmp_path, crawl)
    (out / "part-00001/out.prevert.zst.json").unlink()
    assert "the manifest of" in refused(out, crawl)


def test_places_that_cannot_take_parts_are_refused(tmp_path):
    crawl = Growing(tmp_path / "cs")
    crawl.grow(1)
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(tmp_path / "file", crawl)
    (tmp_path / "held").mkdir()
    descriptor = os.open(tmp_path / "held", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert "is being written by another export" in refused(tmp_path / "held", crawl)
    os.close(descriptor)
    segment = next(crawl.directory.glob("corpus/*"))
    with pytest.raises(BadInput, match="only crawls grow"):
        add_part(corpus_of([str(segment)]), Plan(tmp_path / "new", "prevertical"))
    assert not (tmp_path / "new").exists()
    ended = scrapy("export", str(crawl.directory), "-o", f"{tmp_path}/new", "--incremental", "--salvage")
    assert ended.code == 2 and "--incremental takes acknowledged text alone" in ended.log + ended.out
    nothing = scrapy("export", str(crawl.directory), "-o", f"{tmp_path}/new", "--incremental", "--where", "lang = 'xx'")
    assert (nothing.code, nothing.out) == (0, "No document is left, so nothing is written.\n")
    assert not (tmp_path / "new").exists()
