"""Simulated crawls whose fetches are written down: which URL, and when.

Each case switches on another part of the frontier, so that together they hold the order of all of it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from virtual_crawl import Answer, Resolution, VirtualCrawl, page, robots, to

from simulator.generated import RECIPES, generate
from simulator.pages import PageWeb
from simulator.replay import Replay, world
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.storage.sqlite import SqliteStore

PAGES = 3000  # pages of each generated web
TIMES_EVERY = 50  # the time of every 50th fetch is kept, which is enough to see a clock that drifts
HOSTS_AT_ONE_ADDRESS = 16
EVERY_STRATEGY = (
    "bfs", "yield", "heidix", "spiderling", "spiderling:thrift=3", "random-walk", "simulator.rivals.Lswc",
)  # fmt: skip


class Order(NamedTuple):
    """The fetches of one crawl in their order."""

    fetches: int
    urls: str  # SHA-256 of all URLs, one a line
    times: list[float]  # seconds of the simulated clock, of every TIMES_EVERY-th fetch


Fetches = list[tuple[float, str]]  # (Seconds of the simulated clock, URL) of each


def order_of(fetches: Fetches) -> Order:
    digest = hashlib.sha256("\n".join(url for _, url in fetches).encode()).hexdigest()
    return Order(len(fetches), digest, [time for time, _ in fetches[::TIMES_EVERY]])


class NotedReplay(Replay):
    """A replay that takes its fetches down, and can go on as after a kill."""

    def __init__(self, web: PageWeb, fetches: Fetches, store: Any = None, now: float = 0.0, **options: Any) -> None:
        super().__init__(web, world(lang=web.languages[0], random_seed=1, **options), pages_per_s=20.0)
        self.now = now
        if store is not None:
            self.store = store
            self.frontier = Frontier(world(lang=web.languages[0], random_seed=1, **options), store=store)
            self.frontier.restore(store.load(), now)
        started = self.frontier.started

        def noted(fetch: Fetch, at: float) -> None:
            fetches.append((at, fetch.url))
            started(fetch, at)

        self.frontier.started = noted  # type: ignore[method-assign]


def generated(recipe: str, trap_share: float = 0.01, **options: Any) -> Callable[[Any], Order]:
    """A crawl of a generated web to its end; *trap_share* of its hosts are traps."""

    def crawl(_: Any) -> Order:
        web, fetches = generate(replace(RECIPES[recipe], pages=PAGES, trap_share=trap_share)), []
        NotedReplay(web, fetches, **options).run(web.seed_urls())
        return order_of(fetches)

    return crawl


def killed(recipe: str, in_file: bool, **options: Any) -> Callable[[Any], Order]:
    """The same, killed twice in the middle: what was not committed is fetched again."""

    def crawl(directory: Any) -> Order:
        web, fetches = generate(replace(RECIPES[recipe], pages=PAGES)), []
        store = SqliteStore(directory / "frontier.sqlite") if in_file else None
        replay = NotedReplay(web, fetches, store, **options)
        for pages in (150, 400):
            replay.run(web.seed_urls(), pages=pages)
            replay.store.commit(replay.frontier.drain(replay.now))
            replay.frontier.committed()
            replay.run(pages=pages + 40)
            replay = NotedReplay(web, fetches, replay.store, replay.now, **options)
        replay.run(web.seed_urls())
        if store is not None:
            store.close()
        return order_of(fetches)

    return crawl


def served(**options: Any) -> Callable[[Any], Order]:
    """A crawl of a web with redirects, errors, busy servers, robots.txt files and slow answers, killed once."""

    def crawl(_: Any) -> Order:
        web = mixed_web()
        one_address = {f"h{number}.test": Resolution(("10.1.1.1",)) for number in range(HOSTS_AT_ONE_ADDRESS)}
        virtual = VirtualCrawl(web, one_address, now=1000.0, random_seed=1, lang="cs", **options)
        virtual.run(*seeds_of(web), until=1400.0)
        virtual.commit()
        virtual.kill_and_resume()
        virtual.run()
        return order_of([(start.time, start.url) for start in virtual.starts])

    return crawl


def seeds_of(web: Mapping[str, Any]) -> Iterable[str]:
    return sorted(url for url in web if url.endswith(".test/"))[:4]


def mixed_web(hosts: int = 24, pages: int = 25) -> dict[str, Answer | list[Answer]]:
    """Hosts that link to their own pages and to others; made by chance, the same each time."""
    draw = random.Random(7)
    names = [f"h{number}.test" for number in range(hosts)]
    web: dict[str, Answer | list[Answer]] = {}
    for number, host in enumerate(names):
        yields = draw.choice((0, 0, 30, 400, 900))
        for path in range(pages):
            links = [f"http://{host}/{draw.randrange(pages)}" for _ in range(4)]
            links += [f"http://{draw.choice(names)}/" for _ in range(2)]
            url = f"http://{host}/{path or ''}"
            kept = draw.choice((0, yields, yields))
            answer = page(*links, kept_bytes=kept, body_bytes=60_000, transit_s=draw.choice((0.1, 0.4, 3.0)))
            web[url] = draw.choice((answer, answer, answer, answer, _other(draw, host, answer, pages)))
        if number % 3 == 0:
            web[f"http://{host}/robots.txt"] = robots("User-agent: *\nDisallow: /1\nCrawl-delay: 7")
        if number % 5 == 0:
            web[f"http://{host}/robots.txt"] = [Answer(status=503), robots("User-agent: *\nDisallow: /2")]
    return web


def _other(draw: random.Random, host: str, answer: Answer, pages: int) -> Answer | list[Answer]:
    kind = draw.randrange(5)
    if kind == 0:
        return to(f"http://{host}/{draw.randrange(pages)}")
    if kind == 1:
        return to(f"http://h{draw.randrange(30)}.test/")
    if kind == 2:
        return [Answer(status=503, retry_after_s=20.0), answer]
    if kind == 3:
        return [Answer(status=0), Answer(status=0), answer]
    return Answer(status=404, kept_bytes=0)


CASES: dict[str, Callable[[Any], Order]] = {
    **{f"thai, {strategy}": generated("thai", strategy=strategy) for strategy in EVERY_STRATEGY},
    "pt, retirement": generated("pt", strategy="spiderling", yield_profile="normal"),
    "pt, retired hosts come back": generated("pt", strategy="yield", min_active_hosts=30),
    "scarce": generated("scarce"),
    "thai, traps": generated("thai", trap_share=0.3, strategy="bfs", traps="pages=6"),
    "thai, budgets of hosts": generated("thai", max_host_documents=6, max_host_bytes=2_000_000),
    "thai, few places": generated("thai", active_hosts=10),
    "thai, short queues": generated("thai", max_host_queue=15),
    "thai, killed": killed("thai", False, strategy="spiderling"),
    "thai, simulator.rivals.Lswc, killed": killed("thai", False, strategy="simulator.rivals.Lswc"),
    "pt, killed, in a file": killed("pt", True, strategy="spiderling"),
    "redirects and errors": served(),
    "redirects and errors, bfs": served(strategy="bfs"),
    "crowded address": served(strategy="bfs", active_hosts=16, ip_interval_s=5.0),
}
