"""Options: one table, documented, bounded, with messages that help."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.option_values import PREFIX, YIELD_PROFILES, parse_ports, parse_yield_profile
from spiderling.base.options import REMOVED, Options
from spiderling.text.boilerplate.rules import PRESETS, parse_rules

SPECS = {spec.name: spec for spec in fields(Options)}


def read(name: str, value: Any) -> Any:
    return getattr(Options.from_settings({PREFIX + name.upper(): value}), name)


@pytest.mark.parametrize("name", SPECS)
def test_every_option_is_documented_and_its_default_is_valid(name: str) -> None:
    spec = SPECS[name]
    text = spec.metadata["help"]
    assert len(text) > 15
    assert text == text.strip()
    assert text.endswith((".", "..."))
    assert read(name, spec.default) == spec.default
    assert type(read(name, str(spec.default))) is type(spec.default), "the command line gives strings"
    if isinstance(spec.default, float):
        units = ("_s", "_per_s", "_share", "_badness", "_factor", "_cosine", "_threshold", "_words", "_ratio", "_yield")
        assert name.endswith(units), "a length of time says its unit"


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if not isinstance(spec.default, str)])
def test_bounds(name: str) -> None:
    low, high = SPECS[name].metadata["low"], SPECS[name].metadata["high"]
    assert low is not None, "every number has a lower bound"
    assert read(name, low) == low
    with pytest.raises(BadInput, match=rf"^{PREFIX}{name.upper()} is .*; it must be (at least|between) .*\.$"):
        read(name, low - 1)
    if high is not None:
        assert read(name, high) == high
        with pytest.raises(BadInput, match=f"between {low:g} and {high:g}"):
            read(name, high + 1)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.metadata["choices"]])
def test_choices(name: str) -> None:
    for choice in SPECS[name].metadata["choices"]:
        assert read(name, choice) == choice
    with pytest.raises(BadInput, match="must be one of " + ", ".join(SPECS[name].metadata["choices"])):
        read(name, "purple")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("retries", "3", 3),
        ("retries", 3.0, 3),
        ("host_interval_s", "2.5", 2.5),
        ("host_interval_s", 2, 2.0),
        ("tlds", ["cz", "com"], "cz,com"),
        ("tlds", " cz ", "cz"),
        ("contact", None, ""),
    ],
)
def test_types_from_settings(name: str, value: Any, expected: Any) -> None:
    result = read(name, value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("retries", "many", "a whole number"),
        ("retries", "2.5", "a whole number"),
        ("retries", [1], "a whole number"),
        ("retries", float("inf"), "a whole number"),
        ("timeout_s", "", "a number"),
        ("timeout_s", "nan", "a number"),
        ("retry_delay_s", "inf", "a number"),
        ("timeout_s", "1e999", "a number"),
    ],
)
def test_wrong_type(name: str, value: Any, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(name, value)
    assert str(caught.value) == f"{PREFIX}{name.upper()} is {value!r}; it must be {what}."


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_option_says_what_there_is_in_its_place(name: str) -> None:
    assert name.removeprefix(PREFIX).lower() not in asdict(Options())
    with pytest.raises(BadInput, match=f"^there is no option {name} any more: .*leave it out"):
        Options.from_settings({name: 1})


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("SPIDERLING_HOST_INTERVAL", "SPIDERLING_HOST_INTERVAL_S"),
        ("SPIDERLING_MAX_BODY_BYTE", "SPIDERLING_MAX_BODY_BYTES"),
        ("SPIDERLING_QQQQQQQQQQQQQQQQQQQQQQQ", None),
    ],
)
def test_unknown_option_names_the_nearest(wrong: str, nearest: str | None) -> None:
    with pytest.raises(BadInput, match=f"^there is no option {wrong}") as caught:
        Options.from_settings({wrong: 1})
    assert (f"did you mean {nearest}?" if nearest else wrong) in str(caught.value)
    assert ("did you mean" in str(caught.value)) is (nearest is not None)
    assert "docs/options.md" in str(caught.value)


def test_other_settings_are_not_ours() -> None:
    assert Options.from_settings({"RETRY_TIMES": 1, "spiderling_x": 2, 7: 8}) == Options()  # type: ignore[dict-item]


@pytest.mark.parametrize(("text", "factor"), [*YIELD_PROFILES.items(), ("0.02", 0.02), (".5", 0.5), ("1e-4", 1e-4)])
def test_yield_profiles(text: str, factor: float | None) -> None:
    assert parse_yield_profile(text) == factor
    assert Options.from_settings({"SPIDERLING_YIELD_PROFILE": text}).yield_factor() == factor


@pytest.mark.parametrize("text", ["", "strict", "0", "1", "-0.1", "nan", "inf", "PAPER"])
def test_unknown_yield_profile(text: str) -> None:
    with pytest.raises(
        BadInput, match=r"it must be one of off, permissive, normal, paper or a number between 0 and 1\.$"
    ):
        Options.from_settings({"SPIDERLING_YIELD_PROFILE": text})


def test_options_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Options().retries = 3  # type: ignore[misc]


@given(
    st.sampled_from(list(SPECS)), st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.lists(st.text()))
)
def test_any_value_is_read_or_refused_in_one_sentence(name: str, value: Any) -> None:
    message = ""
    try:
        assert type(read(name, value)) is type(SPECS[name].default)
    except BadInput as error:
        message = str(error)
    assert not message or (message.startswith(PREFIX + name.upper()) and message.endswith("."))


@pytest.mark.parametrize(
    ("text", "preset", "own"),
    [
        ("strict", "strict", {}),
        ("length_low=40", "balanced", {"length_low": 40}),
        ("strict, max_link_density=.4,length_high=90", "strict", {"max_link_density": 0.4, "length_high": 90}),
    ],
)
def test_presets_of_justext(text: str, preset: str, own: dict[str, Any]) -> None:
    assert parse_rules(text) == replace(PRESETS[preset], **own)


@pytest.mark.parametrize(
    "text", ["", "lax", "strict,length=1", "length_low=x", "max_link_density=2", "strict,", "length_low=-1"]
)
def test_unknown_presets_of_justext(text: str) -> None:
    with pytest.raises(BadInput, match=r"^SPIDERLING_JUSTEXT_PRESET is .*\.$"):
        parse_rules(text)


@pytest.mark.parametrize("ports", ["http", "80;443", "0", "65536", "80,", "", "²", "1" * 5000])
def test_ports(ports: str) -> None:
    if ports == "80,":
        assert parse_ports(ports) == {80}
        return
    with pytest.raises(BadInput, match="SPIDERLING_PORTS"):
        Options.from_settings({"SPIDERLING_PORTS": ports})
