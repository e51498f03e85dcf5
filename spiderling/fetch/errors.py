"""How a download can fail: Scrapy's errors and ours.  `translate` adds the URL, and turns others into these.

Of ours only `TransferCut` and `TooSlow` are worth another attempt.
"""

from __future__ import annotations

import sqlite3
from typing import Any

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

from spiderling.base.errors import StorageError, is_made_here
from spiderling.base.reasons import Reason


class AddressForbidden(DownloadCancelledError):
    """The request's address is not one that may be connected to."""

    reason = Reason.ADDRESS_FORBIDDEN


class ResponseRefused(DownloadCancelledError):
    """The response is not wanted; the rest of it was not read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TransferCut(DownloadCancelledError):
    """The fault is not the server's: the crawl is being stopped, the process was stopped meanwhile (SIGSTOP, a sleeping
    machine), or has too many files open.  The URL waits again, as if never asked."""


class BadHttp(DownloadFailedError):
    """The answer is not HTTP/1, or too much of it is not body; another attempt would not help."""

    reason = Reason.BAD_HTTP


class TlsFailed(DownloadFailedError):
    """No TLS connection could be made, or none with a valid certificate while DOWNLOAD_VERIFY_CERTIFICATES is on."""

    reason = Reason.TLS


class TooSlow(DownloadTimeoutError):
    """The body came in slower than the minimum rate."""

    reason = Reason.TOO_SLOW
    may_pass = True


class HandlerFailed(DownloadFailedError):
    """The handler itself failed; ``__cause__`` is its error."""

    reason = Reason.INTERNAL_ERROR


class NoDescriptor(OSError):
    """This process has too many files and sockets open for another connection."""


class DecodedTooBig(Exception):
    """A layer of the body is larger than allowed once decoded, or too large for what was sent."""


class NameNotFound(Exception):
    """The name does not exist or has no address; asking again soon is useless."""


class NameServerFailure(Exception):
    """No usable answer (time-out, SERVFAIL, REFUSED); asking again may help."""


_KNOWN: tuple[tuple[Any, type[Exception]], ...] = (
    (NoDescriptor, TransferCut),
    (TimeoutError, DownloadTimeoutError),
    ((NameNotFound, NameServerFailure), CannotResolveHostError),
)
_AS_THEY_ARE = (DownloadCancelledError, StopDownload, TooSlow, MemoryError, sqlite3.Error, StorageError)
_OF_THE_CLIENT = (BadHttp, TlsFailed, DownloadConnectionRefusedError, ResponseDataLossError, UnsupportedURLSchemeError)


def translate(error: Exception, url: str) -> Exception:
    """*error* as one of the errors that this module names; those that stop the crawl stay as they are."""
    if isinstance(error, _AS_THEY_ARE):
        return error
    if isinstance(error, DecodedTooBig):
        return ResponseRefused(Reason.TOO_BIG, f"{url} is too large once decoded, or too large for what was sent.")
    if isinstance(error, _OF_THE_CLIENT):
        return type(error)(f"{url}: {error}")
    is_bug = is_made_here(error) and not isinstance(error, OSError)
    unknown = HandlerFailed if is_bug else DownloadFailedError  # a library's error on a server's data is no bug of ours
    kind = next((known for theirs, known in _KNOWN if isinstance(error, theirs)), unknown)
    return kind(f"{url}: {type(error).__name__}: {error}")


def is_of_the_connection(error: Exception) -> bool:
    """Whether the translated *error* may come from the connection, which breaks while the process is stopped."""
    return not isinstance(error, (DownloadCancelledError, StopDownload, UnsupportedURLSchemeError, HandlerFailed))
