"""The files in which a site speaks to crawlers, parsed: robots.txt, /.well-known/tdmrep.json, /ai.txt.

Each parser takes any bytes and never raises; what it cannot read says nothing.  Each is
asked ``statements(url, path)`` for the opt-outs that hold for one URL (optouts.py).
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from protego import Protego

from spiderling.options import Options
from spiderling.optouts import TRAINING, Signal, Statement, reservation, usage

MAX_FILE_BYTES = 500 * 1024
"""RFC 9309, 2.5: at least 500 KiB must be read; we read no more."""
MAX_RATE_S = 10**9
MAX_RULES = 2000
"""Of a tdmrep.json; and of usage lines in a robots.txt."""

# as Google's parser reads it, the token ends where no letter, '-' or '_' follows (RFC 9309, 2.2.1)
_AGENT_LINE = re.compile(
    r"^([ \t]*user[ -]?agent[ \t]*:[ \t]*)([a-z_-]+)[^#\r\n]*", re.IGNORECASE | re.MULTILINE | re.ASCII
)
_USAGE = {"content-signal": Signal.CONTENT_SIGNAL, "content-usage": Signal.CONTENT_USAGE}
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_EXTENSION = re.compile(r"(?:\.[a-z0-9]{1,8})?(?:\?.*)?$", re.IGNORECASE | re.DOTALL)


class SiteFile(Enum):
    """A file that speaks for a whole origin, by its path."""

    ROBOTS = "/robots.txt"
    TDMREP = "/.well-known/tdmrep.json"
    AI_TXT = "/ai.txt"


class Rules(Protocol):
    """A parsed file."""

    def statements(self, url: str, path: str) -> list[Statement]:
        """What it says of the use of *url*; *path* is its path with query."""


class RobotsTxt:
    """RFC 9309, with Crawl-delay, Request-rate, Sitemap, and the usage lines of AIPREF and Content-Signal.

    A group is ours when its product token *is* ours, whatever the case; groups of the same token are
    one; without one those of ``*`` count.  (Protego alone would take a group for ``spider`` as ours.)
    """

    def __init__(self, body: bytes, options: Options) -> None:
        text = _AGENT_LINE.sub(r"\1\2", body.decode("utf-8-sig", "replace"))
        self._rules = Protego.parse(text)
        self._usage, named = _usage_lines(text, options.robots_agent.lower())
        self._agent = options.robots_agent if options.robots_agent.lower() in named else "*"
        self._ai_agents = [agent for agent in options.ai_agents.split(",") if agent.strip().lower() in named]

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

    def statements(self, url: str, path: str) -> list[Statement]:
        """Preferences for the longest path that matches, as for Allow and Disallow; and AI crawlers kept out."""
        found = []
        for signal in _USAGE.values():
            lines = [line for line in self._usage if line.signal is signal and matches(line.pattern, path)]
            longest = max((len(line.pattern) for line in lines), default=0)
            for line in lines:
                if len(line.pattern) == longest:
                    found += usage(signal, line.value)
        kept_out = (agent for agent in self._ai_agents if not self._rules.can_fetch(url, agent.strip()))
        found += [Statement(Signal.AI_AGENTS, agent.strip(), TRAINING) for agent in kept_out]
        return found


class _UsageLine(NamedTuple):
    signal: Signal
    pattern: str
    value: str


def _usage_lines(text: str, agent: str) -> tuple[list[_UsageLine], set[str]]:
    """The usage lines of the groups of *agent*, else of ``*``, and of no group; and the tokens that have groups."""
    lines: dict[str, list[_UsageLine]] = {"": []}
    group, is_open = [""], False
    for line in text.splitlines():
        field, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        field = field.lower()
        if field in ("user-agent", "useragent", "user agent"):
            group = [*(group if is_open else []), value.lower()]
            lines.setdefault(value.lower(), [])
            is_open = True
        elif colon and field not in ("sitemap", "host"):
            is_open = False
            if field in _USAGE:
                path, _, rest = value.replace("\t", " ").partition(" ") if value.startswith("/") else ("", "", value)
                for name in group:
                    lines[name].append(_UsageLine(_USAGE[field], path, rest))
    ours = lines.get(agent, lines.get("*", []))
    return [*lines[""], *ours][:MAX_RULES], lines.keys() - {""}


class TdmRep:
    """``/.well-known/tdmrep.json`` of the TDM Reservation Protocol (W3C Community Group report, section 4.1)."""

    def __init__(self, body: bytes) -> None:
        try:
            rules = json.loads(body.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            rules = []
        rules = rules if isinstance(rules, list) else [rules]
        self._rules: list[dict[str, Any]] = [
            rule for rule in rules[:MAX_RULES] if isinstance(rule, dict) and isinstance(rule.get("location"), str)
        ]

    def statements(self, url: str, path: str) -> list[Statement]:
        """By the first rule whose location matches: "the most specific match is the first in sequence"."""
        for rule in self._rules:
            if matches(rule["location"].partition("#")[0].strip(), path):
                return reservation(Signal.TDM_FILE, rule.get("tdm-reservation"), rule.get("tdm-policy"))
        return []


class AiTxt:
    """``/ai.txt`` as Spawning makes it: robots.txt rules on kinds of files, for those who train models.

    Where ``*.txt`` is disallowed text is meant, and a page is text: it counts under its own address and
    under the same one with that extension.
    """

    def __init__(self, body: bytes, options: Options) -> None:
        self._rules = RobotsTxt(body, options)

    def statements(self, url: str, path: str) -> list[Statement]:
        as_text = _EXTENSION.sub(".txt", url, count=1)
        if self._rules.allows(url) and self._rules.allows(as_text):
            return []
        return [Statement(Signal.AI_TXT, refuses=TRAINING)]


def parsed(file: SiteFile, body: bytes, options: Options) -> Rules:
    """The rules in *body*."""
    if file is SiteFile.TDMREP:
        return TdmRep(body)
    return RobotsTxt(body, options) if file is SiteFile.ROBOTS else AiTxt(body, options)


def matches(pattern: str, path: str) -> bool:
    """Whether *path* begins as *pattern* says: ``*`` is any characters, ``$`` the end (RFC 9309, 2.2.3).

    In time linear in the path for each star.
    """
    pattern, path = _normal(pattern), _normal(path)
    at_end = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    position, last = len(first), parts.pop() if parts else None
    for part in parts:
        position = path.find(part, position)
        if position < 0:
            return False
        position += len(part)
    if last is None:
        return not at_end or len(path) == position
    return path.find(last, position) >= 0 if not at_end else path[position:].endswith(last)


def _normal(text: str) -> str:
    """Percent-encoding in one form, so that equal paths are equal strings (RFC 9309, 2.2.2)."""
    return _ESCAPE.sub(_unescaped, quote(text, safe="!#$%&'()*+,/:;=?@[]~"))


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else match[0].upper()
