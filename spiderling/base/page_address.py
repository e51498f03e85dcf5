"""Where the live page of a crawl is served (SPIDERLING_PAGE), and by which names it may be reached."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from spiderling.base.errors import BadInput

_LISTENED = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"[a-z0-9.-]{1,253}(?::[0-9]{1,5})?", re.IGNORECASE)
_MOST_PATH_BYTES = 107
"""Bytes of the longest path of a Unix socket on Linux (unix(7))."""


@dataclass(frozen=True, slots=True)
class PageAddress:
    """An address and a port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    """0: one that is free."""
    path: str = ""
    names: tuple[str, ...] = ()
    """Further names by which browsers reach it, with a port or without."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it: with further names it is reached through something else."""
        return not self.names and (bool(self.path) or ipaddress.ip_address(self.host).is_loopback)

    def hosts(self, port: int) -> frozenset[str]:
        """The values of the header Host that are answered, when *port* is listened at.

        Names that were given may come without it, from a proxy; ours may not, as another server may be at port 80.
        """
        names = {name.lower() for name in self.names}
        if self.path:
            return frozenset({"localhost", *names})
        ours = {f"[{self.host}]" if ":" in self.host else self.host}
        if ipaddress.ip_address(self.host).is_loopback:
            ours.add("localhost")
        return frozenset({*names, *(f"{name}:{port}" for name in names | ours), *(ours if port == 80 else ())})


def parse_page(text: str) -> PageAddress | None:
    """The address in the option *text*, None for an empty one; raises BadInput.

    >>> parse_page("127.0.0.1:8580")
    PageAddress(host='127.0.0.1', port=8580, path='', names=())
    """
    where, *names = (part.strip() for part in text.split(","))
    if not where and not names:
        return None
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise BadInput(f"SPIDERLING_PAGE has {wrong[0]!r}; after the address write host names, as crawler.example.org.")
    if where.startswith("unix:"):
        path = where.removeprefix("unix:")
        if not path or len(path.encode()) > _MOST_PATH_BYTES:
            raise BadInput(f"SPIDERLING_PAGE is {text!r}; the path of a socket has 1 to {_MOST_PATH_BYTES} bytes.")
        return PageAddress(path=path, names=tuple(names))
    match = _LISTENED.fullmatch(where)
    try:
        address = ipaddress.ip_address(match["v6"] or match["v4"]) if match else None
    except ValueError:
        address = None
    if match is None or address is None or int(match["port"]) > 65535:
        raise BadInput(f"SPIDERLING_PAGE is {text!r}; write an address and a port, as 127.0.0.1:8580, or unix:/path.")
    if address.is_unspecified and not names:
        raise BadInput(
            f"SPIDERLING_PAGE is {text!r}, which is every address of this machine: say by which names the page is "
            f"reached, as {where},crawler.example.org."
        )
    return PageAddress(str(address), int(match["port"]), "", tuple(names))
