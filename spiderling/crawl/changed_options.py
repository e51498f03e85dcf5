"""Compares the options of a resumed crawl with those that it was begun with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.option_values import PREFIX, parse_ports, parse_traps, parse_yield_profile
from spiderling.base.options import Options
from spiderling.jobdir.sound_reading import noted
from spiderling.text.boilerplate.rules import parse_rules
from spiderling.text.quality import parse_quality

_UNCHANGEABLE = ("lang", "yield_unit", "dedup", "shards")
"""Options that a resumed crawl must not change: they have judged what is kept already, or whose hosts it asks."""
_PARSERS: dict[str, Callable[[str], object]] = {
    "quality": parse_quality,
    "traps": parse_traps,
    "justext_preset": parse_rules,
    "ports": parse_ports,
    "yield_profile": parse_yield_profile,
}
"""Options that can be written in several ways -> what reads them."""


def compare_options(options: Options, meta: Mapping[str, str], directory: Path, from_archives: bool) -> list[str]:
    """A line 'name: old -> new' for each option that has changed; raises JobdirError for one that must not."""
    if meta and from_archives != noted(meta, "from_archives", from_archives):
        kinds = ("the web", "archives")
        raise JobdirError(
            f"the corpus in {directory} was begun from {kinds[not from_archives]}, not from {kinds[from_archives]}. "
            "Give another directory with -s JOBDIR=..."
        )
    former = noted(meta, "options", dict[str, object]())
    lines = []
    for name, value in options.on_record().items():
        old = former.get(name, value)
        if old == value or _means_the_same(name, old, value):
            continue
        if name in _UNCHANGEABLE:
            raise JobdirError(
                f"the crawl in {directory} was begun with {PREFIX}{name.upper()}={old!r}, not {value!r}. "
                "Resume it with the same value, or begin another with -s JOBDIR=..."
            )
        lines.append(f"{PREFIX}{name.upper()}: {old!r} -> {value!r}")
    return lines


def _means_the_same(name: str, old: object, value: str) -> bool:
    """Whether two texts of an option say the same in other words."""
    parse = _PARSERS.get(name)
    if parse is None or not isinstance(old, str):
        return False
    try:
        return parse(old) == parse(value)
    except BadInput:  # another version took the old one
        return False
