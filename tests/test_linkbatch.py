"""Links as columns: the same links come out that went in, and nothing comes in from a worker that does not fit."""

from __future__ import annotations

import pickle
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.link_batch import (
    FOREIGN,
    NOFOLLOW,
    NONE,
    TEXT_BLOCK,
    WANTED,
    Link,
    completed,
    form_of,
    gathered,
    received,
)
from spiderling.base.options import Options
from spiderling.base.urls import canonicalize, owner_of, section_of, url_hash, words_of_name, words_of_path
from spiderling.frontier.admission import Scope
from spiderling.text.page import read_page

HOSTS = st.sampled_from(["a.cz", "www.a.cz", "b.cz:8080", "[::1]", "[::1]:81", "1.2.3.4", "a.cz:443", "ž.cz", "x_", ""])
PATHS = st.lists(st.sampled_from([*"aZ0./?&=;%#' \n", "žluť", "dir/", ".jpg", ".PDF", "//", "%2e"]), max_size=12)
SCHEMES = st.sampled_from(["http", "https", "ftp"])
URLS = st.builds(lambda scheme, host, path: f"{scheme}://{host}/{''.join(path)}", SCHEMES, HOSTS, PATHS)
LINKS = st.lists(
    st.builds(
        Link, URLS, st.booleans(), st.floats(0, 1), st.integers(0, 300), st.booleans(),
        st.sampled_from([0, WANTED, FOREIGN]),
    ), max_size=30
)  # fmt: skip


@given(LINKS)
def test_what_goes_in_comes_out(links: list[Link]) -> None:
    batch = read_page(pickle.dumps(gathered(links), 5))
    targets = [canonicalize(link.url) for link in links]
    valid = [(target, link) for target, link in zip(targets, links, strict=True) if target is not None]
    assert batch.bad == len(links) - len(valid)
    found = [(batch.target(at), batch.flags[at]) for at in range(batch.size)]
    others = [(canonicalize(url), flags) for url, _, flags, _, _ in batch.others]
    expected = [(target, TEXT_BLOCK * link.text_block | NOFOLLOW * link.nofollow | link.said) for target, link in valid]
    assert sorted(found + others) == sorted(expected)
    assert [other[1] for other in batch.others] == [target.host for target, _ in others if target]
    assert array("Q", batch.hashes).tolist() == [url_hash(target.url) for target, _ in found]
    names = [(target.path.encode(), target.name) for target, _ in found]
    assert array("I", batch.sections).tolist() == [section_of(path) for path, _ in names]
    words = [word for path, name in names for word in (*words_of_name(name), *words_of_path(path))]
    assert array("H", batch.words).tolist() == words
    urls = [target.url for target, _ in found] + [url for url, *_ in batch.others]
    assert [url for url, _, _ in batch.rows()] == urls
    scope = Scope(Options(documents="pdf"))
    for at, (target, _) in enumerate(found):
        refusal = scope.refusal_of_form(batch.forms[at], batch.depths[at], len(target.url))
        assert refusal is scope.refusal(target)


@given(LINKS)
def test_nofollow_links_are_left_out_with_their_columns(links: list[Link]) -> None:
    assert gathered(links).followed()._replace(bad=0, hosts=()) == gathered(
        [link for link in links if not link.nofollow]
    )._replace(bad=0, hosts=(), of_host=gathered(links).followed().of_host)


def test_scores_and_anchors_fill_a_byte() -> None:
    batch = gathered([Link("http://a.cz/", True, score=1.0, anchor=900), Link("http://a.cz/b", score=0.25, anchor=7)])
    assert (list(batch.scores), list(batch.anchors), batch.hosts) == ([255, 63], [255, 7], ("a.cz",))


@pytest.mark.parametrize(
    ("path", "kind", "depth"),
    [("/", 0, 1), ("/a.jpg", 1, 1), ("/a?x=b.jpg", 0, 1), ("/a.jpg/", 0, 2), ("/d/dir" * 4, 128, 8)],
)  # fmt: skip
def test_forms(path: str, kind: int, depth: int) -> None:
    assert form_of(path) == (kind, depth)


GOOD = gathered([Link("http://a.cz/1"), Link("https://www.b.cz/2?x"), Link("http://c.cz:443/3")])


@pytest.mark.parametrize(
    "changed",
    [
        {"paths": b"/1"}, {"paths": b"/1\n/2\n/3"}, {"paths": b"/1\n.evil.cz/"}, {"paths": "/1\n/ž".encode()},
        {"paths": "/1\n/2"}, {"of_host": array("H", [0, 9]).tobytes()}, {"of_host": b"\0"},
        {"hashes": array("Q", [1, 1 << 40]).tobytes()}, {"hashes": b""}, {"sections": b"\0" * 9},
        {"words": b"\0\0"}, {"words": [0] * 12}, {"prefixes": bytes([0, 4])}, {"flags": b"\0"},
        {"anchors": b"\0\0\0"}, {"hosts": (1, 2, 3)}, {"hosts": ("a.cz", "\ud800.cz", "c.cz")},
        {"others": ((1, 2, 3, 4, 5),)}, {"others": ("http://a.cz/",)}, {"bad": "1"},
    ],
)  # fmt: skip
def test_what_no_worker_of_ours_makes_is_refused(changed: dict[str, object]) -> None:
    assert read_page(pickle.dumps(GOOD, 5)) == GOOD
    assert read_page(pickle.dumps(NONE, 5)) == NONE
    with pytest.raises((ValueError, TypeError)):
        read_page(pickle.dumps(GOOD._replace(**changed), 5))  # type: ignore[arg-type]


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(TypeError):
        received(*GOOD, b"")


@given(LINKS)
def test_owners_of_hosts_are_looked_up_when_a_crawl_has_shards(links: list[Link]) -> None:
    batch = read_page(pickle.dumps(gathered(links, 5), 5))
    assert array("H", batch.owners).tolist() == [owner_of(name, 5) for name in batch.hosts]
    assert batch._replace(owners=b"") == gathered(links)
    assert batch.followed().owners == batch.owners
    with pytest.raises(ValueError, match="hosts without an owner"):
        received(*batch._replace(owners=batch.owners + b"1"))


@given(LINKS)
def test_what_follows_from_the_urls_can_be_made_anew(links: list[Link]) -> None:
    batch = gathered(links)
    bare = batch._replace(hashes=b"", sections=b"", words=b"", forms=b"", depths=b"")
    assert completed(bare) == batch


@pytest.mark.parametrize(
    "changed",
    [
        {"of_host": b"\x07\x00" * 2}, {"of_host": b"\x00"}, {"prefixes": b"\x09\x00"}, {"prefixes": b"\x00"},
        {"paths": b"/1"}, {"paths": b"/1\n/2\n/3"}, {"paths": b"/1\n/\xff"}, {"flags": b""},
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_not_completed(changed: dict[str, bytes]) -> None:
    with pytest.raises((ValueError, IndexError)):
        completed(gathered([Link("http://a.cz/1"), Link("https://www.b.cz/2?x")])._replace(**changed))
