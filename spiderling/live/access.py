"""Who may see and control a crawl through its live page.

A request must name a host of the list, against DNS rebinding, and a foreign Origin is refused.  On loopback and a Unix
socket everybody may look; elsewhere, and for controls everywhere, the token is needed: as ``Authorization: Bearer``, or
as a cookie for which the page exchanges it.  The token lies in ``page.token`` beside the crawl.  What changes anything
is a POST of JSON with a header of our own, which no form and no foreign page can send.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from aiohttp import web

from spiderling.base.errors import StorageError
from spiderling.base.option_values import PageAddress

HEADER = "X-Spiderling"
"""Must be sent with every POST; its value does not matter."""
OPEN_PATHS = frozenset({"/", "/page.css", "/page.js", "/session"})
"""What is served to everybody who can connect: nothing of it is about the crawl."""
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
    try:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error.strerror or error}.") from error
    return token


class Access:
    """Judges requests; its methods raise web.HTTPException."""

    def __init__(self, token: str, address: PageAddress, port: int) -> None:
        """*port* is the one that is listened at, 0 for a Unix socket."""
        self._token = token.encode()
        self._pass = hmac.new(self._token, b"spiderling live page", hashlib.sha256).hexdigest().encode()
        self._is_local = address.is_local
        self._hosts = address.hosts(port)
        self._cookie = f"spiderling-{port}"  # a browser sends the cookies of one port to all others

    def check(self, request: web.Request) -> None:
        """Refuse *request* if its host or origin is not ours, or it may not see what it asks for."""
        if request.headers.get("Host", "").lower() not in self._hosts:
            raise web.HTTPForbidden(text="The page is not served under this name: see SPIDERLING_PAGE.\n")
        origin = request.headers.get("Origin")
        if origin is not None and not self._is_ours(origin):
            raise web.HTTPForbidden(text="Another site asked for this.\n")
        if not self._is_local and request.path not in OPEN_PATHS:
            self._check_token(request)

    def check_post(self, request: web.Request) -> None:
        """Refuse a POST that something else than our page or a program may have sent."""
        if request.content_type != "application/json" or HEADER not in request.headers:
            raise web.HTTPForbidden(text=f"JSON and the header {HEADER} are needed.\n")
        if "Origin" not in request.headers and not self._has_bearer(request):
            raise web.HTTPForbidden(text="The token (Authorization: Bearer) or the header Origin is needed.\n")

    def check_control(self, request: web.Request) -> None:
        """Refuse a control that was not sent by somebody who has the token."""
        self.check_post(request)
        self._check_token(request)

    def knows(self, request: web.Request) -> bool:
        """Whether *request* brings the token, or the cookie that was given for it."""
        return self._has_bearer(request) or _same(request.cookies.get(self._cookie, ""), self._pass)

    def admit(self, token: object, request: web.Request, response: web.Response) -> None:
        """Give the cookie for *token*, or refuse it."""
        if not isinstance(token, str) or not _same(token, self._token):
            raise web.HTTPForbidden(text="This is not the token of this crawl.\n")
        is_secure = request.headers.get("Origin", "").startswith("https:")
        response.set_cookie(
            self._cookie, self._pass.decode(), httponly=True, samesite="Strict", secure=is_secure, path="/"
        )

    def _check_token(self, request: web.Request) -> None:
        if not self.knows(request):
            raise web.HTTPUnauthorized(
                text="The token of the crawl is needed.\n", headers={"WWW-Authenticate": "Bearer"}
            )

    def _has_bearer(self, request: web.Request) -> bool:
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        return kind.lower() == "bearer" and _same(given.strip(), self._token)

    def _is_ours(self, origin: str) -> bool:
        scheme, _, host = origin.lower().partition("://")
        return scheme in ("http", "https") and host in self._hosts


def _same(given: str, wanted: bytes) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted)
