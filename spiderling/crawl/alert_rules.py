"""Decides what of a running crawl somebody should be told: each trouble once, and again when it has passed and is back.

The end of a crawl is told by extensions/alerts.py, which also takes the samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from spiderling.base.options import Options
from spiderling.base.printing import counted

_HOUR_S = 3600.0
_LEAST_BYTES = 10_000_000
"""Bytes that an hour must have brought before its yield is judged; chosen: about 200 pages."""
_STORM_S = 600.0
"""Seconds over which refusals are counted (chosen: ten answers of a host that is asked once a minute)."""
_STORM = 50
"""Answers of 429 and 503 within that time that make a storm, if they are also ... (chosen: more than one host gives)"""
_STORM_SHARE = 0.2
"""... this share of all answers (chosen)."""
_GONE = "network-gone"


class Sample(NamedTuple):
    """What a crawl shows at one moment; totals count from its first start, answers from that of this process."""

    now: float
    downloaded_bytes: int
    kept_bytes: int
    internal_errors: int
    answers: int
    refusals: int
    """Answers of 429 and 503."""
    trouble: str
    """How the network fails, '' if it does not."""
    free_bytes: int
    """Of the disk that the crawl writes to."""


class AlertRules:
    """Looks at one sample after the other."""

    def __init__(self, options: Options, internal_errors: int) -> None:
        """*internal_errors*: those of earlier runs, of which nobody is told any more."""
        self._options = options
        self._errors_told = internal_errors
        self._told: set[str] = set()
        """Kinds of trouble that lasts and was told."""
        self._hour: deque[Sample] = deque()
        """The samples of the last hour, and the one before them."""

    def look(self, sample: Sample, tell: Callable[[str, str], bool]) -> None:
        """Call ``tell(kind, text)`` for what is new; it returns False if that must wait, and is called again then."""
        self._hour.append(sample)
        while len(self._hour) > 1 and self._hour[1].now <= sample.now - _HOUR_S:
            self._hour.popleft()
        there = {kind: text for kind, text in self._troubles(sample).items() if text}
        if _GONE in self._told and _GONE not in there and tell("network-back", _BACK):
            self._told.discard(_GONE)
        self._told &= there.keys() | {_GONE}
        for kind, text in there.items():
            if kind not in self._told and tell(kind, text):
                self._told.add(kind)
        errors = sample.internal_errors - self._errors_told
        if errors > 0 and tell("internal-errors", _errors(errors)):
            self._errors_told = sample.internal_errors

    def _troubles(self, sample: Sample) -> dict[str, str]:
        """Each kind of trouble that may last -> what to say of it, '' if it is not there."""
        return {
            _GONE: sample.trouble and _gone(sample.trouble, self._options.offline_wait_s),
            "disk": _disk(sample.free_bytes) if sample.free_bytes < self._options.alert_free_bytes else "",
            "low-yield": self._low_yield(sample),
            "refusals": self._storm(sample),
        }

    def _low_yield(self, sample: Sample) -> str:
        first = self._hour[0]
        down = sample.downloaded_bytes - first.downloaded_bytes
        rate = (sample.kept_bytes - first.kept_bytes) / max(1, down)
        if first.now > sample.now - _HOUR_S or down < _LEAST_BYTES or rate >= self._options.alert_yield:
            return ""
        return (
            f"The last hour gave {rate:.5f} of its {down / 1e6:,.0f} MB as text, less than SPIDERLING_ALERT_YIELD="
            f"{self._options.alert_yield:g}. Add seeds ('seeds' in control.yaml), block the hosts that cost most "
            "('scrapy report' names them), or stop."
        )

    def _storm(self, sample: Sample) -> str:
        first = next((one for one in self._hour if one.now >= sample.now - _STORM_S), sample)
        answers = sample.answers - first.answers
        refusals = sample.refusals - first.refusals
        if refusals < _STORM or refusals < _STORM_SHARE * answers:
            return ""
        return (
            f"{refusals:,} of the {answers:,} answers of the last ten minutes were 429 or 503: servers want fewer "
            "requests. Each such host is asked more seldom by itself; if many stand behind one address, raise "
            "'ip_interval_s' in control.yaml."
        )


_BACK = "The network is there again, and the crawl goes on; there is nothing to do."


def _gone(trouble: str, wait_s: float) -> str:
    return (
        f"The network seems to be away: {trouble}. Look at the line and the name servers; the crawl keeps its URLs, "
        f"goes on when anything answers, and stops after {wait_s:g} s."
    )


def _disk(free_bytes: int) -> str:
    return f"The disk of the crawl has only {free_bytes / 1e6:,.0f} MB left. Make room: a full disk stops the crawl."


def _errors(number: int) -> str:
    return (
        f"{counted(number, 'internal error')} ended single URLs or site files; the crawl goes on. crawl.log has a "
        "traceback of each kind: please report it."
    )
