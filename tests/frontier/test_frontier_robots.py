"""robots.txt: fetched before anything else of an origin, followed, refetched, and survived (RFC 9309)."""

from __future__ import annotations

import hashlib
import zlib
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import DAY_S, Answer, Resolution, VirtualCrawl, page, robots, to

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.frontier import intervals, known_files
from spiderling.frontier.hosts import HostState, YieldAccount
from spiderling.frontier.known_files import Recent
from spiderling.frontier.robots import Robots, RobotsVerdict
from spiderling.frontier.site_files import MAX_FILE_BYTES, FileAnswer, RobotsTxt, Rules, SiteFile, parse_rules
from spiderling.frontier.storage.protocol import RobotsRecord

FORBID_ALL = robots("User-agent: *\nDisallow: /\n")
BROKEN = Answer(status=503)
ALONE = Options(optouts="tdm-file=ignore,ai-txt=ignore")


def noted(body: bytes, status: int = 200, now: float = 0.0) -> Robots:
    """What is known when a robots.txt of a.cz has come."""
    rules = Robots(ALONE)
    rules.note_answer("http://a.cz", FileAnswer(status, body), now)
    return rules


@pytest.mark.parametrize(
    ("verdict", "statuses"),
    [
        (RobotsVerdict.FORBIDDEN, (200, 206)),
        (RobotsVerdict.ALLOWED, (302, 400, 404, 410)),
        (RobotsVerdict.PAUSED, (429, 500, 503, 999, 101)),
    ],
)
def test_status_decides(verdict: RobotsVerdict, statuses: tuple[int, ...]) -> None:
    for status in statuses:
        rules = noted(FORBID_ALL.body, status)
        assert rules.judge("http://a.cz", "http://a.cz/x", 1.0) is verdict, status
        assert rules.judge("http://b.cz", "http://b.cz/x", 1.0) is RobotsVerdict.MISSING


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (b"", RobotsVerdict.ALLOWED),
        (b"User-agent: *\nDisallow: /p", RobotsVerdict.FORBIDDEN),
        (b"\xff\xfe\x00 rubbish \x00\nUser-agent: *\nDisallow: /", RobotsVerdict.FORBIDDEN),
        (b"<html>not found</html>", RobotsVerdict.ALLOWED),
        (b"#" * MAX_FILE_BYTES + b"\nUser-agent: *\nDisallow: /", RobotsVerdict.ALLOWED),
        (b"#" * (MAX_FILE_BYTES - 100) + b"\nUser-agent: *\nDisallow: /", RobotsVerdict.FORBIDDEN),
    ],
)
def test_a_file_is_read_to_its_limit_and_rubbish_is_none(body: bytes, verdict: RobotsVerdict) -> None:
    assert noted(body).judge("http://a.cz", "http://a.cz/p/x.html", 1.0) is verdict


DELAYS_S = {
    "Crawl-delay: 7": 7.0, "Crawl-delay: 0.5": 0.5, "Crawl-delay: 10s": 10.0, "Crawl-delay: 1,5": 1.5,
    "crawl delay : 2.25 seconds # please": 2.25, "Crawl-delay:\t3 sec": 3.0, "Crawl-delay: 7\0": 7.0,
    "Crawl-delay: 1e3": 1.0, "Crawl-delay: " + "9" * 400: 0.0, "Request-rate: 1/1m": 60.0, "Request-rate: 2/1s": 0.5,
    "Crawl-delay: -3": 0.0, "Crawl-delay: nan": 0.0, "Crawl-delay: many": 0.0, "Request-rate: 0/5": 0.0,
    "Request-rate: 1/" + "9" * 400 + "d": 1e9,
}  # fmt: skip


@pytest.mark.parametrize("line", DELAYS_S)
def test_crawl_delay(line: str) -> None:
    rules = noted(f"User-agent: *\n{line}\n".encode())
    assert rules.crawl_delay("http://a.cz") == DELAYS_S[line]
    assert rules.crawl_delay("http://unknown.cz") == 0.0


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be", "utf-8"])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8"])
def test_rules_count_in_each_encoding_that_editors_write(codec: str, mark: str) -> None:
    """A robots.txt in UTF-16 was read as one without rules, and so was one with NULs; one without a mark is ASCII."""
    text = "\ufeff" * (codec == mark) + "User-agent: *\r\nDisallow: /p\0\r\nCrawl-delay: 4\r\n"
    rules = noted(text.encode(codec))
    assert rules.judge("http://a.cz", "http://a.cz/p/x", 1.0) is RobotsVerdict.FORBIDDEN
    assert rules.judge("http://a.cz", "http://a.cz/x", 1.0) is RobotsVerdict.ALLOWED
    assert rules.crawl_delay("http://a.cz") == 4.0


def test_rules_that_came_parsed_are_not_parsed_again() -> None:
    rules = Robots(ALONE)
    rules.note_answer("http://a.cz", FileAnswer(200, FORBID_ALL.body, rules=RobotsTxt(b"", ALONE)), 0.0)
    assert rules.judge("http://a.cz", "http://a.cz/x", 1.0) is RobotsVerdict.ALLOWED


def test_each_origin_has_its_own_file_fetched_first() -> None:
    web = {"http://a.cz/": page("https://a.cz/x", "http://a.cz/y"), "https://a.cz/x": page(), "http://a.cz/y": page()}
    crawl = VirtualCrawl({**web, "https://a.cz/robots.txt": FORBID_ALL}).run("http://a.cz/")
    assert crawl.robots_fetched() == ["http://a.cz/robots.txt", "https://a.cz/robots.txt"]
    assert crawl.ends == {Reason.KEPT: 2, Reason.ROBOTS_FORBIDDEN: 1}
    assert crawl.frontier.ledger.discovered == 3, "a robots.txt is no URL"
    assert crawl.frontier.ledger.totals["robots"] == 2


def test_forbidden_queue_costs_no_interval_and_no_request() -> None:
    seeds = [f"http://a.cz/no/{number}" for number in range(2000)] + ["http://a.cz/yes"]
    crawl = VirtualCrawl({"http://a.cz/yes": page(), "http://a.cz/robots.txt": robots("User-agent: *\nDisallow: /no")})
    crawl.run(*seeds)
    assert crawl.ends == {Reason.ROBOTS_FORBIDDEN: 2000, Reason.KEPT: 1}
    assert len(crawl.starts) == 2
    assert crawl.now - 1000 < 6.0


def test_no_call_of_take_goes_through_a_whole_long_queue() -> None:
    """A queue of 20000 forbidden URLs must not stop the others for seconds."""
    frontier = VirtualCrawl({}).frontier
    for number in range(1200):
        frontier.put_seed(f"http://a.cz/{number}", 0.0)
    frontier.resolved("a.cz", ("10.0.0.1",), 900.0, 0.0)
    frontier.robots_answered(frontier.take(0.0), FileAnswer(200, FORBID_ALL.body), 0.1)
    waiting = []
    while (due := frontier.next_due()) is not None:
        assert frontier.take(due) is None
        waiting.append(frontier.ledger.waiting)
    assert waiting == [*range(1100, -1, -100), 0]


@pytest.mark.parametrize(
    ("location", "asked", "end"),
    [
        ("http://b.cz:25/", 1, Reason.KEPT),  # no web server's port: not followed
        ("mailto:me", 1, Reason.KEPT),
        ("http://b.cz/back", 6, Reason.KEPT),  # after five redirects it counts as missing (RFC 9309, 2.3.1.2)
        ("http://dead.cz/robots.txt", 3, Reason.ROBOTS_UNREACHABLE),  # tried as often as the retries allow
    ],
)
def test_robots_redirected_to_where_nothing_is(location: str, asked: int, end: Reason) -> None:
    web = {"http://a.cz/": page(), "http://a.cz/robots.txt": to(location)}
    web["http://b.cz/back"] = to("http://a.cz/robots.txt")
    crawl = VirtualCrawl(web, {"dead.cz": Resolution(permanent=True)}).run("http://a.cz/")
    assert sum(start.url != "http://a.cz/" for start in crawl.starts) == asked
    assert crawl.ends == {end: 1}


@pytest.mark.parametrize(
    "target", ["http://b.cz/robots.txt", "http://b.cz:8081/deep/r.txt?x", "https://a.cz/robots.txt"]
)
def test_redirected_robots_is_asked_of_the_other_host(target: str) -> None:
    web = {"http://a.cz/robots.txt": to(target), target: FORBID_ALL, "http://a.cz/": page()}
    crawl = VirtualCrawl(web).run("http://a.cz/")
    assert [start.url for start in crawl.starts] == ["http://a.cz/robots.txt", target]
    assert crawl.ends == {Reason.ROBOTS_FORBIDDEN: 1}, "the rules of the target hold for the origin that redirects"
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_redirected_robots_waits_for_the_politeness_of_the_other_host() -> None:
    web = {"http://a.cz/robots.txt": to("http://b.cz/r.txt"), "http://b.cz/r.txt": robots(""), "http://a.cz/": page()}
    web |= {f"http://b.cz/{n}": page() for n in range(5)}
    crawl = VirtualCrawl(web).run("http://b.cz/0", "http://b.cz/1", "http://b.cz/2", "http://a.cz/")
    assert crawl.ends == {Reason.KEPT: 4}
    assert crawl.robots_fetched() == ["http://b.cz/robots.txt", "http://a.cz/robots.txt"]
    assert [start.url for start in crawl.starts].index("http://b.cz/r.txt") == 2, "before the pages of that host"
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_crawl_delay_behind_a_redirect_is_kept_over_a_restart() -> None:
    web = {
        "http://a.cz/robots.txt": to("http://b.cz/r.txt"),
        "http://b.cz/r.txt": robots("User-agent: *\nCrawl-delay: 50"),
        **{f"http://a.cz/{n}": page() for n in range(5)},
    }
    crawl = VirtualCrawl(web).run("http://a.cz/1", until=1000.3)
    assert {row.name: row.crawl_delay_s for row in crawl.frontier.drain(crawl.now).hosts} == {"a.cz": 0.0, "b.cz": 0.0}
    crawl.run(until=1010.0)
    assert crawl.fetched("a.cz") == []
    assert {row.name: row.crawl_delay_s for row in crawl.frontier.drain(crawl.now).hosts}["a.cz"] == 50.0


def test_failing_robots_pauses_then_ends_the_urls_and_is_tried_again_the_next_day() -> None:
    web = {"http://a.cz/robots.txt": [BROKEN] * 3 + [robots("")], "http://a.cz/b": page()}
    crawl = VirtualCrawl(web).run("http://a.cz/", "http://a.cz/a")
    assert [round(pause) for pause in crawl.pauses(pages_only=False)] == [60, 120]
    assert crawl.run("http://a.cz/c").ends == {Reason.ROBOTS_UNREACHABLE: 3}
    assert crawl.fetched() == []
    crawl.now += DAY_S
    assert crawl.run("http://a.cz/b").ends == {Reason.ROBOTS_UNREACHABLE: 3, Reason.KEPT: 1}


def test_robots_that_comes_back_lets_the_host_go_on() -> None:
    web = {"http://a.cz/robots.txt": [BROKEN, Answer(status=0), robots("")], "http://a.cz/": page()}
    assert VirtualCrawl(web).run("http://a.cz/").ends == {Reason.KEPT: 1}


def test_pauses_of_robots_stay_under_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MAX_PAUSE_S", 600.0)
    crawl = VirtualCrawl({"http://a.cz/robots.txt": BROKEN}, retries=12).run("http://a.cz/")
    assert max(crawl.pauses(pages_only=False)) <= 601
    assert crawl.ends == {Reason.ROBOTS_UNREACHABLE: 1}


def test_old_robots_is_fetched_again_and_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_files, "MAX_AGE_S", 100.0)
    web = {"http://a.cz/robots.txt": [robots(""), FORBID_ALL], **{f"http://a.cz/{n}": page() for n in range(40)}}
    crawl = VirtualCrawl(web).run(*(url for url in web if "robots" not in url))
    assert crawl.robots_fetched() == ["http://a.cz/robots.txt"] * 2
    assert crawl.ends == {Reason.KEPT: 20, Reason.ROBOTS_FORBIDDEN: 20}
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_too_long_crawl_delay_ends_the_host_which_keeps_it_when_it_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_files, "MAX_AGE_S", 600.0)
    web = {
        "http://a.cz/robots.txt": robots("User-agent: *\nCrawl-delay: 121"),
        **{f"http://a.cz/{n}": page() for n in "ab"},
    }
    crawl = VirtualCrawl(web).run("http://a.cz/a", "http://a.cz/none")
    assert crawl.ends == {Reason.CRAWL_DELAY: 2}
    assert crawl.fetched() == []
    host = crawl.host("a.cz")
    assert host.state is HostState.FORBIDDEN
    crawl.frontier.host_closing.reopen_host(host, crawl.now)
    assert crawl.run("http://a.cz/b").ends == {Reason.KEPT: 2, Reason.HTTP_ERROR: 1}
    assert crawl.gaps("host")["a.cz"] >= 121 - 1e-6


def test_bytes_of_robots_count_for_the_host_that_was_asked() -> None:
    web = {"http://a.cz/robots.txt": to("http://b.cz/r.txt", body=b"x" * 70), "http://b.cz/r.txt": robots("#" * 900)}
    crawl = VirtualCrawl({**web, "http://a.cz/": page(body_bytes=5, kept_bytes=0)}).run("http://a.cz/")
    assert crawl.host("a.cz").account == YieldAccount(pages=1, downloaded_bytes=75)
    assert crawl.host("b.cz").account == YieldAccount(pages=0, downloaded_bytes=900)
    assert crawl.frontier.ledger.totals["downloaded_bytes"] == 975


def test_host_that_waits_for_a_closed_host_is_not_forgotten() -> None:
    """a.cz waits for a robots.txt that is queued at b.cz; then b.cz is closed."""
    web = {"http://a.cz/robots.txt": to("http://b.cz/robots.txt"), "http://b.cz/": page(transit_s=100.0)}
    crawl = VirtualCrawl({**web, "http://a.cz/": page()}).run("http://b.cz/", until=1010.0)
    crawl.run("http://a.cz/", until=1020.0)
    assert crawl.host("b.cz").robots_requests
    crawl.frontier.host_closing.close_host(crawl.host("b.cz"), HostState.BLOCKED)
    assert crawl.run().frontier.is_finished
    assert crawl.frontier.ledger.ends[Reason.ROBOTS_UNREACHABLE] == 1


@pytest.mark.parametrize("places", [1, 2])
def test_host_that_is_asked_for_another_one_needs_no_free_place(places: int) -> None:
    """Those who wait for its answer keep theirs: all places were taken, and the crawl did not go on."""
    web = {f"http://{name}.cz/robots.txt": to(f"http://{name}.b.cz/robots.txt") for name in "acd"}
    web["http://e.cz/robots.txt"] = robots("License: http://l.cz/l.xml")
    seeds = [f"http://{name}.cz/" for name in "acde"]
    crawl = VirtualCrawl(web | dict.fromkeys(seeds, page()), active_hosts=places, purpose="research").run(*seeds)
    assert crawl.ends == {Reason.KEPT: 4}


def test_host_whose_robots_txt_fails_gives_its_place_to_another_one() -> None:
    """It kept it through all of its pauses, for hours."""
    web = {"http://a.cz/robots.txt": BROKEN, "http://a.cz/": page(), "http://b.cz/": page()}
    crawl = VirtualCrawl(web, active_hosts=1, retries=9).run("http://a.cz/", "http://b.cz/")
    assert crawl.starts[-1].time > 10_000
    assert next(start.time for start in crawl.starts if start.url == "http://b.cz/") < 1300


def test_reopened_host_asks_for_its_robots_again() -> None:
    """Its request for robots.txt was queued, handed out or given back when it was closed."""
    for until in (1000.0, 1000.06, 1000.3):
        crawl = VirtualCrawl({"http://a.cz/": page()}, start_delay_s=lambda fetch: 0.1).run("http://a.cz/", until=until)
        host = crawl.host("a.cz")
        crawl.frontier.host_closing.close_host(host, HostState.BLOCKED)
        crawl.run(until=until + 50)
        crawl.frontier.host_closing.reopen_host(host, crawl.now)
        crawl.run()
        assert crawl.ends == {Reason.KEPT: 1}, until


def test_a_host_that_left_memory_while_its_robots_txt_was_awaited_goes_on() -> None:
    """It waits for b.cz, to which its robots.txt leads; the answer once went to a record that was out of use."""
    web = {"http://a.cz/robots.txt": to("http://b.cz/robots.txt"), "http://b.cz/": page(transit_s=100.0)}
    crawl = VirtualCrawl({**web, "http://a.cz/": page()}).run("http://b.cz/", until=1010.0)
    crawl.run("http://a.cz/", until=1020.0)
    crawl.frontier.host_closing.close_host(crawl.host("a.cz"), HostState.BLOCKED)
    crawl.commit()
    crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now)
    assert crawl.run().ends == {Reason.KEPT: 2}


def test_crawl_delay_that_comes_while_the_host_is_closed_is_kept_when_it_is_reopened() -> None:
    pages = [f"http://a.cz/{number}" for number in range(3)]
    rules = robots("User-agent: *\nCrawl-delay: 30\n", transit_s=10.0)
    crawl = VirtualCrawl({"http://a.cz/robots.txt": rules, **dict.fromkeys(pages, page())}).run(*pages, until=1005.0)
    crawl.frontier.host_closing.close_host(crawl.host("a.cz"), HostState.BLOCKED)
    crawl.run(until=1100.0)
    crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now)
    assert crawl.run().pauses() == pytest.approx([30.0, 30.0])


A_PAGE = ("http://a.cz", "http://a.cz/x")


def known(body: bytes = b"", now: float = 100_000.0) -> Robots:
    """An origin whose page was judged: all its files are current."""
    rules = noted(body, now=now)
    assert rules.judge(*A_PAGE, now + 1) is not RobotsVerdict.MISSING
    return rules


def test_files_that_were_current_are_looked_at_again_when_the_clock_is_set_back_or_robots_txt_is_to_come_first() -> (
    None
):
    rules = known()
    assert rules.judge(*A_PAGE, 10.0) is RobotsVerdict.MISSING
    rules.expire(A_PAGE[0], 100_002.0)
    assert rules.judge(*A_PAGE, 100_003.0) is RobotsVerdict.MISSING


def test_files_that_were_current_are_looked_at_again_when_one_of_them_changes() -> None:
    rules = known(FORBID_ALL.body)
    assert rules.judge(*A_PAGE, 100_002.0) is RobotsVerdict.FORBIDDEN
    rules.note_answer(A_PAGE[0], FileAnswer(404), 100_003.0)
    for _ in range(2):
        assert rules.judge(*A_PAGE, 100_004.0) is RobotsVerdict.ALLOWED, "its rules are gone"
    rules.note_answer(A_PAGE[0], FileAnswer(403), 100_005.0)
    for now in (100_006.0, 100_004.0):  # the clock was set back in between
        assert rules.judge(*A_PAGE, now) is RobotsVerdict.MISSING, "it refuses us, and has to be asked again"


def test_files_that_were_current_are_looked_at_again_when_a_licence_expires_before_them() -> None:
    rules = Robots(ALONE)
    rules.note_answer("http://b.cz/l.xml", FileAnswer(404), 50_000.0, SiteFile.LICENCE)
    rules.note_answer(A_PAGE[0], FileAnswer(200, b"License: http://b.cz/l.xml"), 100_000.0)
    for now, missing in ((100_001.0, None), (50_000.0 + DAY_S, "http://b.cz/l.xml")):
        assert (rules.judge(*A_PAGE, now) is RobotsVerdict.MISSING) is (missing is not None)
        assert rules.missing(A_PAGE[0], now) == missing


def test_store_is_asked_only_for_what_it_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look-up makes the event loop wait for the thread that writes."""
    monkeypatch.setattr("spiderling.frontier.known_files.MAX_RECORDS", 2)
    asked: list[str] = []
    rules = Robots(ALONE, lambda key: asked.append(key))
    for number in range(3):
        assert rules.missing(f"http://h{number}.cz", 0.0) is not None
        rules.note_answer(f"http://h{number}.cz", FileAnswer(404, b""), 0.0)
    assert asked == []
    rules.files.records.drain()
    rules.files.records.committed()
    for _ in range(2):
        assert rules.files.records.get("http://h0.cz") is None
    assert asked == ["http://h0.cz"], "which it may have now, and is asked for once"


def wide(number: int) -> bytes:
    """A large file that says no to one path; hardly anything of it can be packed."""
    lines = (hashlib.sha256(b"%d %d" % (number, line)).hexdigest() for line in range(500))
    return b"User-agent: *\nDisallow: /x\n" + "".join(f"Disallow: /{line}\n" for line in lines).encode()


def test_large_files_are_not_all_kept_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser takes twenty times the size of its file: 4,096 files of 500 kB would take 40 GB."""
    monkeypatch.setattr("spiderling.frontier.known_files.MAX_PARSED_BYTES", 200_000)
    held = WeakSet[Rules]()

    def noted(file: SiteFile, body: bytes, options: Options) -> Rules:
        held.add(made := parse_rules(file, body, options))
        return made

    monkeypatch.setattr("spiderling.frontier.known_files.parse_rules", noted)
    rules = Robots(ALONE)
    for number in range(40):
        rules.note_answer(f"http://h{number}.cz", FileAnswer(200, wide(number)), 0.0)
        assert (len(held) - 1) * len(wide(number)) <= 200_000, "and the one that was just read"
    assert len(held) > 2
    for number in (*range(40), 0):
        origin = f"http://h{number}.cz"
        assert rules.judge(origin, f"{origin}/x", 1.0) is RobotsVerdict.FORBIDDEN
        assert rules.judge(origin, f"{origin}/y", 1.0) is RobotsVerdict.ALLOWED


def test_large_records_leave_memory_once_the_store_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number alone is no bound: one may be of 500 kB."""
    monkeypatch.setattr("spiderling.frontier.known_files.MAX_RECORD_BYTES", 100_000)
    store: dict[str, RobotsRecord] = {}
    rules = Robots(ALONE, store.get)
    for number in range(40):
        rules.note_answer(f"http://h{number}.cz", FileAnswer(200, wide(number)), 0.0)
        rules.files.records.committed()
        drained = rules.files.records.drain()
        assert rules.files.records.get(f"http://h{number}.cz"), "nobody else may have it yet"
        store |= drained
        rules.files.records.committed()
        assert rules.files.records.known.weight <= 100_000
    assert rules.judge("http://h0.cz", "http://h0.cz/x", 1.0) is RobotsVerdict.FORBIDDEN, "it comes from the store"


def test_a_stored_file_on_which_a_parser_of_ours_fails_is_reported_and_says_nothing(monkeypatch):
    """It was read without an error when it came, by the parser of an earlier version."""
    body = zlib.compress(b"Sitemap: http://a.cz/s.xml\nCrawl-delay: 9")
    stored = RobotsRecord("rules", 0.0, DAY_S, body=body)
    failed: list[str] = []
    rules = Robots(ALONE, lambda key: stored, lambda error, url: failed.append(url))
    rules.files.records.look_in_store()

    def fail(*values: object) -> Rules:
        raise RuntimeError

    monkeypatch.setattr("spiderling.frontier.known_files.parse_rules", fail)
    assert rules.sitemaps("http://a.cz") == []
    assert rules.crawl_delay("http://a.cz") == 0
    assert failed == ["http://a.cz", "http://a.cz"]


def test_who_was_asked_for_longest_ago_leaves_first_and_one_too_heavy_is_kept_alone() -> None:
    recent: Recent[int] = Recent(2, 100)

    def kept(**put: int) -> str:
        for key, weight in put.items():
            recent.put(key, weight, weight)
        return "".join(key for key in "abcdef" if recent.get(key) is not None)

    assert kept(a=10, b=10) == "ab"
    assert recent.get("a")
    assert kept(c=10) == "ac"
    assert kept(d=1000) == "d"
    assert kept(e=10) == "e"


@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 60))))
def test_bounds_hold_and_the_weight_is_that_of_what_is_kept(steps: list[tuple[str, int]]) -> None:
    recent, weights = Recent[int](4, 100), dict[str, int]()
    for key, weight in steps:
        recent.put(key, weight, weight)
        weights[key] = weight
        assert recent.get(key) == weight
        kept = [weights[name] for name in "abcdefg" if recent.get(name) is not None]
        assert recent.weight == sum(kept) <= 100
        assert len(recent) == len(kept) <= 4
