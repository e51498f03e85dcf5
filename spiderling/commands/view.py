"""``scrapy view``: Scrapy's own, as in a project without the add-on."""

from scrapy.commands import view

from spiderling.cli.command import StockCommand


class Command(StockCommand, view.Command):
    pass
