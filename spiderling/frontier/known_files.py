"""The files of sites as they are known: their records, their rules as parsed, and what the consent ledger has to learn.

Files are kept compressed, and parsed ones in a bounded cache, since a parsed file takes up to twenty times its size.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable

from spiderling.base.options import Options
from spiderling.base.urls import canonicalize_again
from spiderling.frontier.reading import Reader, Reading
from spiderling.frontier.robots_records import Recent, RobotsRecord, RobotsRecords, RobotsStatus
from spiderling.frontier.site_files import Rules, SiteFile
from spiderling.frontier.storage.protocol import ConsentRow

MAX_PARSED = 8192
"""Origins and licences whose files are in the cache, some 600 bytes each beside the parsed files (chosen)."""
MAX_PARSED_BYTES = 8_000_000
"""Bytes of these files as fetched (chosen).  Parsed, a file of one rule a line takes 12 to 20 times that (measured)."""
EMPTY = zlib.compress(b"")
"""The body of a record of a file without rules."""
_LEAST_WINDOW = 9
"""The smallest window of zlib, in bits of its bytes."""


def packed(body: bytes) -> bytes:
    """*body* as records keep it.  Buffers have its size: to clear zlib's usual ones takes ten times longer."""
    if not body:
        return EMPTY
    bits = min(max(len(body).bit_length(), _LEAST_WINDOW), zlib.MAX_WBITS)
    packer = zlib.compressobj(wbits=bits, memLevel=bits - 7)  # the largest window has zlib's default level, 8
    return packer.compress(body) + packer.flush()


class _Parsed:
    """What is parsed of one origin, or of one licence."""

    __slots__ = ("files", "since", "until")

    def __init__(self) -> None:
        self.files: dict[SiteFile, tuple[Rules | None, int]] = {}
        """File -> its rules, None if it has none, and its bytes."""
        self.since = self.until = 0.0
        """The time for which all files of the origin are known to be current."""


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
        self.reader = Reader(options, failed_on)
        self.ledger: list[ConsentRow] = []
        """Answers that the store does not know yet."""
        self.asked = ("", SiteFile.ROBOTS)
        """The origin (or address of a licence) and the file whose rules were asked for last.

        An error of a parser does not say which file it failed on: it is this one.
        """
        self._parsed: Recent[_Parsed] = Recent(MAX_PARSED, MAX_PARSED_BYTES)

    def find(self, origin: str, file: SiteFile) -> RobotsRecord | None:
        """What is known of *file*; for a licence *origin* is its address."""
        return self.records.find(_key(origin, file))

    def is_current(self, record: RobotsRecord, now: float) -> bool:
        """Whether *record* counts at *now*; not if it expires too late, because the clock was set back since."""
        is_pause = record.status is RobotsStatus.FAILED
        longest_s = self._options.max_snooze_s if is_pause else self._options.robots_max_age_s
        return now < record.expires <= now + longest_s

    def are_current(self, origin: str, now: float) -> bool:
        """Whether `note_current` said so of all files of *origin*, and none has changed since."""
        parsed = self._parsed.get(origin)
        return parsed is not None and parsed.since <= now < parsed.until

    def note_current(self, origin: str, since: float, until: float) -> None:
        """All files of *origin* were looked at: they are current from *since* until *until*."""
        parsed = self._parsed.get(origin) or _Parsed()
        parsed.since = since
        parsed.until = until
        self._keep(origin, parsed)

    def outdate(self, origin: str) -> None:
        """A file of *origin* may have to be fetched: take nothing for current."""
        if (parsed := self._parsed.get(origin)) is not None:
            parsed.until = 0.0

    def rules(self, origin: str, file: SiteFile) -> Rules | None:
        """The parsed file; None when there are no rules."""
        self.asked = (origin, file)
        parsed = self._parsed.get(origin)
        if parsed is None or file not in parsed.files:
            record = self.find(origin, file)
            if record is None:
                return None
            parsed = parsed or _Parsed()
            parsed.files[file] = self._read(file, record)
            self._keep(origin, parsed)
        return parsed.files[file][0]

    def _read(self, file: SiteFile, record: RobotsRecord) -> tuple[Rules | None, int]:
        if record.body in (b"", EMPTY):
            return None, 0
        body = zlib.decompress(record.body)
        return self.reader.parse(file, body), len(body)

    def _keep(self, origin: str, parsed: _Parsed) -> None:
        self._parsed.put(origin, parsed, sum(size for _, size in parsed.files.values()))

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
        self.records.put(key, record)
        digest = ""
        self.outdate(origin)
        if (parsed := self._parsed.get(origin)) is not None:
            parsed.files.pop(file, None)
        if read is not None and read.rules is not None:
            digest = hashlib.sha256(read.body).hexdigest()
            parsed = parsed or _Parsed()
            parsed.files[file] = (read.rules, len(read.body))
            self._keep(origin, parsed)
            self.reader.forget_last()
        place = (origin, file.value)
        if file is SiteFile.LICENCE and (target := canonicalize_again(origin)):
            place = (target.origin, target.path)
        self.ledger.append(ConsentRow(*place, answer, digest, now, now, read.says if read else says))


def _key(origin: str, file: SiteFile) -> str:
    if file is SiteFile.ROBOTS:
        return origin
    return f"{file.value} {origin}" if file is SiteFile.LICENCE else origin + file.value
