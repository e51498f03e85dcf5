"""What has ended is taken up for a recrawl with all that was noted of it."""

from __future__ import annotations

import asyncio
from contextlib import closing, nullcontext
from types import SimpleNamespace

from spiderling.base.reasons import Reason
from spiderling.base.urls import url_key
from spiderling.crawl.ended_urls import take_up
from spiderling.frontier.recrawl.pages import RecrawlPage, Validators
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import UrlEnd, UrlLogBatch

CLOCKS = [*range(900, 1150), *range(100, 350)]  # it was set back once; more batches than are read at a time


MASK = (1 << 64) - 1


class Taken:
    """In place of a recrawl, what it takes up."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}
        self.pages: dict[int, RecrawlPage] = {}

    def days(self, time: float) -> float:
        return time

    def take_up(self, pages: list[RecrawlPage], first_words: dict[int, int], marks: dict[str, int]) -> None:
        assert self.pages.keys().isdisjoint(page.key for page in pages)
        self.pages |= {page.key: page for page in pages}
        self.marks = marks


def test_a_page_keeps_what_was_noted_of_it_also_when_the_clock_was_set_back(tmp_path):
    database = tmp_path / "frontier.sqlite"
    with closing(SqliteStore(database)) as store:
        for number, time in enumerate(CLOCKS):
            url = f"http://a.test/{number}"
            key = url_key(1, url)
            end = UrlEnd(key, url, Reason.KEPT.value if number % 3 else Reason.HTTP_ERROR.value, 1, 0, 0)
            noted = [(key, Validators(text_key=key & MASK).pack())] if number % 3 else []
            store.commit(Changes(url_log=UrlLogBatch(time, ends=[end], found=[key], validators=noted)))
    taken = Taken()
    crawl = SimpleNamespace(
        stopping=False,
        jobdir=SimpleNamespace(database=database),
        frontier=SimpleNamespace(recrawl=taken),
        errors=SimpleNamespace(changing=nullcontext),
    )
    asyncio.run(take_up(crawl))  # type: ignore[arg-type]
    assert len(taken.pages) == sum(number % 3 > 0 for number in range(len(CLOCKS)))
    assert {key: page.validators.text_key for key, page in taken.pages.items()} == {
        key: key & MASK for key in taken.pages
    }
    assert taken.marks["ended"] == taken.marks["found"] == len(CLOCKS)
