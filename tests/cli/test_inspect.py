"""``scrapy inspect``: a crawl as text and as data, read beside the running crawl and after a kill."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from conftest import Crawl, paragraphs, scrapy, serving
from finished import SITES
from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.reasons import Reason
from spiderling.commands.inspect import Command
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.as_text import of_host, of_url, overview
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection, reading
from spiderling.jobdir.state_reader import urls_of
from spiderling.jobdir.status import hosts_of, rates, status_of, warnings_of
from spiderling.jobdir.status_schema import Running, Status

EVERY = SITES | {"nowhere.test": {"/": None}}


def told(finished: Crawl, *arguments: str) -> str:
    """What the command prints, without a process of its own."""
    with closing(Inspection(finished.directory)) as opened:
        if not arguments:
            return "\n".join(overview(status_of(opened)))
        if arguments[0] == "host":
            return "\n".join(of_host(opened, arguments[1], urls="--urls" in arguments))
        return "\n".join(of_url(opened, arguments[1]))


def run(finished: Crawl, *arguments: str) -> str:
    """The output of the real command."""
    ended = scrapy("inspect", str(finished.directory), *arguments)
    assert ended.code == 0, ended.log
    assert ended.log == ""
    return ended.out


def verdicts(finished: Crawl, url: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in told(finished, "url", url).splitlines() if line[:12].strip()}


def test_overview_of_a_crawl(finished: Crawl) -> None:
    out = told(finished)
    assert "crawling    no process" in out
    for title in ("How URLs ended", "Yield by distance from the seeds", "hosts that gave most", "Output"):
        assert title in out
    kept = finished.state().ends["kept"]
    assert any(line.split() == ["distance", "1", "4", *line.split()[3:]] for line in out.splitlines())
    assert any(line.split()[:2] == ["kept", str(kept)] for line in out.splitlines())


def test_a_kept_page_is_shown_with_its_origin_its_scores_and_its_text(finished: Crawl) -> None:
    found = verdicts(finished, "http://A.test/target#part")
    assert found["verdict"] == "kept: its text is in the corpus"
    assert found["found on"] == "http://a.test/moved"
    assert found["badness"] and found["langs"] == "cs:1.00"
    assert found["title"] == 'Strana target <&> "quoted"'
    out = told(finished, "url", "http://a.test/target")
    assert all(paragraph in out for paragraph in paragraphs('target <&> "quoted"'))


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("http://a.test/private", "robots-forbidden: "),
        ("http://a.test/gone", "http-error: "),
        ("http://a.test/moved", "redirected: "),
        ("http://poor.test/", "boilerplate-only: "),
        ("http://a.test/picture.jpg", "never accepted; a mention of it is refused: out-of-scope"),
        ("http://nowhere.test/", "dns: "),
        ("http://unknown.test/", "never found"),
        ("http://a.test/nowhere", "never found"),
    ],
)
def test_why_a_url_is_not_in_the_corpus(finished: Crawl, url: str, verdict: str) -> None:
    assert verdicts(finished, url)["verdict"].startswith(verdict)


def test_why_a_url_of_a_retired_host_is_not_in_the_corpus(finished: Crawl) -> None:
    parked = [url for url, is_parked in finished.state().urls if is_parked]
    found = verdicts(finished, parked[0])
    assert found["verdict"].startswith(
        "host-retired: its host gave too little text for the bytes it cost; it is parked"
    )
    assert found["found on"] == "http://poor.test/"


def test_what_was_measured_is_told(finished: Crawl) -> None:
    found = verdicts(finished, "http://a.test/short")
    assert found["verdict"].startswith("bad-quality: ")
    assert found["because"].startswith("only ") and found["because"].endswith(" characters of clean text")
    assert found["found on"] == "http://a.test/"
    assert verdicts(finished, "http://a.test/")["found on"].startswith("no page: a seed")


def test_every_end_of_the_counts_is_on_record(finished: Crawl) -> None:
    state = finished.state()
    with closing(Inspection(finished.directory)) as opened:
        stories = [opened.story(f"http://{host}{path}") for host, paths in EVERY.items() for path in paths]
        named = {story.url: story.ended.end.reason for story in stories if story.ended}
        hosts = [opened.host(name)["id"] for name in EVERY]
        ends = sum((opened.ends_of(host) for host in hosts), start=type(opened.ends_of(hosts[0]))())
    assert len(named) > 60
    assert {**ends, Reason.HOST_RETIRED.value: state.ends["host-retired"]} == state.ends


def test_a_host_with_its_queue(finished: Crawl) -> None:
    out = told(finished, "host", "poor.test", "--urls")
    assert "state       retired" in out and "distance    1" in out
    assert f"{finished.state().ends['host-retired']:,} URLs at " in out
    listed = [line for line in out.splitlines() if "http://poor.test/" in line]
    assert len(listed) == finished.state().ends["host-retired"]
    assert "boilerplate-only 11" in out
    assert told(finished, "host", "https://www.poor.test:443/x") == told(finished, "host", "poor.test")


def test_a_running_crawl_can_be_read_and_goes_on(tmp_path: Path) -> None:
    with serving(SITES) as server:
        crawl = Crawl(tmp_path / "job", server)
        running = crawl.start("http://b.test/", HOST_INTERVAL_S=0.2)
        running.until(lambda: (tmp_path / "job/crawl.log").exists() and len(list(tmp_path.glob("job/corpus/*"))) > 0)
        out = told(crawl, "host", "b.test", "--urls")
        assert "http://b.test/" in out
        assert f"process {running.process.pid} on " in told(crawl)
        with closing(Inspection(crawl.directory)) as opened:
            assert list(problems(opened)) == []
            waiting = urls_of(opened.connection, opened.host("b.test")["id"])[0]
            assert opened.story(waiting.url).row == waiting
        running.process.kill()
        running.process.wait()
    out = run(crawl, "--check")
    assert out == "The crawl is whole.\n"
    assert "no process" in told(crawl)


def test_the_command_prints_it(finished: Crawl) -> None:
    assert run(finished, "url", "http://a.test/target") == told(finished, "url", "http://a.test/target") + "\n"


@pytest.mark.parametrize("arguments", [(), ("job", "host"), ("job", "page", "x"), ("job", "host", "a", "b")])
def test_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="say scrapy inspect JOBDIR"):
        Command().run(list(arguments), argparse.Namespace())


def test_no_crawl_no_host_no_url(finished: Crawl, tmp_path: Path) -> None:
    ended = scrapy("inspect", str(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert "holds no crawl" in ended.log and "Traceback" not in ended.log
    with closing(Inspection(finished.directory)) as opened, pytest.raises(BadInput, match="is no http"):
        opened.story("ftp://a.test/")
    odd = scrapy("inspect", str(finished.directory), "host", "\udcff.test")  # a byte that is no UTF-8
    assert odd.code == 1 and "knows no host" in odd.log and "damaged" not in odd.log
    (tmp_path / "state").mkdir()
    (tmp_path / "state/frontier.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(JobdirError, match="cannot be read as the state of a crawl"):
        Inspection(tmp_path)


# -- the status of a crawl as data: ``scrapy inspect JOBDIR --json``, and the list of its hosts


@pytest.fixture
def opened(finished):
    with closing(Inspection(finished.directory)) as inspection:
        yield inspection


def test_a_program_is_told_what_the_state_holds(finished):
    ended = scrapy("inspect", str(finished.directory), "--json")
    assert (ended.code, ended.log) == (0, "")
    told = json.loads(ended.out)
    state = finished.state()
    assert told["revisits"] is None and "Revisits of" not in scrapy("inspect", str(finished.directory)).out
    assert told["version"] == 1 and told["phase"] == "finished" and told["process"] == ""
    assert set(told) == {spec.name for spec in fields(Status)}
    assert told["totals"]["words"] == state.counts["total/words"] > 1000
    assert {end["reason"]: end["urls"] for end in told["ends"]} == state.ends
    assert told["urls"] == {
        "discovered": state.counts["discovered"], "ended": sum(state.ends.values()), "waiting": 0, "in_transit": 0,
    }  # fmt: skip
    assert [end["reason"] for end in told["refusals"]] == ["robots-forbidden"]
    assert told["hosts"] == Counter(host["state"] for host in state.hosts.values())
    assert told["languages"] == [
        {"code": "cs", "documents": state.counts["language/cs"], "words": state.counts["fact/words/cs"]}
    ]
    assert told["budgets"][0]["total"] == "words" and told["left_s"] == told["budgets"][0]["left_s"] > 0
    assert told["curves"]["whole"]["words"][-1] == told["totals"]["words"]
    assert told["overall"]["yield_rate"] == round(
        state.counts["total/kept_bytes"] / state.counts["total/downloaded_bytes"], 4
    )
    kept = {doc.url: doc for doc in finished.documents()}
    for text in told["newest"]:
        assert kept[text["url"]].attributes["title"] == text["title"]
        assert " ".join(kept[text["url"]].paragraphs).startswith(text["begins"]) and text["begins"]
    assert len({text["url"] for text in told["newest"]}) == 10


def test_the_counters_of_a_running_crawl_go_before_those_of_the_state(opened):
    running = Running(
        counts={"total/pages": 900, "total/time_s": 300, "discovered": 12, "waiting": 5, "end/kept": 7},
        hosts={"ready": 2, "retired": 3},
        in_transit=2,
        bottleneck="DNS",
        trouble="",
        limits={"pages": 1000},
        is_paused=False,
        is_stopping=False,
    )
    told = status_of(opened, running, large=())
    assert told.phase == "running" and told.bottleneck == "DNS" and told.hosts_at_work == 2
    assert told.urls.discovered == told.urls.ended + told.urls.waiting + told.urls.in_transit == 12
    assert told.overall.pages_per_s == 3.0
    assert told.left_s == round(100 / told.lately.pages_per_s)
    assert told.curves is told.best_hosts is told.statements is None


def test_bytes_of_revisits_count_for_the_budget_as_the_crawl_counts_them(tmp_path):
    (tmp_path / "state").mkdir()
    with closing(SqliteStore(tmp_path / "state/frontier.sqlite")) as store:
        counts = {"total/downloaded_bytes": 400, "total/revisit_downloaded_bytes": 600, "total/time_s": 10}
        store.commit(Changes(counts=counts, meta={"options": json.dumps({"max_downloaded_bytes": 1000})}))
    with reading(tmp_path) as crawl:
        (budget,) = status_of(crawl).budgets
    assert (budget.reached, budget.limit, budget.left_s) == (1000, 1000, 0)


@pytest.mark.parametrize(
    ("command", "more"),
    [("inspect", ("--coverage", "list")), ("inspect", ("gone",)), ("takedown", ("--host", "a.test", "--yes"))],
)
def test_a_shard_that_is_not_there_is_told(tmp_path, command, more):
    """Its pages counted as such that the crawl has not, and it was not told that it keeps what is taken down."""
    (tmp_path / "job/shard-00/state").mkdir(parents=True)
    (tmp_path / "job/shard-00/state/lock").touch()
    with closing(SqliteStore(tmp_path / "job/shard-00/state/frontier.sqlite")) as store:
        store.commit(Changes(meta={"shard_map": json.dumps({"shards": 2, "crawl_id": "c"})}))
    (tmp_path / "list").write_text("http://a.test/\n")
    ended = scrapy(command, str(tmp_path / "job"), *(str(tmp_path / one) if one == "list" else one for one in more))
    assert ended.code == 0 and f"scrapy {command}: shard 1 of 2 is not here" in ended.log, ended


def test_pauses_do_not_slow_the_rates_down():
    assert rates({"pages": 50, "time_s": 110}, {"pages": 30, "time_s": 100}).pages_per_s == 2.0
    assert rates({}, {}).words_per_hour == 0


def test_hosts_are_searched_sorted_and_turned_over(opened):
    assert [host.name for host in hosts_of(opened).hosts][:3] == ["b.test", "a.test", "licensed.test"]
    by_name = [host.name for host in hosts_of(opened, order="name", rising=True).hosts]
    assert by_name == sorted([*SITES, "nowhere.test"])
    assert [host.name for host in hosts_of(opened, " C_ ").hosts] == ["c_c.test"]
    assert hosts_of(opened, "%").found == 0
    last = hosts_of(opened, order="name", page=99, most=5)
    assert (last.page, last.pages, last.found, [host.name for host in last.hosts]) == (1, 2, 6, ["a.test"])
    with pytest.raises(BadInput, match="did you mean words"):
        hosts_of(opened, order="word")


def test_the_last_warnings_are_those_of_the_log(tmp_path):
    log = tmp_path / "crawl.log"
    assert warnings_of(log) == []
    log.write_text(
        "2026-11-23 12:00:00,123 INFO spiderling.x: quiet\n"
        + "".join(f"2026-11-23 12:00:{n:02},000 WARNING spiderling.x: loud {n}\nTraceback\n" for n in range(30))
        + "2026-11-23 12:01:00,000 ERROR scrapy.core: <b>bad</b>\n"
    )
    told = warnings_of(log)
    assert [line.what for line in told[:2]] == ["<b>bad</b>", "loud 29"]
    assert told[0].level == "ERROR" and told[0].time - told[1].time == 31
    assert len(told) == 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("host", "a.test", "--json"), "--json tells of the whole crawl"),
        (("url", "http://a.test/", "--check"), "--check tells of the whole crawl"),
        (("--rebuild", "--check"), "--rebuild and --check are several commands"),
        (("gone", "--urls"), "--urls goes with host NAME"),
    ],
)
def test_options_that_do_not_go_together_are_refused(finished, arguments, said):
    ended = scrapy("inspect", str(finished.directory), *arguments)
    assert ended.code == 2 and said in ended.out + ended.log
