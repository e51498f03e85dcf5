"""A crawl whose disk is lost goes on from its snapshot: whole, once, and with nobody else at work on it."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import Crawl, scrapy, serving
from needs import needs
from redis_server import RedisServer
from test_crawl_of_shards import ADDRESSES, EVERY, SEED, SITES, SOON, kept, shards

from spiderling.base.errors import BadInput, JobdirError, NoFreeShard, StorageError
from spiderling.base.options import Options
from spiderling.corpus.segments import SegmentWriter, frame_texts
from spiderling.frontier.storage.protocol import EPOCH_BITS, Changes, OutboxRow, PeerRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir import snapshots
from spiderling.jobdir.snapshots import EPOCH, TAKEOVERS, Snapshots, take_over
from webs.web import FixedWeb


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
        self.writer = SegmentWriter(self.directory / "corpus", "cs", 100, self.store.load().segments)
        self.snapshots = Snapshots(self.root, self.directory, False, self.failed.append)

    def commit(self, text: str, **changes) -> None:
        row = self.writer.append([f"{text}\n".encode()])
        self.store.commit(Changes(segments=[row], meta={"created": self.created}, **changes))
        self.writer.acknowledge()

    def close(self) -> None:
        self.writer.close()
        self.store.close()

    def step(self) -> None:
        self.snapshots.step()
        if (thread := self.snapshots.thread) is not None:
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
    assert work.snapshots.last < size / 2, "pages that did not change are not written"
    assert "5b" not in texts(saved)


def test_a_crawl_that_has_not_begun_has_no_snapshot(work, tmp_path):
    """One without the time when it was begun would count as that of another crawl."""
    work.snapshots.write()
    assert not (tmp_path / "shared/cs").exists()
    work.commit("one")
    for _ in range(2):
        work.snapshots.write()
    assert texts(tmp_path / "shared/cs") == "one\n" and not work.failed


def test_the_state_may_be_written_while_it_is_copied(work, tmp_path, monkeypatch):
    """The snapshot is one commit, though others follow and SQLite empties its log whenever it may."""
    monkeypatch.setattr(snapshots, "PIECE_BYTES", 4096)
    number = 0

    def go_on() -> None:
        nonlocal number
        number += 1
        work.commit(f"{number}", digests=range(number * 500, number * 500 + 500), counts={"total/pages": number})
        with closing(sqlite3.connect(work.directory / "state/frontier.sqlite")) as state:
            state.execute("PRAGMA wal_checkpoint(PASSIVE)")

    go_on()
    monkeypatch.setattr(work.snapshots, "go_on", go_on)
    for _ in range(3):
        before = number
        work.snapshots.write()
        with closing(SqliteStore(tmp_path / "shared/cs/state/frontier.sqlite", writes=False)) as store:
            state = store.load()
        found = texts(tmp_path / "shared/cs").split()
        assert state.counts["total/pages"] == len(found) == len(state.digests) // 500 == before


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
    monkeypatch.setattr(snapshots, "bytes_written", lambda: written[0])
    work.commit("one", digests=range(50_000))
    work.snapshots = Snapshots(work.root, work.directory, False, work.failed.append)
    size = (work.directory / "state/frontier.sqlite").stat().st_size
    taken = 0
    for number in range(200):
        written[0] += size
        if number % 8 == 0:
            work.commit(f"{number}", digests=[number])
        before = texts(work.root / "cs") if taken else ""
        work.step()
        if (work.root / "cs").exists() and texts(work.root / "cs") != before:
            taken += work.snapshots.last
            written[0] += work.snapshots.last  # its own count too
        assert 10 * taken <= written[0]
    assert taken > 2 * size, "there were several"


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


def test_who_was_taken_over_cannotgo_on(work, tmp_path, monkeypatch):
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


def test_two_that_take_over_at_one_place_are_no_two(work, tmp_path, monkeypatch):
    """The second is refused while the first copies, and leaves what it has alone."""
    work.commit("one")
    work.snapshots.write()
    saved, here = tmp_path / "shared/cs", tmp_path / "cs"
    refused = []

    def check(crawl):
        with pytest.raises(JobdirError, match="is in use by process") as caught:
            take_over(saved, here, 6.0)
        refused.append(caught.value)
        return iter(())

    monkeypatch.setattr(snapshots, "problems", check)
    take_over(saved, here, 5.0)
    assert refused and texts(here) == "one\n"
    with pytest.raises(JobdirError, match="is there"):
        take_over(saved, here, 7.0)
    assert [path.name for path in saved.glob(f"{EPOCH}*")] == [f"{EPOCH}1"], "the first is not kept out"


SHARED = {
    **SOON,
    "cluster.heartbeat.WAIT_MISSING_S": 60.0,  # the other shard waits for the take-over
    "extensions.lifecycle.PAUSE_S": 0.3,
    "jobdir.snapshots.SHARE": -1,  # snapshots are always due
}


@needs("redis")
def test_a_shard_whose_disk_is_lost_goes_on_elsewhere(tmp_path):
    """Refused while it is at work; afterwards nothing is lost, or kept twice, and its former directory is refused."""
    for name in ("shared", "there", "here"):
        (tmp_path / name).mkdir()
    saved = tmp_path / "shared/cs"
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        settings = {"HOST_INTERVAL_S": 0.4, "SNAPSHOTS": tmp_path / "shared", "CONSTANTS": SHARED}
        there, here = (shards(tmp_path / name / "cs", server, store, 2, **settings) for name in ("there", "here"))
        lost = there.start(SEED)
        lost.until(lambda: (saved / "shard-00/state/frontier.sqlite").exists())
        other = here.start(SEED)
        lost.until(lambda: len(server.log_entries) > 12)
        places = str(saved / "shard-00"), str(here.directory / "shard-00")
        takeover = "takeover", *places, "-s", f"SPIDERLING_CLUSTER={store.url}"
        refused = scrapy(*takeover)
        assert refused.code == 1 and "shard 0 is at work" in refused.log
        lost.stop(signal.SIGKILL)
        there.directory.rename(tmp_path / "broken")
        time.sleep(SHARED["cluster.claims.LEASE_S"] + 0.2)
        done = scrapy(*takeover)
        assert done.code == 0 and "taken over from the snapshot" in done.out, done
        again = here.start(SEED)
        ended = [one.wait() for one in (other, again)]
        assert [(one.code, one.lines("ERROR")) for one in ended] == [(0, []), (0, [])], ended
        assert ended[1].lines("since its snapshot are fetched again")
        assert kept(here.directory) == EVERY
        (tmp_path / "broken").rename(there.directory)
        former = there.run(SEED)
        assert former.code == 1 and former.lines("ERROR", "was taken over from its snapshot"), former


@needs("redis")
def test_a_crawl_of_one_process_goes_on_from_its_snapshot(tmp_path):
    for name in ("shared", "there", "here"):
        (tmp_path / name).mkdir()
    with serving(FixedWeb(SITES, ADDRESSES)) as server:
        settings = {"HOST_INTERVAL_S": 0.4, "SNAPSHOTS": tmp_path / "shared", "CONSTANTS": SHARED}
        lost = Crawl(tmp_path / "there/cs", server, **settings)
        running = lost.start(SEED)
        running.until(lambda: (tmp_path / "shared/cs/state/frontier.sqlite").exists() and len(server.log_entries) > 12)
        running.stop(signal.SIGKILL)
        shutil.rmtree(lost.directory)
        new = Crawl(tmp_path / "here/cs", server, **settings)
        assert "is the snapshot of another crawl" in new.run(SEED).lines("ERROR")[0]
        done = scrapy("takeover", str(tmp_path / "shared/cs"), str(new.directory))
        assert done.code == 0 and "usual command" in done.out, done
        ended = new.run(SEED)
        assert ended.code == 0 and sorted(new.digests()) == EVERY
        new.state().check()


@needs("redis")
def test_only_a_shard_that_shows_no_life_is_taken_over(tmp_path, monkeypatch):
    from spiderling.cluster import claims

    values = {"LEASE_S": 1.0, "BEAT_S": 0.2, "POLL_S": 0.4}
    for name, value in values.items():
        monkeypatch.setattr(claims, name, value)
    with RedisServer() as server:

        def claim(name: str, patience_s: float) -> claims.Claim:
            return claimed(server, tmp_path, name, 1, patience_s)

        first = claim("there", 0)
        first.begin_keeping()
        saved = tmp_path / "shared/cs/shard-00/state/frontier.sqlite"
        saved.parent.mkdir(parents=True)
        with closing(SqliteStore(saved)) as store:
            store.commit(Changes(meta={claims.MAP_KEY: json.dumps(asdict(first.map)), "created": "1.5"}))
        with pytest.raises(NoFreeShard, match="or has its directory or snapshot elsewhere"):
            claim("here", 0)
        first.end_keeping()
        server.command("DEL", first.seal.key("lease", 0))
        with pytest.raises(NoFreeShard):
            claim("here", 0)
        began = time.monotonic()
        second = claim("here", 2.0)
        assert time.monotonic() - began >= 2.0
        second.open_snapshot()
        assert (tmp_path / "here/cs/shard-00/state/frontier.sqlite").exists()
        second.give_back()
        shutil.rmtree(tmp_path / "here/cs")
        third = claim("here", 0)
        with pytest.raises(JobdirError, match=r"is gone\. Go on from its snapshot"):
            third.open_snapshot()


def claimed(server: RedisServer, tmp_path: Path, name: str, shards: int, patience_s: float):
    from spiderling.cluster import claims

    options = Options(lang="cs", cluster=server.url, shards=shards, snapshots=f"{tmp_path}/shared",
                      takeover_s=patience_s)  # fmt: skip
    made = claims.Claim(options, tmp_path / name / "cs")
    made.take()
    return made


@needs("redis")
def test_a_process_too_many_waits_for_a_shard_to_be_lost_and_ends_with_the_crawl(tmp_path, monkeypatch, caplog):
    """It waits while all are at work, also before there is any snapshot; whoever ends with all others is not lost."""
    from spiderling.cluster import claims
    from spiderling.cluster.redis_transport import connect

    for name, value in {"LEASE_S": 1.0, "BEAT_S": 0.2, "POLL_S": 0.4}.items():
        monkeypatch.setattr(claims, name, value)
    caplog.set_level("INFO")
    with RedisServer() as server, ThreadPoolExecutor() as pool:

        def spare(name: str) -> Future:
            caplog.clear()
            waiting = pool.submit(claimed, server, tmp_path, name, 2, 2.0)
            while "waits for one that shows no life for 2 s" not in caplog.text:
                assert not waiting.done(), waiting.result()
                time.sleep(0.05)
            return waiting

        both = [claimed(server, tmp_path, name, 2, 2.0) for name in "ab"]
        for one in both:
            one.begin_keeping()
        monkeypatch.setattr(claims, "POLL_S", 30.0)
        third = spare("c")
        for one in both:
            with closing(SqliteStore(_made(tmp_path / f"shared/cs/shard-0{one.shard}/state/frontier.sqlite"))) as store:
                store.commit(Changes(meta={claims.MAP_KEY: json.dumps(asdict(one.map)), "created": "1.5"}))
        server.kill()  # a Redis that is away for a while is waited for, and each time anew
        time.sleep(1.0)
        server.start()
        connect(server.url, blocks=True).set(both[0].map_key, claims.seal_map(both[0].map, both[0].seal))
        both[0].end_keeping()
        assert third.result(60).shard == both[0].shard
        third.result().begin_keeping()
        fourth = spare("d")
        for one in (both[1], third.result()):
            _made(one.directory / "state/frontier.sqlite").touch()
            one.give_back()
        with pytest.raises(NoFreeShard):
            fourth.result(60)


@needs("redis")
def test_a_former_directory_is_refused_by_what_redis_knows_alone(tmp_path):
    from spiderling.cluster import claims
    from spiderling.cluster.redis_transport import connect

    with RedisServer() as server:
        first = claims.Claim(Options(lang="cs", cluster=server.url, shards=1), tmp_path / "cs")
        first.take()
        with closing(SqliteStore(_made(first.directory / "state/frontier.sqlite"))) as store:
            store.commit(Changes(meta={claims.MAP_KEY: json.dumps(asdict(first.map))}))
        record = claims.seal_record(first.seal, 0, "elsewhere:/cs", {TAKEOVERS: 1})
        first.give_back()
        connect(server.url, blocks=True).hset(first.seal.key("shards"), 0, record)
        with pytest.raises(JobdirError, match=r"shard 0 was taken over from its snapshot: .* is older"):
            claims.Claim(Options(lang="cs", cluster=server.url, shards=1), tmp_path / "cs").take()


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
