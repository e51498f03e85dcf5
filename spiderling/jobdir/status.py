"""The status of a crawl as plain data: what the live page, ``inspect --json`` and the report say.

It comes from the state, read-only, and, for a crawl of this process, from its own counters (``Running``).  A crawl of
shards has the sums over them; what is no sum says how it is joined.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path

from spiderling.base.atomic_files import open_regular
from spiderling.base.errors import StorageError
from spiderling.base.reasons import Reason
from spiderling.corpus import reader
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.frontier.storage.url_log import unpack_ends
from spiderling.jobdir.history import history_of, totals_before
from spiderling.jobdir.host_list import hosts_of
from spiderling.jobdir.inspection import Inspection, counts_under
from spiderling.jobdir.looks import looks_of
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.sound_reading import noted
from spiderling.jobdir.status_schema import (
    VERSION,
    Budget,
    Curves,
    Ends,
    Language,
    Line,
    Looks,
    Rates,
    Running,
    ShardStatus,
    Status,
    Text,
    Urls,
)

LATELY_S = 300
"""Running time, in seconds, of which the rates are those of now (chosen)."""
_HOURS = 6
"""Hours of the first curve (chosen)."""
_POINTS = 400
"""Most points of a curve: more than a screen can show apart (chosen)."""
_MOST_LINES = 20
"""Events and warnings that are told (chosen)."""
_MOST_STATEMENTS = 50
"""Statements on the use of texts that are told (chosen)."""
_MOST_TEXTS = 10
"""Newest texts that are told (chosen: reading them is half of the work of a status)."""
_BATCHES = 20
"""Last batches of ends in which kept texts are looked for (chosen)."""
_BEGINNING = 240
"""Characters of a text that are told (chosen)."""
_LOG_BYTES = 256_000
"""Bytes at the end of crawl.log in which warnings are looked for (chosen)."""
_WARNING = re.compile(
    rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ (WARNING|ERROR|CRITICAL) [\w.]+: ([^\r\n]*)", re.MULTILINE
)
TOTALS = ("requests", "pages", "documents", "words", "wire_bytes", "downloaded_bytes", "kept_bytes", "time_s")
"""Totals that are always told."""
BUDGETS = ("words", "documents", "pages", "downloaded_bytes", "time_s")
"""Totals that an option ``max_...`` bounds."""
CURVES = ("time", "time_s", "pages", "documents", "words", "downloaded_bytes", "kept_bytes", "waiting", "at_work")
"""Columns of the table ``history`` that the curves have."""
OPT_OUTS = frozenset(
    reason.value
    for reason in (
        Reason.ROBOTS_FORBIDDEN, Reason.ROBOTS_UNREACHABLE, Reason.SITE_OPTED_OUT, Reason.CRAWL_DELAY, Reason.NOINDEX,
        Reason.OPTED_OUT,
    )
)  # fmt: skip
"""Ends by the will of the site."""
_AT_REST = frozenset((HostState.EXHAUSTED.value, *(state.value for state in CLOSED_STATES)))


def status_of(crawl: AnyCrawl, running: Running | None = None, now: float | None = None, whole: bool = True) -> Status:
    """The status of *crawl*, with the counters of *running* if it, or a shard of it, runs in this process.

    *whole*: with what takes long in a large crawl.  *now*: the time to be told, the clock's by default.
    """
    _let_count(crawl, running)
    counts = crawl.counts
    totals = counts_under("total", counts)
    hosts = sum((part.hosts_by_state for part in crawl.parts), start=Counter[str]())
    overall = rates(totals, Counter())
    lately = rates(totals, totals_before(crawl.parts, LATELY_S, totals["time_s"]))
    budgets = _budgets(crawl, running, totals, lately if lately.pages_per_s else overall)
    ends = _ends(counts_under("end", counts))
    shards = [_shard(part) for part in crawl.parts if part.shard is not None]
    looks = looks_of(crawl, now)
    return Status(
        version=VERSION,
        program=noted(crawl.meta, "version", ""),
        directory=str(crawl.directory),
        process=crawl.holder,
        phase=_phase(running, bool(crawl.holder), _left(crawl, shards, looks)),
        lang=crawl.options.lang,
        strategy=crawl.options.strategy,
        made=time.time() if now is None else now,
        created=float(noted(crawl.meta, "created", 0.0)),
        totals=_told(totals),
        urls=_urls(counts, running.in_transit if running else 0),
        hosts=dict(hosts.most_common()),
        hosts_at_work=sum(number for state, number in hosts.items() if state not in _AT_REST),
        lately=lately,
        overall=overall,
        bottleneck=running.bottleneck if running else "",
        bottlenecks=dict(counts_under("bound", totals).most_common()),
        trouble=running.trouble if running else "",
        budgets=budgets,
        left_s=min((budget.left_s for budget in budgets if budget.left_s is not None), default=None),
        ends=ends,
        mentions=_ends(counts_under("mention", counts)),
        refusals=[end for end in ends if end.reason in OPT_OUTS],
        languages=_languages(counts),
        looks=looks,
        newest=newest_of(crawl),
        warnings=_newest_lines(line for part in crawl.parts for line in warnings_of(part.directory / "crawl.log")),
        events=events_of(crawl),
        best_hosts=hosts_of(crawl, most=10).hosts if whole else None,
        statements=dict(statements_of(crawl)) if whole else None,
        curves=curves_of(crawl) if whole else None,
        note=crawl.note,
        shards=shards,
    )


def _left(crawl: AnyCrawl, shards: Iterable[ShardStatus], looks: Looks | None) -> int:
    """What there is to be done yet: URLs, archives, messages, looks; 0 if the crawl is finished."""
    messages = sum(sum(shard.messages.values()) for shard in shards)
    return crawl.counts["waiting"] + crawl.archives_unread + messages + (looks is not None and looks.due is not None)


def _let_count(crawl: AnyCrawl, running: Running | None) -> None:
    """Let the counters of the process *running* stand for what its part of *crawl* has committed."""
    if running is not None:
        own = next((part for part in crawl.parts if str(part.directory) == running.directory), crawl.parts[0])
        own.count_by(running.counts, running.hosts)


def _told(totals: Counter[str]) -> dict[str, int]:
    return {name: totals[name] for name in {*TOTALS, *totals} if not name.startswith("bound/")}


def _shard(part: Inspection) -> ShardStatus:
    boxes = part.outboxes()
    return ShardStatus(
        number=part.shard.number if part.shard else None,
        directory=str(part.directory),
        process=part.holder,
        phase=_phase(None, bool(part.holder), part.counts["waiting"] + len(boxes)),
        totals=_told(counts_under("total", part.counts)),
        urls=_urls(part.counts, 0),
        messages={str(box.shard): box.messages for box in boxes},
        messages_since=min((box.since for box in boxes), default=None),
    )


def _phase(running: Running | None, is_crawled: bool, left: int) -> str:
    if running is not None:
        return "stopping" if running.is_stopping else "paused" if running.is_paused else "running"
    return "running" if is_crawled else "stopped" if left else "finished"


def _urls(counts: Mapping[str, int], in_transit: int) -> Urls:
    ended = counts_under("end", counts).total()
    return Urls(counts.get("discovered", 0), ended, counts.get("waiting", 0) - in_transit, in_transit)


def rates(totals: Mapping[str, int], before: Mapping[str, int]) -> Rates:
    """The rates between two moments, given the totals at each."""
    grown = Counter({name: number - before.get(name, 0) for name, number in totals.items()})
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
        for reached, speed in [(totals.get(total, 0), per_s[total])]
    ]


def _ends(counts: Counter[str]) -> list[Ends]:
    return [Ends(reason, number, Reason.of(reason).help) for reason, number in counts.most_common()]


def _languages(counts: Mapping[str, int]) -> list[Language]:
    words = counts_under("fact/words", counts)
    return [Language(code, number, words[code]) for code, number in counts_under("language", counts).most_common()]


def newest_of(crawl: AnyCrawl, most: int = _MOST_TEXTS) -> list[Text]:
    """The texts that were kept last, newest first; none without SPIDERLING_TRAIL."""
    found = chain.from_iterable(_newest_of_part(part, most) for part in crawl.parts)
    return sorted(found, key=lambda text: text.time, reverse=True)[:most]


def _newest_of_part(crawl: Inspection, most: int) -> list[Text]:
    query = f"SELECT time, segment, offset_bytes, keys, ends FROM ended ORDER BY batch DESC LIMIT {_BATCHES}"
    found: list[Text] = []
    for row in crawl.rows(query):
        kept = [end for end in unpack_ends(row["keys"], row["ends"]) if end.document is not None]
        documents: list[reader.Document] = []
        with suppress(StorageError):  # the corpus may lie elsewhere by now
            if kept:
                frame = reader.frame_at(crawl.directory / "corpus" / row["segment"], row["offset_bytes"])
                documents = list(reader.documents(frame.split("\n")))
        for end in reversed(kept):
            place = end.document or 0
            document = documents[place] if place < len(documents) else reader.Document({}, [], [])
            begins = " ".join(document.paragraphs)[:_BEGINNING]
            title = document.attributes.get("title", "")
            found.append(Text(row["time"], end.url, title, end.language, end.words, begins))
        if len(found) >= most:
            break
    return found[:most]


def warnings_of(log: Path) -> list[Line]:
    """The last warnings and errors in the log of a crawl, newest first."""
    try:
        with open_regular(log) as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            found = _WARNING.findall(file.read())
    except OSError:
        return []
    lines = (tuple(part.decode("utf-8", "replace") for part in line) for line in found[: -_MOST_LINES - 1 : -1])
    return [Line(datetime.fromisoformat(when).timestamp(), level, what) for when, level, what in lines]


def events_of(crawl: AnyCrawl) -> list[Line]:
    """What a person did or should know, newest first; of all shards."""
    rows = crawl.rows("SELECT time, what FROM event ORDER BY rowid DESC LIMIT ?", _MOST_LINES)
    return _newest_lines(Line(row["time"], "EVENT", row["what"]) for row in rows)


def _newest_lines(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.time, reverse=True)[:_MOST_LINES]


def statements_of(crawl: AnyCrawl) -> Counter[str]:
    """Statement on the use of texts -> origins that make it, those of most origins first."""
    said = "SELECT says, count(DISTINCT origin) AS origins FROM consent WHERE says <> '' GROUP BY says"
    found: Counter[str] = Counter()
    for row in crawl.rows(said):
        found[row["says"]] += row["origins"]
    return Counter(dict(found.most_common(_MOST_STATEMENTS)))


def curves_of(crawl: AnyCrawl) -> Curves:
    """The history of the crawl, thinned to what can be drawn; empty lists for a state that has none."""
    rows = history_of(crawl.parts)
    since = rows[-1].time - _HOURS * 3600 if rows else 0.0
    return Curves(_columns([row for row in rows if row.time >= since]), _columns(rows))


def _columns(rows: list[HistoryRow]) -> dict[str, list[float]]:
    """*rows* by column: the last of each step, of which there are at most _POINTS."""
    step = -(-len(rows) // _POINTS) or 1
    chosen = rows[::-1][::step][::-1]
    return {column: [getattr(row, column) for row in chosen] for column in CURVES}
