"""A page leaves nothing in the main process but what the parts of docs/performance.md keep of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Crawl, serving

from benchmarks.linkedweb import LinkedWeb

HOSTS, PAGES = 40, 40
PER_PAGE = 0.2
"""Objects of one type: as many are in work now and then."""


@pytest.mark.slow
def test_no_kind_of_object_grows_with_the_pages(tmp_path: Path) -> None:
    """After a third of a web whose URLs are all known, the objects of each type stay as many as they are.

    One that is kept of each page, or of each request, would be a thousand more.
    """
    web, seeds, weights = LinkedWeb(HOSTS, PAGES), tmp_path / "seeds.txt", tmp_path / "weights.jsonl"
    seeds.write_text("\n".join(web.url(host, page) for page in range(PAGES) for host in range(HOSTS)))
    extensions = json.dumps({"benchmarks.weighing.Weighing": 1001})
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, ALLOW_NETWORKS="127.82.0.0/16", IP_INTERVAL_S=0)
        crawl.settings |= {"EXTENSIONS": extensions, "WEIGHTS": weights, "WEIGH_EVERY": HOSTS * PAGES // 8}
        result = crawl.run(str(seeds), timeout=900, HOST_INTERVAL_S=0.02, CHECKPOINT_S=1)
    assert result.code == 0, result.output
    lines = [json.loads(line) for line in weights.read_text().splitlines()]
    early = next(line for line in lines if line["pages"] >= HOSTS * PAGES // 3)
    pages = lines[-1]["pages"] - early["pages"]
    assert pages >= HOSTS * PAGES // 4
    grown = {kind: number - early["objects"].get(kind, 0) for kind, number in lines[-1]["objects"].items()}
    assert {kind: more for kind, more in grown.items() if more > PER_PAGE * pages} == {}
