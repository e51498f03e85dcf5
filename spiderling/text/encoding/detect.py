"""Decodes the bytes of a page: the content decides, labels are only evidence.

The first of these that fits is taken:
1. a byte order mark, or NUL in every second byte (UTF-16);
2. the escape sequences of ISO-2022-JP;
3. UTF-8, perhaps with damaged characters and with words in another encoding, which their spelling tells;
4. the label of the HTTP header, then that of the page, if the body decodes without error
   and no known language explains the bytes clearly better in another encoding;
5. the encoding in which the bytes spell words of a known language best (spelling.py);
6. what chardet finds among the encodings of the accepted languages.

Browsers go by the label alone (WHATWG Encoding Standard), after a byte order mark.
labels.py says which codec a label means.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import chardet

from spiderling.text.encoding.labels import codec_of, codecs_of
from spiderling.text.encoding.mending import LOST, MAX_BAD_SHARE, mixed
from spiderling.text.encoding.spelling import POOR_GAIN, Fit, Spelling, gain

LACKING = frozenset({"euc_jp", "iso2022_jp"})
"""Codecs that lack the characters that NEC and IBM added to JIS X 0208, such as ①, ㈱ and №.  Browsers know them in all
Japanese encodings (WHATWG Encoding Standard, index jis0208), Python in Shift_JIS (cp932) alone."""
ADDED = "spiderling-jis-added"  # name of the error handler that decodes them, and raises for any other error
_CELLS = range(0x21, 0x7F)  # numbers of rows, and of cells in a row, of JIS X 0208


def _added(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    row, cell = (byte & 0x7F for byte in pair.ljust(2, b"\0"))
    if row not in _CELLS or cell not in _CELLS:
        raise error
    # from JIS X 0208 to Shift_JIS (JIS X 0208:1997, annex 1)
    lead = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    trail = cell + (0x7E if row % 2 == 0 else 0x20 if cell >= 0x60 else 0x1F)
    return bytes((lead, trail)).decode("cp932"), error.start + 2


codecs.register_error(ADDED, _added)


_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD_BYTES = 4096  # bytes of a page that are searched for its label; chosen; the HTML standard asks for 1024
_DETECT_BYTES = 50_000  # bytes that chardet looks at; chosen
_TO_KANJI = b"\x1b$"  # escape sequence of ISO-2022-JP, which pages in other encodings do not hold
_OVERRULING_GAIN = 0.1
"""Nats for each character by which a known language must explain a text better than an unknown one with the label.
Measured: text of a known language gains .3 to 4; what is read in the wrong encoding loses .2 and more."""
_MIN_GAIN = -0.3  # the same for a page without a label: one of a known language gains -.2 and more; chosen
_MARGIN = 8.0  # natural logarithm of the odds by which an encoding must fit better than the label it overrules; chosen
_NO_MATCH = 0.1  # confidence that chardet gives an encoding without any evidence for it
_META = re.compile(rb"""<(?:meta|\?xml)[^>]{0,500}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.I)
_ASCII = bytes(range(0x80))
_CONTROLS = bytes(code for code in range(0x20) if code not in b"\t\n\r\f\x1b")
_MIXED = "utf-8 with other bytes"  # what `_decode` calls a page that a Decoded calls mended UTF-8


class Decoded(NamedTuple):
    """Text of a page, the codec that its labels name, and the codec that decoded it."""

    text: str | None  # None when no encoding fits
    declared: str | None
    detected: str | None
    is_mended: bool = False  # whether the body is UTF-8 but for some bytes, which were read otherwise or are lost


def decode(
    body: bytes, http_charset: str | None, encodings: Iterable[str] = (), spelling: Spelling | None = None
) -> Decoded:
    """Decode *body*; never raises.

    *encodings* are legacy encodings of the accepted languages; *spelling* is that of all languages to be recognised.
    """
    labels = [label for label in (http_charset, _meta_label(body)) if label]
    named = codecs_of(labels)
    declared = named[0] if named else (labels[0].lower()[:40] if labels else None)
    text, detected = _decode(body, named, codecs_of(encodings), spelling)
    return Decoded(text, declared, detected) if detected != _MIXED else Decoded(text, declared, "utf-8", True)


def _decode(
    body: bytes, labels: Sequence[str], accepted: Sequence[str], spelling: Spelling | None
) -> tuple[str | None, str | None]:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    wide = _utf16_without_mark(body)
    if wide:
        return body.decode(wide, "replace"), wide
    text = _strict(body, "iso2022_jp") if _TO_KANJI[0] in body and _TO_KANJI in body else None
    if text is not None:
        return text, "iso2022_jp"
    with suppress(UnicodeDecodeError):
        return body.decode("utf-8"), "utf-8"
    text = mixed(body, labels, accepted, spelling)
    if text is None:
        return _legacy(body, labels, accepted, spelling)
    return (text, _MIXED) if text else (None, None)


def _legacy(
    body: bytes, labels: Sequence[str], accepted: Sequence[str], spelling: Spelling | None
) -> tuple[str | None, str | None]:
    """Text and codec of a page that is in no Unicode encoding."""
    fits = spelling.fits(body, labels, accepted) if spelling else {}
    best = max(fits, key=lambda name: fits[name].score, default=None)
    for name in labels:
        text = None if best and _overrules(fits.get(name), fits[best]) else _strict(body, name)
        if text is not None:
            return text, name
    best_gain = gain(fits[best], fits.values()) if best else -math.inf
    if best and best_gain > _MIN_GAIN:
        text = _strict(body, best) or body.decode(best, "replace")
        if _looks_like_text(text):
            return text, best
    return _detect(body, labels, accepted, best if best_gain > POOR_GAIN else None)


def _overrules(label: Fit | None, best: Fit) -> bool:
    """Whether a known language fits clearly better, and explains the bytes better than the label in any language."""
    return label is not None and best.score - label.score > _MARGIN and gain(best, (label,)) > _OVERRULING_GAIN


def _meta_label(body: bytes) -> str | None:
    match = _META.search(body, 0, _HEAD_BYTES)
    label = match[1].decode("ascii", "replace") if match else None
    # a label that can be read as ASCII proves that the page is not in UTF-16 (HTML standard, "prescan")
    return "utf-8" if (codec_of(label) or "").startswith("utf-16") else label


def _utf16_without_mark(body: bytes) -> str | None:
    """The codec of UTF-16 without a byte order mark (every second byte of mark-up is NUL); None for anything else."""
    head = body[:1000]
    if head.count(0) * 4 < len(head) or len(head) < 20:
        return None
    low = head[::2].count(0)
    high = head[1::2].count(0)
    wide = "utf-16-le" if high > low else "utf-16-be"
    return wide if max(low, high) >= 10 * min(low, high) else None


def _strict(body: bytes, name: str) -> str | None:
    if name.startswith("utf"):  # UTF-8 was tried; eight-bit text is nearly always "valid" UTF-16
        return None
    try:
        return body.decode(name, ADDED if name in LACKING else "strict")
    except (UnicodeDecodeError, ValueError):
        return None


def _detect(
    body: bytes, labels: Sequence[str], accepted: Sequence[str], best: str | None
) -> tuple[str | None, str | None]:
    """Text and codec by chardet, else a label that fits but for few bytes, *best*, cp1252 if nearly all is ASCII."""
    names = sorted(
        name.replace("_", "-") for name in {*accepted, *labels, "cp1252"} if not name.startswith(("utf", "iso2022"))
    )
    found = chardet.detect(_telling(body), include_encodings=names, compat_names=False)
    guess = found["encoding"] if found["confidence"] > _NO_MATCH else None
    names = [name for name in (codec_of(guess), *labels, best) if name is not None]
    if len(body.translate(None, _ASCII)) <= MAX_BAD_SHARE * len(body):
        names.append("cp1252")  # too few non-ASCII bytes tell no encoding: browsers take this one
    texts = ((body.decode(name, "replace"), name) for name in names)
    return next((found for found in texts if _looks_like_text(found[0])), (None, None))


def _telling(body: bytes) -> bytes:
    """The texts between tags that hold non-ASCII bytes; ASCII tells nothing about the encoding."""
    return b" ".join(run for run in re.split(rb"[<>]", body) if not run.isascii())[:_DETECT_BYTES]


def _looks_like_text(text: str) -> bool:
    sample = text[:_DETECT_BYTES].encode("utf-8", "replace")
    odd = len(sample) - len(sample.translate(None, _CONTROLS)) + sample.count(LOST.encode())
    return odd <= MAX_BAD_SHARE * len(text[:_DETECT_BYTES])
