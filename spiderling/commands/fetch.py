"""``scrapy fetch``: Scrapy's own, as in a project without the add-on."""

from scrapy.commands import fetch

from spiderling.cli.command import StockCommand


class Command(StockCommand, fetch.Command):
    pass
