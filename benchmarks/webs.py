"""The webs of crawl.py: those of the simulation's server, changed on their way out.

    python -m benchmarks.webs WEB --ready-file F --log F [--tls] [--identity] [--late 6:10]

WEB: a directory, synthetic:HOSTS[:SEED[:BYTES]] (mean size of a page), or linked:HOSTS[:PAGES[:OUTSIDE]]
(LinkedWeb).  --tls: every link is https, with one certificate of our own for all names; --identity: nothing is
compressed; --late: seconds before an answer, from:to.  Beside the access log stands a file .connections, with one byte
for each connection.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import random
import signal
import ssl
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import xxhash
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.common import ROOT, connections_of
from webs import messages
from webs.prose import Prose
from webs.server import AccessLog, Connection, Server, bind_all, open_web
from webs.synthetic import SyntheticWeb, read_words
from webs.web import HTML, Web, WebResponse, not_found, plain

INSIDE = 3
"""Links of a page to its own host."""
_ADDRESSES = 16
_TEXTS = 64
_TEXT_BYTES = 1500
_FAR = 1 << 30


class LinkedWeb:
    """Host n is named ``hN-AA.test``, AA the number of its address."""

    def __init__(self, hosts: int, pages: int = 0, outside: int = 3) -> None:
        self._number, self._pages, self._outside = hosts, pages, outside
        rng = random.Random(1)
        prose = Prose("cs", read_words(ROOT / "models", ("cs",))["cs"], 1)
        self._texts = [
            "".join(f"<p>{' '.join(prose.sentences(rng, 4))}</p>" for _ in range(_TEXT_BYTES // 400))
            for _ in range(_TEXTS)
        ]

    def hosts(self) -> Mapping[str, str]:
        return self.globs()

    def globs(self) -> Mapping[str, str]:
        return {f"*-{number:02}.test": f"127.82.0.{number + 1}" for number in range(_ADDRESSES)}

    def url(self, host: int, page: int) -> str:
        """Pages count from 0."""
        return f"http://h{host}-{host % _ADDRESSES:02}.test/{f'clanek/{page}' if page else ''}"

    def respond(self, host: str, path: str) -> WebResponse:
        number = host[1:].partition("-")[0]
        if path == "/robots.txt":
            return plain(f"User-agent: *\nDisallow: /tajne/{number}\nSitemap: http://{host}/none.xml\n")
        page = path.removeprefix("/clanek/") if path != "/" else "0"
        if not (number.isdecimal() and page.isdecimal()):
            return not_found()
        drawn = xxhash.xxh3_64_intdigest(f"{number} {page}".encode())
        links = [f"/clanek/{self._page(drawn, int(page), step)}" for step in range(1, INSIDE + 1)]
        for step in range(self._outside):
            other = xxhash.xxh3_64_intdigest(f"{drawn} {step}".encode())
            links.append(self.url(other % self._number, (other >> 32) % self._pages if self._pages else 0))
        anchors = " ".join(f'<a href="{link}">odkaz {at}</a>' for at, link in enumerate(links))
        head = f"<html><head><title>{host} {page}</title></head><body><h1>{host} {page}</h1>"
        return WebResponse(200, HTML, f"{head}{self._texts[drawn % _TEXTS]}{anchors}</body></html>".encode())

    def _page(self, drawn: int, page: int, step: int) -> int:
        """A page of the same host: the next one, or with no last one any."""
        if self._pages:
            return (page + step) % self._pages or 1
        return 1 + (drawn >> 8 * step) % _FAR


def web_of(text: str) -> Web:
    """The web that WEB names."""
    kind, *numbers = text.split(":")
    if kind == "linked":
        return LinkedWeb(*map(int, numbers))
    if kind == "synthetic" and len(numbers) == 3:
        hosts, seed, size = map(int, numbers)
        return SyntheticWeb(hosts, seed, read_words(ROOT / "models"), mean_page_bytes=size)
    return open_web(text)


class Changed:
    """A web whose answers are late, or lead to https."""

    def __init__(self, web: Web, options: argparse.Namespace) -> None:
        self._web, self._tls = web, options.tls
        self._late = [float(part) for part in options.late.split(":")] if options.late else None
        self.hosts, self.globs = web.hosts, web.globs

    def respond(self, host: str, path: str) -> WebResponse:
        response = self._web.respond(host, path)
        headers: Mapping[str, str] = response.headers
        if self._tls:
            headers = {name: value.replace("http://", "https://") for name, value in headers.items()}
            response = replace(response, body=response.body.replace(b"http://", b"https://"))
        delay_s = response.delay_s if self._late is None else random.Random(host + path).uniform(*self._late)
        return replace(response, headers=headers, delay_s=delay_s)


class Counted(Connection):
    """A client, whose connection is noted in *connections*."""

    def __init__(self, server: Server, connections: BinaryIO) -> None:
        super().__init__(server)
        self._connections = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._connections.write(b".")
        super().connection_made(transport)


def context(directory: Path) -> ssl.SSLContext:
    """A server's TLS with a key of its own making."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = directory / "both.pem"
    path.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(pem))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path)
    return made


async def run(options: argparse.Namespace) -> None:
    """Serve until SIGTERM."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    web = Changed(web_of(options.web), options)
    if options.identity:
        messages.GZIP_FROM_BYTES = sys.maxsize
    server = Server(web, AccessLog(options.log, keep=False))
    connections = connections_of(options.log).open("wb", buffering=0)
    sockets = bind_all(sorted(set(web.hosts().values())), 0)
    server.port = sockets[0].getsockname()[1]
    tls = context(options.ready_file.parent) if options.tls else None
    listeners = [
        await loop.create_server(lambda: Counted(server, connections), sock=sock, backlog=8192, ssl=tls)
        for sock in sockets
    ]
    part = options.ready_file.with_suffix(".part")
    part.write_text(json.dumps({"port": server.port, "pid": os.getpid(), "hosts": server.hosts_option}))
    part.replace(options.ready_file)
    await ended.wait()
    for listener in listeners:
        listener.close()
    await server.stop()
    connections.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("web")
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--identity", action="store_true")
    parser.add_argument("--late", default="")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
