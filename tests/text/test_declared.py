"""What a page says of its own language, and what that weighs."""

from __future__ import annotations

import pytest
from cleaned_pages import CZECH, ENGLISH, GREEK, cleaned, known
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.options import Options
from spiderling.engine.outcomes import DropPage
from spiderling.pipelines import check_language
from spiderling.text import Page
from spiderling.text.declared import declared_language, language_of_charset, language_of_tag, lswc_language
from spiderling.text.html.parser import parse
from spiderling.text.optout import page_statements

MODELS = known("cs sk en de")
CZECH, ENGLISH, GREEK = CZECH * 3, ENGLISH * 3, GREEK * 3
SHORT = "Pes sedel pri robote a na stole je nový pohár."  # Slovak, and nearly Czech


@pytest.mark.parametrize(
    ("charset", "candidates", "targets", "language"),
    [
        ("cp874", "ja", "th", "th"),  # table 1 of the paper, for Thai: declared Thai, guessed X
        ("euc_jp", "th", "th", "th"),  # X, Thai
        ("euc_jp", "", "th", "ja"),  # Y, unknown
        ("utf-8", "ja", "th", "ja"),  # unknown, Z
        (None, "", "th", ""),  # unknown, unknown
        ("euc_jp", "zh", "th", "ja"),  # Y, Z
        ("cp874", "", "th", "th"),  # X is any language, the unknown one among them
        ("cp874", "th", "th", "th"),
        (None, "ja en th", "th", "th"),  # of several guesses the target, then English, then the first
        (None, "ja en", "th", "en"),
        (None, "ja zh", "th", "ja"),
        ("utf-8", "de en", "cs de", "de"),
        ("utf-8", "de en", "cs sk", "en"),
        ("utf-8", "de en", "", ""),
    ],
)
def test_the_language_by_the_paper_is_declared_or_guessed(charset, candidates, targets, language):
    page = Page(encoding_declared=charset, candidates=tuple(candidates.split()))
    assert lswc_language(page, targets.split()) == language


@pytest.mark.parametrize(
    ("tag", "code"),
    [("cs", "cs"), ("cs-CZ", "cs"), ("EN_us", "en"), ("hsb", "hsb"), ("", None), (None, None), ("čeština", None),
     ("english", None), ("x-default", None), ("c", None)],
)  # fmt: skip
def test_language_of_tag(tag, code):
    assert language_of_tag(tag) == code


def test_language_of_charset():
    found = [language_of_charset(codec) for codec in ("cp874", "euc_jp", "cp949", "cp1250", "utf-8", None)]
    assert found == ["th", "ja", "ko", None, None, None]


def test_candidates_are_the_languages_of_the_whole_page():
    page = cleaned(f"<p>{CZECH}</p><p>{ENGLISH}</p><p>{CZECH}</p>")
    assert page.candidates == ("cs",)
    assert (page.lswc_language, page.lswc_relevant) == ("cs", True)
    assert not cleaned(f"<p>{ENGLISH}</p><p>{ENGLISH}</p>").lswc_relevant
    assert cleaned("<p>Nic.</p>").candidates == ()
    assert cleaned(f"<p>{GREEK}</p>").candidates == ()


def test_a_page_of_menus_and_headlines_is_in_their_language():
    menu = "".join(f"<li><a href=/{n}>{word}</a></li>" for n, word in enumerate(CZECH.split()))
    page = cleaned(f"<ul>{menu}</ul>")
    assert not any(paragraph.kept for paragraph in page.paragraphs)
    assert (page.candidates, page.language, page.lswc_relevant) == (("cs",), None, True)


def test_lang_goes_before_charset():
    assert declared_language(Page(html_lang="cs", encoding_declared="cp874")) == "cs"
    assert declared_language(Page(html_lang="?", encoding_declared="cp874")) == "th"


def test_a_declaration_decides_what_is_near():
    guesses = MODELS.identify([SHORT, CZECH, ""])
    margin = (guesses.scores[0].max() - guesses.scores[0][MODELS.codes.index("cs")]) / 4
    assert guesses.nearest([0]) == "sk"
    assert guesses.leaning("cs", float(margin) + 1).nearest([0]) == "cs"
    assert guesses.leaning("cs", float(margin) - 1).nearest([0]) == "sk"
    assert guesses.leaning("xx", 100).scores is guesses.scores
    assert guesses.leaning("en", 100).nearest([2]) is None


def test_a_wrong_declaration_does_not_turn_a_page():
    page = cleaned(f"<html lang=en><p>{CZECH}</p>", "cs en")
    assert (page.language, page.languages) == ("cs", {"cs": 1.0})


def test_a_page_of_two_languages_keeps_the_paragraphs_of_the_accepted_one():
    html = f"<p>{CZECH}</p><p>{ENGLISH}</p><p>{CZECH}</p>"
    page = cleaned(html)
    assert [one.kept for one in page.paragraphs] == [True, False, True]
    check_language(page, ("cs",), Options())  # the page is kept
    with pytest.raises(DropPage):
        check_language(cleaned(html, "en"), ("en",), Options())
    both = cleaned(html, "cs en")
    assert [(one.language, one.kept) for one in both.paragraphs] == [("cs", True), ("en", True), ("cs", True)]
    check_language(both, ("cs", "en"), Options())


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
        ("noindex", ["noindex!"]), ("NOINDEX , NoFollow", ["noindex!", "nofollow"]), ("none", ["noindex!", "nofollow"]),
        ("all, index, follow, nosnippet", []), ("noarchive", ["noarchive!"]), ("nocache", ["noarchive!"]),
        ("noai, noimageai", ["noai!", "noai:images"]), ("max-snippet: 20, noindex", ["noindex!"]),
        ("googlebot: noindex, nofollow", []), ("otherbot: noindex, spiderling: nofollow", ["nofollow"]),
        ("*: noindex", ["noindex!"]), ("Spiderling: none", ["noindex!", "nofollow"]),
        ("noindex nofollow", ["noindex!", "nofollow"]), ("index;follow; noarchive;", ["noarchive!"]),
        ("GPTBot: noindex", ["ai-agents:GPTBot!"]), ("gptbot: nofollow", []), ("", []), ("noindexed; none of it", []),
    ],
)  # fmt: skip
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
    html = '<meta http-equiv="X-Robots-Tag" content="noindex, otherbot: none">'
    assert said(html=html) == ["noindex!"], "as the header would say it"


@pytest.mark.parametrize(
    ("headers", "html", "found"),
    [
        ("TDM-Reservation: 1", "", ["tdm:1!"]),
        ("tdm-reservation: 1, tdm-policy: https://a.cz/p", "", ["tdm:1=https://a.cz/p!"]),
        ("", '<meta name="tdm-reservation" content="1">', ["tdm:1!"]),
        ("tdm-reservation: 1", '<meta name="tdm-reservation" content="0">', ["tdm:0"]),
        ("tdm-reservation: 0", '<meta name="tdm-reservation" content="1">', ["tdm:1!"]),
        ("tdm-reservation: 1", '<meta name="tdm-reservation" content="perhaps">', ["tdm:1!"]),
        ("Content-Usage: train-ai=n;search=y", "", ["content-usage:train-ai=n!", "content-usage:search=y"]),
        ("Content-Signal: ai-train=yes", "", ["content-signal:ai-train=yes"]),
    ],
)
def test_reservations_and_preferences(headers, html, found):
    lines = [line.replace(";", ", ").split(": ", 1) for line in headers.split(", ") if line]
    assert said(*map(tuple, lines), html=html) == found


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
