"""What _features.pyx and _context.pyx share: tables whose rows are features, and sums over windows of blocks."""

from libc.string cimport memcpy

ctypedef float f32
ctypedef double f64

cdef enum:  # places of a block's own features, and of those of its page, in NAMES of features.py and model.py
    LOG_WORDS = 0, LOG_CHARS = 1, LINK_DENSITY = 2, NO_LINKS = 3, STOPS = 4, COMMAS = 5, ENDS_IN_STOP = 6
    HEADING = 7, DIGITS = 8, CAPITALS = 9, SYMBOLS = 10, COPYRIGHT = 11, PIECES = 12, TEXT_WORDS = 13, CODE = 14
    ENDS_IN_COLON = 15, ENDS_IN_DOTS = 16, BEGINS_SMALL = 17, REPEATED = 18, TAGS = 19, H1 = 23, NUMBER_OF_TAGS = 10
    ZONES = 29, NUMBER_OF_ZONES = 18, OWN = 47, LINK_LADDER = 53, PLACE = 56, IN_TITLE = 63, IS_TITLE = 65
    BEHIND = 66, SAID = 69, OPENING = 74, MEANS = 93, PAGE = 126

cdef inline list rows_of(blocks):
    """*blocks* as a list of tuples, at least one."""
    cdef list rows = list(blocks)
    if not rows:
        raise ValueError("no blocks")
    for row in rows:
        if not isinstance(row, tuple):
            raise TypeError(type(row).__name__)
    return rows

cdef inline void shift(const f32* row, Py_ssize_t number, Py_ssize_t offset, f32* out) noexcept nogil:
    """Copy to *out* the values at that distance; where there is none, *out* stays as it is.  Both have *number*."""
    if -number < offset < 0:
        memcpy(out - offset, row, (number + offset) * sizeof(f32))
    elif 0 <= offset < number:
        memcpy(out, row + offset, (number - offset) * sizeof(f32))

cdef inline void add_up(const f32* row, Py_ssize_t number, f64* sums) noexcept nogil:
    """Sums over the values before each place; *sums* has one more than *row*."""
    cdef Py_ssize_t place
    sums[0] = 0
    for place in range(number):
        sums[place + 1] = sums[place] + row[place]

cdef inline Py_ssize_t low(Py_ssize_t place, Py_ssize_t width) noexcept nogil:
    """Begin of the window that reaches *width* to either side."""
    return place - width if place > width else 0

cdef inline Py_ssize_t high(Py_ssize_t place, Py_ssize_t width, Py_ssize_t number) noexcept nogil:
    """End of that window."""
    return place + width + 1 if place + width + 1 < number else number
