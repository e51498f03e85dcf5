"""``scrapy reshard JOBDIR --shards N``: a paused crawl is divided over more shards."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from scrapy.exceptions import UsageError

from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    arguments = "JOBDIR --shards N"
    number = 1
    summary = "Divide a paused crawl over more shards, or one of one process over its first ones"
    description = (
        "Divide the paused crawl in JOBDIR over N shards, more than it has: hosts move to the shards that own them "
        "then, with all that waits. A crawl of one process becomes one of shards. All shards must be in JOBDIR; they "
        "may be moved to other machines afterwards (docs/shards.md). If it is interrupted, give the same command "
        "again. Example: scrapy reshard crawls/cs --shards 4"
    )

    if_interrupted = "interrupted; give the same command again before the crawl goes on."

    options = (option("--shards", type=int, metavar="N", help="number of shards that the crawl is to have"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if opts.shards is None:
            raise UsageError("say scrapy reshard JOBDIR --shards N", print_help=False)
        from spiderling.cluster.resharding import reshard

        return reshard(Path(args[0]), opts.shards, time.time())
