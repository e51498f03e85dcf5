"""Decodes HTTP content codings (gzip, deflate, br, zstd) chunk by chunk and in bounded memory."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]

from spiderling.base.zstd import zstd

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
MAX_LAYERS = 2
"""Most codings of one body that are undone (chosen: honest content has no more)."""
RATIO_FROM_BYTES = 1_000_000
"""Decoded bytes from which the ratio to the received ones is limited (chosen)."""
_NOT_ASKED_FOR = frozenset({"compress", "x-compress", "exi", "pack200-gzip", "aes128gcm", "dcb", "dcz"})
"""Registered codings that change the content, and that no request of ours allows; any other label is ignored."""
_BROKEN = (zlib.error, brotli.error, zstd.ZstdError, EOFError, ValueError)
_Codec = Callable[[bytes, int], bytes]


class DecodedTooBig(Exception):
    """A layer of the body is larger than allowed once decoded, or too large for what was sent."""


class BodyDecoder:
    """Undoes the Content-Encoding of one body, chunk by chunk, in bounded memory (RFC 9110, 8.4).

    `decode` raises DecodedTooBig for decompression bombs: when a layer gives out more than *limit* bytes, or when the
    content has more than RATIO_FROM_BYTES bytes and more than *max_ratio* times those received.

    Servers err, so it is as lenient as browsers: data that breaks off or is damaged yields what was decoded before; a
    body that never was compressed, or has an unknown coding, is passed on as it is.
    """

    def __init__(self, content_encoding: bytes, limit: int, max_ratio: float = math.inf) -> None:
        codings = _codings(content_encoding) if content_encoding else []
        self.is_hopeless = len(codings) > MAX_LAYERS or not _NOT_ASKED_FOR.isdisjoint(codings)
        """Whether what comes out can only be noise."""
        self.understood = not self.is_hopeless and _CODECS.keys() >= set(codings)
        """Whether what comes out is the content itself."""
        self.changes = self.understood and bool(codings)
        """Whether what comes out may differ from what goes in."""
        self._max_ratio = max_ratio
        self._received = self._given = 0
        self._layers = [_Layer(_CODECS[coding], limit) for coding in reversed(codings)] if self.changes else []

    def decode(self, data: bytes) -> bytes:
        """The content that *data*, the next bytes of the body, decodes to."""
        self._received += len(data)
        for layer in self._layers:
            data = layer.decode(data)
        self._given += len(data)
        if self._given > RATIO_FROM_BYTES and self._given > self._max_ratio * self._received:
            raise DecodedTooBig
        return data


def _codings(content_encoding: bytes) -> list[str]:
    """The codings that a Content-Encoding lists, in lower case, in the order in which they were applied."""
    parts = map(str.strip, content_encoding.decode("latin-1").lower().split(","))
    return [part for part in parts if part not in ("", "identity")]


class _Layer:
    """One coding.  If its decoder fails before it has given anything out, the next one for the label is tried."""

    def __init__(self, readings: tuple[Callable[[], _Codec], ...], limit: int) -> None:
        self._readings = iter((*readings, _as_it_is))
        self._codec = next(self._readings)()
        self._pending = bytearray()
        self._left = limit
        self._begun = False

    def decode(self, data: bytes) -> bytes:
        if not self._begun:
            self._pending += data
        try:
            decoded = self._codec(data, self._left + 1)
        except _BROKEN:
            return self._after_error()
        if decoded and not self._begun:
            self._begun = True
            self._pending.clear()
        self._left -= len(decoded)
        if self._left < 0:
            raise DecodedTooBig
        return decoded

    def _after_error(self) -> bytes:
        if self._begun:
            self._codec = _nothing
            return b""
        self._codec = next(self._readings)()
        data = bytes(self._pending)
        self._pending.clear()
        return self.decode(data)


def _inflate(window_bits: int) -> Callable[[], _Codec]:
    """What makes a codec for deflate data; *window_bits* selects the wrapping, as in zlib."""

    def make() -> _Codec:
        stream = zlib.decompressobj(window_bits)

        def decode(data: bytes, most: int) -> bytes:
            if stream.eof:
                return b""
            before = stream.copy()  # after an error, what the call has decoded is lost
            try:
                return stream.decompress(data, most)
            except zlib.error:
                return _salvage(before, data, most)

        return decode

    return make


def _salvage(stream: zlib._Decompress, data: bytes, most: int) -> bytes:
    """The part of broken *data* that can be decoded, at most *most* bytes; raises zlib.error if there is none."""
    decoded = bytearray()
    try:
        for start in range(0, len(data), 8):
            decoded += stream.decompress(data[start : start + 8], most - len(decoded))
            if len(decoded) >= most:
                break
    except zlib.error:
        if not decoded:
            raise
    return bytes(decoded)


def _brotli() -> _Codec:
    stream = brotli.Decompressor()

    def decode(data: bytes, most: int) -> bytes:
        decoded = bytearray()
        while not stream.is_finished() and len(decoded) < most:
            piece = stream.process(data, output_buffer_limit=most - len(decoded))
            if not piece:
                break
            decoded += piece
            data = b""  # while input is missing, one call gives out at most 32 kB of what is ready: ask again
        return bytes(decoded)

    return decode


def _zstd() -> _Codec:
    # RFC 9659: no window beyond 8 MB may be asked of a receiver
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
    return lambda data, most: b"" if stream.eof else stream.decompress(data, most)


def _as_it_is() -> _Codec:
    return lambda data, most: data


def _nothing(data: bytes, most: int) -> bytes:
    return b""


_GZIP = (_inflate(31),)
_CODECS: dict[str, tuple[Callable[[], _Codec], ...]] = {
    "gzip": _GZIP,
    "x-gzip": _GZIP,
    "deflate": (_inflate(15), _inflate(-15)),  # zlib's wrapping by RFC 9110, none by some servers
    "br": (_brotli,),
    "zstd": (_zstd,),
}
