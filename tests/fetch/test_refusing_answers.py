"""What the download handler refuses by its headers or its size."""

from __future__ import annotations

import asyncio

import pytest
from handled import LIMIT, OK, PAGE, failing, fetch, handling, reply, serving
from scrapy import Request

from spiderling.base import media_types
from spiderling.base.reasons import Reason
from spiderling.fetch.errors import ResponseRefused


async def test_announced_size_is_refused_before_the_body():
    async def announce(writer):
        writer.write(OK + b"Content-Length: 100001\r\n\r\n")
        await asyncio.sleep(600)  # who waits for the body runs into a time limit

    _, error = await failing(announce)
    assert isinstance(error, ResponseRefused)
    assert error.reason is Reason.TOO_BIG


async def endless(writer):
    writer.write(OK + b"\r\n")
    while True:
        writer.write(b"x" * 10_000)
        await writer.drain()


async def test_endless_body_is_cut_at_the_limit():
    request, error = await failing(endless)
    assert error.reason is Reason.TOO_BIG
    assert LIMIT < request.meta["wire_bytes"] < LIMIT + 1_000_000


async def test_download_maxsize_lowers_the_limit():
    _, error = await failing(reply(), download_maxsize=1000)
    assert error.reason is Reason.TOO_BIG


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Type: image/png",
        b"Content-Type: application/pdf; x=y",
        b"Content-Type: application/octet-stream",
        b"Content-Type: text/html\r\nContent-Disposition: Attachment; filename=a.html",
    ],
)
async def test_not_text_is_refused_at_the_headers(line):
    async def answer(writer, status=b"200 OK"):
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + line + b"\r\n\r\n")
        await asyncio.sleep(600)  # who waits for the body runs into a time limit

    request, error = await failing(answer, judge_type=True)
    assert error.reason is Reason.NOT_TEXT
    assert request.meta["wire_bytes"] == 0


@pytest.mark.parametrize(
    "line",
    [
        b"X: y", b"Content-Type:", b"Content-Type: html", b"Content-Type: Text/HTML;charset=utf-8",
        b"Content-Type: application/xhtml+xml", b"Content-Type: text/plain\r\nContent-Disposition: inline",
    ],
)  # fmt: skip
async def test_text_passes_the_judgement(line):
    _, response = await fetch(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n" + PAGE, judge_type=True)
    assert response.body == PAGE


async def test_type_is_judged_only_on_request_and_for_200():
    image = b" \r\nContent-Type: image/png\r\n\r\nimage"
    assert (await fetch(b"HTTP/1.1 200 OK" + image))[1].body == b"image"
    assert (await fetch(b"HTTP/1.1 404 No" + image, judge_type=True))[1].status == 404


DOCUMENTS = {"DOCUMENTS": "odt,docx", "MAX_BODY_BYTES": 10_000}


ODT = b"Content-Type: application/vnd.oasis.opendocument.text\r\n"


@pytest.mark.parametrize(
    "line", [ODT, ODT + b"Content-Disposition: attachment\r\n", b"Content-Type: application/octet-stream\r\n"]
)
async def test_documents_that_are_wanted_pass_the_judgement_with_a_limit_of_their_own(line):
    answer = b"HTTP/1.1 200 OK\r\n" + line + b"\r\n" + b"x" * 50_000
    async with serving(answer) as site, handling(**DOCUMENTS) as handler:
        request = Request(site.url + "a.odt", meta={"address": "127.0.0.1", "judge_type": True})
        assert len((await handler.download_request(request)).body) == 50_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Content-Type: application/pdf\r\n", Reason.NOT_TEXT),
        (b"Content-Type: application/octet-stream\r\n", Reason.NOT_TEXT),
        (ODT + b"Content-Length: 100001\r\n", Reason.TOO_BIG),
        (b"Content-Type: text/html\r\nContent-Length: 10001\r\n", Reason.TOO_BIG),
    ],
)
async def test_other_documents_and_too_large_ones_do_not(monkeypatch, line, reason):
    monkeypatch.setattr(media_types, "MAX_DOCUMENT_BYTES", LIMIT)
    answer = b"HTTP/1.1 200 OK\r\n" + line + b"\r\n"
    _, error = await failing(answer, judge_type=True, options=DOCUMENTS)
    assert error.reason is reason


async def test_without_the_option_no_document_passes():
    _, error = await failing(b"HTTP/1.1 200 OK\r\n" + ODT + b"\r\n", judge_type=True)
    assert error.reason is Reason.NOT_TEXT
