"""What a page says of the use of its text, in its headers and its head."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.options import Options
from spiderling.text.html.parser import parse
from spiderling.text.optout import page_statements

OPTIONS = Options()
NOW = 1_800_000_000.0  # 15 January 2027


def said(*headers: tuple[str, str], html: str = "", options: Options = OPTIONS) -> list[str]:
    """The statements; those that refuse something have a '!'."""
    found = page_statements(headers, parse(html).meta, options, NOW)
    return [f"{statement}{'!' if statement.refuses else ''}" for statement in found]


def tagged(*values: str) -> list[str]:
    return said(*(("X-Robots-Tag", value) for value in values))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("noindex", ["noindex!"]),
        ("NOINDEX , NoFollow", ["noindex!", "nofollow"]),
        ("none", ["noindex!", "nofollow"]),
        ("all, index, follow, nosnippet", []),
        ("noarchive", ["noarchive!"]),
        ("nocache", ["noarchive!"]),
        ("noai, noimageai", ["noai!", "noai:images"]),
        ("max-snippet: 20, noindex", ["noindex!"]),
        ("googlebot: noindex, nofollow", []),
        ("otherbot: noindex, spiderling: nofollow", ["nofollow"]),
        ("*: noindex", ["noindex!"]),
        ("Spiderling: none", ["noindex!", "nofollow"]),
        ("GPTBot: noindex", ["ai-agents:GPTBot!"]),
        ("gptbot: nofollow", []),
        ("", []),
        ("noindexed; none of it", []),
    ],
)
def test_robots_directives_in_a_header(value, found):
    assert tagged(value) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", "2010-06-25T23:00:00Z!"),
        ("unavailable_after: Wed, 03 Aug 2022 15:00:00 GMT", "2022-08-03T15:00:00Z!"),
        ("unavailable_after: Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z!"),
        ("Unavailable_After: 2010-06-25", "2010-06-25T00:00:00Z!"),
        ("unavailable_after: 2010-06-25T10:00:00+02:00", "2010-06-25T08:00:00Z!"),
        ("unavailable_after: 2010-06-25T10:00:00Z", "2010-06-25T10:00:00Z!"),
        ("unavailable_after: 2030-01-01", "2030-01-01T00:00:00Z"),
        ("unavailable_after: soon", "?"),
        ("unavailable_after: 99999-01-01", "?"),
        ("unavailable_after:", "?"),
    ],
)
def test_a_date_binds_when_it_has_passed(value, found):
    assert tagged(value) == [f"unavailable-after:{found}"]


def test_a_date_holds_commas_and_colons_of_its_own():
    assert tagged("noarchive, unavailable_after: Wed, 03 Aug 2022 15:00:00 GMT, nofollow") == [
        "noarchive!", "unavailable-after:2022-08-03T15:00:00Z!", "nofollow",
    ]  # fmt: skip
    assert tagged("googlebot: unavailable_after: 2010-01-01", "unavailable_after: 2011-01-01") == [
        "unavailable-after:2011-01-01T00:00:00Z!"
    ]


def test_all_headers_and_tags_count_together():
    """Google: of competing directives the most restrictive counts; only the first tag was once looked at."""
    html = '<meta name=robots content="index, follow"><meta name="ROBOTS" content="nofollow">'
    html += "<meta name=robots content=noai>"
    assert said(("x-robots-tag", "noarchive"), ("X-Robots-Tag", "noindex"), html=html) == [
        "noarchive!", "noindex!", "nofollow", "noai!",
    ]  # fmt: skip


def test_tags_for_us_and_for_others():
    html = (
        '<meta name="spiderling" content="noindex"><meta name=googlebot content=none><meta name=CCBot content=noindex>'
    )
    assert said(html=html) == ["noindex!", "ai-agents:CCBot!"]
    assert said(html=html, options=Options(robots_agent="mine")) == ["ai-agents:CCBot!"]
    assert said(html='<meta name="description" content="none of it"><p>noindex</p>') == []


@pytest.mark.parametrize(
    ("headers", "html", "found"),
    [
        ([("TDM-Reservation", "1")], "", ["tdm:1!"]),
        ([("tdm-reservation", "1"), ("tdm-policy", "https://a.cz/p")], "", ["tdm:1=https://a.cz/p!"]),
        ([], '<meta name="tdm-reservation" content="1">', ["tdm:1!"]),
        ([("tdm-reservation", "1")], '<meta name="tdm-reservation" content="0">', ["tdm:0"]),
        ([("tdm-reservation", "0")], '<meta name="tdm-reservation" content="1">', ["tdm:1!"]),
        ([("tdm-reservation", "1")], '<meta name="tdm-reservation" content="perhaps">', ["tdm:1!"]),
        ([("Content-Usage", "train-ai=n, search=y")], "", ["content-usage:train-ai=n!", "content-usage:search=y"]),
        ([("Content-Signal", "ai-train=yes")], "", ["content-signal:ai-train=yes"]),
    ],
)
def test_reservations_and_preferences(headers, html, found):
    assert said(*headers, html=html) == found


WORDS = st.sampled_from(
    ["noindex", "none", "unavailable_after:", "googlebot:", "Wed,", "2020-01-01", "=n", ":", "train-ai"]
)
NAMES = st.sampled_from(["X-Robots-Tag", "Content-Usage", "tdm-reservation", "tdm-policy", "other"])


@given(
    st.lists(st.tuples(NAMES, st.lists(WORDS | st.text(max_size=9)).map(",".join)), max_size=5), st.text(max_size=50)
)
def test_no_header_and_no_tag_raises(headers, content):
    for statement in page_statements(headers, {"robots": content, "robots:spiderling": content}, OPTIONS, NOW):
        assert len(str(statement).split()) == 1
