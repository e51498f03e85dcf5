"""What is read of libxml2's nodes; none of its functions is called."""

from libc.string cimport strcmp, strlen
from lxml.includes cimport etreepublic
from lxml.includes.tree cimport xmlAttr, xmlNode

from spiderling_native._text cimport decoded

from lxml import etree

etreepublic.import_lxml__etree()


cdef object value_of(const xmlAttr* attribute):
    cdef const char* text = text_of(attribute)
    cdef const xmlNode* child
    cdef list parts
    if text != NULL:
        return decoded(text, strlen(text))
    parts = []
    child = attribute.children
    while child != NULL:
        if child.content != NULL:
            parts.append(decoded(<const char*> child.content, strlen(<const char*> child.content)))
        child = child.next
    return "".join(parts)


cdef dict attributes_of(const xmlNode* node):
    cdef const xmlAttr* attribute = node.properties
    cdef dict found = {}
    while attribute != NULL:
        found.setdefault(decoded(<const char*> attribute.name, strlen(<const char*> attribute.name)), value_of(attribute))
        attribute = attribute.next
    return found


def self_test():
    """Raise ImportError if the fields of libxml2's nodes are not where this module looks for them."""
    cdef etreepublic._Element root
    cdef xmlNode* node
    cdef bint is_right
    root = etree.fromstring(b"<html><body><p id=a class='b c'>d<i>e</i></p>f</body></html>", etree.HTMLParser())
    node = root._c_node
    is_right = node.type == ELEMENT_NODE and node.name != NULL and strcmp(<const char*> node.name, b"html") == 0
    is_right = is_right and node.children != NULL and strcmp(<const char*> node.children.name, b"body") == 0
    if is_right:
        node = node.children.children
        is_right = node.properties != NULL and node.properties.next != NULL and node.next != NULL
    if is_right:
        is_right = value_of(node.properties) == "a" and value_of(node.properties.next) == "b c"
        is_right = is_right and strcmp(<const char*> node.children.content, b"d") == 0
        is_right = is_right and node.next.type == TEXT_NODE and strcmp(<const char*> node.next.content, b"f") == 0
        is_right = is_right and attributes_of(node) == dict(root[0][0].attrib)
    if not is_right:
        raise ImportError(f"libxml2 {etree.LIBXML_VERSION} has other nodes than this module was built for")

