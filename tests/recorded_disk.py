"""Records what this process writes below a directory, and makes what a kill or a power cut would have left of it.

SQLite is watched where it touches the disk: its default VFS (https://www.sqlite.org/vfs.html) is told to call this
module before it writes.  Python's renaming, deleting, cutting and syncing is watched in ``os``; what Python wrote to a
file is seen when it writes it through ``open``, and at the latest when it syncs it.

A Recording may also refuse a call (`Recording.refusal`), as a disk that is full or fails does.
"""

from __future__ import annotations

import _sqlite3
import builtins
import ctypes
import errno
import io
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

BLOCK_BYTES = 512  # what a disk writes whole or not at all
_JOURNALS = ("-wal", "-journal")
_plain_open = io.open  # which refuses nothing


class Step(NamedTuple):
    """One change of a file or directory, or a sync of one."""

    kind: str  # write, truncate, sync, unsynced (a sync that failed), rename, link, unlink or mkdir
    path: str  # relative to the directory that is recorded
    offset: int = 0  # where is written; the new length of a file that is truncated
    data: bytes = b""
    target: str = ""  # the new name


class Recording:
    """The steps of a process, and what a caller has `noted` between them."""

    unwatched: frozenset[str] = frozenset()  # files whose writing is not seen

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.steps: list[Step] = []
        self.notes: list[tuple[int, Any]] = []  # (Number of steps before it, what was noted)
        self.files = _files_below(self.directory)  # the files and their content at the beginning
        self._known = {name: len(data) for name, data in self.files.items()}
        self._names: dict[str, str | None] = {}  # path -> its name in the directory
        self._folders: dict[str, str] = {}  # path of a folder -> the same without symbolic links
        self.of_sqlite: set[str] = set()  # paths of the files that SQLite has opened

    def refusal(self, kind: str, name: str) -> int:
        """The errno with which a call fails that is about to change the file *name*, or to open it; 0: it does not."""
        return 0

    def halves(self) -> bool:
        """Whether the write that was last asked for takes only the first half of its bytes."""
        return False

    def refused(self, kind: str, path: Any) -> int:
        """The same for a *path*; 0 outside of the directory."""
        name = self.name_of(path)
        code = 0 if name is None else self.refusal(kind, name)
        if code and kind == "sync":
            self.add("unsynced", path)
        return code

    def ask(self, kind: str, path: Any) -> None:
        """Raise the OSError with which a call on *path* fails, if it does."""
        if code := self.refused(kind, path):
            raise OSError(code, os.strerror(code), os.fspath(path))

    def note(self, what: Any) -> None:
        self.notes.append((len(self.steps), what))

    def noted_before(self, step: int) -> list[Any]:
        """What was noted before the step of that number."""
        return [what for at, what in self.notes if at <= step]

    def add(self, kind: str, path: Any, **more: Any) -> None:
        name = self.name_of(path)
        if name is not None:
            target = self.name_of(more.pop("target", None)) or ""
            self.steps.append(Step(kind, name, target=target, **more))

    def see_written(self, path: Any) -> None:
        """Take up what Python has appended to the file at *path* since it was last seen."""
        name = self.name_of(path)
        if name is not None and os.path.isdir(path):
            for file in os.scandir(path):  # those that were made there
                if file.is_file() and file.path not in self.of_sqlite and self.name_of(file.path) not in self._known:
                    self.see_written(file.path)
        if name is None or not os.path.isfile(path):
            return
        size, known = os.path.getsize(path), self._known.get(name, 0)
        if size > known or name not in self._known:
            with _plain_open(path, "rb", 0) as file:
                file.seek(known)
                self.steps.append(Step("write", name, known, file.read(size - known)))
        self._known[name] = size

    def has(self, path: Any) -> bool:
        return (self.name_of(path) or "") in self._known

    def remember(self, path: Any) -> None:
        """The file at *path* is as it is recorded."""
        name = self.name_of(path)
        if name is not None and os.path.isfile(path):
            self._known[name] = os.path.getsize(path)

    def move_below(self, source: Any, target: Any) -> None:
        """The files of the folder *source* are those of *target*."""
        former, new = self.name_of(source) or "", self.name_of(target) or ""
        for name in _moving(former, [*self._known]):
            self._known[new + name.removeprefix(former)] = self._known.pop(name)

    def forget(self, path: Any) -> None:
        """What stands at *path* from now on is another file."""
        self._known.pop(self.name_of(path) or "", None)

    def name_of(self, path: Any) -> str | None:
        if path is None or isinstance(path, int):
            return None
        text = os.fspath(path)
        if text not in self._names:
            self._names[text] = self._name_of(text)
        return self._names[text]

    def _name_of(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        full = os.path.normpath(f"{self._folders[folder]}/{name}")
        if full == str(self.directory):
            return "."
        return os.path.relpath(full, self.directory) if full.startswith(f"{self.directory}/") else None


def _files_below(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def write_files(files: dict[str, bytes], directory: Path) -> Path:
    """Make *directory* hold exactly *files*."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return directory


def after_kills(recording: Recording) -> Iterator[dict[str, bytes]]:
    """The files after each number of steps, from none to all: what a kill there leaves."""
    files = {name: bytearray(data) for name, data in recording.files.items()}
    yield {name: bytes(data) for name, data in files.items()}
    for step in recording.steps:
        _do(step, files)
        yield {name: bytes(data) for name, data in files.items()}


def after_kill(recording: Recording) -> dict[str, bytes]:
    """The files after all steps."""
    files = {name: bytearray(data) for name, data in recording.files.items()}
    for step in recording.steps:
        _do(step, files)
    return {name: bytes(data) for name, data in files.items()}


def _do(step: Step, files: dict[str, bytearray]) -> None:
    if step.kind == "write":
        data = files.setdefault(step.path, bytearray())
        data.extend(bytes(max(0, step.offset - len(data))))
        data[step.offset : step.offset + len(step.data)] = step.data
    elif step.kind == "truncate":
        data = files.setdefault(step.path, bytearray())
        data.extend(bytes(max(0, step.offset - len(data))))
        del data[step.offset :]
    elif step.kind == "rename":
        for name in _moving(step.path, files) or [step.path]:
            files[step.target + name.removeprefix(step.path)] = files.pop(name, bytearray())
    elif step.kind == "link":
        files[step.target] = files[step.path]
    elif step.kind == "unlink":
        files.pop(step.path, None)


def _moving(path: str, names: Iterable[str]) -> list[str]:
    """The files that *path* is, or that are below it."""
    return [name for name in names if name == path or name.startswith(f"{path}/")]


def after_power_cut(recording: Recording, steps: int, rng: random.Random) -> dict[str, bytes]:
    """What a power cut after that number of *steps* may leave.

    Of what was written to a file since its last sync any blocks may be missing.  Of the changes of names any number of
    the last ones since the last sync of a directory may be missing.
    """
    done = recording.steps[:steps]
    owner = _owners(recording, done)
    durable = _durable(done, owner)
    names_synced = max((n for n, step in enumerate(done) if step.kind == "sync" and owner[n] is None), default=0)
    names = [n for n, step in enumerate(done) if step.kind in ("rename", "link", "unlink") and n > names_synced]
    names += [n for n in _creations(recording, done) if n > names_synced]
    lost_from = rng.choice([*sorted(names), steps])
    files = {name: bytearray(data) for name, data in recording.files.items()}
    gone: set[str] = set()
    for number, step in enumerate(done):
        is_of_names = number in names
        if is_of_names and number >= lost_from:
            if step.kind == "write":
                gone.add(step.path)
            continue
        if step.path in gone:
            continue
        if step.kind == "write" and number not in durable:
            _write_some(step, files, rng)
        else:
            _do(step, files)
    return {name: bytes(data) for name, data in files.items()}


def _durable(done: list[Step], owner: list[int | None]) -> set[int]:
    """The writes that a sync of their file has made durable.

    A sync that fails gives up what it was to write: the next one says nothing of it (https://lwn.net/Articles/752063/).
    """
    waiting: dict[int | None, list[int]] = {}
    durable: set[int] = set()
    for number, step in enumerate(done):
        if step.kind == "write":
            waiting.setdefault(owner[number], []).append(number)
        elif step.kind in ("sync", "unsynced") and owner[number] is not None:
            written = waiting.pop(owner[number], [])
            durable.update(written if step.kind == "sync" else ())
    return durable


def _owners(recording: Recording, done: list[Step]) -> list[int | None]:
    """For each step the number of the file that it changes, which stays when the file is renamed; None: a directory."""
    numbers: dict[str, int] = {name: -1 - n for n, name in enumerate(recording.files)}
    found: list[int | None] = []
    for number, step in enumerate(done):
        if step.kind in ("write", "truncate"):
            numbers.setdefault(step.path, number)
        found.append(numbers.get(step.path))
        moving = _moving(step.path, numbers) if step.kind in ("rename", "link", "unlink") else []
        for name in moving:
            if step.kind != "unlink":
                numbers[step.target + name.removeprefix(step.path)] = numbers[name]
            if step.kind != "link":
                del numbers[name]
    return found


def _creations(recording: Recording, done: list[Step]) -> list[int]:
    """The steps that write to a file which was not there."""
    there, found = set(recording.files), []
    for number, step in enumerate(done):
        if step.kind in ("write", "truncate") and step.path not in there:
            there.add(step.path)
            found.append(number)
        moving = _moving(step.path, there) if step.kind in ("rename", "link", "unlink") else []
        if step.kind != "unlink":
            there.update(step.target + name.removeprefix(step.path) for name in moving or [step.path])
        if step.kind != "link":
            there.difference_update(moving)
    return found


def _write_some(step: Step, files: dict[str, bytearray], rng: random.Random) -> None:
    """Write a part of what *step* writes, in blocks of the disk; sometimes all or nothing."""
    share = rng.choice((0.0, 0.5, 0.9, 1.0))
    begin, end = step.offset, step.offset + len(step.data)
    while begin < end:
        stop = min(end, begin - begin % BLOCK_BYTES + BLOCK_BYTES)
        if rng.random() < share:
            _do(step._replace(offset=begin, data=step.data[begin - step.offset : stop - step.offset]), files)
        begin = stop


# -- watching


_VOID, _INT, _LONG, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
_OPEN = ctypes.CFUNCTYPE(_INT, _VOID, _TEXT, _VOID, _INT, _VOID)
_DELETE = ctypes.CFUNCTYPE(_INT, _VOID, _TEXT, _INT)
_WRITE = ctypes.CFUNCTYPE(_INT, _VOID, _VOID, _INT, _LONG)
_TRUNCATE = ctypes.CFUNCTYPE(_INT, _VOID, _LONG)
_SYNC = ctypes.CFUNCTYPE(_INT, _VOID, _INT)
_SQLITE_FULL = 13
_SQLITE_CODES = {"write": 778, "truncate": 1546, "sync": 1034, "unlink": 2570, "open": 14}
"""How SQLite names an error of each call (https://www.sqlite.org/rescode.html)."""
_METHODS = 19  # words of sqlite3_io_methods, of which the first is its version


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", _INT), ("size", _INT), ("longest", _INT), ("next", _VOID), ("name", _TEXT), ("data", _VOID),
        ("open", _VOID), ("delete", _VOID),
    )  # fmt: skip


class _Watch:
    """The default VFS of SQLite, with functions that tell `recording` before they do their work."""

    recording: Recording | None = None

    def __init__(self) -> None:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._vfs = library.sqlite3_vfs_find(None).contents
        self._open, self._delete = _OPEN(self._vfs.open), _DELETE(self._vfs.delete)
        self._paths: dict[int, bytes] = {}
        self._unsynced_names: set[bytes] = set()
        self._tables: dict[int, Any] = {}
        """Table of methods -> the same with ours; SQLite keeps pointers to them, so they are never freed."""
        self._kept = [_OPEN(self._opening), _DELETE(self._deleting)]
        self._vfs.open, self._vfs.delete = (ctypes.cast(function, _VOID) for function in self._kept)

    def _opening(self, vfs: int, name: bytes | None, file: int, flags: int, out: int) -> int:
        if name is not None and (refused := self._refused("open", name)):
            ctypes.cast(file, ctypes.POINTER(_VOID))[0] = None
            return refused
        is_new = name is not None and not os.path.exists(name)
        code = self._open(vfs, name, file, flags, out)
        methods = ctypes.cast(file, ctypes.POINTER(_VOID))
        if code == 0 and name is not None and methods[0]:
            if is_new and name.decode().endswith(_JOURNALS):
                self._unsynced_names.add(name)
            self._paths[file] = name
            if self.recording is not None:
                self.recording.of_sqlite.add(name.decode())
            methods[0] = self._table(methods[0])
        return int(code)

    def _table(self, methods: int) -> int:
        if methods not in self._tables and methods not in map(ctypes.addressof, self._tables.values()):
            table = (_VOID * _METHODS).from_buffer_copy((_VOID * _METHODS).from_address(methods))
            write, truncate, sync = _WRITE(table[3]), _TRUNCATE(table[4]), _SYNC(table[5])

            def writing(file: int, data: int, size: int, offset: int) -> int:
                if refused := self._refused("write", self._paths[file]):
                    return refused
                part = self._part(size)
                self._add("write", file, offset=offset, data=ctypes.string_at(data, part))
                code = int(write(file, data, part, offset))
                return _SQLITE_FULL if part < size else code

            def truncating(file: int, size: int) -> int:
                if refused := self._refused("truncate", self._paths[file]):
                    return refused
                self._add("truncate", file, offset=size)
                return int(truncate(file, size))

            def syncing(file: int, flags: int) -> int:
                if refused := self._refused("sync", self._paths[file]):
                    return refused
                code = int(sync(file, flags))
                self._add("sync", file)
                path = self._paths[file]
                if path in self._unsynced_names and self.recording is not None:  # SQLite syncs its directory as well
                    self._unsynced_names.discard(path)
                    self.recording.add("sync", os.path.dirname(path.decode()))
                return code

            functions = (_WRITE(writing), _TRUNCATE(truncating), _SYNC(syncing))
            self._kept += functions
            for place, function in enumerate(functions, 3):
                table[place] = ctypes.cast(function, _VOID)
            self._tables[methods] = table
        return ctypes.addressof(self._tables[methods]) if methods in self._tables else methods

    def _part(self, size: int) -> int:
        """How many of *size* bytes a write takes."""
        return max(1, size // 2) if self.recording is not None and self.recording.halves() else size

    def _deleting(self, vfs: int, name: bytes, syncs: int) -> int:
        if os.path.exists(name) and (refused := self._refused("unlink", name)):
            return refused
        if self.recording is not None and os.path.exists(name):
            self.recording.add("unlink", name.decode())
            self.recording.forget(name.decode())
        code = int(self._delete(vfs, name, syncs))
        if syncs and self.recording is not None:
            self.recording.add("sync", os.path.dirname(name.decode()))
        return code

    def _refused(self, kind: str, name: bytes) -> int:
        """SQLite's code for the refusal of a call; 0: it is not refused."""
        code = 0 if self.recording is None else self.recording.refused(kind, name.decode())
        return _SQLITE_FULL if code == errno.ENOSPC else _SQLITE_CODES[kind] if code else 0

    def _add(self, kind: str, file: int, **more: Any) -> None:
        if self.recording is not None:
            self.recording.add(kind, self._paths[file].decode(), **more)


_watch: list[_Watch] = []


@contextmanager
def recorded(directory: Path, recording: Recording | None = None) -> Iterator[Recording]:
    """Record what this process does to files below *directory* within the block, in *recording* if one is given."""
    if not _watch:
        _watch.append(_Watch())
    recording = recording or Recording(directory)
    former = {name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink", "link", "truncate")}
    _watch[0].recording = recording
    try:
        for name, function in former.items():
            setattr(os, name, _seen(name, function, recording))
        opening, opening_descriptor, sendfile = io.open, os.open, os.sendfile
        io.open = builtins.open = _opened(opening, recording)
        os.open = _opened_descriptor(opening_descriptor, recording)
        os.sendfile = _no_sendfile
        yield recording
    finally:
        io.open = builtins.open = opening
        os.open = opening_descriptor
        os.sendfile = sendfile
        _watch[0].recording = None
        for name, function in former.items():
            setattr(os, name, function)


def _no_sendfile(*_: Any) -> int:
    """`shutil.copyfile` writes through ``open`` then."""
    raise OSError(errno.ENOSYS, "not to be seen")


class _WatchedFile(io.FileIO):
    """A file whose writes are seen at once, and may be refused."""

    recording: Recording

    def write(self, data: Any) -> int:
        self.recording.ask("write", self.name)
        written = super().write(data[: max(1, len(data) // 2)] if self.recording.halves() else data)
        self.recording.see_written(self.name)
        return written


def _opened(function: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
    def opening(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, *more: Any, **named: Any
    ) -> Any:
        if isinstance(file, int) or recording.name_of(file) in (None, *recording.unwatched):
            return function(file, mode, buffering, encoding, *more, **named)
        recording.ask("open", file)
        if not set(mode) & set("wax+"):
            return function(file, mode, buffering, encoding, *more, **named)
        if "w" in mode:
            recording.ask("truncate", file)
        raw = _WatchedFile(os.fspath(file), mode.replace("b", "").replace("t", ""))
        raw.recording = recording
        if "w" in mode and recording.has(file):
            recording.add("truncate", file)
            recording.forget(file)
        recording.see_written(file)
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8")

    return opening


def _opened_descriptor(function: Callable[..., int], recording: Recording) -> Callable[..., int]:
    def opening(path: Any, *more: Any, **named: Any) -> int:
        if recording.name_of(path) not in (None, *recording.unwatched):
            recording.ask("open", path)
        return function(path, *more, **named)

    return opening


def _seen(name: str, function: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
    def syncing(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        recording.see_written(path)
        recording.ask("sync", path)
        function(descriptor)
        recording.add("sync", path)

    def renaming(source: Any, target: Any, **more: Any) -> None:
        recording.ask("rename", source)
        recording.see_written(source)
        recording.add("link" if name == "link" else "rename", source, target=target)
        function(source, target, **more)
        for path in (source, target):
            recording.forget(path)
        recording.remember(target)
        if os.path.isdir(target):
            recording.move_below(source, target)

    def unlinking(path: Any, **more: Any) -> None:
        if os.path.lexists(path):
            recording.ask("unlink", path)
            recording.add("unlink", path)
            recording.forget(path)
        function(path, **more)

    def truncating(path: Any, length: int) -> None:
        recording.ask("truncate", path)
        recording.see_written(path)
        recording.add("truncate", path, offset=length)
        function(path, length)
        recording.forget(path)
        recording.remember(path)

    functions = {"fsync": syncing, "unlink": unlinking, "truncate": truncating}
    return functions.get(name, renaming)
