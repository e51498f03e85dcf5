"""Whether the crawler keeps its manners: intervals, hostile servers, and what site owners say, URL by URL.

    python -m benchmarks.polite [--quick]

(a) The real spider crawls the sites of tests/web/politeness_web.py, over http and https: they
redirect to each other, answer 429 and 503, ask for a Crawl-delay, answer late or under www and
without, twelve hosts on each of six addresses.  Every two connections that follow each other
at a host or at an address are held to the interval, by the crawler's own log of them, but for
TOLERANCE_S; and the arrivals in the servers' access logs, which are not the starts, but for
ARRIVAL_S.  (b) All cases of tests/web/hostile.py in one crawl.  (c) The 49 sites of webs/consent.py, crawled for each
purpose: violations are pages that were fetched, kept or left out otherwise than their owners say.  false_challenges:
pages of the bundled web that were taken for challenges.  us_per_page: processor time of all judgements of a page.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from conftest import Crawl, document, serving
from hostile_crawl import crawl_all, failures
from politeness_web import HOST_INTERVAL_S, IP_INTERVAL_S, Sites, read_starts, serve_both, spacing
from startlog import EXTENSIONS

from benchmarks.common import ROOT, arguments, result, table
from spiderling.base.opt_outs import RslFile, together
from spiderling.base.options import Options
from spiderling.base.urls import canonicalize
from spiderling.fetch.messages import challenge_of
from spiderling.frontier.robots import Robots, RobotsVerdict
from spiderling.frontier.site_files import FileAnswer, SiteFile
from spiderling.text.html.parser import parse as parse_page
from spiderling.text.optout import licences, page_statements
from webs.consent import PURPOSES, consent_web, seeds_of, violations
from webs.recorded import RecordedWeb


def crawled(letter: str) -> tuple[int, list[str]]:
    """(cases, violations) of a real crawl for one purpose."""
    web, cases = consent_web(document)
    with tempfile.TemporaryDirectory() as name, serving(web) as server:
        seeds = Path(name, "seeds.txt")
        seeds.write_text(seeds_of(cases))
        crawl = Crawl(Path(name, "job"), server, OPTOUTS="", PURPOSE=PURPOSES[letter], HOST_INTERVAL_S=0.02)
        outcome = crawl.start(str(seeds), fresh=True).wait(600)
        assert outcome.code == 0, outcome.output[-2000:]
        fetched = {f"http://{entry.host}{entry.path}" for entry in server.log_entries}
        ends = {url: reason for url, (reason, _) in crawl.ended().items()}
        return len(cases), violations(cases, letter, ends, fetched)


class Site(NamedTuple):
    """What an owner says of one page."""

    url: str
    headers: list[tuple[str, str]]
    meta: dict[str, str]


def spoken(robots: Robots) -> list[Site]:
    """The pages of webs/consent.py, whose files are noted in *robots*."""
    web, cases = consent_web(document)
    sites = []
    for case in cases:
        target = canonicalize(case.url)
        assert target is not None
        for file in (SiteFile.ROBOTS, SiteFile.TDMREP, SiteFile.AI_TXT):
            answer = web.respond(target.name, file.value)
            robots.note_answer(target.origin, FileAnswer(answer.status, answer.body), 0.0, file)
        answer = web.respond(target.name, target.path)
        page = parse_page(answer.body.decode("latin-1"))
        headers = [(name, value) for name, value in answer.headers.items() if name != "Content-Type"]
        for address in (*robots.licences.of(target.origin), *licences(headers, page.meta)[0]):
            if licence := canonicalize(address):
                answer = web.respond(licence.name, licence.path)
                robots.note_answer(licence.url, FileAnswer(answer.status, answer.body), 0.0, SiteFile.LICENCE)
        sites.append(Site(target.url, headers, page.meta))
    return sites


def judging(robots: Robots, sites: list[Site], bodies: list[bytes], rounds: int) -> float:
    """Microseconds of processor time for all judgements of a page."""
    options = Options()
    policy = options.policy()
    origins = [url.partition("//")[2].partition("/")[0] for url, _, _ in sites]
    begin = time.process_time()
    for number in range(rounds):
        url, headers, meta = sites[number % len(sites)]
        verdict = robots.judge(f"http://{origins[number % len(sites)]}", url, 1.0)
        if verdict is not RobotsVerdict.ALLOWED:
            continue
        challenge_of(200, {}, bodies[number % len(bodies)])
        said = [one for one in page_statements(headers, meta, options, 1.8e9) if policy.sees(one.signal)]
        linked, inline = licences(headers, meta)
        if linked:
            said += robots.licences.of_page(url, linked, 1.0) or []
        for text in inline:
            said += RslFile(text.encode()).statements(url, "/")
        policy.binding(together(robots.statements_of(url), said))
    return (time.process_time() - begin) / rounds * 1e6


def bundled() -> Iterator[bytes]:
    web = RecordedWeb(ROOT / "examples" / "miniweb")
    for host in web.hosts():
        for path in web.paths(host):
            yield web.respond(host, path).body


def consent(given: argparse.Namespace) -> dict[str, object]:
    """Whether crawls for each purpose do what site owners say, and what judging a page costs."""
    rows = []
    for letter, purpose in PURPOSES.items():
        number, found = crawled(letter)
        rows.append((purpose, number, len(found)))
        print("\n".join(found))
    bodies = list(bundled())
    challenges = [body for body in bodies if challenge_of(200, {}, body)]
    robots = Robots(Options())
    sites = spoken(robots)
    us = min(judging(robots, sites, bodies, 2_000 if given.quick else 20_000) for _ in range(5))
    table(("purpose", "pages", "violations"), rows)
    print(f"{len(challenges)} of {len(bodies):,} pages were taken for challenges; {us:.1f} us a page")
    return {
        "cases": sum(row[1] for row in rows),
        "violations": sum(row[2] for row in rows),
        "false_challenges": len(challenges),
        "us_per_page": round(us, 1),
    }


TOLERANCE_S, ARRIVAL_S = 0.002, 0.025


def manners(options: argparse.Namespace) -> dict[str, object]:
    """The intervals that were kept, and the hostile cases."""
    seconds = 15 if options.quick else 120
    with tempfile.TemporaryDirectory() as directory:
        sites, log = Sites(), Path(directory, "starts.tsv")
        with serving(sites, serve_both) as server:
            crawl = Crawl(
                Path(directory, "polite"), server, HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=IP_INTERVAL_S,
                DELAY_FACTOR=1, RETRIES=2, TRAPS="pages=0,copies=0,mirror=0", CLOSESPIDER_TIMEOUT=seconds,
                DEDUP="off", CONSTANTS={"engine.dispatcher.STOP_TIMEOUT_S": 1}, EXTENSIONS=EXTENSIONS, LOG_STARTS=log,
            )  # fmt: skip
            crawl.run(sites.seeds(), timeout=seconds + 120)
            entries = list(server.log_entries)
        starts, lags = read_starts(log, entries)
        rows = [
            [f"{what}, by {by}", *spacing(lines, by, tolerance_s)]
            for what, lines, tolerance_s in (("starts", starts, TOLERANCE_S), ("arrivals", entries, ARRIVAL_S))
            for by in ("host", "address")
        ]
        table(("", "number", "pairs", "too close", "worst by ms"), [
            [*row[:4], round(1000 * row[4], 1)] for row in rows
        ])  # fmt: skip
        print("answers", dict(sorted(Counter(entry.status for entry in entries).items())))
        print(f"from start to arrival: {1000 * statistics.median(lags):.0f} ms, at most {1000 * max(lags):.0f}")
        cases = failures(crawl_all(Path(directory, "hostile")))
    for name, lines in cases.items():
        for line in lines:
            print(f"hostile case {name}: {line}")
    return {
        "requests": len(entries),
        "host_violations": rows[0][3],
        "ip_violations": rows[1][3],
        "hostile_cases": len(cases),
        "hostile_failed": sum(map(bool, cases.values())),
    }


def main() -> None:
    options = arguments(__doc__)
    result(**manners(options), **consent(options))


if __name__ == "__main__":
    main()
