"""How a download can fail: Scrapy's errors and ours, into which `translated` turns those of aiohttp.

Ours, never worth a retry:
ResponseRefused       we do not want it: not text, too big, no language of ours ...
AddressForbidden      the address may not be connected to
BadHttp               what came is not HTTP, or floods of headers
TlsFailed             no TLS, or a certificate that is not valid while SPIDERLING_TLS is strict
HandlerFailed         an error of our own while the answer was read

Ours, after which the URL is asked for again:
TransferCut           the crawl is being stopped, or the process was stopped meanwhile (SIGSTOP, a sleeping machine)
TooSlow               a body slower than the minimum rate

Scrapy's:
DownloadTimeoutError  no headers, or no complete body, in time
CannotResolveHostError, DownloadConnectionRefusedError, ResponseDataLossError,
UnsupportedURLSchemeError, DownloadFailedError
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)

from spiderling.base.error_origin import is_made_here
from spiderling.base.errors import StorageError
from spiderling.base.reasons import Reason
from spiderling.fetch.decoding import DecodedTooBig
from spiderling.fetch.resolver import NameNotFound, NameServerFailure


class AddressForbidden(DownloadCancelledError):
    """The request's address is not one that may be connected to."""

    reason = Reason.ADDRESS_FORBIDDEN


class ResponseRefused(DownloadCancelledError):
    """The response is not wanted; the rest of it was not read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TransferCut(DownloadCancelledError):
    """The crawl stops, or the process was stopped during the transfer; the URL waits again, as if never asked."""


class BadHttp(DownloadFailedError):
    """The answer breaks HTTP; another attempt would not help."""

    reason = Reason.BAD_HTTP


class TlsFailed(DownloadFailedError):
    """No TLS connection could be made."""

    reason = Reason.TLS


class TooSlow(DownloadTimeoutError):
    """The body came in slower than SPIDERLING_MIN_BYTES_PER_S."""

    reason = Reason.TOO_SLOW
    may_pass = True


class HandlerFailed(DownloadFailedError):
    """The handler itself failed; ``__cause__`` is its error."""

    reason = Reason.INTERNAL_ERROR


class BadRequest(Exception):
    """A URL or header cannot be sent."""


class NoConnection(Exception):
    """No address could be connected to."""


class NoTls(Exception):
    """An address could be connected to, but the TLS handshake failed."""


class HeadFlood(aiohttp.ClientPayloadError):
    """More bytes came that are not body than `client.MAX_HEAD_BYTES` allows."""


_OURS = (DownloadCancelledError, StopDownload, TooSlow)
_TRANSLATION: tuple[tuple[Any, type[Exception]], ...] = (
    ((asyncio.TimeoutError, TimeoutError), DownloadTimeoutError),
    ((NameNotFound, NameServerFailure), CannotResolveHostError),
    ((HeadFlood, HttpProcessingError), BadHttp),
    (aiohttp.ClientPayloadError, ResponseDataLossError),
    (BadRequest, UnsupportedURLSchemeError),
    (NoTls, TlsFailed),
    (NoConnection, DownloadConnectionRefusedError),
)


def translated(error: Exception, url: str) -> Exception:
    """*error* as one of the errors named at the top.

    Ours, and those that stop the crawl, stay as they are; the first row of _TRANSLATION that fits decides on others.
    """
    if isinstance(error, (*_OURS, MemoryError, sqlite3.Error, StorageError)):
        return error
    if isinstance(error, DecodedTooBig):
        return ResponseRefused(Reason.TOO_BIG, f"{url} is too large once decoded, or too large for what was sent.")
    is_bug = is_made_here(error) and not isinstance(error, (OSError, aiohttp.ClientError, UnsupportedURLSchemeError))
    unknown = HandlerFailed if is_bug else DownloadFailedError  # a library's error on a server's data is no bug of ours
    kind = next((ours for theirs, ours in _TRANSLATION if isinstance(error, theirs)), unknown)
    return kind(f"{url}: {type(error).__name__}: {error}")


def is_of_the_connection(error: Exception) -> bool:
    """Whether the translated *error* may come from the connection, which breaks while the process is stopped."""
    return not isinstance(error, (DownloadCancelledError, StopDownload, UnsupportedURLSchemeError, HandlerFailed))
