"""What is taken down leaves a crawl for good: corpus, links, archive, queue and memory; and the crawl goes on."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from conftest import SENTENCES, Crawl, damage_in, document, page, scrapy, serving
from fastwarc.warc import ArchiveIterator, WarcRecordType

from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import owner_of, url_key
from spiderling.cluster.resharding import reshard
from spiderling.corpus.links import read_links
from spiderling.corpus.receipts import RECEIPT_BYTES
from spiderling.corpus.warc import records
from spiderling.export.export import ExportPlan, export
from spiderling.export.sources import corpus_of
from spiderling.export.verification import Verification, cards_of
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.recrawl.pages import RecrawlPage, Standing, Validators
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir import takedown
from spiderling.jobdir.as_text import no_longer_there, of_host
from spiderling.jobdir.card import TAKEDOWNS, write_card
from spiderling.jobdir.damage import rebuild
from spiderling.jobdir.directory import LOCK, TAKEDOWN, acquire
from spiderling.jobdir.inspection import Inspection, reading
from spiderling.jobdir.snapshots import Snapshots, take_over
from spiderling.jobdir.status import status_of
from spiderling.jobdir.takedown import COUNTED, survey, take_down
from webs.web import FixedWeb, WebResponse, html, redirect

EACH = 24
HOSTS = ("stays.test", "goes.test", "below.goes.test")
COPY = "http://copies.test/same"  # the same bytes as a page of goes.test
SITES = {
    **{
        host: {f"/{n}": page(f"{host}{n}", f"/{n + 1}", f"http://{HOSTS[n % 3]}/{n}") for n in range(EACH)}
        for host in HOSTS
    },
    "copies.test": {"/": page("copies", "/same"), "/same": html(document("goes.test0", "/1", "http://stays.test/0"))},
    "later.test": {"/": page("goes.test3", "/4", "http://stays.test/3")},
}
SEEDS = " ".join([*(f"http://{host}/0" for host in HOSTS), "http://copies.test/"])
HOSTS_TO_GO = [".goes.test"]
EVERY_HOST = [*SITES]
URLS_TO_GO = ["http://stays.test/1", "http://stays.test/2*"]


def is_gone(url: str) -> bool:
    return "goes.test" in url or url.startswith("http://stays.test/2") or url == "http://stays.test/1"


@pytest.fixture(scope="module")
def server():
    with serving(SITES) as running:
        yield running


@pytest.fixture(scope="module")
def paused(tmp_path_factory, server) -> Path:
    """A crawl that has more to do, in several segments; near-duplicates are known."""
    crawl = Crawl(tmp_path_factory.mktemp("paused") / "job", server, MAX_DOCUMENTS=34, **KEPT)
    ended = crawl.run(SEEDS, CONSTANTS={"crawl.crawl.SEGMENT_BYTES": 20000})
    assert ended.code == 0 and not damage_in(crawl.directory), ended.output
    return crawl.directory


KEPT = {"LINKS": "on", "WARC": "on"}


@pytest.fixture
def directory(tmp_path, paused) -> Path:
    return shutil.copytree(paused, tmp_path / "job")


def of(directory: Path) -> Crawl:
    crawl = Crawl.__new__(Crawl)
    crawl.directory = directory
    return crawl


def parts(directory: Path) -> list[Path]:
    return sorted(directory.glob("shard-*")) or [directory]


def addresses(directory: Path) -> dict[str, Counter[str]]:
    """Kind of output -> the URLs of its entries."""
    found = {"corpus": Counter(), "links": Counter(), "warc": Counter()}
    for part in parts(directory):
        found["corpus"].update(one.url for one in of(part).documents())
        with closing(Inspection(part)) as crawl:
            for path, length, _ in crawl.segments("links"):
                found["links"].update(line.url for line in read_links(path, length))
            for path, length, _ in crawl.segments("warc"):
                found["warc"].update(record.headers.get("warc-target-uri", "") for record in records(path, length))
    return found


def left_of(found: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """What is left of *found* when all is taken down; the warcinfo of each file stays."""
    return {kind: Counter({url: n for url, n in urls.items() if not is_gone(url)}) for kind, urls in found.items()}


def test_it_leaves_and_the_crawl_goes_on_without_it(directory, server, tmp_path):
    before = addresses(directory)
    before_urls = of(directory).state().urls
    said = scrapy("takedown", str(directory), "--host", *HOSTS_TO_GO, "--url", URLS_TO_GO[0], "--url", URLS_TO_GO[1])
    assert said.code == 0 and "Nothing was changed" in said.out and addresses(directory) == before
    numbers = survey(directory, HOSTS_TO_GO, URLS_TO_GO)
    gone = {kind: sum(urls.values()) - sum(left_of(before)[kind].values()) for kind, urls in before.items()}
    assert gone["corpus"] > 10 and numbers["hosts"] == 2 and numbers["waiting_urls"]
    assert [numbers[name] for name in ("documents", "link_rows", "warc_records")] == [*gone.values()]
    (tmp_path / "list").write_text("# asked on Monday\n.goes.test\n" + "\n".join(URLS_TO_GO))
    done = scrapy("takedown", str(directory), "--list", str(tmp_path / "list"), "--yes")
    assert done.code == 0 and f"{gone['corpus']} documents" in done.out, done
    assert done.out.removeprefix("Taken down") == said.out.splitlines(True)[0].removeprefix("It would go")

    assert addresses(directory) == left_of(before) and not damage_in(directory)
    state = of(directory).state()
    state.check()
    waited = sum(is_gone(url) for url, _ in before_urls) - sum(is_gone(url) for url, _ in state.urls)
    assert state.ends["taken-down"] == numbers["urls"] + waited
    assert state.hosts["goes.test"]["state"] == "blocked" and not any("goes.test" in url for url, _ in state.urls)
    (record,) = json.loads(state.meta[TAKEDOWNS])
    assert record["taken"] == {name: numbers[name] for name in COUNTED} and len(record["sha256"]) == 64
    overview = scrapy("inspect", str(directory)).out
    assert f"taken down: .goes.test, {', '.join(URLS_TO_GO)}: 2 hosts" in overview and record["sha256"] in overview
    url = scrapy("inspect", str(directory), "url", "http://goes.test/0").out
    assert "verdict     taken-down" in url and "Toto je" not in url
    manifest = json.loads((directory / "corpus/manifest.json").read_text())
    assert (
        manifest["contents"]["documents"]
        == sum(left_of(before)["corpus"].values())
        == sum(file["documents"] for file in manifest["files"])
    )
    assert sum(file.get("taken_down", 0) for file in manifest["files"]) == gone["corpus"], "they leave their leaves"
    assert scrapy("verify", str(directory / "corpus")).code == 0
    assert f"{gone['corpus']} documents were taken down" in (directory / "corpus/README.md").read_text()
    assert scrapy("export", str(directory), "--summary", "eu", "-o", str(tmp_path / "summary")).code == 0
    summary = (tmp_path / "summary/summary.md").read_text("utf-8")
    assert f"| 2 | {numbers['urls']} | {numbers['documents']} | {numbers['words']:,} |" in summary
    assert "goes.test" not in summary, "what is taken down is not named in public"

    (directory / "control.yaml").write_text('reopen: ["goes.test"]\n')
    asked = len(server.log_entries)
    crawl = Crawl(directory, server, **KEPT)
    ended = crawl.run(f"{SEEDS} http://stays.test/1 http://stays.test/22 http://later.test/")
    assert ended.code == 0 and "was taken down, and stays so" in ended.output, ended.output
    assert not any(is_gone(f"http://{entry.host}{entry.path}") for entry in server.log_entries[asked:])
    found = addresses(directory)
    assert found == left_of(found) and not damage_in(directory)
    kept = {f"http://stays.test/{n}" for n in range(EACH)} | {"http://copies.test/", "http://later.test/"}
    assert found["corpus"].keys() == {url for url in kept if not is_gone(url)}, "others may bring the same text"


def test_others_may_bring_nearly_the_same_text(tmp_path):
    """The filter of near-duplicates has forgotten it, and still knows what stays."""
    words = " ".join(SENTENCES).split()
    texts = {host: [random.Random(f"{host} {n}").choices(words, k=80) for n in range(3)] for host in ("a", "b")}

    def answer(host: str, *more: str):
        return html("".join(f"<p>{' '.join([*words, *more])}.</p>" for words in texts[host]))

    web = {"a.test": {"/": answer("a")}, "b.test": {"/": answer("b")}, "c.test": {"/": answer("a", "jinak")}}
    web["d.test"] = {"/": answer("b", "jinak")}
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, DEDUP="near")
        assert crawl.run("http://a.test/ http://b.test/").code == 0
        take_down(crawl.directory, ["a.test"], [], 1.0)
        assert crawl.run("http://c.test/ http://d.test/").code == 0
    assert {one.url for one in crawl.documents()} == {"http://b.test/", "http://c.test/"}
    assert crawl.state().ends == {"kept": 2, "taken-down": 1, "near-duplicate": 1} and not damage_in(crawl.directory)


def test_others_records_of_the_same_bytes_get_them(directory):
    """An archive has the bytes once; a record that only refers to them becomes a response of its own."""
    assert types_of(directory, COPY) == {"revisit"}
    take_down(directory, HOSTS_TO_GO, [], 1.0)
    assert types_of(directory, COPY) == {"response"}
    bodies = []
    for path in directory.glob("warc/*.warc.gz"):
        assert all(record.verify_block_digest() for record in ArchiveIterator(path.open("rb"), parse_http=False))
        for record in ArchiveIterator(path.open("rb")):
            if record.headers.get("WARC-Target-URI") == COPY and record.record_type == WarcRecordType.response:
                bodies.append(gzip.decompress(record.reader.read()))
    assert bodies == [document("goes.test0", "/1", "http://stays.test/0").encode()]


def types_of(directory: Path, url: str) -> set[str]:
    with closing(Inspection(directory)) as crawl:
        found = [one for path, length, _ in crawl.segments("warc") for one in records(path, length) if one.is_capture]
    return {one.headers["warc-type"] for one in found if one.headers["warc-target-uri"] == url}


# -- it is done once, wherever it is interrupted

STEPS = (
    (SqliteStore, "commit"),
    (takedown, "sync_directory"),
    (Path, "unlink"),
    (Path, "replace"),
    (shutil, "rmtree"),
    (takedown, "write_card"),
)


def killed(directory: Path, number: int) -> bool:
    """Take down in a process of its own that is killed at the step of this *number*; False if it has fewer."""
    child = os.fork()
    if not child:
        left = [number]
        for place, name in STEPS:
            setattr(place, name, _counting(getattr(place, name), left))
        try:
            take_down(directory, HOSTS_TO_GO, URLS_TO_GO, 1.0)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def _counting(step, left: list[int]):
    def wrapped(*arguments, **keywords):
        left[0] -= 1
        if not left[0]:
            os._exit(9)
        return step(*arguments, **keywords)

    return wrapped


def whole(directory: Path) -> tuple:
    """All that must be alike, however often a take-down was interrupted."""
    found = []
    for part in parts(directory):
        assert not damage_in(part)
        state = of(part).state()
        with closing(Inspection(part)) as crawl:
            named = {segment.path.name for kind in ("corpus", "links", "warc") for segment in crawl.segments(kind)}
        there = {path.name for kind in ("corpus", "links", "warc") for path in part.glob(f"{kind}/*-*")}
        assert there == named, "nothing is left, and nothing lost"
        has_card = (part / "corpus/manifest.json").exists()
        checked = [Verification(card) for card in cards_of(part)] if has_card else []
        proved = [(one.findings, one.documents, one.taken_down) for one in checked]
        found.append((state.counts, state.counters(), state.urls, state.meta, state.events, proved))
    return addresses(directory), *found


EVERY = pytest.mark.slow


@pytest.mark.parametrize(
    ("shards", "stride"), [(1, 4), pytest.param(1, 1, marks=EVERY), pytest.param(3, 1, marks=EVERY)]
)
def test_a_kill_at_any_step_costs_nothing_and_leaves_nothing(tmp_path, paused, shards, stride):
    divided = tmp_path / "divided"
    shutil.copytree(paused, divided)
    if shards > 1:
        list(reshard(divided, shards, 1.0))
    before = addresses(divided)
    wanted = None
    for number in (0, *range(1, 200, stride)):
        directory = shutil.copytree(divided, tmp_path / str(number))
        is_killed = number > 0 and killed(directory, number)
        is_ended = number > 0 and (not is_killed or (number % 3 == 2 and not killed(directory, 1 + number // 2)))
        if not is_ended:
            take_down(directory, HOSTS_TO_GO, URLS_TO_GO, 1.0)
        found = whole(directory)
        wanted = wanted or found
        assert found == wanted, number
        shutil.rmtree(directory)
        if number and not is_killed:
            break
    assert number > 10 and wanted[0] == left_of(before)


def test_no_crawl_and_no_other_take_down_begins_before_it_has_ended(directory, server):
    assert killed(directory, 4)
    refused = Crawl(directory, server, **KEPT).run(SEEDS)
    assert refused.code == 1 and f"end it with scrapy takedown {directory} --yes" in refused.output
    with pytest.raises(BadInput, match=r"a take-down of \.goes\.test, .* was interrupted: end it with"):
        take_down(directory, ["other.test"], [], 1.0)
    take_down(directory, [], [], 1.0)
    whole(directory)


@pytest.mark.parametrize("step", [4, 12], ids=["before", "after"])
def test_a_state_is_not_made_anew_of_both_files_of_a_take_down_that_was_interrupted(directory, step):
    """Each segment that is written anew stands beside the former one, and the state knows one of them."""
    assert killed(directory, step) and not damage_in(directory)
    with pytest.raises(BadInput, match="is whole and knows all"):
        [*rebuild(directory, {}, 1.0)]
    damaged = shutil.copytree(directory, directory.with_name("damaged"))
    take_down(directory, [], [], 1.0)
    whole(directory)
    with closing(sqlite3.connect(damaged / "state/frontier.sqlite")) as state, state:
        state.execute("UPDATE count SET value = value + 1 WHERE key = 'discovered'")
    assert "was made anew" in next(rebuild(damaged, {}, 1.0)) and not damage_in(damaged)
    take_down(damaged, HOSTS_TO_GO, URLS_TO_GO, 1.0)
    assert addresses(damaged)["corpus"] == addresses(directory)["corpus"]
    whole(damaged)


# -- what may go on beside it, or after it


def test_it_is_refused_beside_a_crawl(directory):
    with closing(acquire(directory / LOCK, directory)):
        refused = scrapy("takedown", str(directory), "--host", "goes.test", "--yes")
        assert refused.code == 1 and "is in use by process" in refused.log
        assert scrapy("takedown", str(directory), "--host", "goes.test").code == 0, "a dry run changes nothing"
    with pytest.raises(BadInput, match="nothing is named"):
        take_down(directory, [], [], 1.0)
    with pytest.raises(BadInput, match="is no host name"):
        take_down(directory, ["no name"], [], 1.0)
    (directory / LOCK).unlink()
    with pytest.raises(BadInput, match="is a snapshot"):
        take_down(directory, ["goes.test"], [], 1.0)


def test_the_next_snapshot_has_lost_it_too(directory, tmp_path):
    (tmp_path / "shared").mkdir()
    failed: list[JobdirError] = []
    Snapshots(tmp_path / "shared", directory, False, failed.append).write()
    saved = tmp_path / "shared/job"
    assert addresses(saved) == addresses(directory)
    take_down(directory, HOSTS_TO_GO, URLS_TO_GO, 1.0)
    snapshots = Snapshots(tmp_path / "shared", directory, False, failed.append)
    snapshots.step()
    snapshots.thread.join(60)
    assert addresses(saved) == addresses(directory) == left_of(addresses(saved)) and not failed
    whole(saved)
    over = tmp_path / "over"
    take_over(saved, over, 1.0)
    take_down(over, ["copies.test"], [], 1.0)
    whole(over)


def test_pages_that_are_revisited_and_a_second_take_down(directory):
    database = directory / "state/frontier.sqlite"
    urls = ("http://goes.test/0", "http://stays.test/1", "http://stays.test/0")
    hosts = of(directory).state().hosts
    keys = [url_key(hosts[url.split("/")[2]]["id"], url) for url in urls]
    pages = {key: RecrawlPage(key, url, 0.0, 0.0, Validators(), version=1) for key, url in zip(keys, urls, strict=True)}
    with closing(SqliteStore(database)) as store:
        blobs = {"recrawled": {key: page.pack() for key, page in pages.items()}, "paragraph": dict.fromkeys(keys, b"8")}
        store.commit(Changes(blobs=blobs, meta={"recrawl": '{"began": 1.0}'}))
    take_down(directory, HOSTS_TO_GO, [], 2.0)
    take_down(directory, [], URLS_TO_GO, 3.0)
    with closing(SqliteStore(database, writes=False)) as store:
        found = {key: RecrawlPage.unpack(key, row) for key, row in store.blobs("recrawled")}
        assert dict(store.blobs("paragraph")) == {keys[0]: b"", keys[1]: b"", keys[2]: b"8"}
    assert [found[key].state for key in keys] == [Standing.OPTED_OUT, Standing.OPTED_OUT, Standing.LIVE]
    with closing(Inspection(directory)) as crawl:
        assert not list(no_longer_there(crawl)), "they are in no corpus"
        records = json.loads(crawl.meta[TAKEDOWNS])
    assert [one["time"] for one in records] == [2.0, 3.0]
    whole(directory)


def test_a_trail_that_was_switched_off_and_on_is_no_damage_nor_counted_twice(directory, server):
    crawl = of(directory)
    for trail, number in (("off", 44), ("full", 54)):
        goes_on = Crawl(directory, server, MAX_DOCUMENTS=number, TRAIL=trail, MAX_HOST_DOCUMENTS=number // 3, **KEPT)
        assert goes_on.run(SEEDS).code == 0 and not damage_in(directory)
        if trail == "off":
            before = crawl.state().ends["kept"]
            taken = take_down(directory, ["goes.test"], [], 1.0)
            assert crawl.state().ends["kept"] == before - taken["documents"] and taken["documents"] > 5
            whole(directory)
    left = take_down(directory, EVERY_HOST, [], 2.0)
    assert crawl.state().ends.get("kept", 0) == 0 and left["documents"] > 20 and not damage_in(directory)


def test_what_a_state_without_a_trail_had_when_it_was_made_anew(tmp_path, server):
    """The front page of a host is kept, and waits again."""
    crawl = Crawl(tmp_path / "job", server, MAX_DOCUMENTS=34, TRAIL="off", DEDUP="mark")
    assert crawl.run(SEEDS).code == 0
    before = crawl.state().counts["total/kept_bytes"]
    shutil.rmtree(crawl.directory / "state")
    assert [*rebuild(crawl.directory, {"SPIDERLING_DEDUP": "mark"}, 1.0)]
    assert crawl.state().counts["total/kept_bytes"] == before > 0
    take_down(crawl.directory, EVERY_HOST, [], 2.0)
    assert crawl.state().ends.get("kept", 0) == 0 and not damage_in(crawl.directory)


def test_documents_keep_their_receipts_when_the_rest_of_their_file_is_lost(directory):
    """And a state that was made anew, which does not know what their sites had said."""
    (segment, *_) = sorted(directory.glob("corpus/*.zst"))
    data = segment.read_bytes()
    segment.write_bytes(data[: len(data) // 2])
    before = (directory / "corpus/receipts.bin").read_bytes()
    assert [*rebuild(directory, {}, 1.0)]
    write_card(directory)
    (card,) = cards_of(directory)
    found = Verification(card)
    assert not found.findings and 0 < found.documents == len(of(directory).documents()) < 34
    assert found.taken_down == 34 - found.documents
    after = (directory / "corpus/receipts.bin").read_bytes()
    assert after.startswith(before[: RECEIPT_BYTES * found.documents])


class Cookies(FixedWeb):
    """A web whose page gives its text to whom it has led over another one, which sets a cookie."""

    asked = 0

    def respond(self, host: str, path: str) -> WebResponse:
        self.asked += path == "/a"
        if path == "/a" and self.asked == 1:
            return redirect("/cookie")
        led_back = redirect("/a")
        led_back = WebResponse(302, {**led_back.headers, "Set-Cookie": "seen=1; Path=/"}, led_back.body)
        return led_back if path == "/cookie" else super().respond(host, path)


def test_a_page_to_which_a_redirect_led_back(tmp_path):
    with serving(Cookies({"a.test": {"/a": page("a", "/b"), "/b": page("b")}})) as server:
        crawl = Crawl(tmp_path / "job", server, **KEPT)
        assert crawl.run("http://a.test/a").code == 0
    assert crawl.state().ends == {"redirected": 2, "kept": 2}
    anew = shutil.copytree(crawl.directory, tmp_path / "anew")
    shutil.rmtree(anew / "state")
    assert [*rebuild(anew, {}, 1.0)] and not damage_in(anew)
    for directory in (crawl.directory, anew):
        assert take_down(directory, [], ["http://a.test/a"], 2.0)["documents"] == 1
        assert of(directory).state().ends["kept"] == 1
        whole(directory)


def test_what_a_divided_crawl_had_of_a_host_that_moved(directory):
    list(reshard(directory, 4, 1.0))
    moved = [host for host in HOSTS if owner_of(host, 4)]
    kept = Counter(url.split("/")[2] for url in addresses(directory)["corpus"])
    with reading(directory) as crawl:
        told = [row for host in moved for row in of_host(crawl, host, urls=False) if row.startswith("pages")]
        status = status_of(crawl)
    assert all(f", {kept[host]} of them kept, " in row for host, row in zip(moved, told, strict=True)), told
    assert status.by_distance[0].hosts == sum(status.hosts.values())
    assert moved and take_down(directory, moved, [], 2.0)["documents"] > 5
    whole(directory)


def test_a_seed_that_failed_is_not_asked_for_again_though_it_is_named(directory, server):
    crawl = Crawl(directory, server, **KEPT)
    nowhere = "http://nowhere.test/x"
    assert crawl.run(f"{SEEDS} {nowhere}").code == 0 and crawl.state().ends["dns"] == 1
    assert take_down(directory, [], [nowhere], 1.0)["urls"] == 1
    assert crawl.run(f"{SEEDS} {nowhere}").code == 0
    assert "dns" not in crawl.state().ends and crawl.state().ends["taken-down"] == 1
    whole(directory)


def test_an_archive_does_not_bring_it_back():
    frontier = Frontier(Options(lang="cs"), lambda address: True)
    frontier.leave_out(DropList([], ["http://a.test/x*"]))
    assert frontier.archive_pages.begin("http://www.a.test/x?1") is Reason.TAKEN_DOWN
    assert isinstance(frontier.archive_pages.begin("http://a.test/y"), Fetch)
    assert frontier.ledger.balance.error == 0


def test_exports_with_older_files_drop_it_there(directory, tmp_path):
    old = tmp_path / "old.prevert"
    assert scrapy("export", str(directory), "-o", str(old)).code == 0
    take_down(directory, HOSTS_TO_GO, URLS_TO_GO, 1.0)
    plain = scrapy("export", str(directory), "-o", str(tmp_path / "plain.jsonl"))
    assert "Entries without" not in plain.out and not [*tmp_path.glob("plain.jsonl.dropped*")]
    said = scrapy("export", str(directory), str(old), "-o", str(tmp_path / "new.jsonl"))
    assert said.code == 0, said
    urls = [json.loads(line)["url"] for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    assert urls and not any(map(is_gone, urls))
    dropped = (tmp_path / "new.jsonl.dropped.tsv").read_text()
    assert "http://goes.test/0\t.goes.test" in dropped
    manifest = json.loads((tmp_path / "new.jsonl.json").read_text())
    assert manifest["crawls"][0]["taken_down"][0]["taken"]["documents"] == manifest["dropped"]
    assert "hosts" not in manifest["crawls"][0]["taken_down"][0], "the card names nobody"


def test_dedup_with_older_files_drops_it_there_and_compares_nothing_with_it(directory, tmp_path):
    """It brought it back, and the same text of another host went."""
    old = tmp_path / "old.prevert"
    assert scrapy("export", str(directory), "-o", str(old)).code == 0
    take_down(directory, HOSTS_TO_GO, URLS_TO_GO, 1.0)
    found = []
    for sources in ([directory], [old, directory]):
        out = tmp_path / f"{len(sources)}.jsonl"
        said = scrapy("dedup", *map(str, sources), "-o", str(out))
        assert said.code == 0, said
        found.append([json.loads(line)["url"] for line in out.read_text().splitlines()])
    assert found[0] == found[1] and not any(map(is_gone, found[1]))


def test_a_take_down_that_was_interrupted_counts_for_exports(directory, tmp_path):
    with closing(SqliteStore(directory / "state/frontier.sqlite")) as store:
        begun = {"record": {"time": 1.0, "hosts": HOSTS_TO_GO, "urls": URLS_TO_GO}, "files": []}
        store.commit(Changes(meta={TAKEDOWN: json.dumps(begun)}))
    assert scrapy("export", str(directory), "-o", str(tmp_path / "new.jsonl")).code == 0
    urls = [json.loads(line)["url"] for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    assert urls and not any(map(is_gone, urls))


def test_what_stands_behind_damage_is_moved_aside_and_can_be_exported_from_there(directory, tmp_path):
    """It was said that it cannot be read."""
    (segment, *_) = sorted(directory.glob("corpus/*.zst"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 3] ^= 255
    segment.write_bytes(data)
    said = "\n".join(rebuild(directory, {}, 1.0))
    assert f"{segment}, all from the first damage on, went to aside/" in said and "--salvage" in said
    (aside,) = (segment.parent / "aside").iterdir()
    assert scrapy("export", str(aside), "--salvage", "-o", str(tmp_path / "left.jsonl")).code == 1
    left = (tmp_path / "left.jsonl").read_text().count("\n")
    assert 0 < left < 34 - len(of(directory).documents())


def test_an_export_amid_which_something_is_taken_down_is_given_up(directory, tmp_path):
    """It had all of that, without a word."""

    def documents():
        yield from corpus.stored()
        take_down(directory, HOSTS_TO_GO, [], 1.0)

    corpus = corpus_of([str(directory)])
    out = tmp_path / "out.prevert"
    with pytest.raises(BadInput, match="was taken down or moved while it was exported"):
        export(corpus, documents(), ExportPlan(out, "prevertical"))
    assert [*tmp_path.glob("out*")] == []
    assert scrapy("export", str(directory), "-o", str(out)).code == 0
