"""The twin of spiderling/text/html/: libxml2 reads a page, and calls a `Builder` for what it finds.

The text of the block that is open stands in one buffer of UTF-8, with the marks EDGE and BREAK in it.  The Python
pass counts its tokens; here the place of a byte stands for that.  Functions have the names that they have there.

A pointer goes through a text only while it is before the text's end, which each loop tests; texts from libxml2 without
a size are ended by a zero byte.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.limits cimport INT_MAX
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, memset, strlen
from lxml.includes.xmlparser cimport xmlParserCtxt

from spiderling_native._names cimport (
    BUTTON, IFRAME, IMG, LINK_TAG, META, PARTED, SCRIPT, TEMPLATE, TITLE, Names, Tag,
)
from spiderling_native._sax cimport (
    Events, holds, mapping_of, next_attribute, read, reader_for, receiver_of, same, stop, text_of, value_of,
)
from spiderling_native._text cimport (
    ALPHA, BASIC, CONTROLS, LOWER, NEXT_LINE, ODD, SPACE, UPPER, WORD, Buffer, bits_of, characters, decoded,
    free_buffer, memory, put, put_byte, reserve, special_bytes, spiderling_row, step,
)

import numpy

cdef enum:
    # kinds of tags, as in zones.py
    INLINE = 0, BOX = 1, BLOCK = 2, HEADING = 3, LINK = 4, INSIDE = 5, LINE_BREAK = 6, AREA = 7, THROUGH = 8
    RAISED = 9, DEAD = 10, FIELD = 11, HEAD = 12
    EDGE = 0x1c
    SEAM = 0x1e
    MAX_EDGES = 8, MAX_PARTED = 64  # of parser.py
    BLANK = 1, SEWN = 2  # what stands between two characters: white space, a SEAM
    OUTSIDE = -1       # the block of a link that stands in none
    SHAPE_BITS = 48

cdef uint64_t FACTOR = 1000003  # of zones.py
cdef const uint8_t* BITS = characters()

cdef bint may_direct_robots(const char* text) noexcept nogil:
    """Whether a beginning of one of the directives of metadata.py stands in *text*: of noindex to unavailable_after."""
    while text[0]:
        if (text[0] | 0x20) == c"n" and (text[1] | 0x20) == c"o" and (text[2] | 0x20) in (c"i", c"f", c"n", c"a", c"c"):
            return True
        if (text[0] | 0x20) == c"u" and (text[1] | 0x20) == c"n" and (text[2] | 0x20) == c"a":
            return True
        text += 1
    return False


# -- a page on its way

cdef struct Row:  # a block
    Py_ssize_t at, size     # of its text in `texts`
    int link_chars, opener, pieces, element
    uint8_t heading, odd


cdef struct Place:  # of a text in a buffer
    Py_ssize_t at, size


cdef struct RowLink:  # its texts stand in `link_texts`
    Place href, rel, language, anchor
    int block
    uint8_t odd             # whether `anchor` may not be in normal form
    uint8_t is_refresh      # its address stands in `refreshes`


cdef struct Element:
    Py_ssize_t parent, depth, shape, zone


cdef struct Change:
    Py_ssize_t at
    int element


cdef void* grown(void* array, Py_ssize_t* room, Py_ssize_t size) except NULL:
    """*array* with room for twice as many things of *size* bytes."""
    cdef Py_ssize_t more = max(64, 2 * room[0])
    cdef void* found = PyMem_Realloc(array, more * size)
    if found == NULL:
        raise MemoryError
    room[0] = more
    return found


cdef inline bint is_place(const char* href) noexcept:
    """Whether a link leads to a place of a page."""
    return href != NULL and memchr(href, c"#", strlen(href)) != NULL


cdef inline Py_ssize_t leading_space(const unsigned char* data, Py_ssize_t size) noexcept:
    """Bytes of white space at the beginning of *data*."""
    cdef Py_ssize_t at = 0
    cdef int length
    cdef uint32_t code
    while at < size:
        if data[at] < 0x80:
            if not BITS[data[at]] & SPACE:
                break
            at += 1
        else:
            length = step(data + at, size - at, &code)
            if code >= BASIC or not BITS[code] & SPACE:
                break
            at += length
    return at


cdef bint sewn(const unsigned char* out, const unsigned char* data, Py_ssize_t size, bint has_space) noexcept:
    """Whether a space takes the place of white space with a SEAM in it, between what ends at *out* and *data*."""
    cdef uint32_t before, after, next_code
    cdef int length = step(data, size, &after), back = 1
    while (out[-back] & 0xC0) == 0x80 and back < 4:
        back += 1
    step(out - back, back, &before)
    if has_space:
        if after != c"," and after != c"." or before == c"," or before == c".":
            return True
        if length >= size:
            return False
        step(data + length, size - length, &next_code)
        return not bits_of(BITS, next_code) & SPACE
    if 0x2E80 <= before < 0xA000 or 0x2E80 <= after < 0xA000:
        return False
    if before in (c"-", c"/", c"(", c"[", c"{") or is_quote(before):
        return False
    return not is_quote(after) and after not in (
        c"-", c"/", c",", c".", c";", c":", c"!", c"?", c")", c"]", c"}", c"%", 0x2026,
    )


cdef inline bint is_quote(uint32_t code) noexcept:
    return code in (c"'", c'"', 0xAB, 0xBB, 0x2018, 0x2019, 0x201A, 0x201C, 0x201D, 0x201E, 0x2039, 0x203A)


cdef class Parser:
    """Does what spiderling/text/html/parser.py `parse` does.

    Arguments are what that package has by the same names; *python* is its `parse`, which reads the pages that are
    beyond the bounds of this one.
    """

    cdef Names names
    cdef object python, inherited, block, link, parsed, metadata, meta_names, normal_forms
    cdef bytes rubbish, next_line
    cdef int max_blocks, max_links, max_elements, max_depth
    cdef Py_ssize_t max_block_chars, max_anchor_chars

    def __init__(self, parser, blocks, metadata, zones):
        self.names = Names(zones)
        self.python, self.inherited = parser.parse, zones.Inherited
        self.block, self.link, self.parsed = blocks.Block, blocks.RawLink, blocks.Parsed
        self.metadata, self.meta_names = metadata.Metadata, metadata.META_NAMES
        self.normal_forms, self.rubbish, self.next_line = blocks.normal_forms, blocks.RUBBISH, blocks.NEXT_LINE.encode()
        self.max_blocks, self.max_block_chars = blocks.MAX_BLOCKS, blocks.MAX_BLOCK_CHARS
        self.max_links, self.max_anchor_chars = blocks.MAX_LINKS, blocks.MAX_ANCHOR_CHARS
        self.max_elements, self.max_depth = zones.MAX_ELEMENTS, zones.MAX_DEPTH

    def __call__(self, html):
        """Paragraphs, links and metadata of a page, bytes in UTF-8; never raises, in time linear in its length."""
        cdef bytes body = html.encode("utf-8", "replace") if isinstance(html, str) else html
        cdef uint8_t found = special_bytes(body, len(body))
        if found & CONTROLS:
            body = body.translate(None, self.rubbish)
        if found & NEXT_LINE:
            body = body.replace(self.next_line, "…".encode())
        page = Builder(self).found(body or b" ") if len(body) < INT_MAX else None
        return self.python(html) if page is None else page


cdef void on_start(void* reader, const char* tag, const char** attributes) noexcept:
    cdef Builder builder = <Builder> receiver_of(reader)
    if builder.is_over:
        return
    if attributes == NULL:
        attributes = NO_ATTRIBUTES
    try:
        builder.start(builder.names.tag_of(tag), attributes)
    except BaseException as failure:
        builder.fail(failure)


cdef void on_end(void* reader, const char* tag) noexcept:
    cdef Builder builder = <Builder> receiver_of(reader)
    if builder.is_over:
        return
    try:
        builder.end(builder.names.tag_of(tag))
    except BaseException as failure:
        builder.fail(failure)


cdef void on_text(void* reader, const char* text, int size) noexcept:
    cdef Builder builder = <Builder> receiver_of(reader)
    if builder.is_over:
        return
    try:
        builder.data(text, size)
    except BaseException as failure:
        builder.fail(failure)


cdef Events EVENTS
EVENTS.start, EVENTS.end, EVENTS.text = on_start, on_end, on_text
cdef const char* NO_ATTRIBUTES[1]  # only their end, NULL, as C begins it


cdef class Builder:
    """Receives the events of one page and makes blocks, links and metadata of them."""

    cdef Parser parser
    cdef Names names
    cdef xmlParserCtxt* reader
    cdef Buffer tokens, texts, link_texts, anchor
    cdef Row* rows
    cdef Py_ssize_t rows_used, rows_room
    cdef RowLink* links
    cdef Py_ssize_t links_used, links_room, first_of_block
    cdef Change* changes
    cdef Py_ssize_t changes_used, changes_room
    cdef Element* elements
    cdef Py_ssize_t elements_used, elements_room
    cdef int* opened
    cdef Py_ssize_t opened_used, opened_room
    cdef Tag** dead
    cdef Py_ssize_t dead_used, dead_room
    cdef int link_chars, links_cut, open_headings, opener, element, anchored
    cdef int depth               # of open inline elements and links
    cdef uint64_t parted         # bits by depth: may that open element stand apart by style?
    cdef Py_ssize_t raised       # the tokens before the <sup> that is open; -1: none is
    cdef bint is_mark, leads_to_place
    cdef bytes initial           # a letter that a picture shows at the beginning of the block, or before it
    cdef bint heading, is_open, has_anchor, after_break, is_full, is_beyond, is_over
    cdef Py_ssize_t link_start, break_end, dead_start, collected_start
    cdef object failure
    cdef list collected          # takes the text of the ignored element that is open; None: its text says nothing
    cdef object metadata
    cdef dict refreshes          # number of a link -> its target

    def __cinit__(self, Parser parser):
        self.parser, self.names = parser, parser.names
        self.metadata = parser.metadata()
        self.refreshes = {}
        self.raised, self.initial = -1, b""
        self.push(0)
        self.elements = <Element*> grown(self.elements, &self.elements_room, sizeof(Element))
        self.elements[0].parent, self.elements[0].depth = 0, 1
        self.elements[0].shape, self.elements[0].zone = 0, 0
        self.elements_used = 1

    def __dealloc__(self):
        free_buffer(&self.tokens)
        free_buffer(&self.texts)
        free_buffer(&self.link_texts)
        free_buffer(&self.anchor)
        PyMem_Free(self.rows)
        PyMem_Free(self.links)
        PyMem_Free(self.changes)
        PyMem_Free(self.elements)
        PyMem_Free(self.opened)
        PyMem_Free(self.dead)

    cdef object found(self, bytes body):
        """The page; None where the Python pass has to read it."""
        self.reader = reader_for(self, &EVENTS)
        read(self.reader, body)
        if self.failure is not None:
            raise self.failure
        return None if self.is_beyond else self.result()

    cdef int fail(self, failure) except -1:
        self.failure = failure
        self.end_here()

    cdef int end_here(self) except -1:
        """Nothing that follows is read."""
        self.is_over = True
        stop(self.reader)

    # -- events

    cdef inline int data(self, const char* text, int size) except -1:
        if self.dead_used and self.collected is None:
            return 0
        if memchr(text, EDGE, size) != NULL:  # the Python pass does not always take it for one
            self.is_beyond = True
            self.end_here()
        put(&self.tokens, text, size)

    cdef int start(self, Tag* tag, const char** attributes) except -1:
        cdef int kind = tag.kind, element
        cdef uint32_t zone = tag.zone, shape = tag.shape
        if kind >= HEAD:
            self.head(tag, attributes)
            kind -= HEAD
        if self.dead_used:
            self.enter_dead(tag, kind, attributes)
        elif (attributes[0] != NULL and kind <= INSIDE and kind != BLOCK
              and self.names.read(tag, attributes, &zone, &shape)
              and not (tag.is_wrapper and (self.rows_used == 0 or self.rows[self.rows_used - 1].heading))):
            self.sew()
            self.ignore(tag)
        elif kind == BOX:
            element = self.enter(zone, shape)
            self.new_block(tag.number)
            self.element = element
        elif kind == INLINE:
            if value_of(attributes, b"hidden") != NULL:
                self.put_apart()
                self.depth += 1
            else:
                self.begin_inline(zone)
            self.after_break = False
        elif kind == LINK:
            self.after_break = False
            if self.raised >= 0 and is_place(value_of(attributes, b"href")):
                put_byte(&self.tokens, EDGE)
                self.is_mark = True
                self.ignore(tag)
            else:
                self.begin_inline(zone)
                self.open_link(attributes)
        elif kind <= HEADING:
            element = self.push(self.opened[self.opened_used - 1])
            self.open_headings += kind == HEADING
            self.new_block(tag.number)
            self.element = element
        else:
            self.open(tag, kind, attributes, zone, shape)

    cdef int open(self, Tag* tag, int kind, const char** attributes, uint32_t zone, uint32_t shape) except -1:
        if kind >= DEAD and not (tag.special == TEMPLATE and value_of(attributes, b"shadowrootmode") != NULL):
            if kind == FIELD:
                self.put_apart()
            self.ignore(tag)
            return 0
        if tag.zoned:
            if kind > INSIDE:  # else they are read
                self.names.read(tag, attributes, &zone, &shape)
            self.enter(zone, shape)
            self.element_changed()
        if kind == THROUGH:
            if tag.special == IFRAME:
                self.add_link(attributes, True, <int> self.rows_used)
        elif kind == LINE_BREAK:
            self.line_break()
        elif kind == INSIDE:
            if tag.special == IMG:
                self.note_initial(value_of(attributes, b"alt"))
            self.put_apart()
            self.after_break = False
        else:
            put_byte(&self.tokens, EDGE)
            self.after_break = False
            if kind == AREA:
                self.add_link(attributes, True, <int> self.rows_used)
            elif kind == RAISED:
                self.raise_text(tag)

    cdef int raise_text(self, Tag* tag) except -1:
        if self.leads_to_place and self.is_blank(self.link_start):
            self.sew()
            self.ignore(tag)
        else:
            self.raised = self.tokens.size
            self.is_mark = False

    cdef int end_raised(self) except -1:
        if self.is_mark and self.raised >= 0:
            self.cut_from(self.raised)
            self.sew()
        self.raised = -1

    cdef int end_a(self) except -1:
        if self.leads_to_place and not self.is_blank(self.link_start) and not self.has_word(self.link_start):
            self.cut_from(self.link_start)
            self.put_apart()
        self.end_link()
        self.end_anchor()

    cdef int sew(self) except -1:
        cdef const unsigned char* data = <const unsigned char*> self.tokens.data
        cdef Py_ssize_t at = self.tokens.size, first = max(0, at - MAX_EDGES)
        cdef uint32_t code
        while at > first and data[at - 1] == EDGE:
            at -= 1
        if at == first:
            return 0
        at -= 1
        while at > 0 and (data[at] & 0xC0) == 0x80:
            at -= 1
        step(data + at, self.tokens.size - at, &code)
        if bits_of(BITS, code) & SPACE:
            put_byte(&self.tokens, SEAM)

    cdef bint is_blank(self, Py_ssize_t start) noexcept:
        """Whether the open block has only white space from *start* on."""
        cdef Py_ssize_t left = self.tokens.size - start
        return left <= 0 or leading_space(<const unsigned char*> self.tokens.data + start, left) == left

    cdef bint has_word(self, Py_ssize_t at) noexcept:
        cdef const unsigned char* data = <const unsigned char*> self.tokens.data
        cdef uint32_t code
        while at < self.tokens.size:
            at += step(data + at, self.tokens.size - at, &code)
            if bits_of(BITS, code) & WORD:
                return True
        return False

    cdef int cut_from(self, Py_ssize_t start) except -1:
        """Leave out what the open block has from *start* on."""
        self.tokens.size = start
        self.after_break = False
        while self.changes_used and self.changes[self.changes_used - 1].at > start:
            self.changes_used -= 1

    cdef int note_initial(self, const char* letter) except -1:
        cdef uint32_t code
        cdef Py_ssize_t size = 0 if letter == NULL else strlen(letter)
        if not 0 < size <= 4 or step(<const unsigned char*> letter, size, &code) != size:
            return 0
        if bits_of(BITS, code) & UPPER and self.is_blank(0):
            self.initial = letter

    cdef int end(self, Tag* tag) except -1:
        cdef int kind = tag.kind
        if self.dead_used:
            self.end_dead()
        elif kind == INLINE or kind == HEAD + INLINE:
            self.end_inline()
        elif kind <= HEADING:
            self.open_headings -= kind == HEADING
            self.new_block(0)
            self.element = self.leave()
        elif kind == LINK:
            self.end_a()
            self.end_inline()
        else:
            if kind == RAISED:
                self.end_raised()
            if kind == INSIDE:
                self.put_apart()
            elif kind != THROUGH:
                put_byte(&self.tokens, EDGE)
            if tag.zoned:
                self.leave()
                self.element_changed()

    cdef inline int begin_inline(self, uint32_t zone) except -1:
        if zone & PARTED and self.depth < MAX_PARTED:
            self.parted |= <uint64_t> 1 << self.depth
            put(&self.tokens, b"\x1c\x1e\x1c", 3)
        else:
            put_byte(&self.tokens, EDGE)
        self.depth += 1

    cdef inline int end_inline(self) except -1:
        self.depth -= 1
        if self.parted and 0 <= self.depth < MAX_PARTED and self.parted >> self.depth & 1:
            self.parted ^= <uint64_t> 1 << self.depth
            put(&self.tokens, b"\x1c\x1e\x1c", 3)
        else:
            put_byte(&self.tokens, EDGE)

    cdef inline int put_apart(self) except -1:
        put(&self.tokens, b"\x1c \x1c", 3)

    # -- ignored elements

    cdef int push_dead(self, Tag* tag) except -1:
        if self.dead_used == self.dead_room:
            self.dead = <Tag**> grown(self.dead, &self.dead_room, sizeof(Tag*))
        self.dead[self.dead_used] = tag
        self.dead_used += 1

    cdef int ignore(self, Tag* tag) except -1:
        self.dead_start = self.tokens.size
        self.push_dead(tag)

    cdef int enter_dead(self, Tag* tag, int kind, const char** attributes) except -1:
        cdef Tag* first = self.dead[0]
        if tag.special == BUTTON and first.special == BUTTON:
            self.revive()
        elif BOX <= kind <= HEADING and (first.is_phrase or first.kind == INLINE or first.kind == LINK):
            self.revive()
            self.start(tag, attributes)
            return 0
        elif kind == LINK and first.special != TEMPLATE:
            self.add_link(attributes, False, OUTSIDE)
        self.push_dead(tag)

    cdef int revive(self) except -1:
        cdef Py_ssize_t place
        cdef Tag* one
        for place in range(self.dead_used):
            one = self.dead[place]
            self.open_headings += one.kind == HEADING
            self.depth += one.kind == INLINE or one.kind == LINK or one.kind == HEAD + INLINE
            if BOX <= one.kind <= HEADING or one.zoned:
                self.push(self.opened[self.opened_used - 1])
        self.cut_dead()
        self.dead_used = 0

    cdef int end_dead(self) except -1:
        cdef Py_ssize_t size = self.tokens.size - self.collected_start
        self.dead_used -= 1
        if self.collected is not None:
            if size > 0:
                self.collected.append(decoded(self.tokens.data + self.collected_start, size))
            self.collected = None
        self.cut_dead()

    cdef inline void cut_dead(self) noexcept:
        self.tokens.size = min(self.tokens.size, self.dead_start)

    # -- the tree of elements (zones.py)

    cdef int push(self, int number) except -1:
        if self.opened_used == self.opened_room:
            self.opened = <int*> grown(self.opened, &self.opened_room, sizeof(int))
        self.opened[self.opened_used] = number
        self.opened_used += 1
        return number

    cdef inline int leave(self) noexcept:
        if self.opened_used > 1:
            self.opened_used -= 1
        return self.opened[self.opened_used - 1]

    cdef int enter(self, uint32_t zone, uint32_t shape) except -1:
        cdef int number = <int> self.elements_used
        cdef int parent = self.opened[self.opened_used - 1]
        cdef Element* element
        if number >= self.parser.max_elements or self.opened_used > self.parser.max_depth:
            return self.push(parent)
        if number == self.elements_room:
            self.elements = <Element*> grown(self.elements, &self.elements_room, sizeof(Element))
        element = &self.elements[number]
        element.parent = parent
        element.depth = self.elements[parent].depth + 1
        element.shape = <Py_ssize_t> (
            (<uint64_t> self.elements[parent].shape * FACTOR + shape) & ((<uint64_t> 1 << SHAPE_BITS) - 1)
        )
        element.zone = self.elements[parent].zone | zone
        self.elements_used += 1
        return self.push(number)

    cdef int element_changed(self) except -1:
        cdef int element = self.opened[self.opened_used - 1]
        if not self.tokens.size:
            self.element = element
            return 0
        if self.changes_used == self.changes_room:
            self.changes = <Change*> grown(self.changes, &self.changes_room, sizeof(Change))
        self.changes[self.changes_used].at = self.tokens.size
        self.changes[self.changes_used].element = element
        self.changes_used += 1

    # -- blocks

    cdef int new_block(self, int opener) except -1:
        cdef Py_ssize_t place, first
        if self.tokens.size:
            first = leading_space(<const unsigned char*> self.tokens.data, self.tokens.size)
            if first < self.tokens.size:
                self.add_block(first)
                self.initial = b""
            self.tokens.size = 0
            self.link_start = self.break_end = 0
            self.raised = -1
            self.changes_used = 0
            if self.rows_used >= self.parser.max_blocks:
                self.is_full = True
                self.end_here()
                return 0
        for place in range(self.first_of_block, self.links_used):
            self.links[place].block = OUTSIDE
        self.first_of_block = self.links_used
        self.heading = self.open_headings > 0
        self.opener = opener

    cdef int add_block(self, Py_ssize_t first) except -1:
        """Add the block that is open; its text begins at *first*."""
        cdef int element = self.element
        cdef Row* row
        if self.is_open:
            self.read_text()
        if self.after_break:
            self.after_break = self.is_after_break()
        if element != self.opened[self.opened_used - 1] or self.changes_used:
            element = self.text_element(first)
        if self.rows_used == self.rows_room:
            self.rows = <Row*> grown(self.rows, &self.rows_room, sizeof(Row))
        row = &self.rows[self.rows_used]
        memset(row, 0, sizeof(Row))
        self.join(row, first)
        row.heading, row.link_chars, row.opener, row.element = self.heading, self.link_chars, self.opener, element
        self.rows_used += 1
        self.first_of_block = self.links_used
        self.link_chars = 0

    cdef int join(self, Row* row, Py_ssize_t at) except -1:
        """Add the text of the block from *at* on to `texts`: without EDGEs, all white space as one space."""
        cdef const unsigned char* data = <const unsigned char*> self.tokens.data
        cdef Py_ssize_t size = self.tokens.size
        cdef const unsigned char* piece  # the first byte of the piece that has been counted
        cdef unsigned char* out
        cdef uint32_t code
        cdef int length
        cdef uint8_t bits, odd = 0, gap = 0
        cdef bint is_counted = False
        row.at = self.texts.size
        if self.initial and self.begins_small(data + at, size - at):
            put(&self.texts, self.initial, len(self.initial))
            step(<const unsigned char*> <const char*> self.initial, len(self.initial), &code)
            odd = bits_of(BITS, code)
        # each byte is written at most once, and a space only in place of white space or an EDGE
        reserve(&self.texts, size - at)
        out = <unsigned char*> self.texts.data + self.texts.size
        while at < size:
            if data[at] < 0x80:
                bits = BITS[data[at]]
                length = 1
                if bits & SPACE:
                    if data[at] == EDGE:
                        is_counted = False
                        if not gap and self.parts(data, at, size):
                            gap = BLANK
                    else:
                        gap |= SEWN if data[at] == SEAM else BLANK
                    at += 1
                    continue
            else:
                length = step(data + at, size - at, &code)
                bits = bits_of(BITS, code)
                if bits & SPACE:
                    gap |= BLANK
                    at += length
                    continue
            if gap:
                if gap == BLANK or sewn(out, data + at, size - at, gap & BLANK):
                    out[0] = 32
                    out += 1
                gap = 0
            if not is_counted:
                row.pieces += 1
                is_counted = True
            odd |= bits
            out[0] = data[at]
            if length > 1:
                memcpy(out + 1, data + at + 1, length - 1)
            out += length
            at += length
        self.texts.size = <char*> out - self.texts.data
        row.size = self.texts.size - row.at
        row.odd = odd & ODD

    cdef bint begins_small(self, const unsigned char* data, Py_ssize_t size) noexcept:
        cdef uint32_t code
        step(data, size, &code)
        return bits_of(BITS, code) & LOWER != 0

    cdef inline bint parts(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept:
        """Whether a word in small letters ends before the EDGE at *at*, and one with a capital begins behind it."""
        if at == 0 or data[at - 1] == EDGE or data[at - 1] < 0x80 and not BITS[data[at - 1]] & LOWER:
            return False
        return self.meet(data, at, size)

    cdef bint meet(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept:
        cdef Py_ssize_t place = at
        cdef uint32_t code
        cdef int number
        cdef uint8_t bits
        for number in range(3):  # the three characters before it
            if place == 0:
                return False
            place -= 1
            while place > 0 and (data[place] & 0xC0) == 0x80:
                place -= 1
            step(data + place, size - place, &code)
            bits = bits_of(BITS, code)
            if not bits & WORD or number == 0 and not bits & LOWER:
                return False
        while at < size and data[at] == EDGE:
            at += 1
        if at >= size:
            return False
        at += step(data + at, size - at, &code)
        bits = bits_of(BITS, code)
        if not bits & UPPER or not bits & WORD or at >= size:
            return False
        step(data + at, size - at, &code)
        return bits_of(BITS, code) & ALPHA != 0

    cdef int text_element(self, Py_ssize_t first) noexcept:
        cdef const char* edge = <const char*> memchr(self.tokens.data + first, EDGE, self.tokens.size - first)
        cdef Py_ssize_t place
        if edge == NULL:
            return self.opened[self.opened_used - 1]
        for place in range(self.changes_used - 1, -1, -1):
            if self.changes[place].at <= edge - self.tokens.data:
                return self.changes[place].element
        return self.element

    cdef int line_break(self) except -1:
        if self.is_after_break():
            self.new_block(0)
        else:
            self.after_break = True
            put(&self.tokens, b"\x1c\x1d\x1c", 3)
            self.break_end = self.tokens.size

    cdef bint is_after_break(self) noexcept:
        cdef Py_ssize_t left = self.tokens.size - self.break_end
        if not self.after_break or left <= 0:
            return self.after_break
        return leading_space(<const unsigned char*> self.tokens.data + self.break_end, left) == left

    # -- links

    cdef int open_link(self, const char** attributes) except -1:
        self.end_link()
        self.end_anchor()
        self.is_open = True
        self.leads_to_place = is_place(value_of(attributes, b"href"))
        self.link_start = self.tokens.size
        if self.add_link(attributes, False, <int> self.rows_used):
            self.has_anchor = True
            self.anchored = <int> self.links_used - 1

    cdef bint add_link(self, const char** attributes, bint is_area, int block) except -1:
        """Add the link of an element, if it has an address; returns whether it was added."""
        cdef const char* href = value_of(attributes, b"src") if is_area else NULL
        cdef const char* rel
        cdef const char* language
        cdef RowLink link
        if href == NULL:
            href = value_of(attributes, b"href")
        if href == NULL:
            return False
        if self.links_used >= self.parser.max_links:
            self.links_cut += 1
            return False
        rel = value_of(attributes, b"rel")
        if rel != NULL and (holds(rel, b"canonical") or holds(rel, b"license")):
            self.metadata.read_rel(text_of(rel).lower(), text_of(href))
        language = value_of(attributes, b"hreflang")
        if language == NULL or not language[0]:
            language = value_of(attributes, b"lang")
        memset(&link, 0, sizeof(link))
        link.block = block
        self.keep_text(&link.href, href)
        self.keep_text(&link.rel, rel)
        self.keep_text(&link.language, language)
        self.keep_text(&link.anchor, value_of(attributes, b"alt"))
        self.keep_link(&link)
        return True

    cdef inline int keep_text(self, Place* place, const char* text) except -1:
        if text != NULL and text[0]:
            place.at, place.size = self.link_texts.size, strlen(text)
            put(&self.link_texts, text, place.size)

    cdef int keep_link(self, RowLink* link) except -1:
        if self.links_used == self.links_room:
            self.links = <RowLink*> grown(self.links, &self.links_room, sizeof(RowLink))
        self.links[self.links_used] = link[0]
        self.links_used += 1

    cdef inline int end_link(self) except -1:
        if self.is_open:
            self.read_text()
            self.is_open = self.leads_to_place = False

    cdef int read_text(self) except -1:
        """Count the open link's text in the current block, and keep it for the anchor."""
        cdef Py_ssize_t at = self.link_start, end
        cdef const char* edge
        while at < self.tokens.size:
            edge = <const char*> memchr(self.tokens.data + at, EDGE, self.tokens.size - at)
            end = self.tokens.size if edge == NULL else edge - self.tokens.data
            self.read_piece(<const unsigned char*> self.tokens.data + at, end - at)
            at = end + 1

    cdef int read_piece(self, const unsigned char* data, Py_ssize_t size) except -1:
        cdef Py_ssize_t at = leading_space(data, size)
        cdef int chars = at > 0
        cdef bint has_space = False
        cdef uint8_t odd = 0, bits
        cdef uint32_t code
        cdef int length
        cdef char* out
        if at == size:
            return 0
        # each byte is written at most once, and a space only in place of white space but the first
        reserve(&self.anchor, size - at + 1)
        out = self.anchor.data + self.anchor.size
        if self.anchor.size:
            out[0] = 32
            out += 1
        while at < size:
            length = step(data + at, size - at, &code)
            bits = bits_of(BITS, code)
            if bits & SPACE:
                has_space = True
                at += length
                continue
            if has_space:
                out[0] = 32
                out += 1
                chars += 1
                has_space = False
            chars += 1
            odd |= bits
            memcpy(out, data + at, length)
            out += length
            at += length
        self.link_chars += chars + has_space
        if self.has_anchor:
            self.anchor.size = out - self.anchor.data
            self.links[self.anchored].odd |= odd & ODD

    cdef int end_anchor(self) except -1:
        cdef RowLink* link
        if self.has_anchor and self.anchor.size:
            link = &self.links[self.anchored]
            link.anchor.at, link.anchor.size = self.link_texts.size, self.anchor.size
            put(&self.link_texts, self.anchor.data, self.anchor.size)
        self.has_anchor = False
        self.anchor.size = 0

    # -- the head

    cdef int head(self, Tag* tag, const char** attributes) except -1:
        cdef const char* rel
        cdef RowLink link
        if tag.special == TITLE or tag.special == SCRIPT:
            self.collected = None
            self.collected_start = self.tokens.size
            # a script without a type says nothing
            if tag.special == TITLE or value_of(attributes, b"type") != NULL:
                name = self.names.tags[tag.number]
                behind_text = self.rows_used > 0 and (self.dead_used == 0 or self.dead[0].kind == FIELD)
                self.collected = self.metadata.texts_of(name, mapping_of(attributes), behind_text)
            return 0
        if tag.special == LINK_TAG:
            # `read_tag` makes nothing of other ones
            rel = value_of(attributes, b"rel")
            if rel == NULL or not (holds(rel, b"canonical") or holds(rel, b"license") or holds(rel, b"alternate")):
                return 0
        if tag.special == META and self.says_nothing(attributes):
            return 0
        target = self.metadata.read_tag(self.names.tags[tag.number], mapping_of(attributes))
        if target is not None:
            self.refreshes[self.links_used] = target
            memset(&link, 0, sizeof(link))
            link.block, link.is_refresh = OUTSIDE, True
            self.keep_link(&link)

    cdef bint says_nothing(self, const char** attributes) except -1:
        """Whether `read_tag` certainly makes nothing of a <meta>, as of most."""
        cdef const char* name
        cdef const char* value
        while next_attribute(&attributes, &name, &value):
            if same(name, b"content"):
                if may_direct_robots(value):
                    return False
            elif same(name, b"name") or same(name, b"property") or same(name, b"http-equiv") or same(name, b"itemprop"):
                if text_of(value).strip().lower() in self.parser.meta_names:
                    return False
        return True

    # -- the result

    cdef object result(self):
        if self.dead_used:
            self.end_dead()
        if not self.is_full:
            self.new_block(0)
        self.end_anchor()
        head = self.metadata
        head.end()
        forms = self.forms()
        return self.parser.parsed(
            blocks=self.blocks(forms),
            links=self.raw_links(self.block_numbers(forms)),
            title=head.title,
            meta=head.meta,
            rels=head.rels,
            base=head.base,
            html_lang=head.html_lang,
            alternates=head.alternates,
            data=head.data,
            links_cut=self.links_cut,
            tree=self.tree(),
        )

    cdef list forms(self):
        """The texts of the rows in normal form."""
        cdef Py_ssize_t place, most = self.parser.max_block_chars
        cdef Row* rows = self.rows
        cdef list texts = [
            decoded(self.texts.data + rows[place].at, rows[place].size) for place in range(self.rows_used)
        ]
        cdef list odd = [place for place in range(self.rows_used) if rows[place].odd]
        for place, form in zip(odd, self.parser.normal_forms([texts[place] for place in odd])):
            texts[place] = form
        for place in range(self.rows_used):
            if rows[place].size > most and len(texts[place]) > most:
                texts[place] = texts[place][:most].rstrip()
        return texts

    cdef list block_numbers(self, list forms):
        """Row -> number of its block, OUTSIDE for those without text."""
        cdef list numbers = []
        cdef int number = 0
        for form in forms:
            numbers.append(number if form else OUTSIDE)
            number += 1 if form else 0
        return numbers

    cdef list blocks(self, list forms):
        cdef Row* row
        cdef Py_ssize_t place
        cdef list found = []
        for place in range(self.rows_used):
            row = &self.rows[place]
            form = forms[place]
            if form:
                block = spiderling_row(self.parser.block, 6)
                set_item(block, 0, form)
                set_item(block, 1, row.heading != 0)
                set_item(block, 2, row.link_chars)
                set_item(block, 3, self.names.tags[row.opener])
                set_item(block, 4, row.pieces)
                set_item(block, 5, row.element)
                found.append(block)
        return found

    cdef list raw_links(self, list numbers):
        cdef RowLink* link
        cdef Py_ssize_t place
        cdef int block
        cdef list found = []
        cdef dict odd = self.odd_anchors()
        for place in range(self.links_used):
            link = &self.links[place]
            block = link.block
            if block != OUTSIDE:
                block = numbers[block] if block < len(numbers) else OUTSIDE
            row = spiderling_row(self.parser.link, 5)
            set_item(row, 0, self.refreshes[place] if link.is_refresh else self.text_at(&link.href))
            set_item(row, 1, self.text_at(&link.rel).lower())
            set_item(row, 2, odd[place] if link.odd else self.cut(self.text_at(&link.anchor)))
            set_item(row, 3, block)
            set_item(row, 4, self.text_at(&link.language))
            found.append(row)
        return found

    cdef inline object text_at(self, Place* place):
        return decoded(self.link_texts.data + place.at, place.size) if place.size else ""

    cdef inline object cut(self, str anchor):
        cdef Py_ssize_t most = self.parser.max_anchor_chars
        return anchor if len(anchor) <= most else anchor[:most]

    cdef dict odd_anchors(self):
        """Number of a link -> its anchor in normal form."""
        cdef Py_ssize_t place
        cdef list odd = [place for place in range(self.links_used) if self.links[place].odd]
        forms = self.parser.normal_forms([self.text_at(&self.links[place].anchor) for place in odd])
        return {place: self.cut(form) for place, form in zip(odd, forms)}

    cdef object tree(self):
        """The tree with what its elements inherit, as `Tree.inherited` gives it."""
        cdef Py_ssize_t place, number = self.elements_used
        columns = numpy.empty((5, number), numpy.intp)
        cdef Py_ssize_t* parents = <Py_ssize_t*> memory(columns, 5 * number * <Py_ssize_t> sizeof(Py_ssize_t))
        cdef Py_ssize_t* ends = parents + number
        for place in range(number):
            parents[place], ends[place] = self.elements[place].parent, place + 1
            parents[2 * number + place] = self.elements[place].depth
            parents[3 * number + place] = self.elements[place].shape
            parents[4 * number + place] = self.elements[place].zone
        for place in range(number - 1, 0, -1):
            ends[parents[place]] = max(ends[parents[place]], ends[place])
        return self.parser.inherited(*columns)


cdef inline int set_item(object row, Py_ssize_t place, object value) except -1:
    Py_INCREF(value)
    PyTuple_SET_ITEM(row, place, value)
