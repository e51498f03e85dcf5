"""Host maps, address policy, the forms that hide an address; files of hosts."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.addresses import (
    AddressPolicy,
    DropList,
    Endpoint,
    HostMap,
    HostPatterns,
    addresses_of,
    literal_address,
    parse_endpoint,
    read_host_list,
)  # fmt: skip
from spiderling.base.errors import BadInput
from spiderling.base.options import Options

PUBLIC = """
8.8.8.8 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.1 198.17.255.255 198.20.0.1 223.255.255.255
2a00:1450:4014:80c::200e 2001:4860:4860::8888 2001:200::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
"""
NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1
172.31.255.255 192.0.0.192 192.0.2.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1
255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0:10.0.0.1 64:ff9b::127.0.0.1
64:ff9b::a9fe:a9fe 64:ff9b:1::808:808 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:db8::1
2002:7f00:1:: 2002:a9fe:a9fe::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 4000::1
localhost 8.8.8.8:80 [::1] 08.8.8.8
"""


is_public = AddressPolicy().allows


def test_public_addresses_are_allowed_and_all_others_refused():
    assert [address for address in PUBLIC.split() if not is_public(address)] == []
    for policy in (AddressPolicy(), AddressPolicy("")):
        assert [address for address in ("", *NOT_PUBLIC.split()) if policy.allows(address)] == []


@given(st.ip_addresses(v=4) | st.ip_addresses(network="2000::/3"))
def test_nothing_is_public_that_the_standard_library_knows_better(address):
    kinds = ("is_private", "is_loopback", "is_link_local", "is_multicast", "is_reserved", "is_unspecified")
    if is_public(str(address)):
        assert not [kind for kind in kinds if getattr(address, kind)]


@given(st.ip_addresses(v=4))
def test_ipv6_forms_are_as_public_as_what_they_carry(address):
    mapped = ipaddress.IPv6Address(0xFFFF << 32 | int(address))
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | int(address))
    sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80) | 1)
    assert {is_public(str(form)) for form in (address, mapped, nat64, sixtofour)} == {is_public(str(address))}


@given(st.text())
def test_judgements_never_raise(text):
    assert is_public(text) in (True, False)
    assert AddressPolicy("10.0.0.0/8,::/0").allows(text) in (True, False)


def test_listed_networks_are_allowed_and_without_public_only_these():
    policy = AddressPolicy(" 127.0.0.0/8 ,10.1.2.3,, fd00::/8")
    assert all(map(policy.allows, ("127.9.9.9", "::ffff:127.0.0.1", "10.1.2.3", "fd12::1", "8.8.8.8")))
    assert not any(map(policy.allows, ("10.1.2.4", "192.168.0.1", "::1", "fe80::1", "64:ff9b::127.0.0.1")))

    policy = AddressPolicy("127.0.0.0/8,8.8.4.0/24", public=False)
    assert policy.allows("127.0.0.1") and policy.allows("8.8.4.4")
    assert not any(map(policy.allows, PUBLIC.split()))


@pytest.mark.parametrize("option", ["127.0.0.0/33", "127.0.0.1/8", "loopback", "10.0.0.0/8;::1"])
def test_bad_networks_are_named(option):
    with pytest.raises(BadInput, match=option.replace(".", r"\.")):
        AddressPolicy(f"192.168.0.0/16,{option}")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("127.0.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("0X7F000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"), ("%31%32%37.1", "127.0.0.1"), ("0", "0.0.0.0"), ("::1", "::1"), ("[::1]", "::1"),
        ("[0:0::0:1]", "::1"), ("[::FFFF:127.0.0.1]", "::ffff:127.0.0.1"),
        *((name, None) for name in (
            "256.1.1.1", "1.2.3.4.5", "4294967296", "1e100.net", "example.org", "0x7f.example", "127.0.0.1.nip.io",
            "127.0.0.1:80", "user@127.0.0.1", "127.0.0.1/path", "[::1", "a b", "", "..",
        )),
    ],
)  # fmt: skip
def test_literal_address(name, address):
    found = literal_address(name)
    assert (found and ipaddress.ip_address(found)) == (address and ipaddress.ip_address(address))


@given(st.text() | st.from_regex(r"[0-9a-fx.:\[\]%]{0,20}"))
def test_literal_address_never_raises_and_gives_addresses(name):
    found = literal_address(name)
    assert found is None or str(ipaddress.ip_address(found)) == found


@given(st.ip_addresses())
def test_literal_address_of_every_address_is_itself(address):
    assert ipaddress.ip_address(literal_address(str(address)) or "") == address


def test_host_map_prefers_exact_names_then_the_first_glob():
    hosts = HostMap("*.test=127.0.0.1, a.test=127.0.0.2:80 ,?.b.test=127.0.0.3,x-*.org=[::1]:80,Y.Org=[FD00::1]")
    assert hosts.lookup("a.test") == Endpoint("127.0.0.2", 80)
    assert hosts.lookup("A.TEST.") == Endpoint("127.0.0.2", 80)
    assert hosts.lookup("1.b.test") == Endpoint("127.0.0.1")
    assert hosts.lookup("deep.er.test") == Endpoint("127.0.0.1", None)
    assert hosts.lookup("x-1.org") == Endpoint("::1", 80)
    assert hosts.lookup("y.org") == Endpoint("fd00::1")
    assert hosts.lookup("test") is None
    assert hosts.lookup("atest.org") is None
    assert hosts.lookup("a.test.org") is None
    assert HostMap("").lookup("a.test") is None


@pytest.mark.parametrize(
    "part",
    ["a.test", "=127.0.0.1", "a.test=", "a.test=b.test", "a.test=127.0.0.1:0", "a.test=127.0.0.1:65536", "a.test=1",
     "a.test=127.0.0.1:", "a.test=::1", "a.test=[::1", "a/b=127.0.0.1", "a b=127.0.0.1", "a.test=127.0.0.1:8x"],
)  # fmt: skip
def test_bad_host_map_parts_are_named(part):
    with pytest.raises(BadInput) as caught:
        HostMap(f"good.test=127.0.0.1,{part}")
    assert part.split("=")[-1] in str(caught.value)
    assert "SPIDERLING_HOSTS" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="ab.*?=:[]1270,/ "), st.text())
def test_host_map_reads_or_refuses(option, name):
    with suppress(BadInput):
        HostMap(option).lookup(name)


def test_endpoint():
    assert parse_endpoint("127.0.0.1", "X") == ("127.0.0.1", None)
    assert parse_endpoint("[::1]:53", "X") == ("::1", 53)
    with pytest.raises(BadInput, match=r"^X has 'dns\.test'"):
        parse_endpoint("dns.test", "X")


CONTACTS = {
    "me@example.org": "an example",
    "me@mail.Example.COM": "an example",
    "https://www.example.net/bot": "an example",
    "me@example.edu": "an example",
    "me@corpus.test": "an example",
    "http://crawler.example/": "an example",
    "me@nobody.invalid": "an example",
    "http://localhost:8000/about": "an example",
    "https://[bad": "it must be an e-mail address or the URL",
    "me@example.org.uk": "",
    "me@counterexample.com": "",
    "https://corpora.fi.muni.cz/example.org": "",
    "https://example-crawler.cz/me@example.org": "",
    "me@test.cz": "",
    "me@example.com.br": "",
    "mailto:me@latest.community": "",
}


@pytest.mark.parametrize("contact", CONTACTS)
def test_a_contact_is_refused_if_nobody_can_be_reached_there(contact: str) -> None:
    """The names of RFC 2606 and RFC 6761 belong to nobody; those that only look like them do."""
    if CONTACTS[contact]:
        with pytest.raises(BadInput, match=CONTACTS[contact]):
            addresses_of(Options(contact=contact), False)
    else:
        assert addresses_of(Options(contact=contact), False).allows("192.0.43.8")


def listed(*lines: str) -> HostPatterns:
    hosts = HostPatterns()
    assert all(hosts.add_entry(line) for line in lines)
    return hosts


@pytest.mark.parametrize(
    ("entry", "held", "others"),
    [
        ("example.org", ["example.org", "example.org:8080"], ["a.example.org", "org", "xexample.org"]),
        ("www.Example.org", ["example.org"], ["www2.example.org"]),
        (".example.org", ["example.org", "a.example.org", "b.a.example.org:81"], ["xexample.org", "org"]),
        ("*.example.org", ["a.example.org", "b.a.example.org"], ["example.org", "xexample.org"]),
        ("shop?.example.*", ["shop1.example.org"], ["shop.example.org", "shop12.example.org"]),
        ("[ab]*.example.org", ["a.example.org", "b1.example.org"], ["c.example.org"]),
        ("*.www.example.org", ["a.www.example.org"], ["a.example.org"]),
        ("*.0.0.1", ["127.0.0.1", "10.0.0.1"], ["127.0.0.2"]),
        ("*.8.8", ["8.8.8.8"], ["8.8.8.9"]),
        ("*.münchen.example", ["a.xn--mnchen-3ya.example"], ["xn--mnchen-3ya.example"]),
        ("http://example.org:8080/a/b?c", ["example.org:8080"], ["example.org"]),
        ("0.0.0.0 ads.example", ["ads.example"], ["0.0.0.0"]),
        ("münchen.example", ["xn--mnchen-3ya.example"], ["munchen.example"]),
        ("[2001:db8::1]", ["[2001:db8::1]"], ["[2001:db8::2]"]),
    ],
)
def test_entry_of_a_list_of_hosts(entry: str, held: list[str], others: list[str]) -> None:
    hosts = listed(entry)
    assert [name for name in (*held, *others) if hosts.holds(name)] == held


def test_file_of_hosts(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text("# comment\n\na.example # why\n.b.example\n127.0.0.1\tc.example\n", encoding="utf-8-sig")
    hosts = read_host_list(str(path), "OPTION")
    assert [name for name in ("a.example", "x.b.example", "c.example", "d.example") if hosts.holds(name)] == [
        "a.example", "x.b.example", "c.example",
    ]  # fmt: skip
    assert not read_host_list("", "OPTION")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a.example\nnot a host\n", "OPTION: line 2 of .* names no host: 'not a host'; write one host a line"),
        (b"mailto:x\n", "line 1 of .* names no host"),
        (b"*.example.org:8080\n", "line 1 of .* names no host"),
        (b"# nothing\n", "names no host; write one a line"),
        (b"a\xff.example\n", "OPTION: the list .* cannot be read: it is no text in UTF-8"),
        (None, "OPTION: the list .* cannot be read: No such file"),
    ],
)
def test_bad_file_of_hosts(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "hosts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_host_list(str(path), "OPTION")


@given(st.lists(st.text(), max_size=5))
def test_any_line_is_taken_or_refused(lines: list[str]) -> None:
    hosts = HostPatterns()
    for line in lines:
        assert hosts.add_entry(line) in (True, False)
    assert hosts.holds("example.org") in (True, False)


@pytest.mark.parametrize(
    "entry", ["http://b.test*", "http://b.test/#*", "http://b.test/page#*", "http://b.test/index.php?PHPSESSID=*"]
)
def test_a_beginning_that_would_list_more_than_it_says_is_refused(entry):
    with pytest.raises(BadInput, match="in the list of URLs"):
        DropList(urls=[entry])


def test_a_beginning_lists_what_begins_so_and_nothing_else():
    drop = DropList(urls=["http://b.test/a?*", "http://b.test/people/*"])
    listed = ["http://b.test/a?x=1", "https://www.b.test/people/1"]
    assert all(drop.rule_for({"url": url}) for url in listed)
    assert not any(drop.rule_for({"url": url}) for url in ("http://b.test/about", "http://b.test/people"))
