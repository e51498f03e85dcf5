"""Challenges of sites' edges are known by headers or by structure, and nothing else is taken for one."""

from __future__ import annotations

import random
import time

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Headers

from spiderling.fetch.messages import MAX_PAGE_BYTES, challenge_of
from webs.challenges import CHALLENGES, OTHERS
from webs.recorded import RecordedWeb
from webs.web import WebResponse


def maker_of(answer: WebResponse) -> str:
    return challenge_of(answer.status, Headers(answer.headers), answer.body)


@pytest.mark.parametrize("name", CHALLENGES)
def test_each_makers_challenge_is_known(name: str) -> None:
    maker = maker_of(CHALLENGES[name])
    assert maker
    assert name.startswith(maker)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_challenge_is_not_taken_for_one(name: str) -> None:
    assert maker_of(OTHERS[name]) == ""


@pytest.mark.parametrize("name", ["anubis", "imperva", "fastly"])
def test_page_of_much_text_or_size_is_none(name: str) -> None:
    body = CHALLENGES[name].body
    assert challenge_of(200, {}, body)
    assert challenge_of(200, {}, body + b"text of a page " * 500) == ""
    assert challenge_of(200, {}, body + b"<!--" + b" " * MAX_PAGE_BYTES) == ""
    assert challenge_of(200, {}, body + b"<script>" + b"code of a page " * 500) != "", "scripts are no text"


@given(st.binary(max_size=300), st.sampled_from(sorted(CHALLENGES)), st.integers(0, 2000))
def test_any_bytes_around_a_mark_do_no_harm(noise: bytes, name: str, at: int) -> None:
    body = CHALLENGES[name].body
    assert isinstance(challenge_of(200, Headers({"Cf-Mitigated": noise}), body[:at] + noise + body[at:]), str)


def test_hostile_page_takes_no_longer_than_its_bytes() -> None:
    """A hundred kilobytes of opened scripts, with marks: the time must not grow with their square."""
    pages = [b"/.safeline/static/" + piece * (90_000 // len(piece)) for piece in (b"<script>", b"<", b"<style", b"</")]
    begin = time.process_time()
    for body in pages:
        challenge_of(200, {}, body)
    assert time.process_time() - begin < 60


def test_no_page_of_the_bundled_web_is_one() -> None:
    web = RecordedWeb(ROOT / "examples/miniweb")
    pages = [(host, path) for host in web.hosts() for path in web.paths(host)]
    some = random.Random(1).sample(pages, min(len(pages), 2000))
    assert [place for place in some if maker_of(web.respond(*place))] == []
    assert len(some) > 500
