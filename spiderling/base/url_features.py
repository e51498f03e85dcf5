"""Hashes of the words of a URL, which frontier/worth.py and worth.py count.

A text worker computes them for each link; they travel as columns of a LinkBatch.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

BITS = 16
"""Bits of a word's hash."""
OF_NAME = 2
"""Number of hashes of a host name: of its top-level domain and its first label."""
OF_PATH = 4
"""Number of hashes of a path: of its first words; 0 stands for a missing one."""
_MASK = (1 << BITS) - 1
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256)).lower()
"""Translation of bytes: ASCII letters to lower case, all others to spaces."""
_SLASH = crc32(b"/")
_NONE = [0] * OF_PATH
_MAX_BYTES = 80
"""Bytes at the beginning of a path in which words are looked for (chosen)."""


def word_hash(word: str) -> int:
    """The hash of *word*, never 0: ``/word`` in a path or as a first label, ``.name`` for a top-level domain."""
    return crc32(word.encode()) & _MASK or 1


@lru_cache(maxsize=4096)
def words_of_name(name: str) -> tuple[int, int]:
    """Hashes of a host name's top-level domain, and of its first label if that may be a language's code (else 0)."""
    label = name.partition(".")[0]
    return word_hash(name[name.rfind(".") :]), word_hash("/" + label) if len(label) == 2 else 0


def words_of_path(path: bytes) -> list[int]:
    """Hashes of the first words of two letters or more in *path*."""
    found: list[int] = []
    for word in path[:_MAX_BYTES].translate(_LETTERS).split():
        if len(word) > 1:
            found.append(crc32(word, _SLASH) & _MASK or 1)
            if len(found) == OF_PATH:
                return found
    return found + _NONE[len(found) :]


def section_of(path: bytes) -> int:
    """A checksum of the first segment of a path; 0 when there is only one."""
    end = path.find(b"/", 1)
    return crc32(path[:end]) if end > 0 else 0
