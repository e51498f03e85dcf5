"""``scrapy dedup``: a rule after onion's over finished corpora, exactly, by one process or by many in parts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import DEADLINE_S, ROOT, scrapy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spiderling.base.errors import BadInput, StorageError
from spiderling.corpus.segments import Source, read_documents
from spiderling.export import deduplication
from spiderling.export.deduplication import Deduplication, Rule, Share
from spiderling.export.export import ExportPlan
from spiderling.export.sources import Corpus
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
        known = sum(one in seen for one in tuples)
        seen.update(tuples)  # onion lets those of duplicates count for nothing
        return known > threshold * len(tuples)

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


def decided(texts: list[list[str]], directory: Path, rule: Rule, parts: int = 1, ranges: int = 1) -> list[list[bool]]:
    """Which paragraphs the steps mark, with the *texts* divided into so many parts, and the hashes into ranges."""
    directory.mkdir(exist_ok=True)
    run = Deduplication(rule._replace(mark=True), directory / "work", GB)
    borders = [len(texts) * n // parts for n in range(parts + 1)]
    corpora = [written_to(directory / f"{low}-{high}.prevert", texts[low:high]) for low, high in pairwise(borders)]
    for number in reversed(range(parts)):
        run.collect(corpora[number], Share(number, parts))
    for number in reversed(range(ranges)):
        run.compare(Share(number, ranges))
    flags: list[list[bool]] = []
    for number, corpus in enumerate(corpora):
        out = directory / f"out-{number}.prevert"
        totals, kept = run.write(corpus, ExportPlan(out, "prevertical"), Share(number, parts))
        found = [[d.get("dup") == "1" for d in doc.details] for doc in read_documents(out)] if kept else []
        assert totals.documents == kept == len(found)
        assert rule.unit == "document" or totals.duplicates == sum(map(sum, found))
        flags += found
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
@pytest.mark.parametrize(("parts", "ranges"), [(1, 1), (3, 2)])
def test_every_decision_on_real_text_is_that_of_the_plain_rule(tmp_path, rule, parts, ranges, monkeypatch):
    monkeypatch.setattr(deduplication, "BYTES_PER_ROW", GB // 30_000)
    texts = real_texts()
    wanted = onion(texts, rule.window, rule.threshold, rule.unit)
    assert sum(map(len, texts)) > 5000 and sum(map(sum, wanted)) > 300, "there is something to decide"
    assert decided(texts, tmp_path, rule, parts, ranges) == wanted


WORDS = st.lists(st.sampled_from("ab"), max_size=6).map(" ".join)
RULES = st.builds(
    Rule, st.integers(1, 3), st.sampled_from([0, 0.3, 0.5, 0.9]), st.sampled_from(["paragraph", "document"])
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(
    texts=st.lists(st.lists(WORDS, max_size=5), max_size=8),
    rule=RULES,
    parts=st.integers(1, 4),
    ranges=st.integers(1, 3),
)
def test_any_corpus_cut_anyhow_is_decided_by_the_plain_rule(tmp_path_factory, monkeypatch, texts, rule, parts, ranges):
    monkeypatch.setattr(deduplication, "BYTES_PER_ROW", GB // 10)
    monkeypatch.setattr(deduplication, "BATCH_DOCUMENTS", 2)
    found = decided(texts, tmp_path_factory.mktemp("d"), rule, parts, ranges)
    assert found == onion(texts, rule.window, rule.threshold, rule.unit)


def numbers(start: int, stop: int) -> str:
    return " ".join(f"w{n}" for n in range(start, stop))


CHAIN = [
    [numbers(0, 40), "Ano."],
    [numbers(0, 30) + " " + numbers(100, 120)],  # most of it stands before it, and its new words count as well
    [numbers(100, 125), numbers(98, 130), "Ano.", "Ne."],
    [numbers(98, 130)],
]


def test_a_name_that_does_not_fit_is_refused_before_the_work(tmp_path):
    source = written_to(tmp_path / "c.prevert", CHAIN).sources[0].path
    ended = scrapy("dedup", str(source), "-o", str(tmp_path / "out.parquet.gz"))
    assert ended.code == 1 and "Parquet is packed by itself" in ended.log
    assert [path.name for path in tmp_path.iterdir()] == ["c.prevert"]


def test_the_first_occurrence_counts_whether_it_was_kept_or_not(tmp_path):
    source = written_to(tmp_path / "c.prevert", CHAIN).sources[0].path
    out, temp = tmp_path / "out.prevert.gz", tmp_path / "temp"
    temp.mkdir()
    (temp / "mine").touch()
    ended = scrapy("dedup", str(source), "-o", str(out), "--memory", "1G", "--temp", str(temp))
    assert (ended.code, ended.log) == (0, "")
    assert ended.out == f"5 of 8 paragraphs are duplicates (62.5 %); 2 of 4 documents in {out}.\n"
    found = list(read_documents(out))
    assert [(doc.attributes["id"], doc.paragraphs) for doc in found] == [("0", CHAIN[0]), ("2", ["Ne."])]
    assert [doc.attributes["words"] for doc in found] == ["0", "1"], "counted anew where something was left out"
    assert json.loads((tmp_path / "out.prevert.gz.json").read_text())["dedup"] == {
        "window": 7, "threshold": 0.5, "unit": "paragraph", "mark": False,
        "documents": 4, "units": 8, "shingles": 152, "duplicates": 5,
    }  # fmt: skip
    assert [path.name for path in temp.iterdir()] == ["mine"], "only what the run made itself is removed"
    again = scrapy("dedup", str(out), "-o", str(tmp_path / "again.prevert"))
    assert again.out.startswith("0 of 3 paragraphs"), "a second run finds nothing more"


@pytest.mark.parametrize(
    "text",
    [
        "人工智能正在改变我们的生活方式，许多公司已经开始使用新的技术来提高效率和服务质量。",
        "การพัฒนาเทคโนโลยีในปัจจุบันทำให้ชีวิตของผู้คนเปลี่ยนแปลงไปอย่างรวดเร็วมาก",
    ],
)
def test_text_without_spaces_is_compared_by_characters(tmp_path, text):
    texts = [[text], [text[:-3]], [text[::-1]], [text + "\u2028" + text[:3]]]
    assert decided(texts, tmp_path, Rule(), 2, 2) == [[False], [True], [False], [True]]


# -- in parts

KILLED = """
import os, sys
from spiderling.__main__ import main
from spiderling.export import deduplication, formats
from spiderling.export.deduplication import Deduplication

def dies(number):  # in the middle of the file
    written.append(number)
    if len(written) == 2:
        os.kill(os.getpid(), 9)

written = []
append, flush = deduplication._append, formats.TextWriter.flush
deduplication.BYTES_PER_ROW = 10**9 // 30
formats.FRAME_CHARS = 10
deduplication._append = lambda file, *rest: (append(file, *rest), file.flush(), dies(1))
formats.TextWriter.flush = lambda self: (flush(self), dies(1))
sys.argv[0] = "scrapy"
main()
"""
"""A command that is killed when its second chunk of output is on disk."""


def steps(sources: list[Path], work: Path, out: Path, ranges: int = 3) -> list[list[list[str]]]:
    """The tasks of each step."""
    total, temp = len(sources), ["--temp", str(work), "--memory", "1G"]
    parts = [["dedup", str(source), "--part", f"{n}/{total}", *temp] for n, source in enumerate(sources)]
    compared = [["dedup", "--range", f"0{n}/{ranges}", *temp] for n in range(ranges)]
    return [parts, compared, [[*part, "-o", str(out / f"{n}.prevert")] for n, part in enumerate(parts)]]


def started(arguments: list[str], program: str = "") -> subprocess.Popen[str]:
    words = ["-c", program] if program else ["-m", "scrapy"]
    return subprocess.Popen(
        [sys.executable, *words, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def said_by(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=DEADLINE_S)[0]


def test_parts_are_the_single_command_also_where_each_task_is_killed_and_where_two_do_the_same(tmp_path):
    texts = [*real_texts()[:30], *CHAIN]
    whole = tmp_path / "whole.prevert"
    cut = [texts[:10], texts[10:11], texts[11:]]
    sources = [written_to(tmp_path / f"{n}.prevert", part).sources[0].path for n, part in enumerate(cut)]
    single = scrapy("dedup", *map(str, sources), "-o", str(whole))
    work, out = tmp_path / "work", tmp_path / "out"
    out.mkdir()
    for tasks in steps(sources, work, out):
        before = {path.name for path in [*out.iterdir(), *work.glob("*/*")]}
        for task in (tasks[0], tasks[-1]):
            killed = started(task, KILLED)
            assert (said_by(killed), killed.returncode) == ("", -9)
        left = {path.name for path in [*out.iterdir(), *work.glob("*/*")]} - before
        assert left and all(name.endswith(".part") for name in left), "nothing that counts"
        running = [started(task) for task in [*tasks, tasks[0]]] if "-o" not in tasks[0] else map(started, tasks)
        for process in running:
            said = said_by(process)
            assert process.returncode == 0, said
        for task in tasks:
            again = started(task)
            assert re.search(r" is (in|there)", said_by(again)) and again.returncode == 0, "it may be repeated"
    joined = "".join((out / f"{n}.prevert").read_text("utf-8") for n in range(3))
    assert joined == whole.read_text("utf-8")
    counted = [json.loads((out / f"{n}.prevert.json").read_text())["dedup"]["duplicates"] for n in range(3)]
    assert single.out.startswith(f"{sum(counted)} of ") and min(counted[::2]) > 0


def test_a_step_that_cannot_be_done_yet_names_what_is_missing(tmp_path):
    sources = [written_to(tmp_path / f"{n}.prevert", [[text]]).sources[0].path for n, (text, *_) in enumerate(CHAIN)]
    (tmp_path / "out").mkdir()
    parts, ranges, last = steps(sources, tmp_path / "work", tmp_path / "out", ranges=2)
    work = tmp_path / "work" / "paragraph-7"

    def refused(arguments: list[str]) -> str:
        ended = scrapy(*arguments)
        assert ended.code == 1 and "Traceback" not in ended.log
        return ended.log

    assert f"{work} has no parts" in refused(ranges[0])
    for part in parts[::2]:
        assert scrapy(*part).code == 0
    assert f"{work} lacks 2 parts: 1/4, 3/4" in refused(ranges[0])
    for part in [*parts[1::2], ranges[1]]:
        assert scrapy(*part).code == 0
    assert f"{work} lacks 1 ranges: 0/2" in refused(last[0])
    assert "has no parts" in refused([*ranges[0], "-n", "5"]), "of other tuples"
    assert scrapy(*ranges[0]).code == 0
    assert "has 3 and 4 parts" in refused([word.replace("/4", "/3") for word in last[0]])
    with sources[0].open("a") as file:
        file.write(render({}, [("Ano.", "")]))
    assert "the corpus has 2 paragraphs now, and had 1: begin again" in refused(last[0])
    assert list((tmp_path / "out").iterdir()) == []
    assert "0.prevert exists; remove it" in refused([*parts[0], "-o", str(sources[0])]), "it has no card"
    for share in ("4/4", "x", "1", "1/-4", "0/0", "0/65537", "\u0661/4"):
        assert "is no share" in refused(["dedup", "--range", share, "--temp", str(tmp_path)])
    for words in (["--part", "0/1"], ["--range", "0/1", "c.prevert", "--temp", "w"], ["--part", "0/1", "--temp", "w"]):
        assert scrapy("dedup", *words).code == 2


def test_what_cannot_go_on_says_why(tmp_path, monkeypatch):
    run = Deduplication(Rule(), tmp_path / "work", GB)
    corpus = written_to(tmp_path / "c.prevert", CHAIN)
    run.collect(corpus)
    path = tmp_path / "work" / "paragraph-7" / Share().name("part")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="is damaged; remove it, and do its step again"):
        run.compare()
    monkeypatch.setattr(deduplication, "BYTES_PER_UNIT", GB)
    with pytest.raises(BadInput, match="8 paragraphs and more need more memory"):
        Deduplication(Rule(), tmp_path / "other", GB).collect(corpus)
    for rule, memory in ((Rule(0), GB), (Rule(threshold=1), GB), (Rule(threshold=float("nan")), GB), (Rule(), 10)):
        with pytest.raises(BadInput):
            Deduplication(rule, tmp_path / "new", memory)
    with pytest.raises(StorageError, match="could not be written: Not a directory"):
        Deduplication(Rule(), Path("/dev/full/work"), GB)
