"""The commands of Scrapy that begin no crawl of ours: they run as in a project without the add-on."""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from spiderling.base import interrupts

_ADDON = "spiderling.addon.SpiderlingAddon"


class StockCommand(ScrapyCommand):
    """Leaves the add-on out, so the command opens no JOBDIR and needs no language.  Scrapy's class follows it."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        interrupts.end_as_usual()  # a shell goes on after Ctrl-C
        assert self.settings is not None
        addons = self.settings.getdict("ADDONS").items()
        others = {addon: order for addon, order in addons if global_object_name(load_object(addon)) != _ADDON}
        self.settings.set("ADDONS", others, priority="cmdline")
        self.settings.set("JOBDIR", None, priority="cmdline")  # a project may set that of its crawl
