"""libxml2's HTML parser as a stream of events.  Texts are UTF-8; those without a size are ended by a zero byte.

A text is there for the time of the call.  Attributes are names and values in turn, with NULL at the end; a
value is NULL where the page gives none.
"""

from libc.string cimport strlen
from lxml.includes.xmlparser cimport xmlParserCtxt

from spiderling_native._text cimport decoded

cdef struct Events:  # what the parser calls, with itself as first argument
    void (*start)(void*, const char* tag, const char** attributes) noexcept  # NULL if there are no attributes
    void (*end)(void*, const char* tag) noexcept
    void (*text)(void*, const char* text, int size) noexcept

cdef inline object receiver_of(void* reader):
    return <object> (<xmlParserCtxt*> reader).sax._private

cdef xmlParserCtxt* reader_for(object receiver, Events* events) except NULL
cdef int read(xmlParserCtxt* reader, bytes body) except -1
cdef void stop(xmlParserCtxt* reader) noexcept nogil

cdef inline bint same(const char* text, const char* word) noexcept nogil:
    while text[0] == word[0] and word[0]:
        text += 1
        word += 1
    return text[0] == word[0]

cdef inline bint next_attribute(const char*** attributes, const char** name, const char** value) noexcept nogil:
    """Go on to the next attribute; False if there is none.  Its value is "" where the page gives none."""
    if attributes[0][0] == NULL:
        return False
    name[0] = attributes[0][0]
    value[0] = attributes[0][1]
    if value[0] == NULL:
        value[0] = b""
    attributes[0] += 2
    return True

cdef inline const char* value_of(const char** attributes, const char* name) noexcept nogil:
    """The value of an attribute, "" where the page gives none; NULL if the element has no such attribute."""
    while attributes[0] != NULL:
        if same(attributes[0], name):
            if attributes[1] == NULL:
                return b""
            return attributes[1]
        attributes += 2
    return NULL

cdef inline object text_of(const char* value):
    return "" if value == NULL else decoded(value, strlen(value))

cdef inline dict mapping_of(const char** attributes):
    cdef dict found = {}
    while attributes[0] != NULL:
        found[text_of(attributes[0])] = text_of(attributes[1])
        attributes += 2
    return found

cdef inline bint holds(const char* text, const char* word) noexcept nogil:
    """Whether *word*, of small letters a to z, stands in *text*, in small letters or capitals."""
    cdef Py_ssize_t at
    while text[0]:
        at = 0
        while word[at] and (text[at] | 0x20) == word[at]:
            at += 1
        if not word[at]:
            return True
        text += 1
    return False

cdef inline bint is_ascii(const char* text) noexcept nogil:
    while text[0]:
        if <unsigned char> text[0] >= 0x80:
            return False
        text += 1
    return True
