"""How a download can fail: Scrapy's errors and ours, into which translation.py turns those of the client.

Ours, never worth a retry:
ResponseRefused       we do not want it: not text, too big, no language of ours ...
AddressForbidden      the address may not be connected to
BadHttp               what came is not HTTP, or floods of headers
TlsFailed             no TLS, or a certificate that is not valid while SPIDERLING_TLS is strict
HandlerFailed         an error of our own while the answer was read

Ours, after which the URL is asked for again:
TransferCut           the crawl is being stopped, the process was stopped meanwhile (SIGSTOP, a sleeping machine), or it
                      has too many files open
TooSlow               a body slower than the minimum rate

Scrapy's:
DownloadTimeoutError  no headers, or no complete body, in time
CannotResolveHostError, DownloadConnectionRefusedError, ResponseDataLossError,
UnsupportedURLSchemeError, DownloadFailedError
"""

from __future__ import annotations

from scrapy.exceptions import DownloadCancelledError, DownloadFailedError, DownloadTimeoutError

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
    """The fault is not the server's: the crawl stops, say.  The URL waits again, as if never asked."""


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


class NoDescriptor(OSError):
    """This process has too many files and sockets open for another connection."""


class BadRequest(Exception):
    """A URL or header cannot be sent."""


class NoConnection(Exception):
    """No address could be connected to."""


class NoTls(Exception):
    """An address could be connected to, but the TLS handshake failed."""


class NotHttp(Exception):
    """What came is not HTTP/1, or too much of it is not body."""


class BodyCut(Exception):
    """The body ended before its framing said so."""
