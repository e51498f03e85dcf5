"""What the download handler sends and gives back, once and as it is."""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref

import pytest
from example_counts import examples
from handled import DOWNLOAD_ERRORS, OK, PAGE, fetch, handling, reply, serving
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Request, signals
from scrapy.exceptions import (
    DownloadCancelledError,
    DownloadFailedError,
    DownloadTimeoutError,
    StopDownload,
    UnsupportedURLSchemeError,
)

from spiderling.base.machine import RunningTime
from spiderling.fetch.client import ConnectTarget, Wire
from spiderling.fetch.messages import RawRequest, UrlParts


async def test_verbatim_url_is_sent_as_it_is():
    async with serving(reply()) as site, handling() as handler:
        for verbatim in (True, False):
            meta = {"address": "127.0.0.1", "verbatim_url": verbatim}
            await handler.download_request(Request(site.url + "%7Ea/%2e?q=%41+%20", meta=meta))
    assert site.requests[0].startswith(b"GET /%7Ea/%2e?q=%41+%20 HTTP/1.1")
    assert not site.requests[1].startswith(b"GET /%7Ea/%2e?q=%41+%20 HTTP/1.1")


@pytest.mark.parametrize(
    ("url", "name", "port", "target", "authority"),
    [
        ("http://a.test/", "a.test", None, "/", "a.test"),
        ("https://a.test:443/b?c=/d:@e", "a.test", None, "/b?c=/d:@e", "a.test"),
        ("http://a.test:443/", "a.test", 443, "/", "a.test:443"),
        ("http://A.Test.:8080/b c/./d?", "a.test", 8080, "/b%20c/d?", "a.test:8080"),
        ("http://[::1]:8080/#fragment", "::1", 8080, "/", "[::1]:8080"),
        ("https://[2001:DB8::1]", "2001:db8::1", None, "/", "[2001:db8::1]"),
        ("http://0x7f.1/", "127.0.0.1", None, "/", "127.0.0.1"),
        ("http://žluť.test/ě?š", "xn--lu-yta1h.test", None, "/%C4%9B?%C5%A1", "xn--lu-yta1h.test"),
    ],
)
def test_the_parts_of_a_url_are_those_that_a_browser_asks_for(url, name, port, target, authority):
    parts = UrlParts.of(url, is_verbatim=False)
    assert (parts.name, parts.port, parts.target, parts.authority) == (name, port, target, authority)
    assert parts.is_https == url.startswith("https")
    scheme = url.partition(":")[0]
    assert UrlParts.of(f"{scheme}://{authority}{target}", is_verbatim=True) == parts


@pytest.mark.parametrize(
    "url", ["ftp://a.test/", "http://", "", "http://user:word@a.test/", "http://a.test:99999/", "http://a.test:x/"]
)
@pytest.mark.parametrize("is_verbatim", [True, False])
def test_what_cannot_be_asked_for_is_refused(url, is_verbatim):
    with pytest.raises(UnsupportedURLSchemeError):
        UrlParts.of(url, is_verbatim)


async def test_redirects_cookies_and_post():
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /next\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n"
    async with serving(redirect) as site, handling() as handler:
        for _ in range(2):
            request = Request(site.url, method="POST", body=b"x=1", meta={"address": "127.0.0.1"})
            response = await handler.download_request(request)
            assert (response.status, response.headers["Location"]) == (302, b"/next")
        assert len(site.requests) == 2
        assert not any(b"Cookie" in head for head in site.requests)
        assert all(b"Content-Length: 3\r\n" in head for head in site.requests)


async def test_proxy_of_the_environment_is_ignored(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert (await fetch(reply()))[1].body == PAGE


async def test_headers_keep_their_bytes_and_their_repetition():
    _, response = await fetch(reply(PAGE, b"X-City: Zl\xedn \xff", b"Set-Cookie: a=1", b"Set-Cookie: ;;=\x01bad"))
    assert response.headers["X-City"] == b"Zl\xedn \xff"
    assert len(response.headers.getlist("Set-Cookie")) == 2


async def test_signals_can_stop_a_download():
    async with serving(reply()) as site, handling() as handler:

        def stop(**kwargs):
            raise StopDownload(fail=False)

        handler.crawler.signals.connect(stop, signals.headers_received)
        response = await handler.download_request(Request(site.url, meta={"address": "127.0.0.1"}))
        assert response.flags == ["download_stopped"]
        assert response.body == b""


async def test_a_failed_request_is_not_sent_twice():
    """aiohttp repeats a GET that the server hung up on; that would break the politeness interval."""
    async with serving(b"") as site, handling() as handler:
        with pytest.raises(DownloadFailedError):
            await handler.download_request(Request(site.url, meta={"address": "127.0.0.1"}))
        await asyncio.sleep(0.1)
        assert len(site.requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://a..b.test/", "http://" + "a" * 70 + ".test/", "http://a b.test/", "http://[v1.x]/",
        "http://x.test:99999/",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verbatim", [True, False])
async def test_bad_urls_and_headers_are_download_errors(url, verbatim):
    async with handling() as handler:
        unrepaired = type("Unrepaired", (Request,), {"url": url})  # a Request refuses such a URL, or repairs it
        request = unrepaired("http://x.test/", meta={"address": "127.0.0.1", "verbatim_url": verbatim})
        with pytest.raises(DOWNLOAD_ERRORS):
            await handler.download_request(request)
        for headers in ({"X": "a\r\nb: c"}, {"X\n": "a"}, {"X": b"\xff\xfe"}):
            request = Request("http://x.test:1/", headers=headers, meta={"address": "127.0.0.1"})
            with pytest.raises(DOWNLOAD_ERRORS):
                await handler.download_request(request)
        with pytest.raises(DownloadCancelledError, match="proxy"):
            await handler.download_request(Request("http://x.test/", meta={"proxy": "http://127.0.0.1:1/"}))


@settings(max_examples=examples(200))
@given(
    st.text(max_size=8), st.text(max_size=8).map("/".__add__),
    st.lists(st.tuples(st.binary(max_size=4) | st.just(b"X\r\nY"), st.binary(max_size=4)), max_size=3),
)  # fmt: skip
def test_no_request_is_sent_that_reads_as_another(method, target, headers):
    try:
        head = RawRequest(method, target, headers, b"the body").encode()
    except (UnsupportedURLSchemeError, UnicodeEncodeError):
        return
    lines = head.removesuffix(b"the body").split(b"\r\n")
    assert lines == [f"{method} {target} HTTP/1.1".encode(), *(b": ".join(field) for field in headers), b"", b""]
    assert not {b"\r"[0], b"\n"[0], 0} & set(b"".join(lines))
    assert len(lines[0].split(b" ")) == 3


async def test_cancelled_and_failed_downloads_leave_nothing_open():
    async def half(writer):
        writer.write(OK + b"Content-Length: 1000\r\n\r\nhalf")
        await asyncio.sleep(600)

    unraised: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: unraised.append(context))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with serving(half) as site, handling() as handler:
            request = Request(site.url, meta={"address": "127.0.0.1"})
            task = asyncio.ensure_future(handler.download_request(request))
            while not site.requests:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert request.meta["wire_bytes"] == 4
            hasty = Request(site.url, meta={"address": "127.0.0.1", "download_timeout": 0.2})
            with pytest.raises(DownloadTimeoutError):
                await handler.download_request(hasty)
            ended = weakref.ref(task)
            del task
            gc.collect()
            assert ended() is None, "the handler has let go of it"
            assert not [wire for wire in gc.get_objects() if isinstance(wire, Wire) and wire.transport is not None]
        gc.collect()
        await asyncio.sleep(0)
    assert not unraised
    assert not [str(w.message) for w in caught if "handler" in str(w.filename) or "aiohttp" in str(w.message)]


async def test_what_was_about_to_be_asked_when_the_process_was_stopped_is_not_asked(monkeypatch):
    """A shard that stood still asked once more when it woke, for a page that another process had by then."""
    stopped_s = 0.0
    connect = ConnectTarget.connect

    async def connect_then_stop(target):
        nonlocal stopped_s
        wire = await connect(target)
        stopped_s = 60.0
        return wire

    monkeypatch.setattr(RunningTime, "stopped_s", lambda running: stopped_s)
    monkeypatch.setattr(ConnectTarget, "connect", connect_then_stop)
    async with serving(reply()) as site, handling() as handler:
        request = Request(f"http://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        with pytest.raises(DOWNLOAD_ERRORS):
            await handler.download_request(request)
        stopped_s = 0.0
        monkeypatch.setattr(ConnectTarget, "connect", connect)
        assert (await handler.download_request(request)).body == PAGE
    assert len(site.requests) == 1
