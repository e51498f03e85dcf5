"""A page that takes long does not let what is kept of the records behind it grow without bound."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from made_warcs import record

from spiderling.archives.archives import Archives, CrawlSide
from spiderling.archives.sources import META_KEY, Position
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch

URL, TINY = "http://a.test/", 25_000


async def test_tiny_records_behind_a_slow_page_wait_for_it(tmp_path):
    path = tmp_path / "tiny.warc"
    page, tiny = record(URL, b"<p>Ano.</p>"), record(URL, kind="revisit")
    path.write_bytes(page + TINY * tiny)
    nothing = dict.fromkeys(("refuse", "enter", "unwanted"), lambda _: None)
    pages = SimpleNamespace(begin=lambda url: Fetch(1, url, "", None), **nothing)
    notes = {}
    calls = notes.__setitem__, lambda outcome: None, lambda pages: True, lambda: 0.0
    side = CrawlSide(pages, frozenset(), lambda _: True, {}, *calls)
    archives = Archives([str(path)], Options(lang="cs", archive_files=1, workers=1), side)
    found = archives.pages(lambda: False)
    fetch, _ = await anext(found)
    rest = asyncio.ensure_future(anext(found, None))
    while archives.records < 10_000:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    saved = notes[META_KEY + str(path)]
    assert len(saved()["done"]) < 10_100 and not rest.done()
    archives.settle(Outcome(fetch.id, URL, Reason.KEPT, 200))
    assert await rest is None
    assert archives.records == TINY + 1
    last = Position(0, len(page) + (TINY - 1) * len(tiny))
    size = path.stat().st_size
    assert saved() == {"last": last, "done": [], "size": size, "records": TINY + 1, "damaged": 0}
