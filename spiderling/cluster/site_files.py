"""Site files of other shards' hosts, which their owner fetches: a robots.txt that is redirected there, a licence.

So a host is asked by its owner alone, which knows its intervals, its Retry-After and its state.  What a shard asks for
is a list that stands in Redis for as long as it is wanted; an answer stands there for as long as it is on that list.
Both are published again with each beat, so Redis may lose them, and who starts again asks again.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from spiderling.base.urls import canonicalize
from spiderling.cluster.content import Kind, Place, Refused, Seal
from spiderling.frontier.hosts import RobotsRequest
from spiderling.frontier.site_files import FileAnswer, SiteFile

MAX_ASKED = 16  # files that a shard asks for at a time; chosen: an answer has up to 500 kB
PATIENCE_S = 60.0
"""Seconds for which a shard waits for one that does not run (chosen); then the file counts as not to be had."""


class _Asked(NamedTuple):
    owner: int
    request: RobotsRequest
    distance: int


class SiteFiles:
    """What one shard asks of others, and they of it."""

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

    # -- what this shard asks for

    def ask(self, request: RobotsRequest, distance: int) -> None:
        """Ask the owner for what *request* says; *distance*: that of the host which wants it."""
        target = canonicalize(request.url)
        assert target is not None, "it was admitted"
        self._asked[self._next] = _Asked(self._owner(target.host), request, distance)
        self._next += 1
        self.counts["files asked"] += 1

    def wanted(self) -> dict[int, int]:
        """Number -> owner of the files on the list."""
        return {number: asked.owner for number, asked in list(self._asked.items())[:MAX_ASKED]}

    def listed(self) -> bytes:
        rows = [
            [number, asked.owner, asked.request.url, asked.request.file.name, asked.request.redirects, asked.distance]
            for number, asked in ((number, self._asked[number]) for number in self.wanted())
        ]
        return self._seal.seal(Place(Kind.FILES, self._me), json.dumps(rows).encode())

    def answered(self, number: int, data: bytes) -> tuple[RobotsRequest, FileAnswer] | None:
        """The request *number* and its answer in *data*; None if that is none."""
        asked = self._asked[number]
        try:
            values = json.loads(self._seal.open(Place(Kind.FILE, asked.owner, self._me, 1, number), data))
            answer = FileAnswer(**{**values, "body": base64.b64decode(values["body"])})
        except (Refused, ValueError, TypeError, KeyError):
            self.counts["files refused"] += 1
            return None
        del self._asked[number]
        return asked.request, answer

    def given_up(self, living: Collection[int], now: float) -> list[RobotsRequest]:
        """The requests whose owners have not run for PATIENCE_S; *living*: those that run at *now*."""
        owners = {asked.owner for asked in self._asked.values()}
        self._owner_seen = {owner: now if owner in living else self._owner_seen.get(owner, now) for owner in owners}
        late = [number for number, asked in self._asked.items() if now - self._owner_seen[asked.owner] >= PATIENCE_S]
        return [self._asked.pop(number).request for number in late]

    # -- what others ask for

    def take_lists(self, lists: Mapping[int, bytes]) -> list[tuple[RobotsRequest, int]]:
        """Take what stands in the *lists* of other shards; returns what is new in them, each with its distance."""
        wanted: dict[tuple[int, int], tuple[RobotsRequest, int]] = {}
        for sender, data in lists.items():
            try:
                rows = json.loads(self._seal.open(Place(Kind.FILES, sender), data))
                wanted |= {(sender, row[0]): self._request(sender, *row) for row in rows if row[1] == self._me}
            except (Refused, ValueError, TypeError, KeyError, IndexError):
                self.counts["files refused"] += 1
        new = [request for key, request in wanted.items() if key not in self._served]
        self._served = {key: self._served.get(key) for key in wanted}
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

    def answers(self) -> dict[tuple[int, int], bytes]:
        """(Shard, number) -> the answer for it, for Redis."""
        answers = {}
        for (asker, number), answer in self._served.items():
            if answer is not None:
                values = {**answer._asdict(), "body": base64.b64encode(answer.body).decode()}
                place = Place(Kind.FILE, self._me, asker, 1, number)
                answers[asker, number] = self._seal.seal(place, json.dumps(values).encode())
        return answers
