"""A crawl survives an upgrade: the JOBDIR of an earlier commit goes on, or is refused before a byte is written."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from conftest import ROOT, Crawl, damage_in, serving
from needs import needs
from recorded_disk import after_kills, recorded, write_files

from spiderling.base.errors import JobdirError, StorageError
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.state_file import version_of
from spiderling.frontier.storage.tables import APPLICATION_ID, SCHEMA_VERSION, TABLES
from spiderling.jobdir.directory import Jobdir, upgrade
from spiderling.jobdir.inspection import Inspection

sys.path.insert(0, str(Path(__file__).parent / "jobdirs"))
from made_jobdirs import crawl_in, outcome, web

NEXT = SCHEMA_VERSION + 1
TO_NEXT = {
    SCHEMA_VERSION: "CREATE TABLE mood(host INTEGER PRIMARY KEY, mood TEXT NOT NULL);"
    "INSERT INTO mood SELECT id, 'good' FROM host; CREATE VIEW moods AS SELECT name, mood FROM host JOIN mood;"
}
"""A made-up next schema."""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A copy of the JOBDIR that an earlier commit left when it was killed."""
    return Path(shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job"))


def database(job: Path) -> Path:
    return job / "state/frontier.sqlite"


def rows_of(path: Path) -> dict[str, list[tuple]]:
    """All rows of all tables with their checksums; of a copy, so that nothing is changed by reading."""
    copy = path.parent.with_name(path.name + "-read")
    shutil.copytree(path.parent, copy)
    with closing(sqlite3.connect(copy / path.name)) as state:
        queries = {table.name: table.rows for table in TABLES.values()}
        queries["written"] = "SELECT * FROM written ORDER BY 1"
        found = {name: state.execute(query).fetchall() for name, query in queries.items()}
    shutil.rmtree(copy)
    return found


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_crawl_that_an_earlier_commit_left_killed_ends_as_it_would_have_ended(job, tmp_path):
    """Waiting and parked URLs, those with a spider's own arguments, one in transit and an unfinished batch."""
    with serving(web()) as server:
        crawl = crawl_in(job, server, tmp_path / "scratch")
        result = crawl.run(HOST_INTERVAL_S=0.04)
    assert result.code == 0 and "is finished." in result.output, result.output
    assert "Traceback" not in result.output
    items = [json.loads(line) for line in (tmp_path / "scratch/items.jsonl").read_text().splitlines()]
    called = [item["number"] for item in items if "number" in item]
    expected = json.loads((ROOT / "tests/jobdirs/killed.json").read_text())
    assert {**outcome(crawl), "items": sorted(called)} == expected
    assert len(called) > 20 and all(item["colour"] == "red" for item in items if "number" in item)
    assert crawl.state().hosts["poor.test"]["state"] == "retired"
    assert damage_in(job) == []


def test_an_upgrade_changes_no_row_and_keeps_the_old_file_with_what_its_log_held(job):
    with closing(sqlite3.connect(database(job))) as state, state:  # a queue that has been written as chunks as well
        row = (3 << 38, 2, b"@/a\n@/b")
        state.execute(TABLES["chunk"].write, (*row, TABLES["chunk"].checksum(row)))
        state.execute("REPLACE INTO written VALUES ('chunk', 1, 0)")
    before = rows_of(database(job))
    assert before["meta"] and before["log"] and before["consent"] and before["purged"] and before["chunk"]
    kept = upgrade(database(job), TO_NEXT)
    assert kept == database(job).with_name(f"frontier.sqlite.schema-{SCHEMA_VERSION}")
    assert version_of(kept) == SCHEMA_VERSION and version_of(database(job)) == NEXT
    assert rows_of(database(job)) == rows_of(kept) == before
    with closing(sqlite3.connect(database(job))) as state:
        assert set(state.execute("SELECT * FROM moods")) == {(row[1], "good") for row in before["host"]}
    with closing(SqliteStore(kept)) as store:
        assert store.host(2).state == "retired"
        assert store.chunk(3 << 38) == [b"@/a", b"@/b"]
    assert upgrade(database(job), TO_NEXT) is None, "it is done once"


def test_several_schemas_are_gone_through_in_one_transaction(job):
    steps = {**TO_NEXT, NEXT: "ALTER TABLE mood ADD COLUMN since REAL;"}
    broken = {**TO_NEXT, NEXT: "CREATE TABLE more(x); INSERT INTO nowhere VALUES (1);"}
    before = rows_of(database(job))
    with pytest.raises(StorageError, match=r"no such table: nowhere\. It is as it was"):
        upgrade(database(job), broken)
    assert (version_of(database(job)), rows_of(database(job))) == (SCHEMA_VERSION, before)
    upgrade(database(job), steps)
    assert version_of(database(job)) == NEXT + 1


@needs("SQLite's VFS")
@pytest.mark.parametrize("each", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_write_of_an_upgrade_leaves_the_old_state_or_the_new_one(job, tmp_path, each):
    before = rows_of(database(job))
    with recorded(job / "state") as recording:
        upgrade(database(job), TO_NEXT)
    last = len(recording.steps)
    turns = {n for n, step in enumerate(recording.steps) if step.kind in ("rename", "link", "unlink")}
    found = []
    for number, files in enumerate(after_kills(recording)):
        if number % each and number not in turns and number - 1 not in turns and number < last:
            continue
        path = write_files(files, tmp_path / str(number) / "state") / "frontier.sqlite"
        found.append(version_of(path))
        assert rows_of(path) == before, number
        upgrade(path, TO_NEXT)
        assert version_of(path) == NEXT and rows_of(path) == before, number
        kept = path.with_name(f"{path.name}.schema-{SCHEMA_VERSION}")
        assert rows_of(kept) == before, number
        others = {file.name for file in path.parent.iterdir()} - {path.name, kept.name}
        assert others <= {f"{kept.name}.1", f"{path.name}-shm"}, (number, others)
        shutil.rmtree(tmp_path / str(number))
    assert sorted(found) == found and {*found} == {SCHEMA_VERSION, NEXT} and len(found) > 10


def test_an_upgrade_hides_no_damage(job):
    with closing(sqlite3.connect(database(job))) as state, state:
        state.execute("UPDATE host SET words = words + 1 WHERE id = 2")
    before = rows_of(database(job))
    upgrade(database(job), TO_NEXT)
    assert rows_of(database(job)) == before, "its checksum does not agree, as before"


def test_an_upgrade_that_has_no_room_or_is_read_by_others_says_so_and_leaves_all_as_it_was(job):
    before = rows_of(database(job))
    with closing(Inspection(job)), pytest.raises(StorageError, match=r"another process reads it\. It is as it was"):
        upgrade(database(job), TO_NEXT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        with pytest.raises(StorageError, match=r"disk I/O error.*mend that and start again"):
            upgrade(database(job), TO_NEXT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert version_of(database(job)) == SCHEMA_VERSION
    assert rows_of(database(job)) == before
    assert not [*database(job).parent.glob("*schema*")]


def test_a_state_that_was_kept_before_is_not_overwritten(job):
    kept = database(job).with_name(f"frontier.sqlite.schema-{SCHEMA_VERSION}")
    kept.write_bytes(b"of a former upgrade")
    assert upgrade(database(job), TO_NEXT) == kept.with_name(f"{kept.name}.1")
    assert kept.read_bytes() == b"of a former upgrade"


HOW = ("moved", "in the log", "half made", "half moved")


@needs("SQLite's VFS")
@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
@pytest.mark.parametrize("how", HOW)
def test_other_schemas_are_refused_before_a_byte_is_written(tmp_path, version, how):
    """Also when what tells the schema is still in SQLite's log, or a kill left the file half written."""
    path = database(tmp_path / "job")
    making = tmp_path / "making" / path.name
    making.parent.mkdir()
    with recorded(making.parent) as recording, closing(sqlite3.connect(making, isolation_level=None)) as state:
        if how != "half made":
            state.execute("PRAGMA journal_mode=WAL")
        state.executescript(f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={version};"
                            "CREATE TABLE meta(key, value); COMMIT")  # fmt: skip
        recording.note("made")
        state.execute("INSERT INTO meta VALUES (1, zeroblob(9000))")
        recording.note("filled")
        if how == "half made":
            state.execute("DELETE FROM meta")
    images = [*after_kills(recording)]
    made, filled = (at for at, _ in recording.notes)
    moving = next(n for n, step in enumerate(recording.steps) if n >= filled and step.path == path.name)
    at = {"moved": len(images) - 1, "in the log": made, "half made": moving + 1, "half moved": moving + 1}[how]
    write_files(images[at], path.parent)
    before = files_of(path.parent)
    assert ("frontier.sqlite-wal" in before) == (how in ("in the log", "half moved"))
    assert ("frontier.sqlite-journal" in before) == (how == "half made")
    job = path.parent.parent
    for opened in (partial(Jobdir, job), partial(SqliteStore, path), partial(Inspection, job)):
        with pytest.raises(JobdirError, match=f"another version of Spiderling .schema {version}, this one has"):
            opened()
        assert files_of(path.parent) == before


def test_a_crawl_refuses_another_schema_with_one_sentence(tmp_path):
    path = database(tmp_path / "job")
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as state:
        state.executescript(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version=3;")
    before = files_of(tmp_path / "job")
    with serving(web()) as server:
        result = Crawl(tmp_path / "job", server).run("http://rich.test/")
    assert result.code == 1
    assert len(result.lines("] ERROR: ")) == 1 and result.lines("another version of Spiderling (schema 3")
    assert "Traceback" not in result.output
    assert files_of(tmp_path / "job") == before
