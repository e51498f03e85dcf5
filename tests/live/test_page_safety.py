"""Who may see and control a crawl through its page: real requests to a running crawl."""

from __future__ import annotations

import os
import stat

import pytest
from aiohttp import web as aioweb
from aiohttp.test_utils import TestClient, TestServer
from watched import watching, web  # noqa: F401 - for the fixture server

from spiderling.base.errors import BadInput
from spiderling.base.option_values import parse_page
from spiderling.live.server import Access, token_in

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src data:; frame-ancestors 'none'"
)
BLOCK = {"action": "block", "host": "loud.test"}


@pytest.fixture(scope="module")
def watched(server, tmp_path_factory):
    with watching(tmp_path_factory.mktemp("watched") / "job", server) as crawl:
        crawl.running.until(lambda: crawl.ask("/hosts.json").json["found"] == 2)
        yield crawl


def test_on_loopback_everybody_may_look(watched):
    for path in ("/", "/page.css", "/page.js", "/status.json", "/hosts.json", "/host.json?name=calm.test", "/metrics"):
        answer = watched.ask(path)
        assert answer.status == 200, path
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["Cache-Control"] == "no-store" and "Access-Control-Allow-Origin" not in answer.headers
        assert watched.token not in answer.text
    assert watched.ask("/status.json").json["phase"] == "running"
    assert "host        calm.test" in watched.ask("/host.json?name=calm.test").json["lines"]
    assert watched.ask("/host.json?name=nowhere.test").status == 404
    assert watched.ask("/hosts.json?order=nonsense").status == 404
    assert watched.ask("/../../etc/passwd").status == 404


def test_the_token_is_for_its_owner_alone_and_never_told(watched):
    path = watched.crawl.directory / "page.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(watched.token) >= 43
    for told in (watched.running.output(), watched.crawl.directory.joinpath("crawl.log").read_text()):
        assert str(path) in told and watched.token not in told


def test_no_control_without_the_token_or_from_elsewhere(watched):
    """Each of these would block the host, but for one thing."""
    origin = f"http://{watched.host}"
    bearer = {"Authorization": f"Bearer {watched.token}"}
    before = watched.control.read_text()
    refused = [
        ({}, 401),
        ({"Origin": origin}, 401),
        ({"Cookie": f"spiderling={watched.token}"}, 401),
        ({"X-Spiderling": "1", "Origin": origin}, 401),
        ({"X-Spiderling": watched.token[:-1]}, 401),
        ({"Authorization": "Bearer " + "x" * 43}, 401),
        ({"Authorization": f"Basic {watched.token}"}, 401),
        *(({**bearer, "Origin": other}, 403) for other in ("http://evil.test", "null", "http://127.0.0.1",
                                                           "http://localhost", origin.rpartition(":")[0] + ":1")),
        ({"X-Spiderling": watched.token, "Origin": "http://evil.test"}, 403),
        ({**bearer, "Host": "evil.test"}, 403),
        ({**bearer, "X-HTTP-Method-Override": "GET", "Host": ""}, 403),
    ]  # fmt: skip
    for headers, status in refused:
        assert watched.ask("/control", BLOCK, **headers).status == status, headers
    assert "as Authorization: Bearer or X-Spiderling" in watched.ask("/control", BLOCK).text
    for method in ("GET", "PUT", "DELETE", "HEAD"):
        assert watched.ask("/control", BLOCK, method, **bearer).status == 405
    assert watched.ask("/control?action=block&host=loud.test", None, "GET", **bearer).status == 405
    assert watched.ask("/control", BLOCK, "OPTIONS", Origin="http://evil.test").status == 403
    form = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
    assert watched.ask("/control", "action=block&host=loud.test", **form).status == 401
    assert watched.ask("/status.json", X_Spiderling="x" * 43).status == 401, "the page learns that it is wrong"
    assert watched.control.read_text() == before


@pytest.mark.parametrize(
    "control",
    [
        {"action": "block", "host": "a.test/x"},
        {"action": "block", "host": 'a"]\nseeds: ["http://evil.test/'},
        {"action": "block", "host": "*.test"},
        {"action": "block", "host": 7},
        {"action": "budget", "max_pages": -1},
        {"action": "budget", "max_pages": "many"},
        {"action": "budget"},
        {"action": "seeds", "seeds": ["http://evil.test/"]},
        {"action": "block", "host": "\ud800.test"},
        {"action": ["block"], "host": "loud.test"},
        {},
        *("", "[]", "{", '"x"', "[" * 5000),
    ],
)
def test_a_control_that_makes_no_sense_changes_nothing(watched, control):
    before = watched.control.read_text()
    answer = watched.command(control)
    is_json = isinstance(control, dict)
    assert answer.status == (409 if is_json else 400) and (not is_json or answer.json["error"])
    assert watched.control.read_text() == before


def test_a_browser_controls_by_the_header_of_the_page(watched):
    given = {"X-Spiderling": watched.token, "Origin": f"http://{watched.host}"}
    answer = watched.ask("/control", BLOCK, **given)
    assert (answer.status, answer.json["said"]) == (200, "loud.test is blocked in control.yaml")
    watched.running.until(lambda: "blocked loud.test" in watched.running.output())


# -- beyond loopback


@pytest.fixture
async def remote():
    """An application that believes to be served beyond loopback."""
    access = Access("t" * 43, parse_page("192.0.2.1:8580,crawler.test"), 8580)

    @aioweb.middleware
    async def guard(request, handler):
        access.check(request)
        return await handler(request)

    async def told(request):
        return aioweb.Response(text="told")

    app = aioweb.Application(middlewares=[guard])
    for path in ("/", "/metrics", "/status.json"):
        app.router.add_get(path, told)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize("path", ["/metrics", "/status.json"])
async def test_beyond_loopback_nobody_looks_without_the_token(remote, path):
    for host in ("crawler.test", "crawler.test:8580", "192.0.2.1:8580"):
        assert (await remote.get(path, headers={"Host": host})).status == 401
        for token in ({"Authorization": f"Bearer {'t' * 43}"}, {"X-Spiderling": "t" * 43, "Authorization": "Basic x"}):
            assert (await remote.get(path, headers={"Host": host, **token})).status == 200
    assert (await remote.get(path, headers={"Host": "localhost:8580"})).status == 403
    assert (await remote.get("/", headers={"Host": "crawler.test"})).status == 200, "the page asks for the token"


def test_a_token_that_others_could_read_is_made_anew(tmp_path):
    path = tmp_path / "page.token"
    first = token_in(path)
    assert token_in(path) == first
    path.chmod(0o644)
    second = token_in(path)
    assert second != first and stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    os.symlink(tmp_path / "elsewhere", path)
    assert token_in(path) != second and not (tmp_path / "elsewhere").exists() and not path.is_symlink()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "write an address and a port") for text in ("8580", "localhost:80", "127.0.0.1:99999", "unix:/s")),
        *((text, "say by which names") for text in ("0.0.0.0:8580", "[::]:8580")),
        ("127.0.0.1:8580,a b", "write host names"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused(text, message):
    with pytest.raises(BadInput, match=message):
        parse_page(text)
