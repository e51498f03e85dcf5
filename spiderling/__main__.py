"""``spiderling COMMAND``: what ``scrapy COMMAND`` does in the checkout, from any directory.

In a Scrapy project that uses the add-on it takes the project's settings; otherwise those of settings.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

import scrapy.commands
from scrapy.cmdline import execute
from scrapy.utils.project import ENVVAR, get_project_settings

from spiderling import __version__, commands
from spiderling.base.printing import nearest
from spiderling.base.systems import refusal
from spiderling.engine.command import print_lines
from spiderling.engine.program import OwnCommand

USAGE = 2
"""Exit code of wrong usage."""


def main() -> None:
    """Run the command that ``sys.argv`` names; exits with its code."""
    sys.argv[0] = "spiderling"  # its name in usage lines and messages; python -m has put a path there
    if sentence := refusal():
        sys.exit(f"spiderling: {sentence}")
    if sys.argv[1:2] in (["--version"], ["version"]):
        print(f"Spiderling {__version__}, Scrapy {scrapy.__version__}")
        return
    name = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    ours = [module.name for module in iter_modules(commands.__path__)]
    if name in ("", "help"):
        print_lines(_overview(ours))
        return
    if "SpiderlingAddon" not in str(list(get_project_settings()["ADDONS"])):
        os.environ[ENVVAR] = "spiderling.settings"
    if get_project_settings()["COMMANDS_MODULE"] == commands.__name__:
        _refuse_unknown(name, {*ours, *(module.name for module in iter_modules(scrapy.commands.__path__))})
    execute(sys.argv)


def _refuse_unknown(name: str, known: set[str]) -> None:
    """Exit unless *name* is one of the *known* commands or of those that another package brings."""
    if name not in known | entry_points(group="scrapy.commands").names:
        meant = "".join(f"; did you mean {near}?" for near in nearest(name, known)) or "."
        print(f"spiderling: there is no command {name}{meant} All are listed by: spiderling", file=sys.stderr)
        sys.exit(USAGE)


def _overview(names: list[str]) -> Iterator[str]:
    """The commands with their summaries."""
    yield f"Spiderling {__version__}: builds a text corpus in a language you name, from the live web"
    yield ""
    yield "  spiderling crawl -a lang=cs"
    yield "  spiderling COMMAND --help"
    yield ""
    for name in names:
        command = import_module(f"spiderling.commands.{name}").Command()
        if isinstance(command, OwnCommand):
            yield f"  {name:<10} {command.short_desc()}"
    yield ""
    yield "Scrapy's own commands (shell, fetch, view ...) work as well."


if __name__ == "__main__":
    main()
