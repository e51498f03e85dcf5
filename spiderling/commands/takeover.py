"""``scrapy takeover SNAPSHOT JOBDIR``: a crawl whose machine is lost goes on from its last snapshot."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from spiderling.base.machine import require
from spiderling.base.option_values import PREFIX
from spiderling.cli.command import SpiderlingCommand


class Command(SpiderlingCommand):
    arguments = "SNAPSHOT JOBDIR"
    number = 2
    summary = "Go on from the snapshot of a crawl whose machine is lost"
    description = (
        "Copy the last snapshot of a crawl, or of one shard, to JOBDIR, which is not there, check it, and keep the "
        "former process out for good. Then the crawl's usual command goes on from it, and fetches again what was "
        f"fetched since. With the crawl's {PREFIX}CLUSTER no shard is taken over that is at work (docs/shards.md). "
        "Example: scrapy takeover /shared/cs/shard-03 crawls/cs/shard-03 -s SPIDERLING_CLUSTER=redis://host/0"
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        from spiderling.jobdir.snapshots import take_over

        snapshot, directory = map(Path, args)
        if url := self.given_settings.get(f"{PREFIX}CLUSTER"):
            require("cluster")
            from spiderling.cluster.claims import refuse_living

            refuse_living(snapshot, str(url))
        yield f"{directory}: {take_over(snapshot, directory, time.time())}."
        yield "Now give the crawl's usual command."
