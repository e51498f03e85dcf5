"""Refuses the flags that a command does not have, which Scrapy takes for arguments, and options without prefix."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.printing import nearest

_FLAG = re.compile(r"--?[a-zA-Z]")
_IN_HELP = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class FlagChecked(ScrapyCommand):
    """A command that knows its flags.  Scrapy's class follows it."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        self._parser = parser

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        for arg in args:
            if _FLAG.match(arg):
                flag = arg.partition("=")[0]
                meant = {name: name for name in _IN_HELP.findall(self._parser.format_help())} | self.written_otherwise()
                near = nearest(flag, meant)
                hint = f"did you mean {meant[near[0]]}?" if near else "-h lists all."
                raise UsageError(f"there is no option {flag}; {hint}", print_help=False)
        options = {spec.name.upper() for spec in fields(Options)}
        for name in (pair.partition("=")[0] for pair in opts.set):
            if name.upper() in options:
                raise UsageError(
                    f"-s {name} is no setting of Scrapy; did you mean {PREFIX}{name.upper()}? A setting of your own "
                    "with this name stands in settings.py.",
                    print_help=False,
                )
        super().process_options(args, opts)

    def written_otherwise(self) -> dict[str, str]:
        """What a user may write as a flag, and how it is written."""
        return {}
