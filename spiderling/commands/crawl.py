"""``scrapy crawl``: as in Scrapy, but a crawl that could not begin or go on exits with 1, without a network with 3.

Without a name it runs the spider ``spiderling``.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping

from scrapy.addons import AddonManager
from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.spiderloader import get_spider_loader

from spiderling.base.errors import BadInput
from spiderling.base.extras import missing
from spiderling.base.printing import nearest
from spiderling.crawl.arguments import declared_arguments, options_of
from spiderling.engine.exit_codes import FAILED_STAT, NO_NETWORK, OFFLINE
from spiderling.engine.program import OwnCommand, program
from spiderling.spiders.spiderling import CorpusSpider, SpiderlingSpider

logger = logging.getLogger(__name__)

_TALKATIVE = ("utils.log", "addons", "middleware", "crawler", "core.engine", "extensions.telnet")
"""Loggers of Scrapy that list its parts at the level INFO."""


class Command(OwnCommand, ScrapyCrawl):
    def syntax(self) -> str:
        return "[spiderling|archive|A SPIDER OF YOURS] -a lang=cs [options]"

    def short_desc(self) -> str:
        return "Start or resume a crawl"

    def long_desc(self) -> str:
        arguments = ", ".join(sorted(declared_arguments(SpiderlingSpider)))
        return (
            "Start a crawl, or resume the one in its directory (crawls/LANG, or -s JOBDIR=...). The spider spiderling "
            f"crawls the web, archive reads WARC files; -a takes {arguments} (archive: warc, urls), and -s any option "
            f"that `{program()} options` lists. Exit codes: 0 finished, or paused by a signal or a budget; 1 the crawl "
            "could not begin or go on; 3 no network. "
            "Example: scrapy crawl spiderling -a lang=cs -a words=1000000 -s SPIDERLING_CONTACT=you@example.org"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        AddonManager.load_pre_crawler_settings(self.settings)  # -o is judged by the formats of add-ons too
        super().process_options(args, opts)
        if len(args) > 1:
            raise UsageError(f"name one spider: {program()} crawl spiderling -a lang=cs", print_help=False)
        args += [] if args else [SpiderlingSpider.name]
        names = get_spider_loader(self.settings).list()
        if "=" in args[0]:
            raise UsageError(f"write -a before an argument: -a {args[0]}", print_help=False)
        if args[0] not in names:
            near = nearest(args[0], names) or names
            raise UsageError(f"there is no spider {args[0]!r}; did you mean {' or '.join(near)}?", print_help=False)
        if any(feed.get("format") == "parquet" for feed in self.settings["FEEDS"].values()) and missing("parquet"):
            raise UsageError(f"{missing('parquet')}.", print_help=False)
        if not self.settings.getpriority("LOG_LEVEL") or self.settings["LOG_LEVEL"] != "DEBUG":
            _quieten()

    def written_otherwise(self) -> dict[str, str]:
        return {f"--{name}": f"-a {name}=..." for name in declared_arguments(SpiderlingSpider)}

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        process = self.crawler_process
        assert process is not None
        crawler = self._create_crawler(args[0])
        try:
            _check_options(crawler, opts.spargs)
        except BadInput as error:
            logger.error("The crawl stops: %s", error)
            self.exitcode = 1
            return
        process.crawl(crawler, **opts.spargs)
        process.start()
        failed = crawler.stats.get_value(FAILED_STAT) if crawler._stats else None
        if process.bootstrap_failed or failed:
            self.exitcode = NO_NETWORK if failed == OFFLINE else 1


def _check_options(crawler: Crawler, arguments: Mapping[str, str]) -> None:
    """Raise BadInput for bad options before an engine is made; spiders of the user's own are not made twice."""
    if crawler.spidercls.__init__ is CorpusSpider.__init__:
        options_of(crawler.settings, crawler.spidercls(**arguments))


def _quieten() -> None:
    """Keep Scrapy's list of its parts from hiding the few lines that a person reads."""
    for name in _TALKATIVE:
        logging.getLogger(f"scrapy.{name}").addFilter(lambda record: record.levelno > logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.INFO)  # the add-on's LOG_LEVEL comes too late for its first line
