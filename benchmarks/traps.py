"""What traps cost, and what the detectors cost: a web of traps beside real pages, crawled on a virtual clock.

    python benchmarks/traps.py [--quick] [--data DIR]

The frontier is the real one and the text of every page is judged as in a crawl; only the
network is left out.  (a) eleven traps and the bundled miniature web together, with the
detectors on and off (off: at most LIMIT requests); (b) clean webs alone: every mention or
URL that a detector refuses there is a false alarm.  With --data also the 25,810 pages of
``DIR/miniweb``; (c) the traps in a larger web of CLEAN_HOSTS hosts, whose pages are all new and kept: here
the frontier alone works.
"""

from __future__ import annotations

import csv
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, result, table
from spiderling import languages
from spiderling.base.follow import Follow
from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.duplicates import digest_key
from spiderling.engine.outcomes import DropPage, links_of
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.traps import Traps
from spiderling.pipelines import check_language, check_quality, check_text
from spiderling.text import Page, TextOptions, process
from spiderling.text.sketch import sketch
from webs.recorded import RecordedWeb, read_pages
from webs.synthetic import read_words
from webs.traps import TrapWeb
from webs.web import Web, WebResponse, not_found

LIMIT = 10_000
CLEAN_HOSTS, CLEAN_PAGES, CLEAN_DOMAIN = 300, 110, "-clean.cz"
LANGUAGES = ("cs", "sk", "pl", "de", "en")
ALARMS = (Reason.TRAP, Reason.TRAP_SECTION, Reason.TRAP_COPY, Reason.TRAP_SUBDOMAINS)
END_ALARMS = (Reason.TRAPPED, Reason.MIRROR, Reason.SOFT_NOT_FOUND)
OFF = {"traps": "off"}


class Pages:
    """Real pages in a table: host -> path without its slash -> bytes."""

    def __init__(self, directory: Path) -> None:
        self._pages = read_pages(next(directory.glob("*.tar.zst")))
        with (directory / "index.csv").open(encoding="utf-8") as file:
            self.seeds = [f"http://{row['host']}{row['start']}" for row in csv.DictReader(file)]

    def hosts(self) -> dict[str, str]:
        return dict.fromkeys(self._pages, "127.80.0.1")

    globs = hosts

    def respond(self, host: str, path: str) -> WebResponse:
        body = self._pages.get(host, {}).get(unquote(path.partition("?")[0]).lstrip("/"))
        return not_found() if body is None else WebResponse(200, {"Content-Type": "text/html"}, body)


class RealPages(RecordedWeb):
    """The bundled miniature web without its mirrors and the sites that are computed, traps among them."""

    def hosts(self) -> dict[str, str]:
        sites = {name: self.sites[name.removeprefix("www.")].behaviour for name in super().hosts()}
        return {name: "127.80.0.1" for name, behaviour in sites.items() if not {"site", "mirror"} & behaviour.keys()}


@dataclass
class Run:
    """What one crawl did."""

    frontier: Frontier
    requests: Counter[str] = field(default_factory=Counter)
    """By host, robots.txt included."""
    kept: Counter[str] = field(default_factory=Counter)
    pages: set[str] = field(default_factory=set)
    """URLs answered by a page."""


class Crawl:
    """The text chain and the frontier, one request after the other."""

    def __init__(self, webs: Iterable[Web], accepted: tuple[str, ...], **changed: object) -> None:
        self.options = Options(lang=",".join(accepted), host_interval_s=0.5, ip_interval_s=0, **changed)  # type: ignore[arg-type]
        self._webs = {host: web for web in webs for host in web.hosts()}
        self._traps = next((web for web in webs if isinstance(web, TrapWeb)), None)
        self._accepted = accepted
        self._models = languages.load(LANGUAGES, "")
        self._text = TextOptions.from_options(self.options, accepted)
        self._known: set[int] = set()

    def run(self, seeds: Iterable[str], most: int = 10**9) -> Run:
        frontier, now = Frontier(self.options), 1e9
        run = Run(frontier)
        for url in seeds:
            frontier.put_seed(url, now)
        while not frontier.is_finished and run.requests.total() < most:
            for name in frontier.names_wanted():
                if name in self._webs or (self._traps and self._traps.name_of(name)):
                    frontier.resolved(name, ("127.0.0.1",), 1e9, now)
                else:
                    frontier.unresolved(name, True, now)
            fetch = frontier.take(now)
            if fetch is None:
                now = max(now, frontier.next_due() or now)
                continue
            frontier.started(fetch, now)
            run.requests[fetch.host.name] += 1
            if fetch.robots is not None:
                frontier.robots_answered(fetch, FileAnswer(404), now)
                continue
            outcome = self._outcome(frontier, fetch)
            run.pages |= {fetch.url} if outcome.status == 200 else set()
            run.kept[fetch.host.name] += outcome.reason is Reason.KEPT
            frontier.report(outcome, now)
        return run

    def _outcome(self, frontier: Frontier, fetch: Fetch) -> Outcome:
        parts = urlsplit(fetch.url)
        host, path = parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else "")
        web = self._webs.get(host) or self._traps
        response = web.respond(host, path) if web is not None else not_found()
        if response.status != 200:
            location = response.headers.get("Location")
            reason = Reason.REDIRECTED if location else Reason.HTTP_ERROR
            target = urljoin(fetch.url, location) if location else None
            return Outcome(fetch.id, fetch.url, reason, response.status, redirect_to=target)
        page = process(response.body, url=fetch.url, http_charset=None, models=self._models, options=self._text)
        reason = self._verdict(frontier, fetch.url, page)
        kept = page.clean_bytes if reason is Reason.KEPT else 0
        return Outcome(
            fetch.id, fetch.url, reason, 200, body_bytes=page.utf8_bytes, kept_bytes=kept,
            sketch=page.sketch,
            text_key=digest_key(page.text_digest) & (1 << 64) - 1 if page.clean_bytes else 0,
            links=links_of(page, follow=Follow.UNMARKED),
        )  # fmt: skip

    def _verdict(self, frontier: Frontier, url: str, page: Page) -> Reason:
        """As the pipelines have it, in their order."""
        try:
            check_text(page)
            check_language(page, self._accepted, self.options)
            check_quality(page, self.options)
        except DropPage as dropped:
            return dropped.reason
        if frontier.is_copy(url, page.sketch):
            return Reason.SOFT_NOT_FOUND
        digests = {digest_key(page.raw_digest), digest_key(page.text_digest)}
        if not self._known.isdisjoint(digests):
            return Reason.DUPLICATE
        self._known |= digests
        return Reason.KEPT


class LargeCrawl(Crawl):
    """The traps as in Crawl; hosts without text, whose pages need no text chain, beside them."""

    def _outcome(self, frontier: Frontier, fetch: Fetch) -> Outcome:
        host = fetch.host.name
        if not host.endswith(CLEAN_DOMAIN):
            return super()._outcome(frontier, fetch)
        rng = random.Random(fetch.url)
        links = [Link(f"http://{host}/{rng.randrange(CLEAN_PAGES)}") for _ in range(15)]
        key = rng.getrandbits(60) + 1
        return Outcome(
            fetch.id, fetch.url, Reason.KEPT, 200, body_bytes=20_000, kept_bytes=2000, sketch=key, text_key=key,
            links=tuple(links),
        )  # fmt: skip


class CleanHosts:
    """What LargeCrawl has to know of them."""

    @staticmethod
    def hosts() -> dict[str, str]:
        return {f"web{number}{CLEAN_DOMAIN}": "127.83.0.1" for number in range(CLEAN_HOSTS)}

    globs = hosts

    def respond(self, host: str, path: str) -> WebResponse:
        return not_found()


def _share_in_a_larger_web(traps: TrapWeb) -> float:
    clean = CleanHosts()
    run = LargeCrawl([clean, traps], ("cs",)).run(f"http://{host}/" for host in (*clean.hosts(), *traps.hosts()))
    lost, requests = _lost(traps, run).total(), run.requests.total()
    kept = sum(run.kept[host] for host in clean.hosts())
    table(("larger web", "requests", "clean pages kept", "lost to traps", "share"), [
        [f"{CLEAN_HOSTS} hosts and {len(traps.traps)} traps", requests, kept, lost, f"{lost / requests:.2%}"]
    ])  # fmt: skip
    return lost / requests


def main() -> None:
    options = arguments(__doc__)
    words = read_words(ROOT / "models", ("cs",))["cs"]
    mini, traps = RealPages(ROOT / "examples/miniweb"), TrapWeb(words)
    real = [f"http://{host}/" for host in mini.hosts()]
    entries = [f"http://{host}/" for host in traps.hosts()]
    on = Crawl([mini, traps], ("cs", "en")).run([*real, *entries], LIMIT)
    off = None if options.quick else Crawl([mini, traps], ("cs", "en"), **OFF).run([*real, *entries], LIMIT)
    share = _print_traps(traps, on, off)
    webs: list[tuple[str, Web, list[str]]] = [("bundled miniature web", mini, real)]
    if options.data and (options.data / "miniweb").is_dir():
        pages = Pages(options.data / "miniweb")
        webs.append(("all its pages", pages, pages.seeds))
    alarms = _print_clean(webs, 300 if options.quick else 10**9)
    large = _share_in_a_larger_web(traps)
    cost = _print_cost(on)
    result(trap_share=round(share, 4), trap_share_large=round(large, 4), wrongly_refused=alarms, **cost)


def _lost(traps: TrapWeb, run: Run) -> Counter[str]:
    """Requests to each trap beyond the pages that were kept there."""
    lost: Counter[str] = Counter()
    for host, number in run.requests.items():
        name = traps.name_of(host)
        if name is not None:
            lost[name] += number - run.kept[host]
    return lost


def _print_traps(traps: TrapWeb, on: Run, off: Run | None) -> float:
    with_us, without = _lost(traps, on), _lost(traps, off) if off else Counter()
    asked: Counter[str] = Counter()
    for host, number in on.requests.items():
        asked[traps.name_of(host) or "miniature web"] += number
    rows = [[name, asked[name], with_us[name], without[name] if off else ""] for name in traps.traps]
    rows.append(
        ["all traps", sum(asked[name] for name in traps.traps), with_us.total(), without.total() if off else ""]
    )
    rows.append(["all requests", on.requests.total(), "", off.requests.total() if off else ""])
    table(("trap", "requests", "of them lost", "lost with the detectors off"), rows)
    print("mentions", {reason.value: number for reason, number in on.frontier.ledger.refused_links.items()})
    print("ends", {reason.value: number for reason, number in on.frontier.ledger.ends.items()})
    return with_us.total() / on.requests.total()


def _print_clean(webs: list[tuple[str, Web, list[str]]], most: int) -> int:
    """Gives the number of real pages that are fetched without the detectors only."""
    rows, missed = [], 0
    for name, web, seeds in webs:
        for accepted in (("cs",), LANGUAGES):
            on = Crawl([web], accepted, yield_profile="off").run(seeds, most)
            off = Crawl([web], accepted, yield_profile="off", **OFF).run(seeds, most)
            ledger = on.frontier.ledger
            refused = [ledger.refused_links[reason] for reason in ALARMS] + [
                ledger.ends[reason] for reason in END_ALARMS
            ]
            wrongly = off.pages - on.pages
            rows.append(
                [name, "+".join(accepted), len(off.pages), off.kept.total(), on.kept.total(), len(wrongly), *refused]
            )
            missed += len(wrongly)
            _explain(on, sorted(wrongly)[:10])
    reasons = (reason.value for reason in (*ALARMS, *END_ALARMS))
    table(("clean web", "languages", "pages", "kept, off", "kept, on", "pages wrongly refused", *reasons), rows)
    return missed


def _explain(run: Run, wrongly: list[str]) -> None:
    """What was closed, so that a false alarm can be looked at."""
    for host in run.frontier.hosts:
        for section in sorted(run.frontier._admission.traps.closed.get(host.id, ())):
            print(f"  closed: {host.name} {section}")
        if host.state.value == "mirror":
            print(f"  mirror: {host.name}")
    for url in wrongly:
        print(f"  wrongly refused: {url}")


def _print_cost(run: Run) -> dict[str, float]:
    """CPU of the detectors alone, on the paths and texts of the miniature web."""
    frontier = run.frontier
    text = [f"Odstavec {n}. " + "Slovo za slovem jde větou a nic se neděje. " * 20 for n in range(6)]
    host = next(iter(frontier.hosts))
    outcomes = [Outcome(1, "", Reason.BAD_QUALITY, 200, sketch=number) for number in range(1, 10_001)]
    traps = Traps(Options(lang="cs,en"), frontier.hosts)
    from spiderling.base.urls import canonicalize

    targets = [canonicalize(f"http://{host.name}/oddil/{number}/strana.html?id={number}") for number in range(10_000)]
    begin = time.process_time()
    for target in targets:
        assert target is not None
        traps.refusal(host.id, target.host, target.path)
    refusal = time.process_time() - begin
    begin = time.process_time()
    for target, outcome in zip(targets, outcomes, strict=True):
        assert target is not None
        visit = traps.visit(host, target.path, outcome)
        assert visit is not None
        traps.leave(visit)
    page = time.process_time() - begin
    begin = time.process_time()
    for number in range(1000):
        sketch(text, f"http://{host.name}/{number}")
    sketched = time.process_time() - begin
    cost = {
        "us_per_link": round(refusal * 100, 2), "us_per_page": round(page * 100, 1),
        "sketch_us": round(sketched * 1000, 1),
    }  # fmt: skip
    print("CPU: ", cost, f"sketch of {len(' '.join(text))} characters")
    return cost


if __name__ == "__main__":
    main()
