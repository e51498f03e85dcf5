"""Near-duplicate paragraphs: the filter, the rule, and the durable form."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import tracemalloc
from itertools import count

import numpy as np
import pytest

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.corpus.near_duplicates import (
    BYTES_PER_SHINGLE,
    FIRST_BYTES,
    MAX_SEEN_SHARE,
    NearDuplicates,
    ShingleFilter,
)
from spiderling.corpus.segments import SegmentWriter
from spiderling.corpus.shingle_snapshot import ShingleState
from spiderling.crawl.crawl import Crawl
from spiderling.text.shingles import Shingles, shingles

MEGABYTE = 1 << 20
ROOM = 64 * MEGABYTE
KEY = count()


def drawn(number: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 64, number, np.uint64)


def text(rng: random.Random, words: int, vocabulary: int = 3000) -> str:
    return " ".join(f"w{rng.randrange(vocabulary)}" for _ in range(words))


# -- the filter


def test_what_was_added_was_seen_and_little_else():
    seen = ShingleFilter(ROOM)
    parts = [drawn(1000, seed) for seed in range(1500)]
    for part in parts:
        seen.remember(part)
    assert all(seen.seen(part).all() for part in parts)
    assert len(seen.layers) == 2 and seen.documents == 1500
    assert seen.seen(drawn(200_000, 9999)).mean() < 0.006
    assert seen.bytes < 64 * MEGABYTE


def test_one_full_layer_errs_as_rarely_as_is_said():
    seen = ShingleFilter(ROOM)
    for seed in range(int(FIRST_BYTES / BYTES_PER_SHINGLE / 1000)):
        seen.remember(drawn(1000, seed))
    assert len(seen.layers) == 1
    assert seen.seen(drawn(500_000, 9999)).mean() == pytest.approx(1 / 450, rel=0.2)


def test_a_filter_that_may_grow_no_more_counts_a_sample_and_forgets_the_oldest():
    seen = ShingleFilter(6 * MEGABYTE)
    first, parts = drawn(1000, 77), [drawn(1000, seed) for seed in range(1000, 9000)]
    seen.remember(first)
    for part in parts:
        seen.remember(part[seen.counted(Shingles(part, np.array([1000], np.uint32)))])
    assert seen.bytes <= 6 * MEGABYTE and seen.is_sampling
    assert seen.forgotten > 0 and seen.documents + seen.forgotten == 8001
    assert seen.seen(first).mean() < 0.1, "forgotten"
    last = parts[-1]
    counted = seen.counted(Shingles(last, np.array([1000], np.uint32)))
    assert 0.2 < counted.mean() < 0.3
    assert seen.seen(last)[counted].all()
    assert seen.counted(Shingles(last[:10], np.array([3, 7], np.uint32))).all(), "short paragraphs count as a whole"


# -- the rule


def judged(near: NearDuplicates, *paragraphs: str, kept: bool = True) -> list[bool]:
    key = next(KEY)
    duplicate = near.judge(key, shingles(paragraphs)).tolist()
    near.settle(key, kept)
    return duplicate


def reference(documents: list[list[str]]) -> list[list[bool]]:
    """onion, by a set of tuples."""
    seen: set[tuple[str, ...]] = set()
    verdicts = []
    for document in documents:
        verdict = []
        for words in map(str.split, document):
            runs = [tuple(words[start : start + 7]) for start in range(max(1, len(words) - 6))]
            duplicate = sum(run in seen for run in runs) > MAX_SEEN_SHARE * len(runs)
            if not duplicate:
                seen.update(runs)
            verdict.append(duplicate)
        verdicts.append(verdict)
    return verdicts


def test_same_decisions_as_a_plain_reference():
    rng = random.Random(3)
    documents: list[list[str]] = []
    pool = [text(rng, rng.randint(1, 60)) for _ in range(300)]
    for _ in range(400):
        document = []
        for _ in range(rng.randint(1, 8)):
            old = rng.choice(pool).split()
            start = rng.randrange(len(old))
            document.append(" ".join(old[start:] + text(rng, rng.choice([0, 0, 3, 10, 30])).split()) or "w1")
        documents.append(document)
    near = NearDuplicates(ShingleFilter(ROOM))
    ours, theirs = [judged(near, *document) for document in documents], reference(documents)
    flat = [pair for ours_, theirs_ in zip(ours, theirs, strict=True) for pair in zip(ours_, theirs_, strict=True)]
    differing = sum(one != other for one, other in flat)
    assert 0.2 < sum(other for _, other in flat) / len(flat) < 0.8
    # by chance a shingle is taken for seen; a paragraph of one shingle has no second to outvote it
    assert differing <= 0.005 * len(flat)


def test_a_document_that_is_not_kept_makes_no_other_a_duplicate():
    near, paragraph = NearDuplicates(ShingleFilter(ROOM)), text(random.Random(1), 40)
    assert judged(near, paragraph, kept=False) == [False]
    assert judged(near, paragraph) == [False]
    assert judged(near, paragraph) == [True]


def test_a_document_on_its_way_counts_already():
    near, paragraph = NearDuplicates(ShingleFilter(ROOM)), text(random.Random(1), 40)
    assert not near.judge("first", shingles([paragraph])).any()
    assert near.judge("second", shingles([paragraph])).all()
    near.settle("first", kept=False)
    assert not near.judge("third", shingles([paragraph])).any()


def test_a_paragraph_repeated_in_its_document():
    near, rng = NearDuplicates(ShingleFilter(ROOM)), random.Random(1)
    paragraph = text(rng, 40)
    assert judged(near, paragraph, text(rng, 40), paragraph) == [False, False, True]
    assert judged(near) == [] and judged(near, "") == [False]


# -- the durable form

PARAGRAPHS = [text(random.Random(number), 50) for number in range(40)]


def rendered(number: int, attributes: str = "") -> bytes:
    return f'<doc id="{number}">\n<p class="good"{attributes}>\n{PARAGRAPHS[number]}\n</p>\n</doc>\n'.encode()


@pytest.fixture
def corpus(tmp_path):
    """Two segments of ten documents each, one by one."""
    writer = SegmentWriter(tmp_path, "cs", 10 * len(rendered(0)))
    lengths = []
    for number in range(20):
        row = writer.append([rendered(number)])
        lengths.append({**(lengths[-1] if lengths else {}), row.name: row.length_bytes})
    writer.close()
    return tmp_path, lengths


def known(seen: ShingleFilter) -> list[int]:
    return [number for number, paragraph in enumerate(PARAGRAPHS) if seen.seen(shingles([paragraph]).hashes).all()]


def test_rebuilt_from_the_corpus_alone(corpus, tmp_path):
    directory, lengths = corpus
    assert len(lengths[-1]) > 1
    seen = ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[11])
    assert known(seen) == list(range(12)) and seen.documents == 12, "and nothing that was not acknowledged"


def snapshot(directory, seen: ShingleFilter, covered: dict[str, int]) -> ShingleState:
    state = ShingleState(directory, ROOM)
    state.write_index(seen, state.write_layers(seen), covered)
    return state


def test_a_snapshot_and_the_text_behind_it(corpus, tmp_path):
    directory, lengths = corpus
    seen = ShingleFilter(ROOM)
    for number in (30, 31):  # in the snapshot alone
        seen.remember(shingles([PARAGRAPHS[number]]).hashes)
    snapshot(tmp_path / "state", seen, lengths[4])
    restored = ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[-1])
    assert known(restored) == [*range(5, 20), 30, 31] and restored.documents == 17


def test_a_snapshot_takes_little_memory_beside_the_filter(tmp_path):
    """A copy of a large layer would stay with the allocator until the next snapshot."""
    seen = ShingleFilter(ROOM)
    for seed in range(8):
        seen.remember(drawn(int(MEGABYTE / BYTES_PER_SHINGLE), seed))
    assert seen.layers[-1].words.nbytes >= 16 * MEGABYTE
    tracemalloc.start()
    try:
        ShingleState(tmp_path / "shingles", ROOM).write_layers(seen)
        assert tracemalloc.get_traced_memory()[1] < 4 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_a_snapshot_of_text_that_was_set_aside_is_not_taken_up_when_other_text_is_as_long(corpus, tmp_path):
    """After a restored state the corpus is shorter than the snapshot says; then it grows again, and a kill comes."""
    directory, lengths = corpus
    seen = ShingleFilter(ROOM)
    seen.remember(shingles([PARAGRAPHS[39]]).hashes)
    snapshot(tmp_path / "state", seen, lengths[9])
    assert known(ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[4])) == list(range(5))
    assert known(ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[11])) == list(range(12))


def test_layers_that_did_not_change_are_not_written_again(tmp_path):
    seen = ShingleFilter(ROOM)
    for seed in range(600):
        seen.remember(drawn(1000, seed))
    snapshot(tmp_path, seen, {})
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.zst")}
    seen.remember(drawn(1000, 5000))
    snapshot(tmp_path, seen, {})
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.zst")}
    assert len(before) == len(after) == 2
    assert len(before.items() & after.items()) == 1
    assert ShingleState(tmp_path, ROOM).load_filter(tmp_path, {}).seen(drawn(1000, 5000)).all()


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_the_last_snapshot_waits_for_the_one_that_is_being_written(tmp_path, monkeypatch, is_cancelled):
    """Both write the same part file: the one that renames it first takes it from the other, which fails the crawl."""
    begun, may_go_on, sync = threading.Event(), threading.Event(), os.fsync

    def slow(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".part") and not begun.is_set():
            begun.set()
            assert may_go_on.wait(60)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    crawl = Crawl(Options(lang="cs", allow_networks="127.0.0.0/8"), tmp_path / "job", pytest.fail)
    judged(crawl.near, PARAGRAPHS[0])
    periodic = asyncio.ensure_future(crawl.snapshot())
    assert await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
    judged(crawl.near, PARAGRAPHS[1])
    if is_cancelled:
        periodic.cancel()
    closing = asyncio.ensure_future(crawl.close())
    await asyncio.wait([closing], timeout=0.5)  # long enough for a close that waits for nobody
    late = asyncio.ensure_future(crawl.snapshot())
    may_go_on.set()
    await closing
    await asyncio.gather(periodic, late, return_exceptions=is_cancelled)
    await crawl.snapshot()
    assert {path.suffix for path in (tmp_path / "job/state/shingles").iterdir()} == {".json", ".zst"}
    assert known(ShingleState(tmp_path / "job/state/shingles", ROOM).load_filter(tmp_path, {})) == [0, 1]


@pytest.mark.parametrize("harm", ["index", "layer", "missing", "covers too much"])
def test_a_broken_snapshot_is_made_up_from_the_corpus(corpus, tmp_path, harm):
    directory, lengths = corpus
    seen = ShingleFilter(ROOM)
    seen.remember(shingles([PARAGRAPHS[39]]).hashes)
    snapshot(tmp_path / "state", seen, lengths[-1] if harm == "covers too much" else {})
    layer = next((tmp_path / "state").glob("*.zst"))
    if harm == "index":
        (tmp_path / "state" / "index.json").write_text("{")
    elif harm == "layer":
        layer.write_bytes(layer.read_bytes()[:-7])
    elif harm == "missing":
        layer.unlink()
    restored = ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[9])
    assert known(restored) == list(range(10))


def test_earlier_corpora_are_loaded_once(corpus, tmp_path):
    directory, _ = corpus
    state, seen = ShingleState(tmp_path / "state", ROOM), ShingleFilter(ROOM)
    assert state.load_corpora(seen, [str(directory)]) == 20
    assert known(seen) == list(range(20))
    assert state.load_corpora(seen, [str(directory)]) == 0
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="is no corpus"):
        state.load_corpora(seen, [str(tmp_path / "empty")])
    (tmp_path / "torn.prevert.zst").write_bytes(b"no zstd")
    with pytest.raises(BadInput, match=r"torn\.prevert\.zst cannot be read"):
        state.load_corpora(seen, [str(tmp_path / "torn.prevert.zst")])


def test_marked_duplicates_are_not_new_text(tmp_path):
    (tmp_path / "old.prevert").write_bytes(rendered(1, ' dup="1"') + rendered(2))
    seen = ShingleFilter(ROOM)
    ShingleState(tmp_path / "state", ROOM).load_corpora(seen, [str(tmp_path)])
    assert known(seen) == [2]
