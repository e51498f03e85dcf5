"""Opt-outs of a simulated web: files of sites and headers of pages that refuse, of which some come or go later.

What a crawl must have heard is noted where it is sent.  Then no page that a file refused may be asked for, and no text
that a header refused may be kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from random import Random
from urllib.parse import urljoin

from spiderling.base.urls import canonicalize
from tests.simulated import strange
from tests.simulated.web import FORBIDDEN, ROBOTS, Answer, Web

TDMREP, AI_TXT, ROBOTS_TXT, LICENCE = ("/.well-known/tdmrep.json", "/ai.txt", "/robots.txt", "/licence.xml")
FILES = (ROBOTS_TXT, TDMREP, AI_TXT)
"""What is asked before the first page of a site, and again after a day (docs/opt-outs.md)."""
HEADERS = ("X-Robots-Tag: noai", "X-Robots-Tag: none, noindex", "TDM-Reservation: 1", "Content-Usage: train-ai=n")
IN_ROBOTS = ("usage", "signal")  # what a line of robots.txt may say
PREFIXES = ("/", "/1", "/2", "/new/")
DAY_S = 86_400.0
VISIT_S = 1200.0  # longest time from the answer of a file to a page that still counts on it; chosen
_RSL = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/*"><license>{}</license></content></rsl>'
_REFUSED = '<prohibits type="usage">ai-train</prohibits>'
_FREE = '<payment type="free"/>'


def declare(web: Web, rng: Random) -> None:
    """Let some sites and pages of *web* refuse; given again, some others."""
    for host in web.addresses:
        if host not in web.manners and rng.random() < (0.2 if web.declares else 0.6):
            _declare_site(web, host, rng)
    for url in web.pages:
        answer = web.answers[url]
        if answer.status == 200 and rng.random() < 0.1:
            answer.said = "" if answer.said else rng.choice(HEADERS)
            web.refused.add(url)
    web.declares = True


def _declare_site(web: Web, host: str, rng: Random) -> None:
    """A file of the site refuses what begins with a prefix, or none of its files does any more."""
    origin = f"http://{host}"
    prefix = rng.choice(PREFIXES)
    for file in (TDMREP, AI_TXT):
        web.answers.pop(origin + file, None)
    robots = web.answers[origin + ROBOTS_TXT].text
    lines = [line for line in robots.splitlines() if line.startswith("Sitemap: ")]
    is_strict = FORBIDDEN in robots or not web.declares  # else what was asked for before would be forbidden
    rules = ROBOTS.splitlines() if is_strict else ["User-agent: *", "Disallow:"]
    kind = rng.choice((TDMREP, AI_TXT, *IN_ROBOTS, LICENCE, ""))
    if kind == TDMREP:
        web.answers[origin + TDMREP] = Answer(text=json.dumps([{"location": prefix + "*", "tdm-reservation": 1}]))
    elif kind == AI_TXT:
        prefix = "/"
        web.answers[origin + AI_TXT] = Answer(text="User-agent: *\nDisallow: *.txt\n")
    elif kind == "usage":
        rules.append(f"Content-Usage: {prefix} train-ai=n")
    elif kind == "signal":
        prefix = "/"
        rules.append("Content-Signal: search=yes, ai-train=no")
    elif kind == LICENCE:
        address = f"http://{rng.choice([*web.addresses])}{LICENCE}"
        web.answers[address] = Answer(text=_RSL.format(rng.choice((_REFUSED, _FREE))))
        lines.append(f"License: {address}")
        kind = address
    web.answers[origin + ROBOTS_TXT] = Answer(text="\n".join([*rules, *lines, ""]))
    web.sites[host] = (kind, prefix)
    if kind:
        web.reserved.append((host, "/" if kind.endswith(LICENCE) else prefix))


_NAMED_BY_LIARS = {found.url for url in strange.URLS if (found := canonicalize(urljoin("http://liar.test/", url)))}
"""Addresses that may be asked for as sitemaps, of which robots.txt alone decides, beside those that are no pages."""


class Heard:
    """What hosts have told a crawl of their opt-outs."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._asked: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """Host -> file -> when it was asked for last, or could not be."""
        self._told: defaultdict[str, dict[str, str]] = defaultdict(dict)  # host -> file -> prefix of what it refuses
        self._named: dict[str, str] = {}  # host -> address of the licence that it has named
        self._refusing: set[str] = set()  # addresses of licences that have refused
        self._is_excused = False  # whether files may be left out
        self.free: defaultdict[str, set[str]] = defaultdict(set)  # page -> lines that it had when it did not refuse

    def failed(self, host: str, now: float) -> None:
        """A request of *host* came to nothing: it may have been one for a file, which says nothing then."""
        self._asked[host] = dict.fromkeys(FILES, now)
        self._told.pop(host, None)

    def forget(self) -> None:
        """A crawl that was killed, or goes on from elsewhere, need not know any more what it was told."""
        self._told.clear()
        self._named.clear()
        self._refusing.clear()

    def excuse(self) -> None:
        """A bug was met: a file that is to blame is left out from now on."""
        self._is_excused = True
        self.forget()

    def sent(self, host: str, path: str, now: float) -> None:
        """All of an answer was sent."""
        url = f"http://{host}{path}"
        if path in FILES:
            self._asked[host][path] = now
            kind, prefix = self._web.sites.get(host, ("", ""))
            is_said = kind == path or (path == ROBOTS_TXT and kind in IN_ROBOTS)
            self._told[host][path] = prefix if is_said else ""
            if path == ROBOTS_TXT:
                self._named[host] = kind
        elif path == LICENCE and host not in self._web.manners:
            is_refused = _REFUSED in self._web.answers.get(url, Answer()).text
            self._refusing = self._refusing | {url} if is_refused else self._refusing - {url}
        elif (answer := self._web.answers.get(url)) is not None and not answer.said:
            self.free[url].update(answer.text.split("\n"))

    def wrong(self, host: str, path: str, now: float) -> list[str]:
        """What is wrong with a request for *path*."""
        if not self._web.declares or host in self._web.manners or path in (*FILES, LICENCE, "/sitemap.xml"):
            return []
        url = f"http://{host}{path}"
        if self._web.manners and (url in _NAMED_BY_LIARS or url not in self._web.answers):
            return []
        if any(prefix and path.startswith(prefix) for prefix in self._told[host].values()):
            return [f"{url} was asked for, though a file of its site refuses: {self._told[host]}"]
        if self._named.get(host) in self._refusing:
            return [f"{url} was asked for, though the licence of its site refuses"]
        late = [file for file in FILES if now - self._asked[host].get(file, -DAY_S) > DAY_S + VISIT_S]
        is_wrong = late and not self._is_excused
        return [f"{url} was asked for, and not {late} of its site before"] if is_wrong else []
