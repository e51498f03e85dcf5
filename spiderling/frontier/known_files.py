"""The files of sites as they are known: their records, their rules as parsed, and what the consent ledger has to learn.

A file is parsed once: an answer when it comes, and a record when it is asked.  Files are kept compressed, and parsed
ones in a bounded cache, since a parsed file takes up to twenty times its size.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from spiderling.base.options import Options
from spiderling.base.urls import canonicalize_again
from spiderling.frontier import intervals
from spiderling.frontier.site_files import MAX_FILE_BYTES, FileAnswer, RobotsTxt, Rules, SiteFile, parse_rules
from spiderling.frontier.storage.protocol import ConsentRow, RobotsRecord, Rows

MAX_AGE_S = 86_400.0  # seconds after which a robots.txt is fetched again (RFC 9309, 2.4: no more than a day)
_UNKNOWN = RobotsRecord("", 0.0, 0.0)
"""In the place of a record that the store does not have; pages of archives ask for the same again and again."""
MAX_RECORDS = 20_000  # records kept in memory, some 300 bytes each beside their files; chosen
MAX_RECORD_BYTES = 32_000_000  # bytes of their compressed files, of which one may have up to 500 kB (chosen)
MAX_PARSED = 24_000  # files in the cache, some 200 bytes each beside what is parsed (chosen)
MAX_PARSED_BYTES = 8_000_000
"""Bytes of these files as fetched (chosen).  Parsed, a file of one rule a line takes 12 to 20 times that (measured)."""
EMPTY = zlib.compress(b"")  # the body of a record of a file without rules
_MIN_WINDOW = 9  # the smallest window of zlib, in bits of its bytes

Value = TypeVar("Value")


class RobotsStatus(StrEnum):
    """What came of the last request for a file."""

    NO_RULES = "no rules"
    RULES = "rules"
    STALE = "stale"  # a newer file cannot be had; the last one counts
    FAILED = "failed"  # it is asked for again after a pause
    REFUSED = "refused"
    """The site refuses us (host_closing.py).  The record of a host's name says until when, and how often it did."""
    UNREACHABLE = "unreachable"  # the retries failed too, and no copy counts


class Recent(Generic[Value]):
    """A cache of at most *most* values whose weights, in any unit, add up to *max_weight* at most.

    The least recently used value leaves first.  A value heavier than *max_weight* is kept alone.
    """

    def __init__(self, most: int, max_weight: int) -> None:
        self._most = most
        self._max_weight = max_weight
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self.weight = 0  # the weight of all values together

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """The value of *key*, from now on the most recently used; None if there is none."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: str, value: Value, weight: int) -> bool:
        """Set the value of *key*; returns whether others had to leave."""
        if (former := self._values.pop(key, None)) is not None:
            self.weight -= former[1]
        self._values[key] = value, weight
        self.weight += weight
        number = len(self._values)
        while len(self._values) > self._most or (self.weight > self._max_weight and len(self._values) > 1):
            self.weight -= self._values.popitem(last=False)[1][1]
        return len(self._values) < number


class RobotsRecords(Rows[str, RobotsRecord]):
    """Records by origin (other files: by address); those that the store has are kept in a bounded cache."""

    def __init__(self, lookup: Callable[[str], RobotsRecord | None]) -> None:
        """*lookup* gives a record that the store has."""
        super().__init__(lookup)
        self.known: Recent[RobotsRecord] = Recent(MAX_RECORDS, MAX_RECORD_BYTES)  # that the store has
        self._is_whole = True  # whether the store has only records that are in memory, and need not be asked

    def look_in_store(self) -> None:
        """From now on the store may have records that are not in memory, and is asked for them."""
        self._is_whole = False

    def drain(self) -> dict[str, RobotsRecord]:
        for key, record in self._new.items():
            self._keep(key, record)
        return super().drain()

    def _stored(self, key: str) -> RobotsRecord | None:
        record = self.known.get(key)
        if record is None and not self._is_whole:
            record = self._lookup(key) or _UNKNOWN
            self._keep(key, record)
        return None if record is _UNKNOWN else record

    def _keep(self, key: str, record: RobotsRecord) -> None:
        if self.known.put(key, record, len(record.body)):
            self._is_whole = False


class Reading(NamedTuple):
    """An answer as parsed; ``rules`` is None if the parser failed."""

    origin: str
    file: SiteFile
    body: bytes
    rules: Rules | None
    says: str = ""  # the opt-outs that the file has for the front page


def pack_body(body: bytes) -> bytes:
    """*body* as records keep it.  Buffers have its size: to clear zlib's usual ones takes ten times longer."""
    if not body:
        return EMPTY
    bits = min(max(len(body).bit_length(), _MIN_WINDOW), zlib.MAX_WBITS)
    packer = zlib.compressobj(wbits=bits, memLevel=bits - 7)  # the largest window has zlib's default level, 8
    return packer.compress(body) + packer.flush()


class KnownFiles:
    """Files by their origin, licences by their address."""

    def __init__(
        self,
        options: Options,
        lookup: Callable[[str], RobotsRecord | None],
        failed_on: Callable[[Exception, str], None],
    ) -> None:
        """*lookup* returns a record of the store.  *failed_on* is called with a parser's error and a URL."""
        self._options = options
        self.records = RobotsRecords(lookup)
        self._failed_on = failed_on
        self.last_read: Reading | None = None  # the last answer, until it is noted
        self.ledger: list[ConsentRow] = []  # answers that the store does not know yet
        self.asked = ("", SiteFile.ROBOTS)
        """The origin (or address of a licence) and the file whose rules were asked for last.

        An error of a parser does not say which file it failed on: it is this one.
        """
        self._parsed: Recent[tuple[Rules | None]] = Recent(MAX_PARSED, MAX_PARSED_BYTES)

    def read(self, origin: str, file: SiteFile, answer: FileAnswer) -> Reading:
        """Parse the file in *answer*; a second call for it need not parse it again.

        It calls all that is called for a new file, so that a parser of ours fails here if at all.
        """
        body = answer.body[:MAX_FILE_BYTES]
        if self.last_read is not None and self.last_read[:3] == (origin, file, body):
            return self.last_read
        try:
            rules = answer.rules or parse_rules(file, body, self._options)
            says = [str(said) for said in rules.statements(origin + "/", "/")]
            if isinstance(rules, RobotsTxt):
                if not rules.allows(origin + "/"):
                    says.insert(0, "disallow")
                says += [f"license:{address[:300]}" for address in rules.licences]
                rules.crawl_delay_s()
                rules.sitemaps()
            self.last_read = Reading(origin, file, body, rules, " ".join(says))
        except Exception as error:
            self._failed_on(error, origin + file.value)
            self.last_read = Reading(origin, file, body, None)
        return self.last_read

    def find(self, origin: str, file: SiteFile) -> RobotsRecord | None:
        """What is known of *file*; for a licence *origin* is its address."""
        return self.records.get(_key(origin, file))

    def is_current(self, record: RobotsRecord, now: float) -> bool:
        """Whether *record* counts at *now*; not if it expires too late, because the clock was set back since."""
        is_pause = record.status == RobotsStatus.FAILED
        longest_s = intervals.MAX_PAUSE_S if is_pause else MAX_AGE_S
        return now < record.expires <= now + longest_s

    def rules(self, origin: str, file: SiteFile) -> Rules | None:
        """The parsed file; None when there are no rules."""
        self.asked = (origin, file)
        key = _key(origin, file)
        parsed = self._parsed.get(key)
        if parsed is None:
            record = self.records.get(key)
            if record is None:
                return None
            body = b"" if record.body in (b"", EMPTY) else zlib.decompress(record.body)
            parsed = (parse_rules(file, body, self._options) if body else None,)
            self._parsed.put(key, parsed, len(body))
        return parsed[0]

    def note(
        self,
        origin: str,
        file: SiteFile,
        record: RobotsRecord,
        answer: str,
        now: float,
        read: Reading | None = None,
        says: str = "",
    ) -> None:
        """Enter a *record* and its row of the ledger.  *read*: the answer as parsed; else *says* is what it says."""
        key = _key(origin, file)
        self._keep_replaced(key, record)
        self.records.put(key, record)
        digest = ""
        if read is not None and read.rules is not None:
            digest = hashlib.sha256(read.body).hexdigest()
            self._parsed.put(key, (read.rules,), len(read.body))
            self.last_read = None
        elif record.body in (b"", EMPTY):  # else the last copy counts on
            self._parsed.put(key, (None,), 0)
        place = (origin, file.value)
        if file is SiteFile.LICENCE and (target := canonicalize_again(origin)):
            place = (target.origin, target.path)
        self.ledger.append(ConsentRow(*place, answer, digest, now, now, read.says if read else says))

    def _keep_replaced(self, key: str, record: RobotsRecord) -> None:
        """Keep the file that *record* is about to replace, under its hash: receipts name it (jobdir/consent.py)."""
        former = self.records.get(key)
        if former is not None and former.body not in (b"", EMPTY, record.body):
            digest = hashlib.sha256(zlib.decompress(former.body)).hexdigest()
            self.records.put(_KEPT + digest, former)


_KEPT = "sha256 "  # begins the key of a file that was replaced, before its hash


def keys_of_body(row: ConsentRow) -> tuple[str, str]:
    """The keys of the records that may have the file of *row*: that of the last one, and of one that was replaced."""
    is_own = row.file in (file.value for file in SiteFile)
    last = _key(row.origin, SiteFile(row.file)) if is_own else _key(row.origin + row.file, SiteFile.LICENCE)
    return last, _KEPT + row.digest


def _key(origin: str, file: SiteFile) -> str:
    if file is SiteFile.ROBOTS:
        return origin
    return f"{file.value} {origin}" if file is SiteFile.LICENCE else origin + file.value
