from libc.stdint cimport uint8_t

cdef struct Parts:  # of a URL that is canonical but for its query and fragment: places at which they begin or end
    Py_ssize_t name, path, query, end

cdef bint canonical_parts(const uint8_t* url, Py_ssize_t size, Parts* parts) noexcept nogil
