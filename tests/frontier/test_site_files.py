"""robots.txt group by group, tdmrep.json and ai.txt: what they say, when they are fetched, and what is kept of it."""

from __future__ import annotations

import json
import tracemalloc
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from virtual_crawl import DAY_S, Answer, VirtualCrawl, page, robots, to

from spiderling.base.opt_outs import MINING, TRAINING, PathPattern, Signal
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier.known_files import EMPTY, pack_body
from spiderling.frontier.robots import Robots, RobotsVerdict
from spiderling.frontier.site_files import AiTxt, FileAnswer, RobotsTxt, SiteFile, TdmRep, parse_rules
from spiderling.frontier.storage.protocol import ConsentRow

OPTIONS = Options()
TDM, AI = SiteFile.TDMREP.value, SiteFile.AI_TXT.value


def rules(text: str) -> RobotsTxt:
    return RobotsTxt(text.encode(), OPTIONS)


def said(file, path: str = "/") -> list[str]:
    return [f"{each}{'!' if each.refuses else ''}" for each in file.statements(f"http://a.cz{path}", path)]


def tdmrep(*listed: tuple) -> bytes:
    keys = ("location", "tdm-reservation", "tdm-policy")
    return json.dumps([dict(zip(keys, values, strict=False)) for values in listed]).encode()


# -- RFC 9309, clause by clause

TWO_GROUPS = (
    "User-agent: spiderling\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\nUser-agent: spiderling\nDisallow: /b"
)


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        # 2.2.1: the group of our token, whatever the case; else that of '*'; else no rules
        ("User-agent: SPIDERLING\nDisallow: /\n\nUser-agent: *\nAllow: /", "/", False),
        ("User-agent: spider\nAllow: /\n\nUser-agent: *\nDisallow: /", "/", False),
        ("User-agent: spider\nDisallow: /", "/", True),
        ("User-agent: spiderling-news\nDisallow: /", "/", True),
        ("User-agent: spiderling/2.0 (fast)\nDisallow: /\n\nUser-agent: *\nAllow: /", "/", False),
        ("User-agent: other\nDisallow: /", "/", True),
        # groups of the same token are one
        (TWO_GROUPS, "/b", False),
        (TWO_GROUPS, "/c", True),
        ("User-agent: other\nUser-agent: spiderling\nDisallow: /", "/", False),
        # rules before any group are no rules
        ("Disallow: /\nUser-agent: *\nAllow: /", "/x", True),
        # 2.2.2: the longest match, allow if equal, octets after percent-decoding
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nDisallow: /a/b\nAllow: /a/b", "/a/b", True),
        ("User-agent: *\nDisallow: /A", "/a", True),
        ("User-agent: *\nDisallow: /ž", "/%C5%BE", False),
        ("User-agent: *\nDisallow: /%C5%BE", "/%c5%be", False),
        ("User-agent: *\nDisallow: /%7Ejan", "/~jan", False),
        ("User-agent: *\nDisallow:", "/", True),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        # 2.2.3: special characters
        ("User-agent: *\nDisallow: /a # Allow: /a", "/a", False),
        ("User-agent: *\nDisallow: /*.php$", "/x.php?a", True),
        ("User-agent: *\nDisallow: /*.php$", "/x.php", False),
        ("User-agent: *\nDisallow: /a*z", "/abcz/q", False),
        # 2.2.4: other lines do not disturb a group
        ("User-agent: *\nSitemap: http://a.cz/s.xml\nDisallow: /", "/", False),
        ("User-agent: *\nNonsense\nMore: of it\nDisallow: /", "/", False),
        ("\ufeffUser-agent: *\r\nDisallow: /\r\n", "/", False),
        ("User-agent: *\rDisallow: /\r", "/", False),
        ("User-agent: a\rUser-agent: Spiderling/1.0\rDisallow: /\r", "/", False),
        ("User-agent: * (all of you)\nDisallow: /", "/", False),
        # as Protego takes it
        ("User-agent spiderling\nDisallow: /\nUser-agent: *\nAllow: /", "/", False),
        ("User-agent: *\nAllow: /\nUser-agent spiderling: what\nDisallow: /no", "/no", False),
    ],
)  # fmt: skip
def test_robots_rules(text, path, allowed):
    assert rules(text).allows(f"http://a.cz{path}") is allowed


def test_a_file_that_takes_long_to_match_forbids_everything():
    """28,000 rules with stars took 31 ms for each URL, 15 s for each look at a queue of them."""
    many = "".join(f"Disallow: *a*z{number}\n" for number in range(2001))
    assert not rules(f"User-agent: *\n{many}").allows("http://a.cz/")
    assert rules(f"User-agent: *\n{many[: len(many) // 2]}").allows("http://a.cz/")


def test_rules_for_thousands_of_agents_are_kept_once():
    """4,000 agents with 4,000 rules filled three gigabytes, from 120 kB."""
    agents = "".join(f"User-agent: x{'y' * (number % 50)}{number}\n" for number in range(1500))
    lines = "Disallow: /a\nContent-Usage: train-ai=n\nLicense: /l.xml\n" * 1500
    tracemalloc.start()
    try:
        file = rules(f"{agents}{lines}User-agent: spiderling\nDisallow: /no")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert file.allows("http://a.cz/a")
    assert not file.allows("http://a.cz/no")


def test_sitemaps_are_kept():
    file = rules("Sitemap: http://a.cz/1.xml\nUser-agent: *\nDisallow: /\nsitemap: /2.xml")
    assert file.sitemaps() == ["http://a.cz/1.xml", "/2.xml"]


STALE = {"http://a.cz/robots.txt": [robots("User-agent: *\nDisallow: /no"), Answer(status=500)]}


def test_last_copy_counts_while_no_newer_one_can_be_had():
    """RFC 9309, 2.4: not older than 24 hours "unless the robots.txt file is unreachable"."""
    web = {**STALE, **{f"http://a.cz/{name}": page() for name in "abc"}}
    crawl = VirtualCrawl(web).run("http://a.cz/a")
    crawl.now += DAY_S
    crawl.run("http://a.cz/b", "http://a.cz/no")
    assert crawl.ends == {Reason.KEPT: 2, Reason.ROBOTS_FORBIDDEN: 1}, "the rules of yesterday"
    assert len(crawl.robots_fetched()) == 4, "after the retries"
    crawl.now += 2 * 3600
    crawl.run("http://a.cz/c")
    assert len(crawl.robots_fetched()) == 5, "asked for again after an hour, without pauses"
    assert crawl.ends[Reason.KEPT] == 3
    crawl.now += 31 * DAY_S
    crawl.run("http://a.cz/d")
    assert crawl.ends[Reason.ROBOTS_UNREACHABLE] == 1, "a copy of a month ago counts no more"


def test_a_missing_file_counts_on_like_an_empty_one():
    web = {
        "http://a.cz/robots.txt": [Answer(status=404), Answer(status=0)],
        "http://a.cz/a": page(),
        "http://a.cz/b": page(),
    }
    crawl = VirtualCrawl(web).run("http://a.cz/a")
    crawl.now += DAY_S
    assert crawl.run("http://a.cz/b").ends == {Reason.KEPT: 2}


# -- usage preferences in robots.txt

SIGNALS = """
User-agent: *
Content-Signal: search=yes,ai-train=no
Content-Usage: train-ai=n
Content-Usage: /ok/ train-ai=y
Content-Usage: /ok/not/\ttrain-ai=n
Allow: /

User-agent: other
Content-Signal: search=no
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/", ["content-usage:train-ai=n!"]),
        ("/ok/x", ["content-usage:train-ai=y"]),
        ("/ok/not/x", ["content-usage:train-ai=n!"]),
    ],
)
def test_the_longest_path_says_how_it_may_be_used(path, found):
    assert said(rules(SIGNALS), path) == ["content-signal:search=yes", "content-signal:ai-train=no!", *found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("User-agent: spiderling\nAllow: /\n\nUser-agent: *\nContent-Signal: ai-train=no", []),
        ("User-agent: a\nUser-agent: spiderling\nContent-Signal: ai-train=no", ["content-signal:ai-train=no!"]),
        ("Content-Signal: ai-train=no\n\nUser-agent: spiderling\nAllow: /", ["content-signal:ai-train=no!"]),
        ("User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: train-ai=y",
         ["content-usage:train-ai=n!", "content-usage:train-ai=y"]),
        ("User-agent: *\ncontent-signal : ai-train=no # really", ["content-signal:ai-train=no!"]),
        ("User-agent: *\nContent-Signal: perhaps", []),
    ],
)  # fmt: skip
def test_usage_lines_stand_in_groups(text, found):
    assert said(rules(text)) == found


def test_of_thousands_of_preferences_those_that_refuse_are_kept():
    """Each document keeps what is said of it: 60,000 preferences in a file of 360 kB were a megabyte in each."""
    line = "Content-Usage: " + ",".join(f"x{number}=n" for number in range(60))
    found = said(rules(f"User-agent: *\n{f'{line}{chr(10)}' * 900}Content-Usage: train-ai=n\n"))
    assert len(found) <= 50
    assert found[0] == "content-usage:train-ai=n!"


def test_a_crawler_for_training_may_have_a_digit_in_its_name():
    assert said(rules("User-agent: AI2Bot\nDisallow: /")) == ["ai-agents:AI2Bot!"]


def test_crawlers_for_training_that_are_kept_out():
    text = "User-agent: GPTBot\nUser-agent: ccbot\nDisallow: /no\n\nUser-agent: Googlebot\nDisallow: /"
    assert said(rules(text), "/no") == ["ai-agents:GPTBot!", "ai-agents:CCBot!"]
    assert said(rules(text), "/yes") == []
    everybody = "User-agent: *\nDisallow: /\n\nUser-agent: spiderling\nAllow: /"
    assert said(rules(everybody)) == [], "a rule for all is none about training"


# -- tdmrep.json and ai.txt


@pytest.mark.parametrize(
    ("listed", "path", "found"),
    [
        ([("/", 1)], "/x", ["tdm-file:1!"]),
        ([("/", 1, "https://a.cz/p")], "/x", ["tdm-file:1=https://a.cz/p!"]),
        ([("/a/", 0), ("/", 1)], "/a/x", ["tdm-file:0"]),
        ([("/", 1), ("/a/", 0)], "/a/x", ["tdm-file:1!"]),  # the first in sequence
        ([("/b/*.html$", 1)], "/b/c/d.html", ["tdm-file:1!"]),
        ([("/b/*.html$", 1)], "/b/c/d.htmls", []),
        ([("/b # all of it", 1)], "/b", ["tdm-file:1!"]),
        ([("/%C5%BE", 1)], "/%c5%be", ["tdm-file:1!"]),
        ([("/", 2)], "/", []),
        ([("/", "1")], "/", ["tdm-file:1!"]),
        ([(5, 1)], "/", []),
        ([], "/", []),
    ],
)
def test_tdmrep(listed, path, found):
    assert said(TdmRep(tdmrep(*listed)), path) == found


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"1", b'"x"', b"[1, null, {}]", b"\xff\xfe", b"{"])
def test_a_damaged_tdmrep_says_nothing(body):
    assert said(TdmRep(body)) == []


@pytest.mark.parametrize(
    ("text", "path", "refused"),
    [
        ("User-Agent: *\nDisallow: /\nDisallow: *", "/a", True),
        ("User-Agent: *\nDisallow: *", "/a", True),
        ("User-Agent: *\nDisallow: *.txt\nDisallow: *.pdf", "/a/", True),
        ("User-Agent: *\nDisallow: *.txt", "/a.html?b=c.d", True),
        ("User-Agent: *\nDisallow: *.jpg\nAllow: *.txt", "/a", False),
        ("User-Agent: *\nDisallow: /blog/", "/a", False),
        ("User-Agent: spiderling\nAllow: /\nUser-Agent: *\nDisallow: /", "/a", False),
        ("<html>not found</html>", "/a", False),
    ],
)
def test_ai_txt(text, path, refused):
    assert said(AiTxt(text.encode(), OPTIONS), path) == (["ai-txt!"] if refused else [])


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/", "/x", True), ("", "/x", True), ("*", "/x", True), ("/a$", "/a", True), ("/a$", "/ab", False),
        ("/a*$", "/ab", True), ("/*b*d", "/abcde", True), ("/*b*d$", "/abcde", False), ("/*b$", "/b/b", True),
        ("/a*a$", "/a", False), ("/b", "/a/b", False), ("/%2f", "/%2F", True), ("/%2F", "//", False),
        ("/" + "a*" * 200 + "b", "/" + "a" * 8000, False),
    ],
)  # fmt: skip
def test_path_patterns(pattern, path, fits):
    assert PathPattern(pattern).matches(path) is fits


LINES = st.sampled_from(
    [
        *("User-agent: *\n", "User-agent: spiderling\n", "Content-Usage: ", "Content-Signal: /a ", "Disallow: *", "\n"),
        *("Crawl-delay: ", "Request-rate: "),
    ]
)
TEXTS = st.text(st.characters() | st.sampled_from("\ud800\udfff*"), max_size=5)
"""Halves of characters too, which JSON can spell."""
KEYS = st.sampled_from(["location", "tdm-reservation", "tdm-policy"])
VALUES = st.recursive(st.none() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))
BODIES = st.lists(LINES | st.text(max_size=8)).map("".join).map(str.encode) | st.binary()
BODIES |= st.lists(LINES.map(str.encode) | st.binary(max_size=30)).map(b"".join)
RULE = {"location": TEXTS, "tdm-reservation": st.sampled_from([0, 1, "1"]) | VALUES, "tdm-policy": VALUES}
VALUES |= st.fixed_dictionaries(RULE) | st.lists(st.fixed_dictionaries(RULE), max_size=3)
BODIES |= VALUES.map(json.dumps).map(str.encode)


def to_url(path: str) -> str:
    return canonicalize(f"http://a.cz/{path}").url


@example(SiteFile.TDMREP, rb'[{"location": "\ud800*", "tdm-reservation": 0}]', "")
@example(SiteFile.TDMREP, rb'[{"location": "/", "tdm-reservation": 1, "tdm-policy": "\ud800"}]', "")
@given(st.sampled_from(SiteFile), BODIES, st.text(max_size=20))
def test_no_file_raises(file, body, path):
    """Neither a parser, nor what the frontier asks of it, nor the state that has to hold what it says."""
    robots_of, url = Robots(OPTIONS), to_url(path)
    for other in SiteFile:
        robots_of.note_answer("http://a.cz", FileAnswer(200 if other is file else 404, body), 0.0, other)
    assert robots_of.judge("http://a.cz", url, 1.0) is not RobotsVerdict.MISSING
    assert 0 <= robots_of.crawl_delay("http://a.cz") < float("inf")
    assert all(" ".join(map(str, row)).encode() for row in robots_of.files.ledger)
    for statement in parse_rules(file, body, OPTIONS).statements(f"http://a.cz/{path}", f"/{path}"):
        assert len(str(statement).split()) == 1


# -- in the frontier

FILES = {
    "http://a.cz/robots.txt": robots("User-agent: *\nDisallow: /private"),
    f"http://a.cz{TDM}": Answer(body=tdmrep(("/reserved", 1), ("/", 0))),
    f"http://a.cz{AI}": Answer(body=b"User-agent: *\nDisallow: /no-ai"),
}
PAGES = {f"http://a.cz/{name}": page() for name in ("x", "reserved", "no-ai", "private")}


def crawl_all(**options) -> VirtualCrawl:
    return VirtualCrawl({**FILES, **PAGES}, **{"optouts": "", **options}).run(*PAGES)


def test_no_page_before_all_files_of_its_site():
    crawl = crawl_all()
    asked = [start.url for start in crawl.starts]
    assert asked == [*FILES, "http://a.cz/x"], "what is opted out costs neither a request nor an interval"
    assert crawl.ends == {Reason.KEPT: 1, Reason.SITE_OPTED_OUT: 2, Reason.ROBOTS_FORBIDDEN: 1}
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"purpose": "research"}, 3),
        ({"purpose": "search"}, 2),
        ({"purpose": "research", "optouts": "tdm-file=record"}, 3),
        ({"optouts": "tdm-file=record"}, 2),
        ({"optouts": "tdm-file=ignore"}, 2),
        ({"optouts": "tdm-file=record,ai-txt=record"}, 3),
    ],
)
def test_the_policy_decides(options, kept):
    crawl = crawl_all(**options)
    assert crawl.ends[Reason.KEPT] == kept
    asked = {start.url for start in crawl.starts}
    policy = crawl.options.policy()
    assert (f"http://a.cz{TDM}" in asked) is policy.asks(Signal.TDM_FILE, MINING)
    assert (f"http://a.cz{AI}" in asked) is policy.asks(Signal.AI_TXT, TRAINING)


def test_files_that_cannot_be_had_keep_nobody_waiting():
    web = {f"http://a.cz{TDM}": Answer(status=503), f"http://a.cz{AI}": Answer(status=0), **PAGES}
    crawl = VirtualCrawl(web, optouts="").run("http://a.cz/x")
    assert [start.url for start in crawl.starts] == [*FILES, "http://a.cz/x"]
    assert crawl.ends == {Reason.KEPT: 1}
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_robots_txt_may_keep_us_from_the_other_files():
    web = {"http://a.cz/robots.txt": robots("User-agent: *\nDisallow: /.well-known/\nDisallow: /ai.txt"), **PAGES}
    crawl = VirtualCrawl(web, optouts="").run("http://a.cz/x")
    assert [start.url for start in crawl.starts] == ["http://a.cz/robots.txt", "http://a.cz/x"]


def test_a_redirected_file_speaks_for_the_site_that_redirects():
    web = {
        f"http://a.cz{TDM}": to("http://b.cz/tdm.json"),
        "http://b.cz/tdm.json": Answer(body=tdmrep(("/", 1))),
        **PAGES,
    }
    crawl = VirtualCrawl(web, optouts="").run("http://a.cz/x")
    assert [start.url for start in crawl.starts][1:3] == [f"http://a.cz{TDM}", "http://b.cz/tdm.json"]
    assert crawl.ends == {Reason.SITE_OPTED_OUT: 1}


def test_files_are_fetched_again_after_a_day():
    answers = [Answer(body=tdmrep(("/", 0))), Answer(body=tdmrep(("/", 1)))]
    crawl = VirtualCrawl({**PAGES, f"http://a.cz{TDM}": answers}, optouts="").run("http://a.cz/x")
    crawl.now += DAY_S
    crawl.run("http://a.cz/reserved")
    assert crawl.ends == {Reason.KEPT: 1, Reason.SITE_OPTED_OUT: 1}
    ledger = [(row.answer, row.says) for row in crawl.frontier.drain(crawl.now).consent if row.file == TDM]
    assert ledger == [("200", "tdm-file:0"), ("200", "tdm-file:1")]


def test_all_answers_are_in_the_ledger_and_the_store():
    changes = crawl_all().frontier.drain(2000.0)
    assert [(row.file, row.answer, len(row.digest), row.says) for row in changes.consent] == [
        ("/robots.txt", "200", 64, ""), (TDM, "200", 64, "tdm-file:0"), (AI, "200", 64, ""),
    ]  # fmt: skip
    stored = changes.robots
    assert stored.keys() == {"http://a.cz", f"http://a.cz{TDM}", f"http://a.cz{AI}"}
    assert zlib.decompress(stored["http://a.cz"].body) == FILES["http://a.cz/robots.txt"].body
    assert stored["http://a.cz"].fetched > 0


@given(
    st.binary(max_size=40) | st.builds(lambda piece, times: piece * times, st.binary(max_size=40), st.integers(0, 4000))
)
@example(b"")
def test_a_kept_file_is_read_as_any_other_of_zlib_and_is_no_longer_than_that(body: bytes):
    kept = pack_body(body)
    assert zlib.decompress(kept) == body
    assert len(kept) <= len(zlib.compress(body)) * 1.1 + 8
    assert (kept == EMPTY) is (body == b"")


def test_ledger_says_what_holds_for_the_front_page():
    robots_of = Robots(OPTIONS)
    robots_of.note_answer(
        "http://a.cz", FileAnswer(200, b"User-agent: *\nDisallow: /\nContent-Signal: ai-train=no"), 7.0
    )
    robots_of.note_answer("http://b.cz", FileAnswer(404), 8.0)
    robots_of.note_failure("http://c.cz", 9.0, SiteFile.ROBOTS)
    assert [row._replace(digest=row.digest[:4]) for row in robots_of.files.ledger] == [
        ConsentRow("http://a.cz", "/robots.txt", "200", "4773", 7.0, 7.0, "disallow content-signal:ai-train=no"),
        ConsentRow("http://b.cz", "/robots.txt", "404", "", 8.0, 8.0, ""),
        ConsentRow("http://c.cz", "/robots.txt", "no answer", "", 9.0, 9.0, ""),
    ]
    assert robots_of.judge("http://a.cz", "http://a.cz/", 8.0) is RobotsVerdict.FORBIDDEN
