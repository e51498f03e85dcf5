"""What the robots.txt of each origin allows (RFC 9309), and when it must be fetched again.

4xx means no rules; 5xx and no answer mean that nothing is allowed for a time, and
after the retries the origin's URLs end.  Rules are kept compressed; parsed ones in a
bounded cache, since a parser of a large file takes 38 kB.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from protego import Protego

from spiderling.options import Options

MAX_ROBOTS_BYTES = 500 * 1024
"""RFC 9309, 2.5: at least 500 KiB must be read; we read no more."""
_MAX_PARSERS = 4096
_MAX_RECORDS = 20_000
_MAX_RATE_S = 10**9


class RobotsVerdict(Enum):
    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    """No fresh robots.txt is known: fetch it first."""
    PAUSED = "paused"
    """It could not be fetched; try again at ``RobotsRecord.expires``."""
    UNREACHABLE = "unreachable"


class RobotsStatus(Enum):
    NO_RULES = "no rules"
    RULES = "rules"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class RobotsRecord:
    """What was learned of one origin; a row of the store's table ``robots``."""

    status: RobotsStatus
    fetched: float
    expires: float
    failures: int = 0
    body: bytes = b""
    """zlib-compressed text of the rules."""


class Robots:
    """Records by origin; ``changed`` holds the origins whose record the store does not have yet."""

    def __init__(self, options: Options, lookup: Callable[[str], RobotsRecord | None] = lambda origin: None) -> None:
        """*lookup* gives the record of an origin that is not in memory."""
        self._agent = options.robots_agent
        self._max_age_s = options.robots_max_age_s
        self._retries = options.retries
        self._retry_delay_s = options.retry_delay_s
        self._max_pause_s = options.max_snooze_s
        self._lookup = lookup
        self.records: dict[str, RobotsRecord] = {}
        """Those in memory."""
        self.changed: set[str] = set()
        self._parsers: OrderedDict[str, Protego] = OrderedDict()

    def record(self, origin: str) -> RobotsRecord | None:
        """What is known of *origin*."""
        record = self.records.get(origin)
        if record is None and (record := self._lookup(origin)) is not None:
            self.records[origin] = record
        return record

    def forget(self) -> None:
        """Let go of records that the store has, when there are many: those that came first."""
        if len(self.records) > _MAX_RECORDS:
            spare = len(self.records) - _MAX_RECORDS // 2
            for origin in [origin for origin in self.records if origin not in self.changed][:spare]:
                del self.records[origin]

    def judge(self, origin: str, url: str, now: float) -> RobotsVerdict:
        """May *url* of *origin* be fetched at *now*?"""
        record = self.record(origin)
        if record is None or record.expires <= now:
            return RobotsVerdict.MISSING
        if record.status is RobotsStatus.NO_RULES:
            return RobotsVerdict.ALLOWED
        if record.status is RobotsStatus.RULES:
            allowed = self._parser(origin, record).can_fetch(url, self._agent)
            return RobotsVerdict.ALLOWED if allowed else RobotsVerdict.FORBIDDEN
        return RobotsVerdict.PAUSED if record.status is RobotsStatus.FAILED else RobotsVerdict.UNREACHABLE

    def answered(self, origin: str, status: int, body: bytes, now: float) -> RobotsRecord:
        """Note the final answer (redirects followed) to a request for an origin's robots.txt."""
        if 200 <= status < 300:
            rules = zlib.compress(body[:MAX_ROBOTS_BYTES])
            return self._note(origin, RobotsRecord(RobotsStatus.RULES, now, now + self._max_age_s, body=rules))
        if 300 <= status < 500 and status != 429:
            return self._note(origin, RobotsRecord(RobotsStatus.NO_RULES, now, now + self._max_age_s))
        return self.failed(origin, now)

    def failed(self, origin: str, now: float) -> RobotsRecord:
        """Note that no usable answer came: pause, after the retries give the origin up for a day."""
        former = self.record(origin)
        failures = 1 + (former.failures if former else 0)
        if failures > self._retries:
            record = RobotsRecord(RobotsStatus.UNREACHABLE, now, now + self._max_age_s)
        else:
            pause = min(self._retry_delay_s * 2.0 ** (failures - 1), self._max_pause_s)
            record = RobotsRecord(RobotsStatus.FAILED, now, now + pause, failures)
        return self._note(origin, record)

    def crawl_delay(self, origin: str) -> float:
        """Seconds asked for by Crawl-delay or Request-rate, the longer one; 0 if none."""
        record = self.record(origin)
        if record is None or record.status is not RobotsStatus.RULES:
            return 0.0
        parser = self._parser(origin, record)
        rate = parser.request_rate(self._agent)
        # a file may state any number of digits, more than a float can hold
        per_request = min(rate.seconds, _MAX_RATE_S) / rate.requests if rate and rate.requests else 0.0
        return max(parser.crawl_delay(self._agent) or 0.0, per_request)

    def _note(self, origin: str, record: RobotsRecord) -> RobotsRecord:
        self.records[origin] = record
        self.changed.add(origin)
        self._parsers.pop(origin, None)
        return record

    def _parser(self, origin: str, record: RobotsRecord) -> Protego:
        parser = self._parsers.get(origin)
        if parser is None:
            parser = Protego.parse(zlib.decompress(record.body).decode("utf-8-sig", "replace"))
            self._parsers[origin] = parser
            if len(self._parsers) > _MAX_PARSERS:
                self._parsers.popitem(last=False)
        else:
            self._parsers.move_to_end(origin)
        return parser
