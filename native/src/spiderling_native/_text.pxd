from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.unicode cimport (
    Py_UNICODE_ISALNUM, Py_UNICODE_ISALPHA, Py_UNICODE_ISLOWER, Py_UNICODE_ISUPPER,
)
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

cdef extern from *:
    """
    static PyObject *spiderling_row(PyObject *kind, Py_ssize_t size) {
        return ((PyTypeObject *) kind)->tp_alloc((PyTypeObject *) kind, size);
    }
    """
    # an empty tuple of the NamedTuple *kind*; its items are set by PyTuple_SET_ITEM before anybody sees it
    object spiderling_row(object kind, Py_ssize_t size)

cdef extern from "Python.h":
    bint is_ascii_text "PyUnicode_IS_ASCII"(str text)
    object PyUnicode_DecodeUTF8(const char* data, Py_ssize_t size, const char* errors)

cdef inline object decoded(const char* data, Py_ssize_t size):
    return PyUnicode_DecodeUTF8(data, size, b"replace")

cdef inline void* memory(array, Py_ssize_t size) except NULL:
    """The data of *array*, which the caller keeps; raises ValueError unless it is contiguous and has *size* bytes."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef void* data = view.buf
    cdef Py_ssize_t found = view.len
    PyBuffer_Release(&view)
    if found != size:
        raise ValueError(f"{found} bytes instead of {size}")
    return data

cdef enum:  # bits of a character
    SPACE = 1    # white space to str.split
    ODD = 2      # a text with it may not be in normal form (text/html/blocks.py)
    WORD = 4     # \w
    LOWER = 8, UPPER = 16, ALPHA = 32
    BASIC = 0x10000  # characters of the basic plane

cdef enum:  # what a page may hold that is taken out before it is parsed
    CONTROLS = 1   # control characters that are no white space
    NEXT_LINE = 2  # U+0085, which pages write for an ellipsis

cdef uint8_t special_bytes(const unsigned char* data, Py_ssize_t size) noexcept nogil

cdef const uint8_t* characters() noexcept
"""The bits of each character of the basic plane."""

cdef struct Buffer:
    char* data
    Py_ssize_t size
    Py_ssize_t room

cdef int enlarge(Buffer* buffer, Py_ssize_t more) except -1
cdef void free_buffer(Buffer* buffer) noexcept

cdef inline int reserve(Buffer* buffer, Py_ssize_t more) except -1:
    """Make room for *more* bytes."""
    if buffer.room - buffer.size < more:
        enlarge(buffer, more)

cdef inline int put(Buffer* buffer, const char* data, Py_ssize_t size) except -1:
    if size:
        reserve(buffer, size)
        memcpy(buffer.data + buffer.size, data, size)
        buffer.size += size

cdef inline int put_byte(Buffer* buffer, char byte) except -1:
    reserve(buffer, 1)
    buffer.data[buffer.size] = byte
    buffer.size += 1

cdef inline int step(const unsigned char* text, Py_ssize_t left, uint32_t* code) noexcept nogil:
    """Bytes of the character at *text*, of which *left* > 0 remain, and its number.

    It never reads or steps beyond *left*, whatever the bytes are.
    """
    cdef unsigned char first = text[0]
    if first < 0x80:
        code[0] = first
        return 1
    if first < 0xE0 and left > 1:
        code[0] = (first & 0x1F) << 6 | (text[1] & 0x3F)
        return 2
    if first < 0xF0 and left > 2:
        code[0] = (first & 0x0F) << 12 | (text[1] & 0x3F) << 6 | (text[2] & 0x3F)
        return 3
    if left > 3:
        code[0] = (first & 0x07) << 18 | (text[1] & 0x3F) << 12 | (text[2] & 0x3F) << 6 | (text[3] & 0x3F)
        return 4
    code[0] = 0xFFFD
    return <int> left

cdef inline uint8_t bits_of(const uint8_t* bits, uint32_t code) noexcept:
    """The bits of any character; *bits* are those of the basic plane."""
    cdef uint8_t found
    if code < BASIC:
        return bits[code]
    found = ODD  # none of them is white space
    if Py_UNICODE_ISALNUM(code):
        found |= WORD
    if Py_UNICODE_ISLOWER(code):
        found |= LOWER
    if Py_UNICODE_ISUPPER(code):
        found |= UPPER
    if Py_UNICODE_ISALPHA(code):
        found |= ALPHA
    return found
