"""Snapshots: copies of a crawl's state and segments at a place that other machines reach, for when this one is lost.

A snapshot is laid out as the directory of a crawl.  What came since the last one is appended to its segments; then the
new state, which says how long they are, takes the name of the former.  So it is whole at any moment.  The new state is
made of the one before the former, of which only the pages are written that differ.  A snapshot is due when the crawl
has written SHARE times what all states took, and what the next one does if it is like the last.  Each byte of segments
is written once.

Who takes a crawl over from its snapshot leaves a file there (EPOCH) that keeps the former process out, should its
machine come back.  A shard begins a new epoch of its messages then: those that it still has for others get new numbers,
since it cannot know how many it has sent since (cluster/exchange.py).
"""

from __future__ import annotations

import logging
import math
import os
import resource
import shutil
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from spiderling.base.errors import BadInput, JobdirError, SpiderlingError, StorageError
from spiderling.base.files import part_of, saving, sync_directory
from spiderling.base.option_values import PREFIX
from spiderling.corpus.segments import refuse_lost
from spiderling.frontier.storage.protocol import EPOCH_BITS, Changes, PeerRow, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.state_file import ENDINGS, log_of, put_in_place, usable_version
from spiderling.jobdir.damage import problems
from spiderling.jobdir.directory import KINDS, LOCK, acquire, recorded_segments
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.state_reader import connected, telling_damage

logger = logging.getLogger(__name__)

PAUSE_S = 120.0  # seconds between two snapshots at least; chosen: what is written since is fetched again
SHARE = 10  # bytes that a crawl writes for each that the states of its snapshots take, at least; chosen
EPOCH = "epoch-"  # beginning of a file's name in a snapshot; the number of the take-over follows
TAKEOVERS = "takeovers"  # the total, and the note, that says how often a crawl was taken over
_PAGE_BYTES = 4096  # of SQLite's pages (its default)
PIECE_BYTES = 256 * _PAGE_BYTES  # bytes that are read at a time; chosen
_AGAIN_S = 0.2  # seconds until it is tried again to freeze the state; chosen: a commit a second
_DATABASE = Path("state", "frontier.sqlite")
_SPARE = ".spare"  # ending of the former state's name, until it is that of the next one
OUTBOX_BYTES = 1 << 20  # bytes of messages that get new numbers in one commit; chosen


class _Refused(JobdirError):
    """The crawl must not go on with this directory, or not with these snapshots."""


class Snapshots:
    """Keeps the snapshot of one crawl up to date: ``step`` is called every PAUSE_S seconds, and a thread writes."""

    def __init__(self, root: Path, source: Path, is_shard: bool, fail: Callable[[JobdirError], None]) -> None:
        """*root*: the directory of all snapshots, which is there; *source*: that of the crawl.

        *fail* is called when the crawl must not go on, since another process has taken it over.
        Raises JobdirError if that is so, or another crawl has its snapshot there.
        """
        self.received: Mapping[int, int] = {}
        """Shard -> number of its last message that the snapshot has."""
        self._source = source
        self._fail = fail
        self._root = root
        self._target = snapshot_of(root, source, is_shard)
        meta = _notes(source / _DATABASE)[0] if (source / _DATABASE).exists() else {}
        self._epoch = int(meta.get(TAKEOVERS, 0))
        self._created = meta.get("created")  # when the crawl, or shard, was begun; tells it from all others
        self._lengths: dict[tuple[str, str], int] = {}  # (kind, name) -> bytes of a segment in the snapshot
        self._since: float = bytes_written()  # what the process had written when the last snapshot was whole
        self.last: int | None = None  # bytes that the last state took
        self._refusal: _Refused | None = None
        self._has_warned = False
        self._over = threading.Event()
        self.thread: threading.Thread | None = None
        with self._warning():
            self._look()
            named = recorded_segments(source / _DATABASE) or []
            if self._lengths.keys() - _lengths_of(named):  # a take-down took segments away
                self._since = -math.inf
        if self._refusal is not None:
            raise self._refusal

    def step(self) -> None:
        """Begin a snapshot if one is due; the former one may still be written."""
        if self._refusal is not None:
            self._fail(self._refusal)
        elif self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=self._run, daemon=True, name="snapshots")
            self.thread.start()

    def stop(self) -> None:
        """Break off; the former snapshot stays.  A thread that waits for the other disk is not waited for."""
        self._over.set()

    def _is_due(self) -> bool:
        database = self._source / _DATABASE
        files = database, log_of(database)
        next_one = sum(file.stat().st_size for file in files) if self.last is None else self.last
        written = bytes_written()
        return not written or written - self._since >= SHARE * next_one  # not every file system counts

    def _run(self) -> None:
        with self._warning():
            if self._is_due():
                self.write()

    @contextmanager
    def _warning(self) -> Iterator[None]:
        """What keeps a snapshot from being written now is told once, and does not stop the crawl."""
        try:
            yield
            self._has_warned = False
        except _Refused as error:
            self._refusal = error
        except (OSError, sqlite3.Error, SpiderlingError) as error:
            if not (self._has_warned or self._over.is_set()):
                logger.warning("No snapshot in %s: %s. The crawl goes on and tries again.", self._target, error)
            self._has_warned = True

    def _look(self) -> None:
        """Read what the snapshot has; raises JobdirError if it must not be replaced, OSError if it is out of reach."""
        database = self._target / _DATABASE
        os.listdir(self._root)
        newest = _newest_epoch(self._target)
        if newest > self._epoch:
            raise _Refused(
                f"the crawl in {self._source} was taken over from its snapshot {self._target}: its newest state is "
                "elsewhere, and this one cannot go on."
            )
        rows = recorded_segments(database)
        if rows is None:
            if self._lengths:
                raise StorageError("the former one is gone")
            return
        meta, received = _notes(database)
        if meta.get("created") != self._created:
            raise _Refused(
                f"{self._target} is the snapshot of another crawl. Give another directory with {PREFIX}SNAPSHOTS=..., "
                f"or go on from it: scrapy takeover {self._target} JOBDIR"
            )
        self._lengths = _lengths_of(rows)
        self.received = received

    def write(self) -> None:
        """Bring the snapshot up to date; raises OSError, sqlite3.Error or SpiderlingError."""
        database = self._target / _DATABASE
        if self._created is None:
            self._created = _notes(self._source / _DATABASE)[0].get("created")
        if self._created is None:  # the crawl has not begun
            return
        self._look()
        database.parent.mkdir(parents=True, exist_ok=True)
        new = database.with_name(f"{database.name}.new")
        self.last = self._copy_state(new)
        taken = self.last
        rows = recorded_segments(new) or []
        for row in rows:
            start = self._lengths.get((row.kind, row.name), 0)
            if start > row.length_bytes:
                raise _Refused(f"{self._target} is newer than the crawl in {self._source}, which cannot go on.")
            taken += row.length_bytes - start
            self._append(row, start)
        received = _notes(new)[1]
        self._look()
        for ending in (*ENDINGS[1:], _SPARE):
            database.with_name(database.name + ending).unlink(missing_ok=True)
        spare = database.with_name(database.name + _SPARE)
        if database.exists():
            with suppress(OSError):  # not all disks have links; then the next state is written whole
                os.link(database, spare)
        put_in_place(new, database)
        if spare.exists():
            spare.replace(new)
        self._lengths = _lengths_of(rows)
        for path in (path for kind in KINDS for path in (self._target / kind).glob("*")):
            if (path.parent.name, path.name) not in self._lengths:  # what it holds was taken down
                path.unlink()
        self.received = received
        self._since = bytes_written()
        logger.info("The snapshot in %s is up to date: %d bytes", self._target, taken)

    def _copy_state(self, new: Path) -> int:
        """Make *new*, which may be an older state, the last commit of the state, durably; returns the bytes written."""
        written = 0
        database = self._source / _DATABASE
        new.touch()
        with self._frozen(database), database.open("rb") as file, new.open("r+b") as copy:
            while piece := file.read(PIECE_BYTES):
                self.go_on()
                former = copy.read(len(piece))
                for at in range(0, len(piece) if former != piece else 0, _PAGE_BYTES):
                    page = piece[at : at + _PAGE_BYTES]
                    if page != former[at : at + _PAGE_BYTES]:
                        copy.seek(file.tell() - len(piece) + at)
                        copy.write(page)
                        written += len(page)
                copy.seek(file.tell())
            copy.truncate()
            copy.flush()
            os.fsync(copy.fileno())
        return written

    @contextmanager
    def _frozen(self, database: Path) -> Iterator[None]:
        """Within it the file alone is the last commit: what is committed meanwhile stays in the write-ahead log.

        Who reads a state whose log is empty keeps SQLite from moving the log into the file
        (https://www.sqlite.org/walformat.html#wal_locks).
        """
        uri = f"{database.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as state:
            while True:
                state.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                state.execute("BEGIN")
                state.execute("SELECT count(*) FROM sqlite_master").fetchone()
                if not log_of(database).stat().st_size:
                    break
                state.execute("ROLLBACK")
                self._over.wait(_AGAIN_S)
                self.go_on()
            yield

    def go_on(self) -> None:
        if self._over.is_set():
            raise InterruptedError("the crawl ends")

    def _append(self, row: SegmentRow, start: int) -> None:
        """Append to a segment what lies between *start* and the length that the new state says, durably."""
        path = self._target / row.kind / row.name
        path.parent.mkdir(exist_ok=True)
        _copy_bytes(self._source / row.kind / row.name, path, start, row.length_bytes, self.go_on)


def snapshot_of(root: Path, directory: Path, is_shard: bool) -> Path:
    """The place in *root* of the snapshots of the crawl, or shard of one, in *directory*."""
    return root.joinpath(*directory.absolute().parts[-2 if is_shard else -1 :])


def bytes_written() -> int:
    """Bytes that this process has given to disks."""
    return 512 * resource.getrusage(resource.RUSAGE_SELF).ru_oublock  # in such blocks (getrusage(2))


def _lengths_of(rows: Collection[SegmentRow]) -> dict[tuple[str, str], int]:
    return {(row.kind, row.name): row.length_bytes for row in rows}


def _notes(database: Path) -> tuple[dict[str, str], dict[int, int]]:
    """The table ``meta`` of a state, and for each other shard the last message of it that it has."""
    with closing(connected(database)) as state, telling_damage(database):
        return dict(state.execute("SELECT key, value FROM meta")), dict(
            state.execute("SELECT shard, received FROM peer")
        )


def _newest_epoch(snapshot: Path) -> int:
    """How often the crawl of *snapshot* was taken over from it."""
    numbers = (path.name.removeprefix(EPOCH) for path in snapshot.glob(f"{EPOCH}*"))
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def take_over(snapshot: Path, directory: Path, now: float) -> str:
    """Make *directory*, which is not there, of a *snapshot* and begin a new epoch; returns what was done, in words.

    Raises BadInput, JobdirError or StorageError; nothing is in it then.
    """
    if usable_version(snapshot / _DATABASE) is None:
        raise BadInput(f"{snapshot} holds no snapshot of a crawl: there is no {snapshot / _DATABASE}.")
    with saving(directory.parent):
        directory.parent.mkdir(parents=True, exist_ok=True)
        lock = acquire(directory.with_name(f"takeover-{directory.name}.lock"), directory)
    with closing(lock):
        return _take_over(snapshot, directory, now)


def _take_over(snapshot: Path, directory: Path, now: float) -> str:
    """The same while nobody else does so there."""
    if any(path.is_file() and path.name != LOCK.name for path in directory.rglob("*")):
        raise JobdirError(f"{directory} is there: a crawl is taken over only where it is not.")
    part = part_of(directory)
    try:
        shutil.rmtree(directory, ignore_errors=True)  # a start that was refused has left nothing but empty directories
        shutil.rmtree(part, ignore_errors=True)  # what a kill has left of a former copy
        (part / "state").mkdir(parents=True)
        (part / "corpus").mkdir()
        shutil.copyfile(snapshot / _DATABASE, part / _DATABASE)
        for row in recorded_segments(part / _DATABASE) or []:
            refuse_lost(snapshot / row.kind / row.name, row.length_bytes)
            (part / row.kind).mkdir(exist_ok=True)
            _copy_bytes(snapshot / row.kind / row.name, part / row.kind / row.name, 0, row.length_bytes)
        with closing(Inspection(part)) as crawl:
            if wrong := next(problems(crawl), ""):
                raise JobdirError(f"the snapshot {snapshot} is damaged: {wrong}")
        epoch = _begin_epoch(snapshot)
        words = f"taken over from the snapshot {snapshot.absolute()}, for the time {epoch}"
        _mark(part / _DATABASE, snapshot, epoch, (now, words))
        (part / LOCK).touch()  # as of a crawl that has begun: it is no snapshot
        sync_directory(part / "state")
        part.rename(directory)
        sync_directory(directory.parent)
    except OSError as error:
        raise StorageError(f"{snapshot} could not be copied to {directory}: {error}.") from error
    return words


def _begin_epoch(snapshot: Path) -> int:
    """Keep all former processes of a crawl out; two that begin one at a time get different numbers."""
    while True:
        epoch = _newest_epoch(snapshot) + 1
        with suppress(FileExistsError):
            (snapshot / f"{EPOCH}{epoch}").open("x").close()
            sync_directory(snapshot)
            return epoch


def _mark(database: Path, snapshot: Path, epoch: int, event: tuple[float, str]) -> None:
    """Begin the *epoch*: number the messages to other shards anew, and note the *event*."""
    with closing(Inspection(snapshot)) as crawl:
        shard = crawl.shard  # its number stands in the name of the directory
    others = [] if shard is None else [other for other in range(shard.shards) if other != shard.number]
    with closing(SqliteStore(database, synced=True)) as store:
        renumber(store, others, epoch)
        counts = {f"total/{TAKEOVERS}": epoch}
        store.commit(Changes(counts=counts, meta={TAKEOVERS: str(epoch)}, events=[event]))


def renumber(store: SqliteStore, others: Iterable[int], epoch: int) -> None:
    """Give the messages in *store* to each of the *others* numbers of a new *epoch*, from its first one on."""
    known = {row.shard: row for row in store.load().peers}
    for other in others:
        former = known.get(other, PeerRow(other))
        newest = epoch << EPOCH_BITS
        done = 0
        while rows := [row for row in store.messages(other, done, OUTBOX_BYTES) if row.number <= former.sent]:
            done = rows[-1].number
            moved = [row._replace(number=newest + at) for at, row in enumerate(rows, 1)]
            newest = moved[-1].number
            store.commit(Changes(outbox=moved, acknowledged={other: done}))
        store.commit(Changes(peers=[former._replace(sent=newest)]))


def _copy_bytes(source: Path, target: Path, start: int, end: int, go_on: Callable[[], None] = lambda: None) -> None:
    """Make *target* hold what *source* does up to the byte *end*, durably; up to *start* it does; raises OSError."""
    with source.open("rb") as file, target.open("r+b" if start else "wb") as copy:
        file.seek(start)
        copy.truncate(start)
        copy.seek(start)
        while start < end:
            go_on()
            piece = file.read(min(end - start, PIECE_BYTES))
            if not piece:
                raise OSError(f"{source} is too short")
            copy.write(piece)
            start += len(piece)
        copy.flush()
        os.fsync(copy.fileno())
    sync_directory(target.parent)
