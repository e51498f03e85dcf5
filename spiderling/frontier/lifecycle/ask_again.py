"""Lets URLs wait again that have ended, as the URL log has them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from typing import NamedTuple

from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, canonicalize
from spiderling.frontier.hosts.host import QueuedUrl
from spiderling.frontier.lifecycle.url_states import UrlStates
from spiderling.frontier.scheduling.schedule import Schedule
from spiderling.frontier.storage.queues import line_of
from spiderling.frontier.storage.url_log import End


class AskedAgain(NamedTuple):
    """How many URLs that had ended wait again, and how many do not."""

    waiting: int = 0
    closed: int = 0
    """URLs of closed hosts and full queues, which have ended once more."""


def ask_again(url_states: UrlStates, schedule: Schedule, ends: Iterable[End], now: float) -> AskedAgain:
    """Let the URLs of *ends* wait again, each last in its band; none of them may be waiting already."""
    waiting = closed = 0
    for end in ends:
        host = url_states.hosts.by_id(end.key >> HASH_BITS & MAX_HOST_ID)
        target = canonicalize(end.url)
        if target is None:
            raise ValueError(f"{end.url!r} has ended and is no URL")
        payload = b64decode(end.payload) if end.payload else None
        line = line_of(QueuedUrl(end.key, end.url, host, end.rank, target, payload=payload))
        url_states.ledger.reopen_ended(Reason.of(end.reason), 1)
        if url_states.wait(host.id, end.rank, line, payload is not None) is None:
            waiting += 1
            schedule.wake(host.id, now, end.rank)
        else:
            closed += 1
    return AskedAgain(waiting, closed)
