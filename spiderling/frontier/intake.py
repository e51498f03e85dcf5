"""How URLs come in: the links of a page as one batch, what sitemaps and feeds name, and pages from archives.

Of a batch of links only those with new URLs are examined.  Each host is looked up once a batch, and all keys are
compared with the seen set in one pass.  admission.py judges the new links; those that it admits are ranked together.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import TEXT_BLOCK, LinkBatch
from spiderling.base.reasons import Reason
from spiderling.base.urls import PREFIXES, CanonicalUrl, canonicalize, canonicalize_again, url_key
from spiderling.frontier.admission import MAX_PATH_DEPTH, MAX_URL_CHARS, Mention
from spiderling.frontier.core import Core, Fetch, Part
from spiderling.frontier.hosts import CLOSED_STATES, SEED_RANK, SITEMAP_RANK, Host, QueuedUrl
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.queues import HEADS
from spiderling.frontier.strategy import DROPPED, BatchRanker, FoundLink, LinkingHost, LinkingPage, NewLinks
from spiderling.frontier.traps import Visit

_PREFIX_CHARS = [len(prefix) for prefix in PREFIXES]
Places = NDArray[np.int64]
Entry = tuple[int, bytes, int]  # (rank, line, index in the batch) of a URL that comes into a queue


class Intake(Part):
    """Accepts what is new in a batch; a forged batch from a worker can do no more harm than a page with those links."""

    def put(self, linking: LinkingPage, links: LinkBatch, now: float, page: int, visit: Visit | None) -> None:
        """Accept the links of a page, whose key is *page*."""
        source = linking.host
        rank_of = self._strategy.batch_ranker(linking)
        if links.bad:
            self._admission.refuse(Reason.BAD_URL, links.bad)
        if visit is not None and visit.is_copy:
            links = self._leaving(links, visit)
        elsewhere = self._core.elsewhere
        own = None if elsewhere is None else elsewhere.keep_own(self._strategy.what_is_read(linking), links)
        if len(links.prefixes):
            self._put_columns(source, links, own, rank_of, now, page, visit)
        for url, _, flags, _, _ in links.others:
            mention = self._mention(source, url, flags, rank_of, page)
            if mention is not None and self._core.put(mention, now) is None and visit is not None:
                visit.found(mention.target)

    def _put_columns(
        self,
        source: LinkingHost,
        links: LinkBatch,
        own: Places | None,
        rank_of: BatchRanker,
        now: float,
        page: int,
        visit: Visit | None,
    ) -> None:
        """Accept the links in the columns; those at the places *own* alone, unless that is None."""
        url_states = self._url_states
        ids = self._ids(source, links.hosts)
        of_host = np.frombuffer(links.of_host, np.uint16)
        hashes = np.frombuffer(links.hashes, np.uint64)
        id_of_link = np.array(ids, np.uint64)[of_host]
        if own is None:
            places = url_states.seen.missing(id_of_link, hashes)
        else:
            places = own[url_states.seen.missing(id_of_link[own], hashes[own])].tolist()
        number = len(links.prefixes) if own is None else len(own)
        if len(places) < number:
            self._admission.refuse(Reason.SEEN, number - len(places))
        if not places:
            return
        new = NewLinks(links, places, ids)
        new.places = self._admit(source, links, new, ids)
        if not new.places:
            return
        keys, waiting = self._enter(source, links, new, ids, rank_of(new))
        url_states.ledger.discover(len(keys))
        url_states.url_log.log_found(keys, page)
        for host_id, entries in waiting.items():
            if visit is not None and visit.fruitless:
                self._wait_singly(host_id, entries, links, visit, now)
            elif url_states.wait_all(host_id, entries):
                self._schedule.wake(host_id, now, min(entries)[0])

    def _enter(
        self, source: LinkingHost, links: LinkBatch, new: NewLinks, ids: list[int], ranks: list[int]
    ) -> tuple[list[int], dict[int, list[Entry]]]:
        """Add *new* links to the seen set; returns their keys, and host id -> entries for its queue."""
        numbers = new.numbers
        digests = new.digests
        lines = new.lines
        places = new.places
        if DROPPED in ranks:
            places = [at for at, rank in zip(places, ranks, strict=True) if rank != DROPPED]
            self._admission.refuse(Reason.UNPROMISING, len(ranks) - len(places))
            ranks = [rank for rank in ranks if rank != DROPPED]
        for at in places:
            if not ids[number := numbers[at]]:
                ids[number] = self._admission.host_id(links.hosts[number], source.distance + 1)
        hosts = [ids[numbers[at]] for at in places]
        keys = self._url_states.seen.enter(hosts, [digests[at] for at in places])
        waiting: dict[int, list[Entry]] = {host_id: [] for host_id in hosts}
        for at, rank, host_id, key in zip(places, ranks, hosts, keys, strict=True):
            if key:
                waiting[host_id].append((rank, HEADS[links.prefixes[at]][rank] + lines[at], at))
        if 0 in keys:  # some are in the batch twice
            self._admission.refuse(Reason.SEEN, keys.count(0))
            return [key for key in keys if key], {host_id: some for host_id, some in waiting.items() if some}
        return keys, waiting

    def _ids(self, source: LinkingHost, names: Sequence[str]) -> list[int]:
        """The ids of the hosts *names*, 0 for unknown ones; known ones may get a lower distance."""
        ids = self._url_states.hosts.find_all(names)
        for host_id in self._url_states.host_states.farther(ids, source.distance + 1):
            if host_id != source.id:
                self._admission.lower(host_id, source.distance + 1)
        return ids

    def _admit(self, source: LinkingHost, links: LinkBatch, new: NewLinks, ids: list[int]) -> list[int]:
        """The indices in *links* of the *new* links that are not refused."""
        scope = self._admission.scope
        closed = self._admission.traps.closed
        names = links.hosts
        fetched = scope.fetched
        numbers = new.numbers
        lines = new.lines
        prefixes = links.prefixes
        forms = links.forms
        depths = links.depths
        gates: dict[int, tuple[Reason | None, Reason | None]] = {}
        allowed = []
        for at in new.places:
            number = numbers[at]
            prefix = prefixes[at]
            path = lines[at]
            if number not in gates:
                gates[number] = self._gate(source, names[number], ids[number])
            chars = _PREFIX_CHARS[prefix] + len(names[number]) + len(path)
            reason = gates[number][prefix & 1]
            if reason is None and (forms[at] not in fetched or depths[at] > MAX_PATH_DEPTH or chars > MAX_URL_CHARS):
                reason = scope.refusal_of_form(forms[at], depths[at], chars)
            if reason is None and ids[number] in closed:
                reason = self._admission.traps.refusal(ids[number], names[number], path.decode("ascii"))
            if reason is None:
                allowed.append(at)
            else:
                self._admission.refuse(reason)
        return allowed

    def _gate(self, source: LinkingHost, name: str, host_id: int) -> tuple[Reason | None, Reason | None]:
        """``Admission.gate``; BAD_URL for a new name that is not canonical, or not ours, as only a forged batch has."""
        if not host_id:
            target = canonicalize(f"http://{name}/")
            if target is None or target.host != name or self._core.is_elsewhere(name):
                return Reason.BAD_URL, Reason.BAD_URL
        distance = self._url_states.host_states.distances[host_id] if host_id else source.distance + 1
        return self._admission.gate(name, host_id, distance)

    def _wait_singly(self, host_id: int, entries: list[Entry], links: LinkBatch, visit: Visit, now: float) -> None:
        """Queue the entries one by one; each is shown to *visit* as soon as it waits."""
        for entry in entries:
            if self._url_states.wait_all(host_id, [entry]):
                self._schedule.wake(host_id, now, entry[0])
                visit.found(links.target(entry[2]))

    def _mention(self, source: LinkingHost, url: str, flags: int, rank_of: BatchRanker, page: int) -> Mention | None:
        """The Mention of a link that is not in the columns of the batch; None if it is refused."""
        target = canonicalize(url)
        if target is None:
            self._admission.refuse(Reason.BAD_URL)
            return None
        link = FoundLink(target, self._url_states.hosts.find(target.host), bool(flags & TEXT_BLOCK))
        if (rank := rank_of(NewLinks.of(link))[0]) == DROPPED:
            self._admission.refuse(Reason.UNPROMISING)
            return None
        return Mention(target, source.distance + (target.host != source.name), rank, page)

    def _leaving(self, links: LinkBatch, visit: Visit) -> LinkBatch:
        """The links of a copy that lead out of its domain; the others are refused."""
        stays = [visit.refuses(name) for name in links.hosts]
        places = [at for at, number in enumerate(array("H", links.of_host)) if not stays[number]]
        others = tuple(other for other in links.others if not visit.refuses(other[1]))
        self._admission.refuse(Reason.TRAP_COPY, len(links.prefixes) - len(places) + len(links.others) - len(others))
        return links.only(places, others)


MAX_FILES = 50  # sitemaps that are fetched for one robots.txt; chosen
MAX_DEPTH = 2  # levels of indexes that are followed: an index may name an index, which names sitemaps (chosen)
FEED = b"feed"  # the payload of a feed
_FEED_SALT = b"feed"
"""Tells a feed apart from the page at its address: many pages link to their feed too, and it may have ended as such."""
MAX_FEEDS = 4  # feeds that are taken from one page; chosen: most pages name one or two, for texts and for comments
_PAYLOAD = re.compile(rb"sitemap (\d) (\d+)")
"""The payload: levels of indexes that may follow, and sitemaps that this one may name."""


def is_sitemap(fetch: Fetch) -> bool:
    """Whether *fetch* is for a sitemap or a feed that Sitemaps put into the queue."""
    payload = fetch.payload
    return payload is not None and (payload == FEED or _PAYLOAD.fullmatch(payload) is not None)


class Sitemaps:
    """Accepts what robots.txt and sitemaps name, when ``SPIDERLING_SITEMAPS`` is on (text/listing.py reads them).

    A sitemap is a URL in its host's queue with a payload of ours, so all that holds for pages holds for it: robots.txt,
    opt-outs, politeness, limits, retries, restarts, a full account of its bytes.  It ends as ``sitemap`` and does not
    count as a page.  By its rank it waits, as its URLs do, behind the links of pages with text.  URLs of other hosts
    are refused, since only the robots.txt of such a host could allow them (cross submits).

    For each robots.txt at most MAX_FILES sitemaps are fetched, those in indexes included.  The payload of an index says
    how many it may name, so that nothing need be counted over restarts.
    """

    def __init__(self, core: Core) -> None:
        self._is_on = core.options.sitemaps == "on"
        self._core = core

    def put_named(self, host: Host, addresses: list[str], now: float) -> None:
        """Queue the sitemaps at *addresses*, which a robots.txt of *host* names."""
        if self._is_on and addresses:
            self._put_files(host, addresses, MAX_DEPTH, MAX_FILES, 0, now)

    def put_files(self, fetch: Fetch, addresses: list[str], now: float) -> None:
        """Queue the sitemaps at *addresses*, which the fetched index names."""
        place = _PAYLOAD.fullmatch(fetch.payload or b"")
        if place is not None and addresses:
            self._put_files(fetch.host, addresses, int(place[1]) - 1, int(place[2]), fetch.id, now)

    def put_feeds(self, page: str, addresses: Iterable[str], now: float) -> None:
        """Queue the feeds of its host that the page at the URL *page* names, if there is a recrawl."""
        target = canonicalize(page)
        host = self._core.url_states.hosts.get(target.host) if target is not None else None
        if host is not None and target is not None and self._core.recrawl.is_on:
            for address in list(dict.fromkeys(addresses))[:MAX_FEEDS]:
                self._put(host, address, url_key(host.id, target.url), now, FEED, _FEED_SALT)

    def put_urls(self, fetch: Fetch, entries: Iterable[tuple[str, float | None]], now: float) -> None:
        """Accept the URLs which the fetched sitemap or feed names; give few in a call, since each takes its time.

        *entries*: (URL, seconds since 1970 at which it changed, or None).
        """
        revisit = fetch.revisit
        for url, date in entries:
            refusal = self._put(fetch.host, url, fetch.id, now)
            if revisit is not None and refusal is None:
                revisit.found += 1
            elif revisit is not None and refusal is Reason.SEEN and date is not None and date <= now:
                target = canonicalize(url)
                if target is not None:
                    self._core.recrawl.announce(revisit, url_key(fetch.host.id, target.url), date)

    def left_out(self, number: int) -> None:
        """Count URLs that are left out as too many."""
        if number:
            self._core.admission.refuse(Reason.TOO_MANY_LINKS, number)

    def opted_out(self, number: int) -> None:
        """Count entries of a feed whose licences refuse the purpose of the crawl."""
        if number:
            self._core.admission.refuse(Reason.OPTED_OUT, number)

    def _put_files(self, host: Host, addresses: list[str], depth: int, most: int, page: int, now: float) -> None:
        """Queue as many of *addresses* as *depth* and *most* allow; what is left of *most* they share evenly."""
        files = list(dict.fromkeys(addresses))
        chosen = files[:most] if depth >= 0 else []
        self.left_out(len(files) - len(chosen))
        for address in chosen:
            payload = b"sitemap %d %d" % (depth, (most - len(chosen)) // len(chosen))
            self._put(host, address, page, now, payload)

    def _put(
        self, host: Host, url: str, page: int, now: float, payload: bytes | None = None, salt: bytes = b""
    ) -> Reason | None:
        target = canonicalize(url)
        if target is None or target.host != host.name:
            return self._core.admission.refuse(Reason.BAD_URL if target is None else Reason.CROSS_SUBMIT)
        return self._core.put(Mention(target, host.distance, SITEMAP_RANK, page, payload, salt), now)


class ArchivePages(Part):
    """Pages that need no request: their URLs are judged and accounted for as if they were fetched.

    Call ``begin`` when a page has been read, and ``enter`` right before it is reported.  A URL is accounted for only
    when its page ends, so a page that was in work at a kill counts as never read.  Hosts are not scheduled; they may be
    closed (blocked, retired) as in a crawl.
    """

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._in_work: dict[int, QueuedUrl] = {}

    def unwanted(self, target: CanonicalUrl) -> Reason | None:
        """Why *target* is refused by its form or host, or None; it changes nothing, so any thread may call it."""
        return self._admission.unwanted(target)

    def refuse(self, reason: Reason) -> None:
        """Count a record that is no page or not wanted."""
        self._admission.refuse(reason)

    def robots_txt(self, url: str, status: int, body: bytes, now: float) -> None:
        """Note a robots.txt of the archive: it counts for the pages after it, however old it gets."""
        target = canonicalize(url)
        if target is not None:
            self._robots.note_answer(target.origin, FileAnswer(status, body), now)

    def begin(self, url: str, distance: int = 0) -> Fetch | Reason:
        """Begin work on a page at *url*; returns its Fetch, or why it is left out: the first page at a URL counts.

        *distance*: that of its host if it is a new one.  A URL of a closed host, or forbidden by robots.txt, ends here.
        """
        target = canonicalize_again(url)
        if target is None:
            return self._admission.refuse(Reason.BAD_URL)
        host = self._admission.host(target.host, distance)
        key = url_key(host.id, target.url)
        if key in self._in_work or key in self._url_states.seen:
            return self._admission.refuse(Reason.SEEN)
        entry = self._in_work[key] = QueuedUrl(key, target.url, host, SEED_RANK, target)
        host.in_transit += 1  # keeps its record in memory
        end = CLOSED_STATES.get(host.state)
        if end is None and self._robots.forbids(target.origin, target.url):
            end = Reason.ROBOTS_FORBIDDEN
        end = end or self._admission.left_out(entry)
        if end is None:
            return Fetch(key, entry.url, "", host)
        self.enter(key)
        self._url_states.take_back(key)
        self._url_states.end_in_transit(entry, end)
        host.in_transit -= 1
        return end

    def enter(self, key: int) -> None:
        """Count the URL of a page in work as discovered and in transit; it must be reported in the same step."""
        url = self._in_work.pop(key)
        url_states = self._url_states
        url_states.seen.add(key)
        url_states.url_log.log_found([key], 0)
        url_states.ledger.discover()
        url_states.ledger.hand_out()
        url_states.in_transit[key] = url.host.fetching = url
        url_states.hosts.changed.add(url.host)
