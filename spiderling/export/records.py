"""A document as a record: the columns of JSONL and Parquet, the same in both (docs/formats.md).

Every record has every column.  What a document does not say is "" in a column of text and null in one of numbers or
times, so that readers which guess types from the first records guess right.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from spiderling.corpus.reader import Document

COLUMNS = {
    **dict.fromkeys(("id", "url", "host", "tld", "title", "lang"), "string"),
    "langs": "shares",
    "text": "text",
    **dict.fromkeys(("words", "length", "distance"), "int"),
    "crawl_date": "time",
    **dict.fromkeys(("published", "modified", "file_type", "enc_declared", "enc_detected", "ip", "tls"), "string"),
    **dict.fromkeys(("licence", "optout"), "string"),
    **dict.fromkeys(("yield", "badness", "stopword_share", "sentence_words", "repeated_share"), "float"),
    **dict.fromkeys(("digit_share", "symbol_share", "good_share"), "float"),
    "other": "string",
    "paragraphs": "paragraphs",
}
"""Name -> type.  ``other`` holds the further attributes as a JSON object, ``text`` the paragraphs, one a line."""

_INT = re.compile(r"-?\d{1,18}")


def record_of(document: Document) -> dict[str, Any]:
    """The columns of *document*; what is malformed in it counts as not said."""
    attributes = document.attributes
    record = {name: _READERS[kind](attributes.get(name, "")) for name, kind in COLUMNS.items()}
    record["text"] = "\n".join(document.paragraphs)
    further = {name: value for name, value in attributes.items() if name not in COLUMNS}
    record["other"] = json.dumps(further, ensure_ascii=False) if further else ""
    record["paragraphs"] = [
        {
            "text": text,
            "class": detail.get("class", ""),
            "heading": detail.get("heading") == "1",
            "lang": detail.get("lang", ""),
            "dup": detail.get("dup") == "1",
        }
        for text, detail in zip(document.paragraphs, document.details, strict=True)
    ]
    return record


def as_json(record: dict[str, Any]) -> str:
    """One line of JSONL; times as ISO 8601."""
    time = record["crawl_date"]
    return json.dumps(record | {"crawl_date": time and f"{time:%Y-%m-%dT%H:%M:%SZ}"}, ensure_ascii=False) + "\n"


def schema() -> pa.Schema:
    """Of Parquet files."""
    import pyarrow as pa

    text = pa.string()
    flag = pa.bool_()
    paragraph = [("text", text), ("class", text), ("heading", flag), ("lang", text), ("dup", flag)]
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
    """*value* as a finite number, if it is one."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _int(value: str) -> int | None:
    return int(value) if _INT.fullmatch(value) else None


def _time(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(timezone.utc) if found.tzinfo else found.replace(tzinfo=timezone.utc)
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
