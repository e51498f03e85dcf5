"""Which options a resumed crawl may change, and which not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from spiderling.base.errors import JobdirError
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.removed_options import FIXED, translated
from spiderling.frontier.storage.soundness import noted

FIXED_OPTIONS = ("lang", "yield_unit", "dedup")
"""Options that a resumed crawl must not change: they have judged what is kept already."""


def compare_options(options: Options, meta: Mapping[str, str], directory: Path, from_archives: bool) -> list[str]:
    """A line 'name: old -> new' for each option that has changed; raises JobdirError for one that must not."""
    if meta and from_archives != noted(meta, "from_archives", from_archives):
        kinds = ("the web", "archives")
        raise JobdirError(
            f"the corpus in {directory} was begun from {kinds[not from_archives]}, not from {kinds[from_archives]}. "
            "Give another directory with -s JOBDIR=..."
        )
    former = translated(noted(meta, "options", dict[str, object]()))
    lines = []
    for name, value in (asdict(options) | {name: fixed.value for name, fixed in FIXED.items()}).items():
        old = former.get(name, value)
        if old == value:
            continue
        if name in FIXED_OPTIONS:
            raise JobdirError(
                f"the crawl in {directory} was begun with {PREFIX}{name.upper()}={old!r}, not {value!r}. "
                "Resume it with the same value, or begin another with -s JOBDIR=..."
            )
        lines.append(f"{PREFIX}{name.upper()}: {old!r} -> {value!r}")
    return lines
