"""``scrapy seeds wikipedia|search|commoncrawl`` against servers on loopback that speak their formats, and files."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import DEFAULTS, scrapy
from needs import needs

LINKS = [f"https://w{number}.example/page" for number in range(7)] + ["//w8.example/", "https://www.facebook.com/x"]
DUMP = (
    "-- MySQL dump\nCREATE TABLE `externallinks` (\n  `el_id` int,\n  `el_from` int,\n"
    "  `el_to_domain_index` varbinary(255),\n  `el_to_path` blob\n);\n"
    "INSERT INTO `externallinks` VALUES (1,5,'https://cz.example.www.','/a\\'(b),c'),(2,5,'http://cz.other.','/'),"
    "(3,6,'https://org.third.:8080','NULL'),(4,6,'http://com.facebook.','/x');\n"
    "-- Dump completed on 2026-11-01\n"
)
OLD_DUMP = (
    "CREATE TABLE `externallinks` (\n  `el_id` int,\n  `el_from` int,\n  `el_to` blob,\n  `el_index` blob\n);\n"
    "INSERT INTO `externallinks` VALUES (1,5,'//old.example/a','x'),(2,5,'mailto:a@b.c','y');\n-- Dump completed on\n"
)
CAPTURES = [
    {"url": "http://one.cz/a", "status": "200", "languages": "ces"},
    {"url": "http://one.cz/b", "status": "200", "languages": "ces,eng"},
    {"url": "http://two.cz/", "status": "200", "languages": "eng"},
    {"url": "http://three.cz/", "status": "200"},
    {"url": "http://four.com/", "status": "200", "languages": "ces"},
    {"url": "http://five.com/", "status": "200"},
    {"url": "http://six.cz/", "status": "404", "languages": "ces"},
]
HOMES = ["http://four.com/", "http://one.cz/", "http://three.cz/"]


class Service(BaseHTTPRequestHandler):
    """A MediaWiki API, a SearXNG instance and a server of CDX indexes."""

    asked: list[str] = []  # noqa: RUF012 - the test's record

    def do_GET(self):
        address = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        answer = getattr(self, "get_" + address.path.strip("/").replace(".", "_").replace("/", "_"), None)
        if address.path != "/robots.txt":
            self.asked.append(self.path)
        self.say(*answer(query)) if answer else self.say(404, "nothing here")

    def do_POST(self):
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        query = {key: values[0] for key, values in parse_qs(form).items()}
        self.asked.append(form)
        if self.path == "/closed":
            self.say(403, "Forbidden")
        else:
            word = query["q"].split()[0]
            urls = [f"https://{word}.example/", "https://www.youtube.com/watch?v=1", "https://same.example/"]
            self.say(200, {"results": [{"url": url} for url in urls]})

    def get_w_api_php(self, query):
        start = int(query.get("eucontinue", 0))
        if start == 3 and not any("again" in line for line in self.asked):
            self.asked.append("again")
            return 429, "slow down"
        found = [{"url": url} for url in LINKS[start : start + 3]]
        further = {"continue": {"eucontinue": str(start + 3), "continue": "-||"}} if start + 3 < len(LINKS) else {}
        return 200, {"query": {"exturlusage": found}, **further}

    def get_refuses(self, query):
        return 200, {"error": {"code": "ratelimited", "info": "You've exceeded your rate limit."}}

    def get_page(self, query):
        return 200, "<html>a page</html>"

    def get_collinfo_json(self, query):
        return 200, [{"id": "CC-MAIN-2026-40", "cdx-api": f"http://{self.headers['Host']}/index"}]

    def get_index(self, query):
        if query["url"] != "*.cz":
            return 404, {"message": "No Captures found"}
        if "showNumPages" in query:
            return 200, {"pages": 40, "pageSize": 5, "blocks": 200}
        return 200, "".join(json.dumps(capture) + "\n" for capture in CAPTURES)

    def say(self, status, content):
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def running():
    with ThreadingHTTPServer(("127.84.14.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.84.14.1:{server.server_port}"
        server.shutdown()
        thread.join(5)


@pytest.fixture
def service():
    Service.asked.clear()
    with running() as address:
        yield address


@pytest.fixture
def seeds(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTANTS", json.dumps({"spiderling.frontier.intervals.RETRY_DELAY_S": 0.2}))
    options = {**DEFAULTS, "SPIDERLING_PORTS": "all"}
    settings = [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    out = str(tmp_path / "seeds.txt")
    return lambda *arguments: scrapy("seeds", *arguments, "-a", "lang=cs", "-o", out, *settings)


@pytest.fixture
def found(tmp_path):
    return lambda: [line for line in (tmp_path / "seeds.txt").read_text().splitlines() if not line.startswith("#")]


def test_wikipedia_by_its_api_waits_when_told_to(service, seeds, found):
    ended = seeds("wikipedia", "--api", f"{service}/w/api.php")
    assert ended.code == 0, ended.log
    assert found() == [*LINKS[:7], "https://w8.example/"], "each page of the API, no platforms"
    assert len(Service.asked) == 5, "three pages, one of them twice, and the note of it"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("refuses", "refuses (ratelimited: You've exceeded your rate limit.); repeat the command later"),
        ("page", "answered 200 with something that is no answer of a MediaWiki API; use a dump"),
        ("none", "answered 404 with something that is no answer"),
    ],
)
def test_api_that_refuses(service, seeds, tmp_path, path, message):
    assert message in seeds("wikipedia", "--api", f"{service}/{path}").refusal
    assert (tmp_path / "seeds.txt.state").is_dir(), "the same request is made again"
    before = len(Service.asked)
    seeds("wikipedia", "--api", f"{service}/{path}")
    assert len(Service.asked) > before


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wikipedia_by_its_dump(seeds, found, tmp_path, pack):
    path, old = tmp_path / "x-externallinks.sql.gz", tmp_path / "old.sql"
    path.write_bytes(pack(DUMP.encode()))
    old.write_text(OLD_DUMP)
    ended = seeds("wikipedia", str(path), str(old))
    assert ended.code == 0, ended.log
    assert found() == [
        "https://www.example.cz/a'(b),c", "http://other.cz/", "https://third.org:8080/", "https://old.example/a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(DUMP.encode() * 50)[:-40], "cannot be read to its end (it is not whole); download it again."),
        (DUMP.partition("-- Dump")[0].encode(), "breaks off before its end; download it again. 3 new seeds"),
        (b"<html>not found</html>", "is no dump of external links; take"),
    ],
)
def test_half_a_dump(seeds, tmp_path, content, message):
    path = tmp_path / "x.sql.gz"
    path.write_bytes(content)
    assert message in seeds("wikipedia", str(path)).refusal


def test_search_is_repeatable(service, seeds, found, tmp_path):
    arguments = ("search", "--endpoint", f"{service}/search", "--queries", "4", "--size", "3")
    assert seeds(*arguments, "--seed", "7").code == 0
    first, queries = found(), sorted(Service.asked)
    assert len(queries) == 4 and all("format=json" in query and "language=cs" in query for query in queries)
    assert "https://same.example/" in first and not [url for url in first if "youtube" in url]
    (tmp_path / "seeds.txt").unlink()
    Service.asked.clear()
    assert seeds(*arguments, "--seed", "7").code == 0
    assert (sorted(found()), sorted(Service.asked)) == (sorted(first), queries)
    Service.asked.clear()
    assert seeds(*arguments, "--seed", "8").code == 0
    assert sorted(Service.asked) != queries


def test_search_with_words_of_a_text(service, seeds, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(" ".join(f"slovo{chr(97 + n // 26)}{chr(97 + n % 26)} " * (n + 1) for n in range(200)))
    assert seeds("search", "--endpoint", f"{service}/search", "--queries", "1", "--text", str(text)).code == 0
    assert Service.asked[0].count("slovo") == 3
    text.write_text("jen pár slov")
    assert seeds("search", "--endpoint", service, "--text", str(text)).refusal.startswith("only 3 words of middle")


def test_search_that_refuses(service, seeds):
    ended = seeds("search", "--endpoint", f"{service}/closed", "--queries", "1")
    assert "refuses JSON (403): put json into search.formats" in ended.refusal
    assert seeds("search").refusal.startswith("search needs --endpoint")


def test_common_crawl_by_its_server(service, seeds, found):
    ended = seeds("commoncrawl", "--collections", f"{service}/collinfo.json", "--pages", "2", "-a", "tlds=cz,sk")
    assert ended.code == 0, ended.log
    assert sorted(found()) == HOMES
    pages = [line for line in Service.asked if "&page=" in line]
    assert sorted(line.rpartition("=")[2] for line in pages) == ["0", "20"], "spread over the forty"


def test_common_crawl_by_a_cdx_file(seeds, found, tmp_path):
    path = tmp_path / "cdx-00000.gz"
    lines = "".join(f"cz,x)/ 20260101000000 {json.dumps(capture)}\n" for capture in CAPTURES)
    path.write_bytes(gzip.compress(lines.encode()))
    assert seeds("commoncrawl", str(path)).code == 0
    assert sorted(found()) == HOMES
    path.write_bytes(gzip.compress(b"no index\n"))
    assert "line 1: no line of a CDXJ index" in seeds("commoncrawl", str(path)).refusal


@needs("duckdb")
def test_common_crawl_by_a_columnar_file(seeds, found, tmp_path):
    import duckdb

    path = tmp_path / "part.parquet"
    rows = [
        (
            url.partition(":")[0],
            url.split("/")[2],
            url.split("/")[2].rpartition(".")[2],
            int(c["status"]),
            c.get("languages"),
        )
        for c in CAPTURES
        for url in [c["url"]]
    ]
    table = duckdb.connect()
    table.execute(
        "CREATE TABLE t (url_protocol TEXT, url_host_name TEXT, url_host_tld TEXT, fetch_status INT,"
        " content_languages TEXT)"
    )
    table.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    table.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    assert seeds("commoncrawl", str(path)).code == 0
    assert found()[0] == "http://one.cz/", "the host with most pages first"
    assert sorted(found()) == HOMES
    path.write_bytes(b"PAR1 nonsense")
    assert "cannot be read as a columnar index" in seeds("commoncrawl", str(path)).refusal
