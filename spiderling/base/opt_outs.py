"""Opt-outs: what sites and pages say about the use of their texts, and what of that binds a crawl.

A *signal* is a kind of statement (``noindex``, a TDM reservation ...), a *statement* is one
use of it by a page or file.  The *policy* of a crawl says for each signal whether it is
obeyed, only recorded, or not looked at; a statement that is obeyed binds when it refuses the
crawl's *purpose*.  Who defined each signal, and why its default is what it is:
docs/opt-outs.md.  `PathPattern` is a path as the rules of robots.txt, tdmrep.json and RSL have it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import quote

from spiderling.base.errors import BadInput
from spiderling.base.terminal import hint


class Purpose(Enum):
    """What the corpus is built for."""

    __hash__ = object.__hash__
    """That of Enum is a function in Python, and each page asks for some twenty."""

    RESEARCH = "research"
    SEARCH = "search"
    AI_TRAIN = "ai-train"


ANY = frozenset(Purpose)
MINING = ANY - {Purpose.RESEARCH}
"""What a reservation of text and data mining refuses: Directive (EU) 2019/790 lets rightsholders reserve it
(article 4) except against research organisations (article 3)."""
TRAINING = frozenset({Purpose.AI_TRAIN})
SEARCHING = frozenset({Purpose.SEARCH})
NOTHING: frozenset[Purpose] = frozenset()

OBEY = "obey"
RECORD = "record"
IGNORE = "ignore"
RULES = (OBEY, RECORD, IGNORE)


class Signal(Enum):
    """One kind of statement; ``rule`` is its default, OBEY or RECORD."""

    rule: str
    __hash__ = object.__hash__  # as above

    def __new__(cls, name: str, rule: str) -> Signal:
        member = object.__new__(cls)
        member._value_ = name
        member.rule = rule
        return member

    # meta robots and X-Robots-Tag
    NOINDEX = ("noindex", OBEY)
    NOARCHIVE = ("noarchive", RECORD)
    UNAVAILABLE_AFTER = ("unavailable-after", OBEY)
    NOFOLLOW = ("nofollow", OBEY)
    NOAI = ("noai", OBEY)
    REL_NOFOLLOW = ("rel-nofollow", OBEY)
    """On one link, which is then not followed."""
    TDM = ("tdm", OBEY)
    """tdm-reservation in header or meta."""
    TDM_FILE = ("tdm-file", OBEY)
    """tdm-reservation in /.well-known/tdmrep.json."""
    AI_TXT = ("ai-txt", OBEY)
    # lines in robots.txt, and headers
    CONTENT_SIGNAL = ("content-signal", OBEY)
    CONTENT_USAGE = ("content-usage", OBEY)
    RSL = ("rsl", OBEY)
    """A licence by RSL that robots.txt, a header or the page names, or that stands in the page (base/rsl.py)."""
    AI_AGENTS = ("ai-agents", RECORD)
    """robots.txt, X-Robots-Tag or meta robots refuse a crawler of AI_AGENTS."""


AI_AGENTS = (
    "GPTBot", "ClaudeBot", "anthropic-ai", "CCBot", "Google-Extended", "Applebot-Extended", "Bytespider",
    "meta-externalagent", "cohere-training-data-crawler", "AI2Bot", "Diffbot", "PanguBot", "DeepSeekBot", "omgili",
)  # fmt: skip
"""Product tokens of crawlers for AI training, as their makers document them; the signal ai-agents."""


class Statement(NamedTuple):
    """One statement of a page or file."""

    signal: Signal
    detail: str = ""
    """``ai-train=no``, a date, the address of a policy ...; without white space."""
    refuses: frozenset[Purpose] = NOTHING
    """The purposes that it refuses; empty for a permission, and where it does not concern the text."""

    def __str__(self) -> str:
        return f"{self.signal.value}:{self.detail}" if self.detail else self.signal.value


@dataclass(frozen=True, slots=True)
class Policy:
    """How one crawl treats statements."""

    purpose: Purpose
    rules: Mapping[Signal, str]

    @classmethod
    def parse(cls, purpose: str, text: str = "") -> Policy:
        """Read *text*: ``signal=rule`` entries with commas that change the defaults; raises BadInput for others."""
        known = {signal.value: signal for signal in Signal}
        rules = {signal: signal.rule for signal in Signal}
        for entry in filter(None, map(str.strip, text.split(","))):
            name, _, rule = map(str.strip, entry.partition("="))
            if rule not in RULES:
                raise BadInput(f"SPIDERLING_OPTOUTS has {entry!r}; write {name or 'signal'}=obey, =record or =ignore.")
            if name not in known:
                raise BadInput(f"SPIDERLING_OPTOUTS names a signal {name!r} that there is not; {hint(name, known)}")
            rules[known[name]] = rule
        return cls(Purpose(purpose), rules)

    def sees(self, signal: Signal) -> bool:
        """Whether *signal* is looked for at all."""
        return self.rules[signal] != IGNORE

    def asks(self, signal: Signal, refuses: frozenset[Purpose]) -> bool:
        """Whether a site file that can refuse only *refuses* is worth a request: it may bind, or is recorded."""
        return self.rules[signal] == RECORD or (self.obeys(signal) and self.purpose in refuses)

    def obeys(self, signal: Signal) -> bool:
        return self.rules[signal] == OBEY

    def binds(self, statement: Statement) -> bool:
        """Whether *statement* keeps this crawl from using the text."""
        return self.obeys(statement.signal) and self.purpose in statement.refuses

    def binding(self, statements: Iterable[Statement]) -> Statement | None:
        """The first of *statements* that binds."""
        return next(filter(self.binds, statements), None)


def together(site: Iterable[Statement], page: Collection[Statement]) -> list[Statement]:
    """The statements that hold for a page: its own TDM reservation supersedes the site's file (TDMRep, section 5)."""
    if Signal.TDM in {said.signal for said in page}:
        site = [said for said in site if said.signal is not Signal.TDM_FILE]
    return [*site, *page]


def few(statements: Iterable[Statement]) -> list[Statement]:
    """*statements*, each once, of thousands only some, those that refuse first: each document keeps them."""
    found = list(dict.fromkeys(statements))
    return found if len(found) <= _MAX_KEPT else sorted(found, key=lambda said: not said.refuses)[:_MAX_KEPT]


# -- usage preferences, in robots.txt and in headers

_MAX_USES = 1000
"""Preferences of a header or line that are read; chosen: more than fit into a usual header."""
_MAX_KEPT = 50
"""Statements of a page or file that are kept; chosen: nobody makes more than ten that mean anything."""
_USES = {
    "ai-train": TRAINING,  # Content-Signal
    "train-ai": TRAINING,  # Content-Usage; its ``ai-use`` concerns no corpus, the names below are of earlier drafts
    "ai": TRAINING,
    "train-genai": TRAINING,
    "genai": TRAINING,
    "search": SEARCHING,
    "tdm": MINING,
    "bots": ANY,
}


def usage(signal: Signal, text: str) -> list[Statement]:
    """The preferences in *text*, ``key=y|n|yes|no`` with commas; what is no preference is passed over.

    Content-Signal (contentsignals.org, draft-romm-aipref-contentsignals) and Content-Usage
    (draft-ietf-aipref-attach-05 of 19 August 2026, -vocab-08 of 14 September 2026) differ in labels
    and values; either is understood in both.  As in RFC 9651 the last of equal keys counts.  By that
    RFC capitals make all preferences unknown, and by vocab-08 labels of earlier drafts say nothing;
    here they count, since whoever wrote them meant something.
    """
    found: dict[str, Statement] = {}
    for entry in text.lower().split(",")[:_MAX_USES]:
        key, _, value = (part.strip() for part in entry.partition(";")[0].partition("="))
        if value in ("y", "yes", "n", "no") and key.replace("-", "").isalnum() and len(key) < 30:
            refuses = _USES.get(key, NOTHING) if value.startswith("n") else NOTHING
            found[key] = Statement(signal, f"{key}={value}", refuses)
    return few(found.values())


# -- the TDM Reservation Protocol: file, header and meta say the same


def reservation(signal: Signal, value: object, policy: object = None) -> list[Statement]:
    """The statement of ``tdm-reservation`` and ``tdm-policy``; none for other values than 0 and 1.

    W3C Community Group report of 10 May 2024, section 3.  Of a policy the address is recorded: a
    person can ask there for a licence.
    """
    text = str(int(value)) if isinstance(value, (bool, int)) else value.strip() if isinstance(value, str) else ""
    if text not in ("0", "1"):
        return []
    where = "".join(str(policy).split())[:300] if policy and text == "1" else ""
    return [Statement(signal, f"{text}={where}" if where else text, MINING if text == "1" else NOTHING)]


MAX_FILE_STARS = 4000
"""Stars in all patterns of a file; matching more takes milliseconds a URL (chosen)."""
MAX_STARS = 40
"""Stars in a pattern; one with more matches nothing, since matching takes the time of the path for each (chosen)."""
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
Value = TypeVar("Value")


class PathPattern:
    """A path as rules have it: ``*`` is any characters, ``$`` the end (RFC 9309, 2.2.3)."""

    def __init__(self, pattern: str) -> None:
        pattern = normal(pattern)
        self.length = len(pattern)
        """In characters; of the patterns that match, the longest counts (2.2.2)."""
        self._at_end = pattern.endswith("$")
        self._first, *self._parts = pattern.removesuffix("$").split("*")

    def matches(self, path: str) -> bool:
        """Whether the pattern matches *path* (a `normal` one) from its beginning; for each star in linear time."""
        if not path.startswith(self._first) or len(self._parts) > MAX_STARS:
            return False
        position = len(self._first)
        if not self._parts:
            return not self._at_end or len(path) == position
        for part in self._parts[:-1]:
            position = path.find(part, position)
            if position < 0:
                return False
            position += len(part)
        last = self._parts[-1]
        return path[position:].endswith(last) if self._at_end else path.find(last, position) >= 0


class Patterns(Generic[Value]):
    """Patterns, each with a value; of those that match a path the longest count, equal ones together."""

    def __init__(self, patterns: Iterable[tuple[PathPattern, Value]]) -> None:
        self._longest_first = sorted(patterns, key=lambda entry: -entry[0].length)

    def longest(self, path: str) -> list[Value]:
        """The values of the longest of those that match *path*."""
        path = normal(path)
        found: list[Value] = []
        length = 0
        for pattern, value in self._longest_first:
            if pattern.length < length:
                break
            if pattern.matches(path):
                length = pattern.length
                found.append(value)
        return found


def normal(text: str) -> str:
    """Percent-encoding in one form, so that equal paths are equal strings (RFC 9309, 2.2.2)."""
    if text.isascii() and "%" not in text and " " not in text:
        return text
    return _ESCAPE.sub(_unescaped, quote(text, safe="!#$%&'()*+,/:;=?@[]~"))


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else match[0].upper()


class Follow(Enum):
    """Which links of a page may be followed."""

    ALL = "all"
    UNMARKED = "those without rel=nofollow"
    NONE = "none"
