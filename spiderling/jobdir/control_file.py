"""What ``control.yaml`` may say, and how the live page changes it; crawl/control.py applies it.

Each control of the page becomes an entry of the file, so it is logged and survives a restart.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from spiderling.base.addresses import HostPatterns, IPNetwork
from spiderling.base.errors import BadInput
from spiderling.base.files import keys_of, open_regular, read_yaml, write_whole
from spiderling.base.option_values import YIELD_PROFILES, bounds_of, check_value, convert_value, parse_yield_profile
from spiderling.base.options import Options
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.base.terminal import shown
from spiderling.base.urls import canonicalize
from spiderling.frontier.hosts import CLOSED_STATES

_MAX_BYTES = 1_000_000  # bytes of the largest file that is read; chosen
MAY_BE_ASKED = frozenset(Reason) - MENTIONS - frozenset(CLOSED_STATES.values()) - {Reason.KEPT, Reason.TAKEN_DOWN}
"""Reasons whose ends may be undone: not those of kept pages and take-downs, and not those of closed hosts, whose URLs
come back with ``reopen``."""
TEMPLATE = """\
# Read again whenever it changes while the crawl runs; remove the leading "#" of what you need.
# pause: true                                    # send no request until this is false again
# block: ["ads.example.com", "*.shop.example"]   # no further request to these hosts
# block_networks: ["192.0.2.0/24"]               # ... nor to these addresses
# reopen: ["example.org"]                        # let a retired or blocked host go on
# ask_again: ["internal-error", "dns"]           # let URLs wait again that ended so, each end once
# seeds: ["https://example.org/"]                # further seeds
# host_interval_s: 10                            # seconds between two requests to a host
# ip_interval_s: 0.5                             # ... to an address
# yield_profile: permissive                      # off, permissive, normal, paper or a number
# max_pages: 100000                              # stop (to be resumed) after so many pages in all
# max_downloaded_mb: 50000                       # ... or megabytes
"""


@dataclass(frozen=True, slots=True)
class ControlFile:
    """The contents of ``control.yaml``; what is not given is None or empty."""

    pause: bool = False
    block: list[str] = field(default_factory=list)
    block_networks: list[str] = field(default_factory=list)
    reopen: list[str] = field(default_factory=list)
    ask_again: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    host_interval_s: float | None = None
    ip_interval_s: float | None = None
    yield_profile: str | None = None
    max_pages: int | None = None
    max_downloaded_mb: float | None = None

    @classmethod
    def parse(cls, text: str) -> ControlFile:
        """Read *text*; raises BadInput that names the key and what it must be."""
        data = read_yaml(text) or {}
        if not isinstance(data, dict):
            raise BadInput("it must hold lines such as 'host_interval_s: 10'")
        known = [spec.name for spec in fields(cls)]
        unknown = [key for key in data if key not in known]
        if unknown:
            raise BadInput(f"there is no key {shown(unknown[0])}; known are {', '.join(known)}")
        twice = [key for key, times in Counter(keys_of(text)).items() if times > 1]
        if twice:
            raise BadInput(f"{twice[0]} stands there twice")
        return cls(**{key: _check(key, value) for key, value in data.items() if value is not None})


def read_control(path: Path) -> str:
    """The text of the file at *path*; raises BadInput, UnicodeDecodeError or OSError."""
    with open_regular(path) as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise BadInput(f"it is larger than {_MAX_BYTES} bytes")
    return data.decode()


def stamp_of(path: Path) -> tuple[int, ...]:
    """Another one whenever the file at *path* has changed, or who may read it; () if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return ()
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


def _check(key: str, value: Any) -> Any:
    if key in _LISTS:
        example, check = _LISTS[key]
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise BadInput(f'{key} is {shown(value)}; it must be a list such as ["{example}"]')
        for entry in value:
            if not entry.isprintable():
                raise BadInput(f"{key}: {shown(entry)} has characters that cannot be printed")
        check(value)
        return value
    if key == "pause":
        if not isinstance(value, bool):
            raise BadInput(f"pause is {shown(value)}; it must be true or false")
        return value
    if key == "yield_profile":
        written = "off" if value is False else value  # YAML reads a bare off as false
        profile = written if isinstance(written, str) else shown(written)
        try:
            parse_yield_profile(profile)
        except BadInput:
            raise BadInput(
                f"yield_profile is {shown(value)}; it must be one of {', '.join(YIELD_PROFILES)} or a number between 0 "
                "and 1"
            ) from None
        return profile
    return _checked_number(key, value)


def _checked_number(key: str, value: Any) -> float:
    spec, scale = _NUMBERS[key]
    try:
        if isinstance(value, bool):
            raise ValueError
        if scale == 1:
            return check_value(key, spec, value)  # type: ignore[no-any-return]
        number = float(convert_value(key, float, value))
        check_value(key, spec, math.floor(number * scale))
        return number
    except (BadInput, ValueError, OverflowError):
        kind = "a whole number" if scale == 1 and isinstance(spec.default, int) else "a number"
        raise BadInput(f"{key} is {shown(value)}; it must be {kind}, {bounds_of(spec)}") from None


def hosts_of(entries: list[str]) -> HostPatterns:
    """The hosts that ``block`` names, in the syntax of host lists."""
    hosts = HostPatterns()
    for entry in entries:
        if len(entry.split()) != 1 or not hosts.add_entry(entry):
            raise BadInput(f"block: {shown(entry)} names no host; write example.org, .example.org or *.example.org")
    return hosts


def networks_of(entries: list[str]) -> list[IPNetwork]:
    networks = []
    for entry in entries:
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
        except ValueError as error:
            raise BadInput(f"block_networks: {shown(entry)} is no network; write such as 192.0.2.0/24") from error
    return networks


def _reasons(entries: list[str]) -> None:
    known = sorted(reason.value for reason in MAY_BE_ASKED)
    for entry in entries:
        if entry not in known:
            raise BadInput(f"ask_again: {shown(entry)} can not be asked again; these can: {', '.join(known)}")


_LISTS: dict[str, tuple[str, Callable[[list[str]], object]]] = {
    "block": ("example.org", hosts_of),
    "block_networks": ("192.0.2.0/24", networks_of),
    "reopen": ("example.org", list),
    "ask_again": ("dns", _reasons),
    "seeds": ("https://example.org/", list),
}
"""Key of a list -> an example of an entry, and what raises BadInput for a list that it cannot understand."""
_OPTIONS = {spec.name: spec for spec in fields(Options)}
_NUMBERS = {
    "host_interval_s": (_OPTIONS["host_interval_s"], 1),
    "ip_interval_s": (_OPTIONS["ip_interval_s"], 1),
    "max_pages": (_OPTIONS["max_pages"], 1),
    "max_downloaded_mb": (_OPTIONS["max_downloaded_bytes"], 1_000_000),
}
"""Key of a number -> the option whose bounds it has, and that one's unit in this one's."""

_NO_NAME = re.compile(r"[\s/?#@:\\]")
BUDGETS = ("max_pages", "max_downloaded_mb")


def change(path: Path, wanted: Mapping[str, Any]) -> str:
    """Change the file at *path* as the control *wanted* says, and return that in words; raises BadInput, StorageError.

    What *wanted* does not name stays as it is, with its comments.
    """
    try:
        text = read_control(path)
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    former = ControlFile.parse(text)
    new, said = _changed(former, wanted)
    for key, value in asdict(new).items():
        if value != getattr(former, key):
            text = with_entry(text, key, value)
    if asdict(ControlFile.parse(text)) != asdict(new):
        raise BadInput(f"{path} is written in a way that the page cannot change; change it by hand")
    write_whole(path, text)
    return said


def _changed(former: ControlFile, wanted: Mapping[str, Any]) -> tuple[ControlFile, str]:
    action = wanted.get("action")
    if action in ("pause", "resume"):
        return replace(former, pause=action == "pause"), f"{action} is written into control.yaml"
    if action == "budget":
        limits = {key: wanted[key] for key in BUDGETS if wanted.get(key) is not None}
        if not limits:
            raise BadInput(f"a budget needs {' or '.join(BUDGETS)}")
        new = ControlFile.parse(json.dumps({**asdict(former), **limits}))
        return new, "the budget is written into control.yaml"
    if action not in ("block", "reopen"):
        raise BadInput("action must be pause, resume, block, reopen or budget")
    return _with_host(former, action, _host(wanted.get("host")))


def _with_host(former: ControlFile, action: str, host: str) -> tuple[ControlFile, str]:
    blocked = [entry for entry in former.block if entry != host]
    reopened = [entry for entry in former.reopen if entry != host]
    if action == "block":
        return replace(former, block=[*blocked, host], reopen=reopened), f"{host} is blocked in control.yaml"
    if hosts_of(blocked).holds(host):
        raise BadInput(f"block: in control.yaml has an entry for several hosts that holds {host}; change it there")
    if host in former.reopen:
        raise BadInput(f"{host} stands under reopen: in control.yaml already; take it out there first")
    return replace(former, block=blocked, reopen=[*reopened, host]), f"{host} is reopened in control.yaml"


def _host(name: object) -> str:
    is_name = isinstance(name, str) and not _NO_NAME.search(name)
    target = canonicalize(f"http://{name}/") if is_name else None
    if target is None:
        raise BadInput(f"{name!r} is no host name")
    return target.host


def with_entry(text: str, key: str, value: object) -> str:
    """The YAML *text* with *value* for *key* at its end, and without its former lines; None removes these alone.

    >>> with_entry("# mine\\nblock:\\n  - a.test  # bad\\npause: true", "block", ["b.test"])
    '# mine\\npause: true\\nblock: ["b.test"]\\n'
    """
    others = re.sub(rf"^{key} *:.*\n?(?:[ \t-].*\n?)*", "", text, flags=re.MULTILINE)
    if value is None:
        return others
    gap = "\n" if others and not others.endswith("\n") else ""
    return f"{others}{gap}{key}: {json.dumps(value)}\n"
