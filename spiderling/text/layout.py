"""The order in which the text of a page of a PDF is read: rows of pieces of text, and columns.

A PDF may draw its text in any order: column by column, line by line over all columns, page numbers first.  So rows are
found by where pieces stand.  A band of rows is read column by column if a gap runs down through it and what stands on
both sides of the gap looks like running text, as the cells of a table do not, or is drawn one after the other.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LINE_HYPHEN = "\ufffe"  # PDFium's character for a hyphen together with the end of its line
PIECE_GAP = 0.5  # least gap between two pieces, in letter heights; chosen, as are the others
_GUTTER = 0.8  # least width of the gap between columns, in letter heights
_MIN_ROWS = 3  # least rows of a column
_MIN_LETTERS = 10  # least letters of a column's usual line
_FILLED = 0.7  # least length of a column's usual line, as a share of the longest
_WITHIN_SENTENCE = 0.25  # least share of a column's lines that begin with no capital or number
_MAX_DEPTH = 4  # columns within columns that are looked for
INITIAL = 1.7  # least height of an initial, in heights of the letters after it
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_STARTS_ANEW = re.compile(r"[^\w]*(\d|_|$)")
_OUTSIDE = 1e9  # beyond all coordinates


class TextLine(NamedTuple):
    """A piece of text, or a line of several; its box in points, with y upwards."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    order: int  # place of its first character in the file's own order
    widest: float = 0.0  # the widest gap inside

    @property
    def height(self) -> float:
        """Height of the letters with their ascent and descent."""
        return self.top - self.bottom


Row = list[TextLine]  # pieces side by side, by their left ends


def rows_of(pieces: Sequence[TextLine]) -> list[Row]:
    """The rows of a page from the top down.  A piece belongs to the row that covers half of its height."""
    rows: list[Row] = []
    least = TextLine("", 0, 0, 0, 0, 0)  # the lowest piece of the row, by height
    for piece in sorted(pieces, key=lambda piece: -piece.top):
        overlap = min(piece.top, least.top) - max(piece.bottom, least.bottom)
        if rows and overlap > min(piece.height, least.height) / 2:
            rows[-1].append(piece)
            least = min(piece, least, key=lambda one: one.height)
        else:
            rows.append([piece])
            least = piece
    for row in rows:
        row.sort(key=lambda piece: piece.left)
    return rows


def regions(rows: Sequence[Row], depth: int = 0) -> list[list[Row]]:
    """The rows in reading order, cut where a column begins or ends."""
    found: list[list[Row]] = [[]]
    start = 0
    while start < len(rows):
        end, gutters = _band(rows, start)
        columns = _columns(rows[start:end], gutters) if depth < _MAX_DEPTH else []
        if columns:
            found += [region for column in columns for region in regions(column, depth + 1)]
            found.append([])
        else:
            found[-1] += rows[start:end]
        start = end
    return [region for region in found if region]


def _band(rows: Sequence[Row], start: int) -> tuple[int, list[float]]:
    """The end of the longest band of rows from *start* on with a gap through all of them, and where its gaps begin.

    Without such a gap the end of the first row.
    """
    free = _gaps(rows[start])
    inner: list[float] = []
    end = start + 1
    for index in range(start + 1, len(rows)):
        free = _common(free, _gaps(rows[index]), _GUTTER * rows[index][0].height)
        gutters = [left for left, right in free if left > -_OUTSIDE and right < _OUTSIDE]
        if not gutters:
            break
        inner, end = gutters, index + 1
    if inner and end < len(rows):
        end = _without_heading(rows, start, end)
    return end, inner


def _without_heading(rows: Sequence[Row], start: int, end: int) -> int:
    """The end of the band without a line apart at its foot: the heading of what follows over all columns."""
    pitches = [a[0].bottom - b[0].bottom for a, b in pairwise(rows[start:end])]
    is_apart = pitches[-1] > 1.4 * statistics.median(pitches) and len(rows[end - 1]) == 1
    return end - 1 if is_apart and end - start > _MIN_ROWS else end


def _gaps(row: Row) -> list[tuple[float, float]]:
    """Where nothing stands in *row*, from left to right."""
    found = []
    at = -_OUTSIDE
    for piece in row:
        if piece.left > at:
            found.append((at, piece.left))
        at = max(at, piece.right)
    return [*found, (at, _OUTSIDE)]


def _common(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], least: float
) -> list[tuple[float, float]]:
    """Where both have gaps, *least* points wide or more."""
    found = []
    one = other = 0
    while one < len(ours) and other < len(theirs):
        left = max(ours[one][0], theirs[other][0])
        right = min(ours[one][1], theirs[other][1])
        if right - left >= least:
            found.append((left, right))
        if ours[one][1] < theirs[other][1]:
            one += 1
        else:
            other += 1
    return found


def _columns(rows: Sequence[Row], gutters: Sequence[float]) -> list[list[Row]]:
    """The columns of a band in reading order; none if it is no running text in columns."""
    if not gutters:
        return []
    columns: list[list[Row]] = [[] for _ in range(len(gutters) + 1)]
    for row in rows:
        parts: dict[int, Row] = {}
        for piece in row:
            parts.setdefault(sum(left <= piece.left for left in gutters), []).append(piece)
        for number, part in parts.items():
            columns[number].append(part)
    if not (_are_drawn_apart(columns) or all(map(_is_running_text, columns))):
        return []
    text = "".join(piece.text for row in rows for piece in row)
    return columns[::-1] if _is_rtl(text) else columns


def _are_drawn_apart(columns: Sequence[list[Row]]) -> bool:
    """Whether the file holds all of one column before all of another, and each has more than a row."""
    every = ([piece.order for row in column for piece in row] for column in columns)
    spans = sorted((min(orders), max(orders)) for orders in every)
    return all(len(column) > 1 for column in columns) and all(a[1] < b[0] for a, b in pairwise(spans))


def _is_running_text(column: Sequence[Row]) -> bool:
    if len(column) < _MIN_ROWS:
        return False
    widths = [row[-1].right - row[0].left for row in column]
    letters = statistics.median(sum(map(str.isalpha, "".join(piece.text for piece in row))) for row in column)
    goes_on = sum(not _begins_anew(row[0].text) for row in column)
    return (
        letters >= _MIN_LETTERS
        and statistics.median(widths) >= _FILLED * max(widths)
        and goes_on >= _WITHIN_SENTENCE * len(column)
    )


def _begins_anew(text: str) -> bool:
    """Whether *text* begins with a capital or a number."""
    return _STARTS_ANEW.match(text) is not None or next(filter(str.isalpha, text), "").isupper()


def _is_rtl(text: str) -> bool:
    return len(_RTL.findall(text)) > sum(map(str.isalpha, text)) / 2


def line_of(row: Row) -> TextLine:
    """The pieces of *row* as one line, in their order of reading.

    PDFium has put the words of a right-to-left line in their order already, so pieces that follow upon each other in
    the file stay in it.
    """
    usual = max(row, key=lambda piece: len(piece.text))
    gaps = [b.left - a.right for a, b in pairwise(row)]
    right = max(piece.right for piece in row)
    pieces = row
    if len(row) > 1 and _is_rtl("".join(piece.text for piece in row)):
        pieces = sorted(row, key=lambda piece: piece.order)
    text = pieces[0].text
    for before, piece in pairwise(pieces):
        is_initial = len(before.text) == 1 and before.text.isupper() and before.height > INITIAL * piece.height
        text = text.removesuffix(LINE_HYPHEN) + ("-" if text.endswith(LINE_HYPHEN) else "")
        text += piece.text if is_initial else f" {piece.text}"
    return TextLine(text, row[0].left, right, usual.bottom, usual.top, usual.order, max(gaps, default=0.0))
