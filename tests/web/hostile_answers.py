"""Cases of one bad answer: broken HTTP, resets and silence at each point, floods, sizes, types and encodings."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib

import brotli
from conftest import document
from hostile import OK, Serve, Visit, add, answer, reply

from spiderling.base.files import zstd
from spiderling.base.reasons import Reason

NO_TEXT = (Reason.BOILERPLATE_ONLY, Reason.UNDECODABLE)
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = b"<p>" + b" " * 30_000_000


def good(name: str) -> bytes:
    """A page that would be kept."""
    return document(name).encode()


def chunks(*bodies: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(body), body) for body in bodies)


# -- the connection breaks at each point of an answer, by RST and by FIN

PAGE = reply(good("broken off"))
HEAD_END = PAGE.index(b"\r\n\r\n") + 4
POINTS = {
    "request": b"",
    "status-line": PAGE[:11],
    "first-line": PAGE[:17],
    "header": PAGE[: HEAD_END - 8],
    "headers": PAGE[:HEAD_END],
    "body": PAGE[: HEAD_END + 900],
    "chunk-size": CHUNKED + chunks(good("size")) + b"1",
    "chunk": CHUNKED + chunks(good("chunk")) + b"1000\r\nabc",
    "last-chunk": CHUNKED + chunks(good("last chunk")),
}


for point, sent in POINTS.items():
    add(f"reset-after-{point}", answer(sent, Visit.reset), Reason.CONNECTION)
    add(f"close-after-{point}", sent, Reason.CONNECTION)


add("reset-on-accept", answer(b"", Visit.reset), Reason.ROBOTS_UNREACHABLE, raw=True)
add("close-on-accept", b"", Reason.ROBOTS_UNREACHABLE, raw=True)


# -- silence and drops


for point, reason in {
    "request": Reason.TIMEOUT, "status-line": Reason.TIMEOUT, "header": Reason.TIMEOUT, "headers": Reason.TOO_SLOW,
    "body": Reason.TOO_SLOW, "chunk": Reason.TOO_SLOW,
}.items():  # fmt: skip
    add(f"silent-after-{point}", answer(POINTS[point], Visit.silence), reason)
add("silent-robots", answer(reply(good("silent"))), Reason.ROBOTS_UNREACHABLE, robots=answer(b"", Visit.silence))
add("silent-on-accept", answer(b"", Visit.silence), Reason.ROBOTS_UNREACHABLE, raw=True)


add("drip-headers", answer(b"", Visit.drip, PAGE, 10), Reason.TIMEOUT)
add("drip-body", answer(POINTS["headers"], Visit.drip, PAGE[HEAD_END:], 10), Reason.TOO_SLOW)
add("drip-chunks", answer(CHUNKED, Visit.drip, chunks(b"a") * 1000, 20), Reason.TOO_SLOW)
add("drip-above-the-floor", answer(OK + b"\r\n", Visit.drip, b"word " * 10_000, 150), (Reason.TIMEOUT, Reason.TOO_SLOW))


# -- floods


def floods(sent: bytes, piece: bytes) -> Serve:
    return answer(sent, Visit.flood, piece)


add("flood-headers", floods(OK, b"X-Header: some value\r\n"), Reason.BAD_HTTP)
add("flood-one-header", floods(OK + b"X-Header: ", b"x"), Reason.BAD_HTTP)
add("flood-status-line", floods(b"HTTP/1.1 200 ", b"O"), Reason.BAD_HTTP)
add("flood-1xx", floods(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"), Reason.BAD_HTTP)
add("flood-100", floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Reason.BAD_HTTP)
add("flood-chunk-extension", floods(CHUNKED + b"5;", b"extension=value;"), Reason.BAD_HTTP)
add("flood-trailers", floods(CHUNKED + chunks(good("t")) + b"0\r\n", b"X-Trailer: some value\r\n"), Reason.BAD_HTTP)
add("flood-body", floods(OK + b"\r\n", b"<p>text of no end "), Reason.TOO_BIG)
add("flood-chunks", floods(CHUNKED, chunks(b"<p>text of no end " * 50)), Reason.TOO_BIG)
add("flood-tiny-chunks", floods(CHUNKED, chunks(b"a")), Reason.BAD_HTTP)
add("flood-after-the-body", floods(reply(good("after the body")), b"more and more "), (Reason.KEPT, Reason.BAD_HTTP))
add("flood-newlines", floods(b"", b"\r\n"), (Reason.BAD_HTTP, Reason.TIMEOUT))
add("flood-nothing", floods(CHUNKED, b"\r\n"), Reason.BAD_HTTP)


# -- what is not HTTP

for name, sent in {
    "http-0.9": good("http-0.9"),
    "http-2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    "ssh": b"SSH-2.0-OpenSSH_9.2p1\r\n",
    "smtp": b"220 mail.bad.test ESMTP\r\n",
    "ftp": b"220-welcome\r\n220 ready\r\n",
    "redis": b"-ERR unknown command 'GET'\r\n",
    "tls-alert": b"\x15\x03\x01\0\x02\x02\x46",
    "null-bytes": b"\0" * 5000,
    "noise": random.Random(1).randbytes(5000),
    "status-word": b"HTTP/1.1 OK\r\n\r\n" + good("status word"),
    "status-99999": b"HTTP/1.1 99999 Big\r\n\r\n" + good("status 99999"),
    "status-negative": b"HTTP/1.1 -1 Minus\r\n\r\n" + good("status negative"),
    "encoding-null": OK + b"Content-Encoding: \xff\xfe, gzip\0\r\n\r\n" + good("encoding null"),
    "header-null": OK + b"X: a\0b\r\n\r\n" + good("header null"),
    "length-twice": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n" + good("length twice"),
    "chunk-garbage": CHUNKED + b"zz\r\nbody\r\n0\r\n\r\n",
    "chunk-negative": CHUNKED + b"-4\r\nbody\r\n0\r\n\r\n",
    "chunk-overflow": CHUNKED + b"f" * 30 + b"\r\nbody",
    "chunk-without-end": CHUNKED + b"4\r\nbodyX0\r\n\r\n",
}.items():
    add(name, sent, Reason.BAD_HTTP)
add("300-headers", OK + b"X-Header: y\r\n" * 300 + b"\r\n" + good("300 headers"), Reason.BAD_HTTP)
# what browsers read all the same: what is no header is passed over, what is no length is none
for name, sent in {
    "http-9.9": b"HTTP/9.9 200 OK\r\n\r\n" + good("http-9.9"),
    "header-without-colon": OK + b"no colon here\r\n\r\n" + good("colon"),
    "header-without-name": OK + b": value\r\n\r\n" + good("empty name"),
    "length-garbage": OK + b"Content-Length: 12abc\r\n\r\n" + good("length garbage"),
    "length-negative": OK + b"Content-Length: -4\r\n\r\n" + good("length negative"),
    "length-overflow": OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + good("length overflow"),
    "reason-of-noise": b"HTTP/1.1 200 \xff\xfe\r\n\r\n" + good("reason"),
    "coding-unknown": OK + b"Transfer-Encoding: what, ever\r\n\r\n" + good("what coding"),
    "coding-gzip": OK + b"Transfer-Encoding: gzip\r\n\r\n" + good("no gzip"),
    "cookie-of-noise": OK + b"Set-Cookie: =;=\xff; expires=never; Max-Age=1e99\r\n\r\n" + good("cookie"),
    "disposition-of-noise": OK + b"Content-Disposition: inline; filename*=%ff''\xff; =\r\n\r\n" + good("name"),
    "type-of-noise": b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe;=;;charset=\xe9\r\n\r\n" + good("type"),
    "length-and-chunked": OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(good("both"), b""),
}.items():
    add(name, sent, Reason.KEPT)
add("two-answers", reply(good("two-answers")) + reply(good("smuggled")), Reason.KEPT)
add("bare-line-feeds", (OK + b"\r\n").replace(b"\r", b"") + good("bare-line-feeds"), Reason.KEPT)
add("bare-carriage-returns", (OK + b"\r\n").replace(b"\n", b"") + good("bare-carriage-returns"), Reason.CONNECTION)
add("length-too-long", OK + b"Content-Length: 90000\r\n\r\n" + good("too long"), Reason.CONNECTION)
add("length-too-short", OK + b"Content-Length: 0\r\n\r\n" + good("too short"), NO_TEXT)


# -- statuses


def status(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {line}", *headers, "Content-Length: 0", "", ""]).encode("latin-1")


for name, sent in {
    "status-101": status("101 Switching", "Upgrade: websocket", "Connection: upgrade") + b"\0\0",
    "status-000": status("000 Nought"),
    "status-304": status("304 Not Modified"),
    "status-403": status("403 No"),
    "status-500": status("500 Oh"),
    "status-999": status("999 Request denied"),
    "retry-after-a-century": status("429 No", "Retry-After: 999999999"),
    "retry-after-superscript": status("429 No", "Retry-After: \xb2"),
    "retry-after-5000-digits": status("503 No", "Retry-After: " + "9" * 5000),
    "retry-after-garbage": status("503 No", "Retry-After: \xff, 99 Foo 99999"),
}.items():
    add(name, sent, Reason.HTTP_ERROR)
add("status-204", b"HTTP/1.1 204 No Content\r\n\r\n", NO_TEXT)


ERROR = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n"
add("endless-404", floods(ERROR, b"not found "), Reason.TOO_BIG)


# -- types and sizes


def typed(content_type: str, body: bytes, *headers: str) -> bytes:
    return reply(body, *headers).replace(b"text/html; charset=utf-8", content_type.encode())


add("image", typed("image/png", b"\x89PNG" * 1000), Reason.NOT_TEXT)
add("endless-video", floods(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", b"\0" * 1000), Reason.NOT_TEXT)
add("attachment", reply(good("attachment"), "Content-Disposition: attachment; filename=../../x"), Reason.NOT_TEXT)
add("octet-stream", typed("application/octet-stream", good("octets")), Reason.NOT_TEXT)
add("pdf", typed("application/pdf", b"%PDF-1.4"), NO_TEXT)
add("word", typed("application/msword", b"\xd0\xcf\x11\xe0"), Reason.NOT_TEXT)
add("announces-a-terabyte", OK + b"Content-Length: 1000000000000\r\n\r\n", Reason.TOO_BIG)
add("noise-as-html", reply(random.Random(2).randbytes(20_000)), NO_TEXT)
add("wrong-charset", typed("text/html; charset=utf-16", good("wrong-charset")), Reason.KEPT)
add("charset-of-no-use", typed("text/html; charset=../../etc/passwd", good("charset-of-no-use")), Reason.KEPT)
add("other-language", reply(good("other language"), "Content-Language: de"), Reason.KEPT)  # the text decides


# -- content encodings


def encoded(coding: str, body: bytes) -> bytes:
    return reply(body, f"Content-Encoding: {coding}")


SQUEEZED = gzip.compress(BOMB)
add("bomb-gzip", encoded("gzip", SQUEEZED), Reason.TOO_BIG)
add("bomb-deflate", encoded("deflate", zlib.compress(BOMB)), Reason.TOO_BIG)
add("bomb-br", encoded("br", brotli.compress(BOMB, quality=5)), Reason.TOO_BIG)
add("bomb-zstd", encoded("zstd", zstd.compress(BOMB)), Reason.TOO_BIG)
add("bomb-in-a-bomb", encoded("gzip, gzip", gzip.compress(SQUEEZED)), Reason.TOO_BIG)
add("bomb-by-ratio", encoded("gzip", gzip.compress(b"<p>" + b" " * 2_000_000)), Reason.TOO_BIG)
add("bomb-404", encoded("gzip", SQUEEZED).replace(b"200 OK", b"404 No", 1), Reason.TOO_BIG)
add("encoded-three-times", encoded("gzip, gzip, gzip", gzip.compress(good("x"))), Reason.UNDECODABLE)
add("encoded-a-hundred-times", encoded(",".join(["gzip"] * 100), good("x")), Reason.UNDECODABLE)
add("encoded-by-compress", encoded("compress", b"\x1f\x9d" + bytes(500)), Reason.UNDECODABLE)
add("encoded-twice", encoded("gzip, br", brotli.compress(gzip.compress(good("encoded-twice")))), Reason.KEPT)
add("not-encoded-at-all", encoded("gzip", good("not-encoded-at-all")), Reason.KEPT)
add("encoding-of-no-use", encoded("utf-8", good("encoding-of-no-use")), Reason.KEPT)
add("gzip-with-rubbish", encoded("gzip", gzip.compress(good("rubbish behind")) + b"\xff" * 999), Reason.KEPT)
add("gzip-of-noise", encoded("gzip", gzip.compress(random.Random(3).randbytes(9000))), NO_TEXT)
add("zstd-with-a-window-of-2-gb", encoded("zstd", b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\0\0" * 50), NO_TEXT)


async def slow_bomb(visit: Visit) -> None:
    """A bomb whose pieces are small."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    await visit.send(OK + b"Content-Encoding: gzip\r\n\r\n")
    for _ in range(1000):
        await visit.send(packer.compress(b" " * 100_000) + packer.flush(zlib.Z_SYNC_FLUSH))
        await asyncio.sleep(0.01)


add("bomb-in-pieces", slow_bomb, Reason.TOO_BIG)


# -- robots.txt


def robots(name: str, serve: bytes | Serve, reason: Reason) -> None:
    serve = answer(serve) if isinstance(serve, bytes) else serve
    add(f"robots-{name}", reply(good(f"robots {name}")), reason, robots=serve)


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
robots("500", b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", Reason.ROBOTS_UNREACHABLE)
robots("noise", PLAIN + b"\r\n" + random.Random(4).randbytes(30_000), Reason.KEPT)
robots("html", reply(good("robots as html")), Reason.KEPT)
robots("not-http", b"SSH-2.0-OpenSSH_9.2p1\r\n", Reason.ROBOTS_UNREACHABLE)
robots("reset", answer(PLAIN + b"Content-Length: 900\r\n\r\nUser-agent", Visit.reset), Reason.ROBOTS_UNREACHABLE)
robots("flood", floods(PLAIN + b"\r\n", b"User-agent: *\nDisallow: /x\n"), Reason.ROBOTS_UNREACHABLE)
robots("bomb", encoded("gzip", SQUEEZED), Reason.ROBOTS_UNREACHABLE)
robots("forbids", PLAIN + b"\r\nUser-agent: *\nDisallow: /", Reason.ROBOTS_FORBIDDEN)
robots("delay-of-ages", PLAIN + b"\r\nUser-agent: *\nCrawl-delay: 999999999999", Reason.CRAWL_DELAY)
robots("rate-of-ages", PLAIN + b"\r\nUser-agent: *\nRequest-rate: 1/" + b"9" * 400, Reason.CRAWL_DELAY)
robots("delay-of-nan", PLAIN + b"\r\nUser-agent: *\nCrawl-delay: nan\nRequest-rate: 0/0", Reason.KEPT)
robots("many-rules", PLAIN + b"\r\nUser-agent: *\n" + b"Disallow: /*a*b*c*d*$\n" * 20_000, Reason.ROBOTS_FORBIDDEN)
robots("loop", status("302 Found", "Location: /robots.txt"), Reason.KEPT)
robots("to-a-mail-server", status("302 Found", "Location: http://robots-to-a-mail-server.bad.test:25/"), Reason.KEPT)
robots("to-the-metadata", status("302 Found", "Location: http://169.254.169.254/"), Reason.ROBOTS_UNREACHABLE)
robots("to-a-file", status("302 Found", "Location: file:///etc/passwd"), Reason.KEPT)
