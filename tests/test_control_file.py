"""Whatever stands in control.yaml is either within the bounds of its option, or refused in one line that says what."""

from __future__ import annotations

import json
import math
import os
import socket
import string
import time
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.files import open_regular
from spiderling.base.option_values import parse_yield_profile
from spiderling.base.options import Options
from spiderling.crawl.budgets import Budgets
from spiderling.jobdir.control_file import TEMPLATE, ControlFile, change, hosts_of, networks_of, read_control
from spiderling.languages.registry import read_description

KEYS = [spec.name for spec in fields(ControlFile)]
NUMBERS = {"host_interval_s": 86_400, "ip_interval_s": 3_600, "max_pages": math.inf, "max_downloaded_mb": math.inf}
"""Key of a number -> its upper bound; the lower one is 0."""
MAX_CHARS = 400
SCALARS = st.one_of(
    st.integers().map(str),
    st.integers(1, 5000).map(lambda digits: "1" + "0" * digits),
    st.integers(1, 20_000).map(lambda digits: "0x" + "f" * digits),
    st.floats().map(repr),
    st.sampled_from(
        [
            ".nan", ".inf", "-.inf", "1.0e+308", "1.0e+400", "-0.0", "1e3", "1M", "~", "", "yes", "off", "null",
            "'5'", "2026-11-27", "2026-99-99", "2026-11-27 10:00:00", "1:30", "1:" * 60 + "1", "1:" * 400_000 + "1",
            "0b1", "0o7", "!!bool x", "!!int ''", "!!float ''", "!!int x", "!!timestamp x", "!!binary '*'",
            "!!binary YQ==", "!!set {a}", "!!omap [a: 1]", "!!pairs [a]", "!!null x", "!!str 5",
            "!!python/object/apply:os.system [ls]", "!x y", "=", "&a 5", "*a", "<<", '"\\ud800"', '"\\0"',
            '"\\x1b[2J"', '"\\n"', "\t5", "|\n  5", "[", "{", "}", "%", "@", "`", "{a: 1}", "[[[]]]", "[1, 2]",
            "[a, 5]", '["\\udfff"]', '["a\\nb"]', "[" * 30 + "]" * 30, "x" * 100_000,
        ]
    ),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=20),
    st.text(string.printable, max_size=20),
)  # fmt: skip
LISTS = st.lists(st.one_of(SCALARS, st.text(max_size=10).map(json.dumps)), max_size=4).map(
    lambda parts: f"[{', '.join(parts)}]"
)
LINES = st.builds(
    "{}{}: {}".format,
    st.sampled_from(["", "", "", "? ", "- ", "\t", "  "]),
    st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS), SCALARS),
    st.one_of(SCALARS, LISTS),
)


def is_within_bounds(control: ControlFile) -> bool:
    numbers = [(getattr(control, key), most) for key, most in NUMBERS.items()]
    return all(number is None or 0 <= number <= most for number, most in numbers) and type(control.pause) is bool


def judged(text: str) -> ControlFile | None:
    """What *text* says; None if it is refused, and then in one line."""
    try:
        return ControlFile.parse(text)
    except BadInput as error:
        said = str(error)
    assert len(said) <= MAX_CHARS and said.isprintable(), said
    return None


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=3).map("\n".join))
@example("max_pages: 1" + "0" * 400)
@example("host_interval_s: 1.0e+308")
@example("max_downloaded_mb: 1.0e+308")
@example("pause: true\npause: false")
@example("host_interval_s: " + "1:" * 400_000 + "1")
@example("yield_profile: 0x" + "f" * 20_000)
@example("seeds: ['http://a.test/\N{RIGHT-TO-LEFT OVERRIDE}']")
def test_any_value_takes_effect_within_bounds_or_is_refused_in_one_line(text: str) -> None:
    """A budget with 400 zeros ended the crawl; an interval of 1e308 seconds was taken."""
    begin = time.process_time()
    control = judged(text)
    assert time.process_time() - begin < 10.0, "it holds the crawl up"
    if control is None:
        return
    assert is_within_bounds(control)
    json.dumps(asdict(control)).encode()
    for entry in (*control.block, *control.seeds, *control.reopen, *control.ask_again):
        entry.encode()
    hosts_of(control.block)
    networks_of(control.block_networks)
    if control.yield_profile is not None:
        parse_yield_profile(control.yield_profile)
    budgets = Budgets(Options())
    budgets.set_control_limits(control.max_pages, control.max_downloaded_mb)
    assert budgets.has_room({"pages": 1}, 1) in (True, False)
    budgets.find_spent({"pages": 1})


@pytest.mark.parametrize(("key", "most"), NUMBERS.items())
def test_a_number_out_of_bounds_is_told_with_its_bounds(key: str, most: float) -> None:
    bounds = "at least 0" if most == math.inf else f"between 0 and {most}"
    for value in ("-1", ".nan", "true", "[5]", "1" + "0" * 400 if most < math.inf else "-1.0e+308"):
        with pytest.raises(BadInput, match=rf"^{key} is .*; it must be a (whole )?number, {bounds}$"):
            ControlFile.parse(f"{key}: {value}")
    assert getattr(ControlFile.parse(f"{key}: 7"), key) == 7


BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))])
"""Less than a kilobyte that stands for a thousand million values."""
REFUSED = {
    **{f"block: [{entry!r}]": "names no host" for entry in ("a b", "http://", "no host!", "*.x/y", " ")},
    "ask_again: dns": "it must be a list such as .*dns",
    "reopen: a.test": r"it must be a list such as .*example\.org",
    # the crawl's loop reads the file: brackets took minutes, a number or date that is none ended the reading
    "block: " + "[" * 20_000 + "]" * 20_000: "lists in each other",
    "block: [" + "[], " * 300_000 + "]": "entries",
    BOMB: "anchors and aliases",
    "seeds: *a": "anchors and aliases",
    "max_pages: " + "9" * 5000: "line 1 has a number of more than 1000 characters",
    "max_pages: 2026-99-99": "no YAML",
    "block: [": "no YAML",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=[text[:30] for text in REFUSED])
def test_what_is_refused_is_told(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ControlFile.parse(text)


def test_the_description_of_a_model_is_read_as_carefully(tmp_path: Path) -> None:
    (tmp_path / "language.yaml").write_text(BOMB)
    with pytest.raises(BadInput, match=r"language\.yaml.*anchors and aliases"):
        read_description(tmp_path)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["max_pages", "max_downloaded_mb"]),
    st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.booleans()),
)
@example("max_pages", 10**400)
@example("max_downloaded_mb", math.inf)
def test_what_the_live_page_sends_goes_through_the_same_bounds(tmp_path_factory, key: str, value: object) -> None:
    path = tmp_path_factory.mktemp("control") / "control.yaml"
    path.write_text(TEMPLATE)
    said = ""
    try:
        change(path, {"action": "budget", key: value})
    except BadInput as error:
        said = str(error)
    assert len(said) <= MAX_CHARS and (said.isprintable())
    assert path.read_text() == TEMPLATE if said else is_within_bounds(ControlFile.parse(path.read_text()))


def no_files(directory: Path) -> dict[str, Path]:
    """What may stand where a file is looked for; nothing can be read from any, or without end."""
    places = {name: directory / name for name in ("a pipe", "a directory", "a socket", "a link to an endless device")}
    os.mkfifo(places["a pipe"])
    places["a directory"].mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(places["a socket"]))
    places["a link to an endless device"].symlink_to("/dev/zero")
    return places


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """To open a pipe took until somebody wrote to it: the crawl stood still meanwhile."""
    for name, place in no_files(tmp_path).items():
        for read in (open_regular, read_control):
            with pytest.raises(OSError):  # noqa: PT011 - each has its own number
                read(place)
        with pytest.raises(BadInput, match=r"control|pipe|device|directory|socket"):
            change(place, {"action": "pause"})
        assert place.exists(), name


def test_a_file_without_end_is_read_no_further_than_the_most(tmp_path: Path) -> None:
    place = tmp_path / "control.yaml"
    with place.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadInput, match="larger than 1000000 bytes"):
        read_control(place)
