"""Near-duplicate paragraphs: the filter, the rule, and the durable form."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
import tracemalloc
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from spiderling.base.options import Options
from spiderling.corpus.duplicates import (
    BYTES_PER_SHINGLE,
    FIRST_BYTES,
    MAX_SEEN_SHARE,
    Keys,
    NearDuplicates,
    ShingledDocument,
    ShingleFilter,
    ShingleState,
)
from spiderling.corpus.segments import SegmentWriter
from spiderling.crawl.crawl import Crawl
from spiderling.text.fingerprints import ODD, Shingles, shingles

MEGABYTE = 1 << 20
ROOM = 64 * MEGABYTE
KEY = count()


def drawn(number: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 64, number, np.uint64)


def add(seen: ShingleFilter, hashes: np.ndarray) -> None:
    seen.remember(Keys.of(hashes))


def finds(seen: ShingleFilter, hashes: np.ndarray) -> np.ndarray:
    return seen.seen(Keys.of(hashes))


def text(rng: random.Random, words: int, vocabulary: int = 3000) -> str:
    return " ".join(f"w{rng.randrange(vocabulary)}" for _ in range(words))


# -- the filter


@pytest.fixture(scope="module")
def grown() -> tuple[ShingleFilter, list[np.ndarray], list[float]]:
    """A filter that begins its third layer, what it was given, and its bytes a shingle behind the first layer."""
    seen, parts, rates = ShingleFilter(ROOM), [drawn(100_000, seed) for seed in range(105)], []
    for number, part in enumerate(parts, 1):
        add(seen, part)
        rates += [seen.bytes / (number * len(part))] if len(seen.layers) > 1 else []
    return seen, parts, rates


def test_what_was_added_was_seen_and_little_else_and_memory_doubles(grown):
    seen, parts, rates = grown
    assert all(finds(seen, part).all() for part in parts)
    assert len(seen.layers) == 3 and seen.documents == len(parts)
    assert finds(seen, drawn(200_000, 9999)).mean() < 0.0085
    assert [layer.words.nbytes for layer in seen.layers] == [FIRST_BYTES, FIRST_BYTES, 2 * FIRST_BYTES]
    assert max(rates) == pytest.approx(2 * BYTES_PER_SHINGLE, rel=0.03)
    assert min(rates) == pytest.approx(BYTES_PER_SHINGLE, rel=0.03)


@pytest.mark.slow
def test_all_places_of_a_full_layer_err_as_rarely_as_is_said():
    seen = ShingleFilter(ROOM)
    for seed in range(int(FIRST_BYTES / BYTES_PER_SHINGLE / 100_000)):
        add(seen, drawn(100_000, seed))
    (full,) = seen.layers
    strangers = drawn(1_000_000, 9999)
    strangers.sort()  # by their places
    for part in np.split(full.seen(Keys.of(strangers)), 4):
        assert part.mean() == pytest.approx(1 / 330, rel=0.2)
    bits = np.unpackbits(full.words.view(np.uint8)).mean()
    assert 1 - bits == pytest.approx(np.exp(-6 / (8 * BYTES_PER_SHINGLE)), rel=0.02)


@pytest.mark.slow
def test_a_filter_that_may_grow_no_more_counts_a_sample_and_forgets_the_oldest():
    seen = ShingleFilter(3 * MEGABYTE)
    first, parts = drawn(1000, 77), [drawn(1000, seed) for seed in range(1000, 9000)]
    add(seen, first)
    for part in parts:
        add(seen, part[seen.counted(Shingles(part, np.array([1000], np.uint32)))])
    assert seen.bytes <= 3 * MEGABYTE and seen.is_sampling
    assert seen.forgotten > 0 and seen.documents + seen.forgotten == 8001
    assert finds(seen, first).mean() < 0.1, "forgotten"
    last = parts[-1]
    counted = seen.counted(Shingles(last, np.array([1000], np.uint32)))
    assert 0.2 < counted.mean() < 0.3
    assert finds(seen, last)[counted].all()
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


def test_a_document_counts_while_it_is_pending_and_if_it_is_kept():
    near, rng = NearDuplicates(ShingleFilter(ROOM)), random.Random(1)
    paragraph, other = text(rng, 40), text(rng, 40)
    assert not near.judge("first", shingles([paragraph])).any()
    assert near.judge("second", shingles([paragraph])).all()
    near.settle("first", kept=False)
    assert judged(near, paragraph) == [False]
    assert judged(near, paragraph, other, other) == [True, False, True]
    assert judged(near) == [] and judged(near, "") == [False]


@given(st.lists(st.lists(st.sampled_from(["a b c", "d", "e f", "a b c d e f g h i j", ""]), max_size=6), max_size=9))
def test_paragraphs_that_repeat_and_embrace_each_other(document):
    """A round of comparisons settles one paragraph after the other; onion goes through them once."""
    paragraphs = [" ".join(parts) for parts in document]
    near = NearDuplicates(ShingleFilter(ROOM))
    assert judged(near, *paragraphs) == [
        bool(text.split()) and wanted for text, wanted in zip(paragraphs, reference([paragraphs])[0], strict=True)
    ]


def test_what_another_shard_has_kept_is_a_duplicate():
    """Also if a few words were changed; of a paragraph three shingles are told, so it need not be found."""
    one, other = (NearDuplicates(ShingleFilter(ROOM), has_others=True) for _ in range(2))
    rng = random.Random(1)
    long, longer, new = text(rng, 40), text(rng, 80), text(rng, 30)
    document = shingles([long, "", longer, "Tento nadpis", long])
    for kept, expected in ((False, [False] * 4), (True, [True, True, True, False])):
        one.judge("first", document)
        other.learn(one.settle("first", kept))
        found = other.judge("second", shingles([longer, "Tento nadpis", long, new]))
        assert found.tolist() == expected
        told = other.settle("second", kept=False)
    assert len(told) == 0 and other.filter.documents == 0, "it has no document of its own"
    changed = [f"{word} {longer} {new.split()[0]}" for word in new.split()[:9]]
    assert other.judge("third", shingles([changed[0], new, text(rng, 40)])).tolist() == [True, False, False]
    assert len(other.settle("third", kept=True)) == 6 and len(one.settle("unknown", kept=True)) == 0
    assert one.judge("fourth", shingles([long, new, "Ano."])).tolist() == [True, False, False]
    assert len(one.settle("fourth", kept=True)) == 3 + 1, "only what was new is told"


def test_text_that_only_shares_a_part_with_that_of_another_shard_is_no_duplicate():
    one, other = (NearDuplicates(ShingleFilter(ROOM), has_others=True) for _ in range(2))
    rng = random.Random(1)
    found = 0
    for number in range(300):
        shared = text(rng, 12)
        one.judge(number, shingles([shared + " " + text(rng, 30)]))
        other.learn(one.settle(number, kept=True))
        found += int(other.judge(number, shingles([shared + " " + text(rng, 30)])).sum())
    assert found < 30, "of six in thirty-six shingles two of the three least are the same by chance"


def test_other_shards_change_nothing_for_text_of_our_own():
    near, alone = NearDuplicates(ShingleFilter(ROOM), has_others=True), NearDuplicates(ShingleFilter(ROOM))
    rng = random.Random(2)
    pool = [text(rng, 40) for _ in range(30)]
    for _ in range(300):
        words = rng.choice(pool).split()
        document = [" ".join(words[: rng.randrange(1, 40)] + text(rng, rng.randrange(40)).split()), rng.choice(pool)]
        assert judged(near, *document) == judged(alone, *document)


def test_without_other_shards_nothing_is_told():
    near = NearDuplicates(ShingleFilter(ROOM))
    near.judge("first", shingles([text(random.Random(1), 40)]))
    assert len(near.settle("first", kept=True)) == 0


def test_a_hostile_document_takes_no_longer_than_its_length():
    """Each paragraph is a duplicate exactly if the one before is none."""
    words = [f"{number:x}" for number in range(40_000)]
    chain = [" ".join(words[n * 4 : n * 4 + 12]) for n in range(9_000)]
    near = NearDuplicates(ShingleFilter(ROOM))
    begin = time.process_time()
    judged(near, *chain)
    assert time.process_time() - begin < 60


def test_a_heading_is_taken_for_seen_by_two_chances_only(grown):
    seen, _, _ = grown
    even = drawn(200_000, 9999) & ~ODD
    by_one, by_two = ShingledDocument.of(even).seen(seen).mean(), ShingledDocument.of(even | ODD).seen(seen).mean()
    assert by_one > 0.003 and by_two < by_one / 20
    near = NearDuplicates(ShingleFilter(ROOM))
    assert judged(near, "Tento nadpis") == [False] and judged(near, "Tento nadpis") == [True]
    assert judged(near, "a b c d e f g h i") == [False] and judged(near, "b c d e f g h") == [True], "no heading"


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
    return [number for number, paragraph in enumerate(PARAGRAPHS) if finds(seen, shingles([paragraph]).hashes).all()]


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
        add(seen, shingles([PARAGRAPHS[number]]).hashes)
    snapshot(tmp_path / "state", seen, lengths[4])
    restored = ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[-1])
    assert known(restored) == [*range(5, 20), 30, 31] and restored.documents == 17


def test_a_snapshot_takes_little_memory_beside_the_filter(tmp_path):
    """A copy of a large layer would stay with the allocator until the next snapshot."""
    seen = ShingleFilter(ROOM)
    for seed in range(8):
        add(seen, drawn(int(MEGABYTE / BYTES_PER_SHINGLE), seed))
    assert seen.layers[-1].words.nbytes == 8 * MEGABYTE
    tracemalloc.start()
    try:
        ShingleState(tmp_path / "shingles", ROOM).write_layers(seen)
        assert tracemalloc.get_traced_memory()[1] < 4 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_layers_that_did_not_change_are_not_written_again(tmp_path):
    seen = ShingleFilter(4 * MEGABYTE)
    for seed in range(1500):
        add(seen, drawn(1000, seed))
    snapshot(tmp_path, seen, {})
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.zst")}
    add(seen, drawn(1000, 5000))
    snapshot(tmp_path, seen, {})
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.zst")}
    assert len(before) == len(after) == 3
    assert len(before.items() & after.items()) == 2
    assert finds(ShingleState(tmp_path, ROOM).load_filter(tmp_path, {}), drawn(1000, 5000)).all()


@pytest.mark.slow
def test_a_filter_that_was_read_grows_as_if_it_had_never_been_written(grown, tmp_path):
    whole, parts, _ = grown
    seen = ShingleFilter(ROOM)
    for part in parts[:80]:
        add(seen, part)
    snapshot(tmp_path, seen, {})
    assert 1 < len(seen.layers) < 3
    restored = ShingleState(tmp_path, ROOM).load_filter(tmp_path, {})
    for part in parts[80:]:
        add(restored, part)
    assert (restored.bytes, restored.documents) == (whole.bytes, whole.documents)
    assert all((one.words == other.words).all() for one, other in zip(restored.layers, whole.layers, strict=True))


def test_a_snapshot_of_an_earlier_version_is_made_anew_from_the_corpus(corpus, tmp_path, caplog):
    directory, lengths = corpus
    state = tmp_path / "state"
    snapshot(state, ShingleFilter(ROOM), {})
    entry = {"file": "000000-88.zst", "words": 1 << 17, "shingles": 88, "documents": 2}
    (state / entry["file"]).write_bytes(zstd.compress(bytes(1 << 20)))
    index = {"layers": [entry], "covered": lengths[4], "forgotten": 0, "loaded": []}
    (state / "index.json").write_text(json.dumps(index))
    with caplog.at_level("INFO"):
        seen = ShingleState(state, ROOM).load_filter(directory, lengths[11])
    assert known(seen) == list(range(12))
    assert "The near-duplicate filter was written by another version; it is made anew from the corpus" in caplog.text
    snapshot(state, seen, lengths[11])
    caplog.clear()
    assert known(ShingleState(state, ROOM).load_filter(directory, lengths[11])) == list(range(12))
    assert not caplog.text and not (state / entry["file"]).exists()


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
    """One that covers too much, because text was set aside, is not taken up when other text is as long."""
    directory, lengths = corpus
    seen = ShingleFilter(ROOM)
    add(seen, shingles([PARAGRAPHS[39]]).hashes)
    snapshot(tmp_path / "state", seen, lengths[9] if harm == "covers too much" else {})
    layer = next((tmp_path / "state").glob("*.zst"))
    if harm == "index":
        (tmp_path / "state" / "index.json").write_text("{")
    elif harm == "layer":
        layer.write_bytes(layer.read_bytes()[:-7])
    elif harm == "missing":
        layer.unlink()
    for number in (4, 11):
        restored = ShingleState(tmp_path / "state", ROOM).load_filter(directory, lengths[number])
        assert known(restored) == list(range(number + 1))


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
