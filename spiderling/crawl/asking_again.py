"""``ask_again`` in control.yaml: URLs that ended for a Reason wait again, each end once.

The URL log on disk says which URLs those are.  It is read in batches.  One checkpoint holds both what is asked again
and how far the log was read for that Reason, so no end is taken up twice, even after a kill.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from spiderling.base.errors import StorageError
from spiderling.base.printing import counted
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.hosts.host import CLOSED_STATES
from spiderling.frontier.lifecycle.ask_again import AskedAgain
from spiderling.frontier.storage.url_log import ASKED_AGAIN, End, unpack_ends

MAY_BE_ASKED = frozenset(Reason) - MENTIONS - frozenset(CLOSED_STATES.values()) - {Reason.KEPT}
"""Reasons whose ends may be undone: not that of kept pages, and not those of closed hosts, whose URLs come back with
``reopen``."""


async def ask_again(crawl: Crawl, reasons: Iterable[Reason]) -> None:
    """Let the URLs wait again that ended as one of *reasons*, as far as the URL log was kept."""
    for reason in reasons:
        if reason is Reason.INTERNAL_ERROR:
            crawl.errors.forgive()
        if crawl.options.trail == "off":
            crawl.note_event(f"which URLs ended as {reason.value} is not known: SPIDERLING_TRAIL is off")
            continue
        said = await _ask_again(crawl, reason)
        closed = f", {said.closed:,} of closed hosts or full queues ended at once" if said.closed else ""
        crawl.note_event(f"asked again, of those that ended as {reason.value}: {counted(said.waiting, 'URL')}{closed}")


async def _ask_again(crawl: Crawl, reason: Reason) -> AskedAgain:
    await crawl.checkpoint.flush()
    marks, batches = await asyncio.to_thread(_read, crawl.jobdir.database, reason)
    sums = AskedAgain()
    for number, ends in batches:
        with crawl.errors.changing():
            said = crawl.frontier.ask_again(ends, crawl.clock.now())
            sums = AskedAgain(*map(sum, zip(sums, said, strict=True)))
            marks[reason.value] = number
            crawl.checkpoint.set_meta(ASKED_AGAIN, marks)
        await asyncio.sleep(0)
    return sums


def _read(database: Path, reason: Reason) -> tuple[dict[str, int], list[tuple[int, list[End]]]]:
    """The last batch of the URL log read for each Reason; then, batch by batch, the later ends as *reason*."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (ASKED_AGAIN,)).fetchone()
            marks = json.loads(row[0]) if row else {}
            query = "SELECT batch, keys, ends FROM ended WHERE batch > ? ORDER BY batch"
            batches = [
                (batch, [end for end in unpack_ends(keys, ends) if end.reason == reason.value])
                for batch, keys, ends in connection.execute(query, (marks.get(reason.value, 0),))
            ]
            return marks, [(batch, found) for batch, found in batches if found]
    except sqlite3.Error as error:
        raise StorageError(f"{database} could not be read: {error}.") from error
