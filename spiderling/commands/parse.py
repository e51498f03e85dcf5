"""``scrapy parse``: Scrapy's own, as in a project without the add-on."""

from scrapy.commands import parse

from spiderling.cli.command import StockCommand


class Command(StockCommand, parse.Command):
    pass
