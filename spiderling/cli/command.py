"""The frame of every command: how it is described, its flags, what it prints, how it fails, how it crawls."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy import Spider
from scrapy.addons import AddonManager
from scrapy.commands import BaseRunSpiderCommand, ScrapyCommand
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.utils.conf import arglist_to_dict

from spiderling.base.errors import BadInput, JobdirError, NetworkAway, SpiderlingError, StorageError
from spiderling.base.files import saving
from spiderling.base.machine import missing, refusal, require, usable_cores
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.terminal import count_of, end_at_signal, ignore_signals, nearest, printable, restore_signals
from spiderling.crawl.arguments import AUTO, directory_of, options_of, progress_s
from spiderling.engine.scheduler import FAILED_STAT, INTERRUPTED, NO_NETWORK, NOT_OPENED, OFFLINE, Opening

if TYPE_CHECKING:
    from spiderling.cluster.launcher import LaunchPlan

logger = logging.getLogger(__name__)

Option: TypeAlias = "tuple[tuple[str, ...], dict[str, Any]]"
_FLAG = re.compile(r"--?[a-zA-Z]")
_IN_HELP = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def program() -> str:
    """The program that runs: ``spiderling`` (``spiderling/__main__.py``) or ``scrapy``; both have the same commands."""
    return "spiderling" if sys.argv[0] == "spiderling" else "scrapy"


def option(*flags: str, **keywords: Any) -> Option:
    """An option of a command, as ``argparse.ArgumentParser.add_argument`` takes it."""
    return flags, keywords


def spider_arguments(help_text: str) -> Option:
    """The option ``-a NAME=VALUE``; `named_values` reads what is given."""
    return option("-a", dest="spargs", action="append", default=[], metavar="NAME=VALUE", help=help_text)


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
    number: int | None = None  # of arguments besides options; None: ``work`` looks at it
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
        if self.number not in (None, len(args)):
            raise UsageError(f"say {program()} {self.own_name()} {self.arguments}", print_help=False)
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
        print(f"{program()} {self.own_name()}: {sentence}", file=sys.stderr)

    def own_name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    @property
    def given_settings(self) -> Settings:
        assert self.settings is not None, "Scrapy sets them before it runs a command"
        return self.settings


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines*, which may hold text of any page, until nobody reads the output any more."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for line in lines:
        if not _is_read(f"{printable(line)}\n"):
            return
    _is_read("", flush=True)


def _is_read(text: str, flush: bool = False) -> bool:
    """Print *text*; False if nobody reads the output any more, which is no error (``scrapy inspect ... | head``).

    Raises StorageError.
    """
    try:
        with saving("the output"):
            print(text, end="", flush=flush)
    except StorageError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again at its end
        if not isinstance(error.__cause__, BrokenPipeError):
            raise
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


_TALKATIVE = ("utils.log", "addons", "middleware", "crawler", "core.engine", "extensions.telnet")
"""Loggers of Scrapy that list its parts at the level INFO."""


class CrawlCommand(OwnCommand, BaseRunSpiderCommand):
    """Exits with 1 if the crawl could not begin or go on, and with 3 without a network.  Scrapy's class follows it."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        end_at_signal(NOT_OPENED)
        assert self.settings is not None
        AddonManager.load_pre_crawler_settings(self.settings)  # -o is judged by the formats of add-ons too
        super().process_options(args, opts)
        if any(feed.get("format") == "parquet" for feed in self.settings["FEEDS"].values()) and missing("parquet"):
            raise UsageError(f"{missing('parquet')}.", print_help=False)
        if not self.settings.getpriority("LOG_LEVEL") or self.settings["LOG_LEVEL"] != "DEBUG":
            _quieten()

    def check_arguments(self, crawler: Crawler, arguments: Mapping[str, str]) -> None:
        """Raise BadInput for arguments of the spider that cannot be, before an engine is made."""

    def has_run_shards(self, args: list[str]) -> bool:
        """Whether other processes were the shards of the crawl, and have ended; raises BadInput or JobdirError."""
        return False

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.spider_arguments = opts.spargs
        try:
            if self.has_run_shards(args):
                return
            if isinstance(self.crawler_process, AsyncCrawlerProcess):
                # the first thing that the event loop does
                asyncio.get_event_loop().call_soon(lambda: Opening(self._made))
            super().run(args, opts)  # type: ignore[safe-super]
        except (BadInput, JobdirError) as error:
            logger.error("The crawl stops: %s", error)
            self.exitcode = 1
            return
        finally:
            ignore_signals()
        engine = self._made._engine
        if engine is not None and engine.spider is not None and not self.exitcode:
            logger.warning("Stopped at once by a second signal; the same command goes on and fetches what is lost")
        failed = self._made.stats.get_value(FAILED_STAT) if self._made._stats else None
        if failed:
            self.exitcode = NO_NETWORK if failed == OFFLINE else 1

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self._made = super()._create_crawler(spidercls)
        self.check_arguments(self._made, self.spider_arguments)
        return self._made


def _quieten() -> None:
    """Keep Scrapy's list of its parts from hiding the few lines that a person reads."""
    for name in _TALKATIVE:
        logging.getLogger(f"scrapy.{name}").addFilter(lambda record: record.levelno > logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.INFO)  # the add-on's LOG_LEVEL comes too late for its first line


_SHARDS = f"{PREFIX}SHARDS"
_CLUSTER = f"{PREFIX}CLUSTER"
_PAGE = f"{PREFIX}PAGE"
_OF_THE_LAUNCHER = ("--pidfile=", "--profile=")  # flags of the command that hold for the process that starts the shards


def wanted_shards(settings: BaseSettings) -> int | None:
    """The number of shards that this process is to start, 0 for as many as fit; None: it crawls itself.

    Raises BadInput if SPIDERLING_SHARDS is no number of shards.
    """
    said = str(settings.get(_SHARDS) or 1).strip()
    has_redis = bool(settings.get(_CLUSTER))
    if said == AUTO:
        if has_redis:
            raise BadInput(
                f"{_SHARDS}={AUTO} starts all shards on this machine, with a Redis of their own: give no {_CLUSTER}, "
                f"or give a number of shards."
            )
        return 0
    number = Options.from_settings({_SHARDS: said}).shards
    return None if has_redis or number == 1 else number


def plan_of(crawler: Crawler, arguments: Mapping[str, str], wanted: int) -> LaunchPlan | None:
    """What to start for *wanted* shards, 0: as many as the cores call for; None: this process crawls by itself.

    Raises SpiderlingError.
    """
    spider = crawler.spidercls(**arguments)
    if hasattr(spider, "archives"):
        if wanted:
            raise BadInput(f"archives are read without {_SHARDS}: each process can read its own files.")
        return None
    settings = crawler.settings
    options = options_of(settings, spider)
    directory = directory_of(settings, options)
    is_whole = (directory / "state").exists()
    if is_whole and wanted:
        raise JobdirError(
            f"{directory} holds a crawl without shards: divide it with scrapy reshard, or give another directory with "
            "-s JOBDIR=..."
        )
    from spiderling.cluster.launcher import LaunchPlan, shards_for

    cores = count_of(usable_cores(), "core")
    begun = _shards_in(directory)
    if begun and wanted and begun != wanted:
        raise BadInput(f"the crawl in {directory} has {_SHARDS}={begun}, not {wanted}; scrapy reshard changes that.")
    shards = begun or wanted or shards_for(usable_cores())
    if is_whole or (shards == 1 and not begun):
        why = "it has none so far" if is_whole else f"{cores} call for no more than one process"
        logger.info("The crawl in %s goes without shards: %s", directory.resolve(), why)
        return None
    require("cluster")
    if settings.getdict("FEEDS"):
        raise BadInput("-o and -O are for a crawl without shards; of one with shards scrapy export writes such files.")
    getattr(spider, "prepare", lambda: None)()  # a mistake in the seeds is told once
    common = {"JOBDIR": str(directory), _SHARDS: str(shards), "LOG_FILE_APPEND": "True"}
    if (settings.getpriority("LOG_LEVEL") or 0) < SETTINGS_PRIORITIES["project"]:  # else it holds for them too
        common["LOG_LEVEL"] = "WARNING"
    each = [common] + (shards - 1) * [{**common, _PAGE: ""}]  # the live page of one shard shows all of them
    place = directory.resolve()
    words = (
        f"{'Resuming' if begun else 'Starting'} the crawl in {place}: {count_of(shards, 'shard')} on {cores}. "
        "Each logs to its own crawl.log; its warnings and errors stand here too"
    )
    command = [sys.executable, *sys.orig_argv[1:], *_OF_THE_LAUNCHER]
    return LaunchPlan(command, directory, each, words, progress_s(settings))


def _shards_in(directory: Path) -> int:
    """How many shards the crawl in *directory* has; 0 if it is not begun, or has none."""
    from spiderling.jobdir.inspection import parts_in, reading

    for part in parts_in(directory):
        if part != directory and (part / "state/frontier.sqlite").is_file():
            with reading(part) as crawl:
                if (shard := crawl.parts[0].shard) is not None:
                    return shard.shards
    return 0
