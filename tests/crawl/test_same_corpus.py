"""The same documents come out of the same pages, whatever is made faster: the bundled web against a digest."""

from __future__ import annotations

import hashlib

from conftest import ROOT, crawled

from webs.recorded import RecordedWeb

GOLDEN = "27c74187ad15aa865ae2d1fe439a5e5c65a4c2fec2c771ad99d2681769445746"
"""Change it only with a change that is meant to change what documents hold, and say so in CHANGELOG.md."""
ATTRIBUTES = ("title", "lang", "langs", "enc_detected", "length", "words", "licence", "yield", "badness", "published")


def test_corpus_of_the_bundled_web_is_the_same(tmp_path):
    web = RecordedWeb(ROOT / "examples/miniweb")
    urls = sorted(f"http://{host}{path}" for host in web.hosts() for path in web.paths(host))[::9]
    (tmp_path / "seeds.txt").write_text("\n".join(urls))
    every = {"DEDUP": "off", "YIELD_PROFILE": "off", "TRAPS": "copies=0", "FOLLOW": "none"}
    crawl, _, _ = crawled(
        tmp_path / "job", web, str(tmp_path / "seeds.txt"), lang="cs,en,de", ALLOW_NETWORKS="127.0.0.0/8", **every
    )
    documents = sorted(crawl.documents(), key=lambda document: document.url)
    assert len(documents) > 60
    told = [(doc.url, [doc.attributes.get(name, "") for name in ATTRIBUTES], doc.paragraphs) for doc in documents]
    assert hashlib.sha256(repr(told).encode()).hexdigest() == GOLDEN
