"""``scrapy identify FILE|-``: which of the known languages a text or an HTML page is in."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator

from scrapy.exceptions import UsageError

from spiderling.cli.command import SpiderlingCommand, option, read_input
from spiderling.languages import available, find_languages, load


class Command(SpiderlingCommand):
    arguments = "FILE|- [--among cs,sk,pl]"
    summary = "Name the language of a text or HTML file"
    description = (
        "Name the language of a text or HTML file (- is standard input), of the whole and of each line, or of "
        "each paragraph of an HTML page that is text. The known share is how usual the text's character 4-grams "
        "and short words are for the language: 1 is as in the language's own texts; a crawl keeps what reaches "
        "SPIDERLING_MIN_KNOWN_SHARE. Example: scrapy identify page.html --among cs,sk,pl"
    )

    error_code = 2

    options = (option("--among", default="", metavar="CODES", help="languages to choose from (all with a model)"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) != 1:
            raise UsageError("name one file: scrapy identify page.html, or - for standard input")
        from spiderling.languages.identification import identify

        dirs = str(self.given_settings.get("SPIDERLING_MODELS") or "")
        known = available(dirs)
        codes = [info.code for info in find_languages(opts.among, dirs)] if opts.among else list(known)
        text = read_input(args[0], "or - for standard input")
        width = shutil.get_terminal_size().columns
        for line in identify(text, load(codes, dirs), {code: info.name for code, info in known.items()}):
            yield line[:width]
