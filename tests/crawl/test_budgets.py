"""A crawl that has given enough, or whose disk is nearly full, stops or pauses, and goes on when there is room."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from conftest import Crawl, document, page, serving
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.options import Options
from spiderling.crawl.budgets import Budgets
from spiderling.extensions import control
from webs.web import html

MB = 1_000_000


@pytest.mark.parametrize("total", ["words", "documents", "pages", "downloaded_bytes", "time_s"])
def test_each_total_has_its_budget(total: str) -> None:
    option, reason = f"max_{total}", f"budget-{total.partition('_')[0]}"
    budgets = Budgets(Options(**{option: 100}))
    assert budgets.find_spent({total: 99}) is None
    spent = budgets.find_spent({total: 100})
    assert spent is not None and spent.reason == reason
    assert f"SPIDERLING_{option.upper()}=100" in spent.message
    assert Budgets(Options(**{option: 200})).find_spent({total: 100}) is None
    assert Budgets(Options()).find_spent({total: 10**12}) is None


def test_bytes_of_revisits_are_bytes() -> None:
    budgets = Budgets(Options(max_downloaded_bytes=100))
    assert budgets.find_spent({"downloaded_bytes": 60, "revisit_downloaded_bytes": 39}) is None
    totals = {"downloaded_bytes": 60, "revisit_downloaded_bytes": 40}
    assert budgets.find_spent(totals) is not None and not budgets.has_room(totals, 0)
    budgets = Budgets(Options())
    budgets.set_control_limits(None, 0.0001)
    assert budgets.find_spent(totals) is not None


def run_until_spent(budgets: Budgets, rates: list[float], down: int = 0, kept: int = 0) -> tuple[int, int] | None:
    """Download a megabyte at each of *rates*; the totals at which the budget was spent."""
    for rate in rates:
        down, kept = down + MB, kept + int(rate * MB)
        if budgets.find_spent({"downloaded_bytes": down, "kept_bytes": kept}) is not None:
            return down, kept
    return None


def test_the_crawl_stops_when_the_last_megabytes_gave_too_little() -> None:
    options = Options(marginal_bytes=20 * MB)
    assert run_until_spent(Budgets(options), [0.002] * 200) is None
    stopped = run_until_spent(Budgets(options), [0.05] * 100 + [0.0] * 100)
    assert stopped is not None and 110 * MB <= stopped[0] <= 120 * MB
    assert run_until_spent(Budgets(options), [0.0] * 19) is None, "not before the window is full"
    assert run_until_spent(Budgets(options), [0.0] * 21) is not None


def test_the_window_survives_a_restart() -> None:
    options = Options(marginal_bytes=20 * MB)
    first = Budgets(options)
    assert run_until_spent(first, [0.0] * 15) is None
    again = Budgets(options, first.marks)
    assert run_until_spent(again, [0.0] * 10, 15 * MB) is not None
    larger = Budgets(Options(marginal_bytes=200 * MB), again.marks)
    assert run_until_spent(larger, [0.0] * 100, 25 * MB) is None


@given(st.lists(st.floats(0, 1), max_size=300))
def test_marks_stay_few(rates: list[float]) -> None:
    budgets = Budgets(Options(marginal_bytes=10 * MB))
    run_until_spent(budgets, rates)
    assert len(budgets.marks) <= 23


def test_what_is_in_work_counts_by_what_pages_gave_so_far() -> None:
    words = Budgets(Options(max_words=100_000))
    before, so_far = {}, {"pages": 1000, "words": 90_000}
    assert words.has_room(before, 199) and not words.has_room(before, 200)
    assert words.has_room(so_far, 100) and not words.has_room(so_far, 110)
    assert not words.has_room(so_far | {"words": 100_000}, 0) and words.has_room(so_far | {"words": 99_999}, 0)
    pages = Budgets(Options(max_pages=1010))
    assert pages.has_room(so_far, 9) and not pages.has_room(so_far, 10)
    pages.set_control_limits(1005, None)
    assert pages.has_room(so_far, 4) and not pages.has_room(so_far, 5)
    assert Budgets(Options()).has_room(so_far, 10**6)


def words_of_last(crawl: Crawl) -> int:
    return int(crawl.documents()[-1].attributes["words"])


@pytest.mark.slow
def test_budgets_are_kept_though_many_hosts_are_at_work(tmp_path) -> None:
    """Of sixty hosts that are asked at once, the document that reaches the words is the last one kept.

    The second page of a host is six times as long as the first, which is all that the estimate knows.
    """
    sites = {f"h{n}.test": {"/": page(n, "/1"), "/1": html(document(f"{n} 1", count=12))} for n in range(60)}
    sites["a.test"] = {"/": page("first", *(f"http://{host}/" for host in sites))}
    with serving(sites) as server:
        crawl = Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05)
        for total, limit in (("pages", 20), ("documents", 40), ("words", 10_000)):
            result = crawl.run("http://a.test/", **{f"MAX_{total.upper()}": limit})
            assert result.code == 0 and result.lines(f"was paused (budget-{total}); a larger budget lets it go on.")
            state = crawl.state()
            state.check()
            reached = state.counts[f"total/{total}"]
            assert limit <= reached < limit + (words_of_last(crawl) if total == "words" else 1), total
        assert crawl.run().lines("is finished.")
        assert len(crawl.digests()) == 121


def test_a_crawl_stops_at_its_words_and_goes_on_with_more(tmp_path) -> None:
    pages = {f"/{n}": page(f"b{n}", f"/{n + 1}", f"/{n + 2}") for n in range(40)}
    with serving({"a.test": pages}) as server:
        crawl = Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.05)
        result = crawl.start("http://a.test/0", ("-a", "words=1000")).wait()
        assert result.code == 0 and result.lines("was paused (budget-words); a larger budget lets it go on.")
        assert result.lines("SPIDERLING_MAX_WORDS=1000 (-a words) is reached; a larger one lets the crawl go on")
        assert 1000 <= crawl.state().counts["total/words"] < 1000 + words_of_last(crawl)
        crawl.state().check()
        asked = len(server.log_entries)
        assert crawl.start("", ("-a", "words=1000")).wait().lines("was paused (budget-words)")
        assert len(server.log_entries) == asked, "nothing is fetched with the same budget"
        assert crawl.run().lines("is finished.")
        assert len(crawl.documents()) == 40
        assert crawl.state().counts["total/time_s"] >= 1


LIMIT = 1_000


def test_it_pauses_at_once_says_why_and_the_same_command_goes_on(tmp_path):
    with serving({"a.test": {"/": page("a", "/1"), "/1": page("a 1")}}) as server:
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
    monkeypatch.setattr(control.FreeDisk, "repeat", lambda self, action, every_s, what: actions.append(action))
    actions: list = []
    woken: list[bool] = []
    crawl = SimpleNamespace(
        options=Options(min_free_bytes=LIMIT), archives=None, jobdir=SimpleNamespace(path="x"), is_disk_full=False
    )
    extension = control.FreeDisk(SimpleNamespace(signals=SimpleNamespace(connect=lambda *_: None)))
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
    extension = control.FreeDisk(SimpleNamespace(signals=SimpleNamespace(connect=lambda *_: None)))
    extension.crawl = SimpleNamespace(options=Options(min_free_bytes=limit), archives=archives)
    await extension.opened()
    assert not hasattr(extension.crawl, "is_disk_full"), "nobody has looked"
