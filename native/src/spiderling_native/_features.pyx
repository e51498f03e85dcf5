"""The compiled twin of text/boilerplate/features.py: the same columns, to the last bit.

numpy rounds sums, means, products of vectors and logarithms in its own way, so it is still asked for those, a vector
at a time; the rest is one pass over the blocks.
"""

import math

import numpy

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.unicode cimport Py_UNICODE_ISLOWER, PyUnicode_DATA, PyUnicode_KIND, PyUnicode_READ
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from spiderling_native._columns cimport (
    BEGINS_SMALL, CAPITALS, CODE, COMMAS, COPYRIGHT, DIGITS, ENDS_IN_COLON, ENDS_IN_DOTS, ENDS_IN_STOP, H1,
    HEADING, IN_TITLE, IS_TITLE, LINK_DENSITY, LINK_LADDER, LOG_CHARS, LOG_WORDS, MEANS, NO_LINKS, NUMBER_OF_ZONES,
    OPENING, OWN, PAGE, PIECES, PLACE, REPEATED, SAID, STOPS, SYMBOLS, TAGS, TEXT_WORDS, ZONES,
    add_up, f32, f64, high, low, rows_of, shift,
)
from spiderling_native._text cimport memory

cdef enum:  # classes of characters, in the order of features.py
    OTHER, UPPER, DIGIT, STOP, COMMA, SPACE, WIDE, SYMBOL, A_CODE, CLASSES

cdef enum:
    PLANE = 0x10000, SURROGATES = 0xD800, BEHIND_SURROGATES = 0xE000, FIELD_BITS = 8, MAX_IN_FIELD = 255
    MIN_DECLARED = 8, DECLARED_CHARS = 60, OFFSETS = 6, WINDOWS = 3, BROAD = 5
    SURROUNDINGS = PAGE + OFFSETS * TAGS, FEATURES = SURROUNDINGS + WINDOWS * BROAD

cdef Py_ssize_t[OFFSETS] OFFSET_OF = [-3, -2, -1, 1, 2, 3]
cdef Py_ssize_t[WINDOWS] WIDTH_OF = [3, 10, 30]
cdef Py_ssize_t[BROAD] BROAD_OF = [LOG_WORDS, LINK_DENSITY, STOPS, ENDS_IN_STOP, TEXT_WORDS]
cdef f32[6] LADDER = [3, 6, 12, 25, 50, 100]
cdef f32[3] LINK_STEPS = [<f32> .05, <f32> .3, <f32> .7]
cdef f32 ONE = 1


cdef inline f32 at_most_one(f32 value) noexcept nogil:
    return ONE if value > ONE else value


cdef class Features:
    """`features`, when it is called."""

    cdef uint8_t[PLANE] classes
    cdef uint64_t[CLASSES] fields
    cdef dict tag_columns
    cdef Py_ssize_t last_tag
    cdef object dividers
    cdef list said
    cdef object nothing, opening

    def __init__(self, features):
        cdef bytes classes = features.classes().tobytes()
        if len(features.NAMES) != FEATURES or len(classes) != PLANE or len(features.SAID) != OPENING - SAID:
            raise ValueError("other features than those that were compiled")
        for column in (*features.TAG_COLUMNS.values(), features.LAST_TAG):
            if not TAGS <= column < ZONES:
                raise ValueError("other tags than those that were compiled")
        memcpy(self.classes, <const char*> classes, PLANE)
        # numpy gets a question mark for each lone surrogate
        memset(self.classes + SURROGATES, self.classes[<int> b"?"], BEHIND_SURROGATES - SURROGATES)
        if max(classes) >= CLASSES:
            raise ValueError("other characters than those that were compiled")
        self.fields[OTHER] = 0
        for kind in range(1, CLASSES):
            self.fields[kind] = <uint64_t> 1 << (FIELD_BITS * (<int> kind - 1))
        self.tag_columns, self.last_tag = dict(features.TAG_COLUMNS), features.LAST_TAG
        self.dividers, self.said = features.DIVIDERS, [tuple(one) for one in features.SAID.values()]
        self.nothing, self.opening = features.NOTHING_DECLARED, features.opening_of

    def __call__(self, blocks, inherited, declared=None):
        cdef list rows = rows_of(blocks)
        cdef Py_ssize_t number = len(rows)
        columns = numpy.zeros((FEATURES, number), numpy.float32)
        cdef f32* c = <f32*> memory(columns, FEATURES * number * <Py_ssize_t> sizeof(f32))
        words, text = numpy.empty((2, number), numpy.float32)
        self.own(rows, inherited.zones, columns, c, words, text)
        self.place(columns, c, words, text)
        self.declare(rows, self.nothing if declared is None else declared, c)
        self.open(columns, c, number)
        means = columns[CODE:OWN].mean(1)
        cdef f32* mean = <f32*> memory(means, (OWN - CODE) * <Py_ssize_t> sizeof(f32))
        cdef Py_ssize_t k, at
        for k in range(OWN - CODE):
            for at in range(number):
                c[(MEANS + k) * number + at] = mean[k]
        for k in range(OFFSETS * TAGS):
            shift(c + k % TAGS * number, number, OFFSET_OF[k // TAGS], c + (PAGE + k) * number)
        self.average(c, number)
        return columns.T

    cdef int own(self, list blocks, zones, columns, f32* c, words, text) except -1:
        """Fill in the own features of each block, and its words with and without those in links."""
        cdef Py_ssize_t number = len(blocks), at, k, column, element, zone, elements = len(zones)
        cdef Py_ssize_t* zone_of = <Py_ssize_t*> memory(zones, elements * <Py_ssize_t> sizeof(Py_ssize_t))
        cdef f32* w = <f32*> memory(words, number * <Py_ssize_t> sizeof(f32))
        cdef f32* t = <f32*> memory(text, number * <Py_ssize_t> sizeof(f32))
        cdef f32 chars, links, density, word
        cdef f64 pieces
        cdef Py_ssize_t[CLASSES] marks
        cdef dict known = {}
        cdef tuple block
        cdef str string
        all_chars = numpy.empty(number, numpy.float32)
        cdef f32* char_count = <f32*> memory(all_chars, number * <Py_ssize_t> sizeof(f32))
        for at in range(number):
            block = <tuple> blocks[at]
            string = block[0]
            self.count(string, marks)
            char_count[at] = chars = <f32> len(string)
            links = <f32> <Py_ssize_t> block[2]
            density = at_most_one(links / chars)
            w[at] = word = <f32> marks[SPACE] + 1 + <f32> .5 * <f32> marks[WIDE]
            t[at] = word * (ONE - density)
            c[LINK_DENSITY * number + at] = density
            c[NO_LINKS * number + at] = links == 0
            c[STOPS * number + at] = at_most_one(4 * <f32> marks[STOP] / word)
            c[COMMAS * number + at] = at_most_one(4 * <f32> marks[COMMA] / word)
            c[HEADING * number + at] = <bint> block[1]
            c[DIGITS * number + at] = <f32> marks[DIGIT] / chars
            c[CAPITALS * number + at] = <f32> marks[UPPER] / chars
            c[SYMBOLS * number + at] = <f32> marks[SYMBOL] / chars
            c[COPYRIGHT * number + at] = "©" in string
            pieces = <f64> <Py_ssize_t> block[4] / <f64> word
            c[PIECES * number + at] = <f32> (2 if pieces > 2 else pieces)
            c[TEXT_WORDS * number + at] = at_most_one(t[at] / 60)
            c[CODE * number + at] = <f32> marks[A_CODE] / chars
            self.end(string, c + at, number)
            first = known.setdefault(string, at)
            if first != at:
                c[REPEATED * number + at] = c[REPEATED * number + <Py_ssize_t> first] = 1
            column = self.tag_columns.get(block[3], self.last_tag)
            c[column * number + at] = 1
            element = block[5]
            if not 0 <= element < elements:
                raise IndexError(f"element {element} of {elements}")
            zone = zone_of[element]
            for k in range(NUMBER_OF_ZONES):
                c[(ZONES + k) * number + at] = zone >> k & 1
        columns[LOG_WORDS] = numpy.log1p(words) / 5
        columns[LOG_CHARS] = numpy.log1p(all_chars) / 7

    cdef void count(self, str text, Py_ssize_t* marks) noexcept:
        """Count the characters of each class but OTHER.  A sum holds a field of eight bits for each class."""
        cdef Py_ssize_t size = len(text), at = 0, stop
        cdef int kind = PyUnicode_KIND(text), one
        cdef void* data = PyUnicode_DATA(text)
        cdef uint64_t fields
        cdef uint32_t code
        memset(marks, 0, CLASSES * sizeof(Py_ssize_t))
        while at < size:
            stop = at + MAX_IN_FIELD if at + MAX_IN_FIELD < size else size  # no field overflows
            fields = 0
            if kind == 1:
                for at in range(at, stop):
                    fields += self.fields[self.classes[(<uint8_t*> data)[at]]]
            else:
                for at in range(at, stop):
                    code = PyUnicode_READ(kind, data, at)
                    fields += self.fields[self.classes[code if code < PLANE else PLANE - 1]]
            at = stop
            for one in range(1, CLASSES):
                marks[one] += fields >> (FIELD_BITS * (one - 1)) & MAX_IN_FIELD

    cdef int end(self, str text, f32* c, Py_ssize_t number) except -1:
        """Fill in what the first and the last characters of a text are."""
        cdef Py_ssize_t size = len(text)
        cdef uint32_t last = text[size - 1]
        cdef bint stop = self.is_stop(last) or size > 1 and self.is_stop(text[size - 2])
        c[ENDS_IN_STOP * number] = stop
        c[ENDS_IN_COLON * number] = last == c":"
        c[ENDS_IN_DOTS * number] = last in (0x2026, 0xBB, 0x203A, c">", 0x2192) or text.endswith("...")
        c[BEGINS_SMALL * number] = Py_UNICODE_ISLOWER(text[0])

    cdef bint is_stop(self, uint32_t code) noexcept:
        return code < PLANE and not SURROGATES <= code < BEHIND_SURROGATES and self.classes[code] == STOP

    cdef int place(self, columns, f32* c, words, text) except -1:
        """Fill in the ladders, each block's place and share of the page's text, and the page's size and links."""
        cdef Py_ssize_t number = len(words), at, k
        cdef f32* w = <f32*> memory(words, number * <Py_ssize_t> sizeof(f32))
        cdef f32* t = <f32*> memory(text, number * <Py_ssize_t> sizeof(f32))
        cdef f64 sum_of_text = max(1.0, float(text.sum()))
        cdef f32 total = <f32> sum_of_text
        cdef f32 longest = <f32> <f64> max(1.0, float(text.max()))
        cdef f32 log_text = <f32> (<f64> math.log1p(sum_of_text) / 10)
        cdef f32 links = <f32> <f64> (float(words @ columns[LINK_DENSITY]) / max(1.0, float(words.sum())))
        cdef f32 until = 0
        cdef f32* p = c + PLACE * number
        for k in range(6):
            for at in range(number):
                c[(OWN + k) * number + at] = w[at] >= LADDER[k]
        for k in range(3):
            for at in range(number):
                c[(LINK_LADDER + k) * number + at] = c[LINK_DENSITY * number + at] > LINK_STEPS[k]
        for at in range(number):
            until += t[at]
            p[at] = <f32> (<f64> at / <f64> number)
            p[number + at] = (until - t[at]) / total
            p[2 * number + at] = (total - until) / total
            p[3 * number + at] = t[at] / total
            p[4 * number + at] = t[at] / longest
            p[5 * number + at] = log_text
            p[6 * number + at] = links

    cdef int declare(self, list blocks, declared, f32* c) except -1:
        """Fill in what the page says of itself, and the place of its title."""
        cdef Py_ssize_t number = len(blocks), at, k
        cdef str title = declared[0], description = declared[1], types = declared[2], text
        cdef str name = max(self.dividers.split(title), key=len)[:DECLARED_CHARS]
        cdef str begin = description[:DECLARED_CHARS]
        cdef bint by_name = len(name) >= MIN_DECLARED, by_begin = len(begin) >= MIN_DECLARED, says
        cdef f32* d = c + IN_TITLE * number
        cdef f32* h1 = c + H1 * number
        cdef Py_ssize_t heading = -1, first = -1, named = -1, found
        cdef f32 before = 0, quarter
        for at in range(number):
            text = (<tuple> blocks[at])[0]
            if len(text) >= MIN_DECLARED:
                if by_name and (name in text or text in title):
                    d[at] = 1
                    if named < 0:
                        named = at
                    if heading < 0 and c[HEADING * number + at]:
                        heading = at
                if by_begin:
                    d[number + at] = begin in text or text[:DECLARED_CHARS] in description
            if first < 0 and h1[at]:
                first = at
            quarter = before / 4
            d[5 * number + at] = at_most_one(quarter)
            before += h1[at]
        found = heading if heading >= 0 else first if first >= 0 else named
        cdef f64* logs
        if found >= 0:
            d[2 * number + found] = 1
            distances = numpy.log1p(numpy.arange(number - found)) / 5
            logs = <f64*> memory(distances, (number - found) * <Py_ssize_t> sizeof(f64))
            for at in range(found, number):
                d[3 * number + at] = 1
                d[4 * number + at] = <f32> logs[at - found]
        for k in range(OPENING - SAID):
            says = any([one in types for one in self.said[k]])
            for at in range(number):
                d[(6 + k) * number + at] = says

    cdef int open(self, columns, f32* c, Py_ssize_t number) except -1:
        """Fill in the opening, and how the zones of each block differ from its."""
        cdef Py_ssize_t at, k, opening = self.opening(columns)
        cdef f32* z
        c[OPENING * number + opening] = 1
        for k in range(NUMBER_OF_ZONES):
            z = c + (ZONES + k) * number
            for at in range(number):
                c[(OPENING + 1 + k) * number + at] = z[at] * (ONE - z[opening])

    cdef int average(self, f32* c, Py_ssize_t number) except -1:
        """Fill in the means over windows."""
        cdef Py_ssize_t k, width, at, begin, end
        cdef f32* out
        cdef f64* sums = <f64*> PyMem_Malloc((number + 1) * sizeof(f64))
        if sums == NULL:
            raise MemoryError
        for k in range(BROAD):
            add_up(c + BROAD_OF[k] * number, number, sums)
            for width in range(WINDOWS):
                out = c + (SURROUNDINGS + width * BROAD + k) * number
                for at in range(number):
                    begin, end = low(at, WIDTH_OF[width]), high(at, WIDTH_OF[width], number)
                    out[at] = <f32> ((sums[end] - sums[begin]) / <f64> (end - begin))
        PyMem_Free(sums)
