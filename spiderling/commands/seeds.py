"""``scrapy seeds``: find seeds in files of others, and see what they are worth."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from spiderling import languages
from spiderling.base.errors import SpiderlingError
from spiderling.base.option_values import parse_tlds
from spiderling.base.options import Options
from spiderling.cli.command import SpiderlingCommand, named_values, option, spider_arguments
from spiderling.crawl.arguments import options_of
from spiderling.languages import LanguageInfo
from spiderling.spiders.spiderling import SpiderlingSpider

if TYPE_CHECKING:
    from spiderling.seeding import CaptureFilter

_ACTIONS = ("wikipedia", "commoncrawl")


class Command(SpiderlingCommand):
    arguments = f"{'|'.join(_ACTIONS)} FILE... -a lang=LANG -o FILE"
    summary = "Find seeds"
    description = (
        "wikipedia DUMP...: what its articles link to. commoncrawl INDEX...: hosts that Common Crawl has met. "
        "docs/seeds.md has more, also how to see what they give. Example: "
        "scrapy seeds wikipedia cswiki-latest-externallinks.sql.gz -a lang=cs -o seeds.txt"
    )

    options = (
        spider_arguments("lang=CODES, tlds=cz,sk"),
        option("-o", dest="output", metavar="FILE", help="seeds are added to this file"),
        option("--per-host", type=int, default=20, metavar="N", help="most seeds of one host (default 20)"),
        option("--homes", action="store_true", help="the home page of each host, not the pages that are linked to"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) < 2 or args[0] not in _ACTIONS or not opts.output:
            raise UsageError(
                f"say what, from where and where to: scrapy seeds {'|'.join(_ACTIONS)} FILE... -a lang=cs -o seeds.txt"
            )
        action, *names = args
        arguments = named_values(opts.spargs)
        # before anything is read or asked, so that a bad language costs nothing
        options = options_of(self.given_settings, SpiderlingSpider(**arguments))
        infos = languages.find_languages(options.lang, options.models)
        from spiderling import seeding

        out = Path(opts.output)
        by_index = partial(seeding.read_index, wanted=_filter_of(infos, options))
        read = seeding.read_dump if action == "wikipedia" else by_index
        with closing(seeding.SeedFile(out, opts.per_host, opts.homes)) as output:
            output.comment(f"from {action}")
            try:
                for url in chain.from_iterable(map(read, map(Path, names))):
                    output.add(url)
            except SpiderlingError as error:
                raise SpiderlingError(f"{error} {output.added} new seeds from before that are in {out}.") from None
            yield f"{output.added} new seeds in {out}, which holds {output.hosts} hosts."


def _filter_of(infos: list[LanguageInfo], options: Options) -> CaptureFilter:
    """The languages by ISO 639-3, and the domains that are given, else the national ones."""
    from spiderling.seeding import CaptureFilter

    text = "national" if options.tlds == "all" else options.tlds
    tlds = parse_tlds(text, "TLDS", [tld for info in infos for tld in info.tlds]) or ()
    return CaptureFilter([info.iso3 for info in infos], sorted(tlds))
