"""One crawl of several real processes over a real Redis: together they keep what one process keeps, and they end."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Crawl, Running, page, serving
from redis_server import WHY_NOT, RedisServer

from spiderling.base.owners import owner_of
from webs.web import FixedWeb, redirect

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

HOSTS = [f"host{number}.test" for number in range(12)]
SITES = {
    host: {
        "/": page(host, "/1", "/2", *(f"http://{other}/{number}" for number in (1, 2)
                                      for other in HOSTS[index : index + 4])),
        "/1": page(f"{host} 1", "/2", f"http://{HOSTS[index - 5]}/", f"http://{HOSTS[index - 1]}/3"),
        "/2": page(f"{host} 2", f"http://{HOSTS[index - 2]}/4"),
        "/3": redirect(f"http://{HOSTS[index - 3]}/2"),
        "/4": page(f"{host} 4"),
    }
    for index, host in enumerate(HOSTS)
}  # fmt: skip
ADDRESSES = {host: f"127.84.31.{number}" for number, host in enumerate(HOSTS, 1)}
SEED = f"http://{HOSTS[0]}/"


@contextmanager
def redis():
    server = RedisServer()
    try:
        yield server
    finally:
        server.close()


def shards(directory: Path, server, store: RedisServer, number: int, **settings) -> Crawl:
    return Crawl(directory, server, CLUSTER=store.url, SHARDS=number, **settings)


def documents(directory: Path) -> dict[int, list[str]]:
    """Shard -> URLs of the documents that it kept."""
    found = {}
    for place in sorted(directory.glob("shard-*")):
        crawl = Crawl.__new__(Crawl)
        crawl.directory = place
        found[int(place.name.rpartition("-")[2])] = [document.url for document in crawl.documents()]
        crawl.state().check()
    return found


def check_owners(found: dict[int, list[str]], number: int) -> None:
    for shard, urls in found.items():
        assert {owner_of(url.split("/")[2], number) for url in urls} <= {shard}


def test_two_shards_keep_together_what_one_process_keeps(tmp_path):
    with serving(FixedWeb(SITES, ADDRESSES)) as server, redis() as store:
        alone = Crawl(tmp_path / "alone", server)
        assert alone.run(SEED).code == 0
        before = len(server.log_entries)
        crawl = shards(tmp_path / "cs", server, store, 2)
        running: list[Running] = [crawl.start(SEED) for _ in range(2)]
        ended = [process.wait() for process in running]
        assert [one.code for one in ended] == [0, 0], ended
        for one in ended:
            assert one.lines("is finished.") and not one.lines("ERROR") and "Traceback" not in one.output
        found = documents(tmp_path / "cs")
        assert sorted(found) == [0, 1] and all(found.values()), "both had something to do"
        check_owners(found, 2)
        assert sorted(url for urls in found.values() for url in urls) == sorted(alone.digests())
        asked = Counter((entry.host, entry.path) for entry in server.log_entries[before:])
        assert set(asked.values()) == {1}, "nothing is fetched twice"
        again = [crawl.start(SEED) for _ in range(2)]
        assert [one.wait().code for one in again] == [0, 0]
        assert documents(tmp_path / "cs") == found, "the same command goes on, and there is nothing left"
