"""A URL in a queue as one line of bytes, and such lines packed in the tables ``chunk`` and ``log``.

The line of a plain URL is one byte, for its scheme, ``www.`` and rank, followed by its path; the host's name is known.
Any other URL is JSON behind a ``~``: one with attempts, redirects, the payload of a subclass's request, a server's
own spelling or an unusual port.  A line contains no newline.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Mapping

import zstandard

from spiderling.base.errors import DamageError
from spiderling.base.urls import PREFIXES, CanonicalUrl, assembled, canonicalize, prefix_of, url_key
from spiderling.frontier.hosts.host import Host, QueuedUrl
from spiderling.frontier.hosts.ranks import RANKS

_FIRST = 0x40
"""The first byte of plain lines is '@' to 'g': ten for each prefix, in the order of the ranks."""
HEADS = [[bytes([_FIRST + number * RANKS + rank]) for rank in range(RANKS)] for number in range(len(PREFIXES))]
"""The first byte of a plain line, by the URL's prefix and its rank."""
_SPECIAL = b"~"
"""The first byte of a line with JSON."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame."""
_LEVEL = 3
"""Level of zstd compression (chosen)."""


def plain_line(target: CanonicalUrl, rank: int) -> bytes | None:
    """The line of a URL that was never tried; None if it is not a plain one."""
    prefix = prefix_of(target)
    if prefix is None or not target.path.isascii() or "\n" in target.path:
        return None
    return HEADS[prefix][rank] + target.path.encode("ascii")


def line_of(url: QueuedUrl) -> bytes:
    if not (url.tries or url.redirects or url.payload is not None) and url.url == url.target.url:
        line = plain_line(url.target, url.rank)
        if line is not None:
            return line
    payload = None if url.payload is None else base64.b64encode(url.payload).decode("ascii")
    return _SPECIAL + json.dumps([url.key, url.url, url.rank, url.tries, url.redirects, payload]).encode("ascii")


def url_of(line: bytes, host: Host) -> QueuedUrl:
    """The URL of *host* in *line*; raises ValueError, TypeError or IndexError for what is no such line."""
    if line.startswith(_SPECIAL):
        key, url, rank, tries, redirects, payload = json.loads(line[1:])
        target = canonicalize(url)
        if target is None:
            raise ValueError(f"{url!r} is no URL")
        data = None if payload is None else base64.b64decode(payload)
        return QueuedUrl(key, url, host, rank, target, tries, redirects, data)
    number, rank = divmod(line[0] - _FIRST, RANKS)
    target = assembled(number, host.name, line[1:].decode("ascii"))
    return QueuedUrl(url_key(host.id, target.url), target.url, host, rank, target)


def stored_url(line: bytes, host: Host) -> QueuedUrl:
    """``url_of`` for lines from the store; raises DamageError for what is no such line."""
    try:
        return url_of(line, host)
    except (ValueError, TypeError, IndexError) as error:
        raise DamageError(f"the queue of {host.name} is damaged: {line[:80]!r} is no URL of it ({error}).") from error


# -- lines in the tables


class _Zstd(threading.local):
    """One of each for every thread: to make one takes longer than to use it for a short chunk."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _Zstd()


def packed(lines: Iterable[bytes]) -> bytes:
    """The *lines* of a chunk or of the log, compressed if that makes them smaller.

    No line begins like a zstd frame.
    """
    joined = b"\n".join(lines)
    return min(joined, _zstd.compressor.compress(joined), key=len)


def unpacked(blob: bytes) -> list[bytes]:
    """The lines of a chunk or of the log; raises DamageError."""
    try:
        lines = _zstd.decompressor.decompress(blob) if blob.startswith(_ZSTD_MAGIC) else blob
    except zstandard.ZstdError as error:
        raise DamageError(f"the URLs of a queue are damaged: {error}.") from error
    return lines.split(b"\n") if lines else []


def log_entry(added: Iterable[tuple[int, bytes]], popped: Mapping[int, int]) -> tuple[bytes, str]:
    """The columns ``added`` and ``popped`` of a batch in the table ``log``."""
    lines = packed(b"%d\t%s" % queue_line for queue_line in added)
    return lines, " ".join(f"{slot}:{number}" for slot, number in popped.items())


def replayed(log: Iterable[tuple[bytes, str]]) -> dict[int, list[bytes]]:
    """Slot -> lines after all entries of the *log*; raises DamageError."""
    tails: dict[int, list[bytes]] = {}
    for added, popped in log:
        queue_lines = (line.split(b"\t", 1) for line in unpacked(added))
        numbers = (pair.split(":") for pair in popped.split())
        try:
            replay(tails, ((int(slot), line) for slot, line in queue_lines), ((int(s), int(n)) for s, n in numbers))
        except ValueError as error:
            raise DamageError(f"the log of the queues is damaged: {error}") from error
    return tails


def replay(
    tails: dict[int, list[bytes]], added: Iterable[tuple[int, bytes]], popped: Iterable[tuple[int, int]]
) -> None:
    """Apply one batch of the log to *tails*; raises ValueError if it pops more URLs than a tail has."""
    for slot, line in added:
        tails.setdefault(slot, []).append(line)
    for slot, number in popped:
        if not 0 <= number <= len(tails.get(slot, ())):
            raise ValueError(f"{number} URLs leave slot {slot}, which has fewer")
        del tails[slot][:number]
        if not tails[slot]:
            del tails[slot]
