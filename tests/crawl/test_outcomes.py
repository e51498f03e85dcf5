"""What a page, a response or a failure leaves behind, without a crawl."""

from __future__ import annotations

import json

import pytest
from conftest import document
from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from spiderling import languages
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.engine.outcomes import etag, further, last_modified, of_item, redirect
from spiderling.items import PageItem, register_pages
from spiderling.text import TextOptions, process

THAI = (
    "เมื่อวานนี้เราไปตลาดกับแม่เพื่อซื้อผลไม้และขนม แต่ฝนตกหนักมากจนต้องรออยู่ใต้หลังคาเป็นเวลานาน "
    "หลังจากนั้นเราจึงกลับบ้านและทำอาหารเย็นกินด้วยกัน "
) * 3


@pytest.fixture(scope="module")
def models():
    return languages.load(("cs", "en"), "")


def outcome(models, text: str, encoding: str) -> Outcome:
    body = text.encode(encoding)
    response = HtmlResponse("http://a.test/", body=body, request=Request("http://a.test/"))
    page = process(body, url=response.url, http_charset=encoding, models=models, options=TextOptions(("cs",)))
    return of_item(PageItem(response, page, language="cs", kept_bytes=page.clean_bytes), Reason.KEPT)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(f"<p>{THAI}</p>", "tis-620"), (document("a"), "iso-8859-2"), (document("a"), "windows-1250")],
    ids=["thai", "czech-iso", "czech-windows"],
)
def test_the_same_page_in_any_encoding_has_the_same_yield(models, text, encoding):
    legacy, utf8 = outcome(models, text, encoding), outcome(models, text, "utf-8")
    assert (legacy.body_bytes, legacy.kept_bytes) == (utf8.body_bytes, utf8.kept_bytes)
    assert utf8.body_bytes == len(text.encode()) > len(text.encode(encoding))
    assert utf8.kept_bytes > 0 or encoding == "tis-620"  # no Thai text is accepted here


def test_a_further_item_of_a_response_counts_its_text_alone(models):
    first = outcome(models, document("a"), "utf-8")
    second = further(first)
    assert (second.kept_bytes, second.words) == (first.kept_bytes, first.words) and first.words > 0
    assert (second.url_id, second.body_bytes, second.wire_bytes, second.is_judged) == (None, 0, 0, False)


def test_a_feed_holds_the_attributes_and_the_text_of_a_page(models):
    register_pages()
    register_pages()
    body = document("a").encode()
    page = process(body, url="http://a.test/", http_charset=None, models=models, options=TextOptions(("cs",)))
    item = PageItem(HtmlResponse("http://a.test/", body=body), page, attributes={"url": "http://a.test/"})
    adapter = ItemAdapter(item)
    adapter["genre"] = "news"
    assert list(adapter.field_names()) == list(adapter) == ["url", "genre", "text"] and len(adapter) == 3
    assert json.loads(json.dumps(adapter.asdict()))["text"].startswith("Toto je zpráva, která má číslo a ")
    del adapter["genre"]
    assert "genre" not in adapter and item.attributes == {"url": "http://a.test/"}
    assert repr(item) == "<PageItem http://a.test/>"


CREDENTIALS = {"Authorization": "Basic x", "Cookie": "a=b", "X-Own": "1"}


@pytest.mark.parametrize(
    ("method", "status", "target", "expected"),
    [
        *((method, status, "http://a.test/b", None)
          for method, status in (("GET", 302), ("POST", 307), ("HEAD", 303), ("PUT", 301))),
        *((method, status, "http://a.test/b", ("GET", b"", {b"Authorization", b"Cookie", b"X-Own"}))
          for method, status in (("POST", 301), ("POST", 303), ("PUT", 303))),
        ("GET", 302, "http://b.test/", ("GET", b"data", {b"Content-Type", b"X-Own"})),
        ("POST", 308, "https://a.test/", ("POST", b"data", {b"Content-Type", b"X-Own"})),
        ("POST", 302, "http://b.test/", ("GET", b"", {b"X-Own"})),
        ("GET", 302, "not a url", ("GET", b"data", {b"Content-Type", b"X-Own"})),
    ],
)  # fmt: skip
def test_what_goes_on_after_a_redirect(method, status, target, expected):
    headers = {"Content-Type": "text/plain", **CREDENTIALS}
    request = Request("http://a.test/", method=method, body=b"data", headers=headers, cb_kwargs={"a": 1})
    goes_on = redirect(request, Outcome(1, request.url, Reason.REDIRECTED, status=status, redirect_to=target))
    if expected is None:
        assert goes_on is None
    else:
        assert (goes_on.method, goes_on.body, set(goes_on.headers)) == expected
        assert goes_on.cb_kwargs == {"a": 1}


DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("sent", "noted"),
    [
        *((tag, tag) for tag in (b'"abc"', b'W/"abc"')),
        *((tag, b"") for tag in (b'"%s"' % (b"a" * 10_000), b'"a\x01b"', b'"a"\r\nCookie: x', b"bare", b'"\xc3\xa1"')),
    ],
)
def test_an_etag_is_noted_only_if_it_can_be_sent_again(sent: bytes, noted: bytes) -> None:
    assert etag(Response("http://a.test/", headers={"ETag": sent})) == noted


@pytest.mark.parametrize(
    ("modified", "date", "noted"),
    [
        *((DATE, sent, 784_111_777) for sent in ("", DATE, "yesterday")),
        *((f"Thu, 01 Jan {year} 00:00:00 GMT", DATE, 0) for year in (1970, 2099)),
        *((odd, DATE, 0) for odd in ("Sunday, 06-Nov-94 08:49:37 GMT", "yesterday", "")),
    ],
)
def test_last_modified_is_noted_only_if_it_can_be_sent_again_and_is_over(modified: str, date: str, noted: int) -> None:
    assert last_modified(Response("http://a.test/", headers={"Last-Modified": modified, "Date": date})) == noted
