"""A real crawl of hosts that refuse: what ends how, that nothing of it is kept or sent back, and who is listed."""

from __future__ import annotations

from contextlib import closing

import pytest
from conftest import Crawl, page, serving
from fastwarc.warc import ArchiveIterator, WarcRecordType

from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.status import status_of
from spiderling.reporting.page import page_file
from webs.challenges import CHALLENGES
from webs.web import WebResponse

SITE_FILES = ("/robots.txt", "/.well-known/tdmrep.json", "/ai.txt")


def with_cookie(answer: WebResponse) -> WebResponse:
    return WebResponse(200, {**answer.headers, "Set-Cookie": "pass=1"}, answer.body)


def refusing(status: int, **headers: str) -> WebResponse:
    return WebResponse(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"no")


COOKIES = """
class Cookies:  # it stands where Scrapy's CookiesMiddleware does
    def process_response(self, request, response):
        if b"Set-Cookie" in response.headers:
            with open({path!r}, "a") as file:
                file.write(request.url + " ")
        return response
"""
MAKERS = sorted({name: answer for name, answer in CHALLENGES.items() if answer.body}.items())
SITES: dict[str, dict[str, WebResponse]] = {
    "pays.test": {"/a": refusing(402, crawler_price="USD 0.01"), "/b": page("b")},
    "law.test": {"/a": refusing(451), "/b": page("law b")},
    "one.test": {"/a": refusing(403), "/b": page("one b")},
    "edge.test": {"/robots.txt": refusing(403), "/a": page("edge")},
    "wall.test": {"/robots.txt": with_cookie(CHALLENGES["anubis"]), "/a": page("wall")},
    "files.test": {
        "/.well-known/tdmrep.json": with_cookie(CHALLENGES["imperva"]),
        "/ai.txt": with_cookie(CHALLENGES["f5"]),
        "/a": page("files"),
    },
    "five.test": {f"/{number}": refusing(403) for number in range(9)},
    "cookie.test": {"/a": with_cookie(CHALLENGES["sucuri"]), "/b": with_cookie(page("cookie b"))},
    **{f"{name}.test": {"/a": answer} for name, answer in MAKERS},
}
ENDS = {
    "http://pays.test/a": ("payment-required", "crawler-price: USD 0.01"),
    "http://law.test/a": ("unavailable-for-legal-reasons", ""),
    "http://one.test/a": ("http-error", ""),
    **dict.fromkeys([f"http://{host}.test/b" for host in ("pays", "law", "one", "cookie")], ("kept", "")),
    "http://files.test/a": ("kept", ""),
    "http://cookie.test/a": ("challenged", "sucuri"),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    directory = tmp_path_factory.mktemp("refusals")
    seeds = directory / "seeds.txt"
    pages = [(host, path) for host, paths in SITES.items() for path in paths if path not in SITE_FILES]
    seeds.write_text("\n".join(f"http://{host}{path}" for host, path in pages))
    project = directory / "project"
    project.mkdir()
    (project / "scrapy.cfg").write_text("[settings]\ndefault = spiderling.settings\n")
    (project / "cookies.py").write_text(COOKIES.format(path=str(directory / "cookies.txt")))
    with serving(SITES) as server:
        crawl = Crawl(directory / "job", server, project=project, OPTOUTS="", WARC="on")
        arguments = ("-s", 'DOWNLOADER_MIDDLEWARES={"cookies.Cookies": 700}')
        result = crawl.start(str(seeds), arguments=arguments).wait()
        assert result.code == 0 and "Traceback" not in result.output, result.output[-3000:]
        yield crawl, server.log_entries, (directory / "cookies.txt").read_text().split()


def test_each_answer_ends_as_what_it_is(crawled) -> None:
    found = crawled[0].ended()
    assert {url: found.get(url) for url in ENDS} == ENDS
    for name, _ in MAKERS:
        reason, maker = found[f"http://{name}.test/a"]
        assert reason == "challenged"
        assert name.startswith(maker)
    assert sum(reason == "http-error" for url, (reason, _) in found.items() if "five.test" in url) == 5


def test_of_a_host_that_refuses_by_robots_txt_nothing_else_is_fetched(crawled) -> None:
    for host in ("edge.test", "wall.test"):
        assert [entry.path for entry in crawled[1] if entry.host == host] == ["/robots.txt"]
        assert crawled[0].state().hosts[host]["state"] == "refused"
    asked = [entry.path for entry in crawled[1] if entry.host == "five.test" and entry.path not in SITE_FILES]
    assert len(asked) == 5
    counts = crawled[0].state().counts
    assert (counts["end/host-refused"], counts["total/refusals"]) == (1 + 1 + 4, 3)


def test_only_texts_of_willing_hosts_are_kept(crawled) -> None:
    assert {doc.url for doc in crawled[0].documents()} == {url for url, end in ENDS.items() if end[0] == "kept"}


def test_requests_stay_the_same_and_no_cookie_of_a_challenge_is_seen_where_cookies_are_kept(crawled) -> None:
    heads = []
    for path in sorted(crawled[0].directory.glob("warc/*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, WarcRecordType.request, parse_http=True):
                heads.append(dict(record.http_headers.astuples()))
    assert len(heads) >= len(crawled[1]) - 1
    assert all("Cookie" not in head for head in heads)
    assert len({head["User-Agent"] for head in heads}) == 1
    assert crawled[2] == ["http://cookie.test/b"]


def test_ledger_and_report_say_who_refuses_and_why(crawled) -> None:
    with closing(Inspection(crawled[0].directory)) as inspection:
        refusing, written = status_of(inspection).refusing, page_file(inspection)
        rows = inspection.rows("SELECT * FROM consents")
    said = {(row["origin"].removeprefix("http://"), row["file"]): (row["answer"], row["says"]) for row in rows}
    assert said["edge.test", "/robots.txt"] == ("403", "refuses")
    assert said["wall.test", "/robots.txt"] == ("200 challenge of anubis", "refuses")
    assert said["files.test", "/.well-known/tdmrep.json"] == ("200 challenge of imperva", "")
    assert said["files.test", "/ai.txt"] == ("200 challenge of f5", "")
    assert said["five.test", "/"] == ("403", "refuses 5 pages in a row")
    told = {refusal.host: (refusal.file, refusal.answer) for refusal in refusing}
    assert told == {
        "edge.test": ("/robots.txt", "403"),
        "five.test": ("/", "403"),
        "wall.test": ("/robots.txt", "200 challenge of anubis"),
    }
    assert all(86_000 < refusal.again - refusal.since <= 86_401 for refusal in refusing)
    assert "Hosts that refuse<" in written
    assert "200 challenge of anubis" in written


@pytest.mark.slow
def test_a_refusal_outlives_its_process_and_ends_with_its_pause(tmp_path) -> None:
    sites = {"edge.test": {"/robots.txt": refusing(403), "/a": page("edge")}}
    with serving(sites) as server:
        lasting, short = (Crawl(tmp_path / name, server) for name in ("lasting", "short"))
        assert lasting.run("http://edge.test/a").code == 0
        assert short.run("http://edge.test/a", CONSTANTS={"frontier.host_closing.PAUSES_S": [0.1]}).code == 0
        sites["edge.test"]["/robots.txt"] = WebResponse(404)
        assert lasting.run().code == short.run().code == 0
        assert [entry.path for entry in server.log_entries] == ["/robots.txt"] * 3 + ["/a"]
    assert lasting.state().hosts["edge.test"]["state"] == "refused"
    assert [doc.url for doc in short.documents()] == ["http://edge.test/a"]
    assert (lasting.documents(), lasting.state().counts["end/host-refused"]) == ([], 1)
