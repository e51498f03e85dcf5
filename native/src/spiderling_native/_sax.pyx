"""libxml2's HTML parser as a stream of events.

lxml calls a Python object for each event, or builds a tree.  Here C functions are called.  They get the events that
lxml's target parsers get, since it is the same parser with the same options (lxml's parser.pxi, parsertarget.pxi).
Its functions are those that lxml brought into the process, looked up by name: nothing is linked, so there is one
libxml2.  Of its structures only fields are used that stand in its public headers and have kept their places for twenty
years; `self_test` looks at them.
"""

from posix.dlfcn cimport RTLD_NOW, dlopen, dlsym

from lxml.includes.htmlparser cimport HTML_PARSE_COMPACT, HTML_PARSE_NONET, HTML_PARSE_RECOVER
from lxml.includes.tree cimport xmlDoc
from lxml.includes.xmlerror cimport xmlError
from lxml.includes.xmlparser cimport (
    XML_PARSE_HUGE, charactersSAXFunc, endElementSAXFunc, startElementSAXFunc, xmlSAXHandler,
)

import os

from lxml import etree

ctypedef xmlParserCtxt* (*Create)(const char*, int) noexcept nogil
ctypedef xmlDoc* (*ReadMemory)(xmlParserCtxt*, const char*, int, const char*, const char*, int) noexcept nogil
ctypedef void (*OfParser)(xmlParserCtxt*) noexcept nogil
ctypedef void (*OfDocument)(xmlDoc*) noexcept nogil

cdef int OPTIONS = HTML_PARSE_RECOVER | HTML_PARSE_NONET | HTML_PARSE_COMPACT | XML_PARSE_HUGE
cdef void* LIBRARY = dlopen(os.fsencode(etree.__file__), RTLD_NOW)


cdef void* function(const char* name) except NULL:
    cdef void* found = NULL if LIBRARY == NULL else dlsym(LIBRARY, name)
    if found == NULL:
        raise ImportError(f"lxml {etree.__version__} does not show libxml2's {name.decode()}")
    return found


cdef Create create = <Create> function(b"htmlCreateMemoryParserCtxt")
cdef ReadMemory read_memory = <ReadMemory> function(b"htmlCtxtReadMemory")
cdef OfParser stop_parser = <OfParser> function(b"xmlStopParser")
cdef OfParser free_parser = <OfParser> function(b"htmlFreeParserCtxt")
cdef OfDocument free_document = <OfDocument> function(b"xmlFreeDoc")


cdef void ignore(void* receiver, const xmlError* error) noexcept nogil:
    pass


cdef xmlParserCtxt* reader_for(object receiver, Events* events) except NULL:
    """A parser that calls *events*, which ask it for the *receiver*; `read` frees it."""
    cdef xmlParserCtxt* reader = create(b"-", 1)  # the page replaces this
    cdef xmlSAXHandler* handler
    if reader == NULL:
        raise MemoryError
    handler = reader.sax
    handler._private = <void*> receiver
    handler.startElement = <startElementSAXFunc> events.start
    handler.endElement = <endElementSAXFunc> events.end
    handler.characters = handler.cdataBlock = <charactersSAXFunc> events.text
    handler.comment, handler.processingInstruction = NULL, NULL
    handler.serror = ignore
    return reader


cdef int read(xmlParserCtxt* reader, bytes body) except -1:
    """Read a page in UTF-8, of less than 2 GiB, to its end or until a receiver calls `stop`."""
    cdef xmlDoc* document = read_memory(reader, body, <int> len(body), NULL, b"utf-8", OPTIONS)
    if document != NULL:  # a root without elements
        free_document(document)
    free_parser(reader)


cdef void stop(xmlParserCtxt* reader) noexcept nogil:
    stop_parser(reader)


# -- self-test

cdef void note_start(void* reader, const char* tag, const char** attributes) noexcept:
    (<list> receiver_of(reader)).append((text_of(tag), {} if attributes == NULL else mapping_of(attributes)))


cdef void note_end(void* reader, const char* tag) noexcept:
    (<list> receiver_of(reader)).append(text_of(tag))


cdef void note_text(void* reader, const char* text, int size) noexcept:
    (<list> receiver_of(reader)).append(decoded(text, size))


def self_test():
    """Raise ImportError if libxml2 does not call what its headers say."""
    cdef list found = []
    cdef Events events
    events.start, events.end, events.text = note_start, note_end, note_text
    read(reader_for(found, &events), b"<title>a</title><!-- b --><p id=c class='d &amp; e' hidden>f<b>g")
    if found != [
        ("html", {}), ("head", {}), ("title", {}), "a", "title", "head",
        ("body", {}), ("p", {"id": "c", "class": "d & e", "hidden": ""}), "f", ("b", {}), "g", "b", "p", "body", "html",
    ]:
        raise ImportError(f"libxml2 {etree.LIBXML_VERSION} has other events than this module was built for")
