"""``scrapy inspect JOBDIR --check``: it asks whether the state is consistent, all output whole, and both agree.

SQLite's own check comes first: it finds damage to the structure of the state's file.  Then the tables must be those of
a new file, every row must agree with its checksum, and each table must have the rows that were written
(frontier/storage/tables.py).  After that the state's figures and the output are compared with one another.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.errors import SpiderlingError, StorageError
from spiderling.base.reasons import Reason
from spiderling.base.terminal import Meter, with_progress
from spiderling.base.urls import HASH_BITS
from spiderling.corpus.duplicates import digest_key
from spiderling.corpus.links import read_links
from spiderling.corpus.segments import SUFFIX, documents, frame_texts
from spiderling.corpus.warc import records
from spiderling.frontier.hosts import CLOSED_STATES
from spiderling.frontier.storage.tables import (
    SCHEMA,
    TABLES,
    CheckedTable,
    TableChecksum,
    checked_rows,
    read_written,
)
from spiderling.frontier.storage.url_log import ASKED_AGAIN, unpack_ends, unpack_keys
from spiderling.jobdir.inspection import Inspection, Segment, counts_under
from spiderling.jobdir.state_reader import damaged_log, has_torn_commit, queues_by_host, read_note

_MAX_NAMED = 5
_ID = re.compile("[0-9a-f]{16}")  # the attribute ``id`` of a document that was fetched: the key of its URL


def problems(crawl: Inspection, compared: list[str] | None = None) -> Iterator[str]:
    """One sentence for each thing that is wrong; none for a crawl that is whole.  Reads all output once.

    *compared* gets a line for each kind of thing that was compared, or could not be, with the reason.
    """
    compared = [] if compared is None else compared
    if not crawl.holder:  # a running crawl writes to the log
        if damage := damaged_log(crawl.database):
            yield damage
        elif has_torn_commit(crawl.database):
            compared.append("not compared: the last commit in SQLite's log, which a kill or power cut left torn")
    crawl.connection.looks = False
    told = [*damaged_rows(crawl.connection)]
    yield from told
    crawl.connection.looks = True
    compared.append("checksums of the state's rows, and how many there are")
    for part in (_books, _sums, _trail, _corpus, _check_others):
        try:
            yield from part(crawl, compared)
        except SpiderlingError as error:  # damage to what it reads; the other parts may say more
            if not any(str(error) in sentence for sentence in told):
                told.append(str(error))
                yield str(error)


def _books(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    ends = counts_under("end", crawl.counts).total()
    discovered = crawl.counts["discovered"]
    waiting = crawl.counts["waiting"]
    if discovered != ends + waiting:
        yield f"the books do not balance: {discovered} discovered, but {ends} ends + {waiting} waiting"
    queues = queues_by_host(crawl.connection)
    names = {row["id"]: row["name"] for row in crawl.rows("SELECT id, name FROM host")}
    lengths = _lengths(crawl)
    stand = sum(number for host, number in queues.items() if host in names and not lengths[host][1])
    if stand != waiting:
        yield f"{waiting} URLs wait by the counts, but {stand} stand in the queues"
    wrong = [name for host, name in names.items() if sum(lengths[host]) != queues.get(host, 0)]
    wrong += [f"host {host}, which is unknown" for host in queues if host not in names]
    if wrong:
        yield f"{len(wrong)} hosts have other queues than they count: {_list(wrong)}"
    compared.append(f"queues of {len(names):,} hosts, {sum(queues.values()):,} URLs")


def _lengths(crawl: Inspection) -> dict[int, tuple[int, int]]:
    """Host id -> how many URLs wait in its queue, and how many are parked, by its row or newer."""
    rows = crawl.rows("SELECT id, waiting, parked FROM newest_host")
    return {row["id"]: (row["waiting"], row["parked"]) for row in rows}


def _sums(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """The sums over all hosts are the totals of the crawl, and each discovered URL has its key."""
    columns = ("pages", "documents", "words", "downloaded_bytes", "kept_bytes")
    sums = ", ".join(f"coalesce(sum({column}), 0) AS {column}" for column in columns)
    for column, number in crawl.rows(f"SELECT {sums} FROM host")[0].items():  # noqa: S608 - names of columns
        total = crawl.counts[f"total/{column}"]
        if number != total:
            yield f"the hosts have {number} {column} together, the counts say {total}"
    keys = len(_seen_keys(crawl))
    discovered = crawl.counts["discovered"]
    if keys != discovered:
        yield f"{discovered} URLs were discovered, but the keys of {keys} are known"
    compared.append(f"sums of all hosts with the totals; {keys:,} keys of URLs with the number discovered")


def _seen_keys(crawl: Inspection) -> NDArray[np.int64]:
    return np.unique(np.frombuffer(b"".join(row["keys"] for row in crawl.rows("SELECT keys FROM seen")), np.int64))


def _trail(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """The trail, if it was kept from the beginning on, has an end for each URL that ended."""
    if crawl.options.trail == "off":
        compared.append("not compared: ends of URLs with the trail, which is off")
        return
    reasons: Counter[str] = Counter()
    keys: set[int] = set()
    asked_again: dict[str, int] = read_note(crawl.meta, ASKED_AGAIN, {})
    for row in crawl.rows("SELECT batch, keys, ends FROM ended"):
        batch = unpack_ends(row["keys"], row["ends"])
        reasons.update(end.reason for end in batch)
        twice = keys.intersection(unpack_keys(row["keys"]))
        keys.update(end.key for end in batch if row["batch"] > asked_again.get(end.reason, 0))
        if twice:
            yield f"{len(twice)} URLs of batch {row['batch']} had ended before"
    counted = counts_under("end", crawl.counts)
    purged = crawl.rows("SELECT coalesce(sum(urls), 0) AS urls FROM purged")[0]["urls"]
    parked = sum(parked for _, parked in _lengths(crawl).values())
    if reasons.total() + purged + parked < counted.total():
        compared.append("not compared: ends of URLs with the trail, which was switched on later")
        return
    kept = Reason.KEPT.value
    if reasons[kept] != counted[kept]:
        yield f"{counted[kept]} URLs were kept by the counts, {reasons[kept]} by the trail"
    told = {row["reason"] for row in crawl.rows("SELECT DISTINCT reason FROM purged")} | asked_again.keys()
    told |= {reason.value for reason in CLOSED_STATES.values()} | {kept}  # parked URLs may wait again
    for reason in sorted((counted.keys() | reasons.keys()) - told):
        if counted[reason] != reasons[reason]:
            yield f"{counted[reason]} URLs ended as {reason} by the counts, {reasons[reason]} by the trail"
    compared.append(f"{reasons.total():,} ends of URLs in the trail with the counts of each reason")


def _find_miscounts(segments: Iterable[Segment], what: str, count: Callable[[Segment], int]) -> Iterator[str]:
    """Segments that cannot be read to their recorded length, or do not hold as many entries as were written."""
    for segment in segments:
        try:
            number = count(segment)
        except StorageError as error:
            yield str(error)
            continue
        if number != segment.entries:
            yield f"{segment.path.name} holds {number} {what}, not {segment.entries}"


def _corpus(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """Every segment can be read to its recorded length, and holds its documents once, with known digests."""
    known = {key for row in crawl.rows("SELECT keys FROM digest") for key in unpack_keys(row["keys"])}
    seen: Counter[tuple[str, str]] = Counter()
    strange: list[str] = []

    def count(segment: Segment) -> int:
        number = 0
        for frame in frame_texts(segment.path, segment.length):
            for document in documents(frame.split("\n")):
                number += 1
                meter.add()
                text = "\n".join(document.paragraphs).encode()
                digest = xxhash.xxh3_128_digest(text)
                key = document.attributes.get("id", "")
                seen[key, digest.hex()] += 1
                is_whole = document.attributes.get("length") == str(len(text))
                if is_whole and digest_key(digest) not in known:
                    strange.append(key)
        return number

    segments = crawl.segments("corpus")
    with closing(Meter("documents of the corpus", crawl.counts["total/documents"])) as meter:
        yield from _find_miscounts(segments, "documents", count)
    twice = sum(number > 1 for number in seen.values())
    if twice:
        yield f"{twice} documents stand in the corpus more than once"
    if strange and crawl.options.dedup != "off":
        yield f"the digests of {len(strange)} documents are not known to the state"
    total = crawl.counts["total/documents"]
    if seen.total() != total:
        yield f"the corpus holds {seen.total()} documents, the counts say {total}"
    ids = np.array([int(name, 16) for name, _ in seen if _ID.fullmatch(name)], np.uint64).view(np.int64)
    hashes = (1 << HASH_BITS) - 1  # the bits before them are a host's number, and a state made anew has other ones
    unknown = len(ids) - int(np.isin(ids & hashes, _seen_keys(crawl) & hashes).sum())
    if unknown and not read_note(crawl.meta, "from_archives", False):
        yield f"the URLs of {unknown} documents are not among those that were discovered"
    lengths = {segment.path.name: segment.length for segment in segments}
    size = sum(lengths.values())
    compared.append(f"corpus: {len(lengths):,} segments, {size:,} bytes, {seen.total():,} documents, and their digests")
    compared.extend(_find_unacknowledged(crawl, lengths))


def _find_unacknowledged(crawl: Inspection, lengths: Mapping[str, int]) -> Iterator[str]:
    """Text in the corpus that was never acknowledged: no damage, but the user should know."""
    for path in sorted(crawl.directory.glob(f"corpus/*{SUFFIX}")):
        more = path.stat().st_size - lengths.get(path.name, 0)
        if path.name not in lengths:
            yield f"not compared: corpus/{path.name}, which the state does not name"
        elif more > 0:
            yield f"not compared: {more:,} bytes of corpus/{path.name} behind its recorded length"


def _check_others(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """Every other segment can be read to its recorded length, and holds as many entries as were written."""
    for kind in ("links", "warc"):
        segments = crawl.segments(kind)
        compared.append(f"{kind}: {len(segments):,} files, {sum(segment.entries for segment in segments):,} entries")
        yield from _find_miscounts(segments, "entries", _entries_in)


def _entries_in(segment: Segment) -> int:
    """How many lines of links or captures *segment* holds; raises StorageError."""
    path, length, wanted = segment
    is_links = path.parent.name == "links"
    entries = (True for _ in read_links(path, length)) if is_links else (r.is_capture for r in records(path, length))
    return sum(with_progress(entries, f"entries of {path.name}", wanted))


# -- the rows of the state


def damaged_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each damage to a state."""
    checks = {
        "structure": _structure(connection),
        "schema": _schema(connection),
        **{name: _table(connection, table) for name, table in TABLES.items()},
    }
    unread: dict[str, list[str]] = {}
    for what, sentences in checks.items():
        try:
            yield from sentences
        except (sqlite3.Error, SpiderlingError) as error:
            unread.setdefault(str(error), []).append(what)
    for why, parts in unread.items():
        yield f"the state's {', '.join(parts)} cannot be read: {why}"


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    with closing(Meter("million steps of SQLite's own check")) as meter:
        if meter.is_shown:
            connection.set_progress_handler(meter.add, 1_000_000)
        found = connection.execute("PRAGMA integrity_check").fetchall()
        connection.set_progress_handler(None, 0)
    yield from (f"the state's file is damaged: {row[0]}" for row in found if row[0] != "ok")


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    with closing(sqlite3.connect(":memory:")) as new:
        new.executescript(SCHEMA)
        wanted = {row[1]: row for row in new.execute(query)}
    there = {row[1]: row for row in connection.execute(query)}
    names = sorted(str(name) for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if names:
        yield f"the state's tables are not those that were made: {_list(names)}"


def _table(connection: sqlite3.Connection, table: CheckedTable) -> Iterator[str]:
    """What is wrong with the rows of *table*, compared with what the state records of it."""
    name = table.name
    written = read_written(connection)[name]
    so_far = TableChecksum()
    changed = []
    rows = checked_rows(connection, table)
    for values, is_whole, so_far in with_progress(rows, f"rows of the table {name}", written.rows):
        if not is_whole:
            changed.append(str(values[0]) if table.keys or table.is_numbered else f"number {so_far.rows}")
    if changed:
        or_gone = "" if table.keys else ", or rows before them are missing"
        yield f"of table {name} {len(changed)} rows are not as they were written{or_gone}: {_list(changed)}"
    if so_far.rows != written.rows:
        yield f"of table {name} {so_far.rows} rows are there, {written.rows} were written"
    elif so_far != written and not changed:
        yield f"of table {name} some rows are not those that were written last"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
