"""What the client, the resolver and the decoders raise, as errors of a download (errors.py)."""

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

from spiderling.base.error_origin import is_made_here
from spiderling.base.errors import StorageError
from spiderling.base.reasons import Reason
from spiderling.fetch.decoding import DecodedTooBig
from spiderling.fetch.errors import (
    BadHttp,
    BadRequest,
    BodyCut,
    HandlerFailed,
    NoConnection,
    NoDescriptor,
    NotHttp,
    NoTls,
    ResponseRefused,
    TlsFailed,
    TooSlow,
    TransferCut,
)
from spiderling.fetch.resolver import NameNotFound, NameServerFailure

_OURS = (DownloadCancelledError, StopDownload, TooSlow)
_TRANSLATION: tuple[tuple[Any, type[Exception]], ...] = (
    (NoDescriptor, TransferCut),
    (TimeoutError, DownloadTimeoutError),
    ((NameNotFound, NameServerFailure), CannotResolveHostError),
    (NotHttp, BadHttp),
    (BodyCut, ResponseDataLossError),
    (BadRequest, UnsupportedURLSchemeError),
    (NoTls, TlsFailed),
    (NoConnection, DownloadConnectionRefusedError),
)


def translated(error: Exception, url: str) -> Exception:
    """*error* as one of the errors named in errors.py.

    Ours, and those that stop the crawl, stay as they are; the first row of _TRANSLATION that fits decides on others.
    """
    if isinstance(error, (*_OURS, MemoryError, sqlite3.Error, StorageError)):
        return error
    if isinstance(error, DecodedTooBig):
        return ResponseRefused(Reason.TOO_BIG, f"{url} is too large once decoded, or too large for what was sent.")
    is_bug = is_made_here(error) and not isinstance(error, (OSError, UnsupportedURLSchemeError))
    unknown = HandlerFailed if is_bug else DownloadFailedError  # a library's error on a server's data is no bug of ours
    kind = next((ours for theirs, ours in _TRANSLATION if isinstance(error, theirs)), unknown)
    return kind(f"{url}: {type(error).__name__}: {error}")


def is_of_the_connection(error: Exception) -> bool:
    """Whether the translated *error* may come from the connection, which breaks while the process is stopped."""
    return not isinstance(error, (DownloadCancelledError, StopDownload, UnsupportedURLSchemeError, HandlerFailed))
