"""A damaged state is told of in one sentence: by whoever reads it, and by a crawl before it changes anything."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, Crawl, damage_in, page, serving

from spiderling.base.errors import DamageError, JobdirError, SpiderlingError
from spiderling.base.options import Options
from spiderling.corpus.duplicates import Keys, ShingleFilter, ShingleState
from spiderling.corpus.links import LinkKind, read_links
from spiderling.corpus.segments import SUFFIX, SegmentKind, SegmentWriter, frames, stored_documents
from spiderling.corpus.warc import WarcKind, records
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.export.formats import packer
from spiderling.export.sources import corpus_of
from spiderling.frontier import Frontier
from spiderling.frontier.storage import queues
from spiderling.frontier.storage.protocol import Changes, Flush
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.tables import TABLES
from spiderling.frontier.url_states import GENERATION
from spiderling.jobdir.as_text import of_host, of_url, overview
from spiderling.jobdir.card import provenance
from spiderling.jobdir.damage import damaged_rows, problems
from spiderling.jobdir.directory import Jobdir, recorded_segments
from spiderling.jobdir.inspection import Inspection, reading
from spiderling.jobdir.state_reader import urls_of
from spiderling.jobdir.status import status_of
from spiderling.reporting.page import page_file
from spiderling.text.ngrams import NgramCounts, pack
from webs.web import FixedWeb

LINKS = [f"/{number}" for number in range(30)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A JOBDIR with text, links and WARC, and with URLs that wait in chunks, in the log and in a host's row."""
    web = FixedWeb({"a.test": {"/": page("a", *LINKS), "/0": page("b", "/x", "/y")}}, {"a.test": "127.84.9.1"})
    with serving(web) as server:
        crawl = Crawl(tmp_path_factory.mktemp("damage") / "job", server, LINKS="on", WARC="on")
        assert crawl.run("http://a.test/", MAX_PAGES=3).code == 0
    with closing(Inspection(crawl.directory)) as opened:
        options = opened.options
    store = SqliteStore(crawl.directory / "state/frontier.sqlite")
    frontier = Frontier(options, store=store)
    frontier.restore(store.load(), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "FLUSH_URLS", 1)
        frontier.put_seed("http://a.test/in-a-chunk", 0.0)
        store.commit(frontier.drain(0.0))
        frontier.committed()
    for number in range(5):
        frontier.put_seed(f"http://a.test/in-the-log/{number}", 0.0)
    store.commit(frontier.drain(0.0))
    store.close()
    with closing(sqlite3.connect(crawl.directory / "state/frontier.sqlite")) as state:
        state.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert damage_in(crawl.directory) == []
    return crawl.directory


@pytest.fixture
def job(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "job"))


@pytest.fixture
def longer(job, options, tmp_path) -> Path:
    """A JOBDIR as a kill leaves it, in which one queue is longer than its host's row says."""
    store = SqliteStore(job / "state/frontier.sqlite")
    frontier = Frontier(options, store=store)
    frontier.restore(store.load(), 0.0)
    for urls in ([f"http://h{number}.test/" for number in range(40)], ["http://h3.test/more"]):
        for url in urls:
            frontier.put_seed(url, 0.0)
        store.commit(frontier.drain(0.0))
        frontier.committed()
    left = Path(shutil.copytree(job, tmp_path / "killed"))
    store.close()
    return left


def test_a_queue_longer_than_its_host_says_after_a_kill_is_no_damage(longer):
    with closing(Inspection(longer)) as crawl:
        assert crawl.rows("SELECT waiting FROM host WHERE name = 'h3.test'") == [{"waiting": 1}]
        assert crawl.host("h3.test")["waiting"] == len(urls_of(crawl.connection, crawl.host("h3.test")["id"])) == 2
        assert list(problems(crawl)) == []


@pytest.mark.parametrize(
    "lengths", [pytest.param(bytes(32), marks=pytest.mark.slow), bytes(31), "text"], ids=["zeros", "half", "text"]
)
def test_damaged_lengths_of_queues_are_told_of_and_refused(longer, options, lengths):
    change(longer, "UPDATE length SET lengths = ?", lengths)
    assert any("length" in line for line in told(longer)["check"])
    assert "is damaged" in refused(longer, options)


READERS = {
    "check": lambda crawl: list(problems(crawl)),
    "overview": lambda crawl: list(overview(status_of(crawl))),
    "host": lambda crawl: list(of_host(crawl, "a.test", urls=True)),
    "url": lambda crawl: [list(of_url(crawl, f"http://a.test{path}")) for path in ("/", "/0", "/5")],
    "report": page_file,
    "export": provenance,
}


def told(job: Path) -> dict[str, list[str]]:
    """What each reader says of the damage; any error but a SpiderlingError is the test's failure."""
    said: dict[str, list[str]] = {}
    for name, read in READERS.items():
        try:
            with reading(job) as crawl:
                found = read(crawl)
            said[name] = found if name == "check" else []
        except SpiderlingError as error:
            said[name] = [str(error)]
    return said


def change(job: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(job / "state/frontier.sqlite")) as state, state:
        assert state.execute(statement, values).rowcount > 0


def refused(job: Path, options) -> str:
    """Why a crawl does not start; nothing in the directory is changed by that."""
    files = {path: path.read_bytes() for path in job.rglob("*") if path.is_file() and path.parent.name != "state"}
    with pytest.raises(SpiderlingError) as caught:
        OpenCrawl(options, job, pytest.fail)
    assert {path: path.read_bytes() for path in files} == files
    return str(caught.value)


@pytest.fixture(scope="module")
def options(made):
    with closing(Inspection(made)) as crawl:
        return crawl.options


@pytest.mark.parametrize(
    ("statement", "value", "reader"),
    [
        ("UPDATE log SET popped = ?", "999:1", "host"),
        ("UPDATE log SET popped = ?", "no slot", "url"),
        ("UPDATE log SET added = ?", "a text", "check"),
        ("UPDATE log SET added = ?", b"(\xb5/\xfd\0\0\0", "host"),
        ("UPDATE log SET added = ?", b"no slot", "check"),
        ("UPDATE chunk SET lines = ?", b"(\xb5/\xfd\0\0\0", "url"),
        ("UPDATE ended SET ends = ?", b"(\xb5/\xfd\0\0\0", "check"),
        ("UPDATE ended SET ends = ?", "a text", "report"),
        ("UPDATE ended SET keys = ?", b"\0\0\0", "host"),
        ("UPDATE found SET pages = ?", b"\0" * 8, "url"),
        ("UPDATE host SET state = ?", "asleep", "host"),
        ("UPDATE host SET kept_bytes = ?", "many", "host"),
        ("UPDATE host SET positions = ?", "2:", "check"),
        ("UPDATE host SET first = ?", b"~[", "host"),
        ("UPDATE history SET pages = ?", "many", "report"),
        ("UPDATE count SET value = ? WHERE key = 'discovered'", "{", "overview"),
        ("UPDATE meta SET value = ? WHERE key = 'options'", "{", "overview"),
        ("UPDATE meta SET value = ? WHERE key = 'options'", '{"lang": 5}', "overview"),
        ("UPDATE meta SET value = ? WHERE key = 'seeds'", "5", "export"),
        ("UPDATE meta SET value = ? WHERE key = 'version'", b"\xff", "overview"),
        ("UPDATE file SET length_bytes = ?", "long", "overview"),
    ],
)
def test_what_cannot_be_in_a_column_is_told_by_whoever_reads_it(job, statement, value, reader):
    """Text in a column of numbers, broken JSON, frames that are none: each gave a traceback."""
    change(job, statement, value)
    said = told(job)
    assert said["check"], "the check finds all of them"
    assert said[reader] and "damaged" in " ".join(said[reader])
    told_once = [sentence.replace(str(job), "") for sentences in said.values() for sentence in sentences]
    assert all(len(sentence) < 600 for sentence in told_once)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET popped = '999:1'",
        "UPDATE log SET added = x'28b52ffd000000'",
        "UPDATE host SET state = 'asleep'",
        "UPDATE host SET parked = 1000000000000",
        "UPDATE host SET kept_bytes = 'many'",
        "UPDATE meta SET value = '{' WHERE key = 'options'",
        "UPDATE count SET key = 'end/lost' WHERE key = 'end/kept'",
        "DELETE FROM seen WHERE batch = 1",
    ],
)
def test_a_crawl_refuses_a_damaged_state_before_it_changes_anything(job, options, statement):
    change(job, statement)
    assert "damaged" in refused(job, options)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE file SET length_bytes = length_bytes - 5 WHERE kind = 'corpus'",
        "DELETE FROM file WHERE kind = 'corpus'",
        "UPDATE file SET kind = 'corpuz' WHERE kind = 'corpus'",
    ],
)
def test_no_text_is_cut_off_by_a_recorded_length_that_is_damaged(job, options, statement):
    """A killed crawl leaves its log, and with it a start cuts back what the state does not know."""
    log = sqlite3.connect(job / "state/frontier.sqlite")
    log.execute("PRAGMA user_version").fetchone()
    change(job, statement)
    try:
        assert "damaged" in refused(job, options)
    finally:
        log.close()


def killed(directory: Path, statement: str) -> Path:
    """A JOBDIR that a kill left, with an unfinished batch, and with a change of its state in the log as well."""
    job = Path(shutil.copytree(ROOT / "tests/jobdirs/killed", directory / "before"))
    with closing(sqlite3.connect(job / "state/frontier.sqlite")) as state:
        with state:
            state.execute(statement)
        shutil.copytree(job, directory / "job")
    (directory / "job/state/frontier.sqlite-shm").unlink(missing_ok=True)
    return directory / "job"


@pytest.mark.parametrize(
    ("statement", "lost", "said"),
    [
        ("DELETE FROM host WHERE id = 2", "", "some are missing"),
        ("DELETE FROM host WHERE id = (SELECT max(id) FROM host)", "", "some are missing"),
        ("SELECT 1", "corpus/cs-00001.prevert.zst", "has 0 b"),
    ],
)
def test_a_refusal_leaves_the_state_its_log_and_an_unfinished_batch_byte_for_byte(tmp_path, statement, lost, said):
    """SQLite moved the log into the file and deleted it; the next start called the last batch surplus then."""
    job = killed(tmp_path, statement)
    with closing(Inspection(tmp_path / "before")) as crawl:
        options = crawl.options
    if lost:
        (job / lost).unlink()
    passing = ("lock", "frontier.sqlite-shm")
    before = {path: path.read_bytes() for path in job.rglob("*") if path.is_file()}
    assert before[job / "state/frontier.sqlite-wal"]
    for _ in range(2):
        with pytest.raises(SpiderlingError, match=said):
            OpenCrawl(options, job, pytest.fail)
        after = {path: path.read_bytes() for path in job.rglob("*") if path.is_file() and path.name not in passing}
        assert after == before


def test_a_queue_that_lost_a_chunk_is_an_error_when_it_is_reached(job):
    """That is what stops the crawl: no URL is handed out in the place of those that are gone."""
    change(job, "DELETE FROM chunk")
    with closing(SqliteStore(job / "state/frontier.sqlite")) as store:
        lost = Frontier(Options(lang="cs"), store=store)
        lost.restore(store.load(), 0.0)
        host = lost.hosts.by_id(1)
        message = r"the queue of a\.test is damaged: .* URLs wait in it, and none is there"
        with pytest.raises(DamageError, match=message):
            [lost.url_states.queues.pop(host) for _ in range(100)]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE host SET pages = pages + 1", r"the hosts have \d+ pages together, the counts say \d+"),
        ("UPDATE host SET kept_bytes = kept_bytes - 1", "kept_bytes together, the counts say"),
        ("DELETE FROM seen", "URLs were discovered, but the keys of 0 are known"),
        ("DELETE FROM seen", r"the URLs of 2 documents are not among those that were discovered"),
        (
            "UPDATE count SET key = 'end/dns' WHERE key = 'end/http-error'",
            r"\d+ URLs ended as dns by the counts, 0 by the",
        ),
        ("UPDATE count SET value = value + 1 WHERE key = 'discovered'", "the books do not balance"),
        ("UPDATE count SET value = value + 1 WHERE key IN ('discovered', 'waiting')", "stand in the queues"),
        ("UPDATE host SET waiting = 7", "1 hosts have other queues than they count: a.test"),
        ("UPDATE file SET entries = entries + 1", "documents, not"),
        ("UPDATE count SET value = value - 1 WHERE key = 'total/documents'", "the counts say"),
        ("DELETE FROM digest", "the digests of"),
        (
            "INSERT INTO ended SELECT batch + 1000, time, segment, offset_bytes, checksum, keys, ends FROM ended",
            "ended before",
        ),
    ],
)
def test_the_check_finds_what_is_missing_between_tables(job, statement, problem):
    """Also where the checksums of the rows know nothing of it, as in a state that was changed by hand."""
    change(job, statement)
    with closing(Inspection(job)) as crawl:
        assert any(re.search(problem, line) for line in problems(crawl))


OTHER = (
    "CASE typeof({0}) WHEN 'text' THEN {0} || '!' WHEN 'blob' THEN zeroblob(length({0}) + 1) WHEN 'null' THEN 1 "
    "ELSE {0} + 1 END"
)
"""Another value of a column, of the same kind."""


def test_the_check_finds_a_row_of_any_table_that_was_changed_or_is_gone(job):
    """No sum of the books tells of these: only what was written beside each row does."""
    names = sorted(TABLES)
    filled = set()
    with closing(sqlite3.connect(job / "state/frontier.sqlite", isolation_level=None)) as state:
        for name in names:
            columns = [row[1] for row in state.execute(f"PRAGMA table_info({name})")]
            last = f"{columns[0]} = (SELECT max({columns[0]}) FROM {name})"
            harms = [f"DELETE FROM {name} WHERE {last}"]
            harms += [f"UPDATE {name} SET {one} = {OTHER.format(one)} WHERE {last}" for one in columns[1:]]
            for harm in harms:
                state.execute("BEGIN")
                if state.execute(harm).rowcount:
                    filled.add(name)
                    assert any(f"of table {name} " in line for line in damaged_rows(state)), harm
                state.execute("ROLLBACK")
        state.execute("DROP VIEW consents")
        assert any("are not those that were made: consents" in line for line in damaged_rows(state))
    assert {"host", "seen", "ended", "found", "meta", "count", "file", "history", "digest"} <= filled


def test_a_check_says_once_why_parts_of_the_state_cannot_be_read(job):
    state = job / "state/frontier.sqlite"
    with closing(sqlite3.connect(state)) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
    whole = state.read_bytes()
    state.write_bytes(whole[: 2 * size] + b"\x5a" * (len(whole) - 2 * size))
    said = told(job)["check"]
    assert sum("is malformed" in line for line in said) == 1, said
    assert any(line.startswith("the state's structure, ") for line in said), said


def test_the_check_finds_a_segment_that_lost_text(job):
    segment = min(job.glob("corpus/*.zst"))
    os.truncate(segment, segment.stat().st_size - 3)
    assert any("ends before its recorded length" in line for line in told(job)["check"])


def test_text_behind_a_recorded_length_or_without_a_record_is_no_damage(job):
    """A kill leaves it."""
    with min(job.glob("corpus/*.zst")).open("ab") as file:
        file.write(b"seven..")
    (job / "corpus/another.prevert.zst").write_bytes(b"")
    with closing(Inspection(job)) as crawl:
        assert list(problems(crawl)) == []
    change(job, 'UPDATE meta SET value = replace(value, \'"trail": "full"\', \'"trail": "off"\')')
    with closing(Inspection(job)) as crawl:
        assert not any("trail" in line and "ended" in line for line in problems(crawl))


def test_every_frame_that_is_written_has_a_checksum(made, tmp_path):
    """Else a flipped bit in the text of a frame is text as well, and nobody knows."""
    written = [min(made.glob(f"{kind}/*.zst")).read_bytes() for kind in ("corpus", "links")]
    with closing(sqlite3.connect(made / "state/frontier.sqlite")) as state:
        written += [row[0] for row in state.execute("SELECT ends FROM ended")]
    with closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        store.commit(Changes(flush=Flush(1, {16: [b"a line of a queue"] * 99})))
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as state:
        written += [row[0] for row in state.execute("SELECT lines FROM chunk")]
    seen = ShingleFilter(1 << 20)
    seen.remember(Keys.of(np.arange(9, dtype=np.uint64)))
    ShingleState(tmp_path / "shingles", 1 << 20).write_layers(seen)
    written += [path.read_bytes() for path in tmp_path.glob("shingles/*.zst")]
    written += [WarcKind("zstd", {}).begin("a.warc.zst"), packer("a.prevert.zst")(b"text"), pack(NgramCounts({}))]
    assert len(written) >= 8 and all(frame[4] & 4 for frame in written)


def flipped(job: Path, rng: random.Random) -> None:
    state = job / "state/frontier.sqlite"
    files = [state, state, *sorted(job.glob("corpus/*.zst")), *sorted(job.glob("links/*")), *sorted(job.glob("warc/*"))]
    path, kind = rng.choice(files), rng.choice(("flip", "flip", "cut", "zeros"))
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    if kind == "cut":
        os.truncate(path, at)
        return
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    else:
        begin = at - at % 4096
        data[begin : begin + 4096] = bytes(len(data[begin : begin + 4096]))
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(24))
def test_random_damage_gives_no_traceback(job, seed):
    """Bits, pages and ends of files, always the same ones; each reader gives what it read or one sentence."""
    flipped(job, random.Random(seed))
    told(job)


# -- one bit is flipped, again and again: it is found, or all rows, documents, links and records are as before

FLIPS = 100  # flips of each directory
STATE_SHARE = 0.6
DATABASE = "state/frontier.sqlite"


def made_directories(scratch: Path) -> list[Path]:
    """The directory of a killed crawl, and the same with its log in the file and its queues in chunks."""
    killed, settled = (Path(shutil.copytree(ROOT / "tests/jobdirs/killed", scratch / n)) for n in ("killed", "settled"))
    with closing(Jobdir(settled)) as jobdir:
        jobdir.judge("cs", moves=False)()
    with closing(SqliteStore(settled / DATABASE)) as store:
        state = store.load()
        generation = state.counts.get(GENERATION, 0) + 1
        store.commit(Changes(flush=Flush(generation, state.tails), counts={GENERATION: generation}))
    assert (killed / f"{DATABASE}-wal").stat().st_size and not (settled / f"{DATABASE}-wal").exists()
    return [killed, settled]


def flips_of(directory: Path, copy: Path, rng: random.Random) -> Iterator[Path]:
    """Copies with one bit flipped, in the state's files and in segments, within each by size."""
    state = sorted(directory.glob("state/frontier.sqlite*"))
    segments = sorted(path for kind in ("corpus", "links", "warc") for path in directory.glob(f"{kind}/cs-[0-9]*.*z*"))
    for files, many in ((state, round(FLIPS * STATE_SHARE)), (segments, FLIPS - round(FLIPS * STATE_SHARE))):
        for path in rng.choices(files, [path.stat().st_size for path in files], k=many):
            data = bytearray(path.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(directory, copy)
            (copy / path.relative_to(directory)).write_bytes(data)
            yield copy


def first_problem(directory: Path) -> str:
    """The first problem that the check names."""
    with closing(Inspection(directory)) as crawl:
        try:
            return next(problems(crawl), "")
        except sqlite3.Error as error:  # the command says it in one sentence (commands/inspect.py)
            return str(error)


def opened(directory: Path) -> str:
    """Read everything that a crawl reads of its directory; raises SpiderlingError if it is refused."""
    with closing(Jobdir(directory)) as jobdir:
        jobdir.judge("cs", moves=False)()
    with closing(SqliteStore(directory / DATABASE)) as store:
        state = store.load()
        frontier = Frontier(Options(lang="cs"), store=store)
        frontier.restore(state, time.time())
        ids = range(1, sum(len(columns.names) for columns in store.host_columns()) + 1)
        for host in ids:
            store.host(host)
            for chunk in store.chunk_ids(host):
                store.chunk(chunk)
        for mark in store.used_hosts():
            store.robots(f"http://{mark.name}")
        store.consents()
        for kind in (SegmentKind("corpus", SUFFIX), LinkKind(), WarcKind("on", {})):
            SegmentWriter(directory / kind.name, "cs", 10**6, state.segments, kind).close()
    return ""


def exported(directory: Path) -> str:
    """Read the corpus as ``scrapy export`` does."""
    for source in corpus_of([str(directory)]).sources:
        for _ in stored_documents(source):
            pass
    return ""


STEPS = first_problem, opened, exported


def contents(directory: Path) -> dict[str, Any]:
    """All rows of all tables, and everything in the segments up to their recorded lengths."""
    found: dict[str, Any] = {}
    with closing(Inspection(directory)) as crawl:
        for name in (*TABLES, "written"):
            rows = crawl.connection.execute(f"SELECT * FROM {name}").fetchall()
            found[name] = sorted(map(repr, rows))
        for segment in crawl.segments("corpus"):
            found[segment.path.name] = [frame.data for frame in frames(segment.path, segment.length)]
        for segment in crawl.segments("links"):
            found[segment.path.name] = list(read_links(segment.path, segment.length))
        for segment in crawl.segments("warc"):
            found[segment.path.name] = [(r.headers, r.block) for r in records(segment.path, segment.length)]
    return found


def found_by(directory: Path, scratch: Path) -> str:
    """What says that there is damage; empty if nothing does.  Raises any error but those that are one sentence."""
    for step in STEPS:
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            said = step(Path(shutil.copytree(directory, scratch)))
        except SpiderlingError as error:
            said = str(error)
        if said:
            return said
    return ""


@pytest.mark.slow
def test_a_flipped_bit_is_found_or_harmless(tmp_path):
    rng, scratch = random.Random(17), tmp_path / "scratch"
    for directory in made_directories(tmp_path):
        assert not found_by(directory, scratch)
        expected = contents(Path(shutil.copytree(directory, tmp_path / f"{directory.name}-read")))
        for number, copy in enumerate(flips_of(directory, tmp_path / "flipped", rng)):
            if not found_by(copy, scratch):
                assert contents(copy) == expected, (directory, number)


def test_a_damaged_schema_that_is_no_text_is_told_as_damage(tmp_path) -> None:
    """SQLite's own message has its bytes in it, and Python cannot decode that."""
    SqliteStore(tmp_path / "state").close()
    whole = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(whole.replace(b"CREATE TABLE", b"CREATE \x89ABLE"))
    with pytest.raises(JobdirError, match="is damaged, or cannot be read"):
        recorded_segments(tmp_path / "state")
