"""What the download handler lets pass by its headers, and documents; the hostile answers of tests/web are refused."""

from __future__ import annotations

import pytest
from handled import LIMIT, PAGE, failing, fetch, handling, reply, serving
from scrapy import Request

from spiderling.base import media_types
from spiderling.base.reasons import Reason
from spiderling.frontier import MAX_FILE_BYTES, Fetch
from spiderling.frontier.hosts import RobotsRequest
from spiderling.items import FETCH


async def test_download_maxsize_lowers_the_limit():
    _, error = await failing(reply(), download_maxsize=1000)
    assert error.reason is Reason.TOO_BIG


@pytest.mark.parametrize(
    "line",
    [
        b"X: y", b"Content-Type:", b"Content-Type: html", b"Content-Type: Text/HTML;charset=utf-8",
        b"Content-Type: text/plain, text/html; charset=utf-8, text/html", b"Content-Type: application/xhtml+xml",
        b"Content-Type: text/plain\r\nContent-Disposition: inline",
    ],
)  # fmt: skip
async def test_text_passes_the_judgement(line):
    _, response = await fetch(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n" + PAGE, judge_type=True)
    assert response.body == PAGE


async def test_type_is_judged_only_on_request_and_for_200():
    image = b" \r\nContent-Type: image/png\r\n\r\nimage"
    assert (await fetch(b"HTTP/1.1 200 OK" + image))[1].body == b"image"
    assert (await fetch(b"HTTP/1.1 404 No" + image, judge_type=True))[1].status == 404


async def test_a_robots_txt_may_be_larger_than_pages():
    """It counted as out of reach, and no page of its site was fetched."""
    async with serving(reply(b"#" * MAX_FILE_BYTES)) as site, handling() as handler:
        file = RobotsRequest("http://site.test", f"{site.url}robots.txt", "site.test")
        request = Request(file.url, meta={FETCH: Fetch(0, file.url, "127.0.0.1", None, robots=file)})
        assert len((await handler.download_request(request)).body) == MAX_FILE_BYTES > LIMIT


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
    ("line", "reason", "documents"),
    [
        (b"Content-Type: application/pdf\r\n", Reason.NOT_TEXT, DOCUMENTS),
        (b"Content-Type: application/octet-stream\r\n", Reason.NOT_TEXT, DOCUMENTS),
        (ODT + b"Content-Length: 100001\r\n", Reason.TOO_BIG, DOCUMENTS),
        (b"Content-Type: text/html\r\nContent-Length: 10001\r\n", Reason.TOO_BIG, DOCUMENTS),
        (ODT, Reason.NOT_TEXT, {"DOCUMENTS": ""}),
    ],
)
async def test_other_documents_and_too_large_ones_do_not(monkeypatch, line, reason, documents):
    monkeypatch.setattr(media_types, "MAX_DOCUMENT_BYTES", LIMIT)
    _, error = await failing(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n", judge_type=True, options=documents)
    assert error.reason is reason
