"""The examples that stand beside the demo: the notebook, and the steps for datatrove."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from needs import needs

import spiderling
from spiderling.text.prevertical import render, render_attributes

ROOT = Path(__file__).parent.parent
BOOKS = sorted(ROOT.glob("examples/notebooks/*.ipynb"))
CELL_S = 300  # longest time for a cell


# -- notebooks


@needs("nbclient")
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_output(path):
    import nbformat

    book = nbformat.read(path, 4)
    nbformat.validate(book)
    assert [cell for cell in book.cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.slow
@needs("nbclient")
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end(path):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, 4)
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, timeout=CELL_S, kernel_name="python3", resources=place).execute()
    said = "".join(str(output) for cell in book.cells for output in cell.get("outputs", ()))
    for wanted in ("The report is in", "documents in", "portal.test", "# The wolf", "redirected"):
        assert wanted in said


# -- datatrove

PAGE = """<html><body><nav><a href="/">Home</a> <a href="/b">All news</a></nav>
<p>The wolf said that he would come back in the evening, and he went home through the dark forest.</p>
<p>In the evening he came back, as he had said, and all the others were waiting for him there.</p></body></html>"""


@pytest.fixture
def corpus(tmp_path) -> Path:
    documents = [
        render(
            {"id": f"{number:016x}", "url": f"http://a.cz/{number}", "lang": "cs", "words": "2"},
            [(f"Text {number}.", render_attributes({"class": "good"})), ("Konec.", "")] if number != 3 else [],
        )
        for number in range(10)
    ]
    path = tmp_path / "c.prevert"
    path.write_text("".join(documents), "utf-8")
    return path


@needs("datatrove")
@pytest.mark.parametrize("tasks", [1, 3, 12])
def test_datatrove_reads_each_document_in_one_task(corpus, tasks):
    from examples.datatrove_steps import SpiderlingReader

    found = [list(SpiderlingReader(str(corpus)).run(rank=rank, world_size=tasks)) for rank in range(tasks)]
    every = sorted((document for part in found for document in part), key=lambda document: document.id)
    assert [document.id for document in every] == [f"{number:016x}" for number in range(10) if number != 3]
    assert (every[1].text, every[1].metadata["url"]) == ("Text 1.\nKonec.", "http://a.cz/1")
    assert max(map(len, found)) - min(map(len, found)) <= 2


@needs("datatrove")
def test_datatrove_takes_a_limit_and_what_a_step_before_gave(corpus):
    from datatrove.data import Document

    from examples.datatrove_steps import SpiderlingReader

    before = Document(text="first", id="0")
    reader = SpiderlingReader(str(corpus), str(corpus), limit=3, skip=8, default_metadata={"set": "c"})
    found = list(reader.run(iter([before])))
    assert [document.id[-1] for document in found] == ["0", "9", "0", "1"]
    assert [document.metadata.get("set") for document in found] == [None, "c", "c", "c"]


@pytest.mark.slow
@needs("datatrove")
def test_datatrove_has_the_text_of_the_library(tmp_path):
    from datatrove.data import Document
    from datatrove.executor import LocalPipelineExecutor

    from examples.datatrove_steps import SpiderlingExtractor

    pages = [PAGE, "<p>OK</p>", "no page but a text", "/etc/passwd", ""]
    found = list(SpiderlingExtractor("en").run(Document(text=page, id=str(n)) for n, page in enumerate(pages)))
    assert [(document.id, document.text) for document in found] == [("0", spiderling.extract(PAGE, "en").text)]
    assert found[0].text.count("\n") == 1

    given = [Document(text=page, id=str(number)) for number, page in enumerate(pages)]
    taken = []

    def take(documents, rank, world_size):
        for document in documents:
            taken.append(document.text)
            yield document

    LocalPipelineExecutor([given, SpiderlingExtractor("en"), take], logging_dir=str(tmp_path / "logs")).run()
    assert taken == [found[0].text]


@pytest.mark.slow
@needs("datatrove's MinHash")
def test_datatrove_keeps_one_of_two_documents_that_are_similar_as_a_whole(tmp_path, monkeypatch):
    from examples import datatrove_minhash

    texts = [" ".join(f"{letter}{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10]}" for n in range(100)) for letter in "xyz"]
    texts.append(texts[1].replace(" yak ", " other "))
    source = tmp_path / "c.prevert"
    source.write_text("".join(render({"id": f"{n}"}, [(text, "")]) for n, text in enumerate(texts)), "utf-8")
    monkeypatch.setattr("sys.argv", ["", str(source), "-o", str(tmp_path / "once"), "--tasks", "2"])
    datatrove_minhash.main()
    written = (tmp_path / "once/documents").glob("*.jsonl.gz")
    kept = [json.loads(line) for path in written for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert sorted(document["id"] for document in kept) == ["0", "1", "2"]
