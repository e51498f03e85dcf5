"""``scrapy takeover SNAPSHOT JOBDIR``: a crawl whose machine is lost goes on from its last snapshot."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.machine import require
from spiderling.base.option_values import PREFIX
from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    arguments = "SNAPSHOT JOBDIR [--shard N]"
    summary = "Go on from the snapshot of a crawl whose machine is lost"
    description = (
        "Copy the last snapshot of a crawl (SPIDERLING_SNAPSHOTS) to JOBDIR, which is not there, check it, and keep "
        "the former process out for good. Then the crawl's usual command goes on from it, and fetches again what was "
        "fetched since. Of a crawl of shards it takes all of the snapshot, or with --shard one; with the crawl's "
        f"{PREFIX}CLUSTER none that is at work (docs/shards.md). "
        "Example: scrapy takeover /shared/cs crawls/cs --shard 3 -s SPIDERLING_CLUSTER=redis://host/0"
    )

    options = (option("--shard", type=int, metavar="N", help="the one shard that is lost"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) != 2:
            raise UsageError("say from what, and to where: scrapy takeover /shared/cs crawls/cs", print_help=False)
        from spiderling.jobdir.inspection import parts_in
        from spiderling.jobdir.snapshots import take_over

        snapshot, directory = map(Path, args)
        parts = parts_in(snapshot)
        if opts.shard is not None:
            parts = [part for part in parts if part.name == f"shard-{opts.shard:02}"]
        if not parts:
            raise BadInput(f"{snapshot} holds no snapshot of shard {opts.shard}.")
        for part in parts:
            self._refuse_living(part)
        for part in parts:
            to = directory if part == snapshot else directory / part.name
            yield f"{to}: {take_over(part, to, time.time())}."
        yield "Now give the crawl's usual command."

    def _refuse_living(self, part: Path) -> None:
        """Raise JobdirError if a process holds the lease of the shard whose snapshot is *part*."""
        url = self.given_settings.get(f"{PREFIX}CLUSTER")
        if not url:
            return
        require("cluster")
        from contextlib import closing

        from redis.exceptions import RedisError

        from spiderling.cluster.content import Seal
        from spiderling.cluster.redis_transport import connect
        from spiderling.jobdir.inspection import Inspection

        with closing(Inspection(part)) as crawl:
            shard = crawl.shard
        if shard is None or shard.number is None:
            return
        try:
            is_held = connect(url, blocks=True).exists(Seal(bytes.fromhex(shard.crawl), b"").key("lease", shard.number))
        except RedisError as error:
            raise BadInput(f"Redis at {PREFIX}CLUSTER cannot be asked whether the shard is lost: {error}.") from error
        if is_held:
            raise JobdirError(f"shard {shard.number} is at work: a process holds its lease.")
