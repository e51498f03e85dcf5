"""The files in which a site speaks to crawlers, parsed: robots.txt, /.well-known/tdmrep.json, /ai.txt, licences.

Each parser takes any bytes and never raises; what it cannot read says nothing.  The method ``statements`` of a parsed
file returns the opt-outs that hold for one URL (base/opt_outs.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

from protego import Protego

from spiderling.base.opt_outs import TRAINING, Signal, Statement, reservation, usage
from spiderling.base.options import Options
from spiderling.base.path_patterns import PathPattern
from spiderling.base.rsl import RslFile

MAX_FILE_BYTES = 500 * 1024
"""Bytes of a file that are read: the smallest limit that RFC 9309, 2.5, allows."""
MAX_RATE_S = 10**9
"""The most seconds that a Request-rate may state; a larger number counts as this (chosen)."""
MAX_RULES = 1000
"""Rules of a tdmrep.json, and usage lines of a robots.txt, that are read.  Chosen."""
MAX_LICENCES = 8
"""License lines of a robots.txt, and licences of a page, that are read; chosen: most name one."""
MAX_STARS = 4000
"""Stars in a robots.txt or ai.txt; with more it allows nothing, since matching takes milliseconds a URL (chosen)."""

# As in Google's parser, only the leading letters, '-' and '_' are the product token (RFC 9309, 2.2.1).
_AGENT_LINE = re.compile(
    r"^([ \t]*user[ -]?agent[ \t]*:[ \t]*)([a-z_-]+)[^#\r\n]*", re.IGNORECASE | re.MULTILINE | re.ASCII
)
_USAGE = {"content-signal": Signal.CONTENT_SIGNAL, "content-usage": Signal.CONTENT_USAGE}
_EXTENSION = re.compile(r"(?:\.[a-z0-9]{1,8})?(?:\?.*)?$", re.IGNORECASE | re.DOTALL)


class SiteFile(Enum):
    """A file that speaks for a whole origin, by its path."""

    ROBOTS = "/robots.txt"
    TDMREP = "/.well-known/tdmrep.json"
    AI_TXT = "/ai.txt"
    LICENCE = "licence"
    """A licence file by RSL; the address of one stands for its origin."""


class FileAnswer(NamedTuple):
    """What came of a request for such a file."""

    status: int = 0
    """0: no answer came."""
    body: bytes = b""
    location: str | None = None
    """The target of a redirect."""
    retry_after_s: float = 0.0
    """The pause that the server asks for; 0 if none."""
    challenge: str = ""
    """The maker of the challenge that came in the place of the file (fetch/challenges.py); '' for none."""

    @property
    def has_file(self) -> bool:
        """Whether the body is the file that was asked for."""
        return 200 <= self.status < 300 and not self.challenge


Wanted: TypeAlias = Callable[[Signal], bool]


def all_signals(signal: Signal) -> bool:
    """Every signal is wanted."""
    return True


class Rules(Protocol):
    """A parsed file."""

    def statements(self, url: str, path: str, wanted: Wanted = all_signals) -> list[Statement]:
        """What the file says of the use of *url* by signals that are *wanted*; *path* is the URL's path with query."""


class RobotsTxt:
    """RFC 9309, with Crawl-delay, Request-rate, Sitemap, License, and the usage lines of AIPREF and Content-Signal.

    The groups whose product token equals ours, whatever the case, count together; without any, those of ``*`` count.
    (Protego alone would also take a group for ``spider`` as ours.)
    """

    def __init__(self, body: bytes, options: Options) -> None:
        text = _AGENT_LINE.sub(r"\1\2", body.decode("utf-8-sig", "replace"))
        self._rules = Protego.parse(text if text.count("*") <= MAX_STARS else "User-agent: *\nDisallow: /")
        lines = _GroupLines(text, options.robots_agent.lower())
        self._usage = lines.usage
        self.licences = lines.licences
        """Addresses on the License lines, as written (RSL 1.0, 4.4: those of our group, else those outside groups)."""
        named = lines.named
        self._agent = options.robots_agent if options.robots_agent.lower() in named else "*"
        ai_agents = map(str.strip, options.ai_agents.split(","))
        self._ai_agents = [agent for agent in ai_agents if agent.lower() in named]

    def allows(self, url: str) -> bool:
        return self._rules.can_fetch(url, self._agent)

    def crawl_delay_s(self) -> float:
        """Seconds asked for by Crawl-delay or Request-rate, the longer one; 0 if none."""
        rate = self._rules.request_rate(self._agent)
        # a file may state any number of digits, more than a float can hold
        per_request = min(rate.seconds, MAX_RATE_S) / rate.requests if rate and rate.requests else 0.0
        return max(self._rules.crawl_delay(self._agent) or 0.0, per_request)

    def sitemaps(self) -> list[str]:
        """Addresses on the Sitemap lines, as written."""
        return list(self._rules.sitemaps)

    def statements(self, url: str, path: str, wanted: Wanted = all_signals) -> list[Statement]:
        """The usage lines with the longest matching path, as for Allow and Disallow; and AI crawlers kept out."""
        found: list[Statement] = []
        for signal in filter(wanted, _USAGE.values()) if self._usage else ():
            lines = [line for line in self._usage if line.signal is signal and line.pattern.matches(path)]
            longest = max((line.pattern.length for line in lines), default=0)
            for line in lines:
                if line.pattern.length == longest:
                    found += usage(signal, line.value)
        if self._ai_agents and wanted(Signal.AI_AGENTS):
            kept_out = (agent for agent in self._ai_agents if not self._rules.can_fetch(url, agent))
            found += [Statement(Signal.AI_AGENTS, agent, TRAINING) for agent in kept_out]
        return found


class _UsageLine(NamedTuple):
    signal: Signal
    pattern: PathPattern
    value: str


class _GroupLines:
    """Lines that Protego does not know: those outside groups, and those in the groups of one agent, else of ``*``."""

    def __init__(self, text: str, agent: str) -> None:
        usage: dict[str, list[_UsageLine]] = {"": []}
        licences: dict[str, list[str]] = {"": []}
        group = [""]
        is_open = False
        for line in text.splitlines():
            field, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
            field = field.lower()
            if field in ("user-agent", "useragent", "user agent"):
                group = [*(group if is_open else []), value.lower()]
                usage.setdefault(value.lower(), [])
                is_open = True
            elif colon and field not in ("sitemap", "host"):
                is_open = False
                if field in _USAGE:
                    path, _, rest = (
                        value.replace("\t", " ").partition(" ") if value.startswith("/") else ("", "", value)
                    )
                    for name in group:
                        usage[name].append(_UsageLine(_USAGE[field], PathPattern(path), rest))
                elif field == "license":
                    for name in group:
                        licences.setdefault(name, []).append(value)
        ours = agent if agent in usage else "*"
        self.usage = [*usage[""], *usage.get(ours, [])][:MAX_RULES]
        self.licences = list(dict.fromkeys(licences.get(ours) or licences[""]))[:MAX_LICENCES]
        self.named = usage.keys() - {""}


class TdmRep:
    """``/.well-known/tdmrep.json`` of the TDM Reservation Protocol (W3C Community Group report, section 4.1)."""

    def __init__(self, body: bytes) -> None:
        try:
            rules = json.loads(body.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            rules = []
        rules = rules if isinstance(rules, list) else [rules]
        self._rules = [
            (PathPattern(_encodable(rule["location"]).partition("#")[0].strip()), _said(rule))
            for rule in rules[:MAX_RULES]
            if isinstance(rule, dict) and isinstance(rule.get("location"), str)
        ]

    def statements(self, url: str, path: str, wanted: Wanted = all_signals) -> list[Statement]:
        """By the first rule whose location matches: "the most specific match is the first in sequence"."""
        return list(next((said for pattern, said in self._rules if pattern.matches(path)), ()))


def _said(rule: dict[str, Any]) -> list[Statement]:
    value = rule.get("tdm-reservation")
    policy = rule.get("tdm-policy")
    return reservation(Signal.TDM_FILE, value, _encodable(policy) if isinstance(policy, str) else None)


def _encodable(text: str) -> str:
    """*text* without lone surrogates: an escape in JSON may make one, and neither a path nor the state can hold it."""
    return text.encode("utf-8", "replace").decode()


class AiTxt:
    """``/ai.txt`` as Spawning makes it: robots.txt rules on file types, for those who train models.

    A rule for ``*.txt`` means text, and a page is text: its URL is judged as it is and with the extension ``.txt``.
    """

    def __init__(self, body: bytes, options: Options) -> None:
        self._rules = RobotsTxt(body, options)

    def statements(self, url: str, path: str, wanted: Wanted = all_signals) -> list[Statement]:
        as_text = _EXTENSION.sub(".txt", url, count=1)
        if self._rules.allows(url) and self._rules.allows(as_text):
            return []
        return [Statement(Signal.AI_TXT, refuses=TRAINING)]


def parsed(file: SiteFile, body: bytes, options: Options) -> Rules:
    """The rules in *body*."""
    if file is SiteFile.TDMREP:
        return TdmRep(body)
    if file is SiteFile.LICENCE:
        return RslFile(body, options.licensee())
    return RobotsTxt(body, options) if file is SiteFile.ROBOTS else AiTxt(body, options)
