"""The URL log on disk, read while the crawl goes on: URLs to be asked again, and pages to be revisited.

``ask_again`` in control.yaml lets URLs wait again that ended for a Reason, each end once.  The recrawl takes up what
has ended, also before the recrawl began.  Both read the log in batches.  One checkpoint holds what was taken up and how
far the log was read, so no end is taken up twice, even after a kill.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from spiderling.base.errors import StorageError
from spiderling.base.reasons import Reason
from spiderling.base.terminal import count_of
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.recrawl.pages import NOTED, Validators, pages_to_recrawl, unpacked_validators
from spiderling.frontier.storage.url_log import ASKED_AGAIN, UrlEnd, unpack_ends, unpack_keys

BATCHES = 200  # batches of the log that are read at once: some ten thousand URLs; chosen


async def ask_again(crawl: Crawl, reasons: Iterable[Reason]) -> None:
    """Let the URLs wait again that ended as one of *reasons*, as far as the URL log was kept."""
    for reason in reasons:
        if reason is Reason.INTERNAL_ERROR:
            crawl.errors.forgive()
        if crawl.options.trail == "off":
            crawl.note_event(f"which URLs ended as {reason.value} is not known: SPIDERLING_TRAIL is off")
            continue
        asked, waiting = await _ask_again(crawl, reason)
        closed = f", {asked - waiting:,} of closed hosts or full queues ended at once" if asked > waiting else ""
        crawl.note_event(f"asked again, of those that ended as {reason.value}: {count_of(waiting, 'URL')}{closed}")


async def _ask_again(crawl: Crawl, reason: Reason) -> tuple[int, int]:
    """How many URLs that had ended as *reason* were asked again, and how many of them wait."""
    await crawl.checkpoint.flush()
    marks, batches = await asyncio.to_thread(_read_ends, crawl.jobdir.database, reason)
    asked = waiting = 0
    for number, ends in batches:
        if crawl.stopping:
            break
        with crawl.errors.changing():
            of_batch = crawl.frontier.ask_again(ends, crawl.now())
            asked += of_batch[0]
            waiting += of_batch[1]
            marks[reason.value] = number
            crawl.checkpoint.set_meta(ASKED_AGAIN, marks)
        await asyncio.sleep(0)
    return asked, waiting


def _read_ends(database: Path, reason: Reason) -> tuple[dict[str, int], list[tuple[int, list[UrlEnd]]]]:
    """The last batch of the URL log read for each Reason; then, batch by batch, the later ends as *reason*."""
    with _reading(database) as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (ASKED_AGAIN,)).fetchone()
        marks = json.loads(row[0]) if row else {}
        query = "SELECT batch, keys, ends FROM ended WHERE batch > ? ORDER BY batch"
        batches = [
            (batch, [end for end in unpack_ends(keys, ends) if end.reason == reason.value])
            for batch, keys, ends in connection.execute(query, (marks.get(reason.value, 0),))
        ]
        return marks, [(batch, found) for batch, found in batches if found]


@contextmanager
def _reading(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads *database*; raises StorageError if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StorageError(f"{database} could not be read: {error}.") from error


class _Batches(NamedTuple):
    ended: list[tuple[UrlEnd, float]]  # with the times of their batches
    validators: dict[int, Validators]
    links: Counter[int]  # key of a page -> links on it that nobody had found before
    marks: dict[str, int]  # table -> number of its last batch that was read


async def take_up(crawl: Crawl) -> None:
    """Recrawl what has ended since the last call, as far as it is durable."""
    recrawl = crawl.frontier.recrawl
    while not crawl.stopping:
        read = await asyncio.to_thread(_read, crawl.jobdir.database, recrawl.marks)
        if read.marks == recrawl.marks or crawl.stopping:
            return
        with crawl.errors.changing():
            pages, first_words = pages_to_recrawl(read.ended, read.validators, read.links, recrawl.days)
            recrawl.take_up(pages, first_words, read.marks)
        await asyncio.sleep(0)


def plan(crawl: Crawl) -> bool:
    """Plan the next revisits of known pages; returns whether more are to be planned at once."""
    with crawl.errors.changing():
        return crawl.frontier.recrawl.step(crawl.now())
    return False  # after an error of our own, which stops the crawl


def _read(database: Path, marks: Mapping[str, int]) -> _Batches:
    """The next batches, and what was found and noted up to the last of them."""
    read = _Batches([], {}, Counter(), dict(marks))
    times = set()
    with _reading(database) as connection:
        connection.execute("BEGIN")  # the three tables as of one moment
        query = "SELECT batch, time, keys, ends FROM ended WHERE batch > ? ORDER BY batch LIMIT ?"
        for batch, time, keys, ends in connection.execute(query, (marks.get("ended", 0), BATCHES)):
            read.marks["ended"] = batch
            times.add(time)
            read.ended.extend((end, time) for end in unpack_ends(keys, ends) if end.reason in NOTED)
        wanted = {end.key for end, _ in read.ended}
        query = "SELECT keys, validators FROM validator WHERE batch > ? AND batch <= ?"
        for keys, packed in connection.execute(query, _batches(connection, "validator", read.marks, times)):
            read.validators.update(zip(unpack_keys(keys), unpacked_validators(packed), strict=True))
        query = "SELECT pages FROM found WHERE batch > ? AND batch <= ?"
        for (pages,) in connection.execute(query, _batches(connection, "found", read.marks, times)):
            runs = unpack_keys(pages)
            for page, number in zip(runs[::2], runs[1::2], strict=True):
                read.links[page] += number * (page in wanted)
    return read


def _batches(
    connection: sqlite3.Connection, table: str, marks: dict[str, int], times: Collection[float]
) -> tuple[int, int]:
    """The batches of *table* to be read: from after its mark, which is set anew, to the last that one of *times* has.

    What a commit writes to several tables has one time.  Later commits may have earlier ones: clocks are set back.
    """
    first = last = marks.get(table, 0)
    newest = max(times, default=0.0)
    rows = connection.execute(f"SELECT batch, time FROM {table} WHERE batch > ? ORDER BY batch", (first,))  # noqa: S608
    for batch, time in rows:
        if time in times:
            last = batch
        elif time > newest:
            break
    marks[table] = last
    return first, last
