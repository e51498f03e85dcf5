"""Lists of hosts and URLs whose documents are left out, and files that hold such lists."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

from spiderling.base.errors import BadInput
from spiderling.base.urls import CanonicalUrl, canonicalize


class DropList:
    """Hosts and URLs whose documents have to go; http and https, and a leading ``www.``, make no difference."""

    def __init__(self, hosts: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        """*hosts* may hold ``*`` and ``?``, or begin with a dot, *urls* may end in ``*``.

        Raises BadInput for what is no URL.
        """
        self._hosts: dict[str, str] = {}
        self._globs: dict[str, str] = {}
        self._urls: dict[str, str] = {}
        self._beginnings: dict[str, str] = {}
        self.idle: set[str] = set()
        """Entries that matched nothing up to now."""
        for entry in hosts:
            self._add_host(entry)
        for entry in urls:
            target = canonicalize(entry.removesuffix("*"))
            if target is None:
                raise BadInput(f"{entry!r} in the list of URLs is no http(s) URL; give each in full, with its scheme.")
            (self._beginnings if entry.endswith("*") else self._urls)[_address(target)] = entry
            self.idle.add(entry)

    def _add_host(self, entry: str) -> None:
        target = canonicalize(entry if "://" in entry else f"http://{entry.removeprefix('.')}/")
        if entry.startswith(".") and target is not None:  # the host and all below it, as in a file of hosts
            self._globs[f"*.{target.host}"] = self._hosts[target.host] = entry
        elif "*" in entry or "?" in entry:
            self._globs[entry.lower()] = entry
        elif target is None:
            raise BadInput(f"{entry!r} in the list of hosts is no host name; write one a line, such as a.example.")
        else:
            self._hosts[target.host] = entry
        self.idle.add(entry)

    def rule_for(self, attributes: Mapping[str, str]) -> str | None:
        """The entry by which a document has to go; None if it may stay."""
        target = canonicalize(attributes.get("url", ""))
        rule = self._match(target) if target is not None else None
        if rule is not None:
            self.idle.discard(rule)
        return rule

    def _match(self, target: CanonicalUrl) -> str | None:
        address, name = _address(target), target.host.rpartition(":")[0] or target.host
        exact = self._hosts.get(target.host) or self._hosts.get(name) or self._urls.get(address)
        if exact is not None:
            return exact
        glob = next((entry for glob, entry in self._globs.items() if fnmatch.fnmatchcase(name, glob)), None)
        return glob or next((self._beginnings[part] for part in self._beginnings if address.startswith(part)), None)


def _address(target: CanonicalUrl) -> str:
    return target.host + target.path


def read_list(name: str) -> list[str]:
    """The entries of a list, one a line, ``#`` begins a comment; raises BadInput if it cannot be read."""
    try:
        lines = Path(name).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BadInput(f"the list {name} cannot be read: {reason}; it holds one entry a line.") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
