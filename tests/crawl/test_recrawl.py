"""A recrawl, over real sockets, of a web that changes: a month passes in seconds."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
import xxhash
from conftest import Crawl, flags, paragraphs, refusal, serving

from spiderling import pipelines
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.corpus.duplicates import DigestSet
from spiderling.corpus.segments import read_documents
from spiderling.engine.outcomes import DropPage
from spiderling.items import FETCH, PageItem
from spiderling.jobdir.as_text import no_longer_there, of_url, overview
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.status import status_of
from spiderling.reporting.page import page_file
from spiderling.text import Page, Paragraph, fingerprints
from webs.web import HTML, WebResponse, not_found, plain, redirect

HOST = "news.test"
DAY_S = 0.4
ARTICLES = 12
OLD = ("gone", "missing", "closed", "shut", "forbidden", "mended")
TO_BE_TAKEN_OUT = {"gone": "gone", "missing": "gone"} | dict.fromkeys(("closed", "shut", "forbidden"), "opted-out")
BY_FILE = {"fed": 5, "mapped": 3}
"""Pages that only the feed, or only the sitemap, names: how many of them; one comes every fourth day."""
FILES = ("feed", "feed/", "newer-feed", "sitemap.xml", "site-map.xml")
CHANGES_ON = 6.0  # day on which the old pages change
INTERVAL_S = 0.02
ROBOTS_MAX_AGE_S = 1
SETTINGS = {
    "RECRAWL": "on",
    "CONSTANTS": {
        "frontier.recrawl.policy.DAY_S": DAY_S,
        "frontier.recrawl.policy.MIN_WORD_DAYS": 0,
        "frontier.known_files.MAX_AGE_S": ROBOTS_MAX_AGE_S,
    },
    "RECRAWL_REQUESTS": 12,
    "HOST_INTERVAL_S": INTERVAL_S,
    "SITEMAPS": "on",
    "YIELD_PROFILE": "off",
}


class Paper:
    """A front page that lists its newest articles, one every other day, and those not asked for; some old pages change.

    A feed and a sitemap, both behind redirects, name what no page names; the feed moves on, and robots.txt forbids a
    page from some day on.  Its month begins when all that was there before was asked for.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._asked: set[str] = set()
        self._has_forbidden = False
        self.trespasses = 0  # requests for what a robots.txt had forbidden before
        self.refusals = 0  # answers that a page is unchanged and not to be indexed

    def hosts(self) -> Mapping[str, str]:
        return {HOST: "127.84.91.1"}

    globs = hosts

    def day(self, at: float) -> float:
        return (at - self._began) / DAY_S if self._began else 0.0

    def respond(self, host: str, path: str) -> WebResponse:
        day = self.day(time.monotonic())
        name = path.removeprefix("/")
        self._asked.add(name)
        self.trespasses += name == "forbidden" and self._has_forbidden
        if not self._began and {"", "0", "feed", "sitemap.xml", "fed-0", "mapped-0", *OLD} <= self._asked:
            self._began = time.monotonic()
        has_changed = day > CHANGES_ON
        newest = _published(ARTICLES, 2, day)
        if name == "robots.txt":
            self._has_forbidden = has_changed
            return plain(f"Sitemap: http://{HOST}/sitemap.xml\nUser-agent: *\nDisallow: {'/forbidden' * has_changed}\n")
        moved = {"feed": "feed/", "sitemap.xml": "site-map.xml"} | ({"feed/": "newer-feed"} if has_changed else {})
        if name in moved:
            return redirect(f"http://{HOST}/{moved[name]}")
        if name in ("feed/", "newer-feed", "site-map.xml"):
            return self._listing(name, day)
        if name == "":
            unread = (n for n in range(newest) if str(n) not in self._asked)
            oldest = min(next(unread, newest), newest - 4)  # a crawl on a busy machine misses none
            listed = ["feed", *OLD, *(str(n) for n in range(max(0, oldest), newest))]
            return _html("front", listed, head='<link rel="alternate" type="application/rss+xml" href="/feed">')
        if name == "shut" and has_changed:
            self.refusals += 1
            return WebResponse(304, {"X-Robots-Tag": "noindex"})
        if name in OLD:
            return _old(name, has_changed)
        kind, _, number = name.rpartition("-")
        most = _published(BY_FILE[kind], 4, day) if kind in BY_FILE else newest if not kind else 0
        return _html(name, []) if number.isdigit() and int(number) < most else not_found()

    def _listing(self, name: str, day: float) -> WebResponse:
        """The feed or the sitemap: all that only it names, each with the date from which it is there."""
        kind, entry = ("mapped", _URL) if name == "site-map.xml" else ("fed", _ITEM)
        since = time.time() - day * DAY_S
        numbers = range(_published(BY_FILE[kind], 4, day))
        listed = {f"{kind}-{n}": since + 4 * n * DAY_S for n in numbers}
        if day > CHANGES_ON:
            listed["mended"] = since + CHANGES_ON * DAY_S
        dates = {page: datetime.fromtimestamp(at, UTC).isoformat() for page, at in listed.items()}
        inner = "".join(entry.format(address=f"http://{HOST}/{page}", date=date) for page, date in dates.items())
        frame = "<urlset>{}</urlset>" if kind == "mapped" else _FEED
        return _tagged(frame.format(inner).encode(), {"Content-Type": "text/xml"})


_ITEM = "<item><link>{address}</link><pubDate>{date}</pubDate></item>"
_FEED = (
    '<rss xmlns:rsl="https://rslstandard.org/rsl"><channel>{}<item><link>/refused</link><rsl:content url="/refused">'
    '<rsl:license><rsl:prohibits type="usage">all</rsl:prohibits></rsl:license></rsl:content></item></channel></rss>'
)
"""It refuses one page, which only it names."""
_URL = "<url><loc>{address}</loc><lastmod>{date}</lastmod></url>"


def _published(most: int, every_days: int, day: float) -> int:
    """How many of *most* pages, one *every_days*, are there on a day."""
    return min(most, 1 + int(day / every_days))


def _old(name: str, has_changed: bool) -> WebResponse:
    if name in OLD[:2] and has_changed:
        return WebResponse(410, HTML) if name == "gone" else not_found()
    head = '<meta name="robots" content="noindex">' if name == "closed" and has_changed else ""
    return _html(name, [], head, MENDED if name == "mended" and has_changed else None)


NEW = paragraphs("new", 2)
MENDED = [paragraphs("mended", 3)[0], NEW[0], paragraphs("mended", 3)[2], NEW[1], "Komentáře (3)"]
"""The text around the new paragraphs is the same, but for a counter; one paragraph is gone."""


def _html(seed: str, links: list[str], head: str = "", text: list[str] | None = None) -> WebResponse:
    menu = "".join(f'<li><a href="/{link}">odkaz</a></li>' for link in links)
    body = f"<html><head><title>{seed}</title>{head}</head><body><ul>{menu}</ul>"
    body += "".join(f"<p>{part}</p>" for part in text or paragraphs(seed, 3)) + "</body></html>"
    return _tagged(body.encode(), HTML)


def _tagged(body: bytes, headers: Mapping[str, str]) -> WebResponse:
    return WebResponse(200, {**headers, "ETag": f'"{hashlib.sha1(body).hexdigest()[:12]}"'}, body)


def test_a_month_passes_and_the_corpus_has_what_was_published(tmp_path) -> None:
    web = Paper()
    articles = [*map(str, range(ARTICLES)), *(f"{kind}-{n}" for kind, most in BY_FILE.items() for n in range(most))]
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, **SETTINGS)

        def asked(name: str, status: int) -> list[float]:
            """Days of the answers with this status to requests for the page *name*."""
            log = list(server.log_entries)
            return [web.day(e.time_s) for e in log if e.path == f"/{name}" and e.status == status]

        def is_seen() -> bool:
            is_published = all(asked(name, 200) for name in articles)
            missed = asked("missing", 404)
            is_missing = len(missed) > 1 and missed[-1] - missed[0] > 7
            later = [name for name in ("mended", "closed") if any(day > CHANGES_ON for day in asked(name, 200))]
            return is_published and is_missing and len(later) == 2 and web.refusals and bool(asked("gone", 410))

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
        status = status_of(inspection)
        revisits = status.revisits
        shown = "\n".join(overview(status)), page_file(inspection)
        listed = {tuple(line.split("\t")[1:]) for line in no_longer_there(inspection)}
        told = ["\n".join(of_url(inspection, f"http://{HOST}/{name}")) for name in ("shut", "", "nowhere")]
    assert listed == {(why, f"http://{HOST}/{name}") for name, why in TO_BE_TAKEN_OUT.items()}
    state = crawl.state()
    totals = {key.removeprefix("total/"): number for key, number in state.counts.items() if key.startswith("total/")}
    documents = Counter(document.url.rpartition("/")[2] for document in crawl.documents())
    assert documents == Counter(["", *OLD, "mended", *articles])
    found = [one for path in crawl.directory.glob("corpus/*.zst") for one in read_documents(path)]
    card = json.loads((crawl.directory / "corpus/manifest.json").read_text("utf-8"))["contents"]
    sums = [sum(int(one.attributes[name]) for one in found) for name in ("words", "length")]
    assert [card["documents"], card["words"], card["text_bytes"]] == [len(found), *sums]
    first, later = sorted(
        (one for one in found if one.attributes["url"].endswith("/mended")), key=lambda one: "version" in one.attributes
    )
    assert first.paragraphs == paragraphs("mended", 3) and not {"version", "first_seen"} & first.attributes.keys()
    assert later.paragraphs == NEW and later.attributes["version"] == "2"
    assert first.attributes["crawl_date"] <= later.attributes["first_seen"] <= later.attributes["crawl_date"]
    assert re.search(r"^revisits +the last at .* UTC, opted out since .* UTC$", told[0], re.MULTILINE)
    assert re.search(r"^revisits +the last at .* UTC$", told[1], re.MULTILINE) and "revisits" not in told[2]
    assert 1 <= web.refusals <= 2, "no more after it was noted, which a kill may undo"
    assert f"revisits {totals['revisits']:,}, " in result.output
    assert status.phase == "stopped", "no URL waits, but the recrawl goes on"
    assert (revisits.revisits, revisits.gone, revisits.opted_out) == (totals["revisits"], 2, 3)
    assert revisits.new == totals["revisits_new"] and revisits.until is None
    recrawled = state.counts["discovered"] - len(TO_BE_TAKEN_OUT) - 4  # three redirects, and the feed as a page
    assert recrawled - 3 <= revisits.recrawled <= recrawled, "the last ones may not be taken up yet"
    for text in shown:
        assert "Revisits of known pages" in text and f"{revisits.revisits:,}" in text
    assert totals["revisits_304"] > 5 and totals["versions"] == 1
    assert (totals["revisits_gone"], totals["revisits_opted_out"]) == (2, 3)
    as_pages = ("feed", "feed/")  # there is a link to it, too
    assert state.counts["discovered"] == len(["", *FILES, *as_pages, *OLD, *articles]) == sum(state.ends.values())
    assert state.counts["mention/opted-out"] and not any(entry.path == "/refused" for entry in log)
    starts = [entry.time_s for entry in log]
    assert starts[-1] - starts[0] > (len(starts) - 10) * INTERVAL_S, "arrivals are late at times, never early in all"
    assert not web.trespasses, "a revisit goes by the newest robots.txt"
    assert sum(entry.status == 200 for entry in log if entry.path == "/0") <= 2, "304 from then on, but for a kill"


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"RECRAWL": "on", "TRAIL": "off"}, "TRAIL is off"), ({"RECRAWL": "often"}, "on, off or a number of days")],
)
def test_what_cannot_be_recrawled_is_refused(tmp_path, settings: dict[str, str], why: str) -> None:
    given = flags({f"SPIDERLING_{key}": value for key, value in settings.items()})
    assert why in refusal(tmp_path / "job", "-a", "lang=cs", *given)


def later_version(texts: list[str], before: list[str], crawl: SimpleNamespace) -> PageItem:
    """A page of *texts*, judged as a later version of one of the paragraphs *before*."""
    revisit = SimpleNamespace(
        page=SimpleNamespace(validators=SimpleNamespace(text_key=1)),
        paragraphs=fingerprints.pack(fingerprints.digests_of(before)),
    )
    request = SimpleNamespace(meta={FETCH: SimpleNamespace(revisit=revisit, host=SimpleNamespace(name=HOST))})
    page = Page("html", paragraphs=[Paragraph(text, "good", "text", False, "cs", True) for text in texts])
    page.paragraph_digests = fingerprints.digests_of(texts)
    page.raw_digest = xxhash.xxh3_128_digest(repr(texts).encode())
    page.text_digest = xxhash.xxh3_128_digest("\n".join(texts).encode())
    item = PageItem(SimpleNamespace(url=f"http://{HOST}/", request=request), page)
    pipeline = pipelines.DedupPipeline(None)
    pipeline.crawl = crawl
    pipeline.process_page(item, page)
    return item


def test_new_text_that_is_that_of_another_page_makes_no_version() -> None:
    """The corpus had it twice, word for word."""
    old, new = paragraphs("old", 2), paragraphs("new", 2)
    frontier = SimpleNamespace(is_copy=lambda name, sketch: False)
    crawl = SimpleNamespace(options=Options(dedup="exact"), near=None, known_digests=DigestSet([]), frontier=frontier)
    crawl.known_digests.update(later_version(new, [], crawl).digests)
    with pytest.raises(DropPage) as dropped:
        later_version(old + new, old, crawl)
    assert dropped.value.reason is Reason.DUPLICATE
    assert later_version([*old, *new, *paragraphs("more", 1)], old, crawl).digests


def test_paragraphs_that_are_not_compared_are_counted_and_said_once(monkeypatch, caplog):
    monkeypatch.setattr(pipelines, "MAX_PARAGRAPHS", 2)
    monkeypatch.setattr(fingerprints, "MAX_PARAGRAPHS", 2)
    revisit = SimpleNamespace(page=SimpleNamespace(validators=SimpleNamespace(text_key=1)), paragraphs=b"")
    request = SimpleNamespace(meta={FETCH: SimpleNamespace(revisit=revisit)})
    totals: Counter[str] = Counter()
    pipeline = pipelines.DedupPipeline(None)
    pipeline.crawl = SimpleNamespace(
        options=Options(dedup="off"), near=None, known_digests=set(),
        frontier=SimpleNamespace(ledger=SimpleNamespace(totals=totals)),
    )  # fmt: skip
    for _ in range(2):
        page = Page(
            "html", paragraphs=[Paragraph(text, "good", "text", False, "cs", True) for text in paragraphs("old", 3)]
        )
        page.paragraph_digests = fingerprints.digests_of(paragraphs("old", 3))
        item = PageItem(SimpleNamespace(url=f"http://{HOST}/", request=request), page)
        pipeline.process_page(item, page)
        assert [paragraph.kept for paragraph in page.paragraphs] == [True, True, False]
    assert totals["revisit_paragraphs_beyond"] == 2 and caplog.text.count("what is new behind them is not kept") == 1
