"""Which mentions of URLs become discovered URLs: scope, distance, seen set, the state of the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spiderling.base import media_types
from spiderling.base.addresses import DropList
from spiderling.base.link_batch import KINDS, REPETITIVE, form_of
from spiderling.base.option_values import parse_ports, parse_tlds
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize, port_of, top_level_domain, url_key
from spiderling.frontier.hosts import LAST_RANK, SEED_RANK, Host, HostState, QueuedUrl
from spiderling.frontier.storage.queues import line_of, plain_line
from spiderling.frontier.traps import Traps
from spiderling.frontier.url_states import UrlStates

PICKLED = b"\x80"
"""First byte of a payload that is a pickle (engine/requests.py): no other shard reads it, since that may run code."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A URL that was found, and how."""

    target: CanonicalUrl
    distance: int  # host hops from the seeds
    rank: int
    page: int = 0  # the key of the page that it was found on, or 0
    payload: bytes | None = None  # a serialised request of a subclass, or the mark of a sitemap (intake.py)
    salt: bytes = b""  # distinguishes requests for one URL
    redirects: int = 0  # number of redirects that led to it


class Admission:
    """Accepts or refuses; an accepted URL waits in its host's queue or ends at once."""

    def __init__(self, options: Options, url_states: UrlStates) -> None:
        self._url_states = url_states
        self.scope = Scope(options)
        self.traps = Traps(options, url_states.hosts)
        self._of_usual_ports = self._by_port(80), self._by_port(443)
        self._max_distance = options.max_distance
        self._follow = options.follow
        self.is_blocked: Callable[[str], bool] = lambda name: False  # whether the user blocked a host of this name
        self.taken_down = DropList()  # hosts and URLs that may never be asked again
        self.is_wanted: Callable[[str], bool] = lambda name: True  # whether URLs of a host of this name may be accepted

    def accept(self, mention: Mention) -> int | Reason:
        """The id of the host in whose queue the URL now waits; or the Reason why it was refused or ended at once."""
        target = mention.target
        url_states = self._url_states
        distance = mention.distance
        host_id = url_states.hosts.find(target.host)
        if host_id:
            distance = self.lower(host_id, distance)
            key = url_key(host_id, target.url, mention.salt)
            if key in url_states.seen:
                return self.refuse(Reason.SEEN)
        refusal = self._refusal(mention, host_id, distance)
        if refusal is not None:
            return self.refuse(refusal)
        if not host_id:
            host_id = self.host_id(target.host, distance)
            key = url_key(host_id, target.url, mention.salt)
        url_states.seen.add(key)
        url_states.ledger.discover()
        url_states.url_log.log_found([key], mention.page)
        rank = min(mention.rank, LAST_RANK)
        payload = mention.payload
        line = None if payload is not None or mention.redirects else plain_line(target, rank)
        if line is None:
            host = url_states.hosts.by_id(host_id)
            line = line_of(QueuedUrl(key, target.url, host, rank, target, 0, mention.redirects, payload))
        return url_states.wait(host_id, rank, line, payload is not None) or host_id

    def left_out(self, url: QueuedUrl) -> Reason | None:
        """Why a URL that waited ends unfetched, by what was said or learnt since it was found; None if it does not."""
        if self.taken_down and self.taken_down.rule_of(url.target) is not None:
            return Reason.TAKEN_DOWN
        if url.rank == SEED_RANK or url.payload:
            return None
        return Reason.TRAPPED if self.traps.holds(url.host, url.target) else None

    def outside(self, target: CanonicalUrl, host: Host) -> Reason | None:
        """Why *target*, a page of *host*, is not revisited: the scope has become narrower; None if it is within it."""
        return self.gate(host.name, host.id, 0, is_asked_for=True)[target.origin.startswith("https:")]

    def lower(self, host_id: int, distance: int) -> int:
        """Lower the distance of a known host to *distance*, if that is less; returns its distance."""
        distances = self._url_states.host_states.distances
        if distance < distances[host_id]:
            distances[host_id] = distance
            self._url_states.hosts.nearer.add(host_id)
        return distances[host_id]

    def gate(
        self, name: str, host_id: int, distance: int, is_asked_for: bool = False
    ) -> tuple[Reason | None, Reason | None]:
        """(Reason why all http URLs of a host are refused, or None; the same for https); *host_id* 0: a new one.

        *is_asked_for*: they are no mere links.
        """
        strays = not is_asked_for and (self._follow == "none" or (self._follow == "host" and not host_id))
        is_outside = strays or not self.is_wanted(name)
        reason = Reason.OUT_OF_SCOPE if is_outside else self.scope.refusal_of_name(name)
        if reason is None and distance > self._max_distance:
            reason = Reason.TOO_FAR
        if reason is None and not (host_id or is_asked_for):
            reason = self.traps.refusal(0, name, "")
        if reason is not None or ":" not in name:
            return (reason, reason) if reason is not None else self._of_usual_ports
        return self._by_port(port_of(name, False)), self._by_port(port_of(name, True))

    def _by_port(self, port: int) -> Reason | None:
        return None if self.scope.allows_port(port) else Reason.PORT_FORBIDDEN

    def unwanted(self, target: CanonicalUrl) -> Reason | None:
        """Why *target* would be refused even as a seed, whatever is known of hosts and URLs; None if it would not."""
        return self._refusal(Mention(target, 0, SEED_RANK), 0, 0)

    def refuse(self, reason: Reason, number: int = 1) -> Reason:
        self._url_states.ledger.refused_links[reason] += number
        return reason

    def host(self, name: str, distance: int) -> Host:
        """The record of *name*, created if it is new."""
        return self._url_states.hosts.by_id(self.host_id(name, distance))

    def host_id(self, name: str, distance: int) -> int:
        """The id of the host *name*, whose record is created if it is new."""
        hosts = self._url_states.hosts
        host_id = hosts.find(name)
        if not host_id:
            host_id = hosts.create(name, distance)
            if self.is_blocked(name):
                hosts.set_closed(hosts.by_id(host_id), HostState.BLOCKED)
        return host_id

    def found_on(self, source: str | None, target: CanonicalUrl) -> tuple[int, int]:
        """(distance of *target* as found on the page *source*, key of the page); (0, 0) if its host is unknown."""
        page = canonicalize(source) if source else None
        host = self._url_states.hosts.get(page.host) if page else None
        if page is None or host is None:
            return 0, 0
        return host.distance + (target.host != host.name), url_key(host.id, page.url)

    def _refusal(self, mention: Mention, host_id: int, distance: int) -> Reason | None:
        """Why the URL of *mention* is refused, or None; *host_id* 0: its host is new."""
        target = mention.target
        is_seed = mention.rank == SEED_RANK
        is_named = is_seed or bool(mention.payload)
        gate = self.gate(target.host, host_id, 0 if is_seed else distance, is_named or mention.redirects > 0)
        reason = gate[target.origin.startswith("https:")]
        if reason is None and not mention.payload:  # a request of a subclass may want a file
            reason = self.scope.refusal(target)
        if reason is None and not is_named:
            reason = self.traps.refusal(host_id, target.host, target.path)
        return reason


MAX_URL_CHARS = 500  # longer URLs are refused as traps; chosen: hardly any address that people share is longer
MAX_PATH_DEPTH = 30  # segments of a path beyond which a URL is a trap; chosen


class Scope:
    """Whether a URL may be fetched at all, by top-level domain, port, file type and form.

    base/urls.py judges scheme and name.  ``refusal`` gives the Reason why a URL stays out, or None.
    """

    def __init__(self, options: Options) -> None:
        self._tlds = parse_tlds(options.tlds)
        documents = media_types.parse(options.documents)
        self.fetched = frozenset({0, *(number for number, kind in enumerate(KINDS) if kind in documents)})
        """Kinds of paths that may be fetched, as indices in KINDS."""
        self._ports = parse_ports(options.ports)

    def allows_port(self, port: int) -> bool:
        """Whether connections to *port* may be made: a link must not make us talk to a mail server."""
        return self._ports is None or port in self._ports

    def refusal(self, url: CanonicalUrl) -> Reason | None:
        """Why *url* stays out: OUT_OF_SCOPE, TRAP or None."""
        kind, depth = form_of(url.path)
        return self.refusal_of_name(url.host) or self.refusal_of_form(kind, depth, len(url.url))

    def refusal_of_name(self, host: str) -> Reason | None:
        """OUT_OF_SCOPE for a host record under another top-level domain."""
        return Reason.OUT_OF_SCOPE if self._tlds is not None and top_level_domain(host) not in self._tlds else None

    def refusal_of_form(self, kind: int, depth: int, chars: int) -> Reason | None:
        """``refusal`` by the form and the depth of a path, and the length of the URL."""
        if kind & ~REPETITIVE not in self.fetched:
            return Reason.OUT_OF_SCOPE
        return Reason.TRAP if kind & REPETITIVE or depth > MAX_PATH_DEPTH or chars > MAX_URL_CHARS else None
