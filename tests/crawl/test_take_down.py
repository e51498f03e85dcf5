"""What was taken out of a corpus does not come back when the crawl goes on (docs/opt-outs.md)."""

from __future__ import annotations

from collections import Counter

from conftest import Crawl, page, serving

from spiderling.base.addresses import DropList
from spiderling.corpus.segments import stored_documents
from spiderling.export.export import ExportPlan, export
from spiderling.export.sources import corpus_of

PAGES = 30
HOSTS = ("stays.test", "goes.test", "below.goes.test")
DROP = ("www.goes.test", "*.goes.test")


def exported(crawl: Crawl, name: str, *drop: str) -> Counter[str]:
    """Documents by host in an export."""
    out = crawl.directory.with_name(name)
    corpus = corpus_of([str(crawl.directory)])
    plan = ExportPlan(out, "prevertical", drop=DropList(drop), lists={"hosts.txt": len(drop)})
    export(corpus, corpus.stored(), plan)
    sources = corpus_of([str(out)]).sources
    return Counter(document.attributes["host"] for source in sources for document in stored_documents(source))


def test_take_down_of_a_crawl_that_goes_on(tmp_path):
    sites = {
        host: {f"/{n}": page(f"{host}{n}", f"/{n + 1}", f"http://{HOSTS[n % 3]}/{n}") for n in range(PAGES)}
        for host in HOSTS
    }
    with serving(sites) as server:
        crawl = Crawl(tmp_path / "job", server, MAX_DOCUMENTS=18)
        crawl.run(" ".join(f"http://{host}/0" for host in HOSTS))
        before = exported(crawl, "1.prevert")
        assert set(before) == set(HOSTS)
        assert exported(crawl, "2.prevert", *DROP) == {"stays.test": before["stays.test"]}

        asked = len(server.log_entries)
        (crawl.directory / "control.yaml").write_text('block: ["goes.test", "*.goes.test"]\n')
        result = crawl.run(MAX_DOCUMENTS=0)
        assert result.code == 0, result.output[-2000:]
        assert {entry.host for entry in server.log_entries[asked:]} == {"stays.test"}
    state = crawl.state()
    state.check()
    assert state.ends["host-blocked"] > 0
    assert exported(crawl, "3.prevert", *DROP) == {"stays.test": PAGES}
