"""The server of the live page, on the crawl's own event loop; the state is read in a thread, never on the loop.

A bounded number of connections is accepted, none of which keeps its place for long without a request.

A request must name a host of the list, against DNS rebinding, and a foreign Origin is refused.  On loopback everybody
may look; elsewhere, and for controls everywhere, the token is needed, in a header that no form and no foreign page can
send, and no browser sends by itself: that of our own, or ``Authorization: Bearer``.  The token lies in ``page.token``
beside the crawl.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from spiderling.base.errors import BadInput, SpiderlingError, StorageError, place_of
from spiderling.base.files import saving
from spiderling.base.option_values import PageAddress
from spiderling.jobdir.as_text import of_host
from spiderling.jobdir.control_file import change
from spiderling.jobdir.directory import PAGE_TOKEN
from spiderling.jobdir.inspection import AnyCrawl, reading
from spiderling.jobdir.status import LARGE, hosts_of, status_of
from spiderling.jobdir.status_schema import Running
from spiderling.reporting.page import part

HEADER = "X-Spiderling"  # holds the token; the page sends this one, as a proxy may want Authorization for itself
FILES = {"/": ("page.html", "html"), "/page.css": ("page.css", "css"), "/page.js": ("page.js", "javascript")}
"""Path -> file and kind of text that is served to everybody who can connect: nothing of it is about the crawl."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src data:; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TOKEN_BYTES = 32


def token_in(path: Path) -> str:
    """The token in the file at *path*, which is made if it is not there or others may read it; raises StorageError."""
    try:
        with path.open(encoding="ascii") as file:
            status = os.fstat(file.fileno())
            token = file.read(1000).strip()
            if status.st_uid == os.geteuid() and not status.st_mode & 0o077 and len(token) >= _TOKEN_BYTES:
                return token
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    except OSError as error:
        raise StorageError(f"{path} could not be read: {error.strerror or error}.") from error
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with saving(path):
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(f"{token}\n")
    return token


class Access:
    """Judges requests."""

    def __init__(self, token: str, address: PageAddress, port: int) -> None:
        """*port* is the one that is listened at."""
        self._token = token.encode()
        self._is_local = address.is_local
        self._hosts = address.hosts(port)

    def check(self, request: web.Request) -> None:
        """Refuse *request* if its host, origin or token is not ours, or it needs a token; raises web.HTTPException."""
        if request.headers.get("Host", "").lower() not in self._hosts:
            raise web.HTTPForbidden(text="The page is not served under this name: see SPIDERLING_PAGE.\n")
        scheme, _, host = request.headers.get("Origin", f"http://{request.host}").lower().partition("://")
        if scheme not in ("http", "https") or host not in self._hosts:
            raise web.HTTPForbidden(text="Another site asked for this.\n")
        own = request.headers.get(HEADER)
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        given = (own or "", bearer if kind.lower() == "bearer" else "")
        known = [hmac.compare_digest(one.strip().encode("utf-8", "surrogatepass"), self._token) for one in given]
        is_open = request.path in FILES or (self._is_local and request.method in ("GET", "HEAD"))
        if not any(known) and (own is not None or not is_open):
            raise web.HTTPUnauthorized(
                text=f"The token of the crawl is needed, as Authorization: Bearer or {HEADER}.\n",
                headers={"WWW-Authenticate": "Bearer"},
            )


MAX_CONNECTIONS = 64
"""Connections at the same time, beside those of one turn of the event loop (chosen: a browser opens up to six)."""
_BACKLOG = 16  # connections that are accepted in one turn; chosen
HEAD_S = 10.0
"""Seconds that a connection may take for the head of a request, from its beginning or the last answer on (chosen)."""
logger = logging.getLogger(__name__)

_of_requests = logging.getLogger(f"{__name__}.requests")
_of_requests.setLevel(logging.CRITICAL)  # aiohttp logs each request that is no HTTP as an error with a traceback

_MAX_BODY_BYTES = 10_000  # bytes of the largest body of a POST; chosen
BODY_S = 10.0  # seconds that a client may take for the body of a POST; chosen
_CLOSING_S = 1.0  # seconds that connections have when the crawl ends; chosen


class Server:
    """Serves the live page of one crawl."""

    def __init__(
        self,
        address: PageAddress,
        directory: Path,
        running: Callable[[], Running],
        registry: CollectorRegistry,
        is_shard: bool = False,
    ) -> None:
        """Listen at *address*; raises OSError if that is impossible, StorageError if there can be no token.

        *running* gives the crawl's counters, *registry* its metrics.  *is_shard*: *directory* is that of a shard, and
        the page shows all that are beside it; the metrics are those of this shard alone.
        """
        self._whole = directory.parent if is_shard else directory
        self._running = running
        self._metrics = make_aiohttp_handler(registry)
        token = token_in(directory / PAGE_TOKEN)
        self._socket = socket.create_server(
            (address.host, address.port), family=socket.AF_INET6 if ":" in address.host else socket.AF_INET
        )
        host, port, *_ = self._socket.getsockname()
        self._access = Access(token, address, port)
        self.place = f"http://{f'[{host}]' if ':' in host else host}:{port}/"  # where it is served, for people
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="live page")
        self._busy: set[web.RequestHandler] = set()  # connections with a request that is being answered

    async def start(self) -> None:
        app = web.Application(middlewares=[self._guard], client_max_size=_MAX_BODY_BYTES)
        app.on_response_prepare.append(_prepare)
        for path, (name, kind) in FILES.items():
            app.router.add_get(path, functools.partial(_file, part(name).encode(), kind))
        app.router.add_get("/status.json", self._status_json)
        app.router.add_get("/hosts.json", self._hosts_json)
        app.router.add_get("/host.json", self._host_json)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/control", self._control)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_of_requests,
            shutdown_timeout=_CLOSING_S,
            keepalive_timeout=HEAD_S,
            auto_decompress=False,
        )
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._serve_connection, sock=self._socket, backlog=_BACKLOG)

    def _serve_connection(self) -> web.RequestHandler:
        """What serves a new connection; if there are too many, the one that waits longest for a request has to go."""
        server = self._runner.server
        assert server is not None
        held = [one for one in server.connections if one.transport is not None and not one.transport.is_closing()]
        if len(held) >= MAX_CONNECTIONS:
            leaving = min(held, key=self._busy.__contains__).transport
            assert leaving is not None
            leaving.abort()
        return server()

    async def close(self) -> None:
        self._listening.close()
        await self._runner.cleanup()
        self._thread.shutdown(wait=False)

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self._busy.add(request.protocol)
        try:
            self._access.check(request)
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # a traceback in the log would look like a failure of the crawl
            logger.warning("The live page could not answer: %s at %s", type(error).__name__, place_of(error))
            raise web.HTTPInternalServerError(text="The crawl goes on, but could not answer this.\n") from None
        finally:
            self._busy.discard(request.protocol)

    # -- what is read

    async def _status_json(self, request: web.Request) -> web.Response:
        wanted = request.query.get("large")
        large = None if wanted is None else LARGE.keys() & set(wanted.split(","))
        running = self._running()
        return await self._answer(lambda crawl: status_of(crawl, running, large=large).to_json())

    async def _hosts_json(self, request: web.Request) -> web.Response:
        asked = request.query
        page = asked.get("page", "0")
        find = functools.partial(
            hosts_of,
            search=_encodable(asked.get("search", "")),
            order=asked.get("order", "words"),
            rising=asked.get("rising") == "1",
            page=int(page) if page.isascii() and page.isdecimal() and len(page) < 10 else 0,
        )
        return await self._answer(lambda crawl: json.dumps(asdict(find(crawl))))

    async def _host_json(self, request: web.Request) -> web.Response:
        name = _encodable(request.query.get("name", ""))
        return await self._answer(lambda crawl: json.dumps({"name": name, "lines": list(of_host(crawl, name, False))}))

    async def _answer(self, ask: Callable[[AnyCrawl], str]) -> web.Response:
        try:
            return web.json_response(text=await self._query(ask))
        except BadInput as error:
            return web.json_response({"error": str(error)}, status=404)
        except SpiderlingError as error:
            return web.json_response({"error": str(error)}, status=503)

    async def _query(self, ask: Callable[[AnyCrawl], str]) -> str:
        """What *ask* reads of the state, in the thread."""

        def work() -> str:
            with reading(self._whole) as crawl:
                return ask(crawl)

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # -- what changes something

    async def _control(self, request: web.Request) -> web.Response:
        """Change control.yaml of the crawl, which all its shards here read."""
        wanted = await _body(request)

        def work() -> str:
            return change(self._whole / "control.yaml", wanted)

        try:
            return web.json_response({"said": await asyncio.get_running_loop().run_in_executor(self._thread, work)})
        except (SpiderlingError, OSError, UnicodeDecodeError) as error:
            return web.json_response({"error": str(error)}, status=409)


async def _file(content: bytes, kind: str, request: web.Request) -> web.Response:
    return web.Response(body=content, content_type=f"text/{kind}", charset="utf-8")


async def _body(request: web.Request) -> dict[str, object]:
    """The JSON object in the body of *request*, in one of the encodings of Unicode whatever its head says."""
    try:
        async with asyncio.timeout(BODY_S):
            text = await request.read()
        body = json.loads(text)
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="The body did not come.\n") from None
    except (ValueError, RuntimeError, ConnectionError, web.RequestPayloadError):  # too deep, or the client has left
        body = None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="A JSON object is needed.\n")
    return body


def _encodable(text: str) -> str:
    """*text*, as it came in a URL, without what is no character."""
    return text.encode("utf-8", "replace").decode()


async def _prepare(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if request.transport is not None:  # what is not read is waited for: closed with it, a connection would not count
        request.transport.set_write_buffer_limits(0)
