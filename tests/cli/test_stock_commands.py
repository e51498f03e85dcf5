"""Scrapy's own commands beside ours: they begin no crawl, open no JOBDIR, and answer as in a project without it."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, scrapy, serving

from spiderling.addon import ENTRIES
from webs.web import FixedWeb, html

BODY = "<html><title>Ano</title><p>Text.</p></html>"
PROJECT = """
BOT_NAME = "foreign"
SPIDER_MODULES = ["foreign"]
ADDONS = {"spiderling.addon.SpiderlingAddon": 300}
COMMANDS_MODULE = "spiderling.commands"
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
JOBDIR = "crawls/mine"
SPIDERLING_LANG = "cs"
"""
SPIDER = """
from scrapy import Spider

class Mine(Spider):
    name = "mine"

    def parse(self, response):
        '''The contract of this callback.

        @url {url}
        @returns items 1 1
        @scrapes title
        '''
        yield {{"title": response.css("title::text").get()}}
"""


@pytest.fixture(scope="module")
def url():
    address = "127.84.21.1"
    with serving(FixedWeb({address: {"/": html(BODY)}}, {address: address})) as server:
        yield f"http://{address}:{server.port}/"


@pytest.fixture
def project(tmp_path, url):
    """A project with the add-on, in which a crawl has a directory."""
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/__init__.py").write_text(SPIDER.format(url=url))
    (tmp_path / "told.py").write_text(PROJECT)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = told\n")
    return tmp_path


COMMANDS = {
    "shell": (["shell", "--nolog", "-c", "response.status", "URL"], "200\n"),
    "fetch": (["fetch", "--nolog", "URL"], f"{BODY}\n"),
    "view": (["view", "--nolog", "URL"], ""),
    "parse": (
        ["parse", "--nolog", "--noitems", "--nolinks", "--spider=mine", "URL"],
        "\n>>> STATUS DEPTH LEVEL 1 <<<\n",
    ),
    "check": (["check"], ""),
    "list": (["list"], "mine\n"),
    "settings": (["settings", "--get", "BOT_NAME"], "foreign\n"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_scrapy_in_a_project_with_the_add_on(project, url, command, monkeypatch):
    monkeypatch.setenv("BROWSER", "true")
    arguments, printed = COMMANDS[command]
    ended = scrapy(*[url if argument == "URL" else argument for argument in arguments], cwd=project)
    assert (ended.code, ended.out) == (0, printed), ended
    assert "Traceback" not in ended.log and "Spiderling" not in ended.log
    if command == "check":
        assert "Ran 2 contracts" in ended.log and "FAILED" not in ended.log
    assert not (project / "crawls").exists(), "it opened the crawl's directory"


SHOWN = {
    ("--get", "SCHEDULER"): "spiderling.engine.scheduler.Scheduler",
    ("--get", "SCHEDULER", "-s", "SCHEDULER=mine.Queue"): "spiderling.engine.scheduler.Scheduler",
    ("--get", "DOWNLOADER", "-s", "DOWNLOADER=mine.Downloader"): "mine.Downloader",
    ("--getint", "CONCURRENT_REQUESTS"): "500",
    ("--getint", "CONCURRENT_REQUESTS", "-s", "CONCURRENT_REQUESTS=7"): "7",
    ("--getbool", "RETRY_ENABLED"): "False",
    ("--getfloat", "SPIDERLING_HOST_INTERVAL_S"): "5.0",
    ("--get", "SPIDERLING_LANG"): "cs",
    ("--get", "JOBDIR"): "crawls/mine",
    ("--getlist", "SPIDER_MODULES"): "['foreign']",
}


@pytest.mark.parametrize("arguments", SHOWN, ids=" ".join)
def test_settings_are_those_of_a_crawl(project, arguments):
    """They were shown without what the add-on sets: SCHEDULER was Scrapy's, and ITEM_PIPELINES was empty."""
    ended = scrapy("settings", *arguments, cwd=project)
    assert (ended.code, ended.out) == (0, f"{SHOWN[arguments]}\n")
    ignored = "Without effect in a crawl of Spiderling: SCHEDULER (the frontier takes its place)\n"
    assert ended.log == (ignored if "SCHEDULER=mine.Queue" in arguments else "")


def test_settings_that_hold_components_have_ours_and_the_users(project):
    with (project / "told.py").open("a") as told:
        told.write("ITEM_PIPELINES = {'mine.Pipeline': 50, 'spiderling.pipelines.QualityPipeline': None}\n")
    shown = json.loads(scrapy("settings", "--get", "ITEM_PIPELINES", cwd=project).out)
    changed = {"mine.Pipeline": 50, "spiderling.pipelines.QualityPipeline": None}
    assert shown == ENTRIES["ITEM_PIPELINES"] | changed


@pytest.mark.parametrize("command", ["shell", "fetch", "view", "parse", "check"])
def test_the_same_without_our_commands_module(project, url, command, monkeypatch):
    told = project / "told.py"
    told.write_text(told.read_text().replace('COMMANDS_MODULE = "spiderling.commands"', ""))
    test_a_command_of_scrapy_in_a_project_with_the_add_on(project, url, command, monkeypatch)


def test_a_spider_of_ours_is_parsed_in_the_checkout_without_a_crawl(url, tmp_path):
    settings = ("-s", f"JOBDIR={tmp_path / 'job'}", "-s", "SPIDERLING_LANG=cs")
    ended = scrapy("parse", "--nolog", "--spider=spiderling", *settings, url, cwd=ROOT)
    assert ended.code == 0 and f"'response': <200 {url}>" in ended.out
    assert not (tmp_path / "job").exists()


def test_runspider_is_a_crawl_with_our_exit_codes(project):
    feed = ("-o", "x.jsonl", "-s", "SPIDERLING_ALLOW_NETWORKS=", "-s", "SPIDERLING_CONTACT=")
    ended = scrapy("runspider", "foreign/__init__.py", *feed, cwd=project)
    assert ended.code == 1 and ended.errors[0].startswith("The crawl stops: no contact is given")
    assert "Unrecognized output format" in scrapy("runspider", "foreign/__init__.py", "-o", "x.parqet", cwd=project).log


@pytest.mark.slow
def test_bench(project):
    """Scrapy's own server for it listens on all addresses."""
    ended = scrapy("bench", "-s", "CLOSESPIDER_TIMEOUT=1", cwd=project)
    assert ended.code == 0 and "Spider closed (closespider_timeout)" in ended.log
    assert not (project / "crawls").exists()
