"""``scrapy about > crawler.html``: the page for site owners that the contact address can show.

It says who crawls, what they want, what is obeyed, and how to stop it.  It is made from the options of the crawl, so
that it says what the crawl does.
"""

from __future__ import annotations

import argparse
import html
from collections.abc import Iterator, Sequence
from importlib.resources import files
from string import Template

from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput
from spiderling.base.opt_outs import ANY, MINING, SEARCHING, TRAINING, OptOutPolicy, Purpose, Signal, Statement
from spiderling.base.options import Options
from spiderling.cli.command import SpiderlingCommand, named_values, option, spider_arguments

_PURPOSES = {
    Purpose.AI_TRAIN: "The text is for the training of language models, among other uses.",
    Purpose.SEARCH: "The text is for a search engine.",
    Purpose.RESEARCH: "The text is for scientific research.",
}
_REFUSED = {"any": ANY, "training": TRAINING, "mining": MINING, "searching": SEARCHING}
"""Name of purposes that a signal refuses -> these purposes; with the signal's it names a place in about.html."""


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
        from spiderling.languages import find_languages

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
        if not options.host_interval_s:
            raise BadInput(
                "SPIDERLING_HOST_INTERVAL_S is 0, so there is no saying how often a site is asked; give seconds, as 5."
            )
        codes = named.get("lang") or options.lang
        languages = ", ".join(info.name for info in find_languages(codes, options.models)) if codes else ""
        is_own = (settings.getpriority("USER_AGENT") or 0) > 0
        agent = settings.get("USER_AGENT") if is_own else ""
        page = about(options, languages, who=opts.who, why=opts.why, addresses=opts.address, user_agent=agent or "")
        yield from page.splitlines()


def about(
    options: Options,
    languages: str,
    *,
    who: str = "",
    why: str = "",
    addresses: Sequence[str] = (),
    user_agent: str = "",
) -> str:
    """The HTML page.  *languages*: their names; *user_agent*, if it is not that of the options; *who*, *why* and
    *addresses* are what they do not hold.
    """
    said = {
        "title": f"{options.robots_agent}: a web crawler for text in {languages or 'many languages'}",
        "agent": options.robots_agent,
        "collects": f"{who} collects" if who else "We collect",
        "why": why or _PURPOSES[Purpose(options.purpose)],
        "user_agent": user_agent or options.user_agent(),
        "origin": f"It comes from: {', '.join(addresses)}" if addresses else "Ask us where it comes from.",
        "pages_a_minute": f"{60 / options.host_interval_s:.3g}",
        "on_robots": "on robots.txt, or " if options.refused_robots == "leave" else "",
    }
    markup = {
        "contact": _link(options.contact or "the address where you found this page"),
        **_happens(options.policy()),
    }
    texts = {name: _text(text) for name, text in said.items()}
    page = files(__package__).joinpath("about.html").read_text("utf-8")
    return Template(page).substitute(texts | markup)


def _happens(policy: OptOutPolicy) -> dict[str, str]:
    """What a signal against some purposes does, for every place in about.html."""
    return {
        f"{signal.name}_{name}": "the text is not used"
        if policy.binds(Statement(signal, refuses=refuses))
        else "it is recorded with the text"
        if policy.sees(signal)
        else "nothing: it is not looked at"
        for signal in Signal
        for name, refuses in _REFUSED.items()
    }


def _link(contact: str) -> str:
    address = contact if contact.startswith("http") else f"mailto:{contact}" if "@" in contact else ""
    return f'<a href="{html.escape(address)}">{_text(contact)}</a>' if address else _text(contact)


def _text(text: str) -> str:
    return html.escape(text, quote=False)
