"""One bit of a crawl's directory is flipped, again and again: does the check find it, and does anything fall over?

    python benchmarks/bitflips.py [--quick]

A real crawl over loopback (hosts with text, one retired, one in transit; robots.txt, consents, links, an archive, a
spider's own requests) is killed between a batch's segments and its transaction, so that there is a write-ahead log.  It
is one of two directories; in the other the log is in the file and the queues stand in chunks.  Each flip is made in a
copy: bits are drawn by seed, half of them in the state's files, the rest in segments.  Then the directory is checked
(``scrapy inspect --check``), opened as a crawl opens it, and exported.

*found*: the check names a problem, or opening or exporting it is refused in one sentence.  *harmless*: every row of
every table and every document, link and archived record reads as before.  *missed*: neither.  A traceback is any other
exception.  Beside it, what SQLite's integrity check and the decompression alone would have found.

*cost*: processor time of two crawls of benchmarks/frontier.py in turns, with checksums and without; the median turn.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import arguments, result, table
from benchmarks.frontier import Run, Web, url_of
from spiderling.cdxj import records
from spiderling.checking import problems
from spiderling.errors import SpiderlingError
from spiderling.export import corpus_of
from spiderling.frontier import Frontier, checksums
from spiderling.frontier.checksums import TABLES, CheckedTables, Written
from spiderling.frontier.journal import GENERATION
from spiderling.frontier.state import Changes, Flush
from spiderling.frontier.store import SqliteStore
from spiderling.inspection import Inspection
from spiderling.linkoutput import LinkKind, read_links
from spiderling.options import Options
from spiderling.prevertical import stored_documents
from spiderling.segments import SUFFIX, Kind, SegmentWriter, frames
from spiderling.warc import WarcKind
from tests.jobdirs.made import crawl_in, leave_killed, serving, web

STATE_SHARE = 0.6
DATABASE = "state/frontier.sqlite"
_SLICES, _SLICE_URLS = 120, 3000
"""The crawls that are compared take turns of so many URLs."""


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
    """SQLite or a decompressor alone found it."""


# -- the directories


def made(scratch: Path) -> list[Path]:
    """The directory of a killed crawl, and the same with its log in the file and its queues in chunks."""
    with serving(web(is_slow=True)) as server:
        killed = crawl_in(scratch / "killed", server, scratch / "project")
        leave_killed(killed)
    settled = Path(shutil.copytree(killed.directory, scratch / "settled"))
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
    with closing(SqliteStore(directory / DATABASE)) as store:
        state = store.load()
        frontier = Frontier(Options(lang="cs"), shelf=store)
        frontier.restore(state, time.time())
        ids = range(1, sum(len(columns.names) for columns in store.host_columns()) + 1)
        for host in ids:
            store.host(host)
            for chunk in store.chunk_ids(host):
                store.chunk(chunk)
        for mark in store.host_marks():
            store.robots(f"http://{mark.name}")
        store.consents()
        for kind in (Kind("corpus", SUFFIX), LinkKind(), WarcKind("on", {})):
            SegmentWriter(directory / kind.name, "cs", 10**6, state.segments, kind).close()
    return ""


def exported(directory: Path) -> str:
    """Read the corpus as ``scrapy export`` does."""
    for source in corpus_of([str(directory)]).sources:
        for _ in stored_documents(source):
            pass
    return ""


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
    """Whether ``PRAGMA integrity_check``, or decompression without a checksum, names the damage."""
    try:
        if flip.file.startswith("state/"):
            with closing(sqlite3.connect(f"{(directory / DATABASE).as_uri()}?mode=ro", uri=True)) as state:
                return state.execute("PRAGMA integrity_check").fetchone() != ("ok",)
        list(frames(directory / flip.file, (directory / flip.file).stat().st_size))
    except (sqlite3.Error, SpiderlingError):
        return True
    return False


def judged(directory: Path, flip: Flip, copy: Path, expected: dict[str, Any]) -> Verdict:
    steps: dict[str, Callable[[Path], str]] = {"check": checked, "opening": opened, "export": exported}
    found, traceback = "", ""
    for name, step in steps.items():
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
        for flip in drawn(directory, number // len(directories), rng):
            yield directory, flip, judged(directory, flip, scratch / "flipped", expected)


# -- what checksums cost


class _PlainTables(CheckedTables):
    """Writes the same rows without checksums."""

    def add(self, table: Any, row: Sequence[Any]) -> None:
        self._execute(table.write, (*row, 0))
        if table.is_numbered:
            self._last[table.name] = row[0]

    def put(self, name: str, row: Sequence[Any]) -> None:
        self._execute(TABLES[name].write, (*row, 0))

    def count(self, name: str, more: int) -> None:
        self._written[name] = Written(self.rows(name) + more)


class _PlainStore(SqliteStore):
    """As this was before there were checksums; a zero of one byte stands in their place."""

    def _prepare(self) -> None:
        super()._prepare()
        self._tables = _PlainTables(self._connection)

    def _write(self, changes: Changes) -> None:
        with _no_checksums():
            super()._write(changes)

    def _compare(self, is_whole: Callable[[], bool], what: str) -> None:
        pass


class _no_checksums:  # noqa: N801 - read as a statement
    """Rows have the checksum 0 meanwhile."""

    def __enter__(self) -> None:
        self._kept = (checksums.host_checksums, checksums.queue_checksum, checksums.chunk_checksum)
        checksums.host_checksums = lambda row: (0, 0)
        checksums.queue_checksum = lambda *values: 0
        checksums.chunk_checksum = lambda *values: 0

    def __exit__(self, *error: object) -> None:
        checksums.host_checksums, checksums.queue_checksum, checksums.chunk_checksum = self._kept


def cost(slices: int, scratch: Path) -> tuple[float, float]:
    """Milliseconds of processor time a page of the frontier without checksums, and the share that they add."""
    runs = []
    for number, store in enumerate((_PlainStore, SqliteStore)):
        directory = scratch / f"cost{number}"
        directory.mkdir()
        run, links = Run(directory, 2000), Web()
        run.store.close()
        run.store = store(directory / "other.sqlite")
        run.frontier = Frontier(run.options, shelf=run.store)
        links.pages.extend([0] * 200)
        for host in range(100):
            run.frontier.put_seed(url_of(host, 0), 0.0)
            links.pages[host] = 1
        runs.append((run, links))
    ratios, plain_s, first = [], 0.0, 0
    for turn in range(1, slices + 1):
        times = [0.0, 0.0]
        for number in (0, 1) if turn % 2 else (1, 0):
            run, links = runs[number]
            web_s, began = run.web_s, time.process_time()
            run.to(turn * _SLICE_URLS, links)
            times[number] = time.process_time() - began - (run.web_s - web_s)
        if turn > slices // 5:  # caches are warm
            ratios.append(times[1] / times[0])
            plain_s += times[0]
        else:
            first = runs[0][0].pages
    pages = runs[0][0].pages - first
    for run, _ in runs:
        run.store.close()
    return 1000 * plain_s / pages, statistics.median(ratios) - 1


def main() -> None:
    options = arguments(__doc__)
    number, slices = (120, 30) if options.quick else (2000, _SLICES)
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
        ms_a_page, share = cost(slices, Path(name))
    columns = ("found", "harmless", "missed", "others")
    kinds = sorted({what for what, _ in counts})
    rows = [[kind, *(counts[kind, column] for column in columns)] for kind in kinds]
    rows.append(["all", *(sum(counts[kind, column] for kind in kinds) for column in columns)])
    table(("flips in", "found", "harmless", "missed", "found without checksums"), rows)
    print(f"found first by: {json.dumps({key or 'nothing': value for key, value in by.most_common()})}")
    print(f"the frontier without checksums takes {ms_a_page:.3f} ms of processor time a page")
    print("\n".join([*missed, *tracebacks]) or "nothing was missed, and nothing fell over")
    result(
        flips=sum(sum(row[1:4]) for row in rows[:-1]), found=rows[-1][1], harmless=rows[-1][2],
        tracebacks=tracebacks.total(), cost=round(share, 4),
    )  # fmt: skip
    sys.exit(1 if missed or tracebacks else 0)


if __name__ == "__main__":
    main()
