"""An error of our own ends one URL or stops the crawl, and the same command goes on; it never keeps it from ending."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing, suppress

import pytest
from brokenparts import EXTENSIONS
from conftest import Crawl, damage_in, page, serving

from spiderling.base.errors import InternalError, StorageError
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.crawl.internal_errors import MAX, WINDOW_ENDS
from spiderling.frontier.host_closing import HostClosing
from spiderling.frontier.site_files import FileAnswer
from spiderling.jobdir.inspection import Inspection
from webs.web import WebResponse, plain

TDMREP = r"""{"\ud800": "\udfff", "location": "\ud800*", "tdm-reservation": 0, "tdm-policy": "\ud800"}"""
SITEMAP = "http://a.test/1\nhttp://a.test/no-sitemap\n"
HOSTS = ("a.test", "b.test")
PAGES = 7
SEED = "http://a.test/"


def web(pages: int = PAGES, files: dict[str, WebResponse] | None = None) -> dict:
    """Two hosts that link to each other; the first has *files* besides."""
    every = [f"http://{host}/{n or ''}" for host in HOSTS for n in range(pages)]
    sites = {
        host: {
            "/": page(f"{host} index", *every),
            **{f"/{n}": page(f"{host}{n}", f"/{n + 1}", f"/{n + 2}") for n in range(1, pages)},
        }
        for host in HOSTS
    }
    sites["a.test"].update(files or {})
    sites["b.test"]["/robots.txt"] = plain("# not-read")
    return sites


def whole(crawl: Crawl) -> None:
    if "discovered" in crawl.state().counts:
        crawl.state().check()
    assert damage_in(crawl.directory) == []


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The texts of a crawl without errors, by URL; a site file of 69 bytes used to keep it from ever ending."""
    with serving(web(files={"/.well-known/tdmrep.json": plain(TDMREP)})) as server:
        crawl = Crawl(tmp_path_factory.mktemp("reference") / "job", server, OPTOUTS="tdm-file=obey")
        result = crawl.run(SEED)
    assert result.code == 0 and "is finished." in result.output and "Traceback" not in result.output
    whole(crawl)
    return crawl.digests()


def test_half_a_character_in_a_site_file_does_not_keep_a_crawl_from_ending(reference):
    assert len(reference) == len(HOSTS) * PAGES


def test_an_error_before_anything_has_changed_ends_that_url_or_file_alone_and_it_can_be_asked_again(
    reference, tmp_path
):
    """An upgrade mends it: the user says ``ask_again``, once, and the URLs come back into balanced books."""
    files = {"/robots.txt": plain("Sitemap: http://a.test/sitemap.txt\n"), "/sitemap.txt": plain(SITEMAP)}
    fault = "outcome http://a.test/4 KeyError;site-file not-read ValueError;sitemap no-sitemap TypeError"
    with serving(web(files=files)) as server:
        crawl = Crawl(tmp_path / "job", server, EXTENSIONS=EXTENSIONS, SITEMAPS="on")
        result = crawl.run(SEED, FAULT=fault)
        assert result.code == 0 and "is finished." in result.output
        assert result.output.count("Traceback") == 3
        assert result.lines("Internal error at http://a.test/4: KeyError: 'on order'")
        assert result.lines("  errors", "3 of Spiderling's own")
        whole(crawl)
        ends = crawl.state().ends
        assert ends["internal-error"] == 2 and ends["robots-unreachable"] == PAGES
        ours = {url: text for url, text in reference.items() if "a.test" in url}
        assert crawl.digests() == {url: text for url, text in ours.items() if url != "http://a.test/4"}
        (crawl.directory / "control.yaml").write_text('ask_again: ["internal-error"]\n')
        for asked in (2, 0):
            result = crawl.run()
            assert result.code == 0
            assert result.lines(f"asked again, of those that ended as internal-error: {asked} URL")
            whole(crawl)
    state = crawl.state()
    assert "internal-error" not in state.ends and state.ends["sitemap"] == 1
    assert crawl.digests() == ours


@pytest.mark.parametrize(
    ("fault", "lost"),
    [
        ("report http://a.test/4 KeyError", ["http://a.test/4"]),
        pytest.param("take http://a.test/4 KeyError", ["http://a.test/4"], marks=pytest.mark.slow),
        pytest.param("answered http://b.test ValueError", ["http://b.test/"], marks=pytest.mark.slow),
        pytest.param("report http://a.test/4 MemoryError", [], marks=pytest.mark.slow),
    ],
)
def test_an_error_amid_a_change_stops_the_crawl_and_the_same_command_goes_on_without_its_cause(
    reference, tmp_path, fault, lost
):
    """Nothing since the last checkpoint is kept, also what was in memory of other pages."""
    with serving(web()) as server:
        crawl = Crawl(
            tmp_path / "job", server, EXTENSIONS=EXTENSIONS, CONSTANTS={"extensions.lifecycle.CHECKPOINT_S": 60}
        )
        result = crawl.run(SEED, FAULT=fault)
        assert result.code == 1
        assert len(result.lines("ERROR", "The crawl stops")) == 1 and result.output.count("Traceback") == len(lost)
        assert "has stopped; the same command goes on from its last checkpoint" in result.output
        assert crawl.documents() == [] and crawl.state().counts.get("discovered", 0) == 0
        whole(crawl)
        result = crawl.run(SEED, FAULT=fault if lost else "")
        assert result.code == 0 and "is finished." in result.output
    whole(crawl)
    assert crawl.state().ends.get("internal-error", 0) == len([url for url in lost if "a.test" in url])
    missing = {url for url in reference if any(url == one or (one[-1] == "/" and url.startswith(one)) for one in lost)}
    assert crawl.digests() == {url: text for url, text in reference.items() if url not in missing}


def test_an_extension_that_cannot_start_stops_the_crawl(tmp_path):
    """Scrapy would go on, and without the clock of the checkpoints hosts would wait for what is never written."""
    with serving(web()) as server:
        crawl = Crawl(tmp_path / "job", server, EXTENSIONS=EXTENSIONS)
        result = crawl.run(SEED, FAULT="opened Lifecycle KeyError")
        assert result.code == 1 and result.lines("The crawl stops: ", "at the start of Lifecycle, KeyError"), result
        assert crawl.run(SEED).code == 0
    whole(crawl)


def test_more_errors_than_single_pages_can_cause_stop_the_crawl_and_name_the_commonest(tmp_path):
    with serving(web(MAX + 10)) as server:
        crawl = Crawl(tmp_path / "job", server, EXTENSIONS=EXTENSIONS, HOST_INTERVAL_S=0.01)
        result = crawl.run(SEED, FAULT="outcome http://b.test/ KeyError;outcome http://a.test/3 ValueError")
    assert result.code == 1 and result.output.count("Traceback") <= 2
    [line] = result.lines("ERROR", "The crawl stops")
    assert f"{MAX + 1} internal errors while at most 1,000 URLs ended" in line
    assert "most often KeyError in " in line and "such as at http://b.test/" in line
    whole(crawl)
    assert crawl.state().ends["internal-error"] > MAX


class OpenedCrawl:
    """A crawl in this process, with one URL in transit."""

    def __init__(self, directory) -> None:
        self.failures: list[Exception] = []
        options = Options(
            lang="cs", allow_networks="127.0.0.0/8", dedup="exact", optouts="tdm-file=ignore,ai-txt=ignore"
        )
        self.crawl = crawl = OpenCrawl(options, directory, self.failures.append)
        now = crawl.now()
        crawl.frontier.put_seed(SEED, now)
        crawl.frontier.resolved("a.test", ("127.84.17.1",), 600, now)
        crawl.frontier.robots_answered(crawl.frontier.take(now + 10), FileAnswer(404), now + 10)
        self.url_id = crawl.frontier.take(now + 20).id

    async def over(self) -> None:
        with suppress(*map(type, self.failures)):
            await self.crawl.close()


@pytest.mark.parametrize("kind", [KeyError, StorageError, OSError, MemoryError])
async def test_no_error_amid_a_change_is_committed_and_only_one_of_ours_has_a_guilty_url(tmp_path, monkeypatch, kind):
    def review(self, host):
        raise kind("on order")

    opened = OpenedCrawl(tmp_path / "job")
    await opened.crawl.checkpoint.flush()
    with monkeypatch.context() as patch:
        patch.setattr(HostClosing, "review", review)
        opened.crawl.finish(Outcome(opened.url_id, SEED, Reason.HTTP_ERROR, 404))
        opened.crawl.finish(Outcome(opened.url_id, SEED, Reason.HTTP_ERROR, 404))
    opened.crawl.checkpoint.begin_if_needed()
    await opened.over()
    assert len(opened.failures) == 1
    assert damage_in(tmp_path / "job") == []
    with closing(Inspection(tmp_path / "job")) as left:
        assert left.counts["waiting"] == left.counts["discovered"] == 1
        blamed = json.loads(left.meta.get("internal-errors", "[]"))
    assert blamed == ([[SEED, opened.url_id]] if kind is KeyError else [])


async def test_what_stops_the_crawl_once_more_is_not_forgiven_again(tmp_path):
    """The wish for it may stand in control.yaml for good: the crawl stopped there at each start."""
    shunned = []
    for _ in range(3):
        opened = OpenCrawl(Options(lang="cs", allow_networks="127.0.0.0/8"), tmp_path / "job", lambda error: None)
        opened.errors.forgive()
        shunned.append(opened.frontier.next_fetch.shunned)
        opened.errors.stop(KeyError("on order"), SEED, 7)
        with suppress(InternalError):
            await opened.close()
    assert shunned == [set(), set(), {SEED, 7}]


async def test_a_task_of_the_crawl_that_dies_stops_it(tmp_path):
    """Without a checkpoint's clock the crawl would go on, and nothing of it would be kept."""

    async def dies():
        raise KeyError("on order")

    opened = OpenedCrawl(tmp_path / "job")
    opened.crawl.errors.watch_task(dies(), "the checkpoints' clock")
    lives = opened.crawl.errors.watch_task(asyncio.sleep(60), "another one")
    for _ in range(3):
        await asyncio.sleep(0)
    assert "at the checkpoints' clock, KeyError: 'on order'" in str(opened.failures[0])
    lives.cancel()
    await opened.over()
    assert len(opened.failures) == 1
    with closing(sqlite3.connect(tmp_path / "job/state/frontier.sqlite")) as state:
        blamed = state.execute("SELECT value FROM meta WHERE key = 'internal-errors'").fetchall()
    assert blamed == [], "a task is no URL, which the next start would leave out"


async def test_a_change_after_the_last_checkpoint_does_not_stop_a_crawl_that_is_being_closed(tmp_path):
    """The clock of the checkpoints goes on until Scrapy has closed the spider, and control.yaml may change then."""
    opened = OpenedCrawl(tmp_path / "job")
    await opened.crawl.close()
    opened.crawl.note_event("control.yaml: max_pages: None -> 1000.0")
    opened.crawl.checkpoint.begin_if_needed()
    assert opened.failures == []


async def test_errors_that_are_far_apart_do_not_stop_a_crawl(tmp_path):
    opened = OpenedCrawl(tmp_path / "job")
    ledger = opened.crawl.frontier.ledger
    for _ in range(3 * MAX):
        ledger.ends[Reason.KEPT] += WINDOW_ENDS // MAX + 1
        opened.crawl.errors.note(KeyError("on order"), SEED)
    assert opened.failures == [] and ledger.totals["internal_errors"] == 3 * MAX
    ledger.ends[Reason.KEPT] = 0
    await opened.over()


FAILS_ONCE = """
class FailsOnce:
    def __init__(self):
        self.failed = set()

    def process_request(self, request):
        if request.url not in self.failed:
            self.failed.add(request.url)
            raise ValueError("a middleware of somebody's")
"""


def test_a_host_whose_first_request_never_started_is_asked_again(tmp_path) -> None:
    """Its rest after the answer was counted from a start that there never was: it was due in all eternity."""
    (project := tmp_path / "project").mkdir()
    (project / "scrapy.cfg").write_text("[settings]\ndefault = spiderling.settings\n")
    (project / "broken.py").write_text(FAILS_ONCE)
    with serving(web(2)) as server:
        crawl = Crawl(
            tmp_path / "job", server, project=project, DELAY_FACTOR=1, OPTOUTS="tdm-file=ignore,ai-txt=ignore"
        )
        arguments = ("-s", 'DOWNLOADER_MIDDLEWARES={"broken.FailsOnce": 500}')
        result = crawl.start(SEED, arguments=arguments).wait()
    assert result.code == 0 and "is finished." in result.output, result.output[-3000:]
    whole(crawl)
    assert {"http://a.test/robots.txt", "http://b.test/robots.txt"} <= {
        f"http://{entry.host}{entry.path}" for entry in server.log_entries
    }
