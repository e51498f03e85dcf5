"""Text that was acknowledged stays where it is, whatever became of the state that knew it; and it makes a new state."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import xxhash
from conftest import NETWORK, ROOT, Crawl, damage_in, page, scrapy

from benchmarks.faults import SETTINGS
from spiderling.base.errors import BadInput, JobdirError, StorageError
from spiderling.base.files import frame_packer
from spiderling.base.options import Options
from spiderling.base.outcome import Exchange, Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.segments import SegmentKind, SegmentWriter, read_documents
from spiderling.corpus.warc import WarcKind
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.frontier.recrawl.pages import unpacked_validators
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.state_file import log_of
from spiderling.jobdir.damage import rebuild
from spiderling.jobdir.directory import Jobdir, judge_surplus
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.takedown import take_down
from tests.recorded_disk import Recording, recorded
from webs.web import FixedWeb

SEED = "http://a.test/"
OWN = "corpus/my-notes.prevert.zst"  # a file of the user's among the segments


def web() -> FixedWeb:
    hosts = {"a.test": "127.84.40.1", "b.test": "127.84.40.2"}
    links = [*(f"/{n}" for n in range(9)), "http://b.test/"]
    sites = {
        host: {f"/{n}": page(f"{host}{n}", f"/{n + 1}", "/gone") for n in range(9)} | {"/": page(host, *links)}
        for host in hosts
    }
    return FixedWeb(sites, hosts)


class Times(NamedTuple):
    """One crawl at two moments, each a copy of its directory after a kill."""

    early: Path
    late: Path


@pytest.fixture(scope="module")
def times(server, tmp_path_factory) -> Times:
    """Killed before it had committed anything it begins again without a question, and so it does later."""
    directory = tmp_path_factory.mktemp("times")
    found, crawl = Times(directory / "early", directory / "late"), Crawl(directory / "job", server, **SETTINGS)
    for fault in ("write:1", "transaction:1", "committed:4", "committed:6"):
        assert crawl.run(SEED, FAULT=fault, CONSTANTS={"crawl.checkpoint.MAX_OUTCOMES": 1}).code == -signal.SIGKILL
        if fault.startswith("committed"):
            copy = shutil.copytree(crawl.directory, found.late if found.early.exists() else found.early)
            (copy / OWN).write_bytes(b"no segment")
    return found


def files(directory: Path) -> dict[str, bytes]:
    """Everything that was crawled, and the user's own file."""
    paths = (path for kind in ("corpus", "links", "warc") for path in (directory / kind).rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def refused(directory: Path) -> str:
    """Why the crawl is not opened; all files are as before."""
    before = files(directory)
    assert before[OWN] == b"no segment" and len(before) > 1
    for _ in range(2):  # to ask again does not help
        with pytest.raises(JobdirError) as error:
            OpenCrawl(Options(lang="cs", allow_networks=NETWORK, links="on", warc="on"), directory, pytest.fail)
        assert files(directory) == before
    return str(error.value)


def texts(paths) -> set[tuple[str, str]]:
    return {(doc.attributes["url"], "\n".join(doc.paragraphs)) for path in paths for doc in read_documents(path)}


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("corpus/cs-*.prevert.zst"))


def checkpointed(job: Path) -> None:
    """Move SQLite's log into its file."""
    with closing(sqlite3.connect(job / "state/frontier.sqlite")) as state:
        state.execute("PRAGMA wal_checkpoint(TRUNCATE)")


WAYS = {
    "directory": lambda state: shutil.rmtree(state),
    "file": lambda state: (state / "frontier.sqlite").unlink(),
    "empty": lambda state: [(state / "frontier.sqlite").write_bytes(b""), (state / "frontier.sqlite-wal").unlink()],
    "empty-with-log": lambda state: (state / "frontier.sqlite").write_bytes(b""),
}


@pytest.mark.parametrize("lose", WAYS.values(), ids=WAYS)
def test_segments_whose_state_is_gone_are_left_alone_and_the_crawl_says_what_to_do(times, tmp_path, lose):
    job = shutil.copytree(times.late, tmp_path / "job")
    lose(job / "state")
    said = refused(job)
    assert "their state is gone" in said and "--rebuild" in said
    assert f"with {sum(len(list(read_documents(path))) for path in segments(job))} whole documents" in said


@pytest.mark.parametrize(("moved", "said"), [(0, "with 3 whole"), (1, "with 2 whole"), (2, "with 1 whole")])
async def test_a_log_that_is_lost_is_missed_whatever_sqlite_had_moved_into_its_file(tmp_path, moved, said):
    """After the last it could be what a kill left; but without a log nothing says that there was a kill."""
    crawl = await in_process(tmp_path / "running", moved)
    job = shutil.copytree(tmp_path / "running", tmp_path / "job")
    await crawl.close()
    (job / OWN).write_bytes(b"no segment")
    (job / "state/frontier.sqlite-wal").unlink()
    error = refused(job)
    assert said in error and "or lost its log" in error


@pytest.mark.parametrize("with_log", [True, False], ids=["copied-with-its-log", "copied-when-closed"])
def test_a_state_of_an_hour_ago_is_refused_before_anything_is_changed(times, tmp_path, with_log):
    job = shutil.copytree(times.late, tmp_path / "job")
    shutil.rmtree(job / "state")
    shutil.copytree(times.early / "state", job / "state")
    if not with_log:
        checkpointed(job)
    number = len(texts(segments(times.late)))
    with closing(sqlite3.connect(f"file:{times.early}/state/frontier.sqlite?mode=ro", uri=True)) as state:
        number -= state.execute("SELECT sum(documents) FROM segment").fetchone()[0]
    assert f"with {number} whole documents in corpus/" in refused(job) and number > 1


def test_surplus_is_set_aside_on_order_and_the_crawl_goes_on(times, server, tmp_path):
    job = shutil.copytree(times.late, tmp_path / "job")
    shutil.rmtree(job / "state")
    shutil.copytree(times.early / "state", job / "state")
    before = texts(segments(job))
    crawl = Crawl(job, server, **SETTINGS)
    result = crawl.run(SEED)
    assert result.code == 1 and result.lines("ERROR", "SPIDERLING_SURPLUS=aside")
    assert "Traceback" not in result.output
    result = crawl.run(SEED, SURPLUS="aside")
    assert result.code == 0 and "is finished." in result.output
    assert any("went to aside/" in event for event in crawl.state().events)
    aside = sorted(job.glob("corpus/aside/*.zst"))
    assert aside and texts(aside) < before
    assert before <= texts([*segments(job), *aside]) and texts(segments(job)) >= texts(aside)  # fetched again
    crawl.state().check()
    assert damage_in(job) == []
    assert (job / OWN).read_bytes() == b"no segment"


async def test_a_crawl_that_a_disk_stopped_cuts_off_itself_what_it_could_not_commit(tmp_path, monkeypatch):
    """The state is closed in order then, and no log tells the next start that bytes were left."""
    crawl = await in_process(tmp_path / "job")
    before = files(tmp_path / "job")
    crawl.checkpoint.add_outcome(kept(9))
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "commit", failing)
        with pytest.raises(StorageError, match="disk I/O error"):
            await crawl.close()
    assert not log_of(tmp_path / "job/state/frontier.sqlite").exists()
    assert files(tmp_path / "job") == before
    crawl = await in_process(tmp_path / "job")
    await crawl.close()


def failing(store: SqliteStore, changes: Changes) -> None:
    raise StorageError("disk I/O error")


def kept(number: int) -> Outcome:
    return Outcome(None, f"{SEED}{number}", Reason.KEPT, document=b"<doc>\n%d\n</doc>\n" % number)


async def in_process(directory: Path, moved: int = 0) -> OpenCrawl:
    """A crawl with three checkpoints, still open; SQLite's log was moved into its file after one of them."""
    crawl = OpenCrawl(Options(lang="cs", allow_networks=NETWORK), directory, lambda error: None)
    for number in range(1, 4):
        crawl.checkpoint.add_outcome(kept(number))
        await crawl.checkpoint.flush()
        if number == moved:
            with closing(sqlite3.connect(crawl.jobdir.database)) as other:
                assert other.execute("PRAGMA wal_checkpoint").fetchone()[0] == 0
    return crawl


# -- what is judged to be one checkpoint's


def frame(text: bytes) -> bytes:
    return frame_packer(level=3)(text)


@pytest.fixture
def opened(tmp_path):
    """A locked directory whose state, with its log, knows the first frame of one segment."""
    jobdir = Jobdir(tmp_path / "job")
    store = SqliteStore(jobdir.database)
    first = frame(b"<doc>\nfirst\n</doc>\n")
    (jobdir.corpus / "cs-00001.prevert.zst").write_bytes(first)
    store.commit(Changes(segments=[SegmentRow("cs-00001.prevert.zst", len(first), 1)]))
    yield jobdir
    store.close()
    jobdir.close()


def judged(jobdir: Jobdir, moves: bool = False) -> list[str]:
    """What a start says to have done, after it made files and state agree."""
    return judge_surplus(jobdir.path, jobdir.database, "cs", moves)()


def spoil_byte(path: Path, at: int = 3) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def corpus(jobdir: Jobdir) -> dict[str, bytes]:
    return {str(path.relative_to(jobdir.corpus)): path.read_bytes() for path in jobdir.corpus.rglob("*.*")}


FRAME = frame(b"<doc>\nsecond\n</doc>\n")


@pytest.mark.parametrize(
    ("first", "next_one"),
    [(FRAME, b""), (FRAME[:-3], b""), (FRAME[:2], b""), (b"", FRAME), (b"", FRAME[:-3]), (b"", b"")],
)
def test_one_frame_whole_or_torn_goes_aside(opened, first, next_one):
    before = corpus(opened)
    with (opened.corpus / "cs-00001.prevert.zst").open("ab") as file:
        file.write(first)
    if next_one:
        (opened.corpus / "cs-00002.prevert.zst").write_bytes(next_one)
    assert [line.endswith("went to aside/") for line in judged(opened)] == [True] * bool(first or next_one)
    after = corpus(opened)
    moved = {name: after.pop(name) for name in [*after] if name.startswith("aside/")}
    assert after == before and b"".join(moved.values()) == first + next_one


MORE = {
    "two-frames": (FRAME * 2, b"", ""),
    "a-frame-and-a-bit": (FRAME + FRAME[:1], b"", ""),
    "a-frame-in-each": (FRAME, FRAME, ""),
    "two-in-the-next": (b"", FRAME * 2, ""),
    "a-frame-and-zeros": (FRAME + bytes(9), b"", ""),
    "not-the-next": (b"", b"", "cs-00003.prevert.zst"),
}


@pytest.mark.parametrize(("first", "next_one", "other"), MORE.values(), ids=MORE)
def test_anything_more_is_refused_and_can_be_set_aside_without_loss(opened, first, next_one, other):
    known = corpus(opened)
    with (opened.corpus / "cs-00001.prevert.zst").open("ab") as file:
        file.write(first)
    for name, data in (("cs-00002.prevert.zst", next_one), (other, FRAME)):
        if name and data:
            (opened.corpus / name).write_bytes(data)
    before = corpus(opened)
    with pytest.raises(JobdirError, match="that its state does not know"):
        judged(opened)
    assert corpus(opened) == before
    (opened.corpus / "aside").mkdir()
    (opened.corpus / "aside/cs-00002.prevert.zst").write_bytes(b"of an earlier time")
    assert "went to aside/" in judged(opened, True)[0]
    after = corpus(opened)
    assert after.pop("aside/cs-00002.prevert.zst") == b"of an earlier time"
    assert known.items() <= after.items()
    moved = {name: data for name, data in after.items() if name.startswith("aside/")}
    assert sum(map(len, moved.values())) == sum(map(len, before.values())) - len(known["cs-00001.prevert.zst"])
    for name in moved:
        if name.endswith(".zst"):
            assert {doc.paragraphs == [] for doc in read_documents(opened.corpus / name)} == {True}


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_more_goes_aside_after_a_run_whose_commits_a_power_cut_can_undo(opened, durability):
    with closing(SqliteStore(opened.database)) as store:
        store.commit(Changes(meta={"options": json.dumps({"durability": durability})}))
    before = corpus(opened)
    with (opened.corpus / "cs-00001.prevert.zst").open("ab") as file:
        file.write(FRAME * 2)
    if durability == "full":
        with pytest.raises(JobdirError, match="that its state does not know"):
            judged(opened)
    else:
        assert judged(opened)[0].endswith("went to aside/")
        assert before.items() < corpus(opened).items()


def test_a_segment_that_somebody_put_there_meanwhile_is_passed_over(tmp_path):
    writer = SegmentWriter(tmp_path, "cs", 1)
    rows = [writer.append([b"one"])]
    (tmp_path / "cs-00002.prevert.zst").write_bytes(b"mine")
    rows.append(writer.append([b"two"]))
    writer.close()
    assert [row.name for row in rows] == ["cs-00001.prevert.zst", "cs-00003.prevert.zst"]
    assert (tmp_path / "cs-00002.prevert.zst").read_bytes() == b"mine"
    again = SegmentWriter(tmp_path, "cs", 1, rows)
    assert again.append([b"three"]).name == "cs-00004.prevert.zst"
    again.close()


def exchange(number: int) -> Exchange:
    body = b"lastOfBatch batch: ends here\r\n" * 2
    return Exchange(
        f"http://a.test/{number}", 0.0, 0.1, "127.0.0.1", ("GET", "/", [], b""), "HTTP/1.1 200 OK", [], body
    )


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_an_archive_tells_where_a_checkpoint_ends(opened, compression):
    """Its batches are many members each, so members cannot be counted."""
    kind = WarcKind(compression, {})
    directory = opened.path / "warc"
    directory.mkdir()
    writer = SegmentWriter(directory, "cs", 10**6, kind=kind)
    row = writer.append([(exchange(n), {"reason": "kept"}) for n in range(3)])
    path = directory / row.name
    whole = path.read_bytes()
    for part in (whole, whole[:-9]):
        path.write_bytes(part)
        assert judged(opened) and not path.exists()
    for more in (whole[:5], kind.pack([(exchange(9), {})])):
        path.write_bytes(whole + more)
        with pytest.raises(JobdirError, match=f"warc/{row.name}"):
            judged(opened)
    writer.close()


def test_links_and_archive_go_aside_by_the_rule_of_the_corpus(opened):
    links = opened.path / "links"
    links.mkdir()
    writer = SegmentWriter(links, "cs", 10**6, kind=SegmentKind("links", ".links.zst"))
    writer.append([b"{}\n"])
    (opened.corpus / "cs-00002.prevert.zst").write_bytes(FRAME * 2)
    with pytest.raises(JobdirError, match=r"and 1 more file that"):
        judged(opened)
    (opened.corpus / "cs-00002.prevert.zst").write_bytes(FRAME)
    assert judged(opened) and [path.name for path in links.iterdir()] == ["aside"]
    writer.close()


# -- what somebody else put there, and a damaged log


@pytest.mark.parametrize("data", [b"somebody's own, thirty-seven bytes...", FRAME[:9], frame(b"own notes")])
def test_a_users_file_that_is_named_like_a_later_segment_hinders_no_start(opened, data):
    """Nothing that a crawl writes stands in it, and this crawl had not come so far; nor under names of no crawl."""
    for name in ("cs-00099.prevert.zst", "notes.prevert.zst", "cs-7.prevert.zst", "de-00001.prevert.zst", "cs-9.old"):
        (opened.corpus / name).write_bytes(data)
    before = corpus(opened)
    for moves in (False, True):
        assert judged(opened, moves) == []
    (opened.corpus / "cs-00002.prevert.zst").write_bytes(FRAME)  # what a kill left goes aside as ever
    assert judged(opened)
    assert before.items() <= corpus(opened).items() and not (opened.corpus / "cs-00002.prevert.zst").exists()


def test_text_under_a_later_number_is_refused(opened):
    (opened.corpus / "cs-00099.prevert.zst").write_bytes(FRAME)
    with pytest.raises(JobdirError, match=r"cs-00099\S+ that its state does not know: .* or somebody put it there"):
        judged(opened)


def test_a_damaged_log_lets_no_text_be_moved(opened, tmp_path):
    """SQLite drops the commits behind the damage, so that their text was acknowledged."""
    store, length = SqliteStore(opened.database), (opened.corpus / "cs-00001.prevert.zst").stat().st_size
    for number in (1, 2):
        with (opened.corpus / "cs-00001.prevert.zst").open("ab") as file:
            file.write(FRAME)
        store.commit(Changes(segments=[SegmentRow("cs-00001.prevert.zst", length + number * len(FRAME), 1 + number)]))
    job = shutil.copytree(opened.path, tmp_path / "killed")
    store.close()
    log = log_of(job / "state/frontier.sqlite")
    spoil_byte(log, 3000)
    before = files(job)
    with pytest.raises(JobdirError, match=r"or lost its log, .* Nothing was changed\."):
        judge_surplus(job, job / "state/frontier.sqlite", "cs", False)()
    assert files(job) == before


TORN = {"zeros": bytes(100), "half-zeros": FRAME[:9] + bytes(30), "nothing": b""}


@pytest.mark.parametrize("text", TORN.values(), ids=TORN)
@pytest.mark.parametrize("is_torn", [False, True])
def test_what_a_power_cut_left_of_the_last_batch_goes_aside_by_itself(opened, tmp_path, text, is_torn):
    """Its blocks reach the disk in any order, and so do those of its commit."""
    if is_torn:
        store = SqliteStore(opened.database)
        store.commit(Changes(meta={"torn": "1"}))
        job = shutil.copytree(opened.path, tmp_path / "killed")
        store.close()
        spoil_byte(log_of(job / "state/frontier.sqlite"), -9)
    else:
        job = shutil.copytree(opened.path, tmp_path / "killed")
    text = text or (FRAME if is_torn else b"")
    segment = job / "corpus/cs-00001.prevert.zst"
    known = segment.read_bytes()
    segment.write_bytes(known + text)
    said = judge_surplus(job, job / "state/frontier.sqlite", "cs", False)()
    assert segment.read_bytes() == known
    assert len(said) == (len(text) > 0) and all("went to aside/" in line for line in said)
    assert b"".join(path.read_bytes() for path in job.glob("corpus/aside/*")) == text


@pytest.mark.parametrize("stranger", ["cs.jsonl", "state.damaged/"])
def test_a_crawl_whose_state_is_gone_is_known_by_its_segments_whatever_stands_beside_them(opened, tmp_path, stranger):
    job = shutil.copytree(opened.path, tmp_path / "lost")
    shutil.rmtree(job / "state")
    (job / stranger).mkdir() if stranger.endswith("/") else (job / stranger).touch()
    with pytest.raises(JobdirError, match=r"1 whole documents in corpus/.*their state is gone.*--rebuild"):
        Jobdir(job)


# -- a state that is gone is made anew from what the crawl wrote, and the crawl goes on with it

GIVEN = {"SPIDERLING_DEDUP": "exact"}


@pytest.fixture(scope="module")
def killed(times) -> Path:
    return times.late


def copied(killed: Path, target: Path, *gone: str) -> Path:
    job = Path(shutil.copytree(killed, target))
    (job / OWN).unlink(missing_ok=True)
    for name in gone:
        shutil.rmtree(job / name)
    return job


def rows(job: Path, query: str) -> dict[str, tuple[int, ...]]:
    """First column -> the others."""
    with closing(Inspection(job)) as opened:
        return {name: tuple(others) for name, *others in map(dict.values, opened.rows(query))}


SUMS = "SELECT name, documents, words, kept_bytes FROM host WHERE documents"
ENDS = "SELECT key, value FROM count WHERE key LIKE 'end/%' AND value"


GONE = {"corpus": ("state", "links", "warc"), "corpus-and-archive": ("state", "links"), "all": ("state",)}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_a_rebuilt_state_is_whole_and_knows_every_document(killed, tmp_path, gone):
    job = copied(killed, tmp_path / "job", *gone)
    before = {path: path.read_bytes() for path in job.rglob("cs-*") if path.is_file()}
    said = "\n".join(rebuild(job, GIVEN, 1e9))
    assert f"{len(texts(segments(killed))):,} documents of " in said
    assert damage_in(job) == []
    assert rows(job, SUMS) == rows(killed, SUMS)
    assert {path: path.read_bytes() for path in before} == before
    assert rows(job, ENDS).keys() == {"end/kept"}, "the others are fetched again, and kept front pages for their links"
    with pytest.raises(BadInput, match="knows all that is in"):
        list(rebuild(job, GIVEN, 1e9))
    OpenCrawl(Options(lang="cs", allow_networks=NETWORK, dedup="exact"), job, pytest.fail).jobdir.close()


@pytest.mark.parametrize("gone", [GONE["corpus"], GONE["all"]], ids=["corpus", "all"])
def test_the_same_command_goes_on_with_a_rebuilt_state_and_keeps_nothing_twice(killed, server, tmp_path, gone):
    job = copied(killed, tmp_path / "job", *gone)
    made = scrapy("inspect", str(job), "--rebuild", "-s", "SPIDERLING_DEDUP=exact")
    assert made.code == 0 and "was made anew" in made.out, made.log
    crawl = Crawl(job, server, **SETTINGS)
    result = crawl.run(SEED)
    assert result.code == 0 and "is finished." in result.output and "Resuming the crawl" in result.output
    assert len(crawl.digests()) == 20 and texts(segments(killed)) < texts(segments(job))
    assert damage_in(job) == []


def test_a_torn_end_goes_aside_and_an_older_state_is_kept(killed, tmp_path):
    job = copied(killed, tmp_path / "job")
    before = {path: path.read_bytes() for path in job.glob("corpus/aside/*")}  # what the kill left
    for path in (job / "state").iterdir():
        if path.name.startswith("frontier"):
            path.unlink()
    (job / "state/frontier.sqlite").write_bytes(b"")
    last = segments(job)[-1]
    end = last.read_bytes()
    last.write_bytes(end + end[:7])
    said = "\n".join(rebuild(job, GIVEN, 1e9))
    assert f"7 bytes of {last}, all from the first damage on, went to aside/" in said
    assert "frontier.sqlite.former" in said
    assert last.read_bytes() == end
    new = set(job.glob("corpus/aside/*")) - set(before)
    assert [path.read_bytes() for path in new] == [end[:7]]
    assert {path: path.read_bytes() for path in before} == before
    assert damage_in(job) == []


def test_no_state_is_rebuilt_while_a_crawl_runs_or_from_nothing(killed, tmp_path):
    job = copied(killed, tmp_path / "job", "state")
    held = Jobdir(job)
    with pytest.raises(JobdirError, match="in use by"):
        list(rebuild(job, GIVEN, 1e9))
    held.close()
    with pytest.raises(BadInput, match="holds no segments"):
        list(rebuild(tmp_path / "nothing", GIVEN, 1e9))


class Withheld(Recording):
    """A disk that does not give the last segment of the corpus."""

    def refusal(self, kind: str, name: str) -> int:
        return errno.EIO if (kind, name) == ("open", f"corpus/{segments(self.directory)[-1].name}") else 0


def test_what_a_disk_does_not_give_now_is_no_damage(killed, tmp_path):
    job = copied(killed, tmp_path / "job", "state")
    before = {path: path.read_bytes() for path in job.rglob("*-*") if path.is_file()}
    with recorded(job, Withheld(job)), pytest.raises(StorageError, match=r"cs-.* cannot be read: Input/output error"):
        list(rebuild(job, GIVEN, 1e9))
    assert {path: path.read_bytes() for path in job.rglob("*-*") if path.is_file()} == before
    assert "was made anew" in next(rebuild(job, GIVEN, 1e9)) and damage_in(job) == []


def test_a_rebuilt_state_goes_on_as_any_other(killed, tmp_path):
    """A revisit knows its texts, and what is taken down leaves those of other hosts known."""
    job = copied(killed, tmp_path / "job", "state")
    list(rebuild(job, GIVEN, 1e9))
    with closing(Inspection(job)) as crawl:
        times = [row["time"] for row in crawl.rows("SELECT time FROM validator")]
        packed = b"".join(row["validators"] for row in crawl.rows("SELECT validators FROM validator"))
    kept = {"\n".join(one.paragraphs).encode() for path in segments(job) for one in read_documents(path)}
    fresh = {int.from_bytes(xxhash.xxh3_128_digest(text)[:8], "big") for text in kept}
    fresh -= {one.text_key for one in unpacked_validators(packed)}
    assert len(fresh) == 2, "those of the front pages, which are asked again for their links"
    assert len(set(times)) == len(times) > 1
    take_down(job, ["b.test"], [], 2e9)
    assert damage_in(job) == []


def test_the_state_of_a_shard_is_not_rebuilt(killed, tmp_path):
    with pytest.raises(BadInput, match="is a shard of a crawl"):
        list(rebuild(copied(killed, tmp_path / "job", "state"), GIVEN | {"SPIDERLING_SHARDS": 2}, 1e9))
    with pytest.raises(BadInput, match="is a shard of a crawl"):
        list(rebuild(copied(killed, tmp_path / "shard-00", "state"), GIVEN, 1e9))


def lose_host(database: Path) -> None:
    with closing(sqlite3.connect(database)) as state, state:
        assert state.execute("DELETE FROM host WHERE name = 'b.test'").rowcount


@pytest.mark.parametrize("spoil", [spoil_byte, lose_host])
def test_a_damaged_state_names_rebuild_which_keeps_it_and_makes_a_new_one(killed, tmp_path, spoil):
    """Also one that knows all segments, and one that is no database any more."""
    job = copied(killed, tmp_path / "job")
    database = job / "state/frontier.sqlite"
    checkpointed(job)
    spoil(database)
    damaged = database.read_bytes()
    if spoil is spoil_byte:
        with pytest.raises(JobdirError, match=f"scrapy inspect {job} --check.*scrapy inspect {job} --rebuild"):
            OpenCrawl(Options(lang="cs", allow_networks=NETWORK), job, pytest.fail)
    check = scrapy("inspect", str(job), "--check", "-s", "SPIDERLING_DEDUP=exact")
    made = scrapy("inspect", str(job), "--rebuild", "-s", "SPIDERLING_DEDUP=exact")
    assert check.code == 1
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
    first = segments(job)[0]
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
