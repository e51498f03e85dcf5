"""``scrapy dedup``: onion's rule over finished corpora, exactly."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from conftest import DEADLINE_S, ROOT, scrapy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spiderling.base.errors import BadInput, StorageError
from spiderling.corpus.segments import Source, parse_document, read_documents
from spiderling.export import deduplication
from spiderling.export.deduplication import Deduplication, Rule
from spiderling.export.sources import Corpus, corpus_of
from spiderling.text.prevertical import render
from webs.recorded import read_pages

GB = 10**9


def onion(texts: list[list[str]], n: int = 7, threshold: float = 0.5, unit: str = "paragraph") -> list[list[bool]]:
    """The rule in plain Python, over the words themselves: which paragraphs are duplicates."""
    seen: set[tuple[str, ...]] = set()
    verdicts = []

    def judge(paragraphs: list[str]) -> bool:
        tuples = []
        for paragraph in paragraphs:
            words, size = paragraph.split(), n
            letters = "".join(words)
            for script, chars in (("[\u3040-\u30ff\u3400-\u9fff]", 11), ("[\u0e00-\u0eff]", 28)):
                if 2 * len(re.findall(script, letters)) > len(letters):
                    words, size = list(letters), chars * n // 7
            tuples += [tuple(words[i : i + size]) for i in range(max(1, len(words) - size + 1)) if words]
        duplicate = sum(one in seen for one in tuples) > threshold * len(tuples)
        if not duplicate:
            seen.update(tuples)
        return duplicate

    for paragraphs in texts:
        if unit == "document":
            verdicts.append([judge(paragraphs)] * len(paragraphs))
        else:
            verdicts.append([judge([paragraph]) for paragraph in paragraphs])
    return verdicts


def written_to(path: Path, texts: list[list[str]]) -> Corpus:
    docs = [render({"id": f"{n}", "words": "0"}, [(p, "") for p in paragraphs]) for n, paragraphs in enumerate(texts)]
    path.write_text("".join(docs), "utf-8")
    return Corpus([Source(path)], [])


def decided(corpus: Corpus, work: Path, rule: Rule) -> list[list[bool]]:
    """Which paragraphs a run marks."""
    run = Deduplication(corpus, rule._replace(mark=True), work, GB)
    try:
        totals = run.judge()
        found = list(run.without_duplicates(corpus.stored()))
    finally:
        run.close()
    assert totals.documents == len(found)
    flags = [[detail.get("dup") == "1" for detail in parse_document(doc).details] for doc in found]
    assert rule.unit == "document" or totals.duplicates == sum(map(sum, flags))
    return flags


def real_texts() -> list[list[str]]:
    """Lines of the pages of the bundled miniature web: much in them repeats."""
    sites = read_pages(ROOT / "examples" / "miniweb" / "pages.tar.zst")
    pages = [body.decode("utf-8", "replace") for site in sites.values() for body in list(site.values())[:12]]
    lines = [re.sub(r"<[^>]*>|&\w+;", " ", page.partition("<body")[2]).splitlines() for page in pages]
    return [[" ".join(line.split()) for line in found if len(line.split()) > 3] for found in lines]


OTHER_RULES = Rule(unit="document"), Rule(window=3, threshold=0.2)


@pytest.mark.parametrize(
    "rule", [Rule(), *(pytest.param(rule, marks=pytest.mark.slow) for rule in OTHER_RULES)], ids=str
)
def test_every_decision_on_real_text_is_that_of_plain_onion(tmp_path, rule, monkeypatch):
    monkeypatch.setattr(deduplication, "CHUNK_SHINGLES", 20_000)
    monkeypatch.setattr(deduplication, "RANGE_ROWS", 5_000)
    monkeypatch.setattr(deduplication, "BYTES_PER_SHINGLE", 10_000)
    texts = real_texts()
    found = decided(written_to(tmp_path / "c.prevert", texts), tmp_path / "work", rule)
    wanted = onion(texts, rule.window, rule.threshold, rule.unit)
    assert sum(map(len, texts)) > 5000 and sum(map(sum, wanted)) > 300, "there is something to decide"
    assert found == wanted


WORDS = st.lists(st.sampled_from("ab"), max_size=6).map(" ".join)
RULES = st.builds(
    Rule, st.integers(1, 3), st.sampled_from([0, 0.3, 0.5, 0.9]), st.sampled_from(["paragraph", "document"])
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(texts=st.lists(st.lists(WORDS, max_size=5), max_size=8), rule=RULES)
def test_any_corpus_cut_anyhow_is_decided_as_by_plain_onion(tmp_path_factory, monkeypatch, texts, rule):
    monkeypatch.setattr(deduplication, "CHUNK_SHINGLES", 7)
    monkeypatch.setattr(deduplication, "RANGE_ROWS", 5)
    monkeypatch.setattr(deduplication, "BYTES_PER_SHINGLE", GB // 10)
    directory = tmp_path_factory.mktemp("d")
    found = decided(written_to(directory / "c.prevert", texts), directory / "work", rule)
    assert found == onion(texts, rule.window, rule.threshold, rule.unit)


def numbers(start: int, stop: int) -> str:
    return " ".join(f"w{n}" for n in range(start, stop))


CHAIN = [
    [numbers(0, 40), "Ano."],
    [numbers(0, 30) + " " + numbers(100, 120)],  # most of it seen: its new words 100-120 do not count as seen
    [numbers(100, 120), "Ano.", "Ne."],
    [numbers(100, 120)],
]


def test_a_name_that_does_not_fit_is_refused_before_the_work(tmp_path):
    source = written_to(tmp_path / "c.prevert", CHAIN).sources[0].path
    ended = scrapy("dedup", str(source), "-o", str(tmp_path / "out.parquet.gz"))
    assert ended.code == 1 and "Parquet is packed by itself" in ended.log
    assert [path.name for path in tmp_path.iterdir()] == ["c.prevert"]


def test_what_was_left_out_proves_nothing_and_the_first_occurrence_stays(tmp_path):
    source = written_to(tmp_path / "c.prevert", CHAIN).sources[0].path
    out, temp = tmp_path / "out.prevert.gz", tmp_path / "temp"
    temp.mkdir()
    (temp / "mine").touch()
    ended = scrapy("dedup", str(source), "-o", str(out), "--memory", "1G", "--temp", str(temp))
    assert (ended.code, ended.log) == (0, "")
    assert ended.out == f"3 of 7 paragraphs are duplicates (42.9 %); 2 of 4 documents in {out}.\n"
    found = list(read_documents(out))
    assert [(doc.attributes["id"], doc.paragraphs) for doc in found] == [
        ("0", CHAIN[0]), ("2", [numbers(100, 120), "Ne."]),
    ]  # fmt: skip
    assert [doc.attributes["words"] for doc in found] == ["0", "21"], "counted anew where something was left out"
    assert json.loads((tmp_path / "out.prevert.gz.json").read_text())["dedup"]["duplicates"] == 3
    assert [path.name for path in temp.iterdir()] == ["mine"], "only what the run made itself is removed"
    work = Deduplication(corpus_of([str(out)]), Rule(), tmp_path / "again", GB)
    assert work.judge().duplicates == 0, "a second run finds nothing more"
    work.close()


@pytest.mark.parametrize(
    "text",
    [
        "人工智能正在改变我们的生活方式，许多公司已经开始使用新的技术来提高效率和服务质量。",
        "การพัฒนาเทคโนโลยีในปัจจุบันทำให้ชีวิตของผู้คนเปลี่ยนแปลงไปอย่างรวดเร็วมาก",
    ],
)
def test_text_without_spaces_is_compared_by_characters(tmp_path, text):
    corpus = written_to(tmp_path / "c.prevert", [[text], [text[:-3]], [text[::-1]], [text + "\u2028" + text[:3]]])
    assert decided(corpus, tmp_path / "work", Rule()) == [[False], [True], [False], [True]]


class Slow:
    """A connection to DuckDB for which Ctrl-C comes just before a query of hours."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._interrupted = threading.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, query: str, *values: object) -> duckdb.DuckDBPyConnection:
        if "INSERT INTO shared" not in query:
            return self._connection.execute(query, *values)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # as the system may; it does not wake the main one
        self._interrupted.wait()
        return self._connection.execute(
            "SELECT count(*) FROM (SELECT hash(a.i * b.i) FROM range(9000000) a(i), range(9000000) b(i))"
        )

    def interrupt(self) -> None:
        self._connection.interrupt()
        self._interrupted.set()


def test_ctrl_c_does_not_wait_for_a_long_query(tmp_path, monkeypatch):
    """A signal that another thread got, and an interrupt before the query had begun, were lost: it ran to its end."""
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: Slow(connect(*a, **k)))
    run = Deduplication(written_to(tmp_path / "c.prevert", CHAIN), Rule(), tmp_path / "work", GB)
    with pytest.raises(KeyboardInterrupt):
        run.judge()
    run.close()


def test_what_cannot_go_on_says_why(tmp_path):
    corpus = written_to(tmp_path / "c.prevert", CHAIN)
    run = Deduplication(corpus, Rule(), tmp_path / "work", GB)
    script = "import sys, pathlib as p\nfrom spiderling.export.deduplication import Deduplication, Rule\n"
    script += "from spiderling.export.sources import corpus_of\n"
    script += "Deduplication(corpus_of(sys.argv[1:2]), Rule(), p.Path(sys.argv[2]), 10**9)"
    other = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "c.prevert"), str(tmp_path / "work")],
        cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert "work is in use by another run." in other.stderr
    run.judge()
    run.close()
    assert decided(corpus, tmp_path / "work", Rule()) == onion(CHAIN), "over what a killed run left"
    (tmp_path / "work" / "work.duckdb").write_bytes(b"rubbish" * 1000)
    with pytest.raises(StorageError, match=r"work cannot be read or written: .*not a valid"):
        Deduplication(corpus, Rule(), tmp_path / "work", GB)
    for rule, memory in (
        (Rule(window=0), GB),
        (Rule(threshold=1), GB),
        (Rule(threshold=float("nan")), GB),
        (Rule(), 10),
    ):
        with pytest.raises(BadInput):
            Deduplication(corpus, rule, tmp_path / "new", memory)
    with pytest.raises(StorageError, match="could not be written: Not a directory"):
        Deduplication(corpus, Rule(), Path("/dev/full/work"), GB)
