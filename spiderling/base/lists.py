"""Lists of hosts and of URLs, and the files that hold them; the syntax is the same everywhere.

``-a hosts=FILE`` (only these), ``SPIDERLING_BLOCK=FILE`` (never these), ``block`` in control.yaml and
``scrapy export --drop-host FILE`` take one entry a line; ``#`` begins a comment:

    example.org       that host (http, https and ``www.`` are one host)
    .example.org      that host and all below it, as squid writes it
    *.example.org     all below it; * and ? stand for any characters, [ab] for one of these
    http://a.org/x    the host of a URL
    0.0.0.0 ads.org   a hosts file: the name counts
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from spiderling.base.addresses import literal_address
from spiderling.base.errors import BadInput
from spiderling.base.urls import CanonicalUrl, canonicalize

_GLOB = re.compile(r"[a-z0-9*?._\[\]!-]+")


class HostList:
    """Entries that name hosts; a look-up takes as many steps as the name has labels, and one for each glob."""

    def __init__(self) -> None:
        self._exact: dict[str, str] = {}
        """Name of a host record -> the entry that lists this host."""
        self._below: dict[str, str] = {}
        """Name of a host -> the entry that lists all hosts below it."""
        self._globs: list[tuple[re.Pattern[str], str]] = []

    def __bool__(self) -> bool:
        return bool(self._exact or self._below or self._globs)

    def add_entry(self, line: str) -> bool:
        """Add the hosts that *line* names; False if it names none."""
        entry = line.partition("#")[0].strip()
        words = entry.lower().split()
        if len(words) == 2 and literal_address(words[0]) is not None:
            words = words[1:]  # a line of a hosts file
        if len(words) != 1:
            return False
        name = words[0]
        is_pattern = "://" not in name and ("*" in name or "?" in name)
        return self._add_pattern(name, entry) if is_pattern else self._add_host(name, entry)

    def _add_host(self, name: str, entry: str) -> bool:
        target = canonicalize(name if "://" in name else f"http://{name.removeprefix('.')}/")
        if target is None:
            return False
        self._exact[target.host] = entry
        if name.startswith("."):
            self._below[target.host] = entry
        return True

    def _add_pattern(self, name: str, entry: str) -> bool:
        parent = _name_of_all_below(name)
        if parent is not None:
            self._below[parent] = entry  # the usual form, which needs no look at every glob
        elif _GLOB.fullmatch(name):
            self._globs.append((re.compile(fnmatch.translate(name)), entry))
        else:
            return False
        return True

    def entry_for(self, host: str) -> str | None:
        """The entry that lists the host record named *host*, with its port or for all ports; None if none does."""
        name = host if host.endswith("]") else host.partition(":")[0]
        found = self._exact.get(host) or self._exact.get(name)
        _, dot, parent = name.partition(".")
        while dot and found is None:
            found = self._below.get(parent)
            _, dot, parent = parent.partition(".")
        return found or next((entry for glob, entry in self._globs if glob.match(name)), None)

    def holds(self, host: str) -> bool:
        """Whether the host record of this name is listed."""
        return self.entry_for(host) is not None


def _name_of_all_below(pattern: str) -> str | None:
    """``example.org`` for ``*.example.org``; None for a pattern that must be matched with each name."""
    target = canonicalize(f"http://{pattern[2:]}/") if pattern.startswith("*.") else None
    if target is None or target.path != "/" or target.host != target.origin.partition("://")[2]:
        return None
    is_name = ":" not in target.host and literal_address(target.host) is None  # 0.0.1 is read as an address
    return target.host if is_name else None


class DropList:
    """Hosts and URLs whose documents are dropped; http and https, and a leading ``www.``, make no difference."""

    def __init__(self, hosts: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        """*hosts* are entries of a HostList; *urls* may end in ``*``.

        Raises BadInput for an entry that names no host or no URL.
        """
        self._hosts = HostList()
        self._urls: dict[str, str] = {}
        self._beginnings: dict[str, str] = {}
        self.idle: set[str] = set()
        """Entries that matched nothing up to now."""
        for entry in hosts:
            if not self._hosts.add_entry(entry):
                raise BadInput(f"{entry!r} in the list of hosts is no host name; write one a line, such as a.example.")
            self.idle.add(entry.partition("#")[0].strip())
        for entry in urls:
            target = canonicalize(entry.removesuffix("*"))
            if target is None:
                raise BadInput(f"{entry!r} in the list of URLs is no http(s) URL; give each in full, with its scheme.")
            (self._beginnings if entry.endswith("*") else self._urls)[_address(target)] = entry
            self.idle.add(entry)

    def rule_for(self, attributes: Mapping[str, str]) -> str | None:
        """The entry that drops the document; None if it may stay."""
        target = canonicalize(attributes.get("url", ""))
        rule = self._match(target) if target is not None else None
        if rule is not None:
            self.idle.discard(rule)
        return rule

    def _match(self, target: CanonicalUrl) -> str | None:
        address = _address(target)
        return (
            self._urls.get(address)
            or self._hosts.entry_for(target.host)
            or next((entry for beginning, entry in self._beginnings.items() if address.startswith(beginning)), None)
        )


def _address(target: CanonicalUrl) -> str:
    return target.host + target.path


def read_host_list(path: str, option: str) -> HostList:
    """The hosts in the file at *path*, none for ''; messages name *option*.

    Raises BadInput when it cannot be read or a line names no host.
    """
    hosts = HostList()
    if not path:
        return hosts
    for number, entry in numbered_entries(path, f"{option}: the list"):
        if not hosts.add_entry(entry):
            raise BadInput(
                f"{option}: line {number} of {path} names no host: {entry[:100]!r}; write one host a line, such as "
                "example.org, .example.org (with all below it) or *.example.org."
            )
    if not hosts:
        raise BadInput(f"{option}: {path} names no host; write one a line, such as example.org.")
    return hosts


def numbered_entries(path: str, what: str = "the list") -> list[tuple[int, str]]:
    """The entries in the file at *path*, one a line, each with the number of its line; ``#`` begins a comment line.

    Raises BadInput if it cannot be read; the message calls it *what*.
    """
    try:
        lines = Path(path).expanduser().read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BadInput(f"{what} {path} cannot be read: {reason}; it holds one entry a line.") from None
    entries = enumerate(map(str.strip, lines), 1)
    return [(number, entry) for number, entry in entries if entry and not entry.startswith("#")]


def read_list(path: str) -> list[str]:
    """The entries of a list, one a line; raises BadInput if it cannot be read."""
    return [entry for _, entry in numbered_entries(path)]
