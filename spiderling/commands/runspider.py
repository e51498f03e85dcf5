"""``scrapy runspider``: Scrapy's own, with the formats and exit codes of ``scrapy crawl``."""

from scrapy.commands import runspider

from spiderling.cli.command import CrawlCommand


class Command(CrawlCommand, runspider.Command):
    pass
