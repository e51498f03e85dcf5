"""``scrapy settings``: Scrapy's own, with what add-ons set for a crawl and the defaults of our options."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from scrapy import Spider
from scrapy.addons import AddonManager
from scrapy.commands import settings
from scrapy.crawler import Crawler

from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options


class _AnySpider(Spider):
    """A spider without settings of its own."""

    name = "any"


class Command(settings.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        AddonManager.load_pre_crawler_settings(self.settings)
        crawler = Crawler(_AnySpider, self.settings)
        crawler.addons.load_settings(crawler.settings)
        defaults = {f"{PREFIX}{name.upper()}": value for name, value in asdict(Options()).items()}
        crawler.settings.setdict(defaults, priority="default")
        self.settings = crawler.settings
        super().run(args, opts)
