"""Who differs in what all shards must share does not join, and is told what to do."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.cluster.claims import ShardMap

MAP = ShardMap(16, "cs,sk", "simhash")


def test_a_map_comes_back_as_it_was() -> None:
    assert ShardMap.from_json(MAP.to_json()) == MAP
    assert ShardMap(16, "cs,sk", "simhash").crawl_id != MAP.crawl_id, "each crawl has its own id"


def test_a_shard_with_the_same_options_joins_whatever_id_it_made_up() -> None:
    MAP.refuse_to_join(ShardMap(16, "cs,sk", "simhash"), "redis:6379")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"shards": 8}, "SPIDERLING_SHARDS=16, not 8; that cannot change"),
        ({"lang": "de"}, "its language is cs,sk, not de; give another Redis"),
        ({"dedup": "exact"}, "SPIDERLING_DEDUP=simhash, not exact"),
        ({"wire": 99}, "this Spiderling's 99; stop all shards, upgrade all"),
        ({"state": 99}, "this Spiderling's 99; stop all shards, upgrade all"),
        ({"canonical": 99}, "ours 99; use its version"),
        ({"suffixes": "00"}, r"another list of public suffixes; install the tldextract"),
        ({"url_parser": "1.0"}, rf"say: pip install ada-url=={MAP.url_parser}"),
    ],
)
def test_each_difference_is_refused_with_what_to_do(changed: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=f"cannot join the crawl of redis:6379: .*{said}"):
        MAP.refuse_to_join(replace(MAP, **changed), "redis:6379")


def test_nothing_but_the_id_may_differ() -> None:
    for one in fields(ShardMap):
        other = replace(MAP, **{one.name: 3 if one.type == "int" else "ab" * 16})
        if one.name == "crawl_id":
            MAP.refuse_to_join(other, "x")
        else:
            with pytest.raises(BadInput):
                MAP.refuse_to_join(other, "x")


@given(st.text(max_size=30) | st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists).map(json.dumps))
def test_what_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        ShardMap.from_json(text)


@given(st.sampled_from([one.name for one in fields(ShardMap)]), st.none() | st.integers() | st.text(max_size=3))
def test_a_map_with_a_false_entry_is_refused_or_differs(name: str, value: object) -> None:
    changed = {**json.loads(MAP.to_json()), name: value}
    with suppress(BadInput):
        found = ShardMap.from_json(json.dumps(changed))
        assert getattr(found, name) == value and name != "crawl_id" and 1 <= found.shards <= 1024
    changed.pop(name)
    with pytest.raises(BadInput, match="cannot be read"):
        ShardMap.from_json(json.dumps(changed))
