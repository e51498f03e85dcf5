"""Crawls in virtual time: nothing is wrong with a few seeds, and what was mended would be found by one."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from needs import needs

from spiderling.base.errors import JobdirError, StorageError
from spiderling.frontier.storage.sqlite import SqliteStore
from tests.recorded_disk import recorded
from tests.simulated.crawl import Disk, Fault
from tests.simulated.plans import FIRST_OF_ARCHIVES, FIRST_OF_BROKEN, FIRST_OF_LIMITED, FIRST_OF_SHARDS, FIRST_OF_WIDER
from tests.simulated.planted import PLANTED, ROOT, changed, planted


def simulated(directory: Path, *options: str) -> tuple[str, dict[str, float]]:
    """What the script says, and its RESULT; a process of its own, since Scrapy has no reactor there."""
    command = [sys.executable, "-m", "benchmarks.simulated_faults", *options]
    ended = subprocess.run(
        command, cwd=directory, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
    )
    lines = [line for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, ended.stdout + ended.stderr
    return ended.stdout, json.loads(lines[0].removeprefix("RESULT "))


REMEMBERED = {
    200021: "a seed that was asked again by control.yaml was asked again when it was named once more",
    200112: "after a power cut amid a run with SPIDERLING_DURABILITY=normal a start with full was refused",
    540: "a second take-down counted a URL that the first had taken from the queue",
    525: "a take-down passed over text that was written before the first commit",
    48: "what a client of the live page did not read kept its connection, which did not count any more",
    60226: "a client that left the live page amid a control was told of in the log as a failure of the page",
    9246: "control.yaml was applied to a crawl whose state was closed already, and the crawl ended as failed",
    50: "a start whose budget was spent took seeds when its state was closed, and failed",
    300035: "a recrawl after a rebuild kept pages again that had not changed",
    310024: "a snapshot of a crawl that had committed nothing was one of another crawl later",
    310033: "a seed that had failed was looked up again after it was taken down",
    320621: "a crawl that could open no file any more left what it could not commit, and no later start went on",
    501599: "what control.yaml orders waited until all URLs were found that its ask_again names",
    502046: "a URL that was in transit at a kill, at a host that had been closed, ended once more at each restart",
    605267: "a probe of the network went on when the crawl was closed, which ended as failed then",
    607769: "what a crawl on a full disk had cut off was there again after a power cut, and no later start went on",
    609085: "an error of our own while a crawl was being stopped kept its spider from being closed",
    613085: "a URL was noted that an error of our own had stopped at, in a state whose last commit had failed: damage",
    616974: "an error where the engine is woken ended no crawl, and none woke it again while the network was away",
    620104: "an error of our own where a failed request waits for the network left its URL in transit for ever",
    311210: "a recrawl forgot what was noted of pages before the clock was set back",
}
"""Seeds that have found a fault of the product, and what that was."""
OF_SHARDS = {
    1071075: "a probe waited with a record that had left memory, and its host was asked for a page meanwhile",
    1300061: "a take-down counted documents twice whose trail was switched off later",
    1320123: "a shard probed a host that had moved to another one, which asked it too",
    1500002: "a paused crawl sent requests that waited for the slot of an address",
    1500278: "a shard whose answering hosts had moved waited a day for its own, while the sites of others refused all",
    1500120: "a paused crawl whose network seemed to be away asked whether it was there",
    1600271: "an error at the start of the checkpoints' clock was passed over, and no shard got what others sent",
    1310145: "a process did not wait for the lease of a killed one whose record Redis had lost",
}
"""The same of crawls of two shards."""
OF_ARCHIVES = {
    2000001: "the record in which an archive ended that was still copied counted as damaged for good",
}
"""The same of crawls of archives."""


@needs("SQLite's VFS")
def test_crawls_with_faults_lose_nothing_do_nothing_twice_and_end() -> None:
    seeds = [
        seed for first in (0, FIRST_OF_WIDER, FIRST_OF_LIMITED, FIRST_OF_BROKEN) for seed in range(first, first + 3)
    ]
    seeds += REMEMBERED
    said, found = simulated(ROOT, "--only", *map(str, seeds))
    assert (found["seeds"], said.count("seed ")) == (len(seeds), 0), said
    assert found["documents"] > 200 and "killed" in said and "failed" in said


@needs("SQLite's VFS")
@needs("fakeredis")
def test_two_shards_with_faults_keep_together_what_they_must() -> None:
    seeds = [FIRST_OF_SHARDS, FIRST_OF_SHARDS + FIRST_OF_LIMITED + 32, *OF_SHARDS]  # the second is divided further
    said, found = simulated(ROOT, "--only", *map(str, seeds))
    assert (found["seeds"], said.count("seed ")) == (len(seeds), 0), said
    assert found["documents"] > 20


@needs("SQLite's VFS")
def test_archives_are_read_once_and_to_their_end() -> None:
    first = FIRST_OF_ARCHIVES + FIRST_OF_LIMITED
    seeds = [first, first + 1, *OF_ARCHIVES]
    said, found = simulated(ROOT, "--only", *map(str, seeds))
    assert (found["seeds"], said.count("seed ")) == (len(seeds), 0), said
    assert found["documents"] > 20


@needs("SQLite's VFS")
@pytest.mark.parametrize(
    ("name", "kind"),
    [("what a kill left of a segment stays", "failed"), ("an interval begins at the hand-out", "impolite")],
)
def test_a_fault_that_was_mended_is_found_and_the_seed_told(tmp_path, name, kind) -> None:
    said, found = simulated(planted(name, tmp_path), "--seeds", "12", "--until-wrong")
    assert f": {kind}: " in said and found["seeds"] <= 12, said


@needs("SQLite's VFS")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EMFILE], ids=errno.errorcode.get)
def test_a_new_state_that_a_failing_call_held_up_is_made_at_the_next_start(tmp_path, code) -> None:
    """SQLite says nothing when it closes a file and cannot empty the log: the file got its name without it."""
    whole = made(tmp_path / "whole")
    for call in range(1, whole.calls + 1):
        path = tmp_path / str(call) / "state"
        with suppress(StorageError, JobdirError):
            made(path.parent, Fault(call, code))
        with closing(SqliteStore(path)) as store:
            assert store.load().counts == {}, call
    assert whole.calls > 30


def made(directory: Path, *faults: Fault) -> Disk:
    """The disk on which a state was made in *directory*."""
    directory.mkdir()
    with recorded(directory, disk := Disk(directory, faults)):
        SqliteStore(directory / "state").close()
    return disk


@pytest.mark.parametrize("name", PLANTED)
def test_the_source_has_what_a_planted_fault_takes_out(name) -> None:
    for change in PLANTED[name]:
        assert changed(change, (ROOT / "spiderling" / change.file).read_text("utf-8"))
