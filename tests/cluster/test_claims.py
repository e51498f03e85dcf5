"""Each number of a crawl belongs to one directory, whatever Redis forgets."""

from __future__ import annotations

import fcntl
import json
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import serving
from needs import needs
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis_server import RedisServer
from test_crawl_of_shards import ADDRESSES, SEED, SITES, SOON, shards

from spiderling.base.errors import BadInput, JobdirError, NoFreeShard
from spiderling.base.options import Options
from spiderling.cluster import claims
from spiderling.cluster.claims import Claim
from webs.web import FixedWeb

pytestmark = needs("redis")


@pytest.fixture(scope="module")
def server():
    with RedisServer() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(server, monkeypatch):
    server.command("FLUSHALL")
    monkeypatch.setattr(claims, "LEASE_S", 1.0)
    monkeypatch.setattr(claims, "BEAT_S", 0.2)
    monkeypatch.setattr(claims, "POLL_S", 0.4)


def claimed(server: RedisServer, directory: Path, shards: int = 2, lang: str = "cs") -> Claim:
    claim = Claim(Options(lang=lang, cluster=server.url, shards=shards), directory)
    claim.take()
    return claim


def opened(claim: Claim, *others: Claim) -> None:
    """Leave what the crawl of *claim* would leave with its first checkpoint."""
    database = claim.directory / "state" / "frontier.sqlite"
    database.parent.mkdir(parents=True)
    known = {shard: (place, {}) for one in (claim, *others) for shard, place in one.places.items()}
    meta = {claims.MAP_KEY: asdict(claim.map), claims.RECORDS_KEY: known}
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [(key, json.dumps(meta[key])) for key in meta])


def test_a_shard_at_work_whose_lease_redis_has_lost_is_not_claimed_again(server, tmp_path):
    """Its directory is locked: a process that starts before its next beat takes another one."""
    one = claimed(server, tmp_path / "cs")
    opened(one)
    with (one.directory / "state" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.command("FLUSHALL")
        assert (one.shard, claimed(server, tmp_path / "cs").shard) == (0, 1)
    server.command("FLUSHALL")
    assert claimed(server, tmp_path / "cs").shard == 0


def test_the_shards_of_a_crawl_share_a_map_and_not_a_number(server, tmp_path):
    one, other = claimed(server, tmp_path / "a" / "cs"), claimed(server, tmp_path / "b" / "cs")
    assert (one.shard, other.shard) == (0, 1)
    assert one.map == other.map
    with pytest.raises(NoFreeShard, match="each of the 2"):
        claimed(server, tmp_path / "c" / "cs")


def test_crawls_of_other_names_and_languages_have_nothing_in_common(server, tmp_path):
    one = claimed(server, tmp_path / "cs")
    for other in (claimed(server, tmp_path / "other"), claimed(server, tmp_path / "cs", lang="sk")):
        assert other.map.crawl_id != one.map.crawl_id and other.shard == 0


def test_a_killed_process_gets_its_shard_again_when_its_lease_has_run_out(server, tmp_path):
    """Its number belongs to its directory even if it was killed before there was anything in that."""
    first = claimed(server, tmp_path / "cs", shards=1)
    assert claimed(server, tmp_path / "cs", shards=1).shard == 0
    opened(first)
    assert claimed(server, tmp_path / "cs", shards=1).shard == 0
    server.command("FLUSHALL")
    assert claimed(server, tmp_path / "cs", shards=1).map == first.map


def test_a_shard_whose_record_redis_has_lost_is_waited_for_as_long_as_a_killed_one_keeps_its_lease(server, tmp_path):
    """Nothing but its record says that the lease of a process killed early is of this directory."""
    first = claimed(server, tmp_path / "cs", shards=1)
    server.command("DEL", first.seal.key("shards"))
    assert claimed(server, tmp_path / "cs", shards=1).shard == 0


def test_a_crawl_that_is_long_in_opening_keeps_its_lease(server, tmp_path):
    first = claimed(server, tmp_path / "cs", shards=1)
    first.begin_keeping()
    with pytest.raises(NoFreeShard):  # which waits for longer than a lease
        claimed(server, tmp_path / "cs", shards=1)
    first.give_back()
    assert claimed(server, tmp_path / "cs", shards=1).shard == 0


def test_a_dead_shard_keeps_its_number_and_an_emptied_redis_does_not_give_it_away(server, tmp_path):
    dead, alive = claimed(server, tmp_path / "a" / "cs", 3), claimed(server, tmp_path / "b" / "cs", 3)
    opened(dead)
    opened(alive, dead)
    server.command("FLUSHALL")
    assert claimed(server, tmp_path / "b" / "cs", 3).shard == alive.shard
    assert claimed(server, tmp_path / "c" / "cs", 3).shard == 2
    assert claimed(server, tmp_path / "a" / "cs", 3).shard == dead.shard


def test_a_new_crawl_beside_others_says_so(server, tmp_path, caplog):
    claimed(server, tmp_path / "cs")
    claimed(server, tmp_path / "cs", lang="sk")
    assert not caplog.messages
    claimed(server, tmp_path / "cz")
    assert len(caplog.messages) == 1 and "also knows: cs. To join one of those" in caplog.messages[0]


@pytest.mark.parametrize(
    ("ill", "well"),
    [
        (RedisServer.kill, RedisServer.start),
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    ],
    ids=["away", "full", "a replica"],
)
def test_a_redis_that_takes_nothing_for_now_is_waited_for_but_not_for_ever(
    server, tmp_path, monkeypatch, caplog, ill, well
):
    """A shard that began then ended at once, and the service that had started it gave up."""

    def make(state) -> None:
        state(server) if callable(state) else server.command(*state)

    def found_late(*arguments):
        time.sleep(0.2)  # longer than its patience, which counts from Redis' first refusal
        return find_languages(*arguments)

    find_languages = claims.languages.find_languages
    monkeypatch.setattr(claims.languages, "find_languages", found_late)
    monkeypatch.setattr(claims, "PATIENCE_S", 0.1)
    make(ill)
    mended = threading.Timer(0.5, make, [well])
    try:
        with pytest.raises(BadInput, match="cannot be used"):
            claimed(server, tmp_path / "cs")
        assert len(caplog.messages) == 1 and "takes nothing (" in caplog.messages[0]
        assert "waiting 0.1 s for it" in caplog.messages[0]
        monkeypatch.setattr(claims, "PATIENCE_S", 240.0)
        mended.start()
        assert claimed(server, tmp_path / "cs").shard == 0
    finally:
        mended.cancel()
        if mended.ident is None:
            make(well)
        else:
            mended.join()


def test_a_directory_of_another_crawl_of_the_same_name_is_refused(server, tmp_path):
    former = claimed(server, tmp_path / "a" / "cs")
    opened(former)
    server.command("FLUSHALL")
    claimed(server, tmp_path / "b" / "cs")
    with pytest.raises(JobdirError, match="are of another crawl"):
        claimed(server, tmp_path / "a" / "cs")


def test_what_is_given_back_is_free_at_once_and_a_crawl_that_never_opened_keeps_no_number(server, tmp_path):
    claimed(server, tmp_path / "a" / "cs", 1).give_back()
    assert claimed(server, tmp_path / "b" / "cs", 1).shard == 0


def test_a_crawl_without_shards_is_left_alone(server, tmp_path):
    (tmp_path / "cs" / "state").mkdir(parents=True)
    with pytest.raises(JobdirError, match="holds a crawl without shards"):
        claimed(server, tmp_path / "cs")


def test_a_map_that_nobody_can_read_is_refused(server, tmp_path):
    first = claimed(server, tmp_path / "cs")
    server.command("SET", first.map_key, "nonsense")
    with pytest.raises(BadInput, match="cannot be read"):
        claimed(server, tmp_path / "cs")


def test_a_redis_that_fails_at_the_last_step_of_a_claim_is_asked_again(server, tmp_path, monkeypatch):
    claim = Claim(Options(lang="cs", cluster=server.url, shards=2), tmp_path / "cs")
    delete = claim._redis.delete  # noqa: SLF001
    refusals = iter([True])

    def failing(*keys):
        if next(refusals, False):
            server.command("FLUSHALL")
            raise RedisConnectionError("Connection closed by server.")
        return delete(*keys)

    monkeypatch.setattr(claim._redis, "delete", failing)  # noqa: SLF001
    claim.take()
    assert claim.shard == 0 and claim.places == {0: claim.places[0]}


def test_a_slow_redis_that_did_what_it_did_not_answer_to_gives_one_shard_and_not_two(server, tmp_path, monkeypatch):
    """The one that nobody was to run then stayed claimed, and nobody else could take it."""
    claim = Claim(Options(lang="cs", cluster=server.url, shards=2), tmp_path / "a" / "cs")
    hsetnx = claim._redis.hsetnx  # noqa: SLF001
    refusals = iter([True])

    def silent(*arguments):
        hsetnx(*arguments)
        if next(refusals, False):
            raise RedisTimeoutError("Timeout reading from socket")
        return 0

    monkeypatch.setattr(claim._redis, "hsetnx", silent)  # noqa: SLF001
    claim.take()
    assert (claim.shard, claimed(server, tmp_path / "b" / "cs").shard) == (0, 1)


def test_what_was_given_back_by_a_crawl_that_never_opened_is_not_put_back_by_others(server, tmp_path):
    """Those at work put back what Redis has lost, and so nobody but the directory that was given up could take it."""
    lasting = {**SOON, "cluster.heartbeat.WAIT_MISSING_S": 600.0}
    (tmp_path / "a").mkdir()
    with serving(FixedWeb(SITES, ADDRESSES)) as web:
        running = shards(tmp_path / "a" / "cs", web, server, 2, CONSTANTS=lasting).start(SEED)
        running.until(lambda: web.log_entries)
        options = Options(lang="cs", cluster=server.url, shards=2, dedup="exact")
        given_up = Claim(options, tmp_path / "b" / "cs")
        given_up.take()
        time.sleep(1.0)  # some beats, in which it is read
        given_up.give_back()
        time.sleep(1.0)
        again = Claim(options, tmp_path / "c" / "cs")
        again.take()
        assert given_up.shard == again.shard == 1
        running.stop(signal.SIGKILL)
