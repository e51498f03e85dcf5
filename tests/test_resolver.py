"""The resolver against a name server of our own on loopback, which answers by the name it is asked."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import random
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

import pytest
from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSRecord
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import spiderling.fetch.resolver
from spiderling.base.addresses import HostMap
from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.fetch.errors import NameNotFound, NameServerFailure
from spiderling.fetch.resolver import Resolution, Resolver

CODES = {"nx": RCODE.NXDOMAIN, "fail": RCODE.SERVFAIL, "refused": RCODE.REFUSED}


class NameServer(asyncio.DatagramProtocol):
    """Answers by the first label of the name: v4, v6, both, cname, none, nx, fail, refused, drop, slow, ttl<n>,
    no6 (no answer for AAAA), bad4 (none but failures for A)."""

    def __init__(self):
        self.asked: Counter[tuple[str, str]] = Counter()
        self.running = self.max_running = 0

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, client):
        query = DNSRecord.parse(data)
        name, kind = str(query.q.qname).rstrip("."), QTYPE[query.q.qtype]
        label = name.partition(".")[0]
        self.asked[name, kind] += 1
        if label == "drop" or (label, kind) == ("no6", "AAAA"):
            return
        answer = query.reply()
        answer.header.rcode = RCODE.SERVFAIL if (label, kind) == ("bad4", "A") else CODES.get(label, RCODE.NOERROR)
        if not answer.header.rcode:
            answer.rr = list(records(name, label, kind))
        if label.startswith("slow"):
            self.running += 1
            self.max_running = max(self.running, self.max_running)
            asyncio.get_running_loop().call_later(0.05, self.send_late, answer.pack(), client)
        else:
            garbage = data[:2] + b"\x81\x80" + b"\xff" * 40
            self.transport.sendto(garbage if label == "garbage" else answer.pack(), client)

    def send_late(self, reply, client):
        self.running -= 1
        self.transport.sendto(reply, client)


def records(name, label, kind):
    ttl = int(label[3:]) if label.startswith("ttl") else 300
    if kind == "AAAA":
        if label in ("v6", "both", "bad4"):
            yield RR(name, QTYPE.AAAA, rdata=AAAA("2001:db8::7"), ttl=ttl)
    elif label == "cname":
        yield RR(name, QTYPE.CNAME, rdata=CNAME(f"x.{name}"), ttl=90)
        yield RR(f"x.{name}", rdata=A("192.0.2.9"), ttl=300)
    elif label not in ("v6", "none"):
        yield RR(name, rdata=A("192.0.2.7"), ttl=ttl)
        yield RR(name, rdata=A("192.0.2.8"), ttl=ttl + 5)


@contextmanager
def constants(**values):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(spiderling.fetch.resolver, name, value)
        yield


@asynccontextmanager
async def resolving(hosts="", server=NameServer, *, values=None, **options):
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(server, local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    with constants(**{"TIMEOUT_S": 20, "TRIES": 2, **(values or {})}):
        asking = Resolver(Options(nameservers=f"127.0.0.1:{port}", **options), HostMap(hosts))
        try:
            yield asking, server
        finally:
            await asking.close()
            transport.close()


V4, V6 = ("192.0.2.7", "192.0.2.8"), ("2001:db8::7",)


async def test_the_newer_family_is_asked_for_where_there_is_none_of_the_older_and_the_smallest_ttl_counts():
    expected = {"V4.Example.org.": (V4, 300.0), "both.org": (V4, 300.0), "v6.org": (V6, 300.0)}
    expected["cname.org"] = (("192.0.2.9",), 90.0)  # that of the CNAME
    async with resolving() as (resolver, server):
        assert {name: await resolver.resolve(name) for name in expected} == {
            name: Resolution(*found) for name, found in expected.items()
        }
        names = [name.lower().rstrip(".") for name in expected]
        assert server.asked == {("v6.org", "AAAA"): 1, **{(name, "A"): 1 for name in names}}


async def test_a_machine_with_a_route_for_ipv6_alone_prefers_that(monkeypatch):
    monkeypatch.setattr(spiderling.fetch.resolver, "has_route", lambda address: ":" in address)
    async with resolving() as (resolver, _):
        assert (await resolver.resolve("both.org")).addresses == V6
        assert (await resolver.resolve("v4.org")).addresses == V4


@pytest.mark.parametrize(("name", "timeout_s", "found"), [("no6.org", 600, V4), ("bad4.org", 2, V6)])
async def test_a_family_that_fails_gives_way_to_the_other(name, timeout_s, found):
    """Some name servers never answer for AAAA."""
    async with resolving(values={"TIMEOUT_S": timeout_s}) as (resolver, _):
        assert (await asyncio.wait_for(resolver.resolve(name), 60)).addresses == found


@pytest.mark.parametrize(("ttl", "kept"), [(0, 60), (59, 60), (61, 61), (3600, 3600), (86400, 3600)])
async def test_ttl_is_clamped(ttl, kept):
    async with resolving(values={"MIN_TTL_S": 0, "MAX_TTL_S": 10**6}) as (resolver, _):
        assert (await resolver.resolve(f"ttl{ttl}.org")).ttl_s == ttl
    async with resolving() as (resolver, _):
        assert (await resolver.resolve(f"ttl{ttl}.org")).ttl_s == kept


async def test_permanent_failures():
    async with resolving() as (resolver, server):
        for name in ("nx.org", "none.org"):
            with pytest.raises(NameNotFound, match=name):
                await resolver.resolve(name)
        assert server.asked["none.org", "A"] == server.asked["none.org", "AAAA"] == 1


async def test_failures_that_may_pass():
    async with resolving(values={"TIMEOUT_S": 0.5}) as (resolver, server):
        for name in ("fail.org", "refused.org", "drop.org", "garbage.org"):
            with pytest.raises(NameServerFailure, match=name):
                await resolver.resolve(name)
        assert server.asked["drop.org", "A"] == 2
        with pytest.raises(NameServerFailure, match=r"drop\.org"):
            await resolver.resolve("drop.org")
        assert server.asked["drop.org", "A"] == 4, "a look-up that has ended is not shared any more"
    unreachable = Resolver(Options(nameservers="127.0.0.1:1"), HostMap(""))
    with constants(TIMEOUT_S=0.2, TRIES=1), pytest.raises(NameServerFailure):
        await unreachable.resolve("v4.org")
    await unreachable.close()


async def test_second_name_server_is_asked():
    async with resolving() as (_, server):
        address = "{}:{}".format(*server.transport.get_extra_info("sockname"))
        second = Resolver(Options(nameservers=f"127.0.0.1:1, {address}"), HostMap(""))
        assert (await second.resolve("v4.org")).addresses
        await second.close()


async def test_host_map_addresses_and_localhost_need_no_dns():
    async with resolving(hosts="*.test=127.0.0.9:81") as (resolver, server):
        for name, address in (
            ("www.test", "127.0.0.9"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2130706433", "127.0.0.1"),
            ("localhost", "127.0.0.1"),
            ("a.localhost.", "127.0.0.1"),
        ):
            assert await resolver.resolve(name) == Resolution((address,), 3600.0, is_asked=False)
        assert not server.asked


@pytest.mark.parametrize(
    "name", ["", ".", "a..b", "a" * 64 + ".org", "a." * 127 + "org", "a b.org", "č.cz", "a\0.org", "a\\.org"]
)
async def test_what_cannot_be_a_name_is_not_asked(name):
    async with resolving() as (resolver, server):
        with pytest.raises(NameNotFound):
            await resolver.resolve(name)
        assert not server.asked


async def test_identical_look_ups_share_one_query_and_survive_a_cancelled_caller():
    async with resolving() as (resolver, server):
        tasks = [asyncio.ensure_future(resolver.resolve("slow.org")) for _ in range(100)]
        await asyncio.sleep(0.01)
        tasks[0].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert {result.addresses for result in results[1:]} == {("192.0.2.7", "192.0.2.8")}
        assert server.asked == {("slow.org", "A"): 1}


@pytest.mark.parametrize("shards", [1, 2])
async def test_look_ups_run_together_up_to_the_bound_that_the_shards_of_a_machine_share(shards):
    given = {"shards": shards, "cluster": "unix:///of-all-shards-here"}
    async with resolving(values={"CONCURRENCY": 40 * shards, "TIMEOUT_S": 20}, **given) as (resolver, server):
        await asyncio.gather(*(resolver.resolve(f"slow{n}.org") for n in range(200)))
        assert 10 < server.max_running <= 40


async def test_channels_are_renewed_without_losing_a_query(monkeypatch):
    monkeypatch.setattr(spiderling.fetch.resolver, "QUERIES_PER_CHANNEL", 10)
    async with resolving(values={"TIMEOUT_S": 20}) as (resolver, _):
        results = await asyncio.gather(*(resolver.resolve(f"slow{n}.org") for n in range(60)))
        assert len(results) == 60


async def test_a_malformed_answer_harms_nobody_but_its_own_name():
    """c-ares closes the socket over which all other queries run, and sends those at once over the next one.

    There are so few names that the default receive buffer of the name server holds all of these queries: what a
    full buffer drops costs one of the three tries.
    """
    async with resolving(values={"TIMEOUT_S": 10, "TRIES": 3}) as (resolver, _):
        names = [f"slow{n}.org" for n in range(20)] + ["garbage.org"] + [f"v4.x{n}.org" for n in range(20)]
        results = await asyncio.gather(*map(resolver.resolve, names), return_exceptions=True)
        assert isinstance(results[20], NameServerFailure)
        others = results[:20] + results[21:]
        assert [result for result in others if not isinstance(result, Resolution)] == []
        assert {result.addresses for result in others} == {V4}


class Mutating(NameServer):
    """Sends a spoiled answer before each right one, so that no question waits for its time to pass."""

    rng = random.Random(1)

    def datagram_received(self, query, client):
        sent = []
        transport, self.transport = self.transport, SimpleNamespace(sendto=lambda data, client: sent.append(data))
        super().datagram_received(query, client)
        self.transport = transport
        data = bytearray(sent[0])
        for _ in range(self.rng.choice((0, 1, 1, 3))):
            at = self.rng.randrange(2, len(data))
            kind = self.rng.randrange(4)
            if kind == 0:
                data[at] = self.rng.randrange(256)
            elif kind == 1:
                del data[at : at + self.rng.choice((1, 5))]
            elif kind == 2:
                data[at:at] = self.rng.randbytes(self.rng.choice((1, 4, 60)))
            else:
                data[-10:] = self.rng.randbytes(10)
        transport.sendto(bytes(data), client)
        transport.sendto(sent[0], client)


async def outcome_of(resolving):
    """What it resolves to, or the exception that it raises."""
    (outcome,) = await asyncio.gather(resolving, return_exceptions=True)
    return outcome


async def test_random_answers_raise_nothing_else_and_leave_the_resolver_at_work():
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    async with resolving(server=Mutating, values={"TRIES": 1}) as (resolver, _):
        names = [f"{kind}.x{n}.org" for n in range(60) for kind in ("cname", "both", "v4", "v6", "none", "nx")]
        results = [await outcome_of(resolver.resolve(name)) for name in names]
        for result in results:
            if isinstance(result, Resolution):
                assert all(map(ipaddress.ip_address, result.addresses)) and result.ttl_s >= 60
            else:
                assert isinstance(result, (NameNotFound, NameServerFailure)), repr(result)
        assert 20 < sum(isinstance(result, Resolution) for result in results) < len(results)
    gc.collect()
    assert not complaints


async def test_closing_ends_what_runs():
    async with resolving() as (resolver, _):
        task = asyncio.ensure_future(resolver.resolve("drop.org"))
        await asyncio.sleep(0.05)
    with pytest.raises(asyncio.CancelledError):
        await task


@settings(max_examples=examples(50))
@given(st.lists(st.text(max_size=20), max_size=3).map(".".join))
def test_no_name_raises_anything_else(name):
    async def main():
        resolver = Resolver(Options(nameservers="127.0.0.1:1"), HostMap(""))
        with constants(TIMEOUT_S=0.05, TRIES=1), contextlib.suppress(NameNotFound, NameServerFailure):
            await resolver.resolve(name)
        await resolver.close()

    asyncio.run(main())


@pytest.mark.parametrize("option", ["dns.example.org", "127.0.0.1:99999", "::1", "127.0.0.1:"])
def test_bad_name_servers_are_named(option):
    with pytest.raises(BadInput, match="SPIDERLING_NAMESERVERS"):
        Resolver(Options(nameservers=f"127.0.0.1, {option}"), HostMap(""))
