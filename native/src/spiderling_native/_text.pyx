"""What the compiled steps share: buffers of bytes, and what Python knows of each character."""

import unicodedata

from cpython.mem cimport PyMem_Free, PyMem_Realloc

cdef uint8_t BITS[BASIC]


cdef const uint8_t* characters() noexcept:
    return BITS


cdef int enlarge(Buffer* buffer, Py_ssize_t more) except -1:
    cdef Py_ssize_t room = (buffer.size + more) * 2
    cdef char* data = <char*> PyMem_Realloc(buffer.data, room)
    if data == NULL:
        raise MemoryError
    buffer.data, buffer.room = data, room


cdef void free_buffer(Buffer* buffer) noexcept:
    PyMem_Free(buffer.data)
    buffer.data, buffer.size, buffer.room = NULL, 0, 0


cdef int _bits(int code, str char) except -1:
    cdef int bits = 0
    if char.isspace():
        bits = SPACE
    elif char.isprintable():
        # in a text of characters that no other one combines with, and that stay as they are, NFC changes nothing
        if code >= 0x300 and (unicodedata.category(char)[0] == "M" or 0x1100 <= code < 0x1200
                              or unicodedata.normalize("NFC", char) != char):
            bits = ODD
        elif 0xFB00 <= code < 0xFFF0 and unicodedata.decomposition(char).partition(" ")[0] not in ("", "<wide>"):
            bits = ODD
    else:
        bits = ODD
    if char.isalnum() or char == "_":
        bits |= WORD
    if char.islower():
        bits |= LOWER
    if char.isupper():
        bits |= UPPER
    if char.isalpha():
        bits |= ALPHA
    return bits


def _fill():
    cdef int code
    for code in range(BASIC):
        BITS[code] = _bits(code, chr(code))


_fill()


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
