"""A real crawl of servers that do anything with the connection of a visit: each file of a site is heard anyway."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import signal
from collections import Counter, defaultdict
from contextlib import asynccontextmanager
from itertools import chain

import pytest
from conftest import Crawl, document, page, serving
from scrapy.http import Request, Response

from spiderling.engine import requests
from webs.messages import parse_head
from webs.server import AccessLog, Connection, Server
from webs.web import WebResponse, html, not_found, plain, redirect

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


# -- the option optout_files=kept


def test_files_that_waited_are_asked_for_over_the_connection_of_their_page(tmp_path):
    web = {"keeps.test": {"/": page("only"), "/robots.txt": not_found()}}
    with serving(web, serve_kinds) as server:
        crawl = Crawl(tmp_path / "job", server, OPTOUTS="", OPTOUT_FILES="kept")
        assert crawl.run("http://keeps.test/").code == 0
        (asked,) = server.asked["keeps"].values()
    assert asked == ["/robots.txt", "/", *FILES[1:]]


def asked_of(server) -> Counter[tuple[str, str]]:
    return Counter((entry.host, entry.path) for entry in server.log_entries)


def test_files_are_asked_for_once_a_page_is_to_be_kept_and_its_answer_waits_for_them(tmp_path):
    """What a site reserves leaves no text: its twin elsewhere is no duplicate.  Its links are followed."""
    web = {
        "good.test": {"/": page("good", "/more", "/no"), "/more": page("more"), "/no": page("no"),
                      "/.well-known/tdmrep.json": RESERVES},
        "poor.test": {"/": html("<a href='/x'>x</a>"), "/x": html("nothing")},
        "moved.test": {"/": page("moved"), "/ai.txt": redirect("http://ai.test/ai.txt")},
        "ai.test": {"/": html(document("twin", "/next")), "/ai.txt": plain("User-agent: *\nDisallow: /\nAllow: /next"),
                    "/next": html("nothing")},
        "twin.test": {"/": html(document("twin", "/next")), "/next": html("nothing")},
        "later.test": {"/": page("moved")},
    }  # fmt: skip
    seeds = ",".join(f"http://{host}/" for host in web if host != "later.test")
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, OPTOUTS="", OPTOUT_FILES="kept", DEDUP="near", WARC="on")
        assert crawl.run(seeds).code == 0
        asked = asked_of(server)
        assert crawl.run("http://later.test/").code == 0
    assert asked.pop(("ai.test", "/ai.txt")) == 2, "for its own sake, and for that of moved.test"
    assert set(asked.values()) == {1}
    files = {host: {path for name, path in asked if name == host} & set(FILES) for host, _ in asked}
    assert files.pop("poor.test") == {"/robots.txt"}
    assert files.pop("ai.test") == {*FILES} - {"/ai.txt"}
    assert all(paths == {*FILES} for paths in files.values())
    assert ("good.test", "/no") not in asked, "by then the files are known"
    ended = crawl.ended()
    assert ended["http://ai.test/"] == ended["http://moved.test/"] == ("site-opted-out", "ai-txt")
    assert ended["http://ai.test/next"][0] == "boilerplate-only"
    kept = {"http://good.test/", "http://good.test/more", "http://twin.test/", "http://later.test/"}
    assert {doc.url for doc in crawl.documents()} == kept
    crawl.state().check()
    assert "were read once a page was to be kept" in (crawl.directory / "corpus/README.md").read_text()
    archived = b"".join(gzip.decompress(path.read_bytes()) for path in crawl.directory.glob("warc/*.warc.gz"))
    record = rb"WARC-Target-URI: http://(\w+\.test/)\r\n(?:[^\r\n]+\r\n)*?WARC-Type: (?:response|revisit)\r\n"
    assert Counter(re.findall(record, archived)) == dict.fromkeys([f"{host}/".encode() for host in web], 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_stop_or_kill_while_an_answer_is_held_loses_nothing(number, tmp_path):
    slow = WebResponse(200, {}, b"", delay_s=600.0)
    sites = {name: {"/": page(name), "/.well-known/tdmrep.json": slow} for name in ("yes.test", "no.test")}
    with serving(sites, serve_kinds) as server:
        crawl = Crawl(tmp_path / "job", server, OPTOUTS="", OPTOUT_FILES="kept")
        running = crawl.start("http://yes.test/,http://no.test/", CONSTANTS={"engine.dispatcher.STOP_TIMEOUT_S": 0.1})
        running.until(lambda: all(FILES[1] in chain(*server.asked[name].values()) for name in ("yes", "no")))
        running.until(lambda: crawl.state().counts.get("waiting"))  # a checkpoint has been made
        running.stop(number)
        assert crawl.documents() == []
        crawl.state().check()
        for name, reserved in (("yes.test", 0), ("no.test", 1)):
            sites[name]["/.well-known/tdmrep.json"] = tdmrep("/", reserved)
        assert crawl.run().code == 0
    assert {url: reason for url, (reason, _) in crawl.ended().items()} == {
        "http://yes.test/": "kept", "http://no.test/": "site-opted-out",
    }  # fmt: skip
    assert [doc.url for doc in crawl.documents()] == ["http://yes.test/"]


async def test_answers_are_held_up_to_a_bound_of_bytes_and_time(monkeypatch):
    monkeypatch.setattr(requests, "HELD_BYTES", 100)
    monkeypatch.setattr(requests, "HELD_S", 0.01)
    held = requests.HeldAnswers()
    first, second, again = (Request("http://a.test/") for _ in range(3))
    answer = Response("http://a.test/", body=b"x" * 60)
    assert held.hold(1, answer, first, 7.0)
    assert not held.hold(2, answer, second, 8.0), "there is no room"
    assert held.give(1, again) and not held.give(1, first)
    assert (again.meta[requests.ANSWER], again.meta[requests.CAPTURED], answer.request) == (answer, 7.0, again)
    assert held.hold(2, answer, second, 8.0), "there is room again"
    while 2 in held:
        await asyncio.sleep(0.01)
    assert held.hold(3, answer, second, 9.0)
