"""One crawl of several real processes over a real Redis: together they keep what one process keeps, and they end."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import SENTENCES, Crawl, Running, page, refusal, scrapy, serving
from needs import needs
from redis_server import RedisServer
from synlog import SynLog

from spiderling.base.urls import owner_of
from spiderling.corpus.segments import read_documents
from webs.web import FixedWeb, WebResponse, html, plain, redirect

pytestmark = needs("redis")

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
EVERY = sorted(f"http://{host}{path}" for host in HOSTS for path in ("/", "/1", "/2", "/4"))
"""The URLs of the documents."""
SOON = {
    "cluster.claims.BEAT_S": 0.2,
    "cluster.claims.LEASE_S": 1.5,
    "cluster.claims.POLL_S": 0.4,
    "cluster.heartbeat.WAIT_MISSING_S": 1.0,
    "cluster.exchange.MAX_AGE_S": 0.1,
    "cluster.shard.ROUND_S": 0.05,
    "cluster.shard.BEAT_S": 0.2,
    "cluster.shard.LEASE_S": 1.5,
    "cluster.slots.HORIZON_S": 1.0,
}
"""Nothing but time is spared by these."""
SLOW = {**SOON, "cluster.slots.WINDOW_S": 0.25, "cluster.slots.GUARD_S": 0.2}
"""Between the last look at the time and the packet, a busy machine may stop a shard for the difference at most."""


def shards(directory: Path, server, store: RedisServer, number: int, **settings) -> Crawl:
    return Crawl(directory, server, CLUSTER=store.url, SHARDS=number, **{"CONSTANTS": SOON, **settings})


def documents(directory: Path) -> dict[int, list[str]]:
    """Shard -> URLs of the documents that it kept."""
    found = {}
    for place in sorted(directory.glob("shard-*")):
        crawl = Crawl.__new__(Crawl)
        crawl.directory = place
        found[int(place.name.rpartition("-")[2])] = [document.url for document in crawl.documents()]
        crawl.state().check()
    return found


def kept(directory: Path, number: int = 2) -> list[str]:
    """The URLs of all documents; each of the *number* shards has those of its own hosts."""
    found = documents(directory)
    for shard, urls in found.items():
        assert {owner_of(url.split("/")[2], number) for url in urls} <= {shard}
    return sorted(url for urls in found.values() for url in urls)


def test_two_shards_keep_together_what_one_process_keeps(tmp_path):
    """A host's robots.txt is redirected to one of the other shard, and forbids a page."""
    other = next(host for host in HOSTS if owner_of(host, 2) != owner_of(HOSTS[0], 2))
    sites = {host: dict(site) for host, site in SITES.items()}
    sites[HOSTS[0]]["/robots.txt"] = redirect(f"http://{other}/rules")
    sites[other]["/rules"] = plain("User-agent: *\nDisallow: /1")
    with serving(FixedWeb(sites, ADDRESSES)) as server, RedisServer() as store:
        alone = Crawl(tmp_path / "alone", server)
        assert alone.run(SEED).code == 0
        before = len(server.log_entries)
        crawl = shards(tmp_path / "cs", server, store, 2)
        running: list[Running] = [crawl.start(SEED) for _ in range(2)]
        ended = [process.wait() for process in running]
        assert [one.code for one in ended] == [0, 0], ended
        for one in ended:
            assert one.lines("is finished.") and not one.lines("ERROR") and "Traceback" not in one.output
        said = {line[:9] for one in ended for line in one.output.splitlines() if "is finished." in line}
        assert said == {"shard 0: ", "shard 1: "}, "each line names who says it"
        found = documents(tmp_path / "cs")
        assert sorted(found) == [0, 1] and all(found.values()), "both had something to do"
        assert kept(tmp_path / "cs") == sorted(alone.digests())
        asked = Counter((entry.host, entry.path) for entry in server.log_entries[before:])
        assert set(asked.values()) == {1}, "nothing is fetched twice"
        assert asked[other, "/rules"] and not asked[HOSTS[0], "/1"]
        again = [crawl.start(SEED) for _ in range(2)]
        assert [one.wait().code for one in again] == [0, 0]
        assert documents(tmp_path / "cs") == found, "the same command goes on, and there is nothing left"


@pytest.mark.parametrize(
    ("dedup", "expected"),
    [
        ("near", {"/": "first second", "/part": "third", "/back": "fourth"}),
        ("exact", {"/": "first second", "/part": "first third", "/back": "third fourth"}),
        pytest.param(
            "mark",
            {"/": "first second", "/part": "(first) third", "/back": "(third) fourth"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "off",
            {"/": "first second", "/copy": "first second", "/part": "first third", "/back": "third fourth"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_another_shard_has_kept_is_a_duplicate(tmp_path, dedup, expected):
    """Each page leads to the next one, of the other shard or not, so each is fetched when the last was kept."""
    one, other = (next(host for host in HOSTS if owner_of(host, 2) == shard) for shard in (0, 1))
    sites = {
        one: {"/": said(f"http://{other}/copy", "first", "second"), "/back": said("/", "third", "fourth")},
        other: {"/copy": said("/part", "first", "second"), "/part": said(f"http://{one}/back", "first", "third")},
    }
    with serving(FixedWeb(sites)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 2, DEDUP=dedup)
        running = [crawl.start(f"http://{one}/") for _ in range(2)]
        assert [process.wait().code for process in running] == [0, 0]
    texts = {text_of(word): word for word in ("first", "second", "third", "fourth")}
    found = {}
    for path in (tmp_path / "cs").glob("shard-*/corpus/*.prevert.zst"):
        for doc in read_documents(path):
            words = [f"({texts[text]})" if "dup" in details else texts[text]
                     for text, details in zip(doc.paragraphs, doc.details, strict=True)]  # fmt: skip
            found[urlsplit(doc.attributes["url"]).path] = " ".join(words)
    assert found == expected
    for place in (tmp_path / "cs").glob("shard-*"):
        assert scrapy("inspect", str(place), "--check").code == 0, "digests of others are no damage"


def text_of(word: str) -> str:
    """A paragraph; no two words give texts with a common shingle."""
    return " ".join(random.Random(word).choices(" ".join(SENTENCES).split(), k=70)).capitalize() + "."


def said(link: str, *words: str) -> WebResponse:
    """A page with a paragraph for each of *words*, and a *link*."""
    text = "".join(f"<p>{text_of(word)}</p>" for word in words)
    return html(f"{text}<ul><li><a href='{link}'>dál</a></ul>")


@pytest.mark.slow
def test_kills_of_shards_and_of_redis_lose_nothing(tmp_path):
    """Each shard is killed once; Redis is emptied, and killed."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 2, HOST_INTERVAL_S=0.5)
        one, other = crawl.start(SEED), crawl.start(SEED)
        one.until(lambda: len(server.log_entries) > 8)
        one.stop(signal.SIGKILL)
        store.command("FLUSHALL")
        again = crawl.start(SEED)
        again.until(lambda: again_asks(again, server))
        store.kill()
        again.until(lambda: "paused: Redis at" in again.output())
        asked = len(server.log_entries)
        time.sleep(1)
        assert len(server.log_entries) <= asked + 2, "those that were under way"
        store.start()
        again.until(lambda: "goes on after" in again.output())
        other.stop(signal.SIGKILL)
        last = crawl.start(SEED)
        ended = [process.wait() for process in (again, last)]
        assert [(one.code, one.lines("ERROR")) for one in ended] == [(0, []), (0, [])], ended
        assert kept(tmp_path / "cs") == EVERY


def again_asks(running: Running, server) -> bool:
    return "This is shard" in running.output() and len(server.log_entries) > 12


@pytest.mark.slow
def test_a_budget_is_that_of_all_shards(tmp_path):
    """What all have kept together ends each of them, also when it starts again; a larger budget lets them go on."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 2, HOST_INTERVAL_S=3, MAX_DOCUMENTS=13)
        seeds = " ".join(f"http://{host}/" for host in HOSTS)
        spent = "SPIDERLING_MAX_DOCUMENTS=13 is reached; a larger one lets the crawl go on"
        before = Counter[int]()
        for lost in (False, True):
            if lost:
                store.command("FLUSHALL")
            running = [crawl.start(seeds) for _ in range(2)]
            ended = [one.wait() for one in running]
            for one in ended:
                assert one.code == 0 and one.lines(spent) and not one.lines("ERROR"), one
                assert one.lines("was paused (budget-documents); a larger budget lets it go on")
            numbers = Counter({shard: len(urls) for shard, urls in documents(tmp_path / "cs").items()})
            assert all(0 < number < 13 for number in numbers.values()) and 13 <= numbers.total() < 4 * len(HOSTS)
            assert not lost or numbers == before, "none begins anew to count"
            before = numbers
        running = [crawl.start(seeds, MAX_DOCUMENTS=1000, HOST_INTERVAL_S=0) for _ in range(2)]
        ended = [one.wait() for one in running]
        assert all(one.code == 0 and one.lines("is finished.") for one in ended), ended
        assert any(one.lines("all shards ", f" {4 * len(HOSTS)} documents, ") for one in ended)
        assert kept(tmp_path / "cs") == EVERY


@needs("packet sockets")
def test_an_address_whose_hosts_belong_to_two_shards_keeps_its_interval(tmp_path):
    shared = dict.fromkeys(HOSTS, "127.84.31.99")
    settings = {"IP_INTERVAL_S": 0.1, "HOST_INTERVAL_S": 0.11, "FOLLOW": "none", "CONSTANTS": SLOW}
    with serving(FixedWeb(SITES, shared)) as server, RedisServer() as store, SynLog() as log:
        crawl = shards(tmp_path / "cs", server, store, 2, **settings)
        seeds = " ".join(f"http://{host}/" for host in HOSTS)
        running = [crawl.start(seeds) for _ in range(2)]
        assert [one.wait().code for one in running] == [0, 0]
    found = documents(tmp_path / "cs")
    assert all(found.values()) and sum(map(len, found.values())) == len(HOSTS)
    packets = [packet.time_s for packet in log.seen if packet.address == "127.84.31.99"]
    assert len(packets) >= 2 * len(HOSTS), "the log has missed none"
    # a packet may be late, so that the next one seems early; that is seldom, and all together cannot be
    early = [later - sooner < 0.1 - 0.001 for sooner, later in pairwise(packets)]
    assert sum(early) < len(packets) / 4
    assert packets[-1] - packets[0] >= (len(packets) - 2) * 0.1


@pytest.mark.slow
def test_a_shard_that_never_starts_is_told_and_joins_later(tmp_path):
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 2)
        seeds = " ".join(f"http://{host}/" for host in HOSTS)
        ended = crawl.run(seeds)
        assert ended.code == 0
        assert ended.lines("without these shards, which do not run: 1 (", "messages wait for it")
        assert sorted(documents(tmp_path / "cs")) == [0]
        both = [crawl.start(seeds) for _ in range(2)]
        assert [one.wait().code for one in both] == [0, 0]
        assert kept(tmp_path / "cs") == EVERY
    assert "SPIDERLING_SHARDS=2, not 1" in refusal(
        tmp_path / "cs" / "shard-00", "-a", "lang=cs", "-s", "SPIDERLING_DEDUP=exact"
    )
    assert "holds the shards of a crawl: give the SPIDERLING_SHARDS that it has" in refusal(
        tmp_path / "cs", "-a", "lang=cs"
    )


def test_a_shard_that_is_stopped_while_it_waits_for_others_is_not_finished(tmp_path):
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 2, FOLLOW="none", LOGSTATS_INTERVAL=1)
        waits = crawl.start(SEED, CONSTANTS={**SOON, "cluster.heartbeat.WAIT_MISSING_S": 1000.0})
        waits.until(lambda: " 0 URLs waiting" in waits.output())
        stopped = waits.stop()
        assert stopped.lines("was paused (shutdown); the same command goes on") and not stopped.lines("is finished.")


def test_archives_are_read_without_shards(tmp_path):
    archive = tmp_path / "a.warc"
    archive.touch()
    settings = ["-s", "SPIDERLING_CLUSTER=unix:///s", "-s", f"JOBDIR={tmp_path / 'cs'}"]
    ended = scrapy("crawl", "archive", "-a", "lang=cs", "-a", f"warc={archive}", *settings)
    assert ended.code == 1 and "archives are read without SPIDERLING_CLUSTER" in ended.errors[0]


@pytest.mark.slow
def test_who_does_not_fit_into_a_crawl_that_runs_does_not_join(tmp_path):
    """With another key it could read nothing of the others, and would take that for something that others wrote."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        keys = [tmp_path / name for name in "ab"]
        for number, key in enumerate(keys):
            key.write_bytes(bytes([number]) * 32)
            key.chmod(0o600)
        for name in ("cs", "elsewhere/cs"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / "cs/control.yaml").write_text("pause: true\n")  # it goes on until all that follows has been tried
        crawl = shards(tmp_path / "cs", server, store, 2, CLUSTER_KEY_FILE=keys[0])
        running = [crawl.start(SEED) for _ in range(2)]
        for one in running:
            one.until(lambda one=one: "This is shard" in one.output())
        third = crawl.run(SEED)
        assert third.code == 0 and third.lines("no shard is free: each of the 2") and not third.lines("ERROR")
        for settings, said in (
            ({"CLUSTER_KEY_FILE": keys[1]}, "this process has another key than the crawl at Redis"),
            ({}, "If no shard of it runs, delete spiderling:cs:cs:map there."),
            ({"CLUSTER_KEY_FILE": keys[0], "SHARDS": 3}, "it has SPIDERLING_SHARDS=2, not 3"),
        ):
            other = shards(tmp_path / "elsewhere/cs", server, store, 2).run(SEED, **settings)
            assert other.code == 1 and other.lines("ERROR", said), other
        ended = [one.stop() for one in running]
        assert [one.code for one in ended] == [0, 0]
        assert not any("Who else writes" in one.output for one in (third, *ended))
