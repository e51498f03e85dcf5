"""The spider: reads seeds, yields pages.  Links go to the frontier with their page's Outcome, not as Requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.http import Request, Response

from spiderling.base.errors import BadInput
from spiderling.base.option_values import PREFIX
from spiderling.base.terminal import count_of
from spiderling.crawl.arguments import declared_arguments
from spiderling.engine.component import crawl_of
from spiderling.items import DISTANCE, PageItem
from spiderling.languages import only_as_group
from spiderling.languages.registry import Seed
from spiderling.languages.seeds import MODEL_SEEDS, distances, few_hosts, model_seeds, read_seeds

if TYPE_CHECKING:  # Scrapy imports all spiders before it looks at the command line, so they need little
    from spiderling.crawl.crawl import Crawl


class CorpusSpider(Spider):
    """The arguments (``-a``) that all spiders of this project take."""

    lang: str = ""  # languages of the corpus: ISO 639 codes or English names, with commas
    recognise: str = ""  # further languages that pages are told apart from
    seen: str = ""  # earlier corpora, whose text counts as a duplicate: prevertical files or directories, with commas
    words: str = ""
    """Kept words at which the crawl stops, with the document that reaches them; with a larger number it goes on."""
    tlds: str = ""  # top-level domains: national, national+generic, all, or names with commas
    hosts: str = ""  # a file of the only hosts whose pages are wanted, one a line

    def __init__(self, name: str | None = None, **arguments: Any) -> None:
        declared = declared_arguments(type(self))
        super().__init__(name, **{key: value for key, value in arguments.items() if key in declared})
        self.arguments = tuple(arguments)
        """Names of all arguments that were given; crawl/arguments.py refuses those that are not declared."""


def _why_refused(crawl: Crawl) -> str:
    """Why no seed was taken."""
    refused = crawl.frontier.ledger.refused_links.most_common()
    why = "; ".join(f"{count_of(number, 'URL')} {reason.value}: {reason.help}" for reason, number in refused if number)
    return (
        f"no seed may be crawled ({why}). Give other seeds with -a seeds=, or a wider scope (-a tlds=, -a hosts=, "
        f"-s {PREFIX}PORTS=)."
    )


class SpiderlingSpider(CorpusSpider):
    """``scrapy crawl spiderling -a lang=cs [-a seeds=FILE-or-URLs] [-a words=1M]``."""

    name = "spiderling"
    coverage: str = ""  # share of the text on the web, by lists of pages, at which the crawl stops
    follow: str = ""  # links that are followed: all, host (within the seeds' hosts) or none
    recrawl: str = ""  # whether pages are revisited for new text: on, off, or for so many days such as 30d
    strategy: str = ""  # in which order links and hosts are fetched, such as bfs, yield or spiderling:thrift=3
    seeds: str = ""
    """A file with one URL a line, or URLs separated by commas or spaces; by default a crawl begins with the seeds of
    the language models."""

    _seeds: Sequence[Seed] = ()

    def prepare(self) -> None:
        """Read the seeds that were given, before anything is written; raises BadInput."""
        if self.seeds:
            self._seeds = read_seeds(self.seeds)

    async def start(self) -> AsyncIterator[Any]:
        """A Request for each seed."""
        crawl = crawl_of(self.crawler)
        seeds = self._seeds
        self._seeds = ()  # there may be millions
        if not seeds and not crawl.frontier.host_states:  # a crawl that has begun gets only seeds that are given
            try:
                seeds = model_seeds(crawl.accepted)
            except BadInput as error:
                crawl.fail(error)
        if seeds:
            self.logger.info("%s from %s", count_of(len(seeds), "seed"), self.seeds or MODEL_SEEDS)
            crawl.note_seeds(self.seeds or MODEL_SEEDS, [seed.url for seed in seeds])
            is_live = bool(crawl.options.contact)  # without one, no public address is asked
            if is_live and not crawl.frontier.host_states and crawl.options.follow == "all":
                notice = few_hosts([seed.url for seed in seeds], crawl.accepted[0].code, crawl.options.host_interval_s)
                if notice:
                    self.logger.info(notice)
        for warning in only_as_group(crawl.accepted):
            self.logger.warning(warning)
        for url, distance in distances(seeds):
            yield Request(url, meta={DISTANCE: distance})
        is_one = crawl.options.shards == 1  # else other shards may own all seeds
        if seeds and is_one and not crawl.frontier.ledger.balance.discovered:
            crawl.fail(BadInput(_why_refused(crawl)))

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield PageItem(response)
