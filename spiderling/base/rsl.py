"""Really Simple Licensing: what a licence file, or a licence within a page, says of the use of a URL.

RSL 1.0 (RSL-SPEC-1.0, Recommendation of 10 December 2025, https://rslstandard.org/rsl) with its errata up to 7 August
2026; sections below are its own.  A ``<content>`` applies to the paths that match its ``url``; the longest match counts
(3.1.1), equal ones together.  Each of its ``<license>`` elements offers uses under conditions.  A use is refused if any
of them prohibits it, or if none offers it on terms that this crawl meets: it neither pays nor reports, and asks no
licence server.  Terms that cannot be read refuse training only.

Any bytes may come; nothing in them makes it raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from spiderling.base.opt_outs import (
    ANY,
    MAX_FILE_STARS,
    MAX_STARS,
    TRAINING,
    PathPattern,
    Patterns,
    Purpose,
    Signal,
    Statement,
)

NAMESPACE = "https://rslstandard.org/rsl"
MEDIA_TYPE = "application/rsl+xml"
USERS = ("commercial", "non-commercial", "education", "government", "personal")
_USES = {
    Purpose.AI_TRAIN: frozenset({"all", "ai-all", "ai-train", "train-ai", "train-genai"}),
    Purpose.SEARCH: frozenset({"all", "search"}),
    Purpose.RESEARCH: frozenset({"all"}),
}
"""Tokens that cover a purpose (3.4.1.1); the last two of training are those of drafts before 1.0."""
_KNOWN_USES = frozenset().union(*_USES.values(), {"ai-input", "ai-index"})
_FREE = frozenset({"free", "attribution"})
_PAYMENTS = frozenset({"purchase", "subscription", "training", "crawl", "use", "contribution"})
_CODES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC
CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD
GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH
KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW
MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC
SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY
UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
COUNTRIES = frozenset(_CODES.split())
"""Codes of ISO 3166-1 alpha-2."""
ALIASES = {"UK": "GB", "EL": "GR"}
"""What the EU and many others write for two of them."""
_MEMBERS = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
"""Of the EU, which is a token of its own."""
_EU = frozenset(_MEMBERS.split())
_NAMES = """
rsl content license permits prohibits payment standard custom amount accepts reporting legal alternate schema copyright
terms
"""
_ELEMENTS = frozenset(_NAMES.split())
_MAX_CONTENTS = 2000
"""<content> elements of a file that are read, together with the elements right in them (chosen)."""
_MAX_STATED = 100
"""Combinations of contents of which is kept what they say (chosen: most files have a few paths)."""
_MAX_TOKENS = 300
"""Tokens of a list that are read; chosen: there are 249 countries."""
_TOKENS = re.compile(r"[^\s,]+")

UNKNOWN = "unknown"
"""What is stated of terms that cannot be read, or had."""


class Licensee(NamedTuple):
    """Who would use the text; '' for what he does not say, and then no condition on it is met."""

    user: str = ""
    """One of USERS."""
    country: str = ""
    """ISO 3166-1 alpha-2."""


class _Licence(NamedTuple):
    """One <license>: *permits* and *prohibits* are tokens by type."""

    permits: Mapping[str, frozenset[str]]
    prohibits: Mapping[str, frozenset[str]]
    price: str
    """'free', 'attribution', or what hinders: 'payment:crawl', 'reporting' ..."""

    def offers(self, uses: frozenset[str]) -> bool:
        """Whether one of *uses* is among those that it permits; without a list it permits all (3.5)."""
        return "usage" not in self.permits or bool(uses & self.permits["usage"])

    def hindrance(self, who: Licensee) -> str:
        """Why *who* may not use what it offers; '' if he may."""
        here = {who.country, "EU" if who.country in _EU else who.country} - {""}
        for kind, mine in (("user", {who.user} - {""}), ("geo", here)):
            if kind in self.permits and not mine & self.permits[kind]:
                return kind
            if kind in self.prohibits and (not mine or mine & self.prohibits[kind]):
                return kind
        return "" if self.price in _FREE else self.price


class _Content(NamedTuple):
    """One <content>."""

    host: str
    """Of a full URL, without ``www.``; '': that of whoever names the licence."""
    pattern: PathPattern
    has_server: bool
    licences: list[_Licence]


class RslFile:
    """A licence file, a licence within a page, or a feed with licences."""

    def __init__(self, body: bytes, who: Licensee, address: str = "") -> None:
        """*address*: that of the file, to be recorded."""
        self._who = who
        self._tail = f"={address[:300]}" if address else ""
        self._contents: list[_Content] = []
        self._is_sound = False
        """Whether all of it was understood."""
        root = _parsed(body)
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
        host = _folded(urlsplit(url).hostname or "") if self._hosts else ""
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
        return [Statement(Signal.RSL, f"{detail}{self._tail}", refuses) for detail, refuses in found.items()]

    def _judged(self, effective: list[_Content]) -> dict[str, frozenset[Purpose]]:
        """Detail -> the purposes that it refuses; none for what permits."""
        licences = [licence for said in effective for licence in said.licences]
        if any(said.has_server for said in effective):
            return {"server": ANY}
        if not licences:
            return {UNKNOWN: TRAINING}
        found: dict[str, frozenset[Purpose]] = {}
        for purpose, uses in _USES.items():
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
        hindrances = [licence.hindrance(self._who) for licence in offers]
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
            host = _folded(host.partition(":")[0].lower())
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
        spelled = (_country(token) if kind == "geo" else token.lower() for token in tokens[:_MAX_TOKENS])
        return kind, frozenset(token for token in spelled if ":" not in token)


def _country(token: str) -> str:
    return ALIASES.get(token.upper(), token.upper())


def _folded(host: str) -> str:
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
    return name if space == "{" + NAMESPACE else ""


def _parsed(body: bytes) -> Any:
    """The root element; None for what is no XML, or has a document type, whose entities might hold terms."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.fromstring(body.strip(), parser)
    except (etree.XMLSyntaxError, ValueError, LookupError):
        return None
    return None if root.getroottree().docinfo.doctype else root
