"""A crawl and its state open again after a kill at any write of SQLite's own, after a power cut, and on a full disk."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from conftest import NETWORK, ROOT, Crawl, scrapy, serving
from needs import needs
from recorded_disk import Recording, after_kills, after_power_cut, recorded, write_files

from benchmarks.faults import SEEDS, SETTINGS, linked_web
from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.segments import read_documents
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.tables import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from spiderling.jobdir.damage import problems
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection

BATCHES = 8
IS_FULL = Options().durability == "full"
FROM_HERE = "state/frontier.sqlite"


def record_state(directory: Path) -> Recording:
    """Record a state that is created, filled in batches, checkpointed meanwhile and closed; its notes count batches."""
    (directory / "state").mkdir(parents=True)
    with recorded(directory) as recording:
        store = SqliteStore(directory / FROM_HERE, IS_FULL)
        recording.note(0)
        for number in range(1, BATCHES + 1):
            known = 50 * number
            store.commit(
                Changes(
                    seen=list(range(known - 50, known)),
                    counts={"discovered": known, "end/http-error": known},
                    meta={"batches": str(number), "options": "{}"},
                )
            )
            recording.note(number)
            if number % 3 == 0:
                with closing(sqlite3.connect(directory / FROM_HERE)) as other:
                    other.execute("PRAGMA wal_checkpoint").fetchone()
        store.close()
    return recording


def begun(directory: Path) -> tuple[int, list[str]]:
    """Do what a start does, and close all; returns the number of batches, and what the start says to have done."""
    with ExitStack() as opened:
        jobdir = Jobdir(directory)
        opened.callback(jobdir.close)
        make_agree = jobdir.judge("cs", False)
        store = SqliteStore(jobdir.database, writes=False)
        opened.callback(store.close)
        state = store.load()
        said = make_agree()
        store.begin_writing(jobdir.database)
        store.commit(Changes(meta={"begun": "true"}))
        assert len(state.seen) == 50 * int(state.meta.get("batches", 0))
        return int(state.meta.get("batches", 0)), said


def checked(directory: Path) -> list[str] | None:
    """What ``inspect --check`` finds; None: it says that there is no crawl."""
    try:
        with closing(Inspection(directory)) as crawl:
            return list(problems(crawl))
    except BadInput:
        return None


@needs("SQLite's VFS")
@pytest.mark.parametrize("each", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_prefix_of_its_writes_opens_again_and_no_batch_is_lost(tmp_path, each):
    """It was "malformed" for ever after a kill amid a checkpoint, though the log beside the file was whole.

    The check and the start say the same.
    """
    recording = record_state(tmp_path / "recorded")
    turns = {n + more for n, step in enumerate(recording.steps) if step.kind != "write" for more in (0, 1)}
    paths = {step.path for step in recording.steps}
    assert {FROM_HERE, f"{FROM_HERE}-wal", f"{FROM_HERE}.new"} <= paths
    for number, files in enumerate(after_kills(recording)):
        if number % each == 0 or number in turns:
            job = write_files(files, tmp_path / "job")
            done = recording.noted_before(number)
            is_made = FROM_HERE in files
            assert checked(job) == ([] if is_made else None), number
            batches, said = begun(job)
            assert batches in (len(done) - 1, len(done)) or not done, (number, batches, done)
            assert len(said) == (not is_made and len(files) > 0), (number, said)
            assert checked(job) == [], number
            shutil.rmtree(job)


def half_made(path: Path, at: float) -> Path:
    """A state that was killed while its tables were made in their place, with SQLite's journal beside it."""
    making = path.parent / "making"
    making.mkdir(parents=True)
    with recorded(making) as recording, closing(sqlite3.connect(making / path.name)) as state:
        state.executescript(f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};"
                            f"{SCHEMA} COMMIT")  # fmt: skip
    shutil.rmtree(making)
    first, *_ = (n for n, step in enumerate(recording.steps) if step.path == path.name)
    images = [*after_kills(recording)]
    write_files(images[first + 1 + int(at * (len(images) - first - 4))], path.parent)
    assert path.stat().st_size and path.with_name(f"{path.name}-journal").stat().st_size
    return path


@needs("SQLite's VFS")
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_a_state_that_was_never_finished_begins_anew_with_one_line(tmp_path, at):
    half_made(tmp_path / "job" / FROM_HERE, at)
    assert checked(tmp_path / "job") is None
    batches, said = begun(tmp_path / "job")
    assert batches == 0 and len(said) == 1 and "had not finished, was made anew" in said[0]
    assert checked(tmp_path / "job") == []
    assert begun(tmp_path / "job") == (0, [])


@needs("SQLite's VFS")
def test_text_whose_state_was_never_finished_is_refused_as_before(tmp_path):
    """A state that is half made acknowledged nothing: the text is of another one."""
    job = Path(shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job"))
    shutil.rmtree(job / "state")
    half_made(job / FROM_HERE, 0.5)
    with pytest.raises(JobdirError, match=r"their state is gone.*--rebuild"):
        begun(job)


# -- disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


@needs("mounting")
@pytest.mark.parametrize("is_killed", [True, False])
def test_what_only_reads_works_on_a_disk_that_cannot_be_written(disk, tmp_path, is_killed):
    job = Path(shutil.copytree(ROOT / "tests/jobdirs/killed", disk / "job"))
    if not is_killed:
        with closing(sqlite3.connect(job / FROM_HERE)) as state:
            state.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = {path: path.read_bytes() for path in job.rglob("*") if path.is_file()}
    remount(disk, "ro")
    assert checked(job) == []
    for arguments in (["inspect", job], ["inspect", job, "host", "rich.test"], ["export", job, "-o", tmp_path / "out"]):
        ended = scrapy(*map(str, arguments))
        assert ended.code == 0 and "Traceback" not in ended.log, ended.log
    assert {path: path.read_bytes() for path in job.rglob("*") if path.is_file()} == before


@needs("mounting")
@pytest.mark.parametrize("left_kb", [0, pytest.param(16, marks=pytest.mark.slow)])
def test_a_state_on_a_full_disk_says_so_is_read_and_goes_on_when_there_is_room(disk, tmp_path, left_kb):
    """SQLite's index of the log does not fit: "disk I/O error" was taken for damage, and a rebuild was advised."""
    job = Path(shutil.copytree(ROOT / "tests/jobdirs/killed", disk / "job"))
    fill(disk, left_kb)
    assert checked(job) == []
    with closing(Inspection(job)) as crawl:
        options = crawl.options
    assert options.lang == "cs"
    fill(disk, 0)
    with serving(linked_web(2)) as server:
        crawl = Crawl(tmp_path / "job", server, JOBDIR=job, MIN_FREE_BYTES=0, LINKS="on", WARC="on")
        result = crawl.run(SEEDS)
        assert result.code == 1 and "Traceback" not in result.output
        assert len(result.lines("] ERROR: ")) == 1 and result.lines("ERROR: The crawl stops", "ree space on its disk")
        assert checked(job) == []
        remount(disk, "size=64m")
        assert crawl.run(SEEDS).code == 0
    assert checked(job) == []


@needs("mounting")
@pytest.mark.parametrize("left_kb", [0, 16])
def test_a_new_crawl_on_a_full_disk_says_so(server, disk, tmp_path, left_kb):
    """It was told to mend permissions, or to restore a file that had never been."""
    fill(disk, left_kb)
    result = Crawl(tmp_path / "job", server, JOBDIR=disk / "job").run(SEEDS)
    assert result.code == 1
    assert result.lines("ERROR: The crawl stops", "ree space on its disk"), result.output


def fill(disk: Path, left_kb: int) -> None:
    free = shutil.disk_usage(disk).free - 1024 * left_kb
    with (disk / "full").open("ab") as file:
        file.write(bytes(max(0, free)))


@pytest.mark.slow
@needs("mounting")
def test_a_disk_that_fills_up_amid_a_crawl_stops_it_with_one_sentence_and_all_is_there(disk, tmp_path):
    settings = {name: value for name, value in SETTINGS.items() if name != "EXTENSIONS"}
    with serving(linked_web()) as server:
        crawl = Crawl(tmp_path / "job", server, **settings, JOBDIR=disk / "job", MIN_FREE_BYTES=0)
        result = crawl.run(SEEDS)
        assert result.code == 1 and "Traceback" not in result.output, result.output
        assert len(result.lines("] ERROR: ")) == 1 and result.lines("ERROR: The crawl stops"), result.output
        assert checked(disk / "job") == []
        remount(disk, "size=64m")
        assert "is finished." in crawl.run(SEEDS).output
    crawl = Crawl(disk / "job", server)
    crawl.state().check()
    assert len(crawl.documents()) == 75 and checked(disk / "job") == []


CUT_BATCHES = 6


def reopened(directory: Path, durability: str) -> OpenCrawl:
    options = Options(lang="cs", allow_networks=NETWORK, durability=durability)
    return OpenCrawl(options, directory, pytest.fail)


async def record_batches(directory: Path, durability: str) -> Recording:
    """Batches of documents, several to a segment; the notes count those that were acknowledged."""
    rng = random.Random(0)
    with recorded(directory) as recording:
        crawl = reopened(directory, durability)
        recording.note(0)
        for number in range(1, CUT_BATCHES + 1):
            text = b"<doc>\n<p>\n%d %x\n</p>\n</doc>\n" % (number, rng.getrandbits(4000))
            outcome = Outcome(None, f"http://a.test/{number}", Reason.KEPT, document=text)
            crawl.checkpoint.add_outcome(outcome)
            await crawl.checkpoint.flush()
            recording.note(number)
        await crawl.close()
    return recording


def numbers_in(paths: Iterator[Path]) -> list[int]:
    return [int(document.paragraphs[0].split()[0]) for path in sorted(paths) for document in read_documents(path)]


@needs("SQLite's VFS")
@pytest.mark.parametrize("durability", [Options().durability, "normal"])
async def test_a_crawl_opens_after_any_power_cut_and_has_each_text_once(tmp_path, durability):
    """By default all that was acknowledged is there; ``normal`` sets aside what its state does not know any more.

    tests/simulated/ has more cuts, of whole crawls.
    """
    recording = await record_batches(tmp_path / "recorded", durability)
    rng, undone = random.Random(1), 0
    for cut in range(12):
        steps = rng.randrange(len(recording.steps) + 1)
        job = write_files(after_power_cut(recording, steps, rng), tmp_path / "job")
        before = b"".join(path.read_bytes() for path in sorted(job.glob("corpus/*.zst")))
        acknowledged = max(recording.noted_before(steps), default=0)
        await reopened(job, durability).close()
        there, aside = numbers_in(job.glob("corpus/*.zst")), numbers_in(job.glob("corpus/aside/*.zst"))
        assert there == [*range(1, len(there) + 1)], (cut, steps)
        assert len(there) >= acknowledged or durability == "normal", (cut, steps)
        assert {*there, *aside} >= {*range(1, acknowledged + 1)}, (cut, steps)
        undone += len(there) < acknowledged
        kept = sum(path.stat().st_size for path in job.glob("corpus/**/*.zst*"))
        assert kept == len(before) or not aside, "nothing that can be read is deleted"
        shutil.rmtree(job)
    assert bool(undone) == (durability == "normal")


@pytest.fixture(scope="module")
def server():
    with serving(linked_web()) as running:
        yield running
