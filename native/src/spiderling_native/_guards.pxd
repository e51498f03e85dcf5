from libc.stdint cimport uint8_t

cdef enum:
    CONTROLS = 1   # control characters that are no white space
    NEXT_LINE = 2  # U+0085, which pages write for an ellipsis

cdef uint8_t special_bytes(const unsigned char* data, Py_ssize_t size) noexcept nogil
cdef bint is_costly(const unsigned char* data, Py_ssize_t size) noexcept nogil
