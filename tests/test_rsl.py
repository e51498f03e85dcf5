"""Licences by RSL 1.0: what each term means for each purpose, and that no bytes do harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.opt_outs import ANY, NOTHING, RSL_NAMESPACE, SEARCHING, TRAINING, Purpose, RslFile, Signal
from webs.consent import PURPOSES, TERMS

MINING = ANY - {Purpose.RESEARCH}


def rsl(*contents: str) -> bytes:
    return f'<?xml version="1.0"?><rsl xmlns="{RSL_NAMESPACE}">{"".join(contents)}</rsl>'.encode()


def content(*licences: str, url: str = "/", more: str = "") -> str:
    inner = "".join(f"<license>{licence}</license>" for licence in licences)
    return f'<content url="{url}" {more}>{inner}</content>'


def permits(tokens: str, kind: str = "usage") -> str:
    return f'<permits type="{kind}">{tokens}</permits>'


def prohibits(tokens: str, kind: str = "usage") -> str:
    return f'<prohibits type="{kind}">{tokens}</prohibits>'


def refused(body: bytes, path: str = "/x", host: str = "a.cz") -> frozenset[Purpose]:
    said = RslFile(body).statements(f"http://{host}{path}", path)
    assert all(statement.signal is Signal.RSL and " " not in str(statement) for statement in said)
    return frozenset().union(*(statement.refuses for statement in said))


CRAWL = '<payment type="crawl"><amount currency="USD">0.01</amount></payment>'


@pytest.mark.parametrize(("terms", "letters"), TERMS.items())
def test_each_term_refuses_what_it_says(terms: str, letters: str) -> None:
    assert refused(rsl(content(terms))) == {Purpose(PURPOSES[letter]) for letter in letters}


@pytest.mark.parametrize(
    ("licences", "refuses"),
    [
        ((permits("search"), permits("ai-train") + CRAWL), TRAINING),
        ((permits("all") + CRAWL, permits("all")), NOTHING),
        ((permits("all"), prohibits("ai-train")), TRAINING),
        (
            (permits("all", "usage") + permits("education", "user"), permits("search")),
            MINING - SEARCHING | {Purpose.RESEARCH},
        ),
    ],
)
def test_several_licences_offer_together_and_a_prohibition_holds_for_all(licences, refuses) -> None:
    assert refused(rsl(content(*licences))) == refuses


@pytest.mark.parametrize("more", ['server="https://ask.example/"', 'encrypted="true"', 'encrypted="TRUE"'])
def test_a_licence_server_refuses_all_even_if_it_is_free(more: str) -> None:
    assert refused(rsl(content('<payment type="free"/>', more=more))) == ANY


def test_the_longest_path_counts_and_equal_ones_together() -> None:
    body = rsl(
        content(permits("all")),
        content(prohibits("ai-train"), url="/articles/"),
        content(permits("all"), url="/articles/free/*.html$"),
        content(prohibits("search"), url="/articles/"),
    )
    assert refused(body, "/") == NOTHING
    assert refused(body, "/articles/1") == MINING
    assert refused(body, "/articles/free/1.html") == NOTHING
    assert refused(body, "/articles/free/1.html?x") == MINING
    assert refused(rsl(content(prohibits("all"), url="/only/")), "/other") == NOTHING, "nothing is said of it"


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("", True), ("*", True), ("/", True), ("http://a.cz/", True), ("https://A.cz:443/*", True),
        ("http://a.cz", True),
        ("http://www.a.cz/", True),
        ("http://b.cz/", False), ("/y", False), ("x", True), ("/" + "*" * 50, True), ("http://[", False),
    ],
)  # fmt: skip
def test_addresses_of_contents(url: str, fits: bool) -> None:
    """An address that cannot be understood stands for all of the site."""
    assert bool(refused(rsl(content(prohibits("all"), url=url)))) is fits


def test_licences_in_feeds() -> None:
    item = f'<item><rsl:content url="http://a.cz/x"><rsl:license>{permits("search")}</rsl:license></rsl:content></item>'
    item = item.replace("<permits", "<rsl:permits").replace("</permits", "</rsl:permits")
    feed = f'<rss xmlns:rsl="{RSL_NAMESPACE}" version="2.0"><channel>{item}</channel></rss>'.encode()
    assert refused(feed) == TRAINING
    assert refused(feed, "/y") == NOTHING


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no xml", b"<html><body>Not found</body></html>", b"<rsl>",
        b'<rsl><content url="/"><license/></content></rsl>', rsl(), rsl('<content url="/"/>'),
        rsl(content("<permit>ai-train</permit>")), rsl(content(permits("all", "ai-train"))),
        rsl(content(prohibits("ai-learn"))), b'<!DOCTYPE rsl [<!ENTITY a "ai-train">]>' + rsl(content("&a;"))[21:],
        rsl(content("")).decode().encode("utf-16")[1:], rsl(*[content("")] * 1001),
    ],
)  # fmt: skip
def test_what_cannot_be_read_refuses_training(body: bytes) -> None:
    assert refused(body) == TRAINING


def test_other_vocabularies_are_passed_over() -> None:
    other = '<x:y xmlns:x="https://other.example/"><x:z/></x:y>'
    assert refused(rsl(other, content(permits("all x:fine") + prohibits("x:bad") + other))) == NOTHING


def test_the_address_of_the_licence_and_the_duty_are_stated() -> None:
    file = RslFile(rsl(content('<payment type="attribution"/>')), "https://a.cz/l.xml")
    assert [str(said) for said in file.statements("http://a.cz/", "/")] == ["rsl:attribution=https://a.cz/l.xml"]
    assert file.statements("http://a.cz/", "/", lambda signal: signal is not Signal.RSL) == []


PIECES = st.sampled_from([
    "<content", ' url="/"', ' url="//"', ">", "/>", "<license>", "</license>", "</content>", "<permits", "all",
    ' type="usage"', " ai-train ", "</permits>", "<prohibits>", "<payment/>", "&lt;", "&#0;", "<![CDATA[", "]]>",
    "<?x?>", "<!--", ' server="', '"', "\x00", "\ud800", "é", 'xmlns="x"', "<rsl:a>", "a" * 300,
])  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.text(max_size=20))
def test_no_document_does_harm(pieces: list[str], path: str) -> None:
    body = rsl("".join(pieces).encode("utf-8", "surrogatepass").decode("latin-1"))
    for document in (body, body[30:], b"\xff\xfe" + body):
        for said in RslFile(document).statements(f"http://a.cz/{path}", f"/{path}"):
            assert said.refuses <= ANY


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(noise: bytes) -> None:
    assert refused(noise) == TRAINING
    whole = rsl(content(prohibits("ai-train")))
    for at in range(0, len(whole), 17):
        refused(whole[:at] + noise + whole[at:])
