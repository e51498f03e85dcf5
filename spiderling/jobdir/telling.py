"""The state of a crawl, of one host and of one URL as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone

from spiderling.base.errors import BadInput
from spiderling.base.printing import aligned_table
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.host import CLOSED_STATES, HostState
from spiderling.frontier.ranking.strategies import Heidix, parse
from spiderling.jobdir.inspection import Ended, Inspection, Story
from spiderling.jobdir.sound_reading import noted

_BEST_HOSTS = 10
"""Hosts that the overview names; chosen."""


def overview(crawl: Inspection) -> Iterator[str]:
    """Who crawls, what was found and kept, how URLs ended, which hosts gave most."""
    counts = crawl.counts
    yield from _lines(
        {
            "directory": crawl.directory,
            "crawling": crawl.holder or "no process",
            "language": crawl.options.lang,
            "text steps": noted(crawl.meta, "text_steps", ""),
            "discovered": f"{counts.get('discovered', 0):,} URLs, {counts.get('waiting', 0):,} wait",
            "archives": f"{crawl.archives_unread:,} not read to their end" if crawl.archives_unread else "",
        }
    )
    yield ""
    for title, query in (
        ("How URLs ended", "SELECT * FROM ends"),
        ("What waits", "SELECT * FROM waiting"),
        ("Yield by distance from the seeds", "SELECT * FROM yield"),
        (f"The {_BEST_HOSTS} hosts that gave most", f"SELECT * FROM hosts LIMIT {_BEST_HOSTS}"),  # noqa: S608 - a constant
        ("Segments", "SELECT kind, name, round(length_bytes / 1e6, 3) AS mb, entries FROM file ORDER BY kind, name"),
        ("What is kept of each URL", _TRAIL_SIZE),
        ("Last events", "SELECT datetime(time, 'unixepoch') AS time, what FROM event ORDER BY rowid DESC LIMIT 5"),
    ):
        rows = crawl.rows(query)
        if rows:
            yield from (title, *aligned_table(rows), "")
    strategy = parse(crawl.options.strategy)
    if isinstance(strategy, Heidix):
        rows = [{"sign": name, "weight": weight} for name, weight in strategy.weights(crawl.options).items()]
        yield from ("How much each sign of a good link counts, in log-odds; 0: off", *aligned_table(rows), "")


_TRAIL_SIZE = """
SELECT 'ends' AS what, coalesce(sum(length(keys)) / 8, 0) AS urls,
    coalesce(sum(length(keys) + length(ends)), 0) AS bytes FROM ended
UNION ALL SELECT 'found on', coalesce(sum(length(keys)) / 8, 0),
    coalesce(sum(length(keys) + length(pages)), 0) FROM found
"""


def of_host(crawl: Inspection, name: str, urls: bool) -> Iterator[str]:
    """One host: its record, how its URLs ended, and its queue; raises BadInput when it is unknown."""
    host = crawl.host(name)
    if host is None:
        raise BadInput(f"the crawl in {crawl.directory} knows no host {name}.")
    rate = host["kept_bytes"] / max(host["downloaded_bytes"], 1)
    ends = ", ".join(f"{reason} {number:,}" for reason, number in crawl.ends_of(host["id"]).most_common())
    yield from _lines(
        {
            "host": host["name"],
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


def of_url(crawl: Inspection, story: Story) -> Iterator[str]:
    """Why a URL is in the corpus, waits, or is not in it."""
    host = story.host
    found = story.found
    no_page = "an unknown page" if found and found.page else "no page: a seed, or put in by hand"
    yield from _lines(
        {
            "url": story.url,
            "verdict": verdict(story),
            "host": f"{host['name']}, {host['state']}, distance {host['distance']}" if host else "",
            "found on": (story.page or no_page) if found else "",
            "found at": _time(found.time) if found else "",
            "rank": _rank(story.row.rank, story.row.tries) if story.row else "",
        }
    )
    if story.ended is not None:
        yield from _end_lines(crawl, story.ended)


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
    yield from _lines(
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
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "never"


def _rank(rank: int, tries: int) -> str:
    return f"{rank} (0 is fetched first), {tries} failed attempts"


def _lines(values: Mapping[str, object]) -> Iterator[str]:
    """A line for each of *values* but the empty ones."""
    return (_line(name, value) for name, value in values.items() if value != "")


def _line(name: str, value: object) -> str:
    return f"{name:<11} {value}"
