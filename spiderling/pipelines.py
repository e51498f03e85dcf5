"""Our pipelines, in the order in which a page passes them; each drops what it refuses with its Reason.

    100  CleanPipeline     a text worker reads the page; what page and site say about its use is obeyed
    200  LanguagePipeline  language
    300  QualityPipeline   too little text, text that is not sentences, or machine translation
    400  DedupPipeline     only new text is kept and counts as yield
    500  CorpusPipeline    the document is rendered

Opt-outs count before the text is judged: a page that refuses ends as noindex or opted-out whatever its text is, and its
links are not followed if it says so.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

import numpy as np
import xxhash
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from spiderling.base.errors import SpiderlingError
from spiderling.base.opt_outs import TRAINING, UNKNOWN, Follow, OptOutPolicy, RslFile, Signal, Statement, together
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize_again, top_level_domain
from spiderling.corpus.duplicates import Flags, digest_key
from spiderling.crawl.crawl import Crawl
from spiderling.engine import outcomes
from spiderling.engine.component import Component
from spiderling.engine.outcomes import DropPage, PutBack, text_key, value_of
from spiderling.engine.scheduler import FAILED_STAT
from spiderling.frontier import MAX_LICENCES, Revisit
from spiderling.items import CAPTURED, PageItem, register_pages
from spiderling.text import Page, kept_language, measure_clean
from spiderling.text.fingerprints import MAX_PARAGRAPHS, known_again, pack
from spiderling.text.html.links import join
from spiderling.text.optout import licences, page_statements
from spiderling.text.prevertical import render_attributes
from spiderling.text.quality import GOOGLE, parse_quality
from spiderling.workers.pool import Task, WorkerConfig, WorkerCrash, WorkerPool
from spiderling.workers.process import PAGE_TIMEOUT_S

logger = logging.getLogger(__name__)

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
MIN_LANGUAGE_SHARE = 0.5  # share of a document's clean text that must be in an accepted language: most of it
_MIN_NEW_BYTES = 40
"""UTF-8 bytes of new text below which a later version has nothing new; chosen: dates and counters are shorter."""
_TIME = "%Y-%m-%d %H:%M:%S"
RSL_ATTRIBUTION = "attribution (RSL)"
"""What a document has as its licence whose page has no other one, but a licence by RSL for attribution."""


class CleanPipeline(Component):
    """Sets ``item.page`` and ``item.language`` by a text worker; drops pages without running text.

    What page and site say about the use of the text is obeyed first.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._workers: WorkerPool | None = None

    async def open_spider(self) -> None:
        """Start the workers in the background; a crawl of archives waits for them.

        If one cannot be started (a model is damaged), the crawl stops: by CloseSpider from here, or by `Crawl.fail`.
        """
        if not self.has_crawl:
            return
        crawl = self.crawl
        options = crawl.options
        accepted = [info.code for info in crawl.accepted]
        try:
            config = WorkerConfig.from_options(options, accepted, tuple(crawl.recognised), _wants_links(crawl))
            number = options.text_workers(from_archives=crawl.archives is not None)
            self._workers = crawl.workers = WorkerPool(number, config, PAGE_TIMEOUT_S)
            if crawl.archives is None:
                self._workers.start_in_background(crawl.fail)
            else:
                await self._workers.start()
        except SpiderlingError as error:
            # not by `Crawl.fail`, which would close the spider while it is being opened
            logger.error("The crawl stops: %s", error)
            self._crawler.stats.set_value(FAILED_STAT, "bad-input")
            raise CloseSpider("bad-input") from None

    async def close_spider(self) -> None:
        if self._workers is not None:
            await self._workers.stop()

    async def process_item(self, item: Any) -> Any:
        """Fill ``item.page``; raises DropPage with WORKER_CRASH, or a reason of `obey_opt_outs` or `check_text`.

        If no worker can be had, stops the crawl and raises PutBack; for archives raises the SpiderlingError.
        """
        if not isinstance(item, PageItem) or self._workers is None:
            return item
        response = item.response
        crawl = self.crawl
        began = time.monotonic()
        try:
            item.page = await self._workers.process(task_of(response))
        except WorkerCrash as error:
            raise DropPage(Reason.WORKER_CRASH, str(error)) from error
        except SpiderlingError as error:
            if crawl.archives is not None:
                raise
            if not crawl.stopping:
                crawl.fail(error)
            raise PutBack(str(error)) from None
        crawl.times.text.add(time.monotonic() - began)
        obey_opt_outs(item, crawl)
        check_text(item.page)
        item.language = item.page.language
        return item


def _wants_links(crawl: Crawl) -> bool:
    """Whether anything is done with the links of a page; those in archives are not followed."""
    return crawl.archives is None or crawl.options.links == "on" or crawl.frontier.strategy.weight(1) > 0


def check_text(page: Page) -> None:
    """Raise DropPage(UNDECODABLE, NEEDS_SCRIPT, SCANNED or BOILERPLATE_ONLY) for a page without running text."""
    if page.encoding_detected is None:
        raise DropPage(Reason.UNDECODABLE)
    if page.needs_script:
        raise DropPage(Reason.NEEDS_SCRIPT)
    if page.file_type != "html" and not page.paragraphs:
        raise DropPage(Reason.SCANNED)
    if not page.has_text:
        raise DropPage(Reason.BOILERPLATE_ONLY)


def task_of(response: Response) -> Task:
    """The page in *response*, and what its headers say of the encoding and of where it leads to."""
    match = _CHARSET.search(value_of(response.headers, b"Content-Type"))
    charset = match[1].decode("ascii") if match else None
    refresh = value_of(response.headers, b"Refresh")
    return Task(response.body, response.url, charset, outcomes.escape(refresh) if refresh else "")


def obey_opt_outs(item: PageItem, crawl: Crawl) -> None:
    """Set ``item.statements`` and ``item.follow``; raises DropPage(SITE_OPTED_OUT, NOINDEX or OPTED_OUT)."""
    assert item.page is not None
    policy = crawl.opt_outs
    response = item.response
    headers = outcomes.headers_of(response)
    said = page_statements(headers, item.page.meta, crawl.options, crawl.now())
    item.statements = [statement for statement in said if policy.sees(statement.signal)] if said else []
    item.follow = follow(item.statements, policy)
    of_site = crawl.frontier.robots.statements_of(response.url)
    if policy.sees(Signal.RSL):
        item.statements += licence_statements(item, headers, crawl)
    if not (of_site or item.statements):
        return
    item.statements = together(of_site, item.statements)
    if not item.page.licence and any(map(owes_attribution, item.statements)):
        item.page.licence = RSL_ATTRIBUTION
    check_opt_outs(item.statements, policy)


def owes_attribution(said: Statement) -> bool:
    """Whether a licence by RSL asks for attribution."""
    return said.signal is Signal.RSL and said.detail.partition("=")[0] == "attribution"


def licence_statements(item: PageItem, headers: Sequence[tuple[str, str]], crawl: Crawl) -> list[Statement]:
    """What the licences by RSL that the page names, or that stand in it, say of it.

    Raises PutBack if one has to be fetched first, and then the page again; for archives, which fetch nothing, its terms
    are unknown.
    """
    assert item.page is not None
    url = item.response.url
    linked, inline = licences(headers, item.page.meta)
    found: list[Statement] = []
    if linked and crawl.archives is None:
        addresses = [join(url, address) or "" for address in linked[:MAX_LICENCES]]
        said = crawl.frontier.robots.licences.of_page(url, addresses, crawl.now())
        if said is None:
            raise PutBack(f"{url} waits for its licences {' '.join(addresses)}")
        found += said
    elif linked:
        found.append(Statement(Signal.RSL, UNKNOWN, TRAINING))
    target = canonicalize_again(url) if inline else None
    for text in inline[:MAX_LICENCES]:
        found += RslFile(text.encode()).statements(url, target.path if target else "/")
    return found


def follow(statements: Sequence[Statement], policy: OptOutPolicy) -> Follow:
    """Which links of a page may be followed."""
    if statements and policy.obeys(Signal.NOFOLLOW) and Signal.NOFOLLOW in {said.signal for said in statements}:
        return Follow.NONE
    return Follow.UNMARKED if policy.obeys(Signal.REL_NOFOLLOW) else Follow.ALL


def check_opt_outs(statements: Iterable[Statement], policy: OptOutPolicy) -> None:
    """Raise DropPage(NOINDEX or OPTED_OUT) if by *policy* one of *statements* binds the crawl."""
    binding = policy.binding(statements)
    if binding is not None:
        raise DropPage(outcomes.end_by(binding), str(binding))


class PagePipeline(Component):
    """Judges or fills PageItems; other items, from spiders of users, pass unchanged."""

    def process_item(self, item: Any) -> Any:
        if isinstance(item, PageItem) and item.page is not None:
            self.process_page(item, item.page)
        return item

    def process_page(self, item: PageItem, page: Page) -> None:
        """Judge or fill *item*, whose ``page`` is *page*; raises DropPage to drop it."""
        raise NotImplementedError


class LanguagePipeline(PagePipeline):
    """Drops pages that are not in an accepted language, or have too small a known share in it."""

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(WRONG_LANGUAGE)."""
        item.language = None  # of a page that is dropped
        check_language(page, self.crawl.codes, self.crawl.options)
        item.language = page.language


def check_language(page: Page, accepted: Collection[str], options: Options) -> None:
    """Raise DropPage(WRONG_LANGUAGE) for a page whose text is not in an *accepted* language (codes)."""
    share = sum(map(page.languages.get, accepted, repeat(0.0)))
    if page.language not in accepted or share < MIN_LANGUAGE_SHARE or page.known_share < options.min_known_share:
        raise DropPage(Reason.WRONG_LANGUAGE, f"{page.language} (known share {page.known_share:.2f})")


class QualityPipeline(PagePipeline):
    """Drops pages with too little text, text that is not sentences, or machine translation."""

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(BAD_QUALITY)."""
        check_quality(page, self.crawl.options)


def check_quality(page: Page, options: Options) -> None:
    """Raise DropPage(BAD_QUALITY) for a page outside of a limit, or translated by machine if that is refused."""
    limits = parse_quality(options.quality)
    found = page.quality
    for measure, value, limit in (
        ("only {:.0f} bytes of page", page.utf8_bytes, limits.page_bytes),
        ("only {:.0f} characters of clean text", page.clean_chars, limits.text_chars),
        ("badness {:.1f}", page.badness, limits.badness),
        ("stop words: {:.2f}", found.stopword_share, limits.stopword_share),
        ("words a sentence: {:.2f}", found.sentence_words, limits.sentence_words),
        ("repeated: {:.2f}", found.repeated_share, limits.repeated_share),
        ("digits: {:.2f}", found.digit_share, limits.digit_share),
        ("symbols: {:.2f}", found.symbol_share, limits.symbol_share),
        ("in good paragraphs: {:.2f}", found.good_share, limits.good_share),
        ("packed: {:.2f}", found.packed_share, limits.packed_share),
        ("of one word: {:.2f}", found.top_word_share, limits.top_word_share),
        ("links to other hosts in a kB: {:.2f}", found.outlinks, limits.outlinks),
    ):
        if not limit.low <= value <= limit.high:
            said = measure if value < limit.low else measure.removeprefix("only ")
            raise DropPage(Reason.BAD_QUALITY, said.format(value))
    if found.translated == GOOGLE:  # other marks may stand on pages in their own language
        raise DropPage(Reason.BAD_QUALITY, f"translated by machine: {found.translated}")


class DedupPipeline(PagePipeline):
    """Sets ``item.digests``; removes or marks duplicate paragraphs; drops pages with too little new text.

    It drops pages that differ only in numbers from others of their domain, then exact duplicates of a page as received
    or of its clean text (Suchomel and Pomikálek 2012, section 2), then near-duplicate paragraphs
    (corpus/duplicates.py).  Only kept text is remembered, and becomes durable together with its document.  So a
    page that is fetched again after a kill is not its own duplicate.

    Of a page that is revisited, its paragraphs are first compared with those of its last version, by digests that
    are kept for each page apart (text/fingerprints.py).  Where it removes text, it sets ``item.language`` to that
    of the rest.
    """

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(SOFT_NOT_FOUND, DUPLICATE or NEAR_DUPLICATE)."""
        crawl = self.crawl
        fetch = item.fetch
        revisit = fetch.revisit if fetch else None
        item.paragraphs = pack(page.paragraph_digests) if page.paragraph_digests else b""
        if revisit is not None and revisit.page.validators.text_key == text_key(page) != 0:
            raise DropPage(Reason.DUPLICATE, "its text is as it was")
        digests: tuple[int, ...] = ()
        if crawl.options.dedup != "off":
            name = fetch.host.name if fetch else _host_name(item.response.url)
            if crawl.frontier.is_copy(name, page.sketch):  # of itself, if it is revisited
                raise DropPage(Reason.SOFT_NOT_FOUND if revisit is None else Reason.DUPLICATE)
            digests = outcomes.digests_of(page)
            if not crawl.known_digests.isdisjoint(digests):
                raise DropPage(Reason.DUPLICATE)
        left_out = self._left_out(item, page, revisit)
        if left_out.any():
            rest = self._without(item, page, left_out.tolist(), revisit is not None)
            if digests and not crawl.known_digests.isdisjoint((rest,)):
                raise DropPage(Reason.DUPLICATE, "what is new on it is the text of another page")
            digests += (rest,) if digests else ()
        crawl.known_digests.update(digests)
        item.digests = digests

    def _left_out(self, item: PageItem, page: Page, revisit: Revisit | None) -> Flags:
        """For each kept paragraph whether it is a duplicate; of a later version also what the last one had.

        Raises DropPage(DUPLICATE) for a later version with nothing new.
        """
        crawl = self.crawl
        if crawl.near is not None:
            duplicate = crawl.near.judge(id(item), page.shingles)
        else:
            duplicate = np.zeros(sum(paragraph.kept for paragraph in page.paragraphs), np.bool_)
        if revisit is None or revisit.paragraphs is None:
            return duplicate
        texts = [paragraph.text for paragraph in page.paragraphs if paragraph.kept]
        self._tell_beyond(len(texts) - MAX_PARAGRAPHS, item.response.url)
        old = duplicate | known_again(page.paragraph_digests, revisit.paragraphs, len(texts))
        if sum(len(text.encode()) for text, is_old in zip(texts, old, strict=True) if not is_old) < _MIN_NEW_BYTES:
            raise DropPage(Reason.DUPLICATE, "nothing on it is new")
        return old

    def _tell_beyond(self, number: int, url: str) -> None:
        """Count the *number* of paragraphs that are not compared with the last version, and so count as known."""
        if number > 0:
            totals = self.crawl.frontier.ledger.totals
            if not totals["revisit_paragraphs_beyond"]:
                logger.warning(
                    "%s has more than %d paragraphs: what is new behind them is not kept. "
                    "The total revisit_paragraphs_beyond counts all that are not compared.", url, MAX_PARAGRAPHS
                )  # fmt: skip
            totals["revisit_paragraphs_beyond"] += number

    def _without(self, item: PageItem, page: Page, duplicate: Sequence[bool], is_later: bool) -> int:
        """Remove or mark duplicates among the kept paragraphs; returns the key of the clean text's digest.

        Of a page that had enough text, new text in a later version (*is_later*) is kept however short it is.
        """
        options = self.crawl.options
        marks = options.dedup == "mark"
        flags = iter(duplicate)
        page.paragraphs = [
            paragraph._replace(kept=marks, duplicate=True) if paragraph.kept and next(flags) else paragraph
            for paragraph in page.paragraphs
        ]
        before = page.clean_bytes
        text = measure_clean(page)
        item.seen_share = 1 - page.clean_bytes / max(1, before)
        if marks:
            item.duplicate_bytes = sum(len(p.text.encode("utf-8")) for p in page.paragraphs if p.duplicate)
            item.seen_share = item.duplicate_bytes / max(1, before)
        elif not is_later and page.clean_chars < max(1, parse_quality(options.quality).text_chars.low):
            raise DropPage(Reason.NEAR_DUPLICATE)
        else:
            item.language = kept_language(page)
        return digest_key(xxhash.xxh3_128_digest(text.encode("utf-8")))


def _host_name(url: str) -> str:
    """The name of the host's record of *url*, which did not come from the frontier; '' if it has none."""
    target = canonicalize_again(url)
    return target.host if target is not None else ""


class CorpusPipeline(PagePipeline):
    """Renders the document as prevertical, the format of Sketch Engine and SpiderLing; the checkpoint writes it.

    A page that comes when the budget of words or documents is spent is put back.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CorpusPipeline:
        register_pages()
        return cls(crawler)

    def process_page(self, item: PageItem, page: Page) -> None:
        crawl = self.crawl
        if not crawl.may_keep(item, page.words):
            raise PutBack("the crawl has as many words or documents as it wants")
        if not item.digests and crawl.options.dedup != "off":  # by DedupPipeline, unless that is switched off
            item.digests = outcomes.digests_of(page)
        item.kept_bytes = page.clean_bytes - item.duplicate_bytes
        item.attributes |= self._attributes(item, page)
        head = f"<doc{render_attributes(item.attributes)}>\n".encode("utf-8", "replace")
        item.document = b"%s%s</doc>\n" % (head, page.kept_elements())

    def _attributes(self, item: PageItem, page: Page) -> dict[str, object]:
        response = item.response
        fetch = item.fetch
        host = fetch.host if fetch else None
        revisit = fetch.revisit if fetch else None
        weight = self.crawl.frontier.strategy.weight(page.batch.number)
        captured = response.request.meta.get(CAPTURED) if response.request is not None else None
        time = datetime.fromtimestamp(captured or self.crawl.now(), UTC)
        tomorrow = (time + timedelta(days=1)).strftime("%Y-%m-%d")
        return {
            "id": f"{fetch.id & (1 << 64) - 1:016x}" if fetch else page.text_digest.hex()[:16],
            "url": response.url,
            "host": host.name if host else "",
            "tld": top_level_domain(host.name) if host else "",
            "title": page.title,
            "lang": item.language or "",
            "langs": " ".join([f"{code}:{share:.2f}" for code, share in page.languages.items()]),
            "ip": str(response.ip_address or ""),
            "crawl_date": time.strftime(_TIME),
            "published": page.published if page.published[:10] <= tomorrow else "",  # else it is that of an event
            "modified": page.modified,
            "first_seen": _first_seen(revisit) if revisit else "",
            "version": revisit.page.version + 1 if revisit else "",
            "enc_declared": page.encoding_declared or "",
            "enc_detected": page.encoding_detected or "",
            "distance": host.distance if host else "",
            "length": page.clean_bytes,
            "words": page.words,
            "file_type": page.file_type,
            "text_source": page.text_source,
            "mended": page.mended,
            "licence": page.licence or "",
            "licence_basis": page.licence_basis,
            "licence_sure": page.licence_sure,
            "optout": " ".join(map(str, item.statements)),
            "yield": f"{item.kept_bytes / max(1, page.utf8_bytes):.4f}",
            "badness": f"{page.badness:.1f}",
            "known_share": f"{page.known_share:.2f}",
            "seen_share": f"{item.seen_share:.2f}" if item.seen_share else "",
            "walk_weight": f"{weight:.4g}" if weight else "",
            **page.quality.attributes(),
        }


def _first_seen(revisit: Revisit) -> str:
    """When the first version of the page that is revisited was fetched."""
    return datetime.fromtimestamp(revisit.first_seen, UTC).strftime(_TIME)
