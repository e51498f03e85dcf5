"""What is read of libxml2's nodes: fields of xmlNode and xmlAttr, whose texts are UTF-8 and ended by a zero byte."""

from libc.string cimport strcmp
from lxml.includes.tree cimport xmlAttr, xmlNode

cdef enum:  # types of nodes
    ELEMENT_NODE = 1, TEXT_NODE = 3, CDATA_NODE = 4

cdef object value_of(const xmlAttr* attribute)
cdef dict attributes_of(const xmlNode* node)

cdef inline const char* text_of(const xmlAttr* attribute) noexcept nogil:
    """The value of an attribute where it is at most one text, as it is in HTML; else NULL."""
    cdef const xmlNode* child = attribute.children
    if child == NULL:
        return b""
    if child.next != NULL or child.type != TEXT_NODE or child.content == NULL:
        return NULL
    return <const char*> child.content

cdef inline const xmlAttr* find_attribute(const xmlNode* node, const char* name) noexcept nogil:
    cdef const xmlAttr* attribute = node.properties
    while attribute != NULL and strcmp(<const char*> attribute.name, name) != 0:
        attribute = attribute.next
    return attribute

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
