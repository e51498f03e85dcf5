"""Redirects are followed, with the cookies that they set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import VirtualCrawl, page, to

from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.frontier import Frontier, redirects
from spiderling.frontier.hosts import HostState, YieldAccount
from spiderling.frontier.redirects import MAX_COOKIE_BYTES, MAX_COOKIES, MAX_REDIRECTS, Chain
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.sqlite import SqliteStore

A = "http://a.cz/"
SPELLED = f"{A}?utm_source=x"
CHAIN = [f"{A}{number}" for number in range(8)]
REDIRECTS = [to(following) for following in CHAIN[1:]]
LOOP, KEPT = {Reason.REDIRECT_LOOP: 1}, {Reason.KEPT: 1}
WEBS = {
    "scheme and www of one host are not seen": (
        {A: to("https://a.cz/"), "https://a.cz/": to("https://www.a.cz/"), "https://www.a.cz/": page()},
        3, {Reason.REDIRECTED: 2, Reason.KEPT: 1},
    ),
    "a server that insists on what the canonical form leaves out gets it once": (
        {f"{A}?sid=1": to(f"{SPELLED}&sid=1"), f"{SPELLED}&sid=1": page()}, 2, KEPT
    ),
    **{f"its own URL twice is a loop: {again}": ({A: to(SPELLED), SPELLED: to(again)}, 2, LOOP)
       for again in (SPELLED, f"{A}?utm_source=y", A)},
    **{f"to itself it is a loop at once: {same}": ({A: to(same)}, 1, LOOP)
       for same in (A, "http://a.cz", "http://A.cz:80/#top", "http://a.cz/./")},
    "a chain of the longest length arrives": (
        dict(zip(CHAIN, [*REDIRECTS[:MAX_REDIRECTS], page()], strict=False)), MAX_REDIRECTS + 1,
        {Reason.REDIRECTED: MAX_REDIRECTS, Reason.KEPT: 1},
    ),
    "longer ones are loops": (
        dict(zip(CHAIN, REDIRECTS, strict=False)), MAX_REDIRECTS + 1,
        {Reason.REDIRECTED: MAX_REDIRECTS, Reason.REDIRECT_LOOP: 1},
    ),
    "a circle of two ends as seen": ({CHAIN[1]: to(CHAIN[2]), CHAIN[2]: to(CHAIN[1])}, 2, {Reason.REDIRECTED: 2}),
}  # fmt: skip
"""A web, how many of its URLs are fetched when its first is the seed, and how they end."""


@pytest.mark.parametrize("name", WEBS)
def test_redirects_are_followed_so_far(name: str) -> None:
    web, number, ends = WEBS[name]
    crawl = VirtualCrawl(web).run(next(iter(web)))
    assert (crawl.fetched(), crawl.ends) == (list(web)[:number], ends)
    assert crawl.mentions == ({Reason.SEEN: 1} if "circle" in name else {})
    assert len(crawl.frontier.hosts) == 1
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


@pytest.mark.parametrize(
    ("location", "mention"),
    [("javascript:void(0)", Reason.BAD_URL), (f"{A}film.avi", Reason.OUT_OF_SCOPE), ("http://[::", Reason.BAD_URL)],
)
def test_target_that_is_refused(location: str, mention: Reason) -> None:
    crawl = VirtualCrawl({A: to(location)}).run(A)
    assert crawl.ends == {Reason.REDIRECTED: 1}
    assert crawl.mentions == {mention: 1}


def test_target_on_another_host_keeps_the_distance_and_what_redirects_is_no_page_though_its_body_counts() -> None:
    web = {A: to("http://b.cz/", body_bytes=300), "http://b.cz/": page("http://c.cz/", body_bytes=40, kept_bytes=7)}
    crawl = VirtualCrawl(web).run(A)
    assert crawl.distances == {"a.cz": 0, "b.cz": 0, "c.cz": 1}
    assert crawl.host("a.cz").account == YieldAccount(pages=0, downloaded_bytes=300, kept_bytes=0)
    assert crawl.host("b.cz").account == YieldAccount(pages=1, downloaded_bytes=40, kept_bytes=7)


def test_redirect_of_a_subclass_request_takes_its_payload_along() -> None:
    login, target = f"{A}login", f"{A}in"
    frontier = VirtualCrawl({}).frontier
    frontier.put_request(login, b"payload", b"POST", None, 0.0)
    frontier.put_seed(target, 0.0)
    frontier.resolved("a.cz", ("10.0.0.1",), 900.0, 0.0)
    frontier.robots_answered(frontier.take(0.0), FileAnswer(404), 0.0)
    taken = []
    for now, url, more in (
        (5.0, target, {}), (10.0, login, {"redirect_to": target}), (15.0, target, {}),  # seeds come first
    ):  # fmt: skip
        fetch = frontier.take(now)
        assert fetch.url == url
        taken.append(fetch.payload)
        reason = Reason.REDIRECTED if more else Reason.KEPT
        frontier.report(Outcome(fetch.id, url, reason, 302 if more else 200, **more), now)
    assert taken == [None, b"payload", b"payload"], "the plain page of this URL was another one"


def test_own_url_of_a_host_that_was_closed_meanwhile_ends() -> None:
    crawl = VirtualCrawl({A: to(f"{A}?utm_id=1", transit_s=9.0)}).run(A, until=1006.0)
    assert crawl.host("a.cz").in_transit == 1
    crawl.frontier.host_closing.close_host(crawl.host("a.cz"), HostState.BLOCKED)
    assert crawl.run().ends == {Reason.HOST_BLOCKED: 1}


Step = tuple[str, tuple[bytes, ...]]  # a redirect's target and its cookies; no target: a page


def at(url: str) -> CanonicalUrl:
    target = canonicalize(url)
    assert target is not None
    return target


def asked(answer: dict[str, list[Step]], *seeds: str) -> tuple[list[tuple[str, bytes]], dict[Reason, int]]:
    """(URL, Cookie) of each request of a crawl, and how many URLs ended how; each URL gives its steps, then a page."""
    frontier = Frontier(Options(optouts="tdm-file=ignore,ai-txt=ignore"), lambda address: True, SqliteStore())
    for seed in seeds:
        frontier.put_seed(seed, 0.0)
    now = 0.0
    found = []
    ends: dict[Reason, int] = {}
    for _ in range(200):
        now += 10.0
        for number, name in enumerate(frontier.names_wanted()):
            frontier.resolved(name, (f"10.0.0.{number}",), 9e9, now)
        fetch = frontier.take(now)
        if fetch is not None and fetch.robots is not None:
            assert not fetch.cookies
            frontier.robots_answered(fetch, FileAnswer(404), now)
        elif fetch is not None:
            found.append((fetch.url, fetch.cookies))
            target, cookies = answer[fetch.url].pop(0) if answer.get(fetch.url) else ("", ())
            outcome = Outcome(fetch.id, fetch.url, Reason.KEPT, 200)
            if target:
                outcome = Outcome(fetch.id, fetch.url, Reason.REDIRECTED, 302, redirect_to=target, set_cookies=cookies)
            end = frontier.report(outcome, now).end
            if end is not None:
                ends[end] = ends.get(end, 0) + 1
    assert frontier.ledger.balance.error == 0 and not frontier.ledger.waiting
    return found, ends


SET = (b"a=1; path=/",)


def test_a_page_that_redirects_to_itself_with_a_cookie_is_asked_once_more():
    """It ended as redirect-loop: session sniffers, ASP.NET."""
    assert asked({A: [(A, SET)]}, A) == ([(A, b""), (A, b"a=1")], {Reason.KEPT: 1})
    assert asked({A: [(A, SET), (A, SET)]}, A) == ([(A, b""), (A, b"a=1")], {Reason.REDIRECT_LOOP: 1})
    assert asked({A: [(A, ())]}, A) == ([(A, b"")], {Reason.REDIRECT_LOOP: 1})
    assert asked({A: [(SPELLED, SET)]}, A) == ([(A, b""), (SPELLED, b"a=1")], KEPT)


def test_a_page_behind_another_that_sets_a_cookie_is_asked_once_more():
    """It was lost, since its own URL had been seen: consent walls."""
    web = {A: [(A + "set", ())], A + "set": [(A, SET)]}
    assert asked(web, A) == ([(A, b""), (A + "set", b""), (A, b"a=1")], {Reason.REDIRECTED: 2, Reason.KEPT: 1})
    endless = {A: [(A + "set", SET)] * 9, A + "set": [(A, SET)] * 9}
    requests, ends = asked(endless, A)
    assert len(requests) == 4 and Reason.KEPT not in ends


def test_a_target_that_a_page_of_the_chain_did_not_pass_is_asked_once_in_all():
    """Most sites give a session at their first redirect; that alone is no reason to ask twice."""
    web = {A: [(A + "cs", SET)]}
    assert asked(web, A, A + "cs")[0] in ([(A, b""), (A + "cs", b"")], [(A + "cs", b""), (A, b"")])


@pytest.mark.parametrize("other", ["http://b.cz/", "http://www.a.cz/", "http://sub.a.cz/", "http://a.cz.evil.cz/"])
def test_no_cookie_goes_to_another_name_or_another_chain(other):
    web = {A: [(other, (b"a=1; Domain=a.cz; path=/", b"b=2; Domain=.cz"))], other: [(A + "x", (b"c=3",))]}
    requests, _ = asked(web, A)
    assert [url for url, _ in requests] == [A, other, A + "x"]
    assert not any(cookies for _, cookies in requests)
    again = {A: [(A, SET)], A + "later": [(A + "x", ())]}
    requests, _ = asked(again, A, A + "later")
    assert dict(requests) == {A: b"a=1", A + "later": b"", A + "x": b""}, "an ended chain is forgotten"


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        ([b"a=1", b"b=2; Path=/"], b"a=1; b=2"),
        ([b"a=1; path=/", b"a=2; path=/d"], b"a=2"),
        ([b"a=1; path=/", b"a=; path=/; expires=Thu, 01-Jan-1970 00:00:01 GMT"], b""),
        ([b"a=1", b"a=x; Max-Age=0"], b""),
        ([b"a=1", b"a=x;max-age = -5; path=/"], b""),
        ([b"a=1; path=/; Expires=Wed, 09 Jun 2100 10:18:14 GMT; HttpOnly; SameSite=Lax"], b"a=1"),
        ([b"a=1; Max-Age=09; expires=never"], b"a=1"),
        ([b'a="x y=z"; path=/', b"b="], b'a="x y=z"; b='),
        ([b"a=1; path=/; Secure", b"b=1;secure;path=/", b"c=1; path=/secure"], b"c=1"),
        ([b"nothing", b"=1; path=/", b"a\x01=1; path=/", b"a=1\n2; path=/", b""], b""),
        ([b"a=" + b"x" * MAX_COOKIE_BYTES], b""),
        ([b"%d=1" % number for number in range(99)], b"; ".join(b"%d=1" % n for n in range(MAX_COOKIES))),
    ],
)
def test_what_is_kept_and_sent(lines, sent):
    assert Chain({}, ()).beyond(at(A), lines).header(at(A)) == sent


def test_a_secure_cookie_comes_from_https_and_goes_there():
    chain = Chain({}, ()).beyond(at("https://h.test/"), [b"a=1; Secure", b"b=2"])
    assert chain.header(at("https://h.test/")) == b"a=1; b=2"
    assert chain.header(at("http://h.test/")) == b"b=2"


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"a=b; expires=x", b"a=b; max-age=9e99"])))
def test_whatever_a_server_sets_the_header_is_one_line(lines):
    sent = Chain({}, ()).beyond(at(A), lines).header(at(A))
    assert not {*b"\r\n\0"} & {*sent}


def test_chains_in_work_are_bounded(monkeypatch):
    monkeypatch.setattr(redirects, "MAX_CHAINS", 1)
    requests, _ = asked({A: [(A + "x", SET)], A + "y": [(A + "z", SET)]}, A, A + "y")
    in_order = [(A, b""), (A + "y", b""), (A + "x", b""), (A + "z", b"a=1")]
    assert requests == in_order, "the oldest chain goes on without its cookies"
