"""What is read out of WARC files: packed in every way, whole and broken, from the beginning and from any place."""

from __future__ import annotations

import gzip
import random
import resource
import zlib

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from made_warcs import FORMS, read, record

from spiderling.archives.sources import BEGIN, ArchiveProgress, Position
from spiderling.base.reasons import Reason

PAGES = [record(f"http://a.test/{n}", f"<p>stránka {n}</p>".encode() * 200) for n in range(6)]
BETWEEN = record("http://a.test/", b"GET / HTTP/1.1\r\n\r\n", "request")


def urls(records) -> list[str]:
    return [entry.url for entry in records if entry.reason is None]


def ends(records) -> list[str]:
    """The page number or the Reason of each record."""
    return [entry.reason.value if entry.reason else entry.url.rpartition("/")[2] for entry in records]


@pytest.mark.parametrize("form", FORMS)
def test_all_pages_are_read_and_from_any_record_on_the_rest(form):
    data = FORMS[form]([record("", b"software: x\r\n", "warcinfo"), *PAGES[:3], BETWEEN, *PAGES[3:]])
    records = read(data)
    assert urls(records) == [f"http://a.test/{n}" for n in range(6)]
    assert records[2].body == "<p>stránka 2</p>".encode() * 200
    positions = [entry.position for entry in records]
    assert positions == sorted(set(positions))
    for number, position in enumerate(positions):
        rest = [entry.position for entry in read(data, position) if entry.position > position]
        assert rest == positions[number + 1 :]


def test_what_a_record_says():
    (page,) = read(
        record("http://www.a.test/x?utm_source=y#z", b"text", head="Content-Type: text/html\r\nX-Robots-Tag: noai\r\n")
    )
    assert (page.url, page.status, page.body, str(page.address)) == ("http://www.a.test/x", 200, b"text", "192.0.2.7")
    assert page.captured == 1709618828.0
    assert page.headers.get(b"x-robots-tag") == b"noai"
    (page,) = read(record("<http://a.test/>", b"t", WARC_Date="bogus", WARC_IP_Address="none of these"))
    assert (page.url, page.captured, page.address) == ("http://a.test/", None, None)


def test_a_damage_has_a_place_of_its_own():
    """Or it would count only if its record were not done by then."""
    empty = record("http://a.test/", b"text that is left over\r\n", "conversion", Content_Length="0")
    records = read(PAGES[0] + empty + PAGES[1])
    assert ends(records) == ["0", "record-kind", "damaged", "1"]
    positions = [entry.position for entry in records]
    assert positions == sorted(set(positions))


HTML = "Content-Type: text/html\r\n"
CHUNKED = HTML + "Transfer-Encoding: chunked\r\n"
PACKED_ABC = gzip.compress(b"abc")
ENCODED = {
    "chunks": (CHUNKED, b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
    "undone": (CHUNKED, b"<p>the chunks were undone</p>", b"<p>the chunks were undone</p>"),
    "cut": (CHUNKED, b"5\r\nabcde\r\n9\r\ncut", b"abcdecut"),
    "packed chunks": (
        CHUNKED + "Content-Encoding: gzip\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(PACKED_ABC), PACKED_ABC), b"abc"
    ),
    "deflate": (HTML + "Content-Encoding: deflate\r\n", zlib.compress(b"abc"), b"abc"),
    "decoded before it was stored": (HTML + "Content-Encoding: br\r\n", b"<p>decoded</p>", b"<p>decoded</p>"),
    "as Common Crawl does": (HTML + "X-Crawl-Content-Encoding: gzip\r\n", b"<p>decoded</p>", b"<p>decoded</p>"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCODED)
def test_encodings_are_undone_where_they_have_not_been(name):
    head, body, content = ENCODED[name]
    (page,) = read(record("http://a.test/", body, head=head))
    assert (page.reason, page.body) == (None, content)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (record("http://a.test/", b"", "revisit"), Reason.REVISIT),
        (record("http://a.test/", b"text", "conversion"), Reason.RECORD_KIND),
        (record("http://a.test/", b"moved", status="301 Moved"), Reason.RECORD_STATUS),
        (record("http://a.test/", b"part", status="206 Partial Content"), Reason.RECORD_STATUS),
        (record("http://a.test/", b"no", status="2000 What"), Reason.DAMAGED),
        (record("dns:a.test", b"a.test. 300 IN A 192.0.2.7", Content_Type="text/dns"), Reason.BAD_URL),
        (record("http://a.test/x", b"\x89PNG", head="Content-Type: image/png\r\n"), Reason.NOT_TEXT),
        (record("http://a.test/x", b"a", head="Content-Disposition: attachment\r\n"), Reason.NOT_TEXT),
        (record("http://a.test/", b"x" * 40_000), Reason.TOO_BIG),
        (record("http://a.test/", b"", Content_Length="99999999999"), Reason.TOO_BIG),
        (record("http://a.test/", gzip.compress(bytes(5_000_000)), head="Content-Encoding: gzip\r\n"), Reason.TOO_BIG),
        (record("http://a.test/", b"a", head="Content-Encoding: compress\r\n"), Reason.UNDECODABLE),
        (record("http://a.test/robots.txt", b"User-agent: *"), Reason.RECORD_KIND),
        (record("http://a.test/", b"<p>", "resource"), None),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "record",  # packed ones hold the time
)  # fmt: skip
def test_what_is_no_page_and_why(data, reason):
    (entry, *_) = read(data, max_body_bytes=30_000, archive_robots="ignore")
    assert entry.reason is reason


def test_pages_out_of_scope_are_not_even_read():
    data = FORMS["plain"](PAGES)
    records = read(data, refusal=lambda target: None if target.path == "/3" else Reason.OUT_OF_SCOPE)
    assert urls(records) == ["http://a.test/3"]
    assert all(entry.body == b"" for entry in records if entry.reason)


# -- broken archives

PACKED = list(map(gzip.compress, PAGES))
OFFSET = len(PACKED[0] + PACKED[1])


def overwritten(data: bytes, at: int, text: bytes) -> bytes:
    return data[:at] + text + data[at + len(text) :]


NO_LENGTH = PAGES[1].replace(b"Content-Length", b"X-Length")
TOO_LONG = PAGES[1].replace(b"Content-Length: ", b"Content-Length: 9")
BY_RECORD, PLAIN = FORMS["gzip by record"], FORMS["plain"]
THIRD_LOST, SECOND_LOST = ["0", "1", "damaged", "3", "4", "5"], ["0", "damaged", "2", "3", "4", "5"]
NO_HEAD = overwritten(PLAIN(PAGES), len(PAGES[0]), b"garbage garbage")
BROKEN = {
    "a member's content": (overwritten(BY_RECORD(PAGES), OFFSET + 30, bytes(30)), THIRD_LOST),
    "a member's head": (overwritten(BY_RECORD(PAGES), OFFSET, b"garbage garbage"), THIRD_LOST),
    "a record's head": (NO_HEAD, SECOND_LOST),
    "a record's head, packed as a whole": (gzip.compress(NO_HEAD), ["0", "damaged"]),
    "a zstd frame": (
        overwritten(FORMS["zstd by record"](PAGES), len(FORMS["zstd by record"](PAGES[:1])) + 20, b"x" * 40),
        SECOND_LOST,
    ),
    "cut": (BY_RECORD(PAGES)[:-40], ["0", "1", "2", "3", "4", "damaged"]),
    "cut, plain": (PLAIN(PAGES)[:-100], ["0", "1", "2", "3", "4", "damaged"]),
    "cut, packed as a whole": (gzip.compress(PLAIN(PAGES))[:-20], ["0", "1", "2", "3", "4", "damaged"]),
    "padded": (BY_RECORD(PAGES) + bytes(1000), ["0", "1", "2", "3", "4", "5"]),
    "followed by garbage": (BY_RECORD(PAGES) + b"garbage", ["0", "1", "2", "3", "4", "5", "damaged"]),
    "without length": (BY_RECORD([PAGES[0], NO_LENGTH, PAGES[2]]), ["0", "damaged", "2"]),
    "without length, plain": (PLAIN([PAGES[0], NO_LENGTH, PAGES[2]]), ["0", "damaged", "2"]),
    "too long": (BY_RECORD([PAGES[0], TOO_LONG, PAGES[2]]), ["0", "damaged", "2"]),
    "too long, plain": (PLAIN([PAGES[0], TOO_LONG, *PAGES[2:]]), ["0", "damaged", "2", "3", "4", "5"]),
    "no WARC": (b"<html>" * 1000, ["damaged"]),
    "nothing": (b"", []),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_can_be_read_is_read_and_the_rest_counted(name):
    data, expected = BROKEN[name]
    place = ArchiveProgress()
    records = [entry for entry in read(data) if place.begin_record(entry.position)]
    assert ends(records) == expected
    for entry in records:
        rest = [later.position for later in read(data, entry.position) if later.position > entry.position]
        assert rest == [later.position for later in records if later.position > entry.position]


def test_a_decompression_bomb_takes_no_memory():
    bomb = gzip.compress(b"WARC/1.0 no head " + bytes(200_000_000), 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert ends(read(bomb + PACKED[3])) == ["damaged", "3"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


@settings(max_examples=examples(150))
@given(st.sampled_from(sorted(FORMS)), st.randoms(use_true_random=False), st.integers(1, 40))
def test_no_damage_raises_and_each_place_comes_once(form, rng, number):
    data = bytearray(FORMS[form](PAGES[:4]))
    for _ in range(number):
        data[rng.randrange(len(data))] = rng.randrange(256)
    records = read(bytes(data[: rng.randrange(len(data))]))
    pages = [entry.position for entry in records if entry.reason is None]
    assert pages == sorted(set(pages))


@settings(max_examples=examples(200))
@given(st.binary(max_size=300), st.booleans())
def test_no_garbage_raises(block, is_packed):
    data = record("http://a.test/", block, "resource", Content_Type="application/http")
    data = data.replace(b"resource", b"response")
    read(gzip.compress(data) if is_packed else data)
    read(block)


# -- places


@pytest.mark.parametrize("form", FORMS)
def test_an_archive_that_ended_anywhere_and_has_grown_is_read_on(form):
    """The record in which it ended counted as damaged, and as done."""
    pages = [record(f"http://a.test/{n}", b"<p>text</p>") for n in range(3)]
    data = FORMS[form]([record("", b"software: x\r\n", "warcinfo"), *pages[:2], BETWEEN, *pages[2:]])
    for end in range(1, len(data)):
        found, place = [], ArchiveProgress()
        for there in (data[:end], data):
            place = ArchiveProgress(place.saved())
            place.read_on()
            for entry in read(there, place.last):
                if place.begin_record(entry.position):
                    found.append(entry)
                    if entry.reason is Reason.DAMAGED:
                        place.note_damage(entry.position)
                    place.end_record(entry.position)
        assert urls(found) == [f"http://a.test/{n}" for n in range(3)], end
        assert place.records - place.damaged == 3, end


def test_damage_at_the_end_comes_again_when_the_process_was_killed_over_it():
    """So does the record that it has become, until that is done."""
    data = gzip.compress(PAGES[0]) + gzip.compress(PAGES[1])
    place = ArchiveProgress()
    for entry in read(data[:-30]):
        assert place.begin_record(entry.position)
        if entry.reason is Reason.DAMAGED:
            place.note_damage(entry.position)
        place.end_record(entry.position)
    for _ in range(3):
        place = ArchiveProgress(place.saved())
        place.read_on()
        entries = [entry for entry in read(data, place.last) if place.begin_record(entry.position)]
        assert (urls(entries), place.damaged, place.is_idle) == (["http://a.test/1"], 0, False)


def test_what_is_done_is_not_done_again_and_what_was_in_work_is():
    place, positions = ArchiveProgress(), [Position(number * 10) for number in range(6)]
    assert all(place.begin_record(position) for position in positions)
    for number in (0, 1, 3, 5):
        place.end_record(positions[number])
    place.size = 60
    none = {"cut": [], "damaged": 0}
    assert place.saved() == {"last": (10, 0), "done": [(30, 0), (50, 0)], "size": None, "records": 4, **none}
    again = ArchiveProgress(place.saved())
    assert [again.begin_record(position) for position in positions] == [False, False, True, False, True, False]
    again.end_record(positions[2])
    assert again.last == positions[3] and not again.is_idle
    again.end_record(positions[4])
    again.size = 60
    assert again.saved() == {"last": (50, 0), "done": [], "size": 60, "records": 6, **none}
    assert ArchiveProgress().last == BEGIN


@settings(max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_a_place_saved_at_any_moment_gives_each_record_once(rng: random.Random):
    positions, ended, saved = [Position(number) for number in range(30)], [], {}
    for _ in range(4):
        place, in_work = ArchiveProgress(saved), []
        for position in positions[: rng.randrange(31)]:
            if place.begin_record(position):
                in_work.append(position)
            while len(in_work) > rng.randrange(1, 6):
                done = in_work.pop(rng.randrange(len(in_work)))
                place.end_record(done)
                ended.append(done)
                saved = place.saved()
    place = ArchiveProgress(saved)
    ended += [position for position in positions if place.begin_record(position)]
    assert sorted(ended) == positions
