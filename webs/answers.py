"""Lets the simulator ask a `Web` directly, without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from spiderling.base.outcome import Outcome
from webs.web import Web, WebResponse

_LATENCY_S = 0.5
"""Seconds that each answer takes; chosen."""


class ServedAnswers:
    """An ``AnswerWeb`` (simulator/replay.py) of a ``Web`` (webs/web.py)."""

    def __init__(self, web: Web, judge: Callable[[int, str, WebResponse], Outcome]) -> None:
        """*judge*: (URL id, URL, answer) -> Outcome, for each page."""
        self._web = web
        self._judge = judge
        self._addresses = web.hosts()

    def address(self, name: str) -> str:
        return self._addresses.get(name, "127.0.0.1")

    def latency_s(self, url: str) -> float:
        return _LATENCY_S

    def site_file(self, url: str) -> tuple[int, bytes, str | None]:
        answer = self._respond(url)
        return answer.status, answer.body, answer.headers.get("Location")

    def outcome(self, url_id: int, url: str) -> Outcome:
        return self._judge(url_id, url, self._respond(url))

    def _respond(self, url: str) -> WebResponse:
        parts = urlsplit(url)
        path = parts.path + ("?" + parts.query if parts.query else "")
        return self._web.respond(parts.hostname or "", path or "/")
