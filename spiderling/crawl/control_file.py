"""What ``control.yaml`` of a crawl's directory may say; extensions/control.py applies it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from spiderling.base.addresses import IPNetwork
from spiderling.base.errors import BadInput
from spiderling.base.lists import HostList
from spiderling.base.option_values import YIELD_PROFILES, parse_yield_profile
from spiderling.base.small_yaml import read_yaml
from spiderling.crawl.asking_again import MAY_BE_ASKED

MAX_BYTES = 1_000_000
"""Bytes of the largest file that is read.  Chosen."""
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
    max_pages: float | None = None
    max_downloaded_mb: float | None = None

    @classmethod
    def parse(cls, text: str) -> ControlFile:
        """Read *text*; raises BadInput that names the key and what it must be."""
        data = read_yaml(text) or {}
        if not isinstance(data, dict):
            raise BadInput("it must hold lines such as 'host_interval_s: 10'")
        known = {spec.name: spec for spec in fields(cls)}
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise BadInput(f"there is no key {unknown[0]!r}; known are {', '.join(known)}")
        return cls(**{key: _checked(key, value) for key, value in data.items() if value is not None})


def _checked(key: str, value: Any) -> Any:
    if key in _LISTS:
        example, check = _LISTS[key]
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise BadInput(f'{key} is {value!r}; it must be a list such as ["{example}"]')
        check(value)
        return value
    if key == "pause":
        if not isinstance(value, bool):
            raise BadInput(f"pause is {value!r}; it must be true or false")
        return value
    if key == "yield_profile":
        profile = "off" if value is False else str(value)  # YAML reads a bare off as false
        try:
            parse_yield_profile(profile)
        except BadInput:
            raise BadInput(
                f"yield_profile is {value!r}; it must be one of {', '.join(YIELD_PROFILES)} or a number"
            ) from None
        return profile
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise BadInput(f"{key} is {value!r}; it must be a number from 0 upward")
    return float(value)


def hosts_of(entries: list[str]) -> HostList:
    """The hosts that ``block`` names, in the syntax of host lists."""
    hosts = HostList()
    for entry in entries:
        if len(entry.split()) != 1 or not hosts.add_entry(entry):
            raise BadInput(f"block: {entry!r} names no host; write example.org, .example.org or *.example.org")
    return hosts


def networks_of(entries: list[str]) -> list[IPNetwork]:
    try:
        return [ipaddress.ip_network(entry, strict=False) for entry in entries]
    except ValueError as error:
        raise BadInput(f"block_networks: {error}") from error


def _reasons(entries: list[str]) -> None:
    known = sorted(reason.value for reason in MAY_BE_ASKED)
    for entry in entries:
        if entry not in known:
            raise BadInput(f"ask_again: {entry!r} can not be asked again; these can: {', '.join(known)}")


_LISTS: dict[str, tuple[str, Callable[[list[str]], object]]] = {
    "block": ("example.org", hosts_of),
    "block_networks": ("192.0.2.0/24", networks_of),
    "reopen": ("example.org", list),
    "ask_again": ("dns", _reasons),
    "seeds": ("https://example.org/", list),
}
"""Key of a list -> an example of an entry, and what raises BadInput for a list that it cannot understand."""
