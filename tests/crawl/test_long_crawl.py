"""A page leaves nothing in the main process but what the parts of docs/performance.md keep of it."""

from __future__ import annotations

import functools
import json
import operator
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Crawl, serving

from benchmarks.webs import LinkedWeb

HOSTS, PAGES, WEIGHINGS = 40, 40, 9
PER_PAGE = 0.4  # objects of one type: more or fewer are in work, depending on the machine


@pytest.mark.slow
def test_no_kind_of_object_grows_with_the_pages(tmp_path: Path) -> None:
    """The last third of a web whose URLs are all known has as many objects of each type as the one before.

    One that is kept of each page, or of each request, would be five hundred more.
    """
    web, seeds, weights = LinkedWeb(HOSTS, PAGES), tmp_path / "seeds.txt", tmp_path / "weights.jsonl"
    seeds.write_text("\n".join(web.url(host, page) for page in range(PAGES) for host in range(HOSTS)))
    extensions = json.dumps({"benchmarks.inside.Weighing": 1001})
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, ALLOW_NETWORKS="127.82.0.0/16", IP_INTERVAL_S=0)
        crawl.settings |= {"EXTENSIONS": extensions, "WEIGHTS": weights, "WEIGH_EVERY": HOSTS * PAGES // WEIGHINGS}
        result = crawl.run(str(seeds), timeout=900, HOST_INTERVAL_S=0.02)
    assert result.code == 0, result.output
    lines = [json.loads(line) for line in weights.read_text().splitlines()]
    middle, last = (fewest(lines, HOSTS * PAGES * third // 3) for third in (1, 2))
    assert {kind for kind in last if last[kind] > middle[kind] + PER_PAGE * HOSTS * PAGES / 3} == set()


def fewest(lines: list[dict[str, Any]], first: int) -> Counter[str]:
    """The least number of objects of each type while a third of the pages was read, from page *first* on."""
    within = [Counter(line["objects"]) for line in lines if first <= line["pages"] <= first + HOSTS * PAGES // 3]
    assert len(within) >= 2
    return functools.reduce(operator.and_, within)
