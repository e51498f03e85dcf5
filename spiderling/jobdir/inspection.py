"""Reads from a job directory what is known of hosts and URLs, beside a running crawl or after any kill.

A crawl without shards has one job directory, else each shard has its own (shards.py).

Nothing is written.  Everything that one ``Inspection`` returns is from one read transaction.
"""

from __future__ import annotations

import fcntl
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from spiderling.archives.sources import UNREAD_KEY
from spiderling.base.errors import BadInput, JobdirError, StorageError
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, canonicalize, shard_of_page, url_key
from spiderling.corpus.segments import Document, documents, frame_at
from spiderling.frontier.admission import Scope
from spiderling.frontier.storage.protocol import message_id
from spiderling.frontier.storage.state_file import usable_version, what_to_do
from spiderling.frontier.storage.tables import Length, newest_lengths
from spiderling.frontier.storage.url_log import End, pack_keys, page_of, place_of, unpack_ends, unpack_keys
from spiderling.jobdir.state_reader import SoundConnection, UrlRow, is_like, noted, urls_of

SHARD_DIRECTORY = re.compile(r"shard-(\d\d|[1-9]\d{2,})")  # the name of a shard's directory, with its number
_IN_LENGTHS = ("waiting", "parked", "distance")  # columns of a host of which the table ``length`` may have newer values
_SHARD_MAP = "shard_map"  # key of the shard map in the table ``meta`` (cluster/claims.py)


class Shard(NamedTuple):
    """Which shard of which crawl."""

    number: int | None  # None: its directory has another name than a shard's
    shards: int  # how many the crawl has
    crawl: str  # id of the crawl


class Outbox(NamedTuple):
    """Messages that wait for another shard to take them."""

    shard: int
    messages: int
    since: float  # when the oldest was begun


class Ended(NamedTuple):
    """A URL's end, when it was written, and where the frame with the URL's document begins."""

    end: End
    time: float
    segment: str
    offset: int


class Found(NamedTuple):
    """Says when a URL was discovered, and on which page."""

    time: float
    page: int
    """Key of the page; 0: none, it is a seed or was put in by hand; below that of any page: one of another shard."""

    @property
    def shard(self) -> int | None:
        """The other shard that found it; None: this one."""
        return shard_of_page(self.page)


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
    found: Found | None = None
    page: str = ""  # URL of the page that it was found on, if that is known
    purge: tuple[float, str] | None = None  # when its host's whole queue was given up with it, and why
    refusal: Reason | None = None  # why a mention of it would be refused by the crawl's options


def counts_under(prefix: str, counts: Mapping[str, int]) -> Counter[str]:
    """The *counts* whose keys begin with *prefix* and a slash, by the rest of the key; without those of 0."""
    start = f"{prefix}/"
    return Counter({key.removeprefix(start): n for key, n in counts.items() if key.startswith(start) and n})


class Inspection:
    """A job directory opened for reading: a crawl, or one shard of one."""

    def __init__(self, directory: Path) -> None:
        """Raises BadInput when there is no crawl in *directory*, JobdirError when its state cannot be read."""
        self.directory = directory
        self.database = directory / "state/frontier.sqlite"
        if usable_version(self.database) is None:
            raise BadInput(f"{directory} holds no crawl (there is no {self.database}); give the JOBDIR of one.")
        self.connection = SoundConnection(self.database)
        self.connection.execute("BEGIN")
        self._is_newest = False
        self.connection.execute("PRAGMA user_version").fetchone()  # from now on all that is read is of one moment

    def close(self) -> None:
        self.connection.close()

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """The rows of *query*, by column; raises JobdirError if the file is damaged."""
        cursor = self.connection.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def rows_of_hosts(self, query: str, *values: object) -> list[dict[str, Any]]:
        """The rows of a *query* of the table ``host`` or of views on it, with what is newer; raises JobdirError."""
        self.newest()
        return self.rows(query, *values)

    @cached_property
    def meta(self) -> dict[str, str]:
        return dict(self.connection.execute("SELECT key, value FROM meta").fetchall())

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(dict(self.connection.execute("SELECT key, value FROM count").fetchall()))

    @cached_property
    def hosts_by_state(self) -> Counter[str]:
        rows = self.rows("SELECT state, count(*) AS hosts FROM host GROUP BY state ORDER BY hosts DESC")
        return Counter({row["state"]: row["hosts"] for row in rows})

    def count_by(self, counts: Mapping[str, int], hosts: Mapping[str, int]) -> None:
        """Let *counts*, and *hosts* by state, stand for those that are committed: its own process knows them."""
        self.counts = Counter(counts)
        self.hosts_by_state = Counter(hosts)

    # -- as one part of a crawl

    @property
    def parts(self) -> Sequence[Inspection]:
        """The job directories of the crawl that are looked at: this one."""
        return [self]

    def part_of(self, name: str) -> Inspection:
        """The part that has the host *name*, or the URL's host, if any has it."""
        return self

    @cached_property
    def shard(self) -> Shard | None:
        """Which shard it is; None: that of a crawl without shards."""
        said = noted(self.meta, _SHARD_MAP, dict[str, Any]())
        if not said:
            return None
        shards, crawl = said.get("shards"), said.get("crawl_id")
        if not isinstance(shards, int) or not isinstance(crawl, str):
            raise JobdirError(
                f"{self.database} is damaged: its map of the shards cannot be read; {what_to_do(self.database)}."
            )
        named = SHARD_DIRECTORY.fullmatch(self.directory.absolute().name)
        return Shard(int(named[1]) if named else None, shards, crawl)

    @property
    def note(self) -> str:
        """What must be known of the parts that are looked at; empty: they are the whole crawl."""
        if self.shard is None or self.shard.shards == 1:
            return ""
        which = "one" if self.shard.number is None else f"shard {self.shard.number}"
        return f"this is {which} of the {self.shard.shards} shards of a crawl; the others are not told of"

    def outboxes(self) -> list[Outbox]:
        """By receiver; none in a crawl without shards."""
        query = "SELECT id / ? AS shard, count(*) AS messages, min(time) AS since FROM outbox GROUP BY 1"
        return [Outbox(**row) for row in self.rows(query, message_id(1, 0))] if self.shard else []

    @property
    def archives_unread(self) -> int:
        """Archives of the last start that were not read to their end."""
        return noted(self.meta, UNREAD_KEY, 0)

    @property
    def options(self) -> Options:
        """The options of the crawl's last start, as far as this version knows them."""
        values = noted(self.meta, "options", dict[str, Any]())
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
        try:
            with (self.directory / "state/lock").open(encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return (self.directory / "state/lock").read_text(encoding="utf-8").strip()
        except OSError:
            return ""
        return ""

    # -- hosts

    def host(self, name: str) -> dict[str, Any] | None:
        """The row of the host *name* (or of the URL's host); None when it is unknown."""
        target = canonicalize(name if "://" in name else f"http://{name}/")
        found = self.rows("SELECT * FROM host WHERE name = ?", target.host if target else name)
        if found and found[0]["id"] in self.lengths:
            found[0].update(zip(_IN_LENGTHS, self.lengths[found[0]["id"]], strict=False))
        return found[0] if found else None

    @cached_property
    def lengths(self) -> dict[int, Length]:
        """Lengths of queues that are newer than the rows of their hosts, by id; raises JobdirError."""
        return newest_lengths(self.connection.execute("SELECT batch, lengths FROM length ORDER BY batch"))

    def newest(self) -> SoundConnection:
        """The connection; from now on its ``host`` and the views on it have the newest lengths and distances.

        Raises JobdirError.
        """
        if self._is_newest or not self.lengths:
            return self.connection
        self._is_newest = True
        execute = self.connection.execute
        views = execute("SELECT name, sql FROM sqlite_master WHERE type = 'view' AND sql LIKE '%FROM host%'").fetchall()
        for name in ("host", *(name for name, _ in views)):
            execute(f"SELECT 1 FROM {name} LIMIT 0")  # noqa: S608 - checks its values (state_reader.py)
        columns = [name for _, name, *_ in execute("PRAGMA table_info(host)") if name not in _IN_LENGTHS]
        execute("CREATE TEMP TABLE newer(waiting, parked, distance, id INTEGER PRIMARY KEY)")
        self.connection.executemany("INSERT INTO newer VALUES (?, ?, ?, ?)", self.lengths.values())
        columns += [f"coalesce(newer.{name}, host.{name}) AS {name}" for name in _IN_LENGTHS]
        both = f"SELECT {', '.join(columns)} FROM main.host LEFT JOIN newer USING (id)"  # noqa: S608 - our own names
        execute(f"CREATE TEMP VIEW host AS {both}")
        for _, sql in views:
            execute(sql.replace("CREATE VIEW", "CREATE TEMP VIEW"))
        return self.connection

    def distances(self) -> dict[str, int]:
        """Name -> distance of each host with documents, by the last page that was acknowledged."""
        rows = self.rows_of_hosts("SELECT name, distance FROM host WHERE documents > 0")
        return {row["name"]: row["distance"] for row in rows}

    def waiting(self, host: int) -> list[UrlRow]:
        """The URLs of a host that wait, best first, then those that are parked."""
        return urls_of(self.connection, host)

    def ends_of(self, host: int) -> Counter[str]:
        """Reason -> URLs of the host that ended so, without purged queues; it reads the keys of all ends."""
        upper = host - (1 << 24) if host >= 1 << 23 else host  # as shifting a signed key gives it
        counts: Counter[str] = Counter()
        for keys, ends in self.connection.execute("SELECT keys, ends FROM ended"):
            if any(key >> HASH_BITS == upper for key in unpack_keys(keys)):
                counts.update(end.reason for end in unpack_ends(keys, ends) if end.key >> HASH_BITS == upper)
        return counts

    def purges_of(self, host: int) -> list[dict[str, Any]]:
        """When the host's whole queue was given up, why, and how many URLs that were."""
        return self.rows("SELECT time, reason, urls FROM purged WHERE host = ? ORDER BY time", host)

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
        row = next((url for url in self.waiting(host["id"]) if url.key == key), None)
        found = self._found(key)
        ended = self._ended(key)
        page = self._ended(found.page) if found and found.page and found.shard is None else None
        return Story(
            target.url,
            key,
            host,
            row,
            ended,
            found,
            page.end.url if page else "",
            self._purge(host["id"], found) if row is None and ended is None else None,
            None if row or ended or found else Scope(self.options).refusal(target),
        )

    def text_of(self, ended: Ended) -> Document | None:
        """The document that a URL left in the corpus; None if it left none.  Raises StorageError."""
        number = ended.end.document
        if number is None:
            return None
        frame = frame_at(self.directory / "corpus" / ended.segment, ended.offset)
        found = list(documents(frame.split("\n")))
        if number >= len(found):
            raise StorageError(f"{ended.segment} has no document {number} at byte {ended.offset}.")
        return found[number]

    def _ended(self, key: int) -> Ended | None:
        query = "SELECT batch, keys FROM ended WHERE instr(keys, ?) ORDER BY batch DESC"
        for batch, keys in self.connection.execute(query, (pack_keys((key,)),)):
            place = place_of(key, keys)
            if place is not None:
                query = "SELECT time, segment, offset_bytes, ends FROM ended WHERE batch = ?"
                time, segment, offset, ends = self.connection.execute(query, (batch,)).fetchone()
                return Ended(unpack_ends(keys, ends)[place], time, segment, offset)
        return None

    def _found(self, key: int) -> Found | None:
        query = "SELECT time, keys, pages FROM found WHERE instr(keys, ?)"
        for time, keys, pages in self.connection.execute(query, (pack_keys((key,)),)):
            place = place_of(key, keys)
            if place is not None:
                return Found(time, page_of(place, pages))
        return None

    def _purge(self, host: int, found: Found | None) -> tuple[float, str] | None:
        query = "SELECT time, reason FROM purged WHERE host = ? AND time >= ? ORDER BY time LIMIT 1"
        row = self.connection.execute(query, (host, found.time if found else 0.0)).fetchone() if found else None
        return (row[0], row[1]) if row else None
