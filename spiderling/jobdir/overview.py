"""The state of a crawl as tables of text; of shards, the sums over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

from spiderling.base.printing import aligned_table
from spiderling.frontier.strategies import Heidix, parse
from spiderling.jobdir.inspection import counts_under
from spiderling.jobdir.looks import looks_of, told
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.sound_reading import noted
from spiderling.jobdir.telling import lines_of

_Rows: TypeAlias = "list[dict[str, Any]]"

_BEST_HOSTS = 10
"""Hosts that are named; chosen."""
_LAST_EVENTS = 5
"""Events that are named; chosen."""
_YIELDS = """
SELECT distance, count(*) AS hosts, sum(pages) AS pages, sum(documents) AS documents, sum(words) AS words,
    sum(downloaded_bytes) AS down, sum(kept_bytes) AS kept FROM host GROUP BY distance
"""
_TRAIL_SIZE = """
SELECT 'ends' AS what, coalesce(sum(length(keys)) / 8, 0) AS urls,
    coalesce(sum(length(keys) + length(ends)), 0) AS bytes FROM ended
UNION ALL SELECT 'found on', coalesce(sum(length(keys)) / 8, 0),
    coalesce(sum(length(keys) + length(pages)), 0) FROM found
"""


def overview(crawl: AnyCrawl) -> Iterator[str]:
    """Who crawls, what was found and kept, how URLs ended, which hosts gave most."""
    counts = crawl.counts
    yield from lines_of(
        {
            "directory": crawl.directory,
            "crawling": crawl.holder or "no process",
            "language": crawl.options.lang,
            "text steps": noted(crawl.meta, "text_steps", ""),
            "discovered": f"{counts.get('discovered', 0):,} URLs, {counts.get('waiting', 0):,} wait",
            "archives": f"{crawl.archives_unread:,} not read to their end" if crawl.archives_unread else "",
            "note": crawl.note,
        }
    )
    yield ""
    for title, rows in (
        ("Shards", _shards(crawl)),
        ("How URLs ended", _ends(counts)),
        ("What waits", _waiting(crawl)),
        ("Looks at known pages", _looks(crawl)),
        ("Yield by distance from the seeds", _yields(crawl)),
        (f"The {_BEST_HOSTS} hosts that gave most", _best_hosts(crawl)),
        ("Segments", _segments(crawl)),
        ("What is kept of each URL", _trail_size(crawl)),
        ("Last events", _last_events(crawl)),
    ):
        if rows:
            yield from (title, *aligned_table(rows), "")
    strategy = parse(crawl.options.strategy)
    if isinstance(strategy, Heidix):
        rows = [{"sign": name, "weight": weight} for name, weight in strategy.weights(crawl.options).items()]
        yield from ("How much each sign of a good link counts, in log-odds; 0: off", *aligned_table(rows), "")


def _shards(crawl: AnyCrawl) -> _Rows:
    return [
        {
            "shard": part.directory.name,
            "crawling": part.holder or "no process",
            "pages": part.counts["total/pages"],
            "documents": part.counts["total/documents"],
            "words": part.counts["total/words"],
            "urls_wait": part.counts["waiting"],
            "messages_wait": ", ".join(f"{box.messages:,} for {box.shard}" for box in part.outboxes()) or "none",
        }
        for part in crawl.parts
        if part.shard is not None
    ]


def _ends(counts: Counter[str]) -> _Rows:
    found = max(counts["discovered"], 1)
    ends = counts_under("end", counts).most_common()
    return [{"reason": reason, "urls": urls, "share": round(urls / found, 4)} for reason, urls in ends]


def _waiting(crawl: AnyCrawl) -> _Rows:
    """By state of the host: the longest queue is that of one shard."""
    found: dict[str, dict[str, Any]] = {}
    for row in crawl.rows_of_hosts("SELECT * FROM waiting"):
        same = found.setdefault(row["state"], {**row, "hosts": 0, "urls": 0})
        same["hosts"] += row["hosts"]
        same["urls"] += row["urls"]
        same["most"] = max(same["most"], row["most"])
        same["first_due"] = min(filter(None, (same["first_due"], row["first_due"])), default=None)
    return sorted(found.values(), key=lambda row: -row["urls"])


def _looks(crawl: AnyCrawl) -> _Rows:
    looks = looks_of(crawl)
    return [{"what": name, "is": value} for name, value in told(looks)] if looks else []


def _yields(crawl: AnyCrawl) -> _Rows:
    sums: dict[int, Counter[str]] = {}
    for row in crawl.rows_of_hosts(_YIELDS):
        for at in (-1, row.pop("distance")):  # all hosts stand before those at distance 0
            sums.setdefault(at, Counter()).update(row)
    return [
        {
            "hosts_at": "all" if at < 0 else f"distance {at}",
            **{name: found[name] for name in ("hosts", "pages", "documents", "words")},
            "down_mb": round(found["down"] / 1e6, 3),
            "kept_mb": round(found["kept"] / 1e6, 3),
            "yield_rate": round(found["kept"] / max(found["down"], 1), 4),
            "yield_ratio": round(found["documents"] / max(found["pages"], 1), 4),
        }
        for at, found in sorted(sums.items())
    ]


def _best_hosts(crawl: AnyCrawl) -> _Rows:
    rows = crawl.rows_of_hosts(f"SELECT * FROM hosts LIMIT {_BEST_HOSTS}")  # noqa: S608 - a constant
    return sorted(rows, key=lambda row: -row["kept_mb"])[:_BEST_HOSTS]


def _segments(crawl: AnyCrawl) -> _Rows:
    """With the directory of their shard, since the names are the same in each."""
    query = "SELECT kind, name, round(length_bytes / 1e6, 3) AS mb, entries FROM file ORDER BY kind, name"
    return [
        {**row, "name": str((part.directory / row["name"]).relative_to(crawl.directory))}
        for part in crawl.parts
        for row in part.rows(query)
    ]


def _trail_size(crawl: AnyCrawl) -> _Rows:
    found: dict[str, Counter[str]] = {}
    for row in crawl.rows(_TRAIL_SIZE):
        found.setdefault(row.pop("what"), Counter()).update(row)
    return [{"what": what, **sums} for what, sums in found.items()]


def _last_events(crawl: AnyCrawl) -> _Rows:
    rows = crawl.rows(
        f"SELECT datetime(time, 'unixepoch') AS time, what FROM event ORDER BY rowid DESC LIMIT {_LAST_EVENTS}"  # noqa: S608 - a constant
    )
    return sorted(rows, key=lambda row: row["time"] or "", reverse=True)[:_LAST_EVENTS]
