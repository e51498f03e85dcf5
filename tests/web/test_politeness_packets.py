"""Intervals by the packets that open connections, while the crawler's event loop is held up at random."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from busyloop import EXTENSIONS
from conftest import Crawl, page, serving
from needs import needs
from synlog import SynLog

from webs.web import FixedWeb

HOST_INTERVAL_S, IP_INTERVAL_S, PAGES = 0.2, 0.05, 7
FILES = ("/.well-known/tdmrep.json", "/ai.txt")
CLOCK_S = 0.001  # how exactly packets are stamped beside the crawler's clock
SHARED = "127.84.41.100"
ADDRESSES = {f"own{n}.test": f"127.84.41.{1 + n}" for n in range(8)} | {f"shared{n}.test": SHARED for n in range(6)}


@needs("packet sockets")
def test_no_two_packets_are_closer_than_the_interval_however_busy_the_loop_is(tmp_path):
    """What happens between noting a start and sending its packet makes the next one too early."""
    site = {"/": "".join(f"/{n} " for n in range(PAGES)).split()}
    web = {host: {path: page(f"{host}{path}", *site.get(path, ())) for path in ("/", *site["/"])} for host in ADDRESSES}
    with serving(FixedWeb(web, ADDRESSES)) as server, SynLog() as log:
        crawl = Crawl(
            tmp_path / "job", server, HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=IP_INTERVAL_S, DELAY_FACTOR=0,
            STRATEGY="bfs", DEDUP="off", OPTOUTS="", EXTENSIONS=EXTENSIONS,
        )  # fmt: skip
        assert crawl.run(",".join(f"http://{host}/" for host in ADDRESSES)).code == 0
        asked = {(entry.host, entry.path) for entry in server.log_entries}
    assert {(host, "/ai.txt") for host in ADDRESSES} <= asked, "visits are among them"
    packets = defaultdict(list)
    for packet in log.seen:
        if packet.path not in FILES:  # a visit goes on
            packets[packet.address].append(packet.time_s)
    gaps = {
        address: min(second - first for first, second in pairwise(packets[address]))
        for address in set(ADDRESSES.values())
    }
    assert sum(len(packets[address]) for address in gaps) >= len(ADDRESSES) * (PAGES + 2), "the log has missed none"
    shared = gaps.pop(SHARED)
    assert min(gaps.values()) >= HOST_INTERVAL_S - CLOCK_S
    assert shared >= IP_INTERVAL_S - CLOCK_S
