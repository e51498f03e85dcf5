"""``scrapy page URL|FILE -a lang=cs``: what the chain sees of one page, and what would become of it."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator

from spiderling.cli.command import SpiderlingCommand, named_values, spider_arguments


class Command(SpiderlingCommand):
    arguments = "URL|FILE|- -a lang=LANG"
    number = 1
    summary = "Show what the crawler sees of one page, and its verdict"
    description = (
        "Show encodings, paragraphs with class and language, links, opt-outs and the verdict on one page. A FILE "
        "(- is standard input) is read as it is; a URL is fetched as in a crawl: robots.txt and the like first, at "
        "the crawl's pace, redirects followed, for public addresses with SPIDERLING_CONTACT. Example: scrapy page "
        "https://cs.wikipedia.org/wiki/Pavouci -a lang=cs -s SPIDERLING_CONTACT=me@example.org"
    )

    options = (
        spider_arguments("lang=CODES of the languages to be kept; recognise=CODES of further ones to be told apart"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        from spiderling.cli.page import show

        width = shutil.get_terminal_size((100, 24)).columns
        yield from show(args[0], named_values(opts.spargs), self.given_settings, width)
