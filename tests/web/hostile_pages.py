"""Cases of pages, redirects and traps: links that lead where nobody should go, too many, without end; loops; TLS."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from conftest import document
from handled import server_context
from hostile import Visit, add, rendered, reply, site

from spiderling.base.reasons import Reason
from webs.synthetic import read_words
from webs.traps import TrapWeb

# -- links: the page is kept, its links are refused or end

FORBIDDEN = (
    "http://10.0.0.1/", "http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.01/",
    "http://[::ffff:10.0.0.1]/", "http://[fd00:ec2::254]/", "http://169.254.169.254/latest/meta-data/",
    "http://localhost/", "http://0/", "http://１９２.168.0.1/", "http://[64:ff9b::10.0.0.1]/", "http://100.100.100.200/",
)  # fmt: skip
"""Links to addresses that are not to be fetched, however they are written; the same host twice is one name."""


def linking(name: str, *links: str, mentions: dict[Reason, int] | None = None, **ends: Reason) -> None:
    """A page that is kept, with *links*."""
    page = document(name, *links).encode()
    add(name, site({"/": page}), ends={"/": Reason.KEPT, **ends}, mentions=mentions or {})


linking("links-to-forbidden-addresses", *FORBIDDEN, **dict.fromkeys(
    ["http://10.0.0.1/", "http://127.0.0.1/", "http://[::ffff:a00:1]/", "http://[fd00:ec2::254]/",
     "http://169.254.169.254/latest/meta-data/", "http://localhost/", "http://0.0.0.0/", "http://192.168.0.1/",
     "http://[64:ff9b::a00:1]/", "http://100.100.100.200/"],
    Reason.ADDRESS_FORBIDDEN,
), mentions={Reason.SEEN: 3})  # fmt: skip
linking("links-to-files", "file:///etc/passwd", "data:text/html,<p>x", "javascript:alert(1)", "ftp://x.bad.test/",
        "gopher://x.bad.test:70/", "view-source:http://x.bad.test/", "blob:http://x.bad.test/1")  # fmt: skip
linking(
    "links-to-ports", *(f"http://x{port}.bad.test:{port}/" for port in (1, 22, 25, 110, 6379, 9200, 11211, 65535)),
    mentions={Reason.PORT_FORBIDDEN: 8},
)  # fmt: skip
linking("links-with-users", "http://admin@x.bad.test/", "http://a:b@x.bad.test/", "http://good0.test@x.bad.test/",
        mentions={Reason.BAD_URL: 3})  # fmt: skip
linking("links-to-long-hosts", "http://" + "a" * 64 + ".test/", "http://" + "a." * 130 + "test/",
        "http://" + "a" * 100_000 + "/", mentions={Reason.BAD_URL: 3})  # fmt: skip
linking("links-of-a-megabyte", "/" + "a" * 1_000_000, "/?" + "b=c&" * 250_000, "/" + "d/" * 500_000,
        mentions={Reason.TRAP: 3})  # fmt: skip
add("links-by-the-100000", site({"/": document("links-by-the-100000").encode()
    + b"".join(b"<a href='/%d.zip'>a</a>" % n for n in range(100_000))}),
    Reason.KEPT, mentions={Reason.TOO_MANY_LINKS: 95_000, Reason.OUT_OF_SCOPE: 5000})  # fmt: skip
linking("links-of-rubbish", "http://[::1", "http://%00/", "//", "http:///", "http://a b/", "?" * 400, "\x00\xff",
        "http://a:99999/", "http://a..b/", "http://*.*/", mentions={Reason.BAD_URL: 2},
        **{"/?" + "?" * 399: Reason.HTTP_ERROR})  # fmt: skip

# -- pages that hurt

POOR = (Reason.BOILERPLATE_ONLY, Reason.UNDECODABLE, Reason.WRONG_LANGUAGE, Reason.BAD_QUALITY)
for name, body, cut in (
    ("page-of-nested-tags", b"<div><b>x" * 50_000, 0),
    ("page-of-one-word", b"<p>" + b"a" * 900_000, 0),
    ("page-of-null-bytes", b"\0" * 900_000, 0),
    ("page-of-entities", b"<p>" + b"&amp;&#x17e;" * 80_000, 0),
    ("page-without-end-tags", b"<p><a href=/x" * 60_000, 54_999),
):
    add(name, site({"/": body}), POOR, mentions={Reason.TOO_MANY_LINKS: cut})
add("page-of-cookies", reply(document("page-of-cookies"), *["Set-Cookie: a=b"] * 200), Reason.KEPT)

# -- redirects


def to(location: str, status: int = 302, *headers: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in (f"Location: {location}", *headers, "Content-Length: 0"))
    return f"HTTP/1.1 {status} Found\r\n{lines}\r\n".encode("latin-1")


add("redirect-to-itself", site({"/": to("/")}), Reason.REDIRECT_LOOP)
add("redirect-in-a-circle", site({"/": to("/a"), "/a": to("/b"), "/b": to("/")}),
    ends=dict.fromkeys(["/", "/a", "/b"], Reason.REDIRECTED))  # fmt: skip
add("redirect-without-end", site(lambda path: to(f"/{int(path[1:] or 0) + 1}")),
    ends={"/": Reason.REDIRECTED, "/5": Reason.REDIRECT_LOOP})  # fmt: skip
add("redirect-over-hosts", site({"/": to("http://redirect-in-a-circle.bad.test/")}), Reason.REDIRECTED)
add("redirect-to-cookies", site({"/": to("/", 302, "Set-Cookie: seen=1; Path=/")}), Reason.REDIRECT_LOOP)


async def wants_its_cookie(visit: Visit) -> None:
    """Over ``/set``, which sets a cookie, to the page; with a spelling in Latin-1."""
    if b"\r\nCookie: way=1\r\n" in visit.head:
        await visit.send(to("/caf\xe9") if visit.path == "/" else reply(document("behind a cookie")))
    else:
        await visit.send(to("/", 302, "Set-Cookie: way=1; Path=/") if visit.path == "/set" else to("/set"))


add("redirect-over-cookies", wants_its_cookie, seeds=("/",), max_requests=7,
    ends={"/set": Reason.REDIRECTED, "/caf%E9": Reason.KEPT})  # fmt: skip
add("refresh-by-header", site({"/": reply("<p>x", "Refresh: 0; url=/next"), "/next": reply(document("refreshed"))}),
    ends={"/": Reason.BOILERPLATE_ONLY, "/next": Reason.KEPT})  # fmt: skip
XML = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<?xml version='1.0'?>"
XHTML = document("xhtml").replace("<html", "<html xmlns='http://www.w3.org/1999/xhtml'", 1).encode()
add("xml-that-is-xhtml", XML + XHTML, Reason.KEPT)
add("xml-that-is-none", XML + b"<rss><channel>" + document("feed").encode(), Reason.NOT_TEXT)
add("redirect-nowhere", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", Reason.HTTP_ERROR)
add("redirect-to-rubbish", site({"/": to("http://[::1\xff")}), (Reason.HTTP_ERROR, Reason.REDIRECTED))
add("redirect-to-60-kb", site({"/": to("/" + "a" * 60_000)}), Reason.REDIRECTED, mentions={Reason.TRAP: 1})
add("redirect-to-a-megabyte", site({"/": to("/" + "a" * 1_000_000)}), Reason.BAD_HTTP)
add("redirect-by-header-injection", site({"/": to("/a%0d%0aSet-Cookie:%20x=y")}),
    ends={"/": Reason.REDIRECTED, "/a%0d%0aSet-Cookie:%20x=y": Reason.HTTP_ERROR})  # fmt: skip
for name, location, mention in (
    ("file", "file:///etc/passwd", Reason.BAD_URL),
    ("data", "data:text/html,<p>x", Reason.BAD_URL),
    ("a-mail-server", "http://redirect-to-a-mail-server.bad.test:25/", Reason.PORT_FORBIDDEN),
    ("a-user", "http://root@redirect-to-a-user.bad.test/", Reason.BAD_URL),
):
    add(f"redirect-to-{name}", site({"/": to(location)}), Reason.REDIRECTED, mentions={mention: 1})
for number, (location, target) in enumerate({
    "http://10.1.1.1/": "http://10.1.1.1/",
    "http://2130706434/": "http://127.0.0.2/",
    "http://0177.0.0.3/": "http://127.0.0.3/",
    "http://0x7f000004/": "http://127.0.0.4/",
    "http://[::ffff:127.0.0.5]/": "http://[::ffff:7f00:5]/",
    "http://169.254.169.253/": "http://169.254.169.253/",
}.items()):  # fmt: skip
    add(f"redirect-to-forbidden-address-{number}", site({"/": to(location)}),
        ends={"/": Reason.REDIRECTED, target: Reason.ADDRESS_FORBIDDEN})  # fmt: skip


# -- TLS


def context(**made: Any) -> ssl.SSLContext:
    with tempfile.TemporaryDirectory() as directory:
        return server_context(Path(directory), **made)


CERTIFICATES = {
    "tls-self-signed": {"names": ("*.bad.test",)},
    "tls-expired": {"names": ("*.bad.test",), "issuer": "CA", "days": (-20, -10)},
    "tls-not-yet-valid": {"names": ("*.bad.test",), "issuer": "CA", "days": (10, 20)},
    "tls-all-wrong": {"days": (-20, -10)},
    "tls-unknown-issuer": {"names": ("*.bad.test",), "issuer": "CA"},
}
"""Case -> how its certificate is made."""
for name, made in CERTIFICATES.items():
    add(name, reply(document(name)), Reason.KEPT, scheme="https", tls=partial(context, **made))


async def not_tls(visit: Visit) -> None:
    await visit.reader.read(10)
    await visit.send(b"HTTP/1.1 400 This is not TLS\r\n\r\n")


async def reset_in_handshake(visit: Visit) -> None:
    await visit.reader.read(10)
    await visit.reset()


async def silent_in_handshake(visit: Visit) -> None:
    await visit.silence()


async def half_a_handshake(visit: Visit) -> None:
    await visit.reader.read(10)
    await visit.send(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + bytes(40))
    await visit.silence()


for serve in (not_tls, reset_in_handshake, silent_in_handshake, half_a_handshake):
    name = "tls-" + serve.__name__.replace("_", "-")
    add(name, serve, Reason.ROBOTS_UNREACHABLE, scheme="https", raw=True)


class FirstDecent:
    """Decent TLS for the first connection, which asks for robots.txt; after that no TLS at all."""

    def __init__(self) -> None:
        self._inner = context(names=("*.bad.test",))

    async def __call__(self, visit: Visit) -> None:
        if visit.number > 1:
            await not_tls(visit)
            return
        transport, loop = visit.writer.transport, asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        secure = await loop.start_tls(transport, protocol, self._inner, server_side=True)
        assert secure is not None
        protocol.connection_made(secure)
        await reader.readuntil(b"\r\n\r\n")
        secure.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(0.3)
        secure.close()


async def first_decent(visit: Visit) -> None:
    """Made on first use: a certificate takes a while."""
    if not _FIRST_DECENT:
        _FIRST_DECENT.append(FirstDecent())
    await _FIRST_DECENT[0](visit)


_FIRST_DECENT: list[FirstDecent] = []
add("tls-gone-after-robots", first_decent, Reason.TLS, scheme="https", raw=True)

# -- traps: sites that give addresses without end (webs/traps.py), on one server each

MODELS = Path(__file__).resolve().parents[2] / "models"
WEB = TrapWeb(read_words(MODELS, ("cs",))["cs"])


async def serve_trap(visit: Visit) -> None:
    await visit.send(rendered(WEB.respond(visit.host, visit.path)))


def trap(name: str, max_requests: int, found: Reason, **rest: object) -> None:
    """The trap *name*, which may cost so many requests, robots.txt included; *found*: how some of its URLs end."""
    hosts = tuple(glob for glob in WEB.globs() if WEB.name_of(glob) == name)
    seeds = (f"http://{WEB.host(name)}/",)
    add(f"trap-{name}", serve_trap, ends={}, seeds=seeds, hosts=hosts, max_requests=max_requests, found=found, **rest)


COPIES: dict[Reason, int | None] = {Reason.TRAP_COPY: None}
trap("calendar", 200, Reason.TRAPPED, mentions={Reason.TRAP_SECTION: None})
trap("diary", 30, Reason.SOFT_NOT_FOUND, mentions=COPIES)
trap("growing", 40, Reason.SOFT_NOT_FOUND, mentions=COPIES)
trap("looping", 10, Reason.KEPT, mentions={Reason.TRAP: 1})
trap("session", 30, Reason.KEPT)
trap("token", 80, Reason.TRAPPED)
trap("facets", 120, Reason.BAD_QUALITY, mentions={Reason.TRAP_SECTION: None})
trap("tracking", 30, Reason.KEPT)
trap("soft404", 100, Reason.SOFT_NOT_FOUND, mentions=COPIES)
trap("wild", 120, Reason.TRAPPED)
trap("mirror", 450, Reason.MIRROR)
