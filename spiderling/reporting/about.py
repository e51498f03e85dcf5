"""The page for site owners at a crawler's contact address: who it is, what it wants, what it obeys, how to stop it.

It is made from the options of the crawl, so that it says what the crawl does.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from importlib.resources import files
from string import Template

from spiderling.base.opt_outs import ANY, MINING, SEARCHING, TRAINING, OptOutPolicy, Purpose, Signal, Statement
from spiderling.base.options import Options

_PURPOSES = {
    Purpose.AI_TRAIN: "The text is for the training of language models, among other uses.",
    Purpose.SEARCH: "The text is for a search engine.",
    Purpose.RESEARCH: "The text is for scientific research.",
}
_MEANS = (
    (Signal.NOINDEX, ANY, "a page, or its X-Robots-Tag header", '<meta name="robots" content="noindex">'),
    (Signal.NOARCHIVE, ANY, "the same", '<meta name="robots" content="noarchive">'),
    (Signal.UNAVAILABLE_AFTER, ANY, "the same", "X-Robots-Tag: unavailable_after: 2026-12-31"),
    (Signal.NOAI, TRAINING, "the same", '<meta name="robots" content="noai">'),
    (Signal.TDM, MINING, "a page, or a header", '<meta name="tdm-reservation" content="1">'),
    (Signal.TDM_FILE, MINING, "/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 1}]'),
    (Signal.AI_TXT, TRAINING, "/ai.txt", "User-Agent: *\nDisallow: *.txt"),
    (Signal.CONTENT_USAGE, TRAINING, "robots.txt, or a header", "Content-Usage: train-ai=n"),
    (Signal.CONTENT_USAGE, SEARCHING, "robots.txt, or a header", "Content-Usage: search=n"),
    (Signal.CONTENT_SIGNAL, TRAINING, "robots.txt, or a header", "Content-Signal: ai-train=no"),
    (Signal.CONTENT_SIGNAL, SEARCHING, "robots.txt, or a header", "Content-Signal: search=no"),
    (
        Signal.RSL, TRAINING, "robots.txt, a header or the page",
        "License: https://your.site/rsl.xml  # prohibits ai-train",
    ),
    (Signal.AI_AGENTS, TRAINING, "robots.txt", "User-agent: GPTBot\nDisallow: /"),
)  # fmt: skip
"""Ways for a site owner to say no: the signal, what it refuses, where it is written, and an example."""


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
        "rows": "\n".join(_rows(options.policy())),
    }
    texts = {name: _text(text) for name, text in said.items()}
    page = files(__package__).joinpath("about.html").read_text("utf-8")
    return Template(page).substitute(texts | markup)


def _rows(policy: OptOutPolicy) -> Iterator[str]:
    for signal, refuses, place, write in _MEANS:
        if policy.binds(Statement(signal, refuses=refuses)):
            happens = "the text is not used"
        elif policy.sees(signal):
            happens = "it is recorded with the text"
        else:
            happens = "nothing: it is not looked at"
        yield f"<tr><td>{_text(place)}</td><td><pre>{_text(write)}</pre></td><td>{happens}</td></tr>"


def _link(contact: str) -> str:
    address = contact if contact.startswith("http") else f"mailto:{contact}" if "@" in contact else ""
    return f'<a href="{html.escape(address)}">{_text(contact)}</a>' if address else _text(contact)


def _text(text: str) -> str:
    return html.escape(text, quote=False)
