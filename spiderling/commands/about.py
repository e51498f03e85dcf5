"""``scrapy about > crawler.html``: the page for site owners that the contact address can show."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput
from spiderling.cli.command import SpiderlingCommand, named_values, option, spider_arguments


class Command(SpiderlingCommand):
    arguments = "[-a lang=LANG] [--who TEXT] [--why TEXT] [--address IP] > crawler.html"
    summary = "Write a web page for site owners: who crawls, why, what is obeyed, how to opt out"
    description = (
        "Write an HTML page for the owners of the sites that you crawl, from the options of the crawl: give the same "
        "settings and -s as for the crawl. Put it on the web, and its address into SPIDERLING_CONTACT. Example: scrapy "
        "about -a lang=cs --who 'The corpus group of Example University' --address 192.0.2.7 "
        "-s SPIDERLING_CONTACT=https://corpus.example.org/crawler.html > crawler.html"
    )

    options = (
        spider_arguments("lang=CODES of the languages"),
        option("--who", default="", metavar="TEXT", help="who crawls, the beginning of a sentence"),
        option("--why", default="", metavar="TEXT", help="what the text is for, in sentences"),
        option(
            "--address", action="append", default=[], metavar="IP", help="an address the crawl comes from; repeatable"
        ),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if args:
            raise UsageError("about takes no arguments, but options: scrapy about -a lang=cs > crawler.html")
        from spiderling.base.options import Options
        from spiderling.languages import find_languages
        from spiderling.reporting.about import about

        named = named_values(opts.spargs)
        unknown = ", ".join(named.keys() - {"lang"})
        if unknown:
            raise BadInput(f"about knows only -a lang=, not {unknown}.")
        settings = self.given_settings
        options = Options.from_settings(settings)
        if not options.contact:
            raise BadInput(
                "say how site owners reach you: -s SPIDERLING_CONTACT=you@your-domain, or the address of the page."
            )
        codes = named.get("lang") or options.lang
        languages = ", ".join(info.name for info in find_languages(codes, options.models)) if codes else ""
        is_own = (settings.getpriority("USER_AGENT") or 0) > 0
        agent = settings.get("USER_AGENT") if is_own else ""
        page = about(options, languages, who=opts.who, why=opts.why, addresses=opts.address, user_agent=agent or "")
        yield from page.splitlines()
