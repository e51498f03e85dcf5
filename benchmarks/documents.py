"""Documents: how much of their text is right, in its order, and CPU milliseconds a page.

    python -m benchmarks.documents [--quick] [--data ../shared/data]

PDFs of each layout below, and docx, odt and epub, are made from paragraphs of the bundled web's pages.  A character is
right if its word stands in the result, in the order of the original (difflib's matching blocks); characters that the
document does not have count as wrong.  Peers: the plain text of PDFium, and pdfminer.six and pypdf where they are
installed.

*letters*: documents of 15,000 characters in 20 languages (with --data news that no model was made from, else 1,500
characters) whose font names wrong characters for its glyphs, or none, each read as in a crawl of its language.  In the
table stand the characters that are right, or how the document ended; then those of whole documents that were changed,
and milliseconds a page.
"""

from __future__ import annotations

import difflib
import io
import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import wrap

import pypdfium2

from benchmarks.common import arguments, result, table
from benchmarks.encoding import languages
from benchmarks.equality import bundled_pages
from spiderling.text.documents import ConvertedDocument
from spiderling.text.html.parser import parse
from spiderling.text.letters import mend
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
        **_letters(given.data, given.quick),
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


LANGUAGES = ("ar", "bg", "cs", "de", "el", "es", "fi", "fr", "he", "hu")
LANGUAGES += ("it", "nl", "pl", "pt", "ro", "ru", "sv", "tr", "uk", "vi")
_LETTER_CHARS = 15_000
_PAGE_CHARS = 3000  # characters of a page for the times; a usual page of running text


def _mixed(chars: Sequence[str]) -> dict[str, str | None]:
    mixed = list(chars)
    random.Random(1).shuffle(mixed)
    return dict(zip(chars, mixed, strict=True))


def _every_letter(text: str) -> list[str]:
    """Letters of the text's script, the most frequent first."""
    letters = [char for char, _ in Counter(text).most_common() if char.isalpha()]
    script = unicodedata.name(letters[0]).split()[0]
    return [char for char in letters if unicodedata.name(char, "").startswith(script)]


def _signs(text: str) -> list[str]:
    return sorted(set(text) - {" ", "\n"})


_COMMAS = str.maketrans("şţŞŢ", "șțȘȚ")  # Romanian has commas below; the news have cedillas
_RIGHT_TO_LEFT = re.compile("[\u0590-\u06ff]")
_LEFT_TO_RIGHT = re.compile(r"[0-9A-Za-z](?:[^\u0590-\u06ff]*[0-9A-Za-z])?")
Said = dict[str, str | None]
DAMAGES: dict[str, Callable[[str], Said]] = {
    "whole": lambda text: {},
    "one lost": lambda text: {_every_letter(text)[4]: None},
    "five lost": lambda text: dict.fromkeys(_every_letter(text)[3:30:6]),
    "code + 1": lambda text: {char: chr(ord(char) + 1) for char in _signs(text)},
    "next in the font": lambda text: dict(zip(_signs(text), [*_signs(text)[1:], _signs(text)[0]], strict=True)),
    "permuted in a case": lambda text: (
        _mixed([char for char in _every_letter(text) if not char.isupper()])
        | _mixed([char for char in _every_letter(text) if char.isupper()])
    ),
    "permuted": lambda text: _mixed(_every_letter(text)),
}


def _as_drawn(line: str) -> str:
    """*line* from left to right, if it is written from right to left."""
    return _LEFT_TO_RIGHT.sub(lambda run: run[0][::-1], line[::-1]) if _RIGHT_TO_LEFT.search(line) else line


def _letters(data: Path | None, quick: bool) -> dict[str, object]:
    """Print the table of letters; its means for RESULT."""
    rows: list[list[object]] = []
    right: dict[str, list[float]] = {name: [] for name in DAMAGES}
    spent = dict.fromkeys(DAMAGES, 0.0)
    chars, refused = 0, 0
    for language in languages(data, list(LANGUAGES[:: 5 if quick else 1])):
        source = ConvertedDocument()
        for line in language.text[:_LETTER_CHARS].translate(_COMMAS if language.code == "ro" else {}).split("\n"):
            source.add_block(line)
        lines = [_as_drawn(line) for line in _lines([block.text for block in source.blocks], _CHARS)]
        text = "\n".join(lines)
        whole = ours("pdf")(made.pdf(_set(lines), said={}))
        chars += len(text)
        language.models.warm_up()
        row: list[object] = [language.code]
        for name, damage in DAMAGES.items():
            document = CONVERTERS["pdf"](made.pdf(_set(lines), said=damage(text)))
            start = time.process_time()
            found = mend(document, language.models, [language.code])
            spent[name] += time.process_time() - start
            share = _right_chars(whole, found.document) if found.document else None
            right[name] += [] if share is None else [share]
            refused += share is None
            row.append("undecodable" if share is None else f"{share:.4f}")
        rows.append(row)
    rows.append(["mean", *(f"{sum(shares) / max(1, len(shares)):.4f}" for shares in right.values())])
    rows.append(["ms a page", *(f"{1000 * seconds * _PAGE_CHARS / chars:.1f}" for seconds in spent.values())])
    print()
    table(["letters", *DAMAGES], rows)
    print()
    means = {name: round(sum(shares) / max(1, len(shares)), 5) for name, shares in right.items()}
    return {"letters_right": means, "letters_undecodable": refused}


def _right_chars(text: str, document: ConvertedDocument) -> float:
    """Characters of *text*, without spaces, that are right in the document / characters of the longer one."""
    words, found = text.split(), " ".join(block.text for block in document.blocks).split()
    matcher = difflib.SequenceMatcher(None, words, found, autojunk=False)
    right = 0
    for _, one, one_end, two, two_end in matcher.get_opcodes():
        pairs = zip("".join(words[one:one_end]), "".join(found[two:two_end]), strict=False)
        right += sum(a == b for a, b in pairs)
    return right / max(sum(map(len, words)), sum(map(len, found)), 1)


if __name__ == "__main__":
    main()
