"""What the names of elements say: the kinds of tags, and zones and shapes by classes and ids (zones.py)."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset, strchr, strcmp, strlen

from spiderling_native._sax cimport holds, is_ascii, next_attribute, same, text_of

cdef enum:
    MEMO = 16384       # places of a `Memo`, a power of two of which at most half are used
    MEMO_LOOKS = 32    # places that are looked at; names made to collide would be far to seek
    NO_ZONE = 0xFFFFFFFF  # salt of the class of an element without a zone; no tag has this number
    MEMO_BYTES = 1000  # longer names are worked out each time

cdef dict SPECIAL = {
    "title": TITLE, "script": SCRIPT, "meta": META, "link": LINK_TAG, "button": BUTTON, "iframe": IFRAME,
    "img": IMG, "template": TEMPLATE,
}


cdef inline uint32_t hash_of(const char* name) noexcept nogil:
    cdef uint32_t value = 2166136261
    while name[0]:
        value = (value ^ <unsigned char> name[0]) * 16777619
        name += 1
    return value ^ (value >> 13)


cdef class Memo:
    """Zone and shape of classes, and zones of other names, as far as they were asked for before."""

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
        cdef uint64_t value = 14695981039346656037u ^ salt, word = 0
        cdef Py_ssize_t at
        cdef Known* known
        for at in range(0, size - 7, 8):
            memcpy(&word, name + at, 8)
            value = (value ^ word) * 0x9E3779B97F4A7C15u
            value ^= value >> 32
        word = 0
        memcpy(&word, name + (size & ~7), size & 7)
        value = (value ^ word) * 0x9E3779B97F4A7C15u
        value ^= value >> 29
        for at in range(MEMO_LOOKS):
            known = &self.known[(value + at) & (MEMO - 1)]
            if known.name == NULL:
                known.hash = value
                return known
            if known.hash == value and known.size == size and memcmp(known.name, name, size) == 0:
                return known
        return NULL

    cdef int keep(self, const char* name, uint32_t salt, Known* found) except -1:
        cdef Known* known
        cdef Py_ssize_t size = strlen(name)
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
        known.name, known.size = copy, size
        known.zone, known.shape, known.is_left_out = found.zone, found.shape, found.is_left_out
        self.used += 1


cdef class Names:
    """What is known of tags, and of names as far as they were met; arguments are those of `Parser`."""

    def __init__(self, zones):
        self.class_zone, self.name_zone, self.hiding = zones.class_zone, zones.name_zone, zones.hides
        self.leaving_out = zones.class_leaves_out
        self._left_out_roles = [role.encode() for role in zones.LEFT_OUT_ROLES]
        self.hidden, self.parts_by_name = zones.BITS["hidden"], zones.name_parts
        self.memo = Memo()
        self._add_tags(zones.TAG_KINDS, zones.WITHOUT_NAME, zones.PHRASES, zones.WRAPPERS)
        for name in zones.PARTING_TAGS:
            self.tag_of(name.encode()).zone = PARTED

    def _add_tags(self, dict kinds, dict without_name, phrases, wrappers):
        cdef uint32_t place
        cdef Tag* tag
        cdef bytes raw
        memset(self.table, 0, sizeof(self.table))
        memset(&self.unknown, 0, sizeof(self.unknown))
        memset(&self.custom, 0, sizeof(self.custom))
        self.custom.zone = PARTED
        self.tags, self._kept = [""], []
        if len(kinds) > TAGS // 2:
            raise ValueError("too many tags")
        for name, kind in kinds.items():
            raw = name.encode()
            self._kept.append(raw)
            place = hash_of(raw) & (TAGS - 1)
            while self.table[place].name != NULL:
                place = (place + 1) & (TAGS - 1)
            tag = &self.table[place]
            tag.name, tag.kind, tag.special, tag.number = raw, kind, SPECIAL.get(name, OTHER), len(self.tags)
            tag.is_phrase, tag.is_wrapper = name in phrases, name in wrappers
            self.tags.append(name)
            if name in without_name:
                tag.zoned = True
                tag.zone, tag.shape = without_name[name]

    cdef Tag* tag_of(self, const char* name) noexcept:
        cdef uint32_t place = hash_of(name) & (TAGS - 1)
        while self.table[place].name != NULL:  # half of the places are empty
            if strcmp(self.table[place].name, name) == 0:
                return &self.table[place]
            place = (place + 1) & (TAGS - 1)
        return &self.unknown if strchr(name, c"-") == NULL else &self.custom

    cdef bint read(self, Tag* tag, const char** attributes, uint32_t* zone, uint32_t* shape) except -1:
        """Add what the attributes of an element say of it; returns whether it is left out.

        The zone of one that has none is PARTED if it may stand apart.
        """
        cdef bint is_left_out = False, is_hidden = False, is_named = False
        cdef const char* name
        cdef const char* value
        cdef Known* found
        while next_attribute(&attributes, &name, &value):
            if same(name, b"class"):
                is_named = True
                if value[0]:
                    found = self.read_one(tag, value)
                    is_left_out |= found.is_left_out
                    zone[0] |= found.zone
                    if tag.zoned:
                        shape[0] = found.shape
            elif same(name, b"id") or same(name, b"role") or same(name, b"itemprop"):
                is_named = True
                is_left_out |= same(name, b"role") and <bytes> value in self._left_out_roles
                if value[0] and tag.zoned:
                    zone[0] |= self.read_one(NULL, value).zone
                elif value[0] and same(name, b"itemprop"):
                    zone[0] |= self.read_one(tag, value).zone
            elif same(name, b"hidden") or same(name, b"style") and self.hides(value):
                is_hidden = True
                zone[0] |= self.hidden
            elif not (same(name, b"style") or same(name, b"aria-hidden") or same(name, b"lang") or same(name, b"dir")):
                is_named = True
        return is_left_out or (is_hidden and not is_named)

    cdef bint hides(self, const char* style) except -1:
        if is_ascii(style) and not holds(style, b"none") and not holds(style, b"hidden"):
            return False
        return self.hiding(text_of(style))

    cdef Known* read_one(self, Tag* tag, const char* name) except NULL:
        """What a class tells of an element with *tag*; or another name, without a tag.  It holds until the next call."""
        cdef Py_ssize_t size = strlen(name)
        cdef uint32_t salt = 0 if tag == NULL else <uint32_t> tag.number if tag.zoned else NO_ZONE
        cdef Known* known = self.memo.find(name, size, salt) if size <= MEMO_BYTES else NULL
        cdef Known* found = &self.other
        if known != NULL and known.name != NULL:
            return known
        memset(found, 0, sizeof(Known))
        if tag == NULL:
            found.zone = self.name_zone(text_of(name))
        else:
            found.is_left_out = self.leaving_out(text_of(name))
            if tag.zoned:
                found.zone, found.shape = self.class_zone(self.tags[tag.number], text_of(name))
            elif self.parts_by_name(text_of(name)):
                found.zone = PARTED
        if known != NULL:
            self.memo.keep(name, salt, found)
        return found
