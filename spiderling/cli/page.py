"""One page as the chain sees it, and what would become of it."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Request, Response
from scrapy.settings import Settings

from spiderling import languages
from spiderling.base.addresses import addresses_of
from spiderling.base.errors import BadInput, NetworkAway, SpiderlingError
from spiderling.base.opt_outs import RslFile, Signal, Statement, together
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.cli.command import read_input
from spiderling.crawl.arguments import options_of
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import crawl_of, scheduler_of
from spiderling.engine.outcomes import DropPage, headers_of
from spiderling.engine.requests import fetch_of
from spiderling.frontier.site_files import SiteFile
from spiderling.pipelines import check_language, check_opt_outs, check_quality, check_text, task_of
from spiderling.spiders.spiderling import SpiderlingSpider
from spiderling.text import Page, Paragraph
from spiderling.text.optout import licences, page_statements
from spiderling.workers.pool import Task, WorkerConfig, text_process

_OFFLINE_WAIT_S = 120.0
"""SPIDERLING_OFFLINE_WAIT_S of a page, unless it is given; chosen: a person waits, and the same command goes on."""
_ALTERNATIVES = "- for standard input, or a URL that begins with http:// or https://"
_FILE_URL = "http://file.invalid/"  # stands for the unknown address of a file, so that its relative links count


def show(name: str, arguments: dict[str, str], settings: Settings, width: int) -> Iterator[str]:
    """Lines of a report on the page *name*, a URL, a file or -; *arguments* are those of the spider.

    Raises SpiderlingError.
    """
    options = options_of(settings, PageSpider(**arguments))
    # before the page is fetched, so that a bad language costs no request
    accepted = languages.find_languages(options.lang, options.models)
    if "://" in name:
        found = _fetch(name, arguments, settings, options)
    else:
        found = FetchedPage(Task(read_input(name, _ALTERNATIVES), _FILE_URL))
    recognised = languages.to_recognise(accepted, options.recognise, options.models)
    config = WorkerConfig.from_options(options, [info.code for info in accepted], tuple(recognised))
    page = text_process(config)(found.task)  # as a text worker does it
    said = together(found.site, page_statements(found.headers, page.meta, options, time.time()))
    said += _of_licences(found, page, options)
    verdict = judge(page, options, [info.code for info in accepted], said)
    yield from render(found.task, page, verdict, width, said)


def _of_licences(found: FetchedPage, page: Page, options: Options) -> list[Statement]:
    """What licences by RSL say that stand in the page; those that it only names are not fetched here."""
    linked, inline = licences(found.headers, page.meta)
    url = canonicalize(found.task.url)
    said = [Statement(Signal.RSL, f"not-fetched={address[:300]}") for address in linked]
    for text in inline:
        said += RslFile(text.encode()).statements(found.task.url, url.path if url else "/")
    return said


def _fetch(url: str, arguments: dict[str, str], settings: Settings, options: Options) -> FetchedPage:
    """A crawl of that one URL, in a directory that is removed again."""
    if canonicalize(url) is None:
        raise BadInput(f"{url} is no http(s) URL that can be fetched; a file is given by its path alone.")
    addresses_of(options, is_offline=False)  # refused before an engine is made
    with tempfile.TemporaryDirectory(prefix="spiderling-page-") as directory:
        ours = {
            "JOBDIR": directory,
            "SPIDERLING_RETRIES": 0,
            "ITEM_PIPELINES": {"spiderling.pipelines.CleanPipeline": None},  # no workers: the page is examined here
            "SPIDERLING_PAGE": None,  # it is about crawls that nobody waits for
        }
        if not settings.getpriority("SPIDERLING_OFFLINE_WAIT_S"):
            ours["SPIDERLING_OFFLINE_WAIT_S"] = _OFFLINE_WAIT_S
        settings.setdict(ours, priority="cmdline")
        spider = _crawl(settings, **{**arguments, "url": url})
    answer = spider.answer
    assert answer is not None, "the spider has failed otherwise"
    return FetchedPage(task_of(answer), headers_of(answer), tuple(spider.site))


def _crawl(settings: Settings, **arguments: str) -> PageSpider:
    """The spider when its crawl has ended; raises SpiderlingError if that failed or never began.

    Somebody waits for it: where nothing answers, that is told on standard error, and the end comes soon.
    """
    if "SpiderlingAddon" not in str(list(settings["ADDONS"])):  # outside of a project, or in one of something else
        settings["ADDONS"].set("spiderling.addon.SpiderlingAddon", 300, priority="cmdline")
    if not settings.getbool("LOG_ENABLED"):
        # by its name, since the module takes long to import
        logging.getLogger("spiderling.engine.offline").addHandler(logging.StreamHandler())
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(PageSpider)
    process.crawl(crawler, **arguments)
    process.start()
    spider = crawler.spider
    if isinstance(spider, PageSpider) and spider.failure is not None:
        raise spider.failure
    if process.bootstrap_failed or not isinstance(spider, PageSpider):
        raise SpiderlingError("the command could not begin; -s LOG_ENABLED=1 shows why.")
    return spider


class FetchedPage(NamedTuple):
    """A page, and what its headers and the files of its site say of its use."""

    task: Task
    headers: list[tuple[str, str]] = []  # noqa: RUF012 - never changed
    site: tuple[Statement, ...] = ()


class PageSpider(SpiderlingSpider):
    """Fetches one URL and keeps the page; its links are not followed."""

    name = "page"
    url: str = ""
    answer: Response | None = None  # the page
    failure: SpiderlingError | None = None  # why there is none
    site: list[Statement] = []  # noqa: RUF012 - replaced, never changed
    """What the files of its site say of its use."""
    _last = ""

    def note(self, response: Response, request: Request) -> None:
        """Keep what the last response was; a tdmrep.json or ai.txt that is missing is no reason for anything."""
        fetch = fetch_of(request)
        if fetch is not None and fetch.robots is not None and fetch.robots.file is not SiteFile.ROBOTS:
            return
        self._last = f"; the last answer was {response.status} from {response.url}"

    async def start(self) -> AsyncIterator[Any]:
        self.crawler.signals.connect(self.note, signals.response_downloaded)
        yield Request(self.url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        self.answer = response
        self.site = crawl_of(self.crawler).frontier.robots.statements_of(response.url)
        return iter(())

    def closed(self, reason: str) -> None:
        """Note why no page came, if none did, while the crawl is still open."""
        scheduler = scheduler_of(self.crawler)
        self.failure = scheduler.error
        if scheduler.dispatcher is not None:
            self._note_ends(scheduler.dispatcher.crawl, reason)

    def _note_ends(self, crawl: Crawl, reason: str) -> None:
        ends = [
            end
            for end in (*crawl.frontier.ledger.ends, *crawl.frontier.ledger.refused_links)
            if end is not Reason.REDIRECTED
        ]
        why = f"{ends[0].help} ({ends[0].value})" if ends else f"the crawl was stopped ({reason})"
        if not ends and reason == NetworkAway.finish_reason:
            why = "no such name is known, or nothing answers; check the address and the network"
        self.failure = None if self.answer else SpiderlingError(f"{self.url} gave no page: {why}{self._last}.")


def judge(page: Page, options: Options, accepted: Sequence[str], said: Sequence[Statement] = ()) -> str:
    """The verdict of pipelines 100 to 300: 'kept', or the Reason why not; *said* are the opt-outs."""
    try:
        check_opt_outs(said, options.policy())
        check_text(page)
        check_language(page, accepted, options)
        check_quality(page, options)
    except DropPage as drop:
        return f"{drop.reason.value}: {drop}"
    return f"{Reason.KEPT.value} (unless it is a duplicate)"


def render(task: Task, page: Page, verdict: str, width: int, said: Sequence[Statement] = ()) -> Iterator[str]:
    """Lines for a terminal of *width* characters."""
    kept = sum(paragraph.kept for paragraph in page.paragraphs)
    shares = ", ".join(f"{code} {share:.2f}" for code, share in page.languages.items())
    rows = {
        "url": task.url if task.url != _FILE_URL else "",
        "size": f"{len(task.body):,} bytes, {page.utf8_bytes:,} in UTF-8",
        "encoding": f"declared {page.encoding_declared or '-'}, detected {page.encoding_detected or '-'}",
        "title": page.title,
        "language": f"{page.language or '-'} ({shares or 'no known language'}), known share {page.known_share:.2f}",
        "badness": f"{page.badness:.1f}",
        "clean text": f"{page.clean_bytes:,} bytes, {page.words:,} words, {kept} of {len(page.paragraphs)} paragraphs",
        "links": _links(page),
        "from JSON": page.text_source,
        "mended": page.mended and f"letters that were {page.mended}",
        "licence": page.licence,
        "licence_basis": page.licence_basis,
        "opt-outs": ", ".join(map(str, said)) or "none",
    }
    yield from (_shorten(f"{name:<12}{value}", width) for name, value in rows.items() if value)
    yield ""
    yield f"{'class':<15}{'lang':<6}{'kept':<6}text"
    yield from (_shorten(_row(paragraph), width) for paragraph in page.paragraphs)
    yield ""
    yield f"{'verdict':<12}{verdict}"


def _row(paragraph: Paragraph) -> str:
    cls = ", ".join(filter(None, (paragraph.cls, paragraph.kind)))
    text = paragraph.text.replace("\n", " / ")
    return f"{cls:<15}{paragraph.language or '-':<6}{'yes' if paragraph.kept else 'no':<6}{text}"


def _links(page: Page) -> str:
    """Number of links by the class of the block that they stand in."""
    blocks = Counter(page.paragraphs[link.block].cls if link.block >= 0 else "no" for link in page.links)
    counts = [f"{number} in {kind} blocks" for kind, number in blocks.most_common()]
    return ", ".join([str(len(page.links)), *counts, f"{sum(link.rel_nofollow for link in page.links)} nofollow"])


def _shorten(line: str, width: int) -> str:
    """*line* in at most *width* characters."""
    return line if len(line) <= width else line[: width - 1] + "…"
