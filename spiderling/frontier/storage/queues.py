"""The queues of all hosts.  Terms and layout on disk: protocol.py.

The order within one host's queue: URLs that were handed out and given back come first.  Then a band is drawn;
there is one band for each rank.  Within a band the queue is first in, first out: first the chunks, then the tail.

A host that is in memory has a Head, which says where its queue begins.  A chunk is read from the store when its
first URL is wanted, and deleted when its last one is used up.  When all tails together hold FLUSH_URLS, they are
flushed.  Until the flush is committed, its chunks are read from memory.

In chunks and tails a URL is one line of bytes.  The line of a plain URL is one byte, for its scheme, ``www.`` and rank,
followed by its path; the host's name is known.  Any other URL is JSON behind a ``~``: one with attempts, redirects, the
payload of a subclass's request, a server's own spelling or an unusual port.  A line contains no newline.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spiderling.base.errors import DamageError
from spiderling.base.files import frame_packer, zstd
from spiderling.base.urls import PREFIXES, CanonicalUrl, assemble, canonicalize, hash_in, key_of, prefix_of, url_key
from spiderling.frontier.hosts import RANKS, Host, HostStates, QueuedUrl, RobotsRequest
from spiderling.frontier.storage.protocol import (
    BAND_BITS,
    Changes,
    Flush,
    chunks_of,
    generation_of,
    slot_of_chunk,
    slots_of_host,
    used_of,
)

if TYPE_CHECKING:
    from spiderling.frontier.storage.sqlite import SqliteStore

FLUSH_URLS = 200_000  # URLs in all tails at which they are flushed (chosen)
FREED_AT_ONCE = 4096
"""Flushed tails whose memory one batch frees; freeing all of them at once stops the event loop for .1 s and more."""
_BAND_MASK = (1 << BAND_BITS) - 1


@dataclass(slots=True)
class Head:
    """Says where the queue of a host in memory begins."""

    has_chunks: bool  # whether ``chunks`` is known; else they must be read from the store
    chunks: dict[int, list[int]] = field(default_factory=dict)
    """Slot -> ids of its chunks that are not used up, ascending; slots without any are missing."""
    used: dict[int, int] = field(default_factory=dict)  # slot -> URLs of its first chunk that are used up
    lines: dict[int, list[bytes]] = field(default_factory=dict)  # slot -> lines of its first chunk, if they were read
    first: list[QueuedUrl] = field(default_factory=list)  # URLs that were handed out and given back
    next_up: QueuedUrl | None = None  # the last answer of ``peek``; None if it is out of date
    next_slot: int | None = None  # the slot that ``next_up`` is in; None if it is in ``first``


class Queues:
    """Every host's queue, by host id; HostStates holds their lengths in ``queued``."""

    def __init__(self, store: SqliteStore, states: HostStates, draw: Callable[[Sequence[int]], int] = min) -> None:
        """*draw* chooses the band: it is given the ranks that have URLs, and returns one."""
        self.store = store
        self._draw = draw
        self._states = states
        self._heads: dict[int, Head] = {}
        self._tails: defaultdict[int, list[bytes]] = defaultdict(list)  # slot -> lines
        self._in_tails = 0  # number of lines in all tails
        self._flushing: dict[int, list[bytes]] = {}  # the tails of a flush that is not committed yet
        self._flushed: dict[int, list[bytes]] = {}
        """Tails of a committed flush whose memory is not freed yet; they are not read any more."""
        self.generation = 0  # number of the last flush that was begun
        self._committed = 0  # number of the last flush that was committed
        self.next_revisit: Callable[[Host], QueuedUrl] = self.peek
        """The next revisit of a host that has one and no waiting URL (recrawl/recrawl.py)."""
        self._changes = Changes()  # what the next batch tells the store of the queues
        self._grown: set[int] = set()  # ids of hosts that got URLs since the last batch

    def load_tails(self, tails: dict[int, list[bytes]], generation: int) -> None:
        """After a restart: the *tails* that the store's log held, and the number of the last flush."""
        self._tails.update(tails)
        self._in_tails = sum(map(len, tails.values()))
        self.generation = self._committed = generation

    # -- hosts come into memory and leave it

    def load_head(
        self, host: Host, positions: str = "", first: list[bytes] | None = None, is_new: bool = False
    ) -> None:
        """*host* comes into memory.  *positions*, *first*: from its row.  *is_new*: the store has no chunks of it."""
        lines = [stored_url(line, host) for line in first or []]
        self._heads[host.id] = Head(is_new, used=used_of(host.id, positions), first=lines)

    def release_head(self, host_id: int) -> None:
        """The host leaves memory; the store must know all of its queue."""
        del self._heads[host_id]

    def positions(self, host_id: int) -> str:
        used = self._heads[host_id].used
        return " ".join(f"{slot & _BAND_MASK}:{number}" for slot, number in used.items() if number)

    def first_lines(self, host_id: int) -> list[bytes]:
        return [line_of(url) for url in self._heads[host_id].first]

    # -- in and out

    def push(self, host_id: int, rank: int, line: bytes) -> None:
        """Add a URL to the end of its band."""
        self.push_all(host_id, ((rank, line, None),))

    def push_all(self, host_id: int, queue_lines: Sequence[tuple[int, bytes, object]]) -> None:
        """``push`` for URLs of one host: (rank, line, anything)."""
        tails = self._tails
        first = host_id << BAND_BITS
        added = [(first | rank, line) for rank, line, _ in queue_lines]
        for slot, line in added:
            tails[slot].append(line)
        self._changes.added.extend(added)
        self._in_tails += len(added)
        self._states.queued[host_id] += len(added)
        self._grown.add(host_id)
        head = self._heads.get(host_id)
        if head is not None and head.next_slot is not None and min(added)[0] < head.next_slot:
            head.next_up = head.next_slot = None

    def push_front(self, url: QueuedUrl) -> None:
        """A URL that was handed out is given back: it is handed out next."""
        head = self._heads[url.host.id]
        head.first.insert(0, url)
        head.next_up = head.next_slot = None
        self._states.queued[url.host.id] += 1

    def next_up(self, host: Host) -> RobotsRequest | QueuedUrl:
        """The next file of the site, else URL, else revisit at *host*, which must have work; it stays there."""
        if host.robots_requests:
            return host.robots_requests[0]
        return self.peek(host) if self._states.queued[host.id] else self.next_revisit(host)

    def peek(self, host: Host) -> QueuedUrl:
        """The URL that is handed out next; it stays in the queue.  The queue must not be empty."""
        head = self._heads[host.id]
        if head.next_up is None:
            if head.first:
                head.next_up = head.first[0]
            else:
                bands = self._bands(host.id, head)
                if not bands:
                    number = self._states.queued[host.id]
                    raise DamageError(
                        f"the queue of {host.name} is damaged: {number} URLs wait in it, and none is there."
                    )
                head.next_slot = host.id << BAND_BITS | self._draw(bands)
                head.next_up = stored_url(self._front(head, head.next_slot), host)
        return head.next_up

    def pop(self, host: Host) -> QueuedUrl:
        """Take the URL out that ``peek`` returns."""
        url = self.peek(host)
        self._remove(host.id, self._heads[host.id].next_slot)
        return url

    def worst_band(self, host: Host) -> int:
        """The last band that has a URL; 0 if the queue is empty."""
        return max(self._bands(host.id, self._heads[host.id]), default=0)

    def drop_worst_url(self, host: Host) -> QueuedUrl:
        """Take the oldest URL of the last band out."""
        head = self._heads[host.id]
        slot = host.id << BAND_BITS | self._bands(host.id, head)[-1]
        url = stored_url(self._front(head, slot), host)
        self._remove(host.id, slot)
        return url

    def drop_queue(self, host: Host) -> int:
        """Empty the queue; returns its length, on which the time does not depend."""
        number = self._states.queued[host.id]
        head = self._heads[host.id]
        for slot in slots_of_host(host.id):
            tail = self._tails.pop(slot, None)
            if tail is not None:
                self._in_tails -= len(tail)
                self._changes.popped[slot] = self._changes.popped.get(slot, 0) + len(tail)
        self._heads[host.id] = Head(has_chunks=True)
        if head.chunks or not head.has_chunks:
            self._changes.dropped.append(host.id)
        self._states.queued[host.id] = 0
        return number

    def _bands(self, host_id: int, head: Head) -> list[int]:
        """The bands that have URLs in chunks or in the tail, best first."""
        if not head.has_chunks:
            self._find_chunks(host_id, head)
        first = host_id << BAND_BITS
        bands = [band for band in range(RANKS) if first | band in self._tails]
        if head.chunks:
            bands = sorted({*bands, *(slot & _BAND_MASK for slot in head.chunks)})
        return bands

    def _find_chunks(self, host_id: int, head: Head) -> None:
        for chunk in self.store.chunk_ids(host_id):
            if generation_of(chunk) <= self._committed:
                head.chunks.setdefault(slot_of_chunk(chunk), []).append(chunk)
        head.has_chunks = True
        self._add_flushed(host_id, head)

    def _add_flushed(self, host_id: int, head: Head) -> None:
        """Add the chunks of the flush that is not committed yet to ``head.chunks``, if these are known."""
        for slot in slots_of_host(host_id) if head.has_chunks else ():
            if tail := self._flushing.get(slot):
                chunks = [chunk for chunk, _ in chunks_of(slot, self.generation, tail)]
                head.chunks.setdefault(slot, []).extend(chunks)

    def _front(self, head: Head, slot: int) -> bytes:
        """The first line of *slot*."""
        return self._lines(head, slot)[head.used.get(slot, 0)] if slot in head.chunks else self._tails[slot][0]

    def _lines(self, head: Head, slot: int) -> list[bytes]:
        """The lines of the first chunk of *slot*."""
        lines = head.lines.get(slot)
        if lines is None:
            chunk = head.chunks[slot][0]
            if generation_of(chunk) > self._committed:
                lines = dict(chunks_of(slot, self.generation, self._flushing[slot]))[chunk]
            else:
                lines = self.store.chunk(chunk)
            if not 0 <= head.used.get(slot, 0) < len(lines):
                raise DamageError(f"chunk {chunk} of a queue is damaged: it has fewer URLs than were taken from it.")
            head.lines[slot] = lines
        return lines

    def _remove(self, host_id: int, slot: int | None) -> None:
        """Take the first URL of *slot* out; None: of ``first``."""
        self._states.queued[host_id] -= 1
        head = self._heads[host_id]
        head.next_up = head.next_slot = None
        if slot is None:
            head.first.pop(0)
            return
        if slot not in head.chunks:
            tail = self._tails[slot]
            del tail[0]
            if not tail:
                del self._tails[slot]
            self._in_tails -= 1
            self._changes.popped[slot] = self._changes.popped.get(slot, 0) + 1
            return
        used = head.used.get(slot, 0) + 1
        if used < len(self._lines(head, slot)):
            head.used[slot] = used
            return
        self._changes.used.append(head.chunks[slot].pop(0))
        if not head.chunks[slot]:
            del head.chunks[slot]
        head.used.pop(slot, None)
        del head.lines[slot]

    # -- the store

    @property
    def has_changed(self) -> bool:
        changes = self._changes
        return bool(changes.added or changes.popped or changes.used or changes.dropped)

    def drain_changes(self) -> tuple[Changes, set[int]]:
        """What changed since the last call, and the ids of hosts that got URLs.

        There is a Flush in it if the tails are long enough and none is under way.
        """
        changes, self._changes = self._changes, Changes()
        grown, self._grown = self._grown, set()
        for _ in range(min(FREED_AT_ONCE, len(self._flushed))):
            self._flushed.popitem()
        if self._in_tails < FLUSH_URLS or self.generation > self._committed:
            return changes, grown
        self.generation += 1
        self._flushing = self._tails
        self._tails = defaultdict(list)
        self._in_tails = 0
        for host_id, head in self._heads.items():  # what was in a tail is in a chunk now
            head.next_up = head.next_slot = None
            self._add_flushed(host_id, head)
        return replace(changes, flush=Flush(self.generation, self._flushing)), grown

    def note_commit(self) -> None:
        """The store has committed the batch that was drained last."""
        if self._flushing:
            self._flushed = self._flushing
            self._flushing = {}
        self._committed = self.generation


_FIRST = 0x40  # the first byte of plain lines is '@' to 'g': ten for each prefix, in the order of the ranks
HEADS = [[bytes([_FIRST + number * RANKS + rank]) for rank in range(RANKS)] for number in range(len(PREFIXES))]
"""The first byte of a plain line, by the URL's prefix and its rank."""
_SPECIAL = b"~"  # the first byte of a line with JSON
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # the first bytes of a zstd frame
_LEVEL = 3  # level of zstd compression (chosen)


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
    target = assemble(number, host.name, line[1:].decode("ascii"))
    return QueuedUrl(url_key(host.id, target.url), target.url, host, rank, target)


def stored_url(line: bytes, host: Host) -> QueuedUrl:
    """``url_of`` for lines from the store; raises DamageError for what is no such line."""
    try:
        return url_of(line, host)
    except (ValueError, TypeError, IndexError) as error:
        raise DamageError(f"the queue of {host.name} is damaged: {line[:80]!r} is no URL of it ({error}).") from error


def line_at(host_id: int, line: bytes) -> tuple[int, bytes]:
    """The rank of the URL in *line*, and its line if its host gets this id; raises what ``url_of`` raises."""
    if not line.startswith(_SPECIAL):
        return (line[0] - _FIRST) % RANKS, line
    key, url, rank, *rest = json.loads(line[1:])
    return rank, _SPECIAL + json.dumps([key_of(host_id, hash_in(key)), url, rank, *rest]).encode("ascii")


# -- lines in the tables


class _Packer(threading.local):
    """One for every thread: to make one takes longer than to use it for a short chunk."""

    def __init__(self) -> None:
        self.pack = frame_packer(_LEVEL)


_packer = _Packer()


def pack(lines: Iterable[bytes]) -> bytes:
    """The *lines* of a chunk or of the log, compressed if that makes them smaller.

    No line begins like a zstd frame.
    """
    joined = b"\n".join(lines)
    return min(joined, _packer.pack(joined), key=len)


def unpack(blob: bytes) -> list[bytes]:
    """The lines of a chunk or of the log; raises DamageError."""
    try:
        lines = zstd.decompress(blob) if blob.startswith(_ZSTD_MAGIC) else blob
    except zstd.ZstdError as error:
        raise DamageError(f"the URLs of a queue are damaged: {error}.") from error
    return lines.split(b"\n") if lines else []


def log_entry(added: Iterable[tuple[int, bytes]], popped: Mapping[int, int]) -> tuple[bytes, str]:
    """The columns ``added`` and ``popped`` of a batch in the table ``log``."""
    lines = pack(b"%d\t%s" % queue_line for queue_line in added)
    return lines, " ".join(f"{slot}:{number}" for slot, number in popped.items())


def replay(log: Iterable[tuple[bytes, str]]) -> dict[int, list[bytes]]:
    """Slot -> lines after all entries of the *log*; raises DamageError."""
    tails: dict[int, list[bytes]] = {}
    try:
        for added, popped in log:
            for queue_line in unpack(added):
                slot, line = queue_line.split(b"\t", 1)
                tails.setdefault(int(slot), []).append(line)
            for pair in popped.split():
                of, number = map(int, pair.split(":"))
                if not 0 <= number <= len(tails.get(of, ())):
                    raise ValueError(f"{number} URLs leave slot {of}, which has fewer")
                del tails[of][:number]
                if not tails[of]:
                    del tails[of]
    except ValueError as error:
        raise DamageError(f"the log of the queues is damaged: {error}") from error
    return tails
