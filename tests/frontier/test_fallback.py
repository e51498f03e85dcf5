"""A name with addresses of both families: which is used, which stands by, and that the second keeps its turn too."""

from __future__ import annotations

import pytest
from virtual_crawl import Resolution, VirtualCrawl, page

from spiderling.base.options import Options
from spiderling.frontier.schedule import Names, NameStatus

FOUR, SIX = "192.0.2.1", "2001:db8::1"


@pytest.mark.parametrize(
    ("addresses", "forbidden", "address", "fallback"),
    [
        ((FOUR, SIX), (), FOUR, SIX),
        ((SIX, FOUR), (), SIX, FOUR),
        ((FOUR, "192.0.2.2"), (), FOUR, ""),
        ((FOUR, "192.0.2.2", SIX), (), FOUR, SIX),
        ((FOUR, SIX), (FOUR,), SIX, ""),
        ((FOUR, SIX), (SIX,), FOUR, ""),
        ((FOUR, "2001:db8::2", SIX), ("2001:db8::2",), FOUR, SIX),
    ],
)
def test_the_fallback_is_the_first_allowed_address_of_the_other_family(addresses, forbidden, address, fallback):
    names = Names(Options(), lambda candidate: candidate not in forbidden)
    names.resolved("a.cz", addresses, 60, 0)
    known = names.lookup("a.cz", 1)
    assert (known.status, known.address, known.fallback) == (NameStatus.FRESH, address, fallback)
    assert names.fallback("a.cz", address) == fallback
    assert names.fallback("a.cz", "192.0.2.9") == names.fallback("b.cz", address) == ""


def test_a_request_is_handed_out_with_its_first_address_and_the_schedule_knows_the_other() -> None:
    crawl = VirtualCrawl({"http://a.cz/": page()}, {"a.cz": Resolution((FOUR, SIX))}).run("http://a.cz/")
    assert {start.address for start in crawl.starts} == {FOUR}
    assert crawl.frontier.schedule.names.fallback("a.cz", FOUR) == SIX


def test_the_second_address_is_tried_only_when_its_own_turn_has_come() -> None:
    frontier = VirtualCrawl({}, ip_interval_s=0.5).frontier
    assert frontier.intervals.may_also_start(SIX, 10.0)
    assert not frontier.intervals.may_also_start(SIX, 10.4)
    assert frontier.intervals.may_also_start(FOUR, 10.4)
    assert frontier.intervals.may_also_start(SIX, 10.5)
