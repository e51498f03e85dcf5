"""The status of a crawl as plain data: what the live page, ``inspect --json`` and the report say.

It comes from the state, read-only, and, for a crawl of this process, from its own counters (``Running``).  A crawl of
shards has the sums over them; what is no sum says how it is joined.
"""

from __future__ import annotations

import heapq
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from spiderling.archives.sources import UNREAD_KEY
from spiderling.base.errors import BadInput, StorageError
from spiderling.base.files import open_regular
from spiderling.base.option_values import parse_recrawl
from spiderling.base.reasons import Reason
from spiderling.base.terminal import hint
from spiderling.base.urls import canonicalize
from spiderling.corpus.segments import CorpusDocument
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.frontier.recrawl import policy
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.frontier.storage.url_log import unpack_ends
from spiderling.frontier.url_states import spent_of
from spiderling.jobdir.coverage import COVERAGES
from spiderling.jobdir.inspection import AnyCrawl, Inspection, counts_under, history_of, totals_before
from spiderling.jobdir.state_reader import read_note
from spiderling.jobdir.status_schema import (
    Budget,
    CoveragePoint,
    Curves,
    Ends,
    Files,
    GroupYield,
    HostList,
    HostRow,
    Language,
    Line,
    Rates,
    Refusing,
    Revisits,
    Running,
    ShardStatus,
    Status,
    Text,
    Urls,
)

LATELY_S = 300  # running time, in seconds, of which the rates are those of now; chosen
_HOURS = 6  # hours of the first curve; chosen
_EVENTS = "SELECT time, what FROM event ORDER BY rowid DESC LIMIT ?"
_POINTS = 400  # most points of a curve: more than a screen can show apart; chosen
_MAX_LINES = 20  # events and warnings that are told; chosen
_MAX_STATEMENTS = 50  # statements on the use of texts that are told; chosen
_MAX_TEXTS = 10  # newest texts that are told; chosen: reading them is half of the work of a status
_BATCHES = 20  # last batches of ends in which kept texts are looked for; chosen
_SUMMED = ("pages", "documents", "words", "downloaded_bytes", "kept_bytes")
_BEGINNING = 240  # characters of a text that are told; chosen
_LOG_BYTES = 256_000  # bytes at the end of crawl.log in which warnings are looked for; chosen
_WARNING = re.compile(
    rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ (WARNING|ERROR|CRITICAL) [\w.]+: ([^\r\n]*)", re.MULTILINE
)
TOTALS = ("requests", "pages", "documents", "words", "wire_bytes", "downloaded_bytes", "kept_bytes", "time_s")
"""Totals that are always told."""
BUDGETS = ("words", "documents", "pages", "downloaded_bytes", "time_s")  # totals that an option ``max_...`` bounds
CURVES = ("time", "time_s", "pages", "documents", "words", "downloaded_bytes", "kept_bytes", "waiting", "at_work")
"""Columns of the table ``history`` that the curves have."""
FACTS = ("encoding", "declared", "file", "licence", "sure", "optout")  # kinds of facts by which documents are counted
OPT_OUTS = frozenset(
    reason.value
    for reason in (
        Reason.ROBOTS_FORBIDDEN, Reason.ROBOTS_UNREACHABLE, Reason.SITE_OPTED_OUT, Reason.CRAWL_DELAY, Reason.NOINDEX,
        Reason.OPTED_OUT,
    )
)  # fmt: skip
"""Ends by the will of the site."""
_AT_REST = frozenset((HostState.EXHAUSTED.value, *(state.value for state in CLOSED_STATES)))


def status_of(crawl: AnyCrawl, running: Running | None = None, large: Iterable[str] | None = None) -> Status:
    """The status of *crawl*, with the counters of *running* if it, or a shard of it, runs in this process.

    *large*: those fields of `LARGE` that it has, all by default.
    """
    _let_count(crawl, running)
    counts = crawl.counts
    totals = counts_under("total", counts)
    hosts = sum((part.hosts_by_state for part in crawl.parts), start=Counter[str]())
    lately = rates(totals, totals_before(crawl.parts, LATELY_S, totals["time_s"]))
    budgets = _budgets(crawl, running, totals, lately if lately.pages_per_s else rates(totals, {}))
    ends = _ends(counts_under("end", counts))
    shards = [_shard(part) for part in crawl.parts if part.shard is not None]
    revisits = revisits_of(crawl)
    return Status(
        program=read_note(crawl.meta, "version", ""),
        directory=str(crawl.directory),
        process=crawl.holder,
        phase=_phase(running, bool(crawl.holder), _has_work(crawl, shards, revisits)),
        lang=crawl.options.lang,
        strategy=crawl.options.strategy,
        text_steps=read_note(crawl.meta, "text_steps", ""),
        made=time.time(),
        created=float(read_note(crawl.meta, "created", 0.0)),
        totals=_public_totals(totals),
        urls=_urls(counts, running.in_transit if running else 0),
        archives_unread=read_note(crawl.meta, UNREAD_KEY, 0),
        hosts=dict(hosts.most_common()),
        hosts_at_work=hosts_at_work(hosts),
        lately=lately,
        overall=rates(totals, {}),
        bottleneck=running.bottleneck if running else "",
        bottlenecks=dict(counts_under("bound", totals).most_common()),
        trouble=running.trouble if running else "",
        budgets=budgets,
        left_s=min((budget.left_s for budget in budgets if budget.left_s is not None), default=None),
        ends=ends,
        mentions=_ends(counts_under("mention", counts)),
        refusals=[end for end in ends if end.reason in OPT_OUTS],
        languages=_languages(counts),
        revisits=revisits,
        coverage=[CoveragePoint(**point) for point in read_note(crawl.meta, COVERAGES, list[dict[str, Any]]())],
        newest=newest_of(crawl),
        warnings=_newest_lines(line for part in crawl.parts for line in warnings_of(part.directory / "crawl.log")),
        events=_newest_lines(Line(row["time"], "EVENT", row["what"]) for row in crawl.rows(_EVENTS, _MAX_LINES)),
        note=crawl.note,
        shards=shards,
        **{name: LARGE[name](crawl) for name in (LARGE if large is None else large)},
    )


def hosts_at_work(hosts: Mapping[str, int]) -> int:
    """How many of *hosts*, by state, have URLs to be fetched."""
    return sum(number for state, number in hosts.items() if state not in _AT_REST)


def _has_work(crawl: AnyCrawl, shards: Iterable[ShardStatus], revisits: Revisits | None) -> bool:
    """Whether there are URLs, archives, messages or revisits yet."""
    waits = crawl.counts["waiting"] or read_note(crawl.meta, UNREAD_KEY, 0) or any(shard.messages for shard in shards)
    return bool(waits) or (revisits is not None and (revisits.until is None or time.time() < revisits.until))


def _let_count(crawl: AnyCrawl, running: Running | None) -> None:
    """Let the counters of the process *running* stand for what its part of *crawl* has committed."""
    if running is not None:
        own = next((part for part in crawl.parts if str(part.directory) == running.directory), crawl.parts[0])
        own.counts = Counter(running.counts)
        own.hosts_by_state = Counter(running.hosts)


def _public_totals(totals: Counter[str]) -> dict[str, int]:
    return {name: totals[name] for name in {*TOTALS, *totals} if not name.startswith("bound/")}


def _shard(part: Inspection) -> ShardStatus:
    boxes = part.outboxes()
    return ShardStatus(
        number=part.shard.number if part.shard else None,
        directory=str(part.directory),
        process=part.holder,
        phase=_phase(None, bool(part.holder), bool(part.counts["waiting"] or boxes)),
        totals=_public_totals(counts_under("total", part.counts)),
        urls=_urls(part.counts, 0),
        messages={str(box["shard"]): box["messages"] for box in boxes},
    )


def _phase(running: Running | None, is_crawled: bool, has_work: bool) -> str:
    if running is not None:
        return "stopping" if running.is_stopping else "paused" if running.is_paused else "running"
    return "running" if is_crawled else "stopped" if has_work else "finished"


def _urls(counts: Mapping[str, int], in_transit: int) -> Urls:
    ended = counts_under("end", counts).total()
    return Urls(counts.get("discovered", 0), ended, counts.get("waiting", 0) - in_transit, in_transit)


def rates(totals: Mapping[str, int], before: Mapping[str, int]) -> Rates:
    """The rates between two moments, given the totals at each."""
    grown = Counter({name: max(0, number - before.get(name, 0)) for name, number in totals.items()})  # not taken down
    seconds = grown["time_s"]
    return Rates(
        seconds,
        round(grown["pages"] / max(seconds, 1), 3),
        round(grown["downloaded_bytes"] / max(seconds, 1), 1),
        round(grown["words"] * 3600 / max(seconds, 1)),
        round(grown["kept_bytes"] / max(grown["downloaded_bytes"], 1), 4),
    )


def _budgets(crawl: AnyCrawl, running: Running | None, totals: Mapping[str, int], now: Rates) -> list[Budget]:
    if running is None:
        limits: Mapping[str, float] = {total: getattr(crawl.options, f"max_{total}") for total in BUDGETS}
    else:
        limits = running.limits
    per_s = {
        "words": now.words_per_hour / 3600,
        "documents": now.pages_per_s * totals.get("documents", 0) / max(totals.get("pages", 0), 1),
        "pages": now.pages_per_s,
        "downloaded_bytes": now.downloaded_bytes_per_s,
        "time_s": 1.0,
    }
    return [
        Budget(total, limit, reached, max(0.0, round((limit - reached) / speed)) if speed else None)
        for total, limit in limits.items()
        if limit
        for reached, speed in [(spent_of(total, totals), per_s[total])]
    ]


def _ends(counts: Counter[str]) -> list[Ends]:
    return [Ends(reason, number, Reason.of(reason).help) for reason, number in counts.most_common()]


def _languages(counts: Mapping[str, int]) -> list[Language]:
    words = counts_under("fact/words", counts)
    return [Language(code, number, words[code]) for code, number in counts_under("language", counts).most_common()]


def newest_of(crawl: AnyCrawl, most: int = _MAX_TEXTS) -> list[Text]:
    """The texts that were kept last, newest first; none without SPIDERLING_TRAIL."""
    query = f"SELECT time, segment, offset_bytes, keys, ends FROM ended ORDER BY batch DESC LIMIT {_BATCHES}"
    found: list[Text] = []
    for part in crawl.parts:
        found += islice((text for row in part.rows(query) for text in _texts_of(part, row)), most)
    return sorted(found, key=lambda text: text.time, reverse=True)[:most]


def _texts_of(crawl: Inspection, row: Mapping[str, Any]) -> Iterator[Text]:
    """The texts that were kept in a batch of ends, newest first."""
    kept = [end for end in unpack_ends(row["keys"], row["ends"]) if end.document is not None]
    texts: list[CorpusDocument] = []
    with suppress(StorageError):  # the corpus may lie elsewhere by now
        if kept:
            texts = crawl.texts_at(row["segment"], row["offset_bytes"])
    for end in reversed(kept):
        place = end.document or 0
        document = texts[place] if place < len(texts) else CorpusDocument({}, [], [])
        begins = " ".join(document.paragraphs)[:_BEGINNING]
        yield Text(row["time"], end.url, document.attributes.get("title", ""), end.language, end.words, begins)


def warnings_of(log: Path) -> list[Line]:
    """The last warnings and errors in the log of a crawl, newest first."""
    try:
        with open_regular(log) as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            found = _WARNING.findall(file.read())
    except OSError:
        return []
    lines = (tuple(part.decode("utf-8", "replace") for part in line) for line in found[: -_MAX_LINES - 1 : -1])
    return [Line(datetime.fromisoformat(when).timestamp(), level, what) for when, level, what in lines]


def _newest_lines(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.time, reverse=True)[:_MAX_LINES]


def _by_distance(crawl: AnyCrawl) -> list[GroupYield]:
    """All hosts, then those at each distance, which SQLite adds up."""
    found: dict[int, Counter[str]] = {}
    columns = ", ".join(f"sum({column}) AS {column}" for column in _SUMMED)
    numbers = f"sum(state != ?) AS hosts, sum(documents > 0) AS giving, {columns}"  # a host that has moved is elsewhere
    query = f"SELECT distance, {numbers} FROM newest_host GROUP BY 1"
    for row in crawl.rows(query, HostState.MOVED.value):
        found.setdefault(row.pop("distance"), Counter()).update(row)
    groups = {"all": sum(found.values(), start=Counter[str]())} | {f"distance {at}": found[at] for at in sorted(found)}
    return [
        GroupYield(
            group,
            **{column: sums[column] for column in ("hosts", "giving", *_SUMMED)},
            yield_rate=round(sums["kept_bytes"] / max(sums["downloaded_bytes"], 1), 4),
        )
        for group, sums in groups.items()
    ]


def _refusing(crawl: AnyCrawl) -> list[Refusing]:
    query = "SELECT name, expires FROM host JOIN robots ON origin = name WHERE state = 'refused'"
    until = {row["name"]: row["expires"] for row in crawl.rows(query)}
    found = {}
    for row in crawl.rows("SELECT origin, file, answer, last FROM consent WHERE says LIKE 'refuses%' ORDER BY last"):
        target = canonicalize(row["origin"])
        if target is not None and target.host in until:
            found[target.host] = Refusing(target.host, row["file"], row["answer"], row["last"], until[target.host])
    return [found[name] for name in sorted(found)]


def _files(crawl: AnyCrawl) -> list[Files]:
    segments = {kind: crawl.segments(kind) for kind in ("corpus", "links", "warc")}
    return [
        Files(kind, len(found), sum(each.entries for each in found), sum(each.length for each in found))
        for kind, found in segments.items()
        if found
    ]


def _statements(crawl: AnyCrawl) -> dict[str, int]:
    """Statement on the use of texts -> origins that make it, those of most origins first."""
    said = "SELECT says, count(DISTINCT origin) AS origins FROM consent WHERE says <> '' GROUP BY says"
    found: Counter[str] = Counter()
    for row in crawl.rows(said):
        found[row["says"]] += row["origins"]
    return dict(found.most_common(_MAX_STATEMENTS))


def _curves(crawl: AnyCrawl) -> Curves:
    """The history of the crawl, thinned to what can be drawn; empty lists for a state that has none."""
    rows = history_of(crawl.parts)
    since = rows[-1].time - _HOURS * 3600 if rows else 0.0
    return Curves(_columns([row for row in rows if row.time >= since]), _columns(rows))


def _columns(rows: list[HistoryRow]) -> dict[str, list[float]]:
    """*rows* by column: the last of each step, of which there are at most _POINTS."""
    step = -(-len(rows) // _POINTS) or 1
    chosen = rows[::-1][::step][::-1]
    return {column: [getattr(row, column) for row in chosen] for column in CURVES}


def revisits_of(crawl: AnyCrawl) -> Revisits | None:
    """The revisits of *crawl*, of shards the sums; None: there is no recrawl."""
    notes = [read_note(part.meta, "recrawl", dict[str, Any]()) for part in crawl.parts]
    begun = [note for note in notes if note.get("began") is not None]
    totals = counts_under("total", crawl.counts)
    length_days = parse_recrawl(crawl.options.recrawl)
    if not begun or not (length_days or totals["revisits"]):
        return None
    since = min(note["began"] for note in begun)
    return Revisits(
        since=since,
        until=None if math.isinf(length_days) else since + length_days * policy.DAY_S,
        recrawled=sum(note.get("recrawled", 0) for note in begun),
        revisits=totals["revisits"],
        unchanged=totals["revisits_304"],
        new=totals["revisits_new"],
        words=totals["revisit_words"],
        links=totals["revisit_links"],
        gone=totals["revisits_gone"],
        opted_out=totals["revisits_opted_out"],
    )


PAGE = 100  # hosts on a page of the list; chosen
_MAX_CHARS = 253  # characters of the longest host name (RFC 1035), and so of what is searched for
_RATE = "kept_bytes * 1.0 / max(downloaded_bytes, 1)"
ORDERS = {
    **{name: name for name in ("distance", "pages", "documents", "words", "downloaded_bytes", "kept_bytes", "waiting")},
    "parked": "parked",
    "yield_rate": _RATE,
    "name": "name",
    "state": "state",
}
"""What the list can be sorted by -> its expression in SQL."""


def hosts_of(
    crawl: AnyCrawl, search: str = "", order: str = "words", rising: bool = False, page: int = 0, most: int = PAGE
) -> HostList:
    """Page *page* of the hosts whose name holds *search*, by *order*; raises BadInput for an unknown order.

    The hosts of shards are merged in this order.
    """
    if order not in ORDERS:
        raise BadInput(f"hosts cannot be sorted by {order!r}: {hint(order, ORDERS)}")
    named = search.strip().lower()[:_MAX_CHARS]
    where = "WHERE instr(name, ?)"  # true of each name if nothing is searched for
    found = sum(row["hosts"] for row in crawl.rows(f"SELECT count(*) AS hosts FROM host {where}", named))
    last = max(0, (found - 1) // most)
    shown = min(max(page, 0), last)
    query = (
        f"SELECT {ORDERS[order]}, name, state, distance, pages, documents, words, downloaded_bytes, kept_bytes, "
        f"round({_RATE}, 4), waiting, parked FROM newest_host {where} "
        f"ORDER BY 1 {'ASC' if rising else 'DESC'}, id LIMIT ?"
    )
    sorted_parts = [part.cursor(query, named, (shown + 1) * most) for part in crawl.parts]
    rows = heapq.merge(*sorted_parts, key=itemgetter(0), reverse=not rising)
    chosen = islice(rows, shown * most, (shown + 1) * most)
    return HostList(found, shown, last + 1, [HostRow(*row[1:]) for row in chosen])


LARGE: dict[str, Callable[[AnyCrawl], Any]] = {
    "best_hosts": lambda crawl: hosts_of(crawl, most=10).hosts,
    "by_distance": _by_distance,
    "refusing": _refusing,
    "files": _files,
    "facts": lambda crawl: {kind: dict(counts_under(f"fact/{kind}", crawl.counts).most_common()) for kind in FACTS},
    "statements": _statements,
    "curves": _curves,
}
"""Field of a status that takes long in a large crawl -> what makes it."""
