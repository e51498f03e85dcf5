"""A key is wanted wherever others could reach the Redis, and one that others can read is none."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spiderling.base.errors import BadInput
from spiderling.cluster.claims import MIN_KEY_BYTES, read_key

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


@pytest.mark.parametrize("url", [TCP, "rediss://cluster.example.org", "unix:///etc/passwd"])
def test_without_a_key_there_is_no_cluster_that_others_can_reach(url: str) -> None:
    with pytest.raises(BadInput, match=r"SPIDERLING_CLUSTER_KEY_FILE is missing.*Make a key with `head -c 32"):
        read_key("", url)


def test_a_socket_that_is_not_there_is_told_as_such_not_as_a_key_that_is_missing() -> None:
    with pytest.raises(BadInput, match=r"there is no socket /nowhere/redis.sock.*start Redis first"):
        read_key("", "unix:///nowhere/redis.sock")


def test_a_socket_of_ones_own_needs_none(own_socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_key("", f"unix://{own_socket}") == b""
    assert read_key("", f"unix://:secret@{own_socket}?db=3") == b""
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(BadInput, match="is missing"):
        read_key("", f"unix://{own_socket}")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_can_read_or_change_is_refused(key: Path, mode: int) -> None:
    key.chmod(mode)
    with pytest.raises(BadInput, match=f"others may read or change {key}; make a new key"):
        read_key(str(key), TCP)


def test_a_key_that_is_no_key(key: Path, tmp_path: Path, own_socket: str) -> None:
    key.write_bytes(b"short")
    with pytest.raises(BadInput, match="has 5 bytes, a key needs 16"):
        read_key(str(key), TCP)
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadInput, match=f"{path} cannot be read: .*Make it with"):
            read_key(str(path), f"unix://{own_socket}")
