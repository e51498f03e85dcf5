"""Every Reason has a key for stats and a sentence for people; mentions and ends are apart."""

from __future__ import annotations

import re

import pytest

from spiderling.base.reasons import MENTIONS, Reason
from spiderling.frontier.hosts import CLOSED_STATES


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.value)
def test_key_and_help(reason: Reason) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", reason.value), "stat keys and log fields are made of it"
    assert reason.value == reason.name.lower().replace("_", "-")
    assert len(reason.help) > 8
    assert not reason.help.endswith(".")
    assert Reason.of(reason.value) is reason
    assert Reason(reason.value) is reason


def test_helps_differ() -> None:
    assert len({reason.help for reason in Reason}) == len(Reason)


def test_unknown_key() -> None:
    with pytest.raises(KeyError):
        Reason.of("moonlight")


def test_refused_mentions_are_no_ends() -> None:
    values = {"bad-url", "out-of-scope", "seen", "too-far", "trap", "port-forbidden", "too-many-links"}
    values |= {"trap-section", "trap-copy", "trap-subdomains", "cross-submit", "unpromising"}
    values |= {"damaged", "record-kind", "record-status", "revisit"}
    assert {reason.value for reason in MENTIONS} == values
    assert not MENTIONS & set(CLOSED_STATES.values())


def test_options_named_in_helps_exist() -> None:
    from spiderling.base.option_values import PREFIX
    from spiderling.base.options import Options

    for reason in Reason:
        for name in re.findall(PREFIX + r"[A-Z_]+", reason.help):
            assert hasattr(Options(), name.removeprefix(PREFIX).lower())
