"""Each of our pipelines can be switched off by the user: what the others write stays whole, and so do the books."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import crawled, page, scrapy

from webs.web import html

ENGLISH = "When the people of the town had seen what was going on, {} of them went to the mayor and asked for {} more. "
SITES = {
    "a.test": {
        "/": page("first", "/2", "/again", "/english", "/short"),
        "/2": page("second"),
        "/again": page("second"),
        "/english": html(f"<p>{' '.join(ENGLISH.format(n, n * 7) for n in range(12))}</p>"),
        "/short": html(
            "<title>Krátká</title><p>Tohle je jen jedna krátká věta, a to je na stránku v korpusu málo textu.</p>"
        ),
    }
}
ENDS = {"kept": 2, "duplicate": 1, "wrong-language": 1, "bad-quality": 1}
"""With all pipelines."""
OFF = {
    "": ENDS,
    "CleanPipeline": {"no-page": 1},
    "LanguagePipeline": ENDS | {"wrong-language": 0, "bad-quality": 2},
    "QualityPipeline": ENDS | {"kept": 3, "bad-quality": 0},
    "DedupPipeline": ENDS | {"kept": 3, "duplicate": 0},
    "CorpusPipeline": ENDS | {"kept": 0, "duplicate": 0, "no-page": 3},
}
"""Pipeline that is off -> how the pages end.  The first one finds the links, the last one makes the documents."""


@pytest.mark.parametrize(
    "off", [pytest.param(name, marks=[] if "Language" in name else pytest.mark.slow) for name in OFF]
)
def test_documents_and_books_are_whole_without_a_pipeline(tmp_path, off):
    settings = {"ITEM_PIPELINES": f'{{"spiderling.pipelines.{off}": null}}'} if off else {}
    crawl, result, _ = crawled(tmp_path / "job", SITES, **settings)
    assert not result.lines("] ERROR: ")
    documents = crawl.documents()
    assert Counter(crawl.state().ends) == Counter(OFF[off])
    assert len(documents) == OFF[off].get("kept", 0)
    whole = {"id", "url", "host", "title", "lang", "langs", "crawl_date", "distance", "words", "yield", "badness"}
    assert all(whole <= doc.attributes.keys() for doc in documents)
    assert {doc.attributes["lang"] for doc in documents} <= {"cs"}
    check = scrapy("inspect", str(crawl.directory), "--check")
    assert check.code == 0, check.out
