"""Whole crawls with near-duplicates on-line: dropped, marked, against earlier corpora, and through kills."""

from __future__ import annotations

import random
import signal
import time

import pytest
from conftest import SENTENCES, Crawl, crawled, serving

from spiderling.corpus.segments import read_documents
from webs.web import html

SEED = "http://near.test/"
SNAPSHOTS = {"extensions.lifecycle.SNAPSHOT_S": 1}  # constants by which there is a snapshot each second
ENGLISH = """When the cat came home it was already dark and everybody was asleep, only the dog was sitting by the door
and waiting for her because he was hungry.  In the kitchen she found a bowl of milk and a piece of bread that had been
left from dinner.  In the morning grandmother came and asked who had eaten it all, but nobody would admit to it and so
they all just laughed.  Then they went to the garden where the roses were blooming and the birds were singing."""
WORDS = " ".join(SENTENCES).split()


def paragraph(seed: object, words: int = 70) -> str:
    """Czech words in an order of their own: no two seeds share a shingle."""
    rng = random.Random(f"near {seed}")
    return " ".join(rng.choices(WORDS, k=words)).capitalize() + "."


def site(*pages: tuple[str, list[str]]) -> dict:
    """A start page that links to *pages* one after the other: each links to the next, so their order is fixed."""
    paths = [path for path, _ in pages]
    return {
        path: html("".join(f"<p>{text}</p>" for text in texts) + f"<ul><li><a href='{following}'>dál</a></ul>")
        for (path, texts), following in zip(pages, [*paths[1:], "/gone"], strict=True)
    }


SHARED = [paragraph(f"shared {number}") for number in range(3)]
NEW = [paragraph("new")]
SITE = site(
    ("/", [paragraph("start"), *SHARED]),
    ("/partly", [SHARED[0], paragraph("new"), SHARED[1]]),
    ("/nearly", [SHARED[0] + " Nakonec dodáváme dvě slova.", "Ano. " + SHARED[2], paragraph("crumb", 8)]),
    ("/new", [paragraph("other")]),
)


def crawl_of(directory, web=SITE, **settings) -> Crawl:
    return crawled(directory, {"near.test": web}, SEED, **{"DEDUP": "near", **settings})[0]


def texts(crawl: Crawl) -> dict[str, list[str]]:
    return {doc.url.removeprefix(SEED): doc.paragraphs for doc in crawl.documents()}


def test_only_new_text_is_kept_and_counts_as_yield(tmp_path):
    crawl = crawl_of(tmp_path / "job")
    assert texts(crawl) == {"": [paragraph("start"), *SHARED], "partly": NEW, "new": [paragraph("other")]}
    state = crawl.state()
    assert (state.ends["kept"], state.ends["near-duplicate"]) == (3, 1) and "duplicate" not in state.ends
    documents = crawl.documents()
    lengths = [len("\n".join(doc.paragraphs).encode()) for doc in documents]
    assert [int(doc.attributes["length"]) for doc in documents] == lengths
    words = [len(" ".join(doc.paragraphs).split()) for doc in documents]
    assert [int(doc.attributes["words"]) for doc in documents] == words
    assert state.hosts["near.test"]["kept_bytes"] == state.counts["total/kept_bytes"] == sum(lengths)


def test_a_document_is_in_the_language_of_what_is_left_of_it(tmp_path):
    """Notes in English on every page of a manual were the larger part of each, and gave it its language."""
    rng = random.Random("notes")
    notes = [" ".join(rng.choices(ENGLISH.split(), k=90)).capitalize() + "." for _ in range(3)]
    web = site(("/", notes), ("/manual", [*notes, paragraph("new")]))
    crawl = crawl_of(tmp_path / "job", web, lang="cs,en")
    found = {doc.url.removeprefix(SEED): doc.attributes["lang"] for doc in crawl.documents()}
    assert found == {"": "en", "manual": "cs"}
    assert texts(crawl)["manual"] == NEW


def test_marked_they_stay_and_count_no_yield(tmp_path):
    crawl = crawl_of(tmp_path / "job", DEDUP="mark")
    found = texts(crawl)
    assert len(found) == 4 and found["partly"] == [SHARED[0], *NEW, SHARED[1]]
    new = [paragraph("start"), *SHARED, *NEW, paragraph("other"), *found["nearly"][2:]]
    expected = sum(len(text.encode()) for text in new)
    assert crawl.state().counts["total/kept_bytes"] == pytest.approx(expected, abs=100)
    path = next(crawl.directory.glob("corpus/*.prevert.zst"))
    marked = {doc.attributes["url"]: ["dup" in one for one in doc.details] for doc in read_documents(path)}
    assert marked.pop(f"{SEED}partly") == [True, False, True]
    assert marked.pop(f"{SEED}nearly")[:2] == [True, True]
    assert not any(flag for flags in marked.values() for flag in flags)


def test_text_of_an_earlier_corpus_is_not_new(tmp_path):
    first = crawl_of(tmp_path / "first", site(("/", SHARED)))
    second = crawl_of(tmp_path / "second", SEEN=first.directory / "corpus")
    assert texts(second) == {"": [paragraph("start")], "partly": NEW, "new": [paragraph("other")]}


@pytest.mark.slow
def test_a_page_fetched_again_after_a_kill_is_not_its_own_duplicate(tmp_path):
    pages = [(f"/{number}" if number else "/", [paragraph(number), *SHARED[: number % 2]]) for number in range(30)]
    reference = crawl_of(tmp_path / "reference", site(*pages))
    with serving({"near.test": site(*pages)}) as server:
        crawl = Crawl(tmp_path / "job", server, DEDUP="near", CONSTANTS=SNAPSHOTS, HOST_INTERVAL_S=0.2)
        rng, kills = random.Random(5), 0
        for _ in range(4):
            running = crawl.start(SEED)
            enough = len(server.log_entries) + rng.randrange(5, 9)
            while running.process.poll() is None and len(server.log_entries) < enough:
                time.sleep(0.02)
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGKILL)
                kills += 1
            running.process.wait()
        assert crawl.run(SEED).code == 0
    assert kills
    assert texts(crawl) == texts(reference) and len(texts(crawl)) == 30


@pytest.mark.slow
def test_a_crawl_that_goes_on_remembers_each_document_once(tmp_path):
    """What the filter held at the pause, and the last checkpoint before it did not, was counted again at each start."""
    pages = [(f"/{number}" if number else "/", [paragraph(number)]) for number in range(12)]
    with serving({"near.test": site(*pages)}) as server:
        crawl = Crawl(tmp_path / "job", server, DEDUP="near", CONSTANTS={"extensions.lifecycle.CHECKPOINT_S": 60})
        for most in (4, 8, 0):
            ended = crawl.run(SEED, MAX_PAGES=most)
            assert ended.code == 0
            assert ended.lines("remembers", f"the text of {len(crawl.documents())} documents in"), ended.output
    assert len(crawl.documents()) == 12


def test_acknowledged_text_that_is_missing_is_told_before_it_is_read_for_the_filter(tmp_path):
    crawl = crawl_of(tmp_path / "job")
    for path in (crawl.directory / "state" / "shingles").iterdir():
        path.unlink()
    next(crawl.directory.glob("corpus/*.prevert.zst")).unlink()
    ended = crawl.run()
    assert ended.code == 1
    assert ended.lines("ERROR", "were acknowledged")
    assert "Restore it from a backup" in ended.output and "Traceback" not in ended.output
