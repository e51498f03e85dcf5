"""What is asked of the bytes of a page before libxml2 reads them."""

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memset

cdef enum:
    MAX_ATTRIBUTES = 100  # of a tag: libxml2 takes quadratic time to put them into its tree
    # of bytes in tags
    GAP = 1, SLASH = 2, EQUALS = 4, TAG_END = 8


cdef uint8_t special_bytes(const unsigned char* data, Py_ssize_t size) noexcept nogil:
    """Which of CONTROLS and NEXT_LINE stand in *data*, which has a byte more, a zero."""
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
    cdef Py_ssize_t at = 0, place, work = 0
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
