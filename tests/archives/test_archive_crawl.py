"""``scrapy crawl archive``: pages of WARC files go through the same chain as those of a crawl, each exactly once."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
from types import SimpleNamespace

import pytest
from conftest import NETWORK, Crawl, damage_in, document, page, scrapy, serving
from made_warcs import FORMS, record

from benchmarks.faults import differences
from spiderling.jobdir.damage import rebuild
from webs.web import FixedWeb

NO_SERVER = SimpleNamespace(hosts_option="")
SEGMENTS = {"crawl.crawl.SEGMENT_BYTES": 4000}
SETTINGS = {"LINKS": "on", "EXTENSIONS": json.dumps({"benchmarks.inside.FaultLayer": 1})}
HOSTS = [f"h{number}.test" for number in range(4)]


def pages(name: str, number: int) -> list[bytes]:
    """Records of Czech pages under some hosts, and what stands between them in an archive."""
    found = [record("", b"software: x\r\n", "warcinfo")]
    for n in range(number):
        url = f"http://{HOSTS[n % len(HOSTS)]}/{name}/{n}"
        found += [record(url, b"GET / HTTP/1.1\r\n\r\n", "request"), record(url, document(f"{name} {n}").encode())]
        found += [record(f"{url}/gone", b"no", status="404 Not Found")] if n % 5 == 0 else []
        found += [record(f"{url}/picture", b"GIF", head="Content-Type: image/gif\r\n")] if n % 7 == 0 else []
        found += [record(url, document(f"later {n}").encode())] if n % 9 == 0 else []
    return found


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Three files, packed in three ways; one of them is damaged."""
    directory = tmp_path_factory.mktemp("archives")
    for name, form, suffix in (("a", "gzip by record", ".gz"), ("b", "zstd by record", ".zst"), ("c", "plain", "")):
        data = FORMS[form](pages(name, 40))
        data = data[:-50] if name == "c" else data
        (directory / f"{name}.warc{suffix}").write_bytes(data)
    return directory


class ArchiveCrawl(Crawl):
    def __init__(self, directory, warc, **settings) -> None:
        super().__init__(directory, NO_SERVER, spider="archive", **settings)
        for name in {"ALLOW_NETWORKS", "YIELD_PROFILE"} - settings.keys():  # as a user would not give them
            del self.settings[f"SPIDERLING_{name}"]
        self._warc = warc

    def start(self, seeds="", arguments=(), **settings):
        return super().start(arguments=("-a", f"warc={self._warc}", *arguments), **settings)

    def ended(self, *arguments: str, **settings):
        return self.start(arguments=arguments, **settings).wait()


@pytest.fixture(scope="module")
def reference(archives, tmp_path_factory):
    crawl = ArchiveCrawl(tmp_path_factory.mktemp("reference") / "job", archives, **SETTINGS)
    crawl.result = crawl.run()
    return crawl


def test_every_page_is_in_the_corpus_once_and_everything_else_is_counted(reference):
    result, state = reference.result, reference.state()
    assert result.code == 0 and "is finished: all archives are read." in result.output
    assert "no host is retired for its yield" in result.output
    state.check()
    expected = {f"http://{HOSTS[n % 4]}/{name}/{n}" for name in "abc" for n in range(40)}
    assert reference.digests().keys() == expected - {"http://h3.test/c/39"}
    assert state.ends == {"kept": 119, "not-text": 18}
    assert state.mentions == {"record-status": 24, "seen": 15, "damaged": 1}
    assert state.hosts["h1.test"]["documents"] == 30 and state.hosts["h1.test"]["kept_bytes"] > 10_000
    assert result.lines("archives", "3 of 3 read, 177 records; 1 damaged parts")
    assert result.lines("WARNING", "c.warc is damaged in the part that begins at byte")
    documents = {document.url: document for document in reference.documents()}
    attributes = documents["http://h1.test/a/1"].attributes
    assert (attributes["crawl_date"], attributes["ip"]) == ("2024-03-05 06:07:08", "192.0.2.7")
    assert (attributes["host"], attributes["distance"]) == ("h1.test", "0")
    assert "číslo a 9 " in documents["http://h1.test/a/9"].paragraphs[0]  # not the later record of the same URL


def test_it_ends_with_its_last_page_and_waits_for_no_heartbeat_of_the_engine(tmp_path):
    one = made(tmp_path / "one.warc.gz", czech("http://a.test/"))
    extensions = json.dumps({"tests.archives.no_heartbeat.NoHeartbeat": 1})
    result = ArchiveCrawl(tmp_path / "job", one, EXTENSIONS=extensions).run()
    assert result.code == 0 and result.lines("is finished: all archives are read.")


def assert_same(crawl, reference) -> None:
    crawl.state().check()
    assert crawl.digests() == reference.digests()
    assert differences(crawl, reference) == []
    assert crawl.state().mentions == reference.state().mentions


def test_read_again_there_is_nothing_to_do_and_a_file_that_grew_is_read_on(reference, archives):
    before = reference.state().counts
    assert "is finished: all archives are read." in reference.run().output
    assert {**reference.state().counts, "total/time_s": 0} == {**before, "total/time_s": 0}


def test_killed_at_any_moment_nothing_is_lost_and_nothing_twice(reference, archives, tmp_path):
    constants = SEGMENTS | {"crawl.checkpoint.MAX_OUTCOMES": 8}
    crawl = ArchiveCrawl(tmp_path / "job", archives, **SETTINGS, CONSTANTS=constants)
    # few enough pages a session for the last one to meet its point, however many a checkpoint takes in
    for point in ("write:3", "rotate:1", "transaction:2", "committed:1", "commit:1"):
        assert crawl.run(FAULT=point).code == -signal.SIGKILL, point
    result = crawl.run()
    assert result.code == 0 and "is finished" in result.output
    assert_same(crawl, reference)


def told(crawl) -> dict:
    """What ``scrapy inspect --json`` says."""
    return json.loads(scrapy("inspect", str(crawl.directory), "--json").out)


@pytest.mark.slow
def test_a_budget_and_a_stop_pause_it_and_it_ends_as_if_nothing_was(reference, archives, tmp_path):
    constants = SEGMENTS | {"crawl.checkpoint.MAX_OUTCOMES": 2}
    crawl = ArchiveCrawl(tmp_path / "job", archives, **SETTINGS, CONSTANTS=constants)
    result = crawl.run(MAX_DOCUMENTS=20)
    assert result.code == 0 and "was paused (budget-documents)" in result.output
    crawl.state().check()
    assert crawl.state().ends["kept"] == 20
    running = crawl.start(MAX_DOCUMENTS=0)
    running.until(lambda: crawl.state().ends["kept"] > 20)
    result = running.stop()
    assert result.code == 0 and "Traceback" not in result.output
    assert "was paused (shutdown); the same command goes on with it." in result.output
    crawl.state().check()
    assert 20 < crawl.state().ends["kept"] < 119
    assert told(crawl)["phase"] == "stopped"
    assert "is finished" in crawl.run(MAX_DOCUMENTS=0).output
    assert told(crawl)["phase"] == "finished"
    assert_same(crawl, reference)


# -- what is taken, and what is obeyed


def made(path, *records: bytes) -> str:
    path.write_bytes(FORMS["gzip by record"](list(records)))
    return str(path)


def czech(url: str, head: str = "", meta: str = "") -> bytes:
    text = document(url).replace("<head>", f"<head>{meta}")
    return record(url, text.encode(), head=f"Content-Type: text/html\r\n{head}")


def test_what_pages_and_robots_txt_say_and_what_the_user_wants_is_obeyed(tmp_path):
    plain, rules = "Content-Type: text/plain\r\n", b"User-agent: *\nDisallow: /private\n"
    robots = record("http://rules.cz/robots.txt", rules, head=plain)
    warc = made(
        tmp_path / "a.warc.gz",
        czech("http://rules.cz/private/before"), robots, czech("http://rules.cz/private/x"), czech("http://rules.cz/x"),
        record("http://none.cz/robots.txt", b"no", status="404 Not Found"), czech("http://none.cz/"),
        czech("http://says.cz/header", head="X-Robots-Tag: noindex\r\n"),
        czech("http://says.cz/tdm", head="tdm-reservation: 1\r\n"),
        czech("http://says.cz/meta", meta='<meta name="robots" content="noai">'), czech("http://says.cz/nothing"),
        czech("http://blocked.cz/"), czech("http://foreign.de/"),
        czech("http://says.cz/x.zip"), czech("http://says.cz:25/"),
    )  # fmt: skip
    (tmp_path / "blocked.txt").write_text("blocked.cz\n")
    crawl = ArchiveCrawl(tmp_path / "job", warc, BLOCK=tmp_path / "blocked.txt")
    del crawl.settings["SPIDERLING_OPTOUTS"]
    assert crawl.ended("-a", "tlds=cz").code == 0
    state = crawl.state()
    state.check()
    assert crawl.digests().keys() == {
        "http://rules.cz/private/before", "http://rules.cz/x", "http://none.cz/", "http://says.cz/nothing",
    }  # fmt: skip
    assert state.ends == {"kept": 4, "noindex": 1, "opted-out": 2, "robots-forbidden": 1, "host-blocked": 1}
    assert state.mentions == {"out-of-scope": 2, "port-forbidden": 1}
    (tmp_path / "urls.txt").write_text("http://rules.cz/private/*\nhttp://says.cz/nothing\n")
    crawl = ArchiveCrawl(tmp_path / "other", warc, ARCHIVE_ROBOTS="ignore")
    assert crawl.ended("-a", f"urls={tmp_path / 'urls.txt'}").code == 0
    assert crawl.digests().keys() == {
        "http://rules.cz/private/before", "http://rules.cz/private/x", "http://says.cz/nothing",
    }  # fmt: skip


def test_a_host_is_retired_for_its_yield_only_when_that_is_asked_for(tmp_path):
    poor = [record(f"http://poor.cz/{n}", b"<p>x</p>" + b"<br>" * 20_000) for n in range(30)]
    crawl = ArchiveCrawl(tmp_path / "job", made(tmp_path / "a.warc.gz", *poor), YIELD_PROFILE="normal")
    assert crawl.run().lines("Retired poor.cz")
    assert crawl.state().hosts["poor.cz"]["state"] == "retired"
    assert crawl.state().ends["host-retired"] > 0


# -- a crawl of one's own


@pytest.mark.slow
def test_a_crawl_of_ones_own_gives_the_same_documents_again(tmp_path):
    sites = {"own.test": {"/": page("start", *map(str, range(12))), **{f"/{n}": page(n) for n in range(12)}}}
    with serving(FixedWeb(sites, {"own.test": "127.84.7.1"})) as running:
        web = Crawl(tmp_path / "web", running, WARC="on")
        assert web.run("http://own.test/").code == 0
    assert len(web.digests()) == 13
    again = ArchiveCrawl(tmp_path / "job", web.directory / "warc")
    assert again.run().code == 0
    assert again.digests() == web.digests()
    assert {page.url: page.attributes["ip"] for page in again.documents()} == dict.fromkeys(web.digests(), "127.84.7.1")
    mixed = ArchiveCrawl(web.directory, web.directory / "warc").run()
    assert mixed.code == 1
    assert mixed.lines("ERROR", "was begun from the web, not from archives. Give another directory with -s JOBDIR=")


@pytest.mark.slow
def test_an_archive_that_grows_is_read_on_and_a_missing_one_is_no_success(tmp_path):
    path, notes = tmp_path / "a.warc.gz", tmp_path / "README.md"
    made(path, czech("http://a.cz/1"))
    notes.write_text("# Notes\n" * 900)
    warc = f"{path},http://127.84.7.9:9/b.warc.gz,{notes}"
    for _ in range(2):
        result = ArchiveCrawl(tmp_path / "job", warc, RETRIES=0, ALLOW_NETWORKS=NETWORK).run()
        assert result.code == 1 and "was paused" in result.output
        assert result.lines("ERROR", "http://127.84.7.9:9/b.warc.gz cannot be read")
        assert result.lines("ERROR", "README.md: it is no WARC file, packed with a dictionary of zstd, or damaged ")
        assert result.lines("archives", "1 of 3 read")
    with path.open("ab") as stream:
        stream.write(gzip.compress(czech("http://a.cz/2")))
    crawl = ArchiveCrawl(tmp_path / "job", path)
    assert "is finished: all archives are read." in crawl.run().output
    assert crawl.digests().keys() == {"http://a.cz/1", "http://a.cz/2"}
    assert crawl.state().counts["discovered"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-a", "wrac=x"), "the spider archive has no argument 'wrac'; did you mean -a warc=?"),
        (("-a", "warc=http://192.0.2.1/a.warc.gz"), "no contact is given"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said(archives, tmp_path, arguments, message):
    result = ArchiveCrawl(tmp_path / "job", archives).ended(*arguments)
    assert result.code == 1 and result.lines("ERROR", message)
    assert "Traceback" not in result.output


def test_control_yaml_does_not_pause_the_reading_of_archives(archives, tmp_path):
    job = tmp_path / "job"
    job.mkdir()
    (job / "control.yaml").write_text("pause: true\n")
    result = ArchiveCrawl(job, archives / "a.warc.gz", PAGE="127.0.0.1:0").ended()
    assert result.code == 0 and result.lines("is finished: all archives are read")
    assert result.lines("WARNING", "pause has no effect on a crawl of archives") and result.lines("The live page: http")


@pytest.mark.parametrize("has_card", [True, False])
def test_a_state_that_is_made_anew_waits_for_no_page_of_the_web(archives, tmp_path, has_card):
    """Without its card nothing says that the corpus came from archives, and front pages are to be fetched."""
    crawl = ArchiveCrawl(tmp_path / "job", archives)
    assert crawl.ended().code == 0
    before = sorted(document.url for document in crawl.documents())
    shutil.rmtree(crawl.directory / "state")
    if not has_card:
        (crawl.directory / "corpus/manifest.json").unlink()
    assert [*rebuild(crawl.directory, {}, 1.0)]
    assert crawl.state().counts["waiting"] == (0 if has_card else len(HOSTS))
    assert crawl.start().wait(60).code == 0
    assert sorted(document.url for document in crawl.documents()) == before and not damage_in(crawl.directory)
