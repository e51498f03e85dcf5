"""Receipts: each changed byte of a corpus is found without its state, and what a site said stands with its text."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import scrapy

from spiderling.base.errors import DamageError
from spiderling.base.files import zstd
from spiderling.base.options import Options
from spiderling.corpus import receipts
from spiderling.corpus.receipts import CONSENT, RECEIPT_BYTES, RECEIPTS, SUMS, MerkleTree, consent_lines, receipts_in
from spiderling.export.formats import FORMATS
from spiderling.export.verification import Verification, cards_of
from spiderling.frontier.robots import Robots
from spiderling.frontier.site_files import FileAnswer, SiteFile
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.card import MANIFEST, README, write_sums
from spiderling.jobdir.consent import ConsentLedger, ReceiptMaker, write_receipts
from spiderling.jobdir.inspection import Segment

CT_LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
CT_ROOTS = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}
"""Roots of the first leaves, from the tests of Certificate Transparency."""


@pytest.mark.parametrize("number", CT_ROOTS)
def test_the_tree_is_that_of_certificate_transparency(number):
    leaves = (hashlib.sha256(b"\0" + bytes.fromhex(leaf)).digest() for leaf in CT_LEAVES[:number])
    assert MerkleTree(leaves).root() == CT_ROOTS[number]


def verified(place: Path, url: str = "") -> Verification:
    (card,) = cards_of(place)
    return Verification(card, url)


@pytest.fixture(scope="module")
def exports(finished, tmp_path_factory) -> Path:
    """An export in each format, some packed, and a dataset."""
    place = tmp_path_factory.mktemp("exports")
    names = [
        f"x.{name}" for name in ("prevert.zst", "vert", "conllu.gz", "jsonl.zst", "parquet", "txt", "md", "tei.xml")
    ]
    assert len(names) == len(FORMATS)
    for name in (*names, "dataset/"):
        ended = scrapy("export", str(finished.directory), "-o", f"{place}/{name}")
        assert ended.code == 0, ended.log
    return place


def test_an_export_in_any_format_is_verified_and_names_what_allowed_a_document(finished, exports):
    number = len(finished.documents())
    for place in (finished.directory, exports / "dataset", *exports.glob("x.*")):
        if not place.is_dir() and not place.with_name(f"{place.name}.json").exists():
            continue
        names_urls = not place.name.endswith((".txt", ".md"))
        found = verified(place, "http://a.test/" if names_urls else "")
        assert (found.findings, found.documents, found.taken_down) == ([], number, 0), place
        assert not names_urls or "    Disallow: /private" in found.receipts, place
    assert verified(exports / "x.jsonl.zst").root == verified(exports / "x.parquet").root


def test_the_command_prints_the_root_of_the_card_and_the_receipts_of_a_url(finished):
    root = json.loads((finished.directory / "corpus" / MANIFEST).read_text("utf-8"))["receipts"]["root"]
    ended = scrapy("verify", str(finished.directory), "--url", "http://a.test/")
    assert ended.code == 0 and f"root {root}" in ended.out
    assert "http://a.test/robots.txt answered 200, since 20" in ended.out
    assert scrapy("verify", str(finished.directory), "--url", "http://other.test/").code == 1
    assert "has no card" in scrapy("verify", str(finished.directory.parent)).log


def changed(data: bytes, place: int) -> bytes:
    place %= len(data)
    return data[:place] + bytes([data[place] ^ 1 << random.Random(place).randrange(8)]) + data[place + 1 :]


@pytest.mark.parametrize("name", ["corpus", "x.jsonl.zst", "x.tei.xml"])
def test_a_changed_byte_anywhere_is_found(finished, exports, tmp_path, name):
    """In the documents, the card, the list of checksums, the receipts and the statements."""
    source = finished.directory / "corpus" if name == "corpus" else exports
    copy = Path(shutil.copytree(source, tmp_path / "copy"))
    place = copy if name == "corpus" else copy / name
    files = [file for file in copy.iterdir() if file.is_file() and (name == "corpus" or file.name.startswith(name))]
    assert len(files) > 5
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), max(1, len(data) // 12)):
            file.write_bytes(changed(data, at))
            assert verified(place).findings, (file.name, at)
        file.write_bytes(data[:-1])
        assert verified(place).findings, file.name
        file.write_bytes(data)
    assert not verified(place).findings


def forged(corpus: Path) -> Iterator[str]:
    """Changes of a corpus by somebody who makes all checksums right again."""
    segment = next(corpus.glob("*-00001.prevert.zst"))
    data = zstd.decompress(segment.read_bytes())
    segment.write_bytes(zstd.compress(data[:-20] + b"x" + data[-19:]))
    yield "is not what its receipt says"
    segment.write_bytes(zstd.compress(data + data))
    yield "holds more than the documents"
    consent = corpus / CONSENT
    lines = [*consent_lines(consent)]
    consent.write_bytes(gzip.compress(b"".join(line.replace(b"/private", b"/nothing") for line in lines)))
    yield "has been changed"
    spaced = (line.replace(b', "text": ', b',\t"text": ') for line in lines)  # the same to who reads JSON
    consent.write_bytes(gzip.compress(b"".join(spaced)))
    yield "has been changed"
    consent.write_bytes(gzip.compress(b"".join(line.replace(b"404", b"200") for line in lines)))
    yield "is not what its receipt says"
    consent.write_bytes(gzip.compress(b"".join(lines[1:])))
    yield "is missing"
    receipts = corpus / RECEIPTS
    receipts.write_bytes(receipts.read_bytes()[:-4] + b"\1" + receipts.read_bytes()[-3:])  # the length of the last one
    yield "is not what its receipt says"
    receipts.write_bytes(receipts.read_bytes()[:-RECEIPT_BYTES])
    yield "holds more than the documents"
    receipts.write_bytes(changed(receipts.read_bytes() * 2, -1))
    yield "do not give the root"


def test_a_forger_who_repairs_the_checksums_is_found_by_the_root(finished, tmp_path):
    corpus = Path(shutil.copytree(finished.directory / "corpus", tmp_path / "corpus"))
    before = {path: path.read_bytes() for path in corpus.iterdir() if path.is_file()}
    for wanted in forged(corpus):
        told = json.loads((corpus / MANIFEST).read_text("utf-8"))
        for file in told["files"]:
            file["sha256"] = hashlib.sha256((corpus / file["name"]).read_bytes()).hexdigest()
        (corpus / MANIFEST).write_text(json.dumps(told))
        write_sums(corpus / SUMS, told, [corpus / other for other in (RECEIPTS, CONSENT, README, MANIFEST)])
        assert any(wanted in finding for finding in verified(corpus).findings), wanted
        for path, data in before.items():
            path.write_bytes(data)
    assert verified(corpus).findings == []


# -- what was said when


def robots_of(store: SqliteStore, answers: list[tuple[float, str, bytes]]) -> None:
    """A crawl that was given these *answers* (time, origin, robots.txt)."""
    robots = Robots(Options())
    for now, origin, body in answers:
        robots.note_answer(origin, FileAnswer(200, body), now)
        store.commit(Changes(robots=robots.files.records.drain(), consent=robots.files.ledger))
        robots.files.ledger = []


def said_at(path: Path, url: str, *dates: str) -> list[list[str]]:
    """For each date, the texts that were in force."""
    file = io.BytesIO()
    with closing(ConsentLedger([path])) as ledger:
        maker = ReceiptMaker(file)
        lines = [maker.receipt(b"text", url, date, ledger).line for date in dates]
    maker.consent.flush()
    values = [json.loads(line) for line in gzip.decompress(file.getvalue()).splitlines()]
    texts = {value["sha256"]: value["text"] for value in values if "text" in value}
    entries = [{"said": []}, *values]
    return [[texts.get(said["sha256"], "-") for said in entries[line]["said"]] for line in lines]


def test_a_document_has_the_robots_txt_of_its_time_though_the_site_has_another_by_now(tmp_path):
    path = tmp_path / "frontier.sqlite"
    day = 86_400.0
    one, two = b"User-agent: *\nDisallow: /1", b"User-agent: *\nDisallow: /2"
    with closing(SqliteStore(path)) as store:
        robots_of(store, [(0, "http://a.test", one), (day, "http://a.test", two), (9 * day, "http://b.test", two)])
    dates = ("1970-01-01 00:00:00", "1970-01-01 23:59:59", "1970-01-02 00:00:00", "1970-02-01 00:00:00")
    assert said_at(path, "http://A.test:80/x", *dates) == [[one.decode()]] * 2 + [[two.decode()]] * 2
    assert said_at(path, "http://b.test/", *dates) == [[]] * 3 + [[two.decode()]]
    assert said_at(path, "http://c.test/", *dates) == [[]] * 4


def test_a_document_has_it_though_the_clock_was_set_back_since_the_site_said_it(tmp_path):
    path = tmp_path / "frontier.sqlite"
    one, two = b"User-agent: *\nDisallow: /1", b"User-agent: *\nDisallow: /2"
    with closing(SqliteStore(path)) as store:
        robots_of(store, [(1000, "http://a.test", one), (500, "http://a.test", one), (700, "http://a.test", two)])
    assert said_at(path, "http://a.test/", "1970-01-01 00:09:00") == [[one.decode()]], "540 s"
    assert said_at(path, "http://a.test/", "1970-01-01 00:17:00") == [[one.decode(), two.decode()]], "before or after"


def test_a_document_whose_personal_data_is_masked_has_what_its_site_said(tmp_path):
    """It stands in no file of a crawl any more."""
    said = b"User-agent: *\nDisallow: /private"
    (tmp_path / "job/corpus").mkdir(parents=True)
    (tmp_path / "job/state").mkdir()
    segment = tmp_path / "job/corpus/cs-00001.prevert.zst"
    text = zstd.decompress(documents(1)).decode().replace("\n1\n", "\n1 jan@posta.cz\n")
    segment.write_bytes(zstd.compress(text.encode()))
    with closing(SqliteStore(tmp_path / "job/state/frontier.sqlite")) as store:
        robots_of(store, [(1.0, "http://a.test", said)])
        store.commit(Changes(segments=[SegmentRow(segment.name, segment.stat().st_size, 1)], meta={"options": "{}"}))
    out = tmp_path / "out.jsonl"
    assert scrapy("export", str(tmp_path / "job"), "-o", str(out), "--pii", "mask").code == 0
    found = verified(out, "http://a.test/1")
    assert "<EMAIL>" in out.read_text() and not found.findings
    assert (found.statements, found.receipts[-1]) == (1, "    Disallow: /private")


def test_a_site_that_went_back_to_an_earlier_text_is_told_with_both(tmp_path):
    path = tmp_path / "frontier.sqlite"
    one, two = b"User-agent: *\nDisallow: /1", b"User-agent: *\nDisallow: /2"
    with closing(SqliteStore(path)) as store:
        robots_of(store, [(10 * n, "http://a.test", text) for n, text in enumerate((one, two, one))])
    assert said_at(path, "http://a.test/", "1970-01-01 00:00:05") == [[one.decode()]]
    assert said_at(path, "http://a.test/", "1970-01-01 00:00:15") == [[one.decode(), two.decode()]]


def test_a_licence_that_robots_txt_names_is_part_of_what_was_said(tmp_path):
    path = tmp_path / "frontier.sqlite"
    licence = b'<rsl xmlns="https://rslstandard.org/rsl"></rsl>'
    robots = Robots(Options())
    robots.note_answer("http://a.test", FileAnswer(200, b"License: http://l.test/l.xml"), 1.0)
    robots.note_answer("http://l.test/l.xml", FileAnswer(200, licence), 1.0, SiteFile.LICENCE)
    with closing(SqliteStore(path)) as store:
        store.commit(Changes(robots=robots.files.records.drain(), consent=robots.files.ledger))
    assert said_at(path, "http://a.test/", "1970-01-01 00:00:02") == [
        ["License: http://l.test/l.xml", licence.decode()]
    ]


# -- a corpus that grows, and from which documents are taken


def documents(*numbers: int) -> bytes:
    texts = [
        f'<doc url="http://a.test/{n}" crawl_date="2026-01-01 00:00:00">\n<p>\n{n}\n</p>\n</doc>\n' for n in numbers
    ]
    return zstd.compress("".join(texts).encode())


def written(corpus: Path, former: dict, **frames: list[bytes]) -> dict:
    """Write segments and their receipts; returns the manifest."""
    files = []
    segments = []
    for name, parts in frames.items():
        path = corpus / f"{name}.prevert.zst"
        path.write_bytes(b"".join(parts))
        number = zstd.decompress(path.read_bytes()).count(b"<doc ")
        segments.append(Segment(path, path.stat().st_size, number))
    SqliteStore(corpus / "state.sqlite").close()
    with closing(ConsentLedger([corpus / "state.sqlite"])) as ledger:
        root, taken_down = write_receipts(corpus, former, segments, ledger)
    for path, length, number in segments:
        told = {"name": path.name, "documents": number, "bytes": length} | {"taken_down": taken_down[path.name]}
        files.append(told | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()})
    return {"format": "prevertical", "files": files, "receipts": {"root": root}}


def leaves_in(corpus: Path, is_there: bool) -> list[bytes]:
    found = receipts_in((corpus / RECEIPTS).read_bytes())
    return [receipt.leaf for receipt in found if bool(receipt.length) == is_there]


def test_a_document_that_was_taken_down_leaves_its_leaf(tmp_path):
    """From a segment that keeps its name, from one that gets another, and a whole segment."""
    first = written(tmp_path, {}, a=[documents(1, 2), documents(3)], b=[documents(4)])
    leaves = leaves_in(tmp_path, True)
    grown = written(tmp_path, first, a=[documents(1, 2), documents(3)], b=[documents(4), documents(5, 6)])
    assert leaves_in(tmp_path, True)[:4] == leaves
    leaves = leaves_in(tmp_path, True)
    left = written(tmp_path, grown, a=[documents(1), documents(3)], b=[documents(4), documents(6), documents(7)])
    assert [file.get("taken_down") for file in left["files"]] == [0, 2]
    assert leaves_in(tmp_path, False) == [leaves[1], leaves[4]] and len(leaves_in(tmp_path, True)) == 5
    (tmp_path / "a.prevert.zst").unlink()
    again = written(tmp_path, left, b=[documents(4), documents(6), documents(7)], c=[documents(3), documents(8)])
    assert leaves_in(tmp_path, False) == [leaves[1], leaves[4], leaves[0]] and len(leaves_in(tmp_path, True)) == 5
    (tmp_path / README).write_text("")
    (tmp_path / MANIFEST).write_text(json.dumps(again))
    write_sums(tmp_path / SUMS, again, [tmp_path / name for name in (RECEIPTS, CONSENT, README, MANIFEST)])
    checked = verified(tmp_path)
    assert (checked.findings, checked.documents, checked.taken_down) == ([], 5, 3)


def test_a_shard_that_kept_nothing_needs_no_card(finished, tmp_path):
    shutil.copytree(finished.directory, tmp_path / "job/shard-00")
    (tmp_path / "job/shard-01/state").mkdir(parents=True)
    SqliteStore(tmp_path / "job/shard-01/state/frontier.sqlite").close()
    ended = scrapy("verify", str(tmp_path / "job"))
    assert (ended.code, ended.log) == (0, "") and "documents are as they were" in ended.out
    (tmp_path / "job/shard-00/corpus/manifest.json").unlink()
    assert "shard-00/corpus/manifest.json is missing" in scrapy("verify", str(tmp_path / "job")).log


def test_of_a_document_from_no_crawl_it_is_said_that_nothing_is_known(tmp_path):
    (tmp_path / "in.prevert.zst").write_bytes(documents(1))
    assert scrapy("export", str(tmp_path / "in.prevert.zst"), "-o", str(tmp_path / "out.jsonl")).code == 0
    found = verified(tmp_path / "out.jsonl", "http://a.test/1")
    assert found.findings == [] and found.receipts[1:] == ["  nothing is known of its site"]


def test_a_kill_between_receipts_and_card_loses_no_leaf(tmp_path):
    first = written(tmp_path, {}, a=[documents(1, 2)], b=[documents(3)])
    leaves = leaves_in(tmp_path, True)
    left = written(tmp_path, first, a=[documents(1)], b=[documents(3)])
    again = written(tmp_path, first, a=[documents(1)], b=[documents(3), documents(4)])
    assert [file["taken_down"] for made in (left, again) for file in made["files"]] == [0, 1, 0, 1]
    assert leaves_in(tmp_path, False) == [leaves[1]]


def test_receipts_that_are_damaged_are_made_again(tmp_path):
    first = written(tmp_path, {}, a=[documents(1, 2)])
    whole = (tmp_path / RECEIPTS).read_bytes()
    for data in (changed(whole, 3), whole[:-1], b""):
        (tmp_path / RECEIPTS).write_bytes(data)
        assert written(tmp_path, first, a=[documents(1, 2)]) == first
        assert (tmp_path / RECEIPTS).read_bytes() == whole


def test_a_statement_that_never_ends_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(receipts, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "consent.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"said": "x"}\n' + b" " * 5000))
    lines = receipts.consent_lines(path)
    assert next(lines) == b'{"said": "x"}\n'
    with pytest.raises(DamageError, match="has a line of 1,000 bytes or more"):
        next(lines)


@pytest.mark.parametrize(
    "strange",
    [b"[]", b'{"said":["a"]}', b'{"said":[5]}', b'{"sha256":"x","text":5}', b"[" * 200_000, b"{", b"{}\n{}"],
)
def test_statements_that_nobody_of_us_wrote_are_a_finding(finished, tmp_path, strange):
    corpus = Path(shutil.copytree(finished.directory / "corpus", tmp_path / "corpus"))
    (corpus / CONSENT).write_bytes(gzip.compress(strange + b"\n"))
    assert Verification(cards_of(corpus)[0], "http://a.test/").findings


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card | {"format": []},
        lambda card: card | {"files": [{**card["files"][0], "name": "/etc/hostname"}]},
        lambda card: card | {"files": [{**card["files"][0], "name": "../manifest.json"}]},
        lambda card: card | {"files": [{**card["files"][0], "name": "a\0b"}]},
        lambda card: card | {"files": [{**one, "documents": 10**30} for one in card["files"]]},
        lambda card: {},
        lambda card: [],
    ],
)
def test_a_card_that_nobody_of_us_wrote_is_a_finding(finished, tmp_path, change):
    corpus = Path(shutil.copytree(finished.directory / "corpus", tmp_path / "corpus"))
    card = change(json.loads((corpus / MANIFEST).read_text("utf-8")))
    (corpus / MANIFEST).write_text(json.dumps(card))
    names = [file["name"] for file in card["files"]] if card and card["files"] else []
    text = "".join(f"{'0' * 64}  {name}\n" for name in {*names, RECEIPTS, CONSENT, README, MANIFEST})
    (corpus / SUMS).write_text(text)
    assert Verification(cards_of(corpus)[0]).findings


def test_a_receipt_of_more_than_any_document_is_not_read(finished, tmp_path):
    corpus = Path(shutil.copytree(finished.directory / "corpus", tmp_path / "corpus"))
    data = (corpus / RECEIPTS).read_bytes()
    (corpus / RECEIPTS).write_bytes(data[: RECEIPT_BYTES - 4] + b"\xff" * 4 + data[RECEIPT_BYTES:])
    assert any("which no document has" in one for one in Verification(cards_of(corpus)[0]).findings)
