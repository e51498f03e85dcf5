"""The compiled twin of `resolve` in text/html/links.py, and which URLs are canonical as they stand (base/urls.py).

Two scanners stand for the two expressions named _PLAIN there; what they do not take is left to Python.
"""

from cpython.tuple cimport PyTuple_GetItem
from cpython.unicode cimport PyUnicode_DATA
from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp

from spiderling_native._text cimport is_ascii_text

cdef enum:
    MAX_LABEL = 63, MAX_URL = 250  # characters
    RELATIVE = 1, ROOTED = 2, ABSOLUTE = 3  # forms of an href

cdef enum:  # bits of a byte
    HREF_NAME = 1, HREF_PATH = 2, HREF_QUERY = 4, HREF_FIRST = 8
    URL_LABEL = 16, URL_PATH = 32, URL_QUERY = 64, SMALL = 128

cdef uint8_t BITS[256]


def _fill():
    small = b"abcdefghijklmnopqrstuvwxyz"
    word = small + small.upper() + b"0123456789_"
    cdef uint8_t byte, bit
    for bit, each in (
        (HREF_NAME, small + b"0123456789-"),
        (HREF_PATH, word + b".~!$&'()*+,;=:@%-"),
        (HREF_QUERY, word + b".~!$&()*+,;:=@%/?-"),
        (HREF_FIRST, word),
        (URL_LABEL, small + b"0123456789_-"),
        (URL_PATH, word + b"~!$&()*+,:=@/.%-"),
        (URL_QUERY, word + b"~!$&()*+,:=@/.%?;-"),
        (SMALL, small),
    ):
        for byte in each:
            BITS[byte] |= bit


_fill()


cdef inline Py_ssize_t scheme_of(const uint8_t* url, Py_ssize_t size) noexcept nogil:
    """Bytes of "http://" or "https://" at the beginning of *url*, else 0."""
    if size > 7 and memcmp(url, b"http://", 7) == 0:
        return 7
    return 8 if size > 8 and memcmp(url, b"https://", 8) == 0 else 0


cdef inline Py_ssize_t behind(const uint8_t* text, Py_ssize_t size, Py_ssize_t at, uint8_t bit) noexcept nogil:
    """The first place from *at* on that has not this *bit*, at most *size*."""
    while at < size and BITS[text[at]] & bit:
        at += 1
    return at


cdef bint are_small(const uint8_t* text, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    return behind(text, end, begin, SMALL) == end


cdef inline bint has_punycode(const uint8_t* text, Py_ssize_t size) noexcept nogil:
    return size > 3 and memcmp(text, b"xn--", 4) == 0


cdef int form_of(const uint8_t* href, Py_ssize_t size) noexcept nogil:
    """How *href*, of one byte or more, is resolved by putting something before it; 0 if that may not be enough."""
    cdef Py_ssize_t at = scheme_of(href, size), begin
    cdef int form, dots = 0
    if at:
        form = ABSOLUTE
        while True:
            begin = at
            if has_punycode(href + at, size - at):
                return 0
            at = behind(href, size, at, HREF_NAME)
            if at == begin or at == size:
                return 0
            if href[at] != c".":
                break
            dots += 1
            at += 1
        if href[at] != c"/" or not dots or not are_small(href, begin, at):
            return 0
    elif href[0] == c"/":
        form = ROOTED
        if size > 1 and href[1] == c"/":
            return 0
    else:
        form = RELATIVE
        if not BITS[href[0]] & HREF_FIRST:
            return 0
        begin = 0
        while begin < size and (BITS[href[begin]] & HREF_FIRST or href[begin] == c"." or href[begin] == c"-"):
            begin += 1
        if begin < size and href[begin] != c"/" and href[begin] != c"?":
            return 0
    while True:  # each segment
        if at < size and (href[at] == c"." or (href[at] == c"%" and at + 1 < size and href[at + 1] == c"2")):
            return 0
        at = behind(href, size, at, HREF_PATH)
        if at == size:
            return form
        at += 1
        if href[at - 1] == c"?":
            return form if behind(href, size, at, HREF_QUERY) == size else 0
        if href[at - 1] != c"/":
            return 0


cdef bint canonical_parts(const uint8_t* url, Py_ssize_t size, Parts* parts) noexcept nogil:
    """Whether *url* is canonical but for its query and fragment; fills in where its parts are."""
    cdef Py_ssize_t at = scheme_of(url, size), begin
    cdef int labels = 0
    if not at or size > MAX_URL:
        return False
    parts.name = at
    while True:
        begin = at
        at = behind(url, size, at, URL_LABEL)
        if not 0 < at - begin <= MAX_LABEL or at == size:
            return False
        if url[at] != c".":
            break
        labels += 1
        at += 1
    if url[at] != c"/" or not labels or at - begin < 2 or not are_small(url, begin, at):
        return False
    parts.path = at
    at = parts.query = parts.end = behind(url, size, at, URL_PATH)
    if at < size and url[at] == c"?":
        at = parts.end = behind(url, size, at + 1, URL_QUERY)
    if at < size:
        if url[at] != c"#":
            return False
        while at < size:
            if not c"!" <= url[at] <= c"~":
                return False
            at += 1
    for at in range(size - 1):  # what Python's _needs_parser finds
        if url[at] == c"/":
            if url[at + 1] == c"." or url[at + 1] == c"(":
                return False
        elif url[at] == c"x":
            if has_punycode(url + at, size - at):
                return False
        elif url[at] == c"%" and url[at + 1] == c"2" and at + 2 < size and url[at + 2] | 0x20 == c"e":
            return False
    return True


cdef inline bint is_space(uint8_t byte) noexcept nogil:
    """Whether str.strip takes this ASCII character away."""
    return byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31


cdef class Resolved:
    """`resolve`, when it is called."""

    cdef object starts_of, join

    def __init__(self, links):
        self.starts_of, self.join = links.starts_of, links.join

    def __call__(self, links, page_url, base):
        cdef dict found = {}
        cdef set tried = {""}
        cdef str root, origin, folder, href, url
        cdef int form
        root, origin, folder = self.starts_of(page_url, base)
        for link in links:
            href = without_fragment(<str?> <object> PyTuple_GetItem(link, 0))
            if href in tried:
                continue
            tried.add(href)
            form = form_of(<const uint8_t*> PyUnicode_DATA(href), len(href)) if origin and is_ascii_text(href) else 0
            if form == ABSOLUTE:
                url = href
            elif form:
                url = (origin if form == ROOTED else folder) + href
            else:
                url = self.join(root, href)
                if url is None or not url.startswith(("http://", "https://")):
                    continue
            if url not in found:
                found[url] = link
        return [(link, url) for url, link in found.items()]


cdef str without_fragment(str href):
    cdef const uint8_t* data
    cdef const void* mark
    cdef Py_ssize_t begin = 0, end = len(href)
    if not is_ascii_text(href):
        return href.partition("#")[0].strip()
    data = <const uint8_t*> PyUnicode_DATA(href)
    mark = memchr(data, c"#", end)
    if mark != NULL:
        end = <const uint8_t*> mark - data
    while begin < end and is_space(data[begin]):
        begin += 1
    while end > begin and is_space(data[end - 1]):
        end -= 1
    return href if end - begin == len(href) else href[begin:end]
