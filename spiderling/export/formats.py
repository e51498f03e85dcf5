"""The formats of an export, and their writers.

JSONL and Parquet have the same columns (docs/formats.md), and every record has every column.  A missing value is "" in
a column of text and null in one of numbers or times, so readers that guess types from the first records guess right.

Text formats are encoded document by document and packed in frames of about a megabyte (zstd or gzip, by the name of
the file), so a file need not stay open.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path, PurePath
from typing import IO, Any

import zstandard

from spiderling.base.errors import BadInput
from spiderling.base.printing import hint
from spiderling.corpus.reader import Document, StoredDocument, parsed, unescape
from spiderling.export import tei
from spiderling.export.registry import Registry
from spiderling.text.prevertical import escape, written
from spiderling.text.tokens import tokens

FRAME_CHARS = 1_000_000
"""Characters of a frame (chosen)."""
ROW_GROUP_CHARS = 16_000_000
"""Characters of a row group of Parquet (chosen)."""
_PACKED = (".zst", ".gz")


# -- a document as a record

COLUMNS = {
    **dict.fromkeys(("id", "url", "host", "tld", "title", "lang"), "string"),
    "langs": "shares",
    "text": "text",
    **dict.fromkeys(("words", "length", "distance", "version"), "int"),
    "crawl_date": "time",
    **dict.fromkeys(
        ("published", "modified", "file_type", "text_source", "enc_declared", "enc_detected", "ip", "tls"), "string"
    ),
    **dict.fromkeys(("licence", "optout", "translated", "first_seen"), "string"),
    **dict.fromkeys(("yield", "badness", "known_share", "seen_share", "stopword_share", "sentence_words"), "float"),
    **dict.fromkeys(("repeated_share", "digit_share", "symbol_share", "good_share", "packed_share"), "float"),
    **dict.fromkeys(("top_word_share", "outlinks", "walk_weight"), "float"),
    "other": "string",
    "paragraphs": "paragraphs",
}
"""Name -> type.  ``text`` holds the paragraphs, one a line, ``other`` what pipelines of a user add, as JSON."""

_MONTH = re.compile(r"\d{4}-\d\d(?!\d)")
_INT = re.compile(r"-?\d{1,18}")


def record_of(document: Document) -> dict[str, Any]:
    """Column -> value of *document*; a malformed value counts as missing."""
    attributes = document.attributes
    record = {name: _READERS[kind](attributes.get(name, "")) for name, kind in COLUMNS.items()}
    record["text"] = "\n".join(document.paragraphs)
    further = {name: value for name, value in attributes.items() if name not in COLUMNS}
    record["other"] = json.dumps(further, ensure_ascii=False) if further else ""
    record["paragraphs"] = [
        {
            "text": text,
            "class": detail.get("class", ""),
            "kind": detail.get("kind", ""),
            "heading": detail.get("heading") == "1",
            "lang": detail.get("lang", ""),
            "dup": detail.get("dup") == "1",
        }
        for text, detail in zip(document.paragraphs, document.details, strict=True)
    ]
    return record


def schema() -> Any:
    """The pyarrow.Schema of COLUMNS."""
    import pyarrow as pa

    text = pa.string()
    flag = pa.bool_()
    paragraph = [("text", text), ("class", text), ("kind", text), ("heading", flag), ("lang", text), ("dup", flag)]
    types = {
        "string": text,
        "text": pa.large_string(),  # more than 2 GB of it may stand in a row group
        "int": pa.int64(),
        "float": pa.float64(),
        "time": pa.timestamp("ms", "UTC"),  # Parquet has no seconds
        "shares": pa.list_(pa.struct([("lang", text), ("share", pa.float64())])),
        "paragraphs": pa.list_(pa.struct(paragraph)),
    }
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])


def number(value: str) -> float | None:
    """*value* as a finite number, else None."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def month_of(attributes: Mapping[str, str]) -> str:
    """The month of the fetch, such as 2026-11; "" if it is not known."""
    found = _MONTH.match(attributes.get("crawl_date", ""))
    return found[0] if found else ""


def _int(value: str) -> int | None:
    return int(value) if _INT.fullmatch(value) else None


def _time(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # the second: a year before 1 or after 9999 by UTC
        return None


def _shares(value: str) -> list[dict[str, Any]]:
    pairs = (entry.partition(":") for entry in value.split())
    return [{"lang": language, "share": number(share)} for language, _, share in pairs]


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "text": str,
    "int": _int,
    "float": number,
    "time": _time,
    "shares": _shares,
    "paragraphs": str,
}


# -- text formats: a document as it stands in a file


def _jsonl(document: StoredDocument) -> str:
    """One line; times as ISO 8601."""
    record = record_of(parsed(document))
    time = record["crawl_date"]
    return json.dumps(record | {"crawl_date": time and f"{time:%Y-%m-%dT%H:%M:%SZ}"}, ensure_ascii=False) + "\n"


def _text(document: StoredDocument) -> str:
    return "".join(f"{paragraph}\n" for paragraph in parsed(document).paragraphs) + "\n"


def _sentence(document: StoredDocument) -> str:
    """Only the text: a shuffled sentence is a line."""
    return "".join(f"{paragraph}\n" for paragraph in parsed(document).paragraphs)


def _vertical(document: StoredDocument) -> str:
    """One token a line, with ``<g/>`` between two tokens without a space; ``<doc>`` gets its ``month``."""
    month = "" if "month" in document.attributes else written({"month": month_of(document.attributes)})
    head, _, body = document.text.partition("\n")
    lines = [head.removesuffix(">") + month + ">"]
    for line in body.split("\n"):
        if line.startswith("<") or not line:
            lines.append(line)
            continue
        for token in tokens(unescape(line)):
            lines += ["<g/>", escape(token.text)] if token.glued else [escape(token.text)]
    return "\n".join(lines)


ENCODERS: dict[str, Callable[[StoredDocument], str]] = {
    "prevertical": attrgetter("text"),
    "vertical": _vertical,
    "jsonl": _jsonl,
    "text": _text,
    "tei": tei.tei,
}
FORMATS = (*ENCODERS, "parquet")
_ENDINGS = {
    ".prevert": "prevertical",
    ".prevertical": "prevertical",
    ".vert": "vertical",
    ".vertical": "vertical",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
    ".tei.xml": "tei",
    ".xml": "tei",
}


def split_name(name: str) -> tuple[str, str]:
    """(name without endings, endings): ``cs.jsonl.zst`` -> ``cs``, ``.jsonl.zst``."""
    match = re.fullmatch(rf"(.+?)((?:{'|'.join(map(re.escape, _ENDINGS))})?(?:\.zst|\.gz)?)", name)
    return (match[1], match[2]) if match else (name, "")


def ending_of(format_name: str) -> str:
    """The usual ending of a file with that format, packed by zstd.

    >>> ending_of("vertical"), ending_of("parquet")
    ('.vert.zst', '.parquet')
    """
    ending = next(ending for ending, name in _ENDINGS.items() if name == format_name)
    return ending if format_name == "parquet" else f"{ending}.zst"


def format_of(name: str) -> str:
    """The format by a file's name, prevertical without an ending.

    Raises BadInput for an unknown ending, and for packed Parquet.
    """
    stem, ending = split_name(name)
    unknown = PurePath(stem).suffix
    if unknown and ending in ("", *_PACKED):
        raise BadInput(f"the ending {unknown} of {name} says no format; {hint(unknown, _ENDINGS, likeness=0.7)}")
    found = next((found for known, found in _ENDINGS.items() if re.match(rf"{known}\b", ending)), "prevertical")
    return checked(name, found)


def checked(name: str, format_name: str) -> str:
    """*format_name*; raises BadInput if a file with *name* cannot have that format."""
    if format_name == "parquet" and name.endswith(_PACKED):
        raise BadInput(f"{name}: Parquet is packed by itself; leave the last ending out.")
    return format_name


def packer(name: str) -> Callable[[bytes], bytes]:
    """A function that packs bytes into a frame, by the ending of *name*; a file is a sequence of frames."""
    if name.endswith(".zst"):
        return zstandard.ZstdCompressor(level=9, write_checksum=True).compress
    return (lambda data: gzip.compress(data, mtime=0)) if name.endswith(".gz") else bytes


# -- writers


def writer(
    path: Path, name: str, format_name: str, unit: str = "documents", registry: Registry | None = None
) -> TextWriter | ParquetWriter:
    """A writer to the new file *path*, which will be renamed to *name*; raises OSError and, for *name*, BadInput.

    *unit*: what each of its documents is; *registry* collects what stands in a vertical file.
    """
    if checked(name, format_name) == "parquet":
        return ParquetWriter(path)
    if format_name == "vertical":
        return VerticalWriter(path, name, registry or Registry())
    if format_name == "tei":
        return TextWriter(path, name, tei.tei, tei.HEAD, tei.TAIL)
    return TextWriter(path, name, _sentence if (format_name, unit) == ("text", "sentences") else ENCODERS[format_name])


class TextWriter:
    """Writes a text format; the file is open only during a write."""

    def __init__(
        self, path: Path, name: str, encode: Callable[[StoredDocument], str], head: str = "", tail: str = ""
    ) -> None:
        """*head* and *tail* stand before the first document and behind the last."""
        self._path = path
        self._encode = encode
        self._pack = packer(name)
        self._texts = [head] if head else []
        self._tail = tail
        self.waiting = 0
        """Characters that were added and are not in the file yet."""
        path.write_bytes(b"")

    def add(self, document: StoredDocument) -> None:
        text = self._encode(document)
        self._texts.append(text)
        self.waiting += len(text)
        if self.waiting >= FRAME_CHARS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._texts:
            with self._path.open("ab") as file:
                file.write(self._pack("".join(self._texts).encode()))
        self._texts = []
        self.waiting = 0

    def close(self) -> None:
        self._texts += [self._tail] if self._tail else []
        self.flush()


class VerticalWriter(TextWriter):
    """Writes a vertical file, and notes in *registry* what it declares."""

    def __init__(self, path: Path, name: str, registry: Registry) -> None:
        super().__init__(path, name, self._noted)
        self._registry = registry

    def _noted(self, document: StoredDocument) -> str:
        text = _vertical(document)
        self._registry.see(document.attributes, text)
        return text


class ParquetWriter:
    """Writes Apache Parquet with `schema`, packed by zstd, in row groups of ROW_GROUP_CHARS."""

    def __init__(self, file: IO[bytes] | Path) -> None:
        """*file*: a path, or an open file, which stays open."""
        from pyarrow import parquet  # large, and most runs do not need it

        self._schema = schema()
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._records: list[dict[str, Any]] = []
        self.waiting = 0
        """Characters of text that were added and are not in the file yet."""

    def add(self, document: StoredDocument) -> None:
        record = record_of(parsed(document))
        self._records.append(record)
        self.waiting += len(record["text"])
        if self.waiting >= ROW_GROUP_CHARS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        import pyarrow as pa

        if self._records:
            self._writer.write_table(pa.Table.from_pylist(self._records, self._schema))
        self._records = []
        self.waiting = 0

    def close(self) -> None:
        self.flush()
        self._writer.close()
