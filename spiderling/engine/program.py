"""What every command of ours does: its help names the program that runs, and it runs on Linux only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pkgutil import iter_modules

import scrapy.commands
from scrapy.exceptions import UsageError
from scrapy.utils.project import get_project_settings

from spiderling.base.printing import nearest
from spiderling.base.systems import refusal
from spiderling.engine.flags import FlagChecked

_USAGE = 2
"""Exit code of wrong usage."""


def program() -> str:
    """The program that runs: ``spiderling`` (``spiderling/__main__.py``) or ``scrapy``; both have the same commands."""
    return "spiderling" if sys.argv[0] == "spiderling" else "scrapy"


def command_name() -> str:
    """The command that ``sys.argv`` names; '' if none."""
    return next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")


def refuse_unknown(ours: Iterable[str], module: str) -> None:
    """Exit if the command that ``sys.argv`` names is none of Scrapy's, of *ours* and of those of other packages.

    Only where the project's commands are those of our *module*: its own may have any name.
    """
    name = command_name()
    if not name or get_project_settings()["COMMANDS_MODULE"] != module:
        return
    known = {*ours, *(command.name for command in iter_modules(scrapy.commands.__path__))}
    if name not in known | entry_points(group="scrapy.commands").names:
        meant = "".join(f"; did you mean {near}?" for near in nearest(name, known)) or "."
        print(f"{program()}: there is no command {name}{meant} All are listed by: {program()}", file=sys.stderr)
        sys.exit(_USAGE)


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
