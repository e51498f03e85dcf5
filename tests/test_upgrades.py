"""A crawl survives an upgrade: the JOBDIR of an earlier commit goes on, or is refused before a byte is written."""

from __future__ import annotations

import json
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

from spiderling.base.errors import JobdirError
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.tables import APPLICATION_ID, SCHEMA_VERSION
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection

sys.path.insert(0, str(Path(__file__).parent / "jobdirs"))
from made_jobdirs import crawl_in, outcome, web


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A copy of the JOBDIR that an earlier commit left when it was killed."""
    return Path(shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job"))


def database(job: Path) -> Path:
    return job / "state/frontier.sqlite"


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
