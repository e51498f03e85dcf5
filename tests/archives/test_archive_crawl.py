"""``scrapy crawl archive``: pages of WARC files go through the same chain as those of a crawl, each exactly once."""

from __future__ import annotations

import json
import random
import signal
from types import SimpleNamespace

import pytest
from conftest import Crawl, document
from made_warcs import FORMS, record

from benchmarks.faults import differences

NO_SERVER = SimpleNamespace(hosts_option="")
SETTINGS = {"LINKS": "on", "SEGMENT_BYTES": 4000, "EXTENSIONS": json.dumps({"benchmarks.faultlayer.FaultLayer": 1})}
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
        del self.settings["SPIDERLING_ALLOW_NETWORKS"], self.settings["SPIDERLING_YIELD_PROFILE"]
        self._warc = warc

    def start(self, seeds="", arguments=(), **settings):
        return super().start(arguments=("-a", f"warc={self._warc}", *arguments), **settings)


@pytest.fixture(scope="module")
def reference(archives, tmp_path_factory):
    crawl = ArchiveCrawl(tmp_path_factory.mktemp("reference") / "job", archives, **SETTINGS)
    crawl.result = crawl.run()
    return crawl


def test_every_page_is_in_the_corpus_once_and_everything_else_is_counted(reference):
    result, state = reference.result, reference.state()
    assert result.code == 0 and "is finished: all archives are read." in result.output
    state.check()
    expected = {f"http://{HOSTS[n % 4]}/{name}/{n}" for name in "abc" for n in range(40)}
    assert reference.digests().keys() == expected - {"http://h3.test/c/39"}
    assert state.ends == {"kept": 119, "not-text": 18}
    assert state.mentions == {"record-status": 24, "seen": 15, "damaged": 1}
    assert state.hosts["h1.test"]["documents"] == 30 and state.hosts["h1.test"]["kept_bytes"] > 10_000
    assert result.lines("archives", "3 of 3 read, 177 records; damaged: c.warc (1 parts)")
    assert result.lines("WARNING", "c.warc is damaged in the part that begins at byte")
    (page,) = [page for page in reference.documents() if page.url == "http://h1.test/a/1"]
    assert page.attributes["crawl_date"] == "2024-03-05 06:07:08"
    assert (page.attributes["ip"], page.attributes["host"]) == ("192.0.2.7", "h1.test")
    first = next(page for page in reference.documents() if page.url == "http://h1.test/a/9")
    assert "číslo a 9 " in first.paragraphs[0]  # not the later record of the same URL


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
    crawl, rng, kills = ArchiveCrawl(tmp_path / "job", archives, **SETTINGS, CHECKPOINT_PAGES=8), random.Random(5), 0
    for kind in ("write", "transaction", "committed", "fsync", "commit", "rotate"):
        kills += crawl.run(FAULT=f"{kind}:{rng.randint(1, 3)}").code == -signal.SIGKILL
    assert kills >= 5
    result = crawl.run()
    assert result.code == 0 and "is finished" in result.output
    assert_same(crawl, reference)


def test_stopped_and_gone_on_with_it_ends_as_if_nothing_was(reference, archives, tmp_path):
    crawl = ArchiveCrawl(tmp_path / "job", archives, **SETTINGS, CHECKPOINT_PAGES=2)
    running = crawl.start()
    running.until(lambda: list(crawl.directory.glob("corpus/*")))
    result = running.stop()
    assert result.code == 0 and "Traceback" not in result.output
    assert "was paused (shutdown); the same command goes on with it." in result.output
    crawl.state().check()
    assert 0 < crawl.state().ends["kept"] < 119
    assert "is finished" in crawl.run().output
    assert_same(crawl, reference)
