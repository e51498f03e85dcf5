"""What the headers of an answer say of the use of its page, and how a URL ends whose page may not be used."""

from __future__ import annotations

from scrapy.http import Headers, Response

from spiderling.base.opt_outs import Signal, Statement
from spiderling.base.reasons import Reason

_INDEXING = {Signal.NOINDEX, Signal.NOARCHIVE, Signal.UNAVAILABLE_AFTER}
_HEADERS = (b"X-Robots-Tag", b"Link", b"tdm-reservation", b"tdm-policy", b"Content-Usage", b"Content-Signal")
_KEYS = Headers(dict.fromkeys(_HEADERS, b"")).keys()


def headers_of(response: Response) -> list[tuple[str, str]]:
    """The headers of *response* that may hold statements."""
    if not _KEYS & response.headers.keys():
        return []
    return [(name.decode(), value.decode("latin-1")) for name in _HEADERS for value in response.headers.getlist(name)]


def end_by(binding: Statement) -> Reason:
    """NOINDEX or OPTED_OUT, for a page whose use *binding* refuses."""
    return Reason.NOINDEX if binding.signal in _INDEXING else Reason.OPTED_OUT
