"""Budgets of a host: it is left alone when it has given enough, and goes on with a larger budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import HostState


@pytest.mark.parametrize("budget", [{"max_host_documents": 5}, {"max_host_bytes": 5000}])
def test_a_host_that_has_given_enough_is_left_alone_and_goes_on_with_a_larger_budget(budget: dict[str, int]) -> None:
    web = {f"http://{host}.cz/{n}": page() for host in "ab" for n in range(8 if host == "a" else 3)}
    crawl = VirtualCrawl(web, **budget).run(*web)
    assert crawl.ends == {Reason.KEPT: 5 + 3, Reason.HOST_SPENT: 3}
    assert crawl.host("a.cz").state is HostState.SPENT
    crawl.run("http://a.cz/late")
    assert len(crawl.fetched("a.cz")) == 5, "also what is found later waits for a larger budget"
    crawl.commit()
    crawl.kill_and_resume()
    assert crawl.run().ends[Reason.HOST_SPENT] == 4, "the same budget is still spent"
    crawl.commit()
    crawl.options = replace(crawl.options, **{name: 10 * value for name, value in budget.items()})
    crawl.kill_and_resume()
    assert crawl.run().ends == {Reason.KEPT: 8 + 3, Reason.HTTP_ERROR: 1}
    assert not crawl.host("a.cz").pinned
