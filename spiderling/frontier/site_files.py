"""The files in which a site speaks to crawlers, parsed: robots.txt, /.well-known/tdmrep.json, /ai.txt, licences.

Each parser takes any bytes and never raises; what it cannot read says nothing.  The method ``statements`` of a parsed
file returns the opt-outs that hold for one URL (base/opt_outs.py).
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias

from protego import Protego

from spiderling.base.opt_outs import (
    AI_AGENTS,
    MAX_FILE_STARS,
    TRAINING,
    PathPattern,
    Patterns,
    RslFile,
    Signal,
    Statement,
    few,
    normal,
    reservation,
    usage,
)
from spiderling.base.options import Options

MAX_FILE_BYTES = 500 * 1024  # bytes of a file that are read: the smallest limit that RFC 9309, 2.5, allows
MAX_RATE_S = 10**9  # the most seconds that a Request-rate may state; a larger number counts as this (chosen)
MAX_RULES = 1000  # rules of a tdmrep.json, and usage lines of a robots.txt, that are read; chosen
MAX_LICENCES = 8  # license lines of a robots.txt, and licences of a page, that are read; chosen: most name one
_AGENT_LINE = re.compile(
    r"^[^\S\n]*user(?:[- ]?agent[^\S\n]*:|(?:-|[^\S\n]+)?agent[^\S\n]+(?![^:#\n]*:(?:\s|#|$)))([^#\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that Protego takes for a User-agent line, one without a colon too."""
_TOKENS = (re.compile(r"[a-z0-9_-]+"), re.compile(r"[a-z_-]+"))
"""What of such a line is the product token.  As in Google's parser, only leading letters, '-' and '_' are (RFC 9309,
2.2.1); but the names of some crawlers have digits."""
_NOBODY = "."
"""Stands for all agents that do not matter here.  It is part of no token."""
_USAGE = {"content-signal": Signal.CONTENT_SIGNAL, "content-usage": Signal.CONTENT_USAGE}
_DELAY = re.compile(r"^[^\S\n]*crawl[- ]delay[^\S\n]*:[^\S\n]*(\d+)(?:[.,](\d+))?[^\n]*", re.IGNORECASE | re.MULTILINE)
"""A delay as sites write it, such as ``10s`` and ``1,5``; Protego knows only what Python reads as a number."""
_EXTENSION = re.compile(r"(?:\.[a-z0-9]{1,8})?(?:\?.*)?$", re.IGNORECASE | re.DOTALL)


class SiteFile(Enum):
    """A file that speaks for a whole origin, by its path."""

    __hash__ = object.__hash__  # as in base/opt_outs.py

    ROBOTS = "/robots.txt"
    TDMREP = "/.well-known/tdmrep.json"
    AI_TXT = "/ai.txt"
    LICENCE = "licence"  # a licence file by RSL; the address of one stands for its origin


class FileAnswer(NamedTuple):
    """What came of a request for such a file."""

    status: int = 0  # 0: no answer came
    body: bytes = b""
    location: str | None = None  # the target of a redirect
    retry_after_s: float = 0.0  # the pause that the server asks for; 0 if none
    challenge: str = ""
    """The maker of the challenge that came in the place of the file (fetch/messages.py); '' for none."""
    is_open: bool = False  # whether the connection is open for another request
    rules: Rules | None = None  # the file, if whoever gives the answer has parsed it, to its first MAX_FILE_BYTES

    @property
    def has_file(self) -> bool:
        """Whether the body is the file that was asked for."""
        return 200 <= self.status < 300 and not self.challenge


Wanted: TypeAlias = Callable[[Signal], bool]


class Rules(Protocol):
    """A parsed file."""

    def statements(self, url: str, path: str, wanted: Wanted = lambda signal: True) -> list[Statement]:
        """What the file says of the use of *url* by signals that are *wanted*; *path* is the URL's path with query."""


class RobotsTxt:
    """RFC 9309, with Crawl-delay, Request-rate, Sitemap, License, and the usage lines of AIPREF and Content-Signal.

    The groups whose product token equals ours, whatever the case, count together; without any, those of ``*`` count.
    (Protego alone would also take a group for ``spider`` as ours.)
    """

    def __init__(self, body: bytes, options: Options) -> None:
        text = _of_agents({agent.lower() for agent in (options.robots_agent, *AI_AGENTS)}, body)
        self._rules = Protego.parse(text if text.count("*") <= MAX_FILE_STARS else "User-agent: *\nDisallow: /")
        lines = _GroupLines(text, options.robots_agent.lower())
        self._usage = lines.usage
        self.licences = lines.licences
        """Addresses on the License lines, as written (RSL 1.0, 4.4: those of our group, else those outside groups)."""
        named = lines.named
        self._agent = options.robots_agent if options.robots_agent.lower() in named else "*"
        self._ai_agents = [agent for agent in AI_AGENTS if agent.lower() in named]

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

    def statements(self, url: str, path: str, wanted: Wanted = lambda signal: True) -> list[Statement]:
        """The usage lines with the longest matching path, as for Allow and Disallow; and AI crawlers kept out."""
        found: list[Statement] = []
        for signal, lines in self._usage.items():
            if wanted(signal):
                found += chain.from_iterable(lines.longest(path))
        if self._ai_agents and wanted(Signal.AI_AGENTS):
            kept_out = (agent for agent in self._ai_agents if not self._rules.can_fetch(url, agent))
            found += [Statement(Signal.AI_AGENTS, agent, TRAINING) for agent in kept_out]
        return few(found)


def _of_agents(agents: set[str], body: bytes) -> str:
    """The text of a robots.txt in which all agents but *agents* and ``*`` have one name.

    Else each rule would be kept for each agent of its group: 4,000 of each filled the memory.
    """

    def rename(line: re.Match[str]) -> str:
        value = line[1].strip().lower()
        tokens = [token[0] for pattern in _TOKENS if (token := pattern.match(value))]
        if not value or value.split()[0] == "*":
            return f"User-agent: {value[:1]}"
        return f"User-agent: {next((token for token in tokens if token in agents), _NOBODY)}"

    text = _DELAY.sub(r"Crawl-delay: \1.\g<2>0", "\n".join(_decode(body).splitlines()))
    return _AGENT_LINE.sub(rename, text)


def _decode(body: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark; without NULs, which some editors leave."""
    is_wide = body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) and body.count(0) > len(body) / 4
    return body.decode("utf-16" if is_wide else "utf-8-sig", "replace").replace("\0", "")


class _GroupLines:
    """Lines that Protego does not know: those outside groups, and those in the groups of one agent, else of ``*``."""

    def __init__(self, text: str, agent: str) -> None:
        usage: dict[str, list[tuple[Signal, str]]] = {"": []}
        licences: dict[str, list[str]] = {"": []}
        group = [""]
        is_open = False
        for line in text.splitlines():
            field, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
            field = field.lower()
            if field == "user-agent":
                group = list(dict.fromkeys([*(group if is_open else []), value]))
                usage.setdefault(value, [])
                is_open = True
            elif colon and field not in ("sitemap", "host"):
                is_open = False
                if field in _USAGE:
                    for name in group:
                        usage[name].append((_USAGE[field], value))
                elif field == "license":
                    for name in group:
                        licences.setdefault(name, []).append(value)
        ours = agent if agent in usage else "*"
        lines = [*usage[""], *usage.get(ours, [])][:MAX_RULES]
        self.usage = {
            signal: Patterns(_usage_line(signal, value) for kind, value in lines if kind is signal)
            for signal in _USAGE.values()
            if any(kind is signal for kind, _ in lines)
        }
        self.licences = list(dict.fromkeys(licences.get(ours) or licences[""]))[:MAX_LICENCES]
        self.named = usage.keys() - {""}


def _usage_line(signal: Signal, value: str) -> tuple[PathPattern, list[Statement]]:
    """The path and the preferences of a line."""
    path, _, rest = value.replace("\t", " ").partition(" ") if value.startswith("/") else ("", "", value)
    return PathPattern(path), usage(signal, rest)


class TdmRep:
    """``/.well-known/tdmrep.json`` of the TDM Reservation Protocol (W3C Community Group report, section 4.1)."""

    def __init__(self, body: bytes) -> None:
        try:
            rules = json.loads(_decode(body))
        except (ValueError, RecursionError):
            rules = []
        rules = rules if isinstance(rules, list) else [rules]
        self._rules: list[tuple[PathPattern, list[Statement]]] = []
        stars = 0
        for rule in rules[:MAX_RULES]:
            if isinstance(rule, dict) and isinstance(rule.get("location"), str):
                location = _encodable(rule["location"]).partition("#")[0].strip()
                stars += location.count("*")
                if stars > MAX_FILE_STARS:
                    break
                self._rules.append((PathPattern(location), _statements(rule)))

    def statements(self, url: str, path: str, wanted: Wanted = lambda signal: True) -> list[Statement]:
        """By the first rule whose location matches: "the most specific match is the first in sequence"."""
        path = normal(path)
        return list(next((said for pattern, said in self._rules if pattern.matches(path)), ()))


def _statements(rule: dict[str, Any]) -> list[Statement]:
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

    def statements(self, url: str, path: str, wanted: Wanted = lambda signal: True) -> list[Statement]:
        as_text = _EXTENSION.sub(".txt", url, count=1)
        if self._rules.allows(url) and self._rules.allows(as_text):
            return []
        return [Statement(Signal.AI_TXT, refuses=TRAINING)]


def parse_rules(file: SiteFile, body: bytes, options: Options) -> Rules:
    if file is SiteFile.TDMREP:
        return TdmRep(body)
    if file is SiteFile.LICENCE:
        return RslFile(body)
    return RobotsTxt(body, options) if file is SiteFile.ROBOTS else AiTxt(body, options)
