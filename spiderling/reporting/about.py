"""The page for site owners at a crawler's contact address: who it is, what it wants, what it obeys, how to stop it.

It is made from the options of the crawl, so that it says what the crawl does.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from spiderling.base.opt_outs import ANY, MINING, SEARCHING, TRAINING, OptOutPolicy, Purpose, Signal, Statement
from spiderling.base.options import Options

_PURPOSES = {
    Purpose.AI_TRAIN: "The text is for the training of language models, among other uses.",
    Purpose.SEARCH: "The text is for a search engine.",
    Purpose.RESEARCH: "The text is for scientific research.",
}
_REFUSED = {"any": ANY, "training": TRAINING, "mining": MINING, "searching": SEARCHING}
"""Name of purposes that a signal refuses -> these purposes; with the signal's it names a place in about.html."""


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
        "when": "before it keeps a page also" if options.optout_files == "kept" else "in the same visit",
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
