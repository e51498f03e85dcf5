"""Only what a shard of this crawl has sent, for this place, is opened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.cluster.content import CRAWL_ID_BYTES, VERSION, Kind, Place, Refused, Seal

CRAWL = bytes(range(CRAWL_ID_BYTES))
SEAL = Seal(CRAWL, b"a key of a user")
PLACE = Place(Kind.MESSAGE, 3, 5, 1, 77)
CONTENTS = st.binary(max_size=40)


@given(CONTENTS, st.binary(max_size=100))
def test_what_was_sealed_is_opened(content: bytes, key: bytes) -> None:
    seal = Seal(CRAWL, key)
    assert seal.opened(PLACE, seal.sealed(PLACE, content)) == content


@given(st.binary(max_size=80))
def test_nothing_else_is_opened(data: bytes) -> None:
    for found in (data, bytes([VERSION]) + data):
        with pytest.raises(Refused):
            SEAL.opened(PLACE, found)


@given(CONTENTS, st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_noticed(content: bytes, at: int, change: int) -> None:
    data = bytearray(SEAL.sealed(PLACE, content))
    data[at % len(data)] ^= change
    with pytest.raises(Refused):
        SEAL.opened(PLACE, bytes(data))


@given(CONTENTS, st.integers(1, 60))
def test_a_message_that_is_cut_off_is_noticed(content: bytes, missing: int) -> None:
    with pytest.raises(Refused):
        SEAL.opened(PLACE, SEAL.sealed(PLACE, content)[:-missing])


@pytest.mark.parametrize(
    "place",
    [
        PLACE._replace(kind=Kind.RECEIPT),
        PLACE._replace(sender=4),
        PLACE._replace(receiver=3),
        PLACE._replace(epoch=2),
        PLACE._replace(number=78),
    ],
)
def test_a_message_is_good_at_its_own_place_alone(place: Place) -> None:
    with pytest.raises(Refused, match="without the code"):
        SEAL.opened(place, SEAL.sealed(PLACE, b"content"))


@pytest.mark.parametrize(
    "other", [Seal(CRAWL, b"another key"), Seal(CRAWL, b""), Seal(CRAWL[::-1], b"a key of a user")]
)
def test_another_key_and_another_crawl_are_told_apart(other: Seal) -> None:
    for one, two in ((SEAL, other), (other, SEAL)):
        with pytest.raises(Refused, match="without the code"):
            one.opened(PLACE, two.sealed(PLACE, b"content"))


def test_a_message_of_another_version_says_so() -> None:
    with pytest.raises(Refused, match=f"version {VERSION + 1}, not {VERSION}"):
        SEAL.opened(PLACE, bytes([VERSION + 1]) + SEAL.sealed(PLACE, b"content")[1:])
