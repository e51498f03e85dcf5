"""One bit of a crawl's directory is flipped, again and again: does the check find it, and does anything fall over?

A real crawl over loopback (hosts with text, one retired, one in transit; robots.txt, consents, links, an archive, a
spider's own requests) is killed between a batch's segments and its transaction, so that there is a write-ahead log.  It
is one of two directories; in the other the log is in the file and the queues stand in chunks.  Each flip is made in a
copy: bits are drawn by seed, half of them in the state's files, the rest in segments.  Then the directory is checked
(``scrapy inspect --check``), opened as a crawl opens it, and exported.

Each flip is found (the check names a problem, or opening or exporting is refused in one sentence) or harmless: every
row of every table and every document, link and archived record reads as before.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spiderling.base.errors import SpiderlingError
from spiderling.base.options import Options
from spiderling.corpus.links import LinkKind, read_links
from spiderling.corpus.segments import SUFFIX, SegmentKind, SegmentWriter, frames, stored_documents
from spiderling.corpus.warc import WarcKind, records
from spiderling.export.sources import corpus_of
from spiderling.frontier import Frontier
from spiderling.frontier.storage.protocol import Changes, Flush
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.tables import TABLES
from spiderling.frontier.url_states import GENERATION
from spiderling.jobdir.check import problems
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection
from tests.jobdirs.made_jobdirs import crawl_in, leave_killed, serving, web

FLIPS = 100
"""Flips of each directory."""
STATE_SHARE = 0.6
DATABASE = "state/frontier.sqlite"


class Flip(NamedTuple):
    file: str
    offset: int
    bit: int


# -- the directories


def made(scratch: Path) -> list[Path]:
    """The directory of a killed crawl, and the same with its log in the file and its queues in chunks."""
    with serving(web(is_slow=True)) as server:
        killed = crawl_in(scratch / "killed", server, scratch / "project")
        leave_killed(killed)
    settled = Path(shutil.copytree(killed.directory, scratch / "settled"))
    with closing(Jobdir(settled)) as jobdir:
        jobdir.judge("cs", moves=False)()
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
        jobdir.judge("cs", moves=False)()
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


STEPS = checked, opened, exported


def contents(directory: Path) -> dict[str, Any]:
    """All rows of all tables, and everything in the segments up to their recorded lengths."""
    found: dict[str, Any] = {}
    with closing(Inspection(directory)) as crawl:
        for name in (*TABLES, "written"):
            rows = crawl.connection.execute(f"SELECT * FROM {name}").fetchall()
            found[name] = sorted(map(repr, rows))
        for segment in crawl.segments("corpus"):
            found[segment.path.name] = [frame.data for frame in frames(segment.path, segment.length)]
        for segment in crawl.segments("links"):
            found[segment.path.name] = list(read_links(segment.path, segment.length))
        for segment in crawl.segments("warc"):
            found[segment.path.name] = [(r.headers, r.block) for r in records(segment.path, segment.length)]
    return found


def outcome_of(directory: Path, flip: Flip, copy: Path) -> str:
    """What says that there is damage; empty if nothing does.  Raises any error but those that are one sentence."""
    for step in STEPS:
        try:
            said = step(flipped(directory, flip, copy))
        except SpiderlingError as error:
            said = str(error)
        if said:
            return said
    return ""


@pytest.mark.slow
def test_a_flipped_bit_is_found_or_harmless(tmp_path):
    rng = random.Random(17)
    for directory in made(tmp_path):
        expected = contents(Path(shutil.copytree(directory, tmp_path / f"{directory.name}-read")))
        for step in STEPS:
            assert not step(Path(shutil.copytree(directory, tmp_path / f"{directory.name}-{step.__name__}")))
        for flip in drawn(directory, FLIPS, rng):
            if not outcome_of(directory, flip, tmp_path / "flipped"):
                assert contents(flipped(directory, flip, tmp_path / "flipped")) == expected, (directory, flip)
