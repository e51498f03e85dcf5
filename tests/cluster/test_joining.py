"""Who may join a crawl of shards: one with the same map and the same key."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.cluster.claims import MIN_KEY_BYTES, ShardMap, read_key

MAP = ShardMap(16, "cs,sk", "simhash")


def test_a_map_comes_back_as_it_was() -> None:
    assert ShardMap.from_json(MAP.to_json()) == MAP
    assert ShardMap(16, "cs,sk", "simhash").crawl_id != MAP.crawl_id, "each crawl has its own id"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"shards": 8}, "SPIDERLING_SHARDS=16, not 8; scrapy reshard changes that"),
        ({"lang": "de"}, "its language is cs,sk, not de; give another Redis"),
        ({"dedup": "exact"}, "SPIDERLING_DEDUP=simhash, not exact"),
        ({"wire": 99}, "this Spiderling's 99; stop all shards, upgrade all"),
        ({"state": 99}, "this Spiderling's 99; stop all shards, upgrade all"),
        ({"canonical": 99}, "ours 99; use its version"),
        ({"suffixes": "1.0"}, rf"not 1.0; say: pip install tldextract=={MAP.suffixes}\."),
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
        assert getattr(found, name) == value and name != "crawl_id"
    changed.pop(name)
    with pytest.raises(BadInput, match="cannot be read"):
        ShardMap.from_json(json.dumps(changed))


# -- a key is wanted wherever others could reach the Redis, and one that others can read is none


TCP = "redis://10.0.0.7:6379/0"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.key"
    path.write_bytes(b"k" * MIN_KEY_BYTES)
    path.chmod(0o600)
    return path


@pytest.fixture
def own_socket() -> Iterator[str]:
    directory = tempfile.mkdtemp(prefix="key")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{directory}/s")
        yield f"{directory}/s"
    shutil.rmtree(directory)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_is_what_the_file_holds(key: Path, mode: int) -> None:
    key.chmod(mode)
    assert read_key(str(key), TCP) == b"k" * MIN_KEY_BYTES


def test_a_socket_of_ones_own_needs_none(own_socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_key("", f"unix://{own_socket}") == read_key("", f"unix://:secret@{own_socket}?db=3") == b""
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(BadInput, match="is missing"):
        read_key("", f"unix://{own_socket}")


MISSING = r"SPIDERLING_CLUSTER_KEY_FILE is missing.*Make a key with `head -c 32"


@pytest.mark.parametrize(
    ("name", "url", "mode", "said"),
    [
        ("", TCP, 0o600, MISSING),
        ("", "rediss://cluster.example.org", 0o600, MISSING),
        ("", "unix:///etc/passwd", 0o600, MISSING),
        ("", "unix:///nowhere/redis.sock", 0o600, r"there is no socket /nowhere/redis.sock.*start Redis first"),
        *(("cluster.key", TCP, mode, "others may read or change .*/cluster.key; make a new key")
          for mode in (0o640, 0o604, 0o620, 0o777)),
        ("short", TCP, 0o600, "has 5 bytes, a key needs 16"),
        (".", TCP, 0o600, "cannot be read: .*Make it with"),
        ("none", TCP, 0o600, "none cannot be read: .*Make it with"),
    ],
)  # fmt: skip
def test_without_a_key_of_ones_own_there_is_no_cluster_that_others_can_reach(key, name, url, mode, said) -> None:
    (key.parent / "short").write_bytes(b"short")
    (key.parent / "short").chmod(0o600)
    key.chmod(mode)
    with pytest.raises(BadInput, match=said):
        read_key(str(key.parent / name) if name else "", url)
