"""What `scrapy inspect` prints: the state of a crawl (of shards, the sums over them), of one host and of one URL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from spiderling.base.errors import BadInput
from spiderling.base.reasons import Reason
from spiderling.base.terminal import aligned_table
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.frontier.recrawl import policy
from spiderling.frontier.recrawl.pages import RecrawlPage, Standing
from spiderling.jobdir.coverage import in_words
from spiderling.jobdir.inspection import AnyCrawl, Ended, Inspection, Story
from spiderling.jobdir.state_reader import read_note, urls_of
from spiderling.jobdir.status_schema import ShardStatus, Status


def of_host(whole: AnyCrawl, name: str, urls: bool) -> Iterator[str]:
    """One host: its record, how its URLs ended, and its queue; raises BadInput when it is unknown."""
    crawl = whole.part_of(name)
    host = crawl.host(name)
    if host is None:
        note = f" ({whole.note})" if whole.note else ""
        raise BadInput(f"the crawl in {whole.directory} knows no host {name}{note}.")
    # the documents of a host that has moved stay in the shard where it was
    parts = [*filter(None, (part.host(name) for part in whole.parts))]
    documents, words = (sum(part[column] for part in parts) for column in ("documents", "words"))
    rate = host["kept_bytes"] / max(host["downloaded_bytes"], 1)
    ends = named_counts(crawl.ends_of(host["id"]))
    yield from lines_of(
        {
            "host": host["name"],
            "shard": _shard(crawl),
            "state": host["state"],
            "distance": host["distance"],
            "pages": f"{host['pages']:,}, {documents:,} of them kept, {words:,} words",
            "bytes": f"{host['downloaded_bytes']:,} down, {host['kept_bytes']:,} kept, yield rate {rate:.4f}",
            "address": host["address"] or "none yet",
            "due": time_of(host["due"]),
            "waiting": f"{host['waiting']:,} URLs",
            "ends": ends or "none on record",
        }
    )
    for purge in crawl.rows("SELECT time, reason, urls FROM purged WHERE host = ? ORDER BY time", host["id"]):
        yield _line("given up", f"{purge['urls']:,} URLs at {time_of(purge['time'])}: {purge['reason']}")
    if urls:
        rows = urls_of(crawl.connection, host["id"])
        yield ""
        columns = ("url", "rank", "tries", "parked")
        yield from aligned_table([{column: getattr(row, column) for column in columns} for row in rows])


def of_url(whole: AnyCrawl, url: str) -> Iterator[str]:
    """Why a URL is in the corpus, waits, or is not in it; raises BadInput if it is none."""
    crawl = whole.part_of(url)
    story = crawl.story(url)
    host = story.host
    yield from lines_of(
        {
            "url": story.url,
            "verdict": verdict(story),
            "host": f"{host['name']}, {host['state']}, distance {host['distance']}" if host else "",
            "shard": _shard(crawl),
            "found on": story.origin,
            "found at": time_of(story.found) if story.found is not None else "",
            "rank": _rank(story.row.rank, story.row.tries) if story.row else "",
            "revisits": revisits_at(crawl, story),
        }
    )
    if story.ended is not None:
        yield from _end_lines(crawl, story.ended)


def _shard(part: Inspection) -> str:
    """Which shard it is; empty in a crawl without shards."""
    if part.shard is None:
        return ""
    return f"{'unknown' if part.shard.number is None else part.shard.number} of {part.shard.shards}, {part.directory}"


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
            "ended at": time_of(ended.time),
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


def time_of(seconds: float) -> str:
    """The moment in words; "never" for one that no calendar has."""
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


_MAX_NAMED = 25  # rows of a table whose length depends on the crawl; chosen
_TIMES = ("time", "since", "until", "again")  # fields that are moments, in seconds since 1970
_TITLES = {
    "shards": "Shards",
    "ends": "How URLs ended",
    "mentions": "Links not followed",
    "hosts": "Hosts by state",
    "revisits": "Revisits of known pages",
    "languages": "Languages",
    "by_distance": "Yield by distance from the seeds",
    "best_hosts": "The hosts that gave most",
    "refusing": "Hosts that refuse",
    "statements": "What sites say of the use of their texts",
    "encoding": "Encodings that pages were decoded with",
    "declared": "Encodings that they declared",
    "file": "Kinds of files",
    "licence": "Licences that pages link to",
    "optout": "Kept documents with a statement on their use",
    "files": "Output",
    "events": "Last events",
}
"""Field of a status, or kind of its facts -> title of its table, in the order in which they are shown."""
_NOTES = {
    "refusing": "They shut this crawl out (docs/opt-outs.md). If you think that they would allow it, write to them: "
    "say who you are, what the corpus is for, and the User-Agent that they would have to let in.",
}


class Table(NamedTuple):
    """A field of a status as a table, for a terminal or a page; its columns are the keys of each row."""

    field: str
    title: str
    rows: list[dict[str, Any]]
    note: str = ""


def overview(status: Status) -> Iterator[str]:
    """Who crawls, what was found and kept, how URLs ended, which hosts gave most."""
    yield from lines_of(facts_of(status))
    yield ""
    for table in tables_of(status):
        yield from (table.title, *aligned_table(table.rows), "")


def summary_rows(totals: Mapping[str, int], documents: Counter[str], hosts: Mapping[str, int]) -> dict[str, str]:
    """What every summary of a crawl has: its totals, its documents by language and its hosts by state."""
    return {
        "pages": f"{totals['pages']:,}",
        "downloaded": f"{totals['downloaded_bytes'] / 1e6:,.2f} MB",
        "kept": f"{totals['kept_bytes'] / 1e6:,.2f} MB",
        "yield rate": f"{totals['kept_bytes'] / max(totals['downloaded_bytes'], 1):.4f}",
        "words": f"{totals['words']:,}",
        "documents": named_counts(documents) or "0",
        "hosts": f"{sum(hosts.values()):,}, {hosts.get(HostState.RETIRED.value, 0):,} of them retired",
    }


def named_counts(counts: Counter[str]) -> str:
    """*counts* in a line, the largest first."""
    return ", ".join(f"{name} {number:,}" for name, number in counts.most_common())


def facts_of(status: Status) -> dict[str, str]:
    """Name -> value of what is no table; empty values are of no interest."""
    urls = status.urls
    messages = sum(sum(shard.messages.values()) for shard in status.shards)
    return {
        "directory": status.directory,
        "crawling": status.process or "no process",
        "language": status.lang,
        "text steps": status.text_steps,
        **summary_rows(status.totals, Counter({one.code: one.documents for one in status.languages}), status.hosts),
        "balance": f"{urls.discovered:,} discovered = {urls.ended:,} ends + {urls.waiting:,} waiting + "
        f"{urls.in_transit:,} in transit",
        "coverage": in_words(asdict(status.coverage[-1])) if status.coverage else "",
        "messages": f"{messages:,} between shards wait" if messages else "",
        "archives": f"{status.archives_unread:,} not read to their end" if status.archives_unread else "",
        "note": status.note,
    }


def tables_of(status: Status) -> Iterator[Table]:
    """The tables of *status* that have rows."""
    values = asdict(status) | (status.facts or {}) | {"shards": [*map(_shard_row, status.shards)]}
    for name, title in _TITLES.items():
        if rows := rows_of(values.get(name) or []):
            yield Table(name, title, rows, _NOTES.get(name, ""))


def rows_of(values: dict[str, Any] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a table of *values*: one for each name and number, or for each record, of which they are fields."""
    if isinstance(values, dict):
        return [{"what": name, "is": _shown(name, value)} for name, value in [*values.items()][:_MAX_NAMED]]
    return [{name.replace("_bytes", "_mb"): _shown(name, value) for name, value in record.items()} for record in values]


def _shown(name: str, value: Any) -> Any:
    """The value of a field as people read it: bytes in megabytes, moments as dates."""
    if name.endswith("_bytes"):
        return round(value / 1e6, 3)
    return "none" if value is None else time_of(value) if name in _TIMES else value


def _shard_row(shard: ShardStatus) -> dict[str, Any]:
    return {
        "shard": Path(shard.directory).name,
        "is": shard.phase,
        **{name: shard.totals[name] for name in ("pages", "documents", "words")},
        "urls_wait": shard.urls.waiting,
        "messages_wait": ", ".join(f"{number:,} for {other}" for other, number in shard.messages.items()) or "none",
    }


_WORDS = {Standing.GONE: "gone", Standing.OPTED_OUT: "opted-out"}


def no_longer_there(crawl: AnyCrawl) -> Iterator[str]:
    """A line for each such page: date since when, gone or opted-out, URL, with tabs between them."""
    for part in crawl.parts:
        began = read_note(part.meta, "recrawl", dict[str, float]()).get("began") or 0.0
        for row in part.rows("SELECT id, content FROM recrawled ORDER BY id"):
            page = RecrawlPage.unpack(row["id"], row["content"])
            if page.version and page.state in _WORDS:
                yield f"{time_of(began + page.since * policy.DAY_S)[:10]}\t{_WORDS[page.state]}\t{page.url}"


_SINCE = {
    Standing.MISSED: "not found since {}",
    Standing.GONE: "gone since {}",
    Standing.OPTED_OUT: "opted out since {}",
    Standing.FRUITLESS: "not revisited any more since {}, for it gave no new link",
}


def revisits_at(part: Inspection, story: Story) -> str:
    """When the page of *story* was revisited last, and what is known since; empty if it is not recrawled."""
    began = read_note(part.meta, "recrawl", dict[str, float]()).get("began")
    rows = part.rows("SELECT content FROM recrawled WHERE id = ?", story.key)
    if began is None or story.key is None or not rows:
        return ""
    page = RecrawlPage.unpack(story.key, rows[0]["content"])
    last, since = (time_of(began + days * policy.DAY_S) for days in (page.last, page.since))
    said = ["none so far" if page.last == page.found_at else f"the last at {last}"]
    said += [f"version {page.version}"] if page.version > 1 else []
    said += [_SINCE[page.state].format(since)] if page.state in _SINCE else []
    return ", ".join(said)
