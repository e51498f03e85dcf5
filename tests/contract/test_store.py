"""One contract, two stores: what was committed is what is loaded; all of a batch or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spiderling.errors import JobdirError, StorageError
from spiderling.frontier.store import (
    SCHEMA_VERSION,
    Changes,
    ConsentRow,
    HostRow,
    MemoryStore,
    RobotsRow,
    SegmentRow,
    SqliteStore,
    State,
    Store,
    UrlRow,
    counts_with_prefix,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 2**40)
SECONDS = st.floats(0, 1e12)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
HOSTS = st.builds(
    HostRow, st.integers(1, 9), st.just(""), TEXT, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SECONDS, SECONDS,
    SMALL, st.sampled_from([0, 1]), TEXT,
).map(lambda row: row._replace(name=f"h{row.id}.cz"))  # fmt: skip
URLS = st.builds(
    UrlRow, st.integers(-3, 3) | INT64, st.integers(1, 9), TEXT, SMALL, SMALL, SMALL, st.sampled_from([0, 1]),
    st.none() | st.binary(max_size=9),
)  # fmt: skip
CHANGES = st.builds(
    Changes,
    hosts=st.lists(HOSTS, max_size=3),
    urls=st.lists(URLS, max_size=4),
    gone=st.lists(st.integers(-3, 3) | INT64, max_size=2),
    seen=st.lists(INT64, max_size=4),
    digests=st.lists(INT64, max_size=4),
    robots=st.lists(st.builds(RobotsRow, TEXT, TEXT, SECONDS, SECONDS, SMALL, st.binary(max_size=9)), max_size=2),
    consent=st.lists(st.builds(ConsentRow, TEXT, TEXT, TEXT, TEXT, SECONDS, SECONDS, TEXT), max_size=2),
    segments=st.lists(st.builds(SegmentRow, TEXT, SMALL, SMALL), max_size=2),
    counts=st.dictionaries(TEXT, INT64, max_size=3),
    meta=st.dictionaries(TEXT, TEXT, max_size=3),
    events=st.lists(st.tuples(SECONDS, TEXT), max_size=2),
)

HOST = HostRow(1, "a.cz", "ready", 0, 3, 2, 500, 9000, 800, 1, 12.5, 0.0, 0, 0, "10.0.0.1")
URL = UrlRow(7, 1, "http://a.cz/", 2, 1, 0, 0, None)
FULL = Changes(
    hosts=[HOST, HOST._replace(id=2, name="b.cz", due=1e300, exempt=1)],
    urls=[URL, UrlRow(-(2**63), 2, "http://b.cz/ž", 9, 0, 3, 1, b"\x00\xff")],
    seen=[7, -(2**63), 2**63 - 1],
    digests=[0, -1],
    robots=[RobotsRow("http://a.cz", "rules", 1.0, 2.0, 0, b"\x00z")],
    consent=[ConsentRow("http://a.cz", "/robots.txt", "200", "ab", 5.0, 5.0, "disallow")],
    segments=[SegmentRow("cs-00001.prevert.zst", 2**40, 3)],
    counts={"end/kept": 2, "waiting": 1, "": -1},
    meta={"options": "{}", "ž": ""},
    events=[(1.0, "begun")],
)


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the store, or opens it once more as a new process would."""
    memory, stores = MemoryStore(), []

    def open_store() -> Store:
        store: Store = memory if request.param == "memory" else SqliteStore(tmp_path / "state.sqlite")
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return opened()


def plain(state: State) -> State:
    return replace(state, urls=sorted(state.urls, key=lambda row: row.key), robots=sorted(state.robots))


def test_new_store_is_empty(store: Store) -> None:
    assert store.load() == State()
    assert store.parked(1) == []


def test_every_kind_of_row_comes_back(opened: Callable[[], Store]) -> None:
    store = opened()
    store.commit(FULL)
    expected = State(
        hosts=FULL.hosts, urls=sorted(FULL.urls, key=lambda row: row.key),
        seen=set(FULL.seen), digests=set(FULL.digests),
        robots=FULL.robots, segments=FULL.segments, counts=FULL.counts, meta=FULL.meta,
    )  # fmt: skip
    assert plain(store.load()) == expected
    assert plain(opened().load()) == expected, "also when it is opened again without having been closed"


def test_consent_ledger_keeps_every_different_answer(opened: Callable[[], Store]) -> None:
    store, said = opened(), FULL.consent[0]
    store.commit(FULL)
    changed = said._replace(digest="cd", first=6.0, last=6.0, says="")
    store.commit(Changes(consent=[said._replace(first=5.5, last=5.5), changed]))
    store.commit(Changes(consent=[changed._replace(first=9.0, last=9.0), said._replace(first=8.0, last=8.0)]))
    assert store.consents() == [said._replace(last=8.0), changed._replace(last=9.0)]
    assert opened().consents() == store.consents()


def test_rows_are_replaced_and_keys_are_added(store: Store) -> None:
    store.commit(FULL)
    store.commit(
        Changes(
            hosts=[HOST._replace(state="retired")], urls=[URL._replace(tries=2, url="http://a.cz/?")],
            seen=[8], digests=[5],
            robots=[RobotsRow("http://a.cz", "no rules", 3.0, 4.0, 0, b"")], counts={"waiting": 5}, meta={"ž": "!"},
            segments=[SegmentRow("cs-00001.prevert.zst", 1, 0)],
        )
    )  # fmt: skip
    state = store.load()
    assert [row.state for row in state.hosts] == ["retired", "ready"]
    assert {row.key: row.tries for row in state.urls} == {7: 2, -(2**63): 0}
    assert state.seen == {7, 8, -(2**63), 2**63 - 1}
    assert state.digests == {0, -1, 5}
    assert [row.status for row in state.robots] == ["no rules"]
    assert state.segments == [SegmentRow("cs-00001.prevert.zst", 1, 0)]
    assert state.counts == {"end/kept": 2, "waiting": 5, "": -1}
    assert state.meta == {"options": "{}", "ž": "!"}


def test_gone_is_applied_after_urls(store: Store) -> None:
    store.commit(Changes(urls=[URL, URL._replace(key=8)], gone=[7, 99]))
    assert [row.key for row in store.load().urls] == [8]
    store.commit(Changes(urls=[URL]))
    assert sorted(row.key for row in store.load().urls) == [7, 8]


def test_parked_urls_of_one_host(store: Store) -> None:
    rows = [URL, URL._replace(key=8, parked=1), URL._replace(key=9, parked=1), URL._replace(key=10, host=2, parked=1)]
    store.commit(Changes(urls=rows))
    assert sorted(store.parked(1)) == rows[1:3]
    assert store.parked(3) == []
    store.commit(Changes(urls=[rows[1]._replace(parked=0)], gone=[9]))
    assert store.parked(1) == []


def test_closed_store_refuses(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StorageError):
        store.commit(FULL)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(CHANGES, max_size=4))
def test_both_stores_hold_the_same(batches: list[Changes], tmp_path_factory: pytest.TempPathFactory) -> None:
    memory, path = MemoryStore(), tmp_path_factory.mktemp("store") / "state.sqlite"
    with closing(SqliteStore(path)) as sqlite:
        for changes in batches:
            memory.commit(changes)
            sqlite.commit(changes)
            assert plain(sqlite.load()) == plain(memory.load())
    with closing(SqliteStore(path)) as again:
        assert plain(again.load()) == plain(memory.load())
        for host in range(1, 10):
            assert sorted(again.parked(host), key=lambda row: row.key) == sorted(
                memory.parked(host), key=lambda row: row.key
            )


# -- the file


BAD_BATCHES = [
    Changes(hosts=[HOST], urls=[URL._replace(url=None)]),  # type: ignore[arg-type]
    Changes(hosts=[HOST], urls=[URL._replace(url="http://a.cz/\ud800")]),
    Changes(hosts=[HOST], urls=[URL._replace(key=2**63)]),
    Changes(hosts=[HOST], seen=[2**63]),
    Changes(hosts=[HOST._replace(due=float("nan"))]),
    Changes(hosts=[HOST], events=[(0.0, object())]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("bad", BAD_BATCHES)
def test_failing_batch_leaves_nothing(bad: Changes, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(Changes(meta={"before": "1"}))
        with pytest.raises(StorageError, match="could not be written"):
            store.commit(replace(bad, meta={"after": "1"}))
        assert store.load() == State(meta={"before": "1"})
    with closing(SqliteStore(path)) as again:
        assert again.load() == State(meta={"before": "1"})


def test_events_are_kept_for_people(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(FULL)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT * FROM event").fetchall() == [(1.0, "begun")]
        names = [column[0] for column in file.execute("SELECT * FROM hosts").description]
        assert names[0] == "name"
        assert file.execute("SELECT name, down_mb, yield_rate FROM hosts WHERE name = 'a.cz'").fetchall() == [
            ("a.cz", 0.009, 0.0889)
        ]


def test_parked_may_be_read_while_a_batch_is_written(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as writer:
        store.commit(Changes(urls=[URL._replace(parked=1)]))
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM url")
        assert len(store.parked(1)) == 1


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE bookmarks(url TEXT)")


def foreign_with_id(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA application_id=7")


def newer(path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (foreign, "something else; give another JOBDIR"),
        (foreign_with_id, "something else; give another JOBDIR"),
        (newer, f"schema {SCHEMA_VERSION + 1}.* go on with that version, or give another JOBDIR"),
        (lambda path: path.write_bytes(b"not a database " * 300), "not a database.*another JOBDIR"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
)
def test_file_that_is_not_ours(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(JobdirError, match=message) as caught:
        SqliteStore(path)
    assert str(path) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before, "and it is left as it was"


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(JobdirError, match="cannot be opened"):
        SqliteStore(tmp_path / "nowhere" / "state.sqlite")


def test_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit(Changes(urls=[URL._replace(key=key, url="http://a.cz/" + "x" * 400) for key in range(400)]))
    content = bytearray(path.read_bytes())
    content[40_000:] = b"\xee" * (len(content) - 40_000)
    path.write_bytes(content)
    with closing(SqliteStore(path)) as store, pytest.raises(JobdirError, match=r"is damaged.*another JOBDIR"):
        store.load()


def test_counts_under_a_prefix() -> None:
    counts = {"end/kept": 3, "end/dns": 1, "ending/x": 9, "total/pages": 5}
    assert counts_with_prefix(counts, "end") == {"kept": 3, "dns": 1}
