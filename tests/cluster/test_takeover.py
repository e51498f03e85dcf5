"""A crawl whose disk is lost goes on from its snapshot: whole, once, and with nobody else at work on it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from spiderling.base.errors import BadInput, JobdirError, StorageError
from spiderling.corpus.segments import SegmentWriter, frame_texts
from spiderling.frontier.storage.protocol import EPOCH_BITS, Changes, OutboxRow, PeerRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir import snapshots
from spiderling.jobdir.snapshots import EPOCH, Snapshots, take_over


class Work:
    """A directory in which a crawl works: it commits entries of its corpus, and `write` makes a snapshot."""

    def __init__(self, directory: Path, root: Path, created: str = "1.5") -> None:
        for place in (directory / "state", directory / "corpus", root):
            place.mkdir(parents=True, exist_ok=True)
        self.directory, self.root, self.created = directory, root, created
        self.failed: list[JobdirError] = []
        self.open()

    def open(self) -> None:
        self.store = SqliteStore(self.directory / "state/frontier.sqlite")
        state = self.store.load()
        self.writer = SegmentWriter(self.directory / "corpus", "cs", 100, state.segments)
        self.snapshots = Snapshots(self.root, self.directory, False, self.failed.append)
        self.snapshots.begin(state)

    def commit(self, text: str, **changes) -> None:
        row = self.writer.append([f"{text}\n".encode()])
        self.store.commit(Changes(segments=[row], meta={"created": self.created}, **changes))
        self.writer.acknowledge()

    def close(self) -> None:
        self.writer.close()
        self.store.close()

    def step(self) -> None:
        self.snapshots.step()
        if (thread := self.snapshots._thread) is not None:  # noqa: SLF001
            thread.join(60)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "problems", lambda crawl: iter(()))  # no crawl has made these texts
    made = Work(tmp_path / "here/cs", tmp_path / "shared")
    yield made
    made.close()


def texts(directory: Path) -> str:
    """What the state in *directory* knows of its corpus."""
    with closing(SqliteStore(directory / "state/frontier.sqlite", writes=False)) as store:
        rows = store.load().segments
    return "".join(
        text for row in sorted(rows) for text in frame_texts(directory / "corpus" / row.name, row.length_bytes)
    )


def test_a_snapshot_has_what_was_committed_and_only_what_is_new_is_written(work, tmp_path):
    saved = tmp_path / "shared/cs"
    for number in range(6):
        work.commit(f"text {number}", digests=range(number * 1000, number * 1000 + 1000))
        work.snapshots.write()
        assert texts(saved) == texts(work.directory) == "".join(f"text {n}\n" for n in range(number + 1))
        work.commit(f"text {number}b", digests=[number]) if number == 5 else None
    size = (saved / "state/frontier.sqlite").stat().st_size
    assert work.snapshots._last < size / 2, "pages that did not change are not written"  # noqa: SLF001
    assert "5b" not in texts(saved)


def test_the_state_may_be_written_while_it_is_copied(work, tmp_path, monkeypatch):
    """The snapshot is one commit, though others follow in each moment."""
    over = threading.Event()

    def go_on():
        number = 0
        while not over.is_set():
            number += 1
            work.commit(f"{number}", digests=range(number * 500, number * 500 + 500), counts={"total/pages": number})

    work.commit("first")
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for _ in range(8):
            work.snapshots.write()
            found = texts(tmp_path / "shared/cs").split()
            with closing(SqliteStore(tmp_path / "shared/cs/state/frontier.sqlite", writes=False)) as store:
                state = store.load()
            assert state.counts.get("total/pages", 0) == len(found) - 1 == len(state.digests) // 500
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("breaks_at", ["_copy_state", "_append", "_look"])
def test_the_former_snapshot_is_whole_until_the_new_one_is(work, tmp_path, monkeypatch, breaks_at, caplog):
    work.commit("one")
    work.snapshots.write()
    for number in range(3):
        work.commit(f"lost {number}")
        with monkeypatch.context() as patched:
            former = getattr(work.snapshots, breaks_at)
            calls = []

            def full(*values, former=former, calls=calls):
                calls.append(former(*values))
                if breaks_at != "_look" or len(calls) > 1:
                    raise OSError(28, "No space left on device")
                return calls[-1]

            patched.setattr(work.snapshots, breaks_at, full)
            patched.setattr(snapshots, "SHARE", -1)
            work.step()
        assert texts(tmp_path / "shared/cs") == "one\n"
    assert [record.levelname for record in caplog.records if "No space left" in record.message] == ["WARNING"]
    assert not work.failed
    work.snapshots.write()
    assert texts(tmp_path / "shared/cs") == texts(work.directory)


def test_a_shared_disk_that_is_away_is_told_once_and_tried_again(work, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(snapshots, "SHARE", -1)
    work.commit("one")
    (tmp_path / "shared").rename(tmp_path / "away")
    for _ in range(3):
        work.step()
    assert len([record for record in caplog.records if "No snapshot in" in record.message]) == 1
    assert not (tmp_path / "shared").exists(), "nothing is made where its disk should be"
    (tmp_path / "away").rename(tmp_path / "shared")
    work.step()
    assert texts(tmp_path / "shared/cs") == "one\n"
    shutil.rmtree(tmp_path / "shared/cs")
    work.step()
    assert not (tmp_path / "shared/cs").exists() and not work.failed


def test_states_take_a_tenth_of_what_is_written_at_most(work, monkeypatch):
    written = [0]
    monkeypatch.setattr(snapshots, "_written", lambda: written[0])
    work.commit("one", digests=range(50_000))
    work.snapshots = Snapshots(work.root, work.directory, False, work.failed.append)
    work.snapshots.begin(work.store.load())
    size = (work.directory / "state/frontier.sqlite").stat().st_size
    for number in range(400):
        written[0] += size
        if number % 8 == 0:
            work.commit(f"{number}", digests=[number])
        before = work.snapshots._of_states  # noqa: SLF001
        work.step()
        written[0] += work.snapshots._of_states - before  # noqa: SLF001 - its own count too
        assert 10 * work.snapshots._of_states <= written[0]  # noqa: SLF001
    assert work.snapshots._of_states > 2 * size, "there were several"  # noqa: SLF001


def test_the_snapshot_of_another_crawl_is_left_alone(work, tmp_path):
    work.commit("one")
    work.snapshots.write()
    for created in ("2.5", None):
        other = tmp_path / f"there{created}/cs"
        if created:
            Work(other, tmp_path / "elsewhere", created).commit("other")
        with pytest.raises(JobdirError, match="the snapshot of another crawl"):
            Work(other, tmp_path / "shared", str(created))
    assert texts(tmp_path / "shared/cs") == "one\n"


def test_who_was_taken_over_cannot_go_on(work, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "SHARE", -1)
    work.commit("one")
    work.snapshots.write()
    work.commit("two")
    take_over(tmp_path / "shared/cs", tmp_path / "new/cs", 5.0)
    assert texts(tmp_path / "new/cs") == "one\n"
    work.step()
    work.step()
    assert "was taken over from its snapshot" in str(work.failed[0]), "while it runs"
    work.close()
    with pytest.raises(JobdirError, match="was taken over from its snapshot"):
        work.open()
    again = Work(tmp_path / "new/cs", tmp_path / "shared")
    again.commit("three")
    again.snapshots.write()
    again.close()
    assert texts(tmp_path / "shared/cs") == "one\nthree\n", "it has the snapshots now"
    assert "for the time 2" in take_over(tmp_path / "shared/cs", tmp_path / "newest/cs", 6.0)


def test_what_cannot_be_taken_over(work, tmp_path, monkeypatch):
    work.commit("one")
    work.snapshots.write()
    saved = tmp_path / "shared/cs"
    with pytest.raises(BadInput, match="holds no snapshot"):
        take_over(tmp_path / "nothing", tmp_path / "new/cs", 5.0)
    with pytest.raises(JobdirError, match="is there"):
        take_over(saved, work.directory, 5.0)
    [segment] = (saved / "corpus").iterdir()
    data = segment.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "problems", lambda crawl: iter(["the books do not balance"]))
        with pytest.raises(JobdirError, match="is damaged: the books do not balance"):
            take_over(saved, tmp_path / "new/cs", 5.0)
    segment.write_bytes(data[:-1])
    with pytest.raises(StorageError, match="were acknowledged"):
        take_over(saved, tmp_path / "new/cs", 5.0)
    assert not (tmp_path / "new/cs").exists() and not [*saved.glob(f"{EPOCH}*")]


def test_messages_that_wait_get_numbers_of_a_new_epoch(tmp_path):
    messages = [OutboxRow(1, number, 1.0, 2, bytes(600_000)) for number in (3, 4, 5)]
    peers = [PeerRow(1, 5, 7), PeerRow(2, 9, 8)]
    with closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        store.commit(Changes(outbox=messages, peers=peers))
        for epoch in (1, 2):
            snapshots.renumber(store, [1, 2, 3], epoch)
            first = epoch << EPOCH_BITS
            state = store.load()
            assert state.peers == [PeerRow(1, first + 3, 7), PeerRow(2, first, 8), PeerRow(3, first, 0)]
            assert [row.number - first for row in store.messages(1, 0, 1 << 30)] == [1, 2, 3]
            assert state.outboxes == {1: first + 1}


def test_two_that_take_over_get_different_epochs(work, tmp_path):
    work.commit("one")
    work.snapshots.write()
    found = [take_over(tmp_path / "shared/cs", tmp_path / name / "cs", 5.0) for name in "ab"]
    assert [words[-1] for words in found] == ["1", "2"]
    assert sorted(path.name for path in (tmp_path / "shared/cs").glob(f"{EPOCH}*")) == ["epoch-1", "epoch-2"]
    for name, is_newest in (("a", False), ("b", True)):
        if is_newest:
            Work(tmp_path / name / "cs", tmp_path / "shared").close()
        else:
            with pytest.raises(JobdirError, match="was taken over"):
                Work(tmp_path / name / "cs", tmp_path / "shared")
    with closing(sqlite3.connect(tmp_path / "b/cs/state/frontier.sqlite")) as state:
        assert state.execute("SELECT count(*) FROM event").fetchone() == (1,)
