"""Seeds that could not be reached, to be tried again when they are named again.

Whoever names a seed wants it, so it is not refused as seen because its host could not be reached before, or because its
address was not allowed: an option may allow it now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.host import QueuedUrl
from spiderling.frontier.hosts.ranks import SEED_RANK

_OUT_OF_REACH = frozenset(
    {
        Reason.DNS,
        Reason.ADDRESS_FORBIDDEN,
        Reason.CONNECTION,
        Reason.TIMEOUT,
        Reason.TOO_SLOW,
        Reason.TLS,
        Reason.ROBOTS_UNREACHABLE,
    }
)
_META = "failed_seeds"
_MOST = 10_000
"""Seeds that are remembered, 200 kB of the state; of more, those that failed first are refused as seen.  Chosen."""


class FailedSeeds:
    """Keys and Reasons of seeds whose host was out of reach."""

    def __init__(self) -> None:
        self._failed: dict[int, Reason] = {}
        self._is_changed = False

    def __bool__(self) -> bool:
        return bool(self._failed)

    def __contains__(self, key: int) -> bool:
        return key in self._failed

    def note_end(self, url: QueuedUrl, reason: Reason) -> None:
        """*url* has ended with *reason*: remember it if it is a seed out of reach."""
        if url.rank == SEED_RANK and reason in _OUT_OF_REACH and url.payload is None:
            self._failed[url.key] = reason
            self._is_changed = True
            if len(self._failed) > _MOST:
                del self._failed[next(iter(self._failed))]

    def pop(self, key: int) -> Reason:
        """Forget the seed of this key; returns the Reason with which it ended."""
        self._is_changed = True
        return self._failed.pop(key)

    def state(self) -> dict[str, str]:
        """What survives the process, if it has changed since the last call."""
        is_changed = self._is_changed
        self._is_changed = False
        failed = {str(key): reason.value for key, reason in self._failed.items()}
        return {_META: json.dumps(failed)} if is_changed else {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what ``state`` gave."""
        self._failed = {int(key): Reason.of(value) for key, value in json.loads(meta.get(_META, "{}")).items()}
