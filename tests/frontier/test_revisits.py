"""Revisits of pages that have ended: when they are made, what they change, and that a kill loses none of it."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from virtual_crawl import DAY_S, Answer, VirtualCrawl, page, robots, to

from spiderling.base.errors import DamageError
from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize_again, url_key
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.hosts import HostState
from spiderling.frontier.recrawl import policy
from spiderling.frontier.recrawl.pages import (
    ANNOUNCED,
    PLANNED,
    Columns,
    RecrawlPage,
    Standing,
    Validators,
    pages_to_recrawl,
    unpacked_validators,
)
from spiderling.frontier.recrawl.policy import FEED, PRIOR_RATE, SITEMAP, Column, Pages, Tables
from spiderling.frontier.recrawl.recrawl import Revisit
from spiderling.frontier.storage.url_log import UrlEnd

HOST = "http://a.cz/"
SAME = Answer(reason=Reason.DUPLICATE, kept_bytes=0)
UNCHANGED = Answer(304, 0, 0)
GONE = Answer(410, 10, 0)
MISSING = Answer(404, 10, 0)
Web = Callable[[str, float], Answer]  # (URL, days since the recrawl began) -> what is there


@pytest.fixture(autouse=True)
def every_look_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "MIN_WORD_DAYS", 0)


class RecrawledCrawl(VirtualCrawl):
    """A crawl of a web that changes."""

    def __init__(self, web: Web, **options) -> None:
        super().__init__({}, **{"recrawl": "on", **options})
        self.changing = web
        self.revisits: list[tuple[str, float]] = []
        self.frontier.recrawl.begin(self.now)

    @property
    def day(self) -> float:
        return self.frontier.recrawl.days(self.now)

    def answer_of(self, table, key, default):
        return self.changing(key, self.day) if table is self.web else super().answer_of(table, key, default)

    def answer(self, fetch: Fetch, answer: Answer) -> None:
        if fetch.revisit is not None:
            self.revisits.append((fetch.url, self.day))
        super().answer(fetch, answer)

    def outcome(self, fetch: Fetch, answer: Answer, reason: Reason) -> Outcome:
        return Outcome(
            fetch.id, fetch.url, reason, answer.status, answer.may_pass, redirect_to=answer.location, etag=b'"1"',
            body_bytes=answer.body_bytes, words=answer.kept_bytes // 5, links=tuple(map(Link, answer.links)),
        )  # fmt: skip

    def commit(self) -> None:
        changes = self.frontier.drain(self.now)
        self._store.commit(changes)
        self.frontier.committed()
        log = changes.url_log
        ended = [(end, log.time) for end in log.ends]
        links = Counter(dict(log.pages))
        recrawl = self.frontier.recrawl
        recrawl.take_up(*pages_to_recrawl(ended, {}, links, recrawl.days), {})
        self._store.commit(self.frontier.drain(self.now))
        self.frontier.committed()

    def kill_and_resume(self) -> None:
        super().kill_and_resume()
        self.frontier.recrawl.begin(self.now)

    def live(self, days: float) -> None:
        """Let *days* pass, in quarters of an hour."""
        until = self.now + days * DAY_S
        while self.now < until:
            self.commit()
            while self.frontier.recrawl.step(self.now):
                pass
            self.run(until=min(until, self.now + DAY_S / 96))

    def known(self, url: str) -> RecrawlPage:
        self.commit()
        pages = (RecrawlPage.unpack(*row) for row in self._store.blobs("recrawled"))
        return next(page for page in pages if page.url == url)

    def standing(self, url: str) -> Standing:
        return self.known(url).state

    def revisits_at(self, url: str) -> list[float]:
        """From the middle of the first day on, when the web of most tests changes."""
        return [day for looked, day in self.revisits if looked == url and day >= 0.5]


def lived(web: Web, days: float, requests: str = "4", seeds: Iterable[str] = (HOST,), **options) -> RecrawledCrawl:
    """A crawl of *web* that has ended, and then was a recrawl for *days* of *requests* each."""
    crawl = RecrawledCrawl(web, recrawl_requests=requests, **options)
    crawl.run(*seeds)
    crawl.live(days)
    return crawl


def test_new_pages_are_found_within_the_budget_and_the_books_balance() -> None:
    crawl = lived(lambda url, day: page(*[f"{HOST}{n}" for n in range(int(day) + 1)]), 0, "8")
    assert not crawl.revisits
    crawl.live(20)
    by_day = Counter(int(day) for _, day in crawl.revisits)
    assert by_day and max(by_day.values()) <= 8
    assert crawl.frontier.ledger.totals["revisits"] == len(crawl.revisits)
    assert crawl.ends == {Reason.KEPT: crawl.frontier.ledger.discovered}
    assert {f"{HOST}{n}" for n in range(19)} <= set(crawl.fetched())
    assert min(crawl.gaps("host").values()) >= crawl.options.host_interval_s - 1e-6


@pytest.mark.slow
def test_a_page_without_text_that_lists_new_ones_is_looked_at_most() -> None:
    links = [f"{HOST}old{n}" for n in range(12)]

    def web(url: str, day: float) -> Answer:
        if url == HOST:
            return page(*links, *(f"{HOST}{n}" for n in range(int(day) + 1)), kept_bytes=0)
        return MISSING if url.endswith("robots.txt") else page() if day < 0.01 or url not in links else SAME

    crawl = lived(web, 25, "3")
    assert Counter(url for url, _ in crawl.revisits).most_common(1)[0][0] == HOST
    assert f"{HOST}22" in crawl.fetched()


def test_404_counts_as_gone_after_a_week_and_410_at_once() -> None:
    def web(url: str, day: float) -> Answer:
        if day < 0.5 or url == HOST:
            return page(HOST + "missing", HOST + "gone", HOST + "back") if day < 0.5 else SAME
        if url == HOST + "back":
            return SAME if day > 8 else MISSING
        return GONE if url == HOST + "gone" else MISSING

    crawl = lived(web, 6)
    assert crawl.standing(HOST + "missing") is crawl.standing(HOST + "back") is Standing.MISSED
    assert crawl.standing(HOST + "gone") is Standing.GONE
    crawl.live(14)
    assert crawl.standing(HOST + "missing") is Standing.GONE
    assert crawl.standing(HOST + "back") is Standing.LIVE
    first, second = crawl.revisits_at(HOST + "missing")
    assert second - first >= 7
    assert len(crawl.revisits_at(HOST + "gone")) == 1
    assert crawl.frontier.ledger.totals["revisits_gone"] == 2


@pytest.mark.parametrize(
    "said",
    [
        Answer(reason=Reason.NOINDEX, kept_bytes=0),
        pytest.param(Answer(451, reason=Reason.UNAVAILABLE_FOR_LEGAL_REASONS), marks=pytest.mark.slow),
    ],
)
def test_a_page_that_opts_out_is_not_asked_again(said: Answer) -> None:
    crawl = lived(lambda url, day: page() if day < 0.5 else said, 20)
    assert crawl.standing(HOST) is Standing.OPTED_OUT
    assert len(crawl.revisits_at(HOST)) == 1


def test_robots_txt_is_read_anew_before_a_look() -> None:
    def web(url: str, day: float) -> Answer:
        forbids = robots("User-agent: *\nDisallow: /secret")
        return (forbids if day > 2 else MISSING) if url.endswith("robots.txt") else page(HOST + "secret")

    crawl = lived(web, 20)
    assert crawl.standing(HOST + "secret") is Standing.OPTED_OUT
    assert all(day < 3.1 for day in crawl.revisits_at(HOST + "secret"))
    assert crawl.standing(HOST) is Standing.LIVE


def test_failures_and_redirects_leave_the_page_as_it_is_known() -> None:
    def web(url: str, day: float) -> Answer:
        if day < 0.5:
            return page(HOST + "busy", HOST + "moved")
        if url == HOST + "busy":
            return Answer(503, 10, 0)
        return to(HOST + "new") if url == HOST + "moved" else SAME if url == HOST else page()

    crawl = lived(web, 10)
    assert crawl.standing(HOST + "busy") is crawl.standing(HOST + "moved") is Standing.LIVE
    assert crawl.ended[HOST + "new"] is Reason.KEPT
    assert crawl.ends[Reason.KEPT] == crawl.frontier.ledger.discovered


@pytest.mark.slow
def test_looks_that_are_planned_at_a_host_which_is_closed_are_dropped() -> None:
    crawl = lived(lambda url, day: page() if day < 0.5 else SAME, 1, "96", seeds=(HOST, "http://b.cz/"))
    while not crawl.frontier.recrawl.columns.rows["flags"][0] & PLANNED:
        crawl.now += DAY_S / 96
        crawl.frontier.recrawl.step(crawl.now)
    closing = crawl.frontier.host_closing
    closing.close_host(crawl.host("a.cz"), HostState.BLOCKED)
    closed_on = crawl.day
    crawl.live(2)
    assert max(crawl.revisits_at(HOST)) <= closed_on < crawl.revisits_at("http://b.cz/")[-1]
    closing.reopen_host(crawl.host("a.cz"), crawl.now)
    crawl.live(1)
    assert max(crawl.revisits_at(HOST)) > closed_on + 2


@pytest.mark.slow
def test_looks_that_are_not_worth_it_are_left_out() -> None:
    busy, idle = (lived(lambda url, day: page() if day < 0.5 else SAME, 0, "9") for _ in range(2))
    idle.frontier.recrawl.policy.min_word_days = 3000.0
    for crawl in (busy, idle):
        crawl.live(15)
    assert len(idle.revisits) < len(busy.revisits) / 3


def test_a_list_that_is_kept_when_it_was_asked_again_is_a_page_from_then_on() -> None:
    """It was given up as a list that shows nothing new, though it is in the corpus."""
    links = [f"{HOST}{number}" for number in range(12)]

    def web(url: str, day: float) -> Answer:
        if url == HOST:
            return replace(page(*links), reason=Reason.WRONG_LANGUAGE if day < 1 else Reason.KEPT)
        return page() if day < 0.01 else SAME

    crawl = lived(web, 0, "2")
    crawl.commit()
    end = UrlEnd(url_key(crawl.host("a.cz").id, HOST), HOST, Reason.WRONG_LANGUAGE.value, 1, 0, 0)
    crawl.now += 2 * DAY_S
    assert crawl.frontier.ask_again([end], crawl.now) == (1, 1)
    crawl.run()
    crawl.commit()
    assert crawl.known(HOST).version == 1


@pytest.mark.parametrize("scope", ["hosts", "tlds"])
def test_only_pages_within_a_scope_that_has_become_narrower_are_revisited(scope: str) -> None:
    others = "http://b.org/"
    crawl = lived(lambda url, day: page() if day < 0.01 else SAME, 2, "9", seeds=(HOST, others))
    assert crawl.revisits_at(HOST) and crawl.revisits_at(others)
    crawl.options = replace(crawl.options, tlds="cz" if scope == "tlds" else "all")
    crawl.kill_and_resume()
    if scope == "hosts":
        crawl.frontier.crawl_only(lambda name: name == "a.cz")
    crawl.revisits.clear()
    crawl.live(3)
    assert crawl.revisits_at(HOST) and not crawl.revisits_at(others)
    assert crawl.standing(others) is Standing.LIVE, "a wider scope has it again"


class CookieWall(RecrawledCrawl):
    """A crawl of pages that are given only with a cookie, which a redirect of each to itself sets."""

    def outcome(self, fetch: Fetch, answer: Answer, reason: Reason) -> Outcome:
        if fetch.cookies:
            return super().outcome(fetch, answer, reason)
        moved = Outcome(fetch.id, fetch.url, Reason.REDIRECTED, 302, redirect_to=fetch.url)
        return replace(moved, set_cookies=(b"a=1",) if "never" not in fetch.url else ())


def test_a_page_behind_a_cookie_is_revisited_with_it() -> None:
    crawl = CookieWall(lambda url, day: page(HOST + "never"), recrawl_requests="4")
    crawl.run(HOST)
    crawl.live(4)
    totals = crawl.frontier.ledger.totals
    assert totals["revisits"] == totals["versions"] > 4
    assert len(crawl.revisits) == 2 * totals["revisits"], "each once without the cookie"
    assert min(crawl.gaps("host").values()) >= crawl.options.host_interval_s - 1e-6


@pytest.mark.parametrize("pages", [1, 2, 10, 30])
def test_a_recrawl_of_few_pages_has_its_share_of_revisits(pages: int) -> None:
    """One of less than a revisit a day may have none on one day; over the days it has as many as any other."""
    links = [f"{HOST}{number}" for number in range(1, pages)]
    crawl = lived(lambda url, day: page(*links) if url == HOST else page() if day < 0.01 else SAME, 20, ".05")
    assert len(crawl.revisits) == pages == crawl.frontier.recrawl.columns.live


def test_a_host_is_left_alone_when_later_versions_reach_its_budget_of_documents() -> None:
    crawl = lived(lambda url, day: page(HOST + "1"), 9, "8", max_host_documents=5)
    assert crawl.host("a.cz").documents == 5 == crawl.frontier.ledger.totals["documents"]
    assert crawl.host("a.cz").state is HostState.SPENT


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_a_date_announces_is_remembered_until_the_page_was_revisited(is_killed: bool) -> None:
    """A kill made it a page that the dates leave out, which is hardly ever worth a revisit."""
    links = [f"{HOST}{number}" for number in range(9)]
    crawl = lived(lambda url, day: page(*links) if url == HOST else page() if day < 0.01 else SAME, 12, "1")
    host = crawl.host("a.cz")
    latest = url_key(host.id, crawl.revisits[-1][0])
    sitemap = RecrawlPage(0, HOST + "sitemap.xml", 0, 0, Validators(), SITEMAP)
    revisit = Revisit(0, sitemap.url, host, 9, canonicalize_again(sitemap.url), page=sitemap)
    crawl.frontier.recrawl.announce(revisit, latest, crawl.now)
    crawl.commit()
    if is_killed:
        crawl.kill_and_resume()
    columns = crawl.frontier.recrawl.columns
    columns.merge()
    assert columns.rows["key"][columns.rows["flags"] & ANNOUNCED > 0].view(np.int64).tolist() == [latest]
    crawl.live(12)
    assert not np.count_nonzero(columns.rows["flags"] & ANNOUNCED)


def test_a_recrawl_ends_after_its_days() -> None:
    crawl = lived(lambda url, day: page(), 0, recrawl="3d")
    assert crawl.frontier.recrawl.goes_on(crawl.now)
    crawl.live(5)
    assert not crawl.frontier.recrawl.goes_on(crawl.now)
    assert max(day for _, day in crawl.revisits) < 3.1


@pytest.mark.slow
@settings(
    max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow]
)
@given(st.lists(st.sampled_from(["live", "kill", "commit", "half"]), min_size=4, max_size=9), st.integers(8, 30))
def test_whenever_it_is_killed_nothing_is_lost_and_no_budget_is_spent_twice(steps: Iterable[str], budget: int) -> None:
    def web(url: str, day: float) -> Answer:
        if url.endswith("robots.txt"):
            return MISSING
        here = [f"{HOST}{number}" for number in range(int(day) + 4)]
        return page(*here) if url == HOST else page() if url in here else MISSING

    crawl = lived(web, 0, str(budget))
    crawl.commit()
    for step in steps:
        if step == "live":
            crawl.live(1.3)
        elif step == "half":
            crawl.run(until=crawl.now + 40)
        elif step == "commit":
            crawl.commit()
        else:
            crawl.kill_and_resume()
    crawl.live(20)
    crawl.commit()
    ledger = crawl.frontier.ledger
    assert ledger.balance.error == 0 and not ledger.waiting
    assert crawl.frontier.recrawl.columns.live == ledger.ends[Reason.KEPT]
    by_day = Counter(int(day) for _, day in crawl.revisits)
    # a kill may lose the counts of revisits that no checkpoint has: those of a quarter of an hour
    assert max(by_day.values()) <= budget + len(list(steps)) * (budget / 96 + 1)
    assert f"{HOST}{int(crawl.day) - 9}" in crawl.fetched()


def test_looks_that_a_silent_host_cannot_be_asked_for_leave_the_budget_to_others() -> None:
    def web(url: str, day: float) -> Answer:
        if url.endswith("robots.txt"):
            return MISSING
        if day >= 0.5 and url.startswith(HOST):
            return Answer(0, 0, 0)
        links = [f"{host}{n}" for host in (HOST, "http://b.cz/") for n in range(60)] if url == HOST else []
        return page(*links) if day < 0.5 else SAME

    crawl = lived(web, 3, "50")
    by_host = Counter(url.startswith(HOST) for url, day in crawl.revisits if day >= 1)
    assert 2 <= by_host[True] <= 2 * 25, "its pauses grow to an hour"
    assert by_host[False] > 2 * 20


def test_after_a_clock_that_was_ahead_the_recrawl_goes_on_from_the_day_it_had_reached() -> None:
    crawl = lived(lambda url, day: page() if day < 0.5 else SAME, 4, now=1e9, recrawl="8d")
    crawl.restart(-400 * DAY_S)
    assert crawl.day == pytest.approx(4, abs=0.5)
    crawl.live(5)
    assert {4, 5, 6, 7} <= {int(day) for day in crawl.revisits_at(HOST)}
    assert not crawl.frontier.recrawl.goes_on(crawl.now)


def test_304_to_a_request_that_sent_nothing_to_compare_says_nothing() -> None:
    crawl = lived(lambda url, day: page() if day < 0.001 else UNCHANGED, 5)
    assert crawl.revisits and not crawl.frontier.ledger.totals["revisits_304"]
    assert crawl.frontier.recrawl.policy.rates.rate(crawl.host("a.cz").id, 0) == PRIOR_RATE, "nothing was learnt"


def test_a_sitemap_that_robots_txt_comes_to_name_is_found_by_revisits() -> None:
    def web(url: str, day: float) -> Answer:
        if url.endswith("robots.txt"):
            return robots(f"Sitemap: {HOST}sitemap.xml") if day > 1 else MISSING
        return page() if day < 0.5 or url != HOST else SAME

    assert HOST + "sitemap.xml" in lived(web, 4, sitemaps="on").fetched()


@pytest.mark.parametrize("payload", [b"feed", b"sitemap 1 50"])
def test_a_feed_or_sitemap_is_recrawled_also_where_a_redirect_leads_to_it_or_a_page_has_its_address(payload):
    url = HOST + "feed/"
    end = UrlEnd(
        url_key(7, url, b"anything"), url, Reason.SITEMAP.value, 0, 0, status=200, payload=b64encode(payload).decode()
    )
    (taken,), _ = pages_to_recrawl([(end, 0.0)], {}, {}, lambda time: 0.0)
    assert taken.kind == (FEED if payload == b"feed" else SITEMAP)
    page_end = end._replace(reason=Reason.KEPT.value, payload="")
    assert not pages_to_recrawl([(page_end, 0.0)], {}, {}, lambda time: 0.0)[0]


def test_few_pages_are_judged_for_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a sweep every quarter of an hour each revisit of the default budget cost 1,900 judgements."""
    frontier = Frontier(Options(recrawl="on", recrawl_requests=".05"))
    frontier.put_seed(HOST, 0.0)
    host = frontier.host("a.cz")
    recrawl = frontier.recrawl
    recrawl.begin(0.0)
    keys = range((host.id << 40) + 1, (host.id << 40) + 4001)
    recrawl.take_up([RecrawlPage(key, f"{HOST}{key}", -30.0, -1.0, Validators()) for key in keys], {}, {})
    judged: list[int] = []
    usual = recrawl.policy.worth

    def counted(tables: Tables, pages: Pages, now: float) -> Column:
        judged.append(len(pages.kind))
        return usual(tables, pages, now)

    monkeypatch.setattr(recrawl.policy, "worth", counted)
    for quarter in range(96):
        while recrawl.step(quarter * DAY_S / 96):
            pass
    assert recrawl.room(0.999) <= 200 / 96 + 1, "the budget of the day is used, 200 revisits"
    assert sum(judged) <= 200 * 250 + len(keys)


# -- what is stored

PAGES = st.builds(
    RecrawlPage, st.integers(-(2**63), 2**63 - 1), st.from_regex(r"http://a\.cz/[a-z]{0,9}", fullmatch=True),
    st.floats(-1e4, 1e4, width=32), st.floats(0, 1e4, width=32),
    st.builds(Validators, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.sampled_from([b"", b'W/"a-1"'])),
    st.integers(0, 3), st.sampled_from(Standing), st.floats(0, 1e4, width=32), st.integers(0, 6), st.integers(0, 255),
    st.booleans(),
)  # fmt: skip


@given(PAGES)
def test_a_page_comes_back_as_it_was(page: RecrawlPage) -> None:
    assert RecrawlPage.unpack(page.key, page.pack()) == page


@pytest.mark.parametrize("row", [b"", bytes(28), b"\xff" * 40])
def test_a_damaged_row_is_named(row: bytes) -> None:
    with pytest.raises(DamageError, match="recrawled pages is damaged"):
        RecrawlPage.unpack(1, row)


@given(st.lists(st.builds(Validators, st.integers(0, 9), st.integers(0, 9), st.binary(max_size=40)), max_size=5))
def test_validators_come_back(noted: list[Validators]) -> None:
    row = b"".join(one.pack() for one in noted)
    assert list(unpacked_validators(row)) == noted
    if noted:
        with pytest.raises(DamageError):
            list(unpacked_validators(row + b"\0"))


def test_blocks_hold_every_page_once_and_memory_is_small() -> None:
    columns = Columns()
    rng = np.random.default_rng(1)
    keys = [host << 40 | int(n) for host in range(1, 3000) for n in rng.integers(0, 1 << 40, rng.integers(1, 40))]
    pages = [RecrawlPage(key, "", 0.0, 0.0, Validators()) for key in rng.permutation(keys).tolist()]
    columns.add(pages[:30_000])
    columns.merge()
    columns.add(pages[30_000:])
    columns.merge()
    bounds = list(columns.blocks())
    assert bounds[0][0] == 0 and bounds[-1][1] == len(keys)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
    hosts = [set((columns.rows["key"][a:b] >> np.uint64(40)).tolist()) for a, b in bounds]
    assert sum(map(len, hosts)) == len(set().union(*hosts))
    assert columns.rows.itemsize <= 24
    assert [columns.find(key) is not None for key in (keys[0], keys[-1], 5)] == [True, True, False]
