"""TLS: any certificate is accepted and what is wrong with it recorded, unless the user is strict."""

from __future__ import annotations

import asyncio

import pytest
from handled import PAGE, handling, reply, server_context, serving
from scrapy import Request
from scrapy.exceptions import (
    DownloadFailedError,
    DownloadTimeoutError,
)

from spiderling.base.reasons import Reason
from spiderling.fetch.errors import TlsFailed
from spiderling.fetch.tls import problems


@pytest.fixture
def server_tls(tmp_path):
    return server_context(tmp_path)


async def test_tls_sends_the_name_and_accepts_any_certificate(server_tls):
    async with serving(reply(), tls=server_tls) as site, handling() as handler:
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        response = await handler.download_request(request)
        assert response.body == PAGE
        assert response.certificate
        await handler.download_request(Request(f"https://127.0.0.1:{site.port}/", meta={"address": "127.0.0.1"}))
    assert site.sni == ["site.test", None]


async def test_tls_names_the_host_whichever_address_is_used(server_tls):
    async with serving(reply(), tls=server_tls) as site, handling() as handler:
        meta = {"address": "::1", "fallback_address": "127.0.0.1"}
        response = await handler.download_request(Request(f"https://site.test:{site.port}/", meta=meta))
    assert (response.body, site.sni) == (PAGE, ["site.test"])


@pytest.mark.parametrize(
    ("made", "flags"),
    [
        ({"issuer": "an authority"}, []),
        ({}, ["tls-self-signed"]),
        ({"issuer": "an authority", "days": (-20, -10)}, ["tls-expired"]),
        ({"issuer": "an authority", "days": (10, 20)}, ["tls-not-yet-valid"]),
        ({"issuer": "an authority", "names": ["other.test"]}, ["tls-wrong-name"]),
        ({"issuer": "an authority", "names": ["*.test"]}, []),
        ({"issuer": "an authority", "names": ["*.site.test"]}, ["tls-wrong-name"]),
        ({"issuer": "an authority", "names": ["SITE.TEST"]}, []),
        ({"names": [], "days": (-20, -10)}, ["tls-expired", "tls-self-signed", "tls-wrong-name"]),
    ],
)
async def test_what_is_wrong_with_a_certificate_is_recorded(tmp_path, made, flags):
    async with serving(reply(), tls=server_context(tmp_path, **made)) as site, handling() as handler:
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        response = await handler.download_request(request)
        assert (response.body, response.flags) == (PAGE, flags)
        stats = handler.crawler.stats.get_stats()
        assert [stats[f"spiderling/tls/{flag[4:]}"] for flag in flags] == [1] * len(flags)


def test_certificates_of_addresses_and_rubbish():
    assert problems(b"rubbish", "site.test") == ("unreadable",)
    assert problems(b"", "") == ("unreadable",)


async def test_a_certificate_is_for_an_address_only_if_it_says_so(tmp_path):
    tls = server_context(tmp_path, names=["127.0.0.1"], issuer="an authority")
    async with serving(reply(), tls=tls) as site, handling() as handler:
        for name, flags in (("127.0.0.1", []), ("site.test", ["tls-wrong-name"])):
            request = Request(f"https://{name}:{site.port}/", meta={"address": "127.0.0.1"})
            assert (await handler.download_request(request)).flags == flags


@pytest.mark.parametrize("strict", [{"options": {"TLS": "strict"}}, {"scrapy": {"DOWNLOAD_VERIFY_CERTIFICATES": True}}])
async def test_tls_certificate_is_verified_if_told_so(server_tls, strict):
    async with (
        serving(reply(), tls=server_tls) as site,
        handling(strict.get("scrapy"), **strict.get("options", {})) as handler,
    ):
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        with pytest.raises(TlsFailed, match="certificate") as caught:
            await handler.download_request(request)
        assert caught.value.reason is Reason.TLS
        assert not site.requests


async def test_a_valid_certificate_passes_when_strict(tmp_path, monkeypatch):
    tls = server_context(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
    async with serving(reply(), tls=tls) as site, handling(TLS="strict") as handler:
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        assert (await handler.download_request(request)).body == PAGE
        with pytest.raises(TlsFailed):
            await handler.download_request(Request(f"https://x.test:{site.port}/", meta={"address": "127.0.0.1"}))


async def test_tls_to_a_plain_server_and_to_a_silent_one():
    async def silent(writer):
        await asyncio.sleep(600)

    for answer, error in ((b"not TLS at all\r\n\r\n", DownloadFailedError), (silent, DownloadTimeoutError)):
        server = await asyncio.start_server(lambda r, w, a=answer: a(w) if callable(a) else w.write(a), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with handling(FIRST_BYTE_TIMEOUT_S=0.5) as handler:
            with pytest.raises(error):
                await handler.download_request(Request(f"https://site.test:{port}/", meta={"address": "127.0.0.1"}))
        server.close()
