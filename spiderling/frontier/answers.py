"""Handles fetches that are over: pages, redirects, answers to robots.txt requests, requests that were not made."""

from __future__ import annotations

from collections import deque

from spiderling.base.link_batch import batch_of
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, serialize, url_key
from spiderling.frontier.admission import Mention
from spiderling.frontier.core import Core, Fetch, Report
from spiderling.frontier.host_closing import HostClosing
from spiderling.frontier.hosts import (
    CLOSED_STATES,
    REQUEST_RANK,
    SEED_RANK,
    Host,
    HostState,
    QueuedUrl,
    RobotsRequest,
)
from spiderling.frontier.intake import Intake
from spiderling.frontier.intervals import BUSY_STATUSES
from spiderling.frontier.next_fetch import MAX_REDIRECTS, RobotsRequests
from spiderling.frontier.reachability import Reachability
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.strategy import LinkingPage
from spiderling.frontier.watching.watch import Look


class Answers:
    """Ends or requeues the URL, accounts for the host, and releases or closes the host."""

    def __init__(
        self,
        core: Core,
        intake: Intake,
        robots_requests: RobotsRequests,
        host_closing: HostClosing,
        reachability: Reachability,
    ) -> None:
        self._core = core
        self._retries = core.options.retries
        self._max_snooze_s = core.options.max_snooze_s
        self._strategy = core.strategy
        self._url_states = core.url_states
        self._admission = core.admission
        self._robots = core.robots
        self._schedule = core.schedule
        self._watch = core.watch
        self._intake = intake
        self._robots_requests = robots_requests
        self._host_closing = host_closing
        self._reachability = reachability
        self.visits: deque[Fetch] = deque()
        """Files that were answered over connections that are open; their hosts stay in transit until a look at them."""

    def give_back(self, fetch: Fetch, now: float) -> None:
        """See ``Frontier.give_back``."""
        host = fetch.host
        url = self._url_states.take_back(fetch.id)
        if fetch.robots is not None and fetch.robots is host.asking:
            host.robots_requests.appendleft(fetch.robots)
            host.asking = None
        elif url is not None:
            self._url_states.wait_again(url, first=True)
        elif self._watch.give_back(fetch.id) is None:
            return
        if host.is_closed:
            self._robots_requests.drop(host)
        self._schedule.release(host, now)

    def take_robots_txt(self, fetch: Fetch, answer: FileAnswer, now: float) -> None:
        """See ``Frontier.robots_answered``."""
        request = fetch.robots
        host = fetch.host
        if request is None or request is not host.asking:
            return
        if answer.has_file and request.asker is None:
            self._robots.files.reader.read(request.origin, request.file, answer.body)  # first, since it may raise
        host.asking = None
        ledger = self._url_states.ledger
        self._url_states.hosts.count_bytes(host, 0, len(answer.body), 0)
        ledger.totals["downloaded_bytes"] += len(answer.body)
        ledger.totals["robots"] += 1
        if answer.status:
            self._reachability.host_answered(request.origin, host.last_start, now)
        self._schedule.intervals.note_status(host, answer.status, now + min(answer.retry_after_s, self._max_snooze_s))
        self._note_file(request, answer, now)
        if answer.is_open and fetch.keeps_open and answer.status not in BUSY_STATUSES:
            self.visits.append(fetch)
        else:
            self._schedule.release(host, now)

    def take_file(self, request: RobotsRequest, answer: FileAnswer, now: float) -> None:
        """See ``Frontier.file_answered``."""
        if answer.has_file:
            self._robots.files.reader.read(request.origin, request.file, answer.body)
        self._note_file(request, answer, now)

    def _note_file(self, request: RobotsRequest, answer: FileAnswer, now: float) -> None:
        closed = self._robots_requests.take_answer(request, answer, now)
        if closed is not None and closed[1] is HostState.REFUSED:
            self._host_closing.refuse(closed[0], now)
        elif closed is not None:
            self._host_closing.close_host(*closed)

    def report(self, outcome: Outcome, now: float) -> Report:
        """See ``Frontier.report``."""
        look = self._watch.take_back(outcome.url_id)
        if look is not None:
            return self._end_look(look, outcome, now)
        links = batch_of(outcome.links)
        url = self._url_states.take_back(outcome.url_id)
        target = url.target if url else canonicalize(outcome.url)
        host = url.host if url else self._url_states.hosts.get(target.host) if target else None
        ledger = self._url_states.ledger
        ledger.count_outcome(outcome)
        if host is None:
            return Report(None)
        if target is not None and (outcome.status or outcome.wire_bytes):
            self._reachability.host_answered(target.origin, host.last_start, now)
        self._account(host, outcome, now)
        end = self._end_or_wait(url, outcome, now) if url else None
        visit = None
        if url is not None and end is not None and target is not None and not url.payload:
            visit = self._admission.traps.visit(host, target.path, outcome)
        if target is not None and self._host_closing.refusals.page_answered(host, target, outcome, now):
            self._host_closing.refuse(host, now)
        self._note_paragraphs(outcome)
        linking = LinkingPage.of(host, url.rank if url else SEED_RANK, outcome, ledger.totals["pages"])
        if end is not None and target is not None:
            self._strategy.learn(linking, target, outcome)
        self._intake.put(linking, links, now, outcome.url_id or 0, visit)
        if visit is not None and (mirror := self._admission.traps.leave(visit)) is not None:
            self._url_states.note_event(now, f"{mirror.name} is left alone: a mirror of another host")
            self._host_closing.close_host(mirror, HostState.MIRROR)
        retired = self._host_closing.review(host)
        if url is not None:
            self._schedule.release(host, now)
        return Report(end, retired)

    def _end_look(self, look: Look, outcome: Outcome, now: float) -> Report:
        """A look is over.  It counts for no yield, since most of them find nothing; its new links are admitted."""
        host = look.host
        ledger = self._url_states.ledger
        ledger.count_look(outcome)
        host.documents += outcome.reason is Reason.KEPT
        host.words += outcome.words
        self._url_states.hosts.changed.add(host)
        if outcome.status or outcome.wire_bytes:
            self._reachability.host_answered(look.target.origin, host.last_start, now)
        self._schedule.intervals.note_status(host, outcome.status)
        if outcome.may_pass:
            self._host_closing.back_off(host, outcome, now)
        else:
            host.failures = 0
        if self._host_closing.refusals.page_answered(host, look.target, outcome, now):
            self._host_closing.refuse(host, now)
        known = ledger.discovered
        if outcome.redirect_to is not None and (target := canonicalize(outcome.redirect_to)) is not None:
            salt = b"" if look.payload is None else _salt_of_redirect(look.key)
            self._core.put(Mention(target, host.distance, REQUEST_RANK, look.key, look.payload, salt, 1), now)
        linking = LinkingPage.of(host, SEED_RANK, outcome, ledger.totals["pages"])
        if look.page.version:  # that nothing on it is new says nothing of its links
            linking = linking._replace(reason=Reason.KEPT)
        self._intake.put(linking, batch_of(outcome.links), now, look.key, None)
        look.found += ledger.discovered - known
        self._note_paragraphs(outcome)
        self._watch.over(look, outcome, now)
        self._schedule.release(host, now)
        return Report(None)

    def _note_paragraphs(self, outcome: Outcome) -> None:
        if outcome.paragraphs and outcome.url_id is not None:
            self._watch.paragraphs.note(outcome.url_id, outcome.paragraphs)

    def _account(self, host: Host, outcome: Outcome, now: float) -> None:
        self._url_states.hosts.count_bytes(host, outcome.is_judged, outcome.body_bytes, outcome.kept_bytes)
        host.documents += outcome.reason is Reason.KEPT
        host.words += outcome.words
        self._schedule.intervals.note_status(host, outcome.status)
        self._schedule.count_yield(host, outcome.kept_bytes, outcome.body_bytes, now)

    def _end_or_wait(self, url: QueuedUrl, outcome: Outcome, now: float) -> Reason | None:
        """End *url* and return its Reason; None if it waits for another attempt."""
        if outcome.may_pass:
            self._host_closing.back_off(url.host, outcome, now)
            if url.tries < self._retries and not url.host.is_closed:
                url.tries += 1
                self._url_states.wait_again(url, first=False)
                return None
        else:
            url.host.failures = 0
        reason: Reason | None = outcome.reason
        if reason is Reason.REDIRECTED and outcome.redirect_to is not None:
            reason = self._follow(url, outcome, outcome.redirect_to, now)
        if reason is not None:
            self._core.cookies.forget(url.key)
            self._url_states.end_in_transit(url, reason)
        return reason

    def _follow(self, url: QueuedUrl, outcome: Outcome, location: str, now: float) -> Reason | None:
        """Follow a redirect to *location*; returns the Reason of *url*, None if it is fetched again.

        The target is a new URL at the same distance, with the outcome's payload or else that of *url*.  Cookies go
        along within the host name.
        """
        target = canonicalize(location)
        if target is None:
            self._admission.refuse(Reason.BAD_URL)
            return Reason.REDIRECTED
        cookies = self._core.cookies
        chain = cookies.of(url.key).beyond(url.target, outcome.set_cookies, now)
        leads_back = target.name == url.target.name and chain.leads_back(target)
        payload = outcome.redirect_payload
        if target.url == url.target.url and payload is None:
            reason = self._once_more(url, serialize(location), leads_back)
            if reason is None:
                cookies.note(url.key, chain)
            return reason
        if url.redirects >= MAX_REDIRECTS:
            return Reason.REDIRECT_LOOP
        # Each request has its own callback, so two of them may be redirected to one target.
        salt = _salt_of_redirect(url.key) if leads_back or url.payload is not None else b""
        mention = Mention(target, url.host.distance, url.rank, url.key, payload or url.payload, salt, url.redirects + 1)
        if self._core.put(mention, now) is None and target.name == url.target.name:
            cookies.note(url_key(url.host.id, target.url, salt), chain)
        return Reason.REDIRECTED

    def _once_more(self, url: QueuedUrl, spelled: str | None, has_cookie: bool) -> Reason | None:
        """Let *url*, which redirects to itself, wait again: in the server's spelling, or since it now has a cookie.

        Returns the Reason of its end if neither is the case or its host is closed.
        """
        is_news = spelled not in (None, url.url) and url.url == url.target.url
        if not is_news and not has_cookie:
            return Reason.REDIRECT_LOOP
        if url.host.is_closed:
            return CLOSED_STATES[url.host.state]
        url.url = spelled or url.url
        self._url_states.wait_again(url, first=True)
        return None


def _salt_of_redirect(key: int) -> bytes:
    """Tells the target of a redirect of this URL apart from the page at its address."""
    return b"redirect of %d" % key
