"""The status of a crawl as plain data: what the live page, ``inspect --json`` and the report say.

It comes from the state, read-only, and, for a crawl of this process, from its own counters (``Running``).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from spiderling.base.errors import StorageError
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.corpus import reader
from spiderling.frontier.hosts.host import CLOSED_STATES, HostState
from spiderling.frontier.storage.url_log import unpack_ends
from spiderling.jobdir.host_list import hosts_of
from spiderling.jobdir.inspection import Inspection, counts_under
from spiderling.jobdir.sound_reading import noted
from spiderling.jobdir.status_schema import (
    VERSION,
    Budget,
    Curves,
    Ends,
    Language,
    Line,
    Rates,
    Running,
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


def status_of(
    crawl: Inspection, running: Running | None = None, now: float | None = None, whole: bool = True
) -> Status:
    """The status of *crawl*, with the counters of *running* if it runs in this process.

    *whole*: with what takes long in a large crawl.  *now*: the time to be told, the clock's by default.
    """
    counts = crawl.counts if running is None else running.counts
    totals = counts_under("total", counts)
    hosts = _hosts(crawl) if running is None else dict(running.hosts)
    overall = rates(totals, Counter())
    lately = rates(totals, _totals_before(crawl, totals["time_s"] - LATELY_S))
    budgets = _budgets(crawl.options, running, totals, lately if lately.pages_per_s else overall)
    ends = _ends(counts_under("end", counts))
    process = crawl.holder
    return Status(
        version=VERSION,
        program=noted(crawl.meta, "version", ""),
        directory=str(crawl.directory),
        process=process,
        phase=_phase(running, bool(process), counts.get("waiting", 0) + crawl.archives_unread),
        lang=crawl.options.lang,
        strategy=crawl.options.strategy,
        made=time.time() if now is None else now,
        created=float(noted(crawl.meta, "created", 0.0)),
        totals={name: totals[name] for name in {*TOTALS, *totals} if not name.startswith("bound/")},
        urls=_urls(counts, running.in_transit if running else 0),
        hosts=hosts,
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
        newest=newest_of(crawl),
        warnings=warnings_of(crawl.directory / "crawl.log"),
        events=_events(crawl),
        best_hosts=hosts_of(crawl, most=10).hosts if whole else None,
        statements=_statements(crawl) if whole else None,
        curves=curves_of(crawl) if whole else None,
    )


def _phase(running: Running | None, is_crawled: bool, left: int) -> str:
    if running is not None:
        return "stopping" if running.is_stopping else "paused" if running.is_paused else "running"
    return "running" if is_crawled else "stopped" if left else "finished"


def _urls(counts: Mapping[str, int], in_transit: int) -> Urls:
    ended = counts_under("end", counts).total()
    return Urls(counts.get("discovered", 0), ended, counts.get("waiting", 0) - in_transit, in_transit)


def _hosts(crawl: Inspection) -> dict[str, int]:
    rows = crawl.rows("SELECT state, count(*) AS hosts FROM host GROUP BY state ORDER BY hosts DESC")
    return {row["state"]: row["hosts"] for row in rows}


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


def _has_history(crawl: Inspection) -> bool:
    """Whether the state is not older than its table ``history``."""
    return bool(crawl.rows("SELECT name FROM sqlite_master WHERE name = 'history'"))


def _totals_before(crawl: Inspection, time_s: int) -> dict[str, int]:
    """The totals after *time_s* seconds of running time; empty: all 0."""
    query = (
        "SELECT time_s, pages, documents, words, downloaded_bytes, kept_bytes FROM history WHERE time_s <= ? "
        "ORDER BY tick DESC LIMIT 1"
    )
    rows = crawl.rows(query, time_s) if _has_history(crawl) else []
    return rows[0] if rows else {}


def _budgets(options: Options, running: Running | None, totals: Mapping[str, int], now: Rates) -> list[Budget]:
    if running is None:
        limits: Mapping[str, float] = {total: getattr(options, f"max_{total}") for total in BUDGETS}
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


def newest_of(crawl: Inspection, most: int = _MOST_TEXTS) -> list[Text]:
    """The texts that were kept last, newest first; none without SPIDERLING_TRAIL."""
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
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            found = _WARNING.findall(file.read())
    except OSError:
        return []
    lines = (tuple(part.decode("utf-8", "replace") for part in line) for line in found[: -_MOST_LINES - 1 : -1])
    return [Line(datetime.fromisoformat(when).timestamp(), level, what) for when, level, what in lines]


def _events(crawl: Inspection) -> list[Line]:
    rows = crawl.rows("SELECT time, what FROM event ORDER BY rowid DESC LIMIT ?", _MOST_LINES)
    return [Line(row["time"], "EVENT", row["what"]) for row in rows]


def _statements(crawl: Inspection) -> dict[str, int]:
    said = "SELECT says, count(DISTINCT origin) AS origins FROM consent WHERE says <> '' GROUP BY says"
    rows = crawl.rows(f"{said} ORDER BY origins DESC LIMIT 50")
    return {row["says"]: row["origins"] for row in rows}


def curves_of(crawl: Inspection) -> Curves:
    """The history of the crawl, thinned to what can be drawn; empty lists for a state that has none."""
    rows: list[dict[str, Any]] = []
    if _has_history(crawl):
        rows = crawl.rows(f"SELECT {', '.join(CURVES)} FROM history ORDER BY tick")
    since = rows[-1]["time"] - _HOURS * 3600 if rows else 0.0
    return Curves(_columns([row for row in rows if row["time"] >= since]), _columns(rows))


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """*rows* by column: the last of each step, of which there are at most _POINTS."""
    step = -(-len(rows) // _POINTS) or 1
    chosen = rows[::-1][::step][::-1]
    return {column: [row[column] for row in chosen] for column in CURVES}
