"""``scrapy inspect JOBDIR --check``: are state and output whole, and do they agree?  ``--rebuild``: a state made anew.

**The check.**  SQLite's own comes first: it finds damage to the structure of the state's file.  Then the tables must be
those of a new file, every row must agree with its checksum, and each table must have the rows that were written
(frontier/storage/tables.py).  After that the state's figures and the output are compared with one another.

**A new state** is made from a crawl's corpus, if the state is gone, old or damaged.  A new frontier is told which pages
were kept, as in a crawl.  Its changes go to a new file, which takes the state's place when it is whole.  The front page
of each host is fetched again for its links.  Other ends, queues, robots.txt and what was learnt begin anew.
"""

from __future__ import annotations

import json
import re
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling import __version__, languages
from spiderling.base.errors import BadInput, JobdirError, SpiderlingError, StorageError
from spiderling.base.files import whole_number
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.terminal import progress_bar, with_progress
from spiderling.base.urls import HASH_BITS, canonicalize, hash_in, url_hash
from spiderling.corpus.duplicates import digest_key, unsigned_key
from spiderling.corpus.links import read_links
from spiderling.corpus.segments import CorpusDocument, documents, frame_texts, frames, number_of
from spiderling.corpus.warc import records
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.hosts import CLOSED_STATES, SEED_RANK
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.state_file import delete_files, keep_former, put_in_place
from spiderling.frontier.storage.tables import SCHEMA, TABLES, CheckedTable, TableChecksum, checked_rows, read_written
from spiderling.frontier.storage.url_log import ASKED_AGAIN, unpack_ends, unpack_keys
from spiderling.frontier.url_states import OUT_OF_REACH
from spiderling.jobdir.card import MANIFEST, facts_of, read_manifest
from spiderling.jobdir.directory import TAKEDOWN, Jobdir, Surplus, beyond, delete_unnamed, recorded_segments, set_aside
from spiderling.jobdir.inspection import SHARD_DIRECTORY, Inspection, Segment, counts_under
from spiderling.jobdir.state_reader import OPTION_CHANGED, queues_by_host, read_note, telling_damage
from spiderling.languages.registry import spell_out

_STEP_S = 1e-5  # seconds between two batches of a trail that is made anew, each with a time of its own; chosen
_MAX_NAMED = 5
MADE_ANEW = "the state was made anew from what the crawl had written"  # the event that a new state notes
_ID = re.compile("[0-9a-f]{16}")  # the attribute ``id`` of a document that was fetched: the key of its URL
_JUDGES_NOTHING: dict[str, Any] = {"yield_profile": "off", "max_host_documents": 0, "max_host_bytes": 0, "traps": "off"}
"""Options by which no host is closed while the pages are told again; the crawl judges hosts when it goes on."""


def problems(crawl: Inspection) -> Iterator[str]:
    """One sentence for each thing that is wrong; none for a crawl that is whole.  Reads all output once."""
    told = [*damaged_rows(crawl.connection)]
    yield from told
    for part in (_books, _sums, _trail, _corpus, _check_others):
        try:
            with telling_damage(crawl.database):
                yield from part(crawl)
        except SpiderlingError as error:  # damage to what it reads; the other parts may say more
            if not any(str(error.__cause__ or error) in sentence for sentence in told):
                told.append(f"{error.__cause__ or error}")
                yield str(error)


def _books(crawl: Inspection) -> Iterator[str]:
    ends = counts_under("end", crawl.counts).total()
    discovered = crawl.counts["discovered"]
    waiting = crawl.counts["waiting"]
    if discovered != ends + waiting:
        yield f"the books do not balance: {discovered} discovered, but {ends} ends + {waiting} waiting"
    queues = queues_by_host(crawl.connection)
    names = {row["id"]: row["name"] for row in crawl.rows("SELECT id, name FROM host")}
    lengths = _lengths(crawl)
    stand = sum(number for host, number in queues.items() if host in names and not lengths[host][1])
    # what is in transit waits again after a kill; the next start ends it if its host was closed meanwhile
    stand += crawl.rows("SELECT count(*) AS urls FROM host WHERE parked AND transit IS NOT NULL")[0]["urls"]
    if stand != waiting:
        yield f"{waiting} URLs wait by the counts, but {stand} stand in the queues"
    wrong = [name for host, name in names.items() if sum(lengths[host]) != queues.get(host, 0)]
    wrong += [f"host {host}, which is unknown" for host in queues if host not in names]
    if wrong:
        yield f"{len(wrong)} hosts have other queues than they count: {_list(wrong)}"


def _lengths(crawl: Inspection) -> dict[int, tuple[int, int]]:
    """Host id -> how many URLs wait in its queue, and how many are parked, by its row or newer."""
    rows = crawl.rows("SELECT id, waiting, parked FROM newest_host")
    return {row["id"]: (row["waiting"], row["parked"]) for row in rows}


def _sums(crawl: Inspection) -> Iterator[str]:
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


def _seen_keys(crawl: Inspection) -> NDArray[np.int64]:
    return np.unique(np.frombuffer(b"".join(row["keys"] for row in crawl.rows("SELECT keys FROM seen")), np.int64))


def _trail(crawl: Inspection) -> Iterator[str]:
    """The trail, if it was kept from the beginning on, has an end for each URL that ended."""
    if crawl.options.trail == "off":
        return
    reasons: Counter[str] = Counter()
    keys: set[int] = set()
    of_seeds: set[str] = set()
    asked_again: dict[str, int] = read_note(crawl.meta, ASKED_AGAIN, {})
    for row in crawl.rows("SELECT batch, keys, ends FROM ended"):
        batch = unpack_ends(row["keys"], row["ends"])
        reasons.update(end.reason for end in batch)
        twice = keys.intersection(unpack_keys(row["keys"]))
        seeds = {
            end.key: end.reason for end in batch if end.rank == SEED_RANK and Reason.of(end.reason) in OUT_OF_REACH
        }
        of_seeds.update(seeds.values())  # whoever names such a seed again asks for it again
        keys.update(end.key for end in batch if row["batch"] > asked_again.get(end.reason, 0) and end.key not in seeds)
        if twice:
            yield f"{len(twice)} URLs of batch {row['batch']} had ended before"
    counted = counts_under("end", crawl.counts)
    purged = crawl.rows("SELECT coalesce(sum(urls), 0) AS urls FROM purged")[0]["urls"]
    parked = sum(parked for _, parked in _lengths(crawl).values())
    was_off = crawl.rows("SELECT time FROM event WHERE what LIKE ?", f"{OPTION_CHANGED}{PREFIX}TRAIL: 'off'%")
    if was_off or reasons.total() + purged + parked < counted.total():
        return  # it was switched on later
    kept = Reason.KEPT.value
    if reasons[kept] != counted[kept]:
        yield f"{counted[kept]} URLs were kept by the counts, {reasons[kept]} by the trail"
    told = {row["reason"] for row in crawl.rows("SELECT DISTINCT reason FROM purged")} | asked_again.keys() | of_seeds
    told |= {reason.value for reason in CLOSED_STATES.values()} | {kept}  # parked URLs may wait again
    for reason in sorted((counted.keys() | reasons.keys()) - told):
        if counted[reason] != reasons[reason]:
            yield f"{counted[reason]} URLs ended as {reason} by the counts, {reasons[reason]} by the trail"


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


def _corpus(crawl: Inspection) -> Iterator[str]:
    """Every segment can be read to its recorded length, and holds its documents once, with known digests."""
    known = {key for row in crawl.rows("SELECT keys FROM digest") for key in unpack_keys(row["keys"])}
    seen: Counter[tuple[str, str]] = Counter()
    strange: list[str] = []
    hashes = array("q")

    def count(segment: Segment) -> int:
        number = 0
        for frame in frame_texts(segment.path, segment.length):
            for document in documents(frame.split("\n")):
                number += 1
                bar.update()
                text = "\n".join(document.paragraphs).encode()
                digest = xxhash.xxh3_128_digest(text)
                key = document.attributes.get("id", "")
                hashes.extend(hashes_of(document.attributes))
                seen[key, digest.hex()] += 1
                is_whole = document.attributes.get("length") == str(len(text))
                if is_whole and digest_key(digest) not in known:
                    strange.append(key)
        return number

    with progress_bar("documents of the corpus", crawl.counts["total/documents"]) as bar:
        yield from _find_miscounts(crawl.segments("corpus"), "documents", count)
    twice = sum(number > 1 for number in seen.values())
    if twice:
        yield f"{twice} documents stand in the corpus more than once"
    is_known = crawl.options.dedup != "off" and not read_note(crawl.meta, TAKEDOWN, dict[str, Any]())
    if strange and is_known:  # a take-down forgets them first
        yield f"the digests of {len(strange)} documents are not known to the state"
    total = crawl.counts["total/documents"]
    if seen.total() != total:
        yield f"the corpus holds {seen.total()} documents, the counts say {total}"
    known_hashes = _seen_keys(crawl) & (1 << HASH_BITS) - 1
    unknown = int((~np.isin(np.frombuffer(hashes, np.int64).reshape(-1, 2), known_hashes)).all(1).sum())
    if unknown and not read_note(crawl.meta, "from_archives", False):
        yield f"the URLs of {unknown} documents are not among those that were discovered"


def hashes_of(said: Mapping[str, str]) -> tuple[int, int]:
    """The hashes of the key of a page: by its document's attribute ``id``, and by its URL alone.

    The bits before them are a host's number, and a state made anew has other ones.  It knows the second hash alone,
    which is not that of a page to which a redirect led back.
    """
    target = canonicalize(said.get("url", ""))
    of_url = url_hash(target.url) if target else 0
    key = said.get("id", "")
    return hash_in(int(key, 16)) if _ID.fullmatch(key) else of_url, of_url


def kept_bytes_of(document: CorpusDocument) -> int:
    """The bytes of its new text, as the crawl counted them."""
    pairs = zip(document.paragraphs, document.details, strict=True)
    known = sum(len(text.encode()) for text, of in pairs if "dup" in of)
    return (whole_number(document.attributes.get("length", "")) or 0) - known


def _check_others(crawl: Inspection) -> Iterator[str]:
    """Every other segment can be read to its recorded length, and holds as many entries as were written."""
    for kind in ("links", "warc"):
        yield from _find_miscounts(crawl.segments(kind), "entries", _entries_in)


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
    with progress_bar("million steps of SQLite's own check") as bar:

        def count() -> None:  # what it returned would end the check
            bar.update()

        connection.set_progress_handler(count, 1_000_000)
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


# -- a state made anew


def rebuild(directory: Path, given: Mapping[str, Any], now: float) -> Iterator[str]:
    """Make the state of the crawl in *directory* anew; yields lines that say what it holds.

    *given* are settings; others are taken from the corpus's manifest.  Raises BadInput if there are no segments or the
    state is whole, JobdirError while a crawl runs, StorageError if the disk refuses.
    """
    if not any(number_of(path.name) for path in directory.glob("*/*")):
        raise BadInput(f"{directory} holds no segments to make a state from.")
    try:
        with closing(Jobdir(directory, is_rebuilt=True)) as jobdir:
            with suppress(JobdirError):  # of a damaged state
                delete_unnamed(directory, jobdir.database)
            output = _measured(directory)
            unread = [surplus for surplus in output if surplus.whole < surplus.size]
            _refuse_several(output, directory)
            if _is_whole(jobdir):
                raise BadInput(f"{jobdir.database} is whole and knows all that is in {directory}; it is not made anew.")
            meta, options = _settings(directory, output, given)
            if options.shards > 1 or SHARD_DIRECTORY.fullmatch(directory.absolute().name):
                raise BadInput(
                    f"{directory} is a shard of a crawl: the messages between it and the others are lost with its "
                    "state, so it cannot be made anew. Put the state back from a backup of all shards, or begin anew."
                )
            new = jobdir.state / "rebuilt.sqlite"
            delete_files(new)
            with closing(SqliteStore(new)) as store:
                held = _Rebuilding(Frontier(options, store=store), store, now).run(output, meta)
            for surplus in unread:
                set_aside(surplus._replace(start=surplus.whole))
            former = keep_former(jobdir.database)
            put_in_place(new, jobdir.database)
    except OSError as error:
        raise BadInput(f"{error.filename} cannot be used: {error.strerror}.") from error
    yield f"{jobdir.database} was made anew: {held}."
    if former:
        yield f"The former state is kept as {former}."
    for surplus in unread:
        yield (
            f"{surplus.size - surplus.whole:,} bytes of {surplus.path}, all from the first damage on, went to aside/ "
            "beside it; of a corpus, scrapy export FILE --salvage -o OUT writes what is whole there."
        )


def _measured(directory: Path) -> list[Surplus]:
    """All output in *directory*; raises BadInput if there is none, StorageError if the disk does not give it now."""
    output = list(beyond(directory, [], None))
    if not output:
        raise BadInput(f"{directory} holds no segments to make a state from.")
    if withheld := next((surplus.withheld for surplus in output if surplus.withheld), ""):
        raise StorageError(f"{withheld} Nothing was changed: try again, or move the file away if its disk is lost.")
    return output


def _of_kind(output: Sequence[Surplus], kind: str) -> Iterator[Surplus]:
    return (surplus for surplus in output if surplus.path.parent.name == kind and surplus.whole)


def _is_whole(jobdir: Jobdir) -> bool:
    """Whether the state is sound and knows all segments."""
    try:
        known = recorded_segments(jobdir.database)
        if known is None or any(beyond(jobdir.path, known, None)):
            return False
        with closing(Inspection(jobdir.path)) as crawl:
            return not any(problems(crawl))
    except SpiderlingError:
        return False


def _refuse_several(output: Sequence[Surplus], directory: Path) -> None:
    first: dict[str, str] = {}
    for surplus in output:
        first.setdefault(surplus.path.name.rpartition("-")[0], "/".join(surplus.path.parts[-2:]))
    if len(first) > 1:
        raise BadInput(
            f"{directory} holds segments of several crawls ({', '.join(first.values())}); leave those of one there."
        )


def _settings(directory: Path, output: Sequence[Surplus], given: Mapping[str, Any]) -> tuple[dict[str, str], Options]:
    """The new state's table ``meta``, and the options of the frontier that makes the state."""
    (said, *_) = read_manifest(directory / "corpus" / MANIFEST).get("crawls") or [{}]
    known = {spec.name for spec in fields(Options)}
    named = {
        "lang": output[0].path.name.rpartition("-")[0].replace("+", ","),
        **{name: value for name, value in said.get("settings", {}).items() if name in known},
    }
    chosen = Options.from_settings({PREFIX + name.upper(): value for name, value in named.items()} | dict(given))
    names = named.keys() | {key.removeprefix(PREFIX).lower() for key in given}
    meta: dict[str, Any] = {"options": {name: getattr(chosen, name) for name in names}, "version": __version__}
    meta |= {key: said[key] for key in ("purposes", "seeds", "models") if key in said}
    if "archives" in said:
        meta["from_archives"] = bool(said["archives"])
    spelled = spell_out(chosen, languages.find_languages(chosen.lang, chosen.models), ())
    return {key: json.dumps(value) for key, value in meta.items()}, replace(spelled, **_JUDGES_NOTHING)


@dataclass(slots=True)
class _Rebuilding:
    """Tells a new frontier which pages were kept, and commits its changes."""

    frontier: Frontier
    store: SqliteStore
    now: float
    asked: set[str] = field(default_factory=set)  # origins whose front page waits
    is_of_web: bool = True  # whether a front page can be asked for

    def run(self, output: Sequence[Surplus], meta: dict[str, str]) -> str:
        """Tell the frontier what the corpus says, and count the rest of *output*; returns what the new state holds."""
        self.is_of_web = not read_note(meta, "from_archives", False)
        for surplus in _of_kind(output, "corpus"):
            self._corpus(surplus)
        for kind in ("links", "warc"):
            for surplus in _of_kind(output, kind):
                number = _entries_in(Segment(surplus.path, surplus.whole, 0))
                self._commit(Changes(segments=[SegmentRow(surplus.path.name, surplus.whole, number, kind)]))
        self.frontier.ledger.refused_links.clear()  # front pages that were kept
        history = self.frontier.history(self.now)
        changes = self.frontier.drain(self.now)
        meta = changes.meta | meta | {"created": json.dumps(self.now)}
        events = [*changes.events, (self.now, MADE_ANEW)]
        self._commit(replace(changes, meta=meta, events=events, history=history))
        balance = self.frontier.ledger.balance
        return (
            f"{self.frontier.ledger.totals['documents']:,} documents of "
            f"{sum(self.frontier.host_states.hosts_by_state().values()):,} hosts, "
            f"{balance.discovered:,} URLs known, {balance.waiting:,} of them wait"
        )

    def _corpus(self, surplus: Surplus) -> None:
        number = 0
        for frame in frames(surplus.path, surplus.whole):
            digests: list[int] = []
            for document in documents(frame.data.decode("utf-8", "replace").split("\n")):
                digests += self._document(document)
                number += 1
            rows = [SegmentRow(surplus.path.name, frame.offset + frame.length, number)]
            self.now += _STEP_S
            changes = self.frontier.drain(self.now)
            url_log = replace(changes.url_log, segment=surplus.path.name, offset=frame.offset)
            self._commit(replace(changes, segments=rows, digests=digests, url_log=url_log))

    def _document(self, document: CorpusDocument) -> tuple[int, ...]:
        """Tell of a document; returns the digests of its text."""
        said = document.attributes
        text = "\n".join(document.paragraphs).encode()
        new = [t for t, p in zip(document.paragraphs, document.details, strict=True) if "dup" not in p]
        digest = xxhash.xxh3_128_digest(text)
        digests = tuple({digest_key(digest), digest_key(xxhash.xxh3_128_digest("\n".join(new).encode()))})
        kept = kept_bytes_of(document)
        rate = float(said.get("yield") or 0)
        outcome = Outcome(
            None,
            said.get("url", ""),
            Reason.KEPT,
            200,
            body_bytes=round(kept / rate) if rate else kept,
            kept_bytes=kept,
            words=whole_number(said.get("words", "")) or 0,
            language=said.get("lang"),
            relevant=True,
            page_language=said.get("lang", ""),
            text_key=unsigned_key(digest),  # a revisit finds the page unchanged
            document=b"",  # it is in the corpus
            facts=tuple(facts_of(said)),
        )
        self._end(outcome, whole_number(said.get("distance", "")) or 0)
        return digests

    def _end(self, outcome: Outcome, distance: int) -> None:
        """Tell of a kept page; a second document at the same URL counts for its host, not for the URL."""
        target = canonicalize(outcome.url)
        if target is None:
            self.frontier.pass_document()
            return
        if self.is_of_web and target.origin not in self.asked:
            self.asked.add(target.origin)
            self.frontier.put_seed(f"{target.origin}/", self.now, distance)
        pages = self.frontier.archive_pages
        fetch = pages.begin(target.url, distance)
        if isinstance(fetch, Fetch):
            pages.enter(fetch.id)
            outcome = replace(outcome, url_id=fetch.id)
            self.frontier.ledger.totals["requests"] += 1
        self.frontier.report(outcome, self.now)

    def _commit(self, changes: Changes) -> None:
        self.store.commit(changes)
        self.frontier.committed()
