"""A generated web of some hosts, the virtual wire to it, and a text worker that answers at once.

Answers depend on the seed, and of busy pages on how often they were asked.  The web knows what a crawl without faults
of the network must have kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urljoin, urlsplit

import xxhash
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import HtmlResponse, Response, TextResponse

from spiderling.base.link_batch import Link, gathered
from spiderling.corpus.duplicates import digest_key
from spiderling.engine.component import Component, dispatcher_of
from spiderling.fetch.errors import NameNotFound, NameServerFailure
from spiderling.fetch.resolver import Resolution
from spiderling.items import PageItem
from spiderling.pipelines import check_text, obey_opt_outs
from spiderling.text import Page
from spiderling.text.page import Paragraph
from tests.simulated.clock import Clock

WORDS = ("voda", "les", "hora", "pole", "cesta", "strom", "kniha", "den", "noc", "rok", "ruka", "hlava", "dům", "město")
RETRY_AFTER_S = 100  # longer than a host rests by itself after such an answer
ROBOTS = "User-agent: *\nDisallow: /private\n"


@dataclass(slots=True)
class Answer:
    """What a URL is answered with."""

    status: int = 200
    text: str = ""
    links: tuple[str, ...] = ()
    location: str = ""
    busy: int = 0  # how many requests are answered by 503 first


@dataclass(slots=True)
class Web:
    """Hosts with addresses, and answers by URL."""

    addresses: dict[str, str]
    answers: dict[str, Answer]
    seeds: list[str]
    asked: Counter[str] = field(default_factory=Counter)

    def answer(self, url: str) -> Answer:
        self.asked[url] += 1
        answer = self.answers.get(url)
        if answer is None:
            return Answer(404)
        return Answer(503) if self.asked[url] <= answer.busy else answer

    def forbids(self, url: str) -> bool:
        """Whether the robots.txt of its host forbids *url*."""
        rules = self.answers[urljoin(url, "/robots.txt")]
        return bool(rules.text) and urlsplit(url).path.startswith("/private")

    def texts(self) -> set[str]:
        """The texts of all pages that can be reached and may be asked for."""
        found, waiting, texts = set(self.seeds), [*self.seeds], set[str]()
        while waiting:
            url = waiting.pop()
            answer = self.answers.get(url)
            if answer is None or self.forbids(url):
                continue
            if answer.text:
                texts.add(answer.text)
            for target in (*answer.links, *([answer.location] if answer.location else [])):
                absolute = urljoin(url, target)
                if absolute not in found:
                    found.add(absolute)
                    waiting.append(absolute)
        return texts


def generated(rng: Random, pages: int = 0) -> Web:
    """A web of 20 to 60 *pages*, or of so many; some hosts share an address."""
    hosts = [f"h{number}.test" for number in range(rng.randint(3, 6))]
    addresses = {host: f"127.84.1.{rng.randint(1, len(hosts))}" for host in hosts}
    pages = pages or rng.choice((20, 25, 30, 40, 60))
    urls = [f"http://{hosts[number % len(hosts)]}/{number}" for number in range(pages)]
    answers: dict[str, Answer] = {}
    texts: list[str] = []
    for number, url in enumerate(urls):
        links = [urls[n] for n in range(number + 1, min(pages, number + 4))] + rng.sample(urls, 2)
        links += [rng.choice(("/gone", "/moved", "/private/1", "http://h0.test/moved"))]
        kind = rng.random()
        texts.append(rng.choice(texts) if texts and kind < 0.06 else _text(rng, number))
        answers[url] = Answer(text=texts[-1], links=tuple(links), busy=int(kind > 0.93))
    for host in hosts:
        answers[f"http://{host}/moved"] = Answer(301, location=rng.choice(urls))
        answers[f"http://{host}/robots.txt"] = Answer(text=ROBOTS) if rng.random() < 0.8 else Answer(404)
        answers[f"http://{host}/private/1"] = Answer(text="private")
    return Web(addresses, answers, urls[: len(hosts)])


def _text(rng: Random, number: int) -> str:
    return f"Strana {number}. " + " ".join(rng.choices(WORDS, k=60))


class Network:
    """The wire between the crawl and the web, with its faults; and what was sent over it."""

    def __init__(self, web: Web, clock: Clock, rng: Random) -> None:
        self.web = web
        self.clock = clock
        self.rng = rng
        self.starts: list[tuple[float, str, str, str]] = []  # (second, host, address, URL) of each connection
        self.open: Counter[str] = Counter()  # host -> requests in transit
        self.impolite: list[str] = []  # what was asked when it should not have been
        self._quiet_until: dict[str, float] = {}  # host -> until when it asked to be left alone
        self.away: tuple[float, float] = (0.0, 0.0)  # from when to when nothing answers

    @property
    def is_away(self) -> bool:
        return self.away[0] <= self.clock.now < self.away[1]

    async def resolve(self, name: str) -> Resolution:
        await asyncio.sleep(self.rng.choice((0.0, 0.02, 0.5)))
        if self.is_away:
            raise NameServerFailure(f"{name}: no name server answers")
        if name not in self.web.addresses:
            raise NameNotFound(f"{name} has no address")
        return Resolution((self.web.addresses[name],), self.rng.choice((60.0, 3600.0)), is_asked=True)

    async def exchange(self, request: Request, address: str) -> Response:
        """The answer; raises what the download handler raises."""
        host = urlsplit(request.url).hostname or ""
        self.starts.append((self.clock.now, host, address, request.url))
        self.open[host] += 1
        if self.open[host] > 1:
            self.impolite.append(f"{host} was asked while it answered")
        if self.clock.now < self._quiet_until.get(host, 0.0):
            self.impolite.append(f"{host} was asked though its Retry-After is not over")
        try:
            await asyncio.sleep(self.rng.choice((0.01, 0.05, 0.2, 1.5)))
            if self.is_away:
                if self.rng.random() < 0.5:
                    raise DownloadConnectionRefusedError(request.url)
                await asyncio.sleep(30.0)
                raise DownloadTimeoutError(request.url)
            return self._response(request)
        finally:
            self.open[host] -= 1

    def _response(self, request: Request) -> Response:
        answer = self.web.answer(request.url)
        headers = {"Location": answer.location} if answer.location else {}
        if answer.status == 503:
            headers["Retry-After"] = str(RETRY_AFTER_S)
            self._quiet_until[urlsplit(request.url).hostname or ""] = self.clock.now + RETRY_AFTER_S
        body = answer.text.encode()
        request.meta["wire_bytes"] = len(body)
        kind = TextResponse if request.url.endswith("robots.txt") else HtmlResponse
        return kind(request.url, answer.status, headers, body, encoding="utf-8")

    def forget_open(self) -> None:
        """The process is gone, and with it its connections, and what it was told after its last checkpoint."""
        self.open.clear()
        self._quiet_until.clear()


class Wire(BaseDownloadHandler):
    """The download handler of a simulated crawl: it keeps the order of calls of the real one."""

    lazy = True
    network: Network

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._gate = dispatcher_of(crawler)

    async def download_request(self, request: Request) -> Response:
        request.meta["wire_bytes"] = 0
        await asyncio.sleep(self.network.rng.choice((0.0, 0.0, 0.05, 0.3)))  # a process that runs late
        while (seconds := self._gate.connect_in(request)) > 0:
            await asyncio.sleep(seconds)
        address = str(request.meta["address"])
        self._gate.started(request, address)
        return await self.network.exchange(request, address)

    async def close(self) -> None:
        pass


class InstantText(Component):
    """Pipeline 100: a page's text is the body, its links are the web's; the rest is as after the real one."""

    async def process_item(self, item: Any) -> Any:
        if not isinstance(item, PageItem):
            return item
        network = Wire.network
        await asyncio.sleep(network.rng.choice((0.0, 0.01, 0.4)))
        answer = network.web.answers[item.response.url]
        item.page = page_of(item.response.url, item.response.body, answer)
        obey_opt_outs(item, self.crawl)
        check_text(item.page)
        item.language = item.page.language
        return item


def page_of(url: str, body: bytes, answer: Answer) -> Page:
    """What the text steps would find on a page."""
    text = body.decode()
    digest = xxhash.xxh3_128_digest(body)
    return Page(
        encoding_detected="utf-8",
        utf8_bytes=len(body),
        title=url,
        paragraphs=[Paragraph(text, "good", "text", False, "cs", True)],
        batch=gathered(Link(urljoin(url, link)) for link in answer.links),
        languages={"cs": 1.0},
        language="cs",
        known_share=1.0,
        lswc_language="cs",
        lswc_relevant=True,
        raw_digest=xxhash.xxh3_128_digest(url.encode() + body),
        text_digest=digest,
        sketch=abs(digest_key(digest)) or 1,
        clean_bytes=len(body),
        clean_chars=len(text),
        words=len(text.split()),
        has_text=True,
    )
