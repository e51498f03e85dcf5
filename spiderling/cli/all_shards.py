"""Whether ``scrapy crawl`` starts all shards of its crawl on this machine, and with what: SPIDERLING_SHARDS without
SPIDERLING_CLUSTER."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.extras import require
from spiderling.base.machine import memory_bytes, usable_cores
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.printing import counted
from spiderling.crawl.arguments import AUTO, JOB, directory_of, options_of

if TYPE_CHECKING:
    from spiderling.cluster.launcher import Plan

logger = logging.getLogger(__name__)

_SHARDS = f"{PREFIX}SHARDS"
_CLUSTER = f"{PREFIX}CLUSTER"
_PAGE = f"{PREFIX}PAGE"
_OF_THE_LAUNCHER = ("--logfile=", "--pidfile=", "--profile=")
"""Flags of the command that hold for the process that starts the shards."""


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


def plan_of(crawler: Crawler, arguments: Mapping[str, str], wanted: int) -> Plan | None:
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
    directory = directory_of(settings, options, job=getattr(spider, JOB, ""))
    is_whole = (directory / "state").exists()
    if is_whole and wanted:
        raise JobdirError(f"{directory} holds a crawl without shards. Give another directory with -s JOBDIR=...")
    from spiderling.cluster.launcher import Machine, divided, given_among, shards_for, told

    machine = Machine(usable_cores(), memory_bytes())
    begun = _shards_in(directory)
    if begun and wanted and begun != wanted:
        raise BadInput(f"the crawl in {directory} has {_SHARDS}={begun}, not {wanted}; that cannot change.")
    shards = begun or wanted or shards_for(machine.cores)
    if is_whole or (shards == 1 and not begun):
        why = (
            "it has none so far" if is_whole else f"{counted(machine.cores, 'core')} call for no more than one process"
        )
        logger.info("The crawl in %s goes without shards: %s", directory.resolve(), why)
        return None
    require("cluster")
    if settings.getdict("FEEDS"):
        raise BadInput("-o and -O are for a crawl without shards; of one with shards scrapy export writes such files.")
    from spiderling.cluster.launcher import Plan

    shares = divided(options, given_among(settings), shards, machine)
    common = {"JOBDIR": str(directory), _SHARDS: str(shards)}
    each = [{**common, **share.settings()} for share in shares]
    for other in each[1:]:
        other[_PAGE] = ""  # the live page of one shard shows all of them
    verb = "Resuming" if begun else "Starting"
    words = (
        f"{verb} the crawl in {directory.resolve()}: {told(shares, machine)}. Each logs to its own crawl.log; its "
        "warnings and errors stand here too"
    )
    command = [sys.executable, *sys.orig_argv[1:], *_OF_THE_LAUNCHER]
    return Plan(command, directory, each, words, options.progress_s)


def _shards_in(directory: Path) -> int:
    """How many shards the crawl in *directory* has; 0 if it is not begun, or has none."""
    from spiderling.jobdir.inspection import Inspection
    from spiderling.jobdir.shards import parts_in

    for part in parts_in(directory):
        if part != directory and (part / "state/frontier.sqlite").is_file():
            inspection = Inspection(part)
            try:
                if inspection.shard is not None:
                    return inspection.shard.shards
            finally:
                inspection.close()
    return 0
