"""Cases of names: a small DNS server that is slow, broken or lies, and one web server behind all its names.

Every name is ``<anything>.<case>.names.test``; URLs name the web's port, since nothing maps these names.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from conftest import document, serving
from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSRecord
from hostile import hosted
from needs import has_ipv6

from spiderling.base.reasons import Reason

DOMAIN = "names.test"
WEB = "127.84.99.80"
NAME_SERVER = "127.84.99.53"


@dataclass(frozen=True)
class Zone:
    """What is answered for the names of a case."""

    records: Callable[[str, set[str]], list[object]] = lambda kind, served: []
    """(record type, paths that were served on the host) -> record data; a CNAME comes first."""
    code: int = RCODE.NOERROR
    delay_s: float = 0.0
    drops: Callable[[str], bool] = lambda kind: False  # whether a question of this type is not answered at all
    garbage: bytes = b""
    ttl: int = 300


@dataclass(frozen=True)
class NameCase:
    """A zone, and how ``http://<name>.names.test:PORT<path>`` ends, by '<subdomain.>path'."""

    zone: Zone
    ends: Mapping[str, Reason]
    needs_ipv6: bool = False


def at(*addresses: str) -> Callable[[str, set[str]], list[object]]:
    """Records of a name that is at *addresses* of both families."""
    records = [("AAAA", AAAA(address)) if ":" in address else ("A", A(address)) for address in addresses]
    return lambda kind, served: [record for of_kind, record in records if of_kind == kind]


def rebinding(kind: str, served: set[str]) -> list[object]:
    """Harmless until a page was fetched, then inside."""
    return [A("10.0.0.1" if "/" in served else WEB)] if kind == "A" else []


ONLY_PAGE = {"/": Reason.KEPT}
FORBIDDEN = {"/": Reason.ADDRESS_FORBIDDEN}
LOST = {"/": Reason.DNS}
NAMES: dict[str, NameCase] = {
    "unknown": NameCase(Zone(code=RCODE.NXDOMAIN), LOST),
    "without-address": NameCase(Zone(), LOST),
    "servfail": NameCase(Zone(code=RCODE.SERVFAIL), LOST),
    "refused": NameCase(Zone(code=RCODE.REFUSED), LOST),
    "silent": NameCase(Zone(drops=lambda kind: True), LOST),
    "garbage": NameCase(Zone(garbage=b"\xff" * 40), LOST),
    "slow": NameCase(Zone(at(WEB), delay_s=0.3), ONLY_PAGE),
    "silent-for-v6": NameCase(Zone(at(WEB), drops=lambda kind: kind == "AAAA"), ONLY_PAGE),
    "silent-for-v4": NameCase(Zone(at(WEB, "::1"), drops=lambda kind: kind == "A"), ONLY_PAGE, True),
    "private": NameCase(Zone(at("10.0.0.1")), FORBIDDEN),
    "loopback": NameCase(Zone(at("127.0.0.1")), FORBIDDEN),
    "metadata": NameCase(Zone(at("169.254.169.254")), FORBIDDEN),
    "any": NameCase(Zone(at("0.0.0.0")), FORBIDDEN),
    "unique-local": NameCase(Zone(at("fd00:ec2::254")), FORBIDDEN),
    "mapped": NameCase(Zone(at("::ffff:a00:1")), FORBIDDEN),
    "nat64": NameCase(Zone(at("64:ff9b::a00:1")), FORBIDDEN),
    "private-behind-cname": NameCase(
        Zone(lambda kind, served: [CNAME("inside.private.names.test"), A("10.0.0.1")] if kind == "A" else []),
        FORBIDDEN,
    ),
    "private-and-public": NameCase(Zone(at("10.0.0.1", WEB)), ONLY_PAGE),
    "public-and-private-v6": NameCase(Zone(at(WEB, "fd00::1")), ONLY_PAGE),
    "rebinding": NameCase(Zone(rebinding, ttl=1), {"/": Reason.KEPT, "/2": Reason.ADDRESS_FORBIDDEN}),
    "wildcard": NameCase(Zone(at(WEB)), dict.fromkeys(["/", "a./", "b./", "c.d.e./"], Reason.KEPT)),
    "dead-v4": NameCase(Zone(at("127.84.98.1", "::1")), {"/": Reason.ROBOTS_UNREACHABLE}),  # one family is tried
    "dead-v6": NameCase(Zone(at(WEB, "::1")), ONLY_PAGE),
    "only-v6": NameCase(Zone(at("::1")), ONLY_PAGE, True),
    "dead-both": NameCase(Zone(at("127.84.98.1", "fd00::1")), {"/": Reason.ROBOTS_UNREACHABLE}),
    "hundred-addresses": NameCase(Zone(at(*[WEB] * 25)), ONLY_PAGE),
}  # fmt: skip


class NameServer(asyncio.DatagramProtocol):
    """Answers for the names of the cases."""

    def __init__(self, cases: Mapping[str, NameCase]) -> None:
        self._cases = cases
        self.asked: Counter[tuple[str, str]] = Counter()
        self.served: dict[str, set[str]] = {}  # paths of the pages that were asked for, by host

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def datagram_received(self, data: bytes, client: tuple[str, int]) -> None:
        query = DNSRecord.parse(data)
        name, kind = str(query.q.qname).rstrip(".").lower(), QTYPE[query.q.qtype]
        self.asked[name, kind] += 1
        labels = name.removesuffix("." + DOMAIN).split(".")
        case = self._cases.get(labels[-1])
        zone = case.zone if case is not None else Zone(code=RCODE.NXDOMAIN)
        if zone.drops(kind):
            return
        answer = query.reply()
        answer.header.rcode = zone.code
        owner = name
        for record in zone.records(kind, self.served.setdefault(name, set())):
            answer.add_answer(RR(owner, getattr(QTYPE, type(record).__name__), rdata=record, ttl=zone.ttl))
            owner = str(record.label) if isinstance(record, CNAME) else owner
        packed = data[:2] + b"\x81\x80" + zone.garbage if zone.garbage else answer.pack()
        asyncio.get_running_loop().call_later(zone.delay_s, self._transport.sendto, packed, client)


class NamesWeb:
    """The name server and the web server behind it."""

    def __init__(self) -> None:
        self.cases = {name: case for name, case in NAMES.items() if has_ipv6() or not case.needs_ipv6}
        self.server = NameServer(self.cases)
        self.port = 0
        self.nameservers = ""

    def url(self, case: str, where: str) -> str:
        subdomain, _, path = where.partition("/")
        return f"http://{subdomain}{case}.{DOMAIN}:{self.port}/{path}"

    def urls_of_seeds(self) -> list[str]:
        return [self.url(name, where) for name, case in self.cases.items() for where in case.ends]

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self.server, local_addr=(NAME_SERVER, 0))
        self.nameservers = "{}:{}".format(*transport.get_extra_info("sockname"))
        web = await asyncio.start_server(self._serve, WEB, 0)
        self.port = web.sockets[0].getsockname()[1]
        servers = [web]
        if has_ipv6():
            servers.append(await asyncio.start_server(self._serve, "::1", self.port))
        self._open = (transport, servers)

    async def stop(self) -> None:
        transport, servers = self._open
        transport.close()
        for server in servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ", 2)[1].decode("latin-1")
        host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].decode("latin-1")
        if path == "/robots.txt":
            writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        else:
            name = host.partition(":")[0]
            self.server.served.setdefault(name, set()).add(path)
            if name.startswith("rebinding."):
                await asyncio.sleep(2.5)  # its address has expired when this is over
            body = document(host + path).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()


def naming() -> AbstractContextManager[NamesWeb]:
    """The cases of names, served."""
    return serving(NamesWeb(), hosted)
