"""``spiderling COMMAND``: what ``scrapy COMMAND`` does in the checkout, from any directory.

In a Scrapy project that uses the add-on it takes the project's settings; otherwise those of settings.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module

from spiderling.base.terminal import command_name, end_at_signal

end_at_signal()  # what follows takes a second to import

import scrapy
from scrapy.cmdline import execute
from scrapy.utils.project import ENVVAR, get_project_settings

from spiderling import __version__, commands
from spiderling.base.machine import refusal
from spiderling.cli.command import OwnCommand, print_lines


def main() -> None:
    """Run the command that ``sys.argv`` names; exits with its code."""
    sys.argv[0] = "spiderling"  # its name in usage lines and messages; python -m has put a path there
    if sentence := refusal():
        sys.exit(f"spiderling: {sentence}")
    if sys.argv[1:2] in (["--version"], ["version"]):
        print(f"Spiderling {__version__}, Scrapy {scrapy.__version__}")
        return
    if command_name() in ("", "help"):
        print_lines(_overview())
        return
    if "SpiderlingAddon" not in str(list(get_project_settings()["ADDONS"])):
        os.environ[ENVVAR] = "spiderling.settings"
    execute(sys.argv)


def _overview() -> Iterator[str]:
    """The commands with their summaries."""
    yield f"Spiderling {__version__}: builds a text corpus in a language you name, from the live web"
    yield ""
    yield "  spiderling crawl -a lang=cs"
    yield "  spiderling COMMAND --help"
    yield ""
    for name in commands.NAMES:
        command = import_module(f"spiderling.commands.{name}").Command()
        if isinstance(command, OwnCommand):
            yield f"  {name:<10} {command.short_desc()}"
    yield ""
    yield "Scrapy's own commands (shell, fetch, view ...) work as well."


if __name__ == "__main__":
    main()
