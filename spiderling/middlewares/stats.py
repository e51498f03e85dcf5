"""Downloader middleware: Scrapy's stats of requests and responses, without each of them being written out."""

from __future__ import annotations

import re

from scrapy.downloadermiddlewares.stats import DownloaderStats, get_status_size
from scrapy.http import Headers, Request, Response
from scrapy.utils.request import request_httprepr

_URL = re.compile(r"https?://([^/?#:@\[\s]+)(?::\d+)?(/(?!/)[^?#;\s]*(?:\?[^#\s]+)?)", re.ASCII)
"""URLs of which Scrapy's way of writing a request takes host and path as they are."""


class PlainDownloaderStats(DownloaderStats):
    """Counts under the same names the same numbers."""

    def process_request(self, request: Request) -> None:  # type: ignore[override]
        count = self.stats.inc_value
        count("downloader/request_count")
        count(f"downloader/request_method_count/{request.method}")
        count("downloader/request_bytes", written_bytes(request))

    def process_response(self, request: Request, response: Response) -> Response:  # type: ignore[override]
        count = self.stats.inc_value
        count("downloader/response_count")
        count(f"downloader/response_status_count/{response.status}")
        lines = 2 * (len(response.headers) - 1)
        fields = sum(len(name) + len(value) + 2 for name, value in _fields(response.headers))
        count("downloader/response_bytes", len(response.body) + fields + lines + get_status_size(response.status) + 4)
        return response


def written_bytes(request: Request) -> int:
    """The length of what ``request_httprepr`` makes of *request*."""
    found = _URL.fullmatch(request.url) if request.url.isascii() else None
    if found is None:
        return len(request_httprepr(request))
    fields = sum(len(name) + len(value) + 4 for name, value in _fields(request.headers))
    start = len(f"{request.method} {found[2]} HTTP/1.1\r\nHost: {found[1]}\r\n")
    return start + fields + 2 + len(request.body)


def _fields(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, values in dict.items(headers) for value in values]
