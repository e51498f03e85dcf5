"""Where a redirect leads: a new URL, or the same one once more, as the server spells it."""

from __future__ import annotations

from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, serialize
from spiderling.frontier.discovery.admission import Admission
from spiderling.frontier.hosts.host import CLOSED_STATES, QueuedUrl
from spiderling.frontier.lifecycle.url_states import UrlStates
from spiderling.frontier.scheduling.schedule import Schedule

MAX_REDIRECTS = 5
"""Redirects in a row before redirect-loop (RFC 9309, 2.3.1.2, wants five at least for robots.txt)."""


class Redirects:
    """Decides how a redirected URL ends, and accepts its target."""

    def __init__(self, url_states: UrlStates, admission: Admission, schedule: Schedule) -> None:
        self._url_states = url_states
        self._admission = admission
        self._schedule = schedule

    def follow(self, url: QueuedUrl, location: str, payload: bytes | None, now: float) -> Reason | None:
        """The Reason as which a redirected URL ends; None when it is fetched once more, as the server spells it.

        The target is a new URL at the same distance, asked for by *payload* or else the same request.
        """
        target = canonicalize(location)
        if target is None:
            self._admission.refuse(Reason.BAD_URL)
            return Reason.REDIRECTED
        if target.url == url.target.url and payload is None:
            spelled = serialize(location)
            if spelled is None or spelled == url.url or url.url != target.url:
                return Reason.REDIRECT_LOOP
            if url.host.is_closed:
                return CLOSED_STATES[url.host.state]
            url.url = spelled
            self._url_states.wait_again(url, first=True)
            return None
        if url.redirects >= MAX_REDIRECTS:
            return Reason.REDIRECT_LOOP
        salt = b"" if url.payload is None else b"redirect of %d" % url.key  # each request has its own callback
        accepted = self._admission.accept(
            target, url.host.distance, url.rank, url.redirects + 1, payload or url.payload, salt, url.key
        )
        if not isinstance(accepted, Reason):
            self._schedule.wake(accepted, now, url.rank)
        return Reason.REDIRECTED
