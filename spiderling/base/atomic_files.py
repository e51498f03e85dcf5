"""Atomic writing: a file is written under another name, synced, and put in place by one renaming."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from spiderling.base.errors import StorageError

_NO_FILE = "it is there, and is no file"
PART = ".part"
"""Ending of a file that is not complete."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces *path* when the block ends; if the block raises, the former file stays.

    The content is durable then, the name only after `sync_directory`.  Raises OSError.
    """
    part = part_of(path)
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def open_regular(path: Path, flags: int = os.O_RDONLY) -> IO[bytes]:
    """The file at *path*, opened for what *flags* say.

    Raises OSError for a device, a pipe or a socket too, from which might come nothing for ever, or no end.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(_NO_FILE)


def write_whole(path: Path, text: str) -> None:
    """Replace the file at *path*, or where a link at *path* leads, by *text*; characters outside UTF-8 become ``?``.

    On return both content and name are durable.  Raises StorageError, also for a device or pipe, and then what
    stood there stays.
    """
    path = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file():
            raise OSError(_NO_FILE)
        with replacing(path) as file:
            file.write(text.encode("utf-8", "replace"))
        sync_directory(path.parent)
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error.strerror or error}.") from error


def part_of(path: Path) -> Path:
    """The path under which the file for *path* is written."""
    return path.with_name(path.name + PART)


def sync_file(path: Path) -> None:
    """Make the content of the file at *path* durable; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make the names in *directory* durable; raises OSError."""
    sync_file(directory)
