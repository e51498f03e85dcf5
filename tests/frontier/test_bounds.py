"""What is kept in memory to save work has a bound, and a crawl gives the same without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from virtual_crawl import VirtualCrawl, page, robots

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.site_files import parse_rules
from spiderling.frontier.storage.host_table import NameIndex
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategies import Spiderling
from spiderling.frontier.url_states import Ledger

HOSTS, PAGES, STEP_S = 30, 6, 20.0
FOUND_AGAIN = {
    "schedule.MAX_NAMES": 6,
    "storage.host_table.MAX_RECENT_NAMES": 5,
    "known_files.MAX_RECORDS": 6,
    "known_files.MAX_PARSED": 4,
}
"""What is forgotten has to be asked for, looked up, read or parsed once more."""
LOST = {"worth.SECTIONS": 5, "worth.MAX_HOSTS": 5}  # what is forgotten is known no more


def crawled(monkeypatch: pytest.MonkeyPatch) -> tuple[VirtualCrawl, Counter[str]]:
    """A crawl of hosts that all lead to each other, and for each bound how often something was found."""
    work = Counter(dict.fromkeys(FOUND_AGAIN, 0))

    def counted(bound: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any) -> Any:
            work[bound] += 1
            return function(*arguments)

        return counting

    urls = [f"http://h{host}.cz/cast{number}/a" for number in range(PAGES) for host in range(HOSTS)]
    web = {url: page(*urls[at + 1 : at + 40], *urls[: at // 9]) for at, url in enumerate(urls)}
    web |= {f"http://h{host}.cz/robots.txt": robots("User-agent: *\nDisallow: /x\n") for host in range(HOSTS)}
    with monkeypatch.context() as patched:
        patched.setattr(NameIndex, "find", counted("storage.host_table.MAX_RECENT_NAMES", NameIndex.find))
        patched.setattr(SqliteStore, "robots", counted("known_files.MAX_RECORDS", SqliteStore.robots))
        patched.setattr("spiderling.frontier.known_files.parse_rules", counted("known_files.MAX_PARSED", parse_rules))
        crawl = VirtualCrawl(web, yield_profile="off", strategy="spiderling:thrift=0", active_hosts=8)
        crawl.run(urls[0], until=crawl.now)
        while not crawl.frontier.is_finished:
            crawl.run(until=crawl.now + STEP_S)
            crawl.commit()
    strategy = crawl.frontier.strategy
    assert isinstance(strategy, Spiderling)
    _, sections, _, hosts, *_ = strategy.worth.columns()
    work["schedule.MAX_NAMES"] = crawl.questions.total()
    work["worth.SECTIONS"] = len(sections) // 8
    work["worth.MAX_HOSTS"] = len(hosts) // 8
    return crawl, work


def test_crawl_with_little_memory_fetches_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are asked for again, robots.txt read from the store: nothing is lost."""
    usual, usual_work = crawled(monkeypatch)
    for name, most in {**FOUND_AGAIN, **LOST}.items():
        monkeypatch.setattr(f"spiderling.frontier.{name}", most)
    bounded, work = crawled(monkeypatch)
    assert all(work[name] > 5 * usual_work[name] for name in FOUND_AGAIN), work
    assert all(work[name] <= most < usual_work[name] for name, most in LOST.items()), work
    assert set(bounded.fetched()) == set(usual.fetched())
    assert bounded.ends == usual.ends == {Reason.KEPT: HOSTS * PAGES}


def test_licences_that_nobody_has_heard_of_are_counted_together() -> None:
    """A page can name any."""
    ledger = Ledger()
    for number in range(2000):
        ledger.count_outcome(Outcome(number, f"http://a.cz/{number}", Reason.KEPT, facts=(f"licence/{number}",)))
    assert len(ledger.facts) <= 502
    assert ledger.facts["licence/other"] == 2000 - (len(ledger.facts) - 2)
