"""Reads and checks the values of options from settings, the command line or ``control.yaml``.

Each function raises BadInput with one sentence: what is wrong, and what it must be.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from spiderling.base import media_types
from spiderling.base.errors import BadInput
from spiderling.base.opt_outs import OptOutPolicy
from spiderling.base.terminal import entries_of
from spiderling.base.urls import canonicalize, is_top_level_domain, top_level_domain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PREFIX = "SPIDERLING_"
_Preset = TypeVar("_Preset", bound="DataclassInstance")

GENERIC_TLDS = ("com", "org", "net", "gov", "info", "edu")
"""Generic top-level domains that a national crawl takes as well (Pomikálek & Suchomel 2011, section 3.1)."""
_SCALED = re.compile(r"(\S*[0-9.]) *([kmgt]?)(i?b)?")
"""A number as people write it: its digits, its unit of thousands, and the mark of a size in bytes."""
_MAX_DIGITS = 18  # digits of a size or limit (chosen: more than any disk has bytes, and few enough for a float)
_NO_LABEL = re.compile(r"[\s/?#@:._\\]")
YIELD_PROFILES: dict[str, float | None] = {"off": None, "permissive": 0.002, "normal": 0.005, "paper": 0.01}
"""Name -> factor f of the threshold t(n) = f*(log10 n - 1); None: no host is retired."""


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """What makes a trap (docs/traps.md); 0 turns a detector off.  The defaults are chosen."""

    pages: int = 20  # fruitless pages from which a section of a host is a trap; twice for a directory
    copies: int = 5  # pages of a domain that may differ in numbers and words of their URLs only
    subdomains: int = 10  # hosts of a domain in a row whose first page is a copy; then new names in it count as made up
    mirror: int = 10  # pages with the text of another host's pages at the same paths from which a host is its mirror


MAX_TRAP_PAGES = 30_000
"""Largest limit of fruitless pages: their counters hold 65,535, and directories take twice the limit."""
TRAPS = {"standard": TrapLimits(), "off": TrapLimits(0, 0, 0, 0)}


def parse_preset(
    option: str, text: str, presets: Mapping[str, _Preset], read: Callable[[_Preset, str, str], Any]
) -> _Preset:
    """The preset that *text* names, with the values that follow it, as in ``standard,text_chars=500..``.

    The preset is ``standard`` if *text* names none.  ``read(preset, name, value)`` returns the value of the field
    *name*, or raises ValueError, which becomes BadInput.
    """
    first, *rest = entries_of(text) or [""]
    if "=" in first:
        first, rest = "standard", [first, *rest]
    try:
        if first not in presets:
            usual = presets["standard"]
            example = ",".join(f"{spec.name}={getattr(usual, spec.name)}" for spec in fields(usual)[:2])
            raise ValueError(f"it must be one of {', '.join(presets)}, or values such as {example!r}")
        chosen = presets[first]
        names = [spec.name for spec in fields(chosen)]
        for part in rest:
            name, _, value = map(str.strip, part.partition("="))
            if name not in names:
                raise ValueError(f"{name!r} is none of {', '.join(names)}")
            chosen = replace(chosen, **{name: read(chosen, name, value)})
    except ValueError as error:
        raise BadInput(f"{PREFIX}{option} is {text!r}; {error}.") from None
    return chosen


def parse_traps(text: str) -> TrapLimits:
    """The limits that *text* names; raises BadInput.

    >>> parse_traps("standard,pages=50")
    TrapLimits(pages=50, copies=5, subdomains=10, mirror=10)
    """

    def read(_: TrapLimits, name: str, value: str) -> int:
        most = MAX_TRAP_PAGES if name == "pages" else 10**_MAX_DIGITS - 1
        if not (re.fullmatch(f"[0-9]{{1,{_MAX_DIGITS}}}", value) and int(value) <= most):
            raise ValueError(f"{name} must be a whole number from 0 to {most}")
        return int(value)

    return parse_preset("TRAPS", text, TRAPS, read)


def parse_yield_profile(text: str) -> float | None:
    """The factor of a profile's name or of a number; raises BadInput for anything else."""
    if text in YIELD_PROFILES:
        return YIELD_PROFILES[text]
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 < factor < 1:
        raise BadInput(
            f"{PREFIX}YIELD_PROFILE is {text!r}; it must be one of {', '.join(YIELD_PROFILES)} "
            "or a number between 0 and 1."
        )
    return factor


def parse_recrawl(text: str) -> float:
    """Days for which a crawl is recrawled: 0 for ``off``, without end for ``on``; raises BadInput for anything else."""
    if text in ("", "off", "on"):
        return math.inf if text == "on" else 0.0
    number = text.removesuffix("d")
    if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number)):
        raise BadInput(f"{PREFIX}RECRAWL is {text!r}; it must be on, off or a number of days such as 30d.")
    return float(number)


def parse_recrawl_requests(text: str) -> float:
    """Revisits a day: below 1 a share of what is recrawled; raises BadInput for what is no such number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 10**9:
        raise BadInput(f"{PREFIX}RECRAWL_REQUESTS is {text!r}; it must be a share such as .05, or a number from 1 on.")
    return number


def check_value(name: str, spec: Field[Any], value: Any) -> Any:
    """*value* as the type of the option *spec*, within its bounds; messages call it *name*."""
    value = convert_value(name, type(spec.default), value)
    low, high, choices = (spec.metadata[key] for key in ("low", "high", "choices"))
    if choices and value not in choices:
        raise BadInput(f"{name} is {value!r}; it must be one of {', '.join(choices)}.")
    if (low is not None and value < low) or (high is not None and value > high):
        raise BadInput(f"{name} is {value!r}; it must be {bounds_of(spec)}.")
    if spec.name in _CHECKS:
        _CHECKS[spec.name](value)
    return value


def bounds_of(spec: Field[Any]) -> str:
    """The bounds of the option *spec*, which has a lower one, in words."""
    low, high = spec.metadata["low"], spec.metadata["high"]
    return f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"


def parse_size(text: str) -> int:
    """*text* in bytes; raises BadInput.

    >>> parse_size("1.5G"), parse_size("512MiB")
    (1500000000, 536870912)
    """
    try:
        size = _number(text, in_bytes=True)
        if not 0 <= size < 10**_MAX_DIGITS:
            raise ValueError
    except ValueError:
        raise BadInput(f"{text!r} is no size; write 500M, 2GB, 512MiB or a number of bytes.") from None
    return int(size)


def _number(value: Any, in_bytes: bool) -> float:
    """*value* as a number; k, M, G and T are thousands, millions and so on.

    *in_bytes*: 10GB is 10G, and 512MiB is counted by 1024 (IEC 80000-13).  Raises ValueError or TypeError.
    """
    match = _SCALED.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None:
        return float(value)
    digits, unit, mark = match.groups()
    if mark and (not in_bytes or (mark == "ib" and not unit)):
        raise ValueError
    base = 1024.0 if mark == "ib" else 1000.0
    return round(float(digits) * base ** " kmgt".index(unit or " "), 3)  # 1.1 * 1000 is a little more than 1100


def parse_ports(text: str) -> frozenset[int] | None:
    """The ports of a list, None for 'all'; raises BadInput for anything else."""
    parts = entries_of(text)
    if parts == ["all"]:
        return None
    if not parts or not all(part.isdecimal() and part.isascii() and 0 < int(part[:6]) < 65536 for part in parts):
        raise BadInput(f"{PREFIX}PORTS is {text!r}; write port numbers with commas, such as 80,443, or all.")
    return frozenset(map(int, parts))


def parse_tlds(
    text: str, option: str = "TLDS", national: Iterable[str] = (), *, only_public: bool = False
) -> frozenset[str] | None:
    """The top-level domains of a list, in ASCII, None for all; the word ``national`` stands for *national*.

    Raises BadInput for a name that cannot be a top-level domain; *only_public*: for one that is none of the public web.
    """
    found: set[str] = set()
    parts = [part.strip(".").lower() for part in entries_of(text.replace("+", ","))]
    for part in parts:
        names = {"national": tuple(national), "generic": GENERIC_TLDS}.get(part, (part,))
        for name in names:
            target = None if _NO_LABEL.search(name) else canonicalize(f"http://a.{name}/")
            tld = "" if target is None else top_level_domain(target.host)
            if not tld or (only_public and name != "all" and not is_top_level_domain(tld)):
                raise BadInput(
                    f"{PREFIX}{option} has {name!r}, which is no top-level domain; write such with commas, as cz,sk, "
                    "or national, generic, national+generic, all."
                )
            found.add(tld)
    return None if "all" in parts or not parts else frozenset(found)


_LISTENED = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"[a-z0-9.-]{1,253}(?::[0-9]{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where the live page is served."""

    host: str
    port: int  # 0: one that is free
    names: tuple[str, ...] = ()  # further names by which browsers reach it, with a port or without

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it: with further names it is reached through something else."""
        return not self.names and ipaddress.ip_address(self.host).is_loopback

    def hosts(self, port: int) -> frozenset[str]:
        """The values of the header Host that are answered, when *port* is listened at.

        Names that were given may come without it, from a proxy; ours may not, as another server may be at port 80.
        """
        names = {name.lower() for name in self.names}
        ours = {f"[{self.host}]" if ":" in self.host else self.host}
        if ipaddress.ip_address(self.host).is_loopback:
            ours.add("localhost")
        return frozenset({*names, *(f"{name}:{port}" for name in names | ours), *(ours if port == 80 else ())})


def parse_page(text: str) -> PageAddress | None:
    """The address in the option *text*, None for an empty one; raises BadInput.

    >>> parse_page("127.0.0.1:8580")
    PageAddress(host='127.0.0.1', port=8580, names=())
    """
    where, *names = (part.strip() for part in text.split(","))
    if not where and not names:
        return None
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise BadInput(f"SPIDERLING_PAGE has {wrong[0]!r}; after the address write host names, as crawler.example.org.")
    match = _LISTENED.fullmatch(where)
    try:
        address = ipaddress.ip_address(match["v6"] or match["v4"]) if match else None
    except ValueError:
        address = None
    if match is None or address is None or int(match["port"]) > 65535:
        raise BadInput(f"SPIDERLING_PAGE is {text!r}; write an address and a port, as 127.0.0.1:8580.")
    if address.is_unspecified and not names:
        raise BadInput(
            f"SPIDERLING_PAGE is {text!r}, which is every address of this machine: say by which names the page is "
            f"reached, as {where},crawler.example.org."
        )
    return PageAddress(str(address), int(match["port"]), tuple(names))


TEXT = "text"
HEADING = "heading"
COMMENT = "comment"  # by a reader, below the text of the page
TEASER = "teaser"  # of another page: "read also", a list of links
CODE = "code"
CELL = "cell"  # of a table, without a sentence
NOTICE = "notice"  # about the page and not of it: consent, JavaScript, the software of a forum
KINDS = (TEXT, HEADING, COMMENT, TEASER, CODE, CELL, NOTICE)


def parse_paragraph_kinds(text: str) -> frozenset[str]:
    """The kinds in *text*, separated by commas; raises BadInput for an unknown one, and for none.

    >>> sorted(parse_paragraph_kinds("text, Heading"))
    ['heading', 'text']
    """
    kinds = media_types.known_entries("PARAGRAPH_KINDS", text, KINDS)
    if not kinds:
        raise BadInput(f"SPIDERLING_PARAGRAPH_KINDS names no kind; write some of {', '.join(KINDS)}, with commas.")
    return kinds


BREAKS, LISTS, TABLES, NOTES, RUBY = "breaks", "lists", "tables", "notes", "ruby"
MARKUP = (BREAKS, LISTS, TABLES, NOTES, RUBY)


def parse_markup(text: str) -> frozenset[str]:
    """The mark-up in *text*, separated by commas; raises BadInput for one that is not in MARKUP."""
    return media_types.known_entries("MARKUP", text, MARKUP)


def _check_agent(text: str) -> None:
    """Raise BadInput if no line of a robots.txt could name the agent *text*: it would be taken for another's."""
    if not re.fullmatch("[A-Za-z0-9_-]+", text):
        raise BadInput(
            f"{PREFIX}ROBOTS_AGENT is {text!r}; it must be a name of letters, digits, - and _ alone, such as mybot; a "
            "User-Agent that says more, as a version, is set by Scrapy's USER_AGENT."
        )


_CHECKS: dict[str, Callable[[str], object]] = {
    "robots_agent": _check_agent,
    "yield_profile": parse_yield_profile,
    "recrawl": parse_recrawl,
    "recrawl_requests": parse_recrawl_requests,
    "documents": media_types.parse,
    "paragraph_kinds": parse_paragraph_kinds,
    "markup": parse_markup,
    "optouts": lambda text: OptOutPolicy.parse("research", text),
    "ports": parse_ports,
    "traps": parse_traps,
    "tlds": parse_tlds,
    "page": parse_page,
    "prefer_tlds": lambda text: parse_tlds(text, "PREFER_TLDS"),
}
"""Option -> what parses its value and raises BadInput for one that it cannot understand."""


def convert_value(name: str, kind: type, value: Any) -> Any:
    """*value* of the option *name* as *kind*; settings from the command line are strings.  Raises BadInput."""
    if kind is str:
        if isinstance(value, (list, tuple)):
            return ",".join(str(part) for part in value)
        return str(value).strip()
    unit = name.lower()
    in_bytes = unit.endswith("_bytes")
    try:
        number = _number(value, in_bytes) if kind is int else float(value)
        if not math.isfinite(number) or (kind is int and number != int(number)):
            raise ValueError
        return kind(number)
    except (TypeError, ValueError, OverflowError):
        what = "a whole number, such as 20, 500k or 2.5M" if kind is int else "a number"
        if in_bytes:
            what = "a number of bytes, such as 500000, 10GB or 512MiB"
        elif unit.endswith("_s"):
            what = "a number of seconds, such as 3600"
        raise BadInput(f"{name} is {value!r}; it must be {what}.") from None


def option(
    default: Any,
    help_text: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[str] = (),
) -> Any:
    """A dataclass field that carries its own documentation and bounds."""
    metadata = {"help": help_text, "low": low, "high": high, "choices": tuple(choices)}
    return field(default=default, metadata=metadata)
