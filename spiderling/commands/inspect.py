"""``scrapy inspect JOBDIR [host NAME | url URL] [--urls] [--check]``: the state of a crawl, as text."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from scrapy.exceptions import UsageError

from spiderling.base.clock import Clock
from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.option_values import PREFIX
from spiderling.base.printing import aligned_table
from spiderling.base.reasons import Reason
from spiderling.engine.command import SpiderlingCommand, option
from spiderling.frontier.hosts.host import CLOSED_STATES, HostState
from spiderling.frontier.ranking.strategies import Heidix, parse
from spiderling.frontier.storage.soundness import to_check
from spiderling.jobdir.check import problems
from spiderling.jobdir.inspection import Ended, Inspection, Story

_USAGE = "say scrapy inspect JOBDIR, scrapy inspect JOBDIR host NAME, or scrapy inspect JOBDIR url URL"
_BEST_HOSTS = 10
"""Hosts that the overview names; chosen."""


class Command(SpiderlingCommand):
    """Shows what ``Inspection`` finds; the functions below make text of it."""

    arguments = "JOBDIR [host NAME | url URL]"
    summary = "Show the state of a crawl, of one host, or why a URL is in the corpus or not"
    description = (
        "Show what a crawl's directory holds; the crawl may be running, paused or killed, and nothing is changed. "
        "'host NAME' shows one host, with --urls also its queue; 'url URL' tells where the URL was found, and "
        "whether and why it waits, was kept or was not. --check proves that the books balance, that every segment "
        "can be read, and that corpus and state agree. --rebuild makes a lost or damaged state anew "
        "from corpus/, links/ and warc/ (docs/durability.md). Example: scrapy inspect crawls/cs url https://a.example/"
    )

    options = (
        option("--urls", action="store_true", help="with a host: its waiting URLs, best first"),
        option("--check", action="store_true", help="look for damage; exit with 1 if there is any"),
        option("--rebuild", action="store_true", help="make the state of a crawl anew from its output"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) not in (1, 3) or (len(args) == 3 and args[1] not in ("host", "url")):
            raise UsageError(_USAGE, print_help=False)
        directory = Path(args[0])
        if opts.rebuild:
            yield from self._rebuild(directory)
        elif opts.check:
            yield from self._check(directory)
        else:
            with closing(Inspection(directory)) as crawl:
                if len(args) == 1:
                    yield from overview(crawl)
                elif args[1] == "host":
                    yield from of_host(crawl, args[2], opts.urls)
                else:
                    yield from of_url(crawl, crawl.story(args[2]))

    def _rebuild(self, directory: Path) -> Iterator[str]:
        from spiderling.crawl.rebuild import rebuild  # what a crawl needs takes a second to import

        settings = self.given_settings
        given = {key: settings[key] for key in settings if str(key).startswith(PREFIX)}
        return rebuild(directory, given, Clock().now())

    def _check(self, directory: Path) -> Iterator[str]:
        advice = to_check(directory)  # who checks need not be told to check
        compared: list[str] = []
        try:
            with closing(Inspection(directory)) as crawl:
                found = [line.replace(advice, "") for line in problems(crawl, compared)]
        except SpiderlingError as error:
            raise SpiderlingError(str(error).replace(advice, "")) from error
        self.exitcode = 1 if found else 0
        yield from found or ["The crawl is whole."]
        yield from ["", "Compared:", *(f"  {line}" for line in compared)]


def overview(crawl: Inspection) -> Iterator[str]:
    """Who crawls, what was found and kept, how URLs ended, which hosts gave most."""
    counts = crawl.counts
    yield from _lines(
        {
            "directory": crawl.directory,
            "crawling": crawl.holder or "no process",
            "language": crawl.options.lang,
            "discovered": f"{counts.get('discovered', 0):,} URLs, {counts.get('waiting', 0):,} wait",
        }
    )
    yield ""
    for title, query in (
        ("How URLs ended", "SELECT * FROM ends"),
        ("What waits", "SELECT * FROM waiting"),
        ("Yield by distance from the seeds", "SELECT * FROM yield"),
        (f"The {_BEST_HOSTS} hosts that gave most", f"SELECT * FROM hosts LIMIT {_BEST_HOSTS}"),  # noqa: S608 - a constant
        ("Segments", "SELECT kind, name, round(length_bytes / 1e6, 3) AS mb, entries FROM file ORDER BY kind, name"),
        ("What is kept of each URL", _TRAIL_SIZE),
        ("Last events", "SELECT datetime(time, 'unixepoch') AS time, what FROM event ORDER BY rowid DESC LIMIT 5"),
    ):
        rows = crawl.rows(query)
        if rows:
            yield from (title, *aligned_table(rows), "")
    strategy = parse(crawl.options.strategy)
    if isinstance(strategy, Heidix):
        rows = [{"sign": name, "weight": weight} for name, weight in strategy.weights(crawl.options).items()]
        yield from ("How much each sign of a good link counts, in log-odds; 0: off", *aligned_table(rows), "")


_TRAIL_SIZE = """
SELECT 'ends' AS what, coalesce(sum(length(keys)) / 8, 0) AS urls,
    coalesce(sum(length(keys) + length(ends)), 0) AS bytes FROM ended
UNION ALL SELECT 'found on', coalesce(sum(length(keys)) / 8, 0),
    coalesce(sum(length(keys) + length(pages)), 0) FROM found
"""


def of_host(crawl: Inspection, name: str, urls: bool) -> Iterator[str]:
    """One host: its record, how its URLs ended, and its queue; raises BadInput when it is unknown."""
    host = crawl.host(name)
    if host is None:
        raise BadInput(f"the crawl in {crawl.directory} knows no host {name}.")
    rate = host["kept_bytes"] / max(host["downloaded_bytes"], 1)
    ends = ", ".join(f"{reason} {number:,}" for reason, number in crawl.ends_of(host["id"]).most_common())
    yield from _lines(
        {
            "host": host["name"],
            "state": host["state"],
            "distance": host["distance"],
            "pages": f"{host['pages']:,}, {host['documents']:,} of them kept, {host['words']:,} words",
            "bytes": f"{host['downloaded_bytes']:,} down, {host['kept_bytes']:,} kept, yield rate {rate:.4f}",
            "address": host["address"] or "none yet",
            "due": _time(host["due"]),
            "waiting": f"{host['waiting']:,} URLs",
            "ends": ends or "none on record",
        }
    )
    for purge in crawl.purges_of(host["id"]):
        yield _line("given up", f"{purge['urls']:,} URLs at {_time(purge['time'])}: {purge['reason']}")
    if urls:
        rows = crawl.waiting(host["id"])
        yield ""
        columns = ("url", "rank", "tries", "parked")
        yield from aligned_table([{column: getattr(row, column) for column in columns} for row in rows])


def of_url(crawl: Inspection, story: Story) -> Iterator[str]:
    """Why a URL is in the corpus, waits, or is not in it."""
    host = story.host
    found = story.found
    no_page = "an unknown page" if found and found.page else "no page: a seed, or put in by hand"
    yield from _lines(
        {
            "url": story.url,
            "verdict": verdict(story),
            "host": f"{host['name']}, {host['state']}, distance {host['distance']}" if host else "",
            "found on": (story.page or no_page) if found else "",
            "found at": _time(found.time) if found else "",
            "rank": _rank(story.row.rank, story.row.tries) if story.row else "",
        }
    )
    if story.ended is not None:
        yield from _end_lines(crawl, story.ended)


def verdict(story: Story) -> str:
    """One sentence: what became of the URL, by its Reason if it has one."""
    if story.ended is not None and story.row is None:
        return _reason(story.ended.end.reason)
    if story.row is not None and story.row.parked and story.host is not None:
        return _reason(CLOSED_STATES[HostState(story.host["state"])].value) + "; it is parked with its host"
    if story.row is not None:
        return "it waits for its turn, or is being fetched"
    if story.purge is not None:
        return _reason(story.purge[1])
    if story.refusal is not None:
        return f"never accepted; a mention of it is refused: {_reason(story.refusal.value)}"
    return "never found" if story.found is None else "it ended; how is not on record (SPIDERLING_TRAIL)"


def _end_lines(crawl: Inspection, ended: Ended) -> Iterator[str]:
    end = ended.end
    is_kept = end.reason == Reason.KEPT.value
    yield from _lines(
        {
            "ended at": _time(ended.time),
            "rank": _rank(end.rank, end.tries),
            "answer": f"{end.status}, {end.body_bytes:,} bytes" if end.status else "",
            "because": end.detail,
            "text": f"{end.kept_bytes:,} bytes, {end.words:,} words, {end.language}" if is_kept else "",
        }
    )
    document = crawl.text_of(ended)
    if document is not None:
        yield _line("document", f"number {end.document} of the frame at byte {ended.offset} of {ended.segment}")
        yield ""
        yield from (_line(name, value) for name, value in document.attributes.items())
        yield ""
        yield from document.paragraphs


def _reason(key: str) -> str:
    return f"{key}: {Reason.of(key).help}"


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "never"


def _rank(rank: int, tries: int) -> str:
    return f"{rank} (0 is fetched first), {tries} failed attempts"


def _lines(values: Mapping[str, object]) -> Iterator[str]:
    """A line for each of *values* but the empty ones."""
    return (_line(name, value) for name, value in values.items() if value != "")


def _line(name: str, value: object) -> str:
    return f"{name:<11} {value}"
