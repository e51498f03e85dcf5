"""``scrapy takedown JOBDIR``: hosts and URLs leave a crawl for good."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from spiderling.base.addresses import read_list
from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    arguments = "JOBDIR [options]"
    number = 1
    summary = "Take hosts and URLs out of a paused crawl for good: texts, links, archive, queue"
    description = (
        "Take all of some hosts, or single URLs, out of the paused crawl in JOBDIR, and of all shards there: documents "
        "leave corpus/, links/ and warc/, URLs the queue, texts the memory of duplicates; nothing of it is asked for "
        "any more. Hosts and URLs are written as for scrapy export: '.a.example' with all hosts below, a URL with * at "
        "its end for all that begin so. Without --yes it only says what would go. If it is interrupted, give the same "
        "command again (docs/publish.md). Example: scrapy takedown crawls/cs --host a.example --yes"
    )

    if_interrupted = "interrupted; give the same command again before the crawl goes on."

    options = (
        option("--host", action="append", default=[], help="host to take down; may be repeated"),
        option("--url", action="append", default=[], help="URL to take down; may be repeated"),
        option("--list", action="append", default=[], metavar="FILE", help="file of hosts and URLs, one a line"),
        option("--yes", action="store_true", help="do it"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        from spiderling.jobdir.inspection import reading
        from spiderling.jobdir.takedown import in_words, survey, take_down

        entries = [entry for name in opts.list for entry in read_list(name)]
        hosts = [*opts.host, *(entry for entry in entries if "://" not in entry)]
        urls = [*opts.url, *(entry for entry in entries if "://" in entry)]
        directory = Path(args[0])
        if opts.yes:
            yield f"Taken down: {in_words(take_down(directory, hosts, urls, time.time()))}."
        else:
            yield f"It would go: {in_words(survey(directory, hosts, urls))}."
            yield "Nothing was changed; --yes does it."
        with reading(directory) as crawl:
            if crawl.note:
                self.warn(f"{crawl.note}: give the command there as well.")
