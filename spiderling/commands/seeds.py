"""``scrapy seeds``: find seeds, and see what they are worth."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from spiderling import languages
from spiderling.base.addresses import addresses_of
from spiderling.base.errors import SpiderlingError
from spiderling.base.option_values import parse_tlds
from spiderling.base.options import Options
from spiderling.cli.command import SpiderlingCommand, named_values, option, spider_arguments
from spiderling.crawl.arguments import options_of
from spiderling.languages import LanguageInfo
from spiderling.spiders.spiderling import SpiderlingSpider

if TYPE_CHECKING:
    from spiderling.seeding import CaptureFilter, SeedFile

_ACTIONS = ("sitemap", "wikipedia", "commoncrawl", "check")


class Command(SpiderlingCommand):
    arguments = f"{'|'.join(_ACTIONS)} ... -a lang=LANG -o FILE"
    summary = "Find seeds, and check what they give"
    description = (
        "sitemap SITE...: what sites list of themselves. wikipedia DUMP...: what its articles link to. "
        "commoncrawl [INDEX...]: hosts that Common Crawl has met. "
        "check FILE: fetch each seed, run the text chain, and write the good ones to -o in the order of their "
        "yield. All ask as a crawl does: robots.txt, its pace, SPIDERLING_CONTACT; stopped, the same command goes "
        "on. docs/seeds.md has more. Example: "
        "scrapy seeds sitemap www.example.org -a lang=cs -o seeds.txt -s SPIDERLING_CONTACT=me@example.org"
    )

    options = (
        spider_arguments("lang=CODES, tlds=cz,sk"),
        option("-o", dest="output", metavar="FILE", help="seeds are added to this file (check: it is written)"),
        option("--per-host", type=int, default=20, metavar="N", help="most seeds of one host (default 20)"),
        option("--homes", action="store_true", help="the home page of each host, not the pages that are linked to"),
        option("--collections", metavar="URL", help="commoncrawl: the list of its indexes"),
        option(
            "--pages", type=int, default=10, metavar="N", help="commoncrawl: pages of the index a domain (default 10)"
        ),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if not args or args[0] not in _ACTIONS or not opts.output:
            raise UsageError(f"say what and where to: scrapy seeds {'|'.join(_ACTIONS)} ... -a lang=cs -o seeds.txt")
        arguments = named_values(opts.spargs)
        yield from self._result(args[0], args[1:], opts, arguments).splitlines()

    def _result(self, action: str, names: list[str], opts: argparse.Namespace, arguments: dict[str, str]) -> str:
        # before anything is asked, so that a bad language costs no request
        options = options_of(self.given_settings, SpiderlingSpider(**arguments))
        infos = languages.find_languages(options.lang, options.models)
        from spiderling import seeding

        out = Path(opts.output)
        if action == "wikipedia" and not names:
            raise UsageError("name a dump: scrapy seeds wikipedia FILE-externallinks.sql.gz -a lang=cs -o seeds.txt")
        if action == "wikipedia" or (action == "commoncrawl" and names):
            by_index = partial(seeding.read_index, wanted=_filter_of(infos, options))
            read = seeding.read_dump if action == "wikipedia" else by_index
            with closing(seeding.SeedFile(out, opts.per_host, opts.homes)) as output:
                return _from_files(chain.from_iterable(map(read, map(Path, names))), output, action)
        addresses_of(options, is_offline=False)
        if action == "check":
            if len(names) != 1:
                raise UsageError("name one file of seeds: scrapy seeds check seeds.txt -a lang=cs -o good.txt")
            return seeding.check(names[0], out, self.given_settings, arguments)
        source: seeding.Source = (
            seeding.SitemapSource(names)
            if action == "sitemap"
            else seeding.CommonCrawlSource(_filter_of(infos, options), max(1, opts.pages), opts.collections)
        )
        arguments.pop("tlds", None)  # it chooses among what is found, not whom to ask
        with closing(seeding.SeedFile(out, opts.per_host, opts.homes)) as output:
            return seeding.collect(source, output, self.given_settings, arguments)


def _filter_of(infos: list[LanguageInfo], options: Options) -> CaptureFilter:
    """The languages by ISO 639-3, and the domains that are given, else the national ones."""
    from spiderling.seeding import CaptureFilter

    text = "national" if options.tlds == "all" else options.tlds
    tlds = parse_tlds(text, "TLDS", [tld for info in infos for tld in info.tlds]) or ()
    return CaptureFilter([info.iso3 for info in infos], sorted(tlds))


def _from_files(urls: Iterable[str], output: SeedFile, name: str) -> str:
    output.comment(f"from {name}")
    try:
        for url in urls:
            output.add(url)
    except SpiderlingError as error:
        raise SpiderlingError(f"{error} {output.added} new seeds from before that are in {output.path}.") from None
    return f"{output.added} new seeds in {output.path}, which holds {output.hosts} hosts."
