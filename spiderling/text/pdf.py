"""Converts PDF to blocks of text by PDFium (pypdfium2).

A PDF holds glyphs and their places, but no paragraphs.  PDFium gives lines in reading
order.  A new paragraph begins at a larger gap or another letter size, and, behind the
end of a sentence, at an indentation or after a short line.  Running heads and feet are
dropped.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

from spiderling.text.documents import ConvertedDocument, DocumentError
from spiderling.text.html.blocks import MAX_BLOCKS, normal_form, rejoined
from spiderling.text.html.metadata import MAX_META_CHARS

MAX_PAGES = 3000  # pages that are read of one file; chosen
MAX_PAGE_CHARS = 200_000  # characters that are read of one page; chosen
_HYPHEN = "\ufffe"  # PDFium's character for a hyphen together with the end of its line
_LINE = re.compile(rf"[^\r\n{_HYPHEN}]+{_HYPHEN}?")
_SENTENCE_END = re.compile(r"[.!?:;\u3002\uff01\uff1f\u061f\u06d4\u0964\u1362\"'\u201c\u201d\u00bb)\]]\s*$")
_NUMBERS = re.compile(r"\d+")
_WIDE_GAP = 1.4  # least gap between paragraphs, in medians of the distance of lines; chosen, as are those below
_OTHER_SIZE = 0.08  # difference of letter size at which a paragraph begins, as a share of the larger size
_INDENTATION = 0.9  # indentation at which a paragraph begins, in letter sizes
_SHORT_LINE = 0.85  # length below which a line is short, as a share of the width of the page's text
_LARGE = 1.15  # letter size above which a paragraph is a heading, in usual letter sizes
_MAX_HEADING_CHARS = 200  # characters of a heading at most
_MIN_RUNNING_PAGES = 3  # least pages on which a running head or foot stands
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?")


class _TextLine(NamedTuple):
    text: str
    left: float
    right: float
    bottom: float
    size: float


def convert(body: bytes) -> ConvertedDocument:
    """The text of a PDF; raises DocumentError for what PDFium cannot open (broken, or with a password)."""
    try:
        pdf = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(str(error)) from None
    document = ConvertedDocument()
    _properties(document, pdf.get_metadata_dict(skip_empty=True))
    pages = [lines for index in range(min(len(pdf), MAX_PAGES)) if (lines := _lines(pdf, index))]
    _drop_running_lines(pages)
    sizes = Counter[float]()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
    usual = sizes.most_common(1)[0][0] if sizes else 0.0
    for paragraph in _join_over_pages(pages):
        text = _text(paragraph)
        heading = paragraph[0].size > _LARGE * usual and len(text) < _MAX_HEADING_CHARS
        document.add_block(text, heading)
        if len(document.blocks) >= MAX_BLOCKS:
            break
    return document


def _properties(document: ConvertedDocument, info: dict[str, str]) -> None:
    document.title = normal_form(info.get("Title", ""))[:MAX_META_CHARS]
    for theirs, ours in (("Author", "author"), ("Subject", "description"), ("Keywords", "keywords")):
        if info.get(theirs):
            document.meta[ours] = normal_form(info[theirs])[:MAX_META_CHARS]
    for theirs, ours in (("CreationDate", "dcterms.created"), ("ModDate", "dcterms.modified")):
        date = _DATE.match(info.get(theirs, ""))
        if date:
            document.meta[ours] = "-".join(filter(None, date.groups()))


def _lines(pdf: pypdfium2.PdfDocument, index: int) -> list[_TextLine]:
    """The lines of one page; none where PDFium fails."""
    try:
        page = pdf[index]
        found = page.get_textpage()
        text = found.get_text_range(0, min(found.count_chars(), MAX_PAGE_CHARS))
    except pypdfium2.PdfiumError:
        return []
    lines = [_place(found, match[0], match.start()) for match in _LINE.finditer(text) if match[0].strip()]
    found.close()
    page.close()
    return lines


def _place(found: pypdfium2.PdfTextPage, text: str, start: int) -> _TextLine:
    first = start + len(text) - len(text.lstrip())
    last = start + len(text.rstrip(f" {_HYPHEN}")) - 1
    left, bottom, _, _ = _box(found, first)
    right = _box(found, max(first, last))[2]
    return _TextLine(text, left, right, bottom, round(pdfium.FPDFText_GetFontSize(found, first), 1))


def _box(found: pypdfium2.PdfTextPage, index: int) -> tuple[float, ...]:
    """Left, bottom, right, top of a character in points; zeros where PDFium knows none."""
    try:
        return tuple(found.get_charbox(index))
    except pypdfium2.PdfiumError:
        return 0.0, 0.0, 0.0, 0.0


def _drop_running_lines(pages: list[list[_TextLine]]) -> None:
    """Delete first and last lines that stand on a third of the pages, whatever numbers they hold."""
    seen = Counter(key for page in pages for key in {_key(page[0]), _key(page[-1])})
    least = max(_MIN_RUNNING_PAGES, len(pages) / 3)
    for page in pages:
        for end in (0, -1):
            while page and seen[_key(page[end])] >= least:
                del page[end]


def _key(line: _TextLine) -> str:
    return _NUMBERS.sub("0", line.text).strip()


def _join_over_pages(pages: Sequence[list[_TextLine]]) -> list[list[_TextLine]]:
    """All paragraphs; one that goes on over the end of a page in the middle of a sentence is joined."""
    found: list[list[_TextLine]] = []
    for paragraph in chain.from_iterable(_paragraphs(page) for page in pages if page):
        begins_small = paragraph[0].text.lstrip()[:1].islower()
        if found and begins_small and not _SENTENCE_END.search(found[-1][-1].text):
            found[-1] += paragraph
        else:
            found.append(paragraph)
    return found


def _paragraphs(lines: list[_TextLine]) -> list[list[_TextLine]]:
    """The paragraphs of a page; requires at least one line."""
    pitches = [a.bottom - b.bottom for a, b in pairwise(lines) if a.bottom > b.bottom]
    pitch = statistics.median(pitches) if pitches else 0.0
    width = max(line.right for line in lines) - min(line.left for line in lines)
    found = [lines[:1]]
    for above, line in pairwise(lines):
        if _begins(above, line, pitch, width):
            found.append([])
        found[-1].append(line)
    return found


def _begins(above: _TextLine, line: _TextLine, pitch: float, width: float) -> bool:
    """Whether *line* begins a paragraph."""
    if above.text.endswith(_HYPHEN):
        return False
    if abs(line.size - above.size) > _OTHER_SIZE * max(line.size, above.size):
        return True
    if above.bottom - line.bottom > _WIDE_GAP * pitch > 0:
        return True
    if not _SENTENCE_END.search(above.text):
        return False
    is_indented = line.left - above.left > _INDENTATION * max(line.size, 1.0)
    return is_indented or above.right - above.left < _SHORT_LINE * width


def _text(paragraph: Sequence[_TextLine]) -> str:
    """The lines as one text; words divided by line ends are joined."""
    lines = (line.text.strip().replace(_HYPHEN, "\u00ad") for line in paragraph)
    return normal_form(rejoined("\n".join(lines)))
