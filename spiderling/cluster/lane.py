"""The messages from this shard to one other: written into the outbox, sent, and forgotten when they are acknowledged.

A message grows in the outbox, by a section with each checkpoint, until it is full or old; only then is it sent.  So
links are durable together with their page, and yet messages are large.  After a kill the message that was growing is
sent as it is.

The stream to the other shard is written by this lane alone.  It holds the messages after the acknowledged one, up to
the end of the window.  So its length tells whether anything was lost: then it is made anew.  Nothing is ever sent
because time has passed, so a shard that is away has no more than the window waiting in the transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from spiderling.cluster.content import packed
from spiderling.cluster.transport import Outgoing
from spiderling.frontier.storage.protocol import OutboxRow, OutboxSummary, Store

FULL_LINKS = 400
"""Links at which a message is sent.  With 200, each costs a tenth more processor time and bytes (cluster.py)."""
FULL_BYTES = 1 << 20
"""Bytes, before compression, at which a message is sent (chosen)."""
MAX_AGE_S = 5.0
"""Seconds after which a message is sent as it is (chosen: a host is not asked more often)."""
WINDOW_MESSAGES = 64
"""Messages that wait in the transport, at most (chosen)."""
WINDOW_BYTES = 1 << 20
"""Bytes that wait in the transport, but for a single longer message (chosen: 16 shards fill 240 MB at worst)."""


class _Growing:
    """A message that more is added to."""

    def __init__(self, number: int, since: float) -> None:
        self.number = number
        self.since = since
        self.links = 0
        self.size = 0
        self.sections: list[bytes] = []

    def add(self, section: bytes, links: int) -> None:
        self.sections.append(section)
        self.links += links
        self.size += len(section)

    def is_full(self, now: float) -> bool:
        return self.links >= FULL_LINKS or self.size >= FULL_BYTES or now - self.since >= MAX_AGE_S


class Lane:
    """The messages to one shard.

    Into the store: ``add`` for each section, then ``drain`` and ``forget`` for what a batch of changes writes and
    deletes, then ``committed``.  To the other shard: ``outgoing`` says what is done to the stream, ``note_length`` what
    it held then, ``acknowledge`` what the other one has taken.
    """

    def __init__(self, shard: int, sent: int, waiting: OutboxSummary | None) -> None:
        """*sent*: number of the newest message; *waiting*: those in the store."""
        self.shard = shard
        self.newest = sent
        """Number of the newest message, which may still be growing."""
        self.acknowledged = waiting.first - 1 if waiting is not None else sent
        """Number up to which the other shard has committed what it took."""
        self._durable = sent
        """Number up to which messages are in the store and grow no more."""
        self._forgotten = self.acknowledged
        """Number up to which messages have left the store, or do so with the next batch."""
        self._added = self.acknowledged
        """Number up to which messages were added to the stream."""
        self._expected = 0
        """Entries in the stream when the last round is over."""
        self._is_doubtful = True
        """Whether the stream may hold anything else than the messages up to there."""
        self._window: deque[OutboxRow] = deque()
        self._growing: _Growing | None = None
        self._found: list[tuple[bytes, int]] = []
        self._written: list[OutboxRow] = []
        """Messages of the batch in work that grow no more."""

    # -- into the outbox

    def add(self, section: bytes, links: int) -> None:
        """Put *section*, which holds *links* links, into the next batch."""
        self._found.append((section, links))

    def has_changes(self, now: float) -> bool:
        """Whether the store has to learn something."""
        is_due = self._growing is not None and self._growing.is_full(now)
        return bool(self._found) or is_due or self.acknowledged > self._forgotten

    def drain(self, now: float) -> list[OutboxRow]:
        """The rows that are new or have grown."""
        rows = []
        for section, links in self._found:
            if self._growing is None:
                self.newest += 1
                self._growing = _Growing(self.newest, now)
            self._growing.add(section, links)
            if self._growing.is_full(now):
                rows.append(self._ended(self._growing))
        if self._growing is not None and self._growing.is_full(now):
            rows.append(self._ended(self._growing))
        elif self._growing is not None and self._found:
            rows.append(self._row(self._growing))
        self._found = []
        return rows

    def _ended(self, message: _Growing) -> OutboxRow:
        row = self._row(message)
        self._written.append(row)
        self._growing = None
        return row

    def _row(self, message: _Growing) -> OutboxRow:
        return OutboxRow(self.shard, message.number, message.since, message.links, packed(message.sections))

    def forget(self) -> int | None:
        """The number up to which messages leave the store with this batch; None if none does."""
        if self.acknowledged == self._forgotten:
            return None
        self._forgotten = self.acknowledged
        return self._forgotten

    def committed(self) -> None:
        """The store has what ``drain`` gave last."""
        for row in self._written:
            if self._window_ends_at() == self._durable and self._has_room(row):
                self._window.append(row)
            self._durable = row.number
        self._written = []

    # -- to the other shard

    def outgoing(self, store: Store, sealed: Callable[[OutboxRow], bytes]) -> Outgoing:
        """What becomes of the stream now."""
        self._fill(store)
        anew = self._is_doubtful
        start = self.acknowledged if anew else self._added
        entries = [(row.number, sealed(row)) for row in self._window if row.number > start]
        self._added = self._window_ends_at()
        self._expected = self._added - self.acknowledged
        self._is_doubtful = False
        return Outgoing(self.acknowledged + 1, entries, anew)

    def note_length(self, length: int) -> None:
        """After what ``outgoing`` returned last was done, the stream has *length* entries."""
        if length != self._expected:
            self._is_doubtful = True

    def acknowledge(self, number: int) -> None:
        """The other shard has committed what it took from the messages up to *number*."""
        if number > self.acknowledged:
            self.acknowledged = number
            self._added = max(self._added, number)
            while self._window and self._window[0].number <= number:
                self._window.popleft()

    def _window_ends_at(self) -> int:
        return self._window[-1].number if self._window else self.acknowledged

    def _has_room(self, row: OutboxRow) -> bool:
        size = sum(len(one.message) for one in self._window) + len(row.message)
        return not self._window or (len(self._window) < WINDOW_MESSAGES and size <= WINDOW_BYTES)

    def _fill(self, store: Store) -> None:
        """Bring messages that did not fit before into the window."""
        end = self._window_ends_at()
        if end >= self._durable or len(self._window) > WINDOW_MESSAGES // 2:
            return
        for row in store.messages(self.shard, end, WINDOW_BYTES):
            if row.number > self._durable or not self._has_room(row):
                return
            self._window.append(row)

    # -- for people

    def waiting(self) -> int:
        """Number of messages that are not acknowledged."""
        return self.newest - self.acknowledged
