"""A real crawl of a web whose owners say yes and no in every way: each page ends as docs/opt-outs.md says."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urlsplit

import pytest
from conftest import ROOT, Crawl, document, serving

from webs.consent import (
    PRECEDENCE_HOST,
    PURPOSES,
    SPEAKERS,
    consent_web,
    is_refused_by_file,
    pairs,
    seeds_of,
    violations,
)

LETTERS = {"F": {"site-opted-out", "robots-forbidden"}, "D": {"opted-out"}, "K": {"kept"}}


def crawled(directory, letter: str, files: str = "first") -> tuple[list, dict[str, str], list[str]]:
    web, cases = consent_web(document)
    seeds = directory / "seeds.txt"
    seeds.write_text(seeds_of(cases))
    with serving(web) as server:
        options = {"OPTOUTS": "", "OPTOUT_FILES": files, "PURPOSE": PURPOSES[letter]}
        crawl = Crawl(directory / "job", server, HOST_INTERVAL_S=0.02, **options)
        result = crawl.start(str(seeds)).wait()
        assert result.code == 0 and "Traceback" not in result.output, result.output[-3000:]
        ends = {url: reason for url, (reason, _) in crawl.ended().items()}
        return cases, ends, [f"http://{entry.host}{entry.path}" for entry in server.log_entries]


@pytest.fixture(scope="module", params=["first", "kept"])
def for_training(tmp_path_factory, request):
    return *crawled(tmp_path_factory.mktemp("consent"), "T", request.param), request.param


def test_each_page_is_fetched_and_kept_as_its_owner_says(for_training):
    cases, ends, fetched, files = for_training
    assert violations(cases, "T", ends, set(fetched), files == "kept") == []
    assert max(Counter(fetched).values()) == 1, "nothing is asked for twice"
    is_dropped = {case.url for case in cases if is_refused_by_file(case)} & set(fetched)
    assert ("http://ai-text.test/a" in is_dropped) == (files == "kept")
    assert len({urlsplit(case.url).hostname for case in cases}) >= 30
    assert {case.end for case in cases} >= {"site-opted-out", "opted-out", "noindex", "host-refused", "challenged"}


@pytest.mark.slow
@pytest.mark.parametrize("files", ["first", "kept"])
@pytest.mark.parametrize("letter", ["S", "R"])
def test_so_it_is_for_other_purposes(letter, files, tmp_path):
    cases, ends, fetched = crawled(tmp_path, letter, files)
    assert violations(cases, letter, ends, set(fetched), files == "kept") == []


def test_the_table_of_precedence_is_true_of_every_pair(for_training):
    ends = for_training[1]
    lines = (ROOT / "docs/opt-outs.md").read_text("utf-8").splitlines()
    expected = {}
    for line in lines[lines.index("| no says | then | unless |") + 2 :]:
        if not line:
            break
        names, letter, exceptions = (cell.strip() for cell in line.strip("|").split("|"))
        assert not exceptions or exceptions.endswith(" says yes: kept")
        kept = re.findall(r"`([\w-]+)`", exceptions)
        for no in re.findall(r"`([\w-]+)`", names):
            expected |= {(no, yes): "K" if yes in kept else letter for yes in SPEAKERS if yes != no}
    assert expected.keys() == set(pairs())
    told = {(no, yes): ends[f"http://{PRECEDENCE_HOST}/{no}/{yes}"] for no, yes in expected}
    assert {pair: end for pair, end in told.items() if end not in LETTERS[expected[pair]]} == {}
