"""Conversion in a child process: it may use so much and no more, and takes nobody with it."""

from __future__ import annotations

import os
import tarfile
import time
from contextlib import suppress

import made_documents as made
import pytest
from needs import DATA, needs

from benchmarks.faults import children
from spiderling.base.files import zstd
from spiderling.base.media_types import of_content
from spiderling.base.options import Options
from spiderling.text import Page, clean_text
from spiderling.text.documents import ConvertedDocument, DocumentError
from spiderling.text.html.blocks import Block
from spiderling.workers import converter
from spiderling.workers.converter import Limits, convert
from spiderling.workers.pool import Task, WorkerConfig, WorkerPool, text_process

CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. "
LIMITS = Limits(wall_s=120, cpu_s=2)


@pytest.fixture
def behaving(monkeypatch):
    """Make the conversion of docx do something else."""

    def behave(function) -> None:
        monkeypatch.setattr(converter, "CONVERTERS", {"docx": function})

    return behave


@pytest.fixture(autouse=True)
def no_child_is_left():
    before = set(children(os.getpid()))
    yield
    assert set(children(os.getpid())) <= before


def test_the_document_comes_back_whole():
    document = convert("docx", made.docx(["#Nadpis", CZECH]), LIMITS)
    assert document.blocks == [Block("Nadpis", True, 0), Block(CZECH.strip(), False, 0)]
    assert (document.title, document.lang, document.meta["author"]) == ("Kočka & pes", "cs-CZ", "A. B.")


def test_many_blocks_and_any_text_come_back(behaving):
    assert len(convert("docx", made.docx([CZECH] * 10_000), LIMITS).blocks) == 10_000
    made_up = ConvertedDocument([Block("ž\u2028", True, 0), Block("x" * 100_000, False, 7)], "t", {"a": "b"}, None)
    behaving(lambda body: made_up)
    assert convert("docx", b"", LIMITS) == made_up


def raising(error):
    def function(body):
        raise error

    return function


def hanging(last_words):
    def function(body):
        os.write(1, last_words)
        time.sleep(600)

    return function


def answering(answer, status=0):
    def function(body):
        with os.fdopen(1, "wb") as out:
            out.write(answer)
        os._exit(status)

    return function


def staying(body):
    os.close(1)
    time.sleep(600)


ANSWERS = (b"", b"[]", b"{}", b"[1,2,3,4]", b'["",{},null,[[1]]]', b"[" * 100_000, b"\xff")
NO_DOCUMENT = {
    **{repr(error): (raising(error), LIMITS)
       for error in (DocumentError("x"), ValueError("x"), RecursionError(), KeyboardInterrupt())},
    "it crashes": (lambda body: os.abort(), LIMITS),
    "it hangs": (hanging(b""), Limits(wall_s=0.3)),
    "it hangs amid its answer": (hanging(b"half an answer"), Limits(wall_s=0.3)),
    "it closes its output and stays": (staying, Limits(wall_s=30)),
    "it fails behind a whole answer": (answering(b'["", {}, null, [["text", false, 0]]]', 1), LIMITS),
    **{f"it answers {answer[:20]}": (answering(answer), LIMITS) for answer in ANSWERS},
}  # fmt: skip
"""What becomes of a child -> the conversion, and its limits."""


@pytest.mark.parametrize(("function", "limits"), NO_DOCUMENT.values(), ids=NO_DOCUMENT)
def test_whatever_becomes_of_the_child_it_ends_alone(behaving, function, limits):
    behaving(function)
    assert convert("docx", b"", limits) is None


def test_the_limit_of_memory(behaving):
    behaving(lambda body: ConvertedDocument([Block(str(len(bytearray(int(body)))), False, 0)]))
    limits = Limits(memory_bytes=200_000_000)
    assert convert("docx", b"100000000", limits).blocks[0].text == "100000000"
    assert convert("docx", b"300000000", limits) is None


def test_the_limit_of_processor_time(behaving):
    def burn(body):
        while True:
            pass

    behaving(burn)
    start = os.times()
    assert convert("docx", b"", Limits(wall_s=60, cpu_s=1)) is None
    end = os.times()
    assert end.children_user + end.children_system - start.children_user - start.children_system < 3


def test_a_child_that_floods_is_killed_at_once(behaving, monkeypatch):
    """It has not ended by itself, so it does not get the seconds in which one that has said everything may end."""

    def flood(body):
        with suppress(BrokenPipeError):
            while True:
                os.write(1, bytes(1 << 16))
        time.sleep(600)

    monkeypatch.setattr(converter, "LAST_S", 600)
    monkeypatch.setattr(converter, "MAX_OUTPUT_BYTES", 1_000_000)
    behaving(flood)
    assert convert("docx", b"", LIMITS) is None


def test_no_file_can_be_written(behaving, tmp_path):
    def write(body):
        (tmp_path / "a").write_bytes(b"x")
        return ConvertedDocument([Block("written", False, 0)])

    behaving(write)
    assert convert("docx", b"", LIMITS) is None
    assert [path.stat().st_size for path in tmp_path.iterdir()] in ([], [0])


@needs("/proc")
def test_the_worker_s_files_are_closed(behaving):
    behaving(lambda body: ConvertedDocument([Block(" ".join(sorted(os.listdir("/proc/self/fd"))), False, 0)]))
    assert convert("docx", b"", LIMITS).blocks[0].text.split() == ["0", "1", "2", "3"]  # 3 is the directory itself


# -- in a text worker


def found_by_worker(body: bytes, documents: str) -> Page:
    config = WorkerConfig.from_options(Options(documents=documents), ["cs"], ["cs", "en"])
    return text_process(config)(Task(body, "http://127.0.0.1/a"))


def test_documents_are_converted_where_they_are_wanted():
    page = found_by_worker(made.docx([CZECH * 2]), "docx")
    assert (page.file_type, page.language, clean_text(page.paragraphs)) == ("docx", "cs", (CZECH * 2).strip())
    assert found_by_worker(f"<p>{CZECH * 2}".encode(), "docx").file_type == "html"
    for documents in ("", "odt"):
        assert found_by_worker(made.docx([CZECH * 2]), documents).file_type == "html"


def test_a_broken_document_is_undecodable():
    page = found_by_worker(made.docx([CZECH])[:-100], "docx")
    assert (page.file_type, page.encoding_detected) == ("docx", None)


async def test_documents_in_worker_processes():
    pool = WorkerPool(1, WorkerConfig.from_options(Options(documents="docx,odt"), ["cs"], ["cs"]), 20.0)
    await pool.start()
    tasks = [Task(getattr(made, kind)([CZECH * 2]), "http://127.0.0.1/") for kind in ("docx", "odt", "docx")]
    pages = [await pool.process(task) for task in tasks]
    await pool.stop()
    assert [(page.file_type, page.language, page.words) for page in pages] == [
        (kind, "cs", 2 * len(CZECH.split())) for kind in ("docx", "odt", "docx")
    ]


# -- real files, where they are at hand

FLOORS = {
    "pdf": (18, 21_000), "docx": (21, 2_300), "odt": (22, 1_650), "epub": (11, 64_000)
}  # fmt: skip
"""Files with text, words in all of them; some files are broken, empty, hidden by a style or mislabelled on purpose."""


@needs("real documents")
@pytest.mark.slow
def test_real_documents():
    found: dict[str, list[int]] = {kind: [] for kind in FLOORS}
    with zstd.open(DATA / "docs/documents.tar.zst") as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            body = stream.read() if stream else b""
            kind = of_content(body)
            if kind not in FLOORS:
                continue
            document = convert(kind, body, Limits(wall_s=120, cpu_s=60))
            if document is not None:
                found[kind].append(sum(len(block.text.split()) for block in document.blocks))
    sums = {kind: (sum(map(bool, words)), sum(words)) for kind, words in found.items()}
    assert all(files >= FLOORS[kind][0] and words >= FLOORS[kind][1] for kind, (files, words) in sums.items()), sums
