"""The state of one host and of one URL as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from spiderling.base.errors import BadInput
from spiderling.base.printing import aligned_table
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.jobdir.inspection import Ended, Found, Inspection, Story
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.watched_page import looks_at


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
