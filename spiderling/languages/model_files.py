"""Writes and reads the files of a language model.

    language.yaml   code, iso3, name, native, aliases, scripts, tlds, neighbours, encodings, origin and licence,
                    spaced, known, badness (word: mean, standard deviation, limit)
    words.txt       word<TAB>count, most frequent first
    ngrams.zst      counts of the character 1- to 4-grams, in which a space is a word boundary; zstd of
                    one line of JSON: size -> [number of n-grams, bytes of their text]; then for each size
                    the n-grams joined, in UTF-8, and their counts as four planes of bytes, the lowest first
    seeds.txt       one URL a line; the comment above names its kind (see `Seed`)

importlib.resources reads them, so a model may lie in a zip file.  The same model gives
the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import yaml
import zstandard

from spiderling.base.errors import BadInput
from spiderling.base.small_yaml import read_yaml
from spiderling.text import LanguageModel
from spiderling.text.ngrams import NgramCounts, codepoints

if TYPE_CHECKING:
    from importlib.abc import Traversable

DESCRIPTION = "language.yaml"
WORDS = "words.txt"
NGRAMS = "ngrams.zst"
SEEDS = "seeds.txt"
TRUSTED = "trusted"
_LEVEL = 19
"""Level of zstd; chosen: the highest that needs no large memory."""
_MAX_BYTES = 100_000_000
"""Unpacked bytes of n-grams that are read; chosen."""
_COUNT_BYTES = 4
"""Bytes of a count."""


class Seed(NamedTuple):
    """A start page of a language."""

    url: str
    kind: str
    """The section of the file that it stands in, such as news."""
    trusted: bool
    """Whether institutions edit such pages; the comment above then ends in '(trusted)'."""

    @property
    def heading(self) -> str:
        """The comment that it stands under."""
        return f"{self.kind} ({TRUSTED})".strip() if self.trusted else self.kind


def save(directory: Path, description: Mapping[str, Any], model: LanguageModel) -> int:
    """Write a model's files except its seeds; returns their bytes together.

    *description* adds values of language.yaml that *model* does not hold.  Raises BadInput.
    """
    values = {
        "code": model.code,
        **description,
        "spaced": model.spaced,
        "known": model.known,
        "tokens": model.tokens,
        "badness": {word: list(expected) for word, expected in model.profile.items()},
    }
    document = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=120, default_flow_style=None)
    table = "".join(f"{word}\t{count}\n" for word, count in model.words.items())
    parts = {DESCRIPTION: document.encode(), WORDS: table.encode(), NGRAMS: pack(model.ngrams)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in parts.items():
            (directory / name).write_bytes(data)
    except OSError as error:
        reason = f"the model cannot be written to {directory} ({error.strerror})"
        raise BadInput(f"{reason}; name another directory with --out.") from None
    return sum(map(len, parts.values()))


def read_description(directory: Traversable) -> dict[str, Any]:
    """The values of language.yaml; raises BadInput."""
    try:
        given = read_yaml(directory.joinpath(DESCRIPTION).read_bytes())
    except (BadInput, OSError) as error:
        raise damaged(directory.name, DESCRIPTION, error) from None
    if not isinstance(given, dict):
        raise damaged(directory.name, DESCRIPTION, "it is no table")
    return given


def read_words(directory: Traversable) -> dict[str, int]:
    """Word -> count; raises BadInput."""
    fields = _text(directory, WORDS).replace("\n", "\t").split("\t")[:-1]
    try:
        return dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
    except ValueError:
        raise damaged(directory.name, WORDS, "expected lines of a word, a tab and a number") from None


def read_ngrams(directory: Traversable) -> NgramCounts:
    """The n-gram counts; raises BadInput."""
    try:
        return unpack(directory.joinpath(NGRAMS).read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(directory.name, NGRAMS, error) from None


def read_seeds(directory: Traversable) -> list[Seed]:
    """The seeds; empty when there is no such file.  Raises BadInput."""
    if not directory.joinpath(SEEDS).is_file():
        return []
    return [seed for _, seed in seeds_in(_text(directory, SEEDS).splitlines())]


def seeds_in(lines: Iterable[str]) -> Iterator[tuple[int, Seed]]:
    """(number of the line, seed) for each line with a URL; the seed's kind is the comment above it."""
    kind = ""
    for number, line in enumerate(map(str.strip, lines), 1):
        if line.startswith("#"):
            kind = line.lstrip("# ")
        elif line:
            name = kind.removesuffix(f"({TRUSTED})")
            yield number, Seed(line, name.strip(), name != kind)


def pack(ngrams: NgramCounts) -> bytes:
    """The bytes of ngrams.zst."""
    head = {}
    body = []
    for size, (grams, numbers) in ngrams.sizes.items():
        text = grams.astype("<u4").tobytes().decode("utf-32-le").encode()
        head[str(size)] = [len(numbers), len(text)]
        body += [text, numbers.astype("<u4").view(np.uint8).reshape(-1, _COUNT_BYTES).T.tobytes()]
    packed: bytes = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(
        json.dumps(head).encode() + b"\n" + b"".join(body)
    )
    return packed


def unpack(data: bytes) -> NgramCounts:
    """Read the bytes of `pack`; raises ValueError for anything else."""
    try:
        raw = zstandard.decompress(data, max_output_size=_MAX_BYTES)
        head, _, body = raw.partition(b"\n")
        sizes = {}
        start = 0
        for size, (number, length) in json.loads(head).items():
            grams = codepoints(body[start : start + length].decode()).reshape(number, int(size))
            planes = np.frombuffer(body, np.uint8, number * _COUNT_BYTES, start + length)
            numbers = np.ascontiguousarray(planes.reshape(_COUNT_BYTES, number).T).view("<u4")[:, 0]
            sizes[int(size)] = grams, numbers.astype(np.uint32)
            start += length + _COUNT_BYTES * number
    except (zstandard.ZstdError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"no n-gram counts: {error}") from None
    return NgramCounts(sizes)


def damaged(code: str, name: str, reason: object) -> BadInput:
    """The error of a model file that cannot be used."""
    short = " ".join(str(reason).split())[:200]
    return BadInput(f"{name} of the model of {code} cannot be read ({short}); train it again.")


def _text(directory: Traversable, name: str) -> str:
    try:
        return str(directory.joinpath(name).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, OSError) as error:
        raise damaged(directory.name, name, error) from None
