"""The bytes of an archive as they are stored: of a file, or of a URL, which is streamed.

Everything here blocks; it is for a thread that reads one archive.
"""

from __future__ import annotations

import http.client
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import IO, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from spiderling.base.digits import whole_number
from spiderling.base.errors import SpiderlingError

_BUFFER_BYTES = 1 << 20
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses after which another attempt may succeed."""
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class ArchiveUnread(SpiderlingError):
    """An archive that cannot be read on; what had been read of it stays."""


class Raw(Protocol):
    size: int | None
    """Bytes of the whole, if that is known."""
    bytes_read: int

    def read(self, size: int) -> bytes:
        """Some of the next bytes, none at the end; raises ArchiveUnread."""

    def seek(self, offset: int) -> None:
        """Go on at *offset*; raises ArchiveUnread."""

    def close(self) -> None: ...


class FileRaw:
    def __init__(self, path: str) -> None:
        """Raises ArchiveUnread."""
        self._path = path
        self.bytes_read = 0
        try:
            self._file: IO[bytes] = open(path, "rb", buffering=_BUFFER_BYTES)  # noqa: SIM115 - close() closes it
            self.size: int | None = self._file.seek(0, 2)
            self._file.seek(0)
        except OSError as error:
            raise self._unread(error) from error

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            raise self._unread(error) from error
        self.bytes_read += len(data)
        return data

    def seek(self, offset: int) -> None:
        self._file.seek(offset)

    def close(self) -> None:
        self._file.close()

    def _unread(self, error: OSError) -> ArchiveUnread:
        return ArchiveUnread(f"{self._path} cannot be read: {error.strerror or error}.")


class Client(NamedTuple):
    """How URLs are asked for."""

    user_agent: str
    allows: Callable[[str], bool]
    """Which IP addresses may be connected to."""
    timeout_s: float
    retries: int
    retry_delay_s: float
    max_pause_s: float


class UrlRaw:
    """An archive at a URL, over one connection at a time.

    After a break it goes on by a range request, or from the beginning if the server knows no ranges.  A busy server is
    left alone for as long as it says (Retry-After).
    """

    def __init__(self, url: str, client: Client) -> None:
        self.size: int | None = None
        self.bytes_read = 0
        self._url = url
        self._client = client
        self._offset = 0
        self._etag = ""
        self._answer: Any = None
        self._failures = 0
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Redirects(self._judge))

    def read(self, size: int) -> bytes:
        while True:
            try:
                if self._answer is None:
                    self._open()
                data: bytes = self._answer.read(size)
                if not data and self.size is not None and self._offset < self.size:
                    raise http.client.IncompleteRead(data)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                self._pause(error)
                continue
            self._offset += len(data)
            self.bytes_read += len(data)
            self._failures = 0 if data else self._failures
            return data

    def seek(self, offset: int) -> None:
        if offset != self._offset:
            self.close()
            self._offset = offset

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _open(self) -> None:
        """Ask for the bytes from the offset on; those before it, from a server without ranges, are skipped."""
        self._judge(self._url)
        headers = {"User-Agent": self._client.user_agent, "Accept-Encoding": "identity"}
        if self._offset:
            headers["Range"] = f"bytes={self._offset}-"
            if self._etag:
                headers["If-Range"] = self._etag
        request = urllib.request.Request(self._url, headers=headers)  # noqa: S310 - http(s) only, by is_url
        answer = self._opener.open(request, timeout=self._client.timeout_s)
        etag = answer.headers.get("ETag", "")
        self._etag = etag if etag.startswith('"') else ""
        place = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        length = answer.headers.get("Content-Length", "")
        if answer.status == 206 and place and whole_number(place[1]) == self._offset:
            self.size = whole_number(place[2])
        else:
            self.size = whole_number(length)
            _skip(answer, self._offset)
        self._answer = answer

    def _pause(self, error: Exception) -> None:
        """Wait before another attempt; raises ArchiveUnread when there is no use in one."""
        status = error.code if isinstance(error, urllib.error.HTTPError) else None
        self._failures += 1
        if (status is not None and status not in _MAY_PASS) or self._failures > self._client.retries:
            raise ArchiveUnread(f"{self._url} cannot be read: {error}.") from error
        header = error.headers.get("Retry-After", "") if isinstance(error, urllib.error.HTTPError) else ""
        asked = whole_number(header)
        pause = self._client.retry_delay_s * 2.0 ** (self._failures - 1) if asked is None else asked
        time.sleep(min(pause, self._client.max_pause_s))

    def _judge(self, url: str) -> None:
        """Raises ArchiveUnread for a URL whose name leads to an address that must not be connected to."""
        parts = urlsplit(url)
        found = socket.getaddrinfo(parts.hostname, parts.port or parts.scheme, type=socket.SOCK_STREAM)
        for address in {str(entry[4][0]) for entry in found}:
            if not self._client.allows(address):
                raise ArchiveUnread(
                    f"{url} is at {address}; only networks of SPIDERLING_ALLOW_NETWORKS and, with "
                    "SPIDERLING_CONTACT, public addresses are connected to."
                )


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, judge: Callable[[str], None]) -> None:
        self._judge = judge

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        self._judge(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _skip(answer: Any, number: int) -> None:
    while number > 0:
        data = answer.read(min(number, _BUFFER_BYTES))
        if not data:
            raise http.client.IncompleteRead(b"", number)
        number -= len(data)
