"""warc/: all that was fetched, as it came, in records that the common tools read; and its index."""

from __future__ import annotations

import gzip
import io
from contextlib import closing

import pytest
from conftest import NETWORK, Crawl, page, serving
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from handled import OK, PAGE, chunked, fetch, reply
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

from spiderling.base.errors import StorageError
from spiderling.base.options import Options
from spiderling.base.outcome import Exchange, Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.warc import EXCHANGE, WarcKind, records, verdict
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection
from webs.web import FixedWeb, plain, redirect

BODY = b"<p>text</p>" * 50
EXCHANGED = Exchange(
    "http://a.test/x?y=1", 1_700_000_000.25, 0.125, "127.84.8.1", ("GET", "/x?y=1", ((b"Host", b"a.test"),), b""),
    "HTTP/1.1 200 OK", ((b"Content-Type", b"text/html"), (b"content-length", b"%d" % len(BODY))), BODY,
)  # fmt: skip


def packed(*exchanges: Exchange, compression: str = "gzip", **said: object) -> bytes:
    kind = WarcKind(compression, {"operator": "me@example.org"})
    return kind.begin("x.warc.gz") + kind.pack([(exchange, said) for exchange in exchanges])


def written(tmp_path, *exchanges, **said):
    """The records of a file of *exchanges*, without its warcinfo."""
    path = tmp_path / "x.warc.gz"
    path.write_bytes(packed(*exchanges, **said))
    return list(records(path, path.stat().st_size))[1:]


def head_of(block: bytes) -> list[bytes]:
    return block.partition(b"\r\n\r\n")[0].split(b"\r\n")


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_fastwarc_reads_every_record_with_its_digest_at_its_own_offset(compression):
    data = packed(EXCHANGED, EXCHANGED._replace(url="http://b.test/", body=b"other"), compression=compression)
    found = []
    for record in FastIterator(io.BytesIO(data), parse_http=False):
        assert record.verify_block_digest()
        found.append((str(record.headers["WARC-Type"]), record.headers.get("WARC-Target-URI"), record.stream_pos))
        alone = next(iter(FastIterator(io.BytesIO(data[record.stream_pos :]))))
        assert alone.record_id == record.record_id
    three = ["response", "request", "metadata"]
    assert [name for name, _, _ in found] == ["warcinfo", *three, *three]
    assert [url for _, url, _ in found] == [None, *["http://a.test/x?y=1"] * 3, *["http://b.test/"] * 3]
    response = next(iter(FastIterator(io.BytesIO(data[found[1][2] :]))))
    assert (response.http_headers.status_code, response.reader.read()) == (200, BODY)


def test_warcio_reads_every_record_and_finds_nothing_wrong(tmp_path):
    path = tmp_path / "x.warc.gz"
    path.write_bytes(packed(EXCHANGED, EXCHANGED._replace(url="http://b.test/"), reason="kept", detail="", words=3))
    checker = Checker(type("Arguments", (), {"verbose": False, "inputs": [str(path)]}))
    checker.process_one(str(path))
    assert not checker.exit_value
    found = list(WarcioIterator(io.BytesIO(path.read_bytes())))
    # warcio reads a record's content as it goes on, so what is asked for afterwards are headers
    info, response, request, metadata, revisit = (record.rec_headers for record in found[:5])
    assert info["WARC-Filename"] == "x.warc.gz"
    assert response["WARC-Date"] == "2023-11-14T22:13:20.250000Z" and response["WARC-IP-Address"] == "127.84.8.1"
    assert request["WARC-Concurrent-To"] == metadata["WARC-Refers-To"] == response["WARC-Record-ID"]
    assert revisit["WARC-Payload-Digest"] == response["WARC-Payload-Digest"]
    assert revisit["WARC-Refers-To-Target-URI"] == "http://a.test/x?y=1"
    assert revisit["WARC-Refers-To-Date"] == response["WARC-Date"]
    assert revisit["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    texts = [record.content_stream().read() for record in WarcioIterator(io.BytesIO(path.read_bytes()))]
    assert texts[:6] == [
        texts[0], BODY, b"", b"reason: kept\r\nwords: 3\r\nfetchTimeMs: 125\r\n", b"", b"",
    ]  # fmt: skip
    assert b"operator: me@example.org\r\n" in texts[0]


def test_an_empty_body_refers_to_nothing(tmp_path):
    empty = EXCHANGED._replace(body=b"", status_line="HTTP/1.1 304 Not Modified")
    found = written(tmp_path, empty, empty)
    assert [record.headers["warc-type"] for record in found[::3]] == ["response", "response"]


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (((b"Content-LENGTH", b"5"),), b"12345", [b"Content-LENGTH: 5"]),
        (((b"Content-Length", b"9"),), b"12345", [b"X-Crawl-Content-Length: 9", b"Content-Length: 5"]),
        (
            ((b"Transfer-Encoding", b"chunked"), (b"X", b"\xe9")),
            b"12345",
            [b"X-Crawl-Transfer-Encoding: chunked", b"X: \xe9", b"Content-Length: 5"],
        ),
        (((b"Content-Encoding", b"gzip"),), b"12345", [b"Content-Encoding: gzip", b"Content-Length: 5"]),
        (((b"Content-Length", b"9"),), b"", [b"Content-Length: 9"]),  # HEAD, 304
        ((), b"", []),
    ],
)
def test_headers_are_as_received_but_true_of_the_body(tmp_path, headers, body, expected):
    response = written(tmp_path, EXCHANGED._replace(headers=headers, body=body))[0]
    assert head_of(response.block) == [b"HTTP/1.1 200 OK", *expected]
    assert response.block.endswith(b"\r\n\r\n" + body)


LINES = st.text(max_size=30)
BYTES = st.binary(max_size=30)
HEADERS = st.lists(st.tuples(BYTES.map(lambda name: name.replace(b"\n", b"")), BYTES), max_size=4)


@given(
    st.builds(
        Exchange, LINES, st.floats(0, 4e9), st.floats(0, 1e6), st.just("::1"),
        st.tuples(st.just("GET"), LINES.map(ascii), HEADERS, BYTES), LINES.map(ascii), HEADERS, st.binary(max_size=200),
    ),
    st.dictionaries(st.sampled_from(["reason", "detail", "language"]), LINES),
)  # fmt: skip
def test_whatever_a_server_says_the_records_are_whole(tmp_path_factory, exchange, said):
    response, request, metadata = written(tmp_path_factory.mktemp("any"), exchange, **said)
    assert response.block.endswith(exchange.body) and request.block.endswith(exchange.request[3])
    assert metadata.block.count(b"\r\n") == 2 + sum(text != "" for text in said.values())


def test_the_metadata_record_says_what_became_of_the_page():
    outcome = Outcome(1, "http://a.test/", Reason.KEPT, 200, body_bytes=1000, kept_bytes=250, words=40, language="cs")
    assert verdict(outcome) == {
        "reason": "kept", "detail": "", "language": "cs", "downloadedBytes": 1000, "keptBytes": 250, "words": 40,
        "yieldRate": 0.25,
    }  # fmt: skip


# -- what the handler keeps


async def test_the_handler_keeps_what_went_over_the_wire():
    zipped = gzip.compress(PAGE)
    for answer, body in (
        (reply(), PAGE),
        (chunked(PAGE[:100], PAGE[100:]) + b"0\r\n\r\n", PAGE),
        (reply(zipped, b"Content-Encoding: gzip"), zipped),
        (reply(PAGE, b"Content-Encoding: gzip"), PAGE),  # a false label
    ):
        request, response = await fetch(answer, options={"WARC": "on"}, headers={"Accept": "text/html"})
        kept = request.meta[EXCHANGE]
        assert response.body == PAGE and kept.body == body
        assert kept.status_line == "HTTP/1.1 200 OK" and kept.truncated == ""
        assert b"\r\n".join(b"%b: %b" % header for header in kept.headers) in answer
        assert (kept.request[:2], kept.address) == (("GET", "/"), "127.0.0.1")
        sent = dict(kept.request[2])
        assert sent[b"Accept"] == b"text/html" and sent[b"Host"].startswith(b"site.test:")
    request, _ = await fetch(reply())
    assert EXCHANGE not in request.meta


async def test_a_body_that_broke_off_is_marked():
    short = OK + b"Content-Length: 5000\r\n\r\n" + PAGE
    request, _ = await fetch(short, options={"WARC": "on"}, download_fail_on_dataloss=False)
    assert (request.meta[EXCHANGE].body, request.meta[EXCHANGE].truncated) == (PAGE, "disconnect")


# -- a crawl's archive


async def test_a_document_and_its_response_are_in_one_batch(tmp_path, monkeypatch):
    options = Options(lang="cs", allow_networks=NETWORK, warc="on", dedup="exact")
    monkeypatch.setattr("spiderling.crawl.checkpoint.MAX_OUTCOMES", 1)
    crawl = OpenCrawl(options, tmp_path / "job", pytest.fail)
    batches = []
    monkeypatch.setattr(
        SqliteStore, "commit", lambda store, changes: batches.append([row.kind for row in changes.segments])
    )
    for _ in range(3):
        crawl.finish(Outcome(None, "http://a.test/", Reason.KEPT, document=b"<doc>\n</doc>\n", exchange=EXCHANGED))
    await crawl.close()
    assert [batch for batch in batches if batch] == [["corpus", "warc"]] * 2


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A crawl in two runs, the second with zstd; files are full at once."""
    pages = {
        "/robots.txt": plain("User-agent: *\nDisallow: /private\nSitemap: http://a.test/sitemap.txt"),
        "/sitemap.txt": plain("http://a.test/zip\n"),
        "/": page("a", "/zip", "/copy", "/moved", "/gone", "/private"),
        "/zip": page("zip"),
        "/copy": page("zip"),
        "/moved": redirect("/zip"),
    }
    sites = {"a.test": pages, "b.test": {"/": page("b")}}
    with serving(FixedWeb(sites, {"a.test": "127.84.8.1", "b.test": "127.84.8.2"})) as server:
        crawl = Crawl(
            tmp_path_factory.mktemp("warc") / "job",
            server,
            WARC="on",
            SITEMAPS="on",
            CONSTANTS={"crawl.crawl.SEGMENT_BYTES": 3000},
        )
        assert crawl.run("http://a.test/").code == 0
        assert crawl.run("http://b.test/", WARC="zstd").code == 0
        yield crawl


def all_records(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        return [record for file in opened.segments("warc") for record in records(file.path, file.length)]


def test_every_response_is_archived_with_its_request_and_what_became_of_it(crawl):
    found = {
        record.headers["warc-target-uri"].removeprefix("http://"): (
            head_of(record.block)[0].split()[1].decode(), record.headers["warc-type"],
        )
        for record in all_records(crawl) if record.is_capture
    }  # fmt: skip
    copies = [found.pop("a.test/zip"), found.pop("a.test/copy")]
    assert sorted(copies) == [("200", "response"), ("200", "revisit")]
    assert found == {
        "a.test/robots.txt": ("200", "response"), "a.test/": ("200", "response"), "a.test/moved": ("301", "response"),
        "a.test/sitemap.txt": ("200", "response"),
        "a.test/gone": ("404", "response"), "b.test/": ("200", "response"), "b.test/robots.txt": ("404", "response"),
    }  # fmt: skip
    said = {
        record.headers["warc-target-uri"]: dict(line.split(b": ", 1) for line in record.block.split(b"\r\n") if line)
        for record in all_records(crawl) if record.headers["warc-type"] == "metadata"
    }  # fmt: skip
    assert said["http://a.test/"][b"reason"] == b"kept" and said["http://a.test/"][b"language"] == b"cs"
    assert said["http://a.test/gone"][b"reason"] == b"http-error"
    assert said["http://a.test/sitemap.txt"][b"reason"] == b"sitemap"
    assert said["http://a.test/robots.txt"][b"reason"] == b"site-file"
    asked = [record.block for record in all_records(crawl) if record.headers["warc-type"] == "request"]
    assert asked and all(block.count(b"\r\nConnection: ") == 1 for block in asked), "as it was sent"
    assert len(crawl.documents()) == 3 and {document.url for document in crawl.documents()} <= said.keys()


def test_a_content_coding_stays_as_it_came_files_rotate_and_fastwarc_reads_them(crawl):
    """The server of the tests sends gzip to whoever takes it."""
    response = next(r for r in all_records(crawl) if r.is_capture and r.headers["warc-target-uri"] == "http://a.test/")
    assert b"Content-Encoding: gzip" in head_of(response.block)
    assert b"Strana a" in gzip.decompress(response.block.partition(b"\r\n\r\n")[2])

    files = list((crawl.directory / "warc").iterdir())
    assert len(files) > 2 and {path.suffix for path in files} == {".gz", ".zst"}
    found = [record.record_type for path in files for record in FastIterator(io.BytesIO(path.read_bytes()))]
    assert found.count(WarcRecordType.response) + found.count(WarcRecordType.revisit) == 9


def test_the_check_reads_the_archive_too(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        assert list(problems(opened)) == []
        path = opened.segments("warc")[0].path
        whole = path.read_bytes()
        for damaged in (whole[:-9], whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:]):
            path.write_bytes(damaged)
            assert [path.name in problem for problem in problems(opened)] == [True]
        path.write_bytes(whole)


def test_a_record_with_another_length_or_digest_is_not_whole(tmp_path):
    path = tmp_path / "x.warc.gz"
    data = gzip.decompress(packed(EXCHANGED)).replace(b"<p>text</p>", b"<p>TEXT</p>", 1)
    path.write_bytes(gzip.compress(data))
    with pytest.raises(StorageError, match="at byte 0 no record that is whole"):
        list(records(path, path.stat().st_size))
