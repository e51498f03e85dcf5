"""A crawl's totals over time, and for how long it ran, joined over its shards.

Shards run beside each other, so their running times are not added: the crawl ran while any of them ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.jobdir.inspection import Inspection

_SUMMED = HistoryRow._fields[HistoryRow._fields.index("time_s") + 1 :]
_values = attrgetter(*_SUMMED)
_ALL = f"SELECT {', '.join(HistoryRow._fields)} FROM history"  # noqa: S608 - names of columns
_UNTIL = f"SELECT {', '.join(_SUMMED)} FROM history WHERE tick <= ? ORDER BY tick DESC LIMIT 1"  # noqa: S608


def history_of(parts: Sequence[Inspection]) -> list[HistoryRow]:
    """For each row of each of *parts*, the sums over all at that time; of a single one, its rows as they are."""
    rows = [
        (HistoryRow(*row), place)
        for place, part in enumerate(parts)
        for row in part.connection.execute(_ALL).fetchall()
    ]
    rows.sort(key=lambda row: row[0][:2])
    times = _running_times((row.time, row.time_s, place) for row, place in rows)
    sums = [0] * len(_SUMMED)
    last = dict.fromkeys(range(len(parts)), tuple(sums))
    found = []
    for (row, place), time_s in zip(rows, times, strict=True):
        now = _values(row)
        sums = [total + new - former for total, new, former in zip(sums, now, last[place], strict=True)]
        last[place] = now
        found.append(HistoryRow(row.tick, row.time, time_s, *sums))
    return found


def running_time(parts: Sequence[Inspection]) -> int:
    """Seconds for which any of *parts* ran; of a single one, those that it counts."""
    rows = [
        (row["tick"], row["time"], row["time_s"], place)
        for place, part in enumerate(parts)
        for row in part.rows("SELECT tick, time, time_s FROM history")
    ]
    *_, seconds = (0, *_running_times(row[1:] for row in sorted(rows)))
    last = max((part.counts["total/time_s"] for part in parts), default=0)
    return max(seconds, last)


def _running_times(rows: Iterable[tuple[float, int, int]]) -> Iterator[int]:
    """After each of *rows*, (time, running time of its part, part) in their order, for how long any part has run.

    A part ran until its row was written; what of that lies before the last row of another was counted there.
    """
    seconds = 0.0
    counted: Counter[int] = Counter()
    last_time = 0.0
    last_place = -1
    for time, time_s, place in rows:
        grown = time_s - counted[place]
        seconds += grown if place == last_place else max(0.0, min(grown, time - last_time))
        seconds = max(seconds, time_s)  # what was counted is in whole seconds
        counted[place] = time_s
        last_time = time
        last_place = place
        yield round(seconds)


def totals_before(parts: Sequence[Inspection], seconds: int, time_s: int) -> Counter[str]:
    """The totals of *parts* when the one that ran last had run for *seconds* less; empty: all 0.

    *time_s*: the running time of all.
    """
    times = [
        (row["time"], place)
        for place, part in enumerate(parts)
        for row in part.rows("SELECT time FROM history ORDER BY tick DESC LIMIT 1")
    ]
    if not times:
        return Counter()
    newest = parts[max(times)[1]]
    ran_s = newest.counts["total/time_s"]
    query = "SELECT tick, time_s FROM history WHERE time_s <= ? ORDER BY tick DESC LIMIT 1"
    then = newest.rows(query, ran_s - seconds)
    if not then:
        return Counter()
    before: Counter[str] = Counter()
    for part in parts:
        for row in part.rows(_UNTIL, then[0]["tick"]):
            before.update(row)
    before["time_s"] = time_s - (ran_s - then[0]["time_s"])
    return before
