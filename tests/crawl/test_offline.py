"""The network goes away and comes back: nothing is charged to a host or a URL, and a crawl never ends for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest
from conftest import Crawl, nameserver, page, serving
from dnslib import QTYPE, RCODE, RR, A, DNSRecord

from spiderling.base.options import Options
from spiderling.engine.offline import Offline
from spiderling.frontier.reachability import NetworkState, Reachability, Trouble
from webs.server import serve
from webs.web import FixedWeb

HOSTS = {f"h{number}.test": f"127.84.7.{number}" for number in range(1, 5)}
PAGES = [f"/{number}" for number in range(8)]
"""One links to the next, at an interval of .3 s: names, which are kept for a second, are always asked for again."""
SITES = {host: {path: page(f"{host}{path}", f"/{number + 1}") for number, path in enumerate(PAGES)} for host in HOSTS}
WEB = FixedWeb(SITES, HOSTS)
ANSWERS = {"no such name": RCODE.NXDOMAIN, "server failure": RCODE.SERVFAIL, "refused": RCODE.REFUSED}
"""What a name server says."""


class Names:
    """Answers of a name server that knows HOSTS alone, as long as ``says`` is '', and never the names ``knows_not``."""

    def __init__(self, says: str) -> None:
        self.says = says
        self.knows_not: Iterable[str] = ()
        self.address = ""

    def __call__(self, query: bytes) -> bytes:
        asked = DNSRecord.parse(query)
        name, reply = str(asked.q.qname).rstrip(".").lower(), asked.reply()
        says = "no such name" if name in self.knows_not else self.says
        reply.header.rcode = ANSWERS.get(says, RCODE.NOERROR if name in HOSTS else RCODE.NXDOMAIN)
        if name in HOSTS and not says and asked.q.qtype == QTYPE.A:
            reply.add_answer(RR(name, rdata=A(HOSTS[name]), ttl=1))
        return b"" if self.says == "nothing" else reply.pack()


@contextmanager
def name_server(says: str = ""):
    names = Names(says)
    with nameserver(names) as names.address:
        yield names


def crawl_of(directory, server, names, **settings):
    """A crawl that knows the hosts by their names only; answers are kept for a second."""
    constants = {"fetch.resolver.MIN_TTL_S": 1, "fetch.resolver.MAX_TTL_S": 1, "fetch.resolver.TIMEOUT_S": 1}
    limits = {"CONSTANTS": constants, "HOST_INTERVAL_S": 0.3, "RETRIES": 0}
    return Crawl(directory, server, HOSTS="", PORTS="all", NAMESERVERS=names.address, **{**limits, **settings})


def seeds(server, hosts=HOSTS):
    return " ".join(f"http://{host}:{server.port}/0" for host in hosts)


def assert_whole(crawl, server):
    """As if nothing had been: every page is kept, and only what is not there has another end."""
    state = crawl.state()
    state.check()
    assert crawl.digests().keys() == {f"http://{host}:{server.port}{path}" for host in HOSTS for path in PAGES}
    assert state.ends == {"kept": len(HOSTS) * len(PAGES), "http-error": len(HOSTS)}
    assert all(host["failures"] == 0 for host in state.hosts.values())


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("trouble", "first"),
    [
        ("server failure", 7),
        pytest.param("nothing", 7, marks=SLOW),
        pytest.param("no such name", 7, marks=SLOW),
        pytest.param("server failure", 0, marks=SLOW),
        pytest.param("refused", 0, marks=SLOW),
    ],
)
def test_names_that_fail_from_the_start_or_in_the_middle_of_a_crawl_come_back(tmp_path, trouble, first):
    """In the middle: after the *first* requests."""
    with serving(WEB) as server, name_server("" if first else trouble) as names:
        crawl = crawl_of(tmp_path / "job", server, names)
        running = crawl.start(seeds(server), LOGSTATS_INTERVAL=1)
        running.until(lambda: len(server.log_entries) >= first)
        names.says = trouble
        told = trouble if trouble == "no such name" else "dns"
        running.until(lambda: f"hosts fail: {told}" in running.output())
        running.until(lambda: not first or "bottleneck: network (" in running.output())
        assert first or not server.log_entries
        names.says = ""
        result = running.wait()
        assert_whole(crawl, server)
    assert result.code == 0 and result.lines("The network is there again")


@pytest.mark.slow
def test_servers_that_cannot_be_reached_in_the_middle_of_a_crawl_come_back(tmp_path):
    with name_server() as names:
        with serving(WEB) as server:
            crawl = crawl_of(tmp_path / "job", server, names)
            running = crawl.start(seeds(server))
            running.until(lambda: len(server.log_entries) > 6)
        running.until(lambda: "hosts fail: connection" in running.output())
        with serving(WEB, partial(serve, port=server.port)):
            result = running.wait()
        assert_whole(crawl, server)
    assert result.code == 0 and result.lines("The network is there again")


def test_after_the_longest_wait_the_crawl_stops_with_3_and_the_same_command_goes_on(tmp_path):
    with name_server() as names:
        with serving(WEB) as server:
            crawl = crawl_of(tmp_path / "job", server, names)
            running = crawl.start(seeds(server), OFFLINE_WAIT_S=1.5)
            running.until(lambda: len(server.log_entries) > 6)
        result = running.wait()
        assert result.code == 3 and "Traceback" not in result.output
        assert result.lines("ERROR", "hosts fail: connection", "OFFLINE_WAIT_S=1.5", "the same command goes on")
        assert result.lines("was paused (offline); the same command goes on with it.")
        assert crawl.state().counts["waiting"] > 0
        with serving(WEB, partial(serve, port=server.port)):
            assert crawl.run(seeds(server)).code == 0
        assert_whole(crawl, server)


@pytest.mark.slow
def test_names_that_do_not_exist_from_the_start_end_the_crawl_with_3_and_are_asked_for_again(tmp_path):
    with serving(WEB) as server, name_server("no such name") as names:
        crawl = crawl_of(tmp_path / "job", server, names)
        result = crawl.run(seeds(server))
        assert result.code == 3 and "Traceback" not in result.output
        (line,) = result.lines("ERROR")
        assert "no such names" in line and all(host in line for host in HOSTS)
        assert crawl.state().counts["waiting"] == len(HOSTS) and not crawl.state().ends
        names.says = ""
        assert crawl.run(seeds(server)).code == 0
        assert_whole(crawl, server)


def test_the_network_is_not_said_to_be_there_again_before_anything_is_found(tmp_path):
    """A name server that has failed says that there are no such names: it is there, and that is all."""
    with serving(WEB) as server, name_server("refused") as names:
        running = crawl_of(tmp_path / "job", server, names).start(seeds(server))
        running.until(lambda: "seems to be away" in running.output())
        names.says = "no such name"
        result = running.wait()
    assert result.code == 3 and result.lines("ERROR", "nothing ever answered, and no such names are known")
    assert not result.lines("The network is there again")


def test_a_name_server_that_fails_for_some_and_knows_no_others_is_no_network(tmp_path):
    """As a router without a network does: a minute passed before the crawl said so, and it charged the hosts."""
    with serving(WEB) as server, name_server("server failure") as names:
        names.knows_not = ("h1.test", "h2.test")
        crawl = crawl_of(tmp_path / "job", server, names)
        constants = {"frontier.reachability.LONGEST_PAUSE_S": 1}
        running = crawl.start(seeds(server), LOGSTATS_INTERVAL=1, CONSTANTS=constants)
        running.until(lambda: running.output().count("bottleneck: network (hosts fail: ") > 2)
        names.knows_not = HOSTS
        result = running.wait()
        assert result.code == 3 and len(result.lines("seems to be away")) == 1
        assert result.lines("ERROR", "nothing ever answered, and no such names are known")
        assert not result.lines("The network is there again")
        after = result.output.partition("seems to be away")[2].splitlines()
        assert all("bottleneck: network (" in line for line in after if "bottleneck: " in line)
        assert crawl.state().counts["waiting"] == len(HOSTS)
        assert all(host["failures"] == 0 for host in crawl.state().hosts.values())
        names.says, names.knows_not = "", ()
        assert crawl.run(seeds(server)).code == 0
        assert_whole(crawl, server)


@pytest.mark.slow
def test_dead_hosts_among_living_ones_end_as_they_do(tmp_path):
    """Also when they are all that is left: a host that answered before is asked, and does answer."""
    with serving(WEB) as server, name_server() as names:
        dead = f"http://gone.test:{server.port}/ http://h1.test:9/"
        crawl = crawl_of(tmp_path / "job", server, names)
        result = crawl.run(f"{dead} {seeds(server)}")
        assert result.code == 0 and not result.lines("seems to be away")
        ends = crawl.state().ends
        assert ends.pop("dns") == 1 and ends.pop("robots-unreachable") == 1
        assert ends == {"kept": len(HOSTS) * len(PAGES), "http-error": len(HOSTS)}
        asked = len(server.log_entries)
        result = crawl.run(f"http://h2.test:9/ http://lost.test:{server.port}/")
        assert result.code == 0 and not result.lines("seems to be away")
        ends = crawl.state().ends
        assert ends["dns"] == 2 and ends["robots-unreachable"] == 2
        assert {entry.path for entry in server.log_entries[asked:]} == {"/robots.txt"}


async def test_an_answer_that_comes_while_a_probe_waits_for_its_turn_ends_the_probing():
    """It probed all the same, where nothing was left to be probed: an internal error stopped the crawl."""
    known, probing = Reachability(), []
    known.host_answered("http://a.test", 0.0, 0.0)
    frontier = SimpleNamespace(reachability=known, host_states=SimpleNamespace(at_work=lambda: 1))
    watched = SimpleNamespace(watch_task=lambda work, what: probing.append(asyncio.ensure_future(work)) or probing[0])
    crawl = SimpleNamespace(
        frontier=frontier, options=Options(), now=lambda: 5.0, stopping=False, is_held=False, errors=watched
    )
    offline = Offline(None, crawl, None, {}, lambda: None)
    offline.failed("dead.test", Trouble.CONNECTION, 1.0, lambda is_theirs: None)
    offline.look()
    await asyncio.sleep(0)
    known.host_answered("http://a.test", 6.0, 6.0)
    await probing[0]
    assert known.network is NetworkState.THERE
