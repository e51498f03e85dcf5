"""Receipts: what proves that a document of a corpus is as it was, and which statements of its site allowed it.

A corpus has beside its files, in their order:

- ``receipts.bin``, 40 bytes a document: its leaf, a line of the consent file, the bytes that it has in its file;
- ``consent.jsonl.gz``: each text of a robots.txt, tdmrep.json, ai.txt or licence once, and for each site, and each
  time at which it said something else, which of them were in force.

A leaf is the hash of the document and of its line of the consent file, which names texts by their hashes.  The leaves
are a Merkle tree by RFC 6962, section 2.1, whose root the card states.  So whoever trusts the root can check each text
without the others.  A document that was taken down keeps its leaf, and its length becomes 0.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from spiderling.base.errors import DamageError
from spiderling.corpus.segments import frames, unpacked

RECEIPTS = "receipts.bin"
CONSENT = "consent.jsonl.gz"
SUMS = "SHA256SUMS"
NOBODY = bytes(32)  # stands in a leaf for the line of a document of whose site nothing is known, which is line 0
_END = b"</doc>\n"
_MEMBER_LINES = 1000  # lines of a gzip member of the consent file; chosen
MAX_LINE_BYTES = 64_000_000  # bytes of a line that is read at most; chosen: far more than any site file takes
_PACKED = struct.Struct(">32sII")
RECEIPT_BYTES = _PACKED.size


class Receipt(NamedTuple):
    """What a corpus states of one document."""

    leaf: bytes
    line: int  # of the consent file, from 1 on; 0: nothing is known of what the site said
    length: int  # bytes of the document where it stands, unpacked; 0: it was taken down

    def packed(self) -> bytes:
        return _PACKED.pack(*self)


def receipts_in(data: bytes) -> Iterator[Receipt]:
    """The receipts in *data*; raises DamageError if it is no whole number of them."""
    try:
        yield from map(Receipt._make, _PACKED.iter_unpack(data))
    except struct.error as error:
        raise DamageError(f"{RECEIPTS} breaks off in the middle of a receipt.") from error


def leaf_of(document: bytes, said: bytes) -> bytes:
    """The leaf of *document*; *said*: the hash of its line of the consent file."""
    return hashlib.sha256(b"\0" + said + document).digest()


class MerkleTree:
    """The root of a Merkle tree whose leaves come one by one; it keeps as many hashes as their number has bits."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._peaks: list[tuple[int, bytes]] = []  # leaves below, and hash, of each whole tree, the largest first
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: bytes) -> None:
        size = 1
        while self._peaks and self._peaks[-1][0] == size:
            leaf = _joined(self._peaks.pop()[1], leaf)
            size *= 2
        self._peaks.append((size, leaf))

    def root(self) -> str:
        """In hexadecimal; that of no leaf is the hash of nothing."""
        if not self._peaks:
            return hashlib.sha256().hexdigest()
        *others, (_, node) = self._peaks
        for _, left in reversed(others):
            node = _joined(left, node)
        return node.hex()


def _joined(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


class ConsentFile:
    """Writes a consent file; a line that stands there is not written again."""

    def __init__(self, file: IO[bytes], former: Iterable[bytes] = ()) -> None:
        """*former*: the lines with which it begins."""
        self._file = file
        self._waiting: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self.hashes = [NOBODY]  # by number of the line
        for line in former:
            self._write(line)

    def add(self, said: dict[str, Any], texts: Iterable[bytes] = ()) -> int:
        """The number of the line for what a site *said*, before which the *texts* that it names stand."""
        for text in texts:
            self._write(statement_line(text))
        return self._write(_line(said))

    def _write(self, line: bytes) -> int:
        digest = hashlib.sha256(line).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self.hashes)
            self.hashes.append(digest)
            self._waiting.append(line)
            if len(self._waiting) >= _MEMBER_LINES:
                self.flush()
        return self._numbers[digest]

    def flush(self) -> None:
        """Write what waits; a file without lines is an empty member."""
        self._file.write(gzip.compress(b"".join(self._waiting), mtime=0))
        self._waiting = []


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def statement_line(text: bytes) -> bytes:
    """The line of the consent file that has a text under its hash; in base 64 if it is no UTF-8."""
    digest = {"sha256": hashlib.sha256(text).hexdigest()}
    try:
        return _line(digest | {"text": text.decode()})
    except UnicodeDecodeError:
        return _line(digest | {"base64": base64.b64encode(text).decode()})


def text_of(statement: dict[str, Any]) -> bytes:
    """The text in a line of the consent file; raises KeyError and ValueError if there is none."""
    return statement["text"].encode() if "text" in statement else base64.b64decode(statement["base64"], validate=True)


def consent_lines(path: Path) -> Iterator[bytes]:
    """The lines of a consent file; raises DamageError."""
    with unpacked(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            if len(line) == MAX_LINE_BYTES:
                raise DamageError(f"{path} has a line of {MAX_LINE_BYTES:,} bytes or more, which none of ours has.")
            yield line


def documents_in(path: Path, length: int, start: int = 0) -> Iterator[bytes]:
    """Each document between bytes *start* and *length* of a segment, as it stands there; raises DamageError."""
    for frame in frames(path, length, start):
        *found, rest = frame.data.split(_END)
        if rest:
            raise DamageError(f"{path} has no whole documents in the frame at byte {frame.offset:,}.")
        yield from (document + _END for document in found)
