"""Options: one table, documented, bounded, with messages that help."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.option_values import (
    PREFIX,
    YIELD_PROFILES,
    TrapLimits,
    parse_ports,
    parse_size,
    parse_traps,
    parse_yield_profile,
)
from spiderling.base.options import Options
from spiderling.crawl.crawl import compare_options
from spiderling.text.quality import QualityLimits, Range, parse_quality

SPECS = {spec.name: spec for spec in fields(Options)}
WHOLE = "a whole number, such as 20, 500k or 2.5M"
BYTES = "a number of bytes, such as 500000, 10GB or 512MiB"
SECONDS = "a number of seconds, such as 3600"


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
        units = ("_s", "_share", "_factor")
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
        ("retries", "3", 3), ("retries", 3.0, 3), ("host_interval_s", "2.5", 2.5), ("host_interval_s", 2, 2.0),
        ("tlds", ["cz", "com"], "cz,com"), ("tlds", " cz ", "cz"), ("contact", None, ""),
    ],
)  # fmt: skip
def test_types_from_settings(name: str, value: Any, expected: Any) -> None:
    result = read(name, value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("retries", "many", WHOLE), ("retries", "2.5", WHOLE), ("retries", [1], WHOLE),
        ("retries", float("inf"), WHOLE), ("max_words", "10,000", WHOLE), ("max_words", "1MB", WHOLE),
        ("max_words", "M", WHOLE), ("max_words", "1e400k", WHOLE), ("dedup_bytes", "10 barrels", BYTES),
        ("dedup_bytes", "10iB", BYTES), ("timeout_s", "", SECONDS), ("timeout_s", "nan", SECONDS),
        ("offline_wait_s", "inf", SECONDS), ("timeout_s", "1e999", SECONDS), ("max_time_s", "30m", SECONDS),
        ("delay_factor", "fast", "a number"),
    ],
)  # fmt: skip
def test_wrong_type(name: str, value: Any, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(name, value)
    assert str(caught.value) == f"{PREFIX}{name.upper()} is {value!r}; it must be {what}."


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("1M", 10**6), ("500k", 500_000), ("2.5M", 2_500_000), ("1e6", 10**6), ("1_000_000", 10**6), ("1.1k", 1100),
        (" 3 G", 3 * 10**9), ("1t", 10**12),
    ],
)  # fmt: skip
def test_a_large_number_as_people_write_it(written: str, number: int) -> None:
    """``-a words=1M`` was no whole number."""
    counts = [name for name, spec in SPECS.items() if type(spec.default) is int and spec.metadata["high"] is None]
    assert {"max_words", "max_pages", "max_documents", "max_host_documents", "max_downloaded_bytes"} <= set(counts)
    roomy = [name for name in counts if SPECS[name].metadata["low"] <= number]
    assert {read(name, written) for name in roomy} == {number}


@pytest.mark.parametrize(
    ("written", "number"),
    [("10GB", 10**10), ("512MiB", 2**29), ("1.5 kib", 1536), ("20m", 20 * 10**6), ("2e7b", 2 * 10**7)],
)
def test_a_size_as_people_write_it(written: str, number: int) -> None:
    assert read("max_downloaded_bytes", written) == parse_size(written) == number


def test_an_option_that_has_changed_is_told() -> None:
    meta = {"options": json.dumps({"quality": "no more", "ports": "80"})}
    lines = compare_options(Options(ports="80"), meta, Path(), from_archives=False)
    assert lines == ["SPIDERLING_QUALITY: 'no more' -> 'standard'"]


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
    assert parse_yield_profile(Options.from_settings({"SPIDERLING_YIELD_PROFILE": text}).yield_profile) == factor


@pytest.mark.parametrize("text", ["", "strict", "0", "1", "-0.1", "nan", "inf", "PAPER"])
def test_unknown_yield_profile(text: str) -> None:
    with pytest.raises(
        BadInput, match=r"it must be one of off, permissive, normal, paper or a number between 0 and 1\.$"
    ):
        Options.from_settings({"SPIDERLING_YIELD_PROFILE": text})


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


@pytest.mark.parametrize("agent", ["", "my bot", "mybot/1.0", "mybot.example.org", "pavouček"])
def test_an_agent_that_no_robots_txt_could_name_is_refused(agent: str) -> None:
    """Its groups were taken for those of others."""
    with pytest.raises(BadInput, match="SPIDERLING_ROBOTS_AGENT"):
        read("robots_agent", agent)
    assert read("robots_agent", "My_bot-2") == "My_bot-2"


def test_ports() -> None:
    assert parse_ports("80,") == {80}
    for ports in ("http", "80;443", "0", "65536", "", "²", "1" * 5000):
        with pytest.raises(BadInput, match="SPIDERLING_PORTS"):
            read("ports", ports)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("standard", QualityLimits()),
        ("text_chars=500..", QualityLimits(text_chars=Range(500))),
        ("standard, sentence_words = 5.. ,sentence_words=..90", QualityLimits(sentence_words=Range(5, 90))),
        ("standard,symbol_share=.05...5", QualityLimits(symbol_share=Range(0.05, 0.5))),
        ("sentence_words=300..", QualityLimits(sentence_words=Range(300))),
        ("stopword_share=..0.01", QualityLimits(stopword_share=Range(high=0.01))),
        ("standard,", QualityLimits()),
        (", text_chars=500..,,", QualityLimits(text_chars=Range(500))),
        ("standard,outlinks=..inf", QualityLimits(outlinks=Range())),
    ],
)
def test_limits_of_quality(text: str, limits: QualityLimits) -> None:
    assert parse_quality(text) == limits
    assert parse_quality("off") == QualityLimits(*[Range()] * len(fields(QualityLimits)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it must be one of standard, off, or values such as 'page_bytes=0..,text_chars=250..'"),
        ("lax", "it must be one of standard, off, or values such as 'page_bytes=0..,text_chars=250..'"),
        ("digits=..1", "'digits' is none of page_bytes, text_chars, badness, stopword_share, sentence_words, "
         "repeated_share, digit_share, symbol_share, good_share, packed_share, top_word_share, outlinks"),
        ("standard,badness=40", "badness must be a range, such as badness=20.. or badness=..200 or badness=20..200"),
        ("badness=x..", "badness must be a range, such as badness=20.. or badness=..200 or badness=20..200"),
        ("badness=5..nan", "badness must be a range, such as badness=20.. or badness=..200 or badness=20..200"),
        ("badness=-1..", "badness must be a range, such as badness=20.. or badness=..200 or badness=20..200"),
        ("symbol_share=0.3", "symbol_share must be a range of shares from 0 to 1, "
         "such as symbol_share=0.02.. or symbol_share=..0.8 or symbol_share=0.02..0.8"),
        ("sentence_words=..0.5", "sentence_words must go up to 1 at least, such as sentence_words=..200"),
        ("badness=41..40", "badness must be a range, such as badness=20.. or badness=..200 or badness=20..200"),
    ],
)  # fmt: skip
def test_unknown_limits_of_quality(text: str, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_quality(text)
    assert str(caught.value) == f"SPIDERLING_QUALITY is {text!r}; {why}."


@pytest.mark.parametrize("name", [spec.name for spec in fields(QualityLimits) if spec.name.endswith("_share")])
def test_shares_of_quality_are_at_most_one(name: str) -> None:
    """A limit meant in percent is refused, not a measure that is switched off."""
    for text in (f"off,{name}=..30", f"off,{name}=30..", f"off,{name}=0..1.01"):
        with pytest.raises(BadInput, match=f"{name} must be a range of shares from 0 to 1"):
            parse_quality(text)
    assert getattr(parse_quality(f"off,{name}=1.."), name) == Range(1)
    assert getattr(parse_quality(f"off,{name}=..1"), name) == Range(high=1)
    assert getattr(parse_quality(f"{name}=0..inf"), name) == Range()


def test_limits_of_traps() -> None:
    assert parse_traps("off") == TrapLimits(0, 0, 0, 0)
    assert parse_traps("mirror=0, pages=40") == TrapLimits(pages=40, mirror=0)
    assert parse_traps("copies=100000,subdomains=99999,mirror=30001") == TrapLimits(20, 100_000, 99_999, 30_001)
    for text in ("", "on", "pages", "pages=-1", "pages=30001", "pages=1e3", "page=5"):
        with pytest.raises(BadInput, match=r"^SPIDERLING_TRAPS is .*\.$"):
            Options.from_settings({"SPIDERLING_TRAPS": text})


@pytest.mark.parametrize(("cores", "web", "archives"), [(1, 1, 1), (2, 1, 2), (8, 7, 8)])
def test_archives_keep_a_text_worker_on_each_core(monkeypatch: Any, cores: int, web: int, archives: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr("spiderling.base.machine.GROUPS", Path("/none"))
    assert (Options().text_workers(), Options().text_workers(from_archives=True)) == (web, archives)
    assert Options(workers=3).text_workers() == Options(workers=3).text_workers(from_archives=True) == 3


def test_the_shards_of_a_machine_divide_it_and_what_is_given_is_that_of_each(monkeypatch: Any) -> None:
    monkeypatch.setattr("spiderling.base.options.usable_cores", lambda: 16)
    monkeypatch.setattr("spiderling.base.options.memory_bytes", lambda: 64 * 10**9)
    here = Options(cluster="unix:///s", shards=5)
    assert (here.text_workers(), here.filter_bytes()) == (2, 3_200_000_000)
    assert replace(here, cluster="redis://a/0").text_workers() == 15, "it is the only one that is known here"
    assert replace(here, shards=1000).text_workers() == 1 and replace(here, shards=1000).filter_bytes() == 16_000_000
    assert replace(here, shards=1024, workers=4, dedup_bytes=9_000_000).text_workers() == 4
