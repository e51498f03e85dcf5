"""The archives of ``-a warc=`` (files, globs, directories, URLs, and lists of these), and their stored bytes.

A URL is streamed.  Reading blocks, so each archive is read in a thread.  `ArchiveProgress` says how far one is done.
"""

from __future__ import annotations

import glob
import http.client
import io
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from spiderling.base.addresses import numbered_entries
from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.files import whole_number
from spiderling.base.options import Options

_SUFFIXES = (".warc", ".warc.gz", ".warc.zst")
_LISTS = (".txt", ".paths")
_EXAMPLE = "give files, globs, directories or URLs with commas, such as -a warc='CC-MAIN-*.warc.gz'"
FIRST_BYTE_TIMEOUT_S = 30.0  # seconds in which a server must begin to answer; chosen, as for pages
_SKIPPED_BYTES = 1 << 20  # bytes that are read at a time to skip them; chosen
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}  # HTTP statuses after which another attempt may succeed; chosen
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


def is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def archives_of(text: str) -> list[str]:
    """The archives that *text* names, each once, in order: absolute paths and URLs.

    Raises BadInput for an entry without an archive, or an archive that cannot be read.
    """
    found = dict.fromkeys(source for entry in text.split(",") for source in _expand(entry.strip()))
    if not found:
        raise BadInput(f"no archive is given; {_EXAMPLE}.")
    return list(found)


def _expand(entry: str, in_list: bool = False) -> Iterator[str]:
    path = Path(entry).expanduser()
    if not entry:
        return
    if is_url(entry):
        yield entry
    elif path.is_dir():
        inside = sorted(str(file) for file in path.iterdir() if file.name.endswith(_SUFFIXES))
        if not inside:
            raise BadInput(f"-a warc=: there is no {', '.join(_SUFFIXES)} in the directory {entry}; {_EXAMPLE}.")
        yield from map(_readable, inside)
    elif entry.endswith(_LISTS) and not in_list:
        for _, line in numbered_entries(str(path), "-a warc=: the list"):
            yield from _expand(line.partition("#")[0].strip(), in_list=True)
    elif path.exists():
        yield _readable(str(path))
    else:
        matches = sorted(glob.glob(str(path), recursive=True))
        if not matches:
            raise BadInput(f"-a warc=: no file is or matches {entry!r}; {_EXAMPLE}.")
        yield from map(_readable, matches)


def _readable(path: str) -> str:
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise BadInput(f"-a warc=: {path} is no file that may be read; mend its permissions or leave it out.")
    return os.path.abspath(path)


# -- their bytes


class ArchiveUnread(SpiderlingError):
    """An archive cannot be read on; the part already read stays."""


class FileRaw(io.FileIO):
    """An archive on disk."""

    def __init__(self, path: str) -> None:
        """Raises ArchiveUnread."""
        try:
            super().__init__(path)
            self.size: int | None = os.path.getsize(path)  # bytes of the whole, if that is known
        except OSError as error:
            raise self._unread(path, error) from error

    def read(self, size: int | None = -1) -> bytes:
        """Some of the next bytes, none at the end; raises ArchiveUnread."""
        try:
            data: bytes = super().read(size)
        except OSError as error:
            raise self._unread(self.name, error) from error
        return data

    def _unread(self, path: str, error: OSError) -> ArchiveUnread:
        return ArchiveUnread(f"{path} cannot be read: {error.strerror or error}.")


class UrlRaw:
    """An archive at a URL, read over one connection at a time.

    After a break it goes on by a range request; without ranges it skips what it has read.  A busy server is left alone
    for as long as it says (Retry-After).
    """

    def __init__(self, url: str, options: Options, allows: Callable[[str], bool]) -> None:
        """*allows*: which IP addresses may be connected to."""
        self.size: int | None = None  # bytes of the whole, if that is known
        self._url = url
        self._options = options
        self._allows = allows
        self._offset = 0
        self._etag = ""
        self._answer: Any = None
        self._failures = 0
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Redirects(self._judge))

    def read(self, size: int) -> bytes:
        """Some of the next bytes, none at the end; raises ArchiveUnread."""
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
            if data:
                self._failures = 0
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
        """Request the bytes from the offset on; skip those before it if the server knows no ranges."""
        self._judge(self._url)
        headers = {"User-Agent": self._options.user_agent(), "Accept-Encoding": "identity"}
        if self._offset:
            headers |= {"Range": f"bytes={self._offset}-"} | ({"If-Range": self._etag} if self._etag else {})
        request = urllib.request.Request(self._url, headers=headers)  # noqa: S310 - http(s) only, by is_url
        answer = self._opener.open(request, timeout=FIRST_BYTE_TIMEOUT_S)
        etag = answer.headers.get("ETag", "")
        self._etag = etag if etag.startswith('"') else ""
        place = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status == 206 and place and whole_number(place[1]) == self._offset:
            self.size = whole_number(place[2])
        else:
            self.size = whole_number(answer.headers.get("Content-Length", ""))
            _skip(answer, self._offset)
        self._answer = answer

    def _pause(self, error: Exception) -> None:
        """Wait before another attempt; raises ArchiveUnread when that would be useless."""
        refusal = error if isinstance(error, urllib.error.HTTPError) else None
        options = self._options
        self._failures += 1
        if (refusal is not None and refusal.code not in _MAY_PASS) or self._failures > options.retries:
            raise ArchiveUnread(f"{self._url} cannot be read: {error}.") from error
        from spiderling.frontier import intervals  # it takes long, and the loader of spiders loads this

        pause: float | None = whole_number(refusal.headers.get("Retry-After", "")) if refusal is not None else None
        if pause is None:
            pause = intervals.RETRY_DELAY_S * 2.0 ** (self._failures - 1)
        time.sleep(min(pause, intervals.MAX_PAUSE_S))

    def _judge(self, url: str) -> None:
        """Raise ArchiveUnread if the URL's host has an address that must not be connected to."""
        parts = urlsplit(url)
        found = socket.getaddrinfo(parts.hostname, parts.port or parts.scheme, type=socket.SOCK_STREAM)
        for address in {str(entry[4][0]) for entry in found}:
            if not self._allows(address):
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
        data = answer.read(min(number, _SKIPPED_BYTES))
        if not data:
            raise http.client.IncompleteRead(b"", number)
        number -= len(data)


Raw: TypeAlias = FileRaw | UrlRaw

META_KEY = "archive:"  # prefix of an archive's key in the store's table ``meta``; the archive's name follows
UNREAD_KEY = "archives_unread"  # key in that table of the number of archives that are not read to their end


class Position(NamedTuple):
    """Where a record begins."""

    member: int  # byte of the archive at which its compressed member begins; in a plain archive, the record itself
    inner: int = 0  # byte of the decompressed member at which it begins


BEGIN = Position(-1)  # a position before every record


class ArchiveProgress:
    """The records of one archive: which are in work, and which done; small enough for every checkpoint.

    Pages leave the pipelines in another order than they were read.  So it knows the record up to which all are done,
    and the few behind it that are done.  After a kill all others are read again.
    """

    def __init__(self, saved: Mapping[str, Any] = MappingProxyType({}), source: str = "") -> None:
        """Go on in the archive *source* from *saved*, a value that the method ``saved`` returned."""
        self.source = source
        self.last = Position(*saved.get("last", BEGIN))  # the record up to which all are done
        self._done = {Position(*position) for position in saved.get("done", ())}
        self._open: OrderedDict[Position, bool] = OrderedDict()
        """Record behind ``last`` -> whether it is done, in the order of the archive."""
        self.size: int | None = saved.get("size")
        """Bytes of the archive when it was read to its end (0: unknown); None before that."""
        self.records: int = saved.get("records", 0)  # number of records that are done
        self.damaged: int = saved.get("damaged", 0)  # number of damaged parts
        self._before = self._newest = self.last  # the records that were begun last
        self._cut = [(Position(*damaged), Position(*before)) for damaged, before in saved.get("cut", ())]
        """The newest record, if it is a damaged part, and the one before it."""

    def read_on(self) -> None:
        """Begin to read the archive: damage at its end comes again, since the file may be one that is still copied."""
        for damaged, before in self._cut:
            self.last = min(self.last, before)
            self._done.discard(damaged)
            self.records -= 1
            self.damaged -= 1
        self._cut = []

    def begin_record(self, position: Position) -> bool:
        """Begin the record at *position*; returns False if it was done before."""
        self._before, self._newest = self._newest, position
        if position <= self.last:
            return False
        self._cut = []
        self._open[position] = position in self._done
        if position not in self._done:
            return True
        self._done.discard(position)
        self._advance()
        return False

    def note_damage(self, position: Position) -> None:
        """The record at *position*, which was begun last, is a damaged part."""
        self.damaged += 1
        self._cut = [(position, self._before)]

    def end_record(self, position: Position) -> None:
        """The record at *position* is done."""
        self._open[position] = True
        self.records += 1
        self._advance()

    def _advance(self) -> None:
        while self._open and self._open[first := next(iter(self._open))]:
            self.last = first
            del self._open[first]

    @property
    def is_idle(self) -> bool:
        """Whether no record is in work."""
        return not self._open

    def saved(self) -> dict[str, Any]:
        """The place as a value for JSON."""
        done = sorted({*self._done, *(position for position, is_done in self._open.items() if is_done)})
        size = self.size if self.is_idle else None
        counts = {"records": self.records, "damaged": self.damaged}
        return {"last": self.last, "done": done, "size": size, "cut": self._cut, **counts}
