"""``scrapy crawl``: as in Scrapy, but a crawl that could not begin or go on exits with 1, without a network with 3.

Without a name it runs the spider ``spiderling``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.spiderloader import get_spider_loader

from spiderling.base.addresses import addresses_of
from spiderling.base.errors import BadInput
from spiderling.base.terminal import nearest
from spiderling.cli.command import CrawlCommand, plan_of, program, wanted_shards
from spiderling.crawl.arguments import declared_arguments, options_of
from spiderling.languages import find_languages
from spiderling.languages.registry import spell_out
from spiderling.spiders.spiderling import CorpusSpider, SpiderlingSpider


class Command(CrawlCommand, ScrapyCrawl):
    def syntax(self) -> str:
        return "[spiderling|archive|A SPIDER OF YOURS] -a lang=cs [options]"

    def short_desc(self) -> str:
        return "Start or resume a crawl"

    def long_desc(self) -> str:
        arguments = ", ".join(sorted(declared_arguments(SpiderlingSpider)))
        return (
            "Start a crawl, or resume the one in its directory (crawls/LANG, or -s JOBDIR=...). The spider spiderling "
            f"crawls the web, archive reads WARC files; -a takes {arguments} (archive: warc, urls), and -s any option "
            f"that docs/options.md lists. Exit codes: 0 finished, or paused by a signal or a budget; 1 the crawl "
            "could not begin or go on; 3 no network. "
            "Example: scrapy crawl spiderling -a lang=cs -a words=1M -s SPIDERLING_CONTACT=you@example.org"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        if len(args) > 1:
            raise UsageError(f"name one spider: {program()} crawl spiderling -a lang=cs", print_help=False)
        args += [] if args else [SpiderlingSpider.name]
        names = get_spider_loader(self.settings).list()
        if "=" in args[0]:
            raise UsageError(f"write -a before an argument: -a {args[0]}", print_help=False)
        if args[0] not in names:
            near = nearest(args[0], names) or names
            raise UsageError(f"there is no spider {args[0]!r}; did you mean {' or '.join(near)}?", print_help=False)

    def has_run_shards(self, args: list[str]) -> bool:
        assert self.settings is not None
        wanted = wanted_shards(self.settings)
        if wanted is None:
            return False
        self.settings.set("SPIDERLING_SHARDS", 1, priority="cmdline")  # a crawl that one process is enough for
        plan = plan_of(self._create_crawler(args[0]), self.spider_arguments, wanted)
        if plan is None:
            return False
        from spiderling.cluster.launcher import launch

        self.exitcode = launch(plan)
        return True

    def written_otherwise(self) -> dict[str, str]:
        return {f"--{name}": f"-a {name}=..." for name in declared_arguments(SpiderlingSpider)}

    def check_arguments(self, crawler: Crawler, arguments: Mapping[str, str]) -> None:
        """A spider of the user's own is not made twice."""
        if crawler.spidercls.__init__ is CorpusSpider.__init__:
            spider = crawler.spidercls(**arguments)
            options = options_of(crawler.settings, spider)
            spell_out(options, find_languages(options.lang, options.models), ())
            if not hasattr(spider, "archives"):  # files need no contact
                try:
                    addresses_of(options, is_offline=False)
                except BadInput:
                    getattr(spider, "prepare", lambda: None)()  # a mistake in the seeds is told first
                    raise
