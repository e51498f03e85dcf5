"""The directory that holds a crawl: its layout, its lock, which directories are refused, and upgrades of its state.

Surplus is bytes in ``corpus/``, ``links/`` and ``warc/`` that the state does not know; it is set aside or refused.  A
kill or power cut leaves the bytes of one checkpoint that was written and not committed; these go to ``aside/``.  More
may have been acknowledged: the state is
an older one, lost its write-ahead log, or is gone.  Then the crawl does not begin, or moves the surplus to ``aside/``
if it was told to.  A file stays as it is if no crawl would give it its name.  It also stays if it holds nothing that a
crawl writes, unless this crawl would write to its name next.  All is judged before the state is opened, since SQLite
then makes the log anew and later removes it.  Files are changed when the state was read and found usable.

The state of an earlier version becomes one of this version in one transaction, after a copy of it was kept under a
name such as ``frontier.sqlite.schema-1``.  Its surplus was dealt with before.  SQLite's rollback journal makes it whole
after a kill, so it is the old state or the new one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple

from spiderling.base.errors import JobdirError, SpiderlingError, StorageError
from spiderling.base.files import sync_directory, sync_file
from spiderling.base.option_values import PREFIX
from spiderling.corpus.segments import frames, number_of, refuse_lost
from spiderling.corpus.warc import ends_batch
from spiderling.frontier.storage.protocol import SegmentRow
from spiderling.frontier.storage.state_file import (
    log_of,
    new_file_for,
    put_in_place,
    usable_version,
    version_of,
)
from spiderling.frontier.storage.tables import MIGRATIONS, SCHEMA_VERSION, whole_rows
from spiderling.jobdir.inspection import parts_in
from spiderling.jobdir.state_reader import connected, read_note, telling_damage

TAKEDOWN = "takedown"
"""Key in the table ``meta`` of what a take-down that is under way takes down, and of its files; {}: none is."""
ASIDE = "aside"  # directory beside the segments of a kind, for what was set aside
_ASKED_S = 0.02  # seconds until a lock that somebody has is asked for once more; chosen
KINDS = {"corpus": (".prevert.zst",), "links": (".links.zst",), "warc": (".warc.gz", ".warc.zst")}
"""Directory of each kind of segments -> how their names end."""
_PIECE_BYTES = 1 << 20
_END_OF_DOCUMENT = b"</doc>\n"


class Surplus(NamedTuple):
    """Bytes of one file of which the state knows nothing."""

    path: Path
    start: int  # bytes of the file that the state knows, before the surplus; 0: it does not know the file
    whole: int  # byte of the file at which the last whole frame ends
    size: int
    documents: int  # whole documents in the surplus
    is_one_batch: bool  # whether it is what one checkpoint wrote, or a part of that
    withheld: str = ""  # why the disk does not give the rest now; '': it does

    @property
    def number(self) -> int:
        """The number in the file's name."""
        return number_of(self.path.name) or 0

    @property
    def has_text(self) -> bool:
        """Whether it holds whole frames of a crawl's output."""
        return self.documents > 0 if self.path.parent.name == "corpus" else self.whole > self.start


def judge_surplus(directory: Path, database: Path, prefix: str | None, moves: bool) -> Callable[[], list[str]]:
    """Judge the surplus; returns a function that removes it and returns what was set aside, in words.

    *prefix*: what the names of segments begin with where the state names none; None: any.  *moves*: surplus may be set
    aside, as it may after a run whose last commits a power cut can undo (SPIDERLING_DURABILITY=normal).
    Raises JobdirError for a state that is gone, and for surplus that may have been acknowledged and is not to be
    moved; StorageError for a segment that lost text.  The function raises JobdirError.
    """
    has_log = log_of(database).exists()
    known = recorded_segments(database)
    if known is None:
        refuse_without_state(directory, database)
        is_begun = any(database.parent.glob(f"{database.name}*"))
        return lambda: [f"{database}, which an earlier start had not finished, was made anew"] if is_begun else []
    for row in known:
        refuse_lost(directory / row.kind / row.name, row.length_bytes)
    found = list(beyond(directory, known, prefix))
    if found and not (moves or _is_synced_late(database)) and not (has_log and is_unfinished(found, known)):
        raise JobdirError(
            f"{directory} holds {_describe(found)} that its state does not know: the state {database} is older than "
            "it, or lost its log, or somebody put it there. Nothing was changed. Take away "
            f"what is not the crawl's, make a state of all that is there with `scrapy inspect {directory} --rebuild`, "
            f"put back the newest copy of {database.parent}, or go on with -s {PREFIX}SURPLUS=aside: that moves this "
            f"text to {ASIDE}/, and its pages are fetched again."
        )

    def settle() -> list[str]:
        try:
            for surplus in found:
                set_aside(surplus)
        except OSError as error:
            raise JobdirError(f"{error.filename} cannot be set aside: {error.strerror}.") from error
        return [f"{_describe(found)}, which the state did not know, went to {ASIDE}/"] if found else []

    return settle


def _is_synced_late(database: Path) -> bool:
    """Whether the last run of the crawl had SPIDERLING_DURABILITY=normal."""
    with closing(connected(database, is_locked=True)) as connection, telling_damage(database):
        notes = dict(connection.execute("SELECT key, value FROM meta WHERE key = 'options'"))
    return read_note(notes, "options", dict[str, Any]()).get("durability") == "normal"


def recorded_segments(database: Path) -> list[SegmentRow] | None:
    """The segments that the state at *database* records; None if the file is missing or is no state.

    Nothing is written.  Each row is compared with its checksum, since what segments hold beyond the recorded lengths
    is set aside.  Raises JobdirError if the file is damaged.
    """
    if version_of(database) is None:
        return None
    with closing(connected(database, is_locked=True)) as connection, telling_damage(database):
        return list(map(SegmentRow._make, whole_rows(connection, "file")))


def undo(directory: Path, database: Path, prefix: str) -> None:
    """Cut off what this process wrote and could not commit, when its state is closed: the log is gone then."""
    with suppress(SpiderlingError, OSError):
        known = recorded_segments(database)
        found = [] if known is None else list(beyond(directory, known, prefix))
        if known is not None and is_unfinished(found, known):
            for surplus in found:
                with suppress(OSError):  # of one file; the others are cut all the same
                    _cut(surplus)


def beyond(directory: Path, known: Sequence[SegmentRow], prefix: str | None) -> Iterator[Surplus]:
    """The surplus of the output in *directory* over the *known* segments, without files that no crawl wrote.

    *prefix*: of segments' names where none is known; None: any.
    """
    lengths = {(row.kind, row.name): row.length_bytes for row in known}
    prefixes: set[str | None] = {row.name.rpartition("-")[0] for row in known} or {prefix}
    for kind, suffixes in KINDS.items():
        found = []
        for path in sorted((directory / kind).glob("*")):
            if path.name.endswith(suffixes) and path.is_file():
                start = lengths.get((kind, path.name), 0)
                size = path.stat().st_size
                if size > start and (start or any(number_of(path.name, p) is not None for p in prefixes)):
                    found.append(_measure(path, start, size))
        following = max([_last(known)[kind], *(s.number for s in found if s.has_text)]) + 1
        yield from (s for s in found if s.start or s.has_text or s.withheld or s.number == following)


def is_unfinished(found: Sequence[Surplus], known: Sequence[SegmentRow]) -> bool:
    """Whether *found* is at most what one checkpoint wrote: a batch a kind, behind its last segment or as the next."""
    last = _last(known)
    kinds = [surplus.path.parent.name for surplus in found]
    return len(kinds) == len(set(kinds)) and all(
        surplus.is_one_batch and surplus.number == last[kind] + (surplus.start == 0)
        for kind, surplus in zip(kinds, found, strict=True)
    )


def _last(known: Sequence[SegmentRow]) -> dict[str, int]:
    """The number of the last known segment of each kind; 0: none."""
    last = dict.fromkeys(KINDS, 0)
    for row in known:
        last[row.kind] = max(last[row.kind], number_of(row.name) or 0)
    return last


def set_aside(surplus: Surplus) -> None:
    """Move *surplus* to files of its own; no file is overwritten.  Raises OSError.

    One gets the whole frames and can be read to its end; another one gets the torn or damaged rest.
    """
    path, start, whole, size = surplus[:4]
    directory = path.parent / ASIDE
    directory.mkdir(exist_ok=True)
    stem = path.name.partition(".")[0]
    suffix = "." + path.name.partition(".")[2]
    name = f"{stem}-from-{start}" if start else stem
    if whole < size:
        _copy(path, whole, size, _free(directory, name, f"{suffix}.torn"))
    if start < whole:
        _copy(path, start, whole, _free(directory, name, suffix))
    sync_directory(directory)
    sync_directory(path.parent)  # which has the name of aside/
    _cut(surplus)


def refuse_without_state(directory: Path, database: Path) -> None:
    """Raise JobdirError if *directory* holds output of a crawl, whose state *database* is gone."""
    found = list(beyond(directory, [], None))
    if found:
        lost = "holds no crawl" if database.exists() else "is missing"
        raise JobdirError(
            f"{directory} holds {_describe(found)}, but their state is gone: {database} {lost}. Nothing was changed. "
            f"Make the state anew with `scrapy inspect {directory} --rebuild`, put back the newest copy of "
            f"{database.parent}, or begin another crawl with -s JOBDIR=... and -a seen={directory}/corpus, which keeps "
            "none of that text twice."
        )


def _describe(found: Sequence[Surplus]) -> str:
    """How much *found* is and where, in words."""
    size, documents = (sum(getattr(s, name) for s in found) for name in ("size", "documents"))
    size -= sum(surplus.start for surplus in found)
    first = "/".join(found[0].path.parts[-2:])
    where = first if len(found) == 1 else f"{first} and {len(found) - 1} more file{'s' * (len(found) > 2)}"
    return f"{size:,} bytes with {documents:,} whole documents in {where}"


def _measure(path: Path, start: int, size: int) -> Surplus:
    """The surplus of a file from byte *start* on."""
    whole = start
    documents = 0
    is_ended = False
    is_one_batch = True
    withheld = ""
    is_corpus = path.parent.name == "corpus"
    is_archive = path.parent.name == "warc"
    try:
        for frame in frames(path, size, start):
            is_one_batch = is_one_batch and not is_ended
            is_ended = ends_batch(frame.data) if is_archive else True
            documents += frame.data.count(_END_OF_DOCUMENT) if is_corpus else 0
            whole = frame.offset + frame.length
    except StorageError as error:
        is_one_batch = is_one_batch and not is_ended
        withheld = str(error) if isinstance(error.__cause__, OSError) else ""
    return Surplus(path, start, whole, size, documents, is_one_batch, withheld)


def _cut(surplus: Surplus) -> None:
    """Remove *surplus*, durably: a power cut could bring it back without the log, and starts refuse that."""
    if surplus.start:
        os.truncate(surplus.path, surplus.start)
        sync_file(surplus.path)
    else:
        surplus.path.unlink()
        sync_directory(surplus.path.parent)


def _free(directory: Path, name: str, suffix: str) -> Path:
    paths = (directory / f"{name}{f'-{number}' if number > 1 else ''}{suffix}" for number in count(1))
    return next(path for path in paths if not path.exists())


def _copy(source: Path, start: int, end: int, target: Path) -> None:
    """Bytes *start* to *end* of *source*, durably."""
    with source.open("rb") as file, target.open("xb") as copy:
        file.seek(start)
        left = end - start
        while left and (piece := file.read(min(left, _PIECE_BYTES))):
            copy.write(piece)
            left -= len(piece)
        copy.flush()
        os.fsync(copy.fileno())


def upgrade(path: Path, migrations: Mapping[int, str] = MIGRATIONS) -> Path | None:
    """Bring the state at *path* to this version's schema; returns where the former one is kept, None if there is none.

    Each row keeps its checksum, so damage is still noticed.  The caller holds the lock of the crawl's directory.
    Raises JobdirError or StorageError; the state is as it was then.
    """
    version = version_of(path)
    if version is None or version not in migrations:
        return None
    steps = [migrations[number] for number in range(version, max(migrations) + 1)]
    names = (path.with_name(f"{path.name}.schema-{version}{f'.{number}' if number else ''}") for number in count())
    kept = next(name for name in names if not name.exists())
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as state:
            new = new_file_for(kept)
            with closing(sqlite3.connect(new)) as copy:
                state.backup(copy)
            put_in_place(new, kept)
            state.execute("PRAGMA journal_mode=DELETE")  # a log would hide the new version from who only reads
            state.executescript(f"BEGIN; {''.join(steps)} PRAGMA user_version={version + len(steps)}; COMMIT;")
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            new_file_for(kept)
            kept.unlink(missing_ok=True)
        is_read = getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY"
        raise StorageError(
            f"{path} is of an earlier version (schema {version}) and could not be brought to this one: "
            f"{'another process reads it' if is_read else error}. It is "
            "as it was: mend that and start again, or go on with the earlier version."
        ) from error
    return kept


PAGE_TOKEN = "page.token"  # noqa: S105 - the name of a file
"""The file with the token of the live page (docs/live.md)."""
LOCK = Path("state", "lock")  # the file that a running crawl has locked, within its directory
_OURS = {PAGE_TOKEN, "state", "corpus", "crawl.log", "control.yaml", "spider.state", "report.html", "warc", "links"}


class Jobdir:
    """An opened and locked crawl directory; ``close`` releases the lock.

    The lock is flock(2) on ``state/lock``: it ends with the process, however that ends.
    """

    def __init__(self, path: Path, is_rebuilt: bool = False) -> None:
        """Create or open *path*; raises JobdirError when it is unwritable, foreign or in use.

        *is_rebuilt*: its state is made anew, so the present one may be in any condition.
        """
        self.path = path
        self.state = path / "state"
        self.corpus = path / "corpus"
        self.log = path / "crawl.log"
        self.control = path / "control.yaml"
        self.database = self.state / "frontier.sqlite"
        self.is_new = not self.database.exists()
        if self.state.exists() and (path / "shard-00").is_dir():  # the first that `reshard` makes
            raise JobdirError(f"{path} is being divided: end that with scrapy reshard {path} --shards N")
        try:
            if not is_rebuilt:
                self._refuse_foreign()
            self.state.mkdir(parents=True, exist_ok=True)
            self.corpus.mkdir(exist_ok=True)
            self._opened = {place: _identity(place) for place in (path, self.state, self.corpus)}
            self._lock = acquire(path / LOCK, path)
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise JobdirError(
                f"the crawl directory {path} cannot be used: {error.strerror or error}. "
                f"{'Free space on its disk' if is_full else 'Mend its permissions'}, or give another with -s JOBDIR=..."
            ) from error

    def judge(self, prefix: str, moves: bool) -> Callable[[], list[str]]:
        """Find out whether output and state can be made to agree; returns what makes them, and says what it did.

        The caller calls that when the state was read and found usable.  Nothing is changed before, but a state of an
        earlier version.  Raises JobdirError if they must not be made to agree, StorageError if the state cannot be
        upgraded or text was lost; so does what is returned.
        """
        _refuse_half_done(self.path, self.database)
        make_agree = judge_surplus(self.path, self.database, prefix, moves)
        if version_of(self.database) in (None, SCHEMA_VERSION):
            return make_agree
        done = make_agree()
        if former := upgrade(self.database):
            done.append(f"the state was brought to this version's schema; the former is kept as {former}")
        return lambda: done

    def sync_names(self) -> None:
        """Make the names of the directory, of what leads to it and of what is in it durable; raises StorageError."""
        try:
            for directory in (self.state, *self.state.absolute().parents[:3]):
                with suppress(PermissionError):  # of a directory above, in which nothing was made then
                    sync_directory(directory)
        except OSError as error:
            raise StorageError(f"{directory} could not be synced: {error.strerror}.") from error

    def still_here(self) -> None:
        """Raise StorageError if the directory, its state or its corpus is not where it was opened.

        Open files could still be written to then, but new segments would go elsewhere.
        """
        gone = [place for place, identity in self._opened.items() if _identity(place) != identity]
        if not gone and not self.database.exists():
            gone = [self.database]
        if gone:
            raise StorageError(
                f"{gone[0]} was moved, deleted or replaced while the crawl ran. Put it back, or say where the crawl is "
                "with -s JOBDIR=..., and start again; what was deleted is lost."
            )

    def close(self) -> None:
        self._lock.close()

    def _refuse_foreign(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise JobdirError(f"{self.path} is a file; a crawl needs a directory. Give another with -s JOBDIR=...")
        usable_version(self.database, (*MIGRATIONS, SCHEMA_VERSION))
        if not self.database.exists() and {entry.name for entry in self.path.iterdir()} - _OURS:
            if parts_in(self.path) != [self.path]:
                raise JobdirError(
                    f"{self.path} holds the shards of a crawl: give the SPIDERLING_SHARDS that it has (and "
                    "SPIDERLING_CLUSTER, if you start each shard), or another directory with -s JOBDIR=..."
                )
            refuse_without_state(self.path, self.database)
            raise JobdirError(
                f"{self.path} holds files of something else and no crawl. Give an empty or new directory "
                "with -s JOBDIR=..."
            )


def _refuse_half_done(directory: Path, database: Path) -> None:
    """Raise JobdirError if a take-down in *directory* has not ended."""
    if _takedown_in(database):
        raise JobdirError(f"a take-down in {directory} was interrupted: end it with scrapy takedown {directory} --yes")


def _takedown_in(database: Path) -> dict[str, Any]:
    """What the state notes of a take-down that is under way; {}: none is."""
    if version_of(database) is None:
        return {}
    with closing(connected(database, is_locked=True)) as state, telling_damage(database):
        notes = dict(state.execute("SELECT key, value FROM meta WHERE key = ?", (TAKEDOWN,)))
    return read_note(notes, TAKEDOWN, dict[str, Any]())


def delete_unnamed(directory: Path, database: Path) -> dict[str, Any]:
    """Delete those files of a take-down under way that the state does not name; returns what it notes of that.

    Such a file holds what another one does.  Raises JobdirError and OSError.
    """
    begun = _takedown_in(database)
    named = {(row.kind, row.name) for row in recorded_segments(database) or []}
    files = {(kind, name) for kind, *both in begun.get("files", []) for name in both}
    for path in (directory / kind / name for kind, name in sorted(files - named)):
        if path.exists():
            path.unlink()
            sync_directory(path.parent)
    return begun


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a directory; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def acquire(file: Path, directory: Path) -> IO[str]:
    """The lock *file* of a crawl's *directory*, ours until it is closed; raises JobdirError if it is another's."""
    lock = file.open("a+", encoding="utf-8")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # who only asks whose it is (inspection.py) has it for some microseconds
            time.sleep(_ASKED_S)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise JobdirError(
            f"the crawl directory {directory} is in use by {holder}. Stop that crawl first, or give another "
            "with -s JOBDIR=..."
        ) from None
    except OSError:
        with suppress(OSError):  # what is not written yet cannot be
            lock.close()
        raise
    return lock
