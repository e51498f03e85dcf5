"""The policy on opt-outs: which statement binds which purpose, and what a user may say about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.opt_outs import ANY, TRAINING, OptOutPolicy, Signal, Statement, reservation, together, usage
from spiderling.base.options import Options


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
