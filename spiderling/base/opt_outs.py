"""Opt-outs: what sites and pages say about the use of their texts, and what of that binds a crawl.

A *signal* is a kind of statement (``noindex``, a TDM reservation ...), a *statement* is one
use of it by a page or file.  The *policy* of a crawl says for each signal whether it is
obeyed, only recorded, or not looked at; a statement that is obeyed binds when it refuses the
crawl's *purpose*.  Who defined each signal, and why its default is what it is:
docs/opt-outs.md.  `PathPattern` is a path as the rules of robots.txt, tdmrep.json and RSL have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from lxml import etree

from spiderling.base.errors import BadInput
from spiderling.base.terminal import entries_of, hint


class Purpose(Enum):
    """What the corpus is built for."""

    __hash__ = object.__hash__  # that of Enum is a function in Python, and each page asks for some twenty

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
    REL_NOFOLLOW = ("rel-nofollow", OBEY)  # on one link, which is then not followed
    TDM = ("tdm", OBEY)  # tdm-reservation in header or meta
    TDM_FILE = ("tdm-file", OBEY)  # tdm-reservation in /.well-known/tdmrep.json
    AI_TXT = ("ai-txt", OBEY)
    # lines in robots.txt, and headers
    CONTENT_SIGNAL = ("content-signal", OBEY)
    CONTENT_USAGE = ("content-usage", OBEY)
    RSL = ("rsl", OBEY)
    """A licence by RSL that robots.txt, a header or the page names, or that stands in the page."""
    AI_AGENTS = ("ai-agents", RECORD)  # robots.txt, X-Robots-Tag or meta robots refuse a crawler of AI_AGENTS


AI_AGENTS = (
    "GPTBot", "ClaudeBot", "anthropic-ai", "CCBot", "Google-Extended", "Applebot-Extended", "Bytespider",
    "meta-externalagent", "cohere-training-data-crawler", "AI2Bot", "Diffbot", "PanguBot", "DeepSeekBot", "omgili",
)  # fmt: skip
"""Product tokens of crawlers for AI training, as their makers document them; the signal ai-agents."""


class Statement(NamedTuple):
    """One statement of a page or file."""

    signal: Signal
    detail: str = ""  # ``ai-train=no``, a date, the address of a policy ...; without white space
    refuses: frozenset[Purpose] = NOTHING
    """The purposes that it refuses; empty for a permission, and where it does not concern the text."""

    def __str__(self) -> str:
        return f"{self.signal.value}:{self.detail}" if self.detail else self.signal.value


@dataclass(frozen=True, slots=True)
class OptOutPolicy:
    """How one crawl treats statements."""

    purpose: Purpose
    rules: Mapping[Signal, str]

    @classmethod
    def parse(cls, purpose: str, text: str = "") -> OptOutPolicy:
        """Read *text*: ``signal=rule`` entries with commas that change the defaults; raises BadInput for others."""
        known = {signal.value: signal for signal in Signal}
        rules = {signal: signal.rule for signal in Signal}
        for entry in entries_of(text):
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

_MAX_USES = 1000  # preferences of a header or line that are read; chosen: more than fit into a usual header
_MAX_KEPT = 50  # statements of a page or file that are kept; chosen: nobody makes more than ten that mean anything
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


MAX_FILE_STARS = 4000  # stars in all patterns of a file; matching more takes milliseconds a URL (chosen)
MAX_STARS = 40
"""Stars in a pattern; one with more matches nothing, since matching takes the time of the path for each (chosen)."""
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
Value = TypeVar("Value")


class PathPattern:
    """A path as rules have it: ``*`` is any characters, ``$`` the end (RFC 9309, 2.2.3)."""

    def __init__(self, pattern: str) -> None:
        pattern = normal(pattern)
        self.length = len(pattern)  # in characters; of the patterns that match, the longest counts (2.2.2)
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
    return _ESCAPE.sub(_unescape, quote(text, safe="!#$%&'()*+,/:;=?@[]~"))


def _unescape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else match[0].upper()


class Follow(Enum):
    """Which links of a page may be followed."""

    ALL = "all"
    UNMARKED = "those without rel=nofollow"
    NONE = "none"


# -- Really Simple Licensing: what a licence file, or a licence within a page, says of the use of a URL
#
# RSL 1.0 (RSL-SPEC-1.0, Recommendation of 10 December 2025, https://rslstandard.org/rsl) with its errata up to 7 August
# 2026; sections below are its own.  A <content> applies to the paths that match its url; the longest match counts
# (3.1.1), equal ones together.  Each of its <license> elements offers uses under conditions.  A use is refused if any
# of them prohibits it, or if none offers it on terms that this crawl meets: it neither pays nor reports, and asks no
# licence server.  Terms that cannot be read refuse training only.  Any bytes may come; nothing in them makes it raise.

RSL_NAMESPACE = "https://rslstandard.org/rsl"
RSL_MEDIA_TYPE = "application/rsl+xml"
_RSL_USES = {
    Purpose.AI_TRAIN: frozenset({"all", "ai-all", "ai-train", "train-ai", "train-genai"}),
    Purpose.SEARCH: frozenset({"all", "search"}),
    Purpose.RESEARCH: frozenset({"all"}),
}
"""Tokens that cover a purpose (3.4.1.1); the last two of training are those of drafts before 1.0."""
_KNOWN_USES = frozenset().union(*_RSL_USES.values(), {"ai-input", "ai-index"})
_FREE = frozenset({"free", "attribution"})
_PAYMENTS = frozenset({"purchase", "subscription", "training", "crawl", "use", "contribution"})
_NAMES = """
rsl content license permits prohibits payment standard custom amount accepts reporting legal alternate schema copyright
terms
"""
_ELEMENTS = frozenset(_NAMES.split())
_MAX_CONTENTS = 2000  # <content> elements of a file that are read, together with the elements right in them (chosen)
_MAX_STATED = 100  # combinations of contents of which is kept what they say (chosen: most files have a few paths)
_MAX_TOKENS = 300  # tokens of a list that are read; chosen: there are 249 countries
_TOKENS = re.compile(r"[^\s,]+")

UNKNOWN = "unknown"  # what is stated of terms that cannot be read, or had


class _Licence(NamedTuple):
    """One <license>: *permits* and *prohibits* are tokens by type."""

    permits: Mapping[str, frozenset[str]]
    prohibits: Mapping[str, frozenset[str]]
    price: str  # 'free', 'attribution', or what hinders: 'payment:crawl', 'reporting' ..

    def offers(self, uses: frozenset[str]) -> bool:
        """Whether one of *uses* is among those that it permits; without a list it permits all (3.5)."""
        return "usage" not in self.permits or bool(uses & self.permits["usage"])

    @property
    def hindrance(self) -> str:
        """Why what it offers may not be used, '' if it may; a condition on the user or his country is never met."""
        conditions = [kind for kind in ("user", "geo") if kind in self.permits or kind in self.prohibits]
        return conditions[0] if conditions else "" if self.price in _FREE else self.price


class _Content(NamedTuple):
    """One <content>."""

    host: str  # of a full URL, without ``www.``; '': that of whoever names the licence
    pattern: PathPattern
    has_server: bool
    licences: list[_Licence]


class RslFile:
    """A licence file, a licence within a page, or a feed with licences."""

    def __init__(self, body: bytes) -> None:
        self._contents: list[_Content] = []
        self._is_sound = False  # whether all of it was understood
        root = _parse_xml(body)
        if root is not None:
            self._is_sound = True
            self._contents = list(self._read(root))
            self._is_sound &= bool(self._contents)
        self._hosts = {said.host for said in self._contents} - {""}
        self._patterns: dict[str, Patterns[int]] = {}
        self._stated: dict[tuple[int, ...], list[Statement]] = {}
        """Numbers of the contents that count -> what they say together."""

    def statements(
        self, url: str, path: str, wanted: Callable[[Signal], bool] = lambda signal: True
    ) -> list[Statement]:
        """What it says of *url*, whose path with query is *path*."""
        if not wanted(Signal.RSL):
            return []
        host = _without_www(urlsplit(url).hostname or "") if self._hosts else ""
        effective = tuple(self._patterns_of(host if host in self._hosts else "").longest(path))
        if effective not in self._stated:
            if len(self._stated) >= _MAX_STATED:
                self._stated.clear()
            self._stated[effective] = self._statements([self._contents[number] for number in effective])
        return self._stated[effective]

    def _patterns_of(self, host: str) -> Patterns[int]:
        """The paths of contents for *host*, one of _hosts or '', each with the number of its content."""
        if host not in self._patterns:
            numbered = enumerate(self._contents)
            self._patterns[host] = Patterns(
                (said.pattern, number) for number, said in numbered if said.host in ("", host)
            )
        return self._patterns[host]

    def _statements(self, effective: list[_Content]) -> list[Statement]:
        found = self._judged(effective) if effective else {}
        if not self._is_sound:
            found[UNKNOWN] = found.get(UNKNOWN, frozenset()) | TRAINING
        return [Statement(Signal.RSL, detail, refuses) for detail, refuses in found.items()]

    def _judged(self, effective: list[_Content]) -> dict[str, frozenset[Purpose]]:
        """Detail -> the purposes that it refuses; none for what permits."""
        licences = [licence for said in effective for licence in said.licences]
        if any(said.has_server for said in effective):
            return {"server": ANY}
        if not licences:
            return {UNKNOWN: TRAINING}
        found: dict[str, frozenset[Purpose]] = {}
        for purpose, uses in _RSL_USES.items():
            detail, is_refused = self._verdict(licences, uses, purpose)
            found[detail] = found.get(detail, frozenset()) | ({purpose} if is_refused else frozenset())
        return found

    def _verdict(self, licences: list[_Licence], uses: frozenset[str], purpose: Purpose) -> tuple[str, bool]:
        """What is said of *purpose*, in a word, and whether it is refused."""
        if any(uses & licence.prohibits.get("usage", frozenset()) for licence in licences):
            return "prohibited", True
        offers = [licence for licence in licences if licence.offers(uses)]
        if not offers:  # research organisations need no permission (Directive (EU) 2019/790, article 3)
            return "not-permitted", purpose is not Purpose.RESEARCH
        hindrances = [licence.hindrance for licence in offers]
        if all(hindrances):
            return hindrances[0], True
        prices = {licence.price for licence, hindered in zip(offers, hindrances, strict=True) if not hindered}
        return "attribution" if "attribution" in prices else "free", False

    # -- reading

    def _read(self, root: Any) -> Iterator[_Content]:
        read = 0
        stars = 0
        for element in root.iter():
            name = _name(element)
            self._is_sound &= name in _ELEMENTS or name == ""
            if name == "content":
                stars += element.get("url", "").count("*")
                read += 1 + len(element)
                if read > _MAX_CONTENTS or stars > MAX_FILE_STARS:
                    self._is_sound = False
                    return
                yield self._content(element)

    def _content(self, element: Any) -> _Content:
        address = " ".join((element.get("url") or "").split())
        host = ""
        if "://" in address:
            rest = address.partition("://")[2]
            host, slash, rest = rest.partition("/")
            host = _without_www(host.partition(":")[0].lower())
            address = slash + rest
        pattern = address if address.startswith(("/", "*")) and address.count("*") <= MAX_STARS else ""
        has_server = bool(element.get("server")) or element.get("encrypted", "").strip().lower() == "true"
        licences = [self._licence(child) for child in element if _name(child) == "license"]
        return _Content(host, PathPattern(pattern), has_server, licences)

    def _licence(self, element: Any) -> _Licence:
        permits: dict[str, frozenset[str]] = {}
        prohibits: dict[str, frozenset[str]] = {}
        price = "free"
        for child in element:
            name = _name(child)
            if name in ("permits", "prohibits"):
                kind, tokens = self._tokens(child)
                into = permits if name == "permits" else prohibits
                into[kind] = into.get(kind, frozenset()) | tokens
                self._is_sound &= name == "permits" or kind != "usage" or tokens <= _KNOWN_USES
            elif name == "payment":
                price = _price(child)
        if any(_name(child) == "reporting" for child in element):
            price = "reporting"
        return _Licence(permits, prohibits, price)

    def _tokens(self, element: Any) -> tuple[str, frozenset[str]]:
        """The type and the tokens of <permits> or <prohibits>; tokens of other vocabularies are left out (3.4.1)."""
        kind = (element.get("type") or "usage").strip().lower()
        self._is_sound &= kind in ("usage", "user", "geo")
        tokens = _TOKENS.findall("".join(element.itertext()))
        self._is_sound &= len(tokens) <= _MAX_TOKENS
        return kind, frozenset(token.lower() for token in tokens[:_MAX_TOKENS] if ":" not in token)


def _without_www(host: str) -> str:
    """*host* without ``www.``: who writes a licence may mean either name of his site."""
    return host.removeprefix("www.")


def _price(payment: Any) -> str:
    """'free', 'attribution', or how it is to be paid."""
    kind = (payment.get("type") or "").strip().lower()
    asks = {_name(child) for child in payment} & {"custom", "amount", "accepts"}
    if kind in _FREE or (not kind and not asks):
        return kind or "free"
    return f"payment:{kind}" if kind in _PAYMENTS else "payment"


def _name(element: Any) -> str:
    """The name of an element of RSL; '' for one of another vocabulary, whose content is no concern of ours."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    space, _, name = tag.rpartition("}")
    return name if space == "{" + RSL_NAMESPACE else ""


def _parse_xml(body: bytes) -> Any:
    """The root element; None for what is no XML, or has a document type, whose entities might hold terms."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.fromstring(body.strip(), parser)
    except (etree.XMLSyntaxError, ValueError, LookupError):
        return None
    return None if root.getroottree().docinfo.doctype else root
