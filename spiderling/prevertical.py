"""Reads prevertical, the format of the corpus: ``<doc ...>`` with ``<p ...>`` elements, one line an element or text."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast
from xml.sax.saxutils import unescape

import zstandard

from spiderling.errors import BadInput

_ATTRIBUTE = re.compile(r'([\w:.-]+)="([^"]*)"')
_QUOTE = {"&quot;": '"', "&apos;": "'"}


class CorpusParagraph(NamedTuple):
    """One ``<p>``."""

    text: str
    attributes: dict[str, str]


class CorpusDocument(NamedTuple):
    """One ``<doc>``."""

    attributes: dict[str, str]
    paragraphs: list[CorpusParagraph]


def read_documents(path: Path, start: int = 0, end: int | None = None) -> Iterator[CorpusDocument]:
    """The documents of a file, plain, .gz or .zst; of a segment those between two lengths that its crawl recorded.

    Raises BadInput when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            part = file if end is None else io.BytesIO(file.read(max(0, end - start)))
            yield from _documents(io.TextIOWrapper(_unpacked(part, path.suffix), "utf-8", "replace", newline="\n"))
    except (OSError, EOFError, zstandard.ZstdError) as error:
        raise BadInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _unpacked(file: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if suffix == ".gz" else file


def _documents(lines: Iterator[str]) -> Iterator[CorpusDocument]:
    document = CorpusDocument({}, [])
    attributes: dict[str, str] | None = None
    for line in lines:
        if line.startswith("<doc"):
            document = CorpusDocument(_attributes(line), [])
        elif line.startswith("</doc>"):
            yield document
        elif line.startswith("<p") and line[2:3] in " >":
            attributes = _attributes(line)
        elif line.startswith("</p>"):
            attributes = None
        elif attributes is not None:
            document.paragraphs.append(CorpusParagraph(unescape(line.rstrip("\n"), _QUOTE), attributes))


def _attributes(tag: str) -> dict[str, str]:
    return {name: unescape(value, _QUOTE) for name, value in _ATTRIBUTE.findall(tag)}
