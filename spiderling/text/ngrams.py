"""Character n-grams as arrays: the n-grams of a page as hashes, which are looked up all at once; the tens of thousands
of a language with their counts."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spiderling.base.files import frame_packer, unpack_frame, zstd

MARKS = "".join(chr(code) for code in range(0x300, 0x11A00) if unicodedata.category(chr(code))[0] == "M")
"""Vowel signs, tones and accents: parts of words, though \\w does not match them.  Hindi without them is 'ह न द'."""

Array = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]
ORDER = 4  # characters of the longest n-grams of a language; chosen
_SPACE = np.uint32(ord(" "))
_BASIS = np.uint32(0x9E3779B1)  # what a hash begins with
_BEHIND_LATIN = 0x370  # first code point behind the Latin letters, but for some of Vietnamese (Unicode, Blocks.txt)
_CYRILLIC = 0x400, 0x530  # first code point of Cyrillic, and of what follows (Unicode, Blocks.txt)
LOOK_ALIKES = np.arange(_BEHIND_LATIN, dtype=np.uint32)
"""For each Latin letter the Cyrillic one that looks alike, if there is one (Unicode, confusables.txt)."""
LOOK_ALIKES[list(b"aceijopsxy")] = list(map(ord, "асеіјорѕху"))
_AE = ord("æ")
_CYRILLIC_AE = 0x4D5
"""The Latin letter that many Ossetian texts have for the Cyrillic one, which counts as the same."""
_FIRST_WIDE = 0x2E80  # first code point of ideographs, kana and syllables
_WIDE_WEIGHT = 3  # latin letters that one of these stands for; chosen, near `_SCRIPTS` in boilerplate/rules.py
_UNASSIGNED = 0x40000  # behind it are no letters and digits, but tags, selectors and private use (Unicode, Roadmaps)
_ASCII_LETTERS = bytes(code if chr(code).isalpha() else 32 for code in range(128)).lower() + bytes(128)
_ALPHABETS = np.zeros(0x2C00, np.intp)
"""Alphabet of a code point, by its block: 1 Latin, 2 Cyrillic, 3 Arabic, 0 any other or none (Unicode, Blocks.txt)."""
_ALPHABETS[0x41:0x370] = _ALPHABETS[0x1E00:0x1F00] = 1
_ALPHABETS[0x400:0x530] = 2
_ALPHABETS[0x600:0x700] = 3
_WRITTEN_SHARE = 0.15  # share of a text's n-grams from which the language counts as written in their alphabet; chosen

_KEPT_POWERS = 1 << 17  # longest text in characters whose powers of a base are kept, 2 MB; chosen: most are shorter
_LEVEL = 19  # level of zstd; chosen: the highest that needs no large memory
_MAX_BYTES = 100_000_000  # unpacked bytes of n-grams that are read; chosen
_COUNT_BYTES = 4  # bytes of a count


def normalise(text: str) -> str:
    """Lower-case words between single spaces; digits and punctuation are spaces."""
    return f" {' '.join(words(text))} "


def words(text: str) -> list[str]:
    """The words of *text* as in `normalise`."""
    if text.isascii():
        return text.encode().translate(_ASCII_LETTERS).decode().split()
    letters = lower_letters(codepoints(text.lower() if _is_special(text) else text))
    return letters.tobytes().decode("utf-32-le").split()


def normalised(texts: Sequence[str]) -> tuple[Hashes, Places, Hashes]:
    """Code points of the normalised *texts*, joined; where each text begins, and the last one ends; and the code points
    as they are written.

    Latin letters are left out of a text in which they are the minority: they are names, commands, quotations.
    """
    every = f" {'  '.join(texts)} "
    if _is_special(every):
        texts = [text.lower() if "\u03a3" in text else text.replace("\u0130", "i\u0307") for text in texts]
        every = f" {'  '.join(texts)} "
    starts = np.cumsum([0, *(len(text) + 2 for text in texts)])
    written = codepoints(every)
    chars = letters_in_lower_case().take(written, mode="clip")
    if chars.max() >= _BEHIND_LATIN:
        _blank_latin(chars, starts)
    kept = chars != _SPACE
    kept[1:] |= kept[:-1]  # keep the first of several spaces in a row
    kept[starts[:-1]] = True  # keep the space before each text
    sizes = np.add.reduceat(kept, starts[:-1], dtype=np.intp)
    kept[starts[:-1][sizes == 1] + 1] = True  # a text without letters is two spaces
    return chars[kept], np.concatenate(([0], np.cumsum(np.maximum(sizes, 2)))), written[kept]


def _blank_latin(chars: Hashes, starts: Places) -> None:
    """Blank the Latin letters among *chars* in the texts that have more others; *starts* as in `normalised`.

    One that stands beside a Cyrillic letter is a letter of that word, typed on another keyboard or misread.
    """
    latin = (chars != _SPACE) & (chars < _BEHIND_LATIN) & (chars != _AE)
    others = (chars >= _BEHIND_LATIN).view(np.uint8) + (_WIDE_WEIGHT - 1) * (chars >= _FIRST_WIDE).view(np.uint8)
    mine, theirs = (np.add.reduceat(counts, starts[:-1], dtype=np.intp) for counts in (latin, others))
    few = latin & np.repeat(mine < theirs, np.diff(starts))
    cyrillic = (chars >= _CYRILLIC[0]) & (chars < _CYRILLIC[1])
    beside = np.flatnonzero(few[1:-1] & (cyrillic[:-2] | cyrillic[2:])) + 1
    chars[beside], few[beside] = LOOK_ALIKES.take(chars[beside], mode="clip"), False
    chars[few] = _SPACE


def _is_special(text: str) -> bool:
    """Whether *text* holds a capital sigma (its lower case depends on its place) or dotted I (has two characters)."""
    return "\u03a3" in text or "\u0130" in text


def lower_letters(chars: Hashes) -> Hashes:
    """The letters among the code points *chars* in lower case, spaces for everything else; dotted I becomes i."""
    return letters_in_lower_case().take(chars, mode="clip")


def are_capital(chars: Hashes) -> npt.NDArray[np.bool_]:
    """Which of the letters *chars* are capital ones."""
    capital: npt.NDArray[np.bool_] = (lower_letters(chars) != chars) & (chars != _CYRILLIC_AE)
    return capital


@lru_cache(maxsize=1)
def letters_in_lower_case() -> Hashes:
    """For each code point its lower-case letter, or a space; a look-up takes half the time of ``str.lower``."""
    letters = ~code_points_of(re.compile(r"[\W\d_]+"))
    letters[[ord(mark) for mark in MARKS]] = True
    lower = codepoints(_every_character().replace("\u0130", "I").lower().replace(chr(_CYRILLIC_AE), chr(_AE)))
    return np.where(letters.take(lower), lower, _SPACE)


def code_points_of(pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """For each code point, whether *pattern*, which matches runs of one class of characters, matches it.

    Those behind _UNASSIGNED count as this one: looking at all takes four times as long.
    """
    every = _every_character()
    found = np.zeros(len(every), np.bool_)
    for match in pattern.finditer(every, 0, _UNASSIGNED + 1):
        found[match.start() : match.end()] = True
    found[_UNASSIGNED:] = found[_UNASSIGNED]
    return found


def _every_character() -> str:
    """All characters in the order of their code points; U+FFFF stands for surrogates, which cannot be decoded."""
    every = np.arange(0x110000, dtype="<u4")
    every[0xD800:0xE000] = 0xFFFF
    return every.tobytes().decode("utf-32-le")


def codepoints(text: str) -> Hashes:
    """Code points of *text*; a lone surrogate counts as a question mark."""
    return np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)


def hash_rows(grams: Hashes, size: int) -> Hashes:
    """32-bit hash of each row of *grams*, which have *size* columns."""
    values = np.full(len(grams), _BASIS)
    for column in range(size):
        _add(values, grams[:, column])
    return _mix(values)


def windows(chars: Hashes, largest: int) -> dict[int, Hashes]:
    """Size up to *largest* -> 32-bit hash of the n-gram that begins at each character.

    Behind the end they are padded with zeros.  An n-gram's hash goes on from that of its first characters.
    """
    padded = np.concatenate((chars, np.zeros(largest - 1, np.uint32)))
    values = np.full(len(chars), _BASIS)
    found = {}
    for size in range(1, largest + 1):
        _add(values, padded[size - 1 : size - 1 + len(chars)])
        found[size] = _mix(values)
    return found


def _add(values: Hashes, column: Hashes) -> None:
    values ^= column
    values *= np.uint32(0x01000193)
    values += np.uint32(0x7F4A7C15)


def _mix(values: Hashes) -> Hashes:
    mixed: Hashes = values ^ (values >> np.uint32(15))
    mixed *= np.uint32(0x846CA68B)
    mixed ^= mixed >> np.uint32(13)
    return mixed


def run_hashes(values: Keys, begins: Places, ends: Places, base: int) -> Keys:
    """The hash of the numbers from each of *begins* to each of *ends*: a polynomial of *base*, which is odd."""
    powers, inverses = _kept_powers(base) if len(values) < _KEPT_POWERS else _powers(base, len(values) + 1)
    sums = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values * powers[: len(values)], out=sums[1:])
    hashes: Keys = (sums[ends] - sums[begins]) * inverses[begins]
    return hashes


@lru_cache(maxsize=2)
def _kept_powers(base: int) -> tuple[Keys, Keys]:
    return _powers(base, _KEPT_POWERS)


def _powers(base: int, number: int) -> tuple[Keys, Keys]:
    """The first *number* powers of *base* and of its inverse modulo 2**64, from 1 on."""
    found = np.empty((2, number), np.uint64)
    found[:, 0] = 1
    found[:, 1:] = np.array([[base], [pow(base, -1, 1 << 64)]], np.uint64)
    np.multiply.accumulate(found, axis=1, out=found)
    return found[0], found[1]


def crossing(starts: Places, size: int) -> Places:
    """Places of the n-grams that reach into the next text or beyond the last."""
    places: Places = np.maximum(starts[1:, None] - np.arange(1, size), 0).ravel()
    return places


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """The n-grams of a language's text with their counts."""

    sizes: Mapping[int, tuple[Hashes, Hashes]]  # size -> code points (n-gram, size), and counts (n-gram)

    def __len__(self) -> int:
        return sum(len(numbers) for _, numbers in self.sizes.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NgramCounts) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> dict[str, int]:
        """The table n-gram -> count, in the order of the arrays."""
        found: dict[str, int] = {}
        for size, (grams, numbers) in self.sizes.items():
            text = grams.astype("<u4").tobytes().decode("utf-32-le")
            found |= zip((text[i : i + size] for i in range(0, len(text), size)), numbers.tolist(), strict=True)
        return found

    @property
    def letters(self) -> int:
        """Number of different characters among the 1-grams."""
        return len(self.sizes[1][1]) if 1 in self.sizes else 0

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return sum(int(numbers.sum(dtype=np.uint64)) for _, numbers in self.sizes.values())

    def weights(self) -> dict[int, Array]:
        """Size -> counts; in a language with two alphabets those of each are scaled up to both, as a page is in one."""
        parts, factors = self._alphabets()
        return {size: numbers * factors[parts[size]] for size, (_, numbers) in self.sizes.items()}

    def _alphabets(self) -> tuple[dict[int, Places], Array]:
        """Size -> alphabet of each n-gram; and for each alphabet the factor of its counts."""
        parts = {size: _alphabets(grams) for size, (grams, _) in self.sizes.items()}
        totals = np.zeros(int(_ALPHABETS.max()) + 1)
        for size, (_, numbers) in self.sizes.items():
            totals += np.bincount(parts[size], numbers, len(totals))
        written = np.flatnonzero(totals[1:] >= _WRITTEN_SHARE * totals.sum()) + 1
        factors = np.ones(len(totals), np.float32)
        factors[written] = totals[written].sum() / totals[written]
        return parts, factors

    def first(self, number: int) -> NgramCounts:
        """The n-grams with the largest `weights`, *number* for each alphabet; ties in the order of size and letters."""
        _, factors = self._alphabets()
        number *= max(1, int((factors > 1).sum()))
        counts = np.concatenate([np.zeros(0, np.float32), *self.weights().values()])
        if len(counts) <= number:
            return self
        order = np.argsort(-counts, kind="stable")
        chosen = np.zeros(len(counts), np.bool_)
        chosen[order[:number]] = True
        ends = np.cumsum([len(numbers) for _, numbers in self.sizes.values()])
        each = zip(self.sizes.items(), np.split(chosen, ends[:-1]), strict=True)
        return NgramCounts({size: (grams[mine], numbers[mine]) for (size, (grams, numbers)), mine in each})


def _alphabets(grams: Hashes) -> Places:
    """The alphabet of each n-gram, by its first letter."""
    first = grams[:, 0]
    if grams.shape[1] > 1:
        first = np.where(first == _SPACE, grams[:, 1], first)
    found: Places = _ALPHABETS.take(first, mode="clip")
    return found


def count_ngrams(texts: Iterable[str], order: int) -> NgramCounts:
    """The 1- to *order*-grams of *texts*, which are normalised; each size in the order of code points."""
    chars = codepoints("".join(texts))
    letters = np.flatnonzero(np.bincount(chars)).astype(np.uint32)
    # a letter's rank has 16 bits, enough for any text; so an n-gram of four is one 64-bit number
    ranks = np.zeros(int(letters.max(initial=0)) + 1, np.uint64)
    ranks[letters] = np.minimum(np.arange(len(letters)), 0xFFFF)
    ranks = ranks[chars]
    between = (chars[:-1] == ord(" ")) & (chars[1:] == ord(" "))  # where one text ends and the next begins
    sizes = {}
    keys = np.zeros(len(chars), np.uint64)
    inside = np.ones(len(chars), np.bool_)
    for size in range(1, order + 1):
        length = max(0, len(chars) - size + 1)
        keys = (keys[:length] << np.uint64(16)) | ranks[size - 1 :]
        inside = inside[:length]
        if size > 1:
            inside = inside & ~between[size - 2 : size - 2 + length]
        grams, numbers = np.unique(keys[inside], return_counts=True)
        shifts = np.arange(size - 1, -1, -1, dtype=np.uint64) * np.uint64(16)
        sizes[size] = letters[(grams[:, None] >> shifts) & np.uint64(0xFFFF)], numbers.astype(np.uint32)
    return NgramCounts(sizes)


def pack(ngrams: NgramCounts) -> bytes:
    """The n-grams as bytes: zstd of one line of JSON, size -> [number of n-grams, bytes of their text]; then for each
    size the n-grams joined, in UTF-8, and their counts as four planes of bytes, the lowest first."""
    head = {}
    body = []
    for size, (grams, numbers) in ngrams.sizes.items():
        text = grams.astype("<u4").tobytes().decode("utf-32-le").encode()
        head[str(size)] = [len(numbers), len(text)]
        body += [text, numbers.astype("<u4").view(np.uint8).reshape(-1, _COUNT_BYTES).T.tobytes()]
    return frame_packer(_LEVEL)(json.dumps(head).encode() + b"\n" + b"".join(body))


def unpack(data: bytes) -> NgramCounts:
    """Read the bytes of `pack`; raises ValueError for anything else."""
    try:
        raw = unpack_frame(data, _MAX_BYTES)
        head, _, body = raw.partition(b"\n")
        sizes = {}
        start = 0
        for size, (number, length) in json.loads(head).items():
            grams = codepoints(body[start : start + length].decode()).reshape(number, int(size))
            planes = np.frombuffer(body, np.uint8, number * _COUNT_BYTES, start + length)
            numbers = np.ascontiguousarray(planes.reshape(_COUNT_BYTES, number).T).view("<u4")[:, 0]
            sizes[int(size)] = grams, numbers.astype(np.uint32)
            start += length + _COUNT_BYTES * number
    except (zstd.ZstdError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"no n-gram counts: {error}") from None
    return NgramCounts(sizes)
