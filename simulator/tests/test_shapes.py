"""Webs made for one question: who gives bad hosts up finds little, and farms give nothing."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.comparison import Task, Terms, crawl, make_web
from simulator.pages import CODES
from spiderling.base.reasons import Reason


def words_share(web: str, strategy: str) -> float:
    run = crawl(Task(web, strategy, 1), Terms(pages=3_000, hours=48, word_share=1.1))
    return run.last.words / run.truth.words


@pytest.mark.parametrize("rival", ["simulator.rivals.Lswc:s=1,t=1", "simulator.rivals.Lswc:s=3,t=5"])
def test_text_behind_three_hops_of_bad_hosts_is_found_by_who_comes_back_to_them(rival: str) -> None:
    assert words_share("hops", rival) < 0.5
    assert words_share("hops", "spiderling") > 0.97


def test_blogs_stand_on_six_addresses_and_farms_have_no_text() -> None:
    web = make_web("platforms", 1, Terms(pages=3_000))
    assert len(np.unique(web.hosts.address)) == 6
    farm = web.pages.verdict == CODES[Reason.BAD_QUALITY]
    assert 0.05 < farm.mean() < 0.3
    assert not web.pages.kept_bytes[farm].any()
    assert words_share("platforms", "spiderling") > 0.97
