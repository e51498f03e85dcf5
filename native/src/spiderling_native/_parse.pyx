# cython: language_level=3, cdivision=True
"""The twin of spiderling/text/html/: libxml2 builds the tree of a page, and a `Walker` goes through it.

Of libxml2 only fields of xmlNode and xmlAttr are read, by lxml's public C API; none of its functions is called.
The text of the block that is open stands in one buffer of UTF-8, with the marks EDGE and BREAK in it.  The Python
pass counts its tokens; here the place of a byte stands for that.  Functions have the names that they have there.

A pointer goes through a text only while it is before the text's end, which each loop tests; texts from libxml2 are
also ended by a zero byte.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset, strcmp, strlen
from lxml.includes cimport etreepublic
from lxml.includes.tree cimport xmlAttr, xmlNode

from spiderling_native._text cimport (
    ALPHA, BASIC, LOWER, ODD, SPACE, UPPER, WORD, Buffer, bits_of, characters, free_buffer, put, put_byte, reserve,
    spiderling_row, step,
)

from lxml import etree
import numpy

etreepublic.import_lxml__etree()

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char* data, Py_ssize_t size, const char* errors)

cdef enum:
    # kinds of tags, as in tags.py
    INLINE = 0
    BOX = 1
    BLOCK = 2
    HEADING = 3
    LINK = 4
    INSIDE = 5
    LINE_BREAK = 6
    AREA = 7
    THROUGH = 8
    DEAD = 9
    FIELD = 10
    HEAD = 11
    # tags that are treated on their own
    OTHER = 0
    TITLE = 1
    SCRIPT = 2
    META = 3
    LINK_TAG = 4
    BUTTON = 5
    IFRAME = 6
    # types of nodes
    ELEMENT_NODE = 1
    TEXT_NODE = 3
    CDATA_NODE = 4
    EDGE = 0x1c
    OUTSIDE = -1       # the block of a link that stands in none
    TAGS = 512         # places of the table of tags, a power of two of which at most half are used
    MEMO = 16384       # places of a `Memo`, likewise
    MEMO_LOOKS = 32    # places that are looked at; names made to collide would be far to seek
    MEMO_BYTES = 1000  # longer names are worked out each time
    MAX_LEVELS = 2000  # levels of a page beyond which the Python pass reads it: libxml2 builds none below 2,048
    MAX_ATTRIBUTES = 100  # of a tag, likewise: libxml2 takes quadratic time to put them into its tree
    SHAPE_BITS = 48
    # of bytes in tags
    GAP = 1
    SLASH = 2
    EQUALS = 4
    TAG_END = 8

cdef uint64_t FACTOR = 1000003  # of zones.py
cdef const uint8_t* BITS = characters()
cdef dict SPECIAL = {
    "title": TITLE, "script": SCRIPT, "meta": META, "link": LINK_TAG, "button": BUTTON, "iframe": IFRAME,
}


# -- what is known of tags and names

cdef struct Tag:
    const char* name     # ended by a zero byte; NULL in an empty place
    uint32_t zone        # without names
    uint32_t shape
    int number           # in `Parser.names`
    uint8_t kind
    uint8_t special
    uint8_t zoned


cdef struct Known:
    char* name           # NULL in an empty place
    Py_ssize_t size
    uint64_t hash
    uint32_t zone
    uint32_t shape


cdef inline uint32_t hash_of(const char* name) noexcept nogil:
    cdef uint32_t value = 2166136261
    while name[0]:
        value = (value ^ <unsigned char> name[0]) * 16777619
        name += 1
    return value ^ (value >> 13)


cdef class Memo:
    """Zone and shape of classes, and zones of other names, as far as they were asked for before."""

    cdef Known* known
    cdef int used

    def __cinit__(self):
        self.known = <Known*> PyMem_Calloc(MEMO, sizeof(Known))
        if self.known == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.known != NULL:
            self.clear()
        PyMem_Free(self.known)

    cdef void clear(self) noexcept:
        cdef int place
        for place in range(MEMO):
            PyMem_Free(self.known[place].name)
        memset(self.known, 0, MEMO * sizeof(Known))
        self.used = 0

    cdef Known* find(self, const char* name, Py_ssize_t size, uint32_t salt) noexcept:
        """The place of *name*, empty if it is not known; NULL if that would be far to seek.

        With the same bytes, different salts never give the same hash.
        """
        cdef uint64_t value = 14695981039346656037u ^ salt
        cdef Py_ssize_t at
        cdef Known* known
        for at in range(size):
            value = (value ^ <unsigned char> name[at]) * 1099511628211u
        value ^= value >> 29
        for at in range(MEMO_LOOKS):
            known = &self.known[(value + at) & (MEMO - 1)]
            if known.name == NULL:
                known.hash = value
                return known
            if known.hash == value and known.size == size and memcmp(known.name, name, size) == 0:
                return known
        return NULL

    cdef int keep(self, const char* name, Py_ssize_t size, uint32_t salt, uint32_t zone, uint32_t shape) except -1:
        cdef Known* known
        cdef char* copy
        if self.used >= MEMO // 2:
            self.clear()
        known = self.find(name, size, salt)
        if known == NULL or known.name != NULL:
            return 0
        copy = <char*> PyMem_Malloc(size)
        if copy == NULL:
            raise MemoryError
        memcpy(copy, name, size)
        known.name, known.size, known.zone, known.shape = copy, size, zone, shape
        self.used += 1
        return 0


# -- nodes

cdef inline const char* text_of(const xmlAttr* attribute) noexcept nogil:
    """The value of an attribute where it is at most one text, as it is in HTML; else NULL."""
    cdef const xmlNode* child = attribute.children
    if child == NULL:
        return b""
    if child.next != NULL or child.type != TEXT_NODE or child.content == NULL:
        return NULL
    return <const char*> child.content


cdef inline object decoded(const char* data, Py_ssize_t size):
    return PyUnicode_DecodeUTF8(data, size, b"replace")


cdef object value_of(const xmlAttr* attribute):
    cdef const char* text = text_of(attribute)
    cdef const xmlNode* child
    cdef list parts
    if text != NULL:
        return decoded(text, strlen(text))
    parts = []
    child = attribute.children
    while child != NULL:
        if child.content != NULL:
            parts.append(decoded(<const char*> child.content, strlen(<const char*> child.content)))
        child = child.next
    return "".join(parts)


cdef inline const xmlAttr* find_attribute(const xmlNode* node, const char* name) noexcept nogil:
    cdef const xmlAttr* attribute = node.properties
    while attribute != NULL and strcmp(<const char*> attribute.name, name) != 0:
        attribute = attribute.next
    return attribute


cdef dict attributes_of(const xmlNode* node):
    cdef const xmlAttr* attribute = node.properties
    cdef dict found = {}
    while attribute != NULL:
        found.setdefault(decoded(<const char*> attribute.name, strlen(<const char*> attribute.name)), value_of(attribute))
        attribute = attribute.next
    return found


cdef inline bint holds(const char* text, const char* word) noexcept nogil:
    """Whether *word*, of small letters a to z, stands in *text*, in small letters or capitals."""
    cdef Py_ssize_t at
    while text[0]:
        at = 0
        while word[at] and (text[at] | 0x20) == word[at]:
            at += 1
        if not word[at]:
            return True
        text += 1
    return False


cdef bint may_direct_robots(const char* text) noexcept nogil:
    """Whether a beginning of one of the directives of metadata.py stands in *text*: of noindex to unavailable_after."""
    while text[0]:
        if (text[0] | 0x20) == c"n" and (text[1] | 0x20) == c"o" and (text[2] | 0x20) in (c"i", c"f", c"n", c"a", c"c"):
            return True
        if (text[0] | 0x20) == c"u" and (text[1] | 0x20) == c"n" and (text[2] | 0x20) == c"a":
            return True
        text += 1
    return False


cdef bint is_ascii(const char* text) noexcept nogil:
    while text[0]:
        if <unsigned char> text[0] >= 0x80:
            return False
        text += 1
    return True


# -- a page on its way

cdef struct Row:            # a block
    Py_ssize_t at           # its text in `texts`
    Py_ssize_t size
    int link_chars
    int opener
    int pieces
    int element
    uint8_t heading
    uint8_t odd


cdef struct RowLink:
    const xmlAttr* href     # NULL for that of a refresh
    const xmlAttr* rel
    const xmlAttr* language
    const xmlAttr* second_language
    const xmlAttr* alt
    Py_ssize_t anchor       # its place in `anchors`
    Py_ssize_t anchor_size
    int block
    uint8_t odd


cdef struct Element:
    Py_ssize_t parent
    Py_ssize_t depth
    Py_ssize_t shape
    Py_ssize_t zone


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


cdef class Parser:
    """Does what spiderling/text/html/parser.py `parse` does.

    Arguments are what that package has by the same names; *python* is its `parse`, which reads the pages that are
    beyond the bounds of this one.
    """

    cdef Tag tags[TAGS]
    cdef Tag unknown
    cdef list names
    cdef list _kept          # the bytes of the tags' names
    cdef Memo memo
    cdef object python, class_zone, name_zone, hides, inherited
    cdef object block, link, parsed, metadata, meta_names, normal_forms
    cdef bytes rubbish, next_line
    cdef uint32_t hidden
    cdef int max_blocks, max_links, max_elements, max_depth
    cdef Py_ssize_t max_block_chars, max_anchor_chars

    def __init__(
        self, *, python, kinds, without_name, class_zone, name_zone, hides, hidden, inherited, block, link, parsed,
        metadata, meta_names, normal_forms, rubbish, next_line, max_blocks, max_block_chars, max_links, max_anchor_chars,
        max_elements, max_depth,
    ):
        self.python, self.class_zone, self.name_zone, self.hides = python, class_zone, name_zone, hides
        self.hidden, self.inherited = hidden, inherited
        self.block, self.link, self.parsed, self.metadata = block, link, parsed, metadata
        self.meta_names = meta_names
        self.normal_forms, self.rubbish, self.next_line = normal_forms, rubbish, next_line.encode()
        self.max_blocks, self.max_block_chars = max_blocks, max_block_chars
        self.max_links, self.max_anchor_chars = max_links, max_anchor_chars
        self.max_elements, self.max_depth = max_elements, max_depth
        self.memo = Memo()
        self._add_tags(kinds, without_name)

    def _add_tags(self, dict kinds, dict without_name):
        cdef uint32_t place
        cdef Tag* tag
        cdef bytes raw
        memset(self.tags, 0, sizeof(self.tags))
        memset(&self.unknown, 0, sizeof(self.unknown))
        self.names, self._kept = [""], []
        if len(kinds) > TAGS // 2:
            raise ValueError("too many tags")
        for name, kind in kinds.items():
            raw = name.encode()
            self._kept.append(raw)
            place = hash_of(raw) & (TAGS - 1)
            while self.tags[place].name != NULL:
                place = (place + 1) & (TAGS - 1)
            tag = &self.tags[place]
            tag.name, tag.kind, tag.special, tag.number = raw, kind, SPECIAL.get(name, OTHER), len(self.names)
            self.names.append(name)
            if name in without_name:
                tag.zoned = True
                tag.zone, tag.shape = without_name[name]

    cdef inline Tag* tag_of(self, const char* name) noexcept:
        cdef uint32_t place = hash_of(name) & (TAGS - 1)
        while self.tags[place].name != NULL:  # half of the places are empty
            if strcmp(self.tags[place].name, name) == 0:
                return &self.tags[place]
            place = (place + 1) & (TAGS - 1)
        return &self.unknown

    def __call__(self, html):
        """Paragraphs, links and metadata of a page, bytes in UTF-8; never raises, in time linear in its length."""
        cdef bytes body = html.encode("utf-8", "replace") if isinstance(html, str) else html
        cdef uint8_t found = special_bytes(body, len(body))
        if found & 1:
            body = body.translate(None, self.rubbish)
        if found & 2:
            body = body.replace(self.next_line, "…".encode())
        if is_costly(body, len(body)):
            return self.python(html)
        parser = etree.HTMLParser(
            encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, collect_ids=False
        )
        try:
            root = etree.fromstring(body or b" ", parser)
        except etree.LxmlError:
            root = None
        page = None if root is None else Walker(self).found(root)
        return self.python(html) if page is None else page


cdef class Walker:
    """Goes through the tree of one page, as `Builder` through its events."""

    cdef Parser parser
    cdef Buffer tokens, texts, anchors, anchor
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
    cdef Tag* path[MAX_LEVELS]  # the tags of the open elements
    cdef int link_chars, links_cut, open_headings, opener, element, anchored
    cdef bint heading, is_open, has_anchor, after_break, is_full, any_odd_block, any_odd_anchor
    cdef Py_ssize_t link_start, break_end, dead_start, collected_start
    cdef list collected          # takes the text of the ignored element that is open; None: its text says nothing
    cdef object metadata
    cdef dict refreshes          # number of a link -> its target

    def __cinit__(self, Parser parser):
        self.parser = parser
        self.metadata = parser.metadata()
        self.refreshes = {}
        self.push(0)
        self.elements = <Element*> grown(self.elements, &self.elements_room, sizeof(Element))
        self.elements[0].parent, self.elements[0].depth = 0, 1
        self.elements[0].shape, self.elements[0].zone = 0, 0
        self.elements_used = 1

    def __dealloc__(self):
        free_buffer(&self.tokens)
        free_buffer(&self.texts)
        free_buffer(&self.anchors)
        free_buffer(&self.anchor)
        PyMem_Free(self.rows)
        PyMem_Free(self.links)
        PyMem_Free(self.changes)
        PyMem_Free(self.elements)
        PyMem_Free(self.opened)
        PyMem_Free(self.dead)

    cdef object found(self, etreepublic._Element root):
        """The page; None where the Python pass has to read it.  *root* keeps the tree alive."""
        cdef xmlNode* node = root._c_node
        while node.prev != NULL:
            node = node.prev
        return self.result() if self.walk(node) else None

    # -- events

    cdef bint walk(self, xmlNode* node) except -1:
        """Go through *node* and what comes after it; False where the Python pass has to read the page."""
        cdef Tag* tag
        cdef int depth = 0
        while not self.is_full:
            if node.type == ELEMENT_NODE:
                tag = self.parser.tag_of(<const char*> node.name)
                self.start(tag, node)
                if node.children != NULL:
                    if depth == MAX_LEVELS:
                        return False
                    self.path[depth] = tag
                    depth += 1
                    node = node.children
                    continue
                if not self.is_full:
                    self.end(tag)
            elif (node.type == TEXT_NODE or node.type == CDATA_NODE) and node.content != NULL:
                if not self.add_text(<const char*> node.content):
                    return False
            while node.next == NULL:
                if depth == 0:
                    return True
                if self.is_full:
                    return True
                depth -= 1
                node = node.parent
                self.end(self.path[depth])
            node = node.next
        return True

    cdef inline bint add_text(self, const char* text) except -1:
        """False for a text with an EDGE: the Python pass does not always take it for one."""
        cdef Py_ssize_t size
        if self.dead_used and self.collected is None:
            return True
        size = strlen(text)
        if memchr(text, EDGE, size) != NULL:
            return False
        put(&self.tokens, text, size)
        return True

    cdef int start(self, Tag* tag, const xmlNode* node) except -1:
        cdef int kind = tag.kind
        cdef int element
        if kind >= HEAD:
            self.head(tag, node)
            kind -= HEAD
        if self.dead_used:
            self.enter_dead(tag)
        elif kind == BOX:
            element = self.enter(tag, node)
            self.new_block(tag.number)
            self.element = element
        elif kind == INLINE:
            if node.properties != NULL and find_attribute(node, b"hidden") != NULL:
                self.put_apart()
            else:
                put_byte(&self.tokens, EDGE)
            self.after_break = False
        elif kind == LINK:
            put_byte(&self.tokens, EDGE)
            self.after_break = False
            self.open_link(node)
        elif kind <= HEADING:
            element = self.push(self.opened[self.opened_used - 1])
            self.open_headings += kind == HEADING
            self.new_block(tag.number)
            self.element = element
        else:
            self.open(tag, kind, node)
        return 0

    cdef int open(self, Tag* tag, int kind, const xmlNode* node) except -1:
        if kind >= DEAD:
            if kind == FIELD:
                self.put_apart()
            self.dead_start = self.tokens.size
            self.push_dead(tag)
            return 0
        if tag.zoned:
            self.enter(tag, node)
            self.element_changed()
        if kind == THROUGH:
            if tag.special == IFRAME:
                self.add_link(node, True)
        elif kind == LINE_BREAK:
            self.line_break()
        elif kind == INSIDE:
            self.put_apart()
            self.after_break = False
        else:
            put_byte(&self.tokens, EDGE)
            self.after_break = False
            self.add_link(node, True)
        return 0

    cdef int end(self, Tag* tag) except -1:
        cdef int kind = tag.kind
        if self.dead_used:
            self.end_dead()
        elif kind == INLINE:
            put_byte(&self.tokens, EDGE)
        elif kind <= HEADING:
            self.open_headings -= kind == HEADING
            self.new_block(0)
            self.element = self.leave()
        elif kind == LINK:
            self.end_link()
            self.end_anchor()
            put_byte(&self.tokens, EDGE)
        else:
            if kind == INSIDE:
                self.put_apart()
            elif kind != THROUGH:
                put_byte(&self.tokens, EDGE)
            if tag.zoned:
                self.leave()
                self.element_changed()
        return 0

    cdef inline int put_apart(self) except -1:
        put(&self.tokens, b"\x1c \x1c", 3)
        return 0

    # -- ignored elements

    cdef int push_dead(self, Tag* tag) except -1:
        if self.dead_used == self.dead_room:
            self.dead = <Tag**> grown(self.dead, &self.dead_room, sizeof(Tag*))
        self.dead[self.dead_used] = tag
        self.dead_used += 1
        return 0

    cdef int enter_dead(self, Tag* tag) except -1:
        cdef Py_ssize_t place
        cdef Tag* one
        if tag.special == BUTTON and self.dead[0].special == BUTTON:
            for place in range(self.dead_used):
                one = self.dead[place]
                self.open_headings += one.kind == HEADING
                if BOX <= one.kind <= HEADING or one.zoned:
                    self.push(self.opened[self.opened_used - 1])
            self.cut_dead()
            self.dead_used = 0
        self.push_dead(tag)
        return 0

    cdef int end_dead(self) except -1:
        cdef Py_ssize_t size = self.tokens.size - self.collected_start
        self.dead_used -= 1
        if self.collected is not None:
            if size > 0:
                self.collected.append(decoded(self.tokens.data + self.collected_start, size))
            self.collected = None
        self.cut_dead()
        return 0

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

    cdef int enter(self, Tag* tag, const xmlNode* node) except -1:
        cdef int number = <int> self.elements_used
        cdef int parent = self.opened[self.opened_used - 1]
        cdef uint32_t zone = tag.zone
        cdef uint32_t shape = tag.shape
        cdef Element* element
        if number >= self.parser.max_elements or self.opened_used > self.parser.max_depth:
            return self.push(parent)
        if number == self.elements_room:
            self.elements = <Element*> grown(self.elements, &self.elements_room, sizeof(Element))
        if node.properties != NULL:
            self.read_names(tag, node, &zone, &shape)
        element = &self.elements[number]
        element.parent = parent
        element.depth = self.elements[parent].depth + 1
        element.shape = <Py_ssize_t> (
            (<uint64_t> self.elements[parent].shape * FACTOR + shape) & ((<uint64_t> 1 << SHAPE_BITS) - 1)
        )
        element.zone = self.elements[parent].zone | zone
        self.elements_used += 1
        return self.push(number)

    cdef int read_names(self, Tag* tag, const xmlNode* node, uint32_t* zone, uint32_t* shape) except -1:
        """Add what the attributes of an element say of it."""
        cdef const xmlAttr* attribute = node.properties
        cdef const char* name
        while attribute != NULL:
            name = <const char*> attribute.name
            if strcmp(name, b"class") == 0:
                self.read_name(tag, attribute, zone, shape)
            elif strcmp(name, b"id") == 0 or strcmp(name, b"role") == 0 or strcmp(name, b"itemprop") == 0:
                self.read_name(NULL, attribute, zone, shape)
            elif strcmp(name, b"hidden") == 0 or strcmp(name, b"style") == 0 and self.hides(attribute):
                zone[0] |= self.parser.hidden
            attribute = attribute.next
        return 0

    cdef bint hides(self, const xmlAttr* style) except -1:
        cdef const char* text = text_of(style)
        if text != NULL and is_ascii(text) and not holds(text, b"none") and not holds(text, b"hidden"):
            return False
        return self.parser.hides(value_of(style))

    cdef int read_name(self, Tag* tag, const xmlAttr* attribute, uint32_t* zone, uint32_t* shape) except -1:
        """Add what a class tells of an element with *tag*; or another name, without a tag."""
        cdef const char* name = text_of(attribute)
        cdef Py_ssize_t size = 0 if name == NULL else strlen(name)
        cdef uint32_t salt = 0 if tag == NULL else tag.number
        cdef uint32_t own_zone = 0
        cdef uint32_t own_shape = 0
        cdef Known* known = NULL
        if name != NULL and size <= MEMO_BYTES:
            if not size:
                return 0
            known = self.parser.memo.find(name, size, salt)
        if known != NULL and known.name != NULL:
            zone[0] |= known.zone
            if tag != NULL:
                shape[0] = known.shape
            return 0
        if tag == NULL:
            own_zone = self.parser.name_zone(value_of(attribute))
        else:
            own_zone, own_shape = self.parser.class_zone(self.parser.names[tag.number], value_of(attribute))
            shape[0] = own_shape
        zone[0] |= own_zone
        if known != NULL:
            self.parser.memo.keep(name, size, salt, own_zone, own_shape)
        return 0

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
        return 0

    # -- blocks

    cdef int new_block(self, int opener) except -1:
        cdef Py_ssize_t place
        cdef Py_ssize_t first
        if self.tokens.size:
            first = leading_space(<const unsigned char*> self.tokens.data, self.tokens.size)
            if first < self.tokens.size:
                self.add_block(first)
            self.tokens.size = 0
            self.link_start = self.break_end = 0
            self.changes_used = 0
            if self.rows_used >= self.parser.max_blocks:
                self.is_full = True
                return 0
        for place in range(self.first_of_block, self.links_used):
            self.links[place].block = OUTSIDE
        self.first_of_block = self.links_used
        self.heading = self.open_headings > 0
        self.opener = opener
        return 0

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
        self.any_odd_block |= row.odd
        self.rows_used += 1
        self.first_of_block = self.links_used
        self.link_chars = 0
        return 0

    cdef int join(self, Row* row, Py_ssize_t at) except -1:
        """Add the text of the block from *at* on to `texts`: without EDGEs, all white space as one space."""
        cdef const unsigned char* data = <const unsigned char*> self.tokens.data
        cdef Py_ssize_t size = self.tokens.size
        cdef const unsigned char* piece  # the first byte of the piece that has been counted
        cdef unsigned char* out
        cdef uint32_t code
        cdef int length
        cdef uint8_t bits
        cdef uint8_t odd = 0
        cdef bint has_space = False
        cdef bint is_counted = False
        # each byte is written at most once, and a space only in place of white space or an EDGE
        reserve(&self.texts, size - at)
        out = <unsigned char*> self.texts.data + self.texts.size
        row.at = self.texts.size
        while at < size:
            if data[at] < 0x80:
                bits = BITS[data[at]]
                length = 1
                if bits & SPACE:
                    if data[at] == EDGE:
                        is_counted = False
                        if not has_space and self.parts(data, at, size):
                            has_space = True
                    else:
                        has_space = True
                    at += 1
                    continue
            else:
                length = step(data + at, size - at, &code)
                bits = bits_of(BITS, code)
                if bits & SPACE:
                    has_space = True
                    at += length
                    continue
            if has_space:
                out[0] = 32
                out += 1
                has_space = False
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
        return 0

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
        return 0

    cdef bint is_after_break(self) noexcept:
        cdef Py_ssize_t left = self.tokens.size - self.break_end
        if not self.after_break or left <= 0:
            return self.after_break
        return leading_space(<const unsigned char*> self.tokens.data + self.break_end, left) == left

    # -- links

    cdef int open_link(self, const xmlNode* node) except -1:
        self.end_link()
        self.end_anchor()
        self.is_open = True
        self.link_start = self.tokens.size
        if self.add_link(node, False):
            self.has_anchor = True
            self.anchored = <int> self.links_used - 1
        return 0

    cdef bint add_link(self, const xmlNode* node, bint is_area) except -1:
        """Add the link of an element, if it has an address; returns whether it was added."""
        cdef const xmlAttr* attribute = node.properties
        cdef const xmlAttr* src = NULL
        cdef const char* name
        cdef const char* rel
        cdef RowLink link
        memset(&link, 0, sizeof(link))
        while attribute != NULL:
            name = <const char*> attribute.name
            if strcmp(name, b"href") == 0:
                link.href = attribute
            elif strcmp(name, b"rel") == 0:
                link.rel = attribute
            elif strcmp(name, b"hreflang") == 0:
                link.language = attribute
            elif strcmp(name, b"lang") == 0:
                link.second_language = attribute
            elif strcmp(name, b"alt") == 0:
                link.alt = attribute
            elif is_area and strcmp(name, b"src") == 0:
                src = attribute
            attribute = attribute.next
        if src != NULL:
            link.href = src
        if link.href == NULL:
            return False
        if self.links_used >= self.parser.max_links:
            self.links_cut += 1
            return False
        if link.rel != NULL:
            rel = text_of(link.rel)
            if rel == NULL or holds(rel, b"canonical") or holds(rel, b"license"):
                self.metadata.read_rel(value_of(link.rel).lower(), value_of(link.href))
        link.block = <int> self.rows_used
        self.keep_link(&link)
        return True

    cdef int keep_link(self, RowLink* link) except -1:
        if self.links_used == self.links_room:
            self.links = <RowLink*> grown(self.links, &self.links_room, sizeof(RowLink))
        self.links[self.links_used] = link[0]
        self.links_used += 1
        return 0

    cdef inline int end_link(self) except -1:
        if self.is_open:
            self.read_text()
            self.is_open = False
        return 0

    cdef int read_text(self) except -1:
        """Count the open link's text in the current block, and keep it for the anchor."""
        cdef Py_ssize_t at = self.link_start
        cdef Py_ssize_t end
        cdef const char* edge
        while at < self.tokens.size:
            edge = <const char*> memchr(self.tokens.data + at, EDGE, self.tokens.size - at)
            end = self.tokens.size if edge == NULL else edge - self.tokens.data
            self.read_piece(<const unsigned char*> self.tokens.data + at, end - at)
            at = end + 1
        return 0

    cdef int read_piece(self, const unsigned char* data, Py_ssize_t size) except -1:
        cdef Py_ssize_t at = leading_space(data, size)
        cdef int chars = at > 0
        cdef bint has_space = False
        cdef uint8_t odd = 0
        cdef uint8_t bits
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
        return 0

    cdef int end_anchor(self) except -1:
        cdef RowLink* link
        if self.has_anchor and self.anchor.size:
            link = &self.links[self.anchored]
            link.anchor, link.anchor_size = self.anchors.size, self.anchor.size
            put(&self.anchors, self.anchor.data, self.anchor.size)
            self.any_odd_anchor |= link.odd
        self.has_anchor = False
        self.anchor.size = 0
        return 0

    # -- the head

    cdef int head(self, Tag* tag, const xmlNode* node) except -1:
        cdef const xmlAttr* attribute
        cdef const char* rel
        cdef RowLink link
        if tag.special == TITLE or tag.special == SCRIPT:
            self.collected = None
            self.collected_start = self.tokens.size
            # a script without a type says nothing
            if tag.special == TITLE or find_attribute(node, b"type") != NULL:
                name = self.parser.names[tag.number]
                behind_text = self.rows_used > 0 and self.dead_used == 0
                self.collected = self.metadata.texts_of(name, attributes_of(node), behind_text)
            return 0
        if tag.special == LINK_TAG:
            # `read_tag` makes nothing of other ones
            attribute = find_attribute(node, b"rel")
            if attribute == NULL:
                return 0
            rel = text_of(attribute)
            if rel != NULL and not (holds(rel, b"canonical") or holds(rel, b"license") or holds(rel, b"alternate")):
                return 0
        if tag.special == META and self.says_nothing(node):
            return 0
        target = self.metadata.read_tag(self.parser.names[tag.number], attributes_of(node))
        if target is not None:
            self.refreshes[self.links_used] = target
            memset(&link, 0, sizeof(link))
            link.block = OUTSIDE
            self.keep_link(&link)
            self.first_of_block = self.links_used
        return 0

    cdef bint says_nothing(self, const xmlNode* node) except -1:
        """Whether `read_tag` certainly makes nothing of a <meta>, as of most."""
        cdef const xmlAttr* attribute = node.properties
        cdef const char* name
        cdef const char* value
        while attribute != NULL:
            name = <const char*> attribute.name
            if strcmp(name, b"content") == 0:
                value = text_of(attribute)
                if value == NULL or may_direct_robots(value):
                    return False
            elif (strcmp(name, b"name") == 0 or strcmp(name, b"property") == 0 or strcmp(name, b"http-equiv") == 0
                  or strcmp(name, b"itemprop") == 0):
                if value_of(attribute).strip().lower() in self.parser.meta_names:
                    return False
            attribute = attribute.next
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
        cdef Row* row
        cdef Py_ssize_t place
        cdef Py_ssize_t most = self.parser.max_block_chars
        cdef list texts = []
        cdef list odd
        for place in range(self.rows_used):
            row = &self.rows[place]
            texts.append(decoded(self.texts.data + row.at, row.size))
        if self.any_odd_block:
            odd = [place for place in range(self.rows_used) if self.rows[place].odd]
            for place, form in zip(odd, self.parser.normal_forms([texts[place] for place in odd])):
                texts[place] = form
        for place in range(self.rows_used):
            if self.rows[place].size > most and len(texts[place]) > most:
                texts[place] = texts[place][:most].rstrip()
        return texts

    cdef list block_numbers(self, list forms):
        """Row -> number of its block, OUTSIDE for those without text; None where rows and blocks are the same."""
        cdef list numbers = []
        cdef int number = 0
        if all(forms):
            return None
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
                set_item(block, 3, self.parser.names[row.opener])
                set_item(block, 4, row.pieces)
                set_item(block, 5, row.element)
                found.append(block)
        return found

    cdef list raw_links(self, list numbers):
        cdef RowLink* link
        cdef Py_ssize_t place
        cdef int block
        cdef list found = []
        cdef dict odd = self.odd_anchors() if self.any_odd_anchor else {}
        for place in range(self.links_used):
            link = &self.links[place]
            block = link.block
            if numbers is not None and block != OUTSIDE:
                block = numbers[block] if block < len(numbers) else OUTSIDE
            row = spiderling_row(self.parser.link, 5)
            set_item(row, 0, self.refreshes[place] if link.href == NULL else value_of(link.href))
            set_item(row, 1, "" if link.rel == NULL else value_of(link.rel).lower())
            set_item(row, 2, odd[place] if link.odd and link.anchor_size else self.anchor_of(link))
            set_item(row, 3, block)
            language = "" if link.language == NULL else value_of(link.language)
            if not language and link.second_language != NULL:
                language = value_of(link.second_language)
            set_item(row, 4, language)
            found.append(row)
        return found

    cdef dict odd_anchors(self):
        """Number of a link -> its anchor in normal form."""
        cdef Py_ssize_t place
        cdef list odd = [place for place in range(self.links_used) if self.links[place].odd]
        cdef list texts = []
        for place in odd:
            texts.append(decoded(self.anchors.data + self.links[place].anchor, self.links[place].anchor_size))
        forms = self.parser.normal_forms(texts)
        return {place: form[: self.parser.max_anchor_chars] for place, form in zip(odd, forms)}

    cdef object anchor_of(self, RowLink* link):
        cdef Py_ssize_t most = self.parser.max_anchor_chars
        if link.anchor_size:
            anchor = decoded(self.anchors.data + link.anchor, link.anchor_size)
        else:
            anchor = "" if link.alt == NULL else value_of(link.alt)
        return anchor if len(anchor) <= most else anchor[:most]

    cdef object tree(self):
        """The tree with what its elements inherit, as `Tree.inherited` gives it."""
        cdef Py_ssize_t place
        cdef Py_ssize_t number = self.elements_used
        cdef list columns = [bytearray(number * sizeof(Py_ssize_t)) for _ in range(5)]
        cdef Py_ssize_t* parents = <Py_ssize_t*> <char*> columns[0]
        cdef Py_ssize_t* ends = <Py_ssize_t*> <char*> columns[1]
        cdef Py_ssize_t* depths = <Py_ssize_t*> <char*> columns[2]
        cdef Py_ssize_t* shapes = <Py_ssize_t*> <char*> columns[3]
        cdef Py_ssize_t* zones = <Py_ssize_t*> <char*> columns[4]
        for place in range(number):
            parents[place] = self.elements[place].parent
            ends[place] = place + 1
            depths[place] = self.elements[place].depth
            shapes[place] = self.elements[place].shape
            zones[place] = self.elements[place].zone
        for place in range(number - 1, 0, -1):
            ends[parents[place]] = max(ends[parents[place]], ends[place])
        return self.parser.inherited(*[numpy.frombuffer(column, numpy.intp) for column in columns])


cdef inline int set_item(object row, Py_ssize_t place, object value) except -1:
    Py_INCREF(value)
    PyTuple_SET_ITEM(row, place, value)
    return 0


# -- guards

cdef uint8_t special_bytes(const unsigned char* data, Py_ssize_t size) noexcept nogil:
    """What stands in *data*: 1 for control characters that are no white space, 2 for those above U+0080.

    The latter all begin with the same byte; *data* has a byte more, a zero.
    """
    cdef Py_ssize_t at
    cdef uint8_t found = 0
    cdef unsigned char byte
    for at in range(size):  # without branches, so that the compiler can take many bytes at once
        byte = data[at]
        found |= (byte < 32) & (byte != 9) & (byte != 10) & (byte != 12) & (byte != 13) | (byte == 127)
        found |= ((byte == 0xC2) & (data[at + 1] == 0x85)) << 1
    return found


cdef bint is_costly(const unsigned char* data, Py_ssize_t size) noexcept nogil:
    """Whether a tag may have more than MAX_ATTRIBUTES attributes; *data* has a byte more, a zero, and no other zero.

    Each '<' before a letter is looked at as the start of a tag, so that no quotes or comments before it can hide one.
    A page where that takes more than a few looks at each byte counts as costly too.
    """
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t place
    cdef Py_ssize_t work = 0
    cdef const unsigned char* found
    while True:
        found = <const unsigned char*> memchr(data + at, c"<", size - at)
        if found == NULL:
            return False
        at = found - data + 1
        if not (c"a" <= (data[at] | 0x20) <= c"z"):  # at the end this is the zero
            continue
        place = end_of_tag(data, size, at)
        work += place - at
        if place > size or work > 4 * size + 10000:
            return True


cdef Py_ssize_t end_of_tag(const unsigned char* data, Py_ssize_t size, Py_ssize_t place) noexcept nogil:
    """Where the start tag ends whose name begins at *place* (HTML Standard, 13.2.5.8, 13.2.5.32 and following ones).

    More than *size* if it has more than MAX_ATTRIBUTES attributes.  Each loop ends at the zero at *size* at the latest.
    """
    cdef int attributes
    cdef const unsigned char* quote
    while not IN_TAG[data[place]] & (GAP | SLASH | TAG_END):
        place += 1
    for attributes in range(MAX_ATTRIBUTES + 1):
        while IN_TAG[data[place]] & (GAP | SLASH):
            place += 1
        if IN_TAG[data[place]] & TAG_END:
            return place
        place += 1  # a name may even begin with '='
        while not IN_TAG[data[place]]:
            place += 1
        while IN_TAG[data[place]] & GAP:
            place += 1
        if data[place] != c"=":
            continue
        place += 1
        while IN_TAG[data[place]] & GAP:
            place += 1
        if data[place] == c'"' or data[place] == c"'":
            quote = <const unsigned char*> memchr(data + place + 1, data[place], size - place - 1)
            if quote == NULL:
                return size
            place = quote - data + 1
        else:
            while not IN_TAG[data[place]] & (GAP | TAG_END):
                place += 1
    return size + 1


cdef uint8_t IN_TAG[256]
"""What ends a name or a value in a tag."""
memset(IN_TAG, 0, sizeof(IN_TAG))
IN_TAG[9] = IN_TAG[10] = IN_TAG[12] = IN_TAG[13] = IN_TAG[32] = GAP
IN_TAG[c"/"] = SLASH
IN_TAG[c"="] = EQUALS
IN_TAG[c">"] = IN_TAG[0] = TAG_END


# -- the test at import

def self_test():
    """Raise ImportError if the fields of libxml2's nodes are not where this module looks for them."""
    cdef etreepublic._Element root
    cdef xmlNode* node
    cdef bint is_right
    root = etree.fromstring(b"<html><body><p id=a class='b c'>d<i>e</i></p>f</body></html>", etree.HTMLParser())
    node = root._c_node
    is_right = node.type == ELEMENT_NODE and node.name != NULL and strcmp(<const char*> node.name, b"html") == 0
    is_right = is_right and node.children != NULL and strcmp(<const char*> node.children.name, b"body") == 0
    if is_right:
        node = node.children.children
        is_right = node.properties != NULL and node.properties.next != NULL and node.next != NULL
    if is_right:
        is_right = value_of(node.properties) == "a" and value_of(node.properties.next) == "b c"
        is_right = is_right and strcmp(<const char*> node.children.content, b"d") == 0
        is_right = is_right and node.next.type == TEXT_NODE and strcmp(<const char*> node.next.content, b"f") == 0
        is_right = is_right and attributes_of(node) == dict(root[0][0].attrib)
    if not is_right:
        raise ImportError(f"libxml2 {etree.LIBXML_VERSION} has other nodes than this module was built for")


self_test()
