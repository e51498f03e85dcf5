"""Canonical form, host record, origin, seen key and owner of a URL; all hosts of a registrable domain have one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spiderling.base.urls import (
    HASH_BITS,
    MAX_HOST_ID,
    canonicalize,
    origins_of,
    owner_of,
    registrable_domain,
    serialize,
    top_level_domain,
    url_key,
)

_PLAIN_PARTS = st.lists(
    st.sampled_from(
        [*"aZ0-_~!$&()*+,:=@/.%?;#'|^", "www.", ".cz", "//", "/.", "..", "%2e", "%2E", "%41", "xn--", "?sid=1"]
    ),
    max_size=14,
).map("".join)


@given(st.sampled_from(["http://", "https://"]), st.sampled_from(["", "www.", "www.www.", "x_"]), _PLAIN_PARTS)
@example("http://", "", "www.cz/")
@example("http://", "www.", "0x1f/")
@example("http://", "", "a.xn--a/")
@example("http://", "", "a.cz/%2E%2e/b?utm_source=x#f")
def test_short_cut_gives_what_the_parser_gives(scheme: str, www: str, rest: str) -> None:
    """A space before the URL, which the parser takes off, keeps it from the short cut."""
    for url in (f"{scheme}{www}{rest}", f"{scheme}{www}a-b.cz/{rest}", f"{scheme}{www}1.{rest}"):
        assert canonicalize(url) == canonicalize(f" {url}")


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("http://a.cz", "http://a.cz/"),
        ("HTTP://A.CZ/Path", "http://a.cz/Path"),
        ("  http://a.cz/\n", "http://a.cz/"),
        ("http:a.cz", "http://a.cz/"),
        ("http://a.cz\\x", "http://a.cz/x"),
        ("http://a.cz/#part", "http://a.cz/"),
        ("http://@a.cz/", "http://a.cz/"),
        # ports
        ("http://a.cz:80/", "http://a.cz/"),
        ("https://a.cz:443/", "https://a.cz/"),
        ("https://a.cz:80/", "https://a.cz:80/"),
        ("http://a.cz:/", "http://a.cz/"),
        # dots and percent signs
        ("http://a.cz./", "http://a.cz/"),
        ("http://a.cz/x/./y/../z", "http://a.cz/x/z"),
        ("http://a.cz/%2e/x/%2E%2e/", "http://a.cz/"),
        ("http://a.cz/%7Ea%C5%99", "http://a.cz/%7Ea%C5%99"),
        ("http://a.cz/%", "http://a.cz/%"),
        ("http://a.cz/ř ž?q=ř", "http://a.cz/%C5%99%20%C5%BE?q=%C5%99"),
        # names: IDNA, addresses in any spelling
        ("http://www.Příklad.CZ/", "http://www.xn--pklad-zsa96e.cz/"),
        ("http://faß.de/", "http://xn--fa-hia.de/"),
        ("http://%61.cz/", "http://a.cz/"),
        ("http://a_b.cz/", "http://a_b.cz/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[::FFFF:1.2.3.4]/", "http://[::ffff:102:304]/"),
        # session ids and campaign parameters
        ("http://a.cz/x;jsessionid=A1?b=2", "http://a.cz/x?b=2"),
        ("http://a.cz/x;JSESSIONID=A1;y=2", "http://a.cz/x;y=2"),
        ("http://a.cz/.;sid=1/b", "http://a.cz/b"),
        ("http://a.cz/x/..;sid=1/b", "http://a.cz/b"),
        ("http://a.cz/?PHPSESSID=1", "http://a.cz/"),
        ("http://a.cz/?a=1&utm_source=x&b=2&gclid=3&fbclid", "http://a.cz/?a=1&b=2"),
        ("http://a.cz/?utm_source=x&", "http://a.cz/"),
        ("http://a.cz/?sid=1", "http://a.cz/?sid=1"),
        ("http://a.cz/?sid=0123456789abcdef&x=1", "http://a.cz/?x=1"),
        ("http://a.cz/?s=deadbeefcafe", "http://a.cz/?s=deadbeefcafe"),
        ("http://a.cz/?a=1&session_id=x&ASP.NET_SessionId=y&cfid=1&CFTOKEN=2&osCsid=z", "http://a.cz/?a=1"),
        ("http://a.cz/?gbraid=1&yclid=2&mc_eid=3&_ga=4&mtm_campaign=5&srsltid=6&igshid=7", "http://a.cz/"),
        ("http://a.cz/?ref=1&source=2&id=3&page=4", "http://a.cz/?ref=1&source=2&id=3&page=4"),
        ("http://a.cz/app/(S(lit3py55t21z5v55vlm25s55))/x.aspx", "http://a.cz/app/x.aspx"),
        ("http://a.cz/(S(lit3py55)F(abcdefgh1))/", "http://a.cz/"),
        ("http://a.cz/wiki/Praha_(S(x))/", "http://a.cz/wiki/Praha_(S(x))/"),
        ("http://a.cz/?gclidx=1&xgclid=1", "http://a.cz/?gclidx=1&xgclid=1"),
        ("http://a.cz/?b=2&a=1", "http://a.cz/?b=2&a=1"),
        ("http://a.cz/?", "http://a.cz/"),
    ],
)
def test_canonical_form(url: str, canonical: str) -> None:
    target = canonicalize(url)
    assert target is not None
    assert target.url == canonical
    assert canonicalize(canonical) == target


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@a.cz/", "http://a.cz@b.cz/", "http://a.cz%2f@b.cz/", "http://:x@a.cz/",
        "", "a.cz", "/path", "//a.cz/", "ftp://a.cz/", "mailto:a@b.cz", "javascript:void(0)", "data:text/html,x",
        "http://", "http:///", "http://a b.cz/", "http://a.cz:99999/", "http://[::1/", "http://256.256.256.256/", "http://256../",
        "http://a..cz/", "http://a.cz../", "http://.cz/", "http://" + "a" * 64 + ".cz/", "http://" + "a.b." * 70 + "c/",
        "http://a.cz\x00.b.cz/", "http://a,b.cz/", "http://*.cz/", "http://\ud800.cz/", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_what_cannot_be_fetched(url: str) -> None:
    assert canonicalize(url) is None


@pytest.mark.parametrize(
    ("url", "name", "host", "origin", "path"),
    [
        ("http://a.cz/x?y", "a.cz", "a.cz", "http://a.cz", "/x?y"),
        ("https://www.a.cz/", "www.a.cz", "a.cz", "https://www.a.cz", "/"),
        ("https://a.cz:80/", "a.cz", "a.cz", "https://a.cz:80", "/"),
        ("http://a.cz:443/", "a.cz", "a.cz", "http://a.cz:443", "/"),
        ("http://www.a.cz:8080/", "www.a.cz", "a.cz:8080", "http://www.a.cz:8080", "/"),
        ("http://www.cz/", "www.cz", "www.cz", "http://www.cz", "/"),
        ("http://www2.a.cz/", "www2.a.cz", "www2.a.cz", "http://www2.a.cz", "/"),
        ("http://[::1]:81/", "[::1]", "[::1]:81", "http://[::1]:81", "/"),
    ],
)
def test_parts(url: str, name: str, host: str, origin: str, path: str) -> None:
    target = canonicalize(url)
    assert target is not None
    assert target == (origin + path, name, host, origin, path)
    assert origin in origins_of(host)


def test_origins_of_a_host_are_those_that_fold_into_it() -> None:
    for host in ("a.cz", "a.cz:8080"):
        folded = [canonicalize(origin) for origin in origins_of(host)]
        assert {target.host for target in folded if target is not None} == {host}
        assert len(folded) == (12 if host == "a.cz" else 4)


@pytest.mark.parametrize(
    ("host", "registrable", "tld"),
    [
        ("a.cz", "a.cz", "cz"),
        ("x.y.a.cz", "a.cz", "cz"),
        ("x.y.co.uk", "y.co.uk", "uk"),
        ("x.a.cz:8080", "a.cz", "cz"),
        ("x.somebody.github.io", "somebody.github.io", "io"),
        ("co.uk", "co.uk", "uk"),
        ("localhost", "localhost", "localhost"),
        ("10.1.2.3", "10.1.2.3", ""),
        ("10.1.2.3:81", "10.1.2.3:81", ""),
        ("[2001:db8::1]", "[2001:db8::1]", ""),
        ("[2001:db8::1]:81", "[2001:db8::1]:81", ""),
        ("xn--80aesfpebagmfblc0a.xn--p1ai", "xn--80aesfpebagmfblc0a.xn--p1ai", "xn--p1ai"),
    ],
)
def test_registrable_and_top_level_domain(host: str, registrable: str, tld: str) -> None:
    assert registrable_domain(host) == registrable
    assert top_level_domain(host) == tld


@pytest.mark.parametrize(
    ("host_id", "url", "salt", "key"),
    [
        (1, "http://a.cz/", b"", 2072090743924),
        (1, "https://www.a.cz/", b"", 2152761825931),
        (2, "http://a.cz/", b"", 3171602371700),
        (1, "http://a.cz/", b"POST", 2134600443268),
        (MAX_HOST_ID, "http://a.cz/", b"", -126932511628),
        (1 << 23, "http://xn--hkyrky-ptac70bc.cz/%C5%99?q=1", b"", -9223370958018708886),
    ],
)
def test_keys_never_change(host_id: int, url: str, salt: bytes, key: int) -> None:
    """Else a crawl that is resumed with another version would fetch everything again."""
    assert url_key(host_id, url, salt) == key
    assert key >> HASH_BITS & MAX_HOST_ID == host_id


def test_order_of_parameters_does_not_tell_urls_apart() -> None:
    assert url_key(1, "http://a.cz/x?b=2&a=1&c") == url_key(1, "http://a.cz/x?c&a=1&b=2")
    assert url_key(1, "http://a.cz/x?b=2&a=1") != url_key(1, "http://a.cz/x?b=1&a=2")


@given(st.integers(1, MAX_HOST_ID), st.text(), st.binary())
def test_keys_fit_a_signed_integer_and_hold_the_host(host_id: int, url: str, salt: bytes) -> None:
    key = url_key(host_id, url, salt)
    assert -(2**63) <= key < 2**63
    assert (key % 2**64) >> HASH_BITS == host_id


def test_serialized_as_a_browser_would() -> None:
    assert serialize("HTTP://A.cz:80/x?utm_source=y#z") == "http://a.cz/x?utm_source=y"
    assert serialize("nowhere") is None


_PIECES = st.sampled_from(
    ["http://", "https://", "a.cz", "www.", "..", ".", "/", "/./", "//", "?", "&", "#", ";sid=", ";jsessionid=1", "=",
     "utm_a=1", "gclid", ":80", ":8080", "@", "[::1]", "%2e", "%00", "ž", "\u00ad", "ß", "1", "0x", " ", "\t", "\\",
     "/(S(abcdefgh))", "sid=0123456789abcdef", "mc_eid="]
)  # fmt: skip
URLS = st.one_of(st.text(), st.lists(_PIECES, max_size=12).map("".join), st.text().map("http://a.cz/{}".format))


@given(URLS)
@example("http://a.cz/?utm_a=1&")
@example("http://a.cz/.;sid=1/")
@example("http://1../")
@example("http://\ud800/")
def test_never_raises_and_is_idempotent(url: str) -> None:
    target = canonicalize(url)
    serialize(url)
    if target is None:
        return
    assert canonicalize(target.url) == target
    assert target.url == target.origin + target.path
    assert target.url.isascii()
    assert target.path.startswith("/")
    assert not any(char.isspace() or char in "#\\" for char in target.url)
    assert target.origin in origins_of(target.host) or target.host == target.name
    registrable_domain(target.host)
    top_level_domain(target.host)


@given(st.sampled_from(["http", "https"]), st.booleans(), st.sampled_from(["", ":80", ":443"]))
def test_schemes_and_names_of_one_site_share_a_record_but_no_key(scheme: str, www: bool, port: str) -> None:
    target = canonicalize(f"{scheme}://{'www.' if www else ''}site.cz{port}/x")
    assert target is not None
    assert target.host == "site.cz"
    plain = url_key(1, "http://site.cz/x")
    assert (url_key(1, target.url) == plain) is (target.url == "http://site.cz/x")


@pytest.mark.parametrize(
    ("host", "other", "is_one_domain"),
    [
        ("a.example.cz", "example.cz", True),
        ("example.cz:8080", "www.example.cz", True),
        ("a.b.example.co.uk", "example.co.uk", True),
        ("192.0.2.7", "192.0.2.7:8080", True),
        ("[2001:db8::1]", "[2001:db8::1]:8443", True),
        ("example.cz", "example.sk", False),
        ("one.github.io", "two.github.io", False),  # each user of such a platform has a domain
        ("192.0.2.7", "192.0.2.8", False),
        ("[2001:db8::1]", "[2001:db8::2]", False),
        ("localhost", "intranet", False),
    ],
)
def test_hosts_of_one_domain_have_one_owner_and_others_are_owned_apart(
    host: str, other: str, is_one_domain: bool
) -> None:
    owners, others = ([owner_of(name, shards) for shards in range(1, 200)] for name in (host, other))
    assert (owners == others) is is_one_domain


def test_owners_are_the_same_in_each_process_and_version() -> None:
    """They are written nowhere: a crawl in which they changed would have hosts that nobody and hosts that two own."""
    names = ("example.cz", "a.co.uk", "xn--bcher-kva.de", "192.0.2.7", "[2001:db8::1]", "localhost")
    assert [owner_of(name, 16) for name in names] == [4, 11, 15, 13, 14, 3]


def test_shares_are_even() -> None:
    shares = Counter(owner_of(f"name{number}.cz", 16) for number in range(16_000))
    assert len(shares) == 16 and min(shares.values()) > 850 and max(shares.values()) < 1150
