"""Makes receipts (corpus/receipts.py) from the consent ledger of a crawl: at its end, and in an export.

What was in force when a document was fetched: of each file of its origin, and of each licence that its robots.txt
names, the answers that had come by then and were followed by no other.  If a site went back to an earlier answer, the
ledger does not say when, and both are named.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, TypeAlias

from spiderling.base.errors import DamageError
from spiderling.base.files import checksum, replacing, saving
from spiderling.base.urls import canonicalize_again
from spiderling.corpus.receipts import (
    CONSENT,
    RECEIPT_BYTES,
    RECEIPTS,
    ConsentFile,
    MerkleTree,
    Receipt,
    consent_lines,
    documents_in,
    leaf_of,
    receipts_in,
)
from spiderling.frontier.known_files import keys_of_body
from spiderling.frontier.storage.protocol import ConsentRow
from spiderling.jobdir.inspection import Segment
from spiderling.jobdir.state_reader import connected, telling_damage

_VALUES = [re.compile(rb' %s="([^"]*)"' % name) for name in (b"url", b"crawl_date")]
_ROWS = f"SELECT {', '.join(ConsentRow._fields)} FROM consent WHERE origin = ?"  # noqa: S608 - names of columns
_LICENCE = "license:"  # what the ledger writes before the address of a licence that a robots.txt names
_AT_END = "\uffff"  # later than each time


class ConsentLedger:
    """What the sites of a crawl said, by its state; one that is open may be written meanwhile."""

    def __init__(self, databases: Iterable[Path]) -> None:
        """*databases*: the states of the crawl, of all its shards that are here."""
        self.databases = [*databases]
        self._connections: list[sqlite3.Connection] = []

    def rows(self, origin: str) -> list[ConsentRow]:
        """The answers of *origin*, and those to the licences that its robots.txt names, the oldest first."""
        found = self._of(origin)
        said = {word for row in found for word in row.says.split() if word.startswith(_LICENCE)}
        for target in filter(None, (canonicalize_again(word.removeprefix(_LICENCE)) for word in sorted(said))):
            found += [row for row in self._of(target.origin) if row.file == target.path and row not in found]
        return sorted(found, key=lambda row: (row.origin, row.file, row.first, row.answer, row.digest))

    def text(self, row: ConsentRow) -> bytes | None:
        """The file that came with the answer *row*; None if the state has it no more."""
        for key in keys_of_body(row):
            for body, *_ in self._read("SELECT body FROM robots WHERE origin = ?", key):
                text = b""
                with suppress(zlib.error):
                    text = zlib.decompress(body)
                if hashlib.sha256(text).hexdigest() == row.digest:
                    return text
        return None

    def _of(self, origin: str) -> list[ConsentRow]:
        return [ConsentRow._make(row) for row in self._read(_ROWS, origin)]

    def _read(self, query: str, *values: str) -> Iterator[Any]:
        self._connections = self._connections or [*map(connected, self.databases)]
        for connection in self._connections:
            yield from connection.execute(query, values).fetchall()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections = []


class ReceiptMaker:
    """Makes receipts, and the consent file to which they point."""

    def __init__(self, file: IO[bytes], former: Iterable[bytes] = ()) -> None:
        """*file*: the consent file; *former*: the lines with which it begins."""
        self.consent = ConsentFile(file, former)
        self._known: dict[tuple[ConsentLedger, str], tuple[str, str, int]] = {}
        """Ledger and origin, as URLs begin -> from when to when it said what stands in a line of the consent file."""

    def receipt(self, document: bytes, url: str, date: str, ledger: ConsentLedger | None) -> Receipt:
        """The receipt of a *document* from *url*, fetched at *date*, as in ``crawl_date``."""
        line = self._line(url, date, ledger) if ledger is not None else 0
        return Receipt(leaf_of(document, self.consent.hashes[line]), line, len(document))

    def receipts(
        self, documents: Iterable[bytes], ledger: ConsentLedger, former: Iterable[Receipt] = ()
    ) -> Iterator[Receipt]:
        """Those of documents of a segment; of what it had, the *former* ones."""
        left: defaultdict[int, list[Receipt]] = defaultdict(list)
        for receipt in former:
            left[receipt.length].append(receipt)
        for document in documents:
            alike = left[len(document)]
            same = next((receipt for receipt in alike if self._is_of(receipt, document)), None)
            if same is not None:
                alike.remove(same)
                yield same
                continue
            found = [pattern.search(document) for pattern in _VALUES]
            url, date = (match[1].decode() if match else "" for match in found)
            yield self.receipt(document, url, date, ledger)

    def _is_of(self, receipt: Receipt, document: bytes) -> bool:
        hashes = self.consent.hashes[receipt.line : receipt.line + 1]
        return receipt.leaf in [leaf_of(document, said) for said in hashes]

    def _line(self, url: str, date: str, ledger: ConsentLedger) -> int:
        place = ledger, "/".join(url.split("/", 3)[:3])
        since, until, line = self._known.get(place, ("", "", 0))
        if not since <= date < until:
            target = canonicalize_again(url)
            with telling_damage(ledger.databases[0]):
                since, until, line = self._looked_up(ledger, target.origin if target else "", date)
            self._known[place] = since, until, line
        return line

    def _looked_up(self, ledger: ConsentLedger, origin: str, date: str) -> tuple[str, str, int]:
        rows = ledger.rows(origin)
        times = [_date(row.first) for row in rows]
        since = max((time for time in times if time <= date), default="")
        until = min((time for time in times if time > date), default=_AT_END)
        known = [row for row, time in zip(rows, times, strict=True) if time <= date]
        said = []
        texts = []
        for row in known:
            if any(row[:2] == later[:2] and row.last < later.first for later in known):
                continue
            about = {"url": row.origin + row.file, "answer": row.answer, "since": _date(row.first)}
            if row.digest:
                text = ledger.text(row)
                about |= {"sha256": row.digest} | ({"text": "not kept"} if text is None else {})
                texts += [] if text is None else [text]
            said.append(about | ({"says": row.says} if row.says else {}))
        return since, until, self.consent.add({"origin": origin, "said": said}, texts) if said else 0


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


# -- the receipts of a crawl's corpus


class _Former:
    """The receipts that the last card has, by file; if they are not as it says, what may be of use of them."""

    def __init__(self, corpus: Path, manifest: Mapping[str, Any]) -> None:
        self.lines: Sequence[bytes] = ()  # of the consent file
        self.files: dict[str, tuple[int, str, bytes]] = {}  # name -> bytes, checksum and receipts
        self.spare: list[Receipt] = []  # of no known file: a kill left the card before these, or they are damaged
        with suppress(OSError, DamageError, KeyError, TypeError, ValueError):  # whatever the files hold
            data = (corpus / RECEIPTS).read_bytes()
            spare = [*receipts_in(data)]
            self.lines = [*consent_lines(corpus / CONSENT)]
            self.spare = spare
            parts = [*parts_of(manifest, data)]
            if MerkleTree(receipt.leaf for receipt in spare).root() == manifest["receipts"]["root"]:
                self.files = {file["name"]: (file["bytes"], file["sha256"], part) for file, part in parts}
                self.spare = []


def parts_of(manifest: Mapping[str, Any], data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Each file in *manifest* with its receipts, which are in *data*; raises KeyError and TypeError."""
    start = 0
    for file in manifest["files"]:
        end = start + RECEIPT_BYTES * (file["documents"] + file.get("taken_down", 0))
        yield file, data[start:end]
        start = end


Taken: TypeAlias = "Mapping[str, tuple[str, Sequence[int]]]"
"""Segment that was written anew -> its former name, and the numbers of its documents that were taken from it."""
NONE: Taken = MappingProxyType({})


def write_receipts(
    corpus: Path, manifest: Mapping[str, Any], segments: Sequence[Segment], ledger: ConsentLedger, taken: Taken = NONE
) -> tuple[str, dict[str, int]]:
    """Write the receipts and the consent file of the *segments* in the directory *corpus*; raises StorageError.

    Returns the root, and by file the number of documents that were taken down.
    *manifest*: that of the last card.  What it has of a segment is not made again.  If a segment was written anew, or
    is gone, the receipts of documents that are nowhere now go behind the last one.  What was *taken* need not be found.
    """
    former = _Former(corpus, manifest)
    has_former = bool(former.files)
    numbers: dict[str, int] = {}
    tree = MerkleTree()
    lost = [receipt for receipt in former.spare if not receipt.length]  # and those of segments that were written anew
    made: Counter[bytes] = Counter()  # leaves that are not known to be those of the last card
    with saving(corpus), replacing(corpus / CONSENT) as consent, replacing(corpus / RECEIPTS) as file:
        maker = ReceiptMaker(consent, former.lines)
        for place, (path, length, entries) in enumerate(segments, 1):
            name, gone = taken.get(path.name, (path.name, ()))
            written, digest, data = former.files.pop(name, (0, "", b""))
            standing = [receipt for receipt in receipts_in(data) if receipt.length] if gone else []
            if gone and len(standing) == entries + len(gone):
                lost += [receipt for receipt in receipts_in(data) if not receipt.length]
                lost += [standing.pop(number) for number in reversed(gone)]
                data = b"".join(receipt.packed() for receipt in standing)
            elif written != length:
                has_grown = 0 < written < length and checksum(path, written) == digest
                start = written if has_grown else 0
                # a state that was made anew does not know any more what sites said
                known = () if has_grown else [*receipts_in(data), *former.spare]
                found = [*maker.receipts(documents_in(path, length, start), ledger, known)]
                if not has_grown:
                    lost += receipts_in(data)
                    made.update(receipt.leaf for receipt in found if has_former)
                data = data[: len(data) * has_grown] + b"".join(receipt.packed() for receipt in found)
            if place == len(segments):
                lost += chain.from_iterable(receipts_in(gone) for _, _, gone in former.files.values())
                data += b"".join(receipt.packed() for receipt in _taken_down(lost, made))
            for receipt in receipts_in(data):
                tree.add(receipt.leaf)
            numbers[path.name] = len(data) // RECEIPT_BYTES - entries
            file.write(data)
        maker.consent.flush()
    return tree.root(), numbers


def _taken_down(former: Iterable[Receipt], made: Counter[bytes]) -> Iterator[Receipt]:
    """Those of *former* whose documents are not among those *made* now."""
    for receipt in former:
        if receipt.length and made[receipt.leaf]:
            made[receipt.leaf] -= 1
        else:
            yield receipt._replace(length=0)
