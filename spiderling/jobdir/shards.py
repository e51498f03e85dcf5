"""The parts of a crawl: its job directory, or, if it has shards, those of the shards that are here.

All that reads a crawl begins with ``opened``, sums over ``parts``, and says ``note``.  Shards run beside each other, so
their running times are not added: the crawl ran while any of them ran.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.options import Options
from spiderling.base.urls import canonicalize, owner_of
from spiderling.corpus.links import LinkLine, read_links
from spiderling.corpus.segments import SUFFIX
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.jobdir.inspection import SHARD_DIRECTORY, Inspection, Segment
from spiderling.jobdir.state_reader import noted

_SUMMED = HistoryRow._fields[HistoryRow._fields.index("time_s") + 1 :]
_values = attrgetter(*_SUMMED)
_ALL = f"SELECT {', '.join(HistoryRow._fields)} FROM history"
_UNTIL = f"SELECT {', '.join(_SUMMED)} FROM history WHERE tick <= ? ORDER BY tick DESC LIMIT 1"


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


class Shards:
    """The shards of one crawl that are here, opened for reading; each is read at a moment of its own."""

    def __init__(self, directory: Path, parts: Sequence[Inspection]) -> None:
        """*parts*, the shards in *directory*, at least one; raises JobdirError if they are not of one crawl."""
        self.directory = directory
        self.parts = parts
        self._by_number = {_number_of(part): part for part in parts}
        self._shards = max(part.shard.shards for part in parts if part.shard)
        first: dict[str, str] = {}
        for part in parts:
            if part.shard is not None:
                first.setdefault(part.shard.crawl, part.directory.name)
        if len(first) > 1:
            raise JobdirError(
                f"{directory} holds shards of different crawls ({', '.join(first.values())}); move those of one crawl "
                "to a directory of their own."
            )

    def close(self) -> None:
        """Close all."""
        for part in self.parts:
            part.close()

    @property
    def note(self) -> str:
        """What must be known of the parts that are looked at; empty: they are the whole crawl."""
        missing = [number for number in range(self._shards) if number not in self._by_number]
        if not missing:
            return ""
        return f"{_named(missing)} of {self._shards} {'is' if len(missing) == 1 else 'are'} not here"

    @cached_property
    def counts(self) -> Counter[str]:
        """The sums over the shards; but the crawl ran while any of them ran."""
        counts = sum((part.counts for part in self.parts), start=Counter[str]())
        counts["total/time_s"] = running_time(self.parts)
        return counts

    @property
    def archives_unread(self) -> int:
        """0: shards read no archives."""
        return sum(part.archives_unread for part in self.parts)

    @property
    def meta(self) -> dict[str, str]:
        """What is noted in the first shard; the crawl began when the first of all began."""
        created = min(noted(part.meta, "created", 0.0) for part in self.parts)
        return self.parts[0].meta | {"created": json.dumps(created)}

    @property
    def options(self) -> Options:
        """Those of the first shard; others may have been started with some of their own."""
        return self.parts[0].options

    @property
    def holder(self) -> str:
        """The processes that crawl now; empty when there are none."""
        return ", ".join(filter(None, (part.holder for part in self.parts)))

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """The rows of *query* in each shard, one shard after the other."""
        return list(chain.from_iterable(part.rows(query, *values) for part in self.parts))

    def rows_of_hosts(self, query: str, *values: object) -> list[dict[str, Any]]:
        """`rows` of a *query* of hosts, with what is newer."""
        return list(chain.from_iterable(part.rows_of_hosts(query, *values) for part in self.parts))

    def segments(self, kind: str) -> list[Segment]:
        """The files of a kind (corpus/segments.py), shard by shard."""
        return list(chain.from_iterable(part.segments(kind) for part in self.parts))

    def part_of(self, name: str) -> Inspection:
        """The shard that has the host *name* or the URL's host, or would have it; raises BadInput if it is not here."""
        target = canonicalize(name if "://" in name else f"http://{name}/")
        host = target.host if target else name
        owner = owner_of(host, self._shards)
        mine = self._by_number.get(owner)
        # those that have the host go first: the list of public suffixes may be another one here than in the crawl
        found = next((part for part in (mine, *self.parts) if part is not None and part.host(host) is not None), mine)
        if found is None:
            raise BadInput(f"{host} belongs to shard {owner} of {self._shards}, which is not in {self.directory}.")
        return found


AnyCrawl: TypeAlias = "Inspection | Shards"  # a crawl as its readers get it


def opened(directory: Path) -> AnyCrawl:
    """The crawl in *directory*, or the shard; raises BadInput when there is none, JobdirError if it cannot be read."""
    places = parts_in(directory)
    if places == [directory]:
        return Inspection(directory)
    with ExitStack() as stack:
        parts = [stack.enter_context(closing(Inspection(place))) for place in places]
        begun = [part for part in parts if part.shard is not None or part.counts["discovered"]]
        if not begun:
            raise BadInput(f"the shards in {directory} are only being made; look again in some seconds.")
        crawl = Shards(directory, begun)
        stack.pop_all()
    return crawl


def parts_in(directory: Path) -> list[Path]:
    """The job directories of the crawl in *directory*: itself, or those of its shards that are here, by number.

    A shard that has lost its state is among them, one without any output or state is not.
    """
    if (directory / "state").exists() or not directory.is_dir():
        return [directory]
    found = {
        int(named[1]): place
        for place in directory.iterdir()
        if (named := SHARD_DIRECTORY.fullmatch(place.name))
        and ((place / "state/frontier.sqlite").is_file() or any(place.glob(f"corpus/*{SUFFIX}")))
    }
    return [found[number] for number in sorted(found)] or [directory]


def progress_of(totals: Mapping[str, int], pages_per_s: float | None) -> str:
    """What a progress line says first, of one process or of all shards, in four figures; None: no speed is known."""
    speed = "" if pages_per_s is None else f" ({pages_per_s:.1f}/s)"
    downloaded = f"{totals['downloaded_bytes'] / 1e6:,.1f} MB downloaded"
    return f"{totals['pages']:,} pages{speed}, {downloaded}, {totals['words']:,} words"


def commands_for(directory: Path) -> str:
    """What to run on the crawl of shards in *directory*, in sentences without a last full stop."""
    return (
        f"scrapy inspect {directory}, scrapy report {directory}. To remove text that more than one shard found, run "
        f"scrapy dedup {directory} -o corpus.prevert.zst"
    )


def links_of_crawl(directory: Path) -> Iterator[LinkLine]:
    """The lines of a crawl, finished or running, as far as they were acknowledged.

    Raises BadInput if it has none, StorageError if a segment is damaged.
    """
    with closing(opened(directory)) as crawl:
        segments = crawl.segments("links")
    if not segments:
        raise BadInput(f"{directory} holds no links: crawl with -s SPIDERLING_LINKS=on to have them written.")
    for segment in segments:
        yield from read_links(segment.path, segment.length)


def _number_of(part: Inspection) -> int:
    """The number of a shard by the name of its directory; raises JobdirError if it cannot be that."""
    shard = part.shard
    if shard is None or shard.number is None:
        raise JobdirError(
            f"{part.directory} is named as a shard of a crawl, and holds a crawl without shards; move it elsewhere."
        )
    is_peer = part.rows("SELECT shard FROM peer WHERE shard = ?", shard.number)
    if shard.number >= shard.shards or is_peer:
        raise JobdirError(
            f"{part.directory} holds another of the {shard.shards} shards than its name says: it is a copy, or was "
            "renamed. Take it away, or give it the name that it had."
        )
    return shard.number


def _named(numbers: Sequence[int]) -> str:
    """
    >>> _named([3]), _named([2, 5, 7])
    ('shard 3', 'shards 2, 5 and 7')
    """
    *others, last = map(str, numbers)
    return f"shards {', '.join(others)} and {last}" if others else f"shard {last}"
