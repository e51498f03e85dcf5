"""``scrapy check``: Scrapy's own, as in a project without the add-on."""

from scrapy.commands import check

from spiderling.cli.command import StockCommand


class Command(StockCommand, check.Command):
    pass
