"""``scrapy shell``: Scrapy's own, as in a project without the add-on."""

from scrapy.commands import shell

from spiderling.cli.command import StockCommand


class Command(StockCommand, shell.Command):
    pass
