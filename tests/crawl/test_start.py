"""How a crawl begins: hosts are asked at once unless somebody may have asked them before; workers come later."""

from __future__ import annotations

import asyncio
import shutil
from types import SimpleNamespace

import pytest
from brokenparts import COUNTED
from conftest import ROOT, Crawl, crawled, page, serving
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.test import get_crawler

from spiderling.base.addresses import HostMap
from spiderling.base.options import Options
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.engine.dispatcher import Dispatcher
from spiderling.engine.scheduler import Scheduler
from spiderling.fetch.resolver import Resolver
from spiderling.spiders.spiderling import SpiderlingSpider


async def test_only_a_new_crawl_begins_at_once(tmp_path):
    """The second one finds a directory whose crawl was killed before its first checkpoint."""
    options = Options(lang="cs", allow_networks="127.0.0.0/8", dedup="exact", host_interval_s=5)
    for job, waits in (("job", False), ("killed", True)):
        crawl = OpenCrawl(options, tmp_path / job, pytest.fail)
        if not waits:
            shutil.copytree(tmp_path / "job", tmp_path / "killed")
        now = crawl.now()
        crawl.frontier.put_seed("http://a.test/", now)
        crawl.frontier.resolved("a.test", ("127.84.9.2",), 600, now)
        assert (crawl.frontier.take(now + 0.1) is None) == waits
        assert not waits or crawl.frontier.take(now + 5.1) is not None
        await crawl.close()


@pytest.mark.parametrize(
    ("given", "turns"),
    [({}, [8, 8, 8, 6, 0]), ({"shards": 20, "cluster": "unix:///of-all-shards-here"}, [3, 0, 0, 0, 0])],
)
async def test_hosts_that_are_due_at_once_are_asked_in_several_turns_of_the_loop(tmp_path, given, turns):
    """134 connections that were opened in one turn stopped the loop for 86 ms."""
    options = Options(lang="cs", allow_networks="127.0.0.0/8", dedup="exact", ip_interval_s=0, **given)
    crawl = OpenCrawl(options, tmp_path / "job", pytest.fail)
    busy = SimpleNamespace(active=set())
    engine = SimpleNamespace(spider=None, running=False, downloader=busy, needs_backout=lambda: False)
    crawler = SimpleNamespace(engine=engine, settings={}, signals=SignalManager())
    dispatcher = Dispatcher(crawler, crawl, Resolver(options, HostMap("")), HostMap(""))
    now = crawl.now()
    for number in range(30):
        crawl.frontier.put_seed(f"http://h{number}.test/", now)
    for name in crawl.frontier.names_wanted():
        crawl.frontier.resolved(name, ("127.84.9.2",), 600, now)
    begun = []
    for _ in range(5):
        before = len(busy.active)
        assert dispatcher.next_request() is None  # robots.txt of each host: fetched without a callback
        begun.append(len(busy.active) - before)
        assert dispatcher.changed.is_set() == any(begun[:-1])  # the engine is woken for what is left
        await asyncio.sleep(0)
    assert begun == turns or (given and sum(begun) < 30)  # a slow machine lets more begin
    await crawl.close()


async def test_a_crawl_whose_dispatcher_cannot_be_made_is_closed(tmp_path, monkeypatch):
    """Its directory would stay locked, and its store open, for as long as the process lives."""
    given = {"SPIDERLING_LANG": "cs", "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8", "JOBDIR": str(tmp_path / "job")}
    settings = get_crawler(settings_dict=given).settings
    crawler = SimpleNamespace(
        settings=settings, signals=None, engine=SimpleNamespace(downloader=None), spider=SpiderlingSpider()
    )
    scheduler = Scheduler(crawler)
    monkeypatch.setattr("spiderling.engine.dispatcher.Dispatcher", lambda *parts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scheduler.open(crawler.spider)
    assert scheduler.dispatcher is None
    await maybe_deferred_to_future(scheduler.close("shutdown"))  # as Scrapy does
    again = OpenCrawl(Options(lang="cs", allow_networks="127.0.0.0/8"), tmp_path / "job", pytest.fail)
    assert again.is_resumed
    await again.close()


def test_no_page_is_lost_when_no_worker_can_be_started(tmp_path):
    models = tmp_path / "models"
    shutil.copytree(ROOT / "models/cs", models / "cs")
    (models / "cs/ngrams.zst").write_bytes(b"no zstd")
    with serving({"a.test": {"/": page("a")}}) as server:
        crawl = Crawl(tmp_path / "job", server, MODELS=models)
        result = crawl.run("http://a.test/")
    assert result.code == 1
    assert len(result.lines("ERROR", "The crawl stops: ngrams.zst of the model of cs cannot be read")) == 1
    assert "Traceback" not in result.output
    crawl.state().check()
    assert crawl.state().urls == [("http://a.test/", 0)]


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_lines_that_nobody_reads_are_not_made(tmp_path, level):
    """Scrapy lets every line be made, some four a page, and its handlers refuse them afterwards."""
    web, made = {"a.test": {"/": page("a", "/1", "/gone"), "/1": page("one")}}, tmp_path / "made.txt"
    crawled(tmp_path / "job", web, LOG_LEVEL=level, EXTENSIONS=COUNTED, LOG_MADE=made)
    assert (int(made.read_text()) > 0) == (level == "DEBUG")
