"""The frame of every command: how it is described, which flags it knows, what it prints, how it fails."""

from __future__ import annotations

import argparse
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeAlias

import scrapy.commands
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import get_project_settings

from spiderling.base.errors import BadInput, NetworkAway, SpiderlingError
from spiderling.base.machine import refusal
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.terminal import command_name, end_at_signal, nearest, printable, restore_signals
from spiderling.engine.scheduler import INTERRUPTED, NO_NETWORK

Option: TypeAlias = "tuple[tuple[str, ...], dict[str, Any]]"
_USAGE = 2  # exit code of wrong usage
_FLAG = re.compile(r"--?[a-zA-Z]")
_IN_HELP = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def program() -> str:
    """The program that runs: ``spiderling`` (``spiderling/__main__.py``) or ``scrapy``; both have the same commands."""
    return "spiderling" if sys.argv[0] == "spiderling" else "scrapy"


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


def option(*flags: str, **keywords: Any) -> Option:
    """An option of a command, as ``argparse.ArgumentParser.add_argument`` takes it."""
    return flags, keywords


class OwnCommand(ScrapyCommand):
    """A command of ours, which knows its flags; Scrapy's class that it extends follows it."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        self._parser = parser
        parser.usage = (parser.usage or "").replace("scrapy", program(), 1)
        parser.description = (parser.description or "").replace("Example: scrapy ", f"Example: {program()} ")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if sentence := refusal():
            raise UsageError(sentence, print_help=False)
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


class SpiderlingCommand(OwnCommand):
    """A command that needs no project and begins no crawl of the user's; its name is that of its module.

    Exit codes: 0; 2 for wrong usage; ``error_code`` after an error, told in one sentence on standard error, but 3 if
    there is no network; 130 after Ctrl-C; the ``exitcode`` that ``work`` sets.
    """

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    arguments: str  # the usage line after the command's name
    summary: str  # one line in the list of commands
    description: str  # sentences for ``-h``; they end with an example
    options: Sequence[Option] = ()  # the command's options besides Scrapy's own
    error_code = 1  # exit code after an error
    if_interrupted = "interrupted."  # message after Ctrl-C

    @abstractmethod
    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        """Run the command, yielding lines to print; raises SpiderlingError, and UsageError for wrong usage."""

    def syntax(self) -> str:
        return self.arguments

    def short_desc(self) -> str:
        return self.summary

    def long_desc(self) -> str:
        return self.description

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        for flags, keywords in self.options:
            parser.add_argument(*flags, **keywords)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            restore_signals()
            print_lines(self.work(args, opts))
        except (SpiderlingError, MemoryError) as error:
            code = NO_NETWORK if isinstance(error, NetworkAway) else self.error_code
            self.fail(str(error) or "there is too little memory.", code)
        except KeyboardInterrupt:
            self.fail(self.if_interrupted, INTERRUPTED)
        finally:
            end_at_signal()

    def fail(self, sentence: str, code: int) -> None:
        """Say what went wrong; the command ends with *code*."""
        self.warn(sentence)
        self.exitcode = code

    def warn(self, sentence: str) -> None:
        name = type(self).__module__.rpartition(".")[2]
        print(f"{program()} {name}: {sentence}", file=sys.stderr)

    @property
    def given_settings(self) -> Settings:
        assert self.settings is not None, "Scrapy sets them before it runs a command"
        return self.settings


def none_has(word: str, unit: str) -> BadInput:
    """The error of a list of which no *unit* has the *word* that was asked for."""
    return BadInput(f"no {unit} has {word!r} in it; all are listed by: {program()} {unit}s")


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines*, which may hold text of any page, until nobody reads the output any more."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for line in lines:
        if not _is_read(f"{printable(line)}\n"):
            return
    _is_read("", flush=True)


def _is_read(text: str, flush: bool = False) -> bool:
    """Print *text*; False if nobody reads the output any more, which is no error (``scrapy inspect ... | head``)."""
    try:
        print(text, end="", flush=flush)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def named_values(pairs: Sequence[str]) -> dict[str, str]:
    """The values of ``-a NAME=VALUE`` by name; raises UsageError."""
    try:
        return arglist_to_dict(list(pairs))
    except ValueError:
        raise UsageError("write arguments as -a NAME=VALUE, such as -a lang=cs", print_help=False) from None


def read_input(name: str, alternatives: str) -> bytes:
    """The bytes of the file *name*, or of standard input for ``-``; raises BadInput that names *alternatives*."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}; give a file, {alternatives}.") from None
