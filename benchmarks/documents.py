"""Documents: how much of their text is right, in its order, and CPU milliseconds a page.

    python -m benchmarks.documents [--quick]

PDFs of each layout below, and docx, odt and epub, are made from paragraphs of the bundled web's pages.  A character is
right if its word stands in the result, in the order of the original (difflib's matching blocks); characters that the
document does not have count as wrong.  Peers: the plain text of PDFium, and pdfminer.six and pypdf where they are
installed.

*letters lost*: a font lacks the characters of ligatures, whose glyphs then come as control characters.  The share of
such documents that end as undecodable, and of intact ones that do, stand in RESULT.
"""

from __future__ import annotations

import difflib
import io
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from textwrap import wrap

import pypdfium2

from benchmarks.common import arguments, result, table
from benchmarks.equality import bundled_pages
from spiderling.text.documents import DocumentError
from spiderling.text.html.parser import parse
from spiderling.workers.converter import CONVERTERS
from tests import made_documents as made

Line = tuple[float, float, float, str]
Pages = list[list[Line]]
_CHARS = 85  # characters of a line over the whole page, in letters of 10 points
_PITCH = 12.0  # points from line to line
_LINES = 50  # lines of a page
_PARAGRAPHS = 12  # paragraphs of a document
_DIVISION = re.compile(r"(?<=\w[aeiouyáéíóúäöü])(?=[bcdfghjklmnpqrstvwxz][aeiouáéíóúäöü]\w)")
_RUNNING, _NOTE = "The history of a garden", "* This note stands at the foot of page {} and nowhere else."
Extract = Callable[[bytes], str]


def texts(number: int) -> list[list[str]]:
    """Paragraphs of *number* documents."""
    found = dict.fromkeys(
        block.text
        for body in bundled_pages()
        for block in parse(body).blocks
        if 300 <= len(block.text) <= 1500 and block.link_chars == 0 and block.text.isascii()
    )
    every = list(found)
    random.Random(1).shuffle(every)
    return [every[start : start + _PARAGRAPHS] for start in range(0, number * _PARAGRAPHS, _PARAGRAPHS)]


def _lines(paragraphs: Sequence[str], chars: int, divides: bool = False) -> list[str]:
    """The lines of all paragraphs; they end at hyphens too."""
    return [line for text in paragraphs for line in (_divided(text, chars) if divides else wrap(text, chars))]


def _divided(text: str, chars: int) -> list[str]:
    """Lines of *chars* characters, with words divided before a syllable."""
    lines = [""]
    for word in text.split():
        room = chars - len(lines[-1]) - 2
        if len(lines[-1]) + 1 + len(word) <= chars:
            lines[-1] = f"{lines[-1]} {word}".strip()
            continue
        place = max((match.start() for match in _DIVISION.finditer(word) if match.start() < room), default=0)
        if place:
            lines[-1] += f" {word[:place]}-"
        lines.append(word[place:])
    return lines


def _set(lines: Sequence[str], x: float = 60, size: float = 10) -> list[list[Line]]:
    """Columns of lines from the top down."""
    parts = [lines[start : start + _LINES] for start in range(0, len(lines), _LINES)]
    return [[(x, 740 - _PITCH * row, size, line) for row, line in enumerate(part)] for part in parts]


def one_column(paragraphs: Sequence[str]) -> Pages:
    return _set(_lines(paragraphs, _CHARS))


def divided_words(paragraphs: Sequence[str]) -> Pages:
    return _set(_lines(paragraphs, 50, divides=True))


def columns(paragraphs: Sequence[str], by_rows: bool) -> Pages:
    """Two columns a page, drawn one after the other or row by row."""
    every = _set(_lines(paragraphs, 45))
    pages = []
    for left, right in zip(every[::2], [*every[1::2], []], strict=False):
        lines = [*left, *((320.0, y, size, text) for _, y, size, text in right)]
        pages.append(sorted(lines, key=lambda line: (-line[1], line[0])) if by_rows else lines)
    return pages


def heads_and_notes(paragraphs: Sequence[str]) -> Pages:
    """A running head, a page number and a footnote on each page; only the notes are text."""
    pages = one_column(paragraphs)
    for number, page in enumerate(pages, 1):
        page.insert(0, (60, 770, 9, f"{_RUNNING} {number}"))
        page.append((60, 110, 8, _NOTE.format(number)))
        page.append((300, 60, 9, str(number)))
    return pages


def tables(paragraphs: Sequence[str]) -> Pages:
    """A table of three columns below each half page of text."""
    pages = []
    for page in _set(_lines(paragraphs, _CHARS)):
        rows = [
            (60.0 + 170 * cell, 120 - 14.0 * row, 10.0, f"cell{row}{cell}") for row in range(4) for cell in range(3)
        ]
        pages.append([*page, *rows])
    return pages


def _cells(pages: Pages) -> list[str]:
    return [text for page in pages for _, _, _, text in page]


def _words_of(paragraphs: Sequence[str], pages: Pages, how: str) -> list[str]:
    """The words that a reader would read, in order as far as it is sure."""
    words = " ".join(paragraphs).split()
    if how == "table":
        words += [word for text in _cells(pages) if text.startswith("cell") for word in text.split()]
    if how == "heads, notes":
        words += [word for number in range(1, len(pages) + 1) for word in _NOTE.format(number).split()]
    return words


def right_share(words: Sequence[str], found: Sequence[str]) -> float:
    """Characters of the words that stand in both in order / characters of the longer one."""
    matcher = difflib.SequenceMatcher(None, words, found, autojunk=False)
    right = sum(len(word) for one in matcher.get_matching_blocks() for word in words[one.a : one.a + one.size])
    return right / max(sum(map(len, words)), sum(map(len, found)), 1)


def ours(kind: str) -> Extract:
    return lambda body: "\n".join(block.text for block in CONVERTERS[kind](body).blocks)


def _by_pdfium(body: bytes) -> str:
    return "\n".join(page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(body))


def extractors() -> Iterator[tuple[str, Extract]]:
    yield "ours", ours("pdf")
    yield "PDFium's text", _by_pdfium
    with suppress(ImportError):
        from pdfminer.high_level import extract_text

        yield "pdfminer.six", lambda body: extract_text(io.BytesIO(body))
    with suppress(ImportError):
        from pypdf import PdfReader

        yield "pypdf", lambda body: "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(body)).pages)


LAYOUTS: dict[str, Callable[[Sequence[str]], Pages]] = {
    "one column": one_column,
    "two columns": lambda paragraphs: columns(paragraphs, by_rows=False),
    "two columns, by rows": lambda paragraphs: columns(paragraphs, by_rows=True),
    "divided words": divided_words,
    "heads, notes": heads_and_notes,
    "table": tables,
}


def main() -> None:
    given = arguments(__doc__)
    documents = texts(3 if given.quick else 8)
    ways = dict(extractors())
    spent = dict.fromkeys(ways, 0.0)
    pages_read = 0
    rows: list[list[object]] = []
    for name, layout in LAYOUTS.items():
        shares = dict.fromkeys(ways, 0.0)
        for paragraphs in documents:
            pages = layout(paragraphs)
            body = made.pdf(pages)
            pages_read += len(pages)
            words = _words_of(paragraphs, pages, name)
            for way, extract in ways.items():
                start = time.process_time()
                text = extract(body)
                spent[way] += time.process_time() - start
                shares[way] += right_share(words, text.split()) / len(documents)
        rows.append([name, *(f"{share:.3f}" for share in shares.values())])
    rows.append(["ms a page", *(f"{1000 * seconds / pages_read:.1f}" for seconds in spent.values())])
    print(f"{len(documents)} documents of each layout, {pages_read} pages; share of characters that are right")
    table(["layout", *ways], rows)
    others = {kind: _other(kind, documents) for kind in ("docx", "odt", "epub")}
    table(["kind", "right"], [[kind, f"{share:.3f}"] for kind, share in others.items()])
    scans = [ours("pdf")(made.pdf([[], []])) for _ in documents]
    print()
    result(
        right={str(row[0]): float(str(row[1])) for row in rows[:-1]} | {k: round(v, 3) for k, v in others.items()},
        ms_per_page=float(str(rows[-1][1])),
        scans_without_text=sum(not text for text in scans) / len(scans),
        undecodable_where_letters_are_lost=_refused(documents, loses=True),
        undecodable_where_intact=_refused(documents, loses=False),
    )


def _other(kind: str, documents: Sequence[Sequence[str]]) -> float:
    shares = []
    for paragraphs in documents:
        body = (
            made.epub(["".join(f"<p>{text}</p>" for text in paragraphs)])
            if kind == "epub"
            else {"docx": made.docx, "odt": made.odt}[kind](paragraphs)
        )
        shares.append(right_share(" ".join(paragraphs).split(), ours(kind)(body).split()))
    return sum(shares) / len(shares)


def _refused(documents: Sequence[Sequence[str]], loses: bool) -> float:
    """The share of documents that end as undecodable; with *loses* the font lacks five ligatures, those of Calibri."""
    refused = 0
    for paragraphs in documents:
        lines = _lines(paragraphs, _CHARS)
        if loses:
            lines = [re.sub("fi|fl|ff|ti|tt", "\x19", x) for x in lines]
        try:
            ours("pdf")(made.pdf(_set(lines)))
        except DocumentError:
            refused += 1
    return refused / len(documents)


if __name__ == "__main__":
    main()
