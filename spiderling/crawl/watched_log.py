"""Takes the URLs that have ended into the watch: the URL log on disk says which, also of a crawl from before the watch.

It is read in batches.  One checkpoint holds both what is watched and how far the log was read, so nothing is taken up
twice, even after a kill.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from spiderling.base.errors import StorageError
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.storage.url_log import unpack_ends, unpack_keys
from spiderling.frontier.watching.ended_pages import NOTED, EndedPage, to_be_watched
from spiderling.frontier.watching.validators import Validators, unpacked

_BATCHES = 200
"""Batches of the log that are read at once: some ten thousand URLs.  Chosen."""


class _Read(NamedTuple):
    ended: list[EndedPage]
    validators: dict[int, Validators]
    links: Counter[int]
    """Key of a page -> links on it that nobody had found before."""
    marks: dict[str, int]
    """Table -> number of its last batch that was read."""


async def take_up(crawl: Crawl) -> None:
    """Watch what has ended since the last call, as far as it is durable."""
    watch = crawl.frontier.watch
    while not crawl.stopping:
        read = await asyncio.to_thread(_read, crawl.jobdir.database, watch.marks)
        if read.marks == watch.marks or crawl.stopping:
            return
        with crawl.errors.changing():
            taken = to_be_watched(read.ended, read.validators, read.links, watch.days)
            watch.take_up(taken.pages, taken.first_words, read.marks)
        await asyncio.sleep(0)


def _read(database: Path, marks: Mapping[str, int]) -> _Read:
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return _read_from(connection, marks)
    except sqlite3.Error as error:
        raise StorageError(f"{database} could not be read: {error}.") from error


def _read_from(connection: sqlite3.Connection, marks: Mapping[str, int]) -> _Read:
    """The next batches, and what was found and noted up to the same time."""
    read = _Read([], {}, Counter(), dict(marks))
    connection.execute("BEGIN")  # the three tables as of one moment
    until = 0.0
    query = "SELECT batch, time, keys, ends FROM ended WHERE batch > ? ORDER BY batch LIMIT ?"
    for batch, until, keys, ends in connection.execute(query, (marks.get("ended", 0), _BATCHES)):
        read.marks["ended"] = batch
        read.ended.extend(EndedPage(end, until) for end in unpack_ends(keys, ends) if end.reason in NOTED)
    wanted = {page.end.key for page in read.ended}
    query = "SELECT batch, keys, validators FROM validator WHERE batch > ? AND time <= ?"
    for batch, keys, packed in connection.execute(query, (marks.get("validator", 0), until)):
        read.validators.update(zip(unpack_keys(keys), unpacked(packed), strict=True))
        read.marks["validator"] = batch
    query = "SELECT batch, pages FROM found WHERE batch > ? AND time <= ?"
    for batch, pages in connection.execute(query, (marks.get("found", 0), until)):
        runs = unpack_keys(pages)
        for page, number in zip(runs[::2], runs[1::2], strict=True):
            read.links[page] += number * (page in wanted)
        read.marks["found"] = batch
    return read
