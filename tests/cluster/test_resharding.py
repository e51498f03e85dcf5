"""A paused crawl is divided over more shards: hosts move once, with all that waits, also if that is interrupted."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from conftest import Crawl, damage_in, serving
from forked import scrapy
from needs import needs
from redis_server import RedisServer
from test_crawl_of_shards import ADDRESSES, EVERY, SEED, SITES, SOON

from spiderling.base.errors import BadInput, JobdirError, StorageError
from spiderling.base.options import Options
from spiderling.base.urls import owner_of
from spiderling.cluster.claims import Claim
from spiderling.cluster.resharding import reshard
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import HostState
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.queues import line_at
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.takedown import take_down
from webs.web import FixedWeb


@pytest.fixture(scope="module")
def paused(tmp_path_factory) -> tuple[Path, int]:
    """A crawl of one process after a dozen pages, and how many requests it made."""
    directory = tmp_path_factory.mktemp("paused") / "cs"
    with serving(FixedWeb(SITES, ADDRESSES)) as server:
        ended = Crawl(directory, server, MAX_PAGES=12, DEDUP="off").run(SEED)
        assert ended.code == 0 and not damage_in(directory), ended.output
        return directory, [(entry.host, entry.path) for entry in server.log_entries]


def parts(directory: Path) -> list[Path]:
    found = sorted(directory.glob("shard-*"))
    return found or [directory]


def waiting(directory: Path) -> dict[str, str]:
    """URL -> shard in which it waits; it may not wait in two."""
    found: dict[str, str] = {}
    for place in parts(directory):
        assert not damage_in(place)
        for url, is_parked in _state(place).urls:
            assert url not in found and not is_parked
            found[url] = place.name
    return found


def _state(place: Path):
    crawl = Crawl.__new__(Crawl)
    crawl.directory = place
    return crawl.state()


def totals(directory: Path) -> Counter[str]:
    """The totals of all shards, and how many URLs are known, each counted once."""
    counts: Counter[str] = Counter()
    for place in parts(directory):
        counts.update({name: n for name, n in _state(place).counts.items() if name.startswith(("total/", "waiting"))})
    counts.pop("total/time_s", None)
    return counts


@needs("redis")
def test_hosts_move_once_and_the_crawl_goes_on_as_if_nothing_had_been(tmp_path, paused):
    """One process, then two shards, then five: each document is kept once, and nothing is asked for twice."""
    source, asked_before = paused
    directory = tmp_path / "cs"
    shutil.copytree(source, directory)
    before = waiting(directory), totals(directory)
    said = scrapy("reshard", str(directory), "--shards", "2", cwd=tmp_path)
    assert said.code == 0 and "is a crawl of 2 shards" in said.out, said
    after = waiting(directory)
    assert after.keys() == before[0].keys() and totals(directory) == before[1]
    assert after == {url: f"shard-{owner_of(url.split('/')[2], 2):02}" for url in after}
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = Crawl(directory, server, CLUSTER=store.url, CONSTANTS=SOON, DEDUP="off")
        ended = [one.wait() for one in [crawl.start(SEED, SHARDS=2, MAX_PAGES=30) for _ in range(2)]]
        assert [one.code for one in ended] == [0, 0], ended
        list(reshard(directory, 5, 0.0))
        waiting(directory)
        refused = crawl.run(SEED, SHARDS=2)
        assert refused.code == 1 and "it has SPIDERLING_SHARDS=5, not 2; scrapy reshard changes that" in refused.output
        ended = [one.wait() for one in [crawl.start(SEED, SHARDS=5) for _ in range(5)]]
        assert [one.code for one in ended] == [0] * 5, ended
        asked = Counter([*asked_before, *((entry.host, entry.path) for entry in server.log_entries)])
    pages = {place: number for place, number in asked.items() if place[1] != "/robots.txt"}
    assert set(pages.values()) == {1}
    kept = [document.url for place in parts(directory) for document in _documents(place)]
    assert sorted(kept) == EVERY and not waiting(directory)


def _documents(place: Path):
    crawl = Crawl.__new__(Crawl)
    crawl.directory = place
    return crawl.documents()


def test_it_is_done_once_wherever_it_is_interrupted(tmp_path, paused, monkeypatch):
    """The n-th commit fails, for every n, and the same command is given again."""
    source, _ = paused
    commit = SqliteStore.commit
    left = 0

    def failing(store, changes):
        nonlocal left
        left -= 1
        if left == 0:
            raise StorageError("the disk is full")
        commit(store, changes)

    monkeypatch.setattr(SqliteStore, "commit", failing)
    wanted = None
    commits = 0
    for number in count():
        if number > commits > 0:
            break
        directory = tmp_path / str(number) / "cs"
        shutil.copytree(source, directory)
        left = number
        if number:
            with pytest.raises(StorageError):
                list(reshard(directory, 3, 0.0))
        if number > 1:  # at the first nothing was changed
            with pytest.raises(BadInput, match=r"being divided over 3 shards: end that first, with --shards 3"):
                list(reshard(directory, 4, 0.0))
            with pytest.raises(JobdirError, match="if scrapy reshard was interrupted, give the same command again"):
                take_down(directory, ["a.test"], [], 0.0)
        left = 0
        list(reshard(directory, 3, 0.0))
        found = waiting(directory), totals(directory), [_state(place).meta["shard_map"] for place in parts(directory)]
        wanted = wanted or found
        commits = commits or -left
        assert found == wanted
    assert len(set(wanted[2])) == 1 and commits > 10


@needs("redis")
def test_no_crawl_begins_before_it_has_ended(tmp_path, paused, monkeypatch):
    directory = tmp_path / "cs"
    shutil.copytree(paused[0], directory)
    monkeypatch.setattr("spiderling.cluster.resharding._Part.close_moved", lambda part: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(reshard(directory, 2, 0.0))
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        refused = Crawl(directory, server, CLUSTER=store.url, CONSTANTS=SOON).run(SEED, SHARDS=2)
    assert refused.code == 1 and f"end that with scrapy reshard {directory} --shards 2" in refused.output


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_crawl_of_one_process_does_not_begin_while_it_becomes_a_shard(tmp_path, paused, monkeypatch, moved):
    """A start made an empty corpus/ in the place of the one that had moved, over which the rest could not move."""
    directory = tmp_path / "cs"
    shutil.copytree(paused[0], directory)
    before = waiting(directory), totals(directory)
    rename = Path.rename
    left = iter(range(moved))

    def failing(path, target):
        if next(left, None) is None:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", failing)
        with pytest.raises(StorageError, match="could not be written: Input/output error"):
            list(reshard(directory, 2, 0.0))
    for is_rebuilt in (False, True):
        with pytest.raises(JobdirError, match=f"is being divided: end that with scrapy reshard {directory} --shards"):
            Jobdir(directory, is_rebuilt)
    list(reshard(directory, 2, 0.0))
    assert (waiting(directory).keys(), totals(directory)) == (before[0].keys(), before[1])


def test_a_crawl_of_one_process_that_has_become_a_shard_is_no_shard_yet(tmp_path, paused, monkeypatch):
    """The second of two began anew beside it, and asked again for what the first one had."""
    directory = tmp_path / "cs"
    shutil.copytree(paused[0], directory)
    with monkeypatch.context() as patched:
        patched.setattr("spiderling.cluster.resharding._Part.__init__", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            list(reshard(directory, 2, 0.0))
    claim = Claim(Options(lang="cs", dedup="off", cluster="unix:///nowhere", shards=2), directory)
    with pytest.raises(JobdirError, match=f"end that with scrapy reshard {directory} --shards 2"):
        claim.take()
    with pytest.raises(JobdirError, match="if scrapy reshard was interrupted, give the same command again"):
        take_down(directory, ["a.test"], [], 0.0)
    list(reshard(directory, 2, 0.0))


def test_a_shard_that_was_taken_over_before_is_not_said_to_be_again(tmp_path, paused):
    """What others knew of it was older than itself, so its next start said that 0 pages are fetched again."""
    directory = tmp_path / "cs"
    shutil.copytree(paused[0], directory)
    list(reshard(directory, 2, 0.0))
    with closing(SqliteStore(directory / "shard-00/state/frontier.sqlite")) as store:
        store.commit(Changes(counts={"total/takeovers": 1}, meta={"takeovers": "1"}))
    list(reshard(directory, 3, 0.0))
    for place in parts(directory):
        known = json.loads(_state(place).meta["shards_known"])
        assert [known[number][1]["takeovers"] for number in "012"] == [1, 0, 0]


def test_what_a_closed_host_and_a_url_of_its_own_kind_take_along(tmp_path, paused):
    """A retired host stays retired, with its parked URLs; what was moved away once can come back.

    One of its URLs was in transit at a kill, and so counts as waiting.
    """
    directory = tmp_path / "cs"
    shutil.copytree(paused[0], directory)
    hosts = {url.split("/")[2] for url in waiting(directory)}
    name = next(host for host in hosts if owner_of(host, 2) == 1 and owner_of(host, 4) == 3)
    with closing(SqliteStore(directory / "state/frontier.sqlite")) as store:
        frontier = Frontier(Options(lang="cs"), lambda address: True, store)
        frontier.restore(store.load(), 0.0)
        host = frontier.host(name)
        frontier.url_states.hand_out(host)
        parked = 1 + frontier.host_closing.close_host(host, HostState.RETIRED)
        store.commit(frontier.drain(0.0))
    assert not damage_in(directory)
    before = totals(directory)
    before["waiting"] -= 1
    for shards in (2, 3, 4):
        list(reshard(directory, shards, 0.0))
        assert not any(damage_in(place) for place in parts(directory)) and totals(directory) == before
        rows = {place.name: _state(place).hosts.get(name) for place in parts(directory)}
        row = rows.pop(f"shard-{owner_of(name, shards):02}")
        assert (row["state"], row["parked"], row["waiting"]) == ("retired", parked, 0)
        assert {row["state"] for row in rows.values() if row} <= {"moved"}


def test_what_cannot_be_divided_is_told(tmp_path, paused):
    directory = tmp_path / "cs"
    with pytest.raises(BadInput, match="holds no crawl"):
        list(reshard(directory, 2, 0.0))
    shutil.copytree(paused[0], directory)
    with pytest.raises(BadInput, match=r"has 1 shard, and --shards must be more"):
        list(reshard(directory, 1, 0.0))
    list(reshard(directory, 3, 0.0))
    with pytest.raises(BadInput, match=r"has 3 shards, .* To use fewer machines, run several shards on one"):
        list(reshard(directory, 2, 0.0))
    for name in ("shard-01", "shard-00"):
        (directory / name).rename(tmp_path / name)
        (directory / name / "state").mkdir(parents=True)
        SqliteStore(directory / name / "state/frontier.sqlite").close()
        with pytest.raises(BadInput, match=rf"{name}.* has not begun: give the crawl's usual command first"):
            list(reshard(directory, 4, 0.0))
    shutil.rmtree(directory / "shard-02")
    with pytest.raises(BadInput, match="no crawl has begun in"):
        list(reshard(directory, 4, 0.0))
    for name in ("shard-00", "shard-01"):
        shutil.rmtree(directory / name)
        (tmp_path / name).rename(directory / name)
    (directory / "shard-01").rename(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=r"all 3 shards must be in .*, but shard-01, shard-02 is not"):
        list(reshard(directory, 4, 0.0))


def test_a_line_of_a_queue_names_its_new_host():
    assert line_at(7, b"\x45/path") == (5, b"\x45/path")
    rank, line = line_at(7, b'~[%d, "http://a/%%7e", 3, 1, 0, null]' % (5 << 40 | 99))
    assert rank == 3 and line == b'~[%d, "http://a/%%7e", 3, 1, 0, null]' % (7 << 40 | 99)
