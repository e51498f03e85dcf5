"""A state that is gone is made anew from what the crawl wrote, and the crawl goes on with it."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import NETWORK, ROOT, Crawl, damage_in, page, scrapy

from benchmarks.faults import SETTINGS
from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.options import Options
from spiderling.corpus.segments import read_documents
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.jobdir.damage import rebuild
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection
from webs.web import FixedWeb

SEED = "http://a.test/"
GIVEN = {"SPIDERLING_DEDUP": "exact"}


def web() -> FixedWeb:
    hosts = {"a.test": "127.84.45.1", "b.test": "127.84.45.2"}
    links = [*(f"/{n}" for n in range(9)), "http://b.test/"]
    sites = {
        host: {f"/{n}": page(f"{host}{n}", f"/{n + 1}", "/gone") for n in range(9)} | {"/": page(host, *links)}
        for host in hosts
    }
    return FixedWeb(sites, hosts)


@pytest.fixture(scope="module")
def killed(server, tmp_path_factory) -> Path:
    """Killed amid its crawl, with links and archive."""
    crawl = Crawl(tmp_path_factory.mktemp("killed") / "job", server, **SETTINGS)
    assert crawl.run(SEED, FAULT="committed:8", CONSTANTS={"crawl.checkpoint.MAX_OUTCOMES": 1}).code == -signal.SIGKILL
    return crawl.directory


def copied(killed: Path, target: Path, *gone: str) -> Path:
    job = Path(shutil.copytree(killed, target))
    for name in gone:
        shutil.rmtree(job / name)
    return job


def texts(job: Path) -> set[tuple[str, str]]:
    paths = job.glob("corpus/cs-*.prevert.zst")
    return {(doc.attributes["url"], "\n".join(doc.paragraphs)) for path in paths for doc in read_documents(path)}


def rows(job: Path, query: str) -> dict[str, tuple[int, ...]]:
    """First column -> the others."""
    with closing(Inspection(job)) as opened:
        return {name: tuple(others) for name, *others in map(dict.values, opened.rows(query))}


SUMS = "SELECT name, documents, words, kept_bytes FROM host WHERE documents"
ENDS = "SELECT key, value FROM count WHERE key LIKE 'end/%' AND value"


WAYS = {"corpus": ("state", "links", "warc"), "corpus-and-archive": ("state", "links"), "all": ("state",)}


@pytest.mark.parametrize("gone", WAYS.values(), ids=WAYS)
def test_a_rebuilt_state_is_whole_and_knows_every_document(killed, tmp_path, gone):
    job = copied(killed, tmp_path / "job", *gone)
    before = {path: path.read_bytes() for path in job.rglob("cs-*") if path.is_file()}
    said = "\n".join(rebuild(job, GIVEN, 1e9))
    assert f"{len(texts(killed)):,} documents of " in said
    assert damage_in(job) == []
    assert rows(job, SUMS) == rows(killed, SUMS)
    assert {path: path.read_bytes() for path in before} == before
    if gone == ("state",):
        assert rows(job, ENDS) == rows(killed, ENDS)
        with closing(Inspection(job)) as opened:
            assert {row["name"]: row["waiting"] for row in opened.rows("SELECT name, waiting FROM host")}
            assert opened.story(f"{SEED}0").ended is not None
    with pytest.raises(BadInput, match="knows all that is in"):
        list(rebuild(job, GIVEN, 1e9))
    OpenCrawl(Options(lang="cs", allow_networks=NETWORK, dedup="exact"), job, pytest.fail).jobdir.close()


@pytest.mark.parametrize("gone", [WAYS["corpus"], WAYS["all"]], ids=["corpus", "all"])
def test_the_same_command_goes_on_with_a_rebuilt_state_and_keeps_nothing_twice(killed, server, tmp_path, gone):
    job = copied(killed, tmp_path / "job", *gone)
    made = scrapy("inspect", str(job), "--rebuild", "-s", "SPIDERLING_DEDUP=exact")
    assert made.code == 0 and "was made anew" in made.out, made.log
    crawl = Crawl(job, server, **SETTINGS)
    asked = len(server.log_entries)
    result = crawl.run(SEED)
    assert result.code == 0 and "is finished." in result.output and "Resuming the crawl" in result.output
    assert len(crawl.digests()) == 20 and texts(killed) < texts(job)
    assert damage_in(job) == []
    if gone == ("state",):
        again = {f"http://{entry.host}{entry.path}" for entry in server.log_entries[asked:]}
        assert not again & {url for url, _ in texts(killed)}


def test_a_torn_end_goes_aside_and_an_older_state_is_kept(killed, tmp_path):
    job = copied(killed, tmp_path / "job")
    for path in (job / "state").iterdir():
        if path.name.startswith("frontier"):
            path.unlink()
    (job / "state/frontier.sqlite").write_bytes(b"")
    last = sorted(job.glob("corpus/cs-*.prevert.zst"))[-1]
    end = last.read_bytes()
    last.write_bytes(end + end[:7])
    said = "\n".join(rebuild(job, GIVEN, 1e9))
    assert f"7 bytes of {last} cannot be read" in said and "frontier.sqlite.former" in said
    assert last.read_bytes() == end
    assert [path.read_bytes() for path in job.glob("corpus/aside/*")] == [end[:7]]
    assert damage_in(job) == []


def test_no_state_is_rebuilt_while_a_crawl_runs_or_from_nothing(killed, tmp_path):
    job = copied(killed, tmp_path / "job", "state")
    held = Jobdir(job)
    with pytest.raises(JobdirError, match="in use by"):
        list(rebuild(job, GIVEN, 1e9))
    held.close()
    with pytest.raises(BadInput, match="holds no segments"):
        list(rebuild(tmp_path / "nothing", GIVEN, 1e9))


def test_the_state_of_a_shard_is_not_rebuilt(killed, tmp_path):
    with pytest.raises(BadInput, match="is a shard of a crawl"):
        list(rebuild(copied(killed, tmp_path / "job", "state"), GIVEN | {"SPIDERLING_SHARDS": 2}, 1e9))
    with pytest.raises(BadInput, match="is a shard of a crawl"):
        list(rebuild(copied(killed, tmp_path / "shard-00", "state"), GIVEN, 1e9))


def spoil_byte(database: Path) -> None:
    data = bytearray(database.read_bytes())
    data[3] ^= 1
    database.write_bytes(data)


def lose_host(database: Path) -> None:
    with closing(sqlite3.connect(database)) as state, state:
        assert state.execute("DELETE FROM host WHERE name = 'b.test'").rowcount


@pytest.mark.parametrize("spoil", [spoil_byte, lose_host])
def test_a_damaged_state_names_rebuild_which_keeps_it_and_makes_a_new_one(killed, tmp_path, spoil):
    """Also one that knows all segments, and one that is no database any more."""
    job = copied(killed, tmp_path / "job")
    database = job / "state/frontier.sqlite"
    with closing(sqlite3.connect(database)) as state:
        state.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    spoil(database)
    damaged = database.read_bytes()
    if spoil is spoil_byte:
        with pytest.raises(JobdirError, match=f"scrapy inspect {job} --check.*scrapy inspect {job} --rebuild"):
            OpenCrawl(Options(lang="cs", allow_networks=NETWORK), job, pytest.fail)
    check = scrapy("inspect", str(job), "--check", "-s", "SPIDERLING_DEDUP=exact")
    made = scrapy("inspect", str(job), "--rebuild", "-s", "SPIDERLING_DEDUP=exact")
    assert check.code == 1 and "--check" not in check.out + check.log
    if spoil is spoil_byte:
        assert f"make it anew with `scrapy inspect {job} --rebuild`" in check.log
        assert f"`scrapy export {job} --salvage`" in check.log
    assert made.code == 0, made.log
    assert f"{job}/state/frontier.sqlite.former" in made.out
    assert (job / "state/frontier.sqlite.former").read_bytes() == damaged
    assert damage_in(job) == [] and rows(job, SUMS) == rows(killed, SUMS)


def test_a_state_is_rebuilt_beside_files_of_something_else(killed, tmp_path):
    """Somebody's file that is named like a segment stays as it is, and one of another crawl is named."""
    job = copied(killed, tmp_path / "job", "state")
    (job / "cs.jsonl").touch()
    own = job / "corpus/en-00099.prevert.zst"
    own.write_bytes(b"somebody's own")
    first = sorted(job.glob("corpus/cs-*.prevert.zst"))[0]
    other = Path(shutil.copy(first, job / "corpus/hr-00001.prevert.zst"))
    with pytest.raises(BadInput, match=rf"several crawls \(corpus/{first.name}, corpus/{other.name}\)"):
        list(rebuild(job, GIVEN, 1e9))
    other.unlink()
    assert "was made anew" in next(rebuild(job, GIVEN, 1e9))
    assert own.read_bytes() == b"somebody's own"


def test_a_rebuilt_state_that_numbers_its_hosts_anew_is_whole(tmp_path):
    """Documents keep the keys of URLs that they were written with, in which the number of their host stands."""
    job = copied(ROOT / "tests/jobdirs/killed", tmp_path / "job", "state")
    assert "was made anew" in next(rebuild(job, GIVEN, 1e9))
    assert damage_in(job) == []
