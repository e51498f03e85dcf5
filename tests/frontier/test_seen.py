"""The seen set against a Python set: exact while it is a table, without a miss once it is a Bloom filter."""

from __future__ import annotations

import random
import tracemalloc
from array import array
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.urls import key_of, url_key
from spiderling.corpus.duplicates import DigestSet
from spiderling.frontier.storage.seen import PARTS, Bloom, KeyTable, SeenSet

KEYS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3).map(lambda n: n << 40 | 7))


@given(KEYS, KEYS)
def test_same_as_a_python_set(known: list[int], new: list[int]) -> None:
    seen, model = SeenSet(known), set(known)
    assert len(seen) == len(model)
    added = []
    for key in new:
        assert (key in seen) == (key in model)
        assert seen.add(key) == (key not in model)
        added += [key] if key not in model else []
        model.add(key)
    assert seen.drain().tolist() == added
    assert len(seen) == len(model)
    assert all(key in seen for key in model)
    assert seen.drain().tolist() == []


@pytest.mark.parametrize("max_exact", [1 << 62, 100])
def test_many_are_looked_up_at_once(max_exact: int) -> None:
    rng = random.Random(1)
    pairs = [(rng.randrange(1, 1 << 24), rng.randrange(1 << 40)) for _ in range(400)]
    seen = SeenSet([key_of(*pair) for pair in pairs[:200]], max_exact)
    hosts, digests = (np.array(part, np.uint64) for part in zip(*pairs, strict=True))
    assert seen.missing(hosts, digests) == list(range(200, 400))
    assert seen.missing(hosts[:0], digests[:0]) == []


@pytest.mark.parametrize("max_exact", [1 << 62, 3])
def test_keys_enter_by_their_parts(max_exact: int) -> None:
    by_parts, whole = SeenSet(max_exact=max_exact), SeenSet(max_exact=max_exact)
    for host_id in (1, 2, (1 << 24) - 1, 1):  # the third one's keys are negative
        digests = [0, 7, (1 << 40) - 1, 7]
        keys = [key_of(host_id, digest) for digest in digests]
        assert by_parts.enter([host_id] * 4, digests) == [key if whole.add(key) else 0 for key in keys]
    assert len(by_parts) == len(whole)
    assert by_parts.drain() == whole.drain()


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_tables_grow_one_part_at_a_time_and_stay_full() -> None:
    table, rng = KeyTable(), random.Random(1)
    keys = {rng.randrange(1, 2**64) for _ in range(60_000)}
    most = before = tracemalloc.get_traced_memory()[0]
    for key in keys:
        assert table.add(key)
        now = tracemalloc.get_traced_memory()[0]
        assert now - most < 10_000, "one part has some 350 cells of 8 bytes"
        most = max(most, now)
    assert len(table) == len(keys)
    assert (now - before) / len(keys) < 17
    assert not any(table.add(key) for key in keys)
    assert {key for part in range(PARTS) for key in table.keys_of(part).tolist()} == keys


def test_keys_that_crowd_at_the_end_of_a_part_find_room() -> None:
    table = KeyTable()
    keys = [(1 << 64) - 1 - number for number in range(200)]
    assert all(table.add(key) for key in keys)
    assert all(key in table for key in keys)
    assert keys[0] - 300 not in table


def test_values_of_a_prefix() -> None:
    table = KeyTable()
    for prefix, value in ((5, 1), (5, 2), (6, 3), ((1 << 40) - 1, 4)):
        table.add(prefix << 24 | value)
    assert sorted(table.values(5)) == [1, 2]
    assert list(table.values((1 << 40) - 1)) == [4]
    assert list(table.values(7)) == []


def keys_of_urls(number: int, host: int = 3) -> list[int]:
    return [url_key(host, f"http://a.cz/{n}") for n in range(number)]


@pytest.mark.parametrize("restart", [False, True])
def test_bloom_filter_takes_over_and_misses_no_known_key(restart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[KeyTable] = []

    class Noted(KeyTable):
        def __init__(self) -> None:
            super().__init__()
            tables.append(self)

    monkeypatch.setattr("spiderling.frontier.storage.seen.KeyTable", Noted)
    keys = keys_of_urls(30_000)
    seen = SeenSet(keys[:4000], max_exact=5000)
    wrong = sum(not seen.add(key) for key in keys[4000:])
    assert wrong <= 20, "about one new URL in 10,000 below four times the exact number"
    if restart:
        seen = SeenSet(array("q", keys), max_exact=5000)
    assert all(key in seen for key in keys)
    assert not any(seen.add(key) for key in keys)
    assert len(tables) > 1 and len(tables[-1]) == 0, "the table was moved bit by bit and given up"


def test_bloom_filter_keeps_its_stated_error() -> None:
    rng = np.random.default_rng(1)
    bloom, keys = Bloom(100_000), rng.integers(1, 2**63, 100_000, dtype=np.int64).view(np.uint64)
    bloom.update(keys[:50_000])
    for key in keys[50_000:].tolist():
        bloom.add(key)
    assert all(key in bloom for key in keys[::50].tolist())
    wrong = sum(key in bloom for key in rng.integers(1, 2**63, 100_000).tolist())
    assert wrong / 100_000 < 3e-4


def test_digests_of_pages_that_are_not_kept_are_forgotten() -> None:
    digests = DigestSet([1, 2])
    assert not digests.isdisjoint((2, 9))
    digests.update((3, 4))
    assert not digests.isdisjoint((4,))
    digests.difference_update((3, 4, 1))
    assert digests.isdisjoint((3, 4)) and not digests.isdisjoint((1,)), "what was kept stays"
    digests.update((5,))
    digests.keep((5,))
    digests.difference_update((5,))
    assert not digests.isdisjoint((5,))
