"""TLS for a crawler: it accepts any certificate, or only valid ones (DOWNLOAD_VERIFY_CERTIFICATES).

An expired certificate makes no text worse, and many small sites have one some day.
"""

from __future__ import annotations

import os
import ssl
from collections import OrderedDict
from typing import TypeAlias

from scrapy.settings import BaseSettings

from spiderling.base.errors import BadInput

Server: TypeAlias = "tuple[str, int]"  # the name and port of a server
MAX_SESSIONS = 1000  # servers whose sessions are kept (chosen; with a chain of two certificates each takes 16 kB)
_VERSIONS = {
    "TLSv1.0": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
"""The values of DOWNLOAD_TLS_MIN_VERSION and DOWNLOAD_TLS_MAX_VERSION."""


def context(settings: BaseSettings) -> ssl.SSLContext:
    """The context of all connections; with DOWNLOAD_VERIFY_CERTIFICATES only valid certificates pass.

    Scrapy's settings for TLS, and SSLKEYLOGFILE, count as in its own handlers.  Raises BadInput.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
        made.load_default_certs()
    else:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    try:
        if lowest := settings.get("DOWNLOAD_TLS_MIN_VERSION"):
            made.minimum_version = _VERSIONS[lowest]
        if highest := settings.get("DOWNLOAD_TLS_MAX_VERSION"):
            made.maximum_version = _VERSIONS[highest]
    except KeyError as error:
        raise BadInput(
            f"DOWNLOAD_TLS_MIN_VERSION or _MAX_VERSION is {error}; write one of {', '.join(_VERSIONS)}."
        ) from None
    if ciphers := settings.get("DOWNLOADER_CLIENT_TLS_CIPHERS"):
        made.set_ciphers(ciphers)
    if key_log := os.environ.get("SSLKEYLOGFILE"):
        made.keylog_filename = key_log
    return made


class Sessions:
    """TLS connections of one context, each begun with the session that its server gave before, if that is known.

    So no certificate is sent and checked again (RFC 8446, 2.2).  A server that does not know the session any more
    makes a new one.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._kept: OrderedDict[Server, ssl.SSLSession] = OrderedDict()  # the one that was used last at the end

    def connection(self, server: Server, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """The client's side of a connection to *server*; raises ValueError if that has no name for TLS."""
        session = self._kept.get(server)
        if session is not None:
            self._kept.move_to_end(server)
        return self._context.wrap_bio(incoming, outgoing, server_hostname=server[0], session=session)

    def keep(self, server: Server, connection: ssl.SSLObject) -> None:
        """Note the session that *connection* leaves; in TLS 1.3 it comes with the first data from the server.

        One that was resumed is used on: to take the one that comes in its place costs as much as a handshake saves.
        """
        if connection.session_reused:
            return
        session = connection.session
        if session is not None and session.has_ticket:
            self._kept[server] = session
            if len(self._kept) > MAX_SESSIONS:
                self._kept.popitem(last=False)
