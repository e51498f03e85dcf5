"""When a crawl of shards is over: all that live are idle, and each message between them is taken.

A status is some moments old when it is read, so one look proves nothing: a shard may have been given work since.  A
shard gets work only by a message, and a message changes the numbers of its sender.  So the crawl is over when three
looks, each at new statuses of all, find the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

LOOKS = 3
"""Looks that must find the same; chosen: two would do, were every status whole."""
WAIT_MISSING_S = 60.0
"""Seconds for which idle shards wait for one that does not run; chosen: time enough to start it."""


@dataclass(frozen=True)
class Status:
    """What a shard says of itself."""

    beat: int
    """Grows with each status."""
    is_idle: bool
    """Whether nothing waits in it and nothing is in transit."""
    sent: list[int]
    """For each shard, the number of the newest message to it."""
    taken: list[int]
    """For each shard, the number of the last message of it that was taken."""

    def to_bytes(self) -> bytes:
        """The status as it stands in Redis."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Status:
        """The status in *data*; raises ValueError or TypeError if it is none."""
        return cls(**json.loads(data))


class Ending:
    """One shard's looks at all."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._found: Mapping[int, tuple[list[int], list[int]]] = {}
        self._beats: dict[int, int] = {}
        self._looks = 0
        self._quiet_since: float | None = None

    def look(self, living: Mapping[int, Status], now: float) -> bool:
        """Take the statuses of all that live; returns whether the crawl is over for them."""
        if not living or not _is_quiet(living):
            self._looks = 0
            self._quiet_since = None
            return False
        if self._quiet_since is None:
            self._quiet_since = now
        found = {shard: (status.sent, status.taken) for shard, status in living.items()}
        if found != self._found:
            self._looks = 0
            self._beats = {}
        self._found = found
        if all(status.beat != self._beats.get(shard) for shard, status in living.items()):
            self._beats = {shard: status.beat for shard, status in living.items()}
            self._looks += 1
        is_patient = len(living) == self._shards or now - self._quiet_since >= WAIT_MISSING_S
        return is_patient and self._looks >= LOOKS


def _is_quiet(living: Mapping[int, Status]) -> bool:
    return all(status.is_idle for status in living.values()) and all(
        mine.sent[other] == theirs.taken[shard]
        for shard, mine in living.items()
        for other, theirs in living.items()
        if shard != other
    )
