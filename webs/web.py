"""A simulated web: host names, their loopback addresses, and an answer to every path.

A web reads no clock and opens no socket.  ``webs/server.py`` serves one;
``recorded.py``, ``synthetic.py`` and ``traps.py`` make some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Protocol

from spiderling.base.errors import BadInput

HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class WebResponse:
    """One answer, with ways in which a real server may misbehave."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay_s: float = 0.0
    """Seconds before the first byte."""
    trickle_s: float = 0.0
    """Seconds between pieces of 64 bytes of the body; 0: all at once."""
    endless: bool = False
    """The body is repeated until the client goes away."""
    claimed_bytes: int | None = None
    """A false Content-Length; None: the true one."""


class Web(Protocol):
    """A set of hosts that answer."""

    def hosts(self) -> Mapping[str, str]:
        """Host name -> address in 127.0.0.0/8."""

    def globs(self) -> Mapping[str, str]:
        """Pattern of host names -> address: a few entries for all of `hosts`."""

    def respond(self, host: str, path: str) -> WebResponse:
        """The answer to GET *path* (with its query, as on the request line); unknown hosts and paths give 404."""


class FixedWeb:
    """A web given as a table: ``FixedWeb({"a.test": {"/": WebResponse(...)}})``."""

    def __init__(
        self, sites: Mapping[str, Mapping[str, WebResponse]], addresses: Mapping[str, str] | None = None
    ) -> None:
        """*addresses*: host -> address; hosts without one have one each, in 127.84.0.0/16."""
        own = {host: f"127.84.{200 + number // 250}.{number % 250 + 1}" for number, host in enumerate(sites)}
        self.sites = sites
        self._hosts = checked_addresses({host: (addresses or {}).get(host, own[host]) for host in sites})

    def hosts(self) -> Mapping[str, str]:
        return self._hosts

    globs = hosts

    def respond(self, host: str, path: str) -> WebResponse:
        return self.sites.get(host, {}).get(path) or not_found()


def html(body: str, status: int = 200) -> WebResponse:
    """A UTF-8 page."""
    return WebResponse(status, HTML, body.encode())


def plain(text: str) -> WebResponse:
    """A text/plain answer, as robots.txt is."""
    return WebResponse(200, {"Content-Type": "text/plain; charset=utf-8"}, text.encode())


def redirect(location: str, status: int = 301) -> WebResponse:
    """A redirect to *location*, which must be ASCII."""
    body = f'<html><body><a href="{location}">moved</a></body></html>'.encode()
    return WebResponse(status, {**HTML, "Location": location}, body)


def not_found() -> WebResponse:
    """The 404 page."""
    return WebResponse(404, HTML, b"<html><head><title>404</title></head><body><h1>Not found</h1></body></html>")


def unavailable(retry_after_s: int, status: int = 503) -> WebResponse:
    """A 503 (or 429) with Retry-After in seconds."""
    return WebResponse(status, {**HTML, "Retry-After": str(retry_after_s)}, b"<html><body>busy</body></html>")


def checked_addresses(hosts: Mapping[str, str]) -> Mapping[str, str]:
    """*hosts* itself; raises BadInput when an address is not an IPv4 loopback address."""
    for host, address in hosts.items():
        try:
            usable = ip_address(address).is_loopback and ":" not in address
        except ValueError:
            usable = False
        if not usable:
            raise BadInput(f"host {host} of the simulated web has the address {address!r}; it must be in 127.0.0.0/8.")
    return hosts
