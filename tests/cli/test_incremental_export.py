"""``scrapy export --after``: what is new since an export, each document once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import scrapy
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.corpus.segments import SegmentWriter, Source, stored_documents
from spiderling.export.export import ExportPlan, export
from spiderling.export.sources import corpus_of, grown_since
from spiderling.frontier.storage.sqlite import Changes, SqliteStore
from spiderling.text.prevertical import render, render_attributes

GOOD = render_attributes({"class": "good"})


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
        return render(attributes, [(f"Dobrý den {number}.", GOOD)])

    @property
    def ids(self) -> list[str]:
        return [f"{self.directory.name}-{number}" for number in range(self.number)]


def exported(out: Path, after: Path | None, *crawls: Growing) -> list[str]:
    """The ids of what was written."""
    corpus = corpus_of([str(crawl.directory) for crawl in crawls])
    if after is not None:
        corpus = grown_since(corpus, after)
    if not export(corpus, corpus.stored(), ExportPlan(out, "prevertical")).files:
        return []
    return [document.attributes["id"] for document in stored_documents(Source(out))]


STEPS = st.lists(
    st.one_of(st.tuples(st.integers(0, 1), st.integers(0, 5)), st.just("export"), st.just("export a")), max_size=12
)


@settings(max_examples=12, deadline=None)
@given(steps=STEPS, segment_bytes=st.sampled_from([1, 600, 1 << 20]))
def test_the_parts_are_the_whole_and_nothing_stands_in_two(tmp_path_factory, steps, segment_bytes):
    place = tmp_path_factory.mktemp("grows")
    crawls = [Growing(place / name, segment_bytes) for name in ("a", "b")]
    ids: list[str] = []
    last = None
    for number, step in enumerate([*steps, "export", "export"]):
        if isinstance(step, tuple):
            crawls[step[0]].grow(step[1])
            continue
        here = crawls if step == "export" else crawls[:1]
        new = exported(place / f"{number}.prevert", last, *here)
        ids += new
        last = place / f"{number}.prevert.json" if new else last
        assert len(set(ids)) == len(ids)
        assert {one for crawl in here for one in crawl.ids} <= set(ids)
    for crawl in crawls:
        assert [one for one in ids if one in set(crawl.ids)] == crawl.ids, "in the order of the crawl"


def test_the_command_takes_what_is_new(tmp_path):
    crawl = Growing(tmp_path / "cs")
    crawl.grow(4)
    first, second = (str(tmp_path / name) for name in ("1.jsonl", "2.parquet"))
    command = ("export", str(crawl.directory), "--where", "lang = 'cs'")
    assert scrapy(*command, "-o", first).out == f"4 documents in {first}, 0 dropped.\n"
    crawl.grow(3)
    new = scrapy(*command, "-o", second, "--after", f"{first}.json")
    assert (new.code, new.log, new.out) == (0, "", f"3 documents in {second}, 0 dropped.\n")
    none = scrapy(*command, "-o", f"{tmp_path}/3.jsonl", "--after", f"{second}.json")
    assert none.code == 0 and none.out == "No document is left, so nothing is written; 0 dropped.\n"
    assert str(tmp_path) not in Path(f"{second}.json").read_text()
    both = scrapy(*command, "-o", f"{tmp_path}/3.jsonl", "--after", f"{first}.json", "--salvage")
    assert both.code == 2 and "--after takes acknowledged text alone" in both.log + both.out


def refused(after: Path, *names: Path) -> str:
    with pytest.raises(BadInput) as caught:
        grown_since(corpus_of(map(str, names)), after)
    return str(caught.value)


def test_what_would_not_fit_the_earlier_export_is_refused(tmp_path):
    out = tmp_path / "out.prevert"
    card = tmp_path / "out.prevert.json"
    crawl = Growing(tmp_path / "cs")
    crawl.grow(3)
    exported(out, None, crawl)
    twin = Growing(tmp_path / "other" / "cs")
    twin.number = 100
    twin.grow(9)
    assert "cs/corpus/cs-00001.prevert.zst is not the segment" in refused(card, twin.directory)
    no_card = f"{card} is no manifest of an export of crawls of different names; give the OUT.json of one."
    assert refused(card, crawl.directory, twin.directory) == refused(card, out) == no_card
    for text in ("", "[]", "{}", '{"taken": 5}', json.dumps({"taken": {"cs/corpus/cs-00001.prevert.zst": "no"}})):
        card.write_text(text)
        assert refused(card, crawl.directory) == no_card
