"""Content codings: what was packed comes back, whatever is broken, in bounded memory."""

from __future__ import annotations

import gzip
import random
import zlib
from contextlib import suppress

import brotli
import pytest
from example_counts import examples
from handled import LIMIT, PAGE, failing, fetch, reply
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.base.files import zstd
from spiderling.base.reasons import Reason
from spiderling.fetch import messages
from spiderling.fetch.errors import DecodedTooBig
from spiderling.fetch.messages import BodyDecoder

WORDS = bytes(random.Random(1).choices(b"abcdefgh ", k=400_000))


CODINGS = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress,
    "zstd": zstd.compress,
}  # fmt: skip


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("coding", CODINGS)
async def test_content_codings(coding):
    packed = CODINGS[coding](PAGE)
    request, response = await fetch(reply(packed, b"Content-Encoding: " + coding.upper().encode()))
    assert response.body == PAGE
    assert "Content-Encoding" not in response.headers
    assert "Content-Length" not in response.headers
    assert request.meta["wire_bytes"] == len(packed) < len(PAGE)


async def test_unknown_coding_is_left_alone():
    _, response = await fetch(reply(b"???", b"Content-Encoding: lzma"))
    assert response.body == b"???"
    assert response.headers["Content-Encoding"] == b"lzma"


def decoded(coding: bytes, data: bytes, size: int = 7, limit: int = LIMIT) -> bytes:
    decoder = BodyDecoder(coding, limit)
    return b"".join(decoder.decode(data[start : start + size]) for start in range(0, len(data), size))


@settings(max_examples=examples(60))
@given(st.sampled_from(sorted(CODINGS)), st.binary(max_size=3000), st.integers(1, 5000))
def test_any_body_in_any_pieces_comes_back(coding, body, size):
    assert decoded(coding.encode(), CODINGS[coding](body), size) == body
    assert decoded(b"gzip, " + coding.encode(), CODINGS[coding](gzip.compress(body)), size) == body


@settings(max_examples=examples(150))
@given(st.sampled_from([*sorted(CODINGS), "gzip, br", "a, , b"]), st.binary(max_size=3000), st.integers(1, 5000))
def test_garbage_never_raises_anything_else(coding, body, size):
    with suppress(DecodedTooBig):
        decoded(coding.encode(), body, size, limit=2000)


@pytest.mark.parametrize("size", [1, 100, 1_000_000])
def test_deflate_without_its_wrapping(size):
    assert decoded(b"deflate", raw_deflate(PAGE), size) == PAGE


@pytest.mark.parametrize("size", [1, 100, 1_000_000])
@pytest.mark.parametrize("coding", CODINGS)
def test_plain_body_labelled_as_compressed(coding, size):
    assert decoded(coding.encode(), PAGE, size) == PAGE


@pytest.mark.parametrize("size", [100, 1_000_000])
@pytest.mark.parametrize("coding", CODINGS)
def test_truncated_body_gives_what_there_was(coding, size):
    packed = CODINGS[coding](WORDS)
    got = decoded(coding.encode(), packed[: len(packed) * 3 // 4], size, 1_000_000)
    assert WORDS.startswith(got)
    assert len(got) > 250_000


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_wrong_checksum_and_damage_in_the_middle(size):
    packed = bytearray(gzip.compress(WORDS))
    packed[-6] ^= 0xFF
    assert len(decoded(b"gzip", bytes(packed), size, 1_000_000)) > 399_900
    half = len(packed) // 2
    packed[half : half + 50] = b"\xff" * 50
    assert decoded(b"gzip", bytes(packed), size, 1_000_000)[:190_000] == WORDS[:190_000]


async def test_a_bomb_is_told_by_its_ratio_and_ends_early(monkeypatch):
    answer = reply(gzip.compress(b" " * 3_000_000), b"Content-Encoding: gzip")
    options = {"MAX_BODY_BYTES": 5_000_000}
    assert (await failing(answer, options=options))[1].reason is Reason.TOO_BIG
    small = reply(gzip.compress(b" " * 900_000), b"Content-Encoding: gzip")
    assert len((await fetch(small, options=options))[1].body) == 900_000
    monkeypatch.setattr(messages, "MAX_RATIO", 2000)
    assert (await fetch(answer, options=options))[1].body == b" " * 3_000_000
