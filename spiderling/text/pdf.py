"""Converts PDF to blocks of text by PDFium (pypdfium2).

A PDF holds glyphs and their places, but no paragraphs.  PDFium gives words and where they stand; layout.py makes lines
and columns of them.  A new paragraph begins at a larger gap or another letter size, and, behind the end of a sentence,
at an indentation or after a short line.  Running heads and feet and page numbers are dropped; footnotes come behind the
paragraph that goes on over the end of their page or column.
"""

from __future__ import annotations

import ctypes
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from spiderling.text.documents import SYMBOL, SYMBOLS, ConvertedDocument, DocumentError
from spiderling.text.html.blocks import MAX_BLOCKS, normal_form
from spiderling.text.html.metadata import MAX_META_CHARS
from spiderling.text.hyphens import rejoined
from spiderling.text.layout import INITIAL, LINE_HYPHEN, PIECE_GAP, Row, TextLine, line_of, regions, rows_of

MAX_PAGES = 3000  # pages that are read of one file; chosen
MAX_PAGE_CHARS = 200_000  # characters that are read of one page; chosen
_WORD = re.compile(rf"[^\s{LINE_HYPHEN}]+{LINE_HYPHEN}?")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")  # characters that PDFium counts as two
_NO_CHARACTER = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ue000-\uf020\uf07f-\uf8ff\ufffd\ufffe]")
"""What a font may say of a glyph that has no character; letters of symbol fonts between them have one."""
_WITHOUT_SHAPE = "\ufffd\ufffe"  # those that say nothing at all of the glyph; PDFium has the second for NUL
_IN_WORD = re.compile(rf"(?<=[^\W\d_]){SYMBOL}|{SYMBOL}(?=[^\W\d_])")
_LONE_BREAK = re.compile(r"\r(?!\n)|(?<!\r)\n")
_PAD = "\uffff"  # the second of the two; the normal form drops it
_SENTENCE_END = re.compile(r"[.!?:;\u3002\uff01\uff1f\u061f\u06d4\u0964\u1362\"'\u201c\u201d\u00bb)\]]\s*$")
_NUMBERS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"[\W_]*(?:\d{1,4}|[ivxlc]{1,7})(?:\s?/\s?\d{1,4})?[\W_]*")
_WIDE_GAP = 1.4  # least gap between paragraphs, in medians of the distance of lines; chosen, as are those below
_OTHER_SIZE = 0.08  # difference of letter size at which a paragraph begins, as a share of the larger size
_INDENTATION = 0.9  # indentation at which a paragraph begins, in letter heights
_SHORT_LINE = 0.85  # length below which a line is short, as a share of the width of the text
_CELL_GAP = 2.0  # gap within a line that makes it a row of a table, in letter heights
_LARGE = 1.15  # letter size above which a paragraph is a heading, in usual letter sizes
_SMALL = 0.93  # letter size below which the end of a page or column is footnotes, in usual letter sizes
_MAX_HEADING_CHARS = 200  # characters of a heading at most
_MIN_RUNNING_PAGES = 3  # least pages on which a running head or foot stands
_EDGE_ROWS = 3  # rows at each end of a page that may be running heads or feet
_MIN_PITCHES = 3  # distances of lines in a region, below which those of the whole document count
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?")


def convert(body: bytes) -> ConvertedDocument:
    """The text of a PDF.

    Raises DocumentError for what PDFium cannot open (broken, or with a password).
    """
    try:
        pdf = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(str(error)) from None
    document = ConvertedDocument()
    _properties(document, pdf.get_metadata_dict(skip_empty=True))
    pages = [rows for index in range(min(len(pdf), MAX_PAGES)) if (rows := _rows(pdf, index))]
    _drop_running_rows(pages)
    columns = [list(map(line_of, region)) for page in pages for region in regions(page)]
    sizes = Counter[float]()
    for line in (line for column in columns for line in column):
        sizes[round(line.height, 1)] += len(line.text)
    usual = sizes.most_common(1)[0][0] if sizes else 0.0
    paragraphs = _join_over_columns(columns, usual)
    lines = ("\n".join(line.text.replace(LINE_HYPHEN, "-") for line in paragraph) for paragraph in paragraphs)
    for paragraph, text in zip(paragraphs, rejoined(list(lines)), strict=True):
        heading = paragraph[0].height > _LARGE * usual and len(text) < _MAX_HEADING_CHARS
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


def _rows(pdf: pypdfium2.PdfDocument, index: int) -> list[Row]:
    """The rows of one page; none where PDFium fails.

    Where lines do not run from side to side, as on turned pages and in vertical scripts, they stay as they are drawn.
    """
    try:
        page = pdf[index]
        found = page.get_textpage()
        text = found.get_text_range(0, min(found.count_chars(), MAX_PAGE_CHARS))
    except pypdfium2.PdfiumError:
        return []
    text = _BEYOND.sub(lambda char: char[0] + _PAD, text)
    text = _with_symbols(found, text)
    words = list(_words(found, text))
    found.close()
    page.close()
    parts = [part for word in words for part in word]
    long = [len(word) == 1 for word in words if sum(len(part.text) for part in word) > 2]
    if 2 * sum(long) < len(long):
        return [[TextLine(line, 0, 0, 0, 1, 0)] for line in text.splitlines() if line.strip()]
    return rows_of(list(_pieces(parts, text)))


def _with_symbols(found: pypdfium2.PdfTextPage, text: str) -> str:
    """*text* with one of SYMBOLS for each glyph in a word that has no character.

    PDFium gives the number of such a glyph.  Whether a font lacks characters is tried at two places of each character.
    """
    handle = found.raw
    places = _places(found, text)
    tried = {place for char in set(text) for place in (text.find(char), text.rfind(char))}
    tried |= {match.start() for match in _LONE_BREAK.finditer(text)}
    is_damaged = any(pdfium.FPDFText_HasUnicodeMapError(handle, places(index)) == 1 for index in tried)
    if not is_damaged and not _NO_CHARACTER.search(text):
        return text
    chars = list(text)
    for index, char in enumerate(text):
        lacks = bool(_NO_CHARACTER.match(char))
        if char == LINE_HYPHEN:
            lacks = pdfium.FPDFText_GetUnicode(handle, places(index)) == 0
        if lacks or (is_damaged and pdfium.FPDFText_HasUnicodeMapError(handle, places(index)) == 1):
            code = _shape(handle, places(index)) if char in _WITHOUT_SHAPE else ord(char)
            chars[index] = chr(SYMBOLS[code % len(SYMBOLS)])
    in_words = set(_IN_WORD.findall("".join(chars)))
    return "".join(new if new in in_words else old for old, new in zip(text, chars, strict=True))


def _shape(handle: Any, place: int) -> int:
    """A number for the size of a glyph, which tells it from others of its font."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    pdfium.FPDFText_GetCharBox(handle, place, left, right, bottom, top)
    size = pdfium.FPDFText_GetFontSize(handle, place) or 1.0
    return round(100 * (right.value - left.value) / size) * 37 + round(100 * (top.value - bottom.value) / size)


def _places(found: pypdfium2.PdfTextPage, text: str) -> Callable[[int], int]:
    """The number of a character of *text* among those of its page; of the one before where PDFium knows none."""
    if len(text) == found.count_chars() or len(text) >= MAX_PAGE_CHARS:
        return int
    return partial(pdfium.FPDFText_GetCharIndexFromTextIndex, found.raw)


def _words(found: pypdfium2.PdfTextPage, text: str) -> Iterator[list[TextLine]]:
    """The words of a page as PDFium orders them, each in one part if it stands at one place; *text* is all of it."""
    handle = found.raw
    places = _places(found, text)

    def box(index: int) -> tuple[float, float, float, float]:
        """Left, bottom, right, top of the character's place in the line."""
        pdfium.FPDFText_GetLooseCharBox(handle, places(index), pointer)
        return area.left, area.bottom, area.right, area.top

    area = pdfium.FS_RECTF()
    pointer = ctypes.byref(area)
    for match in _WORD.finditer(text):
        yield list(_parts(match[0], match.start(), box))


def _parts(text: str, start: int, box: Callable[[int], tuple[float, float, float, float]]) -> Iterator[TextLine]:
    """The word *text*, or what was glued together in it though it stands at two places."""
    left, bottom, right, top = box(start)
    last = box(start + len(text.rstrip(LINE_HYPHEN + _PAD)) - 1)
    has_initial = text[0].isupper() and top - bottom > INITIAL * (last[3] - last[1])
    if len(text) == 1 or (min(top, last[3]) > max(bottom, last[1]) and not has_initial):
        lowest, highest = (bottom, top) if top - bottom >= last[3] - last[1] else (last[1], last[3])
        yield TextLine(text, min(left, last[0]), max(right, last[2]), lowest, highest, start)
        return
    middle = len(text) // 2
    yield from _parts(text[:middle], start, box)
    yield from _parts(text[middle:], start + middle, box)


def _pieces(words: Sequence[TextLine], text: str) -> Iterator[TextLine]:
    """The *words* that stand side by side, without wide gaps, as pieces of *text*."""
    start = 0
    for end in range(1, len(words) + 1):
        if end < len(words) and _is_beside(words[end - 1], words[end]):
            continue
        part = words[start:end]
        usual = max(part, key=lambda word: len(word.text))
        left = min(word.left for word in part)
        right = max(word.right for word in part)
        said = " ".join(text[part[0].order : part[-1].order + len(part[-1].text)].split())
        yield TextLine(said, left, right, usual.bottom, usual.top, part[0].order)
        start = end


def _is_beside(word: TextLine, following: TextLine) -> bool:
    """Whether the *following* word stands beside *word*, on either side of it, in letters of about its size."""
    height = min(word.height, following.height)
    overlap = min(word.top, following.top) - max(word.bottom, following.bottom)
    gap = max(following.left - word.right, word.left - following.right)
    is_initial = len(word.text) == 1 and word.height > INITIAL * height
    return overlap > height / 2 and gap < PIECE_GAP * height and not is_initial and word.text[-1] != LINE_HYPHEN


def _drop_running_rows(pages: list[list[Row]]) -> None:
    """Delete the first and last rows that several pages have, whatever numbers they hold, and numbers of pages."""
    seen = Counter(key for page in pages for key in {_key(row) for row in (*page[:_EDGE_ROWS], *page[-_EDGE_ROWS:])})
    for page in pages:
        for end in (0, -1):
            while page and seen[_key(page[end])] >= _MIN_RUNNING_PAGES:
                del page[end]
            if len(page) > 1 and _PAGE_NUMBER.fullmatch(page[end][0].text) and len(page[end]) == 1:
                del page[end]


def _key(row: Row) -> str:
    return _NUMBERS.sub("0", " ".join(piece.text for piece in row))


def _join_over_columns(columns: Sequence[list[TextLine]], usual: float) -> list[list[TextLine]]:
    """All paragraphs; one that goes on over the end of a column or page in the middle of a sentence is joined.

    Lines at the end of a column in smaller letters than *usual* are its notes.
    """
    pitch = _pitch([a.bottom - b.bottom for column in columns for a, b in pairwise(column)])
    found: list[list[TextLine]] = []
    notes: list[list[TextLine]] = []
    for column in columns:
        width = max(line.right for line in column) - min(line.left for line in column)
        paragraphs = _paragraphs(column, pitch, width)
        size = len(paragraphs)
        while size > 1 and paragraphs[size - 1][0].height < _SMALL * usual:
            size -= 1
        first, last = paragraphs[0], found[-1][-1] if found else None
        if last is not None and _goes_on(last, first[0], found[-1]):
            found[-1] += first
            paragraphs = paragraphs[1:]
            size -= 1
        found += notes
        found += paragraphs[:size]
        notes = paragraphs[size:]
    return found + notes


def _goes_on(last: TextLine, first: TextLine, paragraph: Sequence[TextLine]) -> bool:
    """Whether the *paragraph* with the *last* line goes on in the *first* of the next column."""
    if _SENTENCE_END.search(last.text) or abs(first.height - last.height) > _OTHER_SIZE * last.height:
        return False
    widths = [line.right - line.left for line in paragraph]
    return first.text[:1].islower() or (len(widths) > 1 and widths[-1] > _SHORT_LINE * max(widths))


def _pitch(distances: Sequence[float]) -> float:
    return statistics.median([distance for distance in distances if distance > 0] or [0.0])


def _paragraphs(lines: list[TextLine], usual_pitch: float, width: float) -> list[list[TextLine]]:
    """The paragraphs of a column; requires at least one line."""
    pitches = [a.bottom - b.bottom for a, b in pairwise(lines)]
    pitch = _pitch(pitches) if len(pitches) >= _MIN_PITCHES else usual_pitch
    found = [lines[:1]]
    for above, line in pairwise(lines):
        if _begins(above, line, pitch, width):
            found.append([])
        found[-1].append(line)
    return found


def _begins(above: TextLine, line: TextLine, pitch: float, width: float) -> bool:
    """Whether *line* begins a paragraph."""
    if above.text.endswith(LINE_HYPHEN):
        return False
    if abs(line.height - above.height) > _OTHER_SIZE * max(line.height, above.height):
        return True
    if above.bottom - line.bottom > _WIDE_GAP * pitch > 0 or line.widest > _CELL_GAP * line.height:
        return True
    is_short = above.right - above.left < _SHORT_LINE * width
    if not _SENTENCE_END.search(above.text):
        return is_short and above.widest > _CELL_GAP * above.height
    return is_short or line.left - above.left > _INDENTATION * max(line.height, 1.0)
