"""Queues as chunks: their order, what is stored when, and that the lines in them come back as they were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import StorageError
from spiderling.base.urls import canonicalize, url_key
from spiderling.frontier.hosts import Host, HostStates, QueuedUrl
from spiderling.frontier.storage.host_table import HostTable, host_row
from spiderling.frontier.storage.protocol import BAND_BITS, Flush
from spiderling.frontier.storage.queues import Queues, line_of, pack, plain_line, unpack, url_of
from spiderling.frontier.storage.sqlite import SqliteStore


class Shop:
    """Queues, a host and a store, with batches written whenever it is said."""

    def __init__(self, store: SqliteStore | None = None) -> None:
        self.store = store or SqliteStore()
        self.flush: Flush | None = None  # the last one
        self.states = HostStates()
        self.queues = Queues(self.store, self.states)
        self.hosts = HostTable(self.states, self.queues)
        if store is None:
            self.hosts.create("a.cz", 0)
        else:
            self.hosts.load_hosts()
            self.queues.load_tails(store.load().tails, store.load().counts["generation"])
        self.host = self.hosts.by_id(1)

    def push(self, *names: str, rank: int = 3) -> None:
        for name in names:
            self.queues.push(1, rank, plain_line(canonicalize(f"http://a.cz/{name}"), rank))
            self.hosts.changed.add(self.host)

    def pop(self, number: int = 1) -> list[str]:
        self.hosts.changed.add(self.host)
        return [self.queues.pop(self.host).url.removeprefix("http://a.cz/") for _ in range(number)]

    def commit(self) -> None:
        changes, _ = self.queues.drain_changes()
        rows = [host_row(self.host, self.queues)] if self.hosts.changed else []
        self.store.commit(replace(changes, hosts=rows, counts={"generation": self.queues.generation}))
        self.queues.note_commit()
        self.hosts.changed = set()
        self.flush = changes.flush or self.flush

    def rest(self) -> list[str]:
        return self.pop(self.host.queued)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr("spiderling.frontier.storage.queues.FLUSH_URLS", 4)
    monkeypatch.setattr("spiderling.frontier.storage.protocol.CHUNK_URLS", 3)
    return Shop()


def test_first_in_first_out_from_tail_to_chunk_to_the_next_process(shop: Shop) -> None:
    shop.push(*"abcdefgh")
    assert shop.pop() == ["a"]
    shop.commit()
    assert [len(shop.store.chunk(chunk)) for chunk in shop.store.chunk_ids(1)] == [3, 3, 1]
    shop.push("i")
    assert shop.pop(2) == ["b", "c"]
    shop.commit()
    assert shop.store.load().tails == {1 << BAND_BITS | 3: [b"Ci".replace(b"C", b"C/")]}
    assert Shop(shop.store).rest() == shop.rest() == list("defghi")


def test_chunk_is_deleted_only_when_it_is_used_up(shop: Shop) -> None:
    shop.push(*"abcdef")
    shop.commit()
    first, second = shop.store.chunk_ids(1)
    assert shop.pop(2) == ["a", "b"]
    shop.commit()
    assert shop.store.chunk_ids(1) == [first, second]
    assert shop.store.host(1).positions == f"{3}:2"
    assert shop.pop() == ["c"]
    shop.commit()
    assert shop.store.chunk_ids(1) == [second]
    assert shop.store.host(1).positions == ""
    assert Shop(shop.store).rest() == list("def")


def test_better_bands_go_first_wherever_they_are_stored(shop: Shop) -> None:
    shop.push(*"abcd", rank=9)
    shop.commit()
    assert shop.pop() == ["a"], "in the middle of a chunk"
    shop.push("seed", rank=0)
    shop.push("block", rank=2)
    assert shop.pop(2) == ["seed", "block"]
    assert shop.rest() == list("bcd")


def test_flush_under_way_is_read_from_memory(shop: Shop) -> None:
    shop.push(*"abcdef")
    assert shop.queues.drain_changes()[0].flush is not None
    shop.push(*"ghijkl")
    assert shop.queues.drain_changes()[0].flush is None, "one flush at a time"
    assert shop.store.chunk_ids(1) == []
    assert shop.pop(7) == list("abcdefg")


def test_dropped_queue_is_gone_for_good_and_what_comes_later_is_not(shop: Shop) -> None:
    shop.push(*"abcdef")
    shop.commit()
    shop.push("g")
    assert shop.pop() == ["a"]
    assert shop.queues.drop_queue(shop.host) == 6
    assert (shop.host.queued, shop.queues.worst_band(shop.host)) == (0, 0)
    shop.push("new")
    shop.commit()
    assert shop.store.chunk_ids(1) == []
    assert Shop(shop.store).rest() == shop.rest() == ["new"]


def test_drop_does_no_work_for_each_url(shop: Shop) -> None:
    """The store is not read, and the batch names the host once."""
    shop.push(*(f"p{number}" for number in range(3000)))
    shop.commit()
    shop.queues.worst_band(shop.host)
    shop.store.chunk = shop.store.chunk_ids = None  # type: ignore[assignment, method-assign]
    assert shop.queues.drop_queue(shop.host) == 3000
    changes, _ = shop.queues.drain_changes()
    assert (changes.dropped, changes.used, changes.popped) == ([1], [], {})


def test_url_given_back_is_first_also_after_a_restart(shop: Shop) -> None:
    shop.push(*"abcdef")
    shop.commit()
    url = shop.queues.pop(shop.host)
    shop.queues.push_front(url)
    shop.hosts.changed.add(shop.host)
    shop.commit()
    assert Shop(shop.store).rest() == list("abcdef")


def test_worst_of_a_queue_that_is_full(shop: Shop) -> None:
    shop.push(*"ab", rank=9)
    shop.push(*"cd", rank=2)
    shop.commit()
    shop.push("e", rank=9)
    assert shop.queues.worst_band(shop.host) == 9
    assert [shop.queues.drop_worst_url(shop.host).url[-1] for _ in range(3)] == ["a", "b", "e"]
    assert shop.rest() == ["c", "d"]


@pytest.mark.parametrize("line", [b"", b"~", b"~[1]", b'~{"a": 1}', b"~[1,2,3,4,5,6]", b"\xff/", b"@/\xff", b"zz"])
def test_damaged_line_is_a_damaged_store(shop: Shop, line: bytes) -> None:
    shop.queues.push(1, 3, line)
    with pytest.raises(StorageError, match=r"queue of a.cz is damaged"):
        shop.pop()


# -- lines

NAMES = st.sampled_from(["a.cz", "www.a.cz", "b.a.cz:81", "10.0.0.1", "[::1]", "[::1]:99", "a.cz:443", "a.cz:80"])
PATHS = st.text(max_size=20)
URLS = st.builds("{}://{}/{}".format, st.sampled_from(["http", "https"]), NAMES, PATHS)


@given(
    URLS, st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.none() | st.binary(max_size=20),
    st.booleans() | st.text(max_size=9),
)  # fmt: skip
def test_line_holds_all_of_a_url(text, rank, tries, redirects, payload, spelled):
    target = canonicalize(text)
    host = Host(7, target.host, HostStates())
    url = target.url + (f"#{spelled}" if isinstance(spelled, str) else "")
    queued = QueuedUrl(url_key(7, target.url), url, host, rank, target, tries, redirects, payload)
    line = line_of(queued)
    assert b"\n" not in line
    assert line[:4] != b"\x28\xb5\x2f\xfd", "chunks of one line are told from compressed ones by this"
    again = url_of(line, host)
    assert (again.key, again.url, again.rank, again.tries, again.redirects, again.payload, again.target) == (
        queued.key, queued.url, rank, tries, redirects, payload, target,
    )  # fmt: skip


def test_key_of_a_salted_request_comes_back() -> None:
    target, host = canonicalize("http://a.cz/login"), Host(7, "a.cz", HostStates())
    queued = QueuedUrl(url_key(7, target.url, b"POST"), target.url, host, 1, target, payload=b"")
    assert url_of(line_of(queued), host).key == queued.key != url_key(7, target.url)


def test_plain_url_costs_one_byte_more_than_its_path() -> None:
    assert len(plain_line(canonicalize("https://www.a.cz/a/b.html?c=d"), 3)) == len("/a/b.html?c=d") + 1


def test_what_a_flush_has_written_leaves_memory_a_few_slots_at_a_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once stopped the event loop for .3 s."""
    monkeypatch.setattr("spiderling.frontier.storage.queues.FREED_AT_ONCE", 2)
    for rank in range(5):
        shop.push(f"r{rank}", rank=rank)
    shop.commit()
    assert shop.flush is not None
    left = []
    for _ in range(4):
        left.append(len(shop.flush.tails))  # the queues' own table
        shop.commit()
    assert left == [5, 3, 1, 0]
    assert Shop(shop.store).rest() == shop.rest() == [f"r{rank}" for rank in range(5)]


def test_several_crawls_of_one_process_write_their_queues_at_the_same_time() -> None:
    """Each crawl commits in a thread of its own; a compressor serves one thread at a time."""
    lines = [b"@/a/long/path/of/a/page/%d" % number for number in range(5000)]
    with ThreadPoolExecutor(4) as threads:
        blobs = list(threads.map(pack, [lines] * 400))
    assert all(unpack(blob) == lines for blob in blobs)
