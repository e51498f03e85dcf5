"""One bit of a crawl's directory is flipped, again and again: does the check find it, and does anything fall over?

    python benchmarks/bitflips.py [--quick]

A real crawl over loopback (hosts with text, one retired, one in transit; robots.txt, consents, links, an archive, a
spider's own requests) is killed between a batch's segments and its transaction, so that there is a write-ahead log.  It
is one of two directories; in the other the log is in the file and the queues stand in chunks.  Each flip is made in a
copy: bits are drawn by seed, half of them in the state's files, the rest in segments.  Then the directory is checked
(``scrapy inspect --check``), opened as a crawl opens it, and exported.

*found*: the check names a problem, or opening or exporting it is refused in one sentence.  *harmless*: every row of
every table and every document, link and archived record reads as before.  *missed*: neither.  A traceback is any other
exception.  Beside it, what SQLite's integrity check alone finds of the state's flips, and of the segments' unpacking
alone, which compares the checksums of frames.

*cost*: what a crawl of benchmarks/frontier.py asks of its store is asked of two stores in turns, one of which writes no
checksums and compares none; the difference as a share of the processor time of the whole frontier.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))  # whose helpers are no package
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import arguments, result, table
from benchmarks.frontier import Run, Web, url_of
from spiderling.base.errors import SpiderlingError
from spiderling.base.options import Options
from spiderling.corpus.links import LinkKind, read_links
from spiderling.corpus.segments import SUFFIX, SegmentKind, SegmentWriter, frames, stored_documents
from spiderling.corpus.warc import WarcKind, records
from spiderling.export.sources import corpus_of
from spiderling.frontier import Frontier
from spiderling.frontier.storage import tables
from spiderling.frontier.storage.protocol import Changes, Flush, HostRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.tables import TABLES, CheckedTables, Written
from spiderling.frontier.url_states import GENERATION
from spiderling.jobdir.check import problems
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection
from tests.jobdirs.made_jobdirs import crawl_in, leave_killed, serving, web

STATE_SHARE = 0.6
DATABASE = "state/frontier.sqlite"
_COST_URLS, _ROUNDS = 300_000, 5
"""Enough for queues to be flushed into chunks, and some of these to be read."""


class Flip(NamedTuple):
    file: str
    offset: int
    bit: int


class Verdict(NamedTuple):
    found: str
    """What found it; empty: nothing did."""
    is_harmless: bool
    traceback: str
    peer: bool
    """SQLite's integrity check or unpacking alone found it."""


# -- the directories


def made(scratch: Path) -> list[Path]:
    """The directory of a killed crawl, and the same with its log in the file and its queues in chunks."""
    with serving(web(is_slow=True)) as server:
        killed = crawl_in(scratch / "killed", server, scratch / "project")
        leave_killed(killed)
    settled = Path(shutil.copytree(killed.directory, scratch / "settled"))
    with closing(Jobdir(settled)) as jobdir:
        jobdir.judge("cs", moves=False).settle()
    with closing(SqliteStore(settled / DATABASE)) as store:
        state = store.load()
        generation = state.counts.get(GENERATION, 0) + 1
        store.commit(Changes(flush=Flush(generation, state.tails), counts={GENERATION: generation}))
    assert (killed.directory / f"{DATABASE}-wal").stat().st_size and not (settled / f"{DATABASE}-wal").exists()
    return [killed.directory, settled]


def drawn(directory: Path, number: int, rng: random.Random) -> list[Flip]:
    """Bits of the state's files and of segments, within each by size."""
    found: list[Flip] = []
    state = sorted(directory.glob("state/frontier.sqlite*"))
    segments = sorted(path for kind in ("corpus", "links", "warc") for path in directory.glob(f"{kind}/*-[0-9]*.*z*"))
    segments = [path for path in segments if path.suffix in (".zst", ".gz")]
    for files, many in ((state, round(number * STATE_SHARE)), (segments, number - round(number * STATE_SHARE))):
        for path in rng.choices(files, [path.stat().st_size for path in files], k=many):
            place = str(path.relative_to(directory))
            found.append(Flip(place, rng.randrange(path.stat().st_size), rng.randrange(8)))
    return found


def flipped(directory: Path, flip: Flip, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    with (copy / flip.file).open("r+b") as file:
        file.seek(flip.offset)
        byte = file.read(1)[0]
        file.seek(flip.offset)
        file.write(bytes([byte ^ 1 << flip.bit]))
    return copy


# -- what finds it


def checked(directory: Path) -> str:
    """The first problem that the check names."""
    with closing(Inspection(directory)) as crawl:
        try:
            return next(problems(crawl), "")
        except sqlite3.Error as error:  # the command says it in one sentence (commands/inspect.py)
            return str(error)


def opened(directory: Path) -> str:
    """Read everything that a crawl reads of its directory; raises SpiderlingError if it is refused."""
    with closing(Jobdir(directory)) as jobdir:
        jobdir.judge("cs", moves=False).settle()
    with closing(SqliteStore(directory / DATABASE)) as store:
        state = store.load()
        frontier = Frontier(Options(lang="cs"), store=store)
        frontier.restore(state, time.time())
        ids = range(1, sum(len(columns.names) for columns in store.host_columns()) + 1)
        for host in ids:
            store.host(host)
            for chunk in store.chunk_ids(host):
                store.chunk(chunk)
        for mark in store.used_hosts():
            store.robots(f"http://{mark.name}")
        store.consents()
        for kind in (SegmentKind("corpus", SUFFIX), LinkKind(), WarcKind("on", {})):
            SegmentWriter(directory / kind.name, "cs", 10**6, state.segments, kind).close()
    return ""


def exported(directory: Path) -> str:
    """Read the corpus as ``scrapy export`` does."""
    for source in corpus_of([str(directory)]).sources:
        for _ in stored_documents(source):
            pass
    return ""


STEPS: dict[str, Callable[[Path], str]] = {"check": checked, "opening": opened, "export": exported}


def contents(directory: Path) -> dict[str, Any]:
    """All rows of all tables, and everything in the segments up to their recorded lengths."""
    found: dict[str, Any] = {}
    with closing(Inspection(directory)) as crawl:
        for name in (*TABLES, "host", "chunk", "written"):
            rows = crawl.connection.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - names of tables
            found[name] = sorted(map(repr, rows))
        for segment in crawl.segments("corpus"):
            found[segment.path.name] = [frame.data for frame in frames(segment.path, segment.length)]
        for segment in crawl.segments("links"):
            found[segment.path.name] = list(read_links(segment.path, segment.length))
        for segment in crawl.segments("warc"):
            found[segment.path.name] = [(r.headers, r.block) for r in records(segment.path, segment.length)]
    return found


def found_by_others(directory: Path, flip: Flip) -> bool:
    """Whether ``PRAGMA integrity_check``, or unpacking the segment, names the damage."""
    try:
        if flip.file.startswith("state/"):
            with closing(sqlite3.connect(f"{(directory / DATABASE).as_uri()}?mode=ro", uri=True)) as state:
                return state.execute("PRAGMA integrity_check").fetchone() != ("ok",)
        list(frames(directory / flip.file, (directory / flip.file).stat().st_size))
    except (sqlite3.Error, SpiderlingError):
        return True
    return False


def judged(directory: Path, flip: Flip, copy: Path, expected: dict[str, Any]) -> Verdict:
    found, traceback = "", ""
    for name, step in STEPS.items():
        try:
            said = step(flipped(directory, flip, copy))
        except SpiderlingError as error:
            said = str(error)
        except Exception as error:  # that is what is looked for
            traceback = f"{name}: {type(error).__name__}: {error}"
            continue
        found = found or (said and name)
    is_harmless = False
    if not found:
        with suppress(Exception):
            is_harmless = contents(flipped(directory, flip, copy)) == expected
    return Verdict(found, is_harmless, traceback, found_by_others(flipped(directory, flip, copy), flip))


def swept(directories: Sequence[Path], number: int, scratch: Path) -> Iterator[tuple[Path, Flip, Verdict]]:
    rng = random.Random(17)
    for directory in directories:
        expected = contents(Path(shutil.copytree(directory, scratch / f"{directory.name}-read")))
        for name, step in STEPS.items():
            said = step(Path(shutil.copytree(directory, scratch / f"{directory.name}-{name}")))
            assert not said, f"{directory} is whole, but {said}"
        for flip in drawn(directory, number // len(directories), rng):
            yield directory, flip, judged(directory, flip, scratch / "flipped", expected)


# -- what checksums cost


class _PlainTables(CheckedTables):
    """Writes the same rows without checksums."""

    def append_whole_row(self, table: Any, row: Sequence[Any]) -> None:
        self._connection.execute(table.write, (*row, 0))
        if table.is_numbered:
            self._last[table.name] = row[0]

    def replace_row(self, name: str, row: Sequence[Any]) -> None:
        self._connection.execute(TABLES[name].write, (*row, 0))

    def _count_rows(self, name: str, more: int) -> None:
        self._written[name] = Written(self._written[name].rows + more)


class _PlainStore(SqliteStore):
    """As this was before there were checksums; a zero of one byte stands in their place."""

    def _prepare(self) -> None:
        super()._prepare()
        self._tables = _PlainTables(self._writer)

    def _write(self, changes: Changes) -> None:
        with _no_checksums():
            super()._write(changes)

    def host(self, host_id: int) -> HostRow:
        with _no_checksums():
            return super().host(host_id)

    def chunk(self, chunk_id: int) -> list[bytes]:
        with _no_checksums():
            return super().chunk(chunk_id)

    def _refuse_changed(self, is_whole: bool, what: str) -> None:
        pass


class _no_checksums:  # noqa: N801 - read as a statement
    """Rows have the checksum 0 meanwhile."""

    def __enter__(self) -> None:
        self._kept = (tables.host_checksums, tables.chunk_checksum, tables.QUEUE_CHECKSUM)
        tables.host_checksums = lambda row: (0, 0)
        tables.chunk_checksum = lambda *values: 0
        tables.QUEUE_CHECKSUM = "0"

    def __exit__(self, *error: object) -> None:
        tables.host_checksums, tables.chunk_checksum, tables.QUEUE_CHECKSUM = self._kept


class _Recorder(SqliteStore):
    """Notes what a crawl asks of its store."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls: list[tuple[str, Any]] = []

    def host(self, host_id: int) -> Any:
        self.calls.append(("host", host_id))
        return super().host(host_id)

    def chunk(self, chunk_id: int) -> Any:
        self.calls.append(("chunk", chunk_id))
        return super().chunk(chunk_id)

    def robots(self, key: str) -> Any:
        self.calls.append(("robots", key))
        return super().robots(key)

    def commit(self, changes: Changes) -> None:
        flush = changes.flush
        tails = {slot: list(lines) for slot, lines in flush.tails.items()} if flush else {}
        kept = replace(changes, flush=flush and flush._replace(tails=tails), seen=list(changes.seen))
        self.calls.append(("commit", kept))
        super().commit(kept)


def recorded(urls: int, directory: Path) -> tuple[list[tuple[str, Any]], float]:
    """What a crawl of *urls* URLs asks of its store, and its processor time without the web's."""
    run, links = Run(directory, 2000), Web()
    run.store.close()
    run.store = store = _Recorder(directory / "recorded.sqlite")
    run.frontier = Frontier(run.options, store=store)
    links.pages.extend([0] * 200)
    for host in range(100):
        run.frontier.put_seed(url_of(host, 0), 0.0)
        links.pages[host] = 1
    began = time.process_time()
    run.to(urls, links)
    took = time.process_time() - began - run.web_s
    store.close()
    return store.calls, took


def cost(urls: int, rounds: int, directory: Path) -> tuple[float, float]:
    """Processor time of a crawl of *urls* URLs, and the share of it that checksums take.

    What the crawl asks of its store is asked again of two stores in turns, one of which writes no checksums; of each
    call the shortest time of all rounds counts.
    """
    calls, whole_s = recorded(urls, directory)
    shortest = [[math.inf] * len(calls), [math.inf] * len(calls)]
    for turn in range(rounds):
        stores = [kind(directory / f"{turn}-{number}.sqlite") for number, kind in enumerate((_PlainStore, SqliteStore))]
        for place, (name, value) in enumerate(calls):
            for number in (0, 1) if (turn + place) % 2 else (1, 0):
                ask = getattr(stores[number], name)
                began = time.process_time()
                ask(value)
                shortest[number][place] = min(shortest[number][place], time.process_time() - began)
        for store in stores:
            store.close()
    plain_s, checked_s = map(sum, shortest)
    return whole_s, (checked_s - plain_s) / whole_s


def main() -> None:
    options = arguments(__doc__)
    number, urls, rounds = (120, 30_000, 2) if options.quick else (2000, _COST_URLS, _ROUNDS)
    counts: Counter[tuple[str, str]] = Counter()
    by: Counter[str] = Counter()
    tracebacks: Counter[str] = Counter()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        directories = made(Path(name))
        for directory, flip, verdict in swept(directories, number, Path(name)):
            what = "-wal" if flip.file.endswith("-wal") else flip.file.partition("/")[0]
            outcome = "found" if verdict.found else "harmless" if verdict.is_harmless else "missed"
            counts[what, outcome] += 1
            counts[what, "others"] += verdict.peer
            by[verdict.found] += 1
            if verdict.traceback:
                tracebacks[f"{flip}: {verdict.traceback}"] += 1
            if outcome == "missed":
                missed.append(f"{directory.name}: {flip}")
        whole_s, share = cost(urls, rounds, Path(name))
    columns = ("found", "harmless", "missed", "others")
    kinds = sorted({what for what, _ in counts})
    rows = [[kind, *(counts[kind, column] for column in columns)] for kind in kinds]
    rows.append(["all", *(sum(counts[kind, column] for kind in kinds) for column in columns)])
    table(("flips in", "found", "harmless", "missed", "found by SQLite or unpacking alone"), rows)
    print(f"found first by: {json.dumps({key or 'nothing': value for key, value in by.most_common()})}")
    print(f"the frontier takes {whole_s:.1f} s of processor time for {urls:,} URLs, checksums {share * whole_s:.2f} s")
    print("\n".join([*missed, *tracebacks]) or "nothing was missed, and nothing fell over")
    result(
        flips=sum(sum(row[1:4]) for row in rows[:-1]), found=rows[-1][1], harmless=rows[-1][2],
        tracebacks=tracebacks.total(), cost=round(share, 4),
    )  # fmt: skip
    sys.exit(1 if missed or tracebacks else 0)


if __name__ == "__main__":
    main()
