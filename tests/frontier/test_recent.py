"""A cache that is bounded by number and by weight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spiderling.frontier.known_files import Recent


def test_who_was_asked_for_longest_ago_leaves_first() -> None:
    recent: Recent[int] = Recent(2, 100)
    recent.put("a", 1, 10)
    recent.put("b", 2, 10)
    assert recent.get("a") == 1
    recent.put("c", 3, 10)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_one_that_is_too_heavy_is_kept_alone() -> None:
    recent: Recent[int] = Recent(10, 100)
    recent.put("a", 1, 10)
    recent.put("b", 2, 1000)
    assert [recent.get(key) for key in "ab"] == [None, 2]
    recent.put("c", 3, 10)
    assert [recent.get(key) for key in "bc"] == [None, 3]


@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 60), st.booleans())))
def test_bounds_hold_and_the_weight_is_that_of_what_is_kept(steps: list[tuple[str, int, bool]]) -> None:
    recent, weights = Recent[int](4, 100), dict[str, int]()
    for key, weight, is_dropped in steps:
        if is_dropped:
            recent.drop(key)
            assert recent.get(key) is None
        else:
            recent.put(key, weight, weight)
            weights[key] = weight
            assert recent.get(key) == weight
        kept = [weights[name] for name in "abcdefg" if recent.get(name) is not None]
        assert recent.weight == sum(kept) <= 100
        assert len(recent) == len(kept) <= 4
