"""A crawl that was interrupted in any way and gone on with ends like one that never was."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import resource
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import NETWORK, Crawl, damage_in, page, serving

from benchmarks.faults import HOSTS, SEEDS, SETTINGS, children, differences, interrupted, linked_web, session
from spiderling.base.errors import JobdirError, StorageError
from spiderling.base.files import zstd
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.segments import SegmentKind, SegmentWriter
from spiderling.crawl.checkpoint import Checkpoint
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.frontier import Frontier
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.directory import Jobdir, acquire, judge_surplus
from webs.web import FixedWeb, WebResponse

PAGES = 14


@pytest.fixture(scope="module")
def server():
    with serving(linked_web(PAGES)) as running:
        yield running


@pytest.fixture(scope="module")
def reference(server, tmp_path_factory):
    """The crawl that nothing interrupted."""
    crawl = Crawl(tmp_path_factory.mktemp("reference") / "job", server, **SETTINGS)
    assert crawl.run(SEEDS).code == 0
    crawl.state().check()
    assert len(crawl.documents()) == len(HOSTS) * (PAGES + 1)
    return crawl


def assert_same(crawl: Crawl, reference: Crawl) -> None:
    crawl.state().check()
    assert crawl.digests() == reference.digests()
    assert differences(crawl, reference) == []


def served(server) -> int:
    return len(server.log_entries)


def test_stopped_and_resumed_gives_the_corpus_of_an_uninterrupted_crawl(server, reference, tmp_path):
    crawl = Crawl(tmp_path / "job", server, **SETTINGS)
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGINT)
    for stop, number in enumerate(stops):
        before, running = served(server), crawl.start(SEEDS)
        running.until(lambda before=before: served(server) > before + 10)
        result = running.stop(number)
        assert result.code == 0
        assert "was paused (shutdown); the same command goes on with it." in result.output
        crawl.state().check()
        assert crawl.state().counts["waiting"] > 0
        assert ("Resuming the crawl" in result.output) == (stop > 0)
    assert "is finished." in crawl.run(SEEDS).output
    assert_same(crawl, reference)
    seeds_again = len(stops) * len(SEEDS.split())
    assert crawl.state().mentions == {"seen": reference.state().mentions["seen"] + seeds_again}


def test_killed_at_any_moment_nothing_is_lost_and_nothing_twice(server, reference, tmp_path):
    """Kills come from outside and at steps of a checkpoint, a start and a recovery; tests/simulated has every step."""
    crawl, rng = Crawl(tmp_path / "job", server, **SETTINGS), random.Random(7)
    kinds = ("write", "recover", "transaction", "worker", "commit", "rotate", "fsync", "load", "all", "committed")
    assert sum(session(crawl, server, kind, rng) for kind in kinds) >= len(kinds)
    result = crawl.run(SEEDS)
    assert result.code == 0 and "is finished." in result.output
    assert_same(crawl, reference)


@pytest.mark.slow
def test_stopped_in_a_hurry_or_asleep_for_seconds_it_goes_on_as_if_nothing_was(server, reference, tmp_path):
    crawl = Crawl(tmp_path / "job", server, **SETTINGS)
    assert interrupted(crawl, server, pause_s=3) == []
    assert_same(crawl, reference)


class SlowAtFirst(FixedWeb):
    """Waits long before each page but the home pages: a crawl has hardly begun when somebody comes to stop it."""

    delay_s = 3.0

    def __init__(self, *web) -> None:
        super().__init__(*web)
        self.asked: list[str] = []  # paths of all requests

    def respond(self, host: str, path: str) -> WebResponse:
        self.asked.append(path)
        return replace(super().respond(host, path), delay_s=0.0 if path in ("/0", "/robots.txt") else self.delay_s)


@pytest.mark.slow
def test_a_stop_for_longer_than_every_time_limit_costs_no_page_and_no_attempt(tmp_path):
    """A laptop's lid: pages are in work and transfers under way, and a second attempt is allowed to none of them.

    A page links to all others of its host, so that no host has to wait for a worker before its next transfer.
    """
    hosts = {f"h{n}.test": f"127.84.46.{n}" for n in range(1, 9)}
    paths = [f"/{n}" for n in range(7)]
    sites = {host: {path: page(f"{host}{path}", *paths) for path in paths[:-1]} for host in hosts}
    constants = {"pipelines.PAGE_TIMEOUT_S": 8, "workers.process.PAGE_TIMEOUT_S": 8}
    limits = {"TIMEOUT_S": 8, "RETRIES": 0, "CONSTANTS": constants}
    web = SlowAtFirst(sites, hosts)
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, **limits)
        running = crawl.start(" ".join(f"http://{host}/0" for host in hosts))
        running.until(lambda: len(web.asked) > 2 * len(hosts))  # robots.txt, home pages and one more
        workers = children(running.process.pid)
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        answered = served(server)
        running.until(lambda: served(server) > answered)  # so that a page is in work
        running.process.send_signal(signal.SIGSTOP)
        web.delay_s = 0.3
        time.sleep(10)
        assert set(workers) <= set(children(running.process.pid)), running.output()[-3000:]
        for pid in (*workers, running.process.pid):
            os.kill(pid, signal.SIGCONT)
        result = running.wait()
    assert result.code == 0 and "is finished." in result.output
    state = crawl.state()
    state.check()
    assert crawl.digests().keys() == {f"http://{host}{path}" for host, pages in sites.items() for path in pages}
    assert state.ends.keys() == {"kept", "http-error"}  # /6 is not there
    assert not any(host["failures"] for host in state.hosts.values())


def test_a_transfer_in_progress_at_the_stop_is_cut_and_done_again(tmp_path):
    body = page("slow", "/next").body
    slow = WebResponse(200, {"Content-Type": "text/html"}, body, trickle_s=60 * 64 / len(body))
    web = FixedWeb({"slow.test": {"/": slow, "/next": page("next")}}, {"slow.test": "127.84.2.1"})
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, CONSTANTS={"engine.dispatcher.STOP_TIMEOUT_S": 0.5})
        running = crawl.start("http://slow.test/")
        running.until(lambda: any(entry.path == "/robots.txt" for entry in server.log_entries))
        time.sleep(0.5)  # the page is on its way now, and would be for a minute
        began = time.monotonic()
        result = running.stop()
        assert result.code == 0 and result.lines(
            "Stopping: requests in transit (1) have 0.5 s to finish; what has come is still judged and saved"
        )
        assert time.monotonic() - began > 0.4
        state = crawl.state()
        state.check()
        assert state.urls == [("http://slow.test/", 0)] and state.ends == {}
        assert crawl.documents() == []
    web = FixedWeb({"slow.test": {"/": page("slow", "/next"), "/next": page("next")}}, {"slow.test": "127.84.2.1"})
    with serving(web) as server:
        crawl.settings["SPIDERLING_HOSTS"] = server.hosts_option
        assert crawl.run("http://slow.test/").code == 0
        assert [entry.path for entry in server.log_entries] == ["/", "/next"]  # robots.txt is known for a day
    assert crawl.digests().keys() == {"http://slow.test/", "http://slow.test/next"}


def test_a_second_ctrl_c_waits_for_nothing_and_says_so(tmp_path):
    slow = WebResponse(200, {"Content-Type": "text/html"}, page("slow").body, trickle_s=60)
    web = FixedWeb({"slow.test": {"/": slow}}, {"slow.test": "127.84.2.1"})
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server)
        running = crawl.start("http://slow.test/")
        running.until(lambda: any(entry.path == "/robots.txt" for entry in server.log_entries))
        time.sleep(1)  # the page is on its way now
        running.process.send_signal(signal.SIGINT)
        running.until(lambda: "Stopping: " in (crawl.directory / "crawl.log").read_text())
        result = running.stop()
    assert result.code == 0 and "Traceback" not in result.output
    assert result.lines("Stopped at once by a second signal", "the same command goes on")
    assert damage_in(crawl.directory) == []


def test_a_disk_that_is_full_at_the_last_checkpoint_is_not_a_success(server, tmp_path):
    crawl = Crawl(tmp_path / "job", server, CONSTANTS={"extensions.lifecycle.CHECKPOINT_S": 60})
    before, running = served(server), crawl.start(SEEDS)
    running.until(lambda: served(server) > before + 10)
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    result = running.stop()
    assert result.code == 1
    assert result.lines("has stopped; the same command goes on from its last checkpoint")
    assert len(result.lines("] ERROR: ")) == 1 and result.lines("The crawl stops", "could not be written")
    assert "Traceback" not in result.output and "Logging error" not in result.output


async def test_whatever_fails_in_a_checkpoint_stops_the_crawl(tmp_path, monkeypatch):
    failures = []
    frontier = Frontier(Options(lang="cs"))
    writer = SegmentWriter(tmp_path, "cs", 10)
    checkpoint = Checkpoint(frontier, SqliteStore(), [writer], lambda: 0.0, failures.append)
    frontier.put_seed("http://a.test/", 0.0)
    monkeypatch.setattr(frontier, "drain", {}.__getitem__)
    checkpoint.begin_if_needed()
    with pytest.raises(StorageError, match="a checkpoint failed: KeyError"):
        await checkpoint.close()
    assert len(failures) == 1


async def test_no_batch_is_cut_off_before_the_frontier_knows_that_the_last_one_is_written(tmp_path, monkeypatch):
    """It would let go of hosts that are in the new batch alone: what they gave would be lost."""
    told = []
    monkeypatch.setattr("spiderling.crawl.checkpoint.MAX_OUTCOMES", 1)
    frontier = Frontier(Options(lang="cs"))
    checkpoint = Checkpoint(frontier, SqliteStore(), [SegmentWriter(tmp_path, "cs", 10)], lambda: 0.0, pytest.fail)
    drain = frontier.drain
    monkeypatch.setattr(frontier, "drain", lambda now: [told.append("cut off"), drain(now)][1])
    monkeypatch.setattr(frontier, "committed", lambda: told.append("written"))
    first, second = (Outcome(None, url, Reason.HTTP_ERROR) for url in ("http://a.test/", "http://a.test/2"))
    loop = asyncio.get_running_loop()
    run_in_executor = loop.run_in_executor

    def written(*call):
        """The second outcome comes when a batch is written, before the checkpoint hears of that."""
        writing = run_in_executor(*call)
        writing.add_done_callback(lambda _: checkpoint.add_outcome(second))
        return writing

    with monkeypatch.context() as patched:
        patched.setattr(loop, "run_in_executor", written)
        checkpoint.add_outcome(first)
    await checkpoint.close()
    assert told == ["cut off", "written"] * 2


# -- changed arguments


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small finished crawl, its server, and a host that it does not know yet."""
    sites = {"old.test": {"/b": page("b")}, "new.test": {"/": page("new"), "/b": page("b")}}
    with serving(FixedWeb(sites, {"old.test": "127.84.3.1", "new.test": "127.84.3.2"})) as server:
        crawl = Crawl(tmp_path_factory.mktemp("finished") / "job", server)
        assert crawl.run("http://old.test/b").code == 0
        yield crawl


def test_new_seeds_and_changed_options_take_effect_on_resume(finished):
    result = finished.run("http://old.test/b http://new.test/ http://new.test/b", HOST_INTERVAL_S=0.1)
    assert result.code == 0
    assert result.lines("option changed: SPIDERLING_HOST_INTERVAL_S: 0.05 -> 0.1")
    state = finished.state()
    assert {name: host["distance"] for name, host in state.hosts.items()} == {"old.test": 0, "new.test": 0}
    assert finished.digests().keys() == {"http://old.test/b", "http://new.test/"}
    assert state.ends == {"kept": 2, "duplicate": 1}  # of what the first run kept
    assert '"host_interval_s": 0.1' in state.meta["options"]
    assert any("SPIDERLING_HOST_INTERVAL_S" in event for event in state.events)
    assert not finished.run("http://old.test/b", HOST_INTERVAL_S=0.1).lines("option changed")


def test_a_seed_out_of_reach_that_is_named_again_ends_again_and_is_no_damage(finished):
    for _ in range(2):
        assert finished.run("http://10.0.0.1/").code == 0
    assert finished.state().ends["address-forbidden"] == 1 and damage_in(finished.directory) == []


@pytest.mark.parametrize(("name", "value"), [("lang", "sk"), ("dedup", "off")])
async def test_what_the_kept_text_was_judged_by_cannot_change(tmp_path, name, value):
    options = {"lang": "cs", "allow_networks": NETWORK}
    crawl = OpenCrawl(Options(**options), tmp_path / "job", pytest.fail)
    await crawl.close()
    with pytest.raises(JobdirError, match=f"SPIDERLING_{name.upper()}=.*not '{value}'.*-s JOBDIR="):
        OpenCrawl(Options(**{**options, name: value}), tmp_path / "job", pytest.fail)
    crawl = OpenCrawl(Options(**options), tmp_path / "job", pytest.fail)  # the refused one left no lock
    assert crawl.is_resumed
    await crawl.close()


def test_a_lock_that_cannot_be_written_is_not_held(tmp_path):
    full = Path("/dev/full")
    with pytest.raises(OSError, match="Invalid argument") as failed:
        acquire(full, tmp_path)
    with full.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert failed.tb is not None, "it holds the frame in which the lock was open"


def test_a_queue_that_cannot_be_read_stops_the_crawl_with_one_message(tmp_path):
    with serving(FixedWeb({"old.test": {"/": page("a")}}, {"old.test": "127.84.4.1"})) as server:
        crawl = Crawl(tmp_path / "job", server)
        assert crawl.run("http://old.test/").code == 0
        with closing(SqliteStore(crawl.directory / "state/frontier.sqlite")) as store:
            counts = {key: store.load().counts[key] + 1 for key in ("waiting", "discovered")}
            row = store.host(1)._replace(waiting=1)
            store.commit(Changes(hosts=[row], counts=counts, added=[(16, b"no line of ours")]))
        result = crawl.run("http://old.test/")
    assert result.code == 1
    assert result.lines("ERROR", "The crawl stops: the queue of old.test is damaged")
    assert "Traceback" not in result.output


# -- segments and checkpoints


def read(path) -> bytes:
    with path.open("rb") as stream:
        return zstd.ZstdFile(stream).read()


def test_nothing_is_added_to_a_segment_that_has_more_than_was_acknowledged(tmp_path):
    writer = SegmentWriter(tmp_path, "cs", 10**6)
    row = writer.append([b"one\n", b"two\n"])
    writer.append([b"never acknowledged\n"])
    writer.close()
    with pytest.raises(StorageError, match=f"but only {row.length_bytes} were acknowledged"):
        SegmentWriter(tmp_path, "cs", 10**6, [row])
    os.truncate(tmp_path / row.name, row.length_bytes)
    writer = SegmentWriter(tmp_path, "cs", 10**6, [row])
    last = writer.append([b"three\n"])
    writer.close()
    assert read(tmp_path / row.name) == b"one\ntwo\nthree\n"
    assert last == SegmentRow(row.name, (tmp_path / row.name).stat().st_size, 3)


async def test_all_kinds_of_segments_are_cut_back_to_one_checkpoint_and_rotate_each_for_itself(tmp_path):
    links, jobdir, failures = SegmentKind("links", ".links.zst"), Jobdir(tmp_path), []
    store = SqliteStore(jobdir.database)

    def opened():
        known = store.load().segments
        corpus = SegmentWriter(tmp_path / "corpus", "cs", 10**6, known)
        beside = SegmentWriter(tmp_path / "links", "cs", 20, known, links)
        return Checkpoint(Frontier(Options(lang="cs")), store, [corpus, beside], lambda: 0.0, failures.append)

    def names():
        return sorted(path.name for path in tmp_path.glob("*/cs*"))

    (tmp_path / "links").mkdir()
    checkpoint = opened()
    for text in (b"one\n", b"two\n"):
        checkpoint.add_entry("links", b"link of " + text)
        checkpoint.add_outcome(Outcome(None, "http://a.test/", Reason.KEPT, document=text))
        await checkpoint.flush()
    whole = ["cs-00001.links.zst", "cs-00001.prevert.zst", "cs-00002.links.zst"]
    assert names() == whole
    store.commit = lambda changes: (_ for _ in ()).throw(StorageError("killed"))  # both are written, not acknowledged
    checkpoint.add_entry("links", b"link of three\n")
    checkpoint.add_outcome(Outcome(None, "http://a.test/", Reason.KEPT, document=b"three\n"))
    assert not failures
    with pytest.raises(StorageError, match="killed"):
        await checkpoint.flush()
    assert len(failures) == 1
    assert names() == ["cs-00001.links.zst", "cs-00001.prevert.zst", "cs-00002.links.zst", "cs-00003.links.zst"]
    assert read(tmp_path / "corpus/cs-00001.prevert.zst") == b"one\ntwo\nthree\n"
    del store.commit
    assert "went to aside/" in judge_surplus(tmp_path, jobdir.database, "cs", False)()[0]
    opened()
    assert names() == whole
    assert read(tmp_path / "corpus/cs-00001.prevert.zst") == b"one\ntwo\n"
    assert [row.kind for row in store.load().segments] == ["links", "corpus", "links"]
    store.close()
    jobdir.close()


# -- durability


@pytest.mark.parametrize(("durability", "level"), [("normal", 1), ("full", 2)])
async def test_commits_and_names_are_synced_as_the_option_says(tmp_path, monkeypatch, durability, level):
    synced, fsync = [], os.fsync
    connections, connect = [], sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connections.append(connect(*a, **k)) or connections[-1])
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), fsync(fd))[1])
    crawl = OpenCrawl(Options(lang="cs", allow_networks=NETWORK, durability=durability), tmp_path / "job", pytest.fail)
    writer, _ = connections[-2:]  # the other one reads
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,), "the first commit tells which option holds"
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    names = {tmp_path.parent, tmp_path, *(tmp_path / "job" / name for name in ("", "state"))}
    assert {*synced} == {*map(str, names), str(tmp_path / "job/state/frontier.sqlite.new")}
    crawl.checkpoint.add_outcome(Outcome(None, "http://a.test/", Reason.KEPT, document=b"<doc>\n</doc>\n"))
    await crawl.checkpoint.flush()
    assert writer.execute("PRAGMA synchronous").fetchone() == (level,)
    await crawl.close()
    assert str(tmp_path / "job/corpus") in synced, "the new segment's name"
    assert str(tmp_path / "job/corpus/cs-00001.prevert.zst") in synced, "its bytes, whatever the option"


# -- what becomes of the directory


@pytest.mark.parametrize(
    "harm", ["deleted", *(pytest.param(harm, marks=pytest.mark.slow) for harm in ("moved", "replaced"))]
)
def test_a_crawl_whose_directory_is_taken_away_stops_and_can_be_gone_on_with(server, reference, tmp_path, harm):
    """Open files can still be written to, so that all seemed well to the end, with exit code 0."""
    crawl, elsewhere = Crawl(tmp_path / "job", server, **SETTINGS), tmp_path / "elsewhere"
    running = crawl.start(SEEDS)
    running.until(lambda: any(path.stat().st_size for path in crawl.directory.glob("corpus/*.zst")))
    if harm == "deleted":
        shutil.rmtree(crawl.directory)
    else:
        crawl.directory.rename(elsewhere)
    if harm == "replaced":
        shutil.copytree(elsewhere, crawl.directory)
    result = running.wait()
    assert result.code == 1
    assert result.lines("ERROR", "was moved, deleted or replaced while the crawl ran", "-s JOBDIR=")
    assert "Traceback" not in result.output
    if harm == "moved":
        again = Crawl(elsewhere, server, **SETTINGS)
        assert again.run(SEEDS).code == 0
        assert_same(again, reference)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["corpus", "corpus/cs-00001.prevert.zst"])
def test_a_crawl_whose_corpus_is_deleted_stops_and_does_not_say_that_it_is_there(server, tmp_path, harm):
    """An open file can be written to without a name, and a full one is not looked at: it ended with 0."""
    crawl = Crawl(tmp_path / "job", server, **SETTINGS)
    running = crawl.start(SEEDS)
    running.until(lambda: (crawl.directory / "corpus/cs-00002.prevert.zst").exists())
    gone = crawl.directory / harm
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    result = running.wait()
    assert result.code == 1 and "Traceback" not in result.output
    (error,) = result.lines("ERROR: The crawl stops: ")
    assert f"{gone} was moved, deleted or replaced" in error or f"{gone} has 0 bytes, but" in error
    assert result.lines("has stopped; the error above says why.") and "is finished" not in result.output
    assert not result.lines("  corpus") and not result.lines("the same command goes on")
    assert result.lines("  words")


def test_nothing_is_acknowledged_in_a_segment_that_was_deleted(tmp_path):
    writer = SegmentWriter(tmp_path, "cs", 10**6)
    assert writer.append([b"<doc>"]).entries == 1
    writer.acknowledge()
    writer.refuse_lost()
    (tmp_path / "cs-00001.prevert.zst").unlink()
    for step in (writer.refuse_lost, lambda: writer.append([b"<doc>"])):
        with pytest.raises(StorageError, match=r"has 0 bytes, but .* were acknowledged: it was changed or deleted"):
            step()
    assert list(tmp_path.iterdir()) == []
    writer.close()
    for size in (0, 5):
        (tmp_path / "cs-00001.prevert.zst").write_bytes(b"x" * size)
        with pytest.raises(StorageError, match=f"cs-00001.prevert.zst has {size} bytes, but 6 were acknowledged"):
            SegmentWriter(tmp_path, "cs", 10**6, [SegmentRow("cs-00001.prevert.zst", 6, 1)])


def test_a_crawl_that_can_save_nothing_more_promises_no_saving(tmp_path):
    slow = WebResponse(200, {"Content-Type": "text/html"}, page("slow").body, trickle_s=2)
    web = FixedWeb(
        {"slow.test": {"/": slow}, "a.test": {"/": page("a", *(f"/{n}" for n in range(50)))}},
        {"slow.test": "127.84.2.1", "a.test": "127.84.2.2"},
    )
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, CONSTANTS={"engine.dispatcher.STOP_TIMEOUT_S": 0.2})
        running = crawl.start("http://slow.test/ http://a.test/")
        running.until(lambda: "/3" in [entry.path for entry in server.log_entries])  # slow.test/ is on its way now
        crawl.directory.rename(tmp_path / "elsewhere")
        result = running.wait()
    assert result.code == 1 and result.lines("Stopping: requests in transit", "s to finish")
    assert "judged and saved" not in result.output
