"""Files that list hosts: ``-a hosts=FILE`` (only these), ``SPIDERLING_BLOCK=FILE`` (never these).

One entry a line, ``#`` comments:

    example.org       that host (http, https and ``www.`` are one host)
    .example.org      that host and all below it, as squid writes it
    *.example.org     all below it; * and ? stand for any characters
    http://a.org/x    the host of a URL
    0.0.0.0 ads.org   a hosts file: the name counts
"""

from __future__ import annotations

import re
from pathlib import Path

from spiderling.base.addresses import literal_address
from spiderling.base.errors import BadInput
from spiderling.base.urls import canonicalize

_GLOB = re.compile(r"[a-z0-9*?._-]+")


class HostList:
    """Names of hosts; a look-up takes as many steps as the name has labels, and one for each glob."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._domains: set[str] = set()
        self._globs: list[re.Pattern[str]] = []

    def __bool__(self) -> bool:
        return bool(self._names or self._domains or self._globs)

    def add(self, line: str) -> bool:
        """Take up one entry; False for what is none."""
        entry = line.split()[-1].lower()
        if "://" not in entry and ("*" in entry or "?" in entry):
            return self._add_glob(entry)
        target = canonicalize(entry if "://" in entry else f"http://{entry.removeprefix('.')}/")
        if target is None:
            return False
        (self._domains if entry.startswith(".") else self._names).add(target.host)
        return True

    def _add_glob(self, entry: str) -> bool:
        if _GLOB.fullmatch(entry) is None:
            return False
        if entry.startswith("*.") and "*" not in entry[1:] and "?" not in entry:
            entry = entry[1:]  # the usual form, which needs no look at every glob
            self._domains.add(f"*{entry}")
            return True
        self._globs.append(re.compile("".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in entry)))
        return True

    def holds(self, host: str) -> bool:
        """Whether the host record of this name is listed, with its port or for all ports."""
        name = host if host.endswith("]") else host.partition(":")[0]
        if host in self._names or name in self._names or name in self._domains:
            return True
        _, dot, parent = name.partition(".")
        while dot:
            if parent in self._domains or f"*.{parent}" in self._domains:
                return True
            _, dot, parent = parent.partition(".")
        return any(glob.fullmatch(name) for glob in self._globs)


def read_host_list(path: str, option: str) -> HostList:
    """The hosts in the file at *path*, none for ''; *option* is what named it.

    Raises BadInput when it cannot be read or a line names no host.
    """
    hosts = HostList()
    if not path:
        return hosts
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise BadInput(
            f"{option}: {path} cannot be read ({error.strerror}); give a file with one host a line."
        ) from None
    except UnicodeDecodeError:
        raise BadInput(f"{option}: {path} is not a text file in UTF-8; it must hold one host a line.") from None
    for number, line in enumerate(lines, 1):
        entry = line.partition("#")[0].strip()
        is_pair = len(entry.split()) == 2 and literal_address(entry.split()[0]) is not None
        if entry and not ((is_pair or " " not in entry) and hosts.add(entry)):
            raise BadInput(
                f"{option}: line {number} of {path} names no host: {entry[:100]!r}; write one host a line, such as "
                "example.org, .example.org (with all below it) or *.example.org."
            )
    if not hosts:
        raise BadInput(f"{option}: {path} names no host; write one a line, such as example.org.")
    return hosts
