"""A page that takes long does not let what is kept of the records behind it grow without bound."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from spiderling.archives.archives import Archives, CrawlSide
from spiderling.archives.places import Position
from spiderling.archives.records import Record
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch

URL, TINY = "http://a.test/", 25_000


async def test_tiny_records_behind_a_slow_page_wait_for_it(tmp_path):
    path = str(tmp_path / "tiny.warc")
    open(path, "w").close()
    tiny = [Record(Position(at), reason=Reason.REVISIT) for at in range(1, TINY + 1)]
    reader = SimpleNamespace(records=lambda raw, last: iter([Record(Position(0), URL), *tiny]))
    archive_pages = SimpleNamespace(
        refuse=lambda reason: None, begin=lambda url: Fetch(1, url, "", None), enter=lambda key: None
    )
    notes = {}
    side = CrawlSide(notes.__setitem__, lambda outcome: None, lambda: 0.0)
    archives = Archives([path], 1, 1, reader, archive_pages, None, {}, side)
    pages = archives.pages(lambda: False)
    fetch, _ = await anext(pages)
    rest = asyncio.ensure_future(anext(pages, None))
    while archives.records < 10_000:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    (saved,) = notes.values()
    assert len(saved()["done"]) < 10_100 and not rest.done()
    archives.settle(Outcome(fetch.id, URL, Reason.KEPT, 200))
    assert await rest is None
    assert archives.records == TINY + 1
    assert saved() == {"last": Position(TINY), "done": [], "size": 0, "records": TINY + 1, "damaged": 0}
