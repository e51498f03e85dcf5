"""Answers that break HTTP and that every browser reads: so do we, whatever packets they come in; and broken bodies."""

from __future__ import annotations

import asyncio
import http.client
import io
import itertools
from collections.abc import Iterable

import pytest
from handled import CHUNKED_HEAD, OK, PAGE, chunked, failing, fetch, reply
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.exceptions import ResponseDataLossError

from spiderling.fetch.client import Wire
from spiderling.fetch.errors import BadHttp
from spiderling.fetch.messages import ResponseHead

LENGTH = b"Content-Length: %d" % len(PAGE)
LAST = b"0\r\n\r\n"

READ_BY_BROWSERS = {
    "no colon": reply(PAGE, b"NoColonHere"),
    "no colon at the end": reply(PAGE)[: -len(PAGE) - 2] + b"no colon\r\n\r\n" + PAGE,
    "a space in a name": reply(PAGE, b"X Bad Header: 1"),
    "a name beyond ASCII": reply(PAGE, "X-Název: žluťoučký".encode(), b"X-N\xe1zev: 1"),
    "an empty name": reply(PAGE, b": value"),
    "HTML in the head": reply(PAGE, b"<br />", b"<b>Warning</b>: mysql_connect() in <b>/www/db.php</b>"),
    "a space before the colon": OK + b"Content-Length : %d\r\n\r\n" % len(PAGE) + PAGE,
    "a folded header": reply(PAGE, b"X-Long: one\r\n\ttwo"),
    "a control character": reply(PAGE, b"X: a\x01b"),
    "the same length twice": reply(PAGE, LENGTH),
    "the same length in one line": OK + LENGTH + b", %d\r\n\r\n" % len(PAGE) + PAGE,
    "a length that is none": OK + b"Content-Length: 12abc\r\n\r\n" + PAGE,
    "an empty length": OK + b"Content-Length:\r\n\r\n" + PAGE,
    "a length beside chunks": OK + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n"
    + chunked(PAGE)[len(CHUNKED_HEAD) :] + LAST,
    "chunks beside a length": OK + b"Transfer-Encoding: Chunked\r\nContent-Length: 99999999\r\n\r\n"
    + chunked(PAGE)[len(CHUNKED_HEAD) :] + LAST,
    "more than the length": reply(PAGE, b"Connection: close") + b"\r\n<!-- cached -->",
    "more behind the last chunk": chunked(PAGE) + LAST + b"\r\n\r\nmore",
    "line feeds alone": (OK + b"\r\n").replace(b"\r", b"") + PAGE,
    "line feeds alone in chunks": b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n%x\n%b\n0\n\n" % (len(PAGE), PAGE),
    "spaces behind a chunk's size": CHUNKED_HEAD + b"%x  \r\n%b\r\n" % (len(PAGE), PAGE) + LAST,
    "a status without a reason": b"HTTP/1.1 200\r\n\r\n" + PAGE,
    "two spaces before a status": b"HTTP/1.1  200 OK\r\n\r\n" + PAGE,
    "a version to come": b"HTTP/1.2 200 OK\r\n\r\n" + PAGE,
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + reply(),
    "empty lines first": b"\r\n\r\n" + reply(),
}  # fmt: skip


def feed(wire: Wire, answer: bytes, packets: Iterable[int]) -> None:
    """*answer* comes in *packets* of so many bytes, over and over."""
    at = 0
    for size in itertools.cycle(packets):
        wire.data_received(answer[at : at + size])
        at += size
        if at >= len(answer):
            return


def received(answer: bytes, packets: Iterable[int]) -> tuple[ResponseHead | None, bytes, Exception | None]:
    """The head, body and error of an *answer*."""
    wire = Wire()
    feed(wire, answer, packets)
    wire.connection_lost(None)
    try:
        read(wire).send(None)
    except StopIteration as over:  # all is there, so nothing is waited for
        return over.value
    raise AssertionError("it waits for more")


async def read(wire: Wire) -> tuple[ResponseHead | None, bytes, Exception | None]:
    head = None
    body = b""
    try:
        head = await wire.read_head()
        while piece := await wire.read():
            body += piece
    except (BadHttp, ResponseDataLossError, OSError) as error:
        return head, body, error
    return head, body, None


@pytest.mark.parametrize("form", READ_BY_BROWSERS)
def test_what_browsers_read_is_read(form):
    for packets in ([1_000_000], [1], [7, 200]):
        head, body, error = received(READ_BY_BROWSERS[form], packets)
        assert error is None and body == PAGE and head is not None and head.status == 200


async def test_a_page_with_such_headers_comes_out_of_the_handler():
    """A header without a colon ended a page as bad-http."""
    answer = reply(PAGE, b"X-Good: yes", b"NoColonHere", "X-Název: ž".encode(), LENGTH)
    request, response = await fetch(answer + b"more")
    assert (response.body, request.meta["wire_bytes"]) == (PAGE, len(PAGE))
    assert response.headers["X-Good"] == b"yes"
    assert set(response.headers) == {b"Content-Type", b"X-Good"}


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody", OK + b"Content-Length: 4, 5\r\n\r\nbody",
        OK + b"X: a\0b\r\n\r\nbody", b"HTTP/1.1 OK\r\n\r\nbody", b"HTTP/1.1 2000 OK\r\n\r\nbody",
        b"<html>no head at all\r\n\r\n</html>", b"220 mail.test ESMTP\r\n", CHUNKED_HEAD + b"zz\r\nbody\r\n0\r\n\r\n",
        CHUNKED_HEAD + b"-4\r\nbody\r\n0\r\n\r\n", CHUNKED_HEAD + b"4\r\nbodyX0\r\n\r\n",
        CHUNKED_HEAD + b"f" * 30 + b"\r\nbody",
    ],
)  # fmt: skip
async def test_what_browsers_refuse_is_bad_http(answer):
    assert isinstance((await failing(answer))[1], BadHttp)
    assert {type(received(answer, packets)[2]) for packets in ([1_000_000], [1], [3, 5])} == {BadHttp}


def test_the_answers_to_head_and_those_without_content_have_no_body():
    for status, has_body in ((200, False), (204, True), (304, True), (101, True)):
        head = ResponseHead.parse(b"HTTP/1.1 %d Is\r\nContent-Length: 9" % status)
        assert head.framing(has_body=has_body).is_over and head.length == 9


TOKENS = st.text("abcXYZ-_.!", min_size=1, max_size=12).map(str.encode)
VALUES = st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0\x85\xa0", exclude_categories=("Cc",)))


@given(
    st.lists(st.tuples(TOKENS, VALUES.map(lambda value: value.strip().encode("latin-1"))), max_size=6),
    st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    st.sampled_from(["length", "chunked", "close"]),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
)
@example([], [b"\r\n\r\n", b"0\r\n\r\n"], "chunked", [1])
def test_well_formed_answers_are_read_as_the_standard_library_reads_them(fields, pieces, framing, packets):
    body = b"".join(pieces)
    lines = [b"HTTP/1.1 200 OK", *(b"%b: %b" % field for field in fields)]
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(body))
    if framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
        body = b"".join(b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nX-Trailer: 1\r\n\r\n"
    answer = b"\r\n".join([*lines, b"", body])
    expected = http.client.HTTPResponse(Socket(answer))  # type: ignore[arg-type]
    expected.begin()
    head, came, error = received(answer, packets)
    assert error is None and head is not None
    assert came == expected.read()
    named = [(name.decode(), value.decode("latin-1")) for name, value in head.headers]
    assert named == expected.getheaders()


class Socket(io.BytesIO):
    """What http.client wants of a socket."""

    def makefile(self, mode: str) -> io.BytesIO:
        return self


PIECES = st.sampled_from([OK, b"\n", b"\r\n", b"a: b", b" ", b"4\r\n", b"\0"]) | st.binary(max_size=9)


@given(st.lists(PIECES).map(b"".join))
def test_an_answer_is_read_alike_in_whatever_packets_it_comes(answer):
    whole = received(answer, [len(answer) or 1])
    for packets in ([1], [2, 3]):
        head, body, error = received(answer, packets)
        assert (head, body) == whole[:2] and type(error) is type(whole[2])


def test_any_bytes_are_a_head_or_not_http():
    for head in (b"", b"\xff" * 1000, b"HTTP/1.1 200" + b"\n" * 300, b"HTTP/1.1 200" + b"\ra:" * 300):
        with pytest.raises(BadHttp):
            ResponseHead.parse(head)


class Open:
    """A transport of which only is known whether it was closed."""

    is_closed = False

    def abort(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("answer", "is_open"),
    [
        (reply(), True),
        (chunked(PAGE) + LAST, True),
        (b"HTTP/1.1 204 None\r\n\r\n", True),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" + reply(), True),
        (reply(PAGE, b"Connection: Keep-Alive, Upgrade"), True),
        (reply(PAGE, b"Connection: Close"), False),
        (reply(PAGE, b"Connection: keep-alive", b"connection: close"), False),
        (reply().replace(b"1.1", b"1.0"), False),
        (reply(PAGE, LENGTH), False),
        (READ_BY_BROWSERS["a length beside chunks"], False),
        (READ_BY_BROWSERS["more than the length"].replace(b"close", b"open"), False),
        (READ_BY_BROWSERS["more behind the last chunk"], False),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + LAST, False),
        (OK + b"Content-Length: 12abc\r\n\r\n" + PAGE, False),
        (OK + b"\r\n" + PAGE, False),
        (reply()[:-1], False),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False),
        (CHUNKED_HEAD + b"zz\r\n", False),
    ],
)
def test_a_connection_is_used_again_only_if_it_is_clear_where_its_response_ends(answer, is_open):
    for packets in ([1_000_000], [1], [7, 200]):
        wire = Wire()
        wire.connection_made(Open())
        feed(wire, answer, packets)
        assert wire.is_open is is_open


def test_what_comes_before_it_is_asked_for_closes_the_connection():
    wire, connection = Wire(), Open()
    wire.connection_made(connection)
    wire.data_received(reply(b"one"))
    assert wire.is_open
    wire = wire.next()
    wire.data_received(reply(b"two"))
    assert wire.is_open and wire.body_bytes == 3 and not connection.is_closed
    wire.data_received(b"HTTP/1.1 408 Request Timeout\r\n")
    assert connection.is_closed and not wire.is_open


async def test_lost_data_is_an_error_that_may_be_retried_or_a_flag():
    short = OK + b"Content-Length: 5000\r\n\r\n" + PAGE
    for answer in (short, chunked(PAGE), chunked(PAGE)[:-1000]):
        request, error = await failing(answer)
        assert isinstance(error, ResponseDataLossError)
        assert request.meta["wire_bytes"] > 2000
        _, response = await fetch(answer, download_fail_on_dataloss=False)
        assert response.flags == ["dataloss"]
        assert len(response.body) > 2000
        assert PAGE.startswith(response.body)


async def test_a_page_may_come_in_small_chunks():
    body = PAGE * 20
    answer = chunked(*(body[at : at + 20] for at in range(0, len(body), 20))) + b"0\r\n\r\n"
    assert (await fetch(answer))[1].body == body


async def broken_chunk_later(writer):
    writer.write(chunked(PAGE))
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.write(b"zz\r\n" + PAGE)
    await asyncio.sleep(600)


async def test_a_broken_chunk_ends_a_body_whose_headers_came_before():
    _, error = await failing(broken_chunk_later, options={"constants": {"SLOW_WINDOW_S": 30}})
    assert isinstance(error, BadHttp)
