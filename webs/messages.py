"""Parses the heads of requests, and renders answers."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import NamedTuple

from webs.web import WebResponse

GZIP_FROM_BYTES = 500
"""Bytes below which a body is not packed, as on usual servers (chosen)."""

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Request(NamedTuple):
    """The parsed head of a request; ``host`` is without port and in lower case."""

    method: str
    path: str
    host: str
    gzip: bool
    keep_alive: bool
    known: str = ""
    """If-None-Match: the ETag of the version that the client knows."""


def parse_head(head: bytes) -> Request | None:
    """The request in *head* (without the blank line); None unless it is HTTP/1.x with a usable target."""
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not lines[0].isprintable():
        return None
    method, path, version = parts
    if path.startswith("http://"):  # the absolute form, as proxies get it (RFC 9112, 3.2.2)
        path = "/" + path.partition("://")[2].partition("/")[2]
    if not version.startswith("HTTP/1.") or not path.startswith("/"):
        return None
    fields = (line.partition(":") for line in lines[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    host = headers.get("host", "").lower()
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection and (version != "HTTP/1.0" or "keep-alive" in connection)
    wants_gzip = "gzip" in headers.get("accept-encoding", "")
    name = host.rpartition(":")[0] or host
    return Request(
        method, path, name if name.isprintable() else "-", wants_gzip, keep_alive, headers.get("if-none-match", "")
    )


def render(request: Request, response: WebResponse) -> tuple[bytes, bytes]:
    """(head, body) as sent; the body of an answer to HEAD is empty, an endless answer has no Content-Length."""
    body = response.body
    headers = dict(response.headers)
    if request.gzip and len(body) >= GZIP_FROM_BYTES and not response.endless and "Content-Encoding" not in headers:
        body = gzip.compress(body, 1, mtime=0)
        headers["Content-Encoding"] = "gzip"
    if not response.endless:
        claimed = response.claimed_bytes
        headers["Content-Length"] = str(len(body) if claimed is None else claimed)
    closing = not request.keep_alive or response.endless or response.claimed_bytes is not None
    headers["Connection"] = "close" if closing else "keep-alive"
    phrase = _PHRASES.get(response.status, "Status")
    lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"), b"" if request.method == "HEAD" else body
