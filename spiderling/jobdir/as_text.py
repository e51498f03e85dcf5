"""What `scrapy inspect` prints: the state of a crawl (of shards, the sums over them), of one host and of one URL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from spiderling.base.errors import BadInput
from spiderling.base.reasons import Reason
from spiderling.base.terminal import aligned_table
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.frontier.strategies import Heidix, parse
from spiderling.frontier.watching.pages import MAX_PARTS, Group, Standing, group_id
from spiderling.jobdir.inspection import Ended, Found, Inspection, Story, counts_under
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.state_reader import noted
from spiderling.jobdir.status import looks_of, told


def of_host(whole: AnyCrawl, name: str, urls: bool) -> Iterator[str]:
    """One host: its record, how its URLs ended, and its queue; raises BadInput when it is unknown."""
    crawl = whole.part_of(name)
    host = crawl.host(name)
    if host is None:
        note = f" ({whole.note})" if whole.note else ""
        raise BadInput(f"the crawl in {whole.directory} knows no host {name}{note}.")
    rate = host["kept_bytes"] / max(host["downloaded_bytes"], 1)
    ends = ", ".join(f"{reason} {number:,}" for reason, number in crawl.ends_of(host["id"]).most_common())
    yield from lines_of(
        {
            "host": host["name"],
            "shard": _shard(crawl),
            "state": host["state"],
            "distance": host["distance"],
            "pages": f"{host['pages']:,}, {host['documents']:,} of them kept, {host['words']:,} words",
            "bytes": f"{host['downloaded_bytes']:,} down, {host['kept_bytes']:,} kept, yield rate {rate:.4f}",
            "address": host["address"] or "none yet",
            "due": _time(host["due"]),
            "waiting": f"{host['waiting']:,} URLs",
            "ends": ends or "none on record",
        }
    )
    for purge in crawl.purges_of(host["id"]):
        yield _line("given up", f"{purge['urls']:,} URLs at {_time(purge['time'])}: {purge['reason']}")
    if urls:
        rows = crawl.waiting(host["id"])
        yield ""
        columns = ("url", "rank", "tries", "parked")
        yield from aligned_table([{column: getattr(row, column) for column in columns} for row in rows])


def of_url(whole: AnyCrawl, url: str) -> Iterator[str]:
    """Why a URL is in the corpus, waits, or is not in it; raises BadInput if it is none."""
    crawl = whole.part_of(url)
    story = crawl.story(url)
    host = story.host
    found = story.found
    yield from lines_of(
        {
            "url": story.url,
            "verdict": verdict(story),
            "host": f"{host['name']}, {host['state']}, distance {host['distance']}" if host else "",
            "shard": _shard(crawl),
            "found on": (story.page or _origin(found)) if found else "",
            "found at": _time(found.time) if found else "",
            "rank": _rank(story.row.rank, story.row.tries) if story.row else "",
            "looks": looks_at(crawl, story),
        }
    )
    if story.ended is not None:
        yield from _end_lines(crawl, story.ended)


def _shard(part: Inspection) -> str:
    """Which shard it is; empty in a crawl without shards."""
    if part.shard is None:
        return ""
    return f"{'unknown' if part.shard.number is None else part.shard.number} of {part.shard.shards}, {part.directory}"


def _origin(found: Found) -> str:
    if found.shard is not None:
        return f"a page of shard {found.shard}, which sent the link"
    return "an unknown page" if found.page else "no page: a seed, or put in by hand"


def verdict(story: Story) -> str:
    """One sentence: what became of the URL, by its Reason if it has one."""
    if story.ended is not None and story.row is None:
        return _reason(story.ended.end.reason)
    if story.row is not None and story.row.parked and story.host is not None:
        return _reason(CLOSED_STATES[HostState(story.host["state"])].value) + "; it is parked with its host"
    if story.row is not None:
        return "it waits for its turn, or is being fetched"
    if story.purge is not None:
        return _reason(story.purge[1])
    if story.refusal is not None:
        return f"never accepted; a mention of it is refused: {_reason(story.refusal.value)}"
    return "never found" if story.found is None else "it ended; how is not on record (SPIDERLING_TRAIL)"


def _end_lines(crawl: Inspection, ended: Ended) -> Iterator[str]:
    end = ended.end
    is_kept = end.reason == Reason.KEPT.value
    yield from lines_of(
        {
            "ended at": _time(ended.time),
            "rank": _rank(end.rank, end.tries),
            "answer": f"{end.status}, {end.body_bytes:,} bytes" if end.status else "",
            "because": end.detail,
            "text": f"{end.kept_bytes:,} bytes, {end.words:,} words, {end.language}" if is_kept else "",
        }
    )
    document = crawl.text_of(ended)
    if document is not None:
        yield _line("document", f"number {end.document} of the frame at byte {ended.offset} of {ended.segment}")
        yield ""
        yield from (_line(name, value) for name, value in document.attributes.items())
        yield ""
        yield from document.paragraphs


def _reason(key: str) -> str:
    return f"{key}: {Reason.of(key).help}"


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "never"


def _rank(rank: int, tries: int) -> str:
    return f"{rank} (0 is fetched first), {tries} failed attempts"


def lines_of(values: Mapping[str, object]) -> Iterator[str]:
    """A line for each of *values* but the empty ones."""
    return (_line(name, value) for name, value in values.items() if value != "")


def _line(name: str, value: object) -> str:
    return f"{name:<11} {value}"


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


_SINCE = {
    Standing.MISSED: "not found since {}",
    Standing.GONE: "gone since {}",
    Standing.OPTED_OUT: "opted out since {}",
    Standing.FRUITLESS: "not looked at any more since {}, for it gave no new link",
}


def looks_at(part: Inspection, story: Story) -> str:
    """When the page of *story* was looked at last, and what is known since; empty if it is not watched."""
    began = noted(part.meta, "watch", dict[str, float]()).get("began")
    if began is None or story.host is None:
        return ""
    host = story.host["id"]
    bounds = group_id(host, 0), group_id(host, MAX_PARTS - 1)
    for row in part.rows("SELECT content FROM watched WHERE id BETWEEN ? AND ?", *bounds):
        for page in Group.unpacked(row["content"]).pages():
            if page.key != story.key:
                continue
            last, since = (
                f"{datetime.fromtimestamp(began + days * part.options.watch_day_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
                for days in (page.last, page.since)
            )
            said = ["none so far" if page.last == page.found_at else f"the last at {last}"]
            said += [f"version {page.version}"] if page.version > 1 else []
            said += [_SINCE[page.state].format(since)] if page.state in _SINCE else []
            return ", ".join(said)
    return ""
