"""One shard's side of the protocol by which the shards of a crawl exchange links: each is taken exactly once.

Each shard has an inbox, into which all others write.  The caller puts there what ``outgoing`` says, hands what its own
one held to ``take``, and each message of it to ``deliver``, with as much time between two as it likes.  Links go as
messages, from the sender's outbox to the receiver's inbox.  Site files go beside them, in what shards publish of
themselves (heartbeat.py).
"""

from __future__ import annotations

import base64
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Derive
from spiderling.base.urls import canonicalize, page_elsewhere
from spiderling.cluster.content import Gathering, Seal, pack, unpack
from spiderling.corpus.duplicates import Hashes
from spiderling.frontier import Frontier
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import RobotsRequest
from spiderling.frontier.site_files import FileAnswer, SiteFile
from spiderling.frontier.storage.protocol import EPOCH_BITS, Changes, OutboxRow, PeerRow, State
from spiderling.frontier.storage.sqlite import SqliteStore


class Message(NamedTuple):
    """A message as it was found in the inbox."""

    sender: int
    number: int
    data: bytes


class TransportError(Exception):
    """The transport is away or refuses; what was asked may have been done, in part or not at all."""


FULL_LINKS = 400
"""Links at which a message is sent.  With 200, each costs a tenth more processor time and bytes (cluster.py)."""
FULL_BYTES = 1 << 20  # bytes, before compression, at which a message is sent; chosen
MAX_AGE_S = 5.0  # seconds after which a message is sent as it is; chosen: a host is not asked more often
TEXTS_AGE_S = 2.0
"""The same if it tells of texts.  With 5, two mirrors at five pages a second keep half as many pages more twice."""
WINDOW_MESSAGES = 64  # messages to one shard that it has not acknowledged, at most; chosen
PART_BYTES = 1 << 20  # bytes of messages that go to one shard in a round, but for a single longer one; chosen
RESEND_S = 5.0
"""Seconds without progress after which a shard is asked how far it has come.  Chosen: it commits each second."""
LONGEST_RESEND_S = 60.0  # the same for one that does not answer; chosen: it costs 70 bytes
_IN_EPOCH = (1 << EPOCH_BITS) - 1  # the bits of a message's number within its epoch
_ENTRY = struct.Struct("!HI")  # of an entry in an inbox: its sender, and the bytes that follow
MARKS = struct.Struct("!6Q")


class Marks(NamedTuple):
    """What each entry says to the shard that it is for."""

    number: int  # of the message that follows; 0: none does
    committed: int  # number of the last message from that shard that its sender has taken and committed
    kept: int  # the same of what outlasts its disk too (`ShardExchange.kept`): the receipt
    forgotten: int  # number up to which the sender's messages are kept by that shard, and are forgotten
    asks: int  # number of a question, which marks answer; 0: it asks nothing
    answers: int  # number of the question that it answers; 0: none


class Peer:
    """One other shard: the messages to it, from the store until it has acknowledged them, and what was taken from it.

    A message grows, by sections with each checkpoint, until it is full or old; only then is it sent.  So links are
    durable together with their page, and yet messages are large.  After a kill the message that was growing is sent as
    it is.

    Messages go to the other shard only while `is_heard`: at first, and when nothing was acknowledged for a while, it is
    asked how far it has come, and they go on from there.  So one that is away is sent questions alone, ever more
    seldom.
    """

    def __init__(self, row: PeerRow, first: int | None = None) -> None:
        """*row*: how far the store has come; *first*: number of the first message that waits in it, if any does."""
        self.shard = row.shard
        self.newest = row.sent  # number of the newest message, which may still be growing
        self.acknowledged = row.sent if first is None else first - 1
        """Number up to which the other shard has committed what it took, as it said last."""
        self.released = self.acknowledged  # number up to which it keeps them, so that they may be forgotten
        self.forgotten = self.acknowledged
        """Number up to which messages have left the store, or do so with the next batch of changes."""
        self._whole = row.sent  # number up to which messages grow no more, with the batch in work
        self._durable = row.sent  # the same of what the store has
        self._growing: list[bytes] = []  # sections of the newest message, if it grows
        self._links = 0  # in them
        self._max_age_s = MAX_AGE_S
        self._since = 0.0  # when it was begun

        self.sent = self.acknowledged  # number up to which messages are under way
        self.most = row.sent  # the highest number that can ever have been sent
        self.is_heard = False  # whether it has answered the last question
        self._question = 0
        self._asks_at = 0.0  # when it is asked, or asked again
        self._patience_s = RESEND_S

        self.taken = row.received  # number of the last message that was taken
        self.drained = row.received  # the same when the batch in work was drained
        self.durable = row.received  # the same of what the store has
        self.kept = row.received  # the same of what outlasts this shard's disk
        self._told = row.received, row.received  # the latter two, as the other shard was told
        self._asked = 0  # the question that it waits to be answered

    @property
    def reached(self) -> int:
        """Number up to which the other shard has the messages: as it said since it was asked, else as it keeps them."""
        return self.acknowledged if self.is_heard else self.released

    def is_due(self, now: float) -> bool:
        """Whether the newest message is full or old, and so must grow no more."""
        is_full = self._links >= FULL_LINKS or sum(map(len, self._growing)) >= FULL_BYTES
        return bool(self._growing) and (is_full or now - self._since >= self._max_age_s)

    def drain(self, sections: list[tuple[bytes, int]], now: float) -> list[OutboxRow]:
        """Put *sections*, each with its number of links, into messages; returns the rows that are new or have grown."""
        rows: list[OutboxRow] = []
        for section, links in sections:
            if not self._growing:
                self.newest += 1
                self._since = now
                self._links = 0
                self._max_age_s = MAX_AGE_S
            if not links:
                self._max_age_s = TEXTS_AGE_S
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

    def to_send(self, store: SqliteStore, question: int, now: float) -> list[tuple[Marks, bytes]]:
        """The entries for its inbox: messages, or marks alone; *question*: the number of the next one."""
        if self.sent > self.acknowledged and now >= self._asks_at:
            self.is_heard = False
        asks = 0
        if not self.is_heard and now >= self._asks_at:
            asks = self._question = question
            self._asks_at = now + self._patience_s
            self._patience_s = min(2 * self._patience_s, LONGEST_RESEND_S)
        messages = [(row.number, row.message) for row in self._next(store, now)]
        told = self.durable, self.kept
        if not messages and (asks or self._asked or self._told != told):
            messages = [(0, b"")]
        forgotten = self.released if self.released & _IN_EPOCH else 0  # what an epoch begins behind was not sent in it
        marks = *told, forgotten, asks, self._asked
        if messages:
            self._told = told
            self._asked = 0
        return [(Marks(number, *marks), message) for number, message in messages]

    def _next(self, store: SqliteStore, now: float) -> list[OutboxRow]:
        """The next messages, as far as the window has room."""
        last = min(self._durable, self.acknowledged + WINDOW_MESSAGES)
        if not self.is_heard or self.sent >= last:
            return []
        rows = [row for row in store.messages(self.shard, self.sent, PART_BYTES) if row.number <= last]
        if self.sent == self.acknowledged:
            self._asks_at = now + RESEND_S
        self.sent = rows[-1].number
        self.most = max(self.most, self.sent)
        return rows

    def note(self, marks: Marks, now: float) -> None:
        """Take what the other shard says."""
        is_answer = not self.is_heard and marks.answers == self._question != 0
        if marks.committed > self.acknowledged or is_answer:
            self._patience_s = RESEND_S
            self._asks_at = now + RESEND_S
        elif marks.committed < self.acknowledged and self.is_heard:  # it was taken over from a snapshot, or that is old
            self.refuse()
        self.released = max(self.released, marks.kept)
        self.acknowledged = max(self.released, marks.committed, 0 if is_answer else self.acknowledged)
        self.sent = self.acknowledged if is_answer else max(self.acknowledged, self.sent)
        self.is_heard |= is_answer
        self._asked = marks.asks or self._asked

    def refuse(self) -> None:
        """What ``to_send`` returned last is not in its inbox: ask it again in the next round."""
        self.is_heard = False
        self._asks_at = 0.0


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


class ShardExchange:
    """The other shards, as this one's frontier and the transport see them.

    **Exactly once.**  What is written when, by whom, and what is acknowledged when:

    1. *The sender's checkpoint.*  Links that a page has to hosts of another shard become durable in the transaction
       that records the page: as a section of the newest message in the outbox to that shard.  Messages have the
       numbers 1, 2, 3 ...; when one is full or old, it grows no more.
    2. *The sender's round.*  Copies of messages that grow no more go into the receiver's inbox.  The transport may
       lose, repeat, reorder or delay all that it has, and holds an inbox to INBOX_BYTES (redis_transport.py).
    3. *The receiver's round.*  It empties its inbox.  It takes a message only if that is the next one of its sender,
       and has that sender's code of authenticity.  Everything else is dropped.
    4. *The receiver's checkpoint.*  What the message changed and its number become durable in one transaction.
    5. *The receiver's next round.*  Only then it tells the sender that number, once; and beside it the number up to
       which a snapshot has what it took (``kept``).  Without snapshots that is the same.
    6. *The sender's next checkpoint.*  Only when it is kept it deletes the message from the outbox, and only then says
       itself that the message is forgotten.

    A kill before 4 loses nothing, since the sender still has the message; after 4 the message is not the next one any
    more, so it is not taken twice.  If a sender hears nothing for a while, it asks the receiver how far it has come,
    and goes on from there.  Each number only ever grows, so it does no harm that an entry is old, or lost.  A process
    that begins asks before it sends: if the answer knows of more than this shard does, its directory was put back from
    a backup, and it must not go on.

    **A shard that was taken over** from a snapshot knows less of its own messages than others have taken, and has taken
    less of theirs than it once said.  The former are numbered anew, behind all of its former epochs
    (jobdir/snapshots.py), and some come twice: who knows their links already makes nothing of them.  The latter nobody
    has forgotten, and its first words say how far it has come.
    """

    kept: Callable[[], Mapping[int, int]] | None = None
    """Gives for each shard the number of its last message that a snapshot has; None: there are no snapshots."""

    def __init__(
        self, me: int, shards: int, seal: Seal, store: SqliteStore, first: int = 1, derive: Derive | None = None
    ) -> None:
        """*first*: as in `SiteFiles`, and before the first question; *derive* may be a faster one (link_batch.py)."""
        self.me = me
        self.shards = shards
        self.counts: Counter[str] = Counter()  # messages and links, by what became of them
        self._seal = seal
        self._store = store
        self._derive = derive
        self._gathering = gathering = Gathering(me, shards)
        self.files = SiteFiles(me, gathering.owner, seal, first)
        self.ask_file = self.files.ask
        self.answer_file = self.files.answer
        self.keep_own = gathering.keep_own
        self.tell_kept = gathering.tell_kept
        self.tell_visit = gathering.tell_visit
        self._question = first
        self._peers = {shard: Peer(PeerRow(shard)) for shard in range(shards) if shard != me}
        self._now = 0.0

    # -- for the frontier (`Elsewhere`)

    def owns(self, host: str) -> bool:
        return self._gathering.owner(host) == self.me

    def give(self, mention: Mention) -> None:
        """Take a URL of a host of another shard; a request that had to be pickled goes there as its URL alone."""
        if mention.payload is not None and mention.payload.startswith(PICKLED):
            self.counts[SENT_BARE] += 1
            mention = replace(mention, payload=_BARE)
        self._gathering.give(mention)

    @property
    def has_changes(self) -> bool:
        return bool(self._gathering) or any(
            peer.is_due(self._now) or peer.released != peer.forgotten or peer.taken != peer.durable
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
            if peer.released != peer.forgotten:
                acknowledged[shard] = peer.forgotten = peer.released
        return replace(changes, outbox=rows, acknowledged=acknowledged, peers=peers)

    def committed(self) -> None:
        """The store has what ``drain`` returned last: it may be sent, and acknowledged."""
        for peer in self._peers.values():
            peer.committed()

    def restore(self, state: State) -> None:
        self._peers |= {row.shard: Peer(row, state.outboxes.get(row.shard)) for row in state.peers}

    # -- for the transport

    def outgoing(self, now: float) -> dict[int, bytes]:
        """Shard -> what to add to its inbox now; what then fails, or is half done, is found out and repeated later."""
        self._now = now
        self._question += 1
        kept = None if self.kept is None else self.kept()
        for shard, peer in self._peers.items():
            peer.kept = peer.durable if kept is None else min(peer.durable, kept.get(shard, 0))
        return {
            shard: b"".join([self._entry(shard, marks, message) for marks, message in entries])
            for shard, peer in self._peers.items()
            if (entries := peer.to_send(self._store, self._question, now))
        }

    def _entry(self, shard: int, marks: Marks, message: bytes) -> bytes:
        sealed = self._seal.seal(_place(self.me, shard), MARKS.pack(*marks) + message)
        return _ENTRY.pack(self.me, len(sealed)) + sealed

    def refused(self, shards: Iterable[int]) -> None:
        """What ``outgoing`` returned last is not in the inboxes of *shards*."""
        for shard in shards:
            self._peers[shard].refuse()

    def take(self, inbox: bytes, now: float) -> list[Message]:
        """Note what an *inbox* of this shard says; returns its messages, to be given to ``deliver`` one by one.

        Raises JobdirError if another shard knows more of this one than it does itself.
        """
        messages = []
        end = 0
        while end < len(inbox):
            begin = end + _ENTRY.size
            sender, size = _ENTRY.unpack(inbox[end:begin].ljust(_ENTRY.size))
            end = begin + size
            peer = self._peers.get(sender)
            entry = self._seal.open(_place(sender, self.me), inbox[begin:end])
            if peer is None or entry is None or len(entry) < MARKS.size:
                self.counts["messages refused"] += 1  # and nobody can tell where the next one begins
                break
            marks = Marks._make(MARKS.unpack_from(entry))
            if marks.committed > peer.most or marks.forgotten > peer.durable:
                raise JobdirError(
                    f"the directory of shard {self.me} is older than what shard {sender} knows of it: was it put back "
                    "from a backup? What came since then is lost to it, and it cannot go on. Put its newest state "
                    "back; or begin all shards anew."
                )
            peer.note(marks, now)
            if marks.number:
                messages.append(Message(sender, marks.number, entry[MARKS.size :]))
        return messages

    def deliver(
        self, message: Message, frontier: Frontier | None, now: float, learn: Callable[[array[int], Hashes], None]
    ) -> bool:
        """Apply *message* to *frontier* if it is next in its sender's sequence; return whether it was applied.

        *learn* takes what the sender has kept.  Without a *frontier* the content is left out.
        """
        sender, number, data = message
        peer = self._peers[sender]
        is_first = number & _IN_EPOCH == 1 and number >> EPOCH_BITS > peer.taken >> EPOCH_BITS
        if number != peer.taken + 1 and not is_first:
            self.counts["messages out of order"] += 1
            return False
        peer.taken = number
        self.counts["messages taken"] += 1
        if frontier is None:
            self.counts["messages left out"] += 1
            return True
        try:
            content = unpack(data, self._derive)
        except ValueError:  # sealed by a shard of ours, and yet it cannot be read: it never will be
            self.counts["messages unreadable"] += 1
            return True
        page = page_elsewhere(sender)
        for linking, links in content.links:
            frontier.put_links(linking, links, now, page)
            self.counts["links taken"] += links.number
        for mention in content.mentions:
            frontier.put_found(replace(mention, page=page), now)
            self.counts["links taken"] += 1
        digests, paragraphs, visits = content.texts
        frontier.put_visits(visits.reshape(-1, 2).tolist(), now)
        learn(digests, paragraphs)
        return True

    # -- for people

    def waiting(self) -> dict[int, int]:
        """Shard -> messages to it that it has not committed, for all that it has said since it was last asked."""
        return {shard: number for shard, peer in self._peers.items() if (number := peer.newest - peer.reached)}

    @property
    def sent(self) -> int:
        """Messages to others so far."""
        return sum(peer.newest for peer in self._peers.values())


def _place(sender: int, receiver: int) -> str:
    """That of an entry, by which it is sealed."""
    return f"inbox:{receiver} {sender}"
