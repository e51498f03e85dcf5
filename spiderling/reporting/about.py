"""The page for site owners at a crawler's contact address: who it is, what it wants, what it obeys, how to stop it.

It is made from the options of the crawl, so that it says what the crawl does.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spiderling.base.opt_outs import ANY, MINING, NOTHING, SEARCHING, TRAINING, OptOutPolicy, Purpose, Signal, Statement
from spiderling.base.options import Options

_PURPOSES = {
    Purpose.AI_TRAIN: "The text is for the training of language models, among other uses.",
    Purpose.SEARCH: "The text is for a search engine.",
    Purpose.RESEARCH: "The text is for scientific research.",
}


class _Means(NamedTuple):
    """One way for a site owner to say no."""

    signal: Signal
    place: str
    write: str
    refuses: frozenset[Purpose] = NOTHING


_MEANS = (
    _Means(Signal.NOINDEX, "a page, or its X-Robots-Tag header", '<meta name="robots" content="noindex">', ANY),
    _Means(Signal.NOARCHIVE, "the same", '<meta name="robots" content="noarchive">', ANY),
    _Means(Signal.UNAVAILABLE_AFTER, "the same", "X-Robots-Tag: unavailable_after: 2026-12-31", ANY),
    _Means(Signal.NOAI, "the same", '<meta name="robots" content="noai">', TRAINING),
    _Means(Signal.TDM, "a page, or a header", '<meta name="tdm-reservation" content="1">', MINING),
    _Means(Signal.TDM_FILE, "/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 1}]', MINING),
    _Means(Signal.AI_TXT, "/ai.txt", "User-Agent: *\nDisallow: *.txt", TRAINING),
    _Means(Signal.CONTENT_USAGE, "robots.txt, or a header", "Content-Usage: train-ai=n", TRAINING),
    _Means(Signal.CONTENT_USAGE, "robots.txt, or a header", "Content-Usage: search=n", SEARCHING),
    _Means(Signal.CONTENT_SIGNAL, "robots.txt, or a header", "Content-Signal: ai-train=no", TRAINING),
    _Means(Signal.CONTENT_SIGNAL, "robots.txt, or a header", "Content-Signal: search=no", SEARCHING),
    _Means(
        Signal.RSL,
        "robots.txt, a header or the page",
        "License: https://your.site/rsl.xml  # prohibits ai-train",
        TRAINING,
    ),
    _Means(Signal.AI_AGENTS, "robots.txt", "User-agent: GPTBot\nDisallow: /", TRAINING),
)
_STYLE = (
    "body{font:17px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1c2024}"
    "pre,code{background:#f1f3f5;padding:.1rem .3rem;overflow-x:auto}table{border-collapse:collapse}"
    "th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #d5dae0}"
)


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
    agent = options.robots_agent
    title = f"{agent}: a web crawler for text in {languages or 'many languages'}"
    contact = _link(options.contact or "the address where you found this page")
    collects = f"{who} collects" if who else "We collect"
    sections = {
        "Who we are": [
            _p(f"{collects} running text from public web pages. {why or _PURPOSES[Purpose(options.purpose)]}"),
            f"<p>Write to {contact}: a person reads it.</p>",
        ],
        "How to recognise the crawler": [
            _p("It always sends this User-Agent, and never pretends to be a browser or a person:"),
            _pre(user_agent or options.user_agent()),
            _p(f"It comes from: {', '.join(addresses)}" if addresses else "Ask us where it comes from."),
        ],
        "What it does on your site": _conduct(options),
        "How to keep it out": [
            _p("Write this into robots.txt. It is read again after a day at most:"),
            _pre(f"User-agent: {agent}\nDisallow: /"),
            _p(
                "Or shut it out on your server or at its edge: it takes no for an answer, and does not come back under "
                "another name."
            ),
        ],
        "What else it obeys": [_table(options.policy())],
        "How to have text taken out": [
            f"<p>Write to {contact} and name the host or the pages. We can make the corpus anew without them, and keep "
            "your host out from then on.</p>",
        ],
    }
    body = "\n".join(f"<h2>{_text(heading)}</h2>\n" + "\n".join(parts) for heading, parts in sections.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{_text(title)}</h1>\n{body}\n"
        "</body></html>\n"
    )


def _conduct(options: Options) -> list[str]:
    when = "before it keeps a page also" if options.optout_files == "kept" else "in the same visit"
    on_robots = "on robots.txt, or " if options.refused_robots == "leave" else ""
    return [
        _p(
            f"It asks for one page at a time, at most {60 / options.host_interval_s:.3g} a minute from one host; more "
            "slowly if your server answers slowly or with status 429 or 503, or if robots.txt has a Crawl-delay. "
            f"Once a day it reads robots.txt, and {when} the other files in which a site speaks to crawlers."
        ),
        _p(
            "It does not run scripts, fill in forms, log in, or solve challenges. A cookie goes back only to the host "
            "that set it by a redirect, until that has led to a page; then it is forgotten. If your site refuses it "
            f"(status 401, 402, 403 or 451, or a challenge) {on_robots}on five pages in a row, it leaves the site "
            "alone, and tries robots.txt again after 1, 7 and 30 days."
        ),
    ]


def _table(policy: OptOutPolicy) -> str:
    return (
        "<table><tr><th>Where</th><th>What you write</th><th>What happens</th></tr>\n"
        + "\n".join(_rows(policy))
        + "</table>"
    )


def _rows(policy: OptOutPolicy) -> Iterator[str]:
    for means in _MEANS:
        if policy.binds(Statement(means.signal, refuses=means.refuses)):
            happens = "the text is not used"
        elif policy.sees(means.signal):
            happens = "it is recorded with the text"
        else:
            happens = "nothing: it is not looked at"
        yield f"<tr><td>{_text(means.place)}</td><td>{_pre(means.write)}</td><td>{happens}</td></tr>"


def _link(contact: str) -> str:
    address = contact if contact.startswith("http") else f"mailto:{contact}" if "@" in contact else ""
    return f'<a href="{html.escape(address)}">{_text(contact)}</a>' if address else _text(contact)


def _p(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _pre(text: str) -> str:
    return f"<pre>{_text(text)}</pre>"


def _text(text: str) -> str:
    return html.escape(text, quote=False)
