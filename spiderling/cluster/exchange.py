"""One shard's side of the protocol by which the shards of a crawl exchange links: each is taken exactly once.

The caller asks the transport for one `Round` after the other, hands its answer to ``take_answer``, and each message of
it to ``deliver``, with as much time between two as it likes.  Links go as messages, from the sender's outbox to the
receiver's inbox.  Site files go beside them, in what shards publish of themselves (heartbeat.py).
"""

from __future__ import annotations

import base64
import struct
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Derive, LinkBatch
from spiderling.base.urls import canonicalize, page_elsewhere
from spiderling.cluster.content import Gathering, Places, Seal, pack, unpack
from spiderling.frontier import Frontier
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import RobotsRequest
from spiderling.frontier.site_files import FileAnswer, SiteFile
from spiderling.frontier.storage.protocol import Changes, OutboxRow, PeerRow, State
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import LinkingPage


class Message(NamedTuple):
    """A message as it was found in a stream."""

    sender: int
    number: int
    data: bytes


class Round(NamedTuple):
    """What a shard asks of the transport."""

    receipt: bytes
    messages: dict[int, list[tuple[int, bytes]]]  # by the shard that they are for: numbers and data of what is added
    acknowledged: dict[int, int]  # for each of these, number up to which its messages are taken out
    taken: dict[int, int]  # for each other shard, number of the last message that is known of it
    emptied: frozenset[tuple[int, int]] = frozenset()
    """Sender and receiver of each stream that may hold anything else, and is emptied before."""


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


class Peer:
    """One other shard: the messages to it, from the store until it has acknowledged them, and what was taken from it.

    A message grows, by sections with each checkpoint, until it is full or old; only then is it sent.  So links are
    durable together with their page, and yet messages are large.  After a kill the message that was growing is sent as
    it is.

    The stream to the other shard is written by this shard alone.  It holds the messages after the acknowledged one, up
    to the end of the window.  So its length tells whether anything was lost: then it is made again.  Nothing is ever
    sent because time has passed, so a shard that is away has no more than the window waiting in the transport.
    """

    def __init__(self, row: PeerRow, first: int | None = None) -> None:
        """*row*: how far the store has come; *first*: number of the first message that waits in it, if any does."""
        self.shard = row.shard
        self.newest = row.sent  # number of the newest message, which may still be growing
        self.acknowledged = row.sent if first is None else first - 1
        """Number up to which the other shard has committed what it took."""
        self.forgotten = self.acknowledged
        """Number up to which messages have left the store, or do so with the next batch of changes."""
        self._whole = row.sent  # number up to which messages grow no more, with the batch in work
        self._durable = row.sent  # the same of what the store has
        self._growing: list[bytes] = []  # sections of the newest message, if it grows
        self._links = 0  # in them
        self._since = 0.0  # when it was begun
        self._sizes: deque[int] = deque()  # bytes of each message in the stream, from the first not acknowledged on
        self.is_doubtful = True  # whether the stream to it may hold anything else

        self.taken = row.received  # number of the last message that was taken
        self.drained = row.received  # the same when the batch in work was drained
        self.durable = row.received  # the same of what the store has
        self.receipt = b""  # the last one that was read
        self.is_spoilt = False  # whether the stream from it holds another message than the next

    def is_due(self, now: float) -> bool:
        """Whether the newest message is full or old, and so must grow no more."""
        is_full = self._links >= FULL_LINKS or sum(map(len, self._growing)) >= FULL_BYTES
        return bool(self._growing) and (is_full or now - self._since >= MAX_AGE_S)

    def drain(self, sections: list[tuple[bytes, int]], now: float) -> list[OutboxRow]:
        """Put *sections*, each with its number of links, into messages; returns the rows that are new or have grown."""
        rows: list[OutboxRow] = []
        for section, links in sections:
            if not self._growing:
                self.newest += 1
                self._since = now
                self._links = 0
            self._growing.append(section)
            self._links += links
            rows += self._finished(now)
        rows += self._finished(now)
        self._whole = self.newest - bool(self._growing)
        if self._growing and sections:
            rows.append(self._row())
        return rows

    def _finished(self, now: float) -> list[OutboxRow]:
        """The newest message, if it must grow no more."""
        if not self.is_due(now):
            return []
        row = self._row()
        self._growing = []
        return [row]

    def _row(self) -> OutboxRow:
        return OutboxRow(self.shard, self.newest, self._since, self._links, pack(self._growing))

    def committed(self) -> None:
        """The store has what ``drain`` gave last, and what was taken until then."""
        self._durable = self._whole
        self.durable = self.drained

    def to_add(self, store: SqliteStore) -> list[OutboxRow]:
        """The next messages for the stream, as far as the window has room."""
        if self.is_doubtful:
            self._sizes.clear()
        self.is_doubtful = False
        last = self.acknowledged + len(self._sizes)
        free = WINDOW_MESSAGES - len(self._sizes)
        free_bytes = WINDOW_BYTES - sum(self._sizes)
        if last >= self._durable or free <= 0:
            return []
        rows = store.messages(self.shard, last, free_bytes)
        if self._sizes and len(rows[0].message) > free_bytes:  # there is one at least
            return []
        rows = [row for row in rows[:free] if row.number <= self._durable]
        self._sizes += [len(row.message) for row in rows]
        return rows

    def note_length(self, length: int) -> None:
        """After what ``to_add`` returned last was added, the stream has *length* entries."""
        self.is_doubtful = length != len(self._sizes)

    def acknowledge(self, number: int) -> None:
        """The other shard has committed what it took from the messages up to *number*."""
        for _ in range(min(number - self.acknowledged, len(self._sizes))):
            self._sizes.popleft()
        self.acknowledged = max(self.acknowledged, number)


class _Asked(NamedTuple):
    owner: int
    request: RobotsRequest
    distance: int


MAX_ASKED = 16  # files that a shard asks for at a time; chosen: an answer has up to 500 kB
PATIENCE_S = 60.0
"""Seconds for which a shard waits for one that does not run (chosen); then the file counts as not to be had."""
AskedRow: TypeAlias = tuple[int, int, str, str, int, int]
"""Number of the request, shard that owns the host, URL, name of the kind of file, redirects, distance."""


class SiteFiles:
    """Site files of other shards' hosts, which their owner fetches: a robots.txt that is redirected there, a licence.

    So a host is asked by its owner alone, which knows its intervals, its Retry-After and its state.  What a shard asks
    for it publishes for as long as it is wanted; the owner publishes an answer for as long as it is asked for.  Redis
    may lose both, and who starts again asks again.
    """

    def __init__(self, me: int, owner: Callable[[str], int], seal: Seal, first: int) -> None:
        """*first*: the number of the first request; no earlier process of this shard had one from there on."""
        self.counts: Counter[str] = Counter()  # files, by what became of them
        self._me = me
        self._owner = owner
        self._seal = seal
        self._next = first
        self._asked: dict[int, _Asked] = {}
        self._owner_seen: dict[int, float] = {}  # owner -> when it was last seen to live, or first asked
        self._served: dict[tuple[int, int], FileAnswer | None] = {}
        """Shard and number of a request of another -> its answer, once it is there."""

    def ask(self, request: RobotsRequest, distance: int) -> None:
        """Ask the owner for what *request* says; *distance*: that of the host which wants it."""
        target = canonicalize(request.url)
        assert target is not None, "it was admitted"
        self._asked[self._next] = _Asked(self._owner(target.host), request, distance)
        self._next += 1
        self.counts["files asked"] += 1

    def wanted(self) -> list[AskedRow]:
        return [
            (number, owner, request.url, request.file.name, request.redirects, distance)
            for number, (owner, request, distance) in list(self._asked.items())[:MAX_ASKED]
        ]

    def take_answer(self, number: int, data: bytes) -> tuple[RobotsRequest, FileAnswer] | None:
        """The request *number* and its answer in *data*; None if that is none."""
        try:
            values = self._seal.open_json(f"file:{self._me}:{number}", data)
            answer = FileAnswer(**{**values, "body": base64.b64decode(values["body"])})
        except (ValueError, TypeError, KeyError):
            self.counts["files refused"] += 1
            return None
        return self._asked.pop(number).request, answer

    def give_up(self, living: Collection[int], now: float) -> list[RobotsRequest]:
        """The requests whose owners have not run for PATIENCE_S; *living*: those that run at *now*."""
        owners = {asked.owner for asked in self._asked.values()}
        self._owner_seen = {owner: now if owner in living else self._owner_seen.get(owner, now) for owner in owners}
        late = [number for number, asked in self._asked.items() if now - self._owner_seen[asked.owner] >= PATIENCE_S]
        return [self._asked.pop(number).request for number in late]

    def take_wanted(self, lists: Mapping[int, Sequence[AskedRow]]) -> list[tuple[RobotsRequest, int]]:
        """Take what other shards ask for; returns what is new, each with its distance."""
        asked: dict[tuple[int, int], tuple[RobotsRequest, int]] = {}
        for sender, rows in lists.items():
            try:
                asked |= {(sender, row[0]): self._request(sender, *row) for row in rows if row[1] == self._me}
            except (ValueError, TypeError, KeyError, IndexError):
                self.counts["files refused"] += 1
        new = [request for key, request in asked.items() if key not in self._served]
        self._served = {key: self._served.get(key) for key in asked}
        return new

    def _request(
        self, sender: int, number: int, owner: int, url: str, file: str, redirects: int, distance: int
    ) -> tuple[RobotsRequest, int]:
        target = canonicalize(url)
        if target is None or self._owner(target.host) != owner or {*map(type, (number, redirects, distance))} != {int}:
            raise ValueError("a file of nobody's")
        request = RobotsRequest(target.origin, target.url, target.name, redirects, SiteFile[file], (sender, number))
        return request, min(max(distance, 0), 255)

    def answer(self, request: RobotsRequest, answer: FileAnswer) -> None:
        """*answer* is what came of the *request* of another shard."""
        if request.asker in self._served:
            self._served[request.asker] = answer
            self.counts["files answered"] += 1

    def answers(self) -> dict[str, bytes]:
        """Place in Redis -> the answer there, for other shards."""
        answers = {}
        for (asker, number), answer in self._served.items():
            if answer is not None:
                values = {**answer._asdict(), "body": base64.b64encode(answer.body).decode()}
                place = f"file:{asker}:{number}"
                answers[place] = self._seal.seal_json(place, values)
        return answers


SENT_BARE = "requests sent without callback"
_BARE = bytes(16)  # a payload that no process knows (engine/requests.py)
_MARK = struct.Struct("!QQ")
"""Of one other shard: numbers of the last message from it, and of the last forgotten message to it."""


class ShardExchange:
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
        self._peers = {shard: Peer(PeerRow(shard)) for shard in range(shards) if shard != me}
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
        self.files.ask(request, distance)

    def answer_file(self, request: RobotsRequest, answer: FileAnswer) -> None:
        self.files.answer(request, answer)

    @property
    def has_changes(self) -> bool:
        return bool(self._gathering) or any(
            peer.is_due(self._now) or peer.acknowledged != peer.forgotten or peer.taken != peer.durable
            for peer in self._peers.values()
        )

    def drain(self, changes: Changes, now: float) -> Changes:
        """*changes* with the messages that are new, longer or forgotten, and the numbers of those that were taken."""
        sections: dict[int, list[tuple[bytes, int]]] = {shard: [] for shard in self._peers}
        for shard, section, links in self._gathering.sections():
            sections[shard].append((section, links))
            self.counts["links sent"] += links
        rows: list[OutboxRow] = []
        peers = []
        acknowledged = {}
        for shard, peer in self._peers.items():
            former = peer.newest
            rows += peer.drain(sections[shard], now)
            if peer.newest != former or peer.taken != peer.durable:
                peers.append(PeerRow(shard, peer.newest, peer.taken))
            peer.drained = peer.taken
            if peer.acknowledged != peer.forgotten:
                acknowledged[shard] = peer.forgotten = peer.acknowledged
        return replace(changes, outbox=rows, acknowledged=acknowledged, peers=peers)

    def committed(self) -> None:
        """The store has what ``drain`` returned last: it may be sent, and acknowledged."""
        for peer in self._peers.values():
            peer.committed()

    def restore(self, state: State) -> None:
        self._peers |= {row.shard: Peer(row, state.outboxes.get(row.shard)) for row in state.peers}

    # -- for the transport

    def ask(self, now: float) -> Round:
        """What to ask of the transport now; what then fails, or is half done, a later round finds out and repeats."""
        self._now = now
        peers = self._peers.values()
        emptied = {(self.me, peer.shard) for peer in peers if peer.is_doubtful}
        emptied |= {(peer.shard, self.me) for peer in peers if peer.is_spoilt}
        messages: dict[int, list[tuple[int, bytes]]] = {}
        for peer in peers:
            peer.is_spoilt = False
            rows = peer.to_add(self._store)
            messages[peer.shard] = [
                (row.number, self._seal.seal(_place(self.me, row.shard, row.number), row.message)) for row in rows
            ]
        acknowledged = {peer.shard: peer.acknowledged for peer in peers}
        taken = {peer.shard: peer.taken for peer in peers}
        return Round(self._receipt(), messages, acknowledged, taken, frozenset(emptied))

    def take_answer(self, answer: Answer) -> list[Message]:
        """Note what the transport says; returns the messages, to be given to ``deliver`` one by one.

        Raises JobdirError if another shard knows more of this one than it does itself.
        """
        for shard, length in answer.lengths.items():
            self._peers[shard].note_length(length)
        for shard, receipt in answer.receipts.items():
            if receipt != self._peers[shard].receipt:  # else it says nothing new
                self._take_receipt(shard, receipt)
        return answer.messages

    def deliver(self, message: Message, frontier: Frontier | None, now: float) -> bool:
        """Apply *message* to *frontier* if it is next in its sender's sequence; return whether it was applied.

        Without a *frontier* its content is left out.
        """
        sender, number, data = message
        peer = self._peers[sender]
        if number != peer.taken + 1:
            self.counts["messages out of order"] += 1
            peer.is_spoilt = True
            return False
        opened = self._seal.open(_place(sender, self.me, number), data)
        if opened is None:
            self.counts["messages refused"] += 1
            peer.is_spoilt = True
            return False
        peer.taken = number
        self.counts["messages taken"] += 1
        if frontier is None:
            self.counts["messages left out"] += 1
            return True
        try:
            found, mentions = unpack(opened, self._derive)
        except ValueError:  # sealed by a shard of ours, and yet it cannot be read: it never will be
            self.counts["messages unreadable"] += 1
            return True
        page = page_elsewhere(sender)
        for linking, links in found:
            frontier.put_links(linking, links, now, page)
            self.counts["links taken"] += links.number
        for mention in mentions:
            frontier.put_found(replace(mention, page=page), now)
            self.counts["links taken"] += 1
        return True

    def _receipt(self) -> bytes:
        marks = [bytes(_MARK.size)] * self.shards
        for shard, peer in self._peers.items():
            marks[shard] = _MARK.pack(peer.durable, peer.acknowledged)
        return self._seal.seal(f"{self.me}", b"".join(marks))

    def _take_receipt(self, shard: int, receipt: bytes) -> None:
        marks = self._seal.open(f"{shard}", receipt)
        if marks is None:
            self.counts["receipts refused"] += 1
            return
        received, forgotten = _MARK.unpack_from(marks, self.me * _MARK.size)
        peer = self._peers[shard]
        if received > peer.newest or forgotten > peer.durable:
            raise JobdirError(
                f"the directory of shard {self.me} is older than what shard {shard} knows of it: was it put back from "
                "a backup? What came since then is lost to it, and it cannot go on. Put its newest state back; "
                "or begin all shards anew."
            )
        peer.acknowledge(received)
        peer.receipt = receipt

    # -- for people

    def waiting(self) -> dict[int, int]:
        """Shard -> messages to it that it has not committed."""
        return {shard: number for shard, peer in self._peers.items() if (number := peer.newest - peer.acknowledged)}

    @property
    def sent(self) -> int:
        """Messages to others so far."""
        return sum(peer.newest for peer in self._peers.values())


def _place(sender: int, receiver: int, number: int) -> str:
    """That of a message, by which it is sealed."""
    return f"{sender}:{receiver} {number}"
