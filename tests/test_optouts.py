"""Opt-outs: which statement binds which purpose, what a user may say about it, and licences by RSL 1.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.opt_outs import (
    ANY,
    NOTHING,
    RSL_NAMESPACE,
    SEARCHING,
    TRAINING,
    OptOutPolicy,
    Purpose,
    RslFile,
    Signal,
    Statement,
    reservation,
    together,
    usage,
)  # fmt: skip
from spiderling.base.options import Options
from webs.consent import PURPOSES, TERMS

MINING = ANY - {Purpose.RESEARCH}


def binding(purpose: str, *statements: Statement, optouts: str = "") -> str | None:
    found = OptOutPolicy.parse(purpose, optouts).binding(statements)
    return str(found) if found else None


def usage_of(text: str) -> list[str]:
    return [str(said) for said in usage(Signal.CONTENT_USAGE, text)]


@pytest.mark.parametrize(
    ("statements", "research", "search", "ai_train"),
    [
        ([Statement(Signal.NOINDEX, refuses=ANY)], "noindex", "noindex", "noindex"),
        ([Statement(Signal.NOARCHIVE, refuses=ANY)], None, None, None),
        (reservation(Signal.TDM, "1"), None, "tdm:1", "tdm:1"),
        (reservation(Signal.TDM_FILE, 0), None, None, None),
        (usage(Signal.CONTENT_SIGNAL, "search=yes, ai-train=no"), None, None, "content-signal:ai-train=no"),
        (usage(Signal.CONTENT_SIGNAL, "search=no"), None, "content-signal:search=no", None),
        (usage(Signal.CONTENT_SIGNAL, "ai-input=no"), None, None, None),
        (usage(Signal.CONTENT_USAGE, "train-ai=n"), None, None, "content-usage:train-ai=n"),
        (usage(Signal.CONTENT_USAGE, "bots=n"), *["content-usage:bots=n"] * 3),
    ],
)
def test_what_binds_which_purpose_by_default(statements, research, search, ai_train):
    assert [binding(purpose, *statements) for purpose in ("research", "search", "ai-train")] == [
        research, search, ai_train,
    ]  # fmt: skip


def test_a_rule_of_the_user_wins():
    noarchive, tdm = Statement(Signal.NOARCHIVE, refuses=ANY), reservation(Signal.TDM, 1)[0]
    assert binding("ai-train", tdm, noarchive, optouts="noarchive=obey , tdm=record") == "noarchive"
    policy = OptOutPolicy.parse("ai-train", "tdm=record,noai=ignore")
    assert policy.sees(Signal.TDM) and not policy.obeys(Signal.TDM) and not policy.sees(Signal.NOAI)


def test_a_file_is_asked_for_when_it_could_bind_or_is_to_be_recorded():
    asks = {
        (purpose, rule): OptOutPolicy.parse(purpose, f"ai-txt={rule}").asks(Signal.AI_TXT, TRAINING)
        for purpose in ("research", "ai-train")
        for rule in ("obey", "record", "ignore")
    }
    assert [key for key, asked in asks.items() if asked] == [
        ("research", "record"), ("ai-train", "obey"), ("ai-train", "record"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tdm=yes", "SPIDERLING_OPTOUTS has 'tdm=yes'; write tdm=obey, =record or =ignore."),
        ("noindx=obey", "names a signal 'noindx' that there is not; did you mean noindex?"),
        ("x=obey", "known are noindex, noarchive"),
        ("tdm", "write tdm=obey"),
    ],
)
def test_a_policy_that_cannot_be_meant(text, message):
    with pytest.raises(BadInput) as caught:
        Options.from_settings({"SPIDERLING_OPTOUTS": text})
    assert message in str(caught.value)
    with pytest.raises(BadInput, match="must be one of research, search, ai-train"):
        Options.from_settings({"SPIDERLING_PURPOSE": "profit"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("train-ai=n", ["content-usage:train-ai=n"]),
        ("train-ai=n, train-ai=y", ["content-usage:train-ai=y"]),
        ("train-ai;allow=n, search=y;q", ["content-usage:search=y"]),
        ("TRAIN-AI=N,,=n,x=maybe,search", ["content-usage:train-ai=n"]),
        ("", []),
        ("a b=n", []),
    ],
)
def test_usage_preferences(text, found):
    assert usage_of(text) == found


@pytest.mark.parametrize(
    ("value", "policy", "found"),
    [
        ("1", None, ["tdm:1"]), (1, "https://a/p", ["tdm:1=https://a/p"]), (True, "", ["tdm:1"]), ("0", "x", ["tdm:0"]),
        ("2", None, []), (None, None, []), ([1], None, []), ("", None, []), (1, "a b\nc", ["tdm:1=abc"]),
    ],
)  # fmt: skip
def test_reservations(value, policy, found):
    assert [str(said) for said in reservation(Signal.TDM, value, policy)] == found


def test_a_page_supersedes_the_file_of_its_site():
    in_file, in_page = reservation(Signal.TDM_FILE, 1), reservation(Signal.TDM, 0)
    assert together(in_file, in_page) == in_page
    assert together(in_file, [Statement(Signal.NOAI)]) == [*in_file, Statement(Signal.NOAI)]


@given(st.text(), st.text() | st.integers() | st.none() | st.booleans() | st.floats())
def test_no_text_raises_and_no_statement_holds_white_space(text, value):
    said = [*usage(Signal.CONTENT_SIGNAL, text), *reservation(Signal.TDM, value, text)]
    assert all(len(str(statement).split()) == 1 for statement in said)


# -- licences: what each term means for each purpose, and that no bytes do harm


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


def test_the_duty_that_a_licence_states() -> None:
    file = RslFile(rsl(content('<payment type="attribution"/>')))
    assert [str(said) for said in file.statements("http://a.cz/", "/")] == ["rsl:attribution"]
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
