"""Each hostile answer by itself ends as it does in the crawl of all of them (test_hostile_crawl.py, which is slow)."""

from __future__ import annotations

import asyncio
import tracemalloc

import hostile_answers  # noqa: F401 - it fills CASES, as the next one
import hostile_pages  # noqa: F401
import pytest
from handled import DOWNLOAD_ERRORS, LIMIT, handling
from hostile import CASES, Case, hosting
from scrapy import Request

from spiderling.base.reasons import Reason
from spiderling.engine.outcomes import reason_of
from spiderling.fetch.client import MAX_HEAD_BYTES

ANSWERS = {
    name: case
    for name, case in CASES.items()
    if case.ends.keys() == {"/"} and case.robots is None and not case.raw and case.scheme == "http"
}
FAILURES = {
    Reason.CONNECTION, Reason.TIMEOUT, Reason.TOO_SLOW, Reason.BAD_HTTP, Reason.TOO_BIG, Reason.NOT_TEXT,
    Reason.UNDECODABLE,
}  # fmt: skip
"""How a download ends without a response; what becomes of a response is not the handler's."""
FLOODS = [name for name in ANSWERS if name.startswith(("flood-", "bomb-"))]
SECONDS_LONG = ("flood-1xx", "flood-100", "flood-tiny-chunks")
WAITED_FOR = [name for name in ANSWERS if name.startswith(("silent-", "drip-"))]
AT_ONCE = [name for name in ANSWERS if name not in {*FLOODS, *WAITED_FOR}]


@pytest.fixture(scope="module")
def web():
    with hosting(ANSWERS) as running:
        yield running


async def wrong_end(handler, case: Case) -> str:
    """How the first page of *case* ended, if otherwise than it should."""
    allowed = case.ends["/"] if isinstance(case.ends["/"], tuple) else (case.ends["/"],)
    request = Request(case.url("/"), meta={"judge_type": True})
    try:
        response = await handler.download_request(request)
    except DOWNLOAD_ERRORS as error:
        return "" if reason_of(error) in allowed else f"{case.name}: {error!r}, not {allowed}"
    assert isinstance(response.body, bytes) and request.meta["wire_bytes"] >= 0
    return "" if set(allowed) - FAILURES else f"{case.name}: {response}, not {allowed}"


async def wrong_ends(handler, names: list[str]) -> list[str]:
    return [line for line in await asyncio.gather(*(wrong_end(handler, ANSWERS[name]) for name in names)) if line]


async def test_an_answer_ends_as_in_the_crawl(web):
    async with handling(HOSTS=web.hosts_option, MAX_BODY_BYTES=5_000_000) as handler:
        assert await wrong_ends(handler, AT_ONCE) == []
    assert len(AT_ONCE) > 100


async def test_an_answer_that_is_waited_for_ends_as_in_the_crawl(web):
    constants = {"FIRST_BYTE_TIMEOUT_S": 1, "SLOW_WINDOW_S": 1}
    async with handling(HOSTS=web.hosts_option, TIMEOUT_S=4, constants=constants) as handler:
        assert await wrong_ends(handler, WAITED_FOR) == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SECONDS_LONG else name for name in FLOODS]
)
async def test_a_flood_or_bomb_ends_soon_and_in_bounded_memory(web, name):
    body_bytes, ceiling_bytes = (LIMIT, 3_000_000) if name.startswith("bomb-") else (5_000_000, 8 * MAX_HEAD_BYTES)
    constants = {"FIRST_BYTE_TIMEOUT_S": 600}
    async with handling(
        HOSTS=web.hosts_option, TIMEOUT_S=600, MAX_BODY_BYTES=body_bytes, constants=constants
    ) as handler:
        tracemalloc.start()
        wrong = await wrong_end(handler, ANSWERS[name])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert not wrong
    assert peak < ceiling_bytes
