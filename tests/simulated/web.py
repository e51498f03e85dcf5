"""A generated web of some hosts, of which a few may lie, and text workers that answer at once.

Answers depend on the seed, and of busy pages on how often they were asked.  Between two sessions pages may change.
The web knows what a crawl must have kept of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import xxhash

from spiderling.base.link_batch import Link, gathered
from spiderling.corpus.duplicates import digest_key
from spiderling.text import Page
from spiderling.text.fingerprints import digests_of, shingles
from spiderling.text.listing import Listing, read_listing, unpack
from spiderling.text.page import Paragraph
from spiderling.workers.pool import WorkerCrash
from spiderling.workers.process import Task, WorkerConfig, text_process

WORDS = ("voda", "les", "hora", "pole", "cesta", "strom", "kniha", "den", "noc", "rok", "ruka", "hlava", "dům", "město")
FORBIDDEN = "Disallow: /private"
ROBOTS = f"User-agent: *\n{FORBIDDEN}\n"


@dataclass(slots=True)
class Answer:
    """What a URL is answered with."""

    status: int = 200
    text: str = ""
    links: tuple[str, ...] = ()
    location: str = ""
    busy: int = 0  # how many requests are answered by 503 first
    former: tuple[str, ...] = ()  # the texts that it had before
    later: tuple[str, ...] = ()  # links that came with its present text
    said: str = ""  # a header that refuses its use

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that it has ever had; a text has a paragraph a line."""
        return tuple(filter(None, (*self.former, self.text)))


LIES = (
    "refuses", "hangs", "cuts", "forges", "garbles", "drips", "strange", "strange", "unnamed", "servfail", "inside",
)  # fmt: skip
"""How a host may misbehave: as network.py does it, or by its name and addresses."""


class Manner(NamedTuple):
    """That a host lies."""

    kind: str  # of LIES
    share: float  # of its answers


@dataclass(slots=True)
class Web:
    """Hosts with addresses, and answers by URL."""

    addresses: dict[str, tuple[str, ...]]
    answers: dict[str, Answer]
    seeds: list[str]
    manners: dict[str, Manner]  # hosts that lie
    asked: Counter[str] = field(default_factory=Counter)
    grows: bool = False  # whether pages that change get links to new ones
    listed: dict[str, list[str]] = field(default_factory=dict)  # host -> pages that only its sitemap names
    declares: bool = False  # whether there are opt-outs (opt_outs.py)
    sites: dict[str, tuple[str, str]] = field(default_factory=dict)  # host -> by what it refuses, and which prefix
    reserved: list[tuple[str, str]] = field(default_factory=list)  # host and prefix of all that sites ever refused
    refused: set[str] = field(default_factory=set)  # pages that ever refused

    @property
    def pages(self) -> list[str]:
        """The URLs that have text and links, or had."""
        return [url for url, answer in self.answers.items() if answer.links and answer.texts]

    def widen(self, rng: Random) -> None:
        """Give some hosts a sitemap with pages that nobody links to, and let pages that change get new links."""
        self.grows = True
        for host in self.addresses:
            robots = self.answers[f"http://{host}/robots.txt"]
            if not robots.text or rng.random() < 0.6:
                continue
            sitemap = f"http://{host}/sitemap.xml"
            listed = self.listed[host] = [self._new_page(rng, host) for _ in range(rng.choice((1, 3)))]
            entries = "".join(f"<url><loc>{url}</loc></url>" for url in listed)
            self.answers[sitemap] = Answer(text=f"<urlset>{entries}</urlset>")
            robots.text += f"Sitemap: {sitemap}\n"

    def _new_page(self, rng: Random, host: str) -> str:
        number = rng.randrange(10**9)
        url = f"http://{host}/new/{number}"
        self.answers[url] = Answer(text=_text(rng, number), links=(rng.choice(self.seeds),))
        return url

    def answer(self, url: str) -> Answer:
        self.asked[url] += 1
        answer = self.answers.get(url)
        if answer is None:
            return Answer(404)
        return Answer(503) if self.asked[url] <= answer.busy else answer

    def forbids(self, url: str) -> bool:
        """Whether the robots.txt of its host forbids *url*."""
        rules = self.answers[urljoin(url, "/robots.txt")]
        return FORBIDDEN in rules.text and urlsplit(url).path.startswith("/private")

    def may_refuse(self, url: str) -> bool:
        """Whether *url* refused the use of its text at any time, by a file of its site or a header."""
        place = urlsplit(url)
        return url in self.refused or any(
            host == place.hostname and place.path.startswith(prefix) for host, prefix in self.reserved
        )

    def is_of_liar(self, url: str) -> bool:
        return urlsplit(url).hostname in self.manners

    def change(self, rng: Random) -> None:
        """Some pages get another text or a longer one, vanish or move."""
        pages = [url for url, answer in self.answers.items() if answer.text and answer.links]
        links = Random(rng.random()) if self.grows else None
        for url in pages:
            answer = self.answers[url]
            text = _text(rng, rng.randrange(10**9))
            changed = {
                "another": replace(answer, text=text),
                "longer": replace(answer, text=f"{answer.text}\n{text}"),
                "gone": Answer(rng.choice((404, 410))),
                "moved": Answer(301, location=rng.choice(pages)),
            }
            kind = rng.choice((*changed, "another", "longer", *["as it was"] * 9))
            if kind in changed:
                self.answers[url] = replace(changed[kind], former=answer.texts)
                if links is not None and kind in ("another", "longer"):
                    hosts = links.choices([*self.addresses], k=links.choice((0, 1, 2)))
                    self.answers[url].later = tuple(self._new_page(links, host) for host in hosts)

    def texts(self, begin: Collection[str], gone: Collection[str], there: Collection[str]) -> Iterator[tuple[str, ...]]:
        """The texts of each page that is reached from *begin*, not over liars, and may be asked for: one must be there.

        Without *gone* hosts and URLs: those that must be there when these were taken down at some moment.  Links that
        a page got with its last text count if the paragraphs of that are *there*.
        """
        found, waiting = set(begin), [*begin]
        hosts = {url: urlsplit(url).hostname for url in self.answers}
        elsewhere = {
            text for url, answer in self.answers.items() if hosts[url] in gone or url in gone for text in answer.texts
        }
        while waiting:
            url = waiting.pop()
            answer = self.answers.get(url)
            if answer is None or self.is_of_liar(url) or self.forbids(url) or url in gone or hosts[url] in gone:
                continue
            if self.may_refuse(url):  # nor need its links be followed
                continue
            if answer.text and elsewhere.isdisjoint(answer.texts):  # else it may have been left out as a copy
                yield answer.texts
            if answer.former and answer.location:  # nobody need have asked again since it moved
                continue
            later = answer.later if all(line in there for line in answer.text.split("\n")) else ()
            listed = self.listed.get(hosts[url] or "", ())
            for target in (*answer.links, *later, *listed, *([answer.location] if answer.location else [])):
                if target not in found:
                    found.add(target)
                    waiting.append(target)


def generated(rng: Random, pages: int = 0) -> Web:
    """A web of 20 to 60 *pages*, or of so many; some hosts share an address."""
    hosts = [f"{'hw'[number % 2]}{number}.test" for number in range(rng.randint(3, 6))]  # two shards share them
    addresses = {host: tuple(_addresses(rng, len(hosts))) for host in hosts}
    manners = {host: Manner(rng.choice(LIES), rng.choice((0.3, 1.0))) for host in hosts[1:] if rng.random() < 0.15}
    pages = pages or rng.choice((20, 25, 30, 40, 60))
    urls = [f"http://{hosts[number % len(hosts)]}/{number}" for number in range(pages)]
    answers: dict[str, Answer] = {}
    texts: list[str] = []
    for number, url in enumerate(urls):
        links = [urls[n] for n in range(number + 1, min(pages, number + 4))] + rng.sample(urls, 2)
        links += [rng.choice(("/gone", "/moved", "/private/1", "http://h0.test/moved"))]
        kind = rng.random()
        texts.append(rng.choice(texts) if texts and kind < 0.06 else _text(rng, number))
        answers[url] = Answer(text=texts[-1], links=tuple(urljoin(url, link) for link in links), busy=int(kind > 0.93))
    for host in hosts:
        answers[f"http://{host}/moved"] = Answer(301, location=rng.choice(urls))
        answers[f"http://{host}/robots.txt"] = Answer(text=ROBOTS) if rng.random() < 0.8 else Answer(404)
        answers[f"http://{host}/private/1"] = Answer(text="private")
    return Web(addresses, answers, urls[: len(hosts)], manners)


def _addresses(rng: Random, hosts: int) -> list[str]:
    return [f"127.84.1.{number}" for number in rng.sample(range(1, hosts), rng.choice((1, 1, 2)))]


def _text(rng: Random, number: int) -> str:
    return f"Strana {number}. " + " ".join(rng.choices(WORDS, k=60))


class Workers:
    """In place of the pool of processes: the lines of the body are a page's paragraphs, its links are the web's.

    What a lying host has sent goes through the real text steps; now and then one of its pages kills a worker.
    """

    web: Web
    rng: Random

    def __init__(self, number: int, config: WorkerConfig, timeout_s: float) -> None:
        self._config = config

    def start_in_background(self, failed: Any) -> None:
        """They are there at once."""

    async def start(self) -> None:
        """They are there at once."""

    async def stop(self) -> None:
        """Nothing is to be ended."""

    async def process(self, task: Task) -> Page:
        await asyncio.sleep(self.rng.choice((0.0, 0.01, 0.4)))
        answer = self.web.answers.get(task.url)
        if answer is not None and task.body == answer.text.encode():
            page = page_of(task.url, task.body, answer)
            if self._config.options.with_shingles:
                page.shingles = shingles([paragraph.text for paragraph in page.paragraphs])
            if self._config.options.recrawls:
                page.paragraph_digests = digests_of(paragraph.text for paragraph in page.paragraphs)
            return page
        self._may_die(task)
        return _text_process(self._config)(task)

    async def read_listing(self, body: bytes, url: str) -> Listing:
        await asyncio.sleep(self.rng.choice((0.0, 0.01, 0.4)))
        if self.web.is_of_liar(url):  # a file that kills its worker is not read again
            self._may_die(Task(body, url))
        return unpack(read_listing(body, url))

    def _may_die(self, task: Task) -> None:
        if self.rng.random() < 0.1:
            raise WorkerCrash(f"killed while processing {task.url}")


_text_process = lru_cache(4)(text_process)


def page_of(url: str, body: bytes, answer: Answer) -> Page:
    """What the text steps would find on a page."""
    text = body.decode()
    digest = xxhash.xxh3_128_digest(body)
    return Page(
        encoding_detected="utf-8",
        utf8_bytes=len(body),
        title=url,
        paragraphs=[Paragraph(line, "good", "text", False, "cs", True) for line in text.split("\n")],
        batch=gathered(map(Link, (*answer.links, *answer.later))),
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
