"""What the benchmark of strategies keeps of a simulated crawl, and the webs that it opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.strategies import Job, open_web, summed_up
from simulator.comparison import Run, Task, Terms, crawl
from simulator.measures import Sample, Truth
from spiderling.base.files import zstd
from spiderling.base.link_batch import batch_of

NODES = """id\thost\tpath\tbytes\tcld2_lang\ttext_bytes
0\tportal.test\t/\t1000\ten\t300
1\ta.test\t/\t5000\tcs\t4000
2\ta.test\t/ž 1\t5000\tcs\t3000
3\tb.test\t/\t5000\tde\t4000
4\tb.test\t/hidden\t5000\tcs\t4000
5\ta.test\t/short\t5000\tcs\t100
6\tc.test\t/\t5000\ten\t4000
"""
EDGES = "0\t1 3 6\n1\t2 5 6\n3\t0\n"


def sample(seconds: float, words: int, size: int) -> Sample:
    return Sample(seconds, 10, round(seconds / 180), 5, 5, words, size, 100, 0, 0)


def test_a_share_of_the_words_is_read_between_two_samples() -> None:
    samples = [sample(3600, 20, 2_000_000), sample(7200, 40, 6_000_000), sample(9000, 60, 7_000_000)]
    found = summed_up(Run(Task("thai", "bfs", 1), Truth(10, 5, 100, 700), samples), 1.0)
    assert set(found.points) == {"25", "50"}
    assert found.points["25"] == pytest.approx((25 / 3, 1.25, 2.5))
    assert found.points["50"] == pytest.approx((50 / 6.5, 2.25, 4.5))
    assert found.recall == 0.6


@pytest.mark.parametrize(("language", "documents", "kept_bytes"), [("cs", 2, 7_000), ("de", 1, 4_000)])
def test_a_graph_of_pages_opens(tmp_path: Path, language: str, documents: int, kept_bytes: int) -> None:
    (tmp_path / "graph").mkdir()
    for name, text in (("nodes", NODES), ("edges", EDGES)):
        (tmp_path / "graph" / f"{name}.tsv.zst").write_bytes(zstd.compress(text.encode()))
    name = f"graph:{language}"
    web = open_web(Job(name, 100, 1, "bfs"), tmp_path, tmp_path)
    assert "http://portal.test/" in web.seed_urls()  # it links to most hosts
    assert "http://a.test/" in web.seed_urls() or language == "de"  # of the hosts with text
    links = {url for url, _, _ in batch_of(web.outcome(1, "http://a.test/").links).rows()}
    assert links == {"http://a.test/%C5%BE%201", "http://a.test/short", "http://c.test/"}
    last = crawl(Task(name, "bfs", 1), Terms(word_share=1.1), web=web).last
    assert (last.documents, last.kept_bytes) == (documents, kept_bytes)
    assert last.pages == web.truth.pages == (7 if "http://b.test/hidden" in web.seed_urls() else 6)
