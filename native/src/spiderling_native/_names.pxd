from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    # tags that are treated on their own
    OTHER = 0, TITLE = 1, SCRIPT = 2, META = 3, LINK_TAG = 4, BUTTON = 5, IFRAME = 6, IMG = 7, TEMPLATE = 8
    PARTED = 1 << 30  # in the zone of an element that has none: it may stand apart by style
    TAGS = 512  # places of the table of tags, a power of two of which at most half are used

cdef struct Tag:
    const char* name     # ended by a zero byte; NULL in an empty place
    uint32_t zone        # without names
    uint32_t shape
    int number           # in `Names.tags`
    uint8_t kind
    uint8_t special
    uint8_t zoned
    uint8_t is_phrase
    uint8_t is_wrapper

cdef struct Known:
    char* name           # NULL in an empty place
    Py_ssize_t size
    uint64_t hash
    uint32_t zone
    uint32_t shape
    bint is_left_out

cdef class Memo:
    cdef Known* known
    cdef int used
    cdef void clear(self) noexcept
    cdef Known* find(self, const char* name, Py_ssize_t size, uint32_t salt) noexcept
    cdef int keep(self, const char* name, uint32_t salt, Known* found) except -1

cdef class Names:
    cdef readonly list tags  # by their numbers
    cdef Tag table[TAGS]
    cdef Tag unknown
    cdef Tag custom          # a tag of the page's own
    cdef list _kept          # the bytes of the tags' names
    cdef Memo memo
    cdef Known other         # what was read last without a place in the memo
    cdef object class_zone, name_zone, hiding, leaving_out, parts_by_name
    cdef list _left_out_roles  # in bytes
    cdef uint32_t hidden
    cdef Tag* tag_of(self, const char* name) noexcept
    cdef bint read(self, Tag* tag, const char** attributes, uint32_t* zone, uint32_t* shape) except -1
    cdef bint hides(self, const char* style) except -1
    cdef Known* read_one(self, Tag* tag, const char* name) except NULL
