"""What every command of ours does: its help names the program that runs, and it runs on Linux only."""

from __future__ import annotations

import argparse
import sys

from scrapy.exceptions import UsageError

from spiderling.base.systems import refusal
from spiderling.engine.flags import FlagChecked


def program() -> str:
    """The program that runs: ``spiderling`` (``spiderling/__main__.py``) or ``scrapy``; both have the same commands."""
    return "spiderling" if sys.argv[0] == "spiderling" else "scrapy"


class OwnCommand(FlagChecked):
    """A command of ours; the class that it extends follows it."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.usage = (parser.usage or "").replace("scrapy", program(), 1)
        parser.description = (parser.description or "").replace("Example: scrapy ", f"Example: {program()} ")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if sentence := refusal():
            raise UsageError(sentence, print_help=False)
        super().process_options(args, opts)
