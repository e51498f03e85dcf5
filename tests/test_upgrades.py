"""A crawl survives an upgrade: the JOBDIR of an earlier version goes on, or is refused before a byte is written."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest
from conftest import ROOT, Crawl, serving

from spiderling.base.errors import JobdirError, StorageError
from spiderling.frontier.storage.checksums import TABLES, chunk_checksum
from spiderling.frontier.storage.protocol import HostRow
from spiderling.frontier.storage.schema import APPLICATION_ID, SCHEMA_VERSION
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.state_file import version_of
from spiderling.jobdir import migration
from spiderling.jobdir.check import problems
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection

sys.path.insert(0, str(Path(__file__).parent / "jobdirs"))
from made_jobdirs import crawl_in, outcome, web

JOBDIRS = ROOT / "tests/jobdirs"
FORMERS = (4, 5, 6, 7)


@pytest.fixture
def former() -> int:
    """Schema of the JOBDIR."""
    return FORMERS[0]


@pytest.fixture
def job(tmp_path: Path, former: int) -> Path:
    """A copy of the JOBDIR that the code of a schema left when it was killed."""
    return Path(shutil.copytree(JOBDIRS / f"schema-{former}", tmp_path / "job"))


def database(job: Path) -> Path:
    return job / "state/frontier.sqlite"


def migrate(path: Path) -> Path | None:
    """Do what a start does once the crawl is found usable; returns where the old file is then."""
    new = migration.upgraded(path)
    return None if new is None else migration.take_over(path, new)


def rows_of(path: Path) -> dict[str, list[tuple]]:
    """All rows of all tables, without checksums; of a copy, so that nothing is changed by reading."""
    copy = path.parent.with_name(path.name + "-read")
    shutil.copytree(path.parent, copy)
    with closing(sqlite3.connect(copy / path.name)) as state:
        columns = {table.name: table.rows.replace(", checksum FROM", " FROM") for table in TABLES.values()}
        columns["host"] = f"SELECT {', '.join(HostRow._fields)} FROM host ORDER BY id"
        columns["chunk"] = "SELECT id, urls, lines FROM chunk ORDER BY id"
        there = {row[0] for row in state.execute("SELECT name FROM sqlite_master")}
        found = {name: state.execute(query).fetchall() if name in there else [] for name, query in columns.items()}
    shutil.rmtree(copy)
    return found


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("former", FORMERS)
def test_a_crawl_that_was_killed_before_an_upgrade_ends_as_it_would_have_ended(job, tmp_path, former):
    """Waiting and parked URLs, those with a spider's own arguments, one in transit and an unfinished batch."""
    with serving(web()) as server:
        crawl = crawl_in(job, server, tmp_path / "scratch")
        result = crawl.run(HOST_INTERVAL_S=0.04)
    assert result.code == 0 and "is finished." in result.output, result.output
    assert "Traceback" not in result.output
    items = [json.loads(line) for line in (tmp_path / "scratch/items.jsonl").read_text().splitlines()]
    called = [item["number"] for item in items if "number" in item]
    expected = json.loads((JOBDIRS / f"schema-{former}.json").read_text())
    assert {**outcome(crawl), "items": sorted(called)} == expected
    assert len(called) > 20 and all(item["colour"] == "red" for item in items if "number" in item)
    assert crawl.state().hosts["poor.test"]["state"] == "retired"
    assert [event for event in crawl.state().events if f"frontier.sqlite.schema-{former}" in event]
    with closing(Inspection(job)) as opened:
        assert opened.schema == SCHEMA_VERSION
        assert list(problems(opened)) == []


@pytest.mark.parametrize("former", FORMERS)
def test_an_upgrade_changes_no_row_and_keeps_the_old_file_with_what_its_log_held(job, former):
    with closing(sqlite3.connect(database(job))) as state, state:  # a queue that has been written as chunks as well
        if former == 4:
            state.execute("INSERT INTO chunk(id, urls, lines) VALUES (?, 2, ?)", (3 << 38, b"@/a\n@/b"))
        else:
            row = (3 << 38, 2, b"@/a\n@/b")
            state.execute(
                "INSERT INTO chunk(id, urls, lines, checksum) VALUES (?, ?, ?, ?)", (*row, chunk_checksum(*row))
            )
            state.execute("REPLACE INTO written VALUES ('chunk', 1, 0)")
    before = rows_of(database(job))
    assert before["meta"] and before["log"] and before["consent"] and before["purged"] and before["chunk"]
    kept = migrate(database(job))
    assert kept == database(job).with_name(f"frontier.sqlite.schema-{former}")
    assert version_of(kept) == former and version_of(database(job)) == SCHEMA_VERSION
    assert rows_of(database(job)) == rows_of(kept) == before
    with closing(SqliteStore(database(job))) as store:
        assert store.host(2).state == "retired"
        assert store.chunk(3 << 38) == [b"@/a", b"@/b"]
        assert store.load().meta == dict(before["meta"])
    assert migrate(database(job)) is None, "it is done once"


def killed_at(job: Path, moment: int) -> bool:
    """Migrate in a process that is killed at a *moment*: whenever migration.py calls a function.

    False if it came to its end before.
    """
    child = os.fork()
    if not child:
        moments = itertools.count()

        def at_a_call(frame: FrameType, event: str, argument: object) -> None:
            if event.endswith("call") and frame.f_code.co_filename == migration.__file__ and next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(at_a_call)
        migrate(database(job))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("former", FORMERS)
def test_a_kill_at_any_moment_of_an_upgrade_leaves_the_old_state_or_the_new_one(job, former):
    before, moment, upgraded = rows_of(database(job)), 0, 0
    while killed_at(job, moment):
        assert rows_of(database(job)) == before, moment
        if version_of(database(job)) == SCHEMA_VERSION:
            upgraded += 1
            kept = database(job).with_name(f"frontier.sqlite.schema-{former}")
            assert rows_of(kept) == before
            kept.replace(database(job))  # once more
        moment += 1
    assert moment > upgraded > 0
    assert rows_of(database(job)) == before and version_of(database(job)) == SCHEMA_VERSION
    assert {path.name for path in (job / "state").iterdir()} == {"frontier.sqlite", f"frontier.sqlite.schema-{former}"}


@pytest.mark.parametrize("former", [5])
def test_an_upgrade_hides_no_damage(job):
    with closing(sqlite3.connect(database(job))) as state, state:
        state.execute("UPDATE host SET words = words + 1 WHERE id = 2")
    with closing(Inspection(job)) as opened:
        before = list(problems(opened))
    migrate(database(job))
    with closing(Inspection(job)) as opened:
        assert opened.schema == SCHEMA_VERSION
        assert [line for line in problems(opened) if "table host" in line]
        assert len(list(problems(opened))) == len(before)


def test_an_upgrade_that_has_no_room_or_is_read_by_others_says_so_and_leaves_all_as_it_was(job, monkeypatch):
    with closing(Inspection(job)), pytest.raises(StorageError, match=r"another process reads it.*It is as it was"):
        migrate(database(job))
    before = rows_of(database(job))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5000))
    with pytest.raises(StorageError, match=r"MB are needed on its disk, 0 MB are free.*mend that and start again"):
        migrate(database(job))
    assert version_of(database(job)) == 4
    assert rows_of(database(job)) == before
    monkeypatch.undo()
    monkeypatch.setattr(Path, "hardlink_to", lambda *names: (_ for _ in ()).throw(OSError("no links here")))
    kept = migrate(database(job))
    assert rows_of(kept) == rows_of(database(job)) == before, "a copy is kept where there are no second names"


def test_a_state_that_was_kept_before_is_not_overwritten(job):
    kept = database(job).with_name("frontier.sqlite.schema-4")
    kept.write_bytes(b"of a former upgrade")
    assert migrate(database(job)) == kept.with_name("frontier.sqlite.schema-4.1")
    assert kept.read_bytes() == b"of a former upgrade"


@pytest.mark.parametrize("version", [1, 2, 3, SCHEMA_VERSION + 1])
@pytest.mark.parametrize("is_in_log", [False, True])
def test_other_schemas_are_refused_before_a_byte_is_written(tmp_path, version, is_in_log):
    """Also when all that tells the schema is still in the write-ahead log, as after a kill in the first seconds."""
    path = database(tmp_path)
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as state:
        if is_in_log:
            state.execute("PRAGMA journal_mode=WAL")
        state.executescript(f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={version};"
                            "CREATE TABLE meta(key, value); COMMIT")  # fmt: skip
        if is_in_log:
            left = files_of(tmp_path)
    if is_in_log:
        for name in ("frontier.sqlite", "frontier.sqlite-wal"):
            (path.parent / name).write_bytes(left[f"state/{name}"])
    before = files_of(tmp_path)
    for opened in (lambda: Jobdir(tmp_path), lambda: SqliteStore(path)):
        with pytest.raises(JobdirError, match=f"another version of Spiderling .schema {version}, this one has"):
            opened()
        assert files_of(tmp_path) == before
    with pytest.raises(JobdirError, match=f"another version of Spiderling .schema {version}, this one reads"):
        Inspection(tmp_path)


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


@pytest.mark.parametrize("former", FORMERS)
def test_what_only_reads_takes_the_former_schema_as_it_is(job, former):
    before = files_of(job)
    with closing(Inspection(job)) as opened:
        assert opened.schema == former
        assert list(problems(opened)) == []
        assert opened.host("poor.test")["state"] == "retired"
        assert opened.story("http://shop.test/item/39").row.payload
    after = files_of(job)
    assert {name: after[name] for name in before} == before
