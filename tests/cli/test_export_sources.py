"""What an export reads: as much of a damaged corpus as is whole, and distances that are newer than the text."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Crawl, crawled, page, scrapy

from spiderling.base.errors import DamageError
from spiderling.base.files import zstd
from spiderling.corpus.segments import SegmentWriter, Source, stored_documents
from spiderling.export import export as exporting
from spiderling.export.formats import format_of
from spiderling.export.sources import Corpus, Salvage, corpus_of
from spiderling.frontier.storage.protocol import Changes, StoredHost
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.as_text import overview
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.status import hosts_of, status_of
from spiderling.text.prevertical import render

FRAMES, DOCUMENTS = 4, 3  # frames of each segment, documents of each frame


def url(segment: int, frame: int, place: int) -> str:
    return f"http://a.test/{segment}/{frame}/{place}"


def text_of(url: str) -> str:
    return render({"url": url}, [(f"Text & <{url}>", ' class="good"')])


ALL = [url(s, f, d) for s in (1, 2) for f in range(FRAMES) for d in range(DOCUMENTS)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, list[int]]:
    """A JOBDIR with two segments, and where the frames of a segment begin, its end included."""
    job = tmp_path_factory.mktemp("made") / "job"
    for name in ("corpus", "state"):
        (job / name).mkdir(parents=True)
    store, offsets, rows = SqliteStore(job / "state/frontier.sqlite"), [0], []
    for segment in (1, 2):
        max_bytes = rows[0].length_bytes if rows else 10**6  # the first one is full
        writer = SegmentWriter(job / "corpus", "cs", max_bytes, rows)
        for frame in range(FRAMES):
            urls = [url(segment, frame, place) for place in range(DOCUMENTS)]
            row = writer.append([text_of(u).encode() for u in urls])
            offsets += [row.length_bytes] if segment == 1 else []
        writer.close()
        rows.append(row)
    store.commit(Changes(segments=rows, meta={"purposes": '["research"]', "options": "{}"}))
    store.close()
    return job, offsets


@pytest.fixture
def job(made, tmp_path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "job"))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def salvaged(*names: Path) -> tuple[list[str], list[tuple]]:
    """URLs of what was read, and what was left out: (file, bytes, documents)."""
    salvage = Salvage()
    corpus: Corpus = corpus_of(map(str, names), is_salvage=True)
    documents = [document for source in corpus.sources for document in salvage.documents(source)]
    urls = [document.attributes["url"] for document in documents]
    assert all(document.text == text_of(url) for document, url in zip(documents, urls, strict=True))
    return urls, [(Path(loss["file"]).name, *list(loss.values())[1:]) for loss in salvage.losses]


def without(*places: tuple[int, int]) -> list[str]:
    """All URLs but those of some frames (segment, frame)."""
    return [u for u in ALL if tuple(map(int, u.split("/")[3:5])) not in places]


def test_a_flipped_bit_costs_one_frame_and_the_command_says_so(job, made, tmp_path):
    """Without --salvage the export refuses in one sentence that names it; with it all else is written, exit code 1."""
    offsets, segment, out = made[1], job / "corpus/cs-00001.prevert.zst", tmp_path / "out.prevert"
    flip(segment, offsets[1] + 30)
    ended = scrapy("export", str(job), "-o", str(out))
    assert (ended.code, ended.out) == (1, "") and not out.exists()
    assert len(ended.log.splitlines()) == 1 and f"byte {offsets[1]:,}" in ended.log
    assert ended.log.endswith("With --salvage everything that is whole is written.\n")
    ended = scrapy("export", str(job), "-o", str(out), "--salvage")
    size = offsets[2] - offsets[1]
    assert (ended.code, ended.log) == (1, "")
    assert ended.out.splitlines() == [
        f"21 documents in {out}, 0 dropped.", f"{segment.name}: {size:,} bytes left out, with 3 documents",
    ]  # fmt: skip
    assert [doc.attributes["url"] for doc in stored_documents(Source(out))] == without((1, 1))
    manifest = json.loads((tmp_path / "out.prevert.json").read_text())
    assert manifest["left_out"] == [{"file": segment.name, "bytes": size, "documents": 3}]
    assert manifest["purposes"] == ["research"]
    flip(segment, offsets[1] + 30)
    ended = scrapy("export", str(job), "-o", str(tmp_path / "whole.prevert"), "--salvage")
    assert (ended.code, ended.log) == (0, "")
    assert ended.out.splitlines()[-1] == "Every segment is whole; nothing was left out."


@pytest.mark.parametrize("frame", range(FRAMES))
def test_the_search_goes_on_behind_any_frame(job, made, frame):
    """Each of the frame's first and last twenty bytes is tried: magic number, header, text, checksum."""
    begin, end = made[1][frame : frame + 2]
    segment, harmless = job / "corpus/cs-00001.prevert.zst", []
    for at in (*range(begin, begin + 20), *range(end - 20, end)):
        flip(segment, at)
        found = salvaged(job)
        if found == (ALL, []):
            harmless.append(at - begin)
        else:
            assert found == (without((1, frame)), [(segment.name, end - begin, 3)])
        flip(segment, at)
    assert len(harmless) < 5, "bits without a meaning: the text is the same"


def test_a_segment_that_was_cut_short_gives_its_whole_frames(job, made):
    os.truncate(job / "corpus/cs-00001.prevert.zst", made[1][3] - 5)
    lost = made[1][4] - made[1][2]
    assert salvaged(job) == (without((1, 2), (1, 3)), [("cs-00001.prevert.zst", lost, 6)])


def test_a_segment_that_is_gone_is_told_by_the_state(job, made):
    (job / "corpus/cs-00001.prevert.zst").unlink()
    assert salvaged(job) == (ALL[12:], [("cs-00001.prevert.zst", made[1][4], 12)])


@pytest.mark.parametrize("damage", ["gone", "empty", "zeros", "text"])
def test_without_a_state_the_segments_are_found_by_their_names(job, made, tmp_path, damage):
    """What else lies in corpus/ is left alone."""
    state, corpus = job / "state/frontier.sqlite", job / "corpus"
    if damage == "gone":
        shutil.rmtree(job / "state")
    else:
        state.write_bytes({"empty": b"", "zeros": bytes(8192), "text": b"no database at all" * 500}[damage])
    shutil.copy(corpus / "cs-00001.prevert.zst", corpus / "my-own.prevert.zst")
    (corpus / "cs-00003.prevert.zst").write_bytes(zstd.compress(b"no corpus\n" * 9))
    flip(corpus / "cs-00001.prevert.zst", made[1][1] + 30)
    urls, losses = salvaged(job)
    assert urls == without((1, 1))
    assert [(name, documents) for name, _, documents in losses] == [
        ("cs-00001.prevert.zst", None), ("cs-00003.prevert.zst", None),
    ]  # fmt: skip
    ended = scrapy("export", str(job), "-o", str(tmp_path / "out.prevert"), "--salvage")
    assert ended.code == 1 and "Traceback" not in ended.log
    assert len(ended.log.splitlines()) == 1 and str(state) in ended.log


def test_a_shard_that_kept_nothing_does_not_keep_others_from_being_salvaged(job, tmp_path):
    """Whose state is damaged: its trouble was told as that of the empty one, and nothing was written."""
    (tmp_path / "all/shard-01/state").mkdir(parents=True)
    SqliteStore(tmp_path / "all/shard-01/state/frontier.sqlite").close()
    shutil.move(job, tmp_path / "all/shard-00")
    (tmp_path / "all/shard-00/state/frontier.sqlite").write_bytes(b"no database at all" * 500)
    assert salvaged(tmp_path / "all") == (ALL, [])


def test_text_that_the_state_does_not_know_is_salvaged_and_a_broken_end_of_it_is_no_loss(job, made):
    """A kill leaves both behind the recorded length: nobody was told that this text is safe."""
    segment = job / "corpus/cs-00001.prevert.zst"
    frame = segment.read_bytes()[made[1][3] :]
    with segment.open("ab") as file:
        file.write(frame + frame[:50])
    assert salvaged(job) == ([*ALL[:12], *ALL[9:]], [])


def test_files_are_salvaged_too_and_a_whole_one_may_have_any_frames(job, tmp_path):
    """A file that somebody packed elsewhere need not end a frame with a document."""
    source = tmp_path / "corpus.prevert.zst"
    assert scrapy("export", str(job), "-o", str(source)).code == 0
    text = zstd.decompress(source.read_bytes())
    pieces = [text[: len(text) // 2], text[len(text) // 2 :]]
    source.write_bytes(b"".join(map(zstd.compress, pieces)))
    assert salvaged(source) == (ALL, [])
    segment = job / "corpus/cs-00001.prevert.zst"
    flip(segment, 30)
    assert salvaged(segment)[0] == without((1, 0))[:9]


@pytest.mark.parametrize("name", ["c.jsonl.zst", "c.parquet", "c.jsonl"])
def test_whole_files_of_other_formats_are_salvaged_whole(made, tmp_path, name):
    """All of them was left out, for it is no prevertical."""
    corpus = corpus_of([str(made[0])])
    exporting.export(corpus, corpus.stored(), exporting.ExportPlan(tmp_path / name, format_of(name)))
    salvage = Salvage()
    (source,) = corpus_of([str(tmp_path / name)], is_salvage=True).sources
    assert [one.attributes["url"] for one in salvage.documents(source)] == ALL and not salvage.losses


@pytest.mark.parametrize("missing", [1, 4, 30])
def test_a_packed_file_that_breaks_off_is_refused(job, made, missing):
    """Also where its checksum alone is missing, and all documents seem to be there."""
    segment = job / "corpus/cs-00001.prevert.zst"
    os.truncate(segment, made[1][4] - missing)
    with pytest.raises(DamageError, match="ended before"):
        list(stored_documents(Source(segment)))


def test_a_long_stretch_of_damage_is_searched_and_not_copied(tmp_path):
    """A file that is not packed has no frames: all of it is one stretch."""
    file, size = tmp_path / "long.prevert", 30_000_000
    file.write_bytes(b"no document\n" * (size // 12) + b"<doc>")
    tracemalloc.start()
    try:
        assert salvaged(file) == ([], [("long.prevert", file.stat().st_size, None)])
        assert tracemalloc.get_traced_memory()[1] < size / 4
    finally:
        tracemalloc.stop()


def test_a_damaged_gzip_stream_is_named_in_one_sentence(tmp_path):
    file = tmp_path / "c.prevert.gz"
    file.write_bytes(gzip.compress(text_of("http://a.test/").encode() * 99)[:10] + b"\xff" * 99)
    with pytest.raises(DamageError, match=r"c\.prevert\.gz cannot be read: "):
        list(stored_documents(Source(file)))


# -- all that looks at the distance of a document or host goes by the last one of the host, not by that of a fetch


SITES = {
    "seed.test": {
        "/": page("start", "http://b.test/", "/1"),
        **{f"/{n}": page(f"of the seed {n}", f"/{n + 1}") for n in range(1, 16)},
        "/16": page("of the seed, the last", "http://c.test/2"),
    },
    "b.test": {"/": page("of b", "http://c.test/1")},
    "c.test": {"/1": page("of c, the first", "http://d.test/1"), "/2": page("of c, the second")},
    "d.test": {"/1": page("of d")},
}
"""c.test/1 is read by the long way over b; the last page of the seed shows a shorter one, which d.test does not get."""
LAST = {"seed.test": "0", "b.test": "1", "c.test": "1", "d.test": "3"}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory) -> Crawl:
    return crawled(tmp_path_factory.mktemp("distances") / "job", SITES, "http://seed.test/")[0]


def distances(path: Path) -> dict[str, set[str]]:
    """Host -> the distances of its documents in the file *path*."""
    found: dict[str, set[str]] = {}
    for document in stored_documents(Source(path)):
        found.setdefault(document.attributes["host"], set()).add(document.attributes["distance"])
    return found


def export(crawl: Crawl, source: Path, out: Path, *options: str) -> None:
    ended = scrapy("export", str(source), "-o", str(out), *options)
    assert ended.code == 0, ended.log


def test_a_split_and_a_condition_and_the_attribute_go_by_it(crawl, tmp_path):
    export(crawl, crawl.directory, tmp_path / "all.prevert", "--split", "distance")
    parts = {path.name: distances(path) for path in tmp_path.glob("*.prevert")}
    assert parts == {f"all.{n}.prevert": {host: {n} for host, distance in LAST.items() if distance == n} for n in "013"}
    export(crawl, crawl.directory, tmp_path / "three.jsonl", "--where", "distance=3")
    (line,) = (tmp_path / "three.jsonl").read_text("utf-8").splitlines()
    assert (json.loads(line)["url"], json.loads(line)["distance"]) == ("http://d.test/1", 3)
    # report and inspect say it
    with closing(Inspection(crawl.directory)) as opened:
        assert {host.name: str(host.distance) for host in hosts_of(opened).hosts} == LAST
        assert {group.group: group.hosts for group in status_of(opened).by_distance} == {
            "all": 4, "distance 0": 1, "distance 1": 2, "distance 3": 1,
        }  # fmt: skip
    assert "distance    3" in scrapy("inspect", str(crawl.directory), "host", "d.test").out


def test_a_file_alone_has_the_distances_of_the_fetch(crawl, tmp_path):
    (segment,) = (crawl.directory / "corpus").glob("*.prevert.zst")
    export(crawl, segment, tmp_path / "alone.prevert")
    assert distances(tmp_path / "alone.prevert") == distances(segment)
    assert all(
        set(found) == {LAST[host]} for host, found in distances(segment).items() if host in ("seed.test", "b.test")
    )


def test_readers_know_distances_and_lengths_that_are_newer_than_the_rows_of_the_hosts(tmp_path):
    """As a running crawl, or one that was killed, leaves them."""
    (tmp_path / "state").mkdir()
    store = SqliteStore(tmp_path / "state/frontier.sqlite")
    rows = [StoredHost(n, f"h{n}.cz", "ready", 9, documents=1, kept_bytes=n) for n in range(1, 21)]
    store.commit(Changes(hosts=rows, meta={"options": "{}"}))
    store.commit(Changes(host_updates=[(7, 5, 2, 20)]))
    with closing(Inspection(tmp_path)) as opened:
        assert opened.rows("SELECT waiting, distance FROM main.host WHERE id = 20") == [{"waiting": 0, "distance": 9}]
        assert opened.distances() == {f"h{n}.cz": 9 for n in range(1, 20)} | {"h20.cz": 2}
        assert hosts_of(opened, "h20").hosts[0].distance == 2
        assert hosts_of(opened, "h20").hosts[0].waiting == 7
        text = "\n".join(overview(status_of(opened)))
        assert "distance 2" in text and "distance 9" in text
        assert hosts_of(opened, "h20").hosts[0].parked == 5
    store.close()
