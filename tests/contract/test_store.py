"""The store, in a file and in memory: what was committed is what is loaded, whole or not."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from spiderling.base.errors import JobdirError, SpiderlingError, StorageError
from spiderling.frontier.storage.protocol import (
    HOST_SHIFT,
    Changes,
    ConsentRow,
    Flush,
    OutboxRow,
    PeerRow,
    RobotsRecord,
    SegmentRow,
    State,
    StoredHost,
    chunks_of,
    generation_of,
    slot_of_chunk,
)
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.tables import SCHEMA_VERSION

HOST = StoredHost(
    1, "a.cz", "ready", 0, 3, 2, 500, 9000, 800, 1, 0, 12.5, 0.0, 1.0, 0, 0, "10.0.0.1", "0:3 2:1", b"@/", None
)
FULL = Changes(
    hosts=[HOST, HOST._replace(id=2, name="b.cz", due=1e300, exempt=1, first=b"@/1\n@/2", transit=b"~[\x00\xff]")],
    added=[(1 << 4, b"@/a"), (2 << 4 | 3, b"C/\xff\t"), (1 << 4, b"@/b")],
    seen=[7, -(2**63), 2**63 - 1],
    digests=[0, -1],
    robots={"http://a.cz": RobotsRecord("rules", 1.0, 2.0, 0, b"\x00z")},
    consent=[ConsentRow("http://a.cz", "/robots.txt", "200", "ab", 5.0, 5.0, "disallow")],
    segments=[SegmentRow("cs-00001.prevert.zst", 2**40, 3), SegmentRow("cs-00001.warc.gz", 5, 1, "warc")],
    counts={"end/kept": 2, "waiting": 1, "": -1},
    meta={"options": "{}", "ž": ""},
    events=[(1.0, "begun")],
    outbox=[OutboxRow(2, 1, 5.0, 3, b"abc"), OutboxRow(2, 2, 6.0, 1, b""), OutboxRow(0, 1, 6.5, 2, b"d\x00")],
    peers=[PeerRow(0, 1, 0), PeerRow(2, 2, 77)],
    blobs={"recrawled": {1 << 16: b"a\x00", 2: b""}, "rate": {0: b"r"}, "paragraph": {-(2**63): b"12345678"}},
)


@pytest.fixture(params=["file", "memory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], SqliteStore]]:
    """Opens the store, or opens it once more as a new process would."""
    with ExitStack() as stack:
        in_memory = stack.enter_context(closing(SqliteStore()))

        def open_store() -> SqliteStore:
            if request.param == "memory":
                return in_memory
            return stack.enter_context(closing(SqliteStore(tmp_path / "state.sqlite")))

        yield open_store


@pytest.fixture
def store(opened: Callable[[], SqliteStore]) -> SqliteStore:
    return opened()


def plain(state: State) -> State:
    return replace(state, seen=list(state.seen), digests=list(state.digests))


def test_new_store_is_empty(store: SqliteStore) -> None:
    assert plain(store.load()) == State(seen=[], digests=[])
    assert list(store.host_columns()) == list(store.used_hosts()) == store.chunk_ids(1) == []
    assert store.robots("http://a.cz") is None
    with pytest.raises(StorageError):
        store.host(1)
    with pytest.raises(StorageError):
        store.chunk(1)


def test_every_kind_of_row_comes_back(opened: Callable[[], SqliteStore]) -> None:
    store = opened()
    store.commit(FULL)
    expected = State(
        tails={1 << 4: [b"@/a", b"@/b"], 2 << 4 | 3: [b"C/\xff\t"]}, seen=[7, -(2**63), 2**63 - 1], digests=[0, -1],
            segments=FULL.segments, counts=FULL.counts, meta=FULL.meta, peers=FULL.peers,
        outboxes={0: 1, 2: 1},
    )  # fmt: skip
    for again in (store, opened()):  # also when it is opened again without having been closed
        assert plain(again.load()) == expected
        assert [again.host(1), again.host(2)] == FULL.hosts
        assert [again.robots("http://a.cz"), again.robots("http://b.cz")] == [FULL.robots["http://a.cz"], None]


def test_consent_ledger_keeps_every_different_answer(opened: Callable[[], SqliteStore]) -> None:
    store, said = opened(), FULL.consent[0]
    store.commit(FULL)
    changed = said._replace(digest="cd", first=6.0, last=6.0, says="")
    store.commit(Changes(consent=[said._replace(first=5.5, last=5.5), changed]))
    store.commit(Changes(consent=[changed._replace(first=9.0, last=9.0), said._replace(first=8.0, last=8.0)]))
    assert store.consents() == [said._replace(last=8.0), changed._replace(last=9.0)]
    assert opened().consents() == store.consents()


def test_rows_are_replaced_and_keys_are_added(store: SqliteStore) -> None:
    store.commit(FULL)
    store.commit(
        Changes(
            hosts=[HOST._replace(state="retired")], host_updates=[(0, 44, 3, 2)], seen=[8], digests=[5],
            robots={"http://a.cz": RobotsRecord("no rules", 3.0, 4.0)}, counts={"waiting": 5}, meta={"ž": "!"},
            segments=[SegmentRow("cs-00001.prevert.zst", 1, 0)],
        )
    )  # fmt: skip
    state, second = plain(store.load()), store.host(2)
    assert store.host(1).state == "retired"
    marked = (second.waiting, second.parked, second.distance)
    assert (*marked, second.first) == (0, 44, 3, b"@/1\n@/2"), "the rest of the row stays"
    assert (state.seen, state.digests) == ([7, -(2**63), 2**63 - 1, 8], [0, -1, 5])
    assert store.robots("http://a.cz") == RobotsRecord("no rules", 3.0, 4.0, 0, b"")
    assert state.segments == [SegmentRow("cs-00001.prevert.zst", 1, 0), FULL.segments[1]]
    assert state.counts == {"end/kept": 2, "waiting": 5, "": -1}
    assert state.meta == {"options": "{}", "ž": "!"}


def test_messages_stay_until_they_are_acknowledged(opened: Callable[[], SqliteStore]) -> None:
    store = opened()
    store.commit(FULL)
    longer = FULL.outbox[1]._replace(links=9, message=b"xyz")
    store.commit(Changes(outbox=[longer, OutboxRow(2, 3, 8.0, 1, b"e" * 50)], peers=[PeerRow(2, 3, 78)]))
    assert store.messages(2, 0, 10**6) == [FULL.outbox[0], longer, OutboxRow(2, 3, 8.0, 1, b"e" * 50)]
    assert [row.number for row in store.messages(2, 0, 6)] == [1, 2]
    assert [row.number for row in store.messages(2, 2, 6)] == [3], "one at least"
    assert store.messages(2, 3, 6) == store.messages(1, 0, 6) == []
    store.commit(Changes(acknowledged={2: 2, 1: 5}))
    for again in (store, opened()):
        assert [row.number for row in again.messages(2, 0, 10**6)] == [3]
        assert again.messages(0, 0, 10**6) == [FULL.outbox[2]]
        assert again.load().outboxes == {0: 1, 2: 3}
        assert again.load().peers == [PeerRow(0, 1, 0), PeerRow(2, 3, 78)]


def test_lengths_of_queues_are_known_before_they_stand_in_the_rows_of_their_hosts(tmp_path: Path) -> None:
    path, left = tmp_path / "state.sqlite", tmp_path / "left" / "state.sqlite"
    hosts = [HOST._replace(id=number, name=f"h{number}.cz", parked=0) for number in range(1, 101)]
    store = SqliteStore(path)

    def known(opened: SqliteStore) -> list[tuple[int, int]]:
        """Length and distance of the first hosts."""
        return [
            pair for columns in opened.host_columns() for pair in zip(columns.queued, columns.distances, strict=True)
        ][:5]

    def in_the_file() -> tuple[list[tuple[int, int]], int]:
        with closing(sqlite3.connect(path)) as file:
            rows = file.execute("SELECT waiting + parked, distance FROM host WHERE id <= 5 ORDER BY id").fetchall()
            return rows, file.execute("SELECT count(*) FROM length").fetchone()[0]

    former = (HOST.waiting, HOST.distance)
    store.commit(Changes(hosts=hosts))
    store.commit(Changes(host_updates=[(7, 0, 2, 1), (0, 9, 1, 2), (5, 0, 0, 3)]))
    store.commit(Changes(hosts=[hosts[0]._replace(waiting=8, distance=4)], host_updates=[(6, 0, 0, 3)]))
    newest = [(8, 4), (9, 1), (6, 0), former, former]
    assert in_the_file() == ([(8, 4), *[former] * 4], 2), "a batch writes no page for each host"
    assert known(store) == newest
    shutil.copytree(tmp_path, left.parent)
    for writes in (False, True, True):  # as after a kill; the second one has folded at its end
        with closing(SqliteStore(left, writes=writes)) as again:
            assert known(again) == newest
    newer = hosts[1]._replace(waiting=10, distance=5)
    store.commit(Changes(hosts=[newer], host_updates=[(number, 0, 0, number) for number in range(4, 25)]))
    newest[1:] = [(10, 5), newest[2], (4, 0), (5, 0)]
    assert in_the_file() == (newest, 0), "many are folded, and no older length replaces that of a new row"
    store.commit(Changes(host_updates=[(3, 0, 0, 1)]))
    store.commit(Changes(host_updates=[(4, 0, 0, 2)], flush=Flush(1, {16: [b"@/"]})))
    newest[:2] = [(3, 0), (4, 0)]
    assert in_the_file() == (newest, 0), "and so are all when the tails are flushed"
    store.commit(Changes(host_updates=[(2, 0, 0, 1)]))
    assert in_the_file() == (newest, 1)
    store.close()
    assert in_the_file() == ([(2, 0), *newest[1:]], 0), "and when the crawl ends"


def test_log_is_replayed_in_order(store: SqliteStore) -> None:
    store.commit(Changes(added=[(16, b"@/1"), (16, b"@/2"), (17, b"@/3")], popped={16: 1}))
    store.commit(Changes(added=[(16, b"@/4")]))
    store.commit(Changes(popped={16: 1, 17: 1}))
    assert store.load().tails == {16: [b"@/4"]}


def test_flush_turns_tails_into_chunks_in_their_order(store: SqliteStore) -> None:
    store.commit(Changes(added=[(16, b"@/lost without the flush")]))
    lines = [b"@/%d" % number for number in range(600)]
    store.commit(Changes(flush=Flush(3, {16: lines, 18: [b"@/x"], 40: [b"@/y"]})))
    assert store.load().tails == {}
    chunks = store.chunk_ids(1)
    assert [slot_of_chunk(chunk) for chunk in chunks] == [16, 16, 16, 18]
    assert {generation_of(chunk) for chunk in chunks} == {3}
    assert [line for chunk in chunks[:3] for line in store.chunk(chunk)] == lines
    store.commit(Changes(used=[chunks[0]], flush=Flush(4, {16: [b"@/z"], 17: [b"@/better"]})))
    left = store.chunk_ids(1)
    assert [(slot_of_chunk(chunk), generation_of(chunk)) for chunk in left] == [
        (16, 3), (16, 3), (16, 4), (17, 4), (18, 3),
    ]  # fmt: skip
    store.commit(Changes(dropped=[1], flush=Flush(5, {16: [b"@/new"]})))
    assert [store.chunk(chunk) for chunk in store.chunk_ids(1)] == [[b"@/new"]], "dropped is applied before the flush"
    assert [store.chunk(chunk) for chunk in store.chunk_ids(2)] == [[b"@/y"]]


def test_chunk_ids_keep_hosts_bands_and_generations_apart() -> None:
    most = (1 << 24) - 1 << 4 | 15
    ids = [chunk for slot in (16, 17, 32, most) for g in (1, 2) for chunk, _ in chunks_of(slot, g, [b""] * 257)]
    assert ids == sorted(set(ids))
    assert max(ids) < 2**63 and max(ids) >> HOST_SHIFT == (1 << 24) - 1
    huge = list(chunks_of(16, 1, [b""] * 2_000_000))
    assert len({chunk for chunk, _ in huge}) == len(huge) and generation_of(huge[-1][0]) == 1


def test_closed_store_refuses(store: SqliteStore) -> None:
    store.close()
    store.close()
    with pytest.raises(StorageError):
        store.commit(FULL)


def test_a_restart_reads_the_columns_of_all_hosts_and_the_rows_of_those_that_have_a_past(store: SqliteStore) -> None:
    new = StoredHost(1, "new.cz", "ready", 2, waiting=3, due=1.5)
    pasts = [{"pages": 1}, {"downloaded_bytes": 9}, {"exempt": -2}, {"transit": b"@/"}, {"state": "blocked"}]
    used = [new._replace(id=at, name=f"h{at}.cz", **past) for at, past in enumerate(pasts, 2)]  # type: ignore[arg-type]
    store.commit(Changes(hosts=[new, *used]))
    (columns,) = store.host_columns()
    assert columns.names == ["new.cz", *(row.name for row in used)]
    assert (columns.states[-1], columns.distances, columns.queued, columns.dues) == (
        "blocked",
        *([n] * 6 for n in (2, 3, 1.5)),
    )
    assert list(store.used_hosts()) == used
    store.commit(Changes(hosts=[new._replace(id=9, name="behind.a.gap")]))
    with pytest.raises(JobdirError, match="missing"):
        list(store.host_columns())


# -- the file


BAD_BATCHES = [
    Changes(hosts=[HOST._replace(name=None)]),  # type: ignore[arg-type]
    Changes(hosts=[HOST._replace(name="\ud800.cz")]),
    Changes(hosts=[HOST._replace(id=2**63)]),
    Changes(hosts=[HOST], seen=[2**63]),
    Changes(hosts=[HOST._replace(due=float("nan"))]),
    Changes(hosts=[HOST], added=[(1 << 4, "text")]),  # type: ignore[list-item]
    Changes(hosts=[HOST], flush=Flush(1, {2**60: [b"@/"]})),
    Changes(hosts=[HOST], events=[(0.0, object())]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("bad", BAD_BATCHES)
def test_failing_batch_leaves_nothing(bad: Changes, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(Changes(meta={"before": "1"}))
        with pytest.raises(StorageError, match="could not be written"):
            store.commit(replace(bad, meta={"after": "1"}))
        with pytest.raises(StorageError, match="a former write has failed"):
            store.commit(Changes(meta={"later": "1"}))
    with closing(SqliteStore(path)) as again:
        assert plain(again.load()) == State(meta={"before": "1"}, seen=[], digests=[])
        assert list(again.host_columns()) == []


def test_events_are_kept_for_people(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(FULL)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT time, what FROM event").fetchall() == [(1.0, "begun")]
        names = [column[0] for column in file.execute("SELECT * FROM hosts").description]
        assert names[0] == "name"
        assert file.execute("SELECT name, down_mb, yield_rate FROM hosts WHERE name = 'a.cz'").fetchall() == [
            ("a.cz", 0.009, 0.0889)
        ]


def test_shelf_may_be_read_while_a_batch_is_written(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as writer:
        store.commit(Changes(hosts=[HOST], flush=Flush(1, {16: [b"@/"]})))
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM chunk")
        assert [store.chunk(chunk) for chunk in store.chunk_ids(1)] == [[b"@/"]]
        assert store.host(1) == HOST


def of_version(version: int) -> Callable[[Path], object]:
    return lambda path: (SqliteStore(path).close(), with_sql(f"PRAGMA user_version={version}")(path))


def with_sql(statement: str) -> Callable[[Path], object]:
    def execute(path: Path) -> None:
        with closing(sqlite3.connect(path)) as file:
            file.execute(statement)

    return execute


ANOTHER_VERSION = "schema {}.* go on with that version, or give another JOBDIR"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (with_sql("CREATE TABLE bookmarks(url TEXT)"), "something else; give another JOBDIR"),
        (with_sql("PRAGMA application_id=7"), "something else; give another JOBDIR"),
        (of_version(SCHEMA_VERSION - 1), ANOTHER_VERSION.format(SCHEMA_VERSION - 1)),
        (of_version(SCHEMA_VERSION + 1), ANOTHER_VERSION.format(SCHEMA_VERSION + 1)),
        (lambda path: path.write_bytes(b"not a database " * 300), "not a database.*another JOBDIR"),
        (lambda path: path.mkdir(), "cannot be opened"),
        (lambda path: path.parent.rmdir(), "cannot be opened"),
    ],
)
def test_file_that_is_not_ours(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "state" / "state.sqlite"
    path.parent.mkdir()
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(JobdirError, match=message) as caught:
        SqliteStore(path)
    assert str(path) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before, "and it is left as it was"


def test_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(Changes(hosts=[HOST._replace(id=key, name="x" * 400) for key in range(1, 2000)]))
    content = bytearray(path.read_bytes())
    content[400_000:] = b"\xee" * (len(content) - 400_000)
    path.write_bytes(content)
    with closing(SqliteStore(path)) as store, pytest.raises(JobdirError, match=r"is damaged.*another JOBDIR"):
        print(store.load(), list(store.host_columns()))


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE host SET words = words + 1", lambda store: store.host(1)),
        ("UPDATE host SET distance = distance + 1", lambda store: store.host(1)),
        ("UPDATE chunk SET lines = x'40'", lambda store: store.chunk(store.chunk_ids(1)[0])),
        ("UPDATE robots SET status = 'no rules'", lambda store: store.robots("http://a.cz")),
        ("UPDATE seen SET keys = zeroblob(8)", lambda store: store.load()),
        ("DELETE FROM digest", lambda store: store.load()),
        ("UPDATE count SET value = 3 WHERE key = 'end/kept'", lambda store: store.load()),
        ("UPDATE peer SET received = 78 WHERE shard = 2", lambda store: store.load()),
        ("UPDATE outbox SET message = x'40'", lambda store: store.messages(2, 0, 1)),
    ],
)
def test_a_row_that_was_changed_is_not_read(statement, read, tmp_path):
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(replace(FULL, added=[], flush=Flush(1, {16: [b"@/a"]})))
        read(store)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)
    with closing(SqliteStore(path)) as store, pytest.raises(SpiderlingError, match="is damaged"):
        read(store)
