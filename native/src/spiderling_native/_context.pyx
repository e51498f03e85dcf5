"""The compiled twin of text/boilerplate/model.py: the same columns, to the last bit.

As in _features.pyx, numpy is asked for what it rounds in its own way.
"""

import math

import numpy

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memmove, memset

from spiderling_native._columns cimport (
    HEADING, IS_TITLE, LINK_DENSITY, LOG_WORDS, NUMBER_OF_TAGS, OPENING, PAGE, STOPS, TAGS,
    add_up, f32, f64, high, low, rows_of, shift,
)
from spiderling_native._text cimport memory

cdef enum:  # rows of the table of what is summed over groups
    ONES, WORDS, TEXT, SUM_OF_STOPS, CHANCE, SHARE, BOTH, TITLE, AT_OPENING, MASSES

cdef enum:
    LEVELS = 5, SAME_SHAPE = LEVELS, SAME_SHAPE_AND_TAG, SAME_SHAPE_AROUND, SECTION, GROUPS, MEASURES = 10
    NEAR = PAGE + GROUPS * MEASURES, FAR = 8, WINDOWS = 3, REACHES = 2, OWN_CHANCE = NEAR + 4
    NEIGHBOURS = OWN_CHANCE + 2, AROUND = NEIGHBOURS + FAR, NEXT = AROUND + 2 * WINDOWS, OF_PAGE = NEXT + REACHES
    FEATURES = OF_PAGE + 9, MAX_DEPTH = 60, TAG_BITS = 4

cdef Py_ssize_t[FAR] FAR_OF = [-4, -3, -2, -1, 1, 2, 3, 4]
cdef Py_ssize_t[WINDOWS] WIDTH_OF = [3, 10, 30]
cdef Py_ssize_t[REACHES] REACH_OF = [3, 10]
cdef f32 MIN = <f32> 1e-3
cdef f32 MAX = <f32> (1 - 1e-3)
cdef f64 TINY = 1e-9
cdef f32 ONE = 1


cdef class _Page:
    """What is known of the blocks of one page."""

    cdef Py_ssize_t number, elements, longest
    cdef object rows, table, text, both, words, chances, shapes_of_elements
    cdef f32* r              # the features of features.py, a row for each
    cdef f32* mass           # what is summed, a row for each
    cdef f32* groups         # sums (mass, group, block)
    cdef f64* sums           # room for the sums over the values before each block, of each mass
    cdef Py_ssize_t* inside  # the innermost element around each block
    cdef Py_ssize_t* order
    cdef Py_ssize_t* starts  # number of the blocks in the elements before each element
    cdef Py_ssize_t* parents
    cdef Py_ssize_t* ends
    cdef Py_ssize_t* depths
    cdef Py_ssize_t* shapes

    def __cinit__(self, rows, chances, list blocks, tree):
        cdef Py_ssize_t at, k, number = len(blocks), size = number * <Py_ssize_t> sizeof(f32)
        cdef Py_ssize_t elements = len(tree.parents), of_tree = elements * <Py_ssize_t> sizeof(Py_ssize_t)
        self.number, self.elements = number, elements
        self.rows = numpy.ascontiguousarray(rows.T, numpy.float32)
        self.chances = numpy.ascontiguousarray(chances, numpy.float32)
        self.r = <f32*> memory(self.rows, len(self.rows) * size)
        self.parents = <Py_ssize_t*> memory(tree.parents, of_tree)
        self.ends = <Py_ssize_t*> memory(tree.ends, of_tree)
        self.depths = <Py_ssize_t*> memory(tree.depths, of_tree)
        self.shapes = <Py_ssize_t*> memory(tree.shapes, of_tree)
        self.words = numpy.expm1(5 * self.rows[LOG_WORDS])
        self.table = numpy.empty((MASSES, number), numpy.float32)
        self.mass = <f32*> memory(self.table, MASSES * size)
        self.weigh(<f32*> memory(self.words, size), <f32*> memory(self.chances, size))
        self.text, self.both = self.table[TEXT], self.table[BOTH]
        self.groups = <f32*> PyMem_Malloc(MASSES * GROUPS * size)
        self.sums = <f64*> PyMem_Malloc(MASSES * (number + 1) * sizeof(f64))
        self.inside = <Py_ssize_t*> PyMem_Malloc(number * sizeof(Py_ssize_t))
        self.order = <Py_ssize_t*> PyMem_Malloc(number * sizeof(Py_ssize_t))
        self.starts = <Py_ssize_t*> PyMem_Calloc(elements + 2, sizeof(Py_ssize_t))
        if not (self.groups and self.sums and self.inside and self.order and self.starts):
            raise MemoryError
        self.sort(blocks)
        self.longest = self.inside[<Py_ssize_t> self.text.argmax()]

    def __dealloc__(self):
        PyMem_Free(self.groups)
        PyMem_Free(self.sums)
        PyMem_Free(self.inside)
        PyMem_Free(self.order)
        PyMem_Free(self.starts)

    cdef int weigh(self, f32* words, f32* chances) except -1:
        """Fill in the table of what is summed."""
        cdef Py_ssize_t number = self.number, at
        cdef f32* m = self.mass
        cdef f32* r = self.r
        cdef f32 all_words = <f32> <f64> max(TINY, float(self.words.sum()))
        for at in range(number):
            m[at] = 1
            m[WORDS * number + at] = words[at]
            m[TEXT * number + at] = words[at] * (ONE - r[LINK_DENSITY * number + at])
            m[SUM_OF_STOPS * number + at] = words[at] * r[STOPS * number + at]
            m[CHANCE * number + at] = chances[at]
            m[SHARE * number + at] = words[at] / all_words
            m[BOTH * number + at] = chances[at] * m[SHARE * number + at]
        memcpy(m + TITLE * number, r + IS_TITLE * number, number * sizeof(f32))
        memcpy(m + AT_OPENING * number, r + OPENING * number, number * sizeof(f32))

    cdef int sort(self, list blocks) except -1:
        """Sort the blocks by their elements, by counting; those of one element stay in their order."""
        cdef Py_ssize_t at, element, parent
        cdef Py_ssize_t* starts = self.starts + 1
        for at in range(self.number):
            element = (<tuple> blocks[at])[5]
            # with this every element around a block is a place in the tree's arrays and in `starts`
            parent = element
            while 0 <= parent < self.elements and 0 <= self.parents[parent] < parent <= self.ends[parent]:
                if self.ends[parent] > self.elements:
                    break
                parent = self.parents[parent]
            if parent or not 0 <= self.ends[0] <= self.elements:
                raise IndexError(f"element {element} of {self.elements}")
            self.inside[at] = element
            starts[element] += 1
        for element in range(1, self.elements):
            starts[element] += starts[element - 1]
        # now starts[element] is the end of the element's blocks, that is, self.starts[element + 1]
        for at in range(self.number - 1, -1, -1):
            starts[self.inside[at]] -= 1
            self.order[starts[self.inside[at]]] = at
        # now it is their begin
        memmove(self.starts, starts, self.elements * sizeof(Py_ssize_t))
        self.starts[self.elements] = self.number

    cdef void add(self, const Py_ssize_t* order) noexcept nogil:
        """Add up each mass in this *order*."""
        cdef Py_ssize_t k, at, number = self.number
        cdef f64* sums
        cdef f32* mass
        for k in range(MASSES):
            sums, mass = self.sums + k * (number + 1), self.mass + k * number
            sums[0] = 0
            for at in range(number):
                sums[at + 1] = sums[at] + mass[order[at]]

    cdef void enclosing(self) noexcept nogil:
        """Sums over the blocks inside each element around a block."""
        cdef Py_ssize_t k, at, level, element, first, last, number = self.number
        self.add(self.order)
        for at in range(number):
            element = self.inside[at]
            for level in range(LEVELS):
                first, last = self.starts[element], self.starts[self.ends[element]]
                for k in range(MASSES):
                    self.groups[(k * GROUPS + level) * number + at] = <f32> (
                        self.sums[k * (number + 1) + last] - self.sums[k * (number + 1) + first])
                element = self.parents[element]

    cdef int alike(self) except -1:
        """Sums over the blocks with elements of the same shape, and tag, and of the same shape around them."""
        cdef Py_ssize_t at, tag, k, number = self.number, size = number * <Py_ssize_t> sizeof(int64_t)
        cdef f32* tags = self.r + TAGS * number
        keys = numpy.empty((2, number), numpy.int64)
        cdef int64_t* own = <int64_t*> memory(keys, 2 * size)
        cdef int64_t* around = own + number
        for at in range(number):
            tag = 0
            for k in range(1, NUMBER_OF_TAGS):
                if tags[k * number + at] > tags[tag * number + at]:
                    tag = k
            own[at] = <int64_t> self.shapes[self.inside[at]] << TAG_BITS | (tag + 1)
            around[at] = self.shapes[self.parents[self.inside[at]]]
        orders = [key.argsort(kind="stable") for key in keys]
        cdef Py_ssize_t* order = <Py_ssize_t*> memory(orders[0], size)
        self.add(order)
        self.equal(own, order, TAG_BITS, SAME_SHAPE)
        self.equal(own, order, 0, SAME_SHAPE_AND_TAG)
        order = <Py_ssize_t*> memory(orders[1], size)
        self.add(order)
        self.equal(around, order, 0, SAME_SHAPE_AROUND)

    cdef void equal(self, const int64_t* keys, const Py_ssize_t* order, int bits, Py_ssize_t group) noexcept nogil:
        """Sums over the blocks whose keys are equal without their last *bits*; *order* sorts the keys."""
        cdef Py_ssize_t first = 0, last, k, at, number = self.number
        cdef f32 value
        while first < number:
            last = first + 1
            while last < number and keys[order[last]] >> bits == keys[order[first]] >> bits:
                last += 1
            for k in range(MASSES):
                value = <f32> (self.sums[k * (number + 1) + last] - self.sums[k * (number + 1) + first])
                for at in range(first, last):
                    self.groups[(k * GROUPS + group) * number + order[at]] = value
            first = last

    cdef int sections(self) except -1:
        """Sums over the blocks from a heading up to the next; headings in a row begin one section."""
        cdef Py_ssize_t at, k, place, number = self.number
        cdef f32* heading = self.r + HEADING * number
        cdef list begins = [at for at in range(number) if at == 0 or heading[at] > 0 and not heading[at - 1] > 0]
        found = numpy.add.reduceat(self.table, begins, axis=1)
        cdef Py_ssize_t several = len(begins)
        cdef f32* sums = <f32*> memory(found, MASSES * several * <Py_ssize_t> sizeof(f32))
        for place in range(several):
            for at in range(begins[place], begins[place + 1] if place + 1 < several else number):
                for k in range(MASSES):
                    self.groups[(k * GROUPS + SECTION) * number + at] = sums[k * several + place]

    cdef int measure(self, columns, f32* out) except -1:
        """Fill in the measures of each group of blocks."""
        cdef Py_ssize_t group, at, number = self.number, step = GROUPS * number
        cdef f32 all_text = <f32> <f64> max(1.0, float(self.text.sum()))
        cdef f32 all_both = <f32> (<f64> float(self.both.sum()) + TINY)
        cdef f32 tiny = <f32> TINY, words, text, number_of
        cdef f32* g
        cdef f32* o
        logs = numpy.empty((2, GROUPS, number), numpy.float32)
        cdef f32* a_block = <f32*> memory(logs, 2 * step * <Py_ssize_t> sizeof(f32))
        for group in range(GROUPS):
            o = out + group * MEASURES * number
            for at in range(number):
                g = self.groups + group * number + at
                number_of, words, text = g[0], g[WORDS * step], g[TEXT * step]
                if words < 1:
                    words = 1
                a_block[group * number + at] = number_of
                a_block[step + group * number + at] = text / number_of
                o[number + at] = text / all_text
                o[2 * number + at] = ONE - text / words
                o[3 * number + at] = g[SUM_OF_STOPS * step] / words
                if o[3 * number + at] > 1:
                    o[3 * number + at] = 1
                o[5 * number + at] = g[TITLE * step]
                o[6 * number + at] = g[AT_OPENING * step]
                o[7 * number + at] = g[BOTH * step] / (g[SHARE * step] + tiny)
                o[8 * number + at] = g[CHANCE * step] / number_of
                o[9 * number + at] = g[BOTH * step] / all_both
        measures = columns[PAGE:NEAR].reshape(GROUPS, MEASURES, number)
        measures[:, 0], measures[:, 4] = numpy.log1p(logs) / 5

    cdef void nearness(self, f32* out) noexcept nogil:
        """Fill in how far the ways from the root to each block and to the longest block's element agree."""
        cdef Py_ssize_t[MAX_DEPTH] above  # the outermost elements around the longest block, from the root on
        cdef Py_ssize_t levels = self.depths[self.longest], element = self.longest, at, common, depth
        cdef Py_ssize_t number = self.number
        for depth in range(levels - 1, -1, -1):
            if depth < MAX_DEPTH:
                above[depth] = element
            element = self.parents[element]
        levels = min(levels, <Py_ssize_t> MAX_DEPTH)
        for at in range(number):
            common = 0
            while common < levels and above[common] <= self.inside[at] < self.ends[above[common]]:
                common += 1  # each element encloses the next ones
            depth = min(self.depths[self.inside[at]], <Py_ssize_t> MAX_DEPTH)
            out[at] = <f32> (<f64> common / <f64> depth)
            out[number + at] = <f32> (<f64> (depth - common) / 8)
            out[2 * number + at] = <f32> (<f64> (levels - common) / 8)
            out[3 * number + at] = <f32> (<f64> depth / 20)

    cdef int around(self, columns, f32* c) except -1:
        """Fill in the chances of the block, its neighbours and what is around it."""
        cdef Py_ssize_t at, k, begin, end, number = self.number
        cdef f32* chance = self.mass + CHANCE * number
        cdef f32* o = c + OWN_CHANCE * number
        cdef f64* both = self.sums
        cdef f64* share = both + number + 1
        cdef f64* chances = share + number + 1
        cdef f32 value
        odds = numpy.empty(number, numpy.float32)
        cdef f32* odd = <f32*> memory(odds, number * <Py_ssize_t> sizeof(f32))
        for at in range(number):
            o[at] = value = chance[at]
            value = MIN if value < MIN else value
            value = MAX if value > MAX else value
            odd[at] = value / (ONE - value)
        columns[OWN_CHANCE + 1] = numpy.log(odds) / 5
        o = c + NEIGHBOURS * number
        memset(o, 0, FAR * number * sizeof(f32))
        for k in range(FAR):
            shift(chance, number, FAR_OF[k], o + k * number)
        add_up(self.mass + BOTH * number, number, both)
        add_up(self.mass + SHARE * number, number, share)
        add_up(chance, number, chances)
        o = c + AROUND * number
        for k in range(WINDOWS):
            for at in range(number):
                begin, end = low(at, WIDTH_OF[k]), high(at, WIDTH_OF[k], number)
                o[2 * k * number + at] = <f32> ((both[end] - both[begin]) / (share[end] - share[begin] + TINY))
                o[(2 * k + 1) * number + at] = <f32> ((chances[end] - chances[begin]) / <f64> (end - begin))
        o = c + NEXT * number
        for k in range(REACHES):
            for at in range(number):
                end = at + 1 + REACH_OF[k] if at + 1 + REACH_OF[k] < number else number
                o[k * number + at] = <f32> ((chances[end] - chances[at + 1]) / <f64> REACH_OF[k])

    cdef int of_page(self, f32* o) except -1:
        """Fill in the chances of the page."""
        cdef Py_ssize_t at, number = self.number
        cdef f32* both = self.mass + BOTH * number
        cdef f64 sum_of_both = <f64> float(self.both.sum()) + TINY
        cdef f32 total = <f32> sum_of_both, highest = <f32> (<f64> float(self.both.max()) + TINY)
        cdef f32 best = self.chances.max(), mean = self.chances.mean(), until = 0
        cdef f32 logs = <f32> <f64> (math.log1p(sum_of_both * float(self.words.sum())) / 10)
        for at in range(number):
            until += both[at]
            o[at] = (until - both[at]) / total
            o[number + at] = ONE - until / total
            o[2 * number + at] = both[at] / total
            o[3 * number + at], o[4 * number + at], o[5 * number + at] = total, best, mean
            o[6 * number + at] = logs
        until = both[0]
        o[7 * number] = 0
        for at in range(1, number):
            o[7 * number + at] = until / highest
            until = until if until > both[at] or until != until else both[at]
        until = both[number - 1]
        o[9 * number - 1] = 0
        for at in range(number - 2, -1, -1):
            o[8 * number + at] = until / highest
            until = until if until > both[at] or until != until else both[at]


cdef class Context:
    """`context`, when it is called."""

    def __init__(self, model):
        if len(model.NAMES) != FEATURES:
            raise ValueError("other features than those that were compiled")

    def __call__(self, rows, chances, blocks, tree):
        cdef _Page page = _Page(rows, chances, rows_of(blocks), tree)
        columns = numpy.empty((FEATURES, page.number), numpy.float32)
        cdef f32* c = <f32*> memory(columns, FEATURES * page.number * <Py_ssize_t> sizeof(f32))
        memcpy(c, page.r, PAGE * page.number * sizeof(f32))
        page.enclosing()
        page.alike()
        page.sections()
        page.measure(columns, c + PAGE * page.number)
        page.nearness(c + NEAR * page.number)
        page.around(columns, c)
        page.of_page(c + OF_PAGE * page.number)
        return columns.T
