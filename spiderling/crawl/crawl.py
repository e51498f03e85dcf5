"""One crawl, assembled: options, languages, directory, store, frontier, checkpoint.

The scheduler opens it before anything else and every other component finds it there
(``engine.component.crawl_of``).  ``finish`` is the one way in which a finished request is accounted for.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spiderling import __version__, languages, signals
from spiderling.archives.sources import is_url
from spiderling.base import media_types
from spiderling.base.addresses import AddressPolicy
from spiderling.base.atomic_files import sync_directory
from spiderling.base.clock import Clock
from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.host_lists import HostList, read_host_list
from spiderling.base.option_values import PREFIX, parse_tlds
from spiderling.base.options import Options
from spiderling.corpus.near_duplicates import NearDuplicates
from spiderling.corpus.shingle_snapshot import ShingleState
from spiderling.corpus.warc import verdict
from spiderling.crawl.budgets import Budgets
from spiderling.crawl.checkpoint import Checkpoint
from spiderling.crawl.internal_errors import InternalErrors
from spiderling.crawl.outputs import writers_of
from spiderling.crawl.resume import _compare_options
from spiderling.frontier import Frontier, Report
from spiderling.frontier.storage.protocol import State
from spiderling.frontier.storage.seen import DigestSet
from spiderling.frontier.storage.soundness import noted
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.card import model_digests, seeds_digest, write_card
from spiderling.jobdir.directory import Jobdir
from spiderling.jobdir.surplus import undo
from spiderling.workers.converter import usable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from scrapy.crawler import Crawler

    from spiderling.archives.archives import Archives
    from spiderling.base.outcome import Exchange, Outcome
    from spiderling.corpus.shingle_filter import ShingleFilter
    from spiderling.languages import LanguageInfo

logger = logging.getLogger(__name__)

_CONTACT = re.compile(r"[!-~]+@[!-~]+\.[!-~]+|https?://[!-~]+")


class Crawl:
    """An open crawl; ``close`` makes everything durable and releases the directory."""

    def __init__(
        self, options: Options, directory: Path, failed: Callable[[SpiderlingError], None],
        archives: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Open or resume the crawl in *directory*; *failed* is called when it cannot go on.

        *archives*: WARC files and URLs of such, whose pages it takes instead of fetching any.
        Raises BadInput, JobdirError or StorageError; nothing is left open then.
        """
        self.options = options
        self.opt_outs = options.policy()
        """Which statements on the use of a text are looked for, and which are obeyed."""
        self.failed = failed
        self.errors = InternalErrors(failed)
        self.clock = Clock()
        self.accepted: list[LanguageInfo] = languages.resolve(options.lang, options.models)
        self.codes = frozenset(info.code for info in self.accepted)
        self.recognised = languages.to_recognise(self.accepted, options.recognise, options.models)
        is_offline = archives is not None and not any(map(is_url, archives))
        if not is_offline:
            _check_contact(options)
        self.addresses = AddressPolicy.parse(options.allow_networks, public=bool(options.contact))
        """Addresses that may be connected to."""
        judged = AddressPolicy.parse(options.allow_networks) if is_offline else self.addresses
        only = read_host_list(options.only_hosts, f"{PREFIX}ONLY_HOSTS (-a hosts=)")
        self.blocked = read_host_list(options.block, f"{PREFIX}BLOCK")
        """Hosts that the user never wants to be asked; control.yaml may name more."""
        with ExitStack() as opened:
            self.jobdir = Jobdir(directory)
            opened.callback(self.jobdir.close)
            file = self.jobdir.judge(self._prefix, options.surplus == "aside")
            store = SqliteStore(file, synced=options.durability == "full", writes=False)
            opened.callback(store.close)
            state = store.load()
            self.is_resumed = bool(state.meta)
            changed = _compare_options(options, state.meta, directory, archives is not None)
            self.known_digests = DigestSet(state.digests)
            """Digests of kept pages and texts; pipeline 400 adds to it."""
            self.documents = self._usable_documents()
            """The kinds of documents that are wanted and can be read here."""
            spelled = spelled_out(options, self.accepted, self.documents)
            self.frontier = Frontier(spelled, judged.allows, store, failed_on=self.errors.note)
            self._restore(state, only)
            self.near = self._open_near(state)
            """What knows near-duplicates; None when the crawl does not look for them."""
            settled = self._begin_writing(store)
            corpus, *rest = writers_of(options, self._prefix, self.jobdir.path, state.segments)
            opened.pop_all()  # from here on ``close`` does it
        self.checkpoint = Checkpoint(
            self.frontier, store, corpus, options.checkpoint_pages, self.clock.now, failed, rest, self.jobdir.still_here
        )
        self.errors.attach(self.frontier, self.checkpoint, state.meta)
        self.archives = self._open_archives(archives, judged, state) if archives is not None else None
        """What the pages come from; None: from the web."""
        self.budgets = Budgets(options, noted(state.meta, "marginal", list[tuple[int, int]]()))
        self._note_manifest(state, changed, settled)
        self.requests_before = self.frontier.totals["requests"]
        self.stopping = False

    @property
    def _prefix(self) -> str:
        return "+".join(info.code for info in self.accepted)

    def _begin_writing(self, store: SqliteStore) -> list[str]:
        """The state is usable, and from here on files are changed; what was done to make them agree."""
        settled = self.jobdir.settle()
        store.begin_writing(self.jobdir.database)
        if self.options.durability == "full":  # the names of the crawl's directories survive a power cut then
            path = self.jobdir.path
            for directory in (path.absolute().parent, path, self.jobdir.state, self.jobdir.corpus):
                sync_directory(directory)
        return settled

    def _restore(self, state: State, only: HostList) -> None:
        """The frontier takes up *state*; *only*: the hosts that are wanted, if there are any.

        In a new directory nobody can have been asked before, so no interval is waited for.
        """
        if only:
            self.frontier.crawl_only(only.holds)
        self.frontier.block_where(self.blocked.holds)
        if not self.jobdir.is_new:
            self.frontier.restore(state, self.clock.now())
        self.frontier.block_where(self.blocked.holds)

    def _open_archives(self, sources: Sequence[str], judged: AddressPolicy, state: State) -> Archives:
        from spiderling.archives.archives import open_archives  # it needs FastWARC, which no crawl of the web does

        captures = self.frontier.archive_pages
        archives = open_archives(sources, self.options, self.documents, captures, judged.allows, state.meta)
        archives.attach(self.checkpoint.note, self.finish, self.clock.now)
        return archives

    def _usable_documents(self) -> frozenset[str]:
        """What ``documents`` holds; a warning for each kind that cannot be read."""
        documents, notices = usable(media_types.parse(self.options.documents))
        for notice in notices:
            logger.warning(notice)
        return documents

    def _open_near(self, state: State) -> NearDuplicates | None:
        self._shingles = ShingleState(self.jobdir.state / "shingles", self.options.filter_bytes())
        if not self.options.knows_shingles():
            return None
        lengths = {row.name: row.length_bytes for row in state.segments if row.kind == "corpus"}
        seen = self._shingles.load_filter(self.jobdir.corpus, lengths)
        corpora = [path.strip() for path in self.options.seen.split(",") if path.strip()]
        documents = self._shingles.load_corpora(seen, corpora)
        if documents:
            logger.info("%d documents of earlier corpora are known: what they hold is not new", documents)
        return NearDuplicates(seen)

    async def snapshot(self) -> None:
        """Write the near-duplicate filter to disk while the crawl goes on; raises StorageError.

        One at a time, for they write the same files; its thread ends even if the caller is cancelled, so it counts
        until then.
        """
        if self.near is not None:
            await asyncio.shield(self._write_snapshot(self.near.filter))

    async def _write_snapshot(self, seen: ShingleFilter, is_last: bool = False) -> None:
        async with self._shingles.one_at_a_time:
            if self._shingles.is_last_written:
                return
            self._shingles.is_last_written = is_last
            await self.checkpoint.flush()  # what is not covered is read again at a start, and counted again
            covered, loop = dict(self.checkpoint.lengths), asyncio.get_running_loop()
            entries = await loop.run_in_executor(None, self._shingles.write_layers, seen)
            await self.checkpoint.flush()  # the layers may hold documents that came while they were written
            self._shingles.write_index(seen, entries, covered)

    @property
    def is_finished(self) -> bool:
        return self.frontier.is_finished

    def finish(self, outcome: Outcome) -> Report:
        """Account for a finished request: the frontier learns of it, the checkpoint takes what it leaves."""
        report = Report(None)
        with self.errors.changing(outcome.url, outcome.url_id):
            now = self.clock.now()
            report = self.frontier.report(outcome if self.archives is None else self.archives.settle(outcome), now)
            self.known_digests.keep(outcome.digests)
            if report.end is not None and self.options.links == "on":
                self.checkpoint.put("links", (outcome, report.end, now))
            if outcome.exchange is not None:
                self.archive(outcome.exchange, verdict(outcome))
            self.checkpoint.add(outcome)
        return report

    def archive(self, exchange: Exchange | None, said: Mapping[str, object]) -> None:
        """Write *exchange*, if it was kept, with what is *said* of it, in one checkpoint with the next outcome."""
        if exchange is not None:
            self.checkpoint.put("warc", (exchange, said))

    def event(self, what: str) -> None:
        """Log something that a person did or should know, and keep it in the state."""
        logger.info(what)
        self.frontier.note_event(self.clock.now(), what)

    async def close(self) -> None:
        """Make everything durable; raises StorageError if that is impossible."""
        try:
            if self.near is not None:
                await self._write_snapshot(self.near.filter, is_last=True)
        finally:
            try:
                await self.checkpoint.close()
                await self._write_card()
            finally:
                if self.checkpoint.error is not None:
                    undo(self.jobdir.path, self.jobdir.database, self._prefix)
                self.jobdir.close()

    async def _write_card(self) -> None:
        """What is in the corpus, for whoever gets it; the next end of the crawl writes it anew."""
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
            self.checkpoint.note("seeds", self._seeds)

    def _note_manifest(self, state: State, changed: list[str], settled: list[str]) -> None:
        note = self.checkpoint.note
        note("options", asdict(self.options))
        note("version", __version__)
        note("models", model_digests(self.accepted))
        self._seeds: list[dict[str, object]] = noted(state.meta, "seeds", list[dict[str, object]]())
        note("from_archives", self.archives is not None)
        note("purposes", sorted({*noted(state.meta, "purposes", list[str]()), self.options.purpose}))
        if "created" not in state.meta:
            note("created", self.clock.now())
        for what in (*(f"option changed: {line}" for line in changed), *settled):
            self.event(what)


def spelled_out(options: Options, accepted: Sequence[LanguageInfo], documents: Iterable[str]) -> Options:
    """The options as the frontier takes them: languages' codes and top-level domains, usable kinds of documents."""
    national = [tld for info in accepted for tld in info.tlds]
    if "national" in options.tlds and not national:
        raise BadInput(
            f"{PREFIX}TLDS is {options.tlds!r}, but the model of {options.lang} names no national top-level "
            "domain; write them, such as -a tlds=cz,sk."
        )
    only = parse_tlds(options.tlds, "TLDS", national)
    first = parse_tlds(options.prefer_tlds, "PREFER_TLDS", national) or ()
    return replace(
        options,
        lang=",".join(info.code for info in accepted),
        documents=",".join(sorted(documents)),
        tlds="all" if only is None else ",".join(sorted(only)),
        prefer_tlds=",".join(sorted(first)),
    )


def send_retired(crawler: Crawler, report: Report) -> None:
    """Tell extensions and the log which hosts a report retired."""
    for host in report.retired:
        account = host.account
        logger.info(
            "Retired %s: yield rate %.4f after %d pages, %.2f MB",
            host.name, account.rate, account.pages, account.downloaded_bytes / 1e6,
        )  # fmt: skip
        crawler.signals.send_catch_log(signals.host_retired, host=host, spider=crawler.spider)


def log_reopened(crawl: Crawl) -> None:
    """Tell the log which retired hosts go on because the web ran dry."""
    for host in crawl.frontier.take_reopened():
        logger.info("Reopened %s, %d URLs: too few hosts are at work", host.name, host.queued)


def _check_contact(options: Options) -> None:
    """Raises BadInput for a crawl of public addresses that does not say whose it is."""
    if options.contact and not _CONTACT.fullmatch(options.contact):
        raise BadInput(
            f"SPIDERLING_CONTACT is {options.contact!r}; it must be an e-mail address or the URL of a page that "
            "says who crawls and how to reach them."
        )
    if not options.contact and not options.allow_networks:
        raise BadInput(
            "no contact is given, and a crawl of public addresses must say whose it is: set SPIDERLING_CONTACT "
            "to an e-mail address or URL (-s SPIDERLING_CONTACT=me@example.org)."
        )
