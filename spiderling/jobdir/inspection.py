"""Reads from a job directory what is known of hosts and URLs, beside a running crawl or after any kill.

A crawl without shards has one job directory; else each shard has its own, and `Shards` sums over them.

Nothing is written.  Everything that one ``Inspection`` returns is from one read transaction.
"""

from __future__ import annotations

import fcntl
import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from spiderling.base.errors import BadInput, JobdirError, StorageError
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, canonicalize, owner_of, shard_of_page, url_key
from spiderling.corpus.links import LinkLine, read_links
from spiderling.corpus.segments import SUFFIX, CorpusDocument, documents, frame_texts
from spiderling.frontier.admission import Scope
from spiderling.frontier.hosts import HostState
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.frontier.storage.state_file import usable_version, what_to_do
from spiderling.frontier.storage.tables import newest_lengths
from spiderling.frontier.storage.url_log import UrlEnd, pack_keys, page_of, place_of, unpack_ends, unpack_keys
from spiderling.jobdir.state_reader import UrlRow, connected, is_like, read_note, telling_damage, urls_of

SHARD_DIRECTORY = re.compile(r"shard-(\d\d|[1-9]\d{2,})")  # the name of a shard's directory, with its number
_IN_LENGTHS = ("waiting", "parked", "distance")  # columns of a host of which the table ``length`` may have newer values
_SHARD_MAP = "shard_map"  # key of the shard map in the table ``meta`` (cluster/claims.py)


class ShardIdentity(NamedTuple):
    """Which shard of which crawl."""

    number: int | None  # None: its directory has another name than a shard's
    shards: int  # how many the crawl has
    crawl: str  # id of the crawl


class Ended(NamedTuple):
    """A URL's end, when it was written, and where the frame with the URL's document begins."""

    end: UrlEnd
    time: float
    segment: str
    offset: int


class Segment(NamedTuple):
    """The acknowledged part of a file of output."""

    path: Path
    length: int  # bytes that were acknowledged
    entries: int


class Story(NamedTuple):
    """All that is known of one URL."""

    url: str
    key: int | None = None
    host: dict[str, Any] | None = None  # the row of its host; None: the host is unknown
    row: UrlRow | None = None  # its row in a queue, if it waits, is in transit or is parked
    ended: Ended | None = None
    found: float | None = None  # when it was discovered
    origin: str = ""  # on which page
    purge: tuple[float, str] | None = None  # when its host's whole queue was given up with it, and why
    refusal: Reason | None = None  # why a mention of it would be refused by the crawl's options


def counts_under(prefix: str, counts: Mapping[str, int]) -> Counter[str]:
    """The *counts* whose keys begin with *prefix* and a slash, by the rest of the key; without those of 0."""
    start = f"{prefix}/"
    return Counter({key.removeprefix(start): n for key, n in counts.items() if key.startswith(start) and n})


def holder_of(directory: Path) -> str:
    """The process that has the crawl's *directory* open, as its lock says; empty when there is none."""
    lock = directory / "state/lock"
    with suppress(OSError), lock.open(encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return held.read().strip() or "another process"
    return ""


class Inspection:
    """A job directory opened for reading: a crawl, or one shard of one."""

    def __init__(self, directory: Path) -> None:
        """Raises BadInput when there is no crawl in *directory*, JobdirError when its state cannot be read."""
        self.directory = directory
        self.database = directory / "state/frontier.sqlite"
        if usable_version(self.database) is None:
            raise BadInput(f"{directory} holds no crawl (there is no {self.database}); give the JOBDIR of one.")
        self.connection = connected(self.database)
        self._has_newest = False
        with telling_damage(self.database):
            self.connection.execute("BEGIN")
            self.connection.execute("PRAGMA user_version").fetchone()  # from now on all that is read is of one moment

    def close(self) -> None:
        self.connection.close()

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """The rows of *query*, by column.

        The view ``newest_host`` is the table ``host`` with the newest lengths of queues and distances.
        """
        cursor = self.cursor(query, *values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def cursor(self, query: str, *values: object) -> sqlite3.Cursor:
        """What `rows` reads, one by one."""
        if "newest_host" in query:
            self._make_newest()
        return self.connection.execute(query, values)

    @cached_property
    def meta(self) -> dict[str, str]:
        return dict(self.connection.execute("SELECT key, value FROM meta").fetchall())

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(dict(self.connection.execute("SELECT key, value FROM count").fetchall()))

    @cached_property
    def hosts_by_state(self) -> Counter[str]:
        """Those that have moved to another shard count there."""
        there = f"WHERE state != '{HostState.MOVED.value}'"
        rows = self.rows(f"SELECT state, count(*) AS hosts FROM host {there} GROUP BY state ORDER BY hosts DESC")
        return Counter({row["state"]: row["hosts"] for row in rows})

    # -- as one part of a crawl

    @property
    def parts(self) -> Sequence[Inspection]:
        """The job directories of the crawl that are looked at: this one."""
        return [self]

    @property
    def databases(self) -> list[Path]:
        """The states of its parts."""
        return [self.database]

    def part_of(self, name: str) -> Inspection:
        """The part that has the host *name*, or the URL's host, if any has it."""
        return self

    @cached_property
    def shard(self) -> ShardIdentity | None:
        """Which shard it is; None: that of a crawl without shards."""
        said = read_note(self.meta, _SHARD_MAP, dict[str, Any]())
        if not said:
            return None
        shards, crawl = said.get("shards"), said.get("crawl_id")
        if not isinstance(shards, int) or not isinstance(crawl, str):
            raise JobdirError(
                f"{self.database} is damaged: its map of the shards cannot be read; {what_to_do(self.database)}."
            )
        named = SHARD_DIRECTORY.fullmatch(self.directory.absolute().name)
        return ShardIdentity(int(named[1]) if named else None, shards, crawl)

    @property
    def note(self) -> str:
        """What must be known of the parts that are looked at; empty: they are the whole crawl."""
        if self.shard is None or self.shard.shards == 1:
            return ""
        which = "one" if self.shard.number is None else f"shard {self.shard.number}"
        return f"this is {which} of the {self.shard.shards} shards of a crawl; the others are not told of"

    def outboxes(self) -> list[dict[str, Any]]:
        """The messages that wait for other shards to take them: shard, messages."""
        return self.rows("SELECT shard, count(*) AS messages FROM outbox GROUP BY shard") if self.shard else []

    @property
    def options(self) -> Options:
        """The options of the crawl's last start, as far as this version knows them."""
        values = read_note(self.meta, "options", dict[str, Any]())
        defaults = asdict(Options())
        known = {name: values[name] for name in defaults if name in values}
        strange = [name for name, value in known.items() if not is_like(value, defaults[name])]
        if strange:
            raise JobdirError(
                f"{self.database} is damaged: its option {strange[0]} cannot be read; {what_to_do(self.database)}."
            )
        return Options(**known)

    def segments(self, kind: str) -> list[Segment]:
        """The files of a kind (corpus/segments.py), oldest first."""
        rows = self.rows("SELECT name, length_bytes, entries FROM file WHERE kind = ? ORDER BY name", kind)
        return [Segment(self.directory / kind / row["name"], row["length_bytes"], row["entries"]) for row in rows]

    @property
    def holder(self) -> str:
        """The process that crawls in the directory now; empty when there is none."""
        return holder_of(self.directory)

    # -- hosts

    def host(self, name: str) -> dict[str, Any] | None:
        """The row of the host *name* (or of the URL's host); None when it is unknown."""
        target = canonicalize(name if "://" in name else f"http://{name}/")
        asked = target.host if target else name.encode(errors="replace").decode()  # it may hold what is no character
        found = self.rows("SELECT * FROM newest_host WHERE name = ?", asked)
        return found[0] if found else None

    def _make_newest(self) -> None:
        """Make the view ``newest_host``, if it is not there."""
        if self._has_newest:
            return
        self._has_newest = True
        execute = self.connection.execute
        newer = newest_lengths(execute("SELECT batch, lengths FROM length ORDER BY batch"))
        columns = [name for _, name, *_ in execute("PRAGMA table_info(host)") if name not in _IN_LENGTHS]
        both = "host"
        if newer:
            execute("CREATE TEMP TABLE newer(waiting, parked, distance, id INTEGER PRIMARY KEY)")
            self.connection.executemany("INSERT INTO newer VALUES (?, ?, ?, ?)", newer.values())
            columns += [f"coalesce(newer.{name}, host.{name}) AS {name}" for name in _IN_LENGTHS]
            both = f"(SELECT {', '.join(columns)} FROM host LEFT JOIN newer USING (id))"
        execute(f"CREATE TEMP VIEW newest_host AS SELECT * FROM {both}")

    def distances(self) -> dict[str, int]:
        """Name -> distance of each host with documents, by the last page that was acknowledged."""
        rows = self.rows("SELECT name, distance FROM newest_host WHERE documents > 0")
        return {row["name"]: row["distance"] for row in rows}

    def ends_of(self, host: int) -> Counter[str]:
        """Reason -> URLs of the host that ended so, without purged queues; it reads the keys of all ends."""
        upper = host - (1 << 24) if host >= 1 << 23 else host  # as shifting a signed key gives it
        counts: Counter[str] = Counter()
        for keys, ends in self.connection.execute("SELECT keys, ends FROM ended"):
            if any(key >> HASH_BITS == upper for key in unpack_keys(keys)):
                counts.update(end.reason for end in unpack_ends(keys, ends) if end.key >> HASH_BITS == upper)
        return counts

    # -- URLs

    def story(self, url: str) -> Story:
        """All that is known of *url*; raises BadInput if it is none."""
        target = canonicalize(url)
        if target is None:
            raise BadInput(f"{url} is no http(s) URL that a crawl could fetch; give one in full, with its scheme.")
        host = self.host(target.url)
        if host is None:
            return Story(target.url, refusal=Scope(self.options).refusal(target))
        key = url_key(host["id"], target.url)
        row = next((url for url in urls_of(self.connection, host["id"]) if url.key == key), None)
        ended = self._ended(key)
        story = Story(target.url, key, host, row, ended)
        batch = self._batch_with(key, "found", "time, pages")
        if batch is None:
            return story if row or ended else story._replace(refusal=Scope(self.options).refusal(target))
        (found, pages), place = batch
        query = "SELECT time, reason FROM purged WHERE host = ? AND time >= ? ORDER BY time LIMIT 1"
        purge = None if row or ended else self.connection.execute(query, (host["id"], found)).fetchone()
        return story._replace(found=found, origin=self._origin(page_of(place, pages)), purge=purge)

    def _origin(self, page: int) -> str:
        """In words what has the key *page*, as a discovery has it: a page, or that of another shard, or none."""
        shard = shard_of_page(page)
        if shard is not None:
            return f"a page of shard {shard}, which sent the link"
        if not page:
            return "no page: a seed, or put in by hand"
        ended = self._ended(page)
        return ended.end.url if ended else "an unknown page"

    def text_of(self, ended: Ended) -> CorpusDocument | None:
        """The document that a URL left in the corpus; None if it left none.  Raises StorageError."""
        number = ended.end.document
        if number is None:
            return None
        found = self.texts_at(ended.segment, ended.offset)
        if number >= len(found):
            raise StorageError(f"{ended.segment} has no document {number} at byte {ended.offset}.")
        return found[number]

    def texts_at(self, segment: str, offset: int) -> list[CorpusDocument]:
        """The documents in a frame of the corpus; raises StorageError."""
        frame = next(frame_texts(self.directory / "corpus" / segment, sys.maxsize, offset))
        return list(documents(frame.split("\n")))

    def _ended(self, key: int) -> Ended | None:
        batch = self._batch_with(key, "ended", "time, segment, offset_bytes, keys, ends")
        if batch is None:
            return None
        (time, segment, offset, keys, ends), place = batch
        return Ended(unpack_ends(keys, ends)[place], time, segment, offset)

    def _batch_with(self, key: int, table: str, columns: str) -> tuple[tuple[Any, ...], int] | None:
        """The *columns* of the last batch in *table* that holds *key*, and the key's place in it."""
        query = f"SELECT batch, keys FROM {table} WHERE instr(keys, ?) ORDER BY batch DESC"
        for batch, keys in self.connection.execute(query, (pack_keys((key,)),)):
            place = place_of(key, keys)
            if place is not None:
                query = f"SELECT {columns} FROM {table} WHERE batch = ?"
                return self.connection.execute(query, (batch,)).fetchone(), place
        return None


_SUMMED = HistoryRow._fields[HistoryRow._fields.index("time_s") + 1 :]
_values = attrgetter(*_SUMMED)
_ALL = f"SELECT {', '.join(HistoryRow._fields)} FROM history"
_UNTIL = f"SELECT {', '.join(_SUMMED)} FROM history WHERE tick <= ? ORDER BY tick DESC LIMIT 1"


def history_of(parts: Sequence[Inspection]) -> list[HistoryRow]:
    """For each row of each of *parts*, the sums over all at that time, and the longest running time."""
    rows = [
        (HistoryRow(*row), place)
        for place, part in enumerate(parts)
        for row in part.connection.execute(_ALL).fetchall()
    ]
    last: dict[int, HistoryRow] = {}
    found = []
    for row, place in sorted(rows, key=lambda row: row[0][:2]):
        last[place] = row
        sums = map(sum, zip(*map(_values, last.values()), strict=True))
        found.append(HistoryRow(row.tick, row.time, max(each.time_s for each in last.values()), *sums))
    return found


def totals_before(parts: Sequence[Inspection], seconds: int, time_s: int) -> Counter[str]:
    """The totals of *parts* when the one that ran last had run for *seconds* less; empty: all 0.

    *time_s*: the running time of all.
    """
    last = "SELECT time FROM history ORDER BY tick DESC LIMIT 1"
    times = ((row["time"], place) for place, part in enumerate(parts) for row in part.rows(last))
    newest = parts[max(times, default=(0.0, 0))[1]]
    ran_s = newest.counts["total/time_s"]
    query = "SELECT tick, time_s FROM history WHERE time_s <= ? ORDER BY tick DESC LIMIT 1"
    before: Counter[str] = Counter()
    for then in newest.rows(query, ran_s - seconds):
        for part in parts:
            for row in part.rows(_UNTIL, then["tick"]):
                before.update(row)
        before["time_s"] = time_s - (ran_s - then["time_s"])
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
                f"{directory} holds shards of different crawls ({', '.join(first.values())}): if scrapy reshard was "
                "interrupted, give the same command again; else move those of one crawl to a directory of their own."
            )

    def close(self) -> None:
        for part in self.parts:
            part.close()

    @property
    def note(self) -> str:
        """What must be known of the parts that are looked at; empty: they are the whole crawl."""
        missing = [number for number in range(self._shards) if number not in self._by_number]
        if not missing:
            return ""
        *others, last = map(str, missing)
        named = f"shards {', '.join(others)} and {last}" if others else f"shard {last}"
        return f"{named} of {self._shards} {'are' if others else 'is'} not here"

    @property
    def databases(self) -> list[Path]:
        return [part.database for part in self.parts]

    @cached_property
    def counts(self) -> Counter[str]:
        """The sums over the shards; but the running time is the longest."""
        counts = sum((part.counts for part in self.parts), start=Counter[str]())
        counts["total/time_s"] = max(part.counts["total/time_s"] for part in self.parts)
        return counts

    @property
    def meta(self) -> dict[str, str]:
        """What is noted in the first shard; the crawl began when the first of all began."""
        created = min(read_note(part.meta, "created", 0.0) for part in self.parts)
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
        return list(chain.from_iterable(part.rows(query, *values) for part in self.parts))

    def segments(self, kind: str) -> list[Segment]:
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
            raise BadInput(f"the shards in {directory} are only being made: start the crawl, or look again.")
        crawl = Shards(directory, begun)
        stack.pop_all()
    return crawl


@contextmanager
def reading(directory: Path) -> Iterator[AnyCrawl]:
    """What `opened` gives, to be read within the block and then closed; damage that shows there raises JobdirError."""
    with closing(opened(directory)) as crawl, telling_damage(directory / "state/frontier.sqlite"):
        yield crawl


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
    with reading(directory) as crawl:
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
            f"{part.directory} is named as a shard of a crawl, and holds a crawl without shards: if scrapy reshard was "
            "interrupted, give the same command again; else move it elsewhere."
        )
    is_peer = part.rows("SELECT shard FROM peer WHERE shard = ?", shard.number)
    if shard.number >= shard.shards or is_peer:
        raise JobdirError(
            f"{part.directory} holds another of the {shard.shards} shards than its name says: it is a copy, or was "
            "renamed. Take it away, or give it the name that it had."
        )
    return shard.number
