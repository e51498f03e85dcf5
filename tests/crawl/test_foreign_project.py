"""Spiders of other people, in projects of their own that only install the add-on: of the documentation, and others."""

from __future__ import annotations

import json
import os
import pickle
import re
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from conftest import ROOT, Crawl, document, page, paragraphs, serving
from scrapy.settings import Settings

from spiderling.addon import ENTRIES, SpiderlingAddon
from webs.web import html, not_found

SETTINGS = """
BOT_NAME = "foreign"
SPIDER_MODULES = ["foreign.spiders"]
ADDONS = {"spiderling.addon.SpiderlingAddon": 300}
COMMANDS_MODULE = "spiderling.commands"
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
"""


def project(directory, spider: str, settings: str = ""):
    """A Scrapy project with one spider."""
    package = directory / "project" / "foreign"
    (package / "spiders").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(SETTINGS + settings)
    (package / "spiders" / "__init__.py").write_text(spider)
    package.with_name("scrapy.cfg").write_text("[settings]\ndefault = foreign.settings\n")
    return package.parent


def feed(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def to_feed(path) -> str:
    return json.dumps({str(path): {"format": "jsonlines"}})


SEEING = """
DOWNLOADER_MIDDLEWARES = {"foreign.spiders.Seeing": 500}
DOWNLOAD_DELAY = 1
ROBOTSTXT_OBEY = True
AUTOTHROTTLE_ENABLED = True
DEPTH_LIMIT = 3
"""
"""The last four have no effect, and are named."""
TEN_LINES = """
import json
from collections import Counter
from urllib.parse import urlsplit
from scrapy import Spider, signals
from spiderling.items import PageItem

class Foreign(Spider):
    name = "foreign"
    start_urls = ["http://f.test/"]

    def parse(self, response):
        yield PageItem(response)
        yield {"title": response.css("title::text").get()}


class Seeing:  # a downloader middleware and receivers of signals
    def __init__(self, crawler):
        self.seen = Counter()
        for name in ("request_reached_downloader", "response_downloaded", "request_left_downloader", "headers_received",
                     "bytes_received", "response_received"):
            crawler.signals.connect(self.receiver(name), getattr(signals, name), weak=False)
        crawler.signals.connect(self.closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def receiver(self, name):
        def receive(request):
            self.note(name, request)
        return receive

    def note(self, name, request):
        self.seen[f"{name} {urlsplit(request.url).path}"] += 1

    def process_request(self, request):
        self.note("process_request", request)

    async def process_response(self, request, response):
        self.note("process_response", request)
        return response

    def closed(self):
        with open("seen.json", "w") as stream:
            json.dump(self.seen, stream)
"""


def test_ten_lines_get_text_language_dedup_and_corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.84.31.3:3128")
    english = "<p>" + "It was the best of times, and all of us had been there before it was over. " * 8 + "</p>"
    sites = {
        "/": page("first", "/b", "/copy", "/english"),
        "/b": page("b"),
        "/copy": page("b"),
        "/english": html(english),
    }
    with serving({"f.test": sites}) as server:
        crawl = Crawl(tmp_path / "job", server, project(tmp_path, TEN_LINES, SEEING), "foreign", LANG="cs")
        crawl.directory.mkdir()
        (crawl.directory / "spider.state").write_bytes(b"")  # as a full disk may leave it
        (crawl.directory / "crawl.log").symlink_to("/dev/full")
        result = crawl.start("", ("-O", f"{tmp_path}/items.jsonl"), lang="", DOWNLOAD_SLOTS="{}").wait()
    assert result.code == 0
    assert result.lines("] WARNING: ", "spider.state cannot be read", "begins with an empty state")
    assert not result.lines("] ERROR: ") and "Traceback" not in result.output and "Logging error" not in result.output
    documents = {doc.url: doc for doc in crawl.documents()}
    assert len(documents) == 2
    assert documents["http://f.test/"].paragraphs == paragraphs("first")
    assert documents["http://f.test/"].attributes["lang"] == "cs"
    assert crawl.state().ends == {"kept": 2, "duplicate": 1, "wrong-language": 1}
    items = feed(tmp_path / "items.jsonl")
    titles = [item["title"] for item in items if item.keys() == {"title"}]
    assert sorted(titles, key=str) == sorted(["Strana first", "Strana b", "Strana b", None], key=str)
    pages = {item["url"]: item for item in items if "text" in item}
    assert {url: page["text"].split("\n") for url, page in pages.items()} == {
        url: doc.paragraphs for url, doc in documents.items()
    }
    assert pages["http://f.test/"]["lang"] == "cs"
    (ignored,) = result.lines("Without effect in a crawl of Spiderling: ")
    assert "DOWNLOAD_DELAY (SPIDERLING_HOST_INTERVAL_S)" in ignored and "http_proxy in the env" in ignored
    assert "AUTOTHROTTLE_ENABLED (SPIDERLING_DELAY_FACTOR)" in ignored
    is_stock = bool(os.environ.get("STOCK_SCRAPY"))  # then Scrapy's own downloader heeds it
    assert ("DOWNLOAD_SLOTS (SPIDERLING_HOST_INTERVAL_S)" in ignored) is not is_stock
    assert "DEPTH_LIMIT (SPIDERLING_MAX_DISTANCE, in hosts)" in ignored
    everywhere = ("process_request", "request_reached_downloader", "response_downloaded", "request_left_downloader",
                  "headers_received", "bytes_received")  # fmt: skip
    expected = {f"{name} {path}" for name in everywhere for path in ("/robots.txt", *sites)}
    expected |= {f"{name} {path}" for name in ("process_response", "response_received") for path in sites}
    seen = json.loads((tmp_path / "project/seen.json").read_text())
    assert {name for name in seen if "tdmrep" not in name and "ai.txt" not in name} == expected
    assert set(seen.values()) == {1}


# -- Requests of a subclass


@contextmanager
def echo_server(address: str):
    """Answers what it was asked as a Czech page; /missing 404, /flaky 500, /moved/* and POST /login redirect."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            requests.append((self.command, self.path, self.headers.get("X-Number"), body))
            status = {"/missing": 404, "/wanted": 404, "/flaky": 500, "/robots.txt": 404}.get(self.path, 200)
            if self.path.startswith("/moved/"):
                status = 302
            elif self.path == "/login" and self.command == "POST":
                status = 303
            answer = document(f"{self.command} {self.path} {body}").encode()
            self.send_response(status)
            self.send_header("Location", "/login" if self.path == "/login" else "/target")
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer((address, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield SimpleNamespace(hosts_option=f"e.test={address}:{server.server_address[1]}", requests=requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


REQUESTS = """
from scrapy import FormRequest, Request, Spider

class Foreign(Spider):
    name = "foreign"

    async def start(self):
        self.state["runs"] = self.state.get("runs", 0) + 1
        for number in range(8):
            yield Request(f"http://e.test/item/{number}", self.item, headers={"X-Number": str(number)},
                          meta={"colour": "red", "number": number}, cb_kwargs={"number": number})
        yield Request("http://e.test/item/0", self.item, cb_kwargs={"number": -1})  # a duplicate
        for body in ("one", "two", "one"):
            yield Request("http://e.test/post", self.item, method="POST", body=body, cb_kwargs={"number": body})
        for path in ("missing", "flaky"):
            yield Request(f"http://e.test/{path}", self.item, errback=self.failed, cb_kwargs={"number": path})
        yield Request("http://e.test/login", self.item, method="POST", body="secret", cb_kwargs={"number": "login"})
        yield Request("http://e.test/wanted", self.item, errback=self.failed, cb_kwargs={"number": "wanted"},
                      meta={"handle_httpstatus_list": [404]})
        for number in (1, 2):
            yield Request(f"http://e.test/moved/{number}", self.item, errback=self.failed, meta={"colour": "blue"},
                          cb_kwargs={"number": f"moved {number}"})

    async def item(self, response, number):
        yield {"number": number, "colour": response.meta.get("colour"), "status": response.status,
               "url": response.url, "method": response.request.method}
        if number == 7:
            for _ in range(2):
                yield Request("http://e.test/again", self.item, dont_filter=True, cb_kwargs={"number": "again"})
                yield Request("http://e.test/once", self.item, cb_kwargs={"number": "once"})

    def failed(self, failure):
        yield {"failed": failure.request.cb_kwargs["number"], "why": type(failure.value).__name__}
"""


def test_requests_go_through_the_frontier_and_survive_pauses(tmp_path):
    with echo_server("127.84.7.2") as server:
        crawl = Crawl(
            tmp_path / "job", server, project(tmp_path, REQUESTS), "foreign",
            LANG="cs", HOST_INTERVAL_S=0.1, FEEDS=to_feed(tmp_path / "items.jsonl"),
        )  # fmt: skip
        first = crawl.run(lang="", CLOSESPIDER_PAGECOUNT=3)
        assert first.code == 0
        assert first.lines("was paused (closespider_pagecount)")
        crawl.state().check()
        assert 3 <= len(feed(tmp_path / "items.jsonl")) < 10
        running, before = crawl.start(lang=""), len(server.requests)
        running.until(lambda: len(server.requests) > before + 3)
        assert "was paused (shutdown)" in running.stop().output
        crawl.state().check()
        last = crawl.run(lang="")
        assert last.code == 0 and last.lines("is finished.")
    for result in (first, last):
        assert not result.lines("] ERROR: ") and "Traceback" not in result.output
    items = feed(tmp_path / "items.jsonl")
    pages = {item["number"]: item for item in items if "number" in item}
    numbers = Counter(item["number"] for item in items if "number" in item)
    expected = Counter([*range(8), "one", "two", "wanted", "login", "moved 1", "moved 2", "again", "again", "once"])
    assert numbers == expected
    assert all(pages[number]["colour"] == "red" for number in range(8))
    assert pages["wanted"]["status"] == 404
    assert pages["one"]["method"] == pages["two"]["method"] == "POST"
    assert {pages[f"moved {number}"]["url"] for number in (1, 2)} == {"http://e.test/target"}
    assert pages["moved 1"]["colour"] == pages["moved 2"]["colour"] == "blue"
    failed = {item["failed"]: item["why"] for item in items if "failed" in item}
    assert failed == {"missing": "Refused", "flaky": "Refused"}
    assert len(items) == sum(expected.values()) + 2

    asked = Counter((method, path, body) for method, path, _, body in server.requests)
    assert asked["GET", "/flaky", ""] == 2  # SPIDERLING_RETRIES=1
    assert asked["POST", "/post", "one"] == asked["POST", "/post", "two"] == 1
    assert asked["POST", "/login", "secret"] == asked["GET", "/login", ""] == 1
    assert asked["GET", "/again", ""] == 2 and asked["GET", "/once", ""] == 1
    assert {(path, number) for _, path, number, _ in server.requests if path.startswith("/item/")} == {
        (f"/item/{number}", str(number)) for number in range(8)
    }
    assert pickle.loads((crawl.directory / "spider.state").read_bytes()) == {"runs": 3}
    state = crawl.state()
    state.check()
    assert state.ends == {"no-page": sum(expected.values()), "http-error": 2, "redirected": 3}


EXITS = """
from scrapy import Request, Spider
from scrapy.exceptions import DropItem
from spiderling.items import PageItem

class Foreign(Spider):
    name = "foreign"

    async def start(self):
        for host in HOSTS:
            yield Request(f"http://{host}.test/", self.page, errback=self.failed)
            yield Request(f"http://{host}.test/next", self.page, errback=self.broken)

    def page(self, response):
        if "broken-callback" in response.url:
            raise ValueError("of a callback")
        yield PageItem(response)
        if "twice" in response.url:
            yield PageItem(response)
        if "late-callback" in response.url:
            raise ValueError("of a callback, after its page")

    def failed(self, failure):
        yield {"failed": failure.request.url}

    def broken(self, failure):
        raise ValueError("of an errback")

class Pipeline:
    def process_item(self, item):
        if isinstance(item, PageItem):
            if "drop" in item.response.url:
                raise DropItem("not wanted")
            if "broken-pipeline" in item.response.url:
                raise ValueError("of a pipeline")
        return item
"""
EXIT_HOSTS = ("kept", "twice", "drop", "broken-pipeline", "broken-callback", "late-callback", "gone")


def test_each_of_the_five_exits_ends_its_url_and_releases_the_host(tmp_path):
    sites = {f"{name}.test": {path: page(f"{name}{path}") for path in ("/", "/next")} for name in EXIT_HOSTS[:-1]}
    sites["gone.test"] = {}
    with serving(sites) as server:
        settings = 'ITEM_PIPELINES = {"foreign.spiders.Pipeline": 450}\n'
        foreign = project(tmp_path, f"HOSTS = {EXIT_HOSTS}{EXITS}", settings)
        crawl = Crawl(tmp_path / "job", server, foreign, "foreign", LANG="cs")
        feeds = json.loads(to_feed(tmp_path / "items.jsonl"))
        for name, kind in (("pages", "spiderling.items.PageItem"), ("own", "builtins.dict")):
            feeds[str(tmp_path / f"{name}.jsonl")] = {"format": "jsonlines", "item_classes": [kind]}
        result = crawl.run(lang="", FEEDS=json.dumps(feeds))
        asked = Counter((entry.host, entry.path) for entry in server.log_entries)
    assert result.code == 0
    assert asked == {(host, path): 1 for host in sites for path in ("/robots.txt", "/", "/next")}
    state = crawl.state()
    state.check()
    assert state.ends == {
        "kept": 6,  # late-callback.test among them: its pages were yielded before the callback failed
        "dropped-by-pipeline": 2,
        "item-error": 2,
        "spider-error": 2,
        "http-error": 2,
    }
    assert len(crawl.documents()) == 6
    assert [item["failed"] for item in feed(tmp_path / "items.jsonl") if "failed" in item] == ["http://gone.test/"]
    assert feed(tmp_path / "own.jsonl") == [{"failed": "http://gone.test/"}]
    assert [set(item) >= {"url", "lang", "text"} for item in feed(tmp_path / "pages.jsonl")] == 6 * [True]
    for host, record in state.hosts.items():
        assert record["state"] == "exhausted" and record["pages"] == 2, host
    for name in EXIT_HOSTS[:-1]:
        bodies = sum(len(answer.body) for answer in (*sites[f"{name}.test"].values(), not_found()))  # robots.txt: 404
        assert state.hosts[f"{name}.test"]["downloaded_bytes"] == bodies, name


# -- other kinds of spiders


NO_PAGES = "mailto:a@b.cz", "tel:+420123", "javascript:void(0)", "news:x", "http://[bad/"


def own_crawl(tmp_path, server, spider: str, name: str, settings: str = "", **options) -> Crawl:
    return Crawl(tmp_path / "job", server, project(tmp_path, spider, settings), name, LANG="cs", **options)


def urls(crawl: Crawl) -> list[str]:
    return sorted(doc.url.removeprefix("http://") for doc in crawl.documents())


def test_the_spider_of_the_documentation_survives_links_that_lead_to_no_page(tmp_path):
    """Its own Requests alone are followed; those under other top-level domains are refused."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/scrapy.md").read_text("utf-8"), re.DOTALL)
    (spider,) = [block for block in blocks if "class MySpider" in block]
    assert "https://example.org/" in spider
    links = "".join(f'<a href="{link}">odkaz</a>' for link in (*NO_PAGES, "/2", "http://b.de/"))
    first = document("first", "/unwanted").replace("<ul>", f'<ul class="article">{links}</ul><ul>')
    sites = {"a.cz": {"/": html(first), "/2": page("2"), "/unwanted": page("3")}, "b.de": {"/": page("4")}}
    with serving(sites) as server:
        spider = spider.replace("https://example.org/", "http://a.cz/")
        crawl = own_crawl(tmp_path, server, spider, "mine", TLDS="cz", FOLLOW="none")
        result = crawl.run(lang="")
    assert result.code == 0 and not result.lines("] ERROR: ") and "Traceback" not in result.output
    assert urls(crawl) == ["a.cz/", "a.cz/2"]
    assert crawl.state().mentions["out-of-scope"] == 4  # three links of the page, and b.de as a Request


CRAWL_SPIDER = """
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from spiderling.items import PageItem

class Foreign(CrawlSpider):
    name = "foreign"
    start_urls = ["http://f.test/"]
    rules = [Rule(LinkExtractor(allow="/list")), Rule(LinkExtractor(allow="/text"), callback="text", follow=False)]

    def text(self, response, **values):
        yield PageItem(response)
"""


def test_a_crawl_spider(tmp_path):
    sites = {"/": page("home", "/list", "/text/1", "/other"), "/list": page("list", "/text/2", "/text/1")}
    sites |= {f"/text/{number}": page(number) for number in (1, 2)}
    with serving({"f.test": sites}) as server:
        crawl = own_crawl(tmp_path, server, CRAWL_SPIDER, "foreign", FOLLOW="none")
        result = crawl.run(lang="")
        asked = [entry.path for entry in server.log_entries]
    assert result.code == 0 and not result.lines("] ERROR: ")
    assert urls(crawl) == ["f.test/text/1", "f.test/text/2"]
    assert sorted(asked) == ["/", "/list", "/robots.txt", "/text/1", "/text/2"]
    assert crawl.state().ends == {"no-page": 2, "kept": 2}


CACHED = """
from scrapy import Spider
from spiderling.items import PageItem

class Foreign(Spider):
    name = "foreign"
    start_urls = ["http://f.test/"]

    def parse(self, response):
        yield PageItem(response)
        yield {"flags": response.flags}

class Shouting:
    def process_item(self, item):
        if isinstance(item, PageItem) and item.page is not None:
            item.attributes["title"] = item.page.title.upper()
        return item
"""


@pytest.mark.slow
def test_scrapys_cache_and_a_pipeline_of_the_users_own(tmp_path):
    settings = 'HTTPCACHE_ENABLED = True\nITEM_PIPELINES = {"foreign.spiders.Shouting": 600}\n'
    with serving({"f.test": {"/": page("home", "/2"), "/2": page("2")}}) as server:
        crawl = own_crawl(tmp_path, server, CACHED, "foreign", settings, FEEDS=to_feed(tmp_path / "items.jsonl"))
        assert crawl.run(lang="").code == 0
        asked = len(server.log_entries)
        again = Crawl(tmp_path / "again", server, tmp_path / "project", "foreign", LANG="cs",
                      FEEDS=to_feed(tmp_path / "again.jsonl"))  # fmt: skip
        result = again.run(lang="")
        assert result.code == 0 and not result.lines("] ERROR: ")
        assert [entry.path for entry in server.log_entries[asked:]] == ["/robots.txt"], "pages came from the cache"
    assert again.digests() == crawl.digests() and len(again.digests()) == 2
    assert [item["flags"] for item in feed(tmp_path / "again.jsonl") if "flags" in item] == [["cached"]] * 2
    titles = {item["title"] for item in feed(tmp_path / "items.jsonl") if "title" in item}
    assert titles == {"STRANA HOME", "STRANA 2"}


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("SCHEDULER", "mine.Queue", "spiderling.engine.scheduler.Scheduler"),
        ("DOWNLOADER", "mine.Downloader", "mine.Downloader"),
        ("CONCURRENT_REQUESTS", None, 500), ("CONCURRENT_REQUESTS", 7, 7), ("RETRY_ENABLED", None, False),
    ],
)  # fmt: skip
def test_a_setting_of_the_project_wins_but_for_those_without_which_there_is_no_crawl(name, given, wanted):
    settings = Settings({} if given is None else {name: given})
    SpiderlingAddon().update_settings(settings)
    assert settings[name] == wanted


def test_settings_that_hold_components_have_ours_and_the_users():
    changed = {"mine.Pipeline": 50, "spiderling.pipelines.QualityPipeline": None}
    settings = Settings({"ITEM_PIPELINES": changed})
    SpiderlingAddon().update_settings(settings)
    assert dict(settings["ITEM_PIPELINES"]) == ENTRIES["ITEM_PIPELINES"] | changed


BROKEN_START = """
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from spiderling.items import PageItem

class Foreign(Spider):
    name = "foreign"
    ends = ""

    async def start(self):
        yield Request("http://a.test/")
        if self.ends == "error":
            raise ValueError("of the start")
        if self.ends == "close":
            raise CloseSpider("enough")

    def parse(self, response):
        yield PageItem(response)
        for link in ("/1", "/2"):
            yield response.follow(link)
"""


def test_an_error_of_a_start_stops_the_crawl_and_the_next_one_goes_on(tmp_path):
    """Scrapy would go on with the seeds that had come, and nothing would tell its engine when a host is due."""
    with serving({"a.test": {path: page(f"a{path}") for path in ("/", "/1", "/2")}}) as server:
        foreign = project(tmp_path, BROKEN_START)
        crawl = Crawl(tmp_path / "job", server, foreign, "foreign", LANG="cs")
        broken = crawl.run(arguments=("-a", "ends=error"), lang="")
        assert broken.code == 1, broken
        assert broken.lines("The crawl stops: ", "at the spider's start, ValueError: of the start"), broken
        closed = crawl.run(arguments=("-a", "ends=close"), lang="")
        assert closed.code == 0 and closed.lines("was paused (enough)"), closed
        assert crawl.run(lang="").code == 0
    crawl.state().check()
    assert crawl.state().ends == {"kept": 3}
