"""Host names to IP addresses, asynchronously, with the time that the answer may be kept.

The frontier keeps addresses until they expire; here only c-ares does, until `forget`.  AAAA is asked for where a name
has no A; on a machine that has a route for IPv6 alone it is the other way round.  Search domains and the hosts file are
not used; the HostMap has fixed addresses.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiodns
import pycares

from spiderling.base.addresses import HostMap, literal_address, parse_endpoint
from spiderling.base.options import Options
from spiderling.base.terminal import entries_of
from spiderling.fetch.errors import NameNotFound, NameServerFailure

TIMEOUT_S = 3.0
"""Seconds for the first attempt at a query (chosen); c-ares lengthens the next ones and asks the next server."""
TRIES = 3  # attempts at a query (chosen)
MIN_TTL_S = 60.0  # least seconds for which an address is kept, whatever its server says; chosen
MAX_TTL_S = 3600.0  # most seconds for which an address is kept, whatever its server says; chosen
CONCURRENCY = 500
"""Queries that a machine runs at once; any number may wait.  Chosen: all answers come through one UDP socket, whose
default buffer holds a burst of a few hundred."""

QUERIES_PER_CHANNEL = 20_000
"""Queries after which a new channel is opened: c-ares caches answers for up to an hour, in a channel and without a
bound on their number; this many take some tens of megabytes."""
_SOCKETS_OF_THEIR_OWN = 32  # most queries at once that are repeated, each over a socket of its own (chosen)
_NOT_IN_NAMES = frozenset(" \\/:@[]")  # a backslash would begin an escape in c-ares
_NO_SUCH_NAME = frozenset({aiodns.error.ARES_ENODATA, aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_EBADNAME})
_ADDRESS = (pycares.ARecordData, pycares.AAAARecordData)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The addresses of one name, never empty, and for how many seconds they may be used."""

    addresses: tuple[str, ...]
    ttl_s: float
    is_asked: bool = True  # whether a name server gave them


class Resolver:
    """Answers from the host map, from the name itself when it is an address, else from DNS."""

    def __init__(self, options: Options, host_map: HostMap) -> None:
        """Raises BadInput for a name server that is no address."""
        self._host_map = host_map
        self._servers = _servers(options.nameservers)
        self._kinds = ("A", "AAAA") if has_route("192.0.2.1") or not has_route("2001:db8::1") else ("AAAA", "A")
        """Types of records, that of the preferred addresses first."""
        self._slots = asyncio.Semaphore(max(1, CONCURRENCY // options.shards_here()))
        self._alone = asyncio.Semaphore(_SOCKETS_OF_THEIR_OWN)
        self._running: dict[str, asyncio.Task[Resolution]] = {}
        self._channel: aiodns.DNSResolver | None = None
        self._asked = 0

    async def resolve(self, name: str) -> Resolution:
        """The addresses of *name*; raises NameNotFound or NameServerFailure.

        Callers that ask for the same name at the same time share one query; a caller that is
        cancelled does not disturb the others.
        """
        name = name.lower().rstrip(".")
        known = self._without_dns(name)
        if known is not None:
            return Resolution((known,), MAX_TTL_S, is_asked=False)
        if not _is_dns_name(name):
            raise NameNotFound(f"{name[:100]!r} is not a host name")
        task = self._running.get(name)
        if task is None:
            task = self._running[name] = asyncio.ensure_future(self._look_up(name))
            task.add_done_callback(_seen)
            task.add_done_callback(lambda done: self._running.pop(name))
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Drop cached answers, so that the next queries go to a name server."""
        self._channel = None  # it has the cache; queries that still run hold it

    async def close(self) -> None:
        """End all look-ups and close the sockets; the resolver cannot be used afterwards."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    def _without_dns(self, name: str) -> str | None:
        mapped = self._host_map.lookup(name)
        if mapped is not None:
            return mapped.address
        if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, 6.3
            return "127.0.0.1"
        return literal_address(name)

    async def _look_up(self, name: str) -> Resolution:
        failure: NameServerFailure | None = None
        for kind in self._kinds:
            try:
                records = await self._query(name, kind)
            except NameServerFailure as error:
                failure = failure or error
                continue
            if records:
                addresses = tuple(str(record.data.addr) for record in records if isinstance(record.data, _ADDRESS))
                ttl_s = float(min(record.ttl for record in records))
                return Resolution(addresses, min(max(ttl_s, MIN_TTL_S), MAX_TTL_S))
        raise failure or NameNotFound(f"{name} has no address")

    async def _query(self, name: str, record_type: str) -> list[pycares.DNSRecord]:
        """The answer for one record type, CNAMEs included, empty when there is no address; raises as `resolve`."""
        try:
            async with self._slots:
                result = await self._ask(name, record_type)
        except aiodns.error.DNSError as error:
            code = error.args[0] if error.args else None
            if code == aiodns.error.ARES_ENODATA:
                return []
            message = f"{name}: {error.args[-1] if error.args else 'DNS error'}"
            raise (NameNotFound if code in _NO_SUCH_NAME else NameServerFailure)(message) from error
        records = list(result.answer)
        return records if any(isinstance(record.data, _ADDRESS) for record in records) else []

    async def _ask(self, name: str, record_type: str) -> pycares.DNSResult:
        """The answer; raises DNSError.

        After one malformed answer c-ares fails all queries over the same socket.  Each is repeated over a socket of its
        own, where only the culprit fails again.
        """
        try:
            return await self._current_channel().query_dns(name, record_type)
        except aiodns.error.DNSError as error:
            if not error.args or error.args[0] != aiodns.error.ARES_EBADRESP:
                raise
        async with self._alone, self._new_channel() as channel:
            return await channel.query_dns(name, record_type)

    def _new_channel(self) -> aiodns.DNSResolver:
        return aiodns.DNSResolver(self._servers, timeout=TIMEOUT_S, tries=TRIES)

    def _current_channel(self) -> aiodns.DNSResolver:
        """The channel to ask; made on first use, in the event loop, and anew after QUERIES_PER_CHANNEL."""
        if self._asked % QUERIES_PER_CHANNEL == 0:
            self._channel = None  # queries that still run hold it; it closes with the last of them
        if self._channel is None:
            self._channel = self._new_channel()
        self._asked += 1
        return self._channel


def has_route(address: str) -> bool:
    """Whether packets to *address* could leave this machine; none is sent."""
    with (
        suppress(OSError),
        socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as one,
    ):
        one.connect((address, 9))  # the port does not matter
        return True
    return False


def _seen(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of *task*, which asyncio would log."""
    if not task.cancelled():
        task.exception()


def _is_dns_name(name: str) -> bool:
    """Whether *name* can be asked for: ASCII, within the lengths of RFC 1035, no empty label."""
    return (
        len(name) <= 253
        and name.isascii()
        and name.isprintable()
        and all(0 < len(label) <= 63 for label in name.split("."))
        and not _NOT_IN_NAMES.intersection(name)
    )


def _servers(option: str) -> list[str]:
    servers = []
    for part in entries_of(option):
        address, port = parse_endpoint(part, "SPIDERLING_NAMESERVERS")
        servers.append(f"[{address}]:{port or 53}" if ":" in address else f"{address}:{port or 53}")
    return servers
