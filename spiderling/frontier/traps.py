"""Traps: URLs without end that give nothing new; how they are found, and what is refused then.

Only fetched pages are evidence; nothing is probed.  Each page that has ended makes a ``Visit``.  Four kinds are found:

- *sections*: a URL belongs to several sections of its host: its path without digits, its directory, and each of its
  parameters.  A section is closed when its fruitless pages outweigh the others by ``pages`` of SPIDERLING_TRAPS (twice
  as many for a directory, or a parameter on any path).  A page is fruitless if it repeats another or says next to
  nothing; if its path has a date, also if it has no running text.  A page that says something new, in any language,
  outweighs two; a page that is kept, or links to something new outside, sets the count to 0.
- *copies*: pages of one registrable domain with the same sketch (text/fingerprints.py).  Beyond ``copies`` they are
  soft 404s: not kept, and their links within the domain are not followed, so that relative links cannot grow for ever.
- *subdomains*: if the first pages of ``subdomains`` hosts of a registrable domain in a row are copies, its names are
  made up (wildcard DNS), and no new one is admitted.
- *mirrors*: if ``mirror`` pages of a host had the same clean text as pages of other hosts at the same paths, and hardly
  any differed, the host that gave less text is closed.  Shards tell each other of pages, so a host may mirror one of
  another shard.  Of these two that is closed whose name has the larger key: so both shards know which.

admission.py judges the form of a single URL (length, depth, repeated segments).  The tables of counts have a fixed size
(6 MB), the tables of findings a bounded one (13 MB at most).  A new entry may displace an old one, so a trap may be
found late, but nothing is taken for a trap wrongly.  A restart empties the tables; a mirror stays closed.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

import xxhash

from spiderling.base import media_types
from spiderling.base.option_values import parse_traps
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, registrable_domain
from spiderling.frontier.hosts import Host, HostState
from spiderling.frontier.storage.host_table import HostTable

_REPEATS = frozenset({Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.SOFT_NOT_FOUND})
_WITHOUT_TEXT = frozenset({Reason.BOILERPLATE_ONLY, Reason.SCANNED, Reason.NEEDS_SCRIPT, Reason.BAD_QUALITY})
_LEAST_YIELD = 0.005  # share of kept bytes that pays for the bytes of documents; chosen: what a host of 100 pages gives
_DOCUMENT_BYTES = 1_000_000  # bytes of documents without yield that count as a fruitless page; chosen
_NOVELTY = 2  # fruitless pages that one with something new outweighs; chosen
_WIDE = 2  # factor on ``pages`` for sections that many pages share: a directory, a parameter on any path; chosen
_DOUBTFUL = 3  # the count of fruitless pages from which on a link into the section is not promising (chosen)
_MAX_PARAMETERS = 8  # parameters of a query that are looked at; chosen
_MISMATCHES = 0.1  # in a mirror, the most pages that differ, per page that is the same (chosen)
MAX_CLOSED = 20_000
"""Closed sections that are kept, at most 370 bytes each (chosen); beyond, the host that got one first loses its own."""
MAX_DOMAINS = 5000
"""Domains of made-up names that are kept, some 120 bytes each (chosen); the one found first is dropped first."""
MAX_MIRRORS = 4000  # possible mirrors that are kept, at most 1.3 kB each (chosen); the one found first is dropped first
MAX_HOSTS = 16  # other hosts with which a possible mirror is compared (chosen)
_LOW = (1 << 32) - 1
_DIGITS = re.compile(r"\d+")
_DATE = re.compile(r"(?:^|\D)(?:19|20)\d\d\D{1,7}(?:0?[1-9]|1[0-2])(?:\D|$)")


def sections_of(path: str) -> dict[str, int]:
    """Section -> factor on ``pages``, for each section of a path with query."""
    address, _, query = path.partition("?")
    if kind := media_types.of_path(address):
        return {f"*.{kind}": 1}
    masked = _DIGITS.sub("0", address)
    if query:
        names = [part.partition("=")[0] for part in query.split("&", _MAX_PARAMETERS)[:_MAX_PARAMETERS]]
        return {**{f"{masked}?{name}": 1 for name in names}, **{f"?{name}": _WIDE for name in names}}
    directory = masked.rpartition("/")[0] + "/*"
    return {directory: _WIDE} if masked == address else {masked: 1, directory: _WIDE}


class Counts:
    """Counters of 64-bit keys in a table of fixed size; a new key may displace an old one."""

    def __init__(self, bits: int = 17) -> None:
        self._mask = (1 << bits) - 1
        self._keys = array("Q", bytes(8 << bits))
        self._counts = array("H", bytes(2 << bits))

    def get(self, key: int) -> int:
        slot = key & self._mask
        return self._counts[slot] if self._keys[slot] == key else 0

    def increment(self, key: int, by: int = 1) -> int:
        """Count *key* once more, or *by* times; returns how often by now (65,535 at most)."""
        slot = key & self._mask
        number = min((self._counts[slot] if self._keys[slot] == key else 0) + by, 65535)
        self._keys[slot] = key
        self._counts[slot] = number
        return number

    def lower(self, key: int, by: int = 65535) -> None:
        """Take *by* off the count of *key*, down to 0."""
        if number := self.get(key):
            self._counts[key & self._mask] = max(number - by, 0)


class Visit:
    """A page that has ended.  ``found`` is called for its new links, since one of them may make it fruitful."""

    def __init__(self, traps: Traps, host: Host, path: str, outcome: Outcome, alike: int, is_copy: bool) -> None:
        """*alike*: pages of the domain with its sketch, itself included; 0 when it has none."""
        self.host = host
        self.path = path
        self.text_key = outcome.text_key
        self.is_copy = is_copy
        self.fruitful = outcome.reason is Reason.KEPT and not is_copy
        is_bare = outcome.reason in _WITHOUT_TEXT and (not alike or _DATE.search(path) is not None)
        self.fruitless = not self.fruitful and (outcome.reason in _REPEATS or alike > 1 or is_bare)
        """A page is neither fruitful nor fruitless if it says something new and is not kept, or if it failed."""
        self.is_new = alike == 1
        unpaid = max(outcome.body_bytes, outcome.wire_bytes) - outcome.kept_bytes / _LEAST_YIELD
        self._unpaid = int(unpaid / _DOCUMENT_BYTES) if media_types.of_path(path.partition("?")[0]) else None
        self.sections = sections_of(path)
        self._traps = traps

    @property
    def weight(self) -> int:
        """What the page adds to the count of its sections: a document by its bytes, since it may be large."""
        if self._unpaid is not None:
            return max(self._unpaid, 1) if self.fruitless else self._unpaid
        if self.fruitful:
            return -65535
        return 1 if self.fruitless else -_NOVELTY * self.is_new

    @property
    def keys(self) -> tuple[int, int]:
        """By which another shard finds a mirror: 64 bits of the host's name; 32 of its path and 32 of its text."""
        return _key(self.host.name), (_key(self.path) & _LOW) << 32 | self.text_key & _LOW

    def refuses(self, name: str) -> bool:
        """Whether links to the host *name* are refused: those of a copy to its own registrable domain."""
        return self.is_copy and registrable_domain(name) == registrable_domain(self.host.name)

    def found(self, target: CanonicalUrl) -> None:
        """The page has a link to *target*, which is discovered by it."""
        if self.fruitless and self._traps.is_promising(self, target):
            self.fruitful = True
            self.fruitless = False


@dataclass(slots=True, eq=False)
class Mirror:
    """A possible mirror: the hosts that have its texts too, and how many pages are the same or differ."""

    hosts: set[int] = field(default_factory=set)
    same: int = 0
    differing: int = 0


class Traps:
    """The detectors of one crawl."""

    def __init__(self, options: Options, hosts: HostTable) -> None:
        self._limits = parse_traps(options.traps)
        self._hosts = hosts
        self._fruitless = Counts()
        self._alike = Counts()
        self._made_up = Counts(12)
        self.closed: dict[int, set[int]] = {}  # host id -> keys of its closed sections
        self._number_closed = 0
        self._made_up_in: dict[str, None] = {}
        self._paths = Paths()
        self._mirrors: dict[int, Mirror] = {}

    # -- what is refused

    def refusal(self, host_id: int, name: str, path: str) -> Reason | None:
        """TRAP_SECTION or TRAP_SUBDOMAINS for a mention of a URL, whose host is new if *host_id* is 0."""
        if not host_id:
            return Reason.TRAP_SUBDOMAINS if self._is_made_up(name) else None
        return Reason.TRAP_SECTION if self._is_closed(host_id, path) else None

    def holds(self, host: Host, target: CanonicalUrl) -> bool:
        """Whether *target*, which waits, is in a trap by now."""
        return self._is_closed(host.id, target.path) or (not host.account.pages and self._is_made_up(host.name))

    def is_copy(self, host_name: str, sketch: int) -> bool:
        """Whether the host's domain has as many pages with *sketch* as may be kept."""
        if not (sketch and self._limits.copies):
            return False
        return self._alike.get(_key(registrable_domain(host_name), sketch)) >= self._limits.copies

    def _is_closed(self, host_id: int, path: str) -> bool:
        closed = self.closed.get(host_id)
        return (
            closed is not None
            and host_id not in self._hosts.pinned
            and not closed.isdisjoint(map(_key, sections_of(path)))
        )

    def _is_made_up(self, name: str) -> bool:
        return bool(self._made_up_in) and registrable_domain(name) in self._made_up_in

    # -- what is learned

    def visit(self, host: Host, path: str, outcome: Outcome) -> Visit | None:
        """The Visit of a page at *path* that has ended; None if its *host* is pinned."""
        if host.pinned:
            return None
        alike = self._count(host, outcome.sketch) if outcome.sketch else 0
        return Visit(self, host, path, outcome, alike, 0 < self._limits.copies < alike)

    def is_promising(self, visit: Visit, target: CanonicalUrl) -> bool:
        """Whether *target*, a new URL, makes the page of *visit* fruitful."""
        if target.host != visit.host.name:
            other = self._hosts.find(target.host)
            account = self._hosts.account_at_hand(other)
            # new URLs of a known host may be made up too, as those of share buttons are
            is_new = account is not None and not account.pages and self._hosts.states.queued[other] == 1
            return is_new and registrable_domain(target.host) != registrable_domain(visit.host.name)
        sections = sections_of(target.path)
        if not visit.sections.keys().isdisjoint(sections):
            return False
        return all(self._fruitless.get(_key(visit.host.name, section)) < _DOUBTFUL for section in sections)

    def leave(self, visit: Visit) -> Host | None:
        """Count *visit*, which has seen all its links; returns a host that turns out to be a mirror, or None."""
        weight = visit.weight
        for section, factor in visit.sections.items():
            key = _key(visit.host.name, section)
            if weight <= 0:
                self._fruitless.lower(key, -weight)
            elif self._fruitless.increment(key, weight) >= self._limits.pages * factor and self._limits.pages:
                self._close(visit.host.id, _key(section))
        return self._mirror_of(visit) if self.compares(visit) else None

    def compares(self, visit: Visit) -> bool:
        """Whether *visit* may tell a mirror."""
        return bool(visit.text_key and self._limits.mirror and visit.path != "/")

    def visit_elsewhere(self, host: int, page: int) -> Host | None:
        """Another shard has a visit with these ``keys``; returns a host of ours that turns out to be a mirror, or None.

        It takes no place in the tables, so our own hosts are compared as well as without other shards.
        """
        own_id, own_text = self._paths.find(page >> 32)
        if not self._are_mirrors(own_id, host, own_text & _LOW == page & _LOW):
            return None
        own = self._hosts.by_id(own_id)
        return None if own.state is HostState.MIRROR or own.pinned or _key(own.name) <= host else own

    def _close(self, host_id: int, section: int) -> None:
        closed = self.closed.setdefault(host_id, set())
        self._number_closed += section not in closed
        closed.add(section)
        if self._number_closed > MAX_CLOSED:
            self._number_closed -= len(self.closed.pop(next(iter(self.closed))))

    def _mirror_of(self, visit: Visit) -> Host | None:
        host = visit.host
        other_id, other_text = self._paths.exchange(_key(visit.path), host.id, visit.text_key)
        if other_id == host.id or not self._are_mirrors(host.id, other_id, other_text == visit.text_key):
            return None
        other = self._hosts.by_id(other_id)
        worse = min(host, other, key=lambda one: one.account.kept_bytes)
        return None if HostState.MIRROR in (host.state, other.state) or worse.pinned else worse

    def _are_mirrors(self, host_id: int, other: int, same: bool) -> bool:
        """Count a path of both hosts (0: there is none), whose texts are the *same*; whether one mirrors the other now.

        *other*: its id, or the key of one in another shard, which is no id.
        """
        known = self._mirrors.get(host_id)
        if 0 in (host_id, other) or (not same and (known is None or other not in known.hosts)):
            return False
        known = self._mirrors.setdefault(host_id, Mirror())
        if len(self._mirrors) > MAX_MIRRORS:
            del self._mirrors[next(iter(self._mirrors))]
        if len(known.hosts) < MAX_HOSTS:
            known.hosts.add(other)
        known.same += same
        known.differing += not same
        return known.same >= self._limits.mirror and known.differing <= _MISMATCHES * known.same

    def _count(self, host: Host, sketch: int) -> int:
        domain = registrable_domain(host.name)
        number = self._alike.increment(_key(domain, sketch))
        if host.account.pages == 1 and host.name != domain and self._limits.subdomains:
            if number == 1:
                self._made_up.lower(_key(domain))
            elif self._made_up.increment(_key(domain)) >= self._limits.subdomains:
                self._made_up_in[domain] = None
                if len(self._made_up_in) > MAX_DOMAINS:
                    del self._made_up_in[next(iter(self._made_up_in))]
        return number


class Paths:
    """The host and the text of the page last seen at each path, in a table of fixed size."""

    def __init__(self, bits: int = 17) -> None:
        self._mask = (1 << bits) - 1
        self._keys = array("Q", bytes(8 << bits))
        self._texts = array("Q", bytes(8 << bits))
        self._hosts = array("L", bytes(array("L").itemsize << bits))

    def exchange(self, key: int, host_id: int, text_key: int) -> tuple[int, int]:
        """Enter a page; returns (host id, text key) of the page that stood at its path, (0, 0) if none did."""
        slot = key & self._mask
        former = self.find(key & _LOW) if self._keys[slot] == key else (0, 0)
        self._keys[slot] = key
        self._hosts[slot] = host_id
        self._texts[slot] = text_key
        return former

    def find(self, key: int) -> tuple[int, int]:
        """(Host id, text key) of the page that was seen last at the path with these lower 32 bits of its *key*."""
        slot = key & self._mask
        return (self._hosts[slot], self._texts[slot]) if self._keys[slot] & _LOW == key else (0, 0)


def _key(*parts: object) -> int:
    return int(xxhash.xxh3_64_intdigest(" ".join(map(str, parts)).encode("utf-8", "surrogatepass")))
