"""A crawl whose disk is nearly full asks for nothing, and goes on when there is room."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from conftest import Crawl, page, serving

from spiderling.base.options import Options
from spiderling.extensions import limits
from webs.web import FixedWeb

LIMIT = 1_000


def test_it_pauses_at_once_says_why_and_the_same_command_goes_on(tmp_path):
    sites = {"a.test": {"/": page("a", "/1"), "/1": page("a 1")}}
    with serving(FixedWeb(sites, {"a.test": "127.84.52.1"})) as server:
        crawl = Crawl(tmp_path, server)
        running = crawl.start("http://a.test/", MIN_FREE_BYTES=10**18, LOGSTATS_INTERVAL=1)
        running.until(lambda: "paused (the disk is nearly full)" in running.output())
        assert not server.log_entries
        ended = running.stop()
        assert ended.lines("WARNING", "has only", "less than SPIDERLING_MIN_FREE_BYTES") and ended.code == 0
        assert crawl.run("http://a.test/").code == 0
        assert len(crawl.documents()) == 2


async def test_it_goes_on_when_there_is_room(monkeypatch, caplog):
    looks = iter([LIMIT, LIMIT - 1, LIMIT - 2, LIMIT])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=next(looks)))
    monkeypatch.setattr(limits.FreeDisk, "repeat", lambda self, action, every_s, what: actions.append(action))
    actions: list = []
    woken: list[bool] = []
    crawl = SimpleNamespace(
        options=Options(min_free_bytes=LIMIT), archives=None, jobdir=SimpleNamespace(path="x"), is_disk_full=False
    )
    extension = limits.FreeDisk(SimpleNamespace(signals=SimpleNamespace(connect=lambda *_: None)))
    extension.crawl = crawl
    extension.dispatcher = SimpleNamespace(wake=lambda: woken.append(crawl.is_disk_full))
    await extension.opened()
    seen = [crawl.is_disk_full]
    for _ in range(3):
        await actions[0]()
        seen.append(crawl.is_disk_full)
    assert seen == [False, True, True, False] and woken == [False]
    assert [message[:6] for message in caplog.messages] == ["paused", "The cr"]


@pytest.mark.parametrize(("limit", "archives"), [(0, None), (LIMIT, object())])
async def test_without_a_limit_and_for_archives_nobody_looks(limit, archives):
    extension = limits.FreeDisk(SimpleNamespace(signals=SimpleNamespace(connect=lambda *_: None)))
    extension.crawl = SimpleNamespace(options=Options(min_free_bytes=limit), archives=archives)
    await extension.opened()
    assert not hasattr(extension.crawl, "is_disk_full"), "nobody has looked"
