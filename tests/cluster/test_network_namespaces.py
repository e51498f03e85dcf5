"""Two machines with a network between them: a shard in a network namespace of its own, whose cable is pulled out."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess

import pytest
from conftest import Crawl, page, serving
from needs import needs
from redis_server import RedisServer

from spiderling.base.urls import owner_of
from webs.web import FixedWeb

_NETWORK = "10.84.77"
_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000
"""clone(2)."""
HOSTS = [f"host{number}.test" for number in range(8)]
PAGES = 6


class Served(FixedWeb):
    """A web that is reached from another machine."""

    def hosts(self):
        return {host: f"{_NETWORK}.{2 + number}" for number, host in enumerate(HOSTS)}

    globs = hosts


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


pytestmark = [
    pytest.mark.slow,  # a lost connection to Redis is noticed after seconds
    needs("redis"),
    needs("network namespaces"),
]


@pytest.fixture
def machine():
    """The name of another machine; its end of the cable is ``v1``, and this machine's has all the addresses."""
    name = f"spl{os.getpid()}"
    ip("netns", "add", name)
    try:
        ip("link", "add", name, "type", "veth", "peer", "name", "v1", "netns", name)
        for number in range(1, 2 + len(HOSTS)):
            ip("addr", "add", f"{_NETWORK}.{number}/24", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "addr", "add", f"{_NETWORK}.200/24", "dev", "v1")
        plug(name, True)
        yield name
    finally:
        ip("netns", "del", name)


def plug(machine: str, is_in: bool) -> None:
    ip("-n", machine, "link", "set", "v1", "up" if is_in else "down")


def enter(machine: str) -> None:
    """Go into the network of *machine*, and take its name."""
    libc = ctypes.CDLL(None)
    namespace = os.open(f"/run/netns/{machine}", os.O_RDONLY)
    if libc.setns(namespace, _CLONE_NEWNET) or libc.unshare(_CLONE_NEWUTS):
        os._exit(1)
    socket.sethostname(machine)


def free_port() -> int:
    with socket.socket() as one:
        one.bind((f"{_NETWORK}.1", 0))
        return int(one.getsockname()[1])


def test_a_machine_whose_network_goes_away_and_comes_back_loses_nothing(machine, tmp_path):
    sites = {
        host: {
            f"/{n}": page(f"{host} {n}", f"/{n + 1}" if n < PAGES else "/1", f"http://{HOSTS[index - 1]}/{n}")
            for n in range(1, PAGES + 1)
        }
        for index, host in enumerate(HOSTS)
    }
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    port = free_port()
    store = RedisServer("--bind", f"{_NETWORK}.1", "--protected-mode", "no", port=port)
    try:
        with serving(Served(sites)) as server:
            given = {"CLUSTER": f"redis://{_NETWORK}.1:{port}/0", "CLUSTER_KEY_FILE": key, "SHARDS": 2}
            given |= {"ALLOW_NETWORKS": f"{_NETWORK}.0/24", "HOST_INTERVAL_S": 1.5, "RETRIES": 3}
            crawls = [Crawl(tmp_path / one / "cs", server, **given) for one in ("here", "there")]
            for crawl in crawls:
                crawl.directory.parent.mkdir()
            seed = " ".join(f"http://{host}/1" for host in HOSTS)
            here = crawls[0].start(seed)
            there = crawls[1].start(seed, preexec_fn=lambda: enter(machine))
            there.until(lambda: "This is shard" in there.output() and len(server.log_entries) > len(HOSTS))
            plug(machine, False)
            there.until(lambda: "paused: Redis at" in there.output())
            plug(machine, True)
            ended = [here.wait(), there.wait()]
            assert [one.code for one in ended] == [0, 0]
            assert ended[1].lines("The crawl goes on after") and not ended[0].lines("paused: ")
            asked = [(entry.host, entry.path) for entry in server.log_entries]
    finally:
        store.close()
    found = {shard: urls for crawl in crawls for shard, urls in kept_by(crawl, server).items()}
    assert sorted(found) == [0, 1], "each machine has one"
    for shard, urls in found.items():
        assert {owner_of(url.split("/")[2], 2) for url in urls} == {shard}
    assert sum(map(len, found.values())) == PAGES * len(HOSTS)
    assert set(asked) >= {(host, f"/{n}") for host in HOSTS for n in range(1, PAGES + 1)}


def kept_by(crawl: Crawl, server) -> dict[int, list[str]]:
    """Shard -> URLs of its documents, of the shards on one machine."""
    places = sorted(crawl.directory.glob("shard-*"))
    return {
        int(place.name.rpartition("-")[2]): [one.url for one in Crawl(place, server).documents()] for place in places
    }
