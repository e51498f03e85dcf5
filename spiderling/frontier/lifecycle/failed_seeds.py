"""Seeds that could not be reached, to be tried again when they are named again.

Whoever names a seed wants it; that its host was away when it was last asked for is no reason to refuse it as seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, url_key
from spiderling.frontier.hosts.host import QueuedUrl
from spiderling.frontier.hosts.ranks import SEED_RANK
from spiderling.frontier.lifecycle.url_states import UrlStates
from spiderling.frontier.robots import Robots
from spiderling.frontier.scheduling.schedule import Schedule
from spiderling.frontier.storage.queue_lines import line_of

_OUT_OF_REACH = frozenset({
    Reason.DNS, Reason.CONNECTION, Reason.TIMEOUT, Reason.TOO_SLOW, Reason.TLS, Reason.ROBOTS_UNREACHABLE,
})  # fmt: skip
_META = "failed_seeds"
_MOST = 10_000
"""Seeds that are remembered, 200 kB of the state; of more, those that failed first are refused as seen."""


class FailedSeeds:
    """Keys and Reasons of seeds whose host was out of reach."""

    def __init__(self, url_states: UrlStates, robots: Robots, schedule: Schedule) -> None:
        self._url_states, self._robots, self._schedule = url_states, robots, schedule
        self._failed: dict[int, Reason] = {}
        self._is_changed = False
        url_states.ended = self._ended

    def _ended(self, url: QueuedUrl, reason: Reason) -> None:
        if url.rank == SEED_RANK and reason in _OUT_OF_REACH and url.payload is None:
            self._failed[url.key] = reason
            self._is_changed = True
            if len(self._failed) > _MOST:
                del self._failed[next(iter(self._failed))]

    def again(self, target: CanonicalUrl, now: float) -> bool:
        """Whether *target* is a seed that failed: it waits again, and its host is asked as if for the first time."""
        host_id = self._url_states.hosts.find(target.host) if self._failed else 0
        key = url_key(host_id, target.url) if host_id else 0
        if key not in self._failed or self._url_states.host_states.is_closed(host_id):
            return False
        reason, host = self._failed.pop(key), self._url_states.hosts.by_id(host_id)
        self._is_changed = True
        host.clear_failures()
        self._url_states.hosts.changed.add(host)
        self._robots.ask_again(target.origin)
        self._url_states.ledger.reopen(reason, 1)
        self._url_states.queues.push(host_id, SEED_RANK, line_of(QueuedUrl(key, target.url, host, SEED_RANK, target)))
        self._schedule.wake(host_id, now, SEED_RANK)
        return True

    def state(self) -> dict[str, str]:
        """What has changed of what survives the process, since the last call."""
        is_changed, self._is_changed = self._is_changed, False
        failed = {str(key): reason.value for key, reason in self._failed.items()}
        return {_META: json.dumps(failed)} if is_changed else {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what ``state`` gave."""
        self._failed = {int(key): Reason.of(value) for key, value in json.loads(meta.get(_META, "{}")).items()}
