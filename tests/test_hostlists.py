"""Files of hosts: what an entry means, and what is told of a line that means nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.addresses import HostList, read_host_list
from spiderling.base.errors import BadInput


def listed(*lines: str) -> HostList:
    hosts = HostList()
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
def test_entry(entry: str, held: list[str], others: list[str]) -> None:
    hosts = listed(entry)
    assert [name for name in (*held, *others) if hosts.holds(name)] == held


def test_file(tmp_path: Path) -> None:
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
def test_bad_file(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "hosts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_host_list(str(path), "OPTION")


@given(st.lists(st.text(), max_size=5))
def test_any_line_is_taken_or_refused(lines: list[str]) -> None:
    hosts = HostList()
    for line in lines:
        assert hosts.add_entry(line) in (True, False)
    assert hosts.holds("example.org") in (True, False)
