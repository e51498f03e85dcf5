"""The seen set against a Python set."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.urls import key_of
from spiderling.corpus.duplicates import DigestSet
from spiderling.frontier.storage.seen import KeyTable, SeenSet

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


def test_many_are_looked_up_at_once() -> None:
    rng = random.Random(1)
    pairs = [(rng.randrange(1, 1 << 24), rng.randrange(1 << 40)) for _ in range(400)]
    seen = SeenSet([key_of(*pair) for pair in pairs[:200]])
    hosts, digests = (np.array(part, np.uint64) for part in zip(*pairs, strict=True))
    assert seen.missing(hosts, digests) == list(range(200, 400))
    assert seen.missing(hosts[:0], digests[:0]) == []


def test_keys_enter_by_their_parts() -> None:
    by_parts, whole = SeenSet(), SeenSet()
    for host_id in (1, 2, (1 << 24) - 1, 1):  # the third one's keys are negative
        digests = [0, 7, (1 << 40) - 1, 7]
        keys = [key_of(host_id, digest) for digest in digests]
        assert by_parts.enter([host_id] * 4, digests) == [key if whole.add(key) else 0 for key in keys]
    assert len(by_parts) == len(whole)
    assert by_parts.drain() == whole.drain()


def test_keys_that_crowd_in_a_part_find_room_and_values_of_a_prefix_are_found() -> None:
    table = KeyTable()
    keys = [(1 << 63) - 1 - number for number in range(200)]
    assert all(table.add(key) for key in keys)
    assert all(key in table for key in keys)
    assert keys[0] - 300 not in table
    for prefix, value in ((5, 1), (5, 2), (6, 3), ((1 << 39) - 1, 4)):
        table.add(prefix << 24 | value)
    assert [list(table.values(prefix))[:2] for prefix in (5, 7)] == [[1, 2], []]
    assert 4 in table.values((1 << 39) - 1)


@pytest.mark.slow
def test_a_key_takes_no_more_bytes_than_the_page_on_performance_says() -> None:
    table, rng = KeyTable(), random.Random(1)
    table.load(np.array([rng.randrange(-(2**63), 2**63) for _ in range(1_000_000)]))
    tracemalloc.start()
    for _ in range(1_000_000):
        table.add(rng.randrange(-(2**63), 2**63))
    assert tracemalloc.get_traced_memory()[0] / len(table) < 12
    tracemalloc.stop()


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
