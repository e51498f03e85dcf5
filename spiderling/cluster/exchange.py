"""One shard's side of the protocol: what it gives to others, what it takes from them, and what it says of that.

A message counts as taken when it is the next one of its sender.  Its number becomes durable in one transaction with
what it changed; only then the receipt says so.  The receipt holds, for each other shard, the number up to which its
messages are taken, and the number up to which messages to it were forgotten.  Each number only ever grows, so it does
no harm that a receipt is old, or is lost.  If the others know of more than this shard does, its directory was put back
from a backup, and it must not go on.

The caller asks the transport for one `Round` after the other, hands its answer to ``take_answer``, and each message of
it to ``deliver``, with as much time between two as it likes.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Derive, LinkBatch
from spiderling.base.owners import page_elsewhere
from spiderling.cluster.content import Content, unpacked
from spiderling.cluster.envelope import Kind, Place, Refused, Seal
from spiderling.cluster.gathering import Gathering, Places
from spiderling.cluster.lane import Lane
from spiderling.cluster.site_files import SiteFiles
from spiderling.cluster.transport import Answer, Message, Round
from spiderling.frontier import Frontier
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import RobotsRequest
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import Changes, OutboxRow, PeerRow, State, Store
from spiderling.frontier.strategy import LinkingPage

SENT_BARE = "requests sent without callback"
_BARE = bytes(16)
"""A payload that no process knows (engine/requests.py)."""
EPOCH = 1
"""The epoch of all shards: none was ever taken over by another machine."""
_MARK = struct.Struct("!IQQ")
"""Of one other shard: epoch and number of the last message from it, number of the last forgotten message to it."""


class Exchange:
    """The other shards, as this one's frontier and the transport see them."""

    def __init__(
        self, me: int, shards: int, seal: Seal, store: Store, first_file: int = 0, derive: Derive | None = None
    ) -> None:
        """*first_file*: as in `SiteFiles`; *derive* may be a faster `derived` of link_batch.py."""
        self.me = me
        self.shards = shards
        self.counts: Counter[str] = Counter()
        """Messages and links, by what became of them."""
        self._seal = seal
        self._store = store
        self._derive = derive
        self._gathering = Gathering(me, shards)
        self.files = SiteFiles(me, self._gathering.owner, seal, first_file)
        """Site files that other shards fetch for this one, or this one for them."""
        self._lanes = {shard: Lane(shard, 0, None) for shard in range(shards) if shard != me}
        self._taken = dict.fromkeys(self._lanes, (EPOCH, 0))
        """Sender -> epoch and number of the last message that was taken."""
        self._durable = dict(self._taken)
        self._receipts: dict[int, bytes] = {}
        """Sender -> the last receipt of it that was read."""
        self._spoilt: set[int] = set()
        """Senders in whose streams another message was found than their next."""
        self._written: dict[int, tuple[int, int]] = {}
        """Those of the batch in work."""
        self._now = 0.0

    # -- for the frontier (`Elsewhere`)

    def owns(self, host: str) -> bool:
        """Whether this shard owns *host*."""
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
        """Take the *answer* to the *request* of another shard."""
        self.files.answer(request, answer)

    @property
    def has_changes(self) -> bool:
        """Whether ``drain`` would add anything."""
        is_due = any(lane.has_changes(self._now) for lane in self._lanes.values())
        return bool(self._gathering) or is_due or self._taken != self._durable

    def drain(self, changes: Changes, now: float) -> Changes:
        """*changes* with the messages that are new, longer or forgotten, and the numbers of those that were taken."""
        former = {shard: lane.newest for shard, lane in self._lanes.items()}
        for shard, section, links in self._gathering.sections():
            self._lanes[shard].add(section, links)
            self.counts["links sent"] += links
        rows = [row for lane in self._lanes.values() for row in lane.drain(now)]
        forgotten = {shard: number for shard, lane in self._lanes.items() if (number := lane.forget()) is not None}
        peers = [
            PeerRow(shard, lane.newest, *self._taken[shard])
            for shard, lane in self._lanes.items()
            if lane.newest != former[shard] or self._taken[shard] != self._durable[shard]
        ]
        self._written = dict(self._taken)
        return replace(changes, outbox=rows, acknowledged=forgotten, peers=peers)

    def committed(self) -> None:
        """The store has what ``drain`` returned last: it may be sent, and said to be taken."""
        self._durable.update(self._written)
        for lane in self._lanes.values():
            lane.committed()

    def restore(self, state: State) -> None:
        """Take up what was committed."""
        for row in state.peers:
            self._lanes[row.shard] = Lane(row.shard, row.sent, state.outboxes.get(row.shard))
            self._taken[row.shard] = self._durable[row.shard] = (row.epoch, row.received)

    # -- for the transport

    def ask(self, now: float) -> Round:
        """What to ask of the transport now; what then fails, or is half done, a later round finds out and repeats."""
        self._now = now
        outgoing = {shard: lane.outgoing(self._store, self._sealed) for shard, lane in self._lanes.items()}
        spoilt = frozenset(self._spoilt)
        self._spoilt.clear()
        return Round(EPOCH, self._receipt(), outgoing, dict(self._taken), spoilt)

    def take_answer(self, answer: Answer) -> list[Message]:
        """Note what the transport says; returns the messages, to be given to ``deliver`` one by one.

        Raises JobdirError if another shard knows more of this one than it does itself.
        """
        for shard, length in answer.lengths.items():
            self._lanes[shard].note_length(length)
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
            opened = self._seal.opened(Place(Kind.MESSAGE, sender, self.me, epoch, number), data)
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
            content = unpacked(opened, self._derive)
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
        return self._seal.sealed(Place(Kind.MESSAGE, self.me, row.shard, EPOCH, row.number), row.message)

    def _receipt(self) -> bytes:
        none = (0, 0)
        marks = (
            _MARK.pack(*self._durable.get(shard, none), self._lanes[shard].acknowledged if shard in self._lanes else 0)
            for shard in range(self.shards)
        )
        return self._seal.sealed(Place(Kind.RECEIPT, self.me), b"".join(marks))

    def _take_receipt(self, shard: int, receipt: bytes) -> None:
        try:
            marks = self._seal.opened(Place(Kind.RECEIPT, shard), receipt)
        except Refused:
            self.counts["receipts refused"] += 1
            return
        lane = self._lanes.get(shard)
        if lane is None or len(marks) != self.shards * _MARK.size:
            self.counts["receipts refused"] += 1
            return
        epoch, received, forgotten = _MARK.unpack_from(marks, self.me * _MARK.size)
        if (epoch == EPOCH and received > lane.newest) or forgotten > self._durable[shard][1]:
            raise JobdirError(
                f"the directory of shard {self.me} is older than what shard {shard} knows of it: was it put back from "
                "a backup? What came since then is lost to it, and it cannot go on. Put its newest state back; "
                "or begin all shards anew."
            )
        if epoch == EPOCH:
            lane.acknowledge(received)
        self._receipts[shard] = receipt

    # -- for people

    def waiting(self) -> dict[int, int]:
        """Shard -> messages to it that it has not committed."""
        return {shard: number for shard, lane in self._lanes.items() if (number := lane.waiting())}

    def sent(self) -> list[int]:
        """For each shard, the number of the newest message to it."""
        return [self._lanes[shard].newest if shard in self._lanes else 0 for shard in range(self.shards)]

    def taken(self) -> list[int]:
        """For each shard, the number of the last message of it whose effects are durable."""
        return [self._durable[shard][1] if shard in self._durable else 0 for shard in range(self.shards)]
