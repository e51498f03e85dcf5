"""Each host has one owner, and all hosts of a registrable domain have the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spiderling.base.urls import go_by_suffixes, owner_of


@pytest.mark.parametrize(
    ("host", "other"),
    [
        ("a.example.cz", "example.cz"),
        ("example.cz:8080", "www.example.cz"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("192.0.2.7", "192.0.2.7:8080"),
        ("[2001:db8::1]", "[2001:db8::1]:8443"),
    ],
)
def test_hosts_of_one_domain_have_one_owner(host: str, other: str) -> None:
    assert [owner_of(host, shards) for shards in range(1, 200)] == [owner_of(other, shards) for shards in range(1, 200)]


@pytest.mark.parametrize(
    ("host", "other"),
    [
        ("example.cz", "example.sk"),
        ("one.github.io", "two.github.io"),  # each user of such a platform has a domain
        ("192.0.2.7", "192.0.2.8"),
        ("[2001:db8::1]", "[2001:db8::2]"),
        ("localhost", "intranet"),
    ],
)
def test_hosts_of_different_domains_are_owned_apart(host: str, other: str) -> None:
    assert [owner_of(host, shards) for shards in range(1, 200)] != [owner_of(other, shards) for shards in range(1, 200)]


def test_owners_are_the_same_in_each_process_and_version() -> None:
    """They are written nowhere: a crawl in which they changed would have hosts that nobody and hosts that two own."""
    names = ("example.cz", "a.co.uk", "xn--bcher-kva.de", "192.0.2.7", "[2001:db8::1]", "localhost")
    assert [owner_of(name, 16) for name in names] == [4, 11, 15, 13, 14, 3]


def test_owners_go_by_the_list_that_they_are_told(tmp_path: Path) -> None:
    names = ("a.blog.test", "b.blog.test")
    together, apart = tmp_path / "together", tmp_path / "apart"
    together.write_text("// ===BEGIN ICANN DOMAINS===\ntest\n")
    apart.write_text("// ===BEGIN ICANN DOMAINS===\ntest\nblog.test\n")
    try:
        for path, owners in ((together, 1), (apart, 2), (together, 1)):
            go_by_suffixes(path)
            assert len({owner_of(name, 1000) for name in names}) == owners
    finally:
        go_by_suffixes(None)


def test_shares_are_even() -> None:
    shares = Counter(owner_of(f"name{number}.cz", 16) for number in range(16_000))
    assert len(shares) == 16 and min(shares.values()) > 850 and max(shares.values()) < 1150
