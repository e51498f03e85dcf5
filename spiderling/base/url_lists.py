"""Lists of URLs, with or without hosts: what an export leaves out, and what a crawl of archives takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spiderling.base.errors import BadInput
from spiderling.base.host_lists import HostList, numbered_entries
from spiderling.base.urls import CanonicalUrl, canonicalize


class DropList:
    """Hosts and URLs whose documents have to go; http and https, and a leading ``www.``, make no difference."""

    def __init__(self, hosts: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        """*hosts* are entries as in every list of hosts (host_lists.py); *urls* may end in ``*``.

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
        """The entry by which a document has to go; None if it may stay."""
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


def read_list(path: str) -> list[str]:
    """The entries of a list, one a line; raises BadInput if it cannot be read."""
    return [entry for _, entry in numbered_entries(path)]
