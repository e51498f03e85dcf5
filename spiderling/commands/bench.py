"""``scrapy bench``: Scrapy's own, as in a project without the add-on."""

from scrapy.commands import bench

from spiderling.engine.stock_command import StockCommand


class Command(StockCommand, bench.Command):
    pass
