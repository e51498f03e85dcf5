"""Pages of the corpus that are gone, or that have opted out since, as looks at them have shown (docs/watch.md)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from spiderling.frontier.watching.pages import Group, Standing
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.sound_reading import noted

_WORDS = {Standing.GONE: "gone", Standing.OPTED_OUT: "opted-out"}


def no_longer_there(crawl: AnyCrawl) -> Iterator[str]:
    """A line for each such page: date since when, gone or opted-out, URL, with tabs between them."""
    for part in crawl.parts:
        began = noted(part.meta, "watch", dict[str, float]()).get("began") or 0.0
        for row in part.rows("SELECT content FROM watched ORDER BY id"):
            for page in Group.unpacked(row["content"]).pages():
                if page.version and page.state in _WORDS:
                    since = datetime.fromtimestamp(began + page.since * part.options.watch_day_s, UTC)
                    yield f"{since:%Y-%m-%d}\t{_WORDS[page.state]}\t{page.url}"
