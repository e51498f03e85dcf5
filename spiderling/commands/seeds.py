"""``scrapy seeds``: find seeds, and see what they are worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from spiderling import languages
from spiderling.crawl import options_of
from spiderling.errors import SpiderlingError
from spiderling.seeding.check import check
from spiderling.seeding.output import SeedFile
from spiderling.seeding.sitemap import SitemapSource
from spiderling.seeding.spider import collect
from spiderling.spiders.spiderling import SpiderlingSpider

if TYPE_CHECKING:
    import argparse

    from scrapy.settings import Settings

_PER_HOST = 20


class Command(ScrapyCommand):
    """Thin shell around the sources in `spiderling.seeding`."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    def syntax(self) -> str:
        return "sitemap|check ... -a lang=LANG -o FILE"

    def short_desc(self) -> str:
        return "Find seeds, and check what they give"

    def long_desc(self) -> str:
        return (
            "sitemap SITE...: what sites list in their sitemaps. check FILE: fetch each seed, run the text chain, and "
            "write the good ones to -o in the order of their yield. All ask as a crawl does: robots.txt, its pace, "
            "SPIDERLING_CONTACT; stopped, the same command goes on. docs/seeds.md has all arguments. Example: "
            "scrapy seeds sitemap www.example.org -a lang=cs -o seeds.txt -s SPIDERLING_CONTACT=me@example.org"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-a", dest="spargs", action="append", default=[], metavar="NAME=VALUE", help="lang=CODES")
        parser.add_argument("-o", dest="output", metavar="FILE", help="seeds are added to this file (check: written)")
        parser.add_argument(
            "--per-host", type=int, default=_PER_HOST, metavar="N", help=f"most seeds of one host (default {_PER_HOST})"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args or args[0] not in _ACTIONS or not opts.output:
            raise UsageError(f"say what and where to: scrapy seeds {'|'.join(_ACTIONS)} ... -a lang=cs -o seeds.txt")
        try:
            arguments = arglist_to_dict(opts.spargs)
        except ValueError:
            raise UsageError("write arguments as -a NAME=VALUE, such as -a lang=cs", print_help=False) from None
        assert self.settings is not None
        try:
            # before anything is asked, so that a bad language costs no request
            options = options_of(self.settings, SpiderlingSpider(**arguments))
            languages.resolve(options.lang, options.models)
            print(_ACTIONS[args[0]](args[1:], opts, self.settings, arguments))
        except SpiderlingError as error:
            print(f"scrapy seeds: {error}", file=sys.stderr)
            self.exitcode = 1


def _sitemap(names: list[str], opts: argparse.Namespace, settings: Settings, arguments: dict[str, str]) -> str:
    source = SitemapSource(names)
    with SeedFile(Path(opts.output), opts.per_host) as output:
        return collect(source, output, settings, arguments)


def _check(names: list[str], opts: argparse.Namespace, settings: Settings, arguments: dict[str, str]) -> str:
    if len(names) != 1:
        raise UsageError("name one file of seeds: scrapy seeds check seeds.txt -a lang=cs -o good.txt")
    return check(names[0], Path(opts.output), settings, arguments)


_ACTIONS = {"sitemap": _sitemap, "check": _check}
