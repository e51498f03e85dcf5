"""Reads exports back: the records of JSONL and Parquet, also such as other programs wrote, as documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spiderling.base.errors import BadInput, DamageError
from spiderling.base.machine import require
from spiderling.corpus.segments import Source, StoredDocument, lines_of, stored_documents
from spiderling.export.formats import COLUMNS, split_name
from spiderling.text.prevertical import details, render

_ROWS = 100  # rows of Parquet that are in memory at once; chosen


def documents_of(source: Source) -> Iterator[StoredDocument]:
    """The documents of a file of prevertical, JSONL or Parquet, in order.

    Raises BadInput if the file is none, DamageError if it cannot be read.
    """
    ending = split_name(source.path.name)[1]
    if not ending.startswith((".jsonl", ".parquet")):
        yield from stored_documents(source)
        return
    records = _rows(source.path) if ending == ".parquet" else map(_parsed, lines_of(source))
    for number, record in enumerate(records, 1):
        try:
            yield _document(record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"{source.path} has no document in record {number}: {error!r}; its text is missing, or paragraphs or "
                "other are not as docs/formats.md has them."
            ) from None


def _document(record: Mapping[str, Any]) -> StoredDocument:
    """The document of a *record*; zeros at the end of numbers are lost, and all but the text may be missing."""
    paragraphs = record.get("paragraphs") or [{"text": line} for line in record["text"].split("\n") if line.strip()]
    others = json.loads(record.get("other") or "{}")
    known = {
        name: _text(name, record.get(name)) for name, kind in COLUMNS.items() if kind not in ("text", "paragraphs")
    }
    attributes = {name: str(value) for name, value in (known | {"other": ""} | others).items() if value != ""}
    marks = (("class", ""), ("kind", ""), ("heading", False), ("lang", ""), ("dup", False))
    elements = [(each["text"], details(*(each.get(name, empty) for name, empty in marks))) for each in paragraphs]
    return StoredDocument(attributes, render(attributes, elements))


def _text(name: str, value: Any) -> str:
    """The *value* of a column as it stands in prevertical."""
    if value is None:
        return ""
    if COLUMNS[name] == "shares":
        return " ".join(f"{each['lang']}:{each['share']:.2f}" for each in value)
    return str(value).replace("T", " ").removesuffix("Z") if COLUMNS[name] == "time" else str(value)


def parquet_lines(path: Path) -> Iterator[str]:
    """The documents of a file of Parquet as the lines of JSONL that they were made of."""
    for row in _rows(path):
        time = row["crawl_date"]
        yield json.dumps(row | {"crawl_date": time and f"{time.replace(' ', 'T')}Z"}, ensure_ascii=False) + "\n"


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    require("parquet")
    import duckdb  # large, and most runs do not need it

    try:
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            read = "read_parquet(?, hive_partitioning = false)"
            names = [name for name, *_ in connection.execute(f"DESCRIBE FROM {read}", [str(path)]).fetchall()]
            times = ", ".join(
                f"CAST({name} AS VARCHAR)[:19] AS {name}" for name in names if COLUMNS.get(name) == "time"
            )
            rows = connection.execute(f"SELECT *{times and f' REPLACE ({times})'} FROM {read}", [str(path)])  # noqa: S608 - names of columns
            while found := rows.fetchmany(_ROWS):
                yield from (dict(zip(names, row, strict=True)) for row in found)
    except duckdb.Error as error:
        raise DamageError(f"{path} cannot be read: {str(error).partition(chr(10))[0]}.") from error
