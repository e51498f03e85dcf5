"""The words of a URL as numbers, by which frontier/ranking/url_words.py and worth.py count.

They are worked out where a link is found, in a text worker, and travel as columns of the batch.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

BITS = 16
OF_NAME = 2
OF_PATH = 4
"""Numbers for the words of a host name, and for those of a path: the first ones; 0 stands for none."""
_MASK = (1 << BITS) - 1
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256)).lower()
"""Lower-case ASCII letters, spaces for all else."""
_SLASH = crc32(b"/")
_NONE = [0] * OF_PATH
_MAX_BYTES = 80


def word_hash(word: str) -> int:
    """That of ``/word`` for one of a path or a first label, of ``.name`` for a top-level domain."""
    return crc32(word.encode()) & _MASK or 1


@lru_cache(maxsize=4096)
def words_of_name(name: str) -> tuple[int, int]:
    """Of a host name: its top-level domain, and its first label if that may be a code of a language."""
    label = name.partition(".")[0]
    return word_hash(name[name.rfind(".") :]), word_hash("/" + label) if len(label) == 2 else 0


def words_of_path(path: bytes) -> list[int]:
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
