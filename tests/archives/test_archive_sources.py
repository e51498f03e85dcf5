"""The archives of -a warc=: what is named, and how their bytes are read from files and from servers."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from made_warcs import FORMS, record

from spiderling.archives.records import RecordReader
from spiderling.archives.sources import BEGIN, ArchiveUnread, FileRaw, UrlRaw, archives_of
from spiderling.base.addresses import AddressPolicy
from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.frontier import intervals


@pytest.fixture
def directory(tmp_path):
    for name in ("b.warc.gz", "a.warc", "c.warc.zst", "notes.md"):
        (tmp_path / name).touch()
    return tmp_path


def test_files_globs_directories_urls_and_lists(directory, monkeypatch):
    a, b, c = (str(directory / name) for name in ("a.warc", "b.warc.gz", "c.warc.zst"))
    assert archives_of(f"{b}, {a},") == [b, a]
    assert archives_of(f"{directory}/*.gz,{directory}") == [b, a, c]
    assert archives_of("https://x.test/1.warc.gz,http://x.test/2") == ["https://x.test/1.warc.gz", "http://x.test/2"]
    (directory / "all.paths").write_text(f"# newest first\n{c}\n\nhttps://x.test/1.warc.gz\n{directory}/a.w*\n")
    assert archives_of(f"{directory}/all.paths") == [c, "https://x.test/1.warc.gz", a]
    monkeypatch.chdir(directory)
    assert archives_of("a.warc,./a.warc") == [a], "names do not depend on where one stands"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no archive is given"),
        ("none.warc", "no file is or matches 'none.warc'"),
        ("*.arc", r"no file is or matches '\*.arc'"),
        ("empty", "there is no .warc, .warc.gz, .warc.zst in the directory empty"),
        ("none.txt", "the list none.txt cannot be read"),
        ("idle.txt", "no archive is given"),
        ("/dev/null", "is no file that may be read"),
    ],
)
def test_what_names_no_archive_is_said_with_an_example(directory, monkeypatch, text, message):
    monkeypatch.chdir(directory)
    (directory / "empty").mkdir()
    (directory / "idle.txt").write_text("# none yet\n")
    with pytest.raises(BadInput, match=message):
        archives_of(text)


def test_a_file_without_permission_is_named(directory, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("b.warc.gz"))
    with pytest.raises(BadInput, match=r"b\.warc\.gz is no file that may be read; mend its permissions"):
        archives_of(str(directory))


# -- archives that are streamed from a server, which may break off, be busy, know no ranges, or be gone


ADDRESS, OTHER = "127.84.6.1", "127.85.6.1"
DATA = FORMS["gzip by record"](
    [record(f"http://a.test/{n}", bytes(f"<p>{n * 7919}</p>" * 999, "ascii")) for n in range(40)]
)
OPTIONS = Options(lang="cs", contact="me@example.org", retries=2)
CLIENT = (OPTIONS, AddressPolicy("127.84.0.0/16", public=False).allows)  # how URLs are asked for


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(intervals, "RETRY_DELAY_S", 0.01)
    monkeypatch.setattr(intervals, "MAX_PAUSE_S", 0.05)


@contextmanager
def server(has_ranges=True, most=10**9, answers=(), etag='"1"', retry_after="0"):
    """Serves DATA; a connection ends after *most* bytes; *answers*: statuses of the first requests."""
    statuses, asked = iter(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(dict(self.headers))
            status = next(statuses, 200)
            start, sent = 0, self.headers.get("Range")
            if status == 200 and sent and has_ranges and self.headers.get("If-Range", etag) == etag:
                status, start = 206, int(sent.removeprefix("bytes=").rstrip("-"))
            self.send_response(status)
            if status >= 300:
                self.send_header("Retry-After", retry_after)
                self.send_header("Location", f"http://{OTHER}/")
                self.end_headers()
                return
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{len(DATA) - 1}/{len(DATA)}")
            self.send_header("ETag", etag)
            self.send_header("Content-Length", str(len(DATA) - start))
            self.end_headers()
            self.wfile.write(DATA[start : start + most])

        def log_message(self, *args):
            return

    running = ThreadingHTTPServer((ADDRESS, 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://{ADDRESS}:{running.server_port}/a.warc.gz", asked
    finally:
        running.shutdown()
        running.server_close()


def everything(raw) -> bytes:
    return b"".join(iter(lambda: raw.read(1000), b""))


def test_a_connection_that_breaks_off_is_gone_on_with_where_it_was():
    with server(most=len(DATA) // 4 + 1) as (url, asked):
        raw = UrlRaw(url, *CLIENT)
        assert everything(raw) == DATA
        assert raw.size == len(DATA)
    assert [headers.get("Range") for headers in asked] == [
        None, *(f"bytes={number * (len(DATA) // 4 + 1)}-" for number in (1, 2, 3)),
    ]  # fmt: skip
    assert {headers["User-Agent"] for headers in asked} == {"spiderling (+me@example.org)"}
    assert [headers.get("If-Range") for headers in asked] == [None, '"1"', '"1"', '"1"']


def test_without_ranges_it_is_read_from_the_beginning_and_what_is_known_passed_over():
    with server(has_ranges=False) as (url, asked):
        raw = UrlRaw(url, *CLIENT)
        assert raw.read(10) == DATA[:10]
        raw.close()  # as a connection that broke off
        assert everything(raw) == DATA[10:]
        raw.seek(100)
        assert raw.read(5) == DATA[100:105]
    assert len(asked) == 3


@pytest.mark.parametrize("retry_after", ["0", "\xb2", "9" * 5000, "soon", ""])
def test_a_busy_server_is_waited_for_also_if_it_names_no_number(retry_after):
    """To str.isdigit a superscript two is a digit; int() refuses it, and numbers of thousands of digits."""
    with server(answers=(503, 429), retry_after=retry_after) as (url, asked):
        assert everything(UrlRaw(url, *CLIENT)) == DATA
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("options", "message", "requests"),
    [
        ({"answers": (404,)}, "404", 1),
        ({"answers": (503,) * 9}, "503", 3),
        ({"most": 0}, "cannot be read", 3),
        ({"answers": (302,)}, f"is at {OTHER}; only networks of SPIDERLING_ALLOW_NETWORKS", 1),
    ],
    ids=["gone", "always busy", "always broken off", "a redirect into another network"],
)
def test_when_to_give_up(options, message, requests):
    with server(**options) as (url, asked):
        with pytest.raises(ArchiveUnread, match=message):
            UrlRaw(url, *CLIENT).read(10)
        assert len(asked) == requests


def test_a_private_address_is_not_connected_to():
    with pytest.raises(ArchiveUnread, match=r"is at 127\.85\.6\.1; only networks"):
        UrlRaw(f"http://{OTHER}:1/", *CLIENT).read(1)


def test_reading_begins_at_the_last_place_that_is_known():
    reader = RecordReader(Options(lang="cs"), frozenset(), lambda target: None)
    with server() as (url, asked):
        whole = list(reader.records(UrlRaw(url, *CLIENT), BEGIN))
        assert len(whole) == 40 and len(asked) == 1
        last = whole[29].position
        rest = [entry for entry in reader.records(UrlRaw(url, *CLIENT), last) if entry.position > last]
    assert [entry.url for entry in rest] == [f"http://a.test/{n}" for n in range(30, 40)]
    assert asked[-1]["Range"] == f"bytes={last.member}-"


def test_a_file_that_is_gone_or_no_file_is_named(tmp_path):
    with pytest.raises(ArchiveUnread, match=r"none\.warc cannot be read: No such file"):
        FileRaw(str(tmp_path / "none.warc"))
    with pytest.raises(ArchiveUnread, match="/proc/self/mem cannot be read"):
        FileRaw("/proc/self/mem").read(10)
