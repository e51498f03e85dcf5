"""One crawl: opens its parts in order, accounts for finished requests, and closes the parts.

The scheduler opens it before anything else; other components find it through engine/component.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from spiderling import __version__, languages
from spiderling.archives.sources import is_url
from spiderling.base import media_types
from spiderling.base.addresses import AddressPolicy, addresses_of, read_host_list
from spiderling.base.errors import JobdirError, SpiderlingError
from spiderling.base.machine import StageTimes, steady_clock
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.outcome import Exchange, Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.duplicates import NO_HASHES, DigestSet, Hashes, ShingleState
from spiderling.corpus.links import LinkKind
from spiderling.corpus.segments import SUFFIX, SegmentKind, SegmentWriter
from spiderling.corpus.warc import WarcKind, verdict
from spiderling.crawl.budgets import Budgets
from spiderling.crawl.checkpoint import Checkpoint
from spiderling.crawl.internal_errors import InternalErrors
from spiderling.frontier import Fetch, Frontier, Report
from spiderling.frontier.core import Elsewhere
from spiderling.frontier.storage.protocol import SegmentRow, State
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.card import model_digests, seeds_digest, write_card
from spiderling.jobdir.coverage import read_lists
from spiderling.jobdir.directory import Jobdir, undo
from spiderling.jobdir.snapshots import Snapshots
from spiderling.jobdir.state_reader import OPTION_CHANGED, read_note
from spiderling.jobdir.takedown import taken_down
from spiderling.languages.registry import spell_out
from spiderling.text.steps import choose
from spiderling.workers.pool import WorkerPool

if TYPE_CHECKING:
    from spiderling.archives.archives import Archives  # needs FastWARC, and a crawl of the web does not
    from spiderling.items import PageItem
    from spiderling.text.listing import Listing

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 200_000_000  # compressed bytes at which a new segment is begun; chosen: a file copied in seconds
BATCH_URLS = 200  # URLs that the frontier takes in one turn of the event loop, in some milliseconds; chosen
_UNCHANGEABLE = ("lang", "dedup", "shards")
"""Options that a resumed crawl must not change: they have judged what is kept already, or whose hosts it asks."""


class Crawl:
    """An open crawl; ``close`` makes everything durable and releases the directory."""

    stopping = False  # whether the spider is being closed
    is_paused = False  # whether control.yaml says that nothing is asked for
    is_disk_full = False
    """Whether less than ``min_free_bytes`` are left, so that nothing is asked for, or taken from other shards."""
    snapshots: Snapshots | None = None  # what copies the crawl to where other machines reach it, if anything does
    workers: WorkerPool | None = None
    """The text workers; None: none run, since a user's pipeline stands for the first of ours."""
    coverage: Mapping[str, list[float] | None] = MappingProxyType({})
    """What was estimated last: "hosts", "pages" and "words" -> share, low and high."""
    others_work = False  # whether other shards of the crawl may still find URLs for this one
    processes = 1  # shards that run now, this one included
    done_elsewhere: Mapping[str, int] = MappingProxyType({})
    """What has to be added to the totals of this process to get those of all shards; empty without any."""

    def __init__(
        self,
        options: Options,
        directory: Path,
        fail: Callable[[SpiderlingError], None],
        archives: Sequence[str] | None = None,
        elsewhere: Callable[[SqliteStore], Elsewhere] | None = None,
    ) -> None:
        """Open or resume the crawl in *directory*; *fail* ends it when it cannot go on.

        *archives*: WARC files and URLs of such, whose pages it takes instead of fetching any.
        *elsewhere* makes what the frontier gives URLs to that belong to other shards.
        Raises BadInput, JobdirError or StorageError; nothing is left open then.
        """
        self.options = options
        self.opt_outs = options.policy()  # which statements on the use of a text are looked for, and which are obeyed
        self.fail = fail
        self.errors = InternalErrors(fail)
        self.accepted = languages.find_languages(options.lang, options.models)
        self._prefix = "+".join(info.code for info in self.accepted)
        self.recognised = languages.to_recognise(self.accepted, options.recognise, options.models)
        is_offline = archives is not None and not any(map(is_url, archives))
        self.addresses = addresses_of(options, is_offline)  # addresses that may be connected to
        judged = AddressPolicy(options.allow_networks) if is_offline else self.addresses
        self._only = read_host_list(options.only_hosts, f"{PREFIX}ONLY_HOSTS (-a hosts=)")
        """The only hosts whose pages are wanted; empty: all."""
        self._blocked = read_host_list(options.block, f"{PREFIX}BLOCK")
        self.text_steps = choose(self.options.compiled).words
        """Which steps the text workers run, compiled ones or Python's, and why."""
        with ExitStack() as opened:
            self.jobdir = Jobdir(directory)
            opened.callback(self.jobdir.close)
            moves = options.surplus == "aside" or options.durability == "normal"  # then a power cut undoes commits
            make_agree = self.jobdir.judge(self._prefix, moves)
            if options.snapshots:
                self.snapshots = Snapshots(Path(options.snapshots), directory, elsewhere is not None, fail)
            store = SqliteStore(self.jobdir.database, synced=options.durability == "full", writes=False)
            opened.callback(store.close)
            state = store.load()
            self.is_resumed = bool(state.meta)
            changed = compare_options(options, state.meta, directory, archives is not None)
            self._take_up(state, store, judged, elsewhere)
            settled, writers = self._begin_writing(store, make_agree, state.segments)
            self.checkpoint = Checkpoint(self.frontier, store, writers, self.now, fail, self.jobdir.still_here)
            opened.pop_all()  # from here on ``close`` does it
        self.errors.begin_noting(self.frontier, self.checkpoint, state.meta)
        self.archives = self._open_archives(archives, judged, state) if archives is not None else None
        """The archives that the pages come from; None: they come from the web."""
        self._note_manifest(state, changed, settled)

    def _take_up(
        self,
        state: State,
        store: SqliteStore,
        judged: AddressPolicy,
        elsewhere: Callable[[SqliteStore], Elsewhere] | None,
    ) -> None:
        """Make the parts that hold what earlier runs have found."""
        self.now = steady_clock()
        """Seconds since 1970, which never go back: the time of all that the crawl plans and notes."""
        self.page_lists = read_lists(self.options.coverage_lists)  # pages by which coverage is estimated
        self.codes = frozenset(info.code for info in self.accepted)
        self.budgets = Budgets(self.options, read_note(state.meta, "marginal", list[tuple[int, int]]()))
        self._on_their_way: dict[int, int] = {}
        """Words of documents that are made, until their pages are accounted for: Scrapy has other tasks between."""
        self.times = StageTimes()
        self.known_digests = DigestSet(state.digests)  # digests of kept pages and texts; pipeline 400 adds to it
        self.documents = media_types.parse(self.options.documents)  # the kinds that are wanted
        spelled = spell_out(self.options, self.accepted, self.documents)
        self._others = None if elsewhere is None else elsewhere(store)
        self.frontier = Frontier(spelled, judged.allows, store, failed_on=self.errors.note, elsewhere=self._others)
        if self._only:
            self.frontier.crawl_only(self._only.holds)
        self.taken_down = taken_down(state.meta)
        self.frontier.leave_out(self.taken_down)
        self.frontier.host_closing.block_where(self.is_blocked)
        if not self.jobdir.is_new:  # in a new directory nobody was asked before, so no interval has to pass first
            self.frontier.restore(state, self.now())
        self.frontier.host_closing.block_where(self.is_blocked)
        if self.frontier.recrawl.is_on:
            self.frontier.recrawl.begin(self.now())
        self.requests_before = self.frontier.ledger.totals["requests"]
        lengths = {row.name: row.length_bytes for row in state.segments if row.kind == "corpus"}
        self._shingles = ShingleState(self.jobdir.state / "shingles", self.options.filter_bytes())
        self.near = self._shingles.load(self.options, self.jobdir.corpus, lengths)
        """What knows near-duplicates; None when the crawl does not look for them."""

    def _begin_writing(
        self, store: SqliteStore, make_agree: Callable[[], list[str]], known: Sequence[SegmentRow]
    ) -> tuple[list[str], list[SegmentWriter]]:
        """Change files for the first time, since the state is usable; says what was done to make them agree."""
        settled = make_agree()
        store.begin_writing(self.jobdir.database)
        writers = _writers(self.options, self._prefix, self.jobdir.path, known)
        self.jobdir.sync_names()
        return settled, writers

    def _open_archives(self, sources: Sequence[str], judged: AddressPolicy, state: State) -> Archives:
        # a crawl of the web does not need FastWARC
        from spiderling.archives.archives import Archives, CrawlSide

        side = CrawlSide(
            self.frontier.archive_pages,
            self.documents,
            judged.allows,
            state.meta,
            self.checkpoint.set_meta,
            self.finish,
            self.has_room,
            self.now,
        )
        return Archives(sources, self.options, side)

    @property
    def is_held(self) -> bool:
        """Whether nothing is asked for: control.yaml pauses the crawl, or its disk is nearly full."""
        return self.is_paused or self.is_disk_full

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, here and in other shards."""
        if self.archives is not None:  # what waits there, as after --rebuild, is never asked for
            return not self.frontier.ledger.in_transit
        return self.frontier.is_finished and not self.others_work and not self.frontier.recrawl.goes_on(self.now())

    def is_blocked(self, name: str) -> bool:
        """Whether the user never wants the host *name* to be asked, or took it down; control.yaml may name more."""
        return self._blocked.holds(name) or self.taken_down.holds_host(name)

    def totals(self) -> Mapping[str, int]:
        """The totals that the budgets bound: those of all shards."""
        own = self.frontier.ledger.totals
        if not self.done_elsewhere:
            return own
        return {name: own[name] + number for name, number in self.done_elsewhere.items()}

    def has_room(self, in_work: int) -> bool:
        """Whether the budgets leave room for another page beside those *in_work*, and as many of each other shard."""
        return self.budgets.has_room(self.totals(), in_work * self.processes)

    def may_keep(self, item: PageItem, words: int) -> bool:
        """Whether the budgets allow one more document: that of *item*, with so many *words*.

        If so, it counts at once, until the page ends (`finish`, `forget`).
        """
        if not self.budgets.takes_documents(self.totals(), self._on_their_way.values()):
            return False
        self._on_their_way[id(item)] = words
        return True

    async def snapshot(self, is_last: bool = False) -> None:
        """Write what knows near-duplicates, if anything does, to disk while the crawl goes on; raises StorageError."""
        if self.near is not None:
            await self._shingles.write(self.near.filter, self.checkpoint.flush, self.checkpoint.lengths, is_last)

    def finish(self, outcome: Outcome, item: PageItem | None = None) -> Report:
        """Account for a finished request: the frontier learns of it, the checkpoint takes what it leaves.

        If there was a page (*item*), its text is known from now on if it is kept.  If it is not, the text is forgotten,
        so that no later page is its duplicate.
        """
        report = Report(None)
        with self.errors.changing(outcome.url, outcome.url_id):
            now = self.now()
            report = self.frontier.report(outcome if self.archives is None else self.archives.settle(outcome), now)
            if outcome.reason is not Reason.KEPT and item is not None:
                self.forget(item)
            elif item is not None:
                self._on_their_way.pop(id(item), None)
                self.known_digests.keep(outcome.digests)
                new = NO_HASHES if self.near is None else self.near.settle(id(item), kept=True)
                if self._others is not None and outcome.digests:
                    self._others.tell_kept(outcome.digests, new)
            if report.end is not None and self.options.links == "on":
                self.checkpoint.add_entry("links", (outcome, report.end, now))
            if outcome.exchange is not None:
                self.archive(outcome.exchange, verdict(outcome))
            self.checkpoint.add_outcome(outcome)
        return report

    def learn(self, digests: Sequence[int], paragraphs: Hashes) -> None:
        """Another shard has kept documents with these: they are duplicates here, but for pages in work."""
        self.known_digests.keep(digests)
        self.checkpoint.add_digests(digests)
        if self.near is not None:
            self.near.learn(paragraphs)

    async def take_listing(self, fetch: Fetch, listing: Listing) -> str:
        """Give the frontier those URLs of a sitemap or feed that may be used, and say how many.

        It takes several turns of the event loop.  After a kill the file is read again.
        """
        sitemaps = self.frontier.sitemaps
        refused = {number for number, said in listing.said.items() if self.opt_outs.binding(said) is not None}
        entries = [entry for number, entry in enumerate(listing.entries) if number not in refused]
        with self.errors.changing(fetch.url, fetch.id):
            if listing.is_index:
                sitemaps.put_files(fetch, [url for url, _ in entries], self.now())
            else:
                for start in range(0, len(entries), BATCH_URLS):
                    sitemaps.put_urls(fetch, entries[start : start + BATCH_URLS], self.now())
                    await asyncio.sleep(0)
            sitemaps.left_out(listing.left_out)
            sitemaps.opted_out(len(refused))
        opted_out = f", {len(refused)} opted out" if refused else ""
        return f"{len(entries)} {'sitemaps' if listing.is_index else 'URLs'}{opted_out}"

    def forget(self, item: PageItem) -> None:
        """Forget the text of a page that was judged and is not kept."""
        self._on_their_way.pop(id(item), None)
        self.known_digests.difference_update(item.digests)
        if self.near is not None:
            self.near.settle(id(item), kept=False)

    def archive(self, exchange: Exchange | None, said: Mapping[str, object]) -> None:
        """Write *exchange*, if it was kept, with the metadata *said*, in one checkpoint with the next outcome."""
        if exchange is not None:
            self.checkpoint.add_entry("warc", (exchange, said))

    def note_event(self, what: str) -> None:
        """Log something that a person did or should know, and keep it in the state."""
        logger.info(what)
        self.frontier.note_event(self.now(), what)

    async def close(self) -> None:
        """Make everything durable; raises StorageError if that is impossible."""
        self.stopping = True
        if self.snapshots is not None:
            self.snapshots.stop()
        self.frontier.recrawl.stop()
        try:
            await self.snapshot(is_last=True)
        finally:
            try:
                await self.checkpoint.close()
                await self._write_card()
            finally:
                if self.checkpoint.error is not None:
                    undo(self.jobdir.path, self.jobdir.database, self._prefix)
                self.jobdir.close()

    async def _write_card(self) -> None:
        """Write the card of the corpus; each end of the crawl writes it anew."""
        if self.checkpoint.lengths:
            try:
                await asyncio.get_running_loop().run_in_executor(None, write_card, self.jobdir.path)
            except (SpiderlingError, OSError) as error:
                logger.warning("The card of the corpus is not up to date: %s", error)

    def note_seeds(self, where: str, urls: Sequence[str]) -> None:
        """Keep for the card of the corpus which seeds the crawl was given."""
        said = {"from": where, "number": len(urls), "sha256": seeds_digest(urls)}
        if said not in self._seeds:
            self._seeds.append(said)
            self.checkpoint.set_meta("seeds", self._seeds)

    def _note_manifest(self, state: State, changed: list[str], settled: list[str]) -> None:
        self._seeds = read_note(state.meta, "seeds", list[dict[str, object]]())
        manifest: dict[str, object] = {
            "options": self.options.on_record(),
            "version": __version__,
            "text_steps": self.text_steps,
            "models": model_digests(self.accepted),
            "from_archives": self.archives is not None,
            "purposes": sorted({*read_note(state.meta, "purposes", list[str]()), self.options.purpose}),
        }
        if "created" not in state.meta:
            manifest["created"] = self.now()
        for key, value in manifest.items():
            self.checkpoint.set_meta(key, value)
        for what in (*(f"{OPTION_CHANGED}{line}" for line in changed), *settled):
            self.note_event(what)


def _writers(options: Options, prefix: str, directory: Path, known: Sequence[SegmentRow]) -> list[SegmentWriter]:
    """The writers of the crawl in *directory*, that of the corpus first; *prefix* begins the names of its segments.

    A kind that is off now, but has *known* segments, gets a writer as well.  Raises StorageError.
    """
    about = {"operator": options.contact, "robots": "obey", "isPartOf": directory.absolute().name}
    kinds: dict[SegmentKind, bool] = {
        SegmentKind("corpus", SUFFIX): True,
        LinkKind(): options.links == "on",
        WarcKind(options.warc, about): options.warc != "off",
    }
    writers = []
    for kind, is_on in kinds.items():
        if is_on or any(row.kind == kind.name for row in known):
            (directory / kind.name).mkdir(exist_ok=True)
            writers.append(SegmentWriter(directory / kind.name, prefix, SEGMENT_BYTES, known, kind))
    return writers


def compare_options(options: Options, meta: Mapping[str, str], directory: Path, from_archives: bool) -> list[str]:
    """A line 'name: old -> new' for each option that has changed; raises JobdirError for one that must not."""
    if meta and from_archives != read_note(meta, "from_archives", from_archives):
        kinds = ("the web", "archives")
        raise JobdirError(
            f"the corpus in {directory} was begun from {kinds[not from_archives]}, not from {kinds[from_archives]}. "
            "Give another directory with -s JOBDIR=..."
        )
    former = read_note(meta, "options", dict[str, object]())
    lines = []
    for name, value in options.on_record().items():
        old = former.get(name, value)
        if old == value:
            continue
        if name in _UNCHANGEABLE:
            raise JobdirError(
                f"the crawl in {directory} was begun with {PREFIX}{name.upper()}={old!r}, not {value!r}. "
                "Resume it with the same value, or begin another with -s JOBDIR=..."
            )
        lines.append(f"{PREFIX}{name.upper()}: {old!r} -> {value!r}")
    return lines
