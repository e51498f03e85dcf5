"""A real crawl of servers that do anything with the connection of a visit: each file of a site is heard anyway."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import asynccontextmanager

from conftest import Crawl, page, serving

from webs.messages import parse_head
from webs.server import AccessLog, Connection, Server
from webs.web import WebResponse, not_found

FILES = ["/robots.txt", "/.well-known/tdmrep.json", "/ai.txt"]


def tdmrep(location: str, reserved: int) -> WebResponse:
    return WebResponse(200, {}, json.dumps([{"location": location, "tdm-reservation": reserved}]).encode())


RESERVES = tdmrep("/no", 1)
KINDS = ("keeps", "closes", "drops", "hangs", "garbles", "adds")
FRESH = [[path] for path in FILES]
ASKED_AGAIN = [["/robots.txt", "/.well-known/tdmrep.json"], ["/.well-known/tdmrep.json"], ["/ai.txt"]]
CONNECTIONS = {
    "keeps": [[*FILES, "/"]], "closes": FRESH, "drops": FRESH, "hangs": ASKED_AGAIN, "garbles": ASKED_AGAIN
}  # fmt: skip
"""What is asked for over each connection to a server that begins with a file; one that adds to its answer may be late
with that."""


class Kind(Connection):
    """What the host is called says what the server does with a connection after it has answered once."""

    def __init__(self, server: KindServer) -> None:
        super().__init__(server)
        self.server = server
        self.asked = 0

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        request = parse_head(data.removesuffix(b"\r\n\r\n"))
        kind = request.host.partition(".")[0]
        self.asked += 1
        self.server.note(self, kind, request.path)
        if self.asked > 1 and kind == "garbles":
            self.transport.write(b"<html>not at all HTTP")
        if self.asked > 1 and kind in ("hangs", "garbles"):
            return
        super().data_received(data.replace(b"keep-alive", b"close") if kind == "closes" else data)
        if kind == "drops":
            self.transport.close()
        if kind == "adds":
            self.transport.write(b"<!-- and more -->")


class KindServer(Server):
    def __init__(self, web) -> None:
        super().__init__(web, AccessLog(None, keep=True))
        self.asked = defaultdict(dict)  # kind -> connection -> the paths that were asked for over it

    def note(self, connection: Kind, kind: str, path: str) -> None:
        self.asked[kind].setdefault(connection, []).append(path)

    def connection(self) -> Connection:
        return Kind(self)


@asynccontextmanager
async def serve_kinds(web):
    server = KindServer(web)
    await server.start(0)
    try:
        yield server
    finally:
        await server.stop()


def test_every_file_is_heard_whatever_becomes_of_the_connection(tmp_path):
    site = {"/": ["/yes", "/no"], "/yes": [], "/no": [], "/robots.txt": None, "/ai.txt": None}
    web = {
        f"{kind}.test": {
            **{path: not_found() if links is None else page(kind + path, *links) for path, links in site.items()},
            "/.well-known/tdmrep.json": RESERVES,
        }
        for kind in KINDS
    }
    with serving(web, serve_kinds) as server:
        constants = {"engine.download_handler.FIRST_BYTE_TIMEOUT_S": 1}
        crawl = Crawl(tmp_path / "job", server, OPTOUTS="", CONSTANTS=constants)
        assert crawl.run(",".join(f"http://{kind}.test/" for kind in KINDS)).code == 0
        asked = {kind: list(connections.values()) for kind, connections in server.asked.items()}
    files = {kind: [paths for paths in lists if paths[0] in FILES] for kind, lists in asked.items()}
    assert {kind: files[kind] for kind in CONNECTIONS} == CONNECTIONS
    ended = crawl.ended()
    for kind in KINDS:
        assert [path for paths in asked[kind] for path in paths if path not in FILES] == ["/", "/yes"], kind
        assert [ended[f"http://{kind}.test{path}"][0] for path in site if path in ("/", "/yes", "/no")] == [
            "kept", "kept", "site-opted-out",
        ]  # fmt: skip
