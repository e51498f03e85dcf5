"""One bit of a crawl's directory is flipped, again and again: does the check find it, and does anything fall over?

A crawl that was killed between a batch's segments and its transaction has a write-ahead log.  Its directory is one of
two; in the other the log is in the file and the queues stand in chunks.  Bits are drawn by seed, half of them in the
state's files, the rest in segments.  Each copy is checked (``scrapy inspect --check``), opened as a crawl opens it, and
exported.

Each flip is found (the check names a problem, or opening or exporting is refused in one sentence) or harmless: every
row of every table and every document, link and archived record reads as before.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

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
from spiderling.jobdir.damage import problems
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.inspection import Inspection

FLIPS = 100
"""Flips of each directory."""
STATE_SHARE = 0.6
DATABASE = "state/frontier.sqlite"


def made(scratch: Path) -> list[Path]:
    """The directory of a killed crawl, and the same with its log in the file and its queues in chunks."""
    killed, settled = (Path(shutil.copytree(ROOT / "tests/jobdirs/killed", scratch / n)) for n in ("killed", "settled"))
    with closing(Jobdir(settled)) as jobdir:
        jobdir.judge("cs", moves=False)()
    with closing(SqliteStore(settled / DATABASE)) as store:
        state = store.load()
        generation = state.counts.get(GENERATION, 0) + 1
        store.commit(Changes(flush=Flush(generation, state.tails), counts={GENERATION: generation}))
    assert (killed / f"{DATABASE}-wal").stat().st_size and not (settled / f"{DATABASE}-wal").exists()
    return [killed, settled]


def flips(directory: Path, copy: Path, rng: random.Random) -> Iterator[Path]:
    """Copies with one bit flipped, in the state's files and in segments, within each by size."""
    state = sorted(directory.glob("state/frontier.sqlite*"))
    segments = sorted(path for kind in ("corpus", "links", "warc") for path in directory.glob(f"{kind}/cs-[0-9]*.*z*"))
    for files, many in ((state, round(FLIPS * STATE_SHARE)), (segments, FLIPS - round(FLIPS * STATE_SHARE))):
        for path in rng.choices(files, [path.stat().st_size for path in files], k=many):
            data = bytearray(path.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(directory, copy)
            (copy / path.relative_to(directory)).write_bytes(data)
            yield copy


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


def found_by(directory: Path, scratch: Path) -> str:
    """What says that there is damage; empty if nothing does.  Raises any error but those that are one sentence."""
    for step in STEPS:
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            said = step(Path(shutil.copytree(directory, scratch)))
        except SpiderlingError as error:
            said = str(error)
        if said:
            return said
    return ""


@pytest.mark.slow
def test_a_flipped_bit_is_found_or_harmless(tmp_path):
    rng, scratch = random.Random(17), tmp_path / "scratch"
    for directory in made(tmp_path):
        assert not found_by(directory, scratch)
        expected = contents(Path(shutil.copytree(directory, tmp_path / f"{directory.name}-read")))
        for number, flipped in enumerate(flips(directory, tmp_path / "flipped", rng)):
            if not found_by(flipped, scratch):
                assert contents(flipped) == expected, (directory, number)
