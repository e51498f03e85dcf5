"""Reads what a page says about the use of its text: robots directives, TDM reservation, usage preferences.

Sources: Google's "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications" (noindex,
none, nofollow, noarchive, unavailable_after; for one agent the most restrictive counts);
DeviantArt's noai and noimageai; the TDM Reservation Protocol (W3C Community Group report,
10 May 2024); Content-Usage (draft-ietf-aipref-attach-05) and Content-Signal headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from spiderling.base import opt_outs
from spiderling.base.opt_outs import AI_AGENTS, ANY, NOTHING, TRAINING, Signal, Statement, few, reservation, usage
from spiderling.base.options import Options
from spiderling.text.dates import seconds_of
from spiderling.text.html.metadata import RSL_END, RSL_INLINE, RSL_LINKS

MAX_HEADER_CHARS = 2000  # characters of a header value that are read; chosen
_EXPIRY = re.compile(r"unavailable_after\s*:\s*((?:[a-z]{3,9}\s*,)?[^,]*)", re.IGNORECASE)
_LINK = re.compile(r"<(?P<address>[^<>]*)>(?P<rest>[^<]*)")
_REL = re.compile(r"""\brel\s*=\s*(?:"[^"]*\blicense\b|'[^']*\blicense\b|license\b)""", re.IGNORECASE)
_VALUED = frozenset(("max-snippet", "max-image-preview", "max-video-preview"))
_USAGES = (("content-signal", Signal.CONTENT_SIGNAL), ("content-usage", Signal.CONTENT_USAGE))
_DIRECTIVES = {
    "noindex": [Statement(Signal.NOINDEX, refuses=ANY)],
    "nofollow": [Statement(Signal.NOFOLLOW)],
    "none": [Statement(Signal.NOINDEX, refuses=ANY), Statement(Signal.NOFOLLOW)],
    "noarchive": [Statement(Signal.NOARCHIVE, refuses=ANY)],
    "nocache": [Statement(Signal.NOARCHIVE, refuses=ANY)],
    "noai": [Statement(Signal.NOAI, refuses=TRAINING)],
    "noimageai": [Statement(Signal.NOAI, "images")],
}
_OTHERS = "all index follow archive nosnippet notranslate noimageindex noodp noydir"
_WORDS = {*_DIRECTIVES, *_OTHERS.split()}
"""Directives that count too where spaces or semicolons part them; other words so parted are prose."""


def licences(headers: Sequence[tuple[str, str]], meta: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The licences by RSL that a page names, as written, and those that stand in it (RSL 1.0, 4.5 and 4.6)."""
    if not headers and not (RSL_LINKS in meta or RSL_INLINE in meta):
        return [], []
    linked = [
        match["address"]
        for name, value in headers
        if name.lower() == "link"
        for match in _LINK.finditer(value[:MAX_HEADER_CHARS])
        if opt_outs.RSL_MEDIA_TYPE in match["rest"].lower() and _REL.search(match["rest"])
    ]
    inline = [text for text in meta.get(RSL_INLINE, "").split(RSL_END) if text.strip()]
    return list(dict.fromkeys([*linked, *meta.get(RSL_LINKS, "").split()])), inline


def page_statements(
    headers: Sequence[tuple[str, str]], meta: Mapping[str, str], options: Options, now: float
) -> list[Statement]:
    """All statements of a page, each once; *meta* is ``Page.meta``, *now* is in seconds since 1970.  Never raises."""
    if not headers and not meta:
        return []
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value[:MAX_HEADER_CHARS])
    found: list[Statement] = []
    for value in fields.get("x-robots-tag", ()):
        found += _directives("", value, options, now)
    for name, text in meta.items():
        kind, _, agent = name.partition(":")
        if kind == "robots":
            found += _directives(agent, text, options, now)
    for name, signal in _USAGES:
        if name in fields:
            found += usage(signal, ",".join(fields[name]))
    in_header = {name: values[0] for name, values in fields.items() if name.startswith("tdm-")}
    found += _reservation(meta) or _reservation(in_header)  # the page supersedes the header
    return few(found) if found else []


def _reservation(said: Mapping[str, str]) -> list[Statement]:
    """The TDM reservation in a page's metadata or headers."""
    if "tdm-reservation" not in said:
        return []
    return reservation(Signal.TDM, said["tdm-reservation"], said.get("tdm-policy"))


def _directives(agent: str, text: str, options: Options, now: float) -> Iterator[Statement]:
    """The statements to us in one header or <meta>; in a header ``agent: noindex`` names the *agent* from there on."""
    dates = [date.strip() for date in _EXPIRY.findall(text)]
    for part in _EXPIRY.sub("unavailable_after", text).lower().split(","):
        head, colon, rest = map(str.strip, part.partition(":"))
        if colon and head not in _VALUED:
            agent = head
            part = rest
        names = [part.strip()]
        if _WORDS.issuperset(words := part.replace(";", " ").split()):
            names = words  # as Bing reads them, and who writes them so means it
        for name in names:
            said = [_expiry(dates.pop(0), now)] if name == "unavailable_after" and dates else _DIRECTIVES.get(name, [])
            yield from _meant_for(agent.lower(), said, options)


def _meant_for(agent: str, said: list[Statement], options: Options) -> Iterable[Statement]:
    """Those of *said*, told to *agent*, that concern us; a refusal to an AI crawler counts as one AI_AGENTS."""
    if agent in ("", "*", options.robots_agent.lower()):
        return said
    token = next((token for token in AI_AGENTS if token.lower() == agent), None)
    refused = token and any(statement.signal in (Signal.NOINDEX, Signal.NOAI) for statement in said)
    return [Statement(Signal.AI_AGENTS, token, TRAINING)] if token and refused else []


def _expiry(date: str, now: float) -> Statement:
    """The statement of an unavailable_after; a date in an unknown form refuses nothing, but is recorded."""
    time = seconds_of(date.upper())
    if time is None:
        return Statement(Signal.UNAVAILABLE_AFTER, "?")
    stamp = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Statement(Signal.UNAVAILABLE_AFTER, stamp, ANY if time < now else NOTHING)
