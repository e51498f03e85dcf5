"""Which part of the web a crawl stays in: ``-a tlds=``, ``-a follow=``, ``-a hosts=``, ``SPIDERLING_BLOCK``."""

from __future__ import annotations

import re

import pytest
from conftest import Crawl, page

from webs.web import redirect

NAMES = ("a.cz", "b.cz", "c.com", "d.example", "sub.b.cz")
WEB = {
    "a.cz": {"/": page("a", "/2", *(f"http://{name}/" for name in NAMES[1:])), "/2": page("a2")},
    "old.cz": {"/": redirect("http://d.example/")},
    **{name: {"/": page(name, "/2"), "/2": page(f"{name} 2")} for name in NAMES[1:]},
}


@pytest.fixture
def crawled(server, tmp_path):
    """Runs a crawl with arguments; gives what its corpus holds."""

    def run(*arguments, seeds="http://a.cz/", **settings):
        crawl = Crawl(tmp_path / "job", server)
        result = crawl.start(seeds, tuple(part for text in arguments for part in ("-a", text)), **settings).wait()
        assert result.code == 0, result.output
        state = crawl.state()
        state.check()
        return sorted(doc.url.removeprefix("http://") for doc in crawl.documents()), state, crawl

    return run


BOTH = {name: [f"{name}/", f"{name}/2"] for name in NAMES}


def pages(*names: str) -> list[str]:
    return sorted(url for name in names for url in BOTH[name])


@pytest.mark.parametrize(
    ("seeds", "argument", "reason"),
    [
        ("http://d.example/", "tlds=cz", "1 URL out-of-scope: "),
        ("http://a.cz:25/", "follow=all", "1 URL port-forbidden: "),
    ],
)
def test_a_crawl_none_of_whose_seeds_may_be_crawled_has_failed(server, tmp_path, seeds, argument, reason):
    result = Crawl(tmp_path / "job", server).start(seeds, ("-a", argument)).wait()
    assert result.code == 1 and "is finished" not in result.output
    assert result.lines("ERROR: The crawl stops: no seed may be crawled (" + reason, "-a hosts=, -s SPIDERLING_PORTS=)")
    assert result.lines("1 seed from http://")


HOME = ("a.cz",)


@pytest.mark.parametrize(
    ("argument", "seeds", "kept", "out_of_scope"),
    [
        ("tlds=all", HOME, pages(*NAMES), 0),
        ("tlds=national", HOME, pages("a.cz", "b.cz", "sub.b.cz"), 2),
        ("tlds=national+generic", HOME, pages("a.cz", "b.cz", "sub.b.cz", "c.com"), 1),
        ("tlds=cz,.EXAMPLE", HOME, pages("a.cz", "b.cz", "sub.b.cz", "d.example"), 1),
        ("follow=none", ("a.cz", "old.cz"), ["a.cz/", "d.example/"], 5),  # but redirects
        ("follow=host", ("a.cz", "c.com"), pages("a.cz", "c.com"), 3),  # within the hosts of the seeds
        ("hosts={}", ("a.cz", "c.com"), pages("a.cz", "b.cz", "sub.b.cz"), 3),  # the seed too
    ],
)
def test_what_a_crawl_stays_in(crawled, tmp_path, argument, seeds, kept, out_of_scope):
    (tmp_path / "hosts.txt").write_text("a.cz\n.b.cz\n")
    seeds = ",".join(f"http://{name}/" for name in seeds)
    found, state, crawl = crawled(argument.format(tmp_path / "hosts.txt"), seeds=seeds)
    assert found == kept
    assert {doc.attributes["tld"] for doc in crawl.documents()} == {re.search(r"\w+(?=/)", url)[0] for url in kept}
    is_twice = argument == "follow=none"  # d.example is named by a link and by a redirect
    assert out_of_scope <= state.mentions.get("out-of-scope", 0) <= out_of_scope + is_twice


def test_a_random_walk_weighs_its_documents(crawled):
    kept, _, crawl = crawled("strategy=random-walk", "follow=host")
    assert kept == pages("a.cz")
    weights = {doc.url: doc.attributes.get("walk_weight") for doc in crawl.documents()}
    assert weights == {"http://a.cz/": "0.2", "http://a.cz/2": "1"}


def test_seeds_of_no_trusted_kind_are_one_step_away(crawled, tmp_path):
    file = tmp_path / "kinds.txt"
    file.write_text("# news (trusted)\nhttp://sub.b.cz/\n# blogs\nd.example\n")
    kept, state, crawl = crawled("follow=host", seeds=str(file), MAX_DISTANCE=0)
    assert kept == ["d.example/", "sub.b.cz/", "sub.b.cz/2"]
    assert {doc.url: doc.attributes["distance"] for doc in crawl.documents()} == {
        "http://d.example/": "1", "http://sub.b.cz/": "0", "http://sub.b.cz/2": "0",
    }  # fmt: skip
    assert state.mentions["too-far"] >= 1


def test_blocked_hosts_are_never_asked_also_beside_those_of_control_yaml(crawled, server, tmp_path):
    path = tmp_path / "block.txt"
    path.write_text("*.b.cz\nc.com\n")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "control.yaml").write_text('block: ["d.*"]\n')
    before = len(server.log_entries)
    kept, state, _ = crawled(BLOCK=path)
    assert kept == pages("a.cz", "b.cz")
    assert state.ends["host-blocked"] == 3
    assert not {entry.host for entry in server.log_entries[before:]} & {"sub.b.cz", "c.com", "d.example"}


@pytest.mark.slow
def test_a_host_blocked_later_is_asked_no_more(crawled, server, tmp_path):
    kept, state, _ = crawled(MAX_PAGES=1, HOST_INTERVAL_S=3)
    assert "a.cz/2" not in kept
    path = tmp_path / "block.txt"
    path.write_text(".cz\n")
    kept, state, _ = crawled(BLOCK=path)
    assert {"a.cz/2", "b.cz/2"}.isdisjoint(kept) and {*pages("c.com", "d.example")} <= {*kept}
    assert state.hosts["a.cz"]["state"] == state.hosts["b.cz"]["state"] == "blocked"
