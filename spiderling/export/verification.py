"""Checks a published corpus by its card, without the state of its crawl: files, documents, statements (receipts.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spiderling.base.errors import BadInput, DamageError, StorageError
from spiderling.base.files import checksum
from spiderling.corpus.receipts import (
    CONSENT,
    NOBODY,
    RECEIPTS,
    SUMS,
    MerkleTree,
    Receipt,
    consent_lines,
    leaf_of,
    receipts_in,
    statement_line,
    text_of,
)
from spiderling.corpus.segments import SUFFIX, unpacked
from spiderling.export.croissant import CROISSANT
from spiderling.export.formats import TEI_TAIL
from spiderling.export.records import parquet_lines
from spiderling.jobdir.card import MANIFEST, README, beside, read_manifest
from spiderling.jobdir.consent import parts_of
from spiderling.jobdir.inspection import parts_in
from spiderling.text.prevertical import escape

_STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError, RecursionError, MemoryError)
"""What files of a card raise that nobody of us wrote."""
_MAX_DOCUMENT_BYTES = 1 << 28  # bytes of a document that are read at most; chosen: the longest of ours has a fifth
_SUM = re.compile(r"([0-9a-f]{64})  ([^\n]+)\n")
_MARKUP = ' url="{}"'
_URL: dict[str, tuple[str, Callable[[str], str]]] = {
    "prevertical": (_MARKUP, escape),
    "vertical": (_MARKUP, escape),
    "conllu": ("# meta::url = {}\n", str),
    "tei": (">{}</ref>", escape),
    "jsonl": ('"url": {},', partial(json.dumps, ensure_ascii=False)),
    "parquet": ('"url": {},', partial(json.dumps, ensure_ascii=False)),
}
"""Format -> how a document in it names its URL, and how that is written; others name none."""


class Card(NamedTuple):
    """The files of a card."""

    directory: Path  # to which the names of the manifest are relative
    out: Path | None  # the file of an export; None: the directory has the card

    def named(self, name: str) -> Path:
        return self.directory / name if self.out is None else beside(self.out, name)

    def file(self, name: str) -> Path:
        """A file that the card lists; raises DamageError if it is not below the directory."""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            raise DamageError(f"the card names {name!r}, which is no file of the corpus.")
        return self.directory / name


def cards_of(place: Path) -> list[Card]:
    """The card of a corpus, or those of the shards of a crawl; raises BadInput if there is none."""
    if not place.is_dir():
        found = [Card(place.parent, place)]
    elif (place / MANIFEST).exists():
        found = [Card(place, None)]
    else:
        parts = [part / "corpus" for part in parts_in(place)]  # a shard without a document has no card
        found = [Card(part, None) for part in parts if any(part.glob(f"*{SUFFIX}"))] or [Card(parts[0], None)]
    for card in found:
        if not card.named(MANIFEST).exists():
            raise BadInput(
                f"{place} has no card ({card.named(MANIFEST)} is missing); give a corpus of a crawl, an export or its "
                "directory."
            )
    return found


class Verification:
    """Checks one corpus, and collects what is wrong."""

    def __init__(self, card: Card, url: str = "") -> None:
        """*url*: that of a document whose receipts are collected too."""
        self.findings: list[str] = []
        self.receipts: list[str] = []  # of documents of the URL, in lines
        self.root = ""
        self.documents = 0
        self.taken_down = 0
        self.statements = 0
        self._card = card
        self._manifest = read_manifest(card.named(MANIFEST))
        self._tree = MerkleTree()
        self._hashes = bytearray(NOBODY)  # of the lines of the consent file, by number
        how = _URL.get(str(self._manifest.get("format")))
        if url and how is None:
            raise BadInput(f"the documents of this format name no URL; {card.named(MANIFEST)} says which it is.")
        self._needle = how[0].format(how[1](url)).encode() if url and how else b""
        self._check_sums()
        for check in (self._check_statements, self._check_documents):
            try:
                check()
            except (DamageError, *_STRANGE) as error:
                self.findings.append(
                    str(error) if isinstance(error, DamageError) else f"in no form of ours: {error!r}."
                )

    def _check_sums(self) -> None:
        """Compare each file with its checksum, and the list of checksums with the card."""
        card = self._card
        with suppress(*_STRANGE):
            text = card.named(SUMS).read_bytes().decode()
            others = {card.named(name).name for name in (RECEIPTS, CONSENT, README, MANIFEST)}
            others |= {CROISSANT} if "configs" in self._manifest else set()
            wanted = others | {file["name"] for file in self._manifest["files"]}
            sums = {name: digest for digest, name in _SUM.findall(text)}
            if sums.keys() != wanted or "".join(f"{sums[name]}  {name}\n" for name in sums) != text:
                self.findings.append(f"{card.named(SUMS).name} does not list the files of the card.")
            for name in sorted(sums.keys() & wanted):
                self._check_sum(name, sums[name])
            for file in self._manifest["files"]:
                if sums.get(file["name"]) != file["sha256"]:
                    self.findings.append(f"{file['name']} has another checksum in the card than in the list.")
            return
        self.findings.append(f"{card.named(SUMS).name} or {card.named(MANIFEST).name} cannot be read.")

    def _check_sum(self, name: str, digest: str) -> None:
        try:
            found = checksum(self._card.file(name))
        except (StorageError, DamageError) as error:
            self.findings.append(str(error))
            return
        if found != digest:
            self.findings.append(f"{name} is not as its checksum says; a crawl that goes on writes that at its end.")

    def _check_statements(self) -> None:
        known = set()
        texts = {""}  # hashes of those up to here; a line that names one comes behind it
        for number, line in enumerate(consent_lines(self._card.named(CONSENT)), 1):
            digest = sha256(line).digest()
            if digest in known:  # so a file that is small when packed needs little memory
                raise DamageError(f"line {number} of {CONSENT} stands there twice, which none of ours does.")
            known.add(digest)
            self._hashes += digest
            value = json.loads(line)
            if "sha256" in value:
                texts.add(value["sha256"])
                if statement_line(text_of(value)) != line:
                    self.findings.append(f"statement {value['sha256']} has been changed.")
            for said in value.get("said", ()):
                if said.get("sha256", "") not in texts and "text" not in said:
                    self.findings.append(f"the statement of {said['url']} is missing.")
        self.statements = len(texts) - 1

    def _check_documents(self) -> None:
        data = self._card.named(RECEIPTS).read_bytes()
        size = 0
        for file, part in parts_of(self._manifest, data):
            size += len(part)
            receipts = [*receipts_in(part)]
            if sum(receipt.length > 0 for receipt in receipts) != file["documents"]:
                self.findings.append(f"{file['name']} has not as many receipts as the card says documents.")
            self._check_file(file["name"], receipts)
        self.root = self._tree.root()
        if size != len(data) or self.root != self._manifest["receipts"]["root"]:
            self.findings.append(f"the receipts do not give the root that the card states, but {self.root}.")

    def _check_file(self, name: str, receipts: list[Receipt]) -> None:
        for receipt in receipts:
            self._tree.add(receipt.leaf)
        left = [(number, receipt) for number, receipt in enumerate(receipts, 1) if receipt.length]
        self.taken_down += len(receipts) - len(left)
        self.documents += len(left)
        found = self._documents(self._card.file(name), [receipt.length for _, receipt in left])
        for (number, receipt), document in zip(left, found, strict=True):
            at = len(NOBODY) * receipt.line
            digest = bytes(self._hashes[at : at + len(NOBODY)])
            if leaf_of(document, digest) != receipt.leaf or len(document) != receipt.length:
                self.findings.append(f"document {number} of {name} is not what its receipt says.")
            if self._needle and self._needle in document:
                self.receipts.extend(self._told(f"document {number} of {name}", receipt))

    def _documents(self, path: Path, lengths: list[int]) -> Iterator[bytes]:
        """The documents in a file; raises DamageError if it holds something else."""
        if self._manifest["format"] == "parquet":
            yield from (line.encode() for line in parquet_lines(path))
            return
        with unpacked(path) as file:
            for length in lengths:
                if length > _MAX_DOCUMENT_BYTES:
                    raise DamageError(f"a receipt of {path} is of {length:,} bytes, which no document has.")
                yield file.read(length)
            tail = TEI_TAIL.encode() if self._manifest["format"] == "tei" else b""
            if file.read(len(tail) + 1) != tail:
                raise DamageError(f"{path} holds more than the documents of its receipts.")

    def _told(self, which: str, receipt: Receipt) -> Iterator[str]:
        lines = [b"{}", *islice(consent_lines(self._card.named(CONSENT)), max(0, receipt.line - 1), receipt.line)]
        said = json.loads(lines[-1])
        wanted = {one.get("sha256") for one in said.get("said", ())}
        values = map(json.loads, consent_lines(self._card.named(CONSENT)) if wanted else ())
        texts = {value["sha256"]: text_of(value) for value in values if value.get("sha256") in wanted - {None}}
        yield f"{which}: leaf {receipt.leaf.hex()}"
        yield f"  {said.get('origin', 'nothing is known of its site')}"
        for one in said.get("said", ()):
            about = [f"{name} {one[name]}" for name in ("since", "sha256", "says") if name in one]
            yield f"  {one['url']} answered {one['answer']}, {', '.join(about)}"
            text = texts.get(one.get("sha256", ""), b"")
            yield from (f"    {line}" for line in text.decode("utf-8", "replace").expandtabs().splitlines())
