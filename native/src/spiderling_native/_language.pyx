"""The compiled twins of `scored` in text/language.py and of `short_words` in text/words.py."""

import numpy

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND, PyUnicode_READ
from libc.stdint cimport int16_t, int32_t, uint32_t, uint64_t
from libc.string cimport memset

from spiderling_native._text cimport memory

cdef enum:
    SPACE = 32, QUESTION_MARK = 63, DOTTED_I = 0x130, SIGMA = 0x3A3
    SURROGATES = 0xD800, BEHIND_SURROGATES = 0xE000, CODES = 0x110000
    AE = 0xE6, CYRILLIC_AE = 0x4D5  # these and the next ones as in ngrams.py
    BEHIND_LATIN = 0x370, CYRILLIC = 0x400, BEHIND_CYRILLIC = 0x530, FIRST_WIDE = 0x2E80, WIDE_WEIGHT = 3
    ORDER = 4, LANES = 8
    AHEAD = 8         # characters that the table's rows are fetched ahead; chosen by measurement
    MAX_WIDTH = 1024  # columns of the table; a wider one is left to Python

cdef extern from *:
    void fetch "__builtin_prefetch"(const void* address) noexcept nogil

cdef uint64_t BASE = 0x9E3779B97F4A7C15u  # of words.py


cdef inline bint is_latin(uint32_t letter) noexcept nogil:
    return letter < BEHIND_LATIN and letter != SPACE and letter != AE


cdef inline bint is_cyrillic(uint32_t letter) noexcept nogil:
    return CYRILLIC <= letter < BEHIND_CYRILLIC


cdef class Scored:
    """`scored`, when it is called."""

    cdef object python, kind, lower_letters, table
    cdef const uint32_t* lower  # the data of `table`
    cdef uint32_t[BEHIND_LATIN] look_alikes
    cdef double units

    def __init__(self, language, ngrams):
        look_alikes = ngrams.LOOK_ALIKES.tolist()
        if len(look_alikes) != BEHIND_LATIN or ngrams.ORDER != ORDER:
            raise ValueError("other n-grams than those that were compiled")
        self.python, self.kind, self.units = language.scored, language.Scored, language.LOG_UNITS
        self.lower_letters = ngrams.letters_in_lower_case
        for place in range(BEHIND_LATIN):
            self.look_alikes[<int> place] = look_alikes[place]

    def __call__(self, texts, logs):
        cdef list each = list(texts)
        cdef Py_ssize_t number = len(each), rows = logs.shape[0], width = logs.shape[1], most = 0, used = 0, size, at
        if self.table is None:  # it takes time to build
            self.table = self.lower_letters()
            self.lower = <const uint32_t*> memory(self.table, CODES * 4)
        for text in each:
            most += len(<str?> text) + 2
        starts = numpy.empty(number + 1, numpy.intp)
        read = numpy.empty((2, most + ORDER), numpy.uint32)
        cdef Py_ssize_t* s = <Py_ssize_t*> memory(starts, (number + 1) * 8)
        cdef uint32_t* chars = <uint32_t*> memory(read, 2 * (most + ORDER) * 4)
        for at in range(number):
            s[at] = used
            size = self.read(each[at], chars + used, chars + most + ORDER + used)
            if size < 0 or width > MAX_WIDTH or width % LANES:
                return self.python(texts, logs)
            used += size
        s[number] = used
        memset(chars + used, 0, ORDER * 4)
        hashes = numpy.empty((ORDER, used), numpy.uint32)
        scores = numpy.empty((number, width), numpy.float32)
        cdef uint32_t* h = <uint32_t*> memory(hashes, ORDER * used * 4)
        hash_all(chars, used, h)
        cdef int16_t* l = <int16_t*> memory(logs, rows * width * 2)
        cdef float* out = <float*> memory(scores, number * width * 4)
        for at in range(number):
            self.score(s[at], s[at + 1], h, used, l, <uint32_t> (rows - 2), width, out + at * width)
        grams = {size + 1: hashes[size] for size in range(ORDER)}
        return self.kind(read[0, :used], starts, read[1, :used], grams, scores)

    cdef Py_ssize_t read(self, str text, uint32_t* chars, uint32_t* written) noexcept:
        """Write letters and code points of *text*, as `normalised` does; returns how many, at most two more than it has.

        -1 where Python has to read it: for a capital sigma and a dotted I.
        """
        cdef Py_ssize_t size = len(text), at, used = 1, latin = 0, others = 0
        cdef int kind = PyUnicode_KIND(text)
        cdef void* data = PyUnicode_DATA(text)
        cdef uint32_t code, letter, before = SPACE
        chars[0] = written[0] = chars[size + 1] = written[size + 1] = SPACE
        for at in range(1, size + 1):
            code = PyUnicode_READ(kind, data, at - 1)
            if code == SIGMA or code == DOTTED_I:
                return -1
            if SURROGATES <= code < BEHIND_SURROGATES:
                code = QUESTION_MARK
            written[at] = code
            chars[at] = letter = self.lower[code]
            latin += is_latin(letter)
            others += (letter >= BEHIND_LATIN) + (WIDE_WEIGHT - 1) * (letter >= FIRST_WIDE)
        if latin < others:
            for at in range(1, size + 1):
                letter = chars[at]
                if is_latin(letter):
                    beside = is_cyrillic(before) or is_cyrillic(chars[at + 1])
                    chars[at] = self.look_alikes[letter] if beside else SPACE
                before = letter
        for at in range(1, size + 2):  # of several spaces in a row the first stays; `used` is never beyond `at`
            if chars[at] != SPACE or chars[at - 1] != SPACE:
                chars[used], written[used] = chars[at], written[at]
                used += 1
        return used if used > 1 else 2

    cdef void score(
        self, Py_ssize_t first, Py_ssize_t last, const uint32_t* hashes, Py_ssize_t used, int16_t* logs,
        uint32_t mask, Py_ssize_t width, float* out,
    ) noexcept nogil:
        """Add up the rows of the n-grams from *first* on that end before *last*; for others, the row of zeros.

        The sum of a place's rows fits 16 bits, by MAX in language.py.
        """
        cdef int32_t[MAX_WIDTH] sums
        cdef int16_t* rows[ORDER]
        cdef Py_ssize_t at, size, begin, lane
        memset(sums, 0, width * sizeof(int32_t))
        for at in range(first, last):
            for size in range(ORDER):  # the table is larger than a core's caches
                fetch(logs + (hashes[size * used + min(at + AHEAD, used - 1)] & mask) * width)
            for size in range(ORDER):
                rows[size] = logs + (hashes[size * used + at] & mask if at + size < last else mask + 1) * width
            for begin in range(0, width, 8):  # LANES
                for lane in range(begin, begin + LANES):
                    sums[lane] += <int16_t> (rows[0][lane] + rows[1][lane] + rows[2][lane] + rows[3][lane])
        for lane in range(width):
            out[lane] = <float> (<double> sums[lane] / self.units)


cdef void hash_all(const uint32_t* chars, Py_ssize_t used, uint32_t* hashes) noexcept nogil:
    """The n-grams of each size that begin at each character; behind the last one stand ORDER zeros."""
    cdef Py_ssize_t at, size
    cdef uint32_t value, mixed
    for at in range(used):
        value = 0x9E3779B1u
        for size in range(ORDER):
            value = (value ^ chars[at + size]) * 0x01000193u + 0x7F4A7C15u
            mixed = (value ^ value >> 15) * 0x846CA68Bu
            hashes[size * used + at] = mixed ^ mixed >> 13


cdef inline bint is_capital(const uint32_t* lower, uint32_t code) noexcept nogil:
    return code < CODES and lower[code] != code and code != CYRILLIC_AE


cdef bint is_among(uint64_t key, const uint64_t* keys, Py_ssize_t number) noexcept nogil:
    """Whether *key* is one of the sorted *keys*."""
    cdef Py_ssize_t first = 0, middle
    while first < number:
        middle = (first + number) // 2
        if keys[middle] == key:
            return True
        if keys[middle] < key:
            first = middle + 1
        else:
            number = middle
    return False


cdef class ShortWords:
    """`short_words`, when it is called."""

    cdef object python, lower_letters

    def __init__(self, words, ngrams):
        self.python, self.lower_letters = words.short_words, ngrams.letters_in_lower_case

    def __call__(self, words, listed):
        if listed.without_tones:
            return self.python(words, listed)
        cdef Py_ssize_t number = len(words.starts) - 1, size = len(words.chars), many = len(listed.keys), text, at, begin
        cdef Py_ssize_t longest = listed.max_chars
        found = numpy.zeros((2, number), numpy.intp)
        table = self.lower_letters()
        cdef const uint32_t* lower = <const uint32_t*> memory(table, CODES * 4)
        cdef const Py_ssize_t* starts = <const Py_ssize_t*> memory(words.starts, (number + 1) * 8)
        cdef const uint32_t* chars = <const uint32_t*> memory(words.chars, size * 4)
        cdef const uint32_t* written = <const uint32_t*> memory(words.written, size * 4)
        cdef const uint64_t* keys = <const uint64_t*> memory(listed.keys, many * 8)
        cdef Py_ssize_t* unlisted = <Py_ssize_t*> memory(found, 2 * number * 8)
        cdef uint64_t key, power
        for text in range(number):
            if not 0 <= starts[text] <= starts[text + 1] <= size:
                raise ValueError("texts outside of the characters")
            begin = starts[text]
            for at in range(starts[text], starts[text + 1]):
                if chars[at] != SPACE:
                    continue
                if 0 < at - begin <= longest and not is_capital(lower, written[begin]):
                    unlisted[number + text] += 1
                    key, power = 0, 1
                    for begin in range(begin, at):
                        key += chars[begin] * power
                        power *= BASE
                    unlisted[text] += not is_among(key, keys, many)
                begin = at + 1
        return found[0], found[1]
