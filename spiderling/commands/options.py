"""``scrapy options [WORD]``: every option of a crawl, with unit, default and bounds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.cli.command import SpiderlingCommand, none_has

UNITS = {"_s": "s", "_bytes": "bytes", "_pages": "pages", "_share": "0 to 1"}  # end of an option's name -> its unit


class Command(SpiderlingCommand):
    arguments = "[WORD]"
    summary = "List the options of a crawl"
    description = (
        "List the options of a crawl, each with its unit, default and bounds; they are given by -s NAME=VALUE or in "
        "the settings. With a WORD, those with it in the name or the explanation. Example: scrapy options interval"
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        word = " ".join(args).lower()
        found = [spec for spec in fields(Options) if word in f"{PREFIX}{spec.name} {spec.metadata['help']}".lower()]
        if not found:
            raise none_has(word, "option")
        for spec in found:
            default = "empty" if spec.default == "" else spec.default
            facts = (unit(spec), f"default {default}", bounds(spec))
            yield f"{PREFIX}{spec.name.upper()}  ({'; '.join(filter(None, facts))})"
            yield f"    {spec.metadata['help']}"


def unit(spec: Field[Any]) -> str:
    """The unit that the option's name ends in; empty if it has none."""
    return next((unit for suffix, unit in UNITS.items() if spec.name.endswith(suffix)), "")


def bounds(spec: Field[Any]) -> str:
    """The values that it may have; empty if any."""
    low, high, choices = (spec.metadata[key] for key in ("low", "high", "choices"))
    ends = [f"from {low:g}" if low is not None else "", f"to {high:g}" if high is not None else ""]
    return ", ".join(choices) or " ".join(filter(None, ends))
