"""The frame of every command but ``crawl``: how it is described, what it prints, how it fails."""

from __future__ import annotations

import argparse
import os
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.conf import arglist_to_dict

from spiderling.base import interrupts
from spiderling.base.errors import BadInput, NetworkAway, SpiderlingError
from spiderling.base.printing import printable
from spiderling.engine.exit_codes import INTERRUPTED, NO_NETWORK
from spiderling.engine.program import OwnCommand, program

Option: TypeAlias = "tuple[tuple[str, ...], dict[str, Any]]"


def option(*flags: str, **keywords: Any) -> Option:
    """An option of a command, as ``argparse.ArgumentParser.add_argument`` takes it."""
    return flags, keywords


class SpiderlingCommand(OwnCommand):
    """A command that needs no project and begins no crawl of the user's; its name is that of its module.

    Exit codes: 0; 2 for wrong usage; ``error_code`` after an error, told in one sentence on standard error, but 3 if
    there is no network; 130 after Ctrl-C; the ``exitcode`` that ``work`` sets.
    """

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    arguments: str
    """The usage line after the command's name."""
    summary: str
    """One line in the list of commands."""
    description: str
    """Sentences for ``-h``; they end with an example."""
    options: Sequence[Option] = ()
    """The command's options besides Scrapy's own."""
    error_code = 1
    """Exit code after an error."""
    if_interrupted = "interrupted."
    """Message after Ctrl-C."""

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
            interrupts.end_as_usual()
            print_lines(self.work(args, opts))
        except (SpiderlingError, MemoryError) as error:
            code = NO_NETWORK if isinstance(error, NetworkAway) else self.error_code
            self.fail(str(error) or "there is too little memory.", code)
        except KeyboardInterrupt:
            self.fail(self.if_interrupted, INTERRUPTED)
        finally:
            interrupts.end_at_once()

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
