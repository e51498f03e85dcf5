"""What the files of each origin allow: robots.txt (RFC 9309) and the others; and when they must be fetched again.

robots.txt: a 4xx other than 429 means no rules; but 401, 402, 403, 451 or a challenge means that the host refuses
(host_closing.py), unless the option refused_robots says otherwise.  After a 429, a 5xx or no answer nothing is allowed
for a time, which the server may set by Retry-After.  After the retries the last copy counts again while it is not older
than STALE_S (RFC 9309, 2.4).  Without such a copy the origin's URLs end, and the file is asked for again after a day.
RFC 9309, 2.3.1.4, lets a crawler treat a file that was unreachable for 30 days as missing; we stay away.

tdmrep.json and ai.txt are asked for if robots.txt allows it, and if they may bind the crawl's purpose or are to be
recorded.  So are the licence files by RSL that robots.txt or a page names, once for all who name them.  A challenge in
the place of one says nothing.  If one cannot be fetched, its last copy counts, if any, and it is asked for again after
an hour.  A licence without a copy has its retries first, since all URLs of those who name it would end.

Every answer goes into the consent ledger.  An answer is parsed before anything changes.  A file on which a
parser of ours fails counts as one that could not be fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import TypeVar

from spiderling.base.opt_outs import MINING, TRAINING, UNKNOWN, Signal, Statement
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, canonicalize_again
from spiderling.frontier import intervals, known_files
from spiderling.frontier.known_files import EMPTY, KnownFiles, RobotsStatus, pack_body
from spiderling.frontier.site_files import MAX_LICENCES, FileAnswer, RobotsTxt, SiteFile
from spiderling.frontier.storage.protocol import RobotsRecord

FAILED_READING = "internal-error"
"""The answer noted in the consent ledger for a file that was fetched but not parsed, by an error of ours."""
MAX_JUDGED = 10_000
"""URLs that were allowed and whose pages have not come, of which is kept what is said of them (chosen)."""
REFUSING = frozenset({401, 402, 403, 451})
"""Statuses by which a server says that it has the page, or may have it, and does not give it to us (RFC 9110, 15.5;
RFC 7725)."""
STALE_S = 2_592_000.0
"""Seconds for which the last robots.txt counts while a newer one cannot be fetched: 30 days (RFC 9309, 2.3.1.4)."""
_ASK_AGAIN_S = 3600.0
"""Seconds until a file that could not be fetched is asked for again, if it has a copy or needs none (chosen)."""

Found = TypeVar("Found")


class RobotsVerdict(Enum):
    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    OPTED_OUT = "opted out"  # the URL may be fetched, but not used for the crawl's purpose
    MISSING = "missing"  # a file of the origin is not known, or not fresh: fetch it first
    PAUSED = "paused"  # the robots.txt, or a licence, could not be fetched; try again at ``Robots.paused_until``
    UNREACHABLE = "unreachable"


ENDS = {
    RobotsVerdict.FORBIDDEN: Reason.ROBOTS_FORBIDDEN,
    RobotsVerdict.OPTED_OUT: Reason.SITE_OPTED_OUT,
    RobotsVerdict.UNREACHABLE: Reason.ROBOTS_UNREACHABLE,
}
"""Verdicts that end a URL."""


def raised(error: Exception, url: str) -> None:
    """The default of *failed_on*: raise *error*."""
    raise error


class Robots:
    """Judges URLs by the files of their origins (known_files.py), and notes what sites answer."""

    def __init__(
        self,
        options: Options,
        lookup: Callable[[str], RobotsRecord | None] = lambda key: None,
        failed_on: Callable[[Exception, str], None] = raised,
    ) -> None:
        """*lookup* returns a record of the store.  *failed_on* is called with a parser's error and a URL.

        It must raise an error that no single file has caused.
        """
        self._options = options
        self._failed_on = failed_on
        self._policy = options.policy()
        asked = ((SiteFile.TDMREP, Signal.TDM_FILE, MINING), (SiteFile.AI_TXT, Signal.AI_TXT, TRAINING))
        self._others = [file for file, signal, refuses in asked if self._policy.asks(signal, refuses)]
        self.files = KnownFiles(options, lookup, failed_on)
        self.licences = Licences(self.files)
        self._sees_licences = self._policy.sees(Signal.RSL)
        self._said_of: dict[str, list[Statement]] = {}
        """URL that was allowed -> what the files of its origin say of it, until its page is judged."""

    def judge(self, origin: str, url: str, now: float, is_file: bool = False) -> RobotsVerdict:
        """Whether *url* of *origin* may be fetched at *now* for the purpose of this crawl.

        *is_file*: it is a file for crawlers, of which robots.txt alone decides.
        """
        verdict = self._by_robots_txt if is_file else self._verdict
        for _ in range(len(SiteFile) + MAX_LICENCES):
            try:
                return verdict(origin, url, now)
            except Exception as error:
                self._failed_on(error, url)
                self._give_up(now)
        return verdict(origin, url, now)

    def _give_up(self, now: float) -> None:
        """A parser of ours fails on a known file: until it expires it counts as one that could not be fetched."""
        origin, file = self.files.asked
        is_robots = file is SiteFile.ROBOTS
        expires = now + known_files.MAX_AGE_S
        status = RobotsStatus.UNREACHABLE if is_robots else RobotsStatus.STALE
        record = RobotsRecord(status, now, expires, body=b"" if is_robots else EMPTY)
        self.files.note(origin, file, record, FAILED_READING, now)

    def knows_rules(self, origin: str, now: float) -> bool:
        """Whether the robots.txt of *origin* need not be asked for at *now*."""
        return self._is_current(origin, SiteFile.ROBOTS, now)

    def _by_robots_txt(self, origin: str, url: str, now: float) -> RobotsVerdict:
        record = self.files.find(origin, SiteFile.ROBOTS)
        if record is None or not self.files.is_current(record, now):
            return RobotsVerdict.MISSING
        if record.status == RobotsStatus.FAILED:
            return RobotsVerdict.PAUSED
        if record.status == RobotsStatus.UNREACHABLE:
            return RobotsVerdict.UNREACHABLE
        is_free = record.body in (b"", EMPTY) or self._allows(origin, url)
        return RobotsVerdict.ALLOWED if is_free else RobotsVerdict.FORBIDDEN

    def _verdict(self, origin: str, url: str, now: float) -> RobotsVerdict:
        verdict = self._by_robots_txt(origin, url, now)
        if verdict is not RobotsVerdict.ALLOWED:
            return verdict
        if self.missing(origin, now) is not None:
            return RobotsVerdict.MISSING
        if self._policy.obeys(Signal.RSL) and self.licences.paused_until(origin) > now:
            return RobotsVerdict.PAUSED
        said = self._statements(origin, url)
        if self._policy.binding(said) is not None:
            return RobotsVerdict.OPTED_OUT
        if len(self._said_of) >= MAX_JUDGED:
            self._said_of.clear()
        self._said_of[url] = said
        return RobotsVerdict.ALLOWED

    def paused_until(self, origin: str) -> float:
        """When the robots.txt of *origin*, or a licence, which could not be fetched, is asked for again."""
        record = self.files.find(origin, SiteFile.ROBOTS)
        assert record is not None, "it was judged by it"
        return record.expires if record.status == RobotsStatus.FAILED else self.licences.paused_until(origin)

    def forbids(self, origin: str, url: str) -> bool:
        """Whether the last known robots.txt, however old, forbids *url*; True if a parser of ours fails on it."""
        try:
            return not self._allows(origin, url)
        except Exception as error:
            self._failed_on(error, url)
            return True

    def missing(self, origin: str, now: float) -> SiteFile | str | None:
        """The file of *origin*, or the address of the licence, to be fetched next; None if all are current."""
        for file in (SiteFile.ROBOTS, *self._others):
            if self._is_current(origin, file, now):
                continue
            if file is SiteFile.ROBOTS or self._allows(origin, origin + file.value):
                return file
            refused = RobotsRecord(RobotsStatus.NO_RULES, now, now + known_files.MAX_AGE_S, body=EMPTY)
            self.files.note(origin, file, refused, "kept out by robots.txt", now)
        return self.licences.missing(origin, now) if self._sees_licences else None

    def _is_current(self, origin: str, file: SiteFile, now: float) -> bool:
        record = self.files.find(origin, file)
        return record is not None and self.files.is_current(record, now)

    def asks_last_for(self, file: SiteFile) -> bool:
        """Whether no other file of an origin is asked for after *file*, licences aside."""
        return file is (SiteFile.ROBOTS, *self._others)[-1]

    def statements_of(self, url: str) -> list[Statement]:
        """What the files of its origin say of the use of *url*, by signals that the crawl heeds or records.

        Those count by which it was allowed, for they were current when it was fetched (attach-05, "When Preferences
        Apply"); without such, those that are known.
        """
        if (said := self._said_of.pop(url, None)) is not None:
            return said
        target = canonicalize_again(url)
        return self._statements(target.origin, target.url) if target else []

    def note_answer(self, origin: str, answer: FileAnswer, now: float, file: SiteFile = SiteFile.ROBOTS) -> None:
        """Note the final *answer* (redirects followed) to a request for *file*; a licence has its address as origin."""
        status = answer.status
        expires = now + known_files.MAX_AGE_S
        is_refusal = file is SiteFile.ROBOTS and self._options.refused_robots == "leave"
        if answer.challenge or (is_refusal and status in REFUSING):
            kind = RobotsStatus.REFUSED if is_refusal else RobotsStatus.NO_RULES
            record = RobotsRecord(kind, now, 0.0 if is_refusal else expires, body=EMPTY)
            told = f"{status} challenge of {answer.challenge}" if answer.challenge else str(status)
            self.files.note(origin, file, record, told, now, says="refuses" if is_refusal else "")
        elif answer.has_file:
            read = self.files.read(origin, file, answer)
            if read.rules is None:
                self.note_failure(origin, now, file, FAILED_READING, answer.retry_after_s)
                return
            record = RobotsRecord(RobotsStatus.RULES, now, expires, body=pack_body(read.body))
            self.files.note(origin, file, record, str(status), now, read)
        elif 300 <= status < 500 and status != 429:
            record = RobotsRecord(RobotsStatus.NO_RULES, now, expires, body=EMPTY)
            self.files.note(origin, file, record, str(status), now)
        else:
            self.note_failure(origin, now, file, str(status), answer.retry_after_s)

    def note_failure(
        self,
        origin: str,
        now: float,
        file: SiteFile,
        answer: str = "no answer",
        retry_after_s: float = 0.0,
        is_final: bool = False,
    ) -> None:
        """Note that no usable answer came: pause, after the retries use the last copy, or give up for a day.

        Other files than robots.txt are used, or given up, at once; but a licence without a copy, whose terms are
        unknown then, only if *is_final*: nothing would come of another attempt.
        """
        options = self._options
        former = self.files.find(origin, file)
        failures = 1 + (former.failures if former else 0)
        has_copy = former is not None and former.body and former.status != RobotsStatus.REFUSED
        body, fetched = (former.body, min(former.fetched, now)) if former and has_copy else (b"", now)
        again = min(_ASK_AGAIN_S, known_files.MAX_AGE_S)
        waits = file is SiteFile.ROBOTS or (file is SiteFile.LICENCE and body in (b"", EMPTY) and not is_final)
        if waits and failures <= options.retries:
            pause = min(retry_after_s or intervals.RETRY_DELAY_S * 2.0 ** (failures - 1), intervals.MAX_PAUSE_S)
            record = RobotsRecord(RobotsStatus.FAILED, fetched, now + pause, failures, body)
        elif file is not SiteFile.ROBOTS or (body and now - fetched <= STALE_S):
            record = RobotsRecord(RobotsStatus.STALE, fetched, now + again, failures, body or EMPTY)
        else:
            record = RobotsRecord(RobotsStatus.UNREACHABLE, now, now + known_files.MAX_AGE_S)
        self.files.note(origin, file, record, answer, now)

    def refuses(self, origin: str) -> bool:
        """Whether the last answer to a request for the robots.txt of *origin* was a refusal."""
        record = self.files.find(origin, SiteFile.ROBOTS)
        return record is not None and record.status == RobotsStatus.REFUSED

    def expire(self, origin: str, now: float) -> None:
        """Let the robots.txt of *origin*, if one is known, be fetched before anything else."""
        record = self.files.find(origin, SiteFile.ROBOTS)
        if record is not None:
            self.files.records.put(origin, record._replace(expires=min(record.expires, now)))

    def ask_again(self, origin: str) -> None:
        """Let the robots.txt of *origin* be fetched anew if the last attempt failed."""
        record = self.files.find(origin, SiteFile.ROBOTS)
        if record is not None and record.status in (RobotsStatus.FAILED, RobotsStatus.UNREACHABLE):
            self.files.records.put(origin, record._replace(failures=0, expires=0.0))

    def crawl_delay(self, origin: str) -> float:
        """Seconds asked for by Crawl-delay or Request-rate, the longer one; 0 if none."""
        return self._read(origin, RobotsTxt.crawl_delay_s, 0.0)

    def sitemaps(self, origin: str) -> list[str]:
        """Addresses on the Sitemap lines of *origin*'s robots.txt, as written."""
        return self._read(origin, RobotsTxt.sitemaps, [])

    def _read(self, origin: str, what: Callable[[RobotsTxt], Found], default: Found) -> Found:
        try:
            rules = self.files.rules(origin, SiteFile.ROBOTS)
            return what(rules) if isinstance(rules, RobotsTxt) else default
        except Exception as error:  # maybe the file of another origin of the host; `judge` will give it up
            self._failed_on(error, origin)
            return default

    def _statements(self, origin: str, url: str) -> list[Statement]:
        path = url[len(origin) :]
        wanted = self._policy.sees
        found = []
        for file in (SiteFile.ROBOTS, *self._others):
            rules = self.files.rules(origin, file)
            if rules is not None:
                found += rules.statements(url, path, wanted)
        if self._sees_licences:
            for address in self.licences.of(origin):
                found += self.licences.statements(address, url, path)
        return found

    def _allows(self, origin: str, url: str) -> bool:
        rules = self.files.rules(origin, SiteFile.ROBOTS)
        return not isinstance(rules, RobotsTxt) or rules.allows(url)


MAX_ADDRESS_CHARS = 2000  # characters of the address of a licence; a longer one counts as none (chosen)
GRACE_S = 3600.0
"""Seconds for which a stale licence counts for the page that names it; it may grow stale while the page is fetched
(chosen)."""

MAX_WAITING = 10_000  # pages that wait for their licences, of which that is remembered (chosen)


class Licences:
    """The licences by RSL that robots.txt files and pages name: which to fetch next, and what they say of a URL.

    A licence file is known by its address, once for all who name it.  One that cannot be had has unknown terms.
    """

    def __init__(self, files: KnownFiles) -> None:
        self._files = files
        self._named: dict[str, set[str]] = {}
        """Origin -> addresses that its pages name, to be fetched before further pages."""
        self._waiting: set[str] = set()  # pages that are to be fetched again behind their licences

    def of(self, origin: str) -> list[str]:
        """The addresses that the robots.txt of *origin* names; '' for one that is no address."""
        rules = self._files.rules(origin, SiteFile.ROBOTS)
        named: list[str] = rules.licences if isinstance(rules, RobotsTxt) else []
        return [licence_at(origin, address) for address in named]

    def missing(self, origin: str, now: float) -> str | None:
        """The address of the licence to be fetched next for *origin*; None if all are known."""
        for address in self.of(origin):
            if address and not self.knows(address, now):
                return address
        for address in self._named.get(origin, ()):
            if not self.knows(address, now, GRACE_S):
                return address
        if self.paused_until(origin) <= now:
            self._named.pop(origin, None)
        return None

    def paused_until(self, origin: str) -> float:
        """When the last of the licences that *origin* names, and that could not be had, is asked for again; else 0."""
        named = [*filter(None, self.of(origin)), *self._named.get(origin, ())]
        return max(map(self._paused_until, named), default=0.0)

    def _paused_until(self, address: str) -> float:
        record = self._files.find(address, SiteFile.LICENCE)
        return record.expires if record is not None and record.status == RobotsStatus.FAILED else 0.0

    def knows(self, address: str, now: float, grace_s: float = 0.0) -> bool:
        """Whether the licence at *address*, or that it cannot be had, is known, and stale for *grace_s* at most."""
        record = self._files.find(address, SiteFile.LICENCE)
        if record is None or self._files.is_current(record, now):
            return record is not None
        return record.expires <= now < record.expires + grace_s and record.status != RobotsStatus.FAILED

    def of_page(self, page: str, addresses: list[str], now: float) -> list[Statement] | None:
        """What the licences that the URL *page* names, at *addresses*, say of it; None if one has to be fetched first.

        After None the page is to be fetched again, behind its licences.  A page gets None only once: if it then names a
        licence that is again not known, that one has unknown terms.  So a page that names another one at each visit is
        fetched twice, not for ever.
        """
        target = canonicalize_again(page)
        origin, path = (target.origin, target.path) if target is not None else ("", "/")
        licences = [licence_at(origin, address) for address in addresses]
        unknown = {
            address
            for address in licences
            if address and (not self.knows(address, now, GRACE_S) or self._paused_until(address) > now)
        }
        if unknown and page not in self._waiting:
            if len(self._waiting) >= MAX_WAITING:
                self._waiting.clear()
            self._waiting.add(page)
            self._named.setdefault(origin, set()).update(unknown)
            return None
        self._waiting.discard(page)
        return [said for address in licences for said in self.statements(address, page, path)]

    def statements(self, address: str, url: str, path: str) -> list[Statement]:
        """What the licence at *address* says of *url*; unknown terms if it could not be had, or *address* is ''."""
        rules = self._files.rules(address, SiteFile.LICENCE) if address else None
        if rules is None:
            return [Statement(Signal.RSL, f"{UNKNOWN}={address[:300]}" if address else UNKNOWN, TRAINING)]
        return rules.statements(url, path)


@lru_cache(maxsize=4096)
def licence_at(origin: str, address: str) -> str:
    """The canonical form of the *address* of a licence as *origin* names it; '' if it is none."""
    target = canonicalize(address if "://" in address else f"{origin}/{address.lstrip('/')}")
    return target.url if target is not None and 0 < len(address) <= MAX_ADDRESS_CHARS else ""
