"""The compiled twin of `derived` in base/link_batch.py: what follows from the URLs of a page's links.

XXH3 is that of the package xxhash.  URLs with several parameters, which are sorted first, and very deep paths are left
to the Python functions.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DATA
from libc.string cimport memchr, memcmp

from spiderling_native._text cimport is_ascii_text

cdef enum:
    WORD_MASK = 0xFFFF
    MAX_BYTES = 80      # of a path, in which words are looked for
    MAX_SUFFIX = 8      # no suffix of a form is longer
    MAX_REPEATED = 3
    MAX_DEPTH = 16      # deeper paths are left to Python

cdef uint32_t CRC[256]


def _fill():
    cdef uint32_t value
    cdef int code
    for code in range(256):
        value = code
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320u if value & 1 else 0)
        CRC[code] = value


_fill()


cdef inline uint32_t crc(uint32_t inverted, uint8_t byte) noexcept nogil:
    """The next state of zlib's crc32; the state is the inverted checksum."""
    return CRC[(inverted ^ byte) & 255] ^ inverted >> 8


cdef uint32_t SLASH = crc(0xFFFFFFFF, c"/")


cdef inline uint8_t letter(uint8_t byte) noexcept nogil:
    """The small ASCII letter; 0 for what is no letter."""
    byte |= 0x20
    return byte if c"a" <= byte <= c"z" else 0


cdef void words(const uint8_t* path, Py_ssize_t size, uint16_t* out) noexcept nogil:
    """The hashes of the first OF_PATH words of two letters or more in *path*; 0 for each that is missing."""
    cdef Py_ssize_t at, length = 0
    cdef int found = 0
    cdef uint32_t state = SLASH
    cdef uint8_t small
    if size > MAX_BYTES:
        size = MAX_BYTES
    for at in range(size + 1):
        small = letter(path[at]) if at < size else 0
        if small:
            state = crc(state, small)
            length += 1
        elif length:
            if length > 1:
                out[found] = ~state & WORD_MASK or 1
                found += 1
                if found == OF_PATH:
                    return
            state, length = SLASH, 0
    for found in range(found, OF_PATH):
        out[found] = 0


cdef uint32_t section(const uint8_t* path, Py_ssize_t size) noexcept nogil:
    """A checksum of the first segment; 0 when there is only one."""
    cdef Py_ssize_t at
    cdef uint32_t state = 0xFFFFFFFF
    for at in range(size):
        if at and path[at] == c"/":
            return ~state
        state = crc(state, path[at])
    return 0


cdef bint is_repetitive(const uint8_t* path, Py_ssize_t size) noexcept nogil:
    """Whether a segment that is no number, of three characters or more, stands there more than MAX_REPEATED times.

    Requires MAX_DEPTH slashes at most.
    """
    cdef Py_ssize_t[MAX_DEPTH + 2] begins
    cdef Py_ssize_t at, length
    cdef int number = 0, one, other, times
    cdef bint digits
    begins[0] = 0
    for at in range(size):
        if path[at] == c"/":
            number += 1
            begins[number] = at + 1
    begins[number + 1] = size + 1
    for one in range(number + 1 - MAX_REPEATED):
        length = begins[one + 1] - 1 - begins[one]
        if length < 3:
            continue
        times = 1
        for other in range(one + 1, number + 1):
            if begins[other + 1] - 1 - begins[other] == length:
                times += memcmp(path + begins[other], path + begins[one], length) == 0
        if times > MAX_REPEATED:
            digits = True
            for at in range(begins[one], begins[one] + length):
                digits = digits and c"0" <= path[at] <= c"9"
            if not digits:
                return True
    return False


cdef class Derived:
    """`derived`, when it is called."""

    def __init__(self, link_batch, urls, digest):
        if link_batch.WORDS != WORDS or max(map(len, link_batch.FORMS)) > MAX_SUFFIX:
            raise ValueError("other links than those that were compiled")
        self.digest, self.url_hash, self.form_of = digest, urls.url_hash, link_batch.form_of
        self.mask = (<uint64_t> 1 << <int> urls.HASH_BITS) - 1
        self.forms = {suffix.encode("ascii"): form for suffix, form in link_batch.FORMS.items()}
        self.repetitive = link_batch.REPETITIVE

    def __call__(self, urls, paths, lines, of_names):
        cdef list every = list(lines), each = list(urls), names = list(of_names)
        cdef Py_ssize_t number = len(every), at, size
        if not len(each) == len(names) == number:
            raise ValueError("columns of different lengths")
        cdef bytes hashes = PyBytes_FromStringAndSize(NULL, 8 * number)
        cdef bytes sections = PyBytes_FromStringAndSize(NULL, 4 * number)
        cdef bytes all_words = PyBytes_FromStringAndSize(NULL, 2 * WORDS * number)
        cdef bytes forms = PyBytes_FromStringAndSize(NULL, number)
        cdef bytes depths = PyBytes_FromStringAndSize(NULL, number)
        cdef uint64_t* h = <uint64_t*> PyBytes_AS_STRING(hashes)
        cdef uint32_t* s = <uint32_t*> PyBytes_AS_STRING(sections)
        cdef uint16_t* w = <uint16_t*> PyBytes_AS_STRING(all_words)
        cdef uint8_t* f = <uint8_t*> PyBytes_AS_STRING(forms)
        cdef uint8_t* d = <uint8_t*> PyBytes_AS_STRING(depths)
        cdef const uint8_t* path
        cdef bytes line
        cdef str url
        for at in range(number):
            line, url = every[at], each[at]
            path, size = <const uint8_t*> PyBytes_AS_STRING(line), PyBytes_GET_SIZE(line)
            h[at] = self.hash_of(url)
            s[at] = section(path, size)
            w[WORDS * at], w[WORDS * at + 1] = names[at]
            words(path, size, w + WORDS * at + OF_NAME)
            self.form(path, size, f + at, d + at)
        return hashes, sections, all_words, forms, depths

    cdef uint64_t hash_of(self, str url) except? 0:
        cdef Py_ssize_t size = len(url)
        if not is_ascii_text(url) or memchr(PyUnicode_DATA(url), c"&", size) != NULL:
            return self.url_hash(url)
        return <uint64_t> self.digest(PyBytes_FromStringAndSize(<const char*> PyUnicode_DATA(url), size)) & self.mask

    cdef int form(self, const uint8_t* path, Py_ssize_t size, uint8_t* form, uint8_t* depth) except -1:
        """Fill in the form and the depth of *path*."""
        cdef const void* query = memchr(path, c"?", size)
        cdef Py_ssize_t at, begin = 0, slashes = 0
        cdef char[MAX_SUFFIX] suffix
        if query != NULL:
            size = <const uint8_t*> query - path
        for at in range(size):
            slashes += path[at] == c"/"
            if path[at] == c".":
                begin = at + 1
        if slashes > MAX_DEPTH:
            form[0], depth[0] = self.form_of((<const char*> path)[:size].decode("ascii"))
            return 0
        form[0], depth[0] = 0, <uint8_t> slashes
        if size - begin <= MAX_SUFFIX:
            for at in range(begin, size):
                suffix[at - begin] = path[at] + 32 if c"A" <= path[at] <= c"Z" else path[at]
            form[0] = self.forms.get(suffix[:size - begin], 0)
        if slashes > MAX_REPEATED and is_repetitive(path, size):
            form[0] |= self.repetitive
