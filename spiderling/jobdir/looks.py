"""What the watch of a crawl has come to, as its last checkpoint says (docs/watch.md)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

from spiderling.base.option_values import parse_watch, parse_watch_requests
from spiderling.jobdir.inspection import Inspection, counts_under
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.sound_reading import noted
from spiderling.jobdir.status_schema import Looks


class _Part(NamedTuple):
    """The watch of one shard, or of a crawl without shards."""

    began: float
    days: int
    watched: int
    a_day: float
    today: int
    due: float | None


def looks_of(crawl: AnyCrawl, now: float | None = None) -> Looks | None:
    """The looks of *crawl*, of shards the sums, at the time *now*, the clock's by default; None: it is not watched."""
    now = time.time() if now is None else now
    parts = [found for part in crawl.parts if (found := _part(part, now)) is not None]
    if not parts:
        return None
    totals = counts_under("total", crawl.counts)
    looks = totals["looks"]
    days = max(part.days for part in parts)
    return Looks(
        since=min(part.began for part in parts),
        days=days,
        watched=sum(part.watched for part in parts),
        looks=looks,
        per_day=round(looks / days, 2),
        unchanged=totals["looks_304"],
        new=totals["looks_new"],
        words=totals["look_words"],
        links=totals["look_links"],
        useless=round(1 - totals["looks_new"] / looks, 4) if looks else 0.0,
        gone=totals["looks_gone"],
        opted_out=totals["looks_opted_out"],
        today=sum(part.today for part in parts),
        budget=round(sum(part.a_day for part in parts), 2),
        due=min((part.due for part in parts if part.due is not None), default=None),
    )


def _part(crawl: Inspection, now: float) -> _Part | None:
    options = crawl.options
    said = noted(crawl.meta, "watch", dict[str, Any]())
    began = said.get("began")
    length_days = parse_watch(options.watch)
    if began is None or not (length_days or crawl.counts["total/looks"]):
        return None
    number, looks_before, words_before = said.get("day", (0, 0, 0))
    totals = counts_under("total", crawl.counts)
    today = totals["looks"] - looks_before
    watched = said.get("watched", 0)
    requests = parse_watch_requests(options.watch_requests)
    a_day = requests if requests >= 1 else requests * watched
    has_words = bool(options.watch_words) and totals["words"] - words_before >= options.watch_words
    # as Watch.room allows them: the n-th look of the watch at n - 1/2 of the time of a look
    due_days = (int(a_day * number + 0.5) + today + 0.5) / a_day if a_day else length_days
    due_days = max(due_days, number + 1) if has_words else due_days
    due = max(now, began + due_days * options.watch_day_s) if due_days < length_days else None
    return _Part(began, number + 1, watched, a_day, today, due)


def told(looks: Looks) -> list[tuple[str, str]]:
    """What a person is told of *looks*: name and value."""
    due = "none" if looks.due is None else f"{datetime.fromtimestamp(looks.due, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return [
        ("watched", f"{looks.watched:,} pages, hubs, sitemaps and feeds"),
        ("looks", f"{looks.looks:,} in {looks.days:,} days, {looks.per_day:,.1f} a day"),
        ("budget", f"{looks.today:,} of {looks.budget:,.1f} looks of this day are made"),
        ("next look", due),
        ("unchanged (304)", f"{looks.unchanged:,}"),
        ("with something new", f"{looks.new:,}: {looks.words:,} words, {looks.links:,} links"),
        ("useless", f"{looks.useless:.1%} found nothing new"),
        ("gone", f"{looks.gone:,}"),
        ("opted out", f"{looks.opted_out:,}"),
    ]
