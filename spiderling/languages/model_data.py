"""Writes a language model, and reads its n-grams: what needs numpy and the text chain (see model_files.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from spiderling.base.errors import BadInput
from spiderling.base.zstd import frame_packer, unpack_frame, zstd
from spiderling.languages.model_files import CONTRAST, DESCRIPTION, NGRAMS, WORDS, damaged
from spiderling.text import LanguageModel
from spiderling.text.ngrams import NgramCounts, codepoints

if TYPE_CHECKING:
    from importlib.abc import Traversable

_LEVEL = 19
"""Level of zstd; chosen: the highest that needs no large memory."""
_MAX_BYTES = 100_000_000
"""Unpacked bytes of n-grams that are read; chosen."""
_COUNT_BYTES = 4
"""Bytes of a count."""


def save(directory: Path, description: Mapping[str, Any], model: LanguageModel) -> int:
    """Write a model's files except its seeds; returns their bytes together.

    *description* adds values of language.yaml that *model* does not hold.  Raises BadInput.
    """
    values = {
        "code": model.code,
        **description,
        "spaced": model.spaced,
        "known": model.known,
        "unlisted": model.unlisted,
        "tokens": model.tokens,
        "badness": {word: list(expected) for word, expected in model.profile.items()},
    }
    document = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=120, default_flow_style=None)
    table = "".join(f"{word}\t{count}\n" for word, count in model.words.items())
    parts = {DESCRIPTION: document.encode(), WORDS: table.encode(), NGRAMS: pack(model.ngrams)}
    if model.contrast:
        parts[CONTRAST] = "".join(f"{word}\n" for word in sorted(model.contrast)).encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in parts.items():
            (directory / name).write_bytes(data)
    except OSError as error:
        reason = f"the model cannot be written to {directory} ({error.strerror})"
        raise BadInput(f"{reason}; name another directory with --out.") from None
    return sum(map(len, parts.values()))


def read_ngrams(directory: Traversable) -> NgramCounts:
    """The n-gram counts; raises BadInput."""
    try:
        return unpack(directory.joinpath(NGRAMS).read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(directory.name, NGRAMS, error) from None


def pack(ngrams: NgramCounts) -> bytes:
    """The bytes of ngrams.zst."""
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
