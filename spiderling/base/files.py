"""Files: written whole under another name, synced and put in place by one renaming; and read in bounded time.

A YAML file that a person wrote, or a number that somebody else did, may not hold a crawl up.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import yaml

from spiderling.base.errors import BadInput, StorageError
from spiderling.base.terminal import shown

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

_NO_FILE = "it is there, and is no file"
PART = ".part"  # ending of a file that is not complete


@contextmanager
def saving(what: object) -> Iterator[None]:
    """Turn an OSError within the block into a StorageError that says that *what* could not be written."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what} could not be written: {error.strerror or error}.") from error


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
    with saving(path):
        if path.exists() and not path.is_file():
            raise OSError(_NO_FILE)
        with replacing(path) as file:
            file.write(text.encode("utf-8", "replace"))
        sync_directory(path.parent)


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


def checksum(path: Path, length: int | None = None) -> str:
    """SHA-256 of a file, or of its first *length* bytes; raises StorageError if it cannot be read or is shorter."""
    digest = hashlib.sha256()
    left = path.stat().st_size if length is None and path.exists() else length or 0
    try:
        with path.open("rb") as file:
            while left and (part := file.read(min(left, 1 << 20))):
                digest.update(part)
                left -= len(part)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    if left:
        raise StorageError(f"{path} is {left} bytes shorter than recorded.")
    return digest.hexdigest()


MAX_DEPTH = 20  # levels of lists and mappings (chosen)
MAX_DIGITS = 1000
"""Characters of a number (chosen: the time to read one to the base 60, such as 1:30, grows with their square)."""
MAX_EVENTS = 200_000  # values, and starts and ends of lists and mappings (chosen: more take a second or longer to read)
_OF_NUMBERS = "+-0123456789_:."
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


def read_yaml(text: str | bytes) -> Any:
    """The value in *text*; raises BadInput if it is no YAML, or has anchors, which can make a small file huge."""
    try:
        _refuse_endless(text)
        return yaml.load(text, _SafeLoader)  # noqa: S506 - the safe loader
    except BadInput:
        raise
    except Exception as error:  # PyYAML raises almost any for a scalar that its tag does not fit, as !!bool x
        raise BadInput(f"it is no YAML: {shown(' '.join(str(error).split()))[1:-1]}") from error


def keys_of(text: str) -> list[str]:
    """The keys of the mapping in *text*, which `read_yaml` has read; one may stand there twice."""
    root = yaml.compose(text, _SafeLoader)
    return [key.value for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []


def _refuse_endless(text: str | bytes) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(text, _SafeLoader)):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput("anchors and aliases (& and *) are not read; write out what they stand for")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_DIGITS and not event.value.strip(_OF_NUMBERS):
            line = event.start_mark.line + 1  # type: ignore[union-attr]
            raise BadInput(f"line {line} has a number of more than {MAX_DIGITS} characters: {shown(event.value)}")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or number > MAX_EVENTS:
            raise BadInput(f"it holds more than {MAX_DEPTH} lists in each other, or {MAX_EVENTS} entries")


_MAX_DIGITS = 18  # digits that always fit into 64 bits; int() itself raises ValueError for more than 4,300


def whole_number(text: str | bytes) -> int | None:
    """The number that *text* is, in ASCII digits; None for anything else.

    >>> whole_number("120"), whole_number(b"7"), whole_number("²"), whole_number("-1"), whole_number("9" * 5000)
    (120, 7, None, None, None)
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS  # "²".isdigit(), but int("²") raises
    return int(text) if is_number else None


def frame_packer(level: int, has_checksum: bool = True) -> Callable[[bytes], bytes]:
    """A function that packs bytes into a frame that says their length; it serves one thread at a time.

    One that is kept takes 8 us less a frame than a new one.
    """
    parameter = zstd.CompressionParameter
    packer = zstd.ZstdCompressor(
        options={parameter.compression_level: level, parameter.checksum_flag: int(has_checksum)}
    )

    def pack(data: bytes) -> bytes:
        packer.set_pledged_input_size(len(data))
        return packer.compress(data, packer.FLUSH_FRAME)

    return pack


def unpack_frame(data: bytes, max_bytes: int) -> bytes:
    """The content of the frame in *data*; raises ZstdError if it breaks off, is damaged, or holds over *max_bytes*."""
    unpacker = zstd.ZstdDecompressor()
    content = unpacker.decompress(data, max_bytes + 1)
    if not unpacker.eof or len(content) > max_bytes:
        raise zstd.ZstdError(f"a frame breaks off, or holds more than {max_bytes:,} bytes")
    return content
