"""Pages made to hurt: each is processed without an exception, in bounded time of the processor and bounded output."""

from __future__ import annotations

import gzip
import random
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import made_documents as made
import pytest
from cleaned_pages import CZECH, cleaned
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.text import Page, clean_text
from spiderling.text.html.blocks import MAX_ANCHOR_CHARS, MAX_BLOCK_CHARS, MAX_BLOCKS, MAX_LINKS

CEILING_S = 5.0
"""Seconds of processor time: several times what the slowest page takes (about 1 s); a quadratic step takes minutes."""
CZECH = CZECH * 3
PAGE = f"<html><head><title>Kočka</title></head><body><ul><li><a href=/>Domů</a></ul><h1>O kočce</h1><p>{CZECH}</p>"
RANDOM = random.Random(1)


@contextmanager
def ceiling(seconds: float = CEILING_S) -> Iterator[None]:
    """Fails when the block uses more processor time, and interrupts Python code that would go on for long."""

    def stop(*_: object) -> None:
        raise AssertionError(f"more than {6 * seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 6 * seconds)
    start = time.process_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert time.process_time() - start < seconds


def run(body: bytes, charset: str | None = None, url: str = "http://127.0.0.1/a", **options) -> Page:
    page = cleaned(body, "cs en", codes="cs en", url=url, charset=charset, **options)
    check(page)
    return page


def check(page: Page) -> None:
    """What holds for every page: bounds, and text that can be written anywhere."""
    assert len(page.paragraphs) <= MAX_BLOCKS
    assert len(page.links) <= MAX_LINKS
    for paragraph in page.paragraphs:
        assert 0 < len(paragraph.text) <= MAX_BLOCK_CHARS
        assert paragraph.text == " ".join(paragraph.text.split())
    assert all(len(link.anchor) <= MAX_ANCHOR_CHARS and link.block < len(page.paragraphs) for link in page.links)
    texts = [clean_text(page.paragraphs), page.title, *page.meta.values(), *(link.url for link in page.links)]
    everything = "".join(texts)
    everything.encode()
    assert not set(everything) & {chr(code) for code in range(32)} - {"\n"}
    assert 0 <= page.known_share <= 1
    assert page.clean_bytes == len(clean_text(page.paragraphs).encode())


def attributes(number: int) -> str:
    return "<p " + " ".join(f"a{i}=b" for i in range(number)) + f">{CZECH}</p>"


PAGES: dict[str, Callable[[], bytes]] = {
    "100k short divs": lambda: b"<div>ab cd</div>" * 100_000,
    "100k headings": lambda: b"<h1>ab cd ef</h1>" * 100_000,
    "100k paragraphs of text": lambda: b"<p>when the cat came home it was already dark and the dog sat there" * 70_000,
    "50k nested divs": lambda: b"<div>x" * 50_000,
    "50k nested inline tags": lambda: b"<b><i>x" * 25_000,
    "50k nested lists and tables": lambda: b"<ul><li><table><tr><td>x" * 10_000,
    "200k attributes on a tag": lambda: attributes(200_000).encode(),
    "an attribute of 4 MB": lambda: b"<a href='http://x/" + b"a" * 4_000_000 + b"'>" + CZECH.encode(),
    "1M <": lambda: b"<" * 1_000_000,
    "1M </": lambda: b"</" * 1_000_000,
    "1M <!": lambda: b"<!" * 1_000_000,
    "1M <!--": lambda: b"<!--" * 700_000,
    "1M &": lambda: b"&" * 1_000_000,
    "text node of 10 MB": lambda: b"<p>" + b"word " * 2_000_000,
    "word of 5 MB": lambda: b"<p>" + b"a" * 5_000_000,
    "5 MB of white space": lambda: b"<p>a" + b" \n\t" * 1_600_000 + b"b",
    "null bytes": lambda: PAGE.replace("o", "o\0").encode() + b"\0" * 1_000_000,
    "only null bytes": lambda: b"\0" * 4_000_000,
    "every byte": lambda: bytes(range(256)) * 10_000,
    "noise": lambda: RANDOM.randbytes(2_000_000),
    "noise with tags": lambda: b"".join(b"<p>" + RANDOM.randbytes(40) for _ in range(40_000)),
    "entity flood": lambda: b"<p>" + b"&amp;&#x17e;&nbsp;" * 200_000,
    "entities without an end": lambda: b"<p>" + b"&#99999999999999999999" * 100_000,
    "entity bomb": lambda: b"<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>"
    + b"".join(b"<!ENTITY %c '%b'>" % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(12))
    + b"]><p>&m;</p>" * 1000,
    "surrogates": lambda: b"<p>" + b"&#xd800;&#xdfff;&#55357;" * 100_000,
    "control characters": lambda: b"<script>x</script>\x01\x02<p>\x0b\x0c\x7f&#1;&#31;" * 50_000,
    "zero-width characters": lambda: ("<p>" + "\u200b\u200d\ufeff\u00ad" * 300_000).encode(),
    "combining characters": lambda: ("<p>a" + "\u0301\u0323" * 300_000).encode(),
    "right-to-left overrides": lambda: ("<p>" + "\u202e\u2066a" * 200_000).encode(),
    "svg": lambda: b"<svg><path d='M0 0'/><text>a</text><foreignObject><p>b</p></foreignObject>" * 30_000,
    "mathml": lambda: b"<math><mrow><mi>x</mi><mo>=</mo></mrow>" * 40_000,
    "templates": lambda: b"<template><p>text</p>" * 60_000,
    "plaintext": lambda: b"<p>a<plaintext>" + b"<p>b</p>" * 200_000,
    "xmp, listing, noscript": lambda: b"<xmp><p>a</xmp><listing>b<noscript><p>c" * 40_000,
    "script that never ends": lambda: PAGE.encode() + b"<script>" + b"var a = '<p>';" * 300_000,
    "style that never ends": lambda: b"<style>" + b"p { }" * 600_000,
    "textarea that never ends": lambda: b"<textarea>" + b"<p>a" * 600_000,
    "title that never ends": lambda: b"<title>" + b"a " * 2_000_000,
    "cdata": lambda: b"<![CDATA[" * 300_000 + b"]]>" * 300_000,
    "processing instructions": lambda: b"<?php a ?>" * 200_000,
    "xhtml declaration": lambda: b"<?xml version='1.0' encoding='utf-16'?>" + PAGE.encode(),
    "100k links": lambda: b"".join(b"<a href=/%d>a</a>" % i for i in range(100_000)),
    "100k links in links": lambda: b"<a href=a>x" * 100_000,
    "links that climb": lambda: b"".join(b"<a href='%b%d'>a</a>" % (b"../" * 1000, i) for i in range(1000)),
    "odd links": lambda: b"".join(
        b"<a href='%b'>a</a>" % href
        for href in (b"http://[::1", b"//", b"http:///", b"javascript:x", b"data:,", b"http://a:9e/", b"\xff", b"?" * 9)
    ) * 2000,
    "one paragraph of many tags": lambda: b"<p>" + b"word <b>" * 300_000,
    "a long refresh": lambda: b'<meta http-equiv=refresh content="' + b"url=" * 300_000 + b'">',
    "100k meta": lambda: b"<meta name=description content=a><meta http-equiv=refresh content='0;url=/b'>" * 50_000,
    "100k base": lambda: b"<base href=/a><link rel=canonical href=b>" * 50_000,
    "breaks": lambda: b"<p>" + b"<br>" * 500_000 + b"a<br>" * 200_000,
    "forms and frames": lambda: b"<form><iframe src=a><frame src=b><select><option>c" * 20_000,
    "gzip as it is": lambda: gzip.compress(PAGE.encode() * 1000),
    "gzip bomb as it is": lambda: gzip.compress(b"a" * 20_000_000),
    "zlib as it is": lambda: zlib.compress(b"<p>" * 5_000_000),
    "broken utf-8": lambda: PAGE.encode().replace(b"\xc4\x8d", b"\xc4") * 50,
    "overlong utf-8": lambda: PAGE.encode() + b"\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf\xed\xa0\x80" * 50_000,
    "utf-16": lambda: b"\xff\xfe" + (PAGE * 20).encode("utf-16-le"),
    "utf-16 of odd length": lambda: b"\xff\xfe" + (PAGE * 20).encode("utf-16-le")[:-1],
    "utf-16 with lone surrogates": lambda: b"\xfe\xff" + b"\xd8\x00\x00a\xdc\x00" * 100_000,
    "utf-16 without a mark": lambda: (PAGE * 20).encode("utf-16-be"),
    "utf-32": lambda: (PAGE * 20).encode("utf-32"),
    "utf-7": lambda: b"<p>" + b"+ADw-script+AD4-" * 50_000,
    "iso-2022 escapes": lambda: b"<meta charset=iso-2022-jp><p>" + b"\x1b$B\x1b(B" * 100_000,
    "many charsets": lambda: b"<meta charset=windows-1250><meta charset=utf-16>" * 20_000 + PAGE.encode("cp1250"),
    "meta of spaces": lambda: b"<meta" + b" " * 4000 + b"charset" + b" " * 1_000_000,
    "metas without an end": lambda: b"<meta " * 800 + b"charset " * 100_000,
    "bombs of documents": lambda: made.docx(["a " * 5_000_000]),
    "pdf": lambda: made.pdf([made.set_lines(["text of a pdf"] * 40)] * 200),
    "one block, no spaces": lambda: ("<p>" + "漢字仮名" * 400_000).encode(),
    "stop words only": lambda: b"<p>" + b"the of and to in " * 200_000,
    "many languages": lambda: ("<p>" + CZECH + "<p>when the cat came home and the dog was there " * 3).encode() * 2000,
    "nothing": lambda: b"",
    "byte order mark": lambda: b"\xef\xbb\xbf",
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_hostile_page(name):
    body = PAGES[name]()
    with ceiling():
        run(body)


@pytest.mark.parametrize(
    "charset", ["utf-16", "utf-7", "iso-2022-jp", "gb18030", "hz", "idna", "x" * 10_000, "\0", "ž"]
)
def test_hostile_labels(charset):
    with ceiling():
        run(PAGE.encode() * 50, charset)


@pytest.mark.parametrize(
    "trap",
    [b"<div>" * 5000, b"<p " + b"a=b " * 50_000 + b">", b"&#xd800;" * 1000, b"\0\1\2" * 1000, b"<a href=x>" * 10_000],
)
def test_the_text_beside_the_trap_is_found(trap):
    assert CZECH.strip() in clean_text(run(f"<p>{CZECH}</p>".encode() + trap).paragraphs)


@pytest.mark.parametrize("mode", ["justext", "justext-stock"])
def test_pages_cut_off_anywhere(mode):
    body = (PAGE + "<!-- c --><table><tr><td>&amp;<img alt='a'></td></tr></table>").encode()
    with ceiling():
        for cut in range(0, len(body), 7):
            run(body[:cut], boilerplate=mode)


TAG_NAMES = """a b p div h1 br ul li table td script style head body html title meta base link form iframe svg
math template plaintext select option textarea object frameset frame area noscript xmp"""
TAGS = TAG_NAMES.split()
PIECES = st.one_of(
    st.sampled_from(TAGS).map(lambda tag: f"<{tag}>"),
    st.sampled_from(TAGS).map(lambda tag: f"</{tag}>"),
    st.sampled_from(["href", "src", "rel", "content", "name", "charset", "lang"]).flatmap(
        lambda name: st.text(max_size=10).map(lambda value: f"<a {name}='{value}'>")
    ),
    st.sampled_from(
        ["&amp;", "&#0;", "&#xd800;", "&bogus;", "<!--", "-->", "<![CDATA[", "]]>", "<?", "<!", "<", CZECH]
    ),
    st.text(max_size=30),
)


@settings(max_examples=examples(150))
@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(["utf-8", "cp1250", "utf-16", "latin-1"]))
def test_any_markup(html, encoding):
    run(html.encode(encoding, "replace"))


@settings(max_examples=examples(100))
@given(st.binary(max_size=400), st.text(max_size=20), st.none() | st.text(max_size=12))
def test_any_bytes(body, url, charset):
    for mode in ("learned", "justext", "justext-stock"):
        for page in (body, b"<p>" + body + PAGE.encode()):
            run(page, charset, url, boilerplate=mode)
