"""One shard's side of the protocol by which the shards of a crawl exchange links: each is taken exactly once.

The caller asks the transport for one `Round` after the other, hands its answer to ``take_answer``, and each message of
it to ``deliver``, with as much time between two as it likes.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Derive, LinkBatch
from spiderling.base.urls import page_elsewhere
from spiderling.cluster.content import Content, Gathering, Kind, Place, Places, Refused, Seal, pack, unpack
from spiderling.cluster.site_files import SiteFiles
from spiderling.frontier import Frontier
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import RobotsRequest
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import Changes, OutboxRow, OutboxSummary, PeerRow, State
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import LinkingPage


class Outgoing(NamedTuple):
    """What becomes of the stream to one shard."""

    first: int  # messages with lower numbers are taken out
    entries: list[tuple[int, bytes]]  # numbers and messages to be added
    anew: bool = False  # whether the stream is emptied before


class Message(NamedTuple):
    """A message as it was found in a stream."""

    sender: int
    epoch: int
    number: int
    data: bytes


class Round(NamedTuple):
    """What a shard asks of the transport."""

    epoch: int
    receipt: bytes
    to: dict[int, Outgoing]  # by the number of the receiver
    after: dict[int, tuple[int, int]]  # for each other shard, epoch and number of the last message that is known of it
    spoilt: frozenset[int] = frozenset()
    """Those whose stream holds another message than their next; it is emptied, and they fill it anew."""


class Answer(NamedTuple):
    """What a shard gets."""

    receipts: dict[int, bytes]  # by the shard that gave it; those that there are
    lengths: dict[int, int]  # receiver -> number of entries in the stream to it; -1: an entry could not be added
    messages: list[Message]


class TransportError(Exception):
    """The transport is away or refuses; what was asked may have been done, in part or not at all."""


FULL_LINKS = 400
"""Links at which a message is sent.  With 200, each costs a tenth more processor time and bytes (cluster.py)."""
FULL_BYTES = 1 << 20  # bytes, before compression, at which a message is sent; chosen
MAX_AGE_S = 5.0  # seconds after which a message is sent as it is; chosen: a host is not asked more often
WINDOW_MESSAGES = 64  # messages that wait in the transport, at most; chosen
WINDOW_BYTES = 1 << 20
"""Bytes that wait in the transport, but for a single longer message (chosen: 16 shards fill 240 MB at worst)."""


@dataclass
class _Growing:
    """A message that more is added to."""

    number: int
    since: float
    links: int = 0
    sections: list[bytes] = field(default_factory=list)

    def is_full(self, now: float) -> bool:
        size = sum(map(len, self.sections))
        return self.links >= FULL_LINKS or size >= FULL_BYTES or now - self.since >= MAX_AGE_S


class Outbox:
    """The messages from this shard to one other: written into the state, sent, and forgotten when acknowledged.

    A message grows, by a section with each checkpoint, until it is full or old; only then is it sent.  So
    links are durable together with their page, and yet messages are large.  After a kill the message that was growing
    is sent as it is.

    The stream to the other shard is written by this shard alone.  It holds the messages after the acknowledged one, up
    to the end of the window.  So its length tells whether anything was lost: then it is made again.  Nothing is ever
    sent because time has passed, so a shard that is away has no more than the window waiting in the transport.

    Into the store: ``add`` for each section, then ``drain`` and ``forget`` for what a batch of changes writes and
    deletes, then ``committed``.  To the other shard: ``outgoing`` says what is done to the stream, ``note_length`` what
    it held then, ``acknowledge`` what the other one has taken.
    """

    def __init__(self, shard: int, sent: int, waiting: OutboxSummary | None) -> None:
        """*sent*: number of the newest message; *waiting*: those in the store."""
        self.shard = shard
        self.newest = sent  # number of the newest message, which may still be growing
        self.acknowledged = waiting.first - 1 if waiting is not None else sent
        """Number up to which the other shard has committed what it took."""
        self._durable = sent  # number up to which messages are in the store and grow no more
        self._forgotten = self.acknowledged
        """Number up to which messages have left the store, or do so with the next batch."""
        self._added = self.acknowledged  # number up to which messages were added to the stream
        self._expected = 0  # entries in the stream when the last round is over
        self._is_doubtful = True  # whether the stream may hold anything else than the messages up to there
        self._window: deque[OutboxRow] = deque()
        self._growing: _Growing | None = None
        self._found: list[tuple[bytes, int]] = []
        self._written: list[OutboxRow] = []  # messages of the batch in work that grow no more

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
            self._growing.sections.append(section)
            self._growing.links += links
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
        return OutboxRow(self.shard, message.number, message.since, message.links, pack(message.sections))

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

    def outgoing(self, store: SqliteStore, sealed: Callable[[OutboxRow], bytes]) -> Outgoing:
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

    def _fill(self, store: SqliteStore) -> None:
        """Bring messages that did not fit before into the window."""
        end = self._window_ends_at()
        if end >= self._durable or len(self._window) > WINDOW_MESSAGES // 2:
            return
        for row in store.messages(self.shard, end, WINDOW_BYTES):
            if row.number > self._durable or not self._has_room(row):
                return
            self._window.append(row)


SENT_BARE = "requests sent without callback"
_BARE = bytes(16)  # a payload that no process knows (engine/requests.py)
EPOCH = 1  # the epoch of all shards: none was ever taken over by another machine
_MARK = struct.Struct("!IQQ")
"""Of one other shard: epoch and number of the last message from it, number of the last forgotten message to it."""


class Exchange:
    """The other shards, as this one's frontier and the transport see them.

    **Exactly once.**  What is written when, by whom, and what is acknowledged when:

    1. *The sender's checkpoint.*  Links that a page has to hosts of another shard become durable in the transaction
       that records the page: as a section of the newest message in the outbox to that shard.  Messages have the
       numbers 1, 2, 3 ...; when one is full or old, it grows no more.
    2. *The sender's round.*  Copies of messages that grow no more go into the transport's stream for the receiver,
       which the sender alone writes.  The transport may lose, repeat, reorder or delay all that it has; a stream of
       another length than it should have is made again from the outbox.
    3. *The receiver's round.*  It takes a message only if it is the next one of its sender, and has that sender's code
       of authenticity.  Everything else it leaves in the stream, or has emptied.
    4. *The receiver's checkpoint.*  What the message changed and its number become durable in one transaction.
    5. *The receiver's next round.*  Only then its receipt, which it alone replaces, has that number.
    6. *The sender's next checkpoint.*  Only when it has read the receipt it deletes the message from the outbox, and
       only then its own receipt says that the message is forgotten.

    A kill before 4 loses nothing, since the sender still has the message; after 4 the message is not the next one any
    more, so it is not taken twice.  Each number only ever grows, so it does no harm that a receipt is old, or lost.  If
    a receipt knows of more than this shard does, its directory was put back from a backup, and it must not go on.
    """

    def __init__(
        self, me: int, shards: int, seal: Seal, store: SqliteStore, first_file: int = 0, derive: Derive | None = None
    ) -> None:
        """*first_file*: as in `SiteFiles`; *derive* may be a faster `derived` of link_batch.py."""
        self.me = me
        self.shards = shards
        self.counts: Counter[str] = Counter()  # messages and links, by what became of them
        self._seal = seal
        self._store = store
        self._derive = derive
        self._gathering = Gathering(me, shards)
        self.files = SiteFiles(me, self._gathering.owner, seal, first_file)
        """Site files that other shards fetch for this one, or this one for them."""
        self._outboxes = {shard: Outbox(shard, 0, None) for shard in range(shards) if shard != me}
        self._taken = dict.fromkeys(self._outboxes, (EPOCH, 0))
        """Sender -> epoch and number of the last message that was taken."""
        self._durable = dict(self._taken)
        self._receipts: dict[int, bytes] = {}  # sender -> the last receipt of it that was read
        self._spoilt: set[int] = set()  # senders in whose streams another message was found than their next
        self._written: dict[int, tuple[int, int]] = {}  # those of the batch in work
        self._now = 0.0

    # -- for the frontier (`Elsewhere`)

    def owns(self, host: str) -> bool:
        return self._gathering.owner(host) == self.me

    def keep_own(self, page: LinkingPage, links: LinkBatch) -> Places | None:
        """Take the links to hosts of other shards; returns the places of the rest, None if that is all."""
        return self._gathering.keep_own(page, links)

    def give(self, mention: Mention) -> None:
        """Take a URL of a host of another shard; a request that had to be pickled goes there as its URL alone."""
        if mention.payload is not None and mention.payload.startswith(PICKLED):
            self.counts[SENT_BARE] += 1
            mention = replace(mention, payload=_BARE)
        self._gathering.give(mention)

    def ask_file(self, request: RobotsRequest, distance: int) -> None:
        """Have a site file fetched by the shard that owns its host."""
        self.files.ask(request, distance)

    def answer_file(self, request: RobotsRequest, answer: FileAnswer) -> None:
        self.files.answer(request, answer)

    @property
    def has_changes(self) -> bool:
        """Whether ``drain`` would add anything."""
        is_due = any(outbox.has_changes(self._now) for outbox in self._outboxes.values())
        return bool(self._gathering) or is_due or self._taken != self._durable

    def drain(self, changes: Changes, now: float) -> Changes:
        """*changes* with the messages that are new, longer or forgotten, and the numbers of those that were taken."""
        former = {shard: outbox.newest for shard, outbox in self._outboxes.items()}
        for shard, section, links in self._gathering.sections():
            self._outboxes[shard].add(section, links)
            self.counts["links sent"] += links
        rows = [row for outbox in self._outboxes.values() for row in outbox.drain(now)]
        forgotten = {shard: last for shard, outbox in self._outboxes.items() if (last := outbox.forget()) is not None}
        peers = [
            PeerRow(shard, outbox.newest, *self._taken[shard])
            for shard, outbox in self._outboxes.items()
            if outbox.newest != former[shard] or self._taken[shard] != self._durable[shard]
        ]
        self._written = dict(self._taken)
        return replace(changes, outbox=rows, acknowledged=forgotten, peers=peers)

    def committed(self) -> None:
        """The store has what ``drain`` returned last: it may be sent, and acknowledged."""
        self._durable.update(self._written)
        for outbox in self._outboxes.values():
            outbox.committed()

    def restore(self, state: State) -> None:
        for row in state.peers:
            self._outboxes[row.shard] = Outbox(row.shard, row.sent, state.outboxes.get(row.shard))
            self._taken[row.shard] = self._durable[row.shard] = (row.epoch, row.received)

    # -- for the transport

    def ask(self, now: float) -> Round:
        """What to ask of the transport now; what then fails, or is half done, a later round finds out and repeats."""
        self._now = now
        outgoing = {shard: outbox.outgoing(self._store, self._sealed) for shard, outbox in self._outboxes.items()}
        spoilt = frozenset(self._spoilt)
        self._spoilt.clear()
        return Round(EPOCH, self._receipt(), outgoing, dict(self._taken), spoilt)

    def take_answer(self, answer: Answer) -> list[Message]:
        """Note what the transport says; returns the messages, to be given to ``deliver`` one by one.

        Raises JobdirError if another shard knows more of this one than it does itself.
        """
        for shard, length in answer.lengths.items():
            self._outboxes[shard].note_length(length)
        for shard, receipt in answer.receipts.items():
            if receipt != self._receipts.get(shard):  # else it says nothing new
                self._take_receipt(shard, receipt)
        return answer.messages

    def deliver(self, message: Message, frontier: Frontier | None, now: float) -> bool:
        """Give *frontier* what *message* says, if it is the next one of its sender; returns whether it is.

        Without a *frontier* its content is left out.
        """
        sender, epoch, number, data = message
        known_epoch, last = self._taken.get(sender, (0, 0))
        if epoch != known_epoch or number != last + 1:
            self.counts["messages out of order"] += 1
            self._spoilt.add(sender)
            return False
        try:
            opened = self._seal.open(Place(Kind.MESSAGE, sender, self.me, epoch, number), data)
        except Refused:
            self.counts["messages refused"] += 1
            self._spoilt.add(sender)
            return False
        self._taken[sender] = (epoch, number)
        self.counts["messages taken"] += 1
        if frontier is None:
            self.counts["messages left out"] += 1
            return True
        try:
            content = unpack(opened, self._derive)
        except ValueError:  # sealed by a shard of ours, and yet it cannot be read: it never will be
            self.counts["messages unreadable"] += 1
        else:
            self._put(content, sender, frontier, now)
        return True

    def _put(self, content: Content, sender: int, frontier: Frontier, now: float) -> None:
        for page, links in content.links:
            frontier.put_links(page, links, now, page_elsewhere(sender))
            self.counts["links taken"] += links.number
        for mention in content.mentions:
            frontier.put_found(replace(mention, page=page_elsewhere(sender)), now)
            self.counts["links taken"] += 1

    def _sealed(self, row: OutboxRow) -> bytes:
        return self._seal.seal(Place(Kind.MESSAGE, self.me, row.shard, EPOCH, row.number), row.message)

    def _receipt(self) -> bytes:
        marks = [bytes(_MARK.size)] * self.shards
        for shard, outbox in self._outboxes.items():
            marks[shard] = _MARK.pack(*self._durable[shard], outbox.acknowledged)
        return self._seal.seal(Place(Kind.RECEIPT, self.me), b"".join(marks))

    def _take_receipt(self, shard: int, receipt: bytes) -> None:
        try:
            marks = self._seal.open(Place(Kind.RECEIPT, shard), receipt)
        except Refused:
            self.counts["receipts refused"] += 1
            return
        outbox = self._outboxes.get(shard)
        if outbox is None or len(marks) != self.shards * _MARK.size:
            self.counts["receipts refused"] += 1
            return
        epoch, received, forgotten = _MARK.unpack_from(marks, self.me * _MARK.size)
        if (epoch == EPOCH and received > outbox.newest) or forgotten > self._durable[shard][1]:
            raise JobdirError(
                f"the directory of shard {self.me} is older than what shard {shard} knows of it: was it put back from "
                "a backup? What came since then is lost to it, and it cannot go on. Put its newest state back; "
                "or begin all shards anew."
            )
        if epoch == EPOCH:
            outbox.acknowledge(received)
        self._receipts[shard] = receipt

    # -- for people

    def waiting(self) -> dict[int, int]:
        """Shard -> messages to it that it has not committed."""
        return {
            shard: number for shard, outbox in self._outboxes.items() if (number := outbox.newest - outbox.acknowledged)
        }

    def sent(self) -> list[int]:
        """For each shard, the number of the newest message to it."""
        return [self._outboxes[shard].newest if shard in self._outboxes else 0 for shard in range(self.shards)]

    def taken(self) -> list[int]:
        """For each shard, the number of the last message of it whose effects are durable."""
        return [self._durable[shard][1] if shard in self._durable else 0 for shard in range(self.shards)]
