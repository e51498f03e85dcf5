"""A crawl of shards in words, while this process runs all of them and at the end."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

from spiderling.base.errors import SpiderlingError
from spiderling.base.printing import counted
from spiderling.frontier.hosts import HostState
from spiderling.jobdir.inspection import counts_under
from spiderling.jobdir.shards import AnyCrawl, commands_for, opened, progress_of

_CORPUS = "shard-*/corpus/*.prevert.zst"
_FINISHED = "is finished."
_PAUSED = "was paused; the same command goes on with it."
_FAILED = "has not ended well, as is told above; the same command goes on with it."


class Telling:
    """What is told of the crawl in *directory*, whose shards other processes run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pages: int | None = None
        self.has_documents = False
        """Whether any shard had a document when the last line was made."""

    def progress(self, seconds: float, running: int) -> str:
        """The progress line, *seconds* after the last one; empty while there is nothing to tell."""
        try:
            with closing(opened(self._directory)) as crawl:
                totals = counts_under("total", crawl.counts)
                waiting = crawl.counts["waiting"]
        except SpiderlingError:  # it is being made; what is damaged, its shard says
            return ""
        speed = None if self._pages is None else (totals["pages"] - self._pages) / seconds
        self._pages = totals["pages"]
        self.has_documents = totals["documents"] > 0
        what = progress_of(totals, speed) if self.has_documents else f"No document yet of {totals['pages']:,} pages"
        why = "" if self.has_documents else "; the crawl.log of each says what it waits for"
        return f"{what}; {counted(waiting, 'URL')} waiting; {counted(running, 'shard')} at work{why}"

    def summary(self, code: int) -> str:
        """How the crawl ended, and what it has, as a table; empty if nothing was begun.  *code*: its exit code."""
        try:
            with closing(opened(self._directory)) as crawl:
                return self._table(crawl, code)
        except SpiderlingError:
            return ""

    def _table(self, crawl: AnyCrawl, code: int) -> str:
        place = self._directory
        counts = crawl.counts
        totals = counts_under("total", counts)
        ends = counts_under("end", counts)
        hosts = sum((part.hosts_by_state for part in crawl.parts), start=Counter[str]())
        messages = sum(box.messages for part in crawl.parts for box in part.outboxes())
        languages = counts_under("language", counts)
        rows = [
            ("pages", f"{totals['pages']:,}"),
            ("downloaded", f"{totals['downloaded_bytes'] / 1e6:,.2f} MB"),
            ("kept", f"{totals['kept_bytes'] / 1e6:,.2f} MB"),
            ("yield rate", f"{_yield_rate(totals):.4f}"),
            ("words", f"{totals['words']:,}"),
            ("documents", ", ".join(f"{code} {number:,}" for code, number in languages.most_common()) or "0"),
            ("hosts", f"{hosts.total():,}, {hosts[HostState.RETIRED.value]:,} of them retired"),
            ("ends", ", ".join(f"{end} {number:,}" for end, number in ends.most_common())),
            ("balance", f"{counts['discovered']:,} discovered = {ends.total():,} ends + {counts['waiting']:,} waiting"),
            ("messages", f"{messages:,} between shards wait" if messages else ""),
            ("shards", ", ".join(f"{_short(part.directory)} {_pages(part.counts):,} pages" for part in crawl.parts)),
            ("corpus", str(place / _CORPUS) if any(place.glob(_CORPUS)) else ""),
            ("all", commands_for(place)),
        ]
        left = counts["waiting"] + messages
        how = _FAILED if code else _PAUSED if left else _FINISHED
        table = "\n".join(f"  {name:<11}{value}" for name, value in rows if value)
        note = f" ({crawl.note})" if crawl.note else ""
        return f"The crawl of all shards in {place.resolve()} {how}{note}\n{table}"


def _yield_rate(totals: Counter[str]) -> float:
    return totals["kept_bytes"] / max(totals["downloaded_bytes"], 1)


def _pages(counts: Counter[str]) -> int:
    return counts["total/pages"]


def _short(directory: Path) -> str:
    return directory.name.removeprefix("shard-")
