"""What a page and its site say about the use of its text.  Pipeline 100 obeys it before it judges the text.

So a page that refuses ends as that, whatever its text is like, and its links are not followed if it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from scrapy.http import Headers

from spiderling.base.opt_outs import Policy, Signal, Statement, together
from spiderling.base.outcome import Follow
from spiderling.base.reasons import Reason
from spiderling.engine.outcomes import DropPage
from spiderling.text.optout import page_statements

if TYPE_CHECKING:
    from scrapy.http import Response

    from spiderling.crawl.crawl import Crawl
    from spiderling.items import PageItem

_INDEXING = {Signal.NOINDEX, Signal.NOARCHIVE, Signal.UNAVAILABLE_AFTER}
_HEADERS = (b"X-Robots-Tag", b"tdm-reservation", b"tdm-policy", b"Content-Usage", b"Content-Signal")
_KEYS = Headers(dict.fromkeys(_HEADERS, b"")).keys()


def obey_opt_outs(item: PageItem, crawl: Crawl) -> None:
    """Set ``item.statements`` and ``item.follow``; raises DropPage(NOINDEX or OPTED_OUT)."""
    assert item.page is not None
    policy = crawl.opt_outs
    response = item.response
    said = page_statements(headers_of(response), item.page.meta, crawl.options, crawl.clock.now())
    item.statements = [statement for statement in said if policy.sees(statement.signal)]
    item.follow = follow(item.statements, policy)
    item.statements = together(crawl.frontier.statements(response.url), item.statements)
    check_opt_outs(item.statements, policy)


def headers_of(response: Response) -> list[tuple[str, str]]:
    """The headers of *response* that may hold statements."""
    if not _KEYS & response.headers.keys():
        return []
    return [(name.decode(), value.decode("latin-1")) for name in _HEADERS for value in response.headers.getlist(name)]


def follow(statements: Iterable[Statement], policy: Policy) -> Follow:
    """Which links of a page may be followed."""
    if policy.obeys(Signal.NOFOLLOW) and any(said.signal is Signal.NOFOLLOW for said in statements):
        return Follow.NONE
    return Follow.UNMARKED if policy.obeys(Signal.REL_NOFOLLOW) else Follow.ALL


def check_opt_outs(statements: Iterable[Statement], policy: Policy) -> None:
    """Raises DropPage(NOINDEX or OPTED_OUT) when one of *statements* binds."""
    binding = policy.binding(statements)
    if binding is not None:
        raise DropPage(Reason.NOINDEX if binding.signal in _INDEXING else Reason.OPTED_OUT, str(binding))
