from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    OF_NAME = 2, OF_PATH = 4, WORDS = OF_NAME + OF_PATH

cdef void words(const uint8_t* path, Py_ssize_t size, uint16_t* out) noexcept nogil
cdef uint32_t section(const uint8_t* path, Py_ssize_t size) noexcept nogil

cdef class Derived:
    cdef object digest, url_hash, form_of
    cdef uint64_t mask
    cdef dict forms
    cdef int repetitive

    cdef uint64_t hash_of(self, str url) except? 0
    cdef int form(self, const uint8_t* path, Py_ssize_t size, uint8_t* form, uint8_t* depth) except -1
