"""``scrapy page``: one page, from a file or from a loopback server, as the chain sees it."""

from __future__ import annotations

import json
import re
import socket

import made_documents as made
import pytest
from conftest import DEFAULTS, NETWORK, document, flags, paragraphs, scrapy

from spiderling.base.reasons import Reason
from webs.web import WebResponse, html, plain, redirect

ENGLISH = "The house that stood at the end of the road was old, and nobody in the village knew who had built it there. "
SITE_FILES = ("/robots.txt", "/.well-known/tdmrep.json", "/ai.txt")
WEB = {
    "a.test": {
        "/robots.txt": plain("User-agent: *\nDisallow: /private"),
        "/": html(document("page", "/b", "http://b.test/")),
        "/private": html(document("private")),
        "/old": redirect("http://b.test/new"),
        "/reserved": html(document("reserved").replace("<head>", '<head><meta name="tdm-reservation" content="1">')),
        "/image": WebResponse(200, {"Content-Type": "image/png"}, b"\x89PNG"),
        "/latin": WebResponse(200, {"Content-Type": "text/html; charset=windows-1250"}, document(1).encode("cp1250")),
    },
    "b.test": {"/new": html(document("moved"))},
    "c.test": {
        "/robots.txt": plain("User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nContent-Usage: /no train-ai=n"),
        "/.well-known/tdmrep.json": plain('[{"location": "/yes", "tdm-reservation": 0}]'),
        "/no": html(document("no")),
        "/yes": WebResponse(200, {"X-Robots-Tag": "noarchive"}, document("yes").encode()),
    },
}


def show(name: str, *arguments: str, **process):
    return scrapy("page", name, "-a", "lang=cs", *arguments, **process)


@pytest.fixture
def fetched(server):
    """Runs ``scrapy page URL`` on the loopback web."""
    settings = {"ALLOW_NETWORKS": NETWORK, "HOSTS": server.hosts_option, "HOST_INTERVAL_S": 0}
    arguments = flags({f"SPIDERLING_{name}": value for name, value in settings.items()})
    return lambda url, *more: show(url, *arguments, *more)


def rows(ended) -> dict[str, str]:
    """The head and the verdict by name."""
    return {line[:12].strip(): line[12:] for line in ended.out.splitlines()}


def test_page_from_a_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(document(1, "/a", "http://b.test/"), encoding="cp1250")
    ended = show(str(path))
    head = rows(ended)
    assert ended.code == 0
    assert ended.log == ""
    assert re.fullmatch(r"declared -, detected (windows-|cp)1250", head["encoding"])
    assert head["size"].startswith(f"{path.stat().st_size:,} bytes, ")
    assert head["title"] == "Strana 1"
    assert head["language"] == "cs (cs 1.00), known share 1.00"
    assert head["links"] == "2, 2 in bad blocks, 0 nofollow"
    assert head["clean text"].endswith("words, 2 of 4 paragraphs")
    assert head["verdict"] == "kept (unless it is a duplicate)"
    good = [line for line in ended.out.splitlines() if line.startswith("good")]
    assert [line[15:27].split() for line in good] == [["cs", "yes"], ["cs", "yes"]]
    assert good[0][27:].startswith("Toto je zpráva")
    assert {len(line) for line in good} == {100}, "cut to the terminal"
    assert all(line.endswith("…") for line in good)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (b"", Reason.BOILERPLATE_ONLY),
        (b"<p>Kontakt</p>", Reason.BOILERPLATE_ONLY),
        (made.docx([""]), Reason.SCANNED),
        (made.docx(["Kontakt"]), Reason.BOILERPLATE_ONLY),
        (f"<p>{ENGLISH * 5}</p>".encode(), Reason.WRONG_LANGUAGE),
        (f"<p>{paragraphs(0, 1, 1)[0]}</p>".encode(), Reason.BAD_QUALITY),
    ],
)
def test_verdicts_on_standard_input(body, verdict):
    ended = show("-", stdin=body)
    assert rows(ended)["verdict"].startswith(f"{verdict.value}: ")
    assert ended.code == 0


def test_a_page_cannot_command_the_terminal():
    ended = show("-", stdin="<title>\x1b[2Jevil\x07\u202e</title><p>\x9b31m</p>".encode())
    assert "evil" in rows(ended)["title"]
    assert all(char.isprintable() or char == "\n" for char in ended.out)


def test_page_from_the_web(fetched, server):
    ended = fetched("http://a.test/")
    assert rows(ended)["url"] == "http://a.test/"
    assert rows(ended)["encoding"] == "declared utf-8, detected utf-8"
    assert rows(ended)["verdict"].startswith("kept")
    asked = [(entry.host, entry.path) for entry in server.log_entries]
    assert asked[-4:] == [("a.test", path) for path in (*SITE_FILES, "/")], "those first, links not followed"


def test_declared_encoding_comes_from_the_header(fetched):
    encoding = rows(fetched("http://a.test/latin"))["encoding"]
    assert re.fullmatch(r"declared (windows-|cp)1250, detected (windows-|cp)1250", encoding)


def test_redirect_is_followed_politely(fetched, server):
    assert rows(fetched("http://a.test/old"))["url"] == "http://b.test/new"
    assert [entry.path for entry in server.log_entries if entry.host == "b.test"] == [*SITE_FILES, "/new"]


@pytest.mark.slow
def test_without_a_network_it_says_what_to_check():
    settings = ("ALLOW_NETWORKS=127.84.0.0/16", "NAMESERVERS=127.84.1.9:9", "OFFLINE_WAIT_S=1")
    ended = show("http://a.test/", *(part for setting in settings for part in ("-s", f"SPIDERLING_{setting}")))
    assert ended.refusal == (
        "http://a.test/ gave no page: no such name is known, or nothing answers; check the address and the network."
    )


def test_a_server_that_never_answers_is_named_in_a_project_without_the_add_on(tmp_path, monkeypatch):
    """It asked as stock Scrapy does there, for longer and without a word."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own\n")
    (tmp_path / "own.py").write_text("COMMANDS_MODULE = 'spiderling.commands'\n")
    constants = {"spiderling.engine.download_handler.FIRST_BYTE_TIMEOUT_S": 0.5}
    monkeypatch.setenv("CONSTANTS", json.dumps(constants))
    with socket.create_server(("127.84.13.99", 0)) as silent:
        port = silent.getsockname()[1]
        limits = {"OFFLINE_WAIT_S": 1, "HOSTS": "silent.test=127.84.13.99", "PORTS": "all"}
        given = flags(DEFAULTS | {f"SPIDERLING_{name}": value for name, value in limits.items()})
        ended = show(f"https://silent.test:{port}", *given, cwd=tmp_path)
    assert ended.log.startswith(f"The network seems to be away: 1 of 1 hosts fail: timeout (silent.test:{port})")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("private", "robots.txt forbids it (robots-forbidden); the last answer was 200 from http://a.test/robots.txt."),
        (
            "none",
            "the server answered with an error status (http-error); the last answer was 404 from http://a.test/none.",
        ),
        ("image", "the content type is not one that holds running text (not-text); the last answer was 200 from"),
    ],
)
def test_url_without_a_page(fetched, server, path, why):
    assert fetched(f"http://a.test/{path}").refusal.startswith(f"http://a.test/{path} gave no page: {why}")
    assert ("/private" in [entry.path for entry in server.log_entries]) is False


def test_address_is_judged_and_a_contact_is_required(server):
    hosts = ("-s", f"SPIDERLING_HOSTS={server.hosts_option}")
    assert show("http://a.test/", *hosts).refusal.startswith("no contact is given")
    contact = ("-s", "SPIDERLING_CONTACT=test@corpus.internal")
    assert "(address-forbidden)" in show("http://a.test/", *hosts, *contact).refusal


@pytest.mark.parametrize("setting", ["EXTENSIONS", "DOWNLOADER_MIDDLEWARES"])
def test_a_component_that_does_not_exist_is_told_in_a_sentence(server, setting):
    hosts = ("-s", "SPIDERLING_ALLOW_NETWORKS=127.84.0.0/16", "-s", f"SPIDERLING_HOSTS={server.hosts_option}")
    ended = show("http://a.test/", *hosts, "-s", f'{setting}={{"nosuch.Component": 1}}')
    assert ended.refusal == "the command could not begin; -s LOG_ENABLED=1 shows why."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no.html", "-a", "lang=cs"), "no.html cannot be read: No such file or directory; give a file, - for"),
        ((".", "-a", "lang=cs"), ". cannot be read: Is a directory;"),
        (("ftp://a.test/", "-a", "lang=cs"), "ftp://a.test/ is no http(s) URL that can be fetched;"),
        (("-",), "no language is given: say -a lang=cs"),
        (("http://a.test/", "-a", "lang=xx"), "there is no model for the language 'xx'."),
        (("-", "-a", "langs=cs"), "the spider page has no argument 'langs'; did you mean -a lang=?"),
    ],
)
def test_bad_input(arguments, message):
    assert scrapy("page", *arguments).refusal.startswith(message)


def test_usage():
    assert "say scrapy page URL|FILE|- -a lang=LANG" in scrapy("page").log
    assert "write arguments as -a NAME=VALUE" in scrapy("page", "-", "-a", "cs").log
    assert "Example: scrapy page https://" in " ".join(scrapy("page", "--help").out.split())


def test_signals_of_the_site_the_headers_and_the_page_are_shown(fetched):
    head = rows(fetched("http://c.test/yes"))
    assert (head["opt-outs"], head["verdict"]) == (
        "ai-agents:GPTBot, tdm-file:0, noarchive",
        "kept (unless it is a duplicate)",
    )
    head = rows(fetched("http://a.test/reserved"))
    assert (head["opt-outs"], head["verdict"]) == ("tdm:1", "opted-out: tdm:1")
    assert fetched("http://c.test/no").refusal.startswith(
        "http://c.test/no gave no page: the site's robots.txt, tdmrep.json or ai.txt refuses this use of it"
    )


def test_signals_of_a_file_are_shown(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(document(1).replace("<head>", '<head><meta name="robots" content="noindex, noai">'))
    head = rows(show(str(path)))
    assert (head["opt-outs"], head["verdict"]) == ("noindex, noai", "noindex: noindex")
    head = rows(show(str(path), "-s", "SPIDERLING_OPTOUTS=noindex=record", "-s", "SPIDERLING_PURPOSE=search"))
    assert head["verdict"] == "kept (unless it is a duplicate)"
