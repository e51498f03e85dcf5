"""A crawl that is watched, over real sockets, of a web that changes: a month passes in seconds."""

from __future__ import annotations

import hashlib
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing

import pytest
from conftest import Crawl, paragraphs, refusal, serving

from spiderling.jobdir.check import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.no_longer_there import no_longer_there
from webs.web import HTML, WebResponse, not_found

HOST = "news.test"
DAY_S = 0.4
ARTICLES = 12
OLD = ("gone", "missing", "closed", "mended")
TO_BE_TAKEN_OUT = {"gone": "gone", "missing": "gone", "closed": "opted-out"}
CHANGES_ON = 6.0
"""Day on which the old pages change."""
INTERVAL_S = 0.02
SETTINGS = {
    "WATCH": "on",
    "WATCH_DAY_S": DAY_S,
    "WATCH_REQUESTS": 12,
    "WATCH_LEAST_WORD_DAYS": 0,
    "HOST_INTERVAL_S": INTERVAL_S,
    "YIELD_PROFILE": "off",
}


class Paper:
    """A front page that lists the newest of its articles, one every other day; some old pages change.

    Its month begins when all that was there before was asked for.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._asked: set[str] = set()

    def hosts(self) -> Mapping[str, str]:
        return {HOST: "127.84.91.1"}

    globs = hosts

    def day(self, at: float) -> float:
        return (at - self._began) / DAY_S if self._began else 0.0

    def respond(self, host: str, path: str) -> WebResponse:
        day = self.day(time.monotonic())
        newest = min(ARTICLES, 1 + int(day / 2))
        name = path.strip("/")
        self._asked.add(name)
        if not self._began and {"", "0", *OLD} <= self._asked:
            self._began = time.monotonic()
        has_changed = day > CHANGES_ON
        if name == "":
            listed = [*OLD, *(str(n) for n in range(max(0, newest - 4), newest))]
            return _html("front", listed)
        if name in OLD[:2] and has_changed:
            return WebResponse(410, HTML) if name == "gone" else not_found()
        if name == "closed" and has_changed:
            return _html(name, [], head='<meta name="robots" content="noindex">')
        if name == "mended" and has_changed:
            return _html(name, [], more="mended-later")
        known = name in OLD or (name.isdigit() and int(name) < newest)
        return _html(name, []) if known else not_found()


def _html(seed: str, links: list[str], head: str = "", more: str = "") -> WebResponse:
    text = paragraphs(seed, 3) + (paragraphs(more, 3) if more else [])
    menu = "".join(f'<li><a href="/{link}">odkaz</a></li>' for link in links)
    body = f"<html><head><title>{seed}</title>{head}</head><body><ul>{menu}</ul>"
    body = (body + "".join(f"<p>{part}</p>" for part in text) + "</body></html>").encode()
    return WebResponse(200, {**HTML, "ETag": f'"{hashlib.sha1(body).hexdigest()[:12]}"'}, body)


def test_a_month_passes_and_the_corpus_has_what_was_published(tmp_path) -> None:
    web = Paper()
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, **SETTINGS)

        def asked(name: str, status: int) -> list[float]:
            """Days of the answers with this status to requests for the page *name*."""
            log = list(server.log_entries)
            return [web.day(e.time_s) for e in log if e.path == f"/{name}" and e.status == status]

        def is_seen() -> bool:
            is_published = all(asked(str(n), 200) for n in range(ARTICLES))
            missed = asked("missing", 404)
            is_missing = len(missed) > 1 and missed[-1] - missed[0] > 7
            later = [name for name in ("mended", "closed") if any(day > CHANGES_ON for day in asked(name, 200))]
            return is_published and is_missing and len(later) == 2 and bool(asked("gone", 410))

        running = crawl.start(f"http://{HOST}/")
        running.until(lambda: len(asked("", 200)) + len(asked("", 304)) > 3)
        running.process.kill()
        running.process.wait()
        running = crawl.start()
        running.until(is_seen)
        result = running.stop(signal.SIGINT)
        assert "ERROR" not in result.output, result.output
        log = list(server.log_entries)
    with closing(Inspection(crawl.directory)) as inspection:
        assert list(problems(inspection)) == []
        listed = {tuple(line.split("\t")[1:]) for line in no_longer_there(inspection)}
    assert listed == {(why, f"http://{HOST}/{name}") for name, why in TO_BE_TAKEN_OUT.items()}
    state = crawl.state()
    totals = {key.removeprefix("total/"): number for key, number in state.counts.items() if key.startswith("total/")}
    documents = Counter(document.url.rpartition("/")[2] for document in crawl.documents())
    assert documents == Counter({"": 1, "mended": 2, **dict.fromkeys(["gone", "missing", "closed"], 1)}) + Counter(
        map(str, range(ARTICLES))
    )
    new = [document for document in crawl.documents() if document.url.endswith("mended")][1]
    assert any("mended-later" in part for part in new.paragraphs)
    assert f"{totals['looks']:,} looks, " in result.output
    assert totals["looks_304"] > 5 and totals["versions"] == 1
    assert (totals["looks_gone"], totals["looks_opted_out"]) == (2, 1)
    assert state.counts["discovered"] == 5 + ARTICLES == sum(state.ends.values())
    starts = [entry.time_s for entry in log]
    assert starts[-1] - starts[0] > (len(starts) - 10) * INTERVAL_S, "arrivals are late at times, never early in all"
    assert sum(entry.status == 200 for entry in log if entry.path == "/0") <= 2, "304 from then on, but for a kill"


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"WATCH": "on", "TRAIL": "off"}, "TRAIL is off"), ({"WATCH": "often"}, "on, off or a number of days")],
)
def test_what_cannot_be_watched_is_refused(tmp_path, settings: dict[str, str], why: str) -> None:
    arguments = ["-a", "lang=cs"]
    arguments += [part for key, value in settings.items() for part in ("-s", f"SPIDERLING_{key}={value}")]
    assert why in refusal(tmp_path / "job", *arguments)
